# test: time=120 - what is slower than its equals is found, with what it costs: a PE, its starts, a thread, a
# clock that falls again and again; single slow inferences are no pattern, and what is even has no finding
# SPDX-License-Identifier: MIT
import random
import unittest

import helpers
from grid import ask
from grid.driver import Run
from grid.shapes import Case, plain
from npuprof.analysis import steady
from npuprof.analysis.verdict import judge

NUMBERS = {"device_us": 1000, "prepare": 0.2, "finish": 0.1, "pack": 0.3, "load": 0.25, "complete": 0.1,
           "dispatch_us": 10, "notice_us": 20, "submit_us": 5, "first": 1, "second": 1, "third": 2}
FOUR = {"submitters": 4, "pes": 4, "n": 200}
ONE_FOR_FOUR = {"wait": "batch", "pes": 4, "n": 200}


def case(seed="by hand", **values):
    return Case(0, plain() | values, NUMBERS, seed)


class SlowPe(Run):
    """One of eight takes 1.7 times as long."""

    def episode(self, name, job):
        return 1.7 if job.pe == 5 else 1

    def device_part(self, thread, i):
        """A job for each of eight PEs, and then a wait for all of them."""
        jobs = [self.job_for(thread, i, pe) for pe in range(8)]
        for job in jobs:
            yield from self.spanned(thread, "submit", self.submission(job))
        yield from self.spanned(thread, "wait", self.all_asleep(jobs), kind="wait")

    def job_for(self, thread, i, pe):
        from grid.driver import Job
        return Job(self, thread, i, pe, pe)


class EvenPes(SlowPe):
    def episode(self, name, job):
        return 1


class LateStart(Run):
    """One PE needs 90 us more to start a job."""

    def us(self, name, *place):
        late = name == "dispatch_us" and place[1] % 4 == 3
        return super().us(name, *place) + 90_000 * late


