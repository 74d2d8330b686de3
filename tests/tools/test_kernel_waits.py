# test: time=30 - waits that explain themselves: of spans with marks, and of threads without
# SPDX-License-Identifier: MIT
import json
import random
import time
import unittest

import helpers
import kernel_texts
import kernel_threads
from helpers import scratch
from kernel_threads import READY, RUN, SLEEP
from npuprof.kernel.contexts import SLEEPS
from npuprof.kernel.lines import KernelText
from npuprof.kernel.patterns import Patterns
from npuprof.kernel.waits import chain, sentence
from npuprof.kernel.witness import Witness
from test_kernel_drivers import text
from test_kernel_jobs import merged


def switch(us, cpu, leaves, state, comes):
    prev, pid = leaves.rsplit("-", 1)
    after, comes = comes.rsplit("-", 1)
    who = "<idle>-0" if pid == "0" else leaves
    return us, cpu, who, "d..2.", (f"sched_switch: prev_comm={prev} prev_pid={pid} prev_prio=120 "
                                   f"prev_state={state} ==> next_comm={after} next_pid={comes} next_prio=120")


# A threaded interrupt: app sleeps, its job ends, interrupt 45 wakes its thread, which wakes app.
WAIT = [
    (1000, 0, "app-70", ".....", "dma_fence_init: driver=drm_sched timeline=npu context=11 seqno=7"),
    (1002, 0, "app-70", ".....", "dma_fence_init: driver=drm_sched timeline=npu context=12 seqno=7"),
    (1010, 0, "app-70", ".....", "drm_sched_job_queue: dev=fdab0000.npu, fence=12:7, ring=npu, job count:0, "
                                 "hw job count:0, client_id:4"),
    switch(1020, 0, "app-70", "S", "worker-87"),
    (1030, 0, "worker-87", ".....", "drm_sched_job_run: dev=fdab0000.npu, fence=12:7, ring=npu, job count:0, "
                                    "hw job count:1, client_id:4"),
    (1040, 0, "worker-87", ".....", "dma_fence_signaled: driver=drm_sched timeline=npu context=11 seqno=7"),
    switch(1050, 0, "worker-87", "I", "ffmpeg-99"),
    (3900, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=45 name=fdab0000.npu"),
    (3902, 1, "<idle>-0", "d.h..", "sched_waking: comm=irq/45-fdab0000 pid=33 prio=49 target_cpu=001"),
    (3903, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=45 ret=handled"),
    switch(3905, 1, "swapper/1-0", "R", "irq/45-fdab0000-33"),
    (3910, 1, "irq/45-fdab0000-33", ".....", "drm_sched_job_done: fence=12:7 signaled"),
    (3911, 1, "irq/45-fdab0000-33", ".....", "dma_fence_signaled: driver=drm_sched timeline=npu context=12 "
                                            "seqno=7"),
    (3912, 1, "irq/45-fdab0000-33", "d..3.", "sched_waking: comm=app pid=70 prio=120 target_cpu=000"),
    switch(3920, 1, "irq/45-fdab0000-33", "S", "swapper/1-0"),
    switch(3961, 0, "ffmpeg-99", "R", "app-70"),
    switch(4000, 0, "app-70", "R+", "ffmpeg-99"),
    switch(4100, 0, "ffmpeg-99", "S", "app-70"),
    switch(5000, 0, "app-70", "S", "swapper/0-0"),
    switch(6000, 0, "swapper/0-0", "R", "app-70")]
SENTENCE = ("slept 2.89 ms until interrupt 45 (fdab0000.npu) on CPU 1, through thread irq/45-fdab0000 (33), "
            "which ended job 12:7; then was ready for 49 us while ffmpeg ran on CPU 0")


def marked(spans, path="t.json"):
    """A trace of npuprof with spans (name, start, end in us of CLOCK_MONOTONIC) of the thread 70."""
    start = 500000
    lines = ['{"ph":"M","name":"process_name","pid":70,"tid":1,"args":{"name":"app"}}',
             '{"ph":"M","name":"thread_name","pid":70,"tid":1,"args":{"name":"main","native_id":70}}']
    for name, begin, end in spans:
        lines.append(f'{{"ph":"X","name":"{name}","cat":"c","pid":70,"tid":1,'
                     f'"ts":{begin - start // 1000}.000,"dur":{end - begin}.000}}')
    about = {"version": "1.0.0", "host": "h", "program": "app", "pid": 70, "start_unix_ns": 10**18 + start,
             "start_boottime_ns": start + 300, "start_monotonic_ns": start, "threads": 1, "lost": {},
             "clock": {"source": "x", "hz": 1000000000, "error_ns": 40, "drift_ns": 2}, "user": {},
             "devices": []}
    (scratch() / path).write_text('{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n"displayTimeUnit":"ns",\n'
                                  '"metadata":{"npuprof":' + json.dumps(about) + "}}\n")
    return path


class Waits(unittest.TestCase):
    def merge(self, lines, spans):
        (scratch() / "w.txt").write_text(text(*lines))
        done = helpers.npuprof_py("merge", marked(spans), "--ftrace", "w.txt", "-o", "w.json")
        helpers.npuprof_py("check", "w.json")
        trace = helpers.load(scratch() / "w.json")
        spans = {event["name"]: event for event in trace["traceEvents"] if event["ph"] == "X"}
        return done.stdout, trace, spans

    def test_a_span_with_a_mark(self):
        spans = ("submit", 998, 1015), ("wait", 1016, 4200), ("work", 4200, 4900)
        said, trace, spans = self.merge(WAIT, spans)
        args = spans["wait"]["args"]
        self.assertEqual((args["asleep_ns"], args["ready_ns"], args["running_ns"]),
                         (2892000, 149000, 139000))
        self.assertEqual(args["why"], SENTENCE)
        self.assertEqual((args["device_ns"], args["notice_ns"]), (3910000 - 1020000, 3961000 - 3910000))
        self.assertNotIn("args", spans["work"])
        # The arrow leads from the span that holds the submission to the job; both lie on one timeline.
        starts = {event["ph"]: event for event in trace["traceEvents"] if event["ph"] in "sf"}
        job = spans["Execution"]
        self.assertEqual((starts["s"]["pid"], starts["s"]["tid"]), (70, 1))
        self.assertEqual((starts["f"]["pid"], starts["f"]["ts"]), (job["pid"], job["ts"]))
        self.assertEqual(round(starts["s"]["ts"] - spans["submit"]["ts"], 3), 12)
        self.assertIn("error at most 1042 ns", said)
        report = helpers.npuprof_py("report", "w.json", "--table", "path").stdout
        self.assertRegex(report, r"queue +1 ")

    def test_another_work(self):
        """A worker of the kernel does works of others in a row: what wakes much later may be another one."""
        by_job = ("interrupt 45 (fdab0000.npu) on CPU 1, through thread kworker/1:2 (33), "
                  "which ended job 12:7;")
        for late, wakes in ((0, by_job), (48, "thread kworker/1:2 (33), in one of its works;")):
            lines = [(us + late * 1000 * (us > 3911), cpu, who, flags, what) for us, cpu, who, flags, what in
                     ((*line[:2], line[2].replace("irq/45-fdab0000", "kworker/1:2"), line[3],
                       line[4].replace("irq/45-fdab0000", "kworker/1:2")) for line in WAIT)]
            _, trace, spans = self.merge(lines, (("submit", 998, 1015), ("wait", 1016, 4200 + late * 1000)))
            self.assertIn(f"until {wakes}", spans["wait"]["args"]["why"])
            self.assertEqual("device_ns" in spans["wait"]["args"], not late)
            self.assertEqual([event["ph"] for event in trace["traceEvents"] if event["name"] == "ended"],
                             ["s", "f"] * (not late))

    def test_sums(self):
        """The parts of every span sum to it, also where events are lost and outside of the text."""
        lines = text(*WAIT).splitlines(keepends=True)
        lines.insert(15, "CPU:0 [LOST EVENTS]\n")
        (scratch() / "s.txt").write_text("".join(lines))
        spans = [(f"s{a}", a, b) for a in range(600, 6500, 300) for b in (a + 100,)] + [("all", 550, 7000)]
        spans.sort(key=lambda span: span[1])
        helpers.npuprof_py("merge", marked(spans), "--ftrace", "s.txt", "-o", "s.json")
        events, seen = helpers.load(scratch() / "s.json")["traceEvents"], 0
        for event in events:
            args = event.get("args", {})
            if "running_ns" in args:
                seen += 1
                parts = [args.get(f"{key}_ns", 0) for key in ("running", "ready", "asleep", "unknown")]
                self.assertEqual(sum(parts), round(event["dur"] * 1000), event)
                self.assertGreaterEqual(min(parts), 0)
        self.assertGreater(seen, 8)
        whole = next(event for event in events if event["name"] == "all")["args"]
        self.assertGreater(whole["unknown_ns"], 1450000)

    def test_outside(self):
        """Nothing is known before the first switch and behind the last line, nor when it was woken."""
        _, _, spans = self.merge(WAIT, [("all", 550, 7000)])
        self.assertEqual(spans["all"]["args"]["unknown_ns"], 2470000)

    def test_a_thread_without_marks(self):
        """Its submission and its sleep are spans; notice is in the report; the verdict is made."""
        said, trace = merged(text(*WAIT), name="n")
        helpers.npuprof_py("check", "n.json")
        asleep = [event for event in trace["traceEvents"] if event["name"] == "asleep"]
        self.assertEqual([event["args"].get("kind") for event in asleep], ["wait", None])
        self.assertEqual(asleep[0]["args"]["why"], SENTENCE)
        self.assertIn("no line tells who woke it", asleep[1]["args"]["why"])
        report = helpers.npuprof_py("report", "n.json").stdout
        self.assertRegex(report, r"notice +1 +61000")
        self.assertIn("device busy", report)

    def test_hops(self):
        """A chain has at most four hops, and none from before the sleep of the next."""
        def wakes(us, who, whom):
            pid = whom.rsplit("-", 1)[1]
            return us, 0, who, "d..3.", f"sched_waking: comm={whom[0]} pid={pid} prio=120 target_cpu=000"
        names = [f"{letter}-{100 + n}" for n, letter in enumerate("abcdef")]
        lines = list(WAIT[:3])
        lines += [switch(1100 + n, 1, name, "S", "x-9") for n, name in enumerate(["app-70", *names])]
        lines += [wakes(2000, "y-8", names[0])]
        for n, (name, after) in enumerate(zip(names, [*names[1:], "app-70"])):
            lines += [switch(2010 + 10 * n, 0, "x-9", "S", name), wakes(2012 + 10 * n, name, after)]
        lines += [switch(2100, 0, "x-9", "S", "app-70")]
        _, _, spans = self.merge(lines, [("submit", 998, 1015), ("wait", 1090, 2200)])
        self.assertIn("until thread c (102), through thread d (103), through thread e (104), "
                      "through thread f (105)", spans["wait"]["args"]["why"])
        # What woke the waker before the sleep has nothing to do with it.
        lines = [*WAIT[:3], switch(1005, 1, names[1], "S", "x-9"), wakes(1011, names[0], names[1]),
                 switch(1012, 1, "x-9", "S", names[1]), switch(1100, 0, "app-70", "S", "x-9"),
                 wakes(2000, names[1], "app-70"), switch(2100, 0, "x-9", "S", "app-70")]
        _, _, spans = self.merge(sorted(lines), [("submit", 998, 1015), ("wait", 1090, 2200)])
        self.assertIn("until thread b (101); then was ready for 100 us", spans["wait"]["args"]["why"])


def witness(text):
    (scratch() / "m.txt").write_text(text)
    return Witness(KernelText(scratch() / "m.txt"), Patterns(), set(range(99, 120))).read().waits


class Truth(unittest.TestCase):
    """A made machine: no part of a span is longer than it was, and no cause is another one's."""

    def check(self, seed, made, way):
        machine, pick = kernel_threads.Machine(seed, **made).run(300), random.Random(seed)
        waits, seen, known = witness(kernel_threads.lost(machine, **way)), 0, 0
        for tid in machine.threads:
            for _ in range(10):
                a = pick.randrange(waits.first - 10000, waits.last)
                b = a + pick.randrange(1000, 10**6)
                parts, truth = waits.parts(tid, a, b), machine.truth(tid, a, b)
                if parts:
                    said = parts.running, parts.ready, parts.asleep, parts.unknown
                    self.assertEqual((sum(said), min(*said, 0)), (b - a, 0))
                    for ns, state in zip(said, (RUN, READY, SLEEP)):
                        self.assertLessEqual(ns, truth[state], (seed, tid, a, b, state))
                    seen, known = seen + b - a, known + b - a - parts.unknown
            for off in waits.of_thread.get(tid, ()):
                self.words(machine, tid, off)
        return known / seen

    def words(self, machine, tid, off):
        if off.kind == SLEEPS and off.hops:
            causes, words = machine.wakes[off.woken, tid], chain(off.hops[:1])[0]
            self.assertTrue(any(cause in words for cause in causes), (words, causes))
        if off.kind == SLEEPS and off.ran and " while " in sentence(off) and "at last" not in sentence(off):
            self.assertEqual(len(machine.ran(off.ran[0], off.woken, off.back)), 1, sentence(off))

    def test_truth(self):
        everything = {"die": 0.2, "early": 0.2, "spurious": 0.5}
        for made, way, least in (
                ({}, {}, 0.8), ({"die": 0.2}, {}, 0.5), ({"early": 0.3}, {}, 0.5),
                ({"spurious": 0.9}, {}, 0.8),
                ({"cpus": 4, "threads": 9}, {"holes": 3}, 0.6), ({}, {"overwritten": True}, 0.7),
                ({}, {"idle": True, "holes": 1}, 0.3), ({}, {"form": kernel_texts.perf}, 0.8),
                (everything, {"holes": 2, "overwritten": True}, 0.2)):
            with self.subTest(made=made, way=way):
                known = [self.check(seed, made, way) for seed in range(8)]
                self.assertGreater(sum(known), least * len(known))

    def test_many_holes(self):
        """A hole costs no look at threads that had no line since the one before."""
        def took(threads):
            pairs = [(f"t-{100 + n % threads}", f"t-{100 + (n + 1) % threads}") for n in range(3000)]
            lines = text(*(switch(us, us % 2, one, "S", other)
                           for us, (one, other) in enumerate(pairs, 1000))).splitlines(keepends=True)
            before = time.process_time()
            witness("".join(line + f"CPU:{n % 2} [LOST EVENTS]\n" * (n > 0) for n, line in enumerate(lines)))
            return time.process_time() - before
        self.assertLess(helpers.measured(5, lambda: took(1000) / took(10)), 5)

    def test_no_switches(self):
        """Without sched_switch nothing is known of threads."""
        lines = [line for line in kernel_threads.Machine(1).run(100).lines if line[7] != "sched_switch"]
        waits = witness(kernel_texts.ftrace(lines))
        self.assertIsNone(waits.parts(100, waits.first, waits.last))
