# the texts can be read aloud: lengths of the README, its paragraphs and sentences; the order of things
# SPDX-License-Identifier: MIT
import os
import re
import unittest

from docs import pages
from docs.pages import FIRMWARE, GUIDE, README, REFERENCE, TOOLS
from helpers import ROOT, run, scratch

GUIDES = [README, GUIDE, REFERENCE, FIRMWARE, TOOLS]
MAPS = [pages.CONTRIBUTING, ROOT / "tests" / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
LINES, WORDS, PARAGRAPH, COLUMNS = 200, 25, 4, 110

BROKEN = f"""# Title

one
two
three
four
five

- {"word " * 26}

| a | {"cell " * 26} |
|---|---|

```c
not counted
```
1. A sentence `of code. with` few words. Another one.
"""


class Lengths(unittest.TestCase):
    def test_readme(self):
        self.assertLessEqual(len(pages.read(README).splitlines()), LINES)

    def test_columns(self):
        for page in GUIDES + MAPS:
            for kind, number, block in pages.prose(page):
                for line in block if kind != "cell" else ():
                    self.assertLessEqual(len(line), COLUMNS, f"{page.relative_to(ROOT)}:{number}")

    def test_sentences(self):
        for page in GUIDES + MAPS:
            for _, number, block in pages.prose(page):
                for sentence in pages.sentences(" ".join(block)):
                    place = f"{page.relative_to(ROOT)}:{number}: {sentence}"
                    self.assertLessEqual(len(pages.words(sentence)), WORDS, place)

    def test_paragraphs(self):
        for page in GUIDES:
            for kind, number, block in pages.prose(page):
                self.assertLessEqual(len(block), PARAGRAPH, f"{page.relative_to(ROOT)}:{number}: {kind}")

    def test_the_check_sees_them(self):
        """Each law of a text broken once."""
        page = scratch() / "long.md"
        page.write_text(BROKEN)
        found = list(pages.prose(page))
        self.assertEqual([(kind, number) for kind, number, _ in found],
                         [("heading", 1), ("paragraph", 3), ("item", 9), ("cell", 11), ("cell", 11),
                          ("item", 17)])
        self.assertEqual(len(found[1][2]), PARAGRAPH + 1)
        counts = [[len(pages.words(s)) for s in pages.sentences(" ".join(block))] for _, _, block in found]
        self.assertEqual(counts, [[1], [5], [WORDS + 1], [1], [WORDS + 1], [5, 2]])


class Order(unittest.TestCase):
    def test_readme(self):
        self.assertEqual(re.findall(r"^## (.*)", pages.read(README), re.M), [
            "Quick start", "See it work", "What you get", "What it costs", "An NPU in ten lines",
            "Get it", "Beside others", "Where to read on", "Contributing"])

    def test_ten_steps(self):
        text = pages.section(GUIDE, "Integrate with your driver")
        self.assertEqual(re.findall(r"^(\d+)\. ", text, re.M), [str(n) for n in range(1, 11)])

    def test_pictures(self):
        pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", pages.read(README))
        self.assertEqual(len(pictures), 2)
        for picture in pictures:
            data = (ROOT / picture).read_bytes()
            self.assertEqual(data[:4], b"\x89PNG")
            self.assertLess(len(data), 120_000)

    def test_changelog(self):
        """Versions, newest first, and under each of them only these headings, in their order."""
        kinds = ["Added", "Changed", "Deprecated", "Removed", "Fixed"]
        for version in re.split(r"^## ", pages.read(ROOT / "CHANGELOG.md"), flags=re.M)[1:]:
            headings = re.findall(r"^### (.*)", version, re.M)
            self.assertEqual(headings, [kind for kind in kinds if kind in headings], version.splitlines()[0])
            self.assertTrue(headings)

    def test_top_level(self):
        """What lies at the top is what a user looks for, and nothing that a test or tool has left there."""
        listed = run(["git", "-C", ROOT, "ls-files"])
        names = listed.stdout.splitlines() if listed.returncode == 0 else os.listdir(ROOT)
        self.assertEqual({name.split("/")[0] for name in names if not name.startswith(".")} - {"build"},
                         {"CHANGELOG.md", "CMakeLists.txt", "CONTRIBUTING.md", "LICENSE", "Makefile",
                          "README.md", "SECURITY.md", "examples", "meson.build", "npuprof.h", "npuprof_npu.h",
                          "pyproject.toml", "src", "tests", "tools", "zephyr"})
