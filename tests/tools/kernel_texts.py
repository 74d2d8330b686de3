# SPDX-License-Identifier: MIT
"""Texts of the kernel's tracer, made by a machine that exists here only: rings of the DRM scheduler with
jobs, and the truth about each of them. It knows nothing of the reader under test.

    machine = Machine(seed, credits=2, ...); machine.run(jobs)
    machine.lines           [(ns, cpu, comm, tid, tgid, flags, system, name, text)], in the order of time
    machine.truth           label of a job -> (submit, begin, end) in ns
    ftrace(lines), perf(lines), ...   the text in one of its forms
"""

import heapq
import random

APP, KWORKER, IRQ_THREAD = 70, 87, 33


class Ring:
    """One scheduler: its context C of the fences "scheduled" (finished: C + 1), and its hardware. engine: the
    Ring whose hardware it shares, in turns, or itself."""

    def __init__(self, name, device, context, credits, irq, seqno=0):
        self.name, self.device, self.context, self.credits, self.irq = name, device, context, credits, irq
        self.seqno, self.queue, self.flying, self.free = seqno, [], 0, 0
        self.engine = self


class Queue:
    """What will happen: (ns, order, method, its words); lines: what was told, by time."""

    def __init__(self):
        self.lines, self.events, self.order = [], [], 0

    def at(self, ns, what, *words):
        self.order += 1
        heapq.heappush(self.events, (ns, self.order, what, words))

    def happen(self):
        while self.events:
            ns, _, what, words = heapq.heappop(self.events)
            what(ns, *words)
        self.lines.sort(key=lambda line: line[0])
        return self


