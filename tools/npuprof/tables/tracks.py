# SPDX-License-Identifier: MIT
"""Tracks of the timeline: their names, when they are busy, and the time from the first to the last span."""

from array import array

from .. import loops
from ..read.track_names import DEVICE_LANE


def rows_of(trace):
    """By number of the track: its rows."""
    rows = {}
    for i, track in enumerate(trace.track):
        if track not in rows:
            rows[track] = array("q")
        rows[track].append(i)
    return rows


def track_intervals(trace):
    """By number of the base track: (spans, sum of durations, Intervals in which one is open)."""
    return loops.busy(trace.track, trace.start, trace.dur, [track.base for track in trace.tracks])


def label_of(trace, track):
    """The name of a base track, for all of its lanes."""
    name = DEVICE_LANE.sub("", track.name) if track.kind == "device" else track.name
    return f"{name} (pid {track.pid})" if trace.has_processes else name


def whole_window(tracks):
    """ns from the first to the last moment of any span."""
    if not tracks:
        return 0
    return max(t[2][-1][1] for t in tracks.values()) - min(t[2][0][0] for t in tracks.values())


def device_window(trace, tracks):
    """(first, last) moment of any device span, or None."""
    devices = [intervals for base, (_, _, intervals) in tracks.items() if trace.tracks[base].kind == "device"]
    return (min(i[0][0] for i in devices), max(i[-1][1] for i in devices)) if devices else None
