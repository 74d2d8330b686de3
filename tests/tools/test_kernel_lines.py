# test: time=30 - the one reader of the kernel's texts: forms, lost events, bad lines, clock markers
# SPDX-License-Identifier: MIT
import resource
import time
import unittest

import helpers
import kernel_texts
from helpers import scratch
from kernel_texts import Machine
from npuprof.kernel.clock import clock_of, markers
from npuprof.kernel.lines import Event, Hole, KernelText
from npuprof.kernel.patterns import Patterns
from npuprof.kernel.witness import Witness

LINE = "app-7 (      7) [001] d..2. {}: sched_waking: comm=b pid=9 prio=120 target_cpu=001\n"


def read(text, name="r.txt"):
    (scratch() / name).write_text(text)
    source = KernelText(scratch() / name)
    return source, list(source.items())


class Lines(unittest.TestCase):
    def test_fields(self):
        """What stands in a line comes out, whatever the name of the thread is."""
        for comm in ("a b-1", "x=1: 2", "irq/45-npu", "(sd)", "umr:cs0"):
            for form, text in (("ftrace", f"  {comm}-77  (   70) [003] d.h3. 12.000345: npu: a=1, b: 2\n"),
                               ("ftrace", f"  {comm}-77  (-------) [003] 12.000345: npu: a=1, b: 2\n"),
                               ("report -l", f"  {comm}-77  3d.h3.  12.000345: npu:    a=1, b: 2\n"),
                               ("perf", f"  {comm} 70/77 [003] 12.000345: sys:npu: a=1, b: 2\n"),
                               ("perf", f"  {comm}   77 [003] 12.000345:   sys:npu: a=1, b: 2\n")):
                with self.subTest(comm=comm, text=text):
                    source, (event,) = read(text)
                    self.assertEqual((source.form, event.ns, event.cpu, event.tid, event.comm, event.name,
                                      event.text), (form, 12000345000, 3, 77, comm, "npu", "a=1, b: 2"))
                    self.assertEqual(event.tgid, 70 if "70" in text else None)
                    self.assertEqual(event.flags, "d.h3." if "d.h3." in text else "")
                    self.assertEqual(event.system, "sys" if "sys" in text else "")

    def test_lost(self):
        """Each form of a loss is a hole of its CPU, from its event before to the next one."""
        for lost, count in (("CPU:1 [LOST 17 EVENTS]", 17), ("CPU:1 [LOST EVENTS]", None),
                            ("CPU:1 [204600 EVENTS DROPPED]", 204600), ("CPU:1 [EVENTS DROPPED]", None)):
            source, items = read(LINE.format("1.000001") + LINE.format("1.000002").replace("[001]", "[000]")
                                 + f"{lost}\n" + LINE.format("1.000003").replace("[001]", "[000]")
                                 + LINE.format("1.000009"))
            self.assertEqual([type(item) for item in items], [Event, Event, Event, Hole, Event])
            self.assertEqual(items[3], Hole(1, 1000001000, 1000009000, count))
            self.assertEqual((source.lost, source.uncounted), (count or 0, count is None))
        source, items = read("a 7/7 [001] 1.000001: x:y: z\nb 8/8 [001] 1.000005: PERF_RECORD_LOST lost 25\n"
                             "b 8/8 [001] 1.000005: x:y: z\n")
        self.assertEqual(items[1], Hole(1, 1000001000, 1000005000, 25))
        source, items = read("# entries-in-buffer/entries-written: 1/90   #P:2\n" + LINE.format("1.000001"))
        self.assertEqual(source.overwritten, 89)
        source, items = read(LINE.format("1.000001") + "CPU:1 [LOST EVENTS]\n")        # at the end
        self.assertEqual(items[1], Hole(1, 1000001000, 1000001000, None))

    def test_bad_lines(self):
        """A line of another form is left out with a sentence; a file of no form is refused."""
        stack = "# tracer: nop\n\ncpus=2\n => one+0x12\n <stack trace>\n"
        source, items = read(stack + LINE.format("1.000001") + "what is\x1bthis\n" + " => two\n"
                             + LINE.format("1.000002") + "app 7/7 [001] 1.0000003: x:y: z\n")
        self.assertEqual((len(items), source.left_out), (2, 2))
        self.assertRegex(source.malformed[0], r"r\.txt:7: no event as the lines before it, left out: 'what")
        for bad in ("what is this\n", "14769 0 334641368532 type: 372\n", "PERFILE2\0\1\n",
                    "sched_waking: x\n"):
            (scratch() / "bad.txt").write_text(stack + bad)
            self.assertIn("bad.txt:6: no line of ftrace",
                          helpers.refused("merge", "--ftrace", "bad.txt", "-o", "b.json"))

    def test_backwards(self):
        (scratch() / "b.txt").write_text(LINE.format("1.000005") + LINE.format("1.000001"))
        notes = Witness(KernelText(scratch() / "b.txt"), Patterns()).read().notes
        self.assertIn("1 events are earlier", notes[0])

    @helpers.thorough
    def test_many_lines(self):
        """CPU time and memory of the reader, the jobs and the waits."""
        lines = Machine(7, threaded=True).run(4000).lines
        more = -(-80000 // len(lines))
        with open(scratch() / "m.txt", "w") as file:
            for n in range(more):
                file.write(kernel_texts.ftrace([(ns + n * 10**11, *rest) for ns, *rest in lines]))
        before = time.process_time()
        source = KernelText(scratch() / "m.txt")
        found = Witness(source, Patterns()).read()
        took = (time.process_time() - before) * 10**6 / source.count
        self.assertGreater(source.count, 76000)
        self.assertGreater(len(found.jobs.finished), 5000)
        self.assertLess(took, 40)             # s for 10^6 lines: four times what a slow machine takes
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 300000)


