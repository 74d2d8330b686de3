# test: time=30 - clock rates, runtime power management and temperatures beside jobs of a device
# SPDX-License-Identifier: MIT
import unittest

import helpers
from test_kernel_drivers import text
from test_kernel_jobs import merged

FLAGS = "flags-4 cnt-0  dep-0  auto-1 p-0 irq-0 child-0"
COUNT = 10


def job(n, us, resume=None):
    """The lines of a job of 900 us, by dma_fence. resume: us that its device takes to wake up, in the thread
    that gives it to the hardware."""
    def fence(what, context):
        return f"dma_fence_{what}: driver=drm_sched timeline=npu context={context} seqno={n}"
    app, worker = (0, "app-70", "....."), (0, "worker-87", ".....")
    lines = [(us, *app, fence("init", 11)), (us + 1, *app, fence("init", 12)),
             (us + 5, *worker, f"drm_run_job: entity=1, id={n}, fence=2, ring=npu, job count:0, "
                               "hw job count:1")]
    at = us + 6
    if resume:
        lines += [(at, *worker, f"rpm_resume: fdab0000.npu {FLAGS}"),
                  (at + 1, *worker, f"rpm_resume: 0000:00:0b.0 {FLAGS}"),
                  (at + 2, *worker, "rpm_return_int: rpm_resume+0x1b/0x70 [m]:0000:00:0b.0 ret=0"),
                  (at + resume, *worker, "rpm_return_int: rpm_resume+0x1b/0x70:fdab0000.npu ret=0")]
        at += resume
    end = at + 910
    return lines + [(at + 10, *worker, fence("signaled", 11)),
                    (end, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=45 name=npu"),
                    (end + 2, 1, "<idle>-0", "d.h..", fence("signaled", 12)),
                    (end + 3, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=45 ret=handled")]


def suspend(us):
    return [(us, 1, "kworker-5", ".....", f"rpm_suspend: fdab0000.npu {FLAGS}"),
            (us + 30, 1, "kworker-5", ".....", "rpm_return_int: rpm_suspend+0x1b/0x70:fdab0000.npu ret=0")]


class Power(unittest.TestCase):
    def run_of(self, more, resumes=(), lost=(0, 0)):
        """lost: from and to which us the lines of CPU 2 are lost, by lines of it there."""
        lines = [line for n in range(COUNT) for line in job(n, 10000 + 10000 * n, dict(resumes).get(n))]
        lines += [(us, 2, "other-9", ".....", "sched_waking: comm=x pid=8 prio=9 target_cpu=002")
                  for us in lost if us]
        lines = sorted([*lines, *more], key=lambda line: line[0])
        before = [line for line in lines if line[0] < lost[1]]
        hole = "CPU:2 [LOST 5 EVENTS]\n" * bool(lost[1])
        said, trace = merged(text(*before) + hole + text(*lines[len(before):]), name="p")
        self.checked = helpers.npuprof_py("check", "p.json").stdout
        events = trace["traceEvents"]
        self.jobs = [event for event in events if event.get("args", {}).get("stamp") == "kernel"]
        self.assertEqual(len(self.jobs), COUNT)
        self.counters = {}
        for event in events:
            if event["ph"] == "C":
                (unit, value), = event["args"].items()
                self.counters.setdefault((event["name"], unit), []).append((round(event["ts"]), value))
        return said, events

    def test_first_job_late_by_resume(self):
        said, events = self.run_of(suspend(34000) + suspend(2000), {0: 3000, 3: 4000})
        late = [event["args"].get("resume_ns") for event in self.jobs]
        self.assertEqual(late, [3000000 if n == 0 else 4000000 if n == 3 else None for n in range(COUNT)])
        asleep = [(event["ts"], event["dur"]) for event in events if event["name"] == "suspended"]
        self.assertEqual(asleep, [(0, 6), (24030, 5976)])
        self.assertIn("2 jobs began late by the resume of fdab0000.npu, 7 ms together, 4 ms at most", said)
        self.assertIn("5.98 ms in all", said)
        for checked in (self.checked, helpers.npuprof_py("report", "p.json").stdout):
            self.assertIn("warning: 2 jobs began late", " ".join(checked.split()))

    def test_not_suspended(self):
        """A suspend that is only asked for is none, and what a resume finds active is not suspended."""
        asked = [(us, who, cpu, flags, what.replace("flags-4", "flags-d"))
                 for us, who, cpu, flags, what in suspend(95000)]
        active = [(51000, 1, "app-71", ".....", f"rpm_resume: fdab0000.npu {FLAGS}"),
                  (51001, 1, "app-71", ".....", "rpm_return_int: rpm_resume+0x1b/0x70:fdab0000.npu ret=1")]
        _, events = self.run_of(suspend(34000) + suspend(44000) + active + asked, {3: 4000})
        self.assertEqual([event["dur"] for event in events if event["name"] == "suspended"], [5976])

    def test_others_resume(self):
        """A resume by a thread that has nothing to do with jobs, and one that did nothing."""
        more = [(20003, 1, "usb-9", ".....", f"rpm_resume: usb1 {FLAGS}"),
                (20990, 1, "usb-9", ".....", "rpm_return_int: rpm_resume+0x1b/0x70:usb1 ret=0"),
                (30002, 1, "app-70", ".....", f"rpm_resume: npu {FLAGS}"),
                (30003, 1, "app-70", ".....", "rpm_return_int: rpm_resume+0x1b/0x70:npu ret=1")]
        said, _ = self.run_of(more)
        self.assertNotIn("resume", said)
        self.assertNotIn("ok, with", self.checked)

    def test_resume_behind_the_submission(self):
        """What the submitter does while its job waits in the queue, or runs, delays nothing."""
        more = [(20006, 0, "app-70", ".....", f"rpm_resume: camera {FLAGS}"),
                (20014, 0, "app-70", ".....", "rpm_return_int: rpm_resume+0x1b/0x70:camera ret=0")]
        said, _ = self.run_of(more)
        self.assertNotIn("resume", said)

    def rate(self, us, rate, before, device="fdab0000.npu"):
        return us, 1, "kworker-5", ".....", (f"devfreq_frequency: dev_name={device:<30} freq={rate:<12} "
                                             f"prev_freq={before:<12} load=42")

    def test_throttled(self):
        """Half of the jobs ran below the highest rate: by how much, and that it was cooled."""
        cooled = 1, "kworker-5", "....."
        more = [self.rate(55000, 300000000, 1000000000),
                (55001, *cooled, "cdev_update: type=devfreq-npu target=2"),
                (54000, *cooled, "thermal_temperature: thermal_zone=npu-thermal id=1 temp_prev=84000 "
                                 "temp=95500")]
        said, _ = self.run_of(more)
        self.assertEqual(self.counters["fdab0000.npu frequency", "Hz"], [(0, 10**9), (45000, 3 * 10**8)])
        self.assertEqual(self.counters["npu-thermal temperature", "mdegC"], [(44000, 95500)])
        self.assertEqual(self.counters["devfreq-npu cooling", "state"], [(45001, 2)])
        self.assertIn("fdab0000.npu was throttled or saved power: in 50 % of the time in jobs it ran below "
                      "1000000000 Hz; devfreq-npu cooled with state 2", said)
        self.assertIn("warning: fdab0000.npu was throttled", " ".join(self.checked.split()))

    def test_rate_behind_lost_events(self):
        """A change back may be lost: what holds is known until there, and right before the next one."""
        dip, later = self.rate(50100, 200000000, 1000000000), self.rate(95000, 200000000, 1000000000)
        first, down, back, again = (0, 10**9), (40100, 2 * 10**8), (71000, 10**9), (85000, 2 * 10**8)
        for more, until, rates, share in (
                ([dip], 90919, [first, down], "in 18 % of the time in jobs it ran below 1000000000 Hz, of 4"),
                ([dip, later], 71000, [first, down, back, again], "in 27 %"),
                ([later], 71000, [first, back, again], "in 14 %")):
            said, events = self.run_of(more, lost=(51000, 81000))
            self.assertEqual([(event["ts"], event["ts"] + event["dur"]) for event in events
                              if event["name"] == "not known: events were lost"], [(41000, until)])
            self.assertEqual(self.counters["fdab0000.npu frequency", "Hz"], rates)
            self.assertIn(share, said)

    def test_asleep_behind_lost_events(self):
        """A device that was suspended may have been awake in between."""
        said, events = self.run_of(suspend(34000) + suspend(2000), {0: 3000, 3: 4000}, lost=(35000, 36000))
        self.assertEqual([(event["ts"], event["dur"]) for event in events if event["name"] == "suspended"],
                         [(0, 6), (24030, 970)])

    def test_not_throttled(self):
        """Between jobs, or less than one part in twenty; and another device of several."""
        for more in ([self.rate(12000, 3, 10), self.rate(19000, 10, 3)],
                     [self.rate(10700, 3, 10), self.rate(19000, 10, 3)],
                     [self.rate(55000, 3, 10, "ddr"), self.rate(56000, 3, 10, "gpu")]):
            said, _ = self.run_of(more)
            self.assertNotIn("throttled", said)


if __name__ == "__main__":
    unittest.main()
