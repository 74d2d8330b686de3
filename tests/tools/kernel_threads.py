# SPDX-License-Identifier: MIT
"""Texts of the kernel's tracer of a made machine with CPUs, threads and interrupts, and the truth: what each
thread did, and what woke it. It knows nothing of the reader under test.

    machine = Machine(seed, die=0.2, ...).run(steps)
    machine.truth(tid, a, b)        {state: ns} of a thread in [a, b)
    machine.wakes                   (ns, tid) -> the words that a cause may have
    machine.names                   tid -> [(ns, name, tgid)], each from then on
    lost(machine, ...)              its text, with lines that are not there
"""

import random

import kernel_texts

RUN, READY, SLEEP, DEAD = "run", "ready", "sleep", "dead"
DEVICES = {27: "disk", 45: "npu", 46: "npu2"}
VECTORS = {3: "NET_RX", 6: "TASKLET", 1: "TIMER", 9: "RCU"}


class Thread:
    def __init__(self, tid, comm, times, tgid):
        self.tid, self.comm, self.times, self.state, self.tgid = tid, comm, times, SLEEP, tgid


class Machine:
    """cpus, threads: how many; shares: die, of sleeps that are the thread's last, and its tid is used again;
    early, of wake-ups between the decision to sleep and the switch; spurious, of wake-ups that find a thread
    awake; renames, of steps in which a thread takes another name; told: by task_rename."""

    def __init__(self, seed, cpus=2, threads=5, die=0.0, early=0.0, spurious=0.0, renames=0.0,
                 told=False):
        self.random, self.cpus, self.now, self.lines = random.Random(seed), cpus, 10**9, []
        self.die, self.early, self.spurious, self.renames, self.told = die, early, spurious, renames, told
        self.current, self.queues = [None] * cpus, [[] for _ in range(cpus)]
        self.had = [[(self.now, 0)] for _ in range(cpus)]            # CPU -> [(ns, tid that came)]
        self.wakes, self.dead = {}, []
        self.threads = {100 + n: Thread(100 + n, f"t{n % 3}", [(self.now, SLEEP)], 50)
                        for n in range(threads)}
        self.names = {tid: [(0, thread.comm, 50)] for tid, thread in self.threads.items()}

    def line(self, cpu, name, text, flags):
        self.now += self.random.randrange(100, 700)
        thread = self.current[cpu]
        comm, tid, tgid = (thread.comm, thread.tid, thread.tgid) if thread else ("<idle>", 0, None)
        self.lines.append((self.now, cpu, comm, tid, tgid, flags,
                           "sched" if "sched" in name else "irq", name, text))

    def turns(self, thread, state):
        thread.state = state
        thread.times.append((self.now, state))

    def switch(self, cpu, letters):
        leaves, queue = self.current[cpu], self.queues[cpu]
        comes = queue.pop(0) if queue else None
        (a, n), (b, m) = ((thread.comm, thread.tid) if thread else (f"swapper/{cpu}", 0)
                          for thread in (leaves, comes))
        self.line(cpu, "sched_switch", f"prev_comm={a} prev_pid={n} prev_prio=120 prev_state={letters} ==> "
                                       f"next_comm={b} next_pid={m} next_prio=120", "d..2.")
        if leaves:
            self.turns(leaves, READY if letters[0] == "R" else DEAD if letters in "XZ" else SLEEP)
            (queue if leaves.state == READY else self.dead if leaves.state == DEAD else []).append(leaves)
        if comes:
            self.turns(comes, RUN)
        self.current[cpu] = comes
        self.had[cpu].append((self.now, m))

    def wake(self, cpu, flags, causes, thread=None, name="sched_waking"):
        asleep = [thread for thread in self.threads.values() if thread.state == SLEEP]
        if thread or asleep:
            thread, to = thread or self.random.choice(asleep), self.random.randrange(self.cpus)
            self.line(cpu, name, f"comm={thread.comm} pid={thread.tid} prio=120 target_cpu={to:03}", flags)
            self.turns(thread, READY)
            self.queues[to].append(thread)
            self.wakes[self.now, thread.tid] = causes

    def interrupt(self, cpu):
        """An interrupt that wakes somebody, or asks for a softirq, as may another one before that begins."""
        vector, causes = self.random.choice(list(VECTORS)), []
        for irq in self.random.sample(list(DEVICES), self.random.choice((1, 1, 2))):
            self.line(cpu, "irq_handler_entry", f"irq={irq} name={DEVICES[irq]}", "d.h..")
            if self.random.random() < 0.5:
                self.wake(cpu, "d.h..", [f"interrupt {irq} (", "an interrupt on"])
            self.line(cpu, "softirq_raise", f"vec={vector} [action={VECTORS[vector]}]", "d.h..")
            self.line(cpu, "irq_handler_exit", f"irq={irq} ret=handled", "d.h..")
            causes.append(f"interrupt {irq} (")
        self.line(cpu, "softirq_entry", f"vec={vector} [action={VECTORS[vector]}]", "..s1.")
        if self.random.random() < 0.3:               # one that no line tells of
            self.wake(cpu, "d.H..", ["an interrupt on", "or another interrupt"])
        own = causes if len(causes) == 1 and vector in (3, 6) else []
        self.wake(cpu, "d.s3.", [f"softirq {VECTORS[vector]}", "a softirq", *own])
        self.line(cpu, "softirq_exit", f"vec={vector} [action={VECTORS[vector]}]", "..s1.")

    def step(self):
        pick = self.random
        cpu, what = pick.randrange(self.cpus), pick.random()
        thread, queue = self.current[cpu], self.queues[cpu]
        self.now += pick.randrange(500, 20000)
        if what < 0.1:
            self.interrupt(cpu)
        elif what < 0.15:
            self.wake(cpu, "d.h..", ["an interrupt on", "or another interrupt"])
        elif not thread:
            fullest = max(self.queues, key=len)
            if not queue and len(fullest) > 1:       # it moves to a CPU that has nothing to do
                queue.append(fullest.pop())
            if queue:
                self.switch(cpu, "R")
        elif what < 0.5 and pick.random() < self.early:
            self.line((cpu + 1) % self.cpus, "sched_waking",
                      f"comm=x pid={thread.tid} prio=120 target_cpu=000", "d.h..")
            self.switch(cpu, "S")
            self.turns(thread, READY)
            self.queues[cpu].append(thread)
        elif what < 0.5:
            self.switch(cpu, pick.choice("XZ" if pick.random() < self.die else ("S", "D", "I", "D|K", "T")))
        elif what < 0.65:
            self.switch(cpu, pick.choice(("R", "R+")))
        elif self.dead and what < 0.8:               # a new thread with a number that was in use
            old = self.dead.pop()
            new = self.threads[old.tid] = Thread(old.tid, f"n{len(self.lines)}", old.times, old.tgid + 1)
            self.names[old.tid].append((self.now, new.comm, new.tgid))
            self.wake(cpu, ".....", [], new, "sched_wakeup_new")
        elif pick.random() < self.spurious:
            awake = pick.choice([own for own in self.current if own])
            self.line(cpu, "sched_waking", f"comm=x pid={awake.tid} prio=120 target_cpu=000", ".....")
        else:
            self.wake(cpu, "d..3.", [f"({thread.tid})"])

    def rename(self):
        """A thread that runs takes a name of its own, or that of another one."""
        cpu = self.random.randrange(self.cpus)
        thread, name = self.current[cpu], self.random.choice(("t0", "t1", f"r{len(self.lines)}"))
        if thread:
            self.now += 1
            if self.told:
                self.line(cpu, "task_rename", f"pid={thread.tid} oldcomm={thread.comm} newcomm={name} "
                                              "oom_score_adj=0", ".....")
            thread.comm = name
            self.names[thread.tid].append((self.now, name, thread.tgid))

    def run(self, steps):
        for _ in range(steps):
            self.step()
            if self.renames and self.random.random() < self.renames:
                self.rename()
        for thread in self.threads.values():
            thread.times.append((self.now, "end"))
        return self

    def truth(self, tid, a, b):
        found, times = dict.fromkeys((RUN, READY, SLEEP, DEAD), 0), self.threads[tid].times
        for (since, state), (until, _) in zip(times, times[1:]):
            found[state] += max(0, min(until, b) - max(since, a))
        return found

    def named(self, tid, ns):
        """(name, tgid) of a thread at a time."""
        return [own[1:] for own in self.names[tid] if own[0] <= ns][-1]

    def ran(self, cpu, a, b):
        """The tids that had a CPU in [a, b)."""
        own = self.had[cpu]
        return {tid for (since, tid), (until, _) in zip(own, [*own[1:], (b, 0)]) if until > a and since < b}


