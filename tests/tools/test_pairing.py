# test: time=10 - waits in another order than the submissions: each is for its own job, or it is not known
# SPDX-License-Identifier: MIT
import random
import unittest
from fractions import Fraction
from unittest import mock

import helpers
from npuprof.analysis import confidence, effects, pairing, replay
from npuprof.report import first_screen
from test_stretches import Driver

HALF = Fraction(1, 2)
LAST, BACK, TURN = (2, 0, 1), (2, 1, 0), (0, 1, 2)


class Several(Driver):
    """Three jobs of these lengths in us, in flight together, each on its PE or all on one. Then the waits for
    them in that order; without an order for whichever ends first. notice: us; spread: of the lengths; arrows:
    each from its job to its wait."""

    def __init__(self, order, lengths, pes=1, notice=10, spread=0.03, arrows=False, count=60):
        self.lines, self.latencies, self.number = [], [], 0
        self.names = (1, "worker"), *((3 + pe, f"npu PE {pe}") for pe in range(pes))
        self.draw, now, free = random.Random(2), 1000.0, [0.0] * pes
        for _ in range(count):
            begin, now, ends = now, now + self.draw.randint(100, 300), []
            lengths = lengths if order else lengths[::-1]
            for k, us in enumerate(lengths):
                pe = k % pes
                start = max(now, free[pe]) + 3
                free[pe] = start + round(us * self.draw.uniform(1 - spread, 1 + spread))
                ends.append(self.job(now, 3 + pe, start, free[pe]))
                now += 5
            for k in order or sorted(range(len(ends)), key=ends.__getitem__):
                noticed = ends[k] + round(notice * self.draw.uniform(0.9, 1.1))
                until = now + 1 if now > ends[k] else noticed
                self.span(1, "wait", now, until, kind="wait")
                if arrows:
                    self.arrow(10**6 + self.number + k, ends[k], until - 0.5, "ended", 3 + k % pes, 1)
                now = until
            now += 100
            self.span(1, "Inference", begin, now, kind="inference")
            self.latencies.append(now - begin)
            now += 2

    def job(self, now, tid, start, end):
        self.number += 1
        self.span(1, "Submit", now, now + 5)
        self.span(tid, "conv", start, end, stamp="device", pe_index=tid - 3, error_ns=50,
                  execution_index=self.number)
        self.arrow(self.number, now, start, to_tid=tid)
        return end


