# test: time=20 - threads that begin behind the end of another one, or wait for it: gains hold
# SPDX-License-Identifier: MIT
import random
import unittest
from fractions import Fraction

from npuprof.analysis import replay
from test_stretches import Driver

HALF = Fraction(1, 2)


class Loop(Driver):
    """One thread after another does `count` jobs each: its work, and the wait for its job."""

    names = (1, "main"), (2, "second"), (3, "npu PE 0")

    def __init__(self, prepare=2000, device=3000, count=40):
        self.lines, self.draw, self.number = [], random.Random(6), 0
        self.free, self.first = 0.0, 1000.0
        now = self.phase(1, 1000.0, prepare, device, count)
        self.last = self.phase(2, now + 60, prepare, device / 3, count)

    def phase(self, tid, now, prepare, device, count, inference=True):
        """When that thread has ended."""
        for _ in range(count):
            begin, submit = now, now + prepare * self.draw.uniform(0.95, 1.05)
            self.span(tid, "prepare", begin, submit)
            now = self.job(tid, submit, device)
            if inference:
                self.span(tid, "Inference", begin, now, kind="inference")
            now += 2
        return now - 2

    def job(self, tid, submit, device):
        """When the thread has noticed its end."""
        start = submit + 15
        end = start + device * self.draw.uniform(0.95, 1.05)
        noticed = end + self.draw.uniform(20, 40)
        self.span(tid, "Submit", submit, submit + 4)
        self.span(tid, "ioctl", submit + 4, noticed, kind="wait")
        self.span(3, "kernel", start, end, stamp="device", pe_index=0, execution_index=self.number,
                  error_ns=100)
        self.arrow(self.number, submit, start, from_tid=tid)
        self.number += 1
        return noticed

    def window(self):
        return self.last - self.first


class Joined(Loop):
    """The first job starts a chain: a thread that hears of its end submits the next ones, and main joins."""

    def __init__(self, prepare=2000, device=3000, count=40):
        self.lines, self.draw, self.number = [], random.Random(6), 0
        self.first = 1000.0
        noticed = self.job(1, self.first, device)
        self.lines = [line for line in self.lines if line["name"] != "ioctl"]
        self.last = self.phase(2, noticed, prepare, device, count, False) + 30
        self.span(1, "join", self.first + 5, self.last, kind="wait")


class Threads(unittest.TestCase):
    def holds(self, kind, change, **changed):
        """The Effect of a change; fails if its gain of the window is not what such a program does."""
        before, after = kind(), kind(**changed)
        effect, truth = replay.of(before.facts()).effect(change), 100 - 100 * after.window() / before.window()
        low, high = map(float, effect.window)
        self.assertTrue(low - 0.5 <= truth <= high + 0.5, (kind, change, low, high, truth))
        return effect

    def test_one_after_the_other(self):
        self.holds(Loop, ("host", "prepare", HALF), prepare=1000)
        self.holds(Loop, ("device", None, HALF), device=1500)

    def test_joins(self):
        """A marked wait for a thread is no late notice of the job that came before it."""
        self.holds(Joined, ("host", "prepare", HALF), prepare=1000)
        self.holds(Joined, ("device", None, HALF), device=1500)

    def test_no_job_is_noticed_so_late(self):
        jobs = Joined().facts().jobs
        points = replay.of(Joined().facts()).points
        self.assertEqual((len(jobs), len(points.joins), points.waits[0]), (41, 1, None))


if __name__ == "__main__":
    unittest.main()
