# SPDX-License-Identifier: MIT
"""How the entries of a ring reach the host: handed over, or polled by a ready rule."""

from .counters import read_requirements
from .entry import read_entry
from .index import check_count, read_index
from .pick import choice, pick
from .schema import INDEX, READY, RING, RING_FIELDS

# Keys that say how a ring is polled, so that none of them goes with feed.
POLLED = ("count", "offset", "memory", "first", "stride", *INDEX, "ready", "valid", "valid_is", "phase",
          "phase_first")


def read_ring(table, device):
    """A ring of completion records, checked against the rest of the device."""
    r = table.read(RING)
    r.table, r.index = table, None
    r.record = pick(table, "record", r.record, device.records, "record")
    read_entry(table, r, device)
    check_instances(table, r, device)
    if r.feed:
        check_feed(table, r)
    else:
        read_transport(table, r, device)
    check_alignment(table, r)
    if not r.feed:
        check_place(table, r, device)
    read_requirements(table, device)
    return r


def check_feed(table, r):
    """The driver hands entries over: nothing is polled."""
    told = next((key for key in POLLED if key in table.value), None)
    if told:
        table.refuse(f"{told} in {table.where()} goes with a ring that is polled, and this one is fed, "
                     f"take {told} or feed out", told)
    r.ready = None


def check_instances(table, r, device):
    """Many rings of one format."""
    if r.instances is None:
        if r.stride is not None:
            table.refuse(f"stride in {table.where()} goes with instances, add it", "stride")
        r.instances = 1
    if not 1 <= r.instances:
        table.refuse(f"instances = {r.instances} in {table.where()}, use at least 1", "instances")
    last = r.pe_base + r.instances
    if r.pe_base >= 2**32 or (last > device.pe_count and (r.instances > 1 or r.pe_base)):
        table.refuse(f"{table.where()} has lanes up to {last}, but pe_count is {device.pe_count}, "
                     "correct one", "instances" if "instances" in table.value else "pe_base")


def rule_of(table, r):
    """The ready rule: the one that is named, else that of which there is the field."""
    rules = [rule for rule in ("valid", "phase") if getattr(r, rule) is not None]
    if r.producer is not None or r.producer_at is not None:
        rules.append("producer")
    if r.ready is not None:
        rule = choice(table, "ready", r.ready, READY)
        if rule in RING_FIELDS and getattr(r, rule) is None:
            table.refuse(f'ready = "{rule}" in {table.where()} has no field, add {rule} = "FIELD"', "ready")
    else:
        rule = rules[0] if rules else "sequence" if r.sequence is not None else "producer"
    other = next((name for name in rules if name != rule), None)
    if other:
        table.refuse(f"{table.where()} has two ready rules, {rule} and {other}, take one out",
                     next((key for key in (other, "producer_at") if key in table.value)))
    return rule


def read_transport(table, r, device):
    """Who says that an entry is there."""
    r.ready = rule_of(table, r)
    if r.count is None:
        table.refuse(f"{table.where()} has no 'count', add the number of entries, or feed = true")
    if r.ready == "producer":
        r.index = read_index(table, r, device)
        check_count(table, r.count, r.index, r.record.bytes)
    elif told := next((key for key in INDEX if key in table.value), None):
        table.refuse(f'{told} in {table.where()} goes with ready = "producer", take it out', told)
    if not 1 <= r.count < 2**32:
        table.refuse(f"count = {r.count} in {table.where()}, use 1 to 2^32-1", "count")
    check_rule(table, r)


def check_rule(table, r):
    """The field of the ready rule can tell what it has to."""
    where = table.where()
    for key, role in (("valid_is", "valid"), ("phase_first", "phase"), ("sequence_first", "sequence")):
        value = getattr(r, key)
        if value is not None and role not in r.fields:
            table.refuse(f"{key} in {where} goes with {role}, add that", key)
        if value is not None and value >> r.fields[role].bits:
            table.refuse(f"{key} = {value} in {where} does not fit the {r.fields[role].bits}-bit field "
                         f"{r.fields[role].name}, correct it", key)
    if r.ready == "valid" and r.fields["valid"].bits > 32:
        table.refuse(f"valid in {where} has {r.fields['valid'].bits} bits, use a field of at most 32",
                     "valid")
    if r.ready == "phase" and r.fields["phase"].bits != 1:
        table.refuse(f"phase in {where} has {r.fields['phase'].bits} bits, use a field of one", "phase")
    if r.ready == "sequence" and 2**r.fields["sequence"].bits <= r.count:
        table.refuse(f"sequence in {where} has {r.fields['sequence'].bits} bits and cannot tell the laps of "
                     f"{r.count} entries apart, use a wider field or a smaller count", "sequence")


