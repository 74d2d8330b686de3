# SPDX-License-Identifier: MIT
"""The function <device>_npu_desc() of a header: what npuprof has to know of the device."""

from .c_text import c_string, hexadecimal, number
from .schema import KINDS, ORDERS, READY, UNITS


def boolean(value):
    return str(value).lower()


def array(kind, name, rows):
    """A table in C. Why all members in order: C++ has no member names before C++20."""
    return [f"    static const {kind} {name}[] = {{", ",\n".join(f"        {{ {row} }}" for row in rows),
            "    };"]


def ring_constant(h, ring, what):
    """The name of a ring's constant: PREFIX_RING_COUNT, or with several rings PREFIX_RING_NAME_COUNT."""
    return "_".join([h.prefix, "RING", *([ring.c_name] if ring.c_name else []), what])


def counter_members(h, device):
    """desc.counter: member -> value in C. Members that are zero are left out."""
    c, members = device.counter, {}
    if c.lo:
        members["lo_offset"] = c.lo.c_offset(h.prefix)
    if c.hi:
        members["hi_offset"] = c.hi.c_offset(h.prefix)
    members["bits"] = number(c.bits)
    if c.lo:
        members |= {"access": number(c.lo.width), "order": ORDERS[c.order]}
    if c.counts_down:
        members["counts_down"] = "true"
    if device.endian == "big":
        members["big_endian"] = "true"
    if c.hz:
        members["hz"] = f"{h.prefix}_COUNTER_HZ"
    if c.lag_ns:
        members["lag_ns"] = number(c.lag_ns)
    return members


def field_members(h, record, member, value):
    """A npuprof_npu_field: member -> value in C."""
    members = {}
    for part, prefix in zip(value.parts, ("", "hi_")):
        name = f"{h.prefix}_{record.name.upper()}_{part.name.upper()}"
        members |= {f"{member}.{prefix}offset": f"{name}_OFFSET",
                    f"{member}.{prefix}width_bytes": f"{name}_WIDTH",
                    f"{member}.{prefix}lsb": f"{name}_POS", f"{member}.{prefix}bits": number(part.bits)}
    return members


