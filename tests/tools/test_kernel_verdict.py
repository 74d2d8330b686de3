# test: time=60 - the verdict takes the kernel's word for waits, where it is surer than a tenth of them
# SPDX-License-Identifier: MIT
import json
import types
import unittest
import unittest.mock

import helpers
from helpers import scratch
from kernel_texts import Machine, Ring, ftrace
from npuprof import loops
from npuprof.analysis import replay
from npuprof.analysis.facts import Facts
from npuprof.analysis.rules.finding import Missing
from npuprof.analysis.rules.host import submissions
from npuprof.analysis.verdict import judge
from npuprof.merging.beside import loaded
from npuprof.read import load
from test_kernel_drivers import text
from test_kernel_jobs import merged
from test_kernel_power import job
from test_kernel_waits import WAIT, switch

HALF = ("device", None, 0.5)
COUNT, START, PREPARE, JOB, FINISH = 24, 500000, 1000, 4000, 300       # us
STYLES = "no-span", "sync", "ioctl", "block", "sampled"


class Run:
    """A driver that prepares, gives a job to its device, sleeps until it ends and finishes: its spans, and
    the kernel's lines. timer: its own timer ends the sleep; late: us from the job's end to its interrupt;
    error: ns of the device's stamps; through: what wakes it on behalf of the interrupt."""

    def __init__(self, style, timer=False, late=3, error=400, through=False):
        self.style, self.error, self.spans, self.lines, self.flows = style, error, [], [], []
        now = START + 1000
        for n in range(COUNT):
            begin, job = now, JOB + 37 * (n % 7)
            s = begin + PREPARE
            start, end = s + 10, s + 10 + job
            irq = end + late
            back = irq + 30
            self.lines.append(switch(s + 15, 0, "app-70", "S", "swapper/0-0"))
            who = "timer" if timer else "irq"
            self.wake(irq, who, through)
            self.lines.append(switch(back, 0, "swapper/0-0", "R", "app-70"))
            self.put("Inference", begin, back + FINISH, '"kind":"inference",')
            self.put("prepare", begin + 1, s - 1)
            self.put("finish", back + 5, back + FINISH - 5)
            call = (s, back + 4) if style in ("block", "sampled") else (s, s + 12)
            self.put("kernel", *call)
            if style in ("ioctl", "sync"):
                self.put(style, s + 13, back + 3)
            if style == "sampled":
                start, end = call
            self.put("kernel", start, end, f'"stamp":"{"sampled" if style == "sampled" else "device"}",'
                     f'"error_ns":{error},', tid=2)
            self.flows.append((s + (0 if style == "sampled" else 1), start))
            now = back + FINISH + 20

    def wake(self, us, who, through):
        event = {"irq": "irq_handler_entry: irq=45 name=npu",
                 "timer": "hrtimer_expire_entry: hrtimer=0 function=hrtimer_wakeup now=1"}[who]
        leave = {"irq": "irq_handler_exit: irq=45 ret=handled",
                 "timer": "hrtimer_expire_exit: hrtimer=0"}[who]
        whom, pid = ("helper", through) if through else ("app", 70)
        self.lines += [(us, 1, "<idle>-0", "d.h..", event),
                       (us + 1, 1, "<idle>-0", "d.h..", f"sched_waking: comm={whom} pid={pid} prio=9 "
                                                        "target_cpu=000"),
                       (us + 2, 1, "<idle>-0", "d.h..", leave)]
        if through:
            self.lines += [switch(us + 4, 1, "swapper/1-0", "R", f"helper-{pid}"),
                           (us + 9, 1, f"helper-{pid}", "d..3.", "sched_waking: comm=app pid=70 prio=9 "
                                                                 "target_cpu=000"),
                           switch(us + 12, 1, f"helper-{pid}", "S", "swapper/1-0")]

    def put(self, name, begin, end, args="", tid=1):
        args = f',"args":{{{args[:-1]}}}' if args else ""
        self.spans.append(f'{{"ph":"X","name":"{name}","cat":"c","pid":70,"tid":{tid},'
                          f'"ts":{begin - START}.000,"dur":{end - begin}.000{args}}}')

    def write(self, more=()):
        lines = ['{"ph":"M","name":"thread_name","pid":70,"tid":1,"args":{"name":"main","native_id":70}}',
                 '{"ph":"M","name":"thread_name","pid":70,"tid":2,"args":{"name":"npu PE 0"}}', *more,
                 *self.spans]
        arrows = [(n, *end) for n, (s, start) in enumerate(self.flows, 1)
                  for end in (("s", 1, "", s), ("f", 2, '"bp":"e",', start))]
        for number, phase, tid, bind, us in arrows:
            lines.append(f'{{"ph":"{phase}","name":"submit","pid":70,"tid":{tid},{bind}"cat":"submit",'
                         f'"id":{number},"ts":{us - START}.000}}')
        sync = {"rate_hz": 10**8, "drift_ppm": 0, "max_error_ns": self.error, "anchors": 2, "wraps": 0,
                "resets": 0, "causality_violations": 0}
        about = {"version": "1.0.0", "host": "h", "program": "app", "pid": 70, "threads": 1, "user": {},
                 "start_unix_ns": 10**18 + START * 1000, "start_boottime_ns": START * 1000, "lost": {},
                 "start_monotonic_ns": START * 1000, "devices": [{"name": "npu", "clock_sync": sync}],
                 "clock": {"source": "x", "hz": 1000000000, "error_ns": 40, "drift_ns": 2}}
        (scratch() / "t.json").write_text('{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n'
                                          '"displayTimeUnit":"ns",\n"metadata":{"npuprof":'
                                          + json.dumps(about) + "}}\n")
        (scratch() / "k.txt").write_text(text(*self.lines))


