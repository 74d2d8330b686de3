# SPDX-License-Identifier: MIT
"""Texts of drivers with lines of their own, ivpu and virtio_gpu, made by a machine that exists here only, and
the truth about their jobs. It knows nothing of the reader under test.

    machine = Machine(seed, "ivpu", contexts=3).run(jobs)
    machine.lines           as those of kernel_texts
    machine.truth           [(label, ns of the line of submit, begin, end, ns of the line of end)]
"""

import random

from kernel_texts import Queue

APP, WORKER, IRQ = 70, 87, 160


class Machine(Queue):
    """kind: ivpu, virtio_gpu, or virtio_gpu new: with numbers of its own. contexts: queues of the engine,
    each in order; keys: how many numbers of jobs a context of ivpu has; taken: the share of jobs that take
    the engine from another context's job, which goes on behind them, or in turns with them; late: the share
    of submissions whose thread loses its CPU between its line and the doorbell."""

    def __init__(self, seed, kind, contexts=3, keys=6, taken=0.0, late=0.0, turns=False):
        self.random, self.kind, self.contexts, self.keys = random.Random(seed), kind, contexts, keys
        self.taken, self.late, self.turns = taken, late, turns
        super().__init__()
        self.truth = []
        self.queue, self.flying, self.count, self.number, self.free = [], [], 0, {}, 0
        self.used = set()

    def line(self, ns, cpu, who, system, name, text, flags="....."):
        comm, tid = {"app": ("app", APP), "worker": ("kworker/1:1", WORKER), "idle": ("<idle>", 0)}[who]
        self.lines.append((ns, cpu, comm, tid, tid or None, flags, system, name, text))

    def run(self, jobs, gap=400000):
        now = 10**9
        for _ in range(jobs):
            self.at(now, self.submit)
            now += self.random.randrange(gap // 10, gap)
        return self.happen()

    def told(self, ns, job, step, cpu, who, flags="....."):
        if self.kind == "ivpu":
            self.line(ns, cpu, who, "vpu", "job", "{} context:{} engine:0 job:{}".format(
                "done" if step == "response" else "submit", job["context"], job["id"]), flags)
            return
        more = f" num_free={60 - len(self.flying)} seqno={job['n']}" if self.kind.endswith("new") else ""
        kind, flag = ("0x207", int(job["id"] > 0)) if step == "queue" else ("0x1100", int(job["id"] > 0))
        context = job["context"] if step == "queue" or flag else 0
        self.line(ns, cpu, who, "virtio_gpu", f"virtio_gpu_cmd_{step}",
                  f"vdev=0 vq=0 name=control type={kind} flags=0x{flag} fence_id={job['id']} ctx_id={context}"
                  + more, flags)

    def submit(self, ns):
        self.count += 1
        context = self.random.randrange(self.contexts) + 1
        number = self.number[context] = self.number.get(context, 0) + 1
        # Why nothing: each of its numbers belongs to a job that runs.
        if self.kind == "ivpu":
            number = next((n for n in range(number, number + self.keys)
                           if (context, n % self.keys) not in self.used), None)
            if number is None:
                return
            self.number[context] = number
            self.used.add((context, number % self.keys))
        own = number % self.keys if self.kind == "ivpu" else self.count * (self.random.random() < 0.5)
        job = {"context": context, "id": own, "n": self.count, "submit": ns + 1500}
        late = self.random.randrange(10**6) if self.random.random() < self.late else 0
        if late:
            for after, a, b in ((2000, ("app", APP, "R+"), ("other", 99)),
                                (late, ("other", 99, "S"), ("app", APP))):
                self.line(ns + after, 0, "app", "sched", "sched_switch",
                          f"prev_comm={a[0]} prev_pid={a[1]} prev_prio=120 prev_state={a[2]} ==> "
                          f"next_comm={b[0]} next_pid={b[1]} next_prio=120", "d..2.")
        bell = ns + self.random.randrange(0, 1400) if self.kind == "ivpu" else ns + 2500 + late
        self.told(job["submit"], job, "queue", 0, "app")
        self.at(bell, self.rung, job)

    def rung(self, ns, job):
        """The device knows of the job. It takes the contexts in no known order, each of them in order."""
        self.queue.append(job)
        first = self.flying[-1] if self.flying else None
        if (first and first["context"] != job["context"] and len(self.flying) == 1
                and self.random.random() < self.taken
                and not any(own["context"] == job["context"] for own in self.queue[:-1])):
            self.begins(ns, job)
        elif not self.flying:
            self.begins(ns, self.queue[0])

    def begins(self, ns, job):
        took = self.random.randrange(20000, 500000)
        for own in self.flying:
            own["end"] += took if not self.turns else self.random.randrange(took)
        self.queue.remove(job)
        self.flying.append(job)
        job["begin"], job["end"] = ns, ns + took
        self.at(job["end"], self.ends, job)

    def ends(self, ns, job):
        if ns < job["end"]:
            self.at(job["end"], self.ends, job)
            return
        self.flying.remove(job)
        entry = max(ns + self.random.randrange(500, 3000), self.free)
        told = max(entry + self.random.randrange(1000, 4000), job["submit"] + 2000)
        self.free = told + 1000
        name = "intel_vpu" if self.kind == "ivpu" else "virtio0-control"
        self.line(entry, 1, "idle", "irq", "irq_handler_entry", f"irq={IRQ} name={name}", "d.h..")
        self.told(told, job, "response", 1, "idle", "d.h..")
        self.at(told, self.gone, job)
        self.line(told + 500, 1, "idle", "irq", "irq_handler_exit", f"irq={IRQ} ret=handled", "d.h..")
        label = f"{job['context']}:{job['id']}" if self.kind == "ivpu" else ":".join(
            str(n) for n in (0, 0, job["n"] if self.kind.endswith("new") else job["id"]))
        self.truth.append((label, job["submit"], job["begin"], job["end"], told))
        waits = {}
        for own in self.queue:
            waits.setdefault(own["context"], own)
        if waits and not self.flying:
            self.begins(ns, self.random.choice(list(waits.values())))

    def gone(self, ns, job):
        self.used.discard((job["context"], job["id"]))


def lost(lines, form, share, seed=7):
    """The text of lines, of which each CPU loses some, some 20 at a time."""
    pick, missing, found = random.Random(seed), {}, []
    for line in lines:
        cpu = line[1]
        if missing.get(cpu) or pick.random() < share:
            missing[cpu] = missing.get(cpu, 0) + 1
            if pick.random() < 0.95:
                continue
            found.append(f"CPU:{cpu} [LOST EVENTS]\n")
            missing[cpu] = 0
        found.append(form([line]).splitlines()[-1] + "\n")
    return "".join(found)
