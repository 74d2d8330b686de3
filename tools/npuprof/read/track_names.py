# SPDX-License-Identifier: MIT
"""Names the tracks of a JSON trace, and finds out which of them are a thread, a device engine, or a lane of
another one.

npuprof writes the threads of a process first; tracks with higher numbers are finished or asynchronous spans.
Spans of a track that overlap stand on lanes of their own, whose names end in " (overlap)" or " #2".
"""

import re

from .. import loops
from ..base.contract import DEVICE
from .order import track_key

# what a lane adds to the name of its PE
DEVICE_LANE = re.compile(r"( instructions| stream \w+)?( #\d+)?$")


def name_tracks(trace, numbers, names_of):
    """Sets name, kind, base and ids of all tracks.

    numbers: (pid, tid) -> number of the track. names_of: (pid, tid) -> what metadata events say about it."""
    devices = loops.tracks_with(trace.track, trace.kind, DEVICE, len(trace.tracks))
    processes, lanes = processes_of(trace.metadata), Lanes()
    for track in sorted(trace.tracks, key=lambda t: track_key(t.pid, t.tid)):
        names = names_of.get((track.pid, track.tid), {})
        track.name = str(names.get("thread_name", track.tid))
        sort, native_id = names.get("thread_sort_index"), names.get("native_id")
        track.sort = sort if type(sort) is int else None
        track.native_id = native_id if type(native_id) is int else None
        above = [p for p in processes.get(track.pid, ()) if type(track.tid) is int and p[0] < track.tid]
        shift, threads = max(above, key=lambda p: p[0], default=(0, None))
        if devices[track.number]:
            track.kind = "device"
        elif isinstance(track.tid, AsyncId):
            track.kind = "other"
        elif type(threads) is int and track.tid - shift > threads:
            track.kind = "other"
            owner = numbers.get((track.pid, track.sort)) if track.name.endswith(" (overlap)") else None
            if owner is not None:
                track.kind, track.base, track.thread_id = "thread", owner, track.sort
        elif type(track.tid) is int and 0 <= track.tid < 2**63:
            track.thread_id = track.tid
        lanes.place(track, shift)


def processes_of(about):
    """pid -> [(tid_shift, threads)]: in a merged trace, the threads of a later part have numbers above its
    tid_shift."""
    found = {}
    for process in [*about.get("processes", []), about]:
        found.setdefault(process.get("pid"), []).append((process.get("tid_shift", 0), process.get("threads")))
    return found


class AsyncId(str):
    """Instead of a thread's number: the track of asynchronous spans, by their name."""


class Lanes:
    """Finds the base of each lane: the first of the tracks, one after the other, that belong together."""

    def __init__(self):
        self.devices = {}             # pid -> (name of the PE, names of its lanes, number of the first)
        self.others = {}              # (pid, tid_shift) -> (name, number) of the last track that is no lane

    def place(self, track, shift):
        if track.kind == "device":
            # Lanes of a PE: "npu0 PE 1", "npu0 PE 1 instructions", "npu0 stream 7", "npu0 stream 7 #2", ...
            pe = DEVICE_LANE.sub("", track.name)
            last = self.devices.get(track.pid)
            if last is None or last[0] != pe or track.name in last[1]:
                last = self.devices[track.pid] = pe, set(), track.number
            last[1].add(track.name)
            track.base = last[2]
            return
        self.devices.pop(track.pid, None)
        if track.kind == "other":
            # Lanes of overlapping spans: "copy", "copy #2", ...
            stem, _, lane = track.name.rpartition(" #")
            name, base = self.others.get((track.pid, shift), (None, 0))
            if stem and lane.isdigit() and name == stem:
                track.base = base
            else:
                self.others[track.pid, shift] = track.name, track.number
