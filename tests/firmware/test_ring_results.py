# test: thorough - PROF_RESULT in a ring and in a stream: each span has its own, wherever the ring was cut
# SPDX-License-Identifier: MIT
import json
import unittest

import helpers
from helpers import ROOT, run, scratch


class Results(unittest.TestCase):
    def build(self, *flags):
        folder = scratch() / ("results" + "".join(flags))
        folder.mkdir(exist_ok=True)
        run([*helpers.CC, "-std=c11", "-O1", *helpers.WARNINGS, "-no-pie", f"-I{ROOT}", *flags,
             ROOT / "tests" / "programs" / "firmware_results.c", "-o", folder / "program"], code=0, said="")
        return folder

    def record(self, folder, count, ends, whole=True):
        self.assertEqual(run([folder / "program", str(count), str(ends)], cwd=folder).returncode, 0)
        done = run([helpers.tool("npuprof-convert"), folder / "out.img", "--elf", folder / "program"])
        if whole:
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def check(self, trace, count, ends, least):
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        short = {round(e["ts"]) // 10: e for e in spans if e["name"] == "short"}
        self.assertEqual(sorted(short), list(range(count - len(short) + 1, count + 1)))
        self.assertGreaterEqual(len(short), min(count, least))
        for i, e in short.items():
            self.assertEqual(e["args"], {"n": i, "text": "more than one cell has"})
        long, = [e for e in spans if e["name"] == "long"]
        wanted = {"last": count, "third": count // 3 * 3} if count > 2 else {"last": count}
        self.assertEqual(long["args"], wanted if ends else {**wanted, "unfinished": True})

    def test_ring(self):
        folder = self.build()
        for count in [1, *range(6, 17), 60000]:      # the laps are counted modulo 2^13
            for ends in (0, 1):
                with self.subTest(count=count, ends=ends):
                    self.check(self.record(folder, count, ends), count, ends, 3)
                    with self.subTest("the target's own JSON"):
                        self.check(json.loads((folder / "out.json").read_text()), count, ends, 3)

    def test_stream(self):
        folder = self.build("-DSTREAM")
        for count in (1, 2, 3, 50, 2000):
            for ends in (0, 1):
                with self.subTest(count=count, ends=ends):
                    self.check(self.record(folder, count, ends), count, ends, count)

    def test_numbers_begin_again(self):
        """After 2^32 cells, which are no multiple of the ring's 59."""
        folder = self.build("-DSTREAM", "-DNEXT=0xFFFFFF00u")
        self.check(self.record(folder, 2000, 1, whole=False), 2000, 1, 2000)
