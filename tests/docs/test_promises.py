# each promise of the texts has its tests: the table in tests/README.md quotes it, and names cases that exist
# SPDX-License-Identifier: MIT
import re
import unittest

from docs import pages
from docs.pages import GUIDE, README, REFERENCE
from helpers import ROOT, TESTS

SECURITY = ROOT / "SECURITY.md"
PAGE, TITLE = TESTS / "README.md", "Promises and their tests"
# Where each paragraph or item that begins with bold words is a promise.
BOLD = [(README, "What you get"), (GUIDE, "Nothing recorded is lost"), (GUIDE, "Capture control")]


def flat(text):
    return " ".join(text.replace("**", "").split())


def cases_of(path):
    """The names of a test file's cases, with the classes of Python."""
    text = path.read_text(encoding="utf-8")
    return set(re.findall(r"CASE(?:_THOROUGH)?\((\w+)|^ *(?:class|def) (\w+)" if path.suffix == ".py"
                          else r"CASE(?:_THOROUGH)?\((\w+)()", text, re.M))


def named(cell):
    """The tests of a cell: (file, [cases])."""
    found = []
    for word in re.findall(r"`([^`]+)`", cell):
        if word.endswith((".c", ".py")):
            found.append((TESTS / word, []))
        else:
            found[-1][1].append(word)
    return found


class Promises(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.rows = pages.rows(PAGE, TITLE)[0]
        cls.texts = {page: flat(pages.read(page)) for page in (README, GUIDE, REFERENCE, SECURITY)}

    def test_quoted(self):
        """Each promise stands in a text as it is quoted; one that changes changes here, too."""
        for promise, _ in self.rows:
            self.assertTrue(any(flat(promise) in text for text in self.texts.values()), promise)

    def test_tests_exist(self):
        for promise, cell in self.rows:
            tests = named(cell)
            self.assertTrue(tests, promise)
            for path, cases in tests:
                self.assertTrue(path.is_file(), f"{promise}: {path}")
                known = {name for pair in cases_of(path) for name in pair}
                self.assertLessEqual(set(cases), known, promise)

    def test_bold_promises_have_a_row(self):
        promises = [flat(promise) for promise, _ in self.rows]
        for page, title in BOLD:
            for bold, rest in re.findall(r"^(?:- )?\*\*(.+?)\*\*(.*?)(?=^(?:- )?\*\*|\Z)",
                                         pages.section(page, title), re.M | re.S):
                text = flat(bold + rest)
                self.assertTrue(any(promise in text for promise in promises), f"no row quotes: {text}")

    def test_security(self):
        """The tests that the page names for each line."""
        for row in pages.rows(SECURITY, "What npuprof does about it")[0]:
            folder = ""
            for name in re.findall(r"`([^`]+)`", row[3]):
                folder = name.rpartition("/")[0] or folder
                self.assertTrue((TESTS / folder / name.rpartition("/")[2]).exists(), name)
