# test: thorough - a stream's open spans and kept names: each is there once, however they end or are replaced
# SPDX-License-Identifier: MIT
import platform
import sys

from firmware.target import Target


class Open(Target):
    SOURCE = "firmware_open.c"

    def record(self, *words):
        """All that was recorded is there, and ended. Returns the trace, and whether an interrupt came."""
        recorded, lost, came = map(int, self.quiet(*words).stdout.split())
        trace = self.converted()
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
