# SPDX-License-Identifier: MIT
"""Which register and record plays which role: the counter, the event counters, the ring."""

import re

from .model import UINT32_MAX, WORD_WIDTHS
from .schema import COUNTER, PMU, RING, RING_FIELDS

HZ_MAX = 10**15            # the fastest counter that npuprof_npu_open() accepts
PMU_MAX = 8                # event counters that npuprof samples


def some(names):
    """The first 20 names, for a message."""
    names = list(names)
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def pick(table, key, name, things, what):
    """The one of `things` that a role names."""
    for thing in things:
        if thing.name == name:
            return thing
    known = "use one of " + some(thing.name for thing in things) if things else "and there is none, add it"
    table.refuse(f"{key} in {table.where()} names {what} {name!r}, which does not exist, {known}", key)


def pick_register(table, key, path, registers):
    """The register that a role names by its path: NAME or CLUSTER.NAME, with an [index] for each array."""
    index = re.findall(r"\[(\w*)\]", path)
    register = pick(table, key, re.sub(r"\[\w*\]", "", path), registers, "register")
    if not register.dims and not index:
        return register
    positions = tuple(dim.position(i) for i, dim in zip(index, register.dims))
    if len(index) != len(register.dims) or None in positions:
        arrays = ", ".join(map(str, register.dims)) or "no array"
        table.refuse(f"{key} in {table.where()} names {path!r}, but register {register.name} lies in "
                     f"{arrays}, write one [index] for each", key)
    return register.element(positions)


