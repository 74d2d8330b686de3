# SPDX-License-Identifier: MIT
"""Finds what a role names: a register, a field of one, a field of a record."""

import re

from .model import WORD_WIDTHS, Value


def some(names):
    """The first 20 names, for a message."""
    names = list(names)
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def choice(table, key, value, choices):
    """One of the words that a key may hold."""
    if value not in choices:
        table.refuse(f"{key} = {value!r} in {table.where()}, use one of {', '.join(choices)}", key)
    return value


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


def pick_register_field(table, key, path, registers):
    """The register and the field that a role names by REG or REG.FIELD; the field is None without one."""
    name, _, field = path.rpartition(".")
    plain, parent = (re.sub(r"\[\w*\]", "", text) for text in (path, name))
    names = {register.name for register in registers}
    if plain in names or parent not in names:
        return pick_readable(table, key, path, registers), None
    register = pick_readable(table, key, name, registers)
    return register, pick(table, key, field, register.fields, f"in register {name} field")


def pick_field(table, key, name, record):
    """The field of a record that a role names, if one load reads it."""
    field = pick(table, key, name, record.fields, f"in record {record.name} field")
    if field.width not in WORD_WIDTHS:
        table.refuse(f"{key} in {table.where()} names field {name} of {field.width} bits, use one of 8, "
                     "16, 32 or 64", key)
    return field


def pick_value(table, key, names, record):
    """The value that a role names: one field of the record, or [low part, high part]."""
    names = [names] if isinstance(names, str) else names
    if not 1 <= len(names) <= 2:
        table.refuse(f"{key} in {table.where()} has {len(names)} parts, name one field, "
                     "or [low part, high part]", key)
    return Value([pick_field(table, key, name, record) for name in names])


def value_number(table, key, name, field):
    """What stands for a value of a field: a number, or one of its names."""
    given = table.value[key] if name is None else name
    if type(given) is str and given in field.values:
        return field.values[given]
    number = given if type(given) is int else None
    if type(given) is str and re.fullmatch("0[xX][0-9A-Fa-f]+|[0-9]+", given):
        number = int(given, 0) if given[:2] in ("0x", "0X") else int(given)
    if number is None or number < 0:
        known = f" or one of {some(field.values)}" if field.values else ""
        table.refuse(f"{given!r} in {table.where()} is no value of field {field.name}, write a number{known}",
                     key)
    if number >> field.bits:
        table.refuse(f"{number} in {table.where()} does not fit the {field.bits}-bit field {field.name}, "
                     "correct it", key)
    return number
