# the quick start in README.md, npuprof.h and examples/01_hello.c is one text, and it runs
# SPDX-License-Identifier: MIT
import re
import sys
import textwrap
import unittest

import helpers
from docs import pages
from docs.pages import FIRMWARE, README, REFERENCE, TOOLS, names_in, rows
from helpers import ROOT, run, scratch

sys.path.insert(0, str(ROOT / "tools"))
from laws import code  # noqa: E402

HELLO = ROOT / "examples" / "01_hello.c"
HEADER = ROOT / "npuprof.h"
GUIDES = [README, REFERENCE, FIRMWARE, TOOLS]


def lines(text):
    """Without common indentation, trailing blanks and empty lines."""
    return [line.rstrip() for line in textwrap.dedent(text).splitlines() if line.strip()]


def holds(whole, part):
    """Do the lines of part stand in whole, one after the other?"""
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


class QuickStart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.header = HEADER.read_text(encoding="utf-8")
        cls.quick_start = lines(pages.fenced(README, "c")[0])

    def test_is_short_and_whole(self):
        self.assertLessEqual(len(self.quick_start), 25)
        self.assertTrue(any("NPUPROF_IMPLEMENTATION" in line for line in self.quick_start))
        self.assertTrue(any("int main(" in line for line in self.quick_start))

    def test_example_is_the_same(self):
        self.assertTrue(holds(lines(HELLO.read_text(encoding="utf-8")), self.quick_start), "README's first C block is not in 01_hello.c")

    def test_header_is_the_same(self):
        block = re.search(r"QUICK START.*?\n(.*?)\n\s*WHAT IT DOES NOT DO", self.header, re.S).group(1)
        block = "\n".join(line for line in block.splitlines() if line.startswith("     "))
        self.assertTrue(holds(lines(block), self.quick_start), "README's first C block is not in the doc block of npuprof.h")

    def test_before_line_20(self):
        self.assertLess(pages.read(README).split("```c\n")[0].count("\n") + 1, 20)

    def test_runs(self):
        """As the README says: nothing but the compiler's defaults."""
        done = run([*helpers.CC, f"-I{ROOT}", HELLO, "-o", scratch() / "hello", "-pthread"])
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        done = run([scratch() / "hello"], env=helpers.environment())
        self.assertEqual(done.returncode, 0, done.stderr)
        written = scratch() / "hello.json"
        self.assertTrue(helpers.events(helpers.load(written), "X"))


class Examples(unittest.TestCase):
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
                    done = run([program], env=helpers.environment(), timeout=5)
                    self.assertEqual(done.returncode, 0, done.stderr)
        for trace in scratch().glob("*.json"):
            with self.subTest(trace=trace.name):
                helpers.load(trace)

    def test_every_example_is_listed(self):
        text = pages.read(REFERENCE)
        for source in (ROOT / "examples").glob("*.c"):
            self.assertIn(f"]({source.name})", text)

    def test_the_npu_keeps_its_bound(self):
        """07: ten kernels, ten arrows, none of them before its submission; five runs, as newcomers copy it."""
        (source,) = (ROOT / "examples").glob("07_*.c")
        program = helpers.build(source, source.stem)
        for _ in range(5):
            for trace in scratch().glob("npu*.json"):
                trace.unlink()
            self.assertEqual(run([program], env=helpers.environment(), timeout=5).returncode, 0)
            (path,) = scratch().glob("npu*.json")
            trace = helpers.load(path)
            sync = trace["metadata"]["npuprof"]["devices"][0]["clock_sync"]
            self.assertEqual(len(helpers.events(trace, "s", "submit")), 10)
            self.assertEqual((sync["causality_violations"], sync["arrows_left_out"]), (0, 0))


