# merge --ftrace: the kernel's events on the timeline of ours, from made texts and from this machine's tracer
# SPDX-License-Identifier: MIT
import json
import os
import pathlib
import sys
import unittest

import helpers
import pftrace
import sched_waits
from helpers import run, scratch

TRACEFS = pathlib.Path("/sys/kernel/tracing")
WAITS = 1000
PROGRAM = """
#include "npuprof.h"
#include <time.h>
int main(void)
{
    struct timespec pause = { 0, 200000 };
    npuprof_start(1);
    for (int i = 0; i < WAITS; i++) { PROF_SCOPE("wait"); nanosleep(&pause, NULL); }
    return (int)npuprof_dump("waits.npuprof");
}
"""
SWITCH, WAKING, IRQ, GENERIC = sched_waits.SWITCH, 20, 36, 327


def text(field):
    return field.decode()


class Ftrace(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        helpers.tool("npuprof-convert")
        (scratch() / "waits.c").write_text(PROGRAM)
        cls.program = helpers.build(scratch() / "waits.c", "waits", f"-DWAITS={WAITS}")
        source = scratch() / "one.c"
        source.write_text('#include "npuprof.h"\n'
                          'int main(void) { npuprof_start(1); { PROF_SCOPE("a"); }\n'
                          'return (int)npuprof_dump("one.json"); }\n')
        assert run([helpers.build(source, "one")], env=helpers.environment(), cwd=scratch()).returncode == 0
        cls.about = json.loads((scratch() / "one.json").read_text())["metadata"]["npuprof"]

    def merge(self, *words, **options):
        return helpers.npuprof_py("merge", *words, **options)

    def lines(self, stamp):
        """Events of each kind, as tracefs and trace-cmd print them; stamp(n) is the text of a time."""
        return "\n".join([
            "# tracer: nop", "#", "cpus=2",
            f"          <idle>-0       [001] d..2.  {stamp(0)}: sched_switch: prev_comm=swapper/1 prev_pid=0 "
            "prev_prio=120 prev_state=R+ ==> next_comm=a name-1 next_pid=77 next_prio=-2",
            f"       a name-1-77    (   70) [000] ....  {stamp(1)}: sched_waking: comm=my task pid=78 "
            "prio=120 target_cpu=001",
            f"            bash-9     [000]  {stamp(2)}: irq_handler_entry:    irq=27 name=virtio0",
            f"            bash-9     [000]  {stamp(3)}: npu_submit:        job=5 queue=0x10 note=first one",
            "CPU:1 [LOST 12 EVENTS]",
            f"            bash-9     [001]  {stamp(4)}: sched_switch: bash:9 [120] D ==> swapper/0:0 [120]",
            f"            bash-9     [001] .....  {stamp(5)}: tracing_mark_write: B|1|x", ""])

    def check(self, found, times):
        self.assertEqual(found.errors, [])
        self.assertEqual([event[0] for event in found.kernel], times)
        first, waking, irq, driver, last = (event[4] for event in found.kernel)
        self.assertEqual([event[1:4] for event in found.kernel],
                         [(1, 0, SWITCH), (0, 77, WAKING), (0, 9, IRQ), (0, 9, GENERIC), (1, 9, SWITCH)])
        self.assertEqual((text(first[1]), first[2], first[4], text(first[5]), first[6]),
                         ("swapper/1", 0, 2048, "a name-1", 77))
        self.assertEqual(pftrace.signed(first[7]), -2)
        self.assertEqual((text(waking[1]), waking[2], waking[5]), ("my task", 78, 1))
        self.assertEqual((irq[1], text(irq[2])), (27, "virtio0"))
        self.assertEqual(text(driver[1]), "npu_submit")
        self.assertEqual((text(last[1]), last[4], text(last[5])), ("bash", 2, "swapper/0"))

    def test_clocks(self):
        """Nanoseconds and microseconds of CLOCK_MONOTONIC and _BOOTTIME, and ticks."""
        mono, boot = self.about["start_monotonic_ns"], self.about["start_boottime_ns"]
        for clock, start, digits in (("mono", mono, 9), ("mono", mono, 6), ("boot", boot, 9)):
            with self.subTest(clock=clock, digits=digits):
                times = [start + 1000000 + 1000 * n for n in range(6)]
                unit = 10 ** (9 - digits)
                stamps = [f"{ns // 10**9}.{ns % 10**9 // unit:0{digits}}" for ns in times]
                (scratch() / "k.txt").write_text(self.lines(lambda n: stamps[n]))
                done = self.merge("one.json", "--ftrace", "k.txt", "--ftrace-clock", clock, "-o", "k.pftrace")
                expected = [ns // unit * unit + boot - start for ns in times[:5]]
                self.check(pftrace.read((scratch() / "k.pftrace").read_bytes()), expected)
                *_, said, lost = done.stdout.splitlines()
                self.assertIn("5 events of 2 CPUs", said)
                self.assertIn(f"error at most {self.about['clock']['error_ns'] + unit} ns", said)
                self.assertIn("12 lost", said)
                self.assertIn("12 kernel events lost, in 1 hole", lost)

    def test_ticks(self):
        clock = self.about["clock"]
        ticks = [clock["start_ticks"] + 1000000 * n for n in range(6)]
        (scratch() / "k.txt").write_text(self.lines(lambda n: str(ticks[n])))
        done = self.merge("one.json", "--ftrace", "k.txt", "--ftrace-clock", "x86-tsc", "-o", "k.pftrace")
        if clock["source"] != "tsc":
            self.assertEqual(done.returncode, 2)
            self.assertIn("not tsc", done.stderr)
            self.skipTest(f"the clock of this machine is {clock['source']}, not tsc")
        (scratch() / "seconds.txt").write_text(self.lines(lambda n: f"{n + 1}.000000"))
        wrong = self.merge("one.json", "--ftrace", "seconds.txt", "--ftrace-clock", "x86-tsc", "-o",
                           "w.pftrace", code=2)
        self.assertIn("seconds.txt:4: a time in seconds", wrong.stderr)
        found = pftrace.read((scratch() / "k.pftrace").read_bytes())
        base = self.about["start_boottime_ns"]
        for event, tick in zip(found.kernel, ticks):
            ns = (tick - clock["start_ticks"]) / clock["hz"] * 1e9
            self.assertLessEqual(abs(event[0] - base - ns), 2)

    def test_bad_input(self):
        (scratch() / "k.txt").write_text("what is this\n")
        for words, said in ((["--ftrace", "k.txt", "-o", "k.pftrace"], "k.txt:1: no line of ftrace"),
                            (["--ftrace", "none.txt", "-o", "k.pftrace"], "cannot be read")):
            done = self.merge("one.json", *words, code=2)
            self.assertIn(said, done.stderr)

    def test_waits_of_this_machine(self):
        """Each span that waits holds a sleep of its thread in sched_switch, within the stated error."""
        switches = TRACEFS / "events/sched/sched_switch"
        if not os.access(TRACEFS / "trace_clock", os.W_OK) or not switches.exists():
            self.skipTest("the kernel's tracer needs root, and tracefs at /sys/kernel/tracing")

        def put(name, value):
            (TRACEFS / name).write_text(value)
        if (TRACEFS / "set_event").read_text().strip():
            self.skipTest("somebody else uses the kernel's tracer")
        clock = (TRACEFS / "trace_clock").read_text().split("[")[1].split("]")[0]
        size = (TRACEFS / "buffer_size_kb").read_text().split()[0]
        try:
            for name, value in (("tracing_on", "0"), ("trace_clock", "mono"), ("buffer_size_kb", "8192"),
                                ("trace", "\n"), ("events/sched/sched_switch/enable", "1"),
                                ("tracing_on", "1")):
                put(name, value)
            done = run([self.program], env=helpers.environment(), cwd=scratch())
            put("tracing_on", "0")
            self.assertEqual(done.returncode, 0)
            (scratch() / "k.txt").write_bytes((TRACEFS / "trace").read_bytes())
        except OSError as error:
            self.skipTest(f"the kernel's tracer refuses: {error}")
        finally:
            put("events/sched/sched_switch/enable", "0")
            put("trace_clock", clock)
            put("buffer_size_kb", size)
            put("trace", "\n")
        done = self.merge("waits.npuprof", "--ftrace", "k.txt", "-o", "k.pftrace")
        error = int(done.stdout.rpartition("error at most ")[2].split()[0])
        found = sched_waits.compare(self, pftrace.read((scratch() / "k.pftrace").read_bytes()), error, 180000)
        self.assertEqual(found.waits, WAITS)
        if found.away < WAITS / 2:
            self.skipTest(f"the kernel traced {found.away} returns of the thread in {WAITS} waits: "
                          "some kernels leave out switches from idle")
        # A thread that was preempted on its way may find its time over, and the host of a virtual machine
        # takes time that its kernel does not see. On a busy machine both happen.
        self.assertGreater(found.slept, WAITS * 0.5)
        self.assertLess(found.short, WAITS * 0.5)