class FarThread(Run):
    """One thread takes half as long again for what it prepares."""

    def busy(self, name, ns, i):
        return super().busy(name, ns * 3 // 2 if name == "prepare" and i % 4 == 3 else ns, i)


class Falling(Run):
    """A clock that is a fifth lower for 30 of each 90 inferences."""

    def episode(self, name, job):
        return 1.25 if job.inference % 90 >= 60 else 1


class OneOfThem(Run):
    """One inference prepares for 400 ms."""

    def busy(self, name, ns, i):
        return super().busy(name, 400_000_000 if name == "prepare" and i == 99 else ns, i)


class Hiccups(Run):
    """By chance an inference in three is longer; all others take exactly the same time."""

    def episode(self, name, job):
        chance = random.Random(f"{self.case.seed} {job.inference}")
        return chance.choice([1, 1, chance.uniform(1, 20)])


def judged(run):
    facts = ask.facts_of(run, helpers.scratch() / "equals.json")
    return facts, judge(facts)


def found(verdict, number):
    return next((finding for finding in verdict.every() if finding.rule.number == number), None)


class Found(unittest.TestCase):
    def check(self, run, even, number, of, subject):
        """The finding is there, and its interval holds what the run without the plant gains."""
        _, verdict = judged(run)
        finding = found(verdict, number)
        self.assertIsNotNone(finding, [one.rule.number for one in verdict.every()])
        self.assertEqual(finding.subject, subject)
        truth = ask.gain(run.median, even.median) if of == "latency" else ask.gain(run.window, even.window)
        self.assertEqual(finding.of, of)
        low, high = finding.gain
        self.assertTrue(low - 1 <= truth <= high + 1, (number, float(low), truth, float(high)))
        return finding

    @helpers.thorough
    def test_slow_pe(self):
        """PE 5 of 8, and all wait for it."""
        shape = {"pes": 8, "n": 120}
        for records in ("job", "instructions"):
            one = case(records=records, **shape)
            run, even = SlowPe(one), EvenPes(one)
            finding = self.check(run, even, "V23", "latency", "npu PE 5")
            self.assertIn("1.70 times as long as the other 7 PEs", finding.sentence)
            self.assertGreater(ask.gain(run.median, even.median), 25)
            self.assertEqual(finding.confidence, "likely")

    def test_slow_pe_of_threads(self):
        """Behind a barrier that no record shows, the gain is an interval; that it is slower is a fact."""
        _, verdict = judged(Run(case(time="slow PE", barrier=True, **FOUR)))
        self.assertEqual(found(verdict, "V23").subject, "npu PE 3")

    def test_late_start(self):
        finding = self.check(LateStart(case(**ONE_FOR_FOUR)), Run(case(**ONE_FOR_FOUR)), "V24", "latency",
                             "npu PE 3")
        self.assertAlmostEqual(finding.evidence["shift_ns"], 90_000, delta=1000)

    def test_far_thread(self):
        finding = self.check(FarThread(case(**FOUR)), Run(case(**FOUR)), "V26", "throughput", "prepare")
        self.assertEqual(finding.evidence["thread"], "worker 3")

    @helpers.thorough
    def test_clock(self):
        for noise in (0.005, 0.2):
            one = case(records="instructions", n=400, noise=noise)
            run = Falling(one)
            _, verdict = judged(run)
            finding = found(verdict, "V27")
            self.assertAlmostEqual(finding.evidence["slow"], 30, delta=3)
            self.assertEqual(finding.evidence["period"], 90)
            self.assertAlmostEqual(finding.evidence["longer_pct"], 25, delta=4)
            self.assertIsNone(found(verdict, "V16"), "one regime is told once")
        sure = found(judged(Falling(case(records="instructions", n=400)))[1], "V27")
        self.assertIn("the clock dropped by 20 %", sure.sentence)
        self.assertIsNotNone(found(judged(Run(case(time="steps", n=400)))[1], "V27"), "half of the time")


class NotFound(unittest.TestCase):
    @helpers.thorough
    def test_even(self):
        """No member of what is even, with any noise."""
        for seed in range(6):
            for noise in (0.005, 0.2):
                for shape in (FOUR, ONE_FOR_FOUR, FOUR | {"lock": "hidden"}, FOUR | {"barrier": True}):
                    one = case(seed, noise=noise, **shape | {"n": 120})
                    facts = ask.facts_of(Run(one), helpers.scratch() / "even.json")
                    self.assertEqual((facts.equals.unequal, facts.levels), ([], []), (seed, noise, shape))
                    self.assertGreater(facts.equals.compared, 8)

    def test_drift_is_no_level(self):
        for time in ("drift", "warm-up", "one outlier", "one of 8"):
            facts = ask.facts_of(Run(case(time=time, n=400)), helpers.scratch() / "drift.json")
            self.assertEqual(facts.levels, [], time)


    @helpers.thorough
    def test_hiccups(self):
        """Parts whose middles are the same are no levels, and no error either; two of 40 are by chance."""
        runs = (Hiccups(case(seed, noise=0, n=160)) for seed in range(40))
        seen = [bool(ask.facts_of(run, helpers.scratch() / "hiccups.json").levels) for run in runs]
        self.assertLessEqual(sum(seen), 2)


class Outliers(unittest.TestCase):
    def test_one_of_two_hundred(self):
        """Its own sentence, and no gain that hangs on it."""
        run = OneOfThem(case(n=200))
        facts, verdict = judged(run)
        finding = found(verdict, "V28")
        self.assertIn("one inference of 200 took 401 ms", finding.sentence)
        self.assertEqual((finding.subject, finding.gain), ("host (prepare)", None))
        even = judged(Run(case(n=200)))[1]
        for number in {one.rule.number for one in verdict.every()} - {"V28"}:
            self.assertAlmostEqual(float(found(verdict, number).gain[1]), float(found(even, number).gain[1]),
                                   delta=1)
        self.assertIsNone(found(even, "V28"))

    def test_window_without_it(self):
        """Where the median does not see it, the window's gain would hang on one span."""
        _, verdict = judged(OneOfThem(case(n=200)._replace(numbers=NUMBERS | {"prepare": 0.005})))
        self.assertIsNone(found(verdict, "V2"))
        self.assertIsNotNone(found(verdict, "V28"))

    def test_few_are_facts(self):
        _, verdict = judged(Run(case(n=5)))
        self.assertTrue(all(one.confidence == "unsure" for one in verdict.every() if one.rule.kind == "gain"))


class WarmUp(unittest.TestCase):
    def test_trends(self):
        """What changes all the time has no warm-up that is sure; a real one is found on a trend, too."""
        chance = random.Random(1)
        shapes = {"up": lambda x: 1 + 2 * x, "down": lambda x: 3 - 2 * x, "root": lambda x: 1 + 2 * x**0.5,
                  "square": lambda x: 1 + 2 * x * x, "even": lambda x: 1}
        for name, shape in shapes.items():
            for count in (20, 40, 120, 400):
                for noise in (0, 0.01, 0.1, 0.2):
                    for _ in range(10):
                        own = [int(10**6 * shape(k / count) * max(0.2, chance.gauss(1, noise)))
                               for k in range(count)]
                        k = steady.warm_up_of(own)
                        self.assertFalse(k and steady.stands_out(own, k), (name, count, noise, k))
        for name in ("up", "down", "even"):
            own = [int(10**6 * shapes[name](k / 400) * (3 if k < 10 else 1)) for k in range(400)]
            self.assertEqual(steady.warm_up_of(own), 10, name)


if __name__ == "__main__":
    unittest.main()