class Machine(Queue):
    """stable: the scheduler's events of 6.17 and later; fences: dma_fence; threaded: jobs end in a threaded
    interrupt; swapped: the share of jobs that end before the one before; switches: sched and irq events;
    stalls: the share of steps that take up to 2 ms more; together: the share of jobs whose end waits for the
    interrupt of the next; masked: the interrupt comes when its thread is done with the last one; polled:
    a timer asks for ends, each ms; pairs: each submission is one to each ring;
    xdna: lines of amdxdna, "in" or "out" of Linux' tree."""

    def __init__(self, seed, rings=None, stable=True, fences=True, threaded=False, swapped=0.0, old=False,
                 switches=True, stalls=0.0, together=0.0, polled=False, pairs=False, xdna="", masked=False):
        self.random, self.stable, self.fences, self.old = random.Random(seed), stable, fences, old
        self.threaded, self.swapped, self.switches = threaded, swapped, switches
        self.stalls, self.together, self.polled = stalls, together, polled
        self.pairs, self.xdna, self.masked = pairs, xdna, masked
        self.ended, self.thread_free = [], 0       # jobs whose interrupt is to come; when its thread sleeps
        self.rings = rings or [Ring("npu0", "fdab0000.npu", 5, 1, 45)]
        super().__init__()
        self.truth = {}

    def run(self, jobs, gap=2000000):
        now = 10**9
        for _ in range(jobs):
            for n, ring in enumerate(self.rings if self.pairs else [self.random.choice(self.rings)]):
                self.at(now + 1500 * n, self.submit, ring)
            now += self.random.randrange(gap // 10, gap)
        return self.happen()

    def line(self, ns, cpu, who, name, text, flags="....."):
        comm, tid, tgid = {"app": ("app", APP, APP), "idle": ("<idle>", 0, None),
                           "kworker": ("kworker/0:1", KWORKER, KWORKER),
                           "irq": ("irq/45-fdab0000", IRQ_THREAD, IRQ_THREAD)}[who]
        system = {"sched_switch": "sched", "sched_waking": "sched", "irq_handler_entry": "irq",
                  "irq_handler_exit": "irq", "hrtimer_expire_entry": "timer",
                  "hrtimer_expire_exit": "timer"}.get(
                      name, "dma_fence" if name.startswith("dma") else
                      "amdxdna" if name == "xdna_job" else "gpu_scheduler")
        kept = (self.fences if system == "dma_fence" else self.stable or self.old if system == "gpu_scheduler"
                else self.switches)
        if kept:
            self.lines.append((ns, cpu, comm, tid, tgid, flags, system, name, text))

    # ---- The machine

    def submit(self, ns, ring):
        ring.seqno += 1
        job = {"ring": ring, "n": ring.seqno, "submit": ns + 900}
        for after, context in ((0, ring.context), (400, ring.context + 1)):
            self.fence(ns + after, 0, "app", "init", ring, context, ring.seqno)
        if self.old:
            self.line(ns + 900, 0, "app", "drm_sched_job", self.old_text(job))
        elif self.stable:
            self.line(ns + 900, 0, "app", "drm_sched_job_queue", self.job_text(job))
        ring.queue.append(job)
        self.at(ns + 5000, self.schedule, ring)

    def killed(self, ns, count):
        """A thread is killed with jobs in the queue of the first ring: they end, and nothing runs them.
        Returns their labels."""
        ring, first = self.rings[0], self.rings[0].seqno + 1
        for n in range(first, first + count):
            for after, context in ((0, ring.context), (400, ring.context + 1)):
                self.fence(ns + after, 0, "app", "init", ring, context, n)
                self.fence(ns + 300000 + after, 0, "kworker", "signaled", ring, context, n)
            if self.stable and not self.old:
                self.line(ns + 900, 0, "app", "drm_sched_job_queue", self.job_text({"ring": ring, "n": n}))
            ns += 2000
        self.lines.sort(key=lambda line: line[0])
        return [f"{ring.context + 1}:{n}" for n in range(first, first + count)]

    def fence(self, ns, cpu, who, what, ring, context, n, flags="....."):
        self.line(ns, cpu, who, f"dma_fence_{what}", f"driver=drm_sched timeline={ring.name} "
                  f"context={context % 2**32} seqno={n % 2**32}", flags)

    def job_text(self, job):
        ring = job["ring"]
        return (f"dev={ring.device}, fence={ring.context + 1}:{job['n']}, ring={ring.name}, "
                f"job count:{len(ring.queue)}, hw job count:{ring.flying}, client_id:4")

    def old_text(self, job):
        ring = job["ring"]
        return (f"entity=(____ptrval____), id={job['n']}, fence=(____ptrval____), ring={ring.name}, "
                f"job count:{len(ring.queue)}, hw job count:{ring.flying}")

    def schedule(self, ns, ring):
        """The scheduler's worker gives jobs to the hardware, one after the other."""
        if not ring.queue or ring.flying >= ring.credits:
            return
        busy = getattr(self, "worker_free", 0)
        if busy > ns:
            self.at(busy, self.schedule, ring)
            return
        job = ring.queue.pop(0)
        ring.flying += 1
        ran = ns + 1000
        handed = ran + self.random.randrange(4000, 40000) + self.stall()
        self.worker_free = handed + 1000
        self.line(ran, 0, "kworker", "drm_run_job" if self.old else "drm_sched_job_run",
                  self.old_text(job) if self.old else self.job_text(job))
        self.driver(ran + 300, 0, "kworker", job, "job run")
        if self.xdna == "out":
            self.driver(handed - 200, 0, "kworker", job, "sent to device")
        self.fence(handed, 0, "kworker", "signaled", ring, ring.context, job["n"])
        begin = max(self.random.randrange(ran + 500, handed - 300), ring.engine.free)
        end = begin + self.random.randrange(50000, 900000)
        if self.swapped and self.random.random() < self.swapped:
            begin, end = handed, handed + 20000         # another engine of the ring
        else:
            ring.engine.free = end
        job["begin"], job["end"] = begin, end
        self.truth[f"{ring.context + 1}:{job['n']}"] = job["submit"], begin, end
        self.at(end, self.finished, ring, job)
        if ring.queue:
            self.at(self.worker_free, self.schedule, ring)

    def driver(self, ns, cpu, who, job, what, flags="....."):
        """The driver's own line."""
        ring = job["ring"]
        if self.xdna:
            tail = f", op={job['n'] % 5}" if self.xdna == "out" else ""
            self.line(ns, cpu, who, "xdna_job", f"fence=(context:{ring.context + 1}, seqno:{job['n']}), "
                      f"{ring.device} seq#:{job['n'] - 1} {what}{tail}", flags)

    def stall(self):
        return self.random.randrange(2000000) if self.random.random() < self.stalls else 0

    def finished(self, ns, ring, job):
        """The interrupt or the timer that sees it, some 2 us after the end at best."""
        self.ended.append((ring, job))
        if self.polled:
            self.at(ns // 1000000 * 1000000 + 1000000, self.asked)
        elif ring.flying <= len(self.ended) or self.random.random() >= self.together:
            self.interrupt(ns, ring)

    def asked(self, ns):
        """A timer asks which jobs have ended, and comes again when it has told it."""
        if ns < getattr(self, "timer_free", 0):
            self.at(ns + 1000000, self.asked)
        elif self.ended:
            self.line(ns, 1, "idle", "hrtimer_expire_entry", f"hrtimer=1 function=ask [npu] now={ns}",
                      "d.h..")
            returns = self.tell(ns, "idle", "d.h..") + 500
            self.timer_free = returns
            self.line(returns, 1, "idle", "hrtimer_expire_exit", "hrtimer=1", "d.h..")

    def interrupt(self, ns, ring):
        if self.masked and (self.thread_free >= ns or not self.ended):
            if self.ended:
                self.at(self.thread_free + 1000, self.interrupt, ring)
            return
        entry = max(ns + self.random.randrange(500, 3000), getattr(self, "irq_free", 0))
        self.line(entry, 1, "idle", "irq_handler_entry", f"irq={ring.irq} name={ring.device}", "d.h..")
        if not self.threaded:
            told = self.tell(entry, "idle", "d.h..")
            self.line(told + 900, 1, "idle", "irq_handler_exit", f"irq={ring.irq} ret=handled", "d.h..")
            self.irq_free = told + 1000
            return
        # Why behind the return: there the kernel wakes the thread. A handler may do it, too.
        returns = entry + (300 if ring.seqno % 2 else 600)
        self.line(returns, 1, "idle", "irq_handler_exit", f"irq={ring.irq} ret=handled", "d.h..")
        self.irq_free = entry + 700
        if self.thread_free < entry:
            self.waking(entry + 500, "idle", "irq/45-fdab0000", IRQ_THREAD, "d.h..")
            self.switch(entry + 700, 1, ("swapper/1", 0, "R"), ("irq/45-fdab0000", IRQ_THREAD))
        self.thread_free = self.tell(max(entry, self.thread_free), "irq", ".....") + 900
        self.at(self.thread_free, self.sleeps)

    def sleeps(self, ns):
        """The thread of the interrupt has nothing more to tell: else it goes on without a line."""
        if ns == self.thread_free:
            self.switch(ns, 1, ("irq/45-fdab0000", IRQ_THREAD, "S"), ("swapper/1", 0))

    def tell(self, ns, who, flags):
        """The ends of all that has ended. Returns when the last one was told."""
        for ring, job in self.ended:
            ns += self.random.randrange(2000, 9000) + self.stall()
            self.driver(ns - 300, 1, who, job, "signaling fence" if self.xdna == "out" else "signaled fence",
                        flags)
            if self.stable and not self.old:
                self.line(ns, 1, who, "drm_sched_job_done", f"fence={ring.context + 1}:{job['n']} signaled",
                          flags)
            ns += 100
            self.fence(ns, 1, who, "signaled", ring, ring.context + 1, job["n"], flags)
            self.at(ns + 2000, self.release, ring)
        self.ended = []
        return ns

    def release(self, ns, ring):
        ring.flying -= 1
        self.schedule(ns, ring)

    def waking(self, ns, who, comm, tid, flags):
        self.line(ns, 1, who, "sched_waking", f"comm={comm} pid={tid} prio=49 target_cpu=001", flags)

    def switch(self, ns, cpu, leaves, comes):
        who = {0: "idle", IRQ_THREAD: "irq"}[leaves[1]]
        self.line(ns, cpu, who, "sched_switch",
                  f"prev_comm={leaves[0]} prev_pid={leaves[1]} prev_prio=120 prev_state={leaves[2]} ==> "
                  f"next_comm={comes[0]} next_pid={comes[1]} next_prio=49", "d..2.")


# ---- The forms of a text


def stamp(ns, digits):
    return f"{ns // 10**9}.{ns % 10**9 // 10 ** (9 - digits):0{digits}}"


def ftrace(lines, digits=9, tgids=True, flags=True, prefix=""):
    """tracefs with 6 digits, trace-cmd report -t with 9; prefix: of a buffer of its own."""
    found = ["# tracer: nop", "#"]
    for ns, cpu, comm, tid, tgid, flag, _, name, text in lines:
        group = f" ({tgid:7})" if tgids and tgid else " (-------)" if tgids else ""
        found.append(f"{prefix}{comm:>16}-{tid:<7}{group} [{cpu:03}] {flag + ' ' if flags else ''}"
                     f"{stamp(ns, digits):>14}: {name}: {text}")
    return "\n".join(found) + "\n"


def read_late(lines):
    """The lines as tracefs and trace-cmd show them: each has the name and the tgid that its tid had last."""
    last = {line[3]: line[2:5:2] for line in lines}
    return [(ns, cpu, last[tid][0], tid, last[tid][1], *rest) for ns, cpu, _, tid, _, *rest in lines]


def report_l(lines, digits=9):
    """trace-cmd report -l"""
    found = ["cpus=2"]
    for ns, cpu, comm, tid, _, flag, _, name, text in lines:
        found.append(f"{comm:>8}-{tid:<5} {cpu:>3}{flag}  {stamp(ns, digits)}: {name + ':':21} {text}")
    return "\n".join(found) + "\n"


def latency(lines):
    """tracefs with options/latency-format"""
    first = lines[0][0]
    return ("# tracer: nop\n#\n# nop latency trace v1.1.5 on 6.18.0\n"
            + "".join(f"{comm[:8]:>8}-{tid:<7} {cpu:>3}{flag} {(ns - first) // 1000:>5}us!: {name}: {text}\n"
                      for ns, cpu, comm, tid, _, flag, _, name, text in lines))


def perf(lines, digits=9, both=True):
    """perf script --ns -F comm,pid,tid,cpu,time,event,trace; both=False: without -F"""
    return "".join(f"{'swapper' if tid == 0 else comm:>16} {f'{tgid or tid}/' if both else ''}{tid:<5} "
                   f"[{cpu:03}] {stamp(ns, digits):>14}: {system + ':' + name:>32}: {text}\n"
                   for ns, cpu, comm, tid, tgid, _, system, name, text in lines)
