# SPDX-License-Identifier: MIT
"""Which tracks have the clock of a device, and the arrows between them and the host."""

import re
from collections import Counter
from typing import NamedTuple

from ..base.doctor import device_of
from ..base.losses import syncs_of
from ..base.messages import Refused

# What other tools call the tracks of a device, and the categories of its spans in PyTorch's profiles.
DEVICE = re.compile(r"(?<![a-z])(?:[gntx]pu|device|stream|accelerator|neuron|dsp|hailo|xla)(?![a-z])", re.I)
CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}


class Arrow(NamedTuple):
    name: str
    host: int          # ns
    device: int
    to_device: bool

    @property
    def back(self):
        """By how many ns its effect comes before its cause; 0: it does not."""
        return max(0, self.host - self.device if self.to_device else self.device - self.host)


class Device:
    """One clock: the tracks that have it, and the arrows to and from them. unit: of all stamps, in ns."""

    def __init__(self, name):
        self.name, self.tracks, self.arrows = name, set(), []

    def points(self, tolerance=0):
        """(lower, upper) points for Lines: (ns since the first stamp, ns of the host before that stamp)."""
        lower = [(a.device - self.start, a.host - a.device - tolerance) for a in self.arrows if a.to_device]
        upper = [(a.device - self.start, a.host - a.device + tolerance) for a in self.arrows
                 if not a.to_device]
        return lower, upper

    @property
    def start(self):
        return min(arrow.device for arrow in self.arrows)


def devices_of(trace, pattern=None):
    """[Device] with arrows. pattern: a regular expression that the names of their tracks or processes have.
    Raises Refused where no track is a device's, or no arrow leads there."""
    clock_of = clocks(trace, pattern)
    if not clock_of:
        known = {shown(trace, track): None for track in trace.tracks}
        what = f"is named like {pattern}" if pattern else "looks like one of a device"
        raise Refused(f"{trace.path}: no track {what}: --device REGEX says which have its clock; there are: "
                      + ", ".join(list(known)[:12]))
    found = {name: Device(name) for name in clock_of.values()}
    for track, name in clock_of.items():
        found[name].tracks.add(track)
    for flow, (source, source_ns, target, target_ns) in zip(trace.flows.name, zip(*trace.flows.columns)):
        ours, theirs = clock_of.get(source), clock_of.get(target)
        if (ours is None) != (theirs is None):
            arrow = (source_ns, target_ns, True) if ours is None else (target_ns, source_ns, False)
            found[theirs or ours].arrows.append(Arrow(trace.names[flow], *arrow))
    devices = [device for device in found.values() if device.arrows]
    if not devices:
        raise Refused(f"{trace.path}: no arrow leads between the host and {', '.join(list(found)[:5])}: "
                      "without arrows nothing tells how their clocks differ")
    return devices


def shown(trace, track):
    """The name of a track as a pattern sees it."""
    return " ".join(filter(None, (trace.processes.get(track.pid, ""), track.name)))


def clocks(trace, pattern):
    """{number of a track: name of the clock it has}, of the tracks of devices."""
    if pattern is not None:
        try:
            regex = re.compile(pattern)
        except re.error as error:
            raise Refused(f"--device {pattern}: no regular expression: {error}") from None
        return {track.number: pattern for track in trace.tracks if regex.search(shown(trace, track))}
    own = [track for track in trace.tracks if trace.tracks[track.base].kind == "device"]
    if own:
        devices = [name for name, _ in syncs_of(trace.metadata)]
        names = {track.number: trace.tracks[track.base].name for track in own}
        return {number: device_of(name, devices) or name for number, name in names.items()}
    of_category = {trace.names.index(name) for name in CATEGORIES if name in trace.names}
    kernels = {track for track, cat in Counter(zip(trace.track, trace.cat)) if cat in of_category}
    tracks = [track for track in trace.tracks
              if track.number in kernels or DEVICE.search(shown(trace, track))]
    # All of a process have one clock, unless the host's threads are in it, too.
    own = {track.pid for track in tracks} - {track.pid for track in trace.tracks if track not in tracks}
    return {track.number: trace.processes.get(track.pid, f"process {track.pid}") if track.pid in own
            else track.name for track in tracks}
