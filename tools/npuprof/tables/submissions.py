# SPDX-License-Identifier: MIT
"""Each submission from the host to the device and back: queue, execute, wait. And the arrows between
spans."""

from bisect import bisect_left
from fractions import Fraction
from heapq import nlargest

from ..base.contract import DEVICE
from .arithmetic import mean, percentile
from .table import Table


def path_rows(trace):
    """Rows (row of the device span, queue, execute, wait or None), one for each submission with an arrow.

    wait: from the device's end to the next end of a span on the submitting thread. The host cannot have
    noticed earlier."""
    from_track, from_ns, to_track, to_ns = trace.flows.named("submit")
    if not from_track:
        return []
    ends = {track: trace.finder.ends_of(track) for track in set(from_track)}
    rows = []
    for track, since, i in zip(from_track, from_ns,
                               trace.finder.beginning(to_track, to_ns, trace.kind, DEVICE)):
        if i >= 0:
            done = trace.start[i] + trace.dur[i]
            seen = ends[track]
            k = bisect_left(seen, done)
            rows.append((i, trace.start[i] - since, trace.dur[i], seen[k] - done if k < len(seen) else None))
    return rows


PATH = ("phase", "count", "total", "share", "mean", "p50", "p90", "p99", "max")


def path_table(trace):
    """Columns: PATH. The notes tell of the three longest submissions."""
    rows = [row for row in path_rows(trace) if not trace.warm_up[row[0]]]
    complete = [row for row in rows if row[3] is not None]
    everything = sum(row[1] + row[2] + row[3] for row in complete)
    out = []
    for label, place in (("queue", 1), ("execute", 2), ("wait", 3)):
        ordered = sorted(row[place] for row in complete)
        if ordered:
            total = sum(ordered)
            out.append((label, len(ordered), total, Fraction(total, everything or 1),
                        mean(total, len(ordered)),
                        *(percentile(ordered, p) for p in (500, 900, 990)), ordered[-1]))
    notes = []
    if len(complete) < len(rows):
        notes.append(f"{len(rows) - len(complete)} submissions without a host span that ends after the "
                     "device")
    for i, queue, execute, wait in nlargest(3, complete, key=lambda row: (row[1] + row[2] + row[3], -row[0])):
        longest = max((queue, "queue"), (execute, "execute"), (wait, "wait"))
        notes.append(f"{queue + execute + wait} from submit to notice: {trace.text(i)} at {trace.start[i]} "
                     f"on {trace.tracks[trace.track[i]].name}: queue {queue}, execute {execute}, wait "
                     f"{wait}; most of it is {longest[1]}")
    return Table("path", "From submit to completion (submit -> queue -> execute -> wait; "
                         "ns)", PATH, out, notes)


def arrows(trace):
    """By row: [(row at the other end, name of the arrow, "out" or "in")]."""
    links = {}
    if not trace.flows:
        return links
    flows = trace.flows
    from_track, from_ns, to_track, to_ns = flows.columns
    finder = trace.finder
    begun = finder.beginning(to_track, to_ns, trace.kind, DEVICE)
    for flow, source, target, other in zip(flows, finder.innermost(from_track, from_ns), begun,
                                           finder.innermost(to_track, to_ns)):
        target = target if target >= 0 else other
        if source >= 0 and target >= 0:
            links.setdefault(source, []).append((target, flow.name, "out"))
            links.setdefault(target, []).append((source, flow.name, "in"))
    return links
