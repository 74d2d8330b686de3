# SPDX-License-Identifier: MIT
"""Who ran on each CPU: the open interrupts, the threads and their states, and who woke whom.

States follow sched_switch and sched_waking. Before the first switch of a thread its state is not known, nor
from a Hole to its next line, unless it runs on another CPU: it may have been on that of the Hole.
"""

import re
from collections import defaultdict, namedtuple

from .lines import whole_number

# Without the arrow trace-cmd -R prints it, and the state as bits.
SWITCH = re.compile(r"prev_comm=(.{0,16}) prev_pid=(\d+) prev_prio=(-?\d+) prev_state=(\S+) (?:==> )?"
                    r"next_comm=(.{0,16}) next_pid=(\d+) next_prio=(-?\d+)")
SHORT_SWITCH = re.compile(r"(.*):(\d+) \[(-?\d+)\] (\S+) ==> (.*):(\d+) \[(-?\d+)\]")
WOKEN = re.compile(r"comm=(.{0,16}) pid=(\d+) prio=-?\d+(?: success=\d)? target_cpu=(\d+)"
                   r"|(.*):(\d+) \[-?\d+\].*")
IRQ = re.compile(r"irq=(\d+)(?: name=(.*))?")
IRQ_THREAD = re.compile(r"irq/(\d+)-")
TIMER = re.compile(r"hrtimer=\S+ function=(\S+(?: \[\w+\])?)")
SOFT = re.compile(r"vec=(\d+)(?: \[action=(\w+)\])?")
LEADS = "HI", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET"    # softirqs that finish an interrupt's work
UNNAMED = "an interrupt"         # the flags say so, and no line says which
A_TIMER = "a timer"              # how the name of such a Context begins
OF_TIMERS = re.compile(r"(?:.*[_-])?(?:hr)?timer\d*|hpet\d*|twd")    # interrupts of clocks and of no device
FOREVER = 2**63
HOPS = 4                         # of a chain of wake-ups
KEPT = 4096                      # Contexts in which a job ended
BEHIND_NS = 20000                # an interrupt that comes so soon when another one returned may have waited
A_WORKER = "kworker/"            # how the name of a thread begins that does the works of others in a row
WORK_NS = 100000                 # what it does later behind its begin or a job's end may be another work
RUNS, READY, SLEEPS, UNKNOWN = range(4)
# What ran somewhere. who: words, of a thread those behind its name until Waits.settle(); hard: a hard
# interrupt; since: when it began; key: equal for all that happens in it; raised: of an interrupt that may
# have waited for another one, or for its own thread, since when
Context = namedtuple("Context", "who hard since key cpu raised", defaults=(None,))
# One step of a chain of wake-ups: when, in which Context, and the Job whose end was told there at `done`, or
# None
Hop = namedtuple("Hop", "ns context job done")


class Thread:
    """A tid: its state since when, and the Hops that woke it last, the latest first. lost: a Hole made its
    state unknown. early: woken while it ran; its sleep may be none."""

    __slots__ = ("tid", "state", "since", "cpu", "hops", "ran_since", "ready_since", "lost",
                 "early")

    def __init__(self, tid, first):
        self.tid, self.state, self.since = tid, UNKNOWN, first
        self.cpu, self.hops, self.ran_since, self.ready_since = None, (), None, None
        self.lost = self.early = False