class Claims(unittest.TestCase):
    """What the texts name must exist."""

    def test_links(self):
        for page in pages.pages():
            for path, anchor in pages.links(page):
                with self.subTest(page=str(page.relative_to(ROOT)), link=f"{path}#{anchor}"):
                    self.assertTrue(path.exists())
                    if anchor:
                        self.assertIn(anchor, pages.anchors(path))

    def test_reachable(self):
        """Every text can be reached from README.md by links."""
        reached, todo = set(), [README]
        while todo:
            page = todo.pop()
            reached.add(page)
            todo += [path for path, _ in pages.links(page) if path.suffix == ".md" and path.exists() and path not in reached]
        self.assertEqual([str(p.relative_to(ROOT)) for p in pages.pages() if p not in reached], [])

    def test_names(self):
        """Every PROF_*, NPUPROF_*, WITH_* and npuprof_* of the texts is in a header, a tool or the environment."""
        known = "".join(pages.read(p) for p in [*helpers.HEADERS, *(ROOT / "tools").rglob("*.py")])
        for page in GUIDES:
            for name in sorted(set(re.findall(r"\b(?:PROF_[A-Z_]+|NPUPROF_[A-Z_]+|WITH_[A-Z_]+|npuprof_[a-z_]+)\b", pages.read(page)))):
                if not (ROOT / name).exists():
                    self.assertIn(name.rstrip("_"), known, f"{page.relative_to(ROOT)} names {name}")

    def test_commands(self):
        """Targets of make, and the tests given to tests/run.py."""
        targets = set(re.findall(r"^([a-z][\w-]*):", pages.read(ROOT / "Makefile"), re.M))
        self.assertLessEqual({"all", "clean", "help", "san", "gen"}, targets)
        tests = run([sys.executable, ROOT / "tests/run.py", "--list"]).stdout
        for page in GUIDES:
            text = pages.read(page)
            for name in re.findall(r"(?:`|^    |^)make ([a-z-]+)", text, re.M):
                self.assertIn(name, targets, page)
            for name in re.findall(r"tests/run\.py ([a-z_]+)", text):
                self.assertIn(name, tests, page)


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


class Fragments(unittest.TestCase):
    """Every block of C and Python in the texts, and the quick starts of the headers' doc blocks: run as they stand."""

    def run_fragment(self, fragment, name, replace=(), flags=()):
        storage = "".join(line + "\n" for line in fragment.splitlines() if line.startswith("static "))
        body = "".join(line + "\n" for line in fragment.splitlines() if not line.startswith(("static ", "#include", "#define")))
        for old, new in replace:
            self.assertIn(old, body)
            body = body.replace(old, new)
        if "npuprof_npu npu;" not in storage:
            storage += "static npuprof_npu npu;\n"
        include = '#include "mynpu_regs.h"' if "mynpu_npu_desc()" in body and "desc = mynpu" in body else ""
        source = scratch() / f"{name}.c"
        source.write_text(STUBS % (include + "\n" + storage, body), encoding="utf-8")
        # C is compiled as the README's reader would: no warnings wanted, either.
        done = run([*helpers.CC, "-std=gnu11", "-Wall", "-Wextra", "-Werror", *flags, f"-I{ROOT}", f"-I{scratch()}", source, "-o",
                    scratch() / name, "-pthread"])
        self.assertEqual((done.returncode, done.stderr), (0, ""), source)
        done = run([scratch() / name], env=helpers.environment())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout, helpers.load(scratch() / "fragment.json")

    def test_all_are_known(self):
        """One block for each test here."""
        blocks = [re.findall(r"^```(\w+)$", pages.read(page), re.M) for page in GUIDES]
        self.assertEqual(blocks, [["c", "c"], ["cmake", "c"], [], ["sh", "python", "python"]],
                         "cmake: tests/compile/test_install.py; sh: test_newcomer.py")

    def test_sampled(self):
        """Once as printed, on a machine without that device: its sentence is printed and the host's span recorded; once on a file of registers."""
        for fragment, name in ((pages.fenced(README, "c")[1], "sampled"), (self.header_fragment(), "header")):
            said, trace = self.run_fragment(fragment, name)
            self.assertRegex(said, "^(no such file or device; check the path|permission denied.*)\n$")
            self.assertEqual([e["name"] for e in events_of(trace)], ["conv1"])
            registers = bytearray(4096)
            registers[0x10], registers[0x14] = 5, 6
            (scratch() / "registers").write_bytes(registers)
            said, trace = self.run_fragment(fragment, name + "-file", [("/sys/bus/pci/devices/0000:01:00.0/resource0", str(scratch() / "registers"))])
            self.assertEqual(said, "")
            self.assertEqual([d["name"] for d in trace["metadata"]["npuprof"]["devices"]], ["npu0"])

    def header_fragment(self):
        block = re.search(r"QUICK START\n(.*?)\n   TWO WAYS", (ROOT / "npuprof_npu.h").read_text(encoding="utf-8"), re.S)[1]
        return textwrap.dedent(block)

    def test_ring(self):
        """With the header that `gen` writes from the TOML file that the text names."""
        toml = (ROOT / "examples/digits/npusim.toml").read_text(encoding="utf-8").replace("npusim", "mynpu")
        (scratch() / "mynpu.toml").write_text(toml, encoding="utf-8")
        command = next(line for line in re.findall(r"`(python3 tools/npuprof.py gen [^`]*)`", pages.read(REFERENCE)))
        tool, *arguments = command.split()[1:]
        done = run([sys.executable, ROOT / tool, *arguments])
        self.assertEqual(done.returncode, 0, done.stderr)
        said, trace = self.run_fragment(pages.fenced(REFERENCE, "c")[0], "ring")
        self.assertEqual([e["name"] for e in events_of(trace)], ["conv1"])
        self.assertEqual([d["name"] for d in trace["metadata"]["npuprof"]["devices"]], ["mynpu"])


    def test_python(self):
        """In one directory, in their order, with a trace of the first one's name."""
        helpers.tool("libnpuprof.so")
        program = helpers.build(HELLO, "python-hello")
        self.assertEqual(run([program], env=helpers.environment()).returncode, 0)
        (scratch() / "hello.json").rename(scratch() / "digits.json")
        env = helpers.environment(PYTHONPATH=str(ROOT / "tools"))
        for fragment, said in zip(pages.fenced(TOOLS, "python"), ("6 spans", "Inference counts                : 3"), strict=True):
            done = run([sys.executable, "-c", fragment], env=env)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(said, done.stdout)
        trace = helpers.load(scratch() / "t.json")
        self.assertEqual([len(helpers.events(trace, "X", name)) for name in ("decode", "step", "Quantize")], [4, 3, 3])


