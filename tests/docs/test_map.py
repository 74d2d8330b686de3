# tests/README.md: its map has every folder, its commands exist, its example is a test that passes
# SPDX-License-Identifier: MIT
import re
import textwrap
import unittest

import helpers
from docs import pages
from helpers import ROOT, TESTS, run, scratch

PAGE = TESTS / "README.md"


class Map(unittest.TestCase):
    def test_every_folder(self):
        there = {p.name for p in TESTS.iterdir() if p.is_dir() and p.name != "__pycache__"}
        self.assertEqual({row[0].strip("`/") for row in pages.rows(PAGE, "The map")[0]}, there)

    def test_commands(self):
        text = pages.read(PAGE)
        targets = set(re.findall(r"^([a-z][\w-]*):", pages.read(ROOT / "Makefile"), re.M))
        self.assertLessEqual(set(re.findall(r"`make ([a-z-]+)`", text)), targets)
        for name in re.findall(r"tests/run\.py ([a-z]\w*)", text):
            self.assertTrue((TESTS / name).is_dir() or list(TESTS.glob(f"*/*{name}*")), name)

    def test_example(self):
        block = re.search(r"^    /\* instants.*?CHECK_MAIN[^\n]*\n", pages.read(PAGE), re.M | re.S)[0]
        source = scratch() / "example.c"
        source.write_text(textwrap.dedent(block))
        done = run([helpers.build(source, "example")])
        self.assertEqual((done.returncode, done.stdout), (0, "ok one_counter\n"))


if __name__ == "__main__":
    unittest.main()