class Contexts:
    """What is known of all CPUs and threads.

    off(thread, kind, out, woken, back, ran): called when a thread is known to have been off its CPU, or when
    that is not known. kind: READY, SLEEPS or UNKNOWN; ran: who had the CPU that it got."""

    def __init__(self, off, names):
        self.off, self.names, self.threads = off, names, {}
        self.missing = 0                     # returns to a CPU without a line
        self.first = self.lost = None        # when the text begins, and when the last Hole ended
        self.fresh = set()                   # Threads that had a line since then, or run
        self.stacks = defaultdict(list)      # CPU -> [(Context, True: in a softirq)], the innermost last
        self.running = {}                    # CPU -> (pid that came to it last, as text, when)
        self.left = {}                       # CPU -> (Context of the handler that returned last, when)
        self.entered = {}                    # number of an interrupt -> when it came last
        self.worked = {}                     # number of one with a thread -> until when that ran
        self.raised = {}                     # (CPU, vector) -> the Context that raised it; None: several
        self.done = {}                       # key of a Context -> (ns, Job) of its last one that ended
        self.handlers = names.handlers | {
            "sched_switch": self.switch, "sched_waking": self.waking, "sched_wakeup_new": self.waking,
            "irq_handler_entry": self.irq_entry, "irq_handler_exit": self.handler_exit,
            "softirq_raise": self.soft_raise, "softirq_entry": self.soft_entry,
            "softirq_exit": self.soft_exit,
            "hrtimer_expire_entry": self.timer_entry, "hrtimer_expire_exit": self.handler_exit}

    def thread(self, tid):
        found = self.threads.get(tid)
        if found is None:
            found = self.threads[tid] = Thread(tid, self.first)
        self.fresh.add(found)
        return found

    def take(self, event):
        """Takes any event."""
        if self.first is None:
            self.first = event.ns
        thread = self.threads.get(event.tid) or self.thread(event.tid)
        self.names.line(event)
        handler = self.handlers.get(event.name)
        # Why not of its own switch: that is no sign of it before.
        elsewhere = thread.state == RUNS and thread.cpu != event.cpu
        if event.tid and event.name != "sched_switch" and (thread.state in (READY, SLEEPS) or elsewhere):
            self.missed(thread, event.ns)
            thread.state, thread.since, thread.cpu, thread.ran_since = RUNS, event.ns, event.cpu, event.ns
            thread.ready_since = None
            self.fresh.add(thread)
        if handler:
            handler(event)

    def hole(self, hole):
        """Takes a Hole: of what was on that CPU nothing is known. Returns when those interrupts began of
        which more may have come than is seen."""
        hit = {context.since for context, _ in self.stacks.pop(hole.cpu, ())}
        self.running.pop(hole.cpu, None)
        self.left.pop(hole.cpu, None)
        for key in [key for key in self.raised if key[0] == hole.cpu]:
            del self.raised[key]
        for thread in self.fresh:
            thread.early = True                        # the line of its waking may be among the lost ones
            if thread.state != RUNS or thread.cpu == hole.cpu:
                if thread.state != UNKNOWN:
                    self.until(thread, hole.since)
                    thread.state, thread.since = UNKNOWN, max(thread.since, hole.since)
                thread.lost, thread.ready_since = True, None
                hit.update(hop.context.since for hop in thread.hops)
                thread.hops = ()
        self.lost, self.fresh = hole.until, {thread for thread in self.fresh if thread.state == RUNS}
        return hit

    def end_of(self, thread, ns, ran=None):
        """Tells what a thread did until now, if it was not running."""
        if thread.state != RUNS:
            self.off(thread, thread.state, thread.since, thread.ready_since, ns, ran)
        thread.ready_since = None

    def until(self, thread, ns):
        """Tells what a thread did until now, if it was not running, and no more is known of it."""
        if thread.state == SLEEPS and (thread.ready_since or ns) >= ns:
            # Why not if it was woken early: it may have been ready all the time.
            thread.ready_since, thread.hops = None if thread.early else ns, ()
        self.end_of(thread, ns)

    def at_end(self, thread, ns):
        """Tells what a thread did until the end of the text."""
        if self.missing and (thread.state == READY or thread.ready_since is not None):
            self.missed(thread, ns)                    # it may run, and the line is left out
        elif thread.cpu is not None:                   # a line told that it came or went
            self.until(thread, ns)

    def missed(self, thread, ns):
        """A thread runs, and no line tells since when: it slept until it was woken, and the rest is not
        known."""
        self.missing += thread.state in (READY, SLEEPS)
        woken = thread.ready_since if thread.state == SLEEPS and not thread.early else None
        if woken is not None:
            self.off(thread, SLEEPS, thread.since, woken, woken, None)
        self.off(thread, UNKNOWN, thread.since if woken is None else woken, None, ns, None)
        thread.early = thread.early and thread.state == UNKNOWN

    def who_ran(self, event, prev_pid, prev_comm, thread):
        """(CPU, name or "" if it was idle, True: nobody else) that had a CPU while a thread was ready."""
        pid, since = self.running.get(event.cpu, ("", None))
        ready = thread.since if thread.ready_since is None else thread.ready_since
        return event.cpu, "" if prev_pid == "0" else prev_comm, pid == prev_pid and since <= ready

    # ---- Events

    def switch(self, event):
        found = SWITCH.fullmatch(event.text) or SHORT_SWITCH.fullmatch(event.text)
        if not found:
            return
        prev_comm, prev_pid, _, state, comm, next_pid, _ = found.groups()
        ns = event.ns
        self.stacks.pop(event.cpu, None)      # Why: no interrupt is open then; an exit may not be recorded
        if prev_pid != "0":
            thread = self.thread(int(prev_pid))
            if (thread.state, thread.cpu) != (RUNS, event.cpu):        # its switch in was lost
                self.missed(thread, ns)
            thread.state, thread.lost = state_of(state), False
            thread.since, thread.cpu, thread.ready_since = ns, event.cpu, None
            if thread.state != READY:
                thread.hops = ()
            self.names.left(prev_pid, ns, prev_comm, thread.state == UNKNOWN)
            if number := IRQ_THREAD.match(prev_comm):
                self.worked[number[1]] = FOREVER if thread.state == READY else ns
        if next_pid != "0":
            thread = self.thread(int(next_pid))
            self.comes(event, thread, prev_pid, prev_comm)
            self.names.field(next_pid, ns, comm)
            if number := IRQ_THREAD.match(comm):
                self.worked[number[1]] = FOREVER
        self.running[event.cpu] = next_pid, ns

    def comes(self, event, thread, prev_pid, prev_comm):
        """A thread comes to a CPU."""
        ns = event.ns
        if thread.state == RUNS:                                       # its switch out was lost
            self.off(thread, UNKNOWN, thread.since, None, ns, None)
        elif thread.state == UNKNOWN and thread.lost and thread.ready_since is not None:
            # Why: behind a Hole it slept, else a line of its switch out would be here.
            self.off(thread, UNKNOWN, thread.since, None, self.lost, None)
            thread.state, thread.since = SLEEPS, self.lost
        self.end_of(thread, ns, self.who_ran(event, prev_pid, prev_comm, thread))
        thread.state, thread.since, thread.cpu, thread.ran_since = RUNS, ns, event.cpu, ns
        thread.ready_since, thread.lost, thread.early = None, False, False

    def waking(self, event):
        found = WOKEN.fullmatch(event.text)
        if not found:
            return
        thread = self.thread(int(found[2] or found[5]))
        if event.name != "sched_wakeup_new":
            self.names.field(thread.tid, event.ns, found[1] or found[4])
        else:                                          # what had its number before has nothing to do with it
            self.names.born(thread.tid, event.ns, found[1] or found[4], event.name)
            self.off(thread, UNKNOWN, thread.since, None, event.ns, None)
            thread.state, thread.since, thread.hops, thread.ready_since = READY, event.ns, (), None
        thread.early = thread.early or thread.state in (RUNS, UNKNOWN)
        if thread.state in (RUNS, READY) or thread.ready_since is not None:
            return                                                     # spurious: it had not gone to sleep
        context = self.wakes_its_thread(event, found[1] or found[4]) or self.context(event)
        # Why not of before: what happened before this thread slept has nothing to do with its sleep.
        ended = self.done.get(context.key)
        ended = ended if ended and ended[0] >= max(context.since, thread.since) else (None, None)
        before = ()
        if event.comm.startswith(A_WORKER) and context.key[0] == "thread" and \
                event.ns - (ended[0] or context.since) > WORK_NS:
            context, ended = context._replace(who=f"{context.who}, in one of its works"), (None, None)
        elif not event.flags and not self.in_interrupt(event):
            context = context._replace(who=f"{context.who}, or another interrupt")
        elif context.key[0] == "thread":
            waker = self.thread(context.key[1])
            if waker.hops and waker.hops[0].ns >= thread.since:
                before = waker.hops[:HOPS - 1]
        hop = Hop(event.ns, context, ended[1], ended[0])
        thread.hops, thread.ready_since = (hop, *before), event.ns

    def irq_entry(self, event):
        found = IRQ.match(event.text)
        name = f"interrupt {found[1]} ({found[2]})" if found and found[2] else "interrupt without a name"
        if found and found[2] and OF_TIMERS.fullmatch(found[2]):
            name = f"{A_TIMER} ({name})"
        context = self.opened(event, name)
        if found:
            context = self.unmasked(context, found[1])
        self.stacks[event.cpu].append((context, False))

    def timer_entry(self, event):
        found = TIMER.match(event.text)
        who = f"{A_TIMER} ({found[1]})" if found else A_TIMER
        self.stacks[event.cpu].append((self.opened(event, who), event.flags[2:3] == "s"))

    def soft_entry(self, event):
        found = SOFT.match(event.text)
        vector, action = (found[1], found[2] or found[1]) if found else ("", "")
        cause = self.raised.pop((event.cpu, vector), None)
        self.stacks[event.cpu].append((cause or self.opened(event, f"softirq {action}", hard=False), True))

    def soft_raise(self, event):
        found, context = SOFT.match(event.text), self.context(event)
        if found and found[2] in LEADS:
            key, own = (event.cpu, found[1]), context if context.hard else None
            self.raised[key] = own if self.raised.get(key, own) == own else None

    def handler_exit(self, event):
        stack = self.stacks.get(event.cpu)
        if stack:
            self.left[event.cpu] = stack.pop()[0], event.ns

    def wakes_its_thread(self, event, comm):
        """The Context of the interrupt that wakes its own thread, or None. Why: the kernel does that when the
        handler has returned, and its line is behind that of the return."""
        number, (left, _) = IRQ_THREAD.match(comm or ""), self.left.get(event.cpu, (None, 0))
        stack = self.stacks.get(event.cpu)
        if not number or not left or (stack and stack[-1][0].since > left.since):
            return None
        return left if left.who.startswith(f"interrupt {number[1]} (") else None

    def soft_exit(self, event):
        stack = self.stacks.get(event.cpu)
        if stack:
            stack.pop()

    def opened(self, event, who, hard=True):
        before, returned, raised = *self.left.get(event.cpu, (None, 0)), None
        if before and event.ns - returned <= BEHIND_NS:
            raised = before.since if before.raised is None else before.raised
        return Context(who, hard, event.ns, ("cpu", event.cpu, event.ns, who), event.cpu, raised)

    def unmasked(self, context, number):
        """The Context of an interrupt that comes. Why: while its thread runs it may be masked, from when it
        came last; then it comes when the thread is done with that one."""
        last, self.entered[number] = self.entered.get(number), context.since
        if last is None or context.since - self.worked.get(number, -FOREVER) > BEHIND_NS:
            return context
        return context._replace(raised=min(last, context.since if context.raised is None else context.raised))

    # ---- Questions

    def context(self, event):
        """The Context in which an event happened: the flags say it, else the open interrupts."""
        kind = event.flags[2:3]
        inner, soft = (self.stacks.get(event.cpu) or [(None, False)])[-1]
        if inner and (not kind or kind == "s" and soft or kind in "hHzZ" and not soft):
            return inner
        if kind in ("h", "H", "z", "Z") or not kind and event.tid == 0:
            return Context(UNNAMED, True, event.ns, ("cpu", event.cpu, event.ns, ""), event.cpu)
        if kind == "s":
            return Context("a softirq", False, event.ns, ("cpu", event.cpu, event.ns, ""), event.cpu)
        thread = self.thread(event.tid)
        since = thread.ran_since if thread.ran_since is not None else 0
        return Context("", False, since, ("thread", event.tid), event.cpu)

    def in_interrupt(self, event):
        """True: in a text without flags an event is in a hard interrupt: one is open, or the CPU was idle."""
        stack = self.stacks.get(event.cpu)
        return event.tid == 0 and not stack or bool(stack) and not stack[-1][1]

    def interrupt_before(self, event):
        """The Hop of the hard interrupt that led to an event: it is open, or it woke the thread in at most
        HOPS steps. None: none is known."""
        context = self.context(event)
        if context.hard:
            return Hop(context.since, context, None, None) if context.who != UNNAMED else None
        if context.key[0] != "thread":
            return None
        thread = self.thread(event.tid)
        hop = next((hop for hop in thread.hops if hop.context.hard), None)
        # Why: of one without a name nobody knows when it came.
        if hop is None or hop.context.who == UNNAMED:
            return None
        return Hop(hop.context.since, hop.context, None, None)

    def job_ended(self, event, job):
        """Notes that a job's end was told here, so that who is woken here was woken by it."""
        self.done[self.context(event).key] = event.ns, job
        if len(self.done) > KEPT:
            del self.done[next(iter(self.done))]


def state_of(letters):
    """The state of a thread that leaves its CPU, by letters or by bits. Of a dead one it is not known: its
    number may be used again."""
    if letters[0] in "XZx":
        return UNKNOWN
    bits = whole_number(letters)
    return READY if letters[0] == "R" or bits is not None and not bits & 255 else SLEEPS
