# SPDX-License-Identifier: MIT
"""Sleeps that the end of a job ended, of threads with marks: they become spans of those threads.

A job of the kernel's text is named where its end was told (contexts.py). Of a job that only the program's
trace has the time decides: its thread slept when it ended, and what woke it began at the end of the job, but
for a tenth of the sleep at most, with the errors of both clocks. A sleep that the thread's own timer ended is
none: there the thread looks again. Of a sampled kernel, whose device has no times, it is the longest sleep in
the call, if a hard interrupt ended it through no thread that has marks itself.
"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import namedtuple

from .contexts import SLEEPS
from .jobs import FOREVER, apart

ARROW = re.compile(rb',"tid":(\d+)(?:,"bp":"e")?,"cat":"submit","id":(\d+),"ts":(\d+\.\d{3})')
DEVICE = re.compile(rb'"stamp":"(\w+)"')
ERROR = re.compile(rb'"error_ns":(\d+)')
OWN_TIMERS = "a timer (hrtimer_wakeup", "softirq TIMER"       # what ends the time that a thread set itself
SHARE = 10                 # one part of so many of a sleep may be unsure
# A sleep: native number of its thread, begin and end as drawn, its Off, and the end of the job on its track:
# (part, number of the track, start, end)
Sleep = namedtuple("Sleep", "tid start end off job")


class Sleeps:
    """Takes the spans and arrows of traces; times in the kernel's clock. native: part -> {number: native}."""

    def __init__(self, waits, native, error_ns):
        self.waits, self.native, self.error = waits, native, error_ns or 0
        self.places = {native for numbers in native.values() for native in numbers.values()}
        self.edges = {}                # native -> begins and ends of its spans, sorted when asked
        self.marked = {}               # native -> [(start, end)] of spans that say they wait
        self.executions = {}           # (part, track, start) -> (end, error, True: a sampled kernel)
        self.half, self.submissions = {}, {}      # (part, id) -> one end; (part, track, ns) -> (native, ns)

    def host(self, native, start, end, rest):
        """Takes a span of a thread."""
        self.edges.setdefault(native, array("q")).extend((start, end))
        if b'"kind":"wait"' in rest:
            self.marked.setdefault(native, []).append((start, end))

    def device(self, part, number, start, end, rest):
        """Takes a span of a device, if it is one. Returns if it is."""
        stamp = DEVICE.search(rest)
        if stamp:
            error = ERROR.search(rest)
            self.executions[part, number, start] = end, int(error[1]) if error else 0, stamp[1] == b"sampled"
        return stamp is not None

    def arrow(self, part, phase, rest, shift):
        """Takes an end of an arrow. shift: from the part's times to the kernel's clock."""
        found = ARROW.search(rest)
        if not found:
            return
        end = int(found[1]), int(found[3].replace(b".", b"")) + shift
        other = self.half.pop((part, found[2]), None)
        if other is None:
            self.half[part, found[2]] = end
            return
        (number, s), (track, start) = (end, other) if phase == b"s" else (other, end)
        native = self.native.get(part, {}).get(number)
        if native is not None:
            self.submissions[part, track, start] = native, s

    def found(self):
        """Yields the Sleeps of the jobs that the traces have."""
        self.marked = {native: apart(own) for native, own in self.marked.items()}
        self.edges = {native: array("q", sorted(own)) for native, own in self.edges.items()}
        for (part, number, start), (native, s) in self.submissions.items():
            job = self.executions.get((part, number, start))
            if job is None:
                continue
            end, error, sampled = job
            offs = self.waits.between(native, s, end) if sampled else self.waits.between(native, end, end + 1)
            off = max((off for off in offs if off.kind == SLEEPS), key=length, default=None)
            if off and (self.in_call(off, s, end) if sampled else self.by_job(off, end, error)):
                yield from self.drawn(native, off, (part, number, start, end))

    def busy(self):
        """[(start, end)] of the executions of the traces."""
        return [(start, end) for (_, _, start), (end, _, _) in self.executions.items()]

    def of_jobs(self, native, jobs):
        """Yields (Job, Sleep) of those of its Jobs of a text that a thread slept for."""
        for off in self.waits.of_thread.get(native, ()):
            job = next((hop.job for hop in off.hops if hop.job), None) if off.kind == SLEEPS else None
            for sleep in self.drawn(native, off, None) if job in jobs else ():
                yield job, sleep

    def by_job(self, off, end, error):
        """True: what ended the sleep was the end of that job."""
        if not off.hops or is_own_timer(off):
            return False
        late, unsure = cause(off) - end, error + self.error
        return late >= -unsure and SHARE * (unsure + max(late, 0)) <= length(off)

    def in_call(self, off, start, end):
        """True: a call of a sampled kernel slept for its device."""
        hard = next((n for n, hop in enumerate(off.hops) if hop.context.hard), None)
        if hard is None or is_own_timer(off) or off.out < start or off.back > end:
            return False
        through = (hop.context.key for hop in off.hops[:hard])
        return not any(key[0] == "thread" and key[1] in self.places for key in through)

    def drawn(self, native, off, job):
        """Yields the Sleep, if it lies between two edges of the thread's spans, but for the clocks' error."""
        edges, middle = self.edges.get(native, ()), (off.out + off.back) // 2
        n = bisect_right(edges, middle)
        start = max(off.out, edges[n - 1]) if n else off.out
        end = min(off.back, edges[n]) if n < len(edges) else off.back
        marked = self.marked.get(native, ())
        at = bisect_left(marked, (middle, FOREVER)) - 1
        says_so = at >= 0 and middle < marked[at][1]
        if not says_so and SHARE * (end - start) >= (SHARE - 1) * length(off):
            yield Sleep(native, start, end, off, job)


def length(off):
    return off.back - off.out


def cause(off):
    """When what ended a sleep began: the first hard interrupt of the chain, else its first hop."""
    hop = next((hop for hop in off.hops if hop.context.hard), None)
    return hop.context.since if hop else off.hops[-1].ns


def is_own_timer(off):
    return bool(off.hops) and off.hops[0].context.who.startswith(OWN_TIMERS)
