# firmware that runs on a host, as a kernel module does: its place in time, the numbers of its tasks, and its
# tracks beside a program of that host, all quick
# SPDX-License-Identifier: MIT
import json

import helpers
import pftrace
from firmware.target import Target

HOUR = 3600 * 10**9
BOOT = 12345 * 10**9             # ns since boot of the first anchor; the monotonic clock has 1 s less
UNIX = 1700000000 * 10**9
TASK = 4242


def anchor(ticks, ns, error=50):
    """An anchor at ns after the first one."""
    return f"{ticks} {BOOT + ns} {BOOT - 10**9 + ns} {UNIX + ns} {error}"


class Host(Target):
    SOURCE = "kernel_trace.c"

    def trace(self, hz, *anchors, host="box"):
        """The trace, converted; also in the folder as driver.json."""
        self.quiet(hz, TASK, host, *anchors)
        found = self.converted("ram.bin")
        (self.folder / "driver.json").write_text(json.dumps(found, separators=(",", ":")))
        return found

    def spans(self, trace, name):
        return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["name"] == name]

    def test_place(self):
        """Each anchor says where the stamps after it are, after gaps that their 40 bits cannot tell."""
        for hz in (10**9, 3 * 10**9, 24 * 10**6):
            with self.subTest(hz=hz):
                gaps = [0, HOUR, 30 * HOUR, 30 * HOUR + 10**9]
                ticks = [10**15 + ns * hz // 10**9 for ns in gaps]
                found = self.trace(hz, *(anchor(t, ns) for t, ns in zip(ticks, gaps)))
                about = found["metadata"]["npuprof"]
                self.assertEqual((about["start_boottime_ns"], about["start_monotonic_ns"],
                                  about["start_unix_ns"]), (BOOT, BOOT - 10**9, UNIX))
                self.assertEqual((about["host"], about["program"]), ("box", "driver"))
                self.assertGreaterEqual(about["clock"]["error_ns"], 50 * 10**9 // hz)
                handlers = self.spans(found, "handler")
                self.assertEqual(len(handlers), 4)
                for span, ns in zip(handlers, gaps):
                    self.assertLessEqual(abs(span["ts"] * 1000 - ns - 1050 * 10**9 / hz), 2 + 10**9 / hz)
                    self.assertLessEqual(abs(span["dur"] * 1000 - 2000 * 10**9 / hz), 2 + 10**9 / hz)

    def test_rate(self):
        """The rate is corrected by the anchors, and the bound counts what it may have done between them."""
        ticks, ns = 10**12 + HOUR, HOUR + 5000000
        found = self.trace(10**9, anchor(10**12, 0), anchor(ticks, ns))
        clock = found["metadata"]["npuprof"]["clock"]
        spans = self.spans(found, "handler")
        for span, at in zip(spans, (0, ns)):
            self.assertLessEqual(abs(span["ts"] * 1000 - at - 1050), 2)
        self.assertLess(clock["error_ns"] + clock["drift_ns"], 10000)
        said = found["metadata"]["npuprof"]["user"]["npuprof.clock"]
        self.assertIn("2 anchors: the clock runs at -1.389 ppm of the stated rate, times are corrected", said)

    def test_one_anchor(self):
        """One anchor bounds no other time: nothing says how good they are, and the trace says that."""
        about = self.trace(10**9, anchor(10**12, 0))["metadata"]["npuprof"]
        self.assertNotIn("drift_ns", about["clock"])
        self.assertIn("1 anchor: times are by the stated rate", about["user"]["npuprof.clock"])

    def test_no_arena(self):
        """A dump of memory in which there is no arena is refused in words."""
        (self.folder / "none.bin").write_bytes(bytes(5000))
        done = helpers.run([helpers.tool("npuprof-convert"), "none.bin", "--elf", self.program],
                           cwd=self.folder, code=2)
        self.assertIn("nothing of npuprof is in this dump: it must hold the memory of the arena", done.stderr)

    def test_no_anchor(self):
        """Text that is no anchor is metadata, and nothing else."""
        for text in ("", "1 2 3 4", "1 2 3 4 5 6", "1 2 3 4 x", "-1 2 3 4 5", "1  2 3 4 5", "1 2 3 4 5 ",
                     "99999999999999999999 2 3 4 5"):
            with self.subTest(text=text):
                about = self.trace(10**9, text)["metadata"]["npuprof"]
                self.assertEqual(about["start_unix_ns"], 0)
                self.assertEqual(about["user"]["npuprof.anchor"], text)

    def test_long_names(self):
        about = self.trace(10**9, anchor(10**12, 0), host="ä" * 500)["metadata"]["npuprof"]
        self.assertEqual(about["host"], "ä" * 31)

    def test_tracks(self):
        """A task has its number; an interrupt has one that no task has."""
        found = self.trace(10**9, anchor(10**12, 0))
        names = {e["args"]["name"]: e for e in found["traceEvents"] if e["name"] == "thread_name"}
        self.assertEqual(names["app"]["args"]["native_id"], TASK)
        self.assertGreater(names["CPU 0 hardirq"]["args"]["native_id"], 2**22)
        self.assertGreater(found["metadata"]["npuprof"]["pid"], 2**22)
        (handler,), (irq,) = self.spans(found, "handler"), self.spans(found, "irq")
        self.assertEqual((handler["tid"], irq["tid"]), (names["app"]["tid"], names["CPU 0 hardirq"]["tid"]))

    def user_trace(self, native, host="box"):
        """A program's trace, two milliseconds earlier, whose one thread has that number."""
        about = {"version": "1.0.0", "host": host, "program": "app", "pid": TASK,
                 "start_unix_ns": UNIX - 2000000, "start_monotonic_ns": BOOT - 10**9 - 2000000,
                 "start_boottime_ns": BOOT - 2000000, "clock": {"source": "tsc", "hz": 1e9, "error_ns": 100},
                 "lost": {}, "user": {}, "devices": []}
        lines = ['{"ph":"M","name":"thread_name","pid":%d,"tid":%d,"args":{"name":"%s","native_id":%d}}'
                 % (TASK, tid, name, number) for tid, name, number in ((1, "main", native), (2, "other", 9))]
        lines += ['{"ph":"X","name":"submit","pid":%d,"tid":1,"ts":2000.500,"dur":9.000}' % TASK,
                  '{"ph":"X","name":"idle","pid":%d,"tid":2,"ts":0.000,"dur":1.000}' % TASK]
        (self.folder / "app.json").write_text(
            '{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n"displayTimeUnit":"ns",\n"metadata":{"npuprof":'
            + json.dumps(about) + "}}\n")

    def merge(self, output):
        helpers.npuprof_py("merge", "app.json", "driver.json", "-o", output, cwd=self.folder)
        return self.folder / output

    def test_merge(self):
        """What the module did in a task of the program is in that program, the rest in a process apart."""
        self.trace(10**9, anchor(10**12, 0))
        self.user_trace(TASK)
        merged = json.loads(self.merge("both.json").read_text())
        (handler,), (irq,), (submit,) = (self.spans(merged, n) for n in ("handler", "irq", "submit"))
        self.assertEqual((handler["pid"], irq["pid"]), (TASK, 2**22 + 1))
        self.assertNotIn(handler["tid"], (1, 2))
        names = {(e["pid"], e["tid"]): e["args"]["name"] for e in merged["traceEvents"]
                 if e["name"] == "thread_name"}
        self.assertEqual(names[handler["pid"], handler["tid"]], "app in driver")
        self.assertEqual(names[irq["pid"], irq["tid"]], "CPU 0 hardirq")
        self.assertLess(submit["ts"], handler["ts"])
        self.assertLess(handler["ts"] + handler["dur"], submit["ts"] + submit["dur"])
        helpers.npuprof_py("check", self.folder / "both.json")
        found = pftrace.read(self.merge("both.pftrace").read_bytes())
        self.assertEqual(found.errors, [])
        numbers = [t.ids[1] for t in found.tracks.values() if t.kind == "thread"]
        self.assertEqual(len(set(numbers)), len(numbers))
        self.assertTrue(all(n in (TASK, 9) or n > 2**22 for n in numbers), numbers)

    def test_merge_of_others(self):
        """A task of another number, and one of another host, are not the program's."""
        self.trace(10**9, anchor(10**12, 0))
        for native, host in ((TASK + 1, "box"), (TASK, "other")):
            with self.subTest(native=native, host=host):
                self.user_trace(native, host)
                (handler,) = self.spans(json.loads(self.merge("both.json").read_text()), "handler")
                self.assertEqual(handler["pid"], 2**22 + 1)
