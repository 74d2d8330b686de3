# test: time=30 - lanes in turns, threads beside, batches, pools, clocks: no gain is sure and false
# SPDX-License-Identifier: MIT
import random
import unittest
from fractions import Fraction

import helpers
from grid.ask import facts_of
from grid.driver import Run
from npuprof.analysis import confidence, effects, reactions, replay, verdict, whatif
from npuprof.analysis.part import Part
from npuprof.report import first_screen
from test_grid import case
from test_requests import told
from test_stretches import Driver
from test_two_queues import Prefetch

HALF = Fraction(1, 2)
DEVICE = "device", None, HALF
NEW = {effects.BESIDE, effects.BATCH, effects.TURNS}


class Loop(Driver):
    """One thread that marks its waits, one lane. rate(n, idle): how much longer job n takes."""

    def __init__(self, device=3000, prepare=600, count=120, rate=lambda n, idle: 1, pause=0):
        self.lines, self.latencies, self.draw = [], [], random.Random(9)
        now, ended = 1000.0, 1000.0
        for n in range(count):
            now += pause * self.draw.random()
            begin, submit = now, now + prepare * self.draw.uniform(0.97, 1.03)
            start = submit + 15
            end = start + device * self.draw.uniform(0.99, 1.01) * rate(n, start - ended)
            now = self.inference(n, begin, submit, start, end)
            ended = end
        self.last = now

    def inference(self, n, begin, submit, start, end):
        """When it has ended."""
        noticed = end + self.draw.uniform(20, 40)
        self.span(1, "prepare", begin, submit)
        self.span(1, "Submit", submit, submit + 4)
        self.span(1, "ioctl", submit + 5, noticed, kind="wait")
        self.span(3, "kernel", start, end, stamp="device", pe_index=0, execution_index=n, error_ns=100)
        self.arrow(n, submit, start)
        self.span(1, "Inference", begin, noticed + 50, kind="inference")
        self.latencies.append(noticed + 50 - begin)
        return noticed + 55

    def middle(self):
        return sorted(self.latencies)[len(self.latencies) // 2]

    def said(self, change=DEVICE):
        """(Effect, is it sure?)"""
        found = replay.of(self.facts())
        effect = found.effect(change)
        return effect, confidence.of_gain(found, effect, "latency") == "sure"


class Piped(Loop):
    """Another thread decodes what an inference is about, and a third one draws it; ROOM lie between them."""

    names, threads = ((1, "worker"), (2, "decoder"), (3, "npu PE 0"), (4, "painter")), 3
    ROOM = 2

    def __init__(self, decode=300, draw=300, device=3000, prepare=600, count=90):
        self.lines, self.latencies, self.draw = [], [], random.Random(9)
        decoded, taken, drawn, now = [1000.0], [], [1000.0] * (self.ROOM + 1), 1000.0
        for n in range(count):
            begin = max(decoded[-1], taken[n - self.ROOM] if n >= self.ROOM else 0)
            decoded.append(begin + decode * self.draw.uniform(0.95, 1.05))
            self.span(2, "decode", begin, decoded[-1])
            begin, now = now, max(now, decoded[-1] + 20, drawn[n])
            taken.append(now)
            submit = now + prepare
            end = submit + 15 + device * self.draw.uniform(0.95, 1.05)
            now = self.inference(n, begin, submit, submit + 15, end)
            paints = max(now, drawn[-1])
            drawn.append(paints + draw * self.draw.uniform(0.95, 1.05))
            self.span(4, "draw", paints, drawn[-1])


class Served(Loop):
    """Takes all requests that have come, up to `most`."""

    def __init__(self, one=1000.0, every=1500.0, most=16, count=250):
        self.lines, self.latencies, self.draw, now, n = [], [], random.Random(9), 1000.0, 0
        draw, asked = random.Random(3), [1000.0]
        for _ in range(count):
            asked.append(asked[-1] + draw.expovariate(1 / every))
        while asked:
            begin = max(now, asked[0] + 20)
            batch = max(1, sum(ns <= begin for ns in asked[:most]))
            asked = asked[batch:]
            now = self.inference(n, begin, begin + 50, begin + 65, begin + 65 + one * (batch + 0.3))
            n += 1


class Turns(Prefetch):
    """One thread has two jobs in flight, on two lanes of one engine that does one at a time."""

    names = (1, "worker"), (3, "npu PE 0"), (4, "npu PE 1")

    def __init__(self, net=3000, post=2400, work=300, count=60, apart=False):
        self.lines, self.latencies, self.draw, now = [], [], random.Random(4), 1000.0
        self.free, self.number = {3: 0.0, 4: 0.0}, {3: 0, 4: 0}
        for _ in range(count):
            begin = now
            one, now = self.job(3, "net", now, net)
            self.span(1, "work", now, now + work)
            self.free[4] = self.free[4] if apart else one
            two, now = self.job(4, "post", now + work, post)
            now = self.marked("wait net", now, one)
            now = self.marked("wait post", now + 1, two) + 50
            self.free[3] = two
            self.span(1, "Inference", begin, now, kind="inference")
            self.latencies.append(now - begin)
            now += 5

    said, middle = Loop.said, Loop.middle


class Pool(Loop):
    """Two threads take from one list, and have a lane each; the first one prepares so many times as long."""

    names, threads = ((1, "one"), (2, "two"), (3, "npu PE 0"), (4, "npu PE 1")), 2

    def __init__(self, device=3000, prepare=3000, count=160, times=4):
        self.lines, self.latencies, self.draw, ready = [], [], random.Random(9), [1000.0, 1001.0]
        for n in range(count):
            tid = ready.index(min(ready)) + 1
            begin = ready[tid - 1]
            submit = begin + prepare * self.draw.uniform(0.97, 1.03) * (times if tid == 1 else 1)
            end = submit + 15 + device
            self.span(tid, "prepare", begin, submit)
            self.span(tid, "ioctl", submit + 5, end + 30, kind="wait")
            self.span(tid + 2, "kernel", submit + 15, end, stamp="device", pe_index=tid - 1,
                      execution_index=n, error_ns=100)
            self.arrow(n, submit, submit + 15, from_tid=tid, to_tid=tid + 2)
            self.span(tid, "Inference", begin, end + 50, kind="inference")
            ready[tid - 1] = end + 55
        self.last = max(ready) - 1000


class Shares(unittest.TestCase):
    def test_by_speed(self):
        """What gets faster by a larger part takes more from the list."""
        for change, after in ((DEVICE, {"device": 1500}), (("host", "prepare", HALF), {"prepare": 1500})):
            effect, _ = Pool().said(change)
            truth = 100 - 100 * Pool(**after).last / Pool().last
            low, high = map(float, effect.window)
            self.assertTrue(low - 1 <= truth <= high + 1 and high - low > 4, (low, high, truth))
            self.assertIn(effects.POOL, effect.assumed)

    def test_as_many_each(self):
        """That is what the advice asks for: nothing is open then."""
        self.assertNotIn(effects.POOL, Pool(times=1).said()[0].assumed)


class Holds(unittest.TestCase):
    def check_holds(self, kind, change, what, before, after):
        effect, is_sure = kind(**before).said(change)
        truth = 100 - 100 * kind(**before | after).middle() / kind(**before).middle()
        low, high = map(float, effect.inference)
        self.assertTrue(low - 0.5 <= truth <= high + 0.5, (kind, change, before, low, high, truth))
        self.assertEqual(NEW & effect.assumed, {what} - {None}, effect)
        self.assertFalse(is_sure and what)
        return high - low


class Beside(Holds):
    def test_threads_that_would_hold_it_up(self):
        """They hide behind the device, and no longer when it takes half the time; or they never did. What it
        brings until then is known."""
        effect, _ = Piped(decode=3300).said()
        self.assertGreater(effect.inference[0], 7)
        for before in ({"decode": 3300}, {"draw": 3300}, {"decode": 4500}, {"draw": 4500, "decode": 2000}):
            self.check_holds(Piped, DEVICE, effects.BESIDE, before, {"device": 1500})
            self.check_holds(Piped, ("host", "prepare", HALF), effects.BESIDE, before | {"device": 2800},
                             {"prepare": 300})

    def test_threads_that_would_not(self):
        self.assertLess(self.check_holds(Piped, DEVICE, None, {"decode": 1500, "draw": 1000},
                                         {"device": 1500}), 1)


class Batches(Holds):
    def test_larger_behind_larger(self):
        self.check_holds(Served, DEVICE, effects.BATCH, {}, {"one": 500.0})

    def test_one_at_a_time(self):
        self.check_holds(Served, DEVICE, None, {"most": 1, "every": 3000.0}, {"most": 1, "one": 500.0})


class Lanes(Holds):
    def test_in_turns(self):
        for change, after in ((DEVICE, {"net": 1500, "post": 1200}),
                              (("operator", "net", HALF), {"net": 1500}),
                              (("host", "work", HALF), {"work": 150})):
            self.check_holds(Turns, change, effects.TURNS, {}, after)

    def test_at_the_same_time(self):
        self.check_holds(Turns, ("operator", "net", HALF), None, {"apart": True}, {"net": 1500})


class Clock(unittest.TestCase):
    def test_changes(self):
        """By heat, by a governor from the first jobs on, and by how long the device was idle."""
        for rate, pause in ((lambda n, idle: 1 + 0.3 * (n % 40 > 25), 0),
                            (lambda n, idle: 1 - 0.1 * (n < 9), 0),
                            (lambda n, idle: 1 + idle / 20_000, 2000),
                            (lambda n, idle: 1 + n / 2000, 0)):
            driver = Loop(rate=rate, pause=pause)
            self.assertFalse(driver.said()[1])
            facts = driver.facts()
            self.assertTrue(reactions.is_unsteady(replay.of(facts)), pause)
            self.assertIn("not known", whatif.whatif_table(facts, [(DEVICE,)]).notes[-1])
            found = [one for one in verdict.judge(facts).every() if one.replayed]
            told = {one.confidence for one in found if not isinstance(one.change[1], Part)}
            self.assertEqual(told, {"unsure"}, pause)

    def test_stays(self):
        """Also where each eighth input is larger, and one job was held up."""
        for rate in (lambda n, idle: 1, lambda n, idle: 1 + (n % 8 == 3), lambda n, idle: 1 + 20 * (n == 50)):
            self.assertTrue(Loop(rate=rate).said()[1])

    def test_one_operator_is_no_clock(self):
        """What takes longer with each step, such as attention, is the data."""
        for time, changes in (("drift", False), ("steps", True), ("warm-up", True), ("even", False)):
            facts = replay.of(self.facts_of_grid(time)).facts
            self.assertEqual(reactions.is_unsteady(replay.of(facts)), changes, time)

    def facts_of_grid(self, time):
        return facts_of(Run(case(time=time, records="instructions")), helpers.scratch() / "clock.json")

    def test_words(self):
        for what in (effects.BESIDE, effects.BATCH, effects.TURNS, effects.POOL, effects.CLOCK):
            self.assertTrue(all(first_screen.why_open(Loop().facts(), {what})), what)


if __name__ == "__main__":
    unittest.main()
