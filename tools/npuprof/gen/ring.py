# SPDX-License-Identifier: MIT
"""How the entries of a ring reach the host: handed over, or polled by a ready rule. What C refuses of it is
left to C."""

from .counters import read_requirements
from .entry import read_entry
from .index import has_index, read_index
from .pick import pick
from .schema import EITHER, READY, RING, RING_FIELDS


def read_ring(table, device):
    """A ring of completion records, checked against the rest of the device."""
    r = table.read(RING)
    r.table = table
    r.record = pick(table, "record", r.record, device.records, "record")
    table.check_pairs({}, EITHER)
    read_entry(table, r, device)
    if r.count is None and not r.feed:
        table.refuse(f"{table.where()} has no 'count', add the number of entries, or feed = true")
    r.instances = r.instances or 1
    r.ready = rule_of(r)
    r.index = read_index(table, r, device) if has_index(r) or (r.ready == "producer" and not r.feed) else None
    for key, role in (("valid_is", "valid"), ("phase_first", "phase"), ("sequence_first", "sequence")):
        value = getattr(r, key)
        if value is not None and value >> r.fields[role].bits:
            table.refuse(f"{key} = {value} in {table.where()} does not fit the {r.fields[role].bits}-bit "
                         f"field {r.fields[role].name}, correct it", key)
    if not r.feed:
        check_place(table, r, device)
    read_requirements(table, device)
    return r


def rule_of(r):
    """The ready rule: the one that is named, else that of which there is the field. Why `sequence` last: it
    goes with others, too."""
    if r.ready is not None or r.feed:
        return r.ready
    own = [rule for rule in READY if rule in RING_FIELDS and rule != "sequence" and rule in r.fields]
    if own or has_index(r):
        return own[0] if own else "producer"
    return "sequence" if "sequence" in r.fields else "producer"


def check_place(table, r, device):
    """The ring's place: in the BAR, or in memory. In the BAR it is on no register."""
    where = table.where()
    if r.memory == (r.offset is not None):
        table.refuse(f"{where} needs either offset (in the BAR) or memory = true (host memory)", "memory")
    in_bar = not r.memory or (r.index and r.index.register)
    if r.stride is not None and not in_bar:
        table.refuse(f"stride in {where} goes with a ring or an index in the BAR; the driver gives each "
                     "ring's memory", "stride")
    if r.instances > 1 and in_bar and r.stride is None:
        table.refuse(f"instances in {where} goes with stride, add the bytes from ring to ring", "instances")
    if r.memory:
        return
    r.bytes = max(r.first + r.count * r.record.bytes, r.index.end if r.index and r.index.in_memory else 0)
    if r.instances > 1 and r.stride < r.bytes:
        table.refuse(f"stride = {r.stride} in {where} is less than the {r.bytes} bytes of a ring, correct it",
                     "stride")
    for i in range(r.instances):
        start = r.offset + i * (r.stride or 0)
        for register in device.registers:
            if register.offset < start + r.bytes and start < register.whole_end:
                table.refuse(f"the ring overlaps register {register.name}, move one", "offset")
