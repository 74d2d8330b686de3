# test: time=60 - jobs of a device without a mark, from the kernel's texts: the truth of a made machine
# SPDX-License-Identifier: MIT
import time
import unittest

import helpers
import kernel_drivers
import kernel_texts
from helpers import scratch
from kernel_texts import Machine, Ring
from npuprof.kernel.jobs import Job, Lane, Unseen, settled

# ns from a job's end to its interrupt in the made machine, which no text tells: another one may be open
LATENCY = 13000


def merged(text, *words, name="k", code=0):
    """(what merge said, the trace) of a text of the kernel."""
    (scratch() / f"{name}.txt").write_text(text)
    (scratch() / f"{name}.json").unlink(missing_ok=True)
    done = helpers.npuprof_py("merge", "--ftrace", f"{name}.txt", "-o", f"{name}.json", *words, code=code)
    return done.stdout + done.stderr, helpers.load(scratch() / f"{name}.json") if not code else None


def jobs_of(trace):
    """[(label, start, end, args)] of the jobs, ns of the tracer's clock."""
    base = trace["metadata"]["npuprof"]["start_boottime_ns"]
    found = []
    for event in trace["traceEvents"]:
        if event["ph"] == "X" and event.get("args", {}).get("stamp") == "kernel":
            start = base + round(event["ts"] * 1000)
            found.append((event["args"]["job"], start, start + round(event["dur"] * 1000), event["args"]))
    return found


def given(lane, low, high, done):
    """A Job of a lane of one hardware, which got it in [low, high]."""
    job = Job(f"{lane} {low}", low, 1)
    job.lane, job.low, job.high, job.done = Lane("ring", lane, None), low, high, done
    return job


