# test: - images and memory dumps of a ring after many laps: counts, the newest records, names, the clock, and
# device spans long after the first anchors
# SPDX-License-Identifier: MIT
from firmware.target import Target


class Ring(Target):
    SOURCE = "firmware_ring.c"

    def traces(self, laps, ticks):
        """What convert makes of the image and of the memory."""
        self.quiet(laps, ticks)
        for name in ("out.img", "ram.bin"):
            yield self.converted(name)

    def check(self, trace, laps, ticks):
        about = trace["metadata"]["npuprof"]
        events = [e for e in trace["traceEvents"] if e["ph"] in "XC"]
        self.assertEqual(about["recorded"] + about["lost"]["overwritten"], 1 + 256 * laps)
        self.assertEqual(about["lost"]["notes"], 0)
        self.assertGreater(about["recorded"], 70)
        last = 8 * laps - 1
        self.assertIn({"name": f"task {last}"},
                      [e["args"] for e in trace["traceEvents"] if e["name"] == "thread_name"])
        self.assertEqual(about["user"]["key"], f"value {last}")
        # The oldest device span is called by its device when its host span was overwritten.
        counters = sorted((e["ts"], e["name"], list(e["args"].values())[0]) for e in events if e["ph"] == "C")
        self.assertEqual({e["name"] for e in events if e["ph"] == "X"} - {"npu"},
                         {"open all the time", "filler", "kernel"})
        # The past keeps its names.
        self.assertEqual([name for _, name, _ in counters],
                         [f"counter {n}" for n in range(last + 1 - len(counters), last + 1)])
        self.assertEqual([value for _, _, value in counters],
                         [n % 8 for n in range(last + 1 - len(counters), last + 1)])
        self.assertTrue([e for e in events if e["name"] == "open all the time"][0]["args"]["unfinished"])
        self.assertGreater(max(e["ts"] for e in events), laps * ticks)
        self.assertLess(max(e["ts"] for e in events), laps * (ticks + 25000))
        device = about["devices"][0]["clock_sync"]
        self.assertEqual((device["anchors"] >= 2, device["spans"] >= 2, device["unplaced_spans"]),
                         (True, True, 0))
        kernels = [e for e in events if e["name"] == "kernel" and e.get("dur", 0) > 400]
        self.assertIn(2 * device["spans"] - len(kernels), (0, 2))
        # A device span lies where its host span does, but for its own bound: after years without an anchor
        # the rate is not known well.
        hosts = sorted(e["ts"] for e in kernels if "error_ns" not in e.get("args", {}))
        placed = sorted((e["ts"], e["args"]["error_ns"] / 1000) for e in kernels
                        if "error_ns" in e.get("args", {}))
        for ts, error in placed:
            self.assertLess(min(abs(ts - host) for host in hosts), 20 + error)
            self.assertLess(error, 20 if not ticks else 1e6)

    def test_many_laps(self):
        for laps in (1, 2, 9000):                # the laps are counted modulo 2^13
            for trace in self.traces(laps, 0):
                self.check(trace, laps, 0)

    def test_long_after_the_start(self):
        """3 years by a clock of 1 MHz: the stamps' bits end within them."""
        laps, ticks = 96, 1 << 40
        for trace in self.traces(laps, ticks):
            self.check(trace, laps, ticks)
