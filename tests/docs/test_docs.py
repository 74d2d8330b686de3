# the quick start in README.md, npuprof.h and examples/01_hello.c is one text, and it runs
# SPDX-License-Identifier: MIT
import re
import sys
import textwrap
import unittest

import helpers
from helpers import ROOT, run, scratch

sys.path.insert(0, str(ROOT / "tools"))
import house  # noqa: E402

HELLO = ROOT / "examples" / "01_hello.c"
README = ROOT / "README.md"
HEADER = ROOT / "npuprof.h"


def lines(text):
    """Without common indentation, trailing blanks and empty lines."""
    return [line.rstrip() for line in textwrap.dedent(text).splitlines() if line.strip()]


def holds(whole, part):
    """Do the lines of part stand in whole, one after the other?"""
    return any(whole[i:i + len(part)] == part for i in range(len(whole) - len(part) + 1))


class QuickStart(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        header = HEADER.read_text(encoding="utf-8")
        if "@QUICKSTART@" in header or not README.exists() or not HELLO.exists():
            raise unittest.SkipTest("the quick start is not written yet")
        cls.header = header
        cls.readme = README.read_text(encoding="utf-8")
        blocks = re.findall(r"^```c\n(.*?)^```", cls.readme, re.M | re.S)
        cls.quick_start = lines(blocks[0])

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
        self.assertLess(self.readme.split("```c\n")[0].count("\n") + 1, 20)

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
        """examples/*.c, alone, without a warning, on and off."""
        sources = sorted((ROOT / "examples").glob("*.c"))
        if not sources:
            self.skipTest("there are no examples yet")
        for source in sources:
            for flags in ([], ["-DNPUPROF_OFF"]):
                with self.subTest(source=source.name, flags=flags):
                    program = helpers.build(source, source.stem, *flags)
                    done = run([program], env=helpers.environment(), timeout=5)
                    self.assertEqual(done.returncode, 0, done.stderr)
        for trace in scratch().glob("*.json"):
            with self.subTest(trace=trace.name):
                helpers.load(trace)


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

    def text(self):
        if not README.exists():
            self.skipTest("README.md is not written yet")
        return README.read_text(encoding="utf-8")

    def test_links(self):
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", self.text()):
            if not re.match(r"[a-z]+:", target):
                self.assertTrue((ROOT / target).exists(), target)

    def test_names(self):
        """Every PROF_*, NPUPROF_*, WITH_* and npuprof_* of the README is in a header, a tool or the environment."""
        known = "".join(p.read_text(encoding="utf-8") for p in helpers.HEADERS if p.exists())
        known += "".join(p.read_text(encoding="utf-8") for p in (ROOT / "tools").glob("*.py"))
        for name in sorted(set(re.findall(r"\b(?:PROF_[A-Z_]+|NPUPROF_[A-Z_]+|WITH_[A-Z_]+|npuprof_[a-z_]+)\b", self.text()))):
            if not (ROOT / name).exists():
                self.assertIn(name.rstrip("_"), known, f"README names {name}")

    def test_make_targets(self):
        makefile = ROOT / "Makefile"
        if not makefile.exists():
            self.skipTest("there is no Makefile yet")
        targets = set(re.findall(r"^([a-z][\w-]*):", makefile.read_text(encoding="utf-8"), re.M))
        for name in set(re.findall(r"`?\bmake ([a-z]+)`", self.text())) | {"all", "demo", "test", "check", "san", "bench", "gen", "install",
                                                                         "uninstall", "clean", "help"}:
            self.assertIn(name, targets)


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
    """Every block of C in the README, and the quick starts of the headers' doc blocks: compiled and run as they stand."""

    def blocks(self, language="c"):
        return re.findall(rf"^```{language}\n(.*?)^```", README.read_text(encoding="utf-8"), re.M | re.S)

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
        self.assertEqual(len(self.blocks()), 3)
        languages = set(re.findall(r"^```(\w+)$", README.read_text(encoding="utf-8"), re.M))
        self.assertLessEqual(languages, {"c", "cmake", "meson", "sh"}, "tests/compile/test_install.py runs the others")

    def test_sampled(self):
        """Once as printed, on a machine without that device: its sentence is printed and the host's span recorded; once on a file of registers."""
        for fragment, name in ((self.blocks()[1], "sampled"), (self.header_fragment(), "header")):
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
        """With the header that `gen` writes from the README's TOML file."""
        toml = (ROOT / "examples/digits/npusim.toml").read_text(encoding="utf-8").replace("npusim", "mynpu")
        (scratch() / "mynpu.toml").write_text(toml, encoding="utf-8")
        command = next(line for line in re.findall(r"`(python3 tools/npuprof.py gen [^`]*)`", README.read_text(encoding="utf-8")))
        tool, *arguments = command.split()[1:]
        done = run([sys.executable, ROOT / tool, *arguments])
        self.assertEqual(done.returncode, 0, done.stderr)
        said, trace = self.run_fragment(self.blocks()[2], "ring")
        self.assertEqual([e["name"] for e in events_of(trace)], ["conv1"])
        self.assertEqual([d["name"] for d in trace["metadata"]["npuprof"]["devices"]], ["mynpu"])


def events_of(trace):
    return helpers.events(trace, "X")


def rows(title):
    """The table of a section of the README: a list of its rows' cells."""
    text = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", README.read_text(encoding="utf-8"), re.M | re.S)[1]
    lines_of = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in lines_of[2:]], \
        [cell.strip() for cell in lines_of[0].strip("|").split("|")]


