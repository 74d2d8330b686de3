# SPDX-License-Identifier: MIT
"""Operators that follow each other again and again.

A sequence is of 2 to 16 operators, one behind the other on a lane of a device or on a thread. The first row
is the sequence that takes the most time; an operator that is in it is in no other row. The next row is the
one that takes most of what is left, and so on. Of equal times the shorter sequence comes first, then the one
that begins earlier. Where one begins, the next may begin when it is over.

    total   time of its operators
    gaps    time in it in which none of them is open
    mean    from the first begin to the last end
"""

import heapq
from itertools import accumulate

from ..tables.arithmetic import mean
from ..tables.table import Table, pct
from .chosen import compute_rows, host_operators

TABLES = ("sequences",)
COLUMNS = ("sequence", "operators", "count", "total_ns", "share_pct", "gaps_ns", "mean_ns")
LONGEST, ROWS, LOOKED_AT = 16, 50, 50_000


class Stream:
    """All operators, lane by lane. names: numbers, -1 between two lanes; rows: of the trace; sums: of the
    times of those before."""

    def __init__(self, trace, rows):
        lanes = {}
        for i in rows:
            lanes.setdefault(trace.tracks[trace.track[i]].base, []).append(i)
        self.rows = []
        for _, own in sorted(lanes.items()):
            self.rows += [*sorted(own, key=lambda i: (trace.start[i], -trace.dur[i], i)), -1]
        self.names = [trace.name[i] if i >= 0 else -1 for i in self.rows]
        self.sums = [0, *accumulate(trace.dur[i] if i >= 0 else 0 for i in self.rows)]


def repeated(names):
    """Yields (length, places) of every sequence that comes twice or more. Its parts do, too: so each length
    is looked for where the one before is."""
    known, places = list(names), [n for n, name in enumerate(names) if name >= 0]
    for length in range(2, LONGEST + 1):
        found = {}
        for n in places:
            if n + length <= len(names) and names[n + length - 1] >= 0:
                found.setdefault((known[n], names[n + length - 1]), []).append(n)
        places = []
        for number, own in enumerate(found.values()):
            if len(own) > 1:
                yield length, own
                places += own
                for n in own:
                    known[n] = number
        places.sort()


def free(places, length, used):
    """Of the places those where the sequence may be: nothing there is used, and none lies in another."""
    found, last = [], 0
    for n in places:
        if n >= last and used.find(1, n, n + length) < 0:
            found.append(n)
            last = n + length
    return found


def best(stream):
    """Yields (length, places) row by row."""
    sums, used = stream.sums, bytearray(len(stream.names))

    def time(places, length):
        return sum(sums[n + length] - sums[n] for n in places)
    heap = [(-time(places, length), length, places[0], places) for length, places in repeated(stream.names)]
    heapq.heapify(heap)
    while heap:
        *bound, places = heapq.heappop(heap)
        length = bound[1]
        own = free(places, length, used)
        exact = [-time(own, length), length, *own[:1]]
        if len(own) < 2 or not exact[0]:
            continue
        if exact == bound:
            yield length, own
            for n in own:
                used[n:n + length] = b"\1" * length
        else:
            heapq.heappush(heap, (*exact, places))


def analyse(facts):
    trace, found = facts.trace, []
    rows = [*compute_rows(facts), *host_operators(facts)]
    stream = Stream(trace, sorted(rows, key=trace.start.__getitem__)[:LOOKED_AT])
    for length, places in best(stream):
        names = " > ".join(trace.names[name] for name in stream.names[places[0]:places[0] + length])
        total = sum(stream.sums[n + length] - stream.sums[n] for n in places)
        each = [extent(trace, stream.rows[n:n + length]) for n in places]
        whole, gaps = (sum(column) for column in zip(*each))
        found.append((names, length, len(places), total, pct(total, stream.sums[-1]), gaps,
                      mean(whole, len(places))))
        if len(found) == ROWS:
            break
    notes = [f"the first {LOOKED_AT} of {len(rows)} operators were looked at"] * (len(rows) > LOOKED_AT)
    yield Table("sequences", "Operators that follow each other, the most time first", COLUMNS, found, notes)


def extent(trace, rows):
    """(ns from the first begin to the last end, ns of it in which none is open) of rows by start."""
    first = at = trace.start[rows[0]]
    gaps = 0
    for i in rows:
        gaps += max(0, trace.start[i] - at)
        at = max(at, trace.start[i] + trace.dur[i])
    return at - first, gaps
