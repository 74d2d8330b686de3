# SPDX-License-Identifier: MIT
"""Intervals of time: merge them, subtract them, find when a track is busy."""

from array import array
from collections.abc import Sequence
from itertools import islice
from operator import gt


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
    """Sorts and merges the pairs of an array start, end, start, end ... """
    out, starts = array("q"), flat[::2]
    pairs = zip(starts, flat[1::2])
    # Why not always: a sorted list of a large trace's pairs takes ten times the memory of the array.
    if any(map(gt, starts, islice(starts, 1, None))):
        pairs = sorted(pairs)
    for start, end in pairs:
        if out and start <= out[-1]:
            out[-1] = max(out[-1], end)
        else:
            out.extend((start, end))
    return Intervals(out)


def minus(a, b):
    """The parts of the Intervals `a` that `b` does not cover."""
    left, k, b = array("q"), 0, list(b)
    for start, end in a:
        while k and b[k - 1][1] > start:
            k -= 1
        while k < len(b) and b[k][1] <= start:
            k += 1
        while k < len(b) and b[k][0] < end:
            if b[k][0] > start:
                left.extend((start, b[k][0]))
            start = b[k][1]
            k += 1
        if start < end:
            left.extend((start, end))
    return Intervals(left)


def busy(track, start, dur, bases):
    """By base track: (number of spans, sum of durations, Intervals in which one is open). bases: of each
    track."""
    tracks = len(bases)
    states, flats = {}, {base: array("q") for base in dict.fromkeys(bases)}
    for number, begin, ns in zip(track, start, dur):
        end = begin + ns
        state = states.get(number)
        if state is None:
            state = states[number] = [0, 0, begin, end]
        elif begin > state[3] or begin < state[2]:
            flats[bases[number]].extend(state[2:])
            state[2:] = begin, end
        elif end > state[3]:
            state[3] = end
        state[0] += 1
        state[1] += ns
    for number, state in states.items():
        flats[bases[number]].extend(state[2:])
    spans, sums = ([states.get(t, (0, 0))[n] for t in range(tracks)] for n in (0, 1))
    totals = {}
    for base, count, ns in zip(bases, spans, sums):
        if count:
            before = totals.get(base, (0, 0))
            totals[base] = before[0] + count, before[1] + ns
    return {base: (count, ns, merged(flats[base])) for base, (count, ns) in totals.items()}
