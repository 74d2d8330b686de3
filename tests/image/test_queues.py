# what a device's queues bring, in a trace, in an image, and in what the tools say of them
# SPDX-License-Identifier: MIT
import sys
import unittest

import helpers
from helpers import ROOT, events, load, run, strict_json


class Queues(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        cls.folder = helpers.scratch()
        program = helpers.build("queues.c", "queues")
        cls.trace, cls.image = cls.folder / "t.json", cls.folder / "t.npuprof"
        done = run([program, cls.trace, cls.image], env=helpers.environment())
        if done.returncode:
            raise AssertionError(f"queues: {done.returncode} {done.stderr}")

    def test_the_image_holds_the_same(self):
        done = run([helpers.tool("npuprof-convert"), self.image], code=0, said="")
        traces = load(self.trace), strict_json(done.stdout)
        self.assertEqual(events(traces[0]), events(traces[1]))
        syncs = [t["metadata"]["npuprof"]["devices"][0]["clock_sync"] for t in traces]
        self.assertEqual(*syncs)
        self.assertEqual(syncs[0]["records"], {"lost_stamps": 1, "unknown_records": 1, "unmatched_ends": 1,
                                               "unfinished": 1})
        self.assertEqual((syncs[0]["spans"], syncs[0]["host_spans"]), (11, 10))
        names = {e["args"]["name"] for e in events(traces[0], "M", "thread_name")}
        self.assertLessEqual({"sim core 7", "sim core 9", "sim PE 3"}, names)

    def test_tools(self):
        tool = [sys.executable, ROOT / "tools/npuprof.py"]
        checked = run([*tool, "check", self.trace], code=0)
        self.assertIn("1 unmatched_ends", checked.stdout + checked.stderr)
        reported = run([*tool, "report", self.trace, "--table", "all"], code=0)
        self.assertIn("1 unfinished", reported.stdout)
        packets = self.folder / "t.pftrace"
        self.assertEqual(run([*tool, "convert", self.image, "-o", packets]).returncode, 0)
        self.assertIn(b"sim op 4", packets.read_bytes())
