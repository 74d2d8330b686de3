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

    def test_files_in_comments(self):
        """A file that a comment of the source names is there."""
        there = {str(p.relative_to(ROOT)) for p in ROOT.glob("*") if p.is_file()} | {
            str(p.relative_to(ROOT)) for part in ("src", "tools", "tests", "examples")
            for p in (ROOT / part).rglob("*") if p.is_file()}
        file = re.compile(r'(?<![\w/.<"-])((?:\w+/)*\w+\.(?:h|c|py))\b(?!\()')
        lost = []
        for name in sorted(n for n in there if n.startswith(("src/", "tools/")) and n.endswith((".h", ".c"))):
            for comment in re.findall(r"/\*.*?\*/", (ROOT / name).read_text(errors="replace"), re.S):
                lost += [(name, f) for f in file.findall(comment)
                         if not any(other == f or other.endswith("/" + f) for other in there)]
        self.assertEqual(lost, [])


if __name__ == "__main__":
    unittest.main()
