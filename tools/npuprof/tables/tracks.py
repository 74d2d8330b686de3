# SPDX-License-Identifier: MIT
"""Tracks of the timeline: their names, when they are busy, and the window of all of them or of the device's."""

import re

from .. import loops

DEVICE_LANE = re.compile(r"( instructions| stream \w+)?( #\d+)?$")


def track_intervals(trace):
    """number of a base track -> (spans, sum, merged Intervals)."""
    return loops.busy(trace.track, trace.start, trace.dur, [track.base for track in trace.tracks])


def label_of(trace, track):
    name = DEVICE_LANE.sub("", track.name) if track.kind == "device" else track.name      # of all its lanes
    return f"{name} (pid {track.pid})" if trace.has_processes else name


def whole_window(tracks):
    if not tracks:
        return 0
    return max(t[2][-1][1] for t in tracks.values()) - min(t[2][0][0] for t in tracks.values())


def device_window(trace, tracks):
    """From the first to the last moment of any device span."""
    devices = [intervals for base, (_, _, intervals) in tracks.items() if trace.tracks[base].kind == "device"]
    return (min(i[0][0] for i in devices), max(i[-1][1] for i in devices)) if devices else None
