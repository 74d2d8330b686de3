# test: time=20 - threads that wait for frames, timers or one another, and not for a job: gains hold
# SPDX-License-Identifier: MIT
import random
import unittest
from fractions import Fraction
from statistics import median

from npuprof.analysis import confidence, effects, replay, requests, ticks
from npuprof.report import first_screen
from test_stretches import Driver

HALF = Fraction(1, 2)
PERIOD = 3000.0


class Camera(Driver):
    """A thread takes a frame each PERIOD us, or misses it. work: us before each job; where: the name of the
    span in which it waits for a frame, or None; marked: the span says that it waits; queued: it misses none,
    they wait in a queue."""

    def __init__(self, device=1800, work=300, where=None, marked=False, images=90, queued=False):
        self.lines, self.style, self.latencies = [], "marked", []
        draw, now = random.Random(5), 0.0
        for n in range(images):
            begin = now + 1000
            number = n if queued else now // PERIOD + 1
            frame = max(begin + 2, number * PERIOD + 1000) + draw.uniform(5, 15)
            if where:
                self.span(1, where, begin + 1, frame, **({"kind": "wait"} if marked else {}))
            submit = frame + work * draw.uniform(0.9, 1.1)
            end = submit + 20 + device * draw.uniform(0.9, 1.1)
            noticed = end + draw.uniform(20, 40)
            self.span(1, "Inference", begin, noticed + 50, kind="inference")
            self.span(1, "prepare", frame, submit)
            self.wait(submit, noticed)
            self.span(3, "kernel", submit + 20, end, stamp="device", pe_index=0, execution_index=n,
                      error_ns=200)
            self.arrow(n, submit, submit + 20)
            self.latencies.append(noticed + 50 - begin)
            now = noticed + 55 - 1000

    def told(self, change, **changed):
        """The Effect of that change, and what it brings to the median inference when this camera has it."""
        middle = [sorted(one.latencies)[len(self.latencies) // 2] for one in (self, Camera(**changed))]
        return replay.of(self.facts()).effect(change), 100 - 100 * middle[1] / middle[0]


class Frames(unittest.TestCase):
    """What is faster waits longer for the next frame, or gets an earlier one."""

    def test_waits_inside_inferences(self):
        """In no span, in one that names the camera, and in one that is marked. A device of 4000 us misses
        each second frame, and none if it is twice as fast."""
        for device in (1800, 4000):
            for how in ({}, {"where": "dqbuf"}, {"where": "next image", "marked": True}):
                driver = Camera(device=device, **how)
                for change, changed in ((("device", None, HALF), {"device": device / 2}),
                                        (("host", "prepare", HALF), {"work": 150, "device": device})):
                    effect, truth = driver.told(change, **how, **changed)
                    low, high = map(float, effect.inference)
                    self.assertTrue(low - 0.2 <= truth <= high + 0.2, (device, how, change, low, high, truth))
                    self.assertIn(effects.TICK, effect.assumed)

    def test_too_slow_for_the_camera(self):
        """No wait for a frame is seen, and a faster device waits for each. Only the name says so."""
        for where in ("dqbuf", "next frame"):
            effect, truth = Camera(4000, where=where, queued=True).told(
                ("device", None, HALF), where=where, device=2000, queued=True)
            self.assertTrue(effect.inference[0] <= truth < 40 < effect.inference[1], (effect, truth))

    def test_few_miss_a_frame(self):
        """Who has time left for each frame gets no other one: what is faster brings what it saves at most."""
        effect, _ = Camera(device=2300).told(("host", "prepare", HALF), work=150, device=2300)
        self.assertLess(effect.inference[1], 6)

    def test_words(self):
        why, advice = first_screen.why_open(Camera().facts(), {effects.TICK})
        self.assertIn("A thread seems to wait for a clock", why)
        self.assertIn("draw an arrow from what ticks", advice)


class Clock(unittest.TestCase):
    def test_what_drifts_waits_for_none(self):
        """Loops that do one thing after the other, of even and of uneven lengths."""
        for spread in (0.005, 0.05, 0.5):
            draw, now, begins, ends = random.Random(spread), 0.0, [], []
            for _ in range(100):
                begins.append(now + 1e6 * draw.gauss(1, 0.02))
                ends.append(begins[-1] + 3e5 * max(0.1, draw.gauss(1, spread)))
                now = ends[-1]
            self.assertIsNone(ticks.period_of(begins, ends), spread)

    def test_work_behind_a_clock(self):
        """It begins by the clock, and does not wait for it."""
        draw = random.Random(8)
        begins = [1e6 * n + draw.uniform(0, 1e4) for n in range(100)]
        self.assertIsNone(ticks.period_of(begins, [begin + draw.uniform(1e5, 2e5) for begin in begins]))

    def test_skipped(self):
        draw = random.Random(2)
        numbers = [n for n in range(150) if draw.random() < 0.6]
        ends = [1e6 * n + draw.uniform(0, 1e4) for n in numbers]
        period = ticks.period_of([end - draw.uniform(1e4, 9e5) for end in ends], ends)
        self.assertAlmostEqual(period, 1e6, delta=1e3)

    def test_what_a_period_may_be(self):
        """A camera of 3 ms of which each second image is taken may seem to be a clock of 2 ms."""
        self.assertIn(3000, requests.may_be(2000, 1900))
        self.assertEqual(requests.may_be(2000, 2500), [3000, 6000])
        self.assertEqual(requests.may_be(2000, 7000), [2000])


class Ticking(Driver):
    """A driver that looks whether a job is done at each tick of a clock, and sees it some us behind."""

    def __init__(self, device=560, prepare=200, tick=1000, images=100):
        self.lines, self.latencies, now, draw = [], [], 5000.0, random.Random(3)
        for n in range(images):
            begin = now
            submit = begin + round(prepare * draw.uniform(0.95, 1.05))
            end = submit + 10 + round(device * draw.uniform(0.97, 1.03))
            noticed = -(-end // tick) * tick + draw.randint(6, 14)
            self.span(1, "prepare", begin, submit)
            self.span(1, "Submit", submit, submit + 5)
            self.span(1, "wait", submit + 5, noticed, kind="wait")
            self.span(3, "kernel", submit + 10, end, stamp="device", pe_index=0, execution_index=n,
                      error_ns=100)
            self.arrow(n, submit, submit + 10)
            now = noticed + round(80 * draw.uniform(0.95, 1.05))
            self.span(1, "Inference", begin, now, kind="inference")
            self.latencies.append(now - begin)
            now += 2


class Looks(unittest.TestCase):
    def test_waits_end_by_a_clock(self):
        """A faster device or host may be seen at the same tick, at an earlier one, or at once."""
        for tick in (250, 1000):
            before = Ticking(tick=tick)
            found = replay.of(before.facts())
            self.assertAlmostEqual(found.tick / 1_000_000, 1, delta=0.01)
            for change, changed in ((("device", None, HALF), {"device": 280}),
                                    (("operator", "kernel", HALF), {"device": 280}),
                                    (("host", "prepare", HALF), {"prepare": 100})):
                effect = found.effect(change)
                low, high = map(float, effect.inference)
                truth = 100 - 100 * median(Ticking(tick=tick, **changed).latencies) / median(before.latencies)
                self.assertTrue(low - 0.5 <= truth <= high + 0.5, (tick, change, low, high, truth))
                self.assertIn(effects.POLL, effect.assumed)
                self.assertNotEqual(confidence.of_gain(found, effect, "latency"), "sure")

    def test_waits_end_by_the_job(self):
        """The same driver with interrupts has no clock, nor has one whose frames come by it."""
        self.assertIsNone(replay.of(Ticking(tick=1).facts()).tick)
        self.assertIsNone(replay.of(Camera().facts()).tick)


class Doorbell(Driver):
    """A submission of 200 us; the device hears of the job at that part of it. said: the span states when."""

    def __init__(self, submit=200, part=1.0, said=False, images=60):
        self.lines, self.latencies, now, draw = [], [], 5000.0, random.Random(4)
        for n in range(images):
            begin, called = now, now + draw.randint(60, 140)
            door, done = called + round(part * submit), called + submit
            end = door + 5 + draw.randint(540, 580)
            noticed = end + draw.randint(18, 22)
            self.span(1, "Submit", called, done, **({"doorbell_ns": round(1000 * door)} if said else {}))
            self.span(1, "wait", done, noticed, kind="wait")
            self.span(3, "kernel", door + 5, end, stamp="device", pe_index=0, execution_index=n, error_ns=100)
            self.arrow(n, called, door + 5)
            now = noticed + draw.randint(40, 60)
            self.span(1, "Inference", begin, now, kind="inference")
            self.latencies.append(now - begin)
            now += draw.randint(1, 9)


class Submissions(unittest.TestCase):
    def test_doorbell(self):
        """Where in its submission a job reaches the device is not known, unless the span states it."""
        for part in (0, 0.5, 1):
            for said in (False, True):
                before, after = (Doorbell(us, part, said) for us in (200, 100))
                truth = 100 - 100 * median(after.latencies) / median(before.latencies)
                found = replay.of(before.facts())
                effect = found.effect(("host", "Submit", HALF))
                low, high = map(float, effect.inference)
                self.assertTrue(low - 0.3 <= truth <= high + 0.3, (part, said, low, high, truth))
                self.assertEqual(effects.DOOR in effect.assumed, not said, (part, said))
                self.assertTrue(high - low < 0.1 or not said, (part, said, low, high))
        why, advice = first_screen.why_open(before.facts(), {effects.DOOR})
        self.assertIn("doorbell_ns", advice)


if __name__ == "__main__":
    unittest.main()
