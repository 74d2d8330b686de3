# test: thorough - examples/runtimes/tt-metal on declarations of tt-metal: each record a span where tt-
# metal says, with its estimate as the error, and what it dropped is counted
# SPDX-License-Identifier: MIT
import unittest

from helpers import environment, events, load, run, scratch
from runtimes import hosts



class TtMetal(unittest.TestCase):
    def test_each_record(self):
        program, path = hosts.built("tt_metal_host.cpp", "c++20", "tt-metal"), scratch() / "tt.json"
        done = run([program, path], code=0, said="", env=environment())
        truth = {int(n): (int(start), int(end)) for n, start, end in map(str.split, done.stdout.splitlines())}
        trace = load(path)
        own = trace["metadata"]["npuprof"]
        spans = [e for e in events(trace, "X") if "job" in e.get("args", {})]
        self.assertEqual(sorted(e["args"]["job"] for e in spans), sorted(truth))
        self.assertEqual({k: v for k, v in own["lost"].items() if v}, {"device_ring": 8})
        self.assertEqual([d["name"] for d in own["devices"]], ["tt chip 1", "tt chip 0"])
        names = {1: "pool.cpp", 0: "conv.cpp"}
        for e in spans:
            job, args = e["args"]["job"], e["args"]
            start = round(e["ts"] * 1000) + own["start_unix_ns"]
            # 2000: how far apart the test's own two reads of the clocks may be
            for got, real in ((start, truth[job][0]), (start + round(e["dur"] * 1000), truth[job][1])):
                self.assertLessEqual(abs(got - real), args["error_ns"] + 2000)
            self.assertGreaterEqual(args["error_ns"], 300)
            self.assertEqual((args["stamp"], args["error"]), ("host", "estimated by tt-metal"))
            self.assertGreater(args["start_ticks"], 1 << 60)
            self.assertEqual(e["name"], names[job % 2] if job % 5 else "enqueue")
        arrows = sorted((e["tid"], round(e["ts"] * 1000)) for e in events(trace, "f"))
        self.assertEqual(arrows, sorted((e["tid"], round(e["ts"] * 1000)) for e in spans
                                         if e["args"]["job"] % 5 == 0))


if __name__ == "__main__":
    unittest.main()