class Clocks(unittest.TestCase):
    def marked(self, of_boot, digits=6):
        """A text with two markers at its start and its end; of_boot(ns) is the tracer's clock."""
        lines = []
        for at in (10**12, 10**12 + 5000, 10**12 + 10**9, 10**12 + 10**9 + 5000):
            lines.append(f"m-1 [000] ..... {self.stamp(of_boot(at + 2000), digits)}: tracing_mark_write: "
                         f"npuprof_clock mono={at - 777} boot={at}\n")
        lines.insert(2, LINE.format(self.stamp(of_boot(10**12 + 5 * 10**8), digits)))
        return "".join(lines)

    def stamp(self, value, digits):
        return kernel_texts.stamp(value, digits) if digits else str(value)

    def test_markers(self):
        """Any clock becomes usable, also ticks of another rate, within what the pairs bracket."""
        for name, of_boot, digits in (("mono", lambda ns: ns - 777, 9),
                                      ("local", lambda ns: ns - 5 * 10**11, 9),
                                      ("fast", lambda ns: ns * 1001 // 1000, 9),
                                      ("x86-tsc", lambda ns: ns * 26 // 10, 0)):
            with self.subTest(clock=name):
                (scratch() / "c.txt").write_text(self.marked(of_boot, digits))
                source = KernelText(scratch() / "c.txt")
                clock = clock_of(source)
                self.assertEqual(clock.error_ns, 5000)
                source.convert = clock.convert
                event = next(e for e in source.items() if e.name == "sched_waking")
                self.assertLessEqual(abs(event.ns - (10**12 + 5 * 10**8)), 5000)

    def test_wrong_name(self):
        (scratch() / "w.txt").write_text(self.marked(lambda ns: ns - 5 * 10**11))
        for said in ("mono", "boot"):
            refused = helpers.refused("merge", "--ftrace", "w.txt", "--ftrace-clock", said, "-o", "w.json")
            self.assertIn(f"its trace_clock is not {said}", refused)

    def placed(self, of_boot, markers, last):
        """(worst error, stated error or None, words) of a text: markers were read at these times, 1 us before
        their stamps; its last event is at `last`."""
        lines = [f"m-1 [000] ..... {self.stamp(of_boot(at + 1000), 9)}: tracing_mark_write: npuprof_clock "
                 f"mono={of_boot(at) if of_boot(last) > last // 2 else at} boot={at}\n" for at in markers]
        times = [10**12 - 10**8, *(at + 1000 for at in markers), last]
        lines = [LINE.format(self.stamp(of_boot(times[0]), 9)), *lines,
                 LINE.format(self.stamp(of_boot(last), 9))]
        (scratch() / "p.txt").write_text("".join(lines))
        source = KernelText(scratch() / "p.txt")
        clock = clock_of(source)
        source.convert = clock.convert
        worst = max(abs(event.ns - at) for event, at in zip(source.items(), times))
        return worst, clock.error(source), clock.how

    def test_markers_at_one_end(self):
        """They do not tell the rate of a clock, and need not where it is one of both."""
        start = [10**12 + 3000 * n for n in range(4)]
        for of_boot, known in ((lambda ns: ns - 777, 3000), (lambda ns: ns * 4 // 10 + 77, None)):
            worst, error, _ = self.placed(of_boot, start, 10**12 + 10**9)
            self.assertLessEqual(worst, error + 1)
            self.assertTrue(error == known if known else error > 10**6, error)
        self.assertEqual(self.placed(lambda ns: ns * 4 // 10, start[:2], 10**12 + 10**9)[1], None)
        # Beyond both ends the error grows.
        both = [*start, *(at + 10**8 for at in start)]
        worst, error, _ = self.placed(lambda ns: ns * 4 // 10, both, 10**12 + 10**9)
        self.assertTrue(worst < error and 25000 < error < 35000, (worst, error))

    def test_suspended(self):
        """A clock that stood still in between has no one shift."""
        markers = [10**12 + 3000 * n for n in (0, 1, 10**5, 10**5 + 1)]
        _, error, how = self.placed(lambda ns: ns - 10**9 * (ns > 10**12 + 10**8), markers, 10**12 + 10**9)
        self.assertIsNone(error)
        self.assertIn("was suspended", how)

    def test_late_marker(self):
        """A marker that was preempted behind its readings does not make a right name wrong."""
        lines = self.marked(lambda ns: ns, 9).splitlines(keepends=True)
        late = ("m-1 [000] ..... 1001.900000000: tracing_mark_write: npuprof_clock mono=1001500000000 "
                "boot=1001500000000\n")
        (scratch() / "l.txt").write_text("".join(lines) + late)
        self.assertEqual(clock_of(KernelText(scratch() / "l.txt"), "boot").error_ns, 5000)

    def test_markers_of_two_threads(self):
        """The readings of another thread bracket nothing."""
        lines = self.marked(lambda ns: ns).replace("m-1", "m-2", 1)
        (scratch() / "t.txt").write_text(lines)
        self.assertEqual([marker.width is None for marker in markers(KernelText(scratch() / "t.txt"))],
                         [True, True, False, True])

    def test_one_marker(self):
        """One marker places the text, and does not bound the error."""
        first = self.marked(lambda ns: ns).splitlines(keepends=True)
        (scratch() / "o.txt").write_text(first[0] + first[2])
        self.assertIsNone(clock_of(KernelText(scratch() / "o.txt")).error_ns)

    def test_readings_that_stand(self):
        """They tell no rate, and no error."""
        lines = self.marked(lambda ns: ns - 5 * 10**11).splitlines(keepends=True)
        again = [line[:line.index("tracing_mark")] + own[own.index("tracing_mark"):]
                 for line, own in zip(lines[3:], lines)]
        (scratch() / "s.txt").write_text("".join(lines[:3] + again))
        source = KernelText(scratch() / "s.txt")
        source.convert = (clock := clock_of(source)).convert
        self.assertEqual((len(list(source.items())), clock.error(source)), (5, None))

    def test_latency_format(self):
        """Its times count from the first event: refused, or placed by markers."""
        lines = Machine(8).run(5).lines
        (scratch() / "l.txt").write_text(kernel_texts.latency(lines))
        self.assertIn("latency format", helpers.refused("merge", "--ftrace", "l.txt", "-o", "l.json"))
        mark = [(ns, 0, "m", 1, 1, ".....", "", "tracing_mark_write",
                 f"npuprof_clock mono={ns + 10**15} boot={ns + 10**15}")
                for ns in (lines[0][0] - 10000, lines[0][0] - 5000)]
        (scratch() / "l.txt").write_text(kernel_texts.latency(mark + lines))
        source = KernelText(scratch() / "l.txt")
        source.convert = clock_of(source).convert
        events = list(source.items())[2:]
        self.assertEqual(len(events), len(lines))
        for event, line in zip(events, lines):
            self.assertLessEqual(abs(event.ns - 10**15 - line[0]), 6000)