def facts_of(trace, ftrace):
    options = types.SimpleNamespace(ftrace=ftrace, ftrace_clock=None, ftrace_devices=[])
    return Facts(loaded(trace, options))


def gain(ftrace=True):
    """(low, high) that a device twice as fast brings, and its Facts."""
    facts = facts_of(str(scratch() / "t.json"), str(scratch() / "k.txt") if ftrace else None)
    made = replay.of(facts)
    assert made.why is None, made.why
    return made.effect(HALF).inference, facts


def truth(late=3):
    return 100 * (JOB + 111) / 2 / (PREPARE + 10 + JOB + 111 + late + 30 + FINISH)


class Word(unittest.TestCase):
    def narrow(self, style, **more):
        Run(style, **more).write()
        (low, high), facts = gain()
        self.assertLess(high - low, 2, (style, more))
        self.assertTrue(low - 1 <= truth() <= high + 1, (style, low, truth(), high))
        return facts

    def wide(self, style, **more):
        Run(style, **more).write()
        (low, high), _ = gain()
        self.assertLess(low, 1, (style, more))
        self.assertGreater(high, truth(more.get("late", 3)) - 2)

    def test_five_styles(self):
        """Right and narrow, where the trace alone says: from nothing to all."""
        for style in STYLES:
            facts = self.narrow(style)
            self.assertFalse(facts.jobs.unmarked, style)
            (low, high), _ = gain(ftrace=False)
            self.assertGreater(high - low, 30, style)
            helpers.npuprof_py("check", "t.json", "--ftrace", "k.txt")

    def test_through_a_thread(self):
        for style in STYLES:
            self.narrow(style, through=91)

    def test_without_the_loops_in_c(self):
        """The kinds of spans are read whatever is added to their arguments."""
        with unittest.mock.patch.object(loops.native, "library", lambda: None):
            for style in STYLES:
                self.narrow(style)

    def test_own_timer(self):
        """A thread that looks again by its own timer does not sleep for the job."""
        for style in STYLES:
            self.wide(style, timer=True)

    def test_late(self):
        """What woke it came later than a tenth of the sleep."""
        for style in STYLES[:-1]:
            self.wide(style, late=600)

    def test_error(self):
        """The device's stamps are not sure to a tenth of the sleep."""
        self.wide("ioctl", error=500000)
        self.narrow("ioctl", error=100000)

    def test_a_thread_with_marks(self):
        """It may have held what the sampled call waited for."""
        run = Run("sampled", through=91)
        run.write(['{"ph":"M","name":"thread_name","pid":70,"tid":3,"args":{"name":"other","native_id":91}}'])
        (low, high), _ = gain()
        self.assertLess(low, 1)

    def test_marked_stays(self):
        """In a span that says it waits there is no second one."""
        run = Run("ioctl")
        run.spans = [span.replace("}", ',"args":{"kind":"wait"}}', 1) if '"ioctl"' in span else span
                     for span in run.spans]
        run.write()
        _, facts = gain()
        self.assertNotIn("asleep", facts.trace.names)

    def test_unsure_jobs(self):
        """Of jobs whose length the text does not tell to a tenth, no gain is told."""
        for swapped in (0.0, 0.5):
            machine = Machine(7, [Ring("npu", "a.npu", 5, 2, 45)], swapped=swapped).run(200, gap=300000)
            (scratch() / "k.txt").write_text(ftrace(machine.lines))
            facts = facts_of(None, str(scratch() / "k.txt"))
            why = replay.of(facts).why or ""
            self.assertEqual("does not tell the length to a tenth" in why, swapped > 0, why)
            self.assertEqual(set(submissions(facts)) | set(facts.jobs.unsure), set(range(200)))
            said = helpers.npuprof_py("report", "--ftrace", "k.txt").stdout
            self.assertEqual("how busy the device was is not known" in said, swapped > 0, said)
            facts.jobs.unsure = range(200)
            self.assertRaisesRegex(Missing, "to a tenth of their length", submissions, facts)

    def test_jobs_of_no_length(self):
        """The arrow from a job to the sleep that it ended lies in the job, however short that is."""
        lines = [(us - (2000 if us > 3000 else 0), *rest) for us, *rest in WAIT]
        lines = [(1905, *line[1:]) if "context=11" in line[4] and "signaled" in line[4] else line
                 for line in lines]
        (scratch() / "k.txt").write_text(text(*sorted(lines, key=lambda line: line[0])))
        helpers.npuprof_py("merge", "--ftrace", "k.txt", "-o", "k.json")
        self.assertIn('"Execution","cat":"kernel","pid":1,"tid":1,"ts":900.000,"dur":0.000',
                      (scratch() / "k.json").read_text())
        self.assertIn("ok", helpers.npuprof_py("check", "k.json").stdout)

    def test_off_the_cpu(self):
        """A span that was ready and did not run is off the CPU; one that slept is blocked, by no core."""
        for state, said in (("R", "host_off_cpu"), ("S", "host_blocked")):
            run = Run("ioctl")
            begins = [START + 1000]
            for line in run.lines:
                if line[4].startswith("sched_switch: prev_comm=swapper/0"):
                    begins.append(line[0] + FINISH + 20)
            for begin in begins[:COUNT]:
                run.lines += [switch(begin + 50, 0, "app-70", state, "other-9"),
                              *[(begin + 940, 0, "other-9", "d..3.", "sched_waking: comm=app pid=70 prio=9 "
                                 "target_cpu=000")] * (state == "S"),
                              switch(begin + 950, 0, "other-9", "R", "app-70")]
            run.lines.sort(key=lambda line: line[0])
            run.write()
            _, facts = gain()
            of_prepare = {label for label in ("host_off_cpu", "host_blocked", "host_busy")
                          for span, _ in facts.idle.of_class(label)[2] if span == "prepare"}
            self.assertEqual(of_prepare, {said})

    def test_whole_lane(self):
        """What the report says at first: no question is left about what waits."""
        Run("ioctl").write()
        said = helpers.npuprof_py("report", "t.json", "--ftrace", "k.txt", "--verdict").stdout
        self.assertNotIn("nothing says whether it works or waits", said)
        table = helpers.npuprof_py("report", "t.json", "--ftrace", "k.txt", "--table", "latency").stdout
        self.assertRegex(table, rf"notice +{COUNT} ")

    def test_returns_without_a_line(self):
        """Where the kernel leaves out the switch from idle, the sleep is known until the waking."""
        run = Run("ioctl")
        run.lines = [line for line in run.lines if "prev_pid=0 " not in line[4]]
        run.write()
        (low, high), facts = gain()
        self.assertLess(high - low, 2)
        self.assertTrue(low - 1 <= truth() <= high + 1, (low, truth(), high))
        done = helpers.npuprof_py("check", "t.json", "--ftrace", "k.txt")
        self.assertIn("some kernels leave out switches from idle", done.stderr)


