# test: time=60 - requests, polls, locks and marks, where the trace does not say enough: gains hold
# SPDX-License-Identifier: MIT
import heapq
import random
import unittest
from fractions import Fraction

import helpers
import npuprof
from grid.ask import facts_of, predictions, questions
from grid.driver import Run
from npuprof.analysis import effects, polls, replay, requests
from npuprof.analysis.verdict import judge
from npuprof.report import first_screen, screen
from test_grid import case
from test_stretches import Driver

HALF = Fraction(1, 2)


def told(values, question):
    """(Effect, [Prediction]) of a run of the grid."""
    one = case(**values)
    run, path = Run(one), helpers.scratch() / "request.json"
    facts, change = facts_of(run, path), questions(one.shape)[question]
    return replay.of(facts).effect(change), list(predictions(one, facts, run, question, change))


class Requests(unittest.TestCase):
    def test_hidden(self):
        """Requests that come when they come: the window may stay, however fast the driver gets."""
        for values in ({"arrivals": "hidden"}, {"arrivals": "hidden", "submitters": 2, "pes": 2}):
            for question in ("device", "host:prepare"):
                effect, found = told(values | {"noise": 0.02}, question)
                self.assertIn(effects.REQUEST, effect.assumed)
                for one in found:
                    self.assertTrue(one.low - 0.5 <= one.truth <= one.high + 0.5, (values, one[1:]))

    def test_told_by_arrows(self):
        """What a client's arrow says is no question."""
        effect, found = told({"arrivals": "periodic", "noise": 0.02}, "device")
        self.assertFalse(effect.assumed)
        for one in found:
            self.assertTrue(one.low - 0.5 <= one.truth <= one.high + 0.5, one[1:])

    def test_an_arrow_is_why_an_inference_begins(self):
        """One that ends just behind its begin: the inference waits before it, and not inside."""
        driver = Driver("marked", between="recv")
        for number, line in enumerate([e for e in driver.lines if e["name"] == "Inference"], 1000):
            driver.span(2, "send", line["ts"] - 15, line["ts"] - 5)
            driver.arrow(number, line["ts"] - 8, line["ts"] + 1, "request", 2, 1)
        effect = replay.of(driver.facts()).effect(("device", None, HALF))
        self.assertFalse(effect.assumed)
        self.assertGreater(effect.inference[0], 40)
        self.assertLess(effect.window[1], 1)

    def test_closed(self):
        """One inference after the other: one number."""
        for values in ({}, {"noise": 0.05}, {"depth": 2}):
            effect, _ = told(values, "device")
            self.assertEqual(effect.assumed, frozenset(), values)
            self.assertLess(effect.window[1] - effect.window[0], Fraction(1, 2), values)

    def test_waits_for_a_name(self):
        """A span in an inference that sounds like waiting for a request, before anything is submitted."""
        driver = Driver("marked")
        for line in driver.lines:
            line["name"] = {"prepare": "recv"}.get(line["name"], line["name"])
        effect = replay.of(driver.facts()).effect(("device", None, HALF))
        self.assertIn(effects.REQUEST, effect.assumed)
        self.assertLess(effect.window[0], 1)
        self.assertGreater(effect.window[1], 44)

    def test_slope(self):
        draw = random.Random(4)
        x = [draw.uniform(900, 1100) for _ in range(100)]
        low, high = requests.slope(x, [3 * value + draw.uniform(-20, 20) for value in x])
        self.assertTrue(2.8 < low < 3 < high < 3.2, (low, high))
        self.assertEqual(requests.slope([5] * 50, x[:50]), (float("-inf"), float("inf")))


class Pool(Driver):
    """Four threads take images from a list; the last of them comes at `late` us."""

    names = (*((tid, f"worker {tid}") for tid in (1, 2, 3, 4)), (5, "npu PE 0"), (6, "npu PE 1"))
    threads = 4

    def __init__(self, device=4000, pes=1, late=0.0, images=48):
        self.lines, self.style = [], "marked"
        threads, free = [(1000.0, tid) for tid in (1, 2, 3)] + [(1000.0 + late, 4)], [1000.0] * pes
        for n in range(images):
            begin, tid = heapq.heappop(threads)
            pe = free.index(min(free))
            submit, start = begin + 10, max(begin + 15, free[pe] + 5)
            end = free[pe] = start + device
            self.span(tid, "Inference", begin, end + 30, kind="inference")
            self.span(tid, "Submit", submit, submit + 4)
            self.span(tid, "ioctl", submit + 4, end + 20, kind="wait")
            self.span(5 + pe, "kernel", start, end, stamp="device", pe_index=pe, execution_index=n,
                      error_ns=200)
            self.arrow(n, submit, start, from_tid=tid, to_tid=5 + pe)
            heapq.heappush(threads, (end + 35, tid))
        self.window = max(free) - 1010

    def holds(self, change, late, **changed):
        """True: the gain of that change, told from this run, holds what such a pool does; and its Effect."""
        effect = replay.of(self.facts()).effect(change)
        truth = 100 - 100 * Pool(late=late, **changed).window / self.window
        low, high = map(float, effect.window)
        return low - 0.2 <= truth <= high + 0.2, effect


