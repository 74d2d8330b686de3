# examples/README.md, "When things go wrong": each row is provoked, and its text found
# SPDX-License-Identifier: MIT
import functools
import re
import signal
import sys
import unittest

import helpers
from helpers import ROOT, environment, events, load, run, scratch
from docs.pages import GUIDE, rows

from npuprof import check

USE = '''#include "npuprof.h"
void use(const char *name);
void use(const char *name)
{
    (void)name;
    %s
}
'''
IMPLEMENTATION = '''#define NPUPROF_IMPLEMENTATION
#include "npuprof.h"
void use(const char *name);
int main(void)
{
    use("a");
    return 0;
}
'''
CLOCK = "#include <stdint.h>\n#define NPUPROF_NOW() ((uint64_t)1)\n#define NPUPROF_NOW_HZ 1000\n"
@functools.cache
def program():
    return helpers.build("trouble.c", "trouble")


def trouble(*arguments, **env):
    return run([program(), *arguments], env=environment(**env))


def compiled(flags=(), **files):
    """The compiler's words on these files, linked."""
    paths = []
    for name, text in files.items():
        paths.append(scratch() / f"{name}.c")
        paths[-1].write_text(text)
    flags = [*(flags or ["-std=gnu11"]), f"-I{ROOT}", "-pthread"]
    return run([*helpers.CC, *flags, *paths, "-o", scratch() / "linked"])


