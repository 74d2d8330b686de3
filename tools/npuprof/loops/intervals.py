# SPDX-License-Identifier: MIT
"""Intervals of time: merge them, subtract them, find when a track is busy."""

from array import array
from collections.abc import Sequence

from . import kernels
from .native import call, zeros


class Intervals(Sequence):
    """(start, end) pairs that do not touch, in order, in one flat array."""

    __slots__ = ("flat",)

    def __init__(self, flat):
        self.flat = flat

    def __len__(self):
        return len(self.flat) // 2

    def __getitem__(self, n):
        n = range(len(self))[n]
        return self.flat[2 * n], self.flat[2 * n + 1]

    def __iter__(self):
        flat = iter(self.flat)
        return zip(flat, flat)

    def length(self):
        return sum(self.flat[1::2]) - sum(self.flat[::2])


def merged(flat):
    """Sorts and merges the pairs of an array start, end, start, end ..., which is changed."""
    del flat[2 * call(kernels.merge, len(flat) // 2, flat):]
    return Intervals(flat)


def minus(a, b):
    """The parts of the Intervals `a` that `b` does not cover."""
    out = zeros("q", 2 * (len(a) + len(b)))
    del out[2 * call(kernels.minus, len(a), a.flat, len(b), b.flat, out):]
    return Intervals(out)


def busy(track, start, dur, bases):
    """By base track: (number of spans, sum of durations, Intervals in which one is open). bases: of each
    track."""
    tracks, of_base = len(bases), array("I", bases)

    def read(base, pairs):
        state = [zeros("q", tracks) for _ in range(4)]
        return state, call(kernels.busy, len(start), track, start, dur, of_base, *state, base, pairs)
    count = read(None, None)[1]
    base, pairs = zeros("I", count), zeros("q", 2 * count)
    spans, sums, begins, last = read(base, pairs)[0] if count else read(None, None)[0]
    out, ends = zeros("q", 2 * count), zeros("q", tracks)
    call(kernels.by_base, count, base, pairs, tracks, ends, out)
    flats = {n: out[2 * (ends[n - 1] if n else 0):2 * ends[n]] for n in dict.fromkeys(bases)}
    totals = {}
    for t, n in enumerate(bases):
        if spans[t]:
            flats[n].extend((begins[t], last[t]))
            before = totals.get(n, (0, 0))
            totals[n] = before[0] + spans[t], before[1] + sums[t]
    return {n: (spans, ns, merged(flats[n])) for n, (spans, ns) in totals.items()}
