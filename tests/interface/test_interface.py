# what is public: the list of all names, and that no change of it goes unsaid
# SPDX-License-Identifier: MIT
"""tests/golden/interface.txt lists the public interface, a line for each name, and since which release:

    release 1.0.0
      c function npuprof_stop(void): npuprof_result     in that release, and now
    + c knob NPUPROF_NEW                                new since then
    - cli report --old                                  gone since then; a name that changed has both lines

After a wanted change: TEST_GOLDEN=write python3 tests/run.py interface. That marks the change, and
CHANGELOG.md must name it under "Unreleased". After a new NPUPROF_VERSION the same command makes what is there
the list of that release. It refuses a version that promises more than is true: a name that went needs a new
major number, a new name a new minor one."""
import json
import os
import re
import shutil
import unittest

import helpers
from helpers import ROOT, run, scratch
from docs import pages
from interface import names_c

LIST = helpers.TESTS / "golden" / "interface.txt"
CHANGELOG = ROOT / "CHANGELOG.md"
# Causes of loss, which the reference has, and what has no name: the metadata itself.
CAUSES = set(re.findall(r'X\(NPUPROF_LOST_\w+, "(\w+)"', (ROOT / "npuprof.h").read_text(encoding="utf-8")))
CAUSES |= {"*", "metadata", "npuprof"}
WRITES = os.environ.get("TEST_GOLDEN") == "write"


def version():
    return re.search(r'NPUPROF_VERSION_STRING "(.*)"', (ROOT / "npuprof.h").read_text(encoding="utf-8"))[1]