class Trouble(unittest.TestCase):
    """One case for each row; `row` is how its first cell begins. test_every_row holds both lists together."""

    rows = {
        "not_started": "a trace without spans, `\"recorded\":0`",
        "no_path": "`npuprof: /no/t.json: NPUPROF_ERR_NOT_FOUND",
        "no_space": "`NPUPROF_ERR_NO_SPACE",
        "no_file": "no file at all",
        "damaged": "`npuprof-convert: t.npuprof: damaged",
        "lost": "`lost` above 0",
        "causality": "`causality_violations` above 0",
        "dead": "`NPUPROF_ERR_NPU_DEAD",
        "decode_off": "`NPUPROF_ERR_NPU_DECODE_OFF",
        "owned": "`NPUPROF_ERR_NPU_OWNED",
        "stopped": "`NPUPROF_ERR_NPU_STOPPED",
        "reset": "`NPUPROF_ERR_NPU_RESET",
        "ambiguous": "`NPUPROF_ERR_NPU_AMBIGUOUS",
        "outside": "`NPUPROF_ERR_NPU_RANGE",
        "open_twice": "`npuprof_npu_open_twice NAME`",
        "no_arrows": "device spans without arrows",
        "gate_with": "linker: `npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_with_",
        "gate_without": "linker: `npuprof_gate_define_NPUPROF_IMPLEMENTATION_in_one_file_without_",
        "npu_missing": "linker: `npuprof_npu_open_include_npuprof_npu_h_",
        "two_implementations": "linker: `multiple definition",
        "strict": "`#error \"npuprof.h: strict",
        "no_block": "`expected expression before 'static'`",
        "no_literal": "`npuprof: the name must be a string literal",
        "slow_viewer": "the viewer is slow",
    }

    def quoted(self, key):
        """What the row quotes, up to its dots."""
        table = rows(GUIDE, "When things go wrong")[0]
        (row,) = [row for row in table if row[0].startswith(self.rows[key])]
        return [text.partition("...")[0].rstrip("; ") for text in re.findall(r"`([^`]*)`", row[0])], row[1]

    def test_every_row(self):
        first = [row[0] for row in rows(GUIDE, "When things go wrong")[0]]
        self.assertEqual(len(first), len(self.rows))
        for key, begin in self.rows.items():
            self.assertEqual(sum(cell.startswith(begin) for cell in first), 1, begin)
            self.assertTrue(hasattr(self, f"test_{key}"), key)

    def test_not_started(self):
        self.assertEqual(trouble("not started", "none.json").returncode, 0)
        text = (scratch() / "none.json").read_text()
        self.assertIn(self.quoted("not_started")[0][0], text)
        self.assertEqual(events(load(scratch() / "none.json"), "X"), [])
        done = trouble("mark", NPUPROF_OUTPUT_PATH="none.json", NPUPROF_CATEGORIES="zzz")
        said = re.search(r"`(npuprof: NPUPROF_CATEGORIES[^`]*)`", self.quoted("not_started")[1])[1]
        self.assertIn(said, done.stderr)
        self.assertEqual(events(load(scratch() / "none.json"), "X"), [])

    def test_no_path(self):
        done = trouble("mark", NPUPROF_OUTPUT_PATH="/no/t.json")
        self.assertEqual(done.stderr.strip(), self.quoted("no_path")[0][0])

    def test_no_space(self):
        done = trouble("full", "/dev/full", "afterwards.json")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, self.quoted("no_space")[0][0]))
        self.assertEqual([e["name"] for e in events(load(scratch() / "afterwards.json"), "X")], ["mark"])

    def test_no_file(self):
        for what, code in (("killed", -signal.SIGKILL), ("left", 0)):
            done = trouble(what, NPUPROF_OUTPUT_PATH="gone.json")
            self.assertEqual(done.returncode, code)
            self.assertFalse((scratch() / "gone.json").exists())
            done = trouble(what, NPUPROF_ARENA_PATH=f"{what}.npuprof")
            self.assertEqual(done.returncode, code)
            self.assertTrue((scratch() / f"{what}.npuprof").exists())

    def test_damaged(self):
        helpers.tool("npuprof-convert")
        trouble("mark", NPUPROF_OUTPUT_PATH="whole.npuprof")
        data = bytearray((scratch() / "whole.npuprof").read_bytes())
        (scratch() / "t.npuprof").write_bytes(data[:-64])
        done = helpers.npuprof_py("convert", "t.npuprof", "-o", "t.json", code=1)
        self.assertIn(self.quoted("damaged")[0][0].rstrip(": "), done.stderr)
        self.assertGreater(load(scratch() / "t.json")["metadata"]["npuprof"]["damaged_places"], 0)

    def test_lost(self):
        trouble("lost", "lost.json")
        self.assertGreater(load(scratch() / "lost.json")["metadata"]["npuprof"]["lost"]["arena_full"], 0)

    @helpers.thorough
    def test_causality(self):
        trouble("causality", "causality.json")
        trace = load(scratch() / "causality.json")
        self.assertEqual(trace["metadata"]["npuprof"]["devices"][0]["clock_sync"]["causality_violations"], 1)

    def does_not_compile(self, key, flags=(), **files):
        """What the compiler or the linker says, which holds what the row quotes."""
        done = compiled(flags, **files)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.quoted(key)[0][0].removeprefix('#error "'), done.stderr)
        return done.stderr

    def sentence(self, key, *whats):
        for what in whats:
            done = trouble(what)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(done.stdout.splitlines()[0].startswith(self.quoted(key)[0][0]), done.stdout)
        return done.stdout

    def test_dead(self):
        self.sentence("dead", "dead", "zeros")

    def test_stopped(self):
        self.sentence("stopped", "frozen")

    def test_reset(self):
        self.assertEqual(self.sentence("reset", "reset").splitlines()[1], "NPUPROF_OK: ok", "said once")

    def test_ambiguous(self):
        """npu/doubtful.c gets the code. Here: the sentence is the library's."""
        said = trouble("sentence").stdout.splitlines()
        self.assertTrue(any(line.startswith(self.quoted("ambiguous")[0][0]) for line in said))

    def test_outside(self):
        self.sentence("outside", "range")

    def in_the_rigs(self, key, code):
        """It takes a real PCI device: tests/qemu/refusals.c asks for the code (`make qemu`).
        Here: the sentence is the library's."""
        said = trouble("sentence").stdout.splitlines()
        self.assertTrue(any(line.startswith(self.quoted(key)[0][0]) for line in said))
        self.assertIn(code, (ROOT / "tests/qemu/refusals.c").read_text())

    def test_decode_off(self):
        self.in_the_rigs("decode_off", "NPUPROF_ERR_NPU_DECODE_OFF")

    def test_owned(self):
        self.in_the_rigs("owned", "NPUPROF_ERR_NPU_OWNED")

    def test_open_twice(self):
        """tests/npu/correlation.c provokes it, and reads the note."""
        self.assertIn("npuprof_npu_open_twice", self.quoted("open_twice")[0][0])
        self.assertIn('"npuprof_npu_open_twice %s"', (ROOT / "tests/npu/correlation.c").read_text())

    def test_no_arrows(self):
        trouble("arrows", "arrows.json")
        trace = load(scratch() / "arrows.json")
        stamps = [e.get("args", {}).get("stamp") for e in events(trace, "X")]
        self.assertEqual(stamps.count("device"), 1)
        self.assertEqual(events(trace, "s"), [])

    @helpers.thorough
    def test_gate_with(self):
        self.does_not_compile("gate_with", a=IMPLEMENTATION, b=CLOCK + USE % 'PROF_SCOPE("a");')

    @helpers.thorough
    def test_gate_without(self):
        none = IMPLEMENTATION.replace("#define NPUPROF_IMPLEMENTATION\n", "")
        for implementation in (CLOCK + IMPLEMENTATION, "#define NPUPROF_OFF\n" + IMPLEMENTATION, none):
            self.does_not_compile("gate_without", a=implementation, b=USE % 'PROF_SCOPE("a");')

    @helpers.thorough
    def test_npu_missing(self):
        use = '#include "npuprof_npu.h"\nint use(npuprof_npu *n);\nint use(npuprof_npu *n)' \
              ' { return npuprof_npu_open(n, NULL); }\n'
        self.does_not_compile("npu_missing", a=IMPLEMENTATION.replace('use("a")', 'puts("a")'),
                              b='#include "npuprof.h"\n' + use)

    @helpers.thorough
    def test_two_implementations(self):
        done = compiled(a=IMPLEMENTATION, b="#define NPUPROF_IMPLEMENTATION\n" + USE % 'PROF_SCOPE("a");')
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("multiple definition of", done.stderr)
        self.assertIn("npuprof_", done.stderr)

    @helpers.thorough
    def test_strict(self):
        text = IMPLEMENTATION.replace("void use(const char *name);\n", "").replace("use(", "puts(")
        text = "#include <stdio.h>\n" + text
        self.does_not_compile("strict", ["-std=c11"], a=text)
        first = text.replace("#include <stdio.h>\n", "")
        for flags, fixed in ((["-std=c11"], first), (["-std=c11", "-D_DEFAULT_SOURCE"], text)):
            self.assertEqual(compiled(flags, a=fixed).returncode, 0)

    def test_no_block(self):
        helpers.need("gcc")
        done = compiled(b=USE % 'if (name) PROF_SCOPE("a");')
        self.assertNotEqual(done.returncode, 0)
        # gcc's words; it prints its quotes as the locale has them.
        self.assertRegex(done.stderr, self.quoted("no_block")[0][0].replace("'", "['‘’`]"))

    @helpers.thorough
    def test_no_literal(self):
        self.assertIn("PROF_SCOPE(name)", self.does_not_compile("no_literal", b=USE % "PROF_SCOPE(name);"))
        instead = 'WITH_BASE_PROFILER(NULL, name, "c", PROF_NO_ARGS, (void)0);'
        instead += " PROF_BEGIN(name, name); PROF_END();"
        done = compiled(a=IMPLEMENTATION, b=USE % instead)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_slow_viewer(self):
        """The check's warning, with a lower limit than its million (test_viewers.py takes the million)."""
        trouble("lost", "many.json")
        limit = check.EVENTS_SLOW
        program = ("import sys; sys.path.insert(0, sys.argv[1])\n"
                   "from npuprof import check; check.EVENTS_SLOW = 3; check.check_file('many.json')")
        done = run([sys.executable, "-c", program, ROOT / "tools"])
        self.assertEqual((limit, done.returncode), (1_000_000, 0), done.stderr)
        self.assertIn("Chrome's viewer is slow", done.stdout)