def index_members(h, member, index, base=None):
    """A npuprof_npu_index: member -> value in C. base: where the memory lies in the BAR, if it does."""
    def at(offset):
        return f"{base} + {number(offset)}" if base else number(offset)
    members = {}
    if index.register:
        members["offset"] = index.register.c_offset(h.prefix)
    else:
        members |= {} if base else {"in_memory": "true"}
        members["offset"] = at(index.at)
    if index.width != 32:
        members["width_bytes"] = number(index.width // 8)
    if index.lsb:
        members["lsb"] = number(index.lsb)
    members["bits"] = number(index.bits)
    if index.unit != "count":
        members["unit"] = UNITS[index.unit]
    if index.laps_at is not None:
        members |= {"has_laps": "true",
                    "laps_offset": at(index.laps_at) if index.in_memory else number(index.laps_at)}
        members |= {"laps_first": number(index.laps_first)} if index.laps_first else {}
    return {f"{member}.{name}": value for name, value in members.items()}


def transport_members(h, device, r):
    """How entries come: member -> value in C."""
    members = {"feed": "true"} if r.feed else {}
    if not r.memory and not r.feed:
        members["offset"] = ring_constant(h, r, "OFFSET")
    if r.first:
        members["first"] = number(r.first)
    members["entry_bytes"] = f"{h.prefix}_{r.record.name.upper()}_BYTES"
    if not r.feed:
        members["count"] = ring_constant(h, r, "COUNT")
    if r.ready not in (None, "producer"):
        members["ready"] = READY[r.ready]
    if r.index:
        base = None if r.memory else ring_constant(h, r, "OFFSET")
        members |= index_members(h, "producer", r.index, base)
    if r.ready == "valid":
        members["valid_value"] = number(1 if r.valid_is is None else r.valid_is)
    if r.ready == "phase" and r.phase_first != 0:
        members["phase_first"] = "1u"
    if r.sequence_first:
        members["sequence_first"] = number(r.sequence_first, 64)
    if device.endian == "big":
        members["big_endian"] = "true"
    return members


def clock_members(r):
    """What stamps count: member -> value in C."""
    members = {}
    if r.no_stamp:
        members["stamp_clock"] = "NPUPROF_NPU_STAMP_NONE"
    elif r.stamp_clock == "host":
        members["stamp_clock"] = "NPUPROF_NPU_STAMP_HOST"
        members |= {"stamp_unit_ns": number(r.stamp_unit_ns)} if r.stamp_unit_ns else {}
    elif r.stamp_scale:
        members |= dict(zip(("scale_num", "scale_den"), (number(n, 64) for n in r.stamp_scale)))
    if r.stamps == "ascending":
        members["ascending"] = "true"
    return members


def ring_members(h, device, r, tables):
    """A ring: member -> value in C. Members that are zero are left out. Adds its arrays to `tables`."""
    members = transport_members(h, device, r)
    end = f"_{r.number}" if len(device.rings) > 1 else ""
    for role, value in r.fields.items():
        members |= field_members(h, r.record, role, value)
    if r.kinds:
        tables += array("npuprof_npu_kind", f"kinds{end}",
                        [f"{number(value, 64)}, {KINDS[is_]}" for value, is_ in r.kinds])
        members |= {"kinds": f"kinds{end}", "kind_count": number(len(r.kinds))}
    if r.all_are not in (None, "span"):
        members["all_are"] = KINDS[r.all_are]
    for i, value in enumerate(r.key):
        members |= field_members(h, r.record, f"key[{i}]", value)
    for key, conditions in (("empty", r.empty), ("clock_when", r.clock_when)):
        for i, condition in enumerate(conditions):
            members |= field_members(h, r.record, f"{key}[{i}].field", condition.field)
            members |= {f"{key}[{i}].value": number(condition.value, 64)} if condition.value else {}
    for i, value in enumerate(r.args):
        members |= field_members(h, r.record, f"args[{i}].field", value)
        members[f"args[{i}].name"] = c_string(value.name.lower())
    if r.lanes:
        tables += array("npuprof_npu_lane", f"lanes{end}",
                        [f"{number(value, 64)}, {c_string(name)}" for value, name in r.lanes])
        members |= {"lanes": f"lanes{end}", "lane_count": number(len(r.lanes))}
    if r.pe_base:
        members["pe_base"] = number(r.pe_base)
    members |= clock_members(r)
    if device.operators:
        members |= {"ops": "ops", "op_count": number(len(device.operators))}
    if r.category is not None:
        members["category"] = c_string(r.category)
    if r.execution_op is not None:
        members["execution_op"] = f"{h.prefix}_OP_{r.execution_op.upper()} + 1"
    return members


def instance_lines(h, r):
    """The rings after the first one of `instances`."""
    if r.instances == 1:
        return []
    one = f"rings[{r.number} + i]" if r.number else "rings[i]"
    lines = [f"    for (unsigned i = 1; i < {number(r.instances)}; i++) {{",
             f"        {one} = rings[{r.number}];", f"        {one}.pe_base += i;"]
    step = ring_constant(h, r, "STRIDE")
    if not r.memory and not r.feed:
        lines.append(f"        {one}.offset += i * {step};")
    if r.index and (r.index.register or not r.memory):
        lines.append(f"        {one}.producer.offset += i * {step};")
        if r.index.laps_at is not None:
            lines.append(f"        {one}.producer.laps_offset += i * {step};")
    return [*lines, "    }"]


def progress_members(h, device):
    """desc.progress: member -> value in C."""
    p = device.progress
    members = {"is_there": "true", **index_members(h, "index", p.index)}
    # Why not in_memory: that counts from a ring, and there is none; the driver sets index.memory.
    members.pop("index.in_memory", None)
    if p.count is not None:
        members["count"] = number(p.count)
    if p.entry_bytes is not None:
        members["entry_bytes"] = number(p.entry_bytes)
    if device.endian == "big":
        members["big_endian"] = "true"
    return members


def pmu_rows(h, device):
    """The event counters, as C."""
    rows = []
    for c in device.pmu:
        access = c.lo.width if c.lo else 64 if c.bits > 32 else 32
        counter = (c.lo.c_offset(h.prefix) if c.lo else "0", c.hi.c_offset(h.prefix) if c.hi else "0",
                   number(c.bits), number(access), ORDERS[c.order or "single"], boolean(c.counts_down),
                   boolean(device.endian == "big"))
        scale = "0" if c.scale == 1 else number(c.scale, 64)
        unit = "NULL" if c.unit is None else c_string(c.unit)
        rows.append(f"{c_string(c.name)}, {{ {', '.join(counter)}, 0, 0 }}, {boolean(c.busy)}, "
                    f"NULL, {scale}, {unit}, {boolean(c.idle)}, {boolean(c.restarts)}")
    return rows


def requirement_rows(h, device):
    """What must hold for the counters to run, as C."""
    rows = []
    for r in device.requirements:
        field = f"{h.prefix}_{r.register.c_name}_{r.field.name.upper()}" if r.field else None
        mask = f"{field}_MASK" if field and not r.register.element_of else hexadecimal(r.mask, 64)
        rows.append(f"{r.register.c_offset(h.prefix)}, {number(r.register.width)}, {mask}, "
                    f"{hexadecimal(r.value << r.lsb, 64)}, {c_string(r.path)}")
    return rows


def has_pmu_by_function(device):
    return any(c.lo is None for c in device.pmu)


def todo(h, device):
    """What the caller has to set, for the comment of the function."""
    needs_bar = device.registers or any(not r.feed and not r.memory for r in device.rings)
    parts = [".bar and .bar_bytes, or .resource"] if needs_bar else []
    if device.counter and device.counter.source == "function":
        parts.append(".read_ticks and .user")
    if not many(device) and any(r.memory for r in device.rings):
        parts.append(".ring.memory and .ring.memory_bytes")
    if many(device) and any(r.memory for r in device.rings):
        parts.append(".memory and .memory_bytes of each ring in host memory")
    if device.progress and device.progress.memory:
        parts.append(".progress.index.memory and .progress.index.memory_bytes")
    parts += [f".read of pmu[{i}]" for i, c in enumerate(device.pmu) if c.lo is None]
    text = f"The caller sets {', and '.join(parts)}." if parts else "The caller sets nothing."
    if device.counter and device.counter.source == "anchors":
        text += " Device time comes from npuprof_npu_anchor()."
    return text


def many(device):
    return sum(r.instances for r in device.rings) > 1


def add_description(h, device):
    """Adds the function <device>_npu_desc()."""
    members = {"name": c_string(device.name), "pe_count": f"{h.prefix}_PE_COUNT"}
    tables, rings, parameters = [], [], []
    if device.counter:
        members |= {f"counter.{member}": value for member, value in counter_members(h, device).items()}
        members |= {"anchors_only": "true"} if device.counter.source == "anchors" else {}
    for r in device.rings:
        name = f"rings[{r.number}]" if many(device) else "desc.ring"
        rings += [f"    {name} = zero.ring;"] if many(device) else []
        rings += [f"    {name}.{member} = {value};"
                  for member, value in ring_members(h, device, r, tables).items()] + instance_lines(h, r)
    if many(device):
        parameters.append("npuprof_npu_ring *rings")
        members |= {"rings": "rings", "ring_count": f"{h.prefix}_RINGS"}
    if device.progress:
        members |= {f"progress.{member}": value for member, value in progress_members(h, device).items()}
    if device.requirements:
        tables += array("npuprof_npu_requirement", "requirements", requirement_rows(h, device))
        members |= {"requirements": "requirements", "requirement_count": number(len(device.requirements))}
    if device.operators and device.rings:
        tables += array("npuprof_npu_op", "ops",
                        [f"{number(o.code, 64 if o.code >= 2**32 else 32)}, {c_string(o.span_name)}"
                         for o in device.operators])
    end = {}
    if device.pmu:
        table = "pmu"
        if has_pmu_by_function(device):
            parameters.append("npuprof_npu_pmu *pmu")
            table = "counters"
            rings.append(f"    for (unsigned i = 0; i < {h.prefix}_PMU; i++) pmu[i] = counters[i];")
        tables += array("npuprof_npu_pmu", table, pmu_rows(h, device))
        end = {"pmu": "pmu", "pmu_count": number(len(device.pmu))}
    storage = f" {' and '.join(p.split('*')[1] for p in parameters)}: storage of his." if parameters else ""
    # Why a guard of its own: the header may have been included before npuprof_npu.h, for the constants alone.
    # Why a static: it is zero in every member, in C and in C++, without a warning about members not named.
    h.add("", f"#if defined(NPUPROF_NPU_H) && !defined({h.prefix}_NPU_DESC)",
          f"#define {h.claim(device.table, 'NPU_DESC')}",
          f"/* What is fixed about the device. {todo(h, device)}{storage} */",
          f"static inline npuprof_npu_desc {device.name.lower()}_npu_desc({', '.join(parameters) or 'void'})",
          "{", *tables,
          "    static npuprof_npu_desc zero;",
          "    npuprof_npu_desc desc = zero;",
          *(f"    desc.{member} = {value};" for member, value in members.items()), *rings,
          *(f"    desc.{member} = {value};" for member, value in end.items()),
          "    return desc;", "}", "#endif")
