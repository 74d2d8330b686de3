# SPDX-License-Identifier: MIT
"""What npuprof has to know of a device, as members of npuprof_npu_desc and their values.

A value is a number, True, a text, or rows of a table (a list of dicts). constant() makes a number that the
header writes by name. Members that are zero are left out."""

from . import c_words
from .c_text import hexadecimal
from .schema import KINDS, ORDERS, READY, SCOPES, UNITS

ARGS_IN_RING = c_words.limit("ARGS")      # the others are a table


class Constant(int):
    """A number and how C writes it."""
    text: str


def constant(text, value):
    result = Constant(value)
    result.text = text
    return result


def word(words, value):
    """The enumerator of C for a word of the description. Why its number: the words stand in C's order."""
    return constant(words[value], list(words).index(value))


def ring_constant(h, ring, what):
    """The name of a ring's constant: PREFIX_RING_COUNT, or with several rings PREFIX_RING_NAME_COUNT."""
    return "_".join([h.prefix, "RING", *([ring.c_name] if ring.c_name else []), what])


def many(device):
    return sum(r.instances for r in device.rings) > 1


def has_pmu_by_function(device):
    return any(c.lo is None for c in device.pmu)


def offset_of(h, register):
    return constant(register.c_offset(h.prefix), register.offset)


def prefixed(prefix, members):
    return {f"{prefix}.{name}": value for name, value in members.items()}


def nonzero(members):
    return {name: value for name, value in members.items() if value or isinstance(value, Constant)}


def part_members(c):
    """Where the parts of a counter lie in their registers, if they are fields."""
    return {"lo_lsb": c.lo_field.lsb if c.lo_field else 0, "lo_bits": c.lo_field.bits if c.lo_field else 0,
            "hi_lsb": c.hi_field.lsb if c.hi_field else 0}


def counter_members(h, device):
    c = device.counter
    members = {"lo_offset": offset_of(h, c.lo)} if c.lo else {}
    members |= {"hi_offset": offset_of(h, c.hi)} if c.hi else {}
    members["bits"] = c.bits
    members |= {"access": c.lo.width, "order": word(ORDERS, c.order)} if c.lo else {}
    return members | nonzero({
        "counts_down": c.counts_down, "big_endian": device.endian == "big",
        "hz": constant(f"{h.prefix}_COUNTER_HZ", c.hz) if c.hz else 0, "lag_ns": c.lag_ns,
        **part_members(c)})


