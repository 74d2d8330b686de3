# test: thorough - a stream's open spans and kept names: each is there once, however they end or are replaced
# SPDX-License-Identifier: MIT
import json
import platform
import sys
import unittest

import helpers
from helpers import ROOT, run, scratch


class Open(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch() / "stream_open"
        cls.folder.mkdir(exist_ok=True)
        done = run([*helpers.CC, "-std=c11", "-O1", *helpers.WARNINGS, "-no-pie", f"-I{ROOT}",
                    ROOT / "tests" / "programs" / "firmware_open.c", "-o", cls.folder / "program"])
        if (done.returncode, done.stderr) != (0, ""):
            raise AssertionError(done.stderr)

    def record(self, *words):
        """All that was recorded is there, and ended. Returns the trace, and whether an interrupt came."""
        done = run([self.folder / "program", *words], code=0, cwd=self.folder)
        recorded, lost, came = map(int, done.stdout.split())
        done = run([helpers.tool("npuprof-convert"), self.folder / "out.img", "--elf",
                    self.folder / "program"], code=0, said="")
        trace = json.loads(done.stdout)
        found = [e for e in trace["traceEvents"] if e["ph"] not in "M"]
        self.assertEqual((len(found), lost), (recorded, 0))
        self.assertEqual([e for e in found if "unfinished" in e.get("args", {})], [])
        return trace, came

    def test_recursion(self):
        trace, _ = self.record("recursion")
        self.assertEqual([e["name"] for e in trace["traceEvents"] if e["ph"] == "X"], ["inner"] * 4)

    def test_replaced(self):
        trace, _ = self.record("replaced")
        self.assertEqual(trace["metadata"]["npuprof"]["user"], {"key": "second"})

    def test_interrupted(self):
        if (sys.platform, platform.machine()) != ("linux", "x86_64"):
            self.skipTest("needs Linux on x86-64, whose instructions a program can step through")
        at, came = 0, 1
        while came:
            at += 1
            with self.subTest(at=at):
                _, came = self.record("interrupted", str(at))
        self.assertGreater(at, 100)
