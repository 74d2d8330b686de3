# test: time=20 - several queues: waits are those of their own one, and who waits for another one
# SPDX-License-Identifier: MIT
import random
import unittest
from fractions import Fraction
from statistics import median

from npuprof.analysis import effects, replay, verdict
from npuprof.report import first_screen
from test_stretches import Driver

HALF = Fraction(1, 2)


class Prefetch(Driver):
    """The next input is uploaded while this one is computed; the thread waits for each upload and each
    computation, by spans of two names."""

    names = (1, "worker"), (3, "dma PE 0"), (4, "npu PE 0")

    def __init__(self, upload=1600, net=2000, count=90):
        self.lines, self.latencies = [], []
        self.draw, self.free, self.number, now = random.Random(4), {3: 0.0, 4: 0.0}, {3: 0, 4: 0}, 1000.0
        uploaded, now = self.job(3, "upload", now, upload)
        for _ in range(count):
            begin = now
            following, now = self.job(3, "upload", now, upload)
            now = self.marked("wait upload", now, uploaded)
            computed, now = self.job(4, "net", now, net)
            now = self.marked("wait net", now, computed) + 50
            self.span(1, "Inference", begin, now, kind="inference")
            self.latencies.append(now - begin)
            uploaded, now = following, now + 1
        self.marked("wait upload", now, uploaded)

    def job(self, tid, name, now, us, thread=1):
        """(its end, the end of its submission)"""
        start = max(now, self.free[tid]) + 15
        end = self.free[tid] = start + us * self.draw.uniform(0.95, 1.05)
        self.span(thread, "Submit", now, now + 4)
        self.span(tid, name, start, end, stamp="device", pe_index=0, execution_index=self.number[tid],
                  error_ns=100)
        self.number[tid] += 1
        self.arrow(1000 * tid + self.number[tid], now, start, from_tid=thread, to_tid=tid)
        return end, now + 5

    def marked(self, name, now, end):
        until = max(now + 1, end + self.draw.uniform(20, 40))
        self.span(1, name, now, until, kind="wait")
        return until


class Turns(Prefetch):
    """Two threads have a lane each of one device that does one job at a time, the oldest first."""

    names = (1, "worker"), (2, "other"), (3, "npu PE 0"), (4, "npu PE 1")

    def __init__(self, device=2000, count=60):
        self.lines, self.draw = [], random.Random(3)
        self.free, self.number, ready = {3: 0.0, 4: 0.0}, {3: 0, 4: 0}, [1000.0, 1700.0]
        for _ in range(2 * count):
            tid = 1 if ready[0] <= ready[1] else 2
            begin = ready[tid - 1]
            lane = tid + 2
            self.free[lane] = max(self.free.values())
            end, now = self.job(lane, "net", begin, device, tid)
            until = end + self.draw.uniform(20, 40)
            self.span(tid, "ioctl", now, until, kind="wait")
            self.span(tid, "Inference", begin, until + 100, kind="inference")
            ready[tid - 1] = until + 100 + self.draw.uniform(200, 1500)


class Apart(Prefetch):
    """Two devices, one after the other. Each takes its own time to start, and another one until the thread
    notices its end, us. Of a tenth of the inferences they are shorter."""

    names = (1, "worker"), (3, "npu PE 0"), (4, "dsp PE 0")

    def __init__(self, starts=(5, 300), notices=(20, 20), cut=(1, 1), fastest=0.9, count=40, rest=1):
        self.lines, self.latencies, self.number, now = [], [], {3: 0, 4: 0}, 1000.0
        draw = random.Random(6)
        for n in range(count):
            begin, now, best = now, now + draw.uniform(60, 140), fastest if n % 10 == 0 else 1
            for device, tid in enumerate((3, 4)):
                start = now + 4 + starts[device] * min(best, cut[0])
                end, submit, self.number[tid] = start + 300, now, self.number[tid] + 1
                self.span(1, "Submit", submit, now := now + 4)
                self.span(tid, "net", start, end, stamp="device", pe_index=0, error_ns=100,
                          execution_index=self.number[tid])
                self.arrow(1000 * tid + self.number[tid], submit, start, to_tid=tid)
                until = end + notices[device] * min(best, cut[1])
                self.span(1, f"wait {tid}", now, until, kind="wait")
                now = until
            self.span(1, "Inference", begin, now := now + 50, kind="inference")
            self.latencies.append(now - begin)
            now += rest


class Fenced(Prefetch):
    """Both jobs are submitted at once. That of the second device starts 5 us behind the end of the first one,
    or so many us behind its submission; the thread waits for the second one, or for both."""

    names = (1, "worker"), (3, "npu PE 0"), (4, "dsp PE 0")

    def __init__(self, first=560, second=250, start=None, both=False, dep=False, count=80):
        self.lines, self.latencies, now, draw = [], [], 1000.0, random.Random(8)
        for n in range(count):
            begin, now = now, now + draw.randint(60, 140)
            took = [round(us * draw.uniform(0.97, 1.03)) for us in (first, second)]
            late = 5 if start is None else round(start * draw.uniform(0.97, 1.03))
            ends = [now + 5 + took[0]]
            ends.append((ends[0] if start is None else now + 5) + late + took[1])
            for tid, us, end in zip((3, 4), took, ends):
                self.span(1, "Submit", now, now + 4)
                self.span(tid, "net" if tid == 3 else "nms", end - us, end, stamp="device", pe_index=0,
                          error_ns=100, execution_index=n)
                self.arrow(1000 * tid + n, now, end - us, to_tid=tid)
                now += 5
            if dep:
                self.arrow(9000 + n, ends[0] - took[0], ends[1] - took[1], "dep", 3, 4)
            for end in ends if both else ends[1:]:
                until = max(now + 1, end + 20)
                self.span(1, "wait", now, until, kind="wait")
                now = until
            self.span(1, "Inference", begin, now := now + 50, kind="inference")
            self.latencies.append(now - begin)
            now += draw.randint(1, 3)


