# SPDX-License-Identifier: MIT
"""The function <device>_npu_desc() of a header: what npuprof has to know of the device."""

from .c_text import c_string, number
from .schema import ORDERS


def boolean(value):
    return str(value).lower()


def counter_members(h, device):
    """desc.counter: member -> value in C. Members that are zero are left out."""
    c = device.counter
    members = {"lo_offset": c.lo.c_offset(h.prefix)}
    if c.hi:
        members["hi_offset"] = c.hi.c_offset(h.prefix)
    members |= {"bits": number(c.bits), "access": number(c.lo.width), "order": ORDERS[c.order]}
    if c.counts_down:
        members["counts_down"] = "true"
    if device.endian == "big":
        members["big_endian"] = "true"
    if c.hz:
        members["hz"] = f"{h.prefix}_COUNTER_HZ"
    if c.lag_ns:
        members["lag_ns"] = number(c.lag_ns)
    return members


def ring_members(h, device):
    """desc.ring: member -> value in C. Members that are zero are left out."""
    r, members = device.ring, {}
    record = f"{h.prefix}_{r.record.name.upper()}"
    if not r.memory:
        members["offset"] = f"{h.prefix}_RING_OFFSET"
    members |= {"entry_bytes": f"{record}_BYTES", "count": f"{h.prefix}_RING_COUNT",
                "producer.offset": r.producer.c_offset(h.prefix), "producer.bits": number(r.producer_bits)}
    if r.producer_is_slot:
        members["producer.unit"] = "NPUPROF_NPU_INDEX_SLOT"
    if device.endian == "big":
        members["big_endian"] = "true"
    for role, field in r.fields.items():
        name = f"{record}_{field.name.upper()}"
        members |= {f"{role}.offset": f"{name}_OFFSET", f"{role}.width_bytes": f"{name}_WIDTH",
                    f"{role}.lsb": f"{name}_POS", f"{role}.bits": number(field.bits)}
    if device.operators:
        members |= {"ops": "ops", "op_count": number(len(device.operators))}
    if r.category is not None:
        members["category"] = c_string(r.category)
    if r.execution_op is not None:
        members["execution_op"] = f"{h.prefix}_OP_{r.execution_op.upper()} + 1"
    return members


def pmu_lines(h, device):
    """The array of event counters. Why all members in order: C++ has no member names before C++20."""
    rows = []
    for c in device.pmu:
        counter = (c.lo.c_offset(h.prefix), c.hi.c_offset(h.prefix) if c.hi else "0", number(c.bits),
                   number(c.lo.width), ORDERS[c.order], boolean(c.counts_down),
                   boolean(device.endian == "big"))
        rows.append(f"        {{ {c_string(c.name)}, {{ {', '.join(counter)}, 0, 0 }}, {boolean(c.busy)}, "
                    "NULL, 0, NULL, false, false }")
    return "    static const npuprof_npu_pmu pmu[] = {", ",\n".join(rows), "    };"


def op_lines(device):
    """The table of span names, sorted by op code."""
    rows = [f"        {{ {number(code)}, {c_string(name)} }}"
            for code, name in sorted({o.code: o.span_name for o in device.operators}.items())]
    return "    static const npuprof_npu_op ops[] = {", ",\n".join(rows), "    };"


def add_description(h, device):
    """Adds the function <device>_npu_desc()."""
    todo = ".bar and .bar_bytes, or .resource"
    members = {"name": c_string(device.name), "pe_count": f"{h.prefix}_PE_COUNT"}
    if device.counter:
        members |= {f"counter.{member}": value for member, value in counter_members(h, device).items()}
    if device.ring:
        todo += ", and .ring.memory and .ring.memory_bytes" if device.ring.memory else ""
        members |= {f"ring.{member}": value for member, value in ring_members(h, device).items()}
    if device.pmu:
        members |= {"pmu": "pmu", "pmu_count": number(len(device.pmu))}
    # Why a guard of its own: the header may have been included before npuprof_npu.h, for the constants alone.
    # Why a static: it is zero in every member, in C and in C++, without a warning about members not named.
    h.add("", f"#if defined(NPUPROF_NPU_H) && !defined({h.prefix}_NPU_DESC)",
          f"#define {h.claim(device.table, 'NPU_DESC')}",
          f"/* What is fixed about the device. The caller sets {todo}. */",
          f"static inline npuprof_npu_desc {device.name.lower()}_npu_desc(void)",
          "{", *(pmu_lines(h, device) if device.pmu else ()),
          *(op_lines(device) if device.ring and device.operators else ()),
          "    static npuprof_npu_desc zero;",
          "    npuprof_npu_desc desc = zero;",
          *(f"    desc.{member} = {value};" for member, value in members.items()),
          "    return desc;", "}", "#endif")