def alignment_of(r):
    """The alignment that the widest field needs."""
    values = [*r.fields.values(), *r.key, *r.args, *(c.field for c in (*r.empty, *r.clock_when))]
    return max((value.width // 8 for value in values), default=1)


def check_alignment(table, r):
    alignment = alignment_of(r)
    if r.record.bytes % alignment:
        table.refuse(f"record {r.record.name} of {r.record.bytes} bytes misaligns "
                     f"the next entry of the ring, make it a multiple of {alignment}", "record")
    if r.first % alignment:
        table.refuse(f"first = {r.first} in {table.where()} misaligns the entries, "
                     f"use a multiple of {alignment}", "first")


def check_place(table, r, device):
    """The ring's place: in the BAR, or in memory."""
    if r.memory == (r.offset is not None):
        table.refuse(f"{table.where()} needs either offset (in the BAR) or memory = true (host memory)",
                     "memory")
    entries_end = r.first + r.count * r.record.bytes
    index = r.index
    if index and index.in_memory:
        for key, at in (("producer_at", index.at), ("laps_at", index.laps_at)):
            if at is not None and at < entries_end and r.first < at + index.width // 8:
                table.refuse(f"{key} = {at} in {table.where()} lies in the entries, which are from {r.first} "
                             f"to {entries_end}, correct {key}, first or count", key)
    in_bar = not r.memory or (index and index.register)
    if r.stride is not None and not in_bar:
        table.refuse(f"stride in {table.where()} goes with a ring or an index in the BAR; the driver gives "
                     "each ring's memory", "stride")
    if r.instances > 1 and in_bar and r.stride is None:
        table.refuse(f"instances in {table.where()} goes with stride, add the bytes from ring to ring",
                     "instances")
    check_last_index(table, r, device)
    if not r.memory:
        check_bar(table, r, device, entries_end)


def check_last_index(table, r, device):
    """The index of the last instance lies in the BAR."""
    if not (r.index and r.index.register and r.stride):
        return
    end = r.index.at + (r.instances - 1) * r.stride + r.index.width // 8
    if end > device.bar_bytes or r.stride % (r.index.width // 8):
        table.refuse(f"the index of the last instance ends at {end:#x}, misaligned or outside the BAR of "
                     f"{device.bar_bytes:#x} bytes, correct stride or instances", "stride")


def check_bar(table, r, device, entries_end):
    """A ring in the BAR lies inside it and on no register."""
    alignment = alignment_of(r)
    if r.offset % alignment or (r.stride or 0) % alignment:
        table.refuse(f"offset {r.offset:#x} in {table.where()} misaligns the entries, "
                     f"move it to a multiple of {alignment}", "offset")
    r.bytes = max(entries_end, r.index.end if r.index and r.index.in_memory else 0)
    if r.instances > 1 and r.stride < r.bytes:
        table.refuse(f"stride = {r.stride} in {table.where()} is less than the {r.bytes} bytes of a ring, "
                     "correct it", "stride")
    end = r.offset + (r.instances - 1) * (r.stride or 0) + r.bytes
    if device.bar_bytes is None:
        device.table.refuse("[device] has no 'bar_bytes', add a whole number: a ring lies in the BAR")
    if end > device.bar_bytes:
        table.refuse(f"the ring ends at {end:#x}, outside the BAR of {device.bar_bytes:#x} bytes, move it",
                     "offset")
    for i in range(r.instances):
        start = r.offset + i * (r.stride or 0)
        for register in device.registers:
            if register.offset < start + r.bytes and start < register.whole_end:
                table.refuse(f"the ring overlaps register {register.name}, move one", "offset")