def lost(machine, holes=0, overwritten=False, idle=False, form=kernel_texts.ftrace):
    """The text of a machine. holes: places where a CPU lost events; overwritten: each CPU has its own first
    event; idle: without the switches from idle."""
    lines, pick = machine.lines, random.Random(len(machine.lines))
    first, last, gone, after = lines[0][0], lines[-1][0], set(), {}
    for _ in range(holes):
        cpu, since = pick.randrange(machine.cpus), pick.randrange(first, last)
        own = [n for n, line in enumerate(lines) if line[1] == cpu and line[0] >= since]
        short = [n for n in own if lines[n][0] < since + 150000]
        if short and len(own) > len(short):
            gone.update(short)
            after[own[len(short)]] = cpu
    begins = [pick.randrange(first, (first + last) // 2) * overwritten for _ in range(machine.cpus)]
    gone.update(n for n, (ns, cpu, *_) in enumerate(lines) if ns < begins[cpu])
    gone.update(n for n, line in enumerate(lines) if idle and "prev_pid=0 " in line[8])
    text = f"# entries-in-buffer/entries-written: 1/{1 + overwritten}\n"
    for n, line in enumerate(lines):
        text += f"CPU:{after[n]} [LOST EVENTS]\n" if n in after else ""
        text += "" if n in gone else form([line]).splitlines()[-1] + "\n"
    return text
