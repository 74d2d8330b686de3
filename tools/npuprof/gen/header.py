# SPDX-License-Identifier: MIT
"""The C header of a device."""

import hashlib
import os

from ..base.messages import Refused
from .c_text import c_name, c_string, clashes, comment, hexadecimal, number, unfit_for_comment
from .device import read_device
from .model import WORD_WIDTHS
from .schema import ORDERS


class Header:
    """Lines of C, and every identifier they define, so that a clash is refused here and not met in a compiler.
    With `renames` (SVD: its user cannot rename) names that come out twice are numbered."""

    def __init__(self, device_name, renames=False):
        self.prefix, self.renames, self.text, self.lines, self.repeats = device_name.upper(), renames, [], {}, {}

    def add(self, *text):
        self.text.extend(text)

    def claim(self, table, name, *key):
        """The C name for `name`, which stands at a table's key."""
        identifier = f"{self.prefix}_{name.upper()}"
        if identifier in self.lines:
            table.refuse(f"the C name {identifier} comes out twice, first for line {self.lines[identifier]}, "
                         "rename one", *key)
        self.lines[identifier] = table.line(*key)
        return identifier

    def free(self, name, ends):
        """`name`, with a number where one of name_END is taken."""
        result = name
        while self.renames and any(f"{self.prefix}_{result}_{end}" in self.lines for end in ends):
            self.repeats[name] = self.repeats.get(name, 1) + 1
            result = f"{name}_{self.repeats[name]}"
        return result

    def define(self, table, name, value, *key):
        self.add(f"#define {self.claim(table, name, *key)} {value}")

    def define_array(self, dim, name):
        dim.c_name = name
        self.define(dim.table, f"{name}_COUNT", number(dim.count))
        self.define(dim.table, f"{name}_STRIDE", hexadecimal(dim.stride))

    def define_bits(self, field, name):
        """The position, mask and values of a field in a word."""
        ends, repeats = {"POS": None, "MASK": None} | ({"COUNT": None, "STRIDE": None}
                                                       if field.dims else {}), {}
        for value_name, value in field.values.items():
            end = wanted = c_name(value_name)
            while self.renames and end in ends:
                repeats[wanted] = repeats.get(wanted, 1) + 1
                end = f"{wanted}_{repeats[wanted]}"
            if end in ends:
                field.table.refuse(f"the C name {self.prefix}_{name}_{end} comes out twice, first for line {field.table.line()}, "
                                   "rename one", "values", value_name)
            ends[end] = value, value_name
        name = self.free(name, ends)
        self.define(field.table, f"{name}_POS", number(field.lsb))
        self.define(field.table, f"{name}_MASK", hexadecimal(field.mask, field.width))
        for dim in field.dims:
            self.define_array(dim, name)
        for end, value in ends.items():
            if value is not None:
                self.define(field.table, f"{name}_{end}", number(value[0], field.width), "values", value[1])

    def refuse_edits(self, what, conditions):
        """Numbers edited by hand do not compile. Why #if: static asserts need C11, and these are plain numbers."""
        if conditions:
            self.add("", "#if " + " || \\\n    ".join(conditions),
                     f'#error "{what}: generate this header again"',
                     "#endif")


def c_end(h, register):
    """C for the end of a register, or of the last one of an array."""
    arrays = (f"({h.prefix}_{dim.c_name}_COUNT - 1u) * {h.prefix}_{dim.c_name}_STRIDE"
              for dim in register.dims)
    return " + ".join([f"{h.prefix}_{register.c_name}_OFFSET", *arrays, f"{register.width // 8}u"])


