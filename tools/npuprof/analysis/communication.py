# SPDX-License-Identifier: MIT
"""Communication between devices, and how much of it compute hides.

What communicates has the role "comm", or the name of a collective operation: all-reduce, all-gather,
reduce-scatter, all-to-all, send, recv, nccl and its like. What computes is every other device span without
spans inside that moves no data. Both are unions over all lanes of the device, inside the window.

    both       while it communicates, it computes, too: hidden, of the communication
    exposed    it communicates and does not compute
"""

import re
from array import array

from .. import loops
from ..tables.arithmetic import both
from ..tables.executions import compute_names
from ..tables.table import Table, pct
from .chosen import device_operators
from .lanes import Names

TABLES = ("communication", "collectives")
COMMUNICATION = ("device", "communication_ns", "compute_ns", "both_ns", "hidden_pct", "exposed_ns",
                 "exposed_pct")
COLLECTIVES = ("device", "operator", "count", "total_ns", "hidden_ns", "exposed_ns", "hidden_pct")
ROLE = "comm"
NAMES = re.compile(r"nccl|rccl|hccl|oneccl|all[-_ ]?reduce|all[-_ ]?gather|reduce[-_ ]?scatter|"
                   r"all[-_ ]?to[-_ ]?all|collective[-_ ]?permute|(^|[-_ .:])(send|recv)([-_ .:]|$)", re.I)
COPIES = re.compile(r"Mem(cpy|set)\b")         # of PyTorch's traces: neither of both


def communicates(trace):
    """Bytes by name: 1 if spans of that name communicate."""
    roles = trace.roles
    return bytearray(roles[text] == ROLE if text in roles else bool(NAMES.search(text))
                     for text in trace.names)


class Device:
    """What a device does in the window: Intervals of communication and compute, and by name of a collective
    operation its flat array of intervals."""

    def __init__(self):
        self.talks, self.computes, self.of = array("q"), array("q"), {}


def devices_of(facts):
    """{device: Device}"""
    trace, found, names = facts.trace, {}, Names(facts.trace)
    talks, computes = communicates(trace), compute_names(trace)
    for n, text in enumerate(trace.names):
        computes[n] = computes[n] and not talks[n] and not COPIES.match(text)
    if not any(talks):
        return found
    of = {}
    for track in trace.tracks:
        if track.kind == "device":
            name = names.of(trace.tracks[track.base])[0]
            of[track.number] = f"{name} (pid {track.pid})" if trace.has_processes else name
    for i in device_operators(facts):
        name, own = trace.name[i], found.setdefault(of[trace.track[i]], Device())
        pair = trace.start[i], trace.start[i] + trace.dur[i]
        if talks[name]:
            own.talks.extend(pair)
            own.of.setdefault(trace.names[name], array("q")).extend(pair)
        elif computes[name]:
            own.computes.extend(pair)
    return {device: own for device, own in found.items() if own.of}


def analyse(facts):
    rows, each, inside = [], [], facts.window.intervals
    for device, own in sorted(devices_of(facts).items()):
        computes = both(loops.merged(own.computes), inside)
        talks = both(loops.merged(own.talks), inside)
        hidden = both(talks, computes).length()
        rows.append((device, talks.length(), computes.length(), hidden, pct(hidden, talks.length()),
                     talks.length() - hidden, pct(talks.length() - hidden, facts.window.length_ns)))
        for name, flat in own.of.items():
            count, union = len(flat) // 2, both(loops.merged(flat), inside)
            hidden = both(union, computes).length()
            each.append((device, name, count, union.length(), hidden, union.length() - hidden,
                         pct(hidden, union.length())))
    each.sort(key=lambda row: (-row[5], row[:2]))
    notes = [] if rows else ["no collective operation on a device: none has such a name or the role comm"]
    yield Table("communication", "Communication of the devices, and what of it compute hides", COMMUNICATION,
                rows, notes)
    yield Table("collectives", "Collective operations, the most exposed first", COLLECTIVES, each, [])
