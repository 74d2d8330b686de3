# SPDX-License-Identifier: MIT
"""Counters that nobody counted: how many submissions were in flight, and how many bytes a second moved, in
100 equal slices of the window.

    queue_length   submitted, and not done on the device: mean and maximum in the slice
    bandwidth      `bytes` of the spans of a lane. Those of one span are spread evenly over its time. What a
                   slice moved is exact, and the sum of all slices is that of the spans
"""

from fractions import Fraction

from ..base.contract import NULL
from ..tables.table import Table
from ..tables.tracks import label_of
from .arguments import whole_arguments
from .chosen import rows_inside

TABLES = ("queue_length", "bandwidth")
QUEUE_LENGTH = ("queue", "start_ns", "dur_ns", "mean_ratio", "max")
BANDWIDTH = ("lane", "start_ns", "dur_ns", "moved_bytes", "bytes_per_s")
SLICES = 100


def edges(window):
    """The edges of the slices, whole ns; [] without time. A window of fewer ns has fewer slices."""
    length = window.end_ns - window.start_ns
    count = min(SLICES, length)
    return [window.start_ns + length * n // count for n in range(count + 1)] if count else []


def queue_slices(pairs, cuts):
    """Yields (mean as a Fraction, max) of each slice of how many of the (begin, end) pairs are open. Ends
    come before begins of the same time."""
    changes = sorted(change for begin, end in pairs if begin < end for change in ((begin, 1), (end, -1)))
    k = depth = 0
    for first, end in zip(cuts, cuts[1:]):
        while k < len(changes) and changes[k][0] <= first:
            depth += changes[k][1]
            k += 1
        most, area, at = depth, 0, first
        while k < len(changes) and changes[k][0] < end:
            now = changes[k][0]
            area, at = area + depth * (now - at), now
            while k < len(changes) and changes[k][0] == now:
                depth += changes[k][1]
                k += 1
            most = max(most, depth)
        yield Fraction(area + depth * (end - at), end - first), most


def moved_in(spans, cuts):
    """The bytes that each slice moved, exactly. spans: (begin, end, bytes), each inside the cuts."""
    moved, n = [Fraction(0)] * (len(cuts) - 1), 0
    for begin, end, count in sorted(spans):
        while cuts[n + 1] <= begin:
            n += 1
        for k in range(n, len(moved)):
            part = min(end, cuts[k + 1]) - max(begin, cuts[k])
            moved[k] += count if part == end - begin else Fraction(count * part, end - begin)
            if end <= cuts[k + 1]:
                break
    return moved


def queues(facts):
    """{label: (begin, end) pairs}: of all queues together, and of each if there are several."""
    jobs, found = facts.jobs, {}
    for k, s in enumerate(jobs.s):
        if s != NULL:
            found.setdefault(jobs.queues[jobs.queue[k]].label, []).append((s, jobs.end[k]))
    every = [pair for own in found.values() for pair in own]
    return {"(all)": every, **(found if len(found) > 1 else {})} if found else {}


def transfers(facts):
    """{lane: [(begin, end, bytes)]} of the spans of devices that say how many bytes they move."""
    trace, found = facts.trace, {}
    if not trace.mentions("bytes"):
        return found
    rows = rows_inside(facts, bytes(track.kind == "device" for track in trace.tracks))
    for i, count in zip(rows, whole_arguments(trace, rows, ("bytes",))["bytes"]):
        if count > 0 and trace.dur[i] > 0:
            base, begin = trace.tracks[trace.tracks[trace.track[i]].base], trace.start[i]
            found.setdefault(label_of(trace, base), []).append((begin, begin + trace.dur[i], count))
    return found


def rows_of(label, cuts, found):
    """Rows (label, start, length, *found of each slice)."""
    return [(label, a, b - a, *own) for a, b, own in zip(cuts, cuts[1:], found)]


def bandwidth_rows(facts):
    cuts = edges(facts.window)
    return [row for label, spans in sorted(transfers(facts).items()) if cuts
            for row in rows_of(label, cuts, ((moved, Fraction(moved * 10**9, b - a)) for a, b, moved in
                                                    zip(cuts, cuts[1:], moved_in(spans, cuts))))]


def bandwidth(facts):
    """{lane: [(ns, bytes a second from then on)]}, 0 behind the last slice."""
    found = {}
    for label, start, ns, _, rate in bandwidth_rows(facts):
        found.setdefault(label, []).append((start, rate))
    return {label: [*points, (facts.window.end_ns, Fraction(0))] for label, points in found.items()}


def queue_rows(facts):
    cuts = edges(facts.window)
    return [row for label, pairs in sorted(queues(facts).items()) if cuts
            for row in rows_of(label, cuts, queue_slices(pairs, cuts))]


def analyse(facts):
    length, moved = queue_rows(facts), bandwidth_rows(facts)
    yield Table("queue_length", "Submissions in flight over time", QUEUE_LENGTH, length,
                [] if length else ["no submissions: no arrow from a host span to an execution"])
    yield Table("bandwidth", "Bytes that devices moved over time", BANDWIDTH, moved,
                [] if moved else ["no span of a device has the argument bytes"])