def told(order, lengths, **more):
    """The Effect of a device twice as fast, its word, and what it really brings."""
    before, after = Several(order, lengths, **more), Several(order, [us / 2 for us in lengths], **more)
    found = replay.of(before.facts())
    effect = found.effect(("device", None, HALF))
    middle = [sorted(one.latencies)[len(one.latencies) // 2] for one in (before, after)]
    return effect, confidence.of_gain(found, effect, "latency"), 100 - 100 * middle[1] / middle[0]


class Batches(Driver):
    """So many jobs each, one behind the other on one PE, the last one longer, and one wait for that. No
    inferences."""

    def __init__(self, counts, us, longer=0):
        self.lines, self.number, self.names = [], 0, ((1, "worker"), (3, "npu PE 0"))
        self.draw, now, free = random.Random(3), 1000.0, 0.0
        for count in counts:
            now += self.draw.randint(100, 300)
            for left in reversed(range(count)):
                start, length = max(now, free) + 3, us if left else us + longer
                free = Several.job(self, now, 3, start, start + round(length * self.draw.uniform(0.9, 1.1)))
                now += 5
            self.span(1, "wait", now, free + 10, kind="wait")
            now = free + 10
        self.end = now


class Ahead(Batches):
    """Two jobs each, on a PE of its own, and the thread waits for the second one of the pair before. So two
    waits are left at the end."""

    def __init__(self):
        self.lines, self.number, self.names = [], 0, ((1, "worker"), (3, "npu PE 0"), (4, "npu PE 1"))
        ends = [1000, 1000]
        for n in range(42):
            now = max(1000 + 10 * n, ends[-1 if n > 40 else -2]) + 10
            if n > 1:
                self.span(1, "wait", now - 12, now, kind="wait")
            if n < 40:
                self.job(now, 3, now + 3, now + 50)
                ends.append(self.job(now + 5, 4, max(now + 53, ends[-1] + 3), max(now, ends[-1]) + 200))

    job = Several.job


class Few(unittest.TestCase):
    def test_the_last_waits(self):
        """They come in a row, as no others do: that opens nothing."""
        facts = Ahead().facts()
        self.assertEqual((facts.jobs.open, facts.jobs.few), (set(), set()))

    def test_words(self):
        """One wait for a whole batch, or two: the wait is there, so nobody is told to mark one."""
        for counts in (40,), (40, 30):
            facts = Batches(counts, 100).facts()
            effect = replay.of(facts).effect(("device", None, HALF))
            self.assertTrue(effect.window[0] < 1 and effect.window[1] > 45, effect)
            why, advice = first_screen.why_open(facts, effect.assumed)
            self.assertIn(f"wait{'s' * (len(counts) > 1)} for {sum(counts)} jobs: nothing says", why)
            self.assertIn("arrow", advice)
            self.assertNotIn("PROF_WAIT", advice)

    def test_batches_of_many_sizes(self):
        """No two of a size: their waits are alike all the same. No job ends before its wait begins."""
        counts = random.Random(4).sample(range(3, 60), 20)
        facts = Batches(counts, 400).facts()
        self.assertFalse(facts.jobs.open)
        low, high = map(float, replay.of(facts).effect(("device", None, HALF)).window)
        truth = 100 - 100 * (Batches(counts, 200).end - 1000) / (Batches(counts, 400).end - 1000)
        self.assertTrue(low - 0.5 <= truth <= high + 0.5 and high - low < 5, (low, high, truth))


class Counted(list):
    """A column of jobs that counts how often it is read."""

    def __init__(self, values):
        super().__init__(values)
        self.reads = 0

    def __getitem__(self, place):
        self.reads += 1
        return super().__getitem__(place)


class Work(unittest.TestCase):
    """Not how long pairing takes, but how often it looks at a job."""

    def reads(self, counts, us):
        jobs = Batches(counts, us, 60).facts().jobs
        rows = sorted(set(jobs.wait) - {-1})
        jobs.end, jobs.queue = Counted(jobs.end), Counted(jobs.queue)
        with mock.patch.object(pairing, "LOOKED_AT", 4):
            pairing.Pairing(jobs, list(range(len(jobs))), rows, {}, jobs.names)
        return jobs.end.reads + jobs.queue.reads

    def test_grows_as_the_jobs_do(self):
        """Batches of 30, alike and of many sizes, of which most ended before the wait, and one for all. Four
        times as many jobs: four times the work, where all that wait behind each other would be 16 times."""
        for us in 2, 400:
            for sizes in [30] * 20, 4 * list(range(20, 30)):
                one, four = self.reads(sizes, us), self.reads(4 * sizes, us)
                self.assertLess(four, 5 * one, (us, sizes[:2], one))
            self.assertLess(self.reads([2400], us), 5 * self.reads([600], us), us)


class Orders(unittest.TestCase):
    @helpers.thorough
    def test_sure(self):
        """One PE and three, waits in turn, the last one first, and all from the last one on."""
        for pes, lengths in ((1, [200] * 3), (3, [400, 300, 200]), (3, [200, 300, 400]), (3, [300] * 3)):
            for order in (TURN, LAST, BACK):
                for spread in (0, 0.03):
                    effect, word, truth = told(order, lengths, pes=pes, spread=spread)
                    low, high = map(float, effect.inference)
                    self.assertTrue(low - 0.3 <= truth <= high + 0.3 and high - low < 1.5,
                                    (pes, lengths, order, spread, low, high, truth))
                    self.assertEqual(word, "sure")

    def test_notice(self):
        """What is not waited for any more is not the time in which the host notices an end."""
        for order in (TURN, LAST, BACK):
            facts = Several(order, [200] * 3).facts()
            self.assertLess(facts.owners.get(("notice", ""), 0), 3, order)

    def test_open(self):
        """For whichever ends first, and where a late end of the wait may be that of another job."""
        for order, lengths, more in ((None, [250, 450, 350], {"pes": 3}),
                                     (TURN[:2], [200] * 2, {"notice": 330})):
            effect, word, truth = told(order, lengths, **more)
            low, high = map(float, effect.inference)
            self.assertTrue(low - 0.3 <= truth <= high + 0.3, (order, low, high, truth))
            self.assertNotEqual(word, "sure")
            self.assertIn(effects.ORDER, effect.assumed)
            why, advice = first_screen.why_open(Several(order, lengths, **more).facts(), effect.assumed)
            self.assertIn("Several jobs", why)
            self.assertIn("arrow", advice)

    def test_arrows_decide(self):
        for order, lengths in ((BACK, [400, 300, 200]), (None, [250, 450, 350])):
            facts = Several(order, lengths, pes=3, arrows=True).facts()
            self.assertFalse(facts.jobs.open)
            self.assertEqual(len(set(facts.jobs.wait)), len(facts.jobs))


if __name__ == "__main__":
    unittest.main()