def events_of(trace):
    return helpers.events(trace, "X")


class Tables(unittest.TestCase):
    """Every table against the code, both ways: nothing invented, nothing left out."""

    @classmethod
    def setUpClass(cls):
        cls.header, cls.npu = (p.read_text(encoding="utf-8") for p in helpers.HEADERS)
        cls.code = code.code_only(cls.header) + code.code_only(cls.npu)

    def test_macros(self):
        defined = {name for name in re.findall(r"#\s*define\s+((?:PROF|WITH)_\w+)", self.code) if not name.endswith("_")}
        self.assertGreater(len(defined), 25)
        self.assertEqual(names_in(REFERENCE, "Macros", r"\b((?:PROF|WITH)_[A-Z_]+)"), defined)

    def test_functions(self):
        """All of >>api but the reports, which have a table of their own."""
        declared = {name.replace("npuprof_init_", "npuprof_init") for name in re.findall(r"(?:NPUPROF_FN_\(|NPUPROF_NPU_HOSTED_FN_\([^,]*, )[^,]*, (npuprof_\w+),", self.header + self.npu)}
        self.assertGreater(len(declared), 30)
        listed = names_in(REFERENCE, "Functions", r"`(npuprof_\w+)", 2) | names_in(REFERENCE, "Reports", r"`(npuprof_\w+)`")
        self.assertEqual(listed & declared, declared)
        self.assertEqual({name for name in listed if name not in declared}, set())
        self.assertEqual(names_in(REFERENCE, "Reports", r"`(npuprof_\w+)`"), {name for name in declared if name.startswith("npuprof_print_")})

    def test_knobs(self):
        """What the headers ask for with #if, and do not define themselves without an #ifndef."""
        asked = set()
        for text in (self.header, self.npu):
            for line in re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*(?:\\\n.*)*)", code.code_only(text), re.M):
                asked |= set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", line))
        asked -= {"NPUPROF_H", "NPUPROF_NPU_H", "NPUPROF_VERSION", "NPUPROF_NPU_VERSION"}
        listed = names_in(REFERENCE, "Knobs", r"`(NPUPROF_[A-Z_]+)")
        self.assertEqual(asked - listed, set())
        for name in listed - asked:          # goes with one that is asked for
            self.assertRegex(self.code, rf"\b{name}\(", name)
        block = re.search(r"\n   KNOBS(.*?)\n\n", self.header, re.S)[1]
        self.assertLessEqual(set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", block)), asked)

    def test_defaults_of_knobs(self):
        for row in rows(REFERENCE, "Knobs")[0]:
            for name in re.findall(r"`(NPUPROF_\w+_BYTES)`", row[0]):
                said = int(re.fullmatch(r"(\d+) MiB", row[2])[1])
                value = [eval(text) for text in re.findall(rf"#define {name} ([\d(* )]+)\n", self.header)]     # numbers, brackets and * only
                self.assertIn(said << 20, value, name)
        self.assertIn("| 0, 1 |", pages.read(REFERENCE))
        self.assertIn("#define NPUPROF_CONTEXTS 1\n", self.header)

    def test_environment(self):
        read = set(re.findall(r"npuprof_(?:os_)?env_\(\"(\w+)\"\)", self.header))
        self.assertEqual(names_in(REFERENCE, "Environment", r"`([A-Z_]+)`"), read)
        for policy in re.findall(r"\"(keep-oldest|keep-newest|stream)\"", self.header):
            self.assertTrue(any(policy in row[1] for row in rows(REFERENCE, "Environment")[0]), policy)

    def test_causes_of_loss(self):
        causes = set(re.findall(r"X\(NPUPROF_LOST_\w+, \"(\w+)\"", self.header))
        (row,) = [row for row in rows(REFERENCE, "When things go wrong")[0] if row[0].startswith("`lost`")]
        listed = set(re.findall(r"`(\w+)`", row[1])) - {"NPUPROF_ARENA_BYTES"}
        self.assertLessEqual(listed, causes)
        said = pages.read(REFERENCE)
        self.assertEqual({cause for cause in causes if f"`{cause}`" not in said}, set())

    def test_costs(self):
        """The table's columns are what `make bench` prints, by the same names."""
        bench = (ROOT / "tests/bench/spans.c").read_text(encoding="utf-8")
        printed = re.findall(r'(?:interleave|bench_row)\("([^"]+)", ', bench)
        for name in rows(REFERENCE, "Costs")[1][1:]:
            self.assertIn(name.replace("`", ""), printed)
        self.assertIn("times the floor", rows(REFERENCE, "Costs")[0][0][0])

    def test_costs_in_short(self):
        """The README's table has the reference's figures."""
        times = dict(zip(rows(REFERENCE, "Costs")[1], rows(REFERENCE, "Costs")[0][0]))
        table = rows(README, "What it costs")[0]
        ratios = [re.match(r"([\d.]+) times", row[1]) for row in table if row[2] == "`make bench`"]
        self.assertEqual([ratio[1] for ratio in ratios if ratio],
                         [times["span"], times["disabled at run time, over the bare loop"]])
        (instructions,) = [row[1] for row in table if "test_instructions" in row[2]]
        self.assertIn(instructions.split(" instructions")[0] + " instructions", pages.section(REFERENCE, "Costs"))
        (flash,) = [row[1] for row in table if row[2] == "`make size`"]
        self.assertEqual(flash.split()[0], rows(FIRMWARE, "Size and cost")[0][0][1])
        self.assertEqual([row[2] for row in table if not re.fullmatch(r"`(make \w+|python3 tests/run\.py \w+)`", row[2])], [])

    def test_sizes(self):
        """The firmware's figures are what `make size` prints, of that compiler."""
        text = pages.section(FIRMWARE, "Size and cost")
        compiler = run([helpers.need("arm-none-eabi-gcc"), "-dumpversion"]).stdout
        wanted = re.search(r"arm-none-eabi-gcc (\d+) -Os", text)[1]
        if compiler.split(".")[0] != wanted:
            self.skipTest(f"arm-none-eabi-gcc is {compiler.strip()}, the figures are of {wanted}")
        done = run(["make", "-s", "-C", ROOT, "size"], timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        printed = re.findall(r"^   (\S.*?) {2,}(\d+)(?: +(\d+))?$", done.stdout, re.M)
        self.assertEqual([[what, flash] for what, flash, _ in printed], rows(FIRMWARE, "Size and cost")[0])
        self.assertIn(f"{printed[0][2]} bytes of RAM", text)

    def test_firmware_knobs(self):
        """What the text says that firmware.c defines, it does."""
        source = pages.read(ROOT / "examples/firmware/firmware.c")
        table = rows(FIRMWARE, "The example")[0]
        self.assertEqual(len(table), 5)
        for name, value, _ in table:
            self.assertIn(f"#define {name.strip('`')} {value.strip('`')}\n", source)

    def test_tools(self):
        """A section for each command, and their tables of reports."""
        done = run([sys.executable, ROOT / "tools/npuprof.py", "--help"])
        known = set(re.findall(r"^    (\w+) ", done.stdout, re.M))
        self.assertEqual(set(re.findall(r"^## ([a-z]+)$", pages.read(TOOLS), re.M)), known)
        done = run([sys.executable, ROOT / "tools/npuprof.py", "report", "--help"])
        tables = re.search(r"repeated: ([\w,\s]+?)\n  --", done.stdout)[1]
        self.assertEqual(names_in(TOOLS, "report", r"`(\w+)`"), set(re.split(r",\s+", tables)))

    def test_quoted_sentences(self):
        """What the table of troubles quotes as a sentence of the library is one."""
        sentences = re.findall(r"X\(NPUPROF_(?:OK|ERR_\w+), \"((?:\\.|[^\"])*)\"", self.header)
        quoted = [q for row in rows(REFERENCE, "When things go wrong")[0] for q in re.findall(r"`((?:the device|a driver|a register|no space)[^`]*)`", row[0])]
        self.assertGreater(len(quoted), 6)
        for text in quoted:
            self.assertTrue(any(sentence.startswith(text.removesuffix(" ...").removesuffix("...").rstrip("; ")) for sentence in sentences), text)


class Shape(unittest.TestCase):
    """The README can be read aloud; the others nearly so."""

    def test_length(self):
        self.assertLessEqual(len(pages.read(README).splitlines()), 200)

    def test_lines(self):
        for page in GUIDES:
            for kind, number, block in pages.prose(page):
                for line in block if kind != "cell" else ():
                    self.assertLessEqual(len(line), 110, f"{page.relative_to(ROOT)}:{number}")

    def test_sentences(self):
        for page in GUIDES:
            for _, number, block in pages.prose(page):
                for sentence in pages.sentences(" ".join(block)):
                    self.assertLessEqual(len(pages.words(sentence)), 25, f"{page.relative_to(ROOT)}:{number}: {sentence}")

    def test_paragraphs(self):
        for page in GUIDES:
            for kind, number, block in pages.prose(page):
                self.assertLessEqual(len(block), 4, f"{page.relative_to(ROOT)}:{number}: {kind}")

    def test_the_check_sees_them(self):
        """Each law of a text broken once."""
        page = scratch() / "long.md"
        page.write_text("# Title\n\none\ntwo\nthree\nfour\nfive\n\n- " + "word " * 26 + "\n\n| a | " + "cell " * 26 + "|\n|---|---|\n"
                        "\n```c\nnot counted\n```\n1. A sentence `of code. with` few words. Another one.\n")
        found = list(pages.prose(page))
        self.assertEqual([(kind, number) for kind, number, _ in found],
                         [("heading", 1), ("paragraph", 3), ("item", 9), ("cell", 11), ("cell", 11), ("item", 17)])
        self.assertEqual(len(found[1][2]), 5)
        counts = [[len(pages.words(s)) for s in pages.sentences(" ".join(block))] for _, _, block in found]
        self.assertEqual(counts, [[1], [5], [26], [1], [26], [5, 2]])

    def test_order(self):
        order = ["Quick start", "See it work", "What you get", "What it costs", "An NPU in ten lines", "In your build", "Where to read on",
                 "Contributing"]
        found = re.findall(r"^## (.*)", pages.read(README), re.M)
        self.assertEqual([title for title in found if title in order], order)

    def test_ten_steps(self):
        text = pages.section(REFERENCE, "Integrate with your driver")
        self.assertEqual(re.findall(r"^(\d+)\. ", text, re.M), [str(n) for n in range(1, 11)])

    def test_pictures(self):
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", pages.read(README))
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            data = (ROOT / picture).read_bytes()
            self.assertEqual(data[:4], b"\x89PNG")
            self.assertLess(len(data), 120_000)

    def test_changelog(self):
        """Versions, newest first, and under each of them only the three headings, in their order."""
        text = pages.read(ROOT / "CHANGELOG.md")
        kinds = ["Added", "Changed", "Fixed"]
        for version in re.split(r"^## ", text, flags=re.M)[1:]:
            headings = re.findall(r"^### (.*)", version, re.M)
            self.assertEqual(headings, [kind for kind in kinds if kind in headings], version.splitlines()[0])
            self.assertTrue(headings)


if __name__ == "__main__":
    unittest.main()
