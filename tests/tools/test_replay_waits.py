# test: time=60 - replay: what a wait may be for, drawn by hand: no gain is sure that the trace does not show
# SPDX-License-Identifier: MIT
import json
import unittest
from fractions import Fraction

import helpers
import npuprof
from npuprof.analysis import effects, replay
from npuprof.analysis.facts import Facts

HALF = Fraction(1, 2)


class Hand(unittest.TestCase):
    """Draws a trace: thread 1 submits, thread 2 is another one, 3 and 4 are the PEs. Times in us."""

    def setUp(self):
        self.lines = []

    def span(self, tid, name, start, end, **args):
        self.lines.append({"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": tid, "ts": start,
                           "dur": end - start, "args": args})

    def arrow(self, name, number, from_tid, from_us, tid, us):
        self.lines.append({"ph": "s", "name": name, "id": number, "pid": 1, "tid": from_tid, "ts": from_us})
        self.lines.append({"ph": "f", "name": name, "id": number, "pid": 1, "tid": tid, "ts": us, "bp": "e"})

    def job(self, number, submit, pe, start, end, thread=1):
        self.span(thread, "Submit", submit, submit + 1)
        args = {"stamp": "device", "pe_index": pe, "execution_index": number}
        self.span(3 + pe, "kernel", start, end, **args)
        self.arrow("submit", number, thread, submit, 3 + pe, start)

    def replay(self):
        names = {1: "worker", 2: "client", 3: "npu PE 0", 4: "npu PE 1"}
        metadata = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
                    for tid, name in names.items()]
        self.lines.sort(key=lambda e: (e["tid"], e["ts"], -e.get("dur", 0)))
        # Why: a reader needs the begin of an arrow before its end.
        self.lines.sort(key=lambda e: e["ph"] == "f")
        about = {"version": "0.1.0", "start_unix_ns": 1, "threads": 2, "pid": 1, "devices": []}
        path = helpers.scratch() / "hand.json"
        path.write_text(json.dumps({"traceEvents": metadata + self.lines, "metadata": {"npuprof": about}}))
        return replay.of(Facts(npuprof.load(path)))


