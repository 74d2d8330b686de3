# SPDX-License-Identifier: MIT
"""Intervals of time: merge them, subtract them, find when a track is busy."""

from array import array
from collections.abc import Sequence

from . import native


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
    """Sorts and merges the pairs of an array start, end, start, end ... The array may be changed."""
    if native.library():
        del flat[2 * native.call("merge", len(flat) // 2, flat):]
        return Intervals(flat)
    out = array("q")
    for start, end in sorted(zip(flat[::2], flat[1::2])):
        if out and start <= out[-1]:
            out[-1] = max(out[-1], end)
        else:
            out.extend((start, end))
    return Intervals(out)


def minus(a, b):
    """The parts of the Intervals `a` that `b` does not cover."""
    if native.library():
        out = native.zeros("q", 2 * (len(a) + len(b)))
        del out[2 * native.call("minus", len(a), a.flat, len(b), b.flat, out):]
        return Intervals(out)
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
    if native.library():
        state = native.zeros("q", 4 * tracks)
        count = native.call("busy", len(start), track, start, dur, tracks, state, None)
        found = native.zeros("q", 3 * count)
        native.call("busy", len(start), track, start, dur, tracks, state, found)
        spans, sums = state[::4], state[1::4]
        out, ends = native.zeros("q", 2 * count), native.zeros("q", tracks)
        native.call("by_base", count, found, array("q", bases), tracks, ends, out)
        flats = {base: out[2 * (ends[base - 1] if base else 0):2 * ends[base]]
                 for base in dict.fromkeys(bases)}
    else:
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
