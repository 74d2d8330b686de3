# SPDX-License-Identifier: MIT
"""Lanes of a device: which device they are of, what they are for, and which of them are equals.

The device of a lane is the one of the metadata whose name its own begins with. The name decides only in
traces that describe no device. The role of a lane is what the trace says:
npuprof_metadata("npuprof.role.NAME", ROLE), NAME being that of the lane with or without its device. Else a
lane is a container if it encloses 99 % of the executions of another lane, which nobody submitted, and fewer
if they are moved to other times. All others are engines.

Equals are lanes of one device that do the same: of the same stated role, else with names that only differ in
numbers. Stages of a pipeline have no equals, and containers no work of their own.
"""

import re
from bisect import bisect_right
from collections import namedtuple
from functools import lru_cache

from ..base.contract import NULL
from ..read.track_names import DEVICE_LANE
from ..tables.tracks import label_of

PE = re.compile(r"(^| )PE \d+$")      # a CSV names PEs alone
ENCLOSED, LEAST, LOOKED_AT = 0.99, 8, 500
SHIFTS = 8         # other times at which it is looked how many are enclosed
# base: of its tracks; device: its number; name: behind that of the device; kind: what equals share, None: it
# has none
Lane = namedtuple("Lane", "base device name role kind")
# Equals. name: of the device, with what they are called where it has others, too
Group = namedtuple("Group", "device name bases")


class Names:
    """Of base tracks: the name of their device, and what they add to it."""

    def __init__(self, trace):
        self.known, self.sole = {}, {}     # by process: names that are described; the only one, if it fits
        for about in trace.metadata.get("devices") or ():
            if isinstance(about, dict) and isinstance(about.get("name"), str) and about["name"]:
                self.known.setdefault(about.get("pid"), {})[about["name"]] = None
        tracks = {}
        for track in trace.tracks:
            if track.kind == "device":
                tracks.setdefault(track.pid, []).append(track)
        for pid, own in tracks.items():
            names = self._described(pid)
            # Why none: where tracks do bear the name, another one is no lane of that device.
            if len(names) == 1 and not any(self._added(track, names) for track in own):
                self.sole[pid] = next(iter(names))

    def _described(self, pid):
        return self.known.get(pid) or self.known.get(None, {})

    @staticmethod
    def _added(track, names):
        """(device, what the track adds), or None."""
        words = track.name.split(" ")
        beginnings = (" ".join(words[:n]) for n in range(len(words), 0, -1))
        own = next((text for text in beginnings if text in names), None)
        return None if own is None else (own, track.name[len(own):].strip())

    def of(self, track):
        found = self._added(track, self._described(track.pid))
        if found:
            return found
        if track.pid in self.sole:
            return self.sole[track.pid], track.name
        name = DEVICE_LANE.sub("", track.name)
        pe = PE.search(name)
        return (name[:pe.start()], pe[0].strip()) if pe else (name, "")


@lru_cache
def stem(name):
    """A name without its numbers."""
    return re.sub(r"[\W\d_]+", " ", name).strip()


class Lanes:
    """by_base: {base track: Lane}; groups: Groups, by device and then by name."""

    def __init__(self, facts):
        self.trace, self.jobs = facts.trace, facts.jobs
        self.of = {}                       # base -> its jobs, by start
        for k, q in enumerate(self.jobs.queue):
            self.of.setdefault(self.jobs.queues[q].base, []).append(k)
        self.by_base, self.groups, self.kinds = {}, [], [set() for _ in self.jobs.devices]
        names = Names(self.trace)
        devices = {queue.base: queue.device for queue in self.jobs.queues}
        enclosing = self._containers(devices)
        for base, device in devices.items():
            self.by_base[base] = lane = self._lane(base, device, names, base in enclosing)
            self.kinds[device].add(lane.kind)
        self._group()

    def _lane(self, base, device, names, encloses):
        track = self.trace.tracks[base]
        name = names.of(track)[1]
        role = self.trace.roles.get(name) or self.trace.roles.get(label_of(self.trace, track))
        kind = role or stem(name)
        role = role or ("container" if encloses else "engine")
        return Lane(base, device, name, role, None if role in ("container", "stage") else kind)

    def _group(self):
        found = {}
        for base, lane in self.by_base.items():
            if lane.kind is not None:
                found.setdefault((lane.device, lane.kind), []).append(base)
        for (device, kind), bases in sorted(found.items()):
            name = self.jobs.devices[device]
            name = name if self.alone(device) else f"{name} {kind}".strip()
            self.groups.append(Group(device, name, sorted(bases)))

    def alone(self, device):
        """True: all lanes of the device are equals."""
        return len(self.kinds[device]) == 1

    # ---- Containers

    def _containers(self, devices):
        """Bases of lanes that enclose another one."""
        lanes = {}
        for base, device in devices.items():
            lanes.setdefault(device, []).append(base)
        found = set()
        for own in lanes.values():
            given = [base for base in own if self._submitted(base)]
            # Why only lanes with submissions, if there are any: those inside a container may enclose others.
            for base in [base for base in own if len(self.of[base]) >= LEAST and base not in given]:
                found |= {outer for outer in given or own if outer != base and self._encloses(outer, base)
                          and not self._encloses(base, outer)}
        return found

    def _submitted(self, base):
        own = self.of[base]
        return 2 * sum(self.jobs.s[k] != NULL for k in own) > len(own)

    def _encloses(self, outer, base):
        jobs, own, inner = self.jobs, self.of[outer], self.of[base]
        starts, ends = [jobs.start[k] for k in own], [jobs.end[k] for k in own]

        def share(looked_at, shift=0):
            held = 0
            for k in looked_at:
                begin = jobs.start[k]
                if shift:
                    begin = starts[0] + (begin + shift - starts[0]) % length
                n = bisect_right(starts, begin) - 1
                held += n >= 0 and ends[n] >= begin + jobs.end[k] - jobs.start[k]
            return held / len(looked_at)
        # Why a few first: most pairs of lanes have nothing to do with one another.
        if len(own) < LEAST or share(inner[::len(inner) // LEAST]) < 0.75:
            return False
        part = inner[::len(inner) // LOOKED_AT + 1]
        length = max(1, ends[-1] - starts[0])
        # Why thirds: no multiple of the time from one inference to the next.
        chance = sorted(share(part, length * (3 * n - 1) // (3 * SHIFTS)) for n in range(1, SHIFTS + 1))
        return share(part) >= ENCLOSED > chance[SHIFTS // 2] + (1 - ENCLOSED)
