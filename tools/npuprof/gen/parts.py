# SPDX-License-Identifier: MIT
"""Registers, records and operators from their TOML tables."""

import re

from .model import WORD_WIDTHS, Field, Operator, Record, Register
from .schema import OPERATOR, RECORD, RECORD_FIELD, REGISTER, REGISTER_FIELD
from .toml_table import Names


def bit_range(table, text, width):
    """Reads "msb:lsb" or "bit" and returns (lsb, number of bits)."""
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,2}))?", text)
    where = f"of field {table.value['name']} in {table.where()}"
    if not match:
        table.refuse(f'bits {text!r} {where} is no bit range, write "msb:lsb" or "bit"', "bits")
    msb, lsb = int(match[1]), int(match[2] or match[1])
    if msb < lsb:
        table.refuse(f'bits {text!r} {where} is reversed, write "msb:lsb": "{lsb}:{msb}"', "bits")
    if msb >= width:
        table.refuse(f"bits {text!r} {where} is outside the {width}-bit word, use 0 to {width - 1}", "bits")
    return lsb, msb - lsb + 1


def read_values(table, bits):
    """The values of a field: name -> number."""
    names = Names("value")
    values = table.table("values")
    for name in values.value:
        names.add(values, name, name)
        if values.typed(name, int) >> bits:
            values.refuse(f"value {name} = {values.value[name]} does not fit the {bits}-bit field, "
                          "correct one", name)
    return values.value


def read_register(table):
    r = table.read(REGISTER)
    if r.width not in WORD_WIDTHS:
        table.refuse(f"register {r.name} has width {r.width}, use 8, 16, 32 or 64", "width")
    if r.offset % (r.width // 8):
        table.refuse(f"register {r.name} at {r.offset:#x} is misaligned, "
                     f"move it to a multiple of {r.width // 8}", "offset")
    names, fields, used = Names("field"), [], 0
    for sub in table.tables("field"):
        f = sub.read(REGISTER_FIELD)
        names.add(sub, f.name, "name")
        lsb, bits = bit_range(sub, f.bits, r.width)
        fields.append(Field(f.name, 0, r.width, lsb, bits, f.description, read_values(sub, bits), sub))
        if used & fields[-1].mask:
            other = next(o.name for o in fields if o.mask & fields[-1].mask)
            sub.refuse(f"field {f.name} overlaps field {other} of register {r.name}, correct the bits of one",
                       "bits")
        used |= fields[-1].mask
    return Register(r.name, r.offset, r.width, r.access, r.description, fields, table)


def read_record(table, big_endian):
    r = table.read(RECORD)
    names, fields, masks = Names("field"), [], []
    for sub in table.tables("field"):
        f = sub.read(RECORD_FIELD)
        names.add(sub, f.name, "name")
        if f.width == 0 or f.width % 8:
            sub.refuse(f"field {f.name} has width {f.width}, use 8, 16, 32, 64, or whole bytes for a block",
                       "width")
        if f.width in WORD_WIDTHS and f.offset % (f.width // 8):
            outside = (f" and ends outside record {r.name} of {r.bytes} bytes"
                       if f.offset + f.width // 8 > r.bytes else "")
            sub.refuse(f"field {f.name} at {f.offset:#x} is misaligned{outside}, "
                       f"move it to a multiple of {f.width // 8}", "offset")
        if f.offset + f.width // 8 > r.bytes:
            sub.refuse(f"field {f.name} ends outside record {r.name} of {r.bytes} bytes, correct one",
                       "offset")
        lsb, bits = 0, f.width
        if f.bits is not None:
            if f.width not in WORD_WIDTHS:
                sub.refuse(f"field {f.name} is a block of {f.width} bits and has no bit range, take bits out",
                           "bits")
            lsb, bits = bit_range(sub, f.bits, f.width)
        field = Field(f.name, f.offset, f.width, lsb, bits, f.description, read_values(sub, bits), sub,
                      big_endian=big_endian, alternate=f.alternate)
        mask = field.mask_in(r.bytes)
        other = next((o for o, o_mask in zip(fields, masks) if mask & o_mask), None)
        if other and not f.alternate:
            sub.refuse(f"field {f.name} overlaps field {other.name} of record {r.name}, move one, "
                       "or say alternate = true", "offset")
        if f.alternate and not other:
            sub.refuse(f"field {f.name} is alternate, but no field before it has one of its bits, "
                       "take alternate out", "alternate")
        masks.append(mask)
        fields.append(field)
    return Record(r.name, r.bytes, r.description, fields, table)


def read_operators(table):
    """The operators, in the order of their codes."""
    names, by_code = Names("operator"), {}
    for name in table.value:
        names.add(table, name, name)
        table.typed(name, dict)
        sub = table.table(name)
        o = sub.read(OPERATOR)
        if o.code in by_code:
            sub.refuse(f"operator {name} has the code {o.code} of {by_code[o.code].name}, correct one",
                       "code")
        by_code[o.code] = Operator(name, o.code, o.name, sub)
    return [by_code[code] for code in sorted(by_code)]
