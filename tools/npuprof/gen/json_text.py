# SPDX-License-Identifier: MIT
"""A description as JSON, for tools/npuprof_describe.c: members of npuprof_npu_desc, each queue in `rings`."""

import copy
import json

from .c_header import Header
from .description import device_members, ring_members
from .header import add_constants


def nested(members):
    """{"ring.key[1].bits": 5} as {"ring": {"key": [{}, {"bits": 5}]}}."""
    result = {}
    for path, value in members.items():
        place = result
        *around, last = path.split(".")
        for name in around:
            name, _, index = name.partition("[")
            if index:
                rows = place.setdefault(name, [])
                rows += ({} for _ in range(int(index[:-1]) + 1 - len(rows)))
                place = rows[int(index[:-1])]
            else:
                place = place.setdefault(name, {})
        place[last] = value
    return result


MEMORY = 2**52             # bytes of what a driver will hand over, so that its size refuses nothing


def json_of(device, judged=False):
    """The JSON of a checked device, as text. judged: for npuprof-judge, with the sizes of what lies where."""
    h = Header(device.name, device.from_svd)
    add_constants(h, device)                     # gives the registers and rings their names in C
    members = nested(device_members(h, device))
    if judged:
        members["bar_bytes"] = device.bar_bytes or 0
        if device.progress and device.progress.memory:
            members["progress"]["index"]["memory_bytes"] = MEMORY
    rings = []
    for r in device.rings:
        ring = nested(ring_members(h, device, r))
        if judged and r.memory:
            ring["memory_bytes"] = MEMORY
        for i in range(r.instances):
            one = copy.deepcopy(ring)
            one["pe_base"] = r.pe_base + i
            if r.offset is not None:
                one["offset"] += i * (r.stride or 0)
            if r.index and (r.index.register or not r.memory):
                one["producer"]["offset"] += i * (r.stride or 0)
                if r.index.laps_at is not None:
                    one["producer"]["laps_offset"] += i * (r.stride or 0)
            rings.append(one)
    members |= {"rings": rings} if rings else {}
    return json.dumps(members, indent=1, ensure_ascii=False) + "\n"
