# the claims of the texts: each table against the code, both ways; names, links and commands exist
# SPDX-License-Identifier: MIT
import re
import sys
import unittest

import helpers
from compile import test_instructions
from docs import pages
from docs.pages import FIRMWARE, GUIDE, README, REFERENCE, TOOLS, names_in, rows
from helpers import ROOT, run
from laws import code
from npuprof.convert.forms import ENDINGS

GUIDES = [README, GUIDE, REFERENCE, FIRMWARE, TOOLS]
HEADER, HEADER_NPU = (pages.read(path) for path in helpers.HEADERS)
TROUBLE = "When things go wrong"


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
            linked = [path / "README.md" if path.is_dir() else path for path, _ in pages.links(page)]
            texts = {path for path in linked if path.suffix == ".md" and path.exists()}
            todo += texts - reached
        self.assertEqual([str(p.relative_to(ROOT)) for p in pages.pages() if p not in reached], [])

    def test_names(self):
        """Every public name in the texts is in a header, a tool or the environment."""
        known = HEADER + HEADER_NPU
        for folder in ("tools", "src", "examples/rtos"):
            for path in (ROOT / folder).rglob("*.[ph]*"):
                known += pages.read(path) if path.suffix in (".py", ".h") else ""
        pattern = r"\b(?:PROF_[A-Z_]+|NPUPROF_[A-Z_]+|WITH_[A-Z_]+|npuprof_[a-z_]+)\b"
        for page in GUIDES:
            for name in sorted(set(re.findall(pattern, pages.read(page)))):
                self.assertIn(name.rstrip("_"), known, f"{page.relative_to(ROOT)} names {name}")

    def test_files(self):
        """Files that the maps of the source and of the tests name."""
        for page in (pages.CONTRIBUTING, ROOT / "tests" / "README.md"):
            for name in re.findall(r"`([\w./]+/[\w./]*)`", pages.read(page)):
                self.assertTrue((page.parent / name).exists() or (ROOT / name).exists(), f"{page}: {name}")

    def test_commands(self):
        """Targets of make, and the tests given to tests/run.py."""
        targets = set(re.findall(r"^([a-z][\w-]*):", pages.read(ROOT / "Makefile"), re.M))
        self.assertLessEqual({"all", "clean", "help", "san", "gen"}, targets)
        tests = run([sys.executable, ROOT / "tests/run.py", "--list"]).stdout
        for page in pages.pages():
            text = pages.read(page)
            for name in re.findall(r"(?:`|^    |^)make ([a-z-]+)", text, re.M):
                self.assertIn(name, targets, page)
            for name in re.findall(r"tests/run\.py ([a-z_]+)", text):
                self.assertIn(name, tests, page)


