# SPDX-License-Identifier: MIT
"""Which spans of the window the tables of single operators look at."""

from array import array

from ..base.contract import OPERATOR, UNFINISHED
from ..tables.executions import compute_names


def rows_inside(facts, wanted):
    """The finished rows outside warm-up, wholly inside the window, for which wanted[track] is true. wanted:
    bytes by track."""
    trace, window = facts.trace, facts.window
    warm, flags, start, dur, pes = trace.warm_up, trace.flags, trace.start, trace.dur, None
    if window.pe is not None:
        pes = trace.index.get("pe_index")
    return array("i", [i for i, track in enumerate(trace.track) if wanted[track] and not warm[i]
                       and not flags[i] & UNFINISHED and window.holds(start[i], start[i] + dur[i])
                       and (pes is None or pes[i] == window.pe)])


def device_operators(facts):
    """Rows of device spans that are no executions with spans inside."""
    trace = facts.trace
    groups, ends, _ = trace.executions
    hold, last = set(), 0
    for i, end in zip(groups, ends):
        if end > last:
            hold.add(i)
        last = end
    rows = rows_inside(facts, bytes(track.kind == "device" for track in trace.tracks))
    return array("i", [i for i in rows if i not in hold]) if hold else rows


def compute_rows(facts):
    """Those of them that compute."""
    computes = compute_names(facts.trace)
    return array("i", [i for i in device_operators(facts) if computes[facts.trace.name[i]]])


def host_operators(facts):
    """Rows of operators that the host computes."""
    trace = facts.trace
    if OPERATOR not in trace.kind:
        return array("i")
    rows = rows_inside(facts, bytes(track.kind == "thread" for track in trace.tracks))
    return array("i", [i for i in rows if trace.kind[i] == OPERATOR])