class Waits(Hand):
    def test_one_wait_for_a_batch(self):
        """Who waits for the last of three jobs of a queue waits for those that end in this wait, too. Which
        ended before it began: there may have been another wait, and nobody knows."""
        for begin in 603, 650, 709:
            self.lines = []
            for n in range(12):
                at = 914 * n
                self.span(1, "Prepare", at, at + 600)
                for k in range(3):
                    self.job(3 * n + k, at + 600 + k, 0, at + 610 + 100 * k, at + 708 + 100 * k)
                self.span(1, "Clean up", at + 603, at + begin)
                self.span(1, "Wait", at + begin, at + 914, kind="wait")
            effect = self.replay().effect(("device", None, HALF))
            self.assertEqual(bool(effect.assumed & {replay.JOB, replay.ORDER}), begin == 709, effect)

    def test_a_wait_that_began_behind_the_end(self):
        """An interrupt comes 40 behind a job's end. A wait from 5 to 40 behind it waits for it or works."""
        at = then = 0
        for n in range(40):
            length = 100 if n % 2 else 50
            self.job(n, at, 0, at + 5, at + 5 + length)
            self.span(1, "Work", at + 1, at + 60)
            self.span(1, "Wait", at + 60, at + 45 + length, kind="wait")
            at, then = at + 45 + length, then + 45 + length / 2
        low, high = self.replay().effect(("device", None, HALF)).window
        self.assertTrue(20 < low < 22 and 100 * (at - then) / at < high + 1, (low, high))

    def test_more_pes_where_nothing_is_known_to_wait(self):
        """Two jobs of one PE, and a span that may be the wait for both. With a second PE they may run at
        once, and who does not know what waits does not know that this brings nothing."""
        for n in range(40):
            at = 220 * n
            for k in range(2):
                self.job(2 * n + k, at + 2 * k, 0, at + 5 + 100 * k, at + 104 + 100 * k)
            self.span(1, "ioctl", at + 4, at + 210)
        found = self.replay()
        for change in ("pes", None, 1), ("depth", None, 4):
            effect = found.effect(change)
            self.assertIn(effects.JOB, effect.assumed, change)
            # Of 220 the last 100 are saved at most.
            self.assertGreater(effect.window[1], 45, change)

    def test_woken_by_another_thread(self):
        """A thread works one inference ahead; another one hears of the ends and wakes it. When that one was
        woken nobody says, so it may be as soon as the jobs are done."""
        for n in range(40):
            at = 300 * n
            self.job(n, at, 0, max(at + 5, 300 * n), at + 290)
            self.span(1, "Inference", at, at + 300, kind="inference")
            if n:
                self.span(1, "Wait", at + 2, at + 10, kind="wait")
                self.span(2, "Complete", at + 4, at + 7)
                self.arrow("wake", 1000 + n, 2, at + 6, 1, at + 10)
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.JOB, effect.assumed)
        self.assertGreaterEqual(effect.window[1], 45)

    def test_a_sender_that_waits(self):
        """One thread brings what another one works on, and waits where its queue is full. So a faster device
        brings more than the requests' arrows tell."""
        for n in range(40):
            at = 300 * n
            self.span(2, "Decode", at + 10, at + 60)
            self.span(2, "Queue put", at + 60, at + 300)
            self.arrow("request", 1000 + n, 2, at + 299, 1, at + 302)
            self.span(1, "Queue get", at + 301, at + 303)
            self.job(n, at + 303, 0, at + 310, at + 560)
            self.span(1, "Wait", at + 305, at + 590, kind="wait")
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.JOB, effect.assumed)
        self.assertGreaterEqual(effect.window[1], 40)

    def test_a_nap_longer_than_the_job(self):
        """A thread sleeps 1000 and looks then: jobs of 400 to 432 are all seen at the first look, so one of
        200 may be seen no sooner. Nothing says that it does not look each 500, either."""
        at = 0
        for n in range(40):
            length = 400 + 8 * (n * 7 % 5)
            self.job(n, at, 0, at + 5, at + 5 + length)
            self.span(1, "Wait", at + 2, at + 1002 + n % 3, kind="wait")
            at += 1100 + 37 * (n * n % 11)
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.POLL, effect.assumed)
        self.assertTrue(effect.window[0] < 1 and effect.window[1] > 30, effect.window)

    def test_a_sender_that_waits_in_no_span(self):
        """As above, but nothing is drawn around the wait: its end comes at once behind what the other thread
        does when it takes the next one, and the arrow leaves then."""
        for n in range(40):
            at = 300 * n
            self.span(2, "Decode", at + 10, at + 60)
            self.arrow("request", 1000 + n, 2, at + 309, 1, at + 602)
            self.span(1, "Prepare", at + 303, at + 310)
            self.job(n, at + 310, 0, at + 320, at + 580)
            self.span(1, "Wait", at + 312, at + 590, kind="wait")
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.JOB, effect.assumed)
        self.assertTrue(effect.window[0] < 41 < effect.window[1] + 3, effect.window)

    def test_a_nap_behind_jobs_alike(self):
        """As the nap above, and the jobs take 400 to 404: the waits end 1000 behind their begin to the us,
        which none does that an interrupt ends 596 to 600 behind its job."""
        at = 0
        for n in range(40):
            self.job(n, at, 0, at + 5, at + 405 + n * 7 % 5)
            self.span(1, "Wait", at + 2, at + 1002, kind="wait")
            at += 1100 + 37 * (n * n % 11)
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.POLL, effect.assumed)
        self.assertLess(effect.window[0], 1)

    def test_looks_by_a_clock(self):
        """A thread looks at each full ms. What it does before that, 300 of 1000, brings nothing if it takes
        half: the end is seen at the same tick."""
        for n in range(40):
            at, length = 1000 * n + n % 3, 100 + 100 * (n * 7 % 5)
            tick = 1000 * (n + 1) + (n + 1) % 3
            self.span(1, "Inference", at, tick, kind="inference")
            self.span(1, "Prepare", at, at + 300)
            self.job(n, at + 301, 0, at + 305, at + 305 + length)
            self.span(1, "Wait", at + 303, tick, kind="wait")
        effect = self.replay().effect(("host", "Prepare", HALF))
        self.assertIn(effects.POLL, effect.assumed)
        self.assertTrue(effect.inference[0] <= 0 and effect.window[0] <= 0, effect)

    def test_a_timer(self):
        """Frames may come each 2000, and one takes 2220: each second one is taken. A device twice as
        fast may bring half of the time; one that takes half longer may lose a whole frame."""
        for length, change, low, high in (1900, HALF, 0, 49), (3400, Fraction(3, 2), -49, -36):
            self.lines = []
            for n in range(60):
                at = 4000 * n + n * 7 % 5
                end = at + 300 + length + n * 3 % 7
                self.span(1, "Prepare", at, at + 290)
                self.job(n, at + 290, 0, at + 300, end)
                self.span(1, "Wait", at + 292, end + 20, kind="wait")
                self.span(1, "Sleep", end + 20, 4000 * (n + 1) + (n + 1) * 7 % 5)
            effect = self.replay().effect(("device", None, change))
            self.assertIn(effects.TICK, effect.assumed)
            self.assertTrue(effect.window[0] < low + 1 and high - 1 < effect.window[1], effect.window)

    def test_waits_that_work(self):
        """Three jobs, and each wait ends with the unpacking of a result, 80: a faster device has all done
        before the second wait, and each unpacks all the same."""
        at = 0
        for n in range(40):
            for k in range(3):
                self.job(3 * n + k, at + 2 * k, 0, at + 10 + 100 * k, at + 109 + 100 * k)
            for k in range(3):
                self.span(1, "Wait", at + (6, 190, 290)[k], at + 190 + 100 * k, kind="wait")
            at += 390
        effect = self.replay().effect(("device", None, HALF))
        # 10, 50 of the first job, 80 each.
        truth = 100 * (1 - (10 + 50 + 3 * 80) / 390)
        self.assertTrue(effect.window[0] - 1 < truth < effect.window[1], (effect.window, truth))

    def test_a_queue_that_was_hardly_ever_empty(self):
        """A thread waits for a few of its requests, 2 % of the time. The others came by the time they were
        taken, and nobody says how long before that."""
        at = 0
        for n in range(100):
            wait = 60 if n % 12 == 5 else 0.4
            self.span(1, "Queue get", at, at + wait)
            self.job(n, at + wait + 1, 0, at + wait + 10, at + wait + 360)
            self.span(1, "Wait", at + wait + 3, at + wait + 370, kind="wait")
            at += wait + 371
        effect = self.replay().effect(("device", None, HALF))
        self.assertIn(effects.REQUEST, effect.assumed)
        self.assertTrue(effect.window[0] < 2 and effect.window[1] > 40, effect.window)

    def test_a_clock_behind_a_wake_up(self):
        """A thread that another one wakes, and then waits for the next ms in no span. 600 to 850 of it
        are work: a device that takes half longer is late for it."""
        for n in range(60):
            at, end = 1000 * n + n * 7 % 5, 1000 * n + 600 + 40 * (n * 3 % 7)
            self.job(n, at, 0, at + 10, end)
            self.span(1, "Wait", at + 2, end + 12, kind="wait")
            self.span(2, "Complete", end + 4, end + 10)
            self.arrow("wake", 1000 + n, 2, end + 9, 1, end + 12)
        effect = self.replay().effect(("device", None, Fraction(3, 2)))
        self.assertIn(effects.TICK, effect.assumed)
        self.assertLess(effect.window[0], -60)

    def test_a_full_queue_that_soon_has_room(self):
        """One thread prepares 100 of 300 and waits in no span until the other one takes the next, 20 to 120:
        that is a wait where it is short, too, so less to prepare brings nothing."""
        for n in range(60):
            at, more = 300 * n, 20 * (n * 7 % 6)
            self.span(2, "Decode", at + 10, at + 270 - more)
            self.arrow("request", 1000 + n, 2, at + 309, 1, at + 602)
            self.span(1, "Prepare", at + 303, at + 310)
            self.job(n, at + 310, 0, at + 320, at + 580)
            self.span(1, "Wait", at + 312, at + 590, kind="wait")
        found = self.replay()
        waits = [one for one in found.points.handed.values()]
        self.assertGreater(len(waits), 55)
        self.assertLess(found.effect(("host", "Decode", HALF)).window[0], 3)

    def test_a_lane_that_stops_another_one(self):
        """Urgent jobs come each 700, and what runs then takes as much longer. Lanes beside each other look
        the same but for that, and their jobs run beside each other in part, too."""
        for stops in True, False:
            self.lines, at, urgent = [], 0, 0
            for n in range(60):
                self.span(1, "Prepare", at, at + 60 + n * 7 % 40)
                begin = at + 70 + n * 7 % 40
                end = begin + 400 + 10 * (n * 3 % 7)
                while 700 * urgent + 300 < end:
                    comes = 700 * urgent + 300 if not stops else max(700 * urgent + 300, begin + 20)
                    self.job(1000 + urgent, comes - 10, 1, comes, comes + 90, 2)
                    self.span(2, "Wait", comes - 8, comes + 95, kind="wait")
                    end, urgent = end + 90 * stops, urgent + 1
                self.job(n, begin - 10, 0, begin, end)
                self.span(1, "Wait", begin - 8, end + 10, kind="wait")
                at = end + 12
            effect = self.replay().effect(("device", None, Fraction(3, 2)))
            self.assertEqual(effects.PREEMPT in effect.assumed, stops)
            self.assertTrue(not stops or effect.window[0] <= -49, effect.window)

    def test_a_job_that_a_timeout_ended(self):
        """Each tenth job hangs; its thread waits 900, resets the device, and goes on. A device half as fast
        takes no longer for those."""
        at = then = 0
        for n in range(60):
            length = 1000 if n % 10 == 4 else 300 + n * 7 % 5
            self.job(n, at, 0, at + 10, at + length)
            self.span(1, "Wait", at + 2, at + (900 if length == 1000 else length + 10), kind="wait")
            if length == 1000:
                self.span(1, "Reset", at + 900, at + 1001)
            at, then = at + length + 12, then + length + 12 + (length - 10) * (length < 1000)
        effect = self.replay().effect(("device", None, Fraction(2)))
        self.assertIn(effects.KILL, effect.assumed)
        truth = 100 * (1 - then / at)
        self.assertTrue(effect.window[0] < truth < effect.window[1] + 1, (effect.window, truth))