class Doubts(unittest.TestCase):
    """What a text of the kernel does not tell is not said with certainty."""

    def seen(self, lines, head="", name="u"):
        """(ftrace of the metadata, what report says, the rows of the table idle)."""
        lines = lines if isinstance(lines, str) else text(*lines)
        _, trace = merged(head + lines, name=name)
        said = " ".join(helpers.npuprof_py("report", f"{name}.json").stdout.split())
        return trace["metadata"]["npuprof"]["ftrace"], said, Facts(load(scratch() / f"{name}.json")).idle

    def jobs(self, *numbers):
        return [line for n in numbers for line in job(n, 10000 + 10000 * n)]

    def test_lost_lines_are_no_spans(self):
        lines = text(*self.jobs(*range(4))) + "CPU:1 [LOST 900 EVENTS]\n" + text(*self.jobs(*range(8, 12)))
        told, said, idle = self.seen(lines)
        self.assertEqual((told["lost"], told["holes"]), (900, 1))
        self.assertIn("900 kernel events lost, in 1 hole:", said)
        for wrong in ("spans are missing", "spans lost", "nothing lost"):
            self.assertNotIn(wrong, said)
        (since, until), = told["not_seen_ns"]
        self.assertEqual(until - since, 50000000 - 3000)
        # The gap of 49 ms lies in the hole: the device may have worked. Six others of 9 ms do not.
        certain = sum(entry.certain for entry in idle.entries.values())
        self.assertTrue(40000000 < certain < 6 * 9200000, certain)

    def test_overwritten_lines_lie_before(self):
        told, said, _ = self.seen(self.jobs(*range(8)), "# tracer: nop\n# entries-in-buffer/entries-written: "
                                                        "64/100064   #P:2\n")
        self.assertEqual((told["lost"], told["overwritten"]), (0, 100000))
        self.assertIn("100000 kernel events were overwritten before the first line", said)
        self.assertNotIn("missing (", said)

    def test_depth_beside_a_hung_job(self):
        """How many are in flight is not known while one has no end: not one at a time, nor a mean."""
        hung = [line for line in self.jobs(1) if line[1] == 0]
        for more, known in (([], True), (hung, False)):
            self.seen(sorted([*self.jobs(0, *range(2, 12)), *more], key=lambda line: line[0]))
            facts = Facts(load(scratch() / "u.json"))
            figures = [facts.headline[key] is not None for key in ("open_ratio", "device_depth_ratio")]
            self.assertEqual(figures, [known, known])
            missing = {rule.name: why for rule, why in judge(facts).missing}
            self.assertEqual("ends of all jobs" in missing.get("serial_submit", ""), not known)

    def test_job_without_an_end(self):
        """The device may be busy with it to the end."""
        hung = [line for line in job(4, 50000) if line[0] < 50500]
        after = [(900000, 0, "app-70", ".....", "sched_waking: comm=b pid=9 prio=120 target_cpu=001")]
        whole = self.seen(self.jobs(*range(4)) + after)[2]
        told, said, idle = self.seen(self.jobs(*range(4)) + hung + after)
        self.assertEqual(told["unended_ns"], [["npu", 40005000, 890000000]])
        self.assertIn("1 job without an end", said)
        # In order, it has ended when the next one of its lane does.
        told = self.seen(self.jobs(*range(4)) + hung + self.jobs(5, 6) + after)[0]
        self.assertEqual([ring for ring, *_ in told["unended_ns"]], ["npu"])
        self.assertLess(told["unended_ns"][0][2], 60000000)
        self.assertNotIn("without an end", self.seen(self.jobs(*range(4)))[1])
        edges = [sum(entry.certain for key, entry in own.entries.items() if key[2] == "edge")
                 for own in (whole, idle)]
        self.assertLess(edges[1], 10000000, edges)

    def test_interrupt_of_a_timer(self):
        """A driver that polls: the end was asked for, so it came some time before."""
        for name, by_timer in (("arch_timer", True), ("hrtimer", True), ("npu", False)):
            lines = text(*self.jobs(*range(8))).replace("irq=45 name=npu", f"irq=45 name={name}")
            _, trace = merged(lines, name="u")
            ends = {event["args"]["end"] for event in trace["traceEvents"]
                    if event.get("args", {}).get("stamp") == "kernel"}
            self.assertEqual({"a timer led there" in end for end in ends}, {by_timer}, ends)

    def test_perf_tells_no_losses(self):
        lines = kernel_lines(self.jobs(*range(8)))
        told, said, _ = self.seen(lines)
        self.assertIsNone(told["lost"])
        self.assertIsNone(told["error_ns"])
        self.assertIn("nobody knows whether events were lost", said)
        self.assertNotIn("nothing lost", said)
        self.assertIn("taken for mono", merged(lines, name="u")[0])
        self.assertIn("by mono; error at most", merged(lines, "--ftrace-clock", "mono", name="u")[0])
        lost = "app 70/70 [000] 9.000000000: PERF_RECORD_LOST lost 7\n"
        self.assertEqual(self.seen(lines + lost)[0]["lost"], 7)

    def test_rings_of_one_device(self):
        """Where nobody knows which lanes are one engine, no gain is likely, and none is said to be idle."""
        for names, device, stable, why in (
                (("ccs3", "ccs7"), "03.0", True, "03.0 ccs3, 03.0 ccs7 may be one engine in turns"),
                (("gfx", "gfx"), "03.0", False, "no line names the devices of gfx:"),
                (("a", "b"), "{}", True, None)):
            rings = [Ring(name, device.format(name), context, 1, 45 + context)
                     for name, context in zip(names, (5, 7))]
            machine = Machine(11, rings, stable=stable).run(60, gap=9000000)
            told, said, idle = self.seen(ftrace(machine.lines))
            self.assertEqual((told["may_share"] != []), why is not None)
            facts = Facts(load(scratch() / "u.json"))
            gains = {one.confidence for one in judge(facts).findings if one.rule.kind == "gain"}
            doubted = sum(entry.total - entry.certain for (_, queue, *_), entry in idle.entries.items()
                          if (queue >= 0) == (len(facts.jobs.devices) == 1))
            busy = sum(own.length() for own in facts.busy)
            self.assertEqual(5 * doubted > 4 * busy, why is not None, (doubted, busy))
            self.assertLessEqual(gains, {"unsure"} if why else {"sure", "likely"})
            for words in (why, "warning: " if why else None):
                self.assertIn(words or "", said)
            self.assertEqual("device busy" in said, why is None, said[:900])
            self.assertEqual("Send more requests" in said, "ccs3" not in names)
            self.assertEqual(facts.headline["parallelism_ratio"] is None, why is not None)


def kernel_lines(lines):
    """The text of perf script."""
    return "".join(f"{who.rpartition('-')[0]} {who.rpartition('-')[2]}/{who.rpartition('-')[2]} [{cpu:03}] "
                   f"{us // 10**6}.{us % 10**6:06}000: sys:{what}\n" for us, cpu, who, _, what in lines)


if __name__ == "__main__":
    unittest.main()