class Late(unittest.TestCase):
    """The last thread of a pool came when half of the work was done: the others would have had more of it."""

    def test_a_pool(self):
        for change, changed in ((("pes", None, 1), {"pes": 2}), (("device", None, HALF), {"device": 2000})):
            for late in (0, 100_000):
                held, effect = Pool(late=100_000).holds(change, late, **changed)
                self.assertTrue(held, (change, late, effect))
                self.assertEqual(effect.assumed, {effects.LATE})

    def test_all_at_once(self):
        for late in (0, 3000):
            held, effect = Pool(late=late).holds(("device", None, HALF), late, device=2000)
            self.assertTrue(held and not effect.assumed, effect)

    def test_nothing_to_change(self):
        effect = replay.of(Pool(late=100_000).facts()).effect(("load", None, Fraction(0)))
        self.assertEqual((effect.inference, effect.window), ((0, 0), (0, 0)))

    def test_words(self):
        why, advice = first_screen.why_open(Pool().facts(), {effects.LATE})
        self.assertIn("A thread comes when jobs of others have ended", why)
        self.assertIn("when all threads are at work", advice)


class Nothing(unittest.TestCase):
    def test_more_pes(self):
        """Where threads wait for one PE another one brings something, and no sentence denies it."""
        for driver, more in ((Pool(), True), (Driver("marked", device=40_000), False)):
            text = first_screen.FirstScreen(judge(driver.facts())).nothing
            self.assertEqual(", or more PEs (processing elements) of it, promises" in text, more, text)
            self.assertIn("No finding: nothing but a faster device", text)


class Locks(unittest.TestCase):
    def test_barrier_and_lock(self):
        """Threads that wait for one another although all their waits for jobs are marked."""
        for values in ({"submitters": 4, "pes": 4, "barrier": True}, {"submitters": 2, "barrier": True},
                       {"submitters": 4, "pes": 4, "lock": "hidden"}):
            effect, found = told(values | {"noise": 0.05}, "device")
            for one in found:
                self.assertTrue(one.low - 0.5 <= one.truth <= one.high + 0.5, (values, effect, one[1:]))

    def test_none(self):
        """Threads that share nothing but the device do not wait for one another."""
        for values in ({"submitters": 4, "pes": 4}, {"submitters": 2}):
            effect, _ = told(values | {"noise": 0.05}, "device")
            self.assertEqual(effect.assumed, frozenset(), values)


class Holes(unittest.TestCase):
    def test_missing_executions(self):
        """More than 1 % of the executions' numbers are not there: no gains, and that comes first."""
        driver = Driver("marked")
        for away, told in (({10}, False), (set(range(20, 26)), True)):
            lines = driver.lines[:]
            driver.lines = [e for e in lines if e.get("args", {}).get("execution_index") not in away]
            facts, driver.lines = driver.facts(), lines
            self.assertEqual((facts.jobs.missing, bool(replay.of(facts).why)), (len(away), told))
            first = judge(facts).findings[:1]
            self.assertEqual([f.subject for f in first if f.rule.number == "V0"], ["executions"] * told)


class Looks(Driver):
    """Marks each of its looks, one in `every` us, or one span around all of them."""
    every, around = 500, False

    def wait(self, submit, noticed):
        self.span(1, "Submit", submit, submit + 10)
        begin = at = submit + 12
        while not self.around and at < noticed:
            self.span(1, "poll", at, min(at + self.every - 5, noticed), kind="wait")
            at += self.every
        if self.around:
            self.span(1, "poll", begin, noticed, kind="wait")


class Polls(unittest.TestCase):
    def test_marked_looks(self):
        """The first look is where the wait begins; an end may come just before a look or just behind it."""
        for every in (300, 700):
            Looks.every = every
            before, after = Looks("no span"), Looks("no span", faster=0.5)
            facts = before.facts()
            effect = replay.of(facts).effect(("device", None, HALF))
            truth = 100 - 100 * after.median() / before.median()
            self.assertIn(effects.POLL, effect.assumed)
            self.assertTrue(effect.inference[0] <= truth <= effect.inference[1], (every, effect, truth))
            own = [k for k in range(len(facts.jobs)) if facts.jobs.wait[k] >= 0]
            self.assertAlmostEqual(polls.polls(facts.jobs, own), 1000 * every, delta=1000)

    def test_words(self):
        Looks.every = 3000
        text = " ".join(" ".join(screen.lines(judge(Looks("no span").facts()))).split())
        self.assertIn("? Not known yet: what a faster device brings: 0 to ", text)
        self.assertIn("look more often, or wait for an interrupt", text)


class Doubted(Driver):
    """Waits in `step`, which says nothing, and then in a marked span that is over at once."""

    def wait(self, submit, noticed):
        self.span(1, "Submit", submit, submit + 10)
        self.span(1, "step", submit + 10, noticed - 5)
        self.span(1, "wait", noticed - 5, noticed, kind="wait")


class Marks(unittest.TestCase):
    def test_saw_no_wait(self):
        """The device was done before each marked wait began: the thread may have waited before it."""
        before, after = Doubted("no span"), Doubted("no span", faster=0.5)
        facts = before.facts()
        effect = replay.of(facts).effect(("device", None, HALF))
        truth = 100 - 100 * after.median() / before.median()
        self.assertTrue(effect.inference[0] < 0.5 and 44 < truth <= effect.inference[1], (effect, truth))
        self.assertEqual(facts.jobs.unmarked_names, ["what comes before wait"])


if __name__ == "__main__":
    unittest.main()
