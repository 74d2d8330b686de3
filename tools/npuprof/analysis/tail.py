# SPDX-License-Identifier: MIT
"""What is different in the slowest inferences.

Slow: the slowest 1 % from 500 inferences on, 5 % from 100 on, else one of 16 (at least one): "anecdotal".
Reference: those between the 40th and 60th percentile. An inference is cut into phases along its own path:
host time before, between and after its submissions, queue_wait, dispatch, execute, before_wait, notice. They
add up to its duration, and delta_ns (mean of the slow ones minus that of the reference) to the difference.
Host phases bear the name of the innermost span.
"""

from collections import Counter
from math import lgamma, exp

from ..base.contract import NULL
from ..tables.table import Table, pct
from .leaves import Leaves

COLUMNS = ("phase", "span", "reference_ns", "slow_ns", "delta_ns", "share_pct")
TABLES = ("tail",)
LIMIT = 2000        # inferences looked at of each kind


class Tail:
    """slow, reference: rows; phases: {(phase, span): [ns of the reference, ns of the slow]}; delta: ns;
    kind: "1 %", "5 %" or "anecdotal"; cofactors: sentences."""

    def __init__(self, facts):
        self.facts, self.trace, self.leaves = facts, facts.trace, Leaves(facts.trace)
        dur = facts.trace.dur
        rows = sorted(facts.window.inferences, key=lambda i: (dur[i], i))
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
        """Sentences on what the slow ones have in common: their PE, their thread."""
        jobs, trace, tests = self.facts.jobs, self.trace, []
        for what, of in (("PE", lambda i: jobs.queues[jobs.queue[self.jobs_of[i][0]]].label
                          if i in self.jobs_of else ""),
                         ("thread", lambda i: trace.tracks[trace.track[i]].name)):
            slow, all_of = Counter(map(of, self.slow)), Counter(map(of, self.reference))
            tests += [(what, label, count, all_of[label]) for label, count in slow.items() if label]
        for what, label, count, usual in tests:
            n, m = len(self.slow), len(self.reference)
            if count * m >= 2 * usual * n and fisher(count, n, usual, m) < 0.01 / len(tests):
                yield f"{count} of the {n} slow ones are on {label}, {usual} of {m} others"


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
