# test: thorough time=900 - as a newcomer: a clean clone, a compiler, make and Python; all commands
# SPDX-License-Identifier: MIT
import fnmatch
import os
import pathlib
import re
import shutil
import sys
import unittest

import helpers
from docs import pages
from helpers import ROOT, run, scratch

# What a bare machine has beside the compiler, make and Python: what a Makefile and a compiler's driver call.
BARE = """sh bash mkdir echo printf rm cp mv cat sed grep ls dirname basename uname env true false test expr
          install expand tr sort head tail touch ln""".split()
TOOLS = ["make", "cc", "gcc", "c++", "g++", "as", "ld", "ar", "nm", "objdump"]

# A program of one's own, before and after: all that changes is what the README says.
BEFORE = """#include <stdio.h>

static unsigned decode(unsigned frame)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < 100000; i++) sum = sum * 31 + (i ^ frame);
    return sum;
}
int main(void)
{
    unsigned all = 0;
    for (unsigned frame = 0; frame < 5; frame++) {
        all += decode(frame);
    }
    printf("%u\\n", all);
    return 0;
}
"""
INCLUDE, SUM, CALL = "#include <stdio.h>\n", "    unsigned sum = 0;\n", "        all += decode(frame);\n"
SCOPE = '        PROF_SCOPE_ARGS("video", "frame", PROF_ARGS(PROF_ARG("frame", frame)));\n'
AFTER = BEFORE.replace(INCLUDE, INCLUDE + '#define NPUPROF_IMPLEMENTATION\n#include "npuprof.h"\n')
AFTER = AFTER.replace(SUM, "    PROF_FUNCTION();\n" + SUM)
AFTER = AFTER.replace(CALL, SCOPE + CALL + '        PROF_COUNTER("sum", all);\n')

# What `check` says of the demo. Why the warning: a thread moves the simulated counter. On a busy machine it
# comes late, and then the rate does change.
GOOD = re.compile(r"\A(digits\.json: ok, \d+ events\n|"
                  r"digits\.json: warning: device 'npusim': its clock's rate changed [^\n]*\n"
                  r"digits\.json: 1 warning, \d+ events\n)\Z")


