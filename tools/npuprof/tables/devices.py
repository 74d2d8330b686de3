# SPDX-License-Identifier: MIT
"""Tables of the device: its tracks, the gaps between their spans, and the error of its clock."""

from fractions import Fraction
from heapq import nlargest

from .. import loops
from ..base.contract import COUNTED
from ..base.losses import are_known, doubts, syncs_of
from .arithmetic import both, percent, union, union_of
from .executions import Device, compute_names
from .table import Table
from .tracks import device_window, label_of

LONGEST = 10       # gaps shown


def compute_on(trace, device):
    """By base track of the device: (Intervals in which a compute span is open, ns that the device's counter
    was busy, whether both together are all of its compute time). They are not if the NPU Run of an execution
    is unknown."""
    counts, known = {}, {}
    for execution in device.executions(warm_up=True):
        base = trace.tracks[trace.track[execution.row]].base
        known[base] = known.get(base, True) and execution.run is not None
        if execution.run and trace.flags[execution.row] & COUNTED:
            counts[base] = counts.get(base, 0) + execution.run
    other = len(trace.tracks)
    steps = loops.steps_on(trace.track, trace.name, compute_names(trace),
                           trace.index.get("instruction_index"), other)
    busy = loops.busy(steps, trace.start, trace.dur, [*(track.base for track in trace.tracks), other])
    nothing = 0, 0, union(())
    return {base: (busy.get(base, nothing)[2], counts.get(base, 0), known.get(base, True))
            for base, track in enumerate(trace.tracks) if track.kind == "device" and track.base == base}


PES = ("track", "spans", "busy", "sum", "occupancy", "compute", "utilisation")


def pes_table(trace, tracks, device=None):
    """Columns: PES. The last row is that of all tracks together, if there are several."""
    window = device_window(trace, tracks)
    if not window:
        return Table("pes", "Device tracks", PES, [], [])
    rows, busy, steps, uncertain = [], [], [], False
    ns = window[1] - window[0]

    def add(label, count, intervals, total, run):
        rows.append((label, count, intervals.length(), total, Fraction(intervals.length(), ns or 1), run,
                     None if run is None else Fraction(run, ns or 1)))
    compute = compute_on(trace, device or Device(trace))
    for base, (count, total, intervals) in tracks.items():
        if trace.tracks[base].kind == "device":
            computes, counted, known = compute[base]
            add(label_of(trace, trace.tracks[base]), count, intervals, total,
                computes.length() + counted if known else None)
            busy.append(intervals)
            steps.append(computes)
            uncertain = uncertain or counted or not known
    if len(rows) > 1:
        # Why None if the device counts: it does not say when it was busy, so what overlaps is unknown.
        add("(any)", sum(r[1] for r in rows), union_of(busy), sum(r[3] for r in rows),
            None if uncertain else union_of(steps).length())
    title = ("Device tracks (busy: a span is open; compute: an operator runs inside, "
             "0 if none is recorded; "
             f"shares of the {ns} ns from the first span to the last)")
    return Table("pes", title, PES, rows, [])


def gaps_table(trace, tracks):
    """The longest gaps: no device span is open, and a host span is. Only between the first and last device
    span."""
    window = device_window(trace, tracks)
    if not window:
        return Table("gaps", "Host gaps", ("start", "ns", "host thread", "host span"), [], [])
    busy = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "device")
    host = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "thread")
    idle = loops.minus(union([window]), busy)
    gaps = both(idle, host)
    ns = window[1] - window[0]
    notes = [f"device window {ns}, device busy {busy.length()}, idle {idle.length()}, "
             f"idle while the host works {gaps.length()} in {len(gaps)} gaps "
             f"({percent(Fraction(gaps.length(), ns or 1))} % of the window)"]
    threads = [t for t in trace.tracks if t.kind == "thread"]
    rows = []
    for start, end in nlargest(LONGEST, gaps, key=lambda g: (g[1] - g[0], -g[0])):
        # What the host did: of the spans open in the middle of the gap, the latest begun.
        at = [row for row in (trace.finder.at(t.number, (start + end) // 2) for t in threads) if row >= 0]
        row = max(at, key=lambda i: (trace.start[i], i), default=-1)
        rows.append((start, end - start, label_of(trace, trace.tracks[trace.track[row]]) if row >= 0 else "",
                     trace.text(row) if row >= 0 else ""))
    return Table("gaps", "Host gaps: the device is idle while the host works (the longest)",
                 ("start", "ns", "host thread", "host span"), rows, notes)


def trust_table(trace):
    """The clock error of each device, and what was lost: how far to trust the other tables."""
    def of(sync, key):
        return "-" if sync.get(key) is None else str(sync[key])
    keys = ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations", "unplaced_spans",
            "ring_lost")
    rows = [(name, *(of(sync, key) for key in keys)) for name, sync in syncs_of(trace.metadata, None)]
    unknown = "not known: this form of a trace does not say what was lost"
    notes = doubts(trace.metadata) or ["lost 0" if are_known(trace.metadata) else unknown]
    return Table("trust", "Clock error of the devices, and what was lost", ("device", *keys), rows, notes)