def add_registers(h, registers, scope=()):
    """Offsets, fields and values of registers; `scope` are the parts of their names that go before."""
    for register in registers:
        path = register.name.split(".")
        register.c_name = h.free(c_name(*scope, *path), ("OFFSET", "COUNT", "STRIDE", "RESET"))
        own = [dim for dim in register.dims if ".".join(dim.path) == register.name]
        for dim in register.dims:
            if dim.c_name is None and dim not in own:
                name = h.free(c_name(*scope, *dim.path), ("COUNT", "STRIDE"))
                h.add("", comment(f"{'.'.join((*scope, *dim.path))}: {dim.count} times, {dim.stride:#x} bytes apart."))
                h.define_array(dim, name)
        reset = f", reset {register.reset:#x}" if register.reset is not None else ""
        count = f", {own[0].count} of them" if own else ""
        clears = ", reading changes it" if register.clears else ""
        label = ".".join((*scope, *path))
        h.add("", comment(f"{label}: {register.access}, {register.width} bits{count}{reset}{clears}.",
                          register.description))
        h.define(register.table, f"{register.c_name}_OFFSET", hexadecimal(register.offset))
        for dim in own:
            h.define_array(dim, register.c_name)
        if register.reset is not None:
            h.define(register.table, f"{register.c_name}_RESET", hexadecimal(register.reset, register.width))
        for field in register.fields:
            if field.description or field.access:
                access = f"{field.access}." if field.access else ""
                h.add(comment(f"{label}.{field.name}:", access, field.description))
            h.define_bits(field, f"{register.c_name}_{c_name(field.name)}")