class Newcomer(unittest.TestCase):
    @staticmethod
    def names():
        if shutil.which("git"):
            listed = run(["git", "-C", ROOT, "ls-files", "-co", "--exclude-standard", "-z"])
            if listed.returncode == 0:
                return filter(None, listed.stdout.split("\0"))
        ours = (p.relative_to(ROOT) for p in ROOT.rglob("*"))
        return [str(p) for p in ours if not {"build", "__pycache__", ".git"} & set(p.parts)]

    @classmethod
    def setUpClass(cls):
        """The clone: what git would clone, with changes not committed yet. And a PATH with the few tools."""
        cls.clone, tools = scratch() / "clone", scratch() / "bin"
        for folder in (cls.clone, tools):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        for name in cls.names():
            if (ROOT / name).is_file():
                (cls.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, cls.clone / name)
        for tool in BARE + TOOLS:
            path = shutil.which(tool)
            if path:
                (tools / tool).symlink_to(path)
        (tools / "python3").symlink_to(os.path.realpath(sys.executable))
        # Why no optimiser: it takes a minute more. `make test` and `make demo` of CI build the same with one.
        cls.env = {"PATH": str(tools), "HOME": str(scratch()), "LC_ALL": "C.UTF-8", "CFLAGS": "-O0",
                   "PYTHONDONTWRITEBYTECODE": "1"}

    def do(self, command, where=None, code=0, **options):
        """A line of the README, typed into a shell."""
        done = run(["sh", "-c", command], code=code, cwd=where or self.clone, env=self.env, **options)
        return done

    def test_there_are_three(self):
        text = pages.section(pages.README, "See it work")
        commands = re.findall(r"^    (make \w+) +#", text, re.M)
        self.assertEqual(commands, ["make demo", "make report", "make test"])

    def test_quick_start(self):
        self.do(re.search(r"In a clone: `([^`]+)`", pages.read(pages.README))[1])
        self.assertEqual(len(helpers.events(helpers.load(self.clone / "hello.json"), "X", "step")), 3)
        self.do("rm hello hello.json")

    def test_demo(self):
        done = self.do("make demo")
        self.assertIn("Accuracy: 485 of 500 (97.0 %)", done.stdout)
        self.assertIn("NPU results equal to the host reference: yes", done.stdout)
        self.assertRegex(done.stdout, r"Trace: digits.json\. Open it in https://ui\.perfetto\.dev")
        self.assertGreater(len(helpers.events(helpers.load(self.clone / "digits.json"), "X")), 500)
        done = self.do("python3 tools/npuprof.py check digits.json")
        self.assertRegex(done.stdout, GOOD)
        ignored = [pattern.rstrip("/") for pattern in (self.clone / ".gitignore").read_text().split()]
        new = {p.name for p in self.clone.iterdir()} - {p.name for p in ROOT.iterdir()}
        left = {name for name in new if not any(fnmatch.fnmatch(f"/{name}", pattern) for pattern in ignored)}
        self.assertEqual(left, set(), "left behind")

    def test_report(self):
        self.do("make report")
        names = {p.name for p in (self.clone / "build/report").iterdir()}
        self.assertEqual(names, {"digits.html", "digits.csv", "digits.txt", "digits.json"})

    def test_tools(self):
        """The commands of tools/README.md, line by line."""
        (block,) = pages.fenced(pages.TOOLS, "sh")
        said = {command: self.do(command).stdout for command in block.splitlines()}
        self.assertEqual(len(said), 6)
        self.assertRegex(said["python3 tools/npuprof.py check digits.json"], GOOD)
        self.assertIn("Inference counts", said["python3 tools/npuprof.py report digits.json --table summary"])
        for name in ("digits.html", "digits.speedscope.json"):
            self.assertGreater((self.clone / name).stat().st_size, 1000)
            (self.clone / name).unlink()

    def test_test(self):
        """`make test` on that machine: a few of the tests, or with NEWCOMER=full all of them."""
        if os.environ.get("NEWCOMER") == "full":
            done = self.do("make test", timeout=3000)
        else:
            self.do("make tools")
            done = self.do("python3 tests/run.py events tools/test_check")
        self.assertRegex(done.stdout.splitlines()[-1], r"^\d+ passed, 0 failed")
        for line in done.stdout.splitlines():
            if line.startswith("skip "):
                self.assertRegex(line, r"^skip [^:]+: .+: \S+", "a skip has its reason")

    def test_own_program(self):
        own = scratch() / "own"
        own.mkdir(exist_ok=True)
        for header in ("npuprof.h", "npuprof_npu.h"):
            shutil.copy(self.clone / header, own)
        (own / "before.c").write_text(BEFORE)
        (own / "after.c").write_text(AFTER)
        self.assertLessEqual(len(AFTER.splitlines()) - len(BEFORE.splitlines()), 5)
        for command in ("before.c -o before", "after.c -o after -pthread", "-DNPUPROF_OFF after.c -o off"):
            self.do("cc -O1 " + command, own)
        said = {self.do(f"./{name}", own).stdout for name in ("before", "after", "off")}
        self.assertEqual(len(said), 1)
        self.assertEqual(sorted(p.name for p in own.glob("*.json")), [])
        self.do("NPUPROF_OUTPUT_PATH=t.json ./after", own)
        trace = helpers.load(own / "t.json")
        counts = [len(helpers.events(trace, "X", name)) for name in ("frame", "decode")]
        self.assertEqual(counts, [5, 5])
        self.assertEqual(trace["metadata"]["npuprof"]["recorded"], 15)
        tool = pathlib.Path(self.clone) / "tools/npuprof.py"
        self.do(f"python3 {tool} check t.json", own)
        done = self.do(f"python3 {tool} report t.json", own)
        self.assertIn("decode", done.stdout)
        self.do(f"python3 {tool} report t.json --html t.html && test -s t.html", own)
        self.do(f"python3 {tool} convert t.json -o t.speedscope.json && test -s t.speedscope.json", own)