class Rests(unittest.TestCase):
    def test_two_devices(self):
        """Idle times of two devices are no more than the time that both have."""
        facts = Apart(rest=20000).facts()
        self.assertTrue(90 < facts.headline["largest_idle_pct"] <= 100, facts.headline)
        (found,) = [one for one in verdict.judge(facts).every() if one.rule.name == "no_demand"]
        self.assertIn("each of the 2 devices had nothing to do for ", found.sentence)
        share = float(found.sentence.split(" % of the window")[0].split()[-1])
        self.assertTrue(90 < share <= 100, found.sentence)


class Fences(unittest.TestCase):
    def told(self, change, changed, **options):
        before, after = Fenced(**options), Fenced(**options, **changed)
        middle = [median(one.latencies) for one in (before, after)]
        effect = replay.of(before.facts()).effect(change)
        return effect, *map(float, effect.inference), 100 - 100 * middle[1] / middle[0]

    def test_holds_both(self):
        """Nothing says that the second device waits for the first one, and nothing that it does not."""
        for both in (False, True):
            for change, changed in ((("operator", "net", HALF), {"first": 280}),
                                    (("device", None, HALF), {"first": 280, "second": 125})):
                effect, low, high, truth = self.told(change, changed, both=both)
                self.assertTrue(low - 0.2 <= truth <= high + 0.2, (both, change, low, high, truth))
                self.assertIn(effects.FENCE, effect.assumed)
            facts = Fenced(both=both).facts()
            slow = [one for one in verdict.judge(facts).every() if one.rule.name == "slow_dispatch"]
            self.assertEqual(slow, [])
        why, advice = first_screen.why_open(facts, effect.assumed)
        self.assertIn("another device", why)
        self.assertIn("dep", advice)

    def test_slow_start(self):
        """A start that takes as long as the other device, and is as late as ever, is none of its end; nor is
        one that ends far behind it. An arrow says that there is no other reading."""
        for options in ({"start": 300, "both": True}, {"start": 900}, {"dep": True}):
            effect, low, high, truth = self.told(("operator", "net", HALF), {"first": 280}, **options)
            self.assertFalse(effect.assumed, options)
            self.assertTrue(low - 1.3 <= truth <= high + 1.3, (options, low, high, truth))


class Starts(unittest.TestCase):
    def test_other_device(self):
        """One device starts in 5 us, the other one in 300, and so it is with notices: to start and to be
        noticed as soon as its own fastest is all that each may bring."""
        for what, options in (("dispatch", {}), ("notice", {"starts": (5, 5), "notices": (5, 300)})):
            before = Apart(**options)
            after = Apart(**options, cut=(0.9, 1) if what == "dispatch" else (1, 0.9))
            truth = 100 - 100 * sum(after.latencies) / sum(before.latencies)
            facts, gains = before.facts(), {}
            for name in (None, "npu", "dsp"):
                effect = replay.of(facts).effect((what, name, None))
                gains[name] = tuple(map(float, effect.inference))
            self.assertLess(gains["npu"][1], 0.3, what)
            self.assertAlmostEqual(gains["dsp"][0], truth, delta=0.4)
            self.assertAlmostEqual(gains[None][0], truth, delta=0.4)
            self.assertLess(gains[None][1], truth + 0.4)

    def test_names(self):
        """What is said of one of several devices has its name, and one change is told once."""
        facts = Apart(fastest=0.5).facts()
        found = list(verdict.judge(facts).every())
        serial = [one for one in found if one.rule.name == "serial_submit"]
        self.assertEqual([one.subject for one in serial], ["npu and dsp"])
        starts = [one for one in found if one.rule.name == "slow_dispatch"]
        self.assertEqual([(one.subject, one.change) for one in starts], [("dsp", ("dispatch", "dsp", None))])
        self.assertIn("to start on dsp", starts[0].sentence)

    def test_lanes_in_turns(self):
        """What a job waits for while another lane works may be that one, and no slow start."""
        effect = replay.of(Turns().facts()).effect(("dispatch", None, None))
        self.assertEqual((effect.assumed, effect.inference[0] < 2), ({effects.START}, True), effect)
        self.assertGreater(effect.inference[1], 10)
        why, advice = first_screen.why_open(Turns().facts(), effect.assumed)
        self.assertIn("while another lane of its device works", why)
        self.assertIn("one lane", advice)


class Waits(unittest.TestCase):
    def test_own_queue(self):
        """Uploads that hide behind the computation, that nearly do, and that do not. Waits for the first ones
        are over at once: whether the thread waited before them is not known."""
        for upload, wide in ((400, 30), (1600, 5), (3000, 5)):
            for name in ("upload", "net"):
                before, change = Prefetch(upload), ("operator", name, HALF)
                after = Prefetch(**{"upload": upload} | {name: {"upload": upload / 2, "net": 1000}[name]})
                middle = [sorted(one.latencies)[45] for one in (before, after)]
                low, high = map(float, replay.of(before.facts()).effect(change).inference)
                truth = 100 - 100 * middle[1] / middle[0]
                self.assertTrue(low - 0.7 <= truth <= high + 0.7 and high - low < wide,
                                (upload, name, low, high, truth))

    def test_pairs(self):
        facts = Prefetch().facts()
        jobs, trace = facts.jobs, facts.trace
        for k, row in enumerate(jobs.wait):
            self.assertEqual(trace.text(row), f"wait {trace.text(jobs.row[k])}", k)


if __name__ == "__main__":
    unittest.main()