def field_members(h, record, member, value):
    """A npuprof_npu_field."""
    members = {}
    for part, prefix in zip(value.parts, ("", "hi_")):
        name = f"{h.prefix}_{record.name.upper()}_{part.name.upper()}"
        members |= {f"{member}.{prefix}offset": constant(f"{name}_OFFSET", part.offset),
                    f"{member}.{prefix}width_bytes": constant(f"{name}_WIDTH", part.width // 8),
                    f"{member}.{prefix}lsb": constant(f"{name}_POS", part.lsb),
                    f"{member}.{prefix}bits": part.bits}
    return members


def value_row(h, record, value):
    """A npuprof_npu_field with all members in order."""
    members = field_members(h, record, "field", value)
    return {name: members.get(f"field.{name}", 0) for name in (
        "offset", "width_bytes", "lsb", "bits", "hi_width_bytes", "hi_lsb", "hi_bits", "hi_offset")}


def index_members(h, index, base=None):
    """A npuprof_npu_index. base: where its memory lies in the BAR, if it does."""
    def at(offset):
        return constant(f"{base.text} + {offset}u", base + offset) if base is not None else offset
    if index.register:
        members = {"offset": offset_of(h, index.register)}
    else:
        members = nonzero({"in_memory": base is None}) | {"offset": at(index.at)}
    members |= nonzero({"width_bytes": index.width // 8 if index.width != 32 else 0, "lsb": index.lsb})
    members["bits"] = index.bits
    if index.unit != "count":
        members["unit"] = word(UNITS, index.unit)
    if index.laps_at is not None:
        members |= {"has_laps": True,
                    "laps_offset": at(index.laps_at) if index.in_memory else index.laps_at}
        members |= nonzero({"laps_first": index.laps_first})
    if index.wrap_bit is not None:
        members |= {"has_wrap": True, "wrap_bit": index.wrap_bit}
    return members


def transport_members(h, device, r):
    """How entries come."""
    members = nonzero({"feed": r.feed})
    place = constant(ring_constant(h, r, "OFFSET"), r.offset) if r.offset is not None else None
    members |= {"offset": place} if place is not None else {}
    members |= nonzero({"first": r.first})
    members["entry_bytes"] = constant(f"{h.prefix}_{r.record.name.upper()}_BYTES", r.record.bytes)
    members |= {"count": constant(ring_constant(h, r, "COUNT"), r.count)} if r.count else {}
    if r.ready not in (None, "producer"):
        members["ready"] = word(READY, r.ready)
    members |= prefixed("producer", index_members(h, r.index, place)) if r.index else {}
    return members | nonzero({
        "valid_value": (1 if r.valid_is is None else r.valid_is) if r.ready == "valid" else 0,
        "phase_first": 1 if r.ready == "phase" and r.phase_first != 0 else 0,
        "sequence_first": r.sequence_first, "big_endian": device.endian == "big"})


def clock_members(r):
    """What stamps count."""
    members = {}
    if r.no_stamp:
        members["stamp_clock"] = constant("NPUPROF_NPU_STAMP_NONE", 2)
    elif r.stamp_clock == "host":
        members["stamp_clock"] = constant("NPUPROF_NPU_STAMP_HOST", 1)
        members |= nonzero({"stamp_unit_ns": r.stamp_unit_ns})
    if r.stamp_scale:
        members |= dict(zip(("scale_num", "scale_den"), r.stamp_scale))
    if r.duration_unit_ns:
        members |= {"duration_num": r.duration_unit_ns, "duration_in_ns": True}
    elif r.duration_scale:
        members |= dict(zip(("duration_num", "duration_den"), r.duration_scale))
    return members | nonzero({"ascending": r.stamps == "ascending", "max_age_ms": r.max_age_ms})


def ring_members(h, device, r):
    """A npuprof_npu_ring."""
    members = transport_members(h, device, r)
    for role, value in r.fields.items():
        members |= field_members(h, r.record, role, value)
    if r.kinds:
        members["kinds"] = [{"value": value, "is": word(KINDS, is_)} for value, is_ in r.kinds]
    if r.job_scope:
        members["job_scope"] = word(SCOPES, r.job_scope)
    if r.all_are not in (None, "span"):
        members["all_are"] = word(KINDS, r.all_are)
    for i, value in enumerate(r.key):
        members |= field_members(h, r.record, f"key[{i}]", value)
    for key, conditions in (("empty", r.empty), ("clock_when", r.clock_when)):
        for i, condition in enumerate(conditions):
            members |= field_members(h, r.record, f"{key}[{i}].field", condition.field)
            members |= nonzero({f"{key}[{i}].value": condition.value})
    for i, value in enumerate(r.args[:ARGS_IN_RING]):
        members |= field_members(h, r.record, f"args[{i}].field", value)
        members[f"args[{i}].name"] = value.name.lower()
    if more := r.args[ARGS_IN_RING:]:
        members["more_args"] = [{"field": value_row(h, r.record, value), "name": value.name.lower()}
                                for value in more]
    if r.lanes:
        members["lanes"] = [{"value": value, "name": name} for value, name in r.lanes]
    members |= nonzero({"pe_base": r.pe_base}) | clock_members(r)
    if device.operators:
        members["ops"] = [{"code": o.code, "name": o.span_name} for o in device.operators]
    if r.category is not None:
        members["category"] = r.category
    if r.execution_op is not None:
        code = next(o.code for o in device.operators if o.name == r.execution_op)
        members["execution_op"] = constant(f"{h.prefix}_OP_{r.execution_op.upper()} + 1", code + 1)
    return members


def progress_members(h, device):
    """A npuprof_npu_progress."""
    p = device.progress
    members = {"is_there": True, **prefixed("index", index_members(h, p.index))}
    # Why not in_memory: that counts from a ring, and there is none; the driver sets index.memory.
    members.pop("index.in_memory", None)
    return members | nonzero({"count": p.count, "entry_bytes": p.entry_bytes,
                              "big_endian": device.endian == "big"})


def pmu_rows(h, device):
    """The event counters, all members in order. Why: C++ has no member names before C++20."""
    rows = []
    for c in device.pmu:
        counter = {"lo_offset": offset_of(h, c.lo) if c.lo else 0,
                   "hi_offset": offset_of(h, c.hi) if c.hi else 0, "bits": c.bits,
                   "access": c.lo.width if c.lo else 64 if c.bits > 32 else 32,
                   "order": word(ORDERS, c.order or "single"), "counts_down": c.counts_down,
                   "big_endian": device.endian == "big", "hz": 0, "lag_ns": 0,
                   **part_members(c)}
        rows.append({"name": c.name, "counter": counter, "is_busy": c.busy, "read": None,
                     "scale": 0 if c.scale == 1 else c.scale, "unit": c.unit, "is_idle": c.idle,
                     "restarts": c.restarts})
    return rows


def requirement_rows(h, device):
    """What must hold for the counters to run, all members in order."""
    rows = []
    for r in device.requirements:
        mask, value = (constant(hexadecimal(number, r.register.width), number)
                       for number in (r.mask, r.value << r.lsb))
        if r.field and not r.register.element_of:
            mask = constant(f"{h.prefix}_{r.register.c_name}_{r.field.name.upper()}_MASK", mask)
        rows.append({"offset": offset_of(h, r.register), "access": r.register.width, "mask": mask,
                     "value": value, "text": r.path})
    return rows


def device_members(h, device):
    """A npuprof_npu_desc but for its rings."""
    members = {"name": device.name, "pe_count": constant(f"{h.prefix}_PE_COUNT", device.pe_count)}
    if device.counter:
        members |= prefixed("counter", counter_members(h, device))
    # Why also without a counter: nobody can read one.
    members |= nonzero({"anchors_only": device.counter.source == "anchors" if device.counter else bool(
        device.rings or device.progress or device.pmu)})
    if device.progress:
        members |= prefixed("progress", progress_members(h, device))
    if device.requirements:
        members["requirements"] = requirement_rows(h, device)
    if device.pmu:
        members["pmu"] = pmu_rows(h, device)
    return members
