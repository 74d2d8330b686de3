# SPDX-License-Identifier: MIT
"""What happens inside executions that have the same instructions, each with its own times."""

from array import array
from fractions import Fraction
from itertools import accumulate
from math import lcm

from . import kernels_inside as kernels
from . import native
from .native import call, zeros

# A factor has no finer steps. Why: 100 times as many have to be a number of 32 bits above 64.
FINEST = 10**8


class Executions:
    """start, dur: columns. rows: the instructions of all executions, as many of each. whole: the row of each.

    edges() sets what the other functions need."""

    def __init__(self, start, dur, rows, whole):
        self.columns, self.whole = (start, dur), array("i", whole)
        self.rows, self.count = array("i", rows), len(rows) // max(1, len(whole))
        self.since, self.until = zeros("q", self.count), zeros("q", self.count)

    def _given(self):
        return len(self.whole), self.count, self.rows, self.whole, *self.columns

    def times(self, e):
        """(begins, ends) of the instructions of execution e, from its begin on. Those of more than two
        seconds are less exact."""
        call(kernels.put_times, e, *self._given()[1:], self.since, self.until)
        return list(self.since), list(self.until)

    def edges(self, order, after, pair, tolerance):
        """See kernels_inside.py; after: a list by number."""
        self.order, self.pair = array("i", order), array("i", pair)
        ends, flat = array("i", accumulate(map(len, after))), array("i", [a for own in after for a in own])
        self.shape = ends, flat, self.pair, tolerance, self.since, self.until

    def obeyed(self):
        """(bytes by execution, 0 if it does not obey the edges; number of pipelined pairs in the others)"""
        out = bytearray(len(self.whole))
        return out, call(kernels.obeyed, *self._given(), *self.shape, out)

    def totals(self, factors, fixed, obeys):
        """By execution its ns with a factor for each number. Why a list in Python: its sums have no end."""
        one = min(FINEST, lcm(*(Fraction(k).denominator for k in factors)))
        out = zeros("q", len(self.whole)) if native.library() else [0] * len(self.whole)
        call(kernels.inside, *self._given(), self.order, *self.shape, obeys,
             array("q", [round(k * one) for k in factors]), one, int(fixed), zeros("q", self.count),
             zeros("q", self.count), out)
        return out

    def on_path(self):
        """(bytes by execution and number, 1 on its path; ns that nothing explains)"""
        out = bytearray(len(self.rows))
        return out, call(kernels.on_path, *self._given(), self.order, *self.shape, out)

    def slack(self, own):
        """A list by number; own: by execution. See kernels_inside.py."""
        least = array("q", [2**63 - 1]) * self.count
        call(kernels.slack, *self._given(), self.order, *self.shape, array("q", own), zeros("q", self.count),
             least)
        return list(least)


class Inside:
    """Transfers and compute inside executions. queue, first, ends: arrays; the rows of each are
    inside[first:end]. kinds: by name, 1 if it moves data, 2 if it computes.

    sums      by queue [ns of transfers, of compute, of both at once, of all compute spans]
    exposed   {name: [pieces, ns, ns of the longest, its row]} of the transfers that no compute hides, by the
              compute span behind them; if there is none, number len(kinds) and row -1
    computes  {name: (count, ns)} of the compute spans, as they come"""

    def __init__(self, queue, first, ends, inside, trace, kinds, queues):
        self.name, self.inside, self.first, self.ends = trace.name, inside, first, ends
        most = 4 * max(map(int.__sub__, self.ends, self.first), default=0)
        sums, counts, totals = (zeros("q", count) for count in (4 * queues, len(kinds), len(kinds)))
        pieces, ns, longest = (zeros("q", len(kinds) + 1) for _ in range(3))
        row, order = array("i", [-1]) * (len(kinds) + 1), zeros("I", len(kinds))
        names = call(kernels.overlap, len(queue), queue, first, ends, inside, trace.start, trace.dur,
                     trace.name, kinds, len(kinds), zeros("q", most), zeros("q", most), sums, pieces, ns,
                     longest, row, counts, totals, order)
        self.sums = [list(sums[4 * q:4 * q + 4]) for q in range(queues)]
        self.exposed = {n: [pieces[n], ns[n], longest[n], row[n]] for n in range(len(pieces)) if pieces[n]}
        self.computes = {n: (counts[n], totals[n]) for n in order[:names]}

    def named(self, name):
        """The rows of that name inside of the executions."""
        out = zeros("i", self.computes[name][0])
        call(kernels.named, len(self.first), self.first, self.ends, self.inside, self.name, name, out)
        return out