def add_constants(h, device):
    table = device.table
    h.define(table, "BAR_BYTES", hexadecimal(device.bar_bytes))
    h.define(table, "PE_COUNT", number(device.pe_count))
    if device.counter and device.counter.hz:
        h.define(table, "COUNTER_HZ", number(device.counter.hz))
    if device.ring:
        if not device.ring.memory:
            h.define(table, "RING_OFFSET", hexadecimal(device.ring.offset))
        h.define(table, "RING_COUNT", number(device.ring.count))

    add_registers(h, device.registers)
    h.refuse_edits("a register lies outside the BAR",
                   [f"{c_end(h, register)} > {h.prefix}_BAR_BYTES" for register in device.registers])

    for record in device.records:
        h.add("", comment(f"{record.name}: a record in memory.", record.description))
        name = record.name.upper()
        h.define(record.table, f"{name}_BYTES", number(record.bytes))
        for field in record.fields:
            if field.description:
                h.add(comment(f"{record.name}.{field.name}:", field.description))
            h.define(field.table, f"{name}_{field.name}_OFFSET", hexadecimal(field.offset))
            h.define(field.table, f"{name}_{field.name}_WIDTH", number(field.width // 8))
            if field.width in WORD_WIDTHS:
                h.define_bits(field, f"{name}_{field.name}")
        ends = [f"{h.prefix}_{name}_{f.name.upper()}" for f in record.fields]
        h.refuse_edits(f"a field lies outside {record.name}",
                       [f"{end}_OFFSET + {end}_WIDTH > {h.prefix}_{name}_BYTES" for end in ends])
    if device.ring and not device.ring.memory:
        entry_bytes = f"{h.prefix}_{device.ring.record.name.upper()}_BYTES"
        h.refuse_edits("the ring lies outside the BAR",
                       [f"{h.prefix}_RING_OFFSET + {h.prefix}_RING_COUNT * {entry_bytes} > {h.prefix}_BAR_BYTES"])


def add_operators(h, device):
    if not device.operators:
        return
    lower = device.name.lower()
    # Why before the operators: one that is called COUNT is what to rename.
    own = h.claim(device.table, "OP_COUNT")
    h.add("", f"enum {lower}_op {{")
    h.add(",\n".join(f"    {h.claim(o.table, f'OP_{o.name}')} = {o.code}" for o in device.operators), "};")
    names = {o.code: o.span_name for o in device.operators}
    count = max(names) + 1
    h.add(f"#define {own} {number(count)}")
    h.add("", "/* Span name of each op code; a code that is not described has its number. */")
    h.add(f"static const char *const {lower}_op_names[{h.prefix}_OP_COUNT] = {{")
    h.add(",\n".join("    " + c_string(names.get(code, f"op {code}")) for code in range(count)), "};")


def c_counter(h, device, c):
    """The members of npuprof_npu_counter up to the rate."""
    return ", ".join((c.lo.c_offset(h.prefix), c.hi.c_offset(h.prefix) if c.hi else "0", number(c.bits),
                      number(c.lo.width),
                      ORDERS[c.order], str(c.counts_down).lower(), str(device.endian == "big").lower()))


def add_description(h, device):
    """The function <device>_npu_desc()."""
    lower, c, r = device.name.lower(), device.counter, device.ring
    todo = ".bar and .bar_bytes, or .resource"
    members = {"name": c_string(device.name), "pe_count": f"{h.prefix}_PE_COUNT"}
    if c:
        members["counter.lo_offset"] = c.lo.c_offset(h.prefix)
        if c.hi:
            members["counter.hi_offset"] = c.hi.c_offset(h.prefix)
        members["counter.bits"] = number(c.bits)
        members["counter.access"] = number(c.lo.width)
        members["counter.order"] = ORDERS[c.order]
        if c.counts_down:
            members["counter.counts_down"] = "true"
        if device.endian == "big":
            members["counter.big_endian"] = "true"
        if c.hz:
            members["counter.hz"] = f"{h.prefix}_COUNTER_HZ"
        if c.lag_ns:
            members["counter.lag_ns"] = number(c.lag_ns)
    if r:
        record = f"{h.prefix}_{r.record.name.upper()}"
        if r.memory:
            todo += ", and .ring.memory and .ring.memory_bytes"
        else:
            members["ring.offset"] = f"{h.prefix}_RING_OFFSET"
        members["ring.entry_bytes"] = f"{record}_BYTES"
        members["ring.count"] = f"{h.prefix}_RING_COUNT"
        members["ring.producer_offset"] = r.producer.c_offset(h.prefix)
        members["ring.producer_bits"] = number(r.producer_bits)
        if r.producer_is_slot:
            members["ring.producer_is_slot"] = "true"
        if device.endian == "big":
            members["ring.big_endian"] = "true"
        for role, field in r.fields.items():
            name = f"{record}_{field.name.upper()}"
            members[f"ring.{role}.offset"] = f"{name}_OFFSET"
            members[f"ring.{role}.width_bytes"] = f"{name}_WIDTH"
            members[f"ring.{role}.lsb"] = f"{name}_POS"
            members[f"ring.{role}.bits"] = number(field.bits)
        if device.operators:
            members["ring.op_names"] = f"{lower}_op_names"
            members["ring.op_count"] = f"{h.prefix}_OP_COUNT"
        if r.category is not None:
            members["ring.category"] = c_string(r.category)
        if r.execution_op is not None:
            members["ring.execution_op"] = f"{h.prefix}_OP_{r.execution_op.upper()} + 1"
    if device.pmu:
        members["pmu"] = "pmu"
        members["pmu_count"] = number(len(device.pmu))
    # Why its own guard: the header may have been included before npuprof_npu.h was, for the constants alone.
    # Why a static: zero in every member, in C and in C++, without a warning about the members not named.
    h.add("", f"#if defined(NPUPROF_NPU_H) && !defined({h.prefix}_NPU_DESC)",
          f"#define {h.claim(device.table, 'NPU_DESC')}",
          f"/* What is fixed about the device. The caller sets {todo}. */",
          f"static inline npuprof_npu_desc {lower}_npu_desc(void)",
          "{")
    if device.pmu:
        # In the order of npuprof_npu_pmu and npuprof_npu_counter, whole. Why: C++ has no member names before C++20.
        h.add("    static const npuprof_npu_pmu pmu[] = {",
              ",\n".join(f"        {{ {c_string(c.name)}, {{ {c_counter(h, device, c)}, 0, 0 }}, {str(c.busy).lower()} }}" for c in device.pmu),
              "    };")
    h.add("    static npuprof_npu_desc zero;",
          "    npuprof_npu_desc desc = zero;")
    h.add(*(f"    desc.{member} = {value};" for member, value in members.items()))
    h.add("    return desc;", "}", "#endif")


ARRAYS = " * Element i of an array lies i * _STRIDE on, in bytes (a field: in bits), for i below _COUNT."


def start_header(h, table, title, inputs, source="", usage="", names=()):
    """The head of the file, up to its guard; returns the guard's name."""
    hashes = []
    for path, data in inputs:
        name = os.path.basename(path)
        if unfit_for_comment(name):
            raise Refused(f"{path!r}:1: the file's name holds {unfit_for_comment(name)}")
        hashes.append(f"{name}, sha256 {hashlib.sha256(data).hexdigest()[:16]}")
    guard = h.claim(table, c_name(*names, "GENERATED_H"))
    h.add(f"/* {title}",
          " * SPDX-License-Identifier: MIT" if len(inputs) == 1 and not names_svd(inputs[0][0])
          else f" * Its licence is that of {os.path.basename(inputs[-1][0])}.",
          " *",
          f" * Generated by npuprof.py gen from {' and '.join(hashes)}.",
          " * Do not edit: change the description and generate again.")
    if source:
        h.add(f" * Source of the facts: {source}")
    if usage:
        h.add(" *", *(f" * {line}".rstrip() for line in usage.splitlines()))
    h.add(" *",
          " * _OFFSET, _BYTES and _WIDTH count bytes; field = (word & _MASK) >> _POS.")
    return guard


def names_svd(path):
    return path.lower().endswith((".svd", ".xml"))


def generate(text, file, svd=None, peripherals=(), strict=False):
    """The header for a TOML text, as text. Raises Refused; `file` is the input's name in the refusals."""
    return header_of(read_device(file, text, svd, peripherals, strict))


def header_of(device):
    """The header for a checked device."""
    h = Header(device.name, device.from_svd)
    guard = start_header(h, device.table,
                         f"{device.title or device.name}: registers, records and npuprof description.",
                         device.inputs, device.source, device.usage)
    if device.from_svd:
        h.add(ARRAYS)
    h.add(" * Include it after npuprof_npu.h to get the description, too.",
          " */",
          "/* clang-format off */",
          f"#ifndef {guard}",
          f"#define {guard}", "")
    add_constants(h, device)
    add_operators(h, device)
    if not device.operators:
        h.add(*nonempty(h))
    h.add("", f"#endif /* {guard} */")
    add_description(h, device)
    return "\n".join(h.text) + "\n"


def nonempty(h):
    """A declaration. Why: -Wpedantic wants one in each file, and the header may be compiled alone."""
    return "", f"struct {h.prefix.lower()}_generated;"


def generate_svd(svd, peripherals=()):
    """The header for the peripherals of an SVD file (svd.Device), all without names. Raises Refused."""
    found = svd.peripherals(peripherals)
    prefix = c_name(svd.name)
    if clashes(prefix):
        svd.root.refuse(f"device name {svd.name!r} would clash with npuprof's own names, rename it")
    h = Header(prefix if prefix[0].isalpha() else f"D{prefix}", renames=True)
    guard = start_header(h, svd.root, comment(f"{svd.name}: registers.")[3:-3], [(svd.file, svd.data)],
                         names=peripherals)
    h.add(" * _OFFSET counts from the peripheral's _BASE.",
          ARRAYS,
          " * What a value of an enumeration has in bits outside its _CARE, if it has one, does not matter.",
          " */",
          "/* clang-format off */",
          f"#ifndef {guard}",
          f"#define {guard}")
    for peripheral in found:
        name = peripheral.c_name = h.free(c_name(peripheral.name), ("BASE", "BYTES", "COUNT", "STRIDE"))
        h.add("", comment(f"==== {peripheral.name} ====", peripheral.description))
        h.define(peripheral.table, f"{name}_BASE", hexadecimal(peripheral.base))
        h.define(peripheral.table, f"{name}_BYTES", hexadecimal(peripheral.bytes))
        for dim in peripheral.dims:
            h.define_array(dim, name)
        add_registers(h, peripheral.registers, (peripheral.name,))
        h.refuse_edits(f"a register lies outside {name}",
                       [f"{c_end(h, register)} > {h.prefix}_{name}_BYTES"
                        for register in peripheral.registers])
    h.add(*nonempty(h), "", f"#endif /* {guard} */")
    return "\n".join(h.text) + "\n"
