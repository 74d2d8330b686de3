# SPDX-License-Identifier: MIT
"""The function <device>_npu_desc() of a header, from the members of a description."""

from .c_text import c_string, number
from .description import Constant, device_members, has_pmu_by_function, many, ring_constant, ring_members

# Member that is a table -> type of its rows, member that counts them.
TABLES = {"more_args": ("npuprof_npu_arg", "more_arg_count"),
          "kinds": ("npuprof_npu_kind", "kind_count"), "lanes": ("npuprof_npu_lane", "lane_count"),
          "ops": ("npuprof_npu_op", "op_count"), "pmu": ("npuprof_npu_pmu", "pmu_count"),
          "requirements": ("npuprof_npu_requirement", "requirement_count")}


def c_value(value):
    """A value as C."""
    if isinstance(value, Constant):
        return value.text
    if isinstance(value, bool):
        return str(value).lower()
    return c_string(value) if isinstance(value, str) else number(value, 32 if value < 2**32 else 64)


def c_row(row):
    """A row of a table as C."""
    if isinstance(row, dict):
        return "{ " + ", ".join(map(c_row, row.values())) + " }"
    return "NULL" if row is None else "0" if row == 0 and type(row) is int else c_value(row)


def table_lines(name, kind, rows):
    return [f"    static const {kind} {name}[] = {{", ",\n".join(f"        {c_row(row)}" for row in rows),
            "    };"]


def assignments(target, members, tables, end=""):
    """Lines that set the members of a target. Adds the tables that they point to; end: of their names."""
    lines = []
    for member, value in members.items():
        if isinstance(value, list):
            kind, count = TABLES[member]
            name = member if member == "ops" else member + end
            tables[name] = table_lines(name, kind, value)
            lines += [f"    {target}.{member} = {name};", f"    {target}.{count} = {number(len(value))};"]
        else:
            lines.append(f"    {target}.{member} = {c_value(value)};")
    return lines


def instance_lines(h, r):
    """The rings after the first one of `instances`."""
    if r.instances == 1:
        return []
    one = f"rings[{r.number} + i]" if r.number else "rings[i]"
    lines = [f"    for (unsigned i = 1; i < {number(r.instances)}; i++) {{",
             f"        {one} = rings[{r.number}];", f"        {one}.pe_base += i;"]
    step = f"i * {ring_constant(h, r, 'STRIDE')};"
    if not r.memory and not r.feed:
        lines.append(f"        {one}.offset += {step}")
    if r.index and (r.index.register or not r.memory):
        lines.append(f"        {one}.producer.offset += {step}")
        if r.index.laps_at is not None:
            lines.append(f"        {one}.producer.laps_offset += {step}")
    return [*lines, "    }"]


def todo(device):
    """What the caller has to set, for the comment of the function."""
    needs_bar = device.registers or any(not r.feed and not r.memory for r in device.rings)
    parts = [".bar and .bar_bytes, or .resource"] if needs_bar else []
    if device.counter and device.counter.source == "function":
        parts.append(".read_ticks and .user")
    if any(r.memory for r in device.rings):
        parts.append(".memory and .memory_bytes of each ring in host memory" if many(device)
                     else ".ring.memory and .ring.memory_bytes")
    if device.progress and device.progress.memory:
        parts.append(".progress.index.memory and .progress.index.memory_bytes")
    if has_pmu_by_function(device):
        parts.append(".read of each pmu that has no register")
    text = f"The caller sets {', and '.join(parts)}." if parts else "The caller sets nothing."
    if device.counter and device.counter.source == "anchors":
        text += " Device time comes from npuprof_npu_anchor()."
    return text


def add_function(h, device):
    """Adds the function <device>_npu_desc()."""
    tables, parameters, members = {}, [], device_members(h, device)
    pmu = {"pmu": members.pop("pmu")} if device.pmu else {}
    lines = assignments("desc", members, tables)
    for r in device.rings:
        end = f"_{r.number}" if len(device.rings) > 1 else ""
        name = f"rings[{r.number}]" if many(device) else "desc.ring"
        lines += [f"    {name} = zero.ring;"] if many(device) else []
        lines += assignments(name, ring_members(h, device, r), tables, end) + instance_lines(h, r)
    if many(device):
        parameters.append("npuprof_npu_ring *rings")
        lines += ["    desc.rings = rings;", f"    desc.ring_count = {h.prefix}_RINGS;"]
    if has_pmu_by_function(device):
        parameters.append("npuprof_npu_pmu *pmu")
        tables["pmu"] = table_lines("counters", "npuprof_npu_pmu", pmu["pmu"])
        lines += [f"    for (unsigned i = 0; i < {h.prefix}_PMU; i++) pmu[i] = counters[i];",
                  "    desc.pmu = pmu;", f"    desc.pmu_count = {number(len(device.pmu))};"]
    else:
        lines += assignments("desc", pmu, tables)
    storage = f" {' and '.join(p.split('*')[1] for p in parameters)}: storage of his." if parameters else ""
    # Why a guard of its own: the header may have been included before npuprof_npu.h, for the constants alone.
    # Why a static: it is zero in every member, in C and in C++, without a warning about members not named.
    h.add("", f"#if defined(NPUPROF_NPU_H) && !defined({h.prefix}_NPU_DESC)",
          f"#define {h.claim(device.table, 'NPU_DESC')}",
          f"/* What is fixed about the device. {todo(device)}{storage} */",
          f"static inline npuprof_npu_desc {device.name.lower()}_npu_desc({', '.join(parameters) or 'void'})",
          "{", *(line for table in tables.values() for line in table),
          "    static npuprof_npu_desc zero;",
          "    npuprof_npu_desc desc = zero;", *lines,
          "    return desc;", "}", "#endif")
