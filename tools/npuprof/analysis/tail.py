# SPDX-License-Identifier: MIT
"""What is different in the slowest inferences.

Slow: the slowest 1 % from 500 inferences on, 5 % from 100 on, else one of 16 (at least one): "anecdotal".
Reference: those between the 40th and 60th percentile. An inference is cut into phases along its own path:
host time before, between and after its submissions, queue_wait, dispatch, execute, before_wait, notice. They
add up to its duration, and delta_ns (mean of the slow ones minus that of the reference) to the difference.
Host phases bear the name of the innermost span. Then what more of the slow ones have: their PE or thread, a
pause before, other jobs at the same time, a counter or the clock's error above its 95th percentile, a memory
pool that took more from the system.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections import Counter
from math import lgamma, exp

from ..base.contract import NULL
from ..tables.arithmetic import percentile
from ..tables.table import Table, pct
from .leaves import Leaves
from .window import pauses

COLUMNS = ("phase", "span", "reference_ns", "slow_ns", "delta_ns", "share_pct")
TABLES = ("tail",)
LIMIT = 2000        # inferences looked at of each kind
COUNTERS = 64       # counters looked at


class Tail:
    """slow, reference: rows; phases: {(phase, span): [ns of the reference, ns of the slow]}; delta: ns;
    kind: "1 %", "5 %" or "anecdotal"; cofactors: sentences."""

    def __init__(self, facts):
        self.facts, self.trace, self.leaves = facts, facts.trace, Leaves(facts.trace)
        dur = facts.trace.dur
        rows = sorted(sorted(facts.window.inferences), key=dur.__getitem__)
        self.count = n = len(rows)
        many = n // 100 if n >= 500 else n // 20 if n >= 100 else max(1, n // 16)
        self.kind = "1 %" if n >= 500 else "5 %" if n >= 100 else "anecdotal"
        self.slow = rows[n - many:] if n > 1 else []
        self.reference = rows[n * 2 // 5:max(n * 3 // 5, n * 2 // 5 + 1)] if n > 1 else []
        self.slow = self.slow[::max(1, len(self.slow) // LIMIT)]
        self.reference = self.reference[::max(1, len(self.reference) // LIMIT)]
        self.jobs_of = {}
        chosen = {*self.slow, *self.reference}
        for k, inference in enumerate(facts.jobs.inference):
            if inference in chosen:
                self.jobs_of.setdefault(inference, []).append(k)
        self.phases = {}
        for side, own in enumerate((self.reference, self.slow)):
            for i in own:
                self._add(i, side)
        self.delta = self.mean(1, None) - self.mean(0, None) if self.slow else 0
        self.paused = pauses(self.trace)
        self.starts = array("q", sorted(map(self.trace.start.__getitem__, rows)))
        self.cofactors = list(self._cofactors()) if self.slow and self.kind != "anecdotal" else []

    def mean(self, side, phase):
        """The mean ns of a phase, or of all phases, in the reference (0) or the slow set (1)."""
        count = len((self.reference, self.slow)[side])
        sums = [own[side] for key, own in self.phases.items() if phase in (None, key)]
        return round(sum(sums) / count) if count else 0

    def _add(self, i, side):
        for phase, span, ns in self.path(i):
            self.phases.setdefault((phase, span), [0, 0])[side] += ns

    def path(self, i):
        """Yields (phase, span, ns) of inference i; they add up to its duration."""
        trace, jobs = self.trace, self.facts.jobs
        at, end = trace.start[i], trace.start[i] + trace.dur[i]
        for k in sorted(self.jobs_of.get(i, ()), key=lambda k: (jobs.s[k], k)):
            before = jobs.before[k]
            ready = jobs.s[k] if before < 0 else max(jobs.s[k], jobs.end[before])
            steps = [("host", jobs.s[k]), ("queue_wait", min(ready, jobs.start[k])),
                     ("dispatch", jobs.start[k]), ("execute", jobs.end[k])]
            if jobs.n[k] != NULL:
                steps += [("before_wait", jobs.w[k]), ("notice", jobs.n[k])]
            for phase, until in steps:
                until = min(until, end)
                if until > at:
                    yield from self._phase(phase, at, until, i, k)
                    at = until
        if at < end:
            yield from self._phase("host", at, end, i, -1)

    def _phase(self, phase, start, end, i, k):
        if phase not in ("host", "before_wait"):
            yield phase, "", end - start
            return
        thread = self.trace.tracks[self.trace.track[i]].base
        for a, b, row in self.leaves.pieces(thread, start, end):
            yield phase, self.trace.text(row) if row >= 0 else "", b - a

    def _cofactors(self):
        """Sentences on what more of the slow ones have than of the reference: at least twice as many, and
        p < 0.01 in all tests together."""
        tests = []
        for of in (self._queue, self._thread, self._pause, self._others, self._unsure(),
                   *map(self._grown, *self._growths()), *map(self._high, self._counters())):
            slow, all_of = Counter(map(of, self.slow)), Counter(map(of, self.reference))
            tests += [(what, count, all_of[what]) for what, count in slow.items() if what]
        for what, count, usual in tests:
            n, m = len(self.slow), len(self.reference)
            if count * m >= 2 * usual * n and fisher(count, n, usual, m) < 0.01 / len(tests):
                yield f"{count} of the {n} slow ones are {what}, {usual} of {m} others"

    def _queue(self, i):
        jobs = self.facts.jobs
        return f"on {jobs.queues[jobs.queue[self.jobs_of[i][0]]].label}" if i in self.jobs_of else ""

    def _thread(self, i):
        return f"on {self.trace.tracks[self.trace.track[i]].name}"

    def _pause(self, i):
        """Did a pause end after the inference before it began?"""
        flat, start, starts = self.paused.flat, self.trace.start[i], self.starts
        before = bisect_left(starts, start) - 1
        k = bisect_right(flat, start) // 2 * 2 - 1
        first = k > 0 and (before < 0 or flat[k] > starts[before])
        return "the first after a pause" if first else ""

    def _others(self, i):
        """Did another job run while its first one did? Jobs are in the order of their starts."""
        jobs = self.facts.jobs
        if i not in self.jobs_of:
            return ""
        k = self.jobs_of[i][0]
        beside = (k and jobs.end[k - 1] > jobs.start[k]) or (k + 1 < len(jobs)
                                                             and jobs.start[k + 1] < jobs.end[k])
        return "beside other jobs on the device" if beside else ""

    def _unsure(self):
        """A function that says whether the clock's error in its jobs was above the 95th percentile of all."""
        errors = self.facts.jobs.error
        known = sorted(error for error in errors if error != NULL)
        limit = percentile(known, 950) if known else 0

        def unsure(i):
            most = max(map(errors.__getitem__, self.jobs_of.get(i, ())), default=NULL)
            return "where the clock's error is above its 95th percentile" if most > max(limit, 0) else ""
        return unsure

    def _growths(self):
        """(names, times at which they grew) of the memory pools."""
        held, grown = {}, {}
        for record in sorted(self.trace.memory, key=lambda record: record.ts):
            if record.allocated > held.get(record.device, record.allocated):
                grown.setdefault(record.device, []).append(record.ts)
            held[record.device] = record.allocated
        return list(grown), list(grown.values())

    def _grown(self, name, times):
        """A function that says whether that pool grew during an inference."""
        start, dur = self.trace.start, self.trace.dur

        def grown(i):
            k = bisect_left(times, start[i])
            inside = k < len(times) and times[k] < start[i] + dur[i]
            return f"where {name} grows" if inside else ""
        return grown

    def _counters(self):
        """(name, times, values) of the counters with 40 values or more."""
        found = [own for own in self.trace.counters if len(own.ts) >= 40][:COUNTERS]
        return [(own.name if own.key == "value" else f"{own.name} {own.key}",
                 *zip(*sorted(zip(own.ts, own.values)))) for own in found]

    def _high(self, counter):
        """A function that says whether the counter was above its 95th percentile when an inference began."""
        name, times, values = counter
        limit = percentile(sorted(values), 950)

        def high(i):
            k = bisect_right(times, self.trace.start[i]) - 1
            return f"where {name} is above its 95th percentile" if k >= 0 and values[k] > limit else ""
        return high


def fisher(a, n, b, m):
    """The probability of at least a of n, if a + b of n + m are distributed at random."""
    def choose(total, part):
        return lgamma(total + 1) - lgamma(part + 1) - lgamma(total - part + 1)
    both = a + b
    return sum(exp(choose(n, k) + choose(m, both - k) - choose(n + m, both))
               for k in range(a, min(n, both) + 1) if both - k <= m)


def analyse(facts):
    tail, rows = facts.tail, []
    for key in tail.phases:
        reference, slow = tail.mean(0, key), tail.mean(1, key)
        rows.append((*key, reference, slow, slow - reference, pct(slow - reference, tail.delta)))
    rows.sort(key=lambda row: (-row[4], row[:2]))
    notes = tail.cofactors or []
    if tail.slow:
        notes = [f"slow: {len(tail.slow)} of {tail.count} inferences ({tail.kind}); reference: "
                 f"{len(tail.reference)}", *notes]
    yield Table("tail", "What the slowest inferences do longer (means)", COLUMNS, rows, notes)
