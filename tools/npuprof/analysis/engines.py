# SPDX-License-Identifier: MIT
"""Inside the executions: transfers and compute, and what they hide of each other; gaps between operators.

T is the union of the transfers of an execution (Load, Store, and what has the role "dma"), C that of its
compute spans.

    hidden        T while C runs, of T
    exposed       T without C, of the execution
    compute_only  C without T, of the execution
    neither       no engine works: they wait for each other, or for the firmware
    parallel      sum of the compute spans by C: how many compute engines work at once

NPU IoWait = exposed + neither. Each exposed piece is charged to the compute span that begins at its end, or
later. Sampled executions have no spans inside and are left out.
"""

from array import array
from fractions import Fraction
from functools import cached_property
from heapq import nlargest

from ..base.contract import NULL
from ..tables.executions import compute_names, transfer_names
from ..tables.table import Table, pct
from .figures import spread

OVERLAP = ("queue", "executions", "execute_ns", "transfer_ns", "compute_ns", "both_ns", "hidden_pct",
           "exposed_pct", "compute_only_pct", "neither_pct", "parallel_ratio")
EXPOSED = ("operator", "pieces", "exposed_ns", "share_pct")
OP_GAPS = ("kind", "name", "next", "count", "total_ns", "p50_ns", "p90_ns", "max_ns")
TABLES = ("overlap", "exposed", "op_gaps")


class Engines:
    """Over the jobs of the window that have spans inside.

    queues     by queue [executions, their ns, T, C, T and C, sum of compute]
    exposed    {operator: [pieces, ns, ns of the longest, its row]}
    pairs      {(name, next name), as numbers: gaps}
    rows       {name, as a number: rows of its compute spans}"""

    def __init__(self, facts):
        self.trace, self.jobs = facts.trace, facts.jobs
        self.queues = [[0] * 6 for _ in self.jobs.queues]
        self.exposed = {}
        self.kinds = bytearray(1 if moves else 2 * computes for moves, computes in
                               zip(transfer_names(self.trace), compute_names(self.trace)))
        self.pairs, self.rows = {}, {}
        for k, inside in members(facts):
            self._execution(k, inside)

    def _execution(self, k, inside):
        start, dur, name, kinds = self.trace.start, self.trace.dur, self.trace.name, self.kinds
        begin = start[self.jobs.row[k]]
        execute, works, starts, at, apart = dur[self.jobs.row[k]], ([], []), [], begin, True
        before = end_before = None
        for i in inside:
            n, a = name[i], start[i]
            kind, b = kinds[n], a + dur[i]
            if not kind:
                continue
            if kind == 2:
                starts.append((a, i))
                if n not in self.rows:
                    self.rows[n] = array("i")
                self.rows[n].append(i)
                if before is not None:
                    self._pair(before, n, a - end_before)
                before, end_before = n, b
            if a < b:
                works[kind - 1].append((a, b))
                apart, at = apart and a >= at, b
        own = one_by_one(*works) if apart else overlapping(*works, begin)
        if own[-1]:
            starts.sort()
            self._charge(own[-1], starts)
        queue = self.queues[self.jobs.queue[k]]
        for n, value in enumerate((1, execute, *own[:-1])):
            queue[n] += value

    def _pair(self, before, after, gap):
        column = self.pairs.get((before, after))
        if column is None:
            column = self.pairs[before, after] = array("q")
        column.append(gap)

    def _charge(self, pieces, starts):
        """Charges exposed pieces to the first compute span that begins at or after their end."""
        k = 0
        for begin, end in pieces:
            while k < len(starts) and starts[k][0] < end:
                k += 1
            row = starts[k][1] if k < len(starts) else -1
            own = self.exposed.setdefault(self.trace.text(row) if row >= 0 else "(end)", [0, 0, 0, -1])
            own[0] += 1
            own[1] += end - begin
            if end - begin > own[2]:
                own[2:] = end - begin, row

    @cached_property
    def operators(self):
        """{operator: (count, ns)}"""
        dur = self.trace.dur
        return {self.trace.names[n]: (len(rows), sum(map(dur.__getitem__, rows)))
                for n, rows in self.rows.items()}

    def longest(self, name):
        """The three longest rows of an operator."""
        rows = next((own for n, own in self.rows.items() if self.trace.names[n] == name), ())
        return nlargest(3, rows, key=self.trace.dur.__getitem__)


