# test: time=60 - drivers that do not say where they wait: gains hold what the changed driver really does
# SPDX-License-Identifier: MIT
import json
import random
import unittest
from fractions import Fraction

import fleet_traces
import helpers
import npuprof
from npuprof.analysis import replay
from npuprof.analysis.facts import Facts
from npuprof.analysis.verdict import judge
from npuprof.report import screen
from npuprof.report.page.replay import sliders

N = 120


class Driver:
    """One thread, one device. style: how the wait is written; work: us that the thread works between the
    submission and its wait; hidden: the wait is only that work; between: a span between two inferences."""

    names, threads = ((1, "worker"), (2, "irq"), (3, "npu PE 0")), 2

    def __init__(self, style, device=4000, work=0, hidden=False, between=None, faster=1.0):
        self.lines, self.style, self.latencies = [], style, []
        draw, now = random.Random(7), 1000.0
        for n in range(N):
            begin = now
            submit = begin + draw.uniform(280, 320)
            start = submit + 20
            end = start + device * draw.uniform(0.95, 1.05) * faster
            worked = submit + 10 + work * draw.uniform(0.98, 1.02)
            noticed = worked if hidden else max(end, worked) + draw.uniform(20, 40)
            done = noticed + 100
            self.span(1, "Inference", begin, done, kind="inference")
            self.span(1, "prepare", begin, submit)
            self.wait(submit, noticed)
            self.span(1, "finish", noticed, done)
            self.span(3, "kernel", start, end, stamp="device", pe_index=0, execution_index=n, error_ns=200)
            self.arrow(n, submit, start)
            self.latencies.append(done - begin)
            now = done + 5
            if between:
                self.span(1, between, done + 1, done + 2000)
                now = done + 2001

    def span(self, tid, name, start, end, **args):
        self.lines.append({"ph": "X", "name": name, "cat": "c", "pid": 1, "tid": tid, "ts": round(start, 3),
                           "dur": round(end - start, 3), "args": args})

    def arrow(self, number, from_us, to_us, name="submit", from_tid=1, to_tid=3):
        for phase, tid, us in (("s", from_tid, from_us), ("f", to_tid, to_us)):
            self.lines.append({"ph": phase, "name": name, "cat": name, "id": number, "pid": 1, "tid": tid,
                               "ts": round(us, 3), "bp": "e"})

    def wait(self, submit, noticed):
        if self.style == "in the block":
            self.span(1, "Submit", submit, noticed)
            return
        self.span(1, "Submit", submit, submit + 10)
        if self.style != "no span":
            args = {"kind": "wait"} if self.style == "marked" else {}
            self.span(1, "ioctl" if self.style == "marked" else self.style, submit + 10, noticed, **args)

    def facts(self, **more):
        names = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": name}}
                 for tid, name in self.names]
        self.lines.sort(key=lambda e: (e["tid"], e["ts"], -e.get("dur", 0)))
        self.lines.sort(key=lambda e: e["ph"] == "f")
        about = {"version": "0.1.0", "start_unix_ns": 1, "threads": self.threads, "pid": 1, "devices": [],
                 "lost": {}}
        path = helpers.scratch() / "driver.json"
        path.write_text(json.dumps({"traceEvents": names + self.lines, "metadata": {"npuprof": about}}))
        return Facts(npuprof.load(path), **more)

    def median(self):
        ordered = sorted(self.latencies)
        return (ordered[(N - 1) // 2] + ordered[N // 2]) / 2


def gains(style, faster=0.5, **options):
    """(low, high) that replay says, and what the same driver does with that device, in percent."""
    before, after = Driver(style, **options), Driver(style, faster=faster, **options)
    effect = replay.of(before.facts()).effect(("device", None, Fraction(faster)))
    return *map(float, effect.inference), 100 - 100 * after.median() / before.median()


UNKNOWN = "no span", "ioctl", "in the block", "drain_queue", "Wait", "block_until_ready"


class Blocking(unittest.TestCase):
    def test_styles(self):
        """Nothing says that they wait: from nothing at all to all that a wait would bring."""
        for style in UNKNOWN:
            low, high, truth = gains(style)
            self.assertLess(low, 0.1, style)
            self.assertTrue(44 < truth <= high + 0.2 < 47, (style, high, truth))

    def test_marked(self):
        low, high, truth = gains("marked")
        # Why not one number: threads may be woken as soon as they ever were, 20 us behind the end.
        self.assertTrue(0.1 < high - low < 0.5, (low, high))
        self.assertAlmostEqual(low, truth, delta=0.2)

    def test_nothing_to_change(self):
        """A trace without transfers: that they are faster brings nothing, whatever the thread does."""
        for style in ("marked", *UNKNOWN):
            effect = replay.of(Driver(style).facts()).effect(("load", None, Fraction(0)))
            self.assertEqual((effect.inference, effect.window, effect.assumed), ((0, 0), (0, 0), frozenset()))

    def test_named_by_the_user(self):
        facts = Driver("ioctl").facts(wait=["ioctl"])
        effect = replay.of(facts).effect(("device", None, Fraction(0.5)))
        self.assertFalse(effect.assumed)
        self.assertGreater(effect.inference[0], 44)

    def test_work_as_long_as_the_device(self):
        """Work that ends behind the device in each job looks like a wait; a faster device brings nothing."""
        for options in ({"work": 4600, "hidden": True}, {"work": 4600}, {"work": 3000}, {"work": 1500}):
            for style in UNKNOWN:
                low, high, truth = gains(style, **options)
                self.assertTrue(low - 0.1 <= truth <= high + 0.2, (style, options, low, high, truth))

    def test_slower_device(self):
        for style in UNKNOWN:
            low, high, truth = gains(style, faster=1.5)
            self.assertTrue(low - 0.2 <= truth <= high, (style, low, high, truth))

    def test_looks(self):
        """A thread that looks at a register again and again: all the looks may be one wait."""
        for name, every in (("poll", 500), ("look", 500), ("look", 1500)):
            facts = []
            for faster in (1.0, 0.5):
                driver = Driver("no span", faster=faster)
                ends = iter([e["ts"] for e in driver.lines if e["name"] == "finish"])
                for line in [e for e in driver.lines if e["name"] == "Submit"]:
                    at, end = line["ts"] + 20, next(ends)
                    while at < end:
                        driver.span(1, name, at, min(at + 5, end))
                        at += every
                facts.append((driver.facts(), driver.median()))
            effect = replay.of(facts[0][0]).effect(("device", None, Fraction(1, 2)))
            truth = 100 - 100 * facts[1][1] / facts[0][1]
            self.assertTrue(effect.inference[0] - 0.1 <= truth <= effect.inference[1] + 0.5, (name, effect))

    def test_another_thread_wakes_it(self):
        """An arrow from a thread that waited for the device, and does not say so."""
        for style, name in (("cond_wait", "cond_wait"), ("marked", "ioctl")):
            driver = Driver(style)
            for number, line in enumerate([e for e in driver.lines if e["name"] == name], 1000):
                done = line["ts"] + line["dur"]
                driver.span(2, "irq", done - 15, done - 5)
                driver.arrow(number, done - 8, done, "wake", 2, 1)
            effect = replay.of(driver.facts()).effect(("device", None, Fraction(1, 2)))
            self.assertTrue(effect.inference[0] < 0.1 and effect.inference[1] > 44, (style, effect))

    def test_questions(self):
        """What hangs on an unknown wait is the question what a faster device brings; where the wait is
        marked, operators are findings."""
        text = fleet_traces.trace(1, 200)[0]
        path = helpers.scratch() / "decides.json"
        for marked in (True, False):
            path.write_text(text if marked else text.replace(',"args":{"kind":"wait"}', ""))
            verdict = judge(Facts(npuprof.load(path)))
            told = [[f.subject for f in some if f.rule.name == "hot_operator"]
                    for some in (verdict.findings, verdict.questions)]
            self.assertEqual(told, [["conv", "dense", "pool"] if marked else [], []])
            self.assertEqual(verdict.is_open, not marked)

    def test_inferences_elsewhere(self):
        """The inferences are spans of a thread that submits nothing: no gain is told."""
        driver = Driver("ioctl")
        for line in driver.lines:
            line["tid"] = 2 if line["name"] == "Inference" else line["tid"]
        facts = driver.facts()
        self.assertIn("120 of 120 executions are submitted outside", replay.of(facts).why)
        self.assertIn("No finding, but no gain can be told", " ".join(screen.lines(judge(facts))))

    def test_sliders(self):
        """The page's sliders are of waiting, and say it where nobody knows."""
        for style in ("marked", *UNKNOWN):
            self.assertEqual(bool(sliders(Driver(style).facts())["assumed"]), style != "marked", style)

    def test_words(self):
        """The screen never says that nothing would help, nor that something surely does."""
        for style in UNKNOWN:
            verdict = judge(Driver(style).facts())
            text = " ".join(" ".join(screen.lines(verdict)).split())
            self.assertRegex(text, r"\? Not known yet: what a faster device brings: 0 to 4[456] % less "
                                   "latency, unknown")
            where = "Submit" if style == "in the block" else style
            self.assertIn(f"A thread is in {where} until its job ends", text)
            self.assertNotIn("No finding", text)
            self.assertEqual([f.subject for f in verdict.findings if f.confidence == "sure"], [])
        text = " ".join(screen.lines(judge(Driver("marked").facts())))
        self.assertNotIn("Not known yet", text)

    def test_idle_servers(self):
        """Between inferences nobody knows whether a span works or waits for a request."""
        for between in ("epoll_wait", "recv", "queue.get", "wait for request"):
            verdict = judge(Driver("marked", device=300, between=between).facts())
            self.assertNotIn(between, [finding.subject for finding in verdict.every()])
            labels = {key[2] for key in verdict.facts.idle.entries if key[3] == between}
            self.assertEqual(labels, {"work_or_idle"})


class Used(unittest.TestCase):
    """What desc.cpu_ns records: CPU time and switches of the thread until the end is noticed."""

    def effect(self, cpu, switches=1, lost=0, **how):
        """(the Facts, low, high, what the device twice as fast brings) of a driver with these counts."""
        driver, draw = Driver(**how), random.Random(1)
        for line in [line for line in driver.lines if line["name"] == "kernel"]:
            line["args"] |= {"wait_cpu_ns": int(1000 * cpu * draw.uniform(0.8, 1.2)),
                             "wait_switches": switches, "wait_preempted": lost}
        facts, after = driver.facts(), sorted(Driver(**how, faster=0.5).latencies)
        low, high = replay.of(facts).effect(("device", None, Fraction(1, 2))).inference
        return facts, low, high, 100 - 100 * after[N // 2] / sorted(driver.latencies)[N // 2]

    def test_slept(self):
        """One switch, and the notice follows the end: a wait, behind no more work than that CPU time."""
        for style, work in (*((style, 0) for style in UNKNOWN), ("step", 1500), ("step", 3000)):
            facts, low, high, truth = self.effect(12 + work, style=style, work=work)
            self.assertTrue(low - 0.1 <= truth <= high + 0.1 and high - low < 1 + work / 50,
                            (style, work, float(low), float(high), truth))
            self.assertEqual(facts.jobs.unmarked_names, [], style)

    def test_nothing_said(self):
        """Slept for something else, worked, looked often, or lost the CPU: as without the counts."""
        for counts in ({"work": 6000, "hidden": True}, {"switches": 0}, {"switches": 2}, {"lost": 1}):
            facts, low, high, truth = self.effect(12, style="ioctl", **counts)
            self.assertTrue(low < 0.5 and truth <= high and high > 30, (counts, float(low), float(high)))
            self.assertEqual(facts.jobs.unmarked_names, ["ioctl"], counts)


class Stretches(unittest.TestCase):
    def test_no_one_place(self):
        """Jobs that end while their thread does this and that: nothing is said for sure."""
        driver = Driver("no span")
        draw = random.Random(3)
        for line in [e for e in driver.lines if e["name"] == "Submit"]:
            at = line["ts"] + 20
            for n in range(draw.randrange(40, 80)):
                driver.span(1, f"step {n % 3}", at, at + 50)
                at += 55
        facts = driver.facts()
        found = facts.jobs.stretches
        self.assertEqual((len(found.of), len(found.loose)), (0, N))
        effect = replay.of(facts).effect(("device", None, Fraction(0.5)))
        self.assertTrue(effect.assumed and effect.inference[0] == 0 and effect.inference[1] >= 45, effect)
        self.assertIn("Nothing shows what threads wait for", " ".join(screen.lines(judge(facts))))

    def test_a_wait_does_not_end_before_the_device(self):
        """Behind the submission is a span that ended before its job in a tenth of the inferences."""
        driver, count = Driver("ioctl"), 0
        for line in driver.lines:
            if line["name"] == "ioctl":
                count += 1
                line["dur"] -= 300 if count % 10 == 0 else 0
        facts = driver.facts()
        self.assertNotIn("ioctl", {facts.trace.names[n] for n in facts.jobs.stretches.names if n >= 0})


if __name__ == "__main__":
    unittest.main()