class Tables(unittest.TestCase):
    """Every table against the code: nothing invented, nothing left out."""

    @classmethod
    def setUpClass(cls):
        cls.code = code.code_only(HEADER) + code.code_only(HEADER_NPU)

    def test_macros(self):
        defined = set(re.findall(r"#\s*define\s+((?:PROF|WITH)_\w*[A-Z0-9])\b", self.code))
        self.assertGreater(len(defined), 25)
        self.assertEqual(names_in(REFERENCE, "Macros", r"\b((?:PROF|WITH)_[A-Z_]+)"), defined)

    def test_functions(self):
        """The reports have a table of their own."""
        pattern = (r"(?:NPUPROF_(?:NPU_RECORD_)?FN_\(|NPUPROF_NPU_HOSTED_FN_\([^,]*,\s*)[^,]*,"
                   r"\s*(npuprof_\w+),")
        declared = {name.rstrip("_") for name in re.findall(pattern, HEADER + HEADER_NPU)
                    + re.findall(r"(?:X|_FN_)\((npuprof_print_\w+)\)", HEADER)}
        self.assertGreater(len(declared), 30)
        printed = {name for name in declared if name.startswith("npuprof_print_")}
        self.assertEqual(names_in(REFERENCE, "Functions", r"`(npuprof_\w+)"), declared - printed)
        self.assertEqual(names_in(GUIDE, "Reports", r"`(npuprof_\w+)`"), printed)

    def test_knobs(self):
        """What the headers ask for with #if, and do not define themselves without an #ifndef."""
        asked = set()
        for line in re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif)\b(.*(?:\\\n.*)*)", self.code, re.M):
            asked |= set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", line))
        asked -= {"NPUPROF_H", "NPUPROF_NPU_H", "NPUPROF_VERSION", "NPUPROF_NPU_VERSION",
                  "NPUPROF_KEEP_OLDEST", "NPUPROF_KEEP_NEWEST", "NPUPROF_STREAM"}      # values, no knobs
        listed = names_in(REFERENCE, "Knobs", r"`(NPUPROF_[A-Z_]+)")
        self.assertEqual(asked - listed, set())
        for name in listed - asked:          # goes with one that is asked for
            self.assertRegex(self.code, rf"\b{name}\(", name)
        block = re.search(r"\n   KNOBS(.*?)\n\n", HEADER, re.S)[1]
        self.assertLessEqual(set(re.findall(r"\bNPUPROF_[A-Z_]*[A-Z]\b", block)), asked)

    def test_defaults_of_knobs(self):
        for row in rows(REFERENCE, "Knobs")[0]:
            for name in re.findall(r"`(NPUPROF_\w+_BYTES)`", row[0]):
                count, unit = re.fullmatch(r"(\d+) ([KM])iB", row[2]).groups()
                defined = re.findall(rf"#define {name} \(?([\d *]+)\)?\n", HEADER)
                products = [eval(text) for text in defined]      # of numbers
                self.assertIn(int(count) << {"K": 10, "M": 20}[unit], products, name)
        self.assertIn("| 0, 1 |", pages.read(REFERENCE))
        self.assertIn("#define NPUPROF_CONTEXTS 1\n", HEADER)

    def test_environment(self):
        read = set(re.findall(r"npuprof_(?:\w+_)?env_(?:\w+_)?\(\"(\w+)\"\)", HEADER))
        read |= set(re.findall(r"\{ \"(\w+)\", npuprof_env_read_\w+ \}", HEADER))
        read |= set(re.findall(r"\"(NPUPROF_\w+)\", \"\w+\", \d, \w+, npuprof_capture_set_", HEADER))
        read |= set(re.findall(r"npuprof_env_capture_\[\] = \"(\w+)\"", HEADER))
        self.assertEqual(names_in(REFERENCE, "Environment", r"`([A-Z_]+)`"), read)
        (meaning,) = [row[1] for row in rows(REFERENCE, "Environment")[0] if row[0] == "`NPUPROF_WHEN_FULL`"]
        for policy in re.findall(r"\"(keep-oldest|keep-newest|stream)\"", HEADER):
            self.assertIn(f"`{policy}`", meaning)

    def test_causes_of_loss(self):
        causes = set(re.findall(r"X\(NPUPROF_LOST_\w+, \"(\w+)\"", HEADER))
        (row,) = [row for row in rows(GUIDE, TROUBLE)[0] if row[0].startswith("`lost`")]
        listed = set(re.findall(r"`(\w+)`", row[1])) - {"NPUPROF_ARENA_BYTES"}
        self.assertLessEqual(listed, causes)
        said = pages.read(GUIDE) + pages.read(REFERENCE)
        self.assertEqual({cause for cause in causes if f"`{cause}`" not in said}, set())

    def test_quoted_sentences(self):
        """What the table of troubles quotes as a sentence of the library is one."""
        listed = re.findall(r"X\((NPUPROF_ERR_\w+),[\s\\]*\"((?:\\.|[^\"])*)\"", HEADER)
        sentences = [f"{code}: {sentence}" for code, sentence in listed]
        pattern = r"`(NPUPROF_ERR_[^`]*)`"
        quoted = [text for row in rows(GUIDE, TROUBLE)[0] for text in re.findall(pattern, row[0])]
        self.assertGreater(len(quoted), 6)
        for text in quoted:
            begin = text.removesuffix("...").rstrip("; ")
            self.assertTrue(any(sentence.startswith(begin) for sentence in sentences), text)

    def test_tools(self):
        """A section for each command, and their tables of reports."""
        done = helpers.npuprof_py("--help")
        known = set(re.findall(r"^    (\w+) ", done.stdout, re.M))
        self.assertEqual(set(re.findall(r"^## ([a-z]+)$", pages.read(TOOLS), re.M)), known)
        done = helpers.npuprof_py("report", "--help")
        tables = re.search(r"repeated: ([\w,\s]+?)\n  --", done.stdout)[1]
        self.assertEqual(names_in(TOOLS, "report", r"`(\w+)`"), set(re.split(r",\s+", tables)))

    def test_forms(self):
        """Each form that convert writes is in the table, in its section, and has an example in its help."""
        told = helpers.npuprof_py("convert", "--help").stdout
        for ending in ENDINGS:
            for section in ("Formats", "convert"):
                self.assertIn(f"`{ending}`", pages.section(TOOLS, section))
            self.assertRegex(told, rf"(-o|and) \w+{re.escape(ending)}\b")


