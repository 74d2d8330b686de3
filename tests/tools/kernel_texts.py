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
    """One scheduler: its context C of the fences "scheduled" (finished: C + 1), and its hardware."""

    def __init__(self, name, device, context, credits, irq):
        self.name, self.device, self.context, self.credits, self.irq = name, device, context, credits, irq
        self.seqno, self.queue, self.flying, self.free = 0, [], 0, 0


class Machine:
    """stable: the scheduler's events of 6.17 and later; fences: dma_fence; threaded: jobs end in a threaded
    interrupt; swapped: the share of jobs that end before the one before; switches: sched and irq events."""

    def __init__(self, seed, rings=None, stable=True, fences=True, threaded=False, swapped=0.0, old=False,
                 switches=True):
        self.random, self.stable, self.fences, self.old = random.Random(seed), stable, fences, old
        self.threaded, self.swapped, self.switches = threaded, swapped, switches
        self.rings = rings or [Ring("npu0", "fdab0000.npu", 5, 1, 45)]
        self.lines, self.truth, self.events, self.order = [], {}, [], 0

    # ---- A queue of what will happen

    def at(self, ns, what, *words):
        self.order += 1
        heapq.heappush(self.events, (ns, self.order, what, words))

    def run(self, jobs, gap=2000000):
        now = 10**9
        for _ in range(jobs):
            ring = self.random.choice(self.rings)
            self.at(now, self.submit, ring)
            now += self.random.randrange(gap // 10, gap)
        while self.events:
            ns, _, what, words = heapq.heappop(self.events)
            what(ns, *words)
        self.lines.sort(key=lambda line: line[0])
        return self

    def line(self, ns, cpu, who, name, text, flags="....."):
        comm, tid, tgid = {"app": ("app", APP, APP), "idle": ("<idle>", 0, None),
                           "kworker": ("kworker/0:1", KWORKER, KWORKER),
                           "irq": ("irq/45-fdab0000", IRQ_THREAD, IRQ_THREAD)}[who]
        system = {"sched_switch": "sched", "sched_waking": "sched", "irq_handler_entry": "irq",
                  "irq_handler_exit": "irq"}.get(
                      name, "dma_fence" if name.startswith("dma") else "gpu_scheduler")
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
        ran, handed = ns + 1000, ns + 1000 + self.random.randrange(4000, 40000)
        self.worker_free = handed + 1000
        self.line(ran, 0, "kworker", "drm_run_job" if self.old else "drm_sched_job_run",
                  self.old_text(job) if self.old else self.job_text(job))
        self.fence(handed, 0, "kworker", "signaled", ring, ring.context, job["n"])
        begin = max(self.random.randrange(ran + 500, handed), ring.free)
        end = begin + self.random.randrange(50000, 900000)
        if self.swapped and self.random.random() < self.swapped:
            begin, end = handed, handed + 20000         # another engine of the ring
        else:
            ring.free = end
        job["begin"], job["end"] = begin, end
        self.truth[f"{ring.context + 1}:{job['n']}"] = job["submit"], begin, end
        self.at(end, self.finished, ring, job)
        if ring.queue:
            self.at(self.worker_free, self.schedule, ring)

    def finished(self, ns, ring, job):
        """The interrupt, some 2 us after the end."""
        entry = max(ns + self.random.randrange(500, 3000), getattr(self, "irq_free", 0))
        told = entry + self.random.randrange(2000, 9000)
        who, flags, cpu = "idle", "d.h..", 1
        self.line(entry, cpu, "idle", "irq_handler_entry", f"irq={ring.irq} name={ring.device}", "d.h..")
        if self.threaded:
            # Why behind the return: there the kernel wakes the thread. A handler may do it, too.
            returns = entry + (300 if job["n"] % 2 else 600)
            self.line(returns, cpu, "idle", "irq_handler_exit", f"irq={ring.irq} ret=handled", "d.h..")
            self.waking(entry + 500, "idle", "irq/45-fdab0000", IRQ_THREAD, "d.h..")
            self.switch(entry + 700, 1, ("swapper/1", 0, "R"), ("irq/45-fdab0000", IRQ_THREAD))
            who, flags = "irq", "....."
        if self.stable and not self.old:
            self.line(told, cpu, who, "drm_sched_job_done",
                      f"fence={ring.context + 1}:{job['n']} signaled", flags)
        self.fence(told + 100, cpu, who, "signaled", ring, ring.context + 1, job["n"], flags)
        if self.threaded:
            self.switch(told + 900, 1, ("irq/45-fdab0000", IRQ_THREAD, "S"), ("swapper/1", 0))
        else:
            self.line(told + 900, cpu, "idle", "irq_handler_exit", f"irq={ring.irq} ret=handled", "d.h..")
        self.irq_free = told + 1000
        self.at(told + 2000, self.release, ring)

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
