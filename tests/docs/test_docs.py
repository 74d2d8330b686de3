# the code in the texts: the quick start is one text everywhere, and every block of code runs as it stands
# SPDX-License-Identifier: MIT
import re
import sys
import textwrap
import unittest

import helpers
from docs import pages
from docs.pages import FIRMWARE, GUIDE, README, REFERENCE, TOOLS
from helpers import ROOT, run, scratch

HELLO = ROOT / "examples" / "01_hello.c"
HEADER, HEADER_NPU = helpers.HEADERS


def lines(text):
    """Without common indentation, trailing blanks and empty lines."""
    return [line.rstrip() for line in textwrap.dedent(text).splitlines() if line.strip()]


def holds(whole, part):
    """Do the lines of part stand in whole, one after the other?"""
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


class QuickStart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.quick_start = lines(pages.fenced(README, "c")[0])

    def test_is_short_and_whole(self):
        self.assertLessEqual(len(self.quick_start), 25)
        self.assertTrue(any("NPUPROF_IMPLEMENTATION" in line for line in self.quick_start))
        self.assertTrue(any("int main(" in line for line in self.quick_start))

    def test_example_is_the_same(self):
        self.assertTrue(holds(lines(pages.read(HELLO)), self.quick_start), "README's first C block")

    def test_header_is_the_same(self):
        block = re.search(r"QUICK START.*?\n(.*?)\n\s*WHAT IT DOES NOT DO", pages.read(HEADER), re.S)[1]
        block = "\n".join(line for line in block.splitlines() if line.startswith("     "))
        self.assertTrue(holds(lines(block), self.quick_start), "README's first C block")

    def test_before_line_20(self):
        self.assertLess(pages.read(README).split("```c\n")[0].count("\n") + 1, 20)

    def test_runs(self):
        """As the README says: nothing but the compiler's defaults."""
        run([*helpers.CC, f"-I{ROOT}", HELLO, "-o", scratch() / "hello", "-pthread"], code=0, said="")
        run([scratch() / "hello"], code=0, printed="", said="", env=helpers.environment())
        self.assertTrue(helpers.events(helpers.load(scratch() / "hello.json"), "X"))


class Examples(unittest.TestCase):
    @helpers.thorough
    def test_every_example_compiles_and_runs(self):
        """examples/*.c, alone, without a warning."""
        self.examples([])

    @helpers.thorough
    def test_every_example_compiles_and_runs_when_off(self):
        self.examples(["-DNPUPROF_OFF"])

    def examples(self, *configurations):
        for source in sorted((ROOT / "examples").glob("*.c")):
            for flags in configurations:
                with self.subTest(source=source.name, flags=flags):
                    program = helpers.build(source, source.stem, *flags)
                    run([program], code=0, env=helpers.environment())
        for trace in scratch().glob("*.json"):
            with self.subTest(trace=trace.name):
                helpers.load(trace)

    def test_every_example_is_listed(self):
        text = pages.read(GUIDE)
        for source in (ROOT / "examples").glob("*.c"):
            self.assertIn(f"]({source.name})", text)

    @helpers.thorough
    def test_the_npu_keeps_its_bound(self):
        """07: ten kernels, ten arrows, none before its submission. Five runs, as newcomers copy it."""
        (source,) = (ROOT / "examples").glob("07_*.c")
        program = helpers.build(source, source.stem)
        for _ in range(5):
            for trace in scratch().glob("npu*.json"):
                trace.unlink()
            self.assertEqual(run([program], env=helpers.environment()).returncode, 0)
            (path,) = scratch().glob("npu*.json")
            trace = helpers.load(path)
            sync = trace["metadata"]["npuprof"]["devices"][0]["clock_sync"]
            self.assertEqual(len(helpers.events(trace, "s", "submit")), 10)
            self.assertEqual((sync["causality_violations"], sync["arrows_left_out"]), (0, 0))


STUBS = """#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
#include "npuprof_npu.h"
%s
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
static struct { unsigned long long job; } command;
static uint32_t bar[1 << 18] = { [0x100 / 4] = 7, 9 };
static size_t bar_bytes = sizeof bar;
static int queue, submitted, waited;
static inline void submit(int q, const void *what) { (void)q; submitted += what != NULL; }
static inline void wait_for(int q) { waited += q == queue; }
int main(void)
{
    (void)bar, (void)bar_bytes, (void)command;
    npuprof_start(1);
%s
    npuprof_stop();
    return submitted == 1 ? (int)npuprof_dump("fragment.json") : 77;
}
"""
EVERY_DAY = """#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
static void scale(size_t bytes) { (void)bytes; }
static void every_day(size_t bytes, const char *codec, int queued)
{
%s
}
int main(void)
{
    npuprof_start(1);
    every_day(4096, "av1", 3);
    return npuprof_dump("every_day.json");
}
"""
RESOURCE = "/sys/bus/pci/devices/0000:01:00.0/resource0"


