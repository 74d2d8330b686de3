# SPDX-License-Identifier: MIT
"""Inside the executions: transfers and compute, and what they hide of each other; gaps between operators.

T is the union of the transfers of an execution (Load, Store, and what has the role "dma"), C that of its
compute spans.

    hidden        T while C runs, of T
    exposed       T without C, of the execution
    compute_only  C without T, of the execution
    neither       no engine works: they wait for each other, or for the firmware
    parallel      sum of the compute spans by C: how many compute engines work at once

A compute span inside another one of its track is counted once: the outer one has its own time alone. NPU
IoWait = exposed + neither. Each exposed piece is charged to the compute span that begins at its end, or
later. Sampled executions have no spans inside and are left out.
"""

from array import array
from fractions import Fraction
from functools import cached_property
from heapq import nlargest
from itertools import pairwise

from .. import loops
from ..base.contract import NULL, SAMPLED
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
    operators  {operator: (count, ns)}, without the time of what is nested in its spans; also executions that
               show nothing inside
    whole      {name, as a number: rows of those}"""

    def __init__(self, facts):
        self.trace, self.jobs = trace, jobs = facts.trace, facts.jobs
        self.kinds = bytearray(1 if moves else 2 * computes for moves, computes in
                               zip(transfer_names(trace), compute_names(trace)))
        self.own = own, first, ends = array("i"), array("i"), array("i")
        for place in places(facts):
            for column, value in zip(self.own, place):
                column.append(value)
        self.inside = loops.Inside(array("i", map(jobs.queue.__getitem__, own)), first, ends,
                                   trace.executions[2], trace, self.kinds, len(jobs.queues))
        self.queues = [[0, 0, *sums] for sums in self.inside.sums]
        held = held_inside(trace, self.kinds)
        for k, since, until in zip(own, first, ends):
            queue = self.queues[jobs.queue[k]]
            queue[0] += 1
            queue[1] += trace.dur[jobs.row[k]]
            if held:
                queue[5] -= sum(held.get(i, 0) for i in trace.executions[2][since:until])
        names = [*trace.names, "(end)"]
        self.exposed = {names[n]: own for n, own in self.inside.exposed.items()}
        self.operators, self.whole = {}, self._whole(facts)
        for n, (count, ns) in self.inside.computes.items():
            nested = sum(held.get(i, 0) for i in self.inside.named(n)) if held else 0
            self.operators[names[n]] = count, ns - nested
        for n, rows in self.whole.items():
            self.operators.setdefault(names[n], (len(rows), sum(map(trace.dur.__getitem__, rows))))

    def _whole(self, facts):
        """Why not the sampled ones: their time is that of a call."""
        jobs, trace, found = self.jobs, self.trace, {}
        ends = trace.executions[1]
        for k, row in enumerate(jobs.row):
            g = jobs.group[k]
            if ends[g] == (ends[g - 1] if g else 0) and jobs.inside[k] and not trace.flags[row] & SAMPLED:
                found.setdefault(trace.name[row], array("i")).append(row)
        return found

    def rows(self, name):
        """The rows of an operator."""
        names = self.trace.names
        return next((self.inside.named(n) for n in self.inside.computes if names[n] == name),
                    next((rows for n, rows in self.whole.items() if names[n] == name), ()))

    def longest(self, name):
        """The three longest rows of an operator."""
        return nlargest(3, self.rows(name), key=self.trace.dur.__getitem__)

    @cached_property
    def pairs(self):
        """{(name, next name), as numbers: ns from the end of a compute span to the next one's begin}"""
        trace, found = self.trace, {}
        for _, first, end in zip(*self.own):
            own = [i for i in trace.executions[2][first:end] if self.kinds[trace.name[i]] == 2]
            for a, b in pairwise(own):
                column = found.setdefault((trace.name[a], trace.name[b]), array("q"))
                column.append(trace.start[b] - trace.start[a] - trace.dur[a])
        return found


def held_inside(trace, kinds):
    """{row of a compute span: ns of the compute spans on its track that are its children}"""
    stacks = [track.number if track.kind == "device" else -1 for track in trace.tracks]
    parents = loops.nest(trace.track, trace.start, trace.dur, stacks)
    found = {}
    for i, parent in enumerate(parents) if max(parents, default=-1) >= 0 else ():
        while parent >= 0 and kinds[trace.name[parent]] != 2:
            parent = parents[parent]
        if parent >= 0 and kinds[trace.name[i]] == 2:
            found[parent] = found.get(parent, 0) + trace.dur[i]
    return found


def places(facts, among=None):
    """Yields (job, first, end) of the jobs in the window, or of these, that have rows inside: they are
    trace.executions[2][first:end]."""
    jobs, ends = facts.jobs, facts.trace.executions[1]
    for k in range(len(jobs)) if among is None else among:
        g = jobs.group[k]
        first = ends[g - 1] if g else 0
        if ends[g] > first and jobs.inside[k]:
            yield k, first, ends[g]


def members(facts, among=None):
    """Yields (job, rows inside its execution) of the same jobs."""
    inside = facts.trace.executions[2]
    for k, first, end in places(facts, among):
        yield k, inside[first:end]


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
