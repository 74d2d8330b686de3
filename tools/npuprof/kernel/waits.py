# SPDX-License-Identifier: MIT
"""Where threads were off the CPU, and what ended it: the parts of a span, in numbers and in words."""

import bisect
from array import array
from collections import namedtuple

from .contexts import HOPS, READY, SLEEPS, UNKNOWN

# A time off the CPU: kind, from, woken (None: not told), until; hops: the chain that woke it; ran: who
# had its CPU meanwhile, as Contexts.who_ran() says
Off = namedtuple("Off", "kind out woken back hops ran")
# The parts of a span, ns: they sum to its length
Parts = namedtuple("Parts", "running ready asleep unknown longest")


class Waits:
    """The times off the CPU of the threads in `wanted`, a set that may grow."""

    def __init__(self, wanted):
        self.wanted, self.of_thread, self.starts = wanted, {}, {}
        self.first = self.last = None

    def off(self, thread, kind, out, woken, back, ran):
        """Takes a time off the CPU, in the order of their ends."""
        if thread.tid in self.wanted and back > out:
            own = self.of_thread.get(thread.tid)
            if own is None:
                own, self.starts[thread.tid] = self.of_thread.setdefault(thread.tid, []), array("q")
            hops = thread.hops if kind == SLEEPS and woken is not None else ()
            own.append(Off(kind, out, woken, back, hops, ran))
            self.starts[thread.tid].append(out)

    def settle(self, holes, names):
        """Of what a thread did on one CPU while events of another one were lost nobody knows if that is all.
        holes: intervals, ascending and apart; None: the text tells no thread that comes to a CPU.
        Hops get the names of their threads."""
        if holes is None:
            self.of_thread.clear()
        for own in self.of_thread.values() if holes else ():
            for n, off in enumerate(own):
                at = bisect.bisect_left(holes, (off.back,)) - 1
                if at >= 0 and holes[at][1] > off.out:
                    own[n] = Off(UNKNOWN, off.out, None, off.back, (), None)
        for own in self.of_thread.values():
            for n, off in enumerate(own):
                if off.hops:
                    own[n] = off._replace(hops=tuple(titled(hop, names) for hop in off.hops))

    def between(self, tid, start, end):
        """The Offs of a thread that touch [start, end)."""
        starts = self.starts.get(tid, ())
        n = max(0, bisect.bisect_right(starts, start) - 1)
        own = self.of_thread.get(tid, ())
        while n < len(own) and own[n].out < end:
            if own[n].back > start:
                yield own[n]
            n += 1

    def parts(self, tid, start, end):
        """The Parts of a span of a thread, and its longest sleep; None: the kernel saw nothing of it."""
        if tid not in self.of_thread:
            return None
        ready = asleep = unknown = 0
        longest, most = None, 0
        unknown += max(0, min(end, self.first) - start) + max(0, end - max(start, self.last))
        for off in self.between(tid, max(start, self.first), min(end, self.last)):
            a, b = max(off.out, start), min(off.back, end)
            if off.kind == UNKNOWN or off.kind == SLEEPS and off.woken is None:
                unknown += b - a
            elif off.kind == READY:
                ready += b - a
            else:
                woken = min(b, max(a, off.woken))
                asleep, ready = asleep + woken - a, ready + b - woken
            until = b if off.woken is None else min(b, off.woken)
            if off.kind == SLEEPS and until - a > most:
                longest, most = off, until - a
        running = end - start - ready - asleep - unknown
        return Parts(running, ready, asleep, unknown, longest)


def titled(hop, names):
    """A Hop whose words have the name that its thread had."""
    kind, *tid = hop.context.key
    if kind != "thread":
        return hop
    who = f"thread {names.titled(*tid, hop.ns)}{hop.context.who}"
    return hop._replace(context=hop.context._replace(who=who))


def chain(hops):
    """(words on what ended a sleep, the Job that had ended there or None): to the first hard interrupt."""
    if not hops:
        return "nobody knows what", None
    through, job = [], None
    for hop in hops[:HOPS]:
        job = job or hop.job
        if hop.context.hard:
            last = f"{hop.context.who} on CPU {hop.context.cpu}"
            return last + "".join(f", through {who}" for who in reversed(through)), job
        through.append(hop.context.who)
    return through[-1] + "".join(f", through {who}" for who in reversed(through[:-1])), job


def sentence(off):
    """What a sleep waited for, in words."""
    slept = (off.back if off.woken is None else off.woken) - off.out
    cause, job = chain(off.hops)
    text = f"slept {in_words(slept)} until {cause}" + (f", which ended job {job.label}" if job else "")
    if off.woken is None:
        return f"slept or was ready for {in_words(slept)}: no line tells who woke it"
    if off.back == off.woken:
        return text + "; no line tells when it ran again"
    ready = f"; then was ready for {in_words(off.back - off.woken)}"
    if not off.ran:
        return text + ready
    cpu, comm, alone = off.ran
    return (text + ready + (" while " if alone else ", at last while ")
            + (f"{comm} ran on CPU {cpu}" if comm else f"CPU {cpu} was idle"))


def in_words(ns):
    """A time with its unit, three digits at most."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 1000)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns} ns"