def listed(path=LIST):
    """The release, and mark -> lines."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    lines = {mark: {line[2:] for line in rest if line.startswith(mark)} for mark in " +-"}
    return first.removeprefix("release "), lines


def name_of(line):
    """The word of a line that CHANGELOG.md must hold."""
    kind, _, rest = line.partition(" ")
    if kind == "cli":
        return next((word for word in reversed(rest.split()) if word.startswith("-")), rest.split()[-1])
    if kind == "sqlite":
        rest = rest.partition(" ")[0]       # without the column's type
    rest = re.sub(r"(: | = | \[| ?\().*", "", rest)
    return re.split(r"[ .]", rest)[-1].removesuffix("[]")


def section(title):
    """The text of CHANGELOG.md below a heading, "" if there is none."""
    text = CHANGELOG.read_text(encoding="utf-8")
    found = re.search(rf"^## {re.escape(title)}\b.*?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found[1] if found else ""


def write(lines, of, path=LIST):
    """The list anew, in version `of`."""
    release, old = listed(path) if path.exists() else (of, {" ": lines, "+": set(), "-": set()})
    before = old[" "] | old["-"]
    if release != of:
        was, now = ([int(n) for n in text.split(".")] for text in (release, of))
        assert lines >= before or now[0] > was[0], f"names went, so {of} needs a new major number"
        assert lines <= before or now[:2] > was[:2], f"names are new, so {of} needs a new minor number"
        before = lines
    marked = [("+" if line not in before else " ", line) for line in lines]
    marked += [("-", line) for line in before - lines]
    marked.sort(key=lambda item: (item[1], item[0]))
    path.write_text("".join([f"release {of}\n", *(f"{mark} {line}\n" for mark, line in marked)]),
                    encoding="utf-8")


def all_lines():
    from interface import names_outputs, names_tools    # what needs the tools
    return names_c.lines() | names_tools.lines() | names_outputs.lines()


class Listed(unittest.TestCase):
    maxDiff = None

    def same(self, lines, kind=""):
        _, old = listed()
        now = {line for line in old[" "] | old["+"] if line.startswith(kind)}
        said = [f"+ {line}" for line in sorted(lines - now)] + [f"- {line}" for line in sorted(now - lines)]
        self.assertEqual(said, [], "the interface differs from tests/golden/interface.txt. If wanted: "
                         "TEST_GOLDEN=write python3 tests/run.py interface, and name it in CHANGELOG.md "
                         "under Unreleased")

    def test_c(self):
        """While the list is written it may differ, but then test_all must be among the tests."""
        if not WRITES:
            self.same(names_c.lines(), "c ")
        self.assertFalse(WRITES and helpers.QUICK, "--quick writes no list: leave it out")

    @helpers.thorough
    def test_all(self):
        lines = all_lines()
        if WRITES:
            write(lines, version())
        self.same(lines)

    def test_off(self):
        """A file that is OFF has the same names, types and values."""
        for name in names_c.SIDES:
            with self.subTest(side=name):
                self.assertEqual(names_c.side(name, "-DNPUPROF_OFF"), names_c.side(name))

    def test_marks(self):
        """What is marked, and which versions are refused."""
        path, old, new = scratch() / "list.txt", {"c a", "c b"}, {"c b", "c c"}
        write(old, "1.0.0", path)
        write(new, "1.0.0", path)
        self.assertEqual(path.read_text(), "release 1.0.0\n- c a\n  c b\n+ c c\n")
        for of in ("1.0.1", "1.1.0"):
            with self.assertRaisesRegex(AssertionError, "major"):
                write(new, of, path)
        with self.assertRaisesRegex(AssertionError, "minor"):
            write(old | new, "1.0.1", path)
        write(old | new, "1.1.0", path)
        write(new, "2.0.0", path)
        self.assertEqual(path.read_text(), "release 2.0.0\n  c b\n  c c\n")

    def test_order(self):
        """One line each, sorted, so that two branches meet where they differ."""
        lines = [line[2:] for line in LIST.read_text(encoding="utf-8").splitlines()[1:]]
        self.assertEqual(lines, sorted(lines))
        self.assertGreater(len(lines), 1000)

    @helpers.thorough
    def test_clang(self):
        """Another way to the same names: the syntax tree of clang."""
        if not shutil.which("clang"):
            self.skipTest("clang is not installed")
        source = scratch() / "tree.c"
        source.write_text(names_c.BOTH)
        done = run(["clang", "-std=gnu11", "-fsyntax-only", "-Xclang", "-ast-dump=json", f"-I{ROOT}", source],
                   code=0)
        found = set()
        for node in json.loads(done.stdout)["inner"]:
            kind, name = node["kind"], node.get("name", "")
            if kind == "EnumDecl":
                found |= {inside["name"] for inside in node.get("inner", ()) if "name" in inside}
            elif kind in ("FunctionDecl", "TypedefDecl"):
                found.add(name)
            elif kind == "RecordDecl" and re.fullmatch(names_c.OURS, name):
                found |= {f"{name}.{inside['name']}" for inside in node.get("inner", ())
                          if inside["kind"] == "FieldDecl" and not inside["name"].endswith("_")}
        found = {name for name in found if re.fullmatch(names_c.OURS + r"(\.\w+)?", name)}
        own = {re.sub(r"[:(=].*", "", line.partition("constant ")[2] or line.split(" ", 1)[1]).strip()
               for line in names_c.side("host") if not line.startswith("macro")}
        own = {re.sub(r"\.value\.\w$", ".value", name) for name in own}       # members of unions
        self.assertEqual(found, own)


class Said(unittest.TestCase):
    """The list against the texts, CHANGELOG.md and the version."""

    def test_members_of_the_json(self):
        """Each has its place in tools/README.md, and what stands there exists."""
        text = pages.section(pages.TOOLS, "Members of the JSON")
        _, lines = listed()
        of_json = {name_of(line) for line in lines[" "] | lines["+"] if line.startswith("json ")}
        self.assertEqual({name for name in of_json - CAUSES if f"`{name}`" not in text}, set())
        columns = {name_of(line) for line in lines[" "] if line.startswith("csv ")}
        cells = " ".join(re.findall(r"^\| (`.*?) \|", text, re.M))
        named = set(re.findall(r"`(\w+)`", cells))
        self.assertEqual(named - of_json - columns, set())

    def test_release(self):
        """The list is of this version, and the newest release of CHANGELOG.md is that."""
        newest = re.search(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", CHANGELOG.read_text(encoding="utf-8"), re.M)
        self.assertTrue(newest, "CHANGELOG.md has no release: ## 1.2.3 (2026-01-31)")
        self.assertEqual((listed()[0], newest[1]), (version(), version()),
                         "TEST_GOLDEN=write python3 tests/run.py interface makes the list of a new version")

    def test_changes(self):
        """What is new or gone since the release stands under Unreleased."""
        _, lines = listed()
        said = section("Unreleased")
        unsaid = [f"{mark} {line}" for mark in "+-" for line in sorted(lines[mark])
                  if not re.search(rf"(?<![\w-]){re.escape(name_of(line))}(?!\w)", said)]
        self.assertEqual(unsaid, [], "CHANGELOG.md, ## Unreleased, does not name these")