class Fragments(unittest.TestCase):
    """Every other block of C and Python, and the quick start of npuprof_npu.h: run as they stand."""

    def run_fragment(self, fragment, name, replace=()):
        of_file = [line for line in fragment.splitlines() if line.startswith("static ")]
        of_main = [line for line in fragment.splitlines() if not line.startswith(("static ", "#"))]
        body = "\n".join(of_main)
        for old, new in replace:
            self.assertIn(old, body)
            body = body.replace(old, new)
        if not any("npuprof_npu npu;" in line for line in of_file):
            of_file.append("static npuprof_npu npu;")
        if "desc = mynpu_npu_desc()" in body:
            of_file.insert(0, '#include "mynpu_regs.h"')
        source = scratch() / f"{name}.c"
        source.write_text(STUBS % ("\n".join(of_file), body), encoding="utf-8")
        flags = f"-std=gnu11 -Wall -Wextra -Werror -pthread -I{ROOT} -I{scratch()}".split()
        run([*helpers.CC, *flags, source, "-o", scratch() / name], code=0, said="")
        done = run([scratch() / name], code=0, env=helpers.environment())
        trace = helpers.load(scratch() / "fragment.json")
        of_host = [e["name"] for e in helpers.events(trace, "X") if "stamp" not in e.get("args", {})]
        self.assertEqual(of_host, ["conv1"])
        return done.stdout, [device["name"] for device in trace["metadata"]["npuprof"]["devices"]]

    def test_all_are_known(self):
        """One block for each test here."""
        texts = (README, GUIDE, REFERENCE, FIRMWARE, TOOLS)
        blocks = [re.findall(r"^```(\w+)$", pages.read(page), re.M) for page in texts]
        self.assertEqual(blocks,
                         [["c", "c"], ["cmake", "c"], ["c"], ["sh"] * 3, ["sh", "c"] + ["python"] * 5],
                         "cmake: tests/compile/test_install.py; sh: test_newcomer.py, and of firmware the "
                         "rig `first` of tests/baremetal/run.py")

    def test_every_day(self):
        source = scratch() / "every_day.c"
        source.write_text(EVERY_DAY % pages.fenced(REFERENCE, "c")[0], encoding="utf-8")
        run([helpers.build(source, "every_day")], code=0, said="", env=helpers.environment())
        names = {event["name"] for event in helpers.load(scratch() / "every_day.json")["traceEvents"]}
        self.assertLessEqual({"every_day", "decode", "frame", "key frame", "queued", "scale"}, names)

    @helpers.thorough
    def test_sampled(self):
        """As printed, on a machine without that device: it says so, and records the host's span.
        And on a file of registers."""
        self.sampled("sampled", pages.fenced(README, "c")[1])

    @helpers.thorough
    def test_sampled_in_the_header(self):
        block = re.search(r"QUICK START\n(.*?)\n   TWO WAYS", pages.read(HEADER_NPU), re.S)[1]
        self.sampled("header", textwrap.dedent(block))

    def sampled(self, name, fragment):
        registers = bytearray(4096)
        registers[0x10], registers[0x14] = 5, 6
        (scratch() / "registers").write_bytes(registers)
        said, _ = self.run_fragment(fragment, name)
        self.assertRegex(said, r"^NPUPROF_ERR_(NOT_FOUND: no such file|ACCESS: permission denied).*\n$")
        found = self.run_fragment(fragment, name + "-file", [(RESOURCE, str(scratch() / "registers"))])
        self.assertEqual(found, ("", ["npu0"]))

    @helpers.thorough
    def test_ring(self):
        """With the header that `gen` writes from the TOML file that the text names."""
        toml = pages.read(ROOT / "examples/digits/npusim.toml").replace("npusim", "mynpu")
        (scratch() / "mynpu.toml").write_text(toml, encoding="utf-8")
        command = "tools/npuprof.py " + re.search(r"`npuprof (gen [^`]*)`", pages.read(GUIDE))[1]
        tool, *arguments = command.split()
        run([sys.executable, ROOT / tool, *arguments], code=0)
        _, devices = self.run_fragment(pages.fenced(GUIDE, "c")[0], "ring")
        self.assertEqual(devices, ["mynpu"])

    @helpers.thorough
    def test_reading_from_c(self):
        source, hello = scratch() / "reading.c", helpers.build(HELLO, "hello-image")
        source.write_text(pages.fenced(TOOLS, "c")[0], encoding="utf-8")
        program = helpers.build(source, "reading")
        run([hello], code=0, env=helpers.environment(NPUPROF_OUTPUT_PATH="hello.npuprof"))
        done = run([program, "hello.npuprof"], code=0, said="")
        self.assertIn("Inference counts                : 0", done.stdout)
        image = (scratch() / "hello.npuprof").read_bytes()
        (scratch() / "cut.npuprof").write_bytes(image[:-100])
        done = run([program, "cut.npuprof"], code=1)
        self.assertRegex(done.stderr, "^damaged: .+")
        self.assertEqual(run([program, "none.npuprof"]).returncode, 2)

    @helpers.thorough
    def test_python(self):
        """In one directory, in their order, with a trace of the first one's name."""
        helpers.tool("libnpuprof.so")
        program = helpers.build(HELLO, "python-hello")
        self.assertEqual(run([program], env=helpers.environment()).returncode, 0)
        (scratch() / "hello.json").rename(scratch() / "digits.json")
        env = helpers.environment(PYTHONPATH=str(ROOT / "tools"))
        expected = ("6 spans", "total_ns", "Inference counts                : 3", "\ndecode ",
                    r"fetch [1-9]\d{6,} ")           # ns: it waits a millisecond, on a busy machine longer
        load, verdict, record, reading, tasks = pages.fenced(TOOLS, "python")
        # Some go on with what another one defines.
        fragments = load, f"{load}\n{verdict}", record, f"{record}\n{reading}", f"{record}\n{tasks}"
        for fragment, said in zip(fragments, expected, strict=True):
            done = run([sys.executable, "-c", fragment], code=0, env=env)
            self.assertRegex(done.stdout, said)
        trace = helpers.load(scratch() / "t.json")
        counts = [len(helpers.events(trace, "X", name)) for name in ("decode", "step", "Quantize")]
        self.assertEqual(counts, [4, 3, 3])