def pick_readable(table, key, path, registers):
    """The register that a role names, if a read gives its value and does not change it."""
    register = pick_register(table, key, path, registers)
    if register.access in ("wo", "rc") or register.clears:
        access = "rc" if register.clears else register.access
        table.refuse(f"{key} in {table.where()} names register {path} with access {access}, "
                     "use one that can be read and stays as it is", key)
    if register.offset % (register.width // 8):
        table.refuse(f"{key} in {table.where()} names register {path} at {register.offset:#x}, which is "
                     f"misaligned, use one at a multiple of {register.width // 8}", key)
    return register


def read_counter(table, registers, schema=COUNTER):
    """The counter of the device's clock, or with schema=PMU an event counter."""
    c = table.read(schema)
    c.lo = pick_readable(table, "lo", c.lo, registers)
    c.hi = pick_readable(table, "hi", c.hi, registers) if c.hi is not None else None
    if c.hi and c.hi.offset == c.lo.offset:
        table.refuse(f"hi and lo in {table.where()} are the same register, take hi out or correct it", "hi")
    for key, register in (("lo", c.lo), ("hi", c.hi)):
        widths = (32,) if c.hi else (32, 64)
        if register and register.width not in widths:
            table.refuse(f"{key} in {table.where()} names the {register.width}-bit register {register.name}, "
                         f"use one of {' or '.join(map(str, widths))} bits", key)
    held = c.lo.width + (c.hi.width if c.hi else 0)
    c.bits = held if c.bits is None else c.bits
    if not 1 <= c.bits <= held:
        table.refuse(f"bits = {c.bits} in {table.where()}, but the registers hold {held}, use 1 to {held}",
                     "bits")
    c.order = c.order if c.order is not None else "hi-lo-hi" if c.hi else "single"
    orders = ("hi-lo-hi", "lo-latches-hi") if c.hi else ("single",)
    if c.order not in orders:
        table.refuse(f"order {c.order!r} in {table.where()} does not go with {'a' if c.hi else 'no'} hi "
                     f"register, use {' or '.join(orders)}", "order")
    if schema is COUNTER and c.lag_ns > UINT32_MAX:
        table.refuse(f"lag_ns = {c.lag_ns} in {table.where()}, use at most {UINT32_MAX}", "lag_ns")
    if schema is COUNTER and c.hz > HZ_MAX:
        table.refuse(f"hz = {c.hz} in {table.where()}, use at most {HZ_MAX}, ticks a second", "hz")
    return c


def read_pmu(roles, registers):
    """The event counters."""
    counters = []
    for table in roles.tables("pmu"):
        c = read_counter(table, registers, PMU)
        if c.name in [other.name for other in counters]:
            table.refuse(f"a second event counter is named {c.name!r}, rename one", "name")
        if len(counters) == PMU_MAX:
            table.refuse(f"more than {PMU_MAX} event counters, take the least useful out")
        if c.busy and (first := next((other for other in counters if other.busy), None)):
            table.refuse(f"event counter {c.name!r} is busy, and so is {first.name!r}, "
                         "say busy = true for one", "busy")
        counters.append(c)
    return counters


def read_ring(table, device):
    """The ring of completion records, checked against the rest of the device."""
    r = table.read(RING)
    r.record = pick(table, "record", r.record, device.records, "record")
    r.producer = pick_readable(table, "producer", r.producer, device.registers)
    check_producer(table, r, device)
    r.fields = {}
    for role in RING_FIELDS:
        name = getattr(r, role)
        if name is None:
            continue
        field = r.fields[role] = pick(table, role, name, r.record.fields, f"in record {r.record.name} field")
        if field.width not in WORD_WIDTHS:
            table.refuse(f"{role} in {table.where()} names field {name} of {field.width} bits, use one of 8, "
                         "16, 32 or 64", role)
    if not {"start", "end"} & r.fields.keys():
        table.refuse(f"{table.where()} has neither start nor end, name the field with a time")
    if r.start is not None and r.start == r.end:
        table.refuse(f"start and end in {table.where()} are the same field {r.end}, take one out", "end")
    if device.counter is None:
        table.refuse(f"{table.where()} goes with no counter, "
                     "add [roles.counter]: start and end are its ticks")
    check_place(table, r, device)
    check_operators(table, r, device.operators)
    return r


def check_producer(table, r, device):
    """The producer's register and how many records it can count."""
    # Why: npuprof reads the index by one aligned 32-bit load and keeps its low bits.
    if (r.producer.width > 32 or r.producer.offset % 4 or r.producer.offset + 4 > device.bar_bytes
            or (r.producer.width < 32 and device.endian == "big")):
        table.refuse(f"producer in {table.where()} names register {r.producer.name}, "
                     "which one aligned 32-bit load cannot read, use one of 32 bits", "producer")
    if r.producer_bits is None:
        r.producer_bits = r.producer.width
    elif not 1 <= r.producer_bits <= r.producer.width:
        table.refuse(f"producer_bits = {r.producer_bits} in {table.where()}, use 1 to {r.producer.width}",
                     "producer_bits")
    if not 1 <= r.count <= min(2**r.producer_bits, 2**32 - 1):
        table.refuse(f"count = {r.count} in {table.where()}, "
                     f"use 1 to what {r.producer_bits} producer bits can count", "count")
    if not r.producer_is_slot and r.count & (r.count - 1):
        table.refuse(f"count = {r.count} in {table.where()} loses its place when the producer wraps, "
                     "use a power of two or producer_is_slot", "count")


def check_place(table, r, device):
    """The alignment of the entries, and the ring's place in the BAR."""
    alignment = max(field.width // 8 for field in r.fields.values())
    if r.record.bytes % alignment:
        table.refuse(f"record {r.record.name} of {r.record.bytes} bytes misaligns "
                     f"the next entry of the ring, make it a multiple of {alignment}", "record")
    if r.memory == (r.offset is not None):
        table.refuse(f"{table.where()} needs either offset (in the BAR) or memory = true (host memory)",
                     "memory")
    if r.memory:
        return
    end = r.offset + r.count * r.record.bytes
    if r.offset % alignment:
        table.refuse(f"offset {r.offset:#x} in {table.where()} misaligns the entries, "
                     f"move it to a multiple of {alignment}", "offset")
    if end > device.bar_bytes:
        table.refuse(f"the ring ends at {end:#x}, outside the BAR of {device.bar_bytes:#x} bytes, move it",
                     "offset")
    for register in device.registers:
        if register.offset < end and r.offset < register.whole_end:
            table.refuse(f"the ring overlaps register {register.name}, move one", "offset")


def check_operators(table, r, operators):
    """The operators fit the op field, and that which ends a job exists."""
    if r.execution_op is not None:
        pick(table, "execution_op", r.execution_op, operators, "operator")
    for operator in operators if "op" in r.fields else ():
        if operator.code >> r.fields["op"].bits:
            operator.table.refuse(f"op code {operator.code} of {operator.name} does not fit the "
                                  f"{r.fields['op'].bits}-bit field {r.fields['op'].name}, correct one")
