# test: time=30 - jobs from drivers' own lines: ivpu, amdxdna, virtio_gpu, and a driver of ten lines of TOML
# SPDX-License-Identifier: MIT
import unittest

import helpers
import kernel_drivers
import kernel_texts
from helpers import scratch
from npuprof.kernel.lines import KernelText
from npuprof.kernel.patterns import Patterns
from npuprof.kernel.witness import Witness
from test_kernel_jobs import LATENCY, jobs_of, merged

TOML = """
[[device]]
name = "toy"
lane = "core {core}"
key = ["id"]
in_order = true
submit = { event = "toy_submit", match = "core={core} id={id}" }
start = { event = "toy:toy_start", match = "id={id}" }
end = { event = "toy_done", match = "{_} id={id} in {_}" }
"""


def text(*lines):
    """Lines of a text: (us, cpu, "comm-tid", flags, event and its text)."""
    return "".join(f"{who:>20} [{cpu:03}] {flags} {us // 10**6}.{us % 10**6:06}: {what}\n"
                   for us, cpu, who, flags, what in lines)


class Drivers(unittest.TestCase):
    def jobs(self, lines, *words):
        said, trace = merged(text(*lines), *words, name="d")
        helpers.npuprof_py("check", "d.json")
        self.lanes = {event["tid"]: event["args"]["name"] for event in trace["traceEvents"]
                      if event["name"] == "thread_name"}
        return said, [(label, start // 1000, end // 1000, args) for label, start, end, args in jobs_of(trace)]

    def test_one_number_of_two_jobs(self):
        """What a resume and a sleep tell belongs to the job, and to no later one with its number."""
        def switch(leaves, state, comes):
            return (f"sched_switch: prev_comm={leaves[0]} prev_pid={leaves[1]} prev_prio=120 "
                    f"prev_state={state} ==> next_comm={comes[0]} next_pid={comes[1]} next_prio=120")
        app, irq, idle, own = ("app", 7), (1, "<idle>-0", "d.h.."), ("swapper/0", 0), (0, "app-7", ".....")
        entry, leave = "irq_handler_entry: irq=160 name=toy", "irq_handler_exit: irq=160 ret=handled"
        lines = [
            (990, *own, "toy_submit: core=0 id=1"),
            (1000, *own, "rpm_resume: toy flags-4 cnt-0  dep-0  auto-1 p-0 irq-0 child-0"),
            (2000, *own, "rpm_return_int: rpm_resume+0x1b/0x70:toy ret=0"), (2010, *own, "toy_start: id=1"),
            (2100, 0, "app-7", "d..2.", switch(app, "S", idle)),
            (2900, *irq, entry), (2905, *irq, "toy_done: core 0 id=1 in 9"),
            (2906, *irq, "sched_waking: comm=app pid=7 prio=120 target_cpu=000"), (2907, *irq, leave),
            (2910, 0, "<idle>-0", "d..2.", switch(idle, "R", app)),
            (3000, *own, "toy_submit: core=0 id=1"), (3010, *own, "toy_start: id=1"),
            (3100, 0, "app-7", "d..2.", switch(app, "S", idle)),
            (3900, *irq, entry), (3905, *irq, "toy_done: core 0 id=1 in 9"),
            (3906, *irq, "sched_waking: comm=app pid=7 prio=120 target_cpu=000"), (3907, *irq, leave),
            (3910, 0, "<idle>-0", "d..2.", switch(idle, "R", app))]
        (scratch() / "two.toml").write_text(TOML)
        _, trace = merged(text(*lines), "--ftrace-devices", "two.toml", name="two")
        jobs = [event for event in trace["traceEvents"] if event.get("args", {}).get("stamp") == "kernel"]
        self.assertEqual([job["args"].get("resume_ns") for job in jobs], [1000000, None])
        ended = {phase: [event["ts"] for event in trace["traceEvents"]
                         if event["name"] == "ended" and event["ph"] == phase] for phase in "sf"}
        self.assertEqual([round(f - s) for s, f in zip(ended["s"], ended["f"])], [10, 10])

    def test_ivpu(self):
        said, found = self.jobs([
            (1000, 0, "app-7", ".....", "job: create context:1 engine:0 job:0"),
            (1010, 0, "app-7", ".....", "job: submit context:1 engine:0 job:256"),
            (1020, 0, "app-7", ".....", "job: submit context:1 engine:0 job:257"),
            (1900, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=160 name=intel_vpu"),
            (1905, 1, "<idle>-0", "d.h..", "job: done context:1 engine:0 job:256"),
            (1907, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=160 ret=handled"),
            (2900, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=160 name=intel_vpu"),
            (2905, 1, "<idle>-0", "d.h..", "job: done context:1 engine:0 job:257"),
            (2907, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=160 ret=handled"),
            (2910, 1, "<idle>-0", "d.h..", "job: done context:1 engine:0 job:12")])
        (a, *times, first), (b, *more, second) = found
        self.assertEqual((a, times, b, more), ("1:256", [1010, 1900], "1:257", [1900, 2900]))
        self.assertIn("follows the doorbell", first["start"])
        self.assertNotIn("start_error_ns", first)
        self.assertEqual((second["start"], second["start_error_ns"]), ("start by order", 5000))
        self.assertEqual((first["end_by"], first["end_error_ns"]), ("interrupt 160 (intel_vpu)", 5000))
        self.assertIn("Intel NPU engine 0 context 1", self.lanes.values())
        self.assertIn("1 without a begin and 0 without an end", said)

    def test_contexts_that_take_turns(self):
        """A job that another context's outlives may have begun later than the one before it ended."""
        lines = [(us, 0, "app-7", ".....", f"job: submit context:{context} engine:0 job:{n}")
                 for us, context, n in ((1000, 1, 1), (1005, 2, 1), (1010, 1, 2))]
        for us, context, n in ((2000, 1, 1), (3000, 1, 2), (4000, 2, 1)):
            lines += [(us, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=160 name=intel_vpu"),
                      (us + 5, 1, "<idle>-0", "d.h..", f"job: done context:{context} engine:0 job:{n}"),
                      (us + 9, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=160 ret=handled")]
        _, found = self.jobs(lines)
        self.assertEqual({label: args["start"] for label, *_, args in found}["1:2"],
                         "start not known: another lane was busy, maybe on the same hardware")

    def test_interrupt_before_a_hole(self):
        """What was open before events were lost is not open behind them."""
        lines = [(1010, 0, "app-7", ".....", "job: submit context:1 engine:0 job:256"),
                 (1500, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=27 name=disk"),
                 (1900, 1, "<idle>-0", "d.h..", "job: done context:1 engine:0 job:256")]
        for lost, end, known in (("", 1500, True), ("CPU:1 [LOST EVENTS]\n", 1900, False)):
            _, trace = merged(text(*lines[:2]) + lost + text(lines[2]), name="d")
            (_, _, ended, args), = jobs_of(trace)
            self.assertEqual((ended, "end_error_ns" in args), (end * 1000, known))

    def test_interrupt_of_others(self):
        """What told nine ends is their interrupt; another one, that told one, may have come after that."""
        lines = []
        for n in range(10):
            who = "irq=27 name=disk" if n == 5 else "irq=160 name=intel_vpu"
            lines += [(1000 * n + 10, 0, "app-7", ".....", f"job: submit context:1 engine:0 job:{n}"),
                      (1000 * n + 500, 1, "<idle>-0", "d.h..", f"irq_handler_entry: {who}"),
                      (1000 * n + 505, 1, "<idle>-0", "d.h..", f"job: done context:1 engine:0 job:{n}"),
                      (1000 * n + 507, 1, "<idle>-0", "d.h..", f"irq_handler_exit: {who.split()[0]} "
                                                               "ret=handled")]
        _, found = self.jobs(lines)
        self.assertEqual([label for label, *_, args in found if "end_error_ns" not in args], ["1:5"])

    def test_interrupt_without_a_name(self):
        """Of an interrupt that only flags tell of nobody knows when it came."""
        lines = [(1010, 0, "app-7", ".....", "job: submit context:1 engine:0 job:256"),
                 (1500, 1, "<idle>-0", "d.h..", "sched_waking: comm=irq/160-vpu pid=33 prio=49 "
                                                "target_cpu=001"),
                 (1510, 1, "<idle>-0", "d..2.", "sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 "
                                                "prev_state=R ==> next_comm=irq/160-vpu next_pid=33 "
                                                "next_prio=49"),
                 (1520, 1, "irq/160-vpu-33", ".....", "job: done context:1 engine:0 job:256")]
        _, ((_, _, end, args),) = self.jobs(lines)
        self.assertEqual((end, args["end"]), (1520, "end as told, no interrupt seen"))

    def test_end_of_the_job_before(self):
        """It lies between its interrupt and its line, and so does the begin of a job that came meanwhile."""
        def fence(what, context, n):
            return f"dma_fence_{what}: driver=drm_sched timeline=npu context={context} seqno={n}"
        app, worker, irq = (0, "app-70", "....."), (0, "worker-87", "....."), (1, "<idle>-0", "d.h..")
        lines = [(us + n, *app, fence("init", 11 + n, job))
                 for job, us in ((1, 1000), (2, 1010)) for n in (0, 1)]
        lines += [(1100, *worker, fence("signaled", 11, 1)),
                  (1900, *irq, "irq_handler_entry: irq=45 name=npu"),
                  (1903, *worker, "drm_run_job: entity=1, id=2, fence=2, ring=npu, job count:0, "
                                  "hw job count:2"),
                  (1905, *worker, fence("signaled", 11, 2)), (1930, *irq, fence("signaled", 12, 1)),
                  (1940, *irq, "irq_handler_exit: irq=45 ret=handled"),
                  (2900, *irq, "irq_handler_entry: irq=45 name=npu"), (2910, *irq, fence("signaled", 12, 2))]
        _, (_, (_, start, _, args)) = self.jobs(lines)
        self.assertEqual((start, args["start_error_ns"]), (1905, 25000))

    def test_end_of_another_job_meanwhile(self):
        """Of jobs that do not run in order, one's end says nothing of the other's."""
        def fence(what, context, n):
            return f"dma_fence_{what}: driver=drm_sched timeline=npu context={context} seqno={n}"
        app, other, irq = (0, "app-70", "....."), (0, "<idle>-0", "d.h.."), (1, "<idle>-0", "d.h..")
        lines = [(1000 + 10 * n + context, *app, fence("init", context, n))
                 for n in (1, 2) for context in (11, 12)]
        lines += [(1100 + n, 0, "worker-87", ".....", fence("signaled", 11, n)) for n in (1, 2)]
        lines += [(1900, *irq, "irq_handler_entry: irq=45 name=npu"),
                  (1950, *other, "irq_handler_entry: irq=45 name=npu"),
                  (1960, *other, fence("signaled", 12, 2)),
                  (1970, *other, "irq_handler_exit: irq=45 ret=handled"),
                  (2100, *irq, fence("signaled", 12, 1))]
        _, found = self.jobs(lines)
        self.assertEqual({label: (end, args["end_error_ns"]) for label, _, end, args in found},
                         {"12:1": (1900, 200000), "12:2": (1950, 10000)})

    def test_addresses(self):
        """perf and trace.dat hold addresses where ivpu has texts: that is said."""
        said, _ = merged("app 7/7 [000] 1.000000: vpu:job: 0xffffffffc1234567 context:1 engine:0 job:2\n"
                         "app 7/7 [000] 1.000100: amdxdna:xdna_job: fence=(context:1, seqno:2), hwctx.1 "
                         "seq#:4 job run\napp 7/7 [000] 1.000200: amdxdna:xdna_job: fence=(context:1, "
                         "seqno:2), hwctx.1 seq#:4 signaled fence\n")
        self.assertIn("1 events job hold an address where the text is", said)

    def test_amdxdna(self):
        """Both formats, alone and beside the scheduler's events, whose fences they name."""
        for tail, last in (("", "signaled fence"), (", op=0", "signaling fence")):
            with self.subTest(last=last):
                own = [(2000, 0, "kworker/1-8", ".....", "xdna_job: fence=(context:6, seqno:1), "
                        f"hwctx.42.1 seq#:0 job run{tail}"),
                       (2010, 0, "kworker/1-8", ".....", "xdna_job: fence=(context:6, seqno:1), "
                        f"hwctx.42.1 seq#:0 sent to device{tail}"),
                       (2900, 1, "kworker/2-9", ".....", "xdna_job: fence=(context:6, seqno:1), "
                        f"hwctx.42.1 seq#:0 {last}{tail}")]
                _, found = self.jobs(own)
                self.assertEqual([job[:3] for job in found], [("6:1", 2010, 2900)])
                self.assertIn("AMD NPU hwctx.42.1", self.lanes.values())
                both = [(1900, 0, "app-7", ".....", "drm_sched_job_queue: dev=0000:c5:00.1, fence=6:1, "
                         "ring=amdxdna_js, job count:0, hw job count:0, client_id:3"),
                        (1990, 0, "kworker/1-8", ".....", "drm_sched_job_run: dev=0000:c5:00.1, fence=6:1, "
                         "ring=amdxdna_js, job count:0, hw job count:1, client_id:3"), *own,
                        (2950, 1, "kworker/2-9", ".....", "drm_sched_job_done: fence=6:1 signaled")]
                said, found = self.jobs(both)
                self.assertEqual([job[:3] for job in found], [("6:1", 2010, 2900)])
                self.assertEqual(found[0][3]["start"], "start bracketed 20 us")
                self.assertEqual(found[0][3]["thread"], "app (7)")
                self.assertIn("0000:c5:00.1 amdxdna_js stream 6", self.lanes.values())
                self.assertIn("0 without a begin and 0 without an end", said)

    def test_virtio_gpu(self):
        """Commands without a fence all have the number 0: first in, first out."""
        def line(us, what, fence, more):
            return us, 0, "Xorg-7", ".....", (f"virtio_gpu_cmd_{what}: vdev=0 vq=0 name=control type=0x207 "
                                              f"flags=0x0 fence_id={fence} ctx_id=1{more}")
        def jobs(more):
            _, found = self.jobs([line(1000, "queue", 0, more[0]), line(1010, "queue", 0, more[1]),
                                  line(1020, "queue", 8, more[2]), line(1100, "response", 0, more[1]),
                                  line(1150, "response", 8, more[2]), line(1200, "response", 0, more[0])])
            return {(label, end, args["end"].endswith("of another job with its key"))
                    for label, _, end, args in found}
        self.assertEqual(jobs([""] * 3), {("0:0", 1100, True), ("0:0", 1200, True), ("0:0:8", 1150, False)})
        # Newer kernels number them.
        self.assertEqual(jobs([f" num_free=63 seqno={n}" for n in (4, 5, 6)]),
                         {("0:0:4", 1200, False), ("0:0:5", 1100, False), ("0:0:6", 1150, False)})

    def test_truth(self):
        """What is said of the jobs of a made machine is true, also where numbers are used again, contexts
        take the device from each other, and events are lost."""
        for kind, least in (("ivpu", 200), ("virtio_gpu", 100), ("virtio_gpu new", 200)):
            for way, share in (({}, 0), ({"taken": 0.4}, 0), ({"taken": 0.5, "turns": True}, 0),
                               ({"late": 0.2}, 0), ({}, 0.01)):
                with self.subTest(kind=kind, share=share, **way):
                    machine = kernel_drivers.Machine(2, kind, **way).run(600 if share else 250)
                    text = kernel_drivers.lost(machine.lines, kernel_texts.ftrace, share)
                    known = self.truthful(machine, text)
                    self.assertGreater(known, 30 if share else least)

    def truthful(self, machine, lines):
        """How many errors are known; all of them are right."""
        (scratch() / "t.txt").write_text(lines)
        truth = {submit: rest for _, submit, *rest in machine.truth}
        found, known = Witness(KernelText(scratch() / "t.txt"), Patterns()).read(), 0
        for span in (span for own in found.spans.values() for span in own):
            begin, end, told = truth[span.job.submit]
            if span.job.done != told:
                self.assertIn("maybe of another job", span.end_why)
            for at, said, error in ((begin, span.start, span.start_error),
                                    (end, span.end, span.end_error)):
                if error is not None:
                    known += 1
                    self.assertTrue(said - error - LATENCY <= at <= said + error, span)
        return known

    def test_context_of_the_scheduler(self):
        """A job whose submission was lost runs in the lane of its context: behind the job before."""
        def own(us, n, what):
            return us, 0, "worker-8", ".....", f"xdna_job: fence=(context:6, seqno:{n}), h2 seq#:1 {what}"
        def scheduler(us, n, what):
            more = f"dev=d, fence=6:{n}, ring=r, job count:0, hw job count:1, client_id:3"
            more = f"fence=6:{n} signaled" if what == "done" else more
            return us, 0, "app-7", ".....", f"drm_sched_job_{what}: {more}"
        _, found = self.jobs([scheduler(1000, 1, "queue"), scheduler(1010, 1, "run"), own(1020, 1, "job run"),
                              own(1030, 2, "job run"), own(1040, 2, "sent to device"),
                              scheduler(1900, 1, "done"), scheduler(2900, 2, "done")])
        self.assertEqual([job[:3] for job in found], [("6:1", 1010, 1900), ("6:2", 1900, 2900)])

    def test_toml(self):
        (scratch() / "toy.toml").write_text(TOML)
        lines = [(1000, 0, "app-7", ".....", "toy_submit: core=1 id=0x10 more=2"),
                 (1050, 0, "app-7", ".....", "toy_start: id=16"),
                 (1900, 1, "worker-9", ".....", "toy_done: job id=16 in 850 us"),
                 (1905, 1, "worker-9", ".....", "toy_done: job id=17 in 850 us"),
                 (1910, 0, "app-7", ".....", "toy_submit: core=1 id=18"),
                 (1920, 0, "app-7", ".....", "toy_submit: core=1 id=18"),
                 (1940, 0, "app-7", ".....", "toy_submit_more: core=1 id=18"),
                 (1950, 1, "worker-9", ".....", "toy_done: job id=18 in 850 us")]
        said, found = self.jobs(lines, "--ftrace-devices", "toy.toml")
        self.assertEqual([job[:3] for job in found], [("16", 1050, 1900), ("18", 1920, 1950)])
        self.assertEqual(found[1][3]["start"], "start not known: something was not seen meanwhile")
        self.assertIn("toy core 1", self.lanes.values())
        self.assertIn("1 without a begin and 1 without an end", said)

    def test_key_of_two_jobs(self):
        """Whose end it is nobody knows, also of later jobs with that key."""
        (scratch() / "toy.toml").write_text(TOML)
        lines = [(1000, 0, "app-7", ".....", "toy_submit: core=1 id=1"),
                 (1010, 0, "app-7", ".....", "toy_submit: core=1 id=1"),
                 (3000, 0, "app-7", ".....", "toy_submit: core=1 id=1"),
                 (5000, 0, "app-7", ".....", "toy_submit: core=1 id=2")]
        for us in (2000, 4000, 6000):
            lines += [(us, 1, "<idle>-0", "d.h..", "irq_handler_entry: irq=45 name=npu"),
                      (us + 5, 1, "<idle>-0", "d.h..", f"toy_done: job id={1 + us // 6000} in 1 us"),
                      (us + 9, 1, "<idle>-0", "d.h..", "irq_handler_exit: irq=45 ret=handled")]
        _, found = self.jobs(sorted(lines), "--ftrace-devices", "toy.toml")
        self.assertEqual([(end, args.get("end_error_ns")) for _, _, end, args in found],
                         [(2005, None), (4005, None), (6000, 5000)])
        self.assertEqual(found[0][3]["end"], "end as told, maybe of another job with its key")

    def test_toml_refused(self):
        for old, new, said in (
                ("[[device]]", "[[devices]]", "must have [[device]] tables"),
                ('key = ["id"]', "", "has no key"),
                ("key", "keys", "keys = ['id']: not a member"),
                ("in_order = true", "in_order = 1", "in_order = 1"),
                ('match = "id={id}"', 'match = "id={it}"', "start: match has no {id}"),
                ("core={core} ", "", "submit: match has no {core}"), ("event", "evnt", "it must be { event"),
                ('"toy"', "toy", "no TOML")):
            with self.subTest(said=said):
                (scratch() / "bad.toml").write_text(TOML.replace(old, new))
                (scratch() / "d.txt").write_text(text((1, 0, "app-7", ".....", "x: y")))
                refused = helpers.refused("merge", "--ftrace", "d.txt", "--ftrace-devices", "bad.toml", "-o",
                                          "d.json")
                self.assertIn(said, refused)
                self.assertIn("bad.toml", refused)
