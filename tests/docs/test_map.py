# tests/README.md: its map has every folder, its commands exist, its example is a test that passes;
# src/README.md: where a new thing goes
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
        done = run([helpers.build(source, "example", "-DNPUPROF_IMPLEMENTATION")])
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


def names(path, pattern):
    return re.findall(pattern, (ROOT / path).read_text(encoding="utf-8"))


def listed(path, macro):
    """The first column of a list X(...) in a macro."""
    body = re.search(rf"#define {macro}\(X\)(.*?[^\\])\n", (ROOT / path).read_text(encoding="utf-8"), re.S)[1]
    return re.findall(r"X\((\w+)", body)


def tables_of_analyses():
    tuples = [found for path in sorted((ROOT / "tools/npuprof/analysis").glob("*.py"))
              for found in names(path.relative_to(ROOT), r"(?ms)^TABLES = (\(.*?\))")]
    return re.findall(r'"(\w+)"', "".join(tuples))


class Forms(unittest.TestCase):
    """What says which files the library writes."""

    def test_each_extension_is_said(self):
        extensions = names("src/control/path.h", r'X\(\w+, \w+, "(\.\w+)"\)')
        self.assertGreaterEqual(len(extensions), 3)
        for path in ("src/public/types.h", "src/public/api.h", "src/control/environment.h",
                     "tools/npuprof_convert.c"):
            said = names(path, r"\.json, [^;\n]*")
            self.assertTrue(said, path)
            for sentence in said:
                with self.subTest(path, sentence=sentence):
                    self.assertLessEqual(set(extensions), set(re.findall(r"\.\w+", sentence)))


    def test_each_extension_is_a_form_of_convert(self):
        extensions = names("src/control/path.h", r'X\(\w+, \w+, "(\.\w+)"\)')
        forms = names("tools/npuprof/convert/forms.py", r'Form\("(\.\w+)"')
        self.assertLessEqual(set(extensions), set(forms))


class Tables(unittest.TestCase):
    """What says which tables a report has: its help, which is the head of its file, and the tools' README."""

    def test_each_table_is_said(self):
        for path in ("tools/npuprof/report/command.py", "tools/README.md"):
            with self.subTest(path):
                self.assertEqual(set(tables_of_analyses()) - set(names(path, r"\w+")), set())


class WhereANewThingGoes(unittest.TestCase):
    """A file that names most members of a family is one where a new member goes: its row says so."""
    FAMILIES = {
        "kind of event": lambda: names("src/public/macros.h",
                                       r"#define (PROF_(?:SCOPE|RECORD|INFERENCE|OPERATOR|INSTANT|COUNTER|"
                                       r"MEMORY|FLOW_OUT|FLOW_IN|ALLOC))\("),
        "fact of an event": lambda: listed("src/read/scene.h", "NPUPROF_FACTS_"),
        "printed table": lambda: names("src/public/api.h", r"\bnpuprof_(print_\w+)"),
        "ready rule": lambda: names("src/npu/ring_types.h", r"\bNPUPROF_NPU_(READY_[A-Z]+)\b"),
        "knob": lambda: names("src/public/config.h", r"(?:/\*|  ) (NPUPROF_[A-Z_]+):"),
        "environment variable": lambda: names("src/control/environment.h", r'"(NPUPROF_\w+)", npuprof_env'),
        "result code": lambda: listed("src/public/types.h", "NPUPROF_RESULTS"),
        "cause of loss": lambda: listed("src/public/types.h", "NPUPROF_LOSSES"),
        "table of a verdict": tables_of_analyses,
    }
    EVERYWHERE = {"tests/golden/interface.txt",                # made by a command: "How to make a change"
                  "examples/README.md",                        # the guide: how to use what there is
                  "examples/digits/digits.c"}                  # shows everything; not needed

    def test_each_member_has_a_test(self):
        """What `convert` writes, and a ready rule, where their rows ask for it."""
        tests = "".join(p.read_text(errors="replace") for p in (TESTS / "tools").rglob("*.py"))
        for ending in names("tools/npuprof/convert/forms.py", r'Form\("(\.[\w.]+)"'):
            self.assertIn(ending, tests)
        model, page = (ROOT / name for name in ("tests/npu/interleaved.c", "examples/devices/README.md"))
        said = pages.read(page).partition("**3. How entries come.**")[2].partition("**4.")[0]
        for rule in self.FAMILIES["ready rule"]():
            # COUNT is how many there are, PRODUCER what a ring has that names none.
            if rule not in ("READY_COUNT", "READY_PRODUCER"):
                self.assertIn("NPUPROF_NPU_" + rule, model.read_text(encoding="utf-8"))
            if rule != "READY_COUNT":
                self.assertRegex(said, rf"`{rule.removeprefix('READY_').lower()}\b")

    def test_each_family(self):
        table = pages.rows(ROOT / "src/README.md", "Where a new thing goes")[0]
        rows = {row[0]: " ".join(row[1:]) for row in table}
        files = [p for part in ("src", "tools", "tests", "examples") for p in sorted((ROOT / part).rglob("*"))
                 if p.suffix in (".h", ".c", ".py", ".md", ".txt") and "corpus" not in p.parts]
        words = {str(p.relative_to(ROOT)): set(re.findall(r"\w+", p.read_text(errors="replace")))
                 for p in files}
        for what, members in self.FAMILIES.items():
            family = set(members())
            self.assertGreaterEqual(len(family), 4, what)
            row = rows[what]
            for path, there in words.items():
                known = sum(bool({name, "npuprof_" + name, "NPUPROF_NPU_" + name} & there) for name in family)
                if known >= 0.75 * len(family) and path not in self.EVERYWHERE:
                    short = path.removeprefix("src/")
                    said = any(name in row for name in (path, short, path.rpartition("/")[0] + "/` `"
                                                        + path.rpartition("/")[2]))
                    with self.subTest(what, file=path):
                        self.assertTrue(said, f"{what!r}: {path} names {known} of {len(family)}")