class Costs(unittest.TestCase):
    def test_columns(self):
        """They are what `make bench` prints, by the same names."""
        bench = pages.read(ROOT / "tests/bench/spans.c")
        printed = re.findall(r'(?:interleave|bench_row)\("([^"]+)", ', bench)
        for name in rows(REFERENCE, "Costs")[1][1:]:
            self.assertIn(name.replace("`", ""), printed)
        units = [row[0] for row in rows(REFERENCE, "Costs")[0]]
        self.assertEqual(units, ["instructions", "times the floor", "ns"])

    def test_instructions(self):
        """They are what test_instructions.py holds."""
        held = {name: str(count) for name, (_, count, _) in test_instructions.COUNTS.items()}
        table, names = rows(REFERENCE, "Costs")
        for name, count in list(zip(names, table[0]))[1:]:
            name = name.replace("`", "").partition(" already")[0].partition(" at run time")[0]
            self.assertEqual(count, held[name], name)

    def test_in_short(self):
        """The README's table has the reference's figures, each with the command that gives it."""
        table, (costs, names) = rows(README, "What it costs")[0], rows(REFERENCE, "Costs")
        times, counts = (dict(zip(names, costs[row])) for row in (1, 0))
        ratios = [re.match(r"([\d.]+) times", row[1]) for row in table if row[2] == "`make bench`"]
        self.assertEqual([ratio[1] for ratio in ratios if ratio], [times["span"]])
        counted = [row[1] for row in table if "test_instructions" in row[2]]
        self.assertEqual([re.match(r"(\d+) instructions", text)[1] for text in counted],
                         [counts["span"], counts["disabled at run time, over the bare loop"],
                          str(test_instructions.COUNTS["function of NPUPROF_AUTO"][1])])
        (flash,) = [row[1] for row in table if row[2] == "`make size`"]
        self.assertEqual(flash.split()[0], rows(FIRMWARE, "Size and cost")[0][0][1])
        for row in table:
            self.assertRegex(row[2], r"^`(make \w+|python3 tests/run\.py \w+)`$")

    def test_without_marks(self):
        counts = test_instructions.COUNTS
        text = " ".join(pages.section(GUIDE, "Whole programs without marks").split())
        on, off = counts["function of NPUPROF_AUTO"][1], counts["disabled function"][1]
        self.assertIn(f"A call is {on} instructions, a mark's span {counts['span'][1]}. While recording is "
                      f"off it is {off}, a mark's {counts['disabled'][1]}.", text)
        self.assertIn(f"take {test_instructions.AUTO_BYTES} bytes of a small function on x86-64, "
                      f"`PROF_SCOPE` takes {test_instructions.SITE_BYTES}.", text)

    @helpers.thorough
    def test_sizes(self):
        """The firmware's figures are what `make size` prints, of that compiler."""
        text = pages.section(FIRMWARE, "Size and cost")
        compiler = run([helpers.need("arm-none-eabi-gcc"), "-dumpversion"]).stdout
        wanted = re.search(r"arm-none-eabi-gcc (\d+) -Os", text)[1]
        if compiler.split(".")[0] != wanted:
            self.skipTest(f"arm-none-eabi-gcc is {compiler.strip()}, the figures are of {wanted}")
        done = run([sys.executable, ROOT / "tests/baremetal/run.py", "--sizes"], code=0)
        printed = re.findall(r"^   (\S.*?) {2,}(\d+) +(\d+)(?: +(\d+))?$", done.stdout, re.M)
        self.assertEqual([list(row[:3]) for row in printed], rows(FIRMWARE, "Size and cost")[0])
        self.assertIn(f"{printed[0][3]} bytes of RAM", text)

    @helpers.thorough
    def test_sizes_here(self):
        """A host's figures are within 5 % of what `make size` prints."""
        if run([*helpers.CC, "-dumpversion"]).stdout.split(".")[0].strip() != "12":
            self.skipTest("the figures are of gcc 12")
        done = run([sys.executable, ROOT / "tests/bench/sizes.py", "--short"], code=0)
        host = re.findall(r"^    (\w[\w ]*?) {2,}(\d+)(?: +\d+)* +(\d+)(?:   limit.*)?$", done.stdout, re.M)
        self.assertEqual(len(host), 5, done.stdout)
        for (what, flash, ram), row in zip(host, rows(REFERENCE, "Sizes")[0]):
            self.assertEqual(row[0].strip("`"), what)
            for stated, measured in ((row[1], flash), (row[2], ram)):
                self.assertAlmostEqual(int(stated) / int(measured), 1, delta=0.05, msg=what)

    def test_firmware_knobs(self):
        """What the text says that firmware.c defines, it does."""
        source = pages.read(ROOT / "examples/firmware/firmware.c")
        table = rows(FIRMWARE, "The example")[0]
        self.assertEqual(len(table), 5)
        for name, value, _ in table:
            self.assertIn(f"#define {name.strip('`')} {value.strip('`')}\n", source)