class Jobs(unittest.TestCase):
    def check(self, machine, text, *words, quantum=0, known=1.0):
        """Every job is there once, within its errors; at least a share `known` has them. Returns the args."""
        said, trace = merged(text, *words)
        found = jobs_of(trace)
        self.assertEqual(sorted(label for label, *_ in found), sorted(machine.truth), said)
        sure = 0
        for label, start, end, args in found:
            _, begin, ended = machine.truth[label]
            if "start_error_ns" in args:
                off = args["start_error_ns"] + quantum
                self.assertTrue(start - off - LATENCY <= begin <= start + off, (label, start, begin, args))
            if "end_error_ns" in args:
                off = args["end_error_ns"] + quantum
                self.assertTrue(end - off - LATENCY <= ended <= end + off, (label, end, ended, args))
            self.assertLessEqual(begin, end + args.get("end_error_ns", 0) + quantum + LATENCY)
            sure += "error_ns" in args
        self.assertGreaterEqual(sure, known * len(found), said)
        return [args for *_, args in found]

    def test_every_form(self):
        """The same jobs from each form of the text."""
        lines = Machine(1).run(150).lines
        texts = {"tracefs": kernel_texts.ftrace(lines, 6),
                 "no columns": kernel_texts.ftrace(lines, 6, tgids=False, flags=False),
                 "trace-cmd report -t": kernel_texts.ftrace(lines, tgids=False, flags=False),
                 "a buffer's name": kernel_texts.ftrace(lines, prefix="mine: "),
                 "trace-cmd report -l": kernel_texts.report_l(lines),
                 "perf script --ns -F": kernel_texts.perf(lines),
                 "perf script": kernel_texts.perf(lines, 6, both=False)}
        for name, text in texts.items():
            with self.subTest(form=name):
                self.check(Machine(1).run(150), text, quantum=2000)

    @helpers.thorough
    def test_ten_thousand(self):
        """Two schedulers of one name, one and two credits."""
        rings = [Ring("npu", "a.npu", 5, 1, 45), Ring("npu", "b.npu", 2**32 + 9, 2, 46)]
        machine = Machine(2, rings).run(10000, gap=900000)
        args = self.check(machine, kernel_texts.ftrace(machine.lines))
        helpers.npuprof_py("check", "k.json")
        by_order = sum(a["start"] == "start by order" for a in args)
        bracketed = sum(a["start"].startswith("start bracketed") for a in args)
        self.assertGreater(by_order, 100)
        self.assertGreater(bracketed, 5000)
        self.assertEqual({a["end"].partition(",")[0] for a in args}
                         - {"ended in one interrupt with the next job"}, {"end by interrupt"})
        self.assertEqual({(a["thread"], a["process"], a["client"]) for a in args}, {("app (70)", 70, 4)})

    def test_ways(self):
        """Each kernel's events, threaded interrupts, jobs out of order, with and without scheduling."""
        for way in ({}, {"threaded": True}, {"swapped": 0.1}, {"stable": False},
                    {"old": True, "stable": False}, {"old": True, "stable": False, "threaded": True},
                    {"stable": False, "swapped": 0.1}, {"switches": False}):
            with self.subTest(**way):
                # Why that context: the finished fences have 2^32, of which dma_fence prints 0.
                machine = Machine(3, [Ring("npu", "a.npu", 2**32 - 1, 2, 45)], **way).run(150, gap=700000)
                if "stable" in way:
                    machine.truth = {label.replace("4294967296:", "0:"): truth
                                     for label, truth in machine.truth.items()}
                args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0)
                if "swapped" in way:
                    self.assertGreater(sum("in order" in a["start"] for a in args), 5)
                elif "switches" in way:
                    self.assertEqual({a["end"] for a in args}, {"end as told, no interrupt seen"})
                else:
                    self.assertEqual({a["end"] for a in args if "one interrupt" not in a["end"]},
                                     {"end by interrupt, one-sided"})

    def test_wrap(self):
        """Numbers go on at 0 behind 2^32 - 1; contexts that differ by 2^32 have lanes of their own."""
        for way in ({}, {"stable": False}):
            with self.subTest(**way):
                rings = [Ring("npu", "a", 5, 2, 45, 2**32 - 30),
                         Ring("npu", "b", 2**32 + 5 if not way else 7, 2, 46, 2**32 - 30)]
                machine = Machine(3, rings, **way).run(120)
                if way:
                    machine.truth = {":".join(str(int(part) % 2**32) for part in label.split(":")): truth
                                     for label, truth in machine.truth.items()}
                args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0.8)
                self.assertEqual({(a["job"].split(":")[0], a["stream"]) for a in args},
                                 {("6", 6), (str(rings[1].context + 1), rings[1].context + 1)})

    def test_two_fences_of_two_jobs(self):
        """A thread that submits to one context after the other: two fences in a row may be of two jobs."""
        for way in ({}, {"stable": False}):
            with self.subTest(**way):
                rings = [Ring("pan_js", "a", context, 3, 45) for context in (5, 7, 9)]
                machine = Machine(1, rings, pairs=True, **way).run(60, gap=3000000)
                gone = [n for n, line in enumerate(machine.lines) if line[7] == "dma_fence_init"][::31]
                text = "".join("CPU:0 [LOST EVENTS]\n" * (n - 1 in gone) +
                               kernel_texts.ftrace([line]).split("\n", 2)[2] * (n not in gone)
                               for n, line in enumerate(machine.lines))
                _, trace = merged(text)
                labels = {job[0] for job in jobs_of(trace)}
                self.assertLessEqual(labels, set(machine.truth))
                self.assertGreater(len(labels), 160)

    def test_amdxdna(self):
        """The driver's own lines, alone and beside the scheduler's and dma_fence's, with lost events."""
        for xdna in ("in", "out"):
            for way in ({"stable": False, "fences": False}, {"stable": False}, {}):
                with self.subTest(xdna=xdna, **way):
                    rings = [Ring(name, name, context, 4, 45) for name, context in (("h1", 5), ("h2", 7))]
                    machine = Machine(3, rings, xdna=xdna, swapped=0.05, **way).run(300, gap=900000)
                    self.check(machine, kernel_texts.ftrace(machine.lines), known=0)
                    self.truthful(machine, kernel_drivers.lost(machine.lines, kernel_texts.ftrace, 0.004))

    def test_shared_ring(self):
        """Two contexts of one ring may be one engine or two: what nobody knows is not claimed."""
        rings = [Ring("npu", "a.npu", context, 2, 45) for context in (5, 7)]
        machine = Machine(9, rings).run(300, gap=500000)
        args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0)
        self.assertGreater(sum("another lane" in a["start"] for a in args), 20)
        self.assertEqual({a["stream"] for a in args}, {6, 8})

    def test_a_stream_of_two_rings(self):
        """The jobs of one context may go to one ring or the other: each is drawn in its own."""
        rings = [Ring(name, name, 5, 1, 45, seqno) for name, seqno in (("a.npu", 0), ("b.npu", 1000))]
        machine = Machine(2, rings, stable=False).run(60)
        _, trace = merged(kernel_texts.ftrace(machine.lines))
        names = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
                 if event["name"] == "thread_name"}
        drawn = {event["args"]["job"]: names[event["tid"]].split()[0] for event in trace["traceEvents"]
                 if event.get("args", {}).get("stamp") == "kernel"}
        self.assertEqual(drawn, {label: rings[int(label[2:]) > 1000].name for label in machine.truth})

    def test_shared_hardware(self):
        """Two rings of one device may be one engine in turns, and so may all whose device no line names."""
        for device, name, stable, shares in (("03.0", "ccs", True, True), ("03.0", "ccs", False, True),
                                             ("{}.npu", "npu", True, False),
                                             ("{}.npu", "{}.npu", False, False)):
            with self.subTest(name=name, stable=stable):
                rings = [Ring(f"{name}{n}" if shares else name.format(f"fdab{n}000"),
                              device.format(f"fdab{n}000"), context, 1, 45 + n)
                         for n, context in enumerate((5, 7))]
                rings[1].engine = rings[0] if shares else rings[1]
                machine = Machine(11, rings, stable=stable).run(300, gap=1400000)
                args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0.3 if shares else 1)
                self.assertEqual(sum("another lane" in a["start"] for a in args) > 20, shares)

    def test_killed(self):
        """Jobs that end and were never run are counted and not drawn, where lines of run would tell."""
        for way, hole in (({}, False), ({}, True), ({"old": True, "stable": False}, False),
                          ({"stable": False}, False)):
            with self.subTest(hole=hole, **way):
                machine = Machine(12, [Ring("npu", "a.npu", 5, 2, 45)], **way).run(60)
                labels = machine.killed(10**9 + 10**8, 10)
                text = kernel_texts.ftrace(machine.lines)
                if hole:
                    last = text.rindex("\n", 0, text.rindex(f" context=5 seqno={labels[-1][2:]}")) + 1
                    text = text[:last] + "CPU:0 [LOST 1 EVENTS]\n" + text[last:]
                said, trace = merged(text)
                found = {label: args for label, *_, args in jobs_of(trace) if label in labels}
                never = trace["metadata"]["npuprof"]["ftrace"]["never_ran"]
                self.assertEqual(len(found) + never, 10)
                for args in found.values():
                    self.assertTrue(args.keys().isdisjoint({"start_error_ns", "end_error_ns"}))
                if hole:
                    self.assertIn(labels[-1], found)
                else:
                    self.assertEqual(never, 0 if way == {"stable": False} else 10)
                self.assertEqual(f"{never} jobs ended and never ran" in said, never > 1)

    def test_many_lanes(self):
        """A job costs no look at all other lanes of its ring."""
        def took(lanes):
            own = [given(f"lane {n % lanes}", 1000 * n, 1000 * n + 10, 1000 * n + 900) for n in range(4000)]
            before = time.process_time()
            self.assertEqual(len(settled(own, [], Unseen([], [], set()))), 4000)
            return time.process_time() - before
        self.assertLess(helpers.measured(5, lambda: took(2000) / took(2)), 5)

    def test_the_other_lane_may_have_been_first(self):
        """Of two jobs in one moment, in two lanes of one hardware, either may be the one that waited."""
        for low, is_known in ((990, False), (1005, False), (1011, True)):
            spans = settled([given("a", 1000, 1010, 3000), given("b", low, 1020, 3001)], [],
                            Unseen([], [], set()))
            self.assertEqual(spans[0].start_error is not None, is_known, spans[0])

    def test_scheduler_alone(self):
        """Without dma_fence, the hardware had the job nobody knows when."""
        machine = Machine(4, fences=False).run(200)
        args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0)
        self.assertEqual({"start_error_ns" in a for a in args}, {False})

    def test_edges(self):
        """Jobs that began before the text or end behind it are counted, and not drawn."""
        machine = Machine(5, [Ring("npu", "a.npu", 5, 2, 45)]).run(200, gap=300000)
        cut = machine.lines[len(machine.lines) // 4:len(machine.lines) * 3 // 4]
        begun, ended = set(), set()
        for _, _, _, _, _, _, _, name, text in cut:
            label = text.split("fence=")[-1].split(",")[0].split(" ")[0]
            seen = {"drm_sched_job_queue": begun, "drm_sched_job_done": ended}.get(name)
            if seen is not None:
                seen.add(label)
        said, trace = merged(kernel_texts.ftrace(cut))
        self.assertEqual(sorted(label for label, *_ in jobs_of(trace)), sorted(begun & ended))
        about = trace["metadata"]["npuprof"]["ftrace"]
        self.assertEqual((about["no_begin_seen"], about["no_end_seen"]),
                         (len(ended - begun), len(begun - ended)))
        self.assertGreater(min(about["no_begin_seen"], about["no_end_seen"]), 0)
        self.assertIn("are not drawn", said)

    def test_slow(self):
        """Steps that take long, ends that share an interrupt, a thread that goes on with the next end."""
        for way in ({"stalls": 0.1}, {"stalls": 0.1, "threaded": True}, {"together": 0.4},
                    {"together": 0.4, "stalls": 0.1, "threaded": True, "stable": False}):
            with self.subTest(**way):
                machine = Machine(7, [Ring("npu", "a.npu", 5, 3, 45)], **way).run(600, gap=500000)
                self.check(machine, kernel_texts.ftrace(machine.lines), known=0.3)

    def test_masked(self):
        """An interrupt that comes when its thread is done may have waited for that."""
        machine = Machine(7, [Ring("npu", "a.npu", 5, 3, 45)], threaded=True, stalls=0.3, masked=True)
        args = self.check(machine.run(600, gap=900000), kernel_texts.ftrace(machine.lines), known=0.3)
        self.assertGreater(sum("behind another one" in a["end"] for a in args), 20)

    def test_polled(self):
        """Whose end a timer asks for ended anywhere before: that is no interrupt of the device."""
        machine = Machine(8, [Ring("npu", "a.npu", 5, 2, 45)], polled=True).run(300, gap=900000)
        args = self.check(machine, kernel_texts.ftrace(machine.lines), known=0)
        self.assertEqual({a["end"] for a in args}, {"end as told: a timer led there, so it was asked for"})
        self.assertGreater(sum("start_error_ns" in a for a in args), 100)

    @helpers.thorough
    def test_lost(self):
        """What events are missing from is never closed, and is not claimed to be known."""
        for way in ({"threaded": True}, {"threaded": True, "stalls": 0.1, "together": 0.3},
                    {"stalls": 0.1, "together": 0.3}, {"polled": True, "stalls": 0.1}):
            with self.subTest(**way):
                self.check_lost(Machine(6, [Ring("npu", "a.npu", 5, 3, 45)], **way).run(2000, gap=700000))

    def check_lost(self, machine):
        random, kept, lost = machine.random, [], {0: 0, 1: 0}
        out = []
        for line in machine.lines:
            cpu = line[1]
            if lost[cpu] or random.random() < 0.002:
                lost[cpu] += 1
                if random.random() < 0.95:
                    continue
                out.append(f"CPU:{cpu} [LOST {lost[cpu] - 1} EVENTS]\n" if random.random() < 0.5
                           else f"CPU:{cpu} [LOST EVENTS]\n")
                lost[cpu] = 0
            kept.append(line)
            out.append(kernel_texts.ftrace([line]).split("\n", 2)[2])
        said, trace, unknown = self.truthful(machine, "".join(out))
        helpers.npuprof_py("check", "k.json")
        self.assertGreater(len(jobs_of(trace)), 1000)
        self.assertLess(len(jobs_of(trace)), 2000)
        self.assertGreater(unknown, 20)
        self.assertRegex(said, r"\d+ lost, and in \d+ places nobody knows how many")
        self.assertGreater(trace["metadata"]["npuprof"]["ftrace"]["lost"], 100)

    def truthful(self, machine, text):
        """What is said of a text with holes is true. Returns (what merge said, the trace, unknown starts)."""
        said, trace = merged(text)
        found, unknown = jobs_of(trace), 0
        for label, start, end, args in found:
            _, begin, ended = machine.truth[label]
            unknown += "start_error_ns" not in args
            if "start_error_ns" in args:
                self.assertTrue(start - args["start_error_ns"] - LATENCY <= begin
                                <= start + args["start_error_ns"], (label, start, begin, args))
            if "end_error_ns" in args:
                self.assertTrue(end - args["end_error_ns"] - LATENCY <= ended
                                <= end + args["end_error_ns"], (label, end, ended, args))
        return said, trace, unknown
