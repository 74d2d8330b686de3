# the quick start in README.md, npuprof.h and examples/01_hello.c is one text, and it runs
# SPDX-License-Identifier: MIT
import re
import textwrap
import unittest

import helpers
from helpers import ROOT, run, scratch

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


if __name__ == "__main__":
    unittest.main()
