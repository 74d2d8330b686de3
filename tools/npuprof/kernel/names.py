# SPDX-License-Identifier: MIT
"""Names and processes of threads, for each life of a tid.

tracefs and trace-cmd look up the name and the tgid of a line when the text is read: of a tid that was used
again, all lines have those of its last thread. Only names in the fields of events are of their time, and all
that perf prints. What a line says counts where no field says anything, and the tid had one life.

A life ends at sched_process_exit or a switch to a dead state; it begins at a fork or sched_wakeup_new, else
with the first sign behind an end. In a hole a life may end and another begin: nobody sees that.
"""

import re
from bisect import bisect_right

FORK = re.compile(r"comm=(.{0,16}) pid=(\d+) child_comm=(.{0,16}) child_pid=(\d+)")
NEW = re.compile(r"pid=(\d+) comm=(.{0,16}) clone_flags=")
EXIT = re.compile(r"comm=(.{0,16}) pid=(\d+) prio=")
RENAMED = re.compile(r"pid=(\d+) oldcomm=(.{0,16}) newcomm=(.{0,16}) oom_score_adj=")


class Life:
    """One life of a tid, from `begin`. runs: [[first ns, last ns, name]] of fields; comm, tgid: as lines say
    it, "" where they differ; births: the events that began it; ended: when it began to end, or None; gone: it
    left its CPU for good."""

    __slots__ = "begin", "runs", "comm", "tgid", "births", "used", "ended", "gone"

    def __init__(self, begin):
        self.begin, self.runs, self.comm, self.tgid, self.births = begin, [], None, None, set()
        self.used, self.ended, self.gone = False, None, False

    def seen(self, ns, comm):
        self.used = True
        if comm and self.runs and self.runs[-1][2] == comm:
            self.runs[-1][1] = ns
        elif comm:
            self.runs.append([ns, ns, comm])

    def name(self, ns):
        """Its name by its runs; "": between two names, and behind its end, it is not known."""
        n = bisect_right(self.runs, ns, key=lambda run: run[0]) - 1
        if n < 0 or ns <= self.runs[n][1]:
            return self.runs[max(n, 0)][2]
        known = n == len(self.runs) - 1 and self.ended is None
        return self.runs[n][2] if known else ""


class Names:
    """Takes what the events of a KernelText tell. After that name() and tgid() answer."""

    def __init__(self, text):
        self.text, self.lives, self.switches = text, {}, False
        self.handlers = {"sched_process_fork": self.forked, "task_newtask": self.new,
                         "sched_process_exit": self.exits, "task_rename": self.renamed}

    def now(self, tid, ns):
        """The life of a tid of which there is a sign now."""
        lives = self.lives.setdefault(tid, [])
        if not lives or lives[-1].gone:
            lives.append(Life(ns))
        return lives[-1]

    def line(self, event):
        """Takes the head of a line: the thread that ran."""
        life, comm = self.now(event.tid, event.ns), event.comm
        # Why: a thread that ends has lines before its last switch, but without switches nobody knows which.
        if life.ended is not None and not self.switches:
            life.gone = True
            life = self.now(event.tid, event.ns)
        life.used = True
        if comm in ("<...>", f":{event.tid}"):             # the tracer did not keep it
            comm = ""
        if self.text.form == "perf":
            life.seen(event.ns, comm)
        elif comm:
            life.comm = comm if life.comm in (None, comm) else ""
        if event.tgid is not None:
            life.tgid = event.tgid

    def field(self, tid, ns, comm):
        """Takes the name of a thread in a field."""
        self.now(int(tid), ns).seen(ns, comm)

    def left(self, tid, ns, comm, dead):
        """Takes the switch of a thread that leaves its CPU, dead: for good."""
        self.switches = True
        self.field(tid, ns, comm)
        self.lives[int(tid)][-1].gone = dead

    def born(self, tid, ns, comm, event):
        """Takes an event that begins a life, as may several: the same one only once."""
        life = self.now(int(tid), ns)
        if life.used or event in life.births:
            life.gone = True
            life = self.now(int(tid), ns)
        life.births.add(event)
        life.seen(ns, comm)
        life.used = False

    def forked(self, event):
        if found := FORK.match(event.text):
            self.field(found[2], event.ns, found[1])
            self.born(found[4], event.ns, found[3], event.name)

    def new(self, event):
        if found := NEW.match(event.text):
            self.born(found[1], event.ns, found[2], event.name)

    def exits(self, event):
        if found := EXIT.match(event.text):
            self.field(found[2], event.ns, found[1])
            self.lives[int(found[2])][-1].ended = event.ns

    def renamed(self, event):
        if found := RENAMED.match(event.text):       # Why not of newer kernels: they do not say whom
            self.field(found[1], event.ns, found[2])
            self.field(found[1], event.ns, found[3])

    # ---- Questions

    def life(self, tid, ns):
        """The Life of a tid at a time, or None."""
        lives = self.lives.get(tid)
        return lives[max(0, bisect_right(lives, ns, key=lambda life: life.begin) - 1)] if lives else None

    def name(self, tid, ns):
        """The name of a thread at a time; "": not known."""
        life = self.life(tid, ns)
        if life and life.runs:
            return life.name(ns)
        return life and len(self.lives[tid]) == 1 and life.comm or ""

    def tgid(self, tid, ns):
        """The process of a thread at a time; None: not known."""
        life = self.life(tid, ns)
        own = life and (self.text.form == "perf" or len(self.lives[tid]) == 1)
        return life.tgid if own else None

    def titled(self, tid, ns):
        return f"{self.name(tid, ns) or '?'} ({tid})"
