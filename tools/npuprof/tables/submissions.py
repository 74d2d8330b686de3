# SPDX-License-Identifier: MIT
"""Each submission from the host to the device and back: queue, execute, late, wait. And the arrows between
spans."""

from fractions import Fraction
from heapq import nlargest

from ..analysis.jobs import jobs_of
from ..analysis.window import choose
from ..base.contract import DEVICE, NULL
from .arithmetic import mean, percentile
from .table import Table


def path_rows(trace):
    """Rows (row of the device span, queue, execute, late, wait), one for each submission with an arrow.

    late: from the device's end to the begin of the wait span; wait: from then, or from the end if that is
    later, to the end of the wait span. Both are None without a wait span (analysis/jobs.py says what is one),
    in warm-up, and outside of the inferences."""
    from_track, from_ns, to_track, to_ns = trace.flows.named("submit")
    if not from_track:
        return []
    jobs, rows = jobs_of(trace, choose(trace)), []
    waits = {row: (w, n) for row, w, n in zip(jobs.row, jobs.w, jobs.n) if n != NULL}
    for since, i in zip(from_ns, trace.finder.beginning(to_track, to_ns, trace.kind, DEVICE)):
        if i >= 0:
            late = wait = None
            if i in waits:
                done, (w, n) = trace.start[i] + trace.dur[i], waits[i]
                late, wait = max(0, w - done), max(0, n - max(done, w))
            rows.append((i, trace.start[i] - since, trace.dur[i], late, wait))
    return rows


PHASES = ("queue", "execute", "late", "wait")
PATH = ("phase", "count", "total", "share", "mean", "p50", "p90", "p99", "max")


def path_table(trace):
    """Columns: PATH. The notes tell of the three longest submissions."""
    rows = [row for row in path_rows(trace) if not trace.warm_up[row[0]]]
    phases = [[row[place] for row in rows if row[place] is not None] for place in range(1, 5)]
    everything, out = sum(map(sum, phases)), []
    for label, values in zip(PHASES, phases):
        ordered = sorted(values)
        if ordered:
            total = sum(ordered)
            out.append((label, len(ordered), total, Fraction(total, everything or 1),
                        mean(total, len(ordered)),
                        *(percentile(ordered, p) for p in (500, 900, 990)), ordered[-1]))
    notes = []
    if len(phases[3]) < len(rows):
        notes.append(f"{len(rows) - len(phases[3])} submissions without a wait span: when the host noticed "
                     "their end is not known")
    for i, *own in nlargest(3, rows, key=lambda row: (sum(ns or 0 for ns in row[1:]), -row[0])):
        parts = [(ns, label) for ns, label in zip(own, PHASES) if ns is not None]
        until = "notice" if own[3] is not None else "end"
        notes.append(f"{sum(ns for ns, _ in parts)} from submit to {until}: {trace.text(i)} at "
                     f"{trace.start[i]} on {trace.tracks[trace.track[i]].name}: "
                     + ", ".join(f"{label} {ns}" for ns, label in parts)
                     + f"; most of it is {max(parts)[1]}")
    title = "From submit to completion (submit -> queue -> execute -> late -> wait; ns)"
    return Table("path", title, PATH, out, notes)


def ends_of_arrows(trace):
    """Yields (row, row), the spans that each arrow leaves and reaches, -1 for none: the innermost ones open
    then; at its end rather the device span that begins there."""
    if not trace.flows:
        return
    from_track, from_ns, to_track, to_ns = trace.flows.columns
    finder = trace.finder
    for source, begun, around in zip(finder.innermost(from_track, from_ns),
                                     finder.beginning(to_track, to_ns, trace.kind, DEVICE),
                                     finder.innermost(to_track, to_ns)):
        yield source, begun if begun >= 0 else around


def arrows(trace):
    """By row: [(row at the other end, name of the arrow, "out" or "in")]."""
    links = {}
    for flow, (source, target) in zip(trace.flows, ends_of_arrows(trace)):
        if source >= 0 and target >= 0:
            links.setdefault(source, []).append((target, flow.name, "out"))
            links.setdefault(target, []).append((source, flow.name, "in"))
    return links