def one_by_one(transfers, compute):
    """T, C, T and C, sum of compute, exposed pieces: of spans that follow each other."""
    added = sum(b - a for a, b in compute)
    return sum(b - a for a, b in transfers), added, 0, added, transfers


def overlapping(transfers, compute, at):
    """The same of spans at any times, from `at` on."""
    # The low bits: an end before a begin at the same time, and which kind.
    events = [4 * a + 2 + kind for kind, spans in enumerate((transfers, compute)) for a, _ in spans]
    events += [4 * b + kind for kind, spans in enumerate((transfers, compute)) for _, b in spans]
    moving = working = shared = t = c = 0
    pieces = []
    for event in sorted(events):
        now = event >> 2
        if t:
            moving += now - at
            if c:
                shared += now - at
            elif now > at:
                pieces.append((at, now))
        if c:
            working += now - at
        step = 1 if event & 2 else -1
        if event & 1:
            c += step
        else:
            t += step
        at = now
    return moving, working, shared, sum(b - a for a, b in compute), pieces


def members(facts, among=None):
    """Yields (job, rows inside its execution) of the jobs in the window, or of these, that have any."""
    jobs = facts.jobs
    _, ends, inside = facts.trace.executions
    for k in range(len(jobs)) if among is None else among:
        g = jobs.group[k]
        first = ends[g - 1] if g else 0
        if ends[g] > first and jobs.inside[k]:
            yield k, inside[first:ends[g]]


def overlap_row(label, own):
    count, execute, transfers, compute, shared, added = own
    return (label, count, execute, transfers, compute, shared, pct(shared, transfers),
            pct(transfers - shared, execute), pct(compute - shared, execute),
            pct(execute - transfers - compute + shared, execute),
            Fraction(added, compute) if compute else None)


def analyse(facts):
    engines, jobs = facts.engines, facts.jobs
    rows = [overlap_row(jobs.queues[q].label, own) for q, own in enumerate(engines.queues) if own[0]]
    total = [sum(column) for column in zip(*engines.queues)] if engines.queues else [0] * 6
    if len(rows) != 1 and total[0]:
        rows.insert(0, overlap_row("(all)", total))
    notes = [] if rows else ["no executions with spans inside them"]
    yield Table("overlap", "Transfers and compute inside the executions", OVERLAP, rows, notes)
    exposed = [(name, pieces, ns, pct(ns, total[1])) for name, (pieces, ns, *_) in engines.exposed.items()]
    exposed.sort(key=lambda row: (-row[2], row[0]))
    yield Table("exposed", "Transfers that no compute hides, by the operator that they come before", EXPOSED,
                exposed, [])
    yield op_gaps(facts)


def op_gaps(facts):
    """From the end of a span to the start of the next: jobs of a queue, compute spans of an execution.
    Negative: they overlap."""
    jobs, trace, names = facts.jobs, facts.trace, facts.trace.names
    between = {}
    for k, before in enumerate(jobs.before):
        if before >= 0 and jobs.inside[k] and jobs.inside[before]:
            key = trace.text(jobs.row[before]), trace.text(jobs.row[k])
            between.setdefault(key, array("q")).append(jobs.start[k] - jobs.end[before])
    rows = []
    for kind, found in (("execution", between),
                        ("operator", {(names[a], names[b]): own for (a, b), own in
                                      facts.engines.pairs.items()})):
        for (name, after), own in found.items():
            p50, p90, _, most = spread(own)
            rows.append((kind, name, after, len(own), sum(own), p50, p90, most))
    rows.sort(key=lambda row: (row[0], -row[4], row[1:3]))
    return Table("op_gaps", "From the end of one to the start of the next (negative: they overlap)", OP_GAPS,
                 rows, [])
