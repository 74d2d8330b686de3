# SPDX-License-Identifier: MIT
"""Tables of device tracks, of the gaps between their spans, and of the clock they rest on."""

from fractions import Fraction
from heapq import nlargest

from .. import loops
from ..base.contract import COUNTED
from ..base.metadata import doubts
from .arithmetic import both, percent, union, union_of
from .executions import Device, compute_names
from .table import Table
from .tracks import device_window, label_of

LONGEST = 10       # gaps and submissions shown


def compute_on(trace, device):
    """base track -> (Intervals in which a compute span is open, ns of executions that the device counted, whether that is all).
    It is not where an execution has no known NPU Run."""
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


def pes_table(trace, tracks, device=None):
    window = device_window(trace, tracks)
    rows, together, steps, uncertain = [], [], [], False
    ns = window[1] - window[0] if window else 0

    def row(label, count, intervals, total, run):
        rows.append((label, count, intervals.length(), total, Fraction(intervals.length(), ns or 1), run,
                     None if run is None else Fraction(run, ns or 1)))
    if window:
        compute = compute_on(trace, device or Device(trace))
        for base, (count, total, intervals) in tracks.items():
            if trace.tracks[base].kind == "device":
                computes, counted, known = compute[base]
                row(label_of(trace, trace.tracks[base]), count, intervals, total,
                    computes.length() + counted if known else None)
                together.append(intervals)
                steps.append(computes)
                uncertain = uncertain or counted or not known
        if len(rows) > 1:
            # Why not where the device counts: when it was busy is not known, so neither is what overlaps.
            row("(any)", sum(r[1] for r in rows), union_of(together), sum(r[3] for r in rows),
                None if uncertain else union_of(steps).length())
    title = f"Device tracks (busy: a span is open; compute: an operator runs; shares of the {ns} ns from the first span to the last)"
    return Table("pes", title if window else "Device tracks",
                 ("track", "spans", "busy", "sum", "occupancy", "compute", "utilisation"), rows, [])


def gaps_table(trace, tracks):
    """Time in the device's window in which no device span runs and a host span is open; the longest such gaps."""
    window = device_window(trace, tracks)
    if not window:
        return Table("gaps", "Host gaps", ("start", "ns", "host thread", "host span"), [], [])
    busy = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "device")
    host = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "thread")
    idle = loops.minus(union([window]), busy)
    gaps = both(idle, host)
    ns = window[1] - window[0]
    notes = [f"device window {ns}, device busy {busy.length()}, idle {idle.length()}, idle while the host works {gaps.length()} "
             f"in {len(gaps)} gaps ({percent(Fraction(gaps.length(), ns or 1))} % of the window)"]
    threads = [t for t in trace.tracks if t.kind == "thread"]
    rows = []
    for start, end in nlargest(LONGEST, gaps, key=lambda g: (g[1] - g[0], -g[0])):
        # The host span at its middle: the newest begun one of all threads is what the host was at.
        at = [row for row in (trace.finder.at(t.number, (start + end) // 2) for t in threads) if row >= 0]
        row = max(at, key=lambda i: (trace.start[i], i), default=-1)
        rows.append((start, end - start, label_of(trace, trace.tracks[trace.track[row]]) if row >= 0 else "",
                     trace.text(row) if row >= 0 else ""))
    return Table("gaps", "Host gaps: the device is idle while the host works (the longest)",
                 ("start", "ns", "host thread", "host span"), rows, notes)


def trust_table(trace):
    """The clock error of each device, and what was lost: what the other tables rest on."""
    def of(sync, key):
        return "-" if sync.get(key) is None else str(sync[key])
    keys = ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations", "unplaced_spans",
            "ring_lost")
    found = trace.metadata.get("devices")
    devices = [d for d in found if isinstance(d, dict)
               and isinstance(d.get("clock_sync"), dict)] if isinstance(found, list) else []
    rows = [(str(d.get("name")), *(of(d["clock_sync"], key) for key in keys)) for d in devices]
    notes = doubts(trace.metadata) or (["lost 0"] if "lost" in trace.metadata
                                       else ["not known: this form of a trace does not say what was lost"])
    return Table("trust", "Clock error of the devices, and what was lost", ("device", *keys), rows, notes)
