# SPDX-License-Identifier: MIT
"""The C header of a device: offsets, fields and values, op codes, and its description for npuprof."""

import hashlib
import os

from ..base.messages import Refused
from .c_header import Header
from .c_text import c_name, c_string, clashes, comment, hexadecimal, number, unfit_for_comment
from .description import has_pmu_by_function, many, ring_constant
from .function import add_function
from .model import WORD_WIDTHS


def c_end(h, register):
    """The end of a register, or of the last one of an array, as C."""
    arrays = (f"({h.prefix}_{dim.c_name}_COUNT - 1u) * {h.prefix}_{dim.c_name}_STRIDE"
              for dim in register.dims)
    return " + ".join([f"{h.prefix}_{register.c_name}_OFFSET", *arrays, f"{register.width // 8}u"])


def add_registers(h, registers, scope=()):
    """Offsets, fields and values of registers. scope: the parts of their names that come first."""
    for register in registers:
        path = register.name.split(".")
        register.c_name = h.free(c_name(*scope, *path), ("OFFSET", "COUNT", "STRIDE", "RESET"))
        own = [dim for dim in register.dims if ".".join(dim.path) == register.name]
        for dim in register.dims:
            if dim not in h.arrays and dim not in own:
                name = h.free(c_name(*scope, *dim.path), ("COUNT", "STRIDE"))
                h.add("", comment(f"{'.'.join((*scope, *dim.path))}: {dim.count} times, {dim.stride:#x} "
                                  "bytes apart."))
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
    """All plain numbers of a device: sizes, registers, records."""
    table = device.table
    if device.bar_bytes is not None:
        h.define(table, "BAR_BYTES", hexadecimal(device.bar_bytes))
    h.define(table, "PE_COUNT", number(device.pe_count))
    if device.counter and device.counter.hz:
        h.define(table, "COUNTER_HZ", number(device.counter.hz))
    add_ring_constants(h, device)

    add_registers(h, device.registers)
    h.refuse_edits("a register lies outside the BAR",
                   [f"{c_end(h, register)} > {h.prefix}_BAR_BYTES" for register in device.registers])

    for record in device.records:
        add_record(h, record)
    for r in device.rings:
        if not r.feed and not r.memory:
            entry_bytes = f"{h.prefix}_{r.record.name.upper()}_BYTES"
            end = (f"{ring_constant(h, r, 'OFFSET')}{f' + {number(r.first)}' if r.first else ''} + "
                   f"{ring_constant(h, r, 'COUNT')} * {entry_bytes}")
            h.refuse_edits("the ring lies outside the BAR", [f"{end} > {h.prefix}_BAR_BYTES"])


def add_ring_constants(h, device):
    """Numbers, places and sizes of rings. The constants of a ring bear its name if there are several."""
    if many(device):
        h.define(device.table, "RINGS", number(sum(r.instances for r in device.rings)))
    if has_pmu_by_function(device):
        h.define(device.table, "PMU", number(len(device.pmu)))
    for r in device.rings:
        r.c_name = (r.name or r.record.name).upper() if many(device) else ""
        if r.c_name:
            h.define(r.table, f"RING_{r.c_name}", number(r.number))
        def own(what, r=r):
            return ring_constant(h, r, what)[len(h.prefix) + 1:]
        if r.offset is not None:
            h.define(r.table, own("OFFSET"), hexadecimal(r.offset))
        if r.count is not None:
            h.define(r.table, own("COUNT"), number(r.count))
        if r.stride is not None:
            h.define(r.table, own("STRIDE"), hexadecimal(r.stride))


def add_record(h, record):
    """The offsets, fields and values of a record in memory."""
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


ENUM_MAX = 2**31 - 1       # a larger code is no enumerator in C


def add_operators(h, device):
    """The enumeration of op codes."""
    if not device.operators:
        return
    lower = device.name.lower()
    # Why first: if an operator is called COUNT, the refusal names the operator.
    own = h.claim(device.table, "OP_COUNT")
    if max(o.code for o in device.operators) > ENUM_MAX:
        h.add("")
        for o in device.operators:
            h.define(o.table, f"OP_{o.name}", hexadecimal(o.code, 64))
        return
    h.add("", f"enum {lower}_op {{")
    h.add(",\n".join(f"    {h.claim(o.table, f'OP_{o.name}')} = {o.code}" for o in device.operators), "};")
    h.add(f"#define {own} {number(max(o.code for o in device.operators) + 1)}")


ARRAYS = " * Element i of an array lies i * _STRIDE on, in bytes (a field: in bits), for i below _COUNT."


def start_header(h, table, title, inputs, source="", usage="", names=()):
    """Adds the comment at the top of the file. Returns the name of its guard."""
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
    """True if the name is that of an SVD file."""
    return path.lower().endswith((".svd", ".xml"))


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
    add_function(h, device)
    return "\n".join(h.text) + "\n"


def nonempty(h):
    """A declaration. Why: -Wpedantic wants one in each file, and the header may be compiled alone."""
    return "", f"struct {h.prefix.lower()}_generated;"


def generate_svd(svd, peripherals=()):
    """The header for these peripherals of an SVD file (svd.Device), without names for all. Raises Refused."""
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