def names_in(title, pattern, columns=1):
    return {name for row in rows(title)[0] for cell in row[:columns] for name in re.findall(pattern, cell)}


class Tables(unittest.TestCase):
    """Every table against the code, both ways: nothing invented, nothing left out."""

    @classmethod
    def setUpClass(cls):
        cls.header, cls.npu = (p.read_text(encoding="utf-8") for p in helpers.HEADERS)
        cls.code = house.code_only(cls.header) + house.code_only(cls.npu)

    def test_macros(self):
        defined = {name for name in re.findall(r"#\s*define\s+((?:PROF|WITH)_\w+)", self.code) if not name.endswith("_")}
        self.assertGreater(len(defined), 25)
        self.assertEqual(names_in("Macros", r"\b((?:PROF|WITH)_[A-Z_]+)"), defined)

    def test_functions(self):
        """All of >>api but the reports, which have a table of their own."""
        declared = {name.replace("npuprof_init_", "npuprof_init") for name in re.findall(r"(?:NPUPROF_FN_\(|NPUPROF_NPU_HOSTED_FN_\([^,]*, )[^,]*, (npuprof_\w+),", self.header + self.npu)}
        self.assertGreater(len(declared), 30)
        listed = names_in("Functions", r"`(npuprof_\w+)", 2) | names_in("Reports", r"`(npuprof_\w+)`")
        self.assertEqual(listed & declared, declared)
        self.assertEqual({name for name in listed if name not in declared}, set())
        self.assertEqual(names_in("Reports", r"`(npuprof_\w+)`"), {name for name in declared if name.startswith("npuprof_print_")})

    def test_knobs(self):
        """What the headers ask for with #if, and do not define themselves without an #ifndef."""
        asked = set()
        for text in (self.header, self.npu):
            for line in re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*(?:\\\n.*)*)", house.code_only(text), re.M):
                asked |= set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", line))
        asked -= {"NPUPROF_H", "NPUPROF_NPU_H", "NPUPROF_VERSION", "NPUPROF_NPU_VERSION"}
        listed = names_in("Knobs", r"`(NPUPROF_[A-Z_]+)")
        self.assertEqual(asked - listed, set())
        for name in listed - asked:          # goes with one that is asked for
            self.assertRegex(self.code, rf"\b{name}\(", name)
        block = re.search(r"\n   KNOBS(.*?)\n\n", self.header, re.S)[1]
        self.assertLessEqual(set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", block)), asked)

    def test_defaults_of_knobs(self):
        for row in rows("Knobs")[0]:
            for name in re.findall(r"`(NPUPROF_\w+_BYTES)`", row[0]):
                said = int(re.fullmatch(r"(\d+) MiB", row[2])[1])
                value = [eval(text) for text in re.findall(rf"#define {name} ([\d(* )]+)\n", self.header)]     # numbers, brackets and * only
                self.assertIn(said << 20, value, name)
        self.assertIn("| 0, 1 |", README.read_text(encoding="utf-8"))
        self.assertIn("#define NPUPROF_CONTEXTS 1\n", self.header)

    def test_environment(self):
        read = set(re.findall(r"npuprof_(?:os_)?env_\(\"(\w+)\"\)", self.header))
        self.assertEqual(names_in("Environment", r"`([A-Z_]+)`"), read)
        for policy in re.findall(r"\"(keep-oldest|keep-newest|stream)\"", self.header):
            self.assertTrue(any(policy in row[1] for row in rows("Environment")[0]), policy)

    def test_causes_of_loss(self):
        causes = set(re.findall(r"X\(NPUPROF_LOST_\w+, \"(\w+)\"", self.header))
        (row,) = [row for row in rows("When things go wrong")[0] if row[0].startswith("`lost`")]
        listed = set(re.findall(r"`(\w+)`", row[1])) - {"NPUPROF_ARENA_BYTES"}
        self.assertLessEqual(listed, causes)
        said = README.read_text(encoding="utf-8")
        self.assertEqual({cause for cause in causes if f"`{cause}`" not in said}, {"overwritten", "notes"} - {c for c in causes if f"`{c}`" in said})

    def test_costs(self):
        """The table's columns are what `make bench` prints, by the same names."""
        bench = (ROOT / "tests/bench/spans.c").read_text(encoding="utf-8")
        printed = re.findall(r'(?:interleave|bench_row)\("([^"]+)", ', bench)
        for name in rows("Costs")[1][1:]:
            self.assertIn(name.replace("`", ""), printed)
        self.assertIn("times the floor", rows("Costs")[0][0][0])

    def test_sizes(self):
        """The firmware's figures are what `make size` prints, of that compiler."""
        text = re.search(r"\*\*Size\*\*.*", README.read_text(encoding="utf-8"))[0]
        compiler = run([helpers.need("arm-none-eabi-gcc"), "-dumpversion"]).stdout
        wanted = re.search(r"arm-none-eabi-gcc (\d+) -Os", text)[1]
        if compiler.split(".")[0] != wanted:
            self.skipTest(f"arm-none-eabi-gcc is {compiler.strip()}, the figures are of {wanted}")
        done = run(["make", "-s", "-C", ROOT, "size"], timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        printed = re.findall(r"^   (\S.*?) {2,}(\d+)(?: +(\d+))?$", done.stdout, re.M)
        self.assertGreaterEqual(len(printed), 4, done.stdout)
        for what, flash, ram in printed:
            self.assertIn(f"{what} {flash}", text)
            if ram:
                self.assertIn(f"{ram} of RAM", text)

    def test_firmware_knobs(self):
        """What the text says that firmware.c defines, it does."""
        text = re.search(r"^## Firmware\n\n(.*)", README.read_text(encoding="utf-8"), re.M)[1]
        source = (ROOT / "examples/firmware/firmware.c").read_text(encoding="utf-8")
        said = re.findall(r"`(NPUPROF_\w+(?:\(\))?)` as `([^`]+)`", text)
        self.assertEqual(len(said), 5)
        for name, value in said:
            self.assertIn(f"#define {name} {value}\n", source)

    def test_tools(self):
        done = run([sys.executable, ROOT / "tools/npuprof.py", "--help"])
        known = set(re.findall(r"^    (\w+) ", done.stdout, re.M))
        text = re.search(r"^## Tools\n(.*?)^## ", README.read_text(encoding="utf-8"), re.M | re.S)[1]
        self.assertEqual(set(re.findall(r"^- `(\w+) [A-Z]", text, re.M)), known)

    def test_sentences(self):
        """What the README quotes as a sentence of the library is one."""
        sentences = re.findall(r"X\(NPUPROF_(?:OK|ERR_\w+), \"((?:\\.|[^\"])*)\"", self.header)
        quoted = [q for row in rows("When things go wrong")[0] for q in re.findall(r"`((?:the device|a driver|a register|no space)[^`]*)`", row[0])]
        self.assertGreater(len(quoted), 6)
        for text in quoted:
            self.assertTrue(any(sentence.startswith(text.removesuffix(" ...").removesuffix("...").rstrip("; ")) for sentence in sentences), text)


class Shape(unittest.TestCase):
    def test_length(self):
        self.assertLess(len(README.read_text(encoding="utf-8").splitlines()), 300)

    def test_order(self):
        order = ["Quick start", "The two commands of a clone", "In your build", "An NPU in ten lines", "Integrate with your driver",
                 "Nothing recorded is lost", "What the error bound means", "Macros", "Functions", "Environment", "Knobs", "Reports", "Costs",
                 "When things go wrong", "Limits", "Firmware", "Tools", "Beside others", "Contributing"]
        found = re.findall(r"^## (.*)", README.read_text(encoding="utf-8"), re.M)
        self.assertEqual([title for title in found if title in order], order)
        self.assertEqual(found[-1], "Contributing")

    def test_ten_steps(self):
        text = re.search(r"^## Integrate with your driver\n(.*?)^## ", README.read_text(encoding="utf-8"), re.M | re.S)[1]
        self.assertEqual(re.findall(r"^(\d+)\. ", text, re.M), [str(n) for n in range(1, 11)])

    def test_pictures(self):
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README.read_text(encoding="utf-8"))
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            data = (ROOT / picture).read_bytes()
            self.assertEqual(data[:4], b"\x89PNG")
            self.assertLess(len(data), 120_000)

    def test_contributing_names_files(self):
        text = re.search(r"^## Contributing\n(.*)", README.read_text(encoding="utf-8"), re.M | re.S)[1]
        for name in re.findall(r"`([\w./]+\.(?:py|c|h))`", text):
            self.assertTrue((ROOT / name).exists(), name)
        for tag in re.findall(r"`>>(\w+)`", text):
            self.assertTrue(any(f">>{tag} ====" in p.read_text(encoding="utf-8") for p in helpers.HEADERS), tag)


if __name__ == "__main__":
    unittest.main()
