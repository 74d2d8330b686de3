# SPDX-License-Identifier: MIT
"""C header from a device description in TOML.

Reads the description, refuses what cannot be right (one line, file:line, exit code 2), and writes offsets,
positions, masks, op codes and a ready <device>_npu_desc(). The same input gives the same bytes; the header names
the hash of its input.

With --check nothing is written: exit code 1 says that the header on disk is not what would be generated.
"""

import hashlib
import os
import re
import tomllib
from dataclasses import dataclass
from types import SimpleNamespace

from npuprof_common import Refused, read_bytes, write_whole

REQUIRED = object()
UINT32_MAX = 2**32 - 1
UINT64_MAX = 2**64 - 1
WORD_WIDTHS = (8, 16, 32, 64)
OP_CODE_MAX = 1023  # Why: the table of names has one entry for each code up to the largest.
RING_FIELDS = ("sequence", "job", "start", "end", "pe", "op", "status", "execution", "instruction")
ORDERS = {"hi-lo-hi": "NPUPROF_NPU_HI_LO_HI", "lo-latches-hi": "NPUPROF_NPU_LO_LATCHES_HI",
          "single": "NPUPROF_NPU_SINGLE"}

# Every key a table may hold: its type and its default.
ROOT = {"device": (dict, REQUIRED), "register": (list, []), "record": (list, []), "roles": (dict, {}),
        "operators": (dict, {})}
DEVICE = {"name": (str, REQUIRED), "title": (str, ""), "source": (str, ""), "bar_bytes": (int, REQUIRED),
          "endian": (str, "little"), "pe_count": (int, 1)}
REGISTER = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED), "access": (str, REQUIRED),
            "description": (str, ""), "field": (list, [])}
REGISTER_FIELD = {"name": (str, REQUIRED), "bits": (str, REQUIRED), "description": (str, ""), "values": (dict, {})}
RECORD = {"name": (str, REQUIRED), "bytes": (int, REQUIRED), "description": (str, ""), "field": (list, [])}
RECORD_FIELD = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED), "bits": (str, None),
                "description": (str, ""), "values": (dict, {})}
ROLES = {"counter": (dict, None), "ring": (dict, None)}
COUNTER = {"lo": (str, REQUIRED), "hi": (str, None), "bits": (int, None), "order": (str, None),
           "counts_down": (bool, False), "hz": (int, 0), "lag_ns": (int, 0)}
RING = {"record": (str, REQUIRED), "offset": (int, None), "memory": (bool, False), "count": (int, REQUIRED),
        "producer": (str, REQUIRED), "producer_bits": (int, None), "producer_is_slot": (bool, False),
        "category": (str, None), "execution_op": (str, None)} | {name: (str, None) for name in RING_FIELDS}
OPERATOR = {"code": (int, REQUIRED), "name": (str, REQUIRED)}

TYPE_NAMES = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table",
              list: "an array of tables"}


# ---- Lines: tomllib gives none, so a small scanner finds the line of each table and key ----

TOKEN = re.compile(r'''
    """(?:\\.|[^\\])*?"""(?!") | \'\'\'.*?\'\'\'(?!') | "(?:\\.|[^"\\])*" | '[^']*'    # strings
    | \#[^\n]* | [\[\]{}\n] | [^"'\#\[\]{}\n]+''', re.DOTALL | re.VERBOSE)
KEY = re.compile(r'''[\s\[.]*("(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+)\s*(?=[.\]=])''')


def statements(text):
    """Yields (line, text) of each key = value and each [header], without comments. `text` is valid TOML."""
    line = first_line = 1
    depth, parts = 0, []
    for token in TOKEN.findall(text + "\n"):
        if token == "\n" and depth == 0:
            if "".join(parts).strip():
                yield first_line, "".join(parts).strip()
            parts, first_line = [], line + 1
        elif not token.startswith("#"):
            depth += (token in ("[", "{")) - (token in ("]", "}"))
            parts.append(token)
        line += token.count("\n")


def line_numbers(text):
    """Maps the path of each table and key, such as ("register", 0, "name"), to its line. Keys of inline tables are
    left out: line_of() gives them the line of the table."""
    lines, array_lengths, base = {(): 1}, {}, ()
    for line, statement in statements(text):
        keys, position = [], 0
        while match := KEY.match(statement, position):
            keys.append(match[1].strip("\"'"))
            position = match.end()
        if not statement.startswith("["):
            lines[base + tuple(keys)] = line
            continue
        base = ()
        for depth, key in enumerate(keys, 1):
            base += (key,)
            if statement.startswith("[[") and depth == len(keys):
                array_lengths[base] = array_lengths.get(base, 0) + 1
            if base in array_lengths:
                base += (array_lengths[base] - 1,)
        lines.setdefault(base, line)
    return lines


def line_of(lines, path):
    if path in lines:
        return lines[path]
    inside = [line for known, line in lines.items() if known[:len(path)] == path]
    return min(inside) if inside else line_of(lines, path[:-1])


# ---- Tables: unknown and missing keys, types, and text that C could trip over ----

def unfit_for_comment(text):
    """What keeps a text out of a C comment, and what to do; None if nothing does."""
    if not text.isprintable():
        return "a control or invisible character, use plain text on one line"
    if "*/" in text or "/*" in text:
        return "a C comment mark, take it out"
    if text.endswith(("\\", "??/")):
        return "a backslash (or its trigraph) at the end, take it out"
    return None


class Table:
    """A TOML table that knows its place. refuse() names the line of a key, or of the table."""

    def __init__(self, file, lines, path, value):
        self.file, self.lines, self.path, self.value = file, lines, path, value

    def refuse(self, sentence, *key):
        raise Refused(f"{self.file}:{line_of(self.lines, self.path + key)}: {sentence}")

    def line(self):
        return line_of(self.lines, self.path)

    def where(self):
        """The table as its header would name it: [roles.ring], [[register]]."""
        names = ".".join(part for part in self.path if isinstance(part, str))
        return f"[[{names}]]" if self.path and isinstance(self.path[-1], int) else f"[{names}]" if names else "the file"

    def read(self, schema):
        """Returns the values of the schema's keys, defaults filled in."""
        for key in self.value:
            if key not in schema:
                self.refuse(f"unknown key {key!r} in {self.where()}, known are {', '.join(schema)}", key)
        result = {}
        for key, (kind, default) in schema.items():
            if key in self.value:
                result[key] = self.typed(key, kind)
            elif default is REQUIRED:
                self.refuse(f"{self.where()} has no {key!r}, add {TYPE_NAMES[kind]}")
            else:
                result[key] = default
        return SimpleNamespace(**result)

    def typed(self, key, kind):
        value = self.value[key]
        if type(value) is not kind:  # Why not isinstance: true is an int, too.
            self.refuse(f"{key} in {self.where()} is not {TYPE_NAMES[kind]}, write one", key)
        if kind is int and not 0 <= value <= UINT64_MAX:
            self.refuse(f"{key} in {self.where()} is outside 0 to 2^64-1, write a number inside", key)
        if kind is str and unfit_for_comment(value):
            self.refuse(f"{key} in {self.where()} holds {unfit_for_comment(value)}", key)
        return value

    def table(self, *keys):
        """A table inside this one; an empty one if there is none."""
        value = self.value
        for key in keys:
            value = value.get(key, {}) if isinstance(value, dict) else value[key]
        return Table(self.file, self.lines, self.path + keys, value)

    def tables(self, key):
        """The tables of an array of tables."""
        for index, value in enumerate(self.value.get(key, [])):
            if type(value) is not dict:
                self.refuse(f"{key} in {self.where()} is not an array of tables, write [[{key}]]", key)
            yield self.table(key, index)

    def identifier(self, name, what, *key):
        # Why no doubled, leading or trailing underscore: such identifiers are reserved in C++, or private here.
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name):
            self.refuse(f"{what} name {name!r} is no C name, use letters, digits and single underscores", *key)


# ---- The device: what the tables mean together ----

@dataclass
class Field:
    name: str
    offset: int        # bytes into the record; 0 in a register
    width: int         # bits of the word
    lsb: int
    bits: int
    description: str
    values: dict       # enumerated values: name -> number
    table: Table

    @property
    def mask(self):
        return (2**self.bits - 1) << self.lsb


@dataclass
class Register:
    name: str
    offset: int
    width: int         # bits
    access: str
    description: str
    fields: list
    table: Table

    @property
    def end(self):
        return self.offset + self.width // 8


@dataclass
class Record:
    name: str
    bytes: int
    description: str
    fields: list
    table: Table


@dataclass
class Operator:
    name: str          # of the enumerator
    code: int
    span_name: str
    table: Table


class Names:
    """The names of one kind. C names are made of capitals, so names that differ only in case are the same."""

    def __init__(self, what):
        self.what, self.lines = what, {}

    def add(self, table, name, *key):
        table.identifier(name, self.what, *key)
        line = line_of(table.lines, table.path + key)
        if name.upper() in self.lines:
            first = self.lines[name.upper()]
            table.refuse(f"duplicate {self.what} name {name!r}, first on line {first}, rename one", *key)
        self.lines[name.upper()] = line


def bit_range(table, text, width):
    """Reads "msb:lsb" or "bit" and returns (lsb, number of bits)."""
    match = re.fullmatch(r"([0-9]{1,2})(?::([0-9]{1,2}))?", text)
    msb = int(match[1]) if match else -1
    lsb = int(match[2] or match[1]) if match else 0
    if msb < lsb:
        table.refuse(f'bits {text!r} in {table.where()} is no bit range, write "msb:lsb" or "bit"', "bits")
    if msb >= width:
        table.refuse(f"bits {text!r} in {table.where()} is outside the {width}-bit word, use 0 to {width - 1}", "bits")
    return lsb, msb - lsb + 1


def read_values(table, bits):
    names = Names("value")
    values = table.table("values")
    for name in values.value:
        names.add(values, name, name)
        if values.typed(name, int) >> bits:
            values.refuse(f"value {name} = {values.value[name]} does not fit the {bits}-bit field, correct one", name)
    return values.value


def read_register(table):
    r = table.read(REGISTER)
    if r.width not in WORD_WIDTHS:
        table.refuse(f"register {r.name} has width {r.width}, use 8, 16, 32 or 64", "width")
    if r.access not in ("ro", "rw", "wo", "rc"):
        table.refuse(f"register {r.name} has access {r.access!r}, use ro, rw, wo or rc", "access")
    if r.offset % (r.width // 8):
        table.refuse(f"register {r.name} at {r.offset:#x} is misaligned, move it to a multiple of {r.width // 8}",
                     "offset")
    names, fields, used = Names("field"), [], 0
    for sub in table.tables("field"):
        f = sub.read(REGISTER_FIELD)
        names.add(sub, f.name, "name")
        lsb, bits = bit_range(sub, f.bits, r.width)
        fields.append(Field(f.name, 0, r.width, lsb, bits, f.description, read_values(sub, bits), sub))
        if used & fields[-1].mask:
            other = next(o.name for o in fields if o.mask & fields[-1].mask)
            sub.refuse(f"field {f.name} overlaps field {other} of register {r.name}, correct the bits of one", "bits")
        used |= fields[-1].mask
    return Register(r.name, r.offset, r.width, r.access, r.description, fields, table)


def read_record(table, big_endian):
    r = table.read(RECORD)
    if not 0 < r.bytes <= 65536:
        table.refuse(f"record {r.name} has {r.bytes} bytes, use 1 to 65536", "bytes")
    names, fields, masks = Names("field"), [], []
    for sub in table.tables("field"):
        f = sub.read(RECORD_FIELD)
        names.add(sub, f.name, "name")
        if f.width == 0 or f.width % 8:
            sub.refuse(f"field {f.name} has width {f.width}, use 8, 16, 32, 64, or whole bytes for a block", "width")
        if f.width in WORD_WIDTHS and f.offset % (f.width // 8):
            sub.refuse(f"field {f.name} at {f.offset:#x} is misaligned, move it to a multiple of {f.width // 8}",
                       "offset")
        if f.offset + f.width // 8 > r.bytes:
            sub.refuse(f"field {f.name} ends outside record {r.name} of {r.bytes} bytes, correct one", "offset")
        lsb, bits = 0, f.width
        if f.bits is not None:
            if f.width not in WORD_WIDTHS:
                sub.refuse(f"field {f.name} is a block of {f.width} bits and has no bit range, take bits out", "bits")
            lsb, bits = bit_range(sub, f.bits, f.width)
        # The field's place in the record read as one integer of the device's byte order.
        low_byte = r.bytes - f.offset - f.width // 8 if big_endian else f.offset
        mask = (2**bits - 1) << (8 * low_byte + lsb)
        for other, other_mask in zip(fields, masks):
            if mask & other_mask:
                sub.refuse(f"field {f.name} overlaps field {other.name} of record {r.name}, move one", "offset")
        masks.append(mask)
        fields.append(Field(f.name, f.offset, f.width, lsb, bits, f.description, read_values(sub, bits), sub))
    return Record(r.name, r.bytes, r.description, fields, table)


def pick(table, key, name, things, what):
    """The thing a role names."""
    for thing in things:
        if thing.name == name:
            return thing
    known = ", ".join(thing.name for thing in things) or "none"
    table.refuse(f"{key} in {table.where()} names {what} {name!r}, which does not exist, use one of {known}", key)


def pick_readable(table, key, name, registers):
    register = pick(table, key, name, registers, "register")
    if register.access in ("wo", "rc"):
        table.refuse(f"{key} in {table.where()} names register {name} with access {register.access}, "
                     "use one that can be read and stays as it is", key)
    return register


def read_counter(table, registers):
    c = table.read(COUNTER)
    c.lo = pick_readable(table, "lo", c.lo, registers)
    c.hi = pick_readable(table, "hi", c.hi, registers) if c.hi is not None else None
    if c.hi is c.lo:
        table.refuse(f"hi and lo in {table.where()} are the same register, take hi out or correct it", "hi")
    for key, register in (("lo", c.lo), ("hi", c.hi)):
        widths = (32,) if c.hi else (32, 64)
        if register and register.width not in widths:
            table.refuse(f"{key} in {table.where()} names the {register.width}-bit register {register.name}, "
                         f"use one of {' or '.join(map(str, widths))} bits", key)
    held = c.lo.width + (c.hi.width if c.hi else 0)
    c.bits = held if c.bits is None else c.bits
    if not 1 <= c.bits <= held:
        table.refuse(f"bits = {c.bits} in {table.where()}, but the registers hold {held}, use 1 to {held}", "bits")
    c.order = c.order if c.order is not None else "hi-lo-hi" if c.hi else "single"
    orders = ("hi-lo-hi", "lo-latches-hi") if c.hi else ("single",)
    if c.order not in orders:
        table.refuse(f"order {c.order!r} in {table.where()} does not go with {'a' if c.hi else 'no'} hi register, "
                     f"use {' or '.join(orders)}", "order")
    if c.lag_ns > UINT32_MAX:
        table.refuse(f"lag_ns = {c.lag_ns} in {table.where()}, use at most {UINT32_MAX}", "lag_ns")
    return c


def read_ring(table, device):
    r = table.read(RING)
    r.record = pick(table, "record", r.record, device.records, "record")
    r.producer = pick_readable(table, "producer", r.producer, device.registers)
    # Why: npuprof reads the index by one aligned 32-bit load and keeps its low bits.
    if (r.producer.width > 32 or r.producer.offset % 4 or r.producer.offset + 4 > device.bar_bytes
            or (r.producer.width < 32 and device.endian == "big")):
        table.refuse(f"producer in {table.where()} names register {r.producer.name}, which one aligned 32-bit load "
                     "cannot read, use one of 32 bits", "producer")
    if r.producer_bits is None:
        r.producer_bits = r.producer.width
    elif not 1 <= r.producer_bits <= r.producer.width:
        table.refuse(f"producer_bits = {r.producer_bits} in {table.where()}, use 1 to {r.producer.width}",
                     "producer_bits")
    if not 1 <= r.count <= min(2**r.producer_bits, 2**32 - 1):
        table.refuse(f"count = {r.count} in {table.where()}, use 1 to what {r.producer_bits} producer bits can count",
                     "count")
    if not r.producer_is_slot and r.count & (r.count - 1):
        table.refuse(f"count = {r.count} in {table.where()} loses its place when the producer wraps, "
                     "use a power of two or producer_is_slot", "count")

    r.fields = {}
    for role in RING_FIELDS:
        name = getattr(r, role)
        if name is None:
            continue
        field = r.fields[role] = pick(table, role, name, r.record.fields, f"in record {r.record.name} field")
        if field.width not in WORD_WIDTHS:
            table.refuse(f"{role} in {table.where()} names field {name} of {field.width} bits, "
                         "use one of 8, 16, 32 or 64", role)
    if not {"start", "end"} & r.fields.keys():
        table.refuse(f"{table.where()} has neither start nor end, name the field with a time")
    alignment = max(field.width // 8 for field in r.fields.values())
    if r.record.bytes % alignment:
        table.refuse(f"record {r.record.name} of {r.record.bytes} bytes misaligns the next entry of the ring, "
                     f"make it a multiple of {alignment}", "record")

    if r.memory == (r.offset is not None):
        table.refuse(f"{table.where()} needs either offset (in the BAR) or memory = true (host memory)", "memory")
    if not r.memory:
        end = r.offset + r.count * r.record.bytes
        if r.offset % alignment:
            table.refuse(f"offset {r.offset:#x} in {table.where()} misaligns the entries, "
                         f"move it to a multiple of {alignment}", "offset")
        if end > device.bar_bytes:
            table.refuse(f"the ring ends at {end:#x}, outside the BAR of {device.bar_bytes:#x} bytes, move it",
                         "offset")
        for register in device.registers:
            if register.offset < end and r.offset < register.end:
                table.refuse(f"the ring overlaps register {register.name}, move one", "offset")

    if r.execution_op is not None:
        pick(table, "execution_op", r.execution_op, device.operators, "operator")
    if "op" in r.fields:
        for operator in device.operators:
            if operator.code >> r.fields["op"].bits:
                operator.table.refuse(f"op code {operator.code} of {operator.name} does not fit the "
                                      f"{r.fields['op'].bits}-bit field {r.fields['op'].name}, correct one")
    return r


def read_operators(table):
    """The operators, in the order of their codes."""
    names, by_code = Names("operator"), {}
    for name in table.value:
        names.add(table, name, name)
        table.typed(name, dict)
        sub = table.table(name)
        o = sub.read(OPERATOR)
        if o.code > OP_CODE_MAX:
            sub.refuse(f"op code {o.code} of {name} is above {OP_CODE_MAX}, use a smaller one "
                       "(there is a name in memory for each code up to the largest)", "code")
        if o.code in by_code:
            sub.refuse(f"operator {name} has the code {o.code} of {by_code[o.code].name}, correct one", "code")
        by_code[o.code] = Operator(name, o.code, o.name, sub)
    return [by_code[code] for code in sorted(by_code)]


def read_device(file, text):
    """The checked device of a TOML text. Raises Refused."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        line = line[1] if line else text.count("\n") + 1
        raise Refused(f"{file}:{line}: TOML syntax: {error}, correct it there or just before") from None
    except (RecursionError, ValueError):
        raise Refused(f"{file}:1: nested too deeply, or a number too long, write it simpler") from None
    root = Table(file, line_numbers(text), (), value)
    root.read(ROOT)
    table = root.table("device")
    device = table.read(DEVICE)
    table.identifier(device.name, "device", "name")
    if re.match(r"npuprof(_|$)", device.name.lower()):
        table.refuse(f"device name {device.name!r} would clash with npuprof's own names, choose another", "name")
    if device.endian not in ("little", "big"):
        table.refuse(f"endian {device.endian!r} in [device], use little or big", "endian")
    if not 1 <= device.pe_count < 2**32:
        table.refuse(f"pe_count = {device.pe_count} in [device], use 1 to 2^32-1", "pe_count")

    names, device.registers = Names("register"), []
    for sub in root.tables("register"):
        register = read_register(sub)
        names.add(sub, register.name, "name")
        if register.end > device.bar_bytes:
            sub.refuse(f"register {register.name} at {register.offset:#x} lies outside the BAR of "
                       f"{device.bar_bytes:#x} bytes, correct offset or bar_bytes", "offset")
        for other in device.registers:
            if register.offset < other.end and other.offset < register.end:
                sub.refuse(f"register {register.name} overlaps register {other.name} on line {other.table.line()}, "
                           "move one", "offset")
        device.registers.append(register)

    names, device.records = Names("record"), []
    for sub in root.tables("record"):
        record = read_record(sub, device.endian == "big")
        names.add(sub, record.name, "name")
        device.records.append(record)

    device.operators = read_operators(root.table("operators"))
    roles = root.table("roles")
    has = roles.read(ROLES)
    device.counter = read_counter(roles.table("counter"), device.registers) if has.counter is not None else None
    device.ring = read_ring(roles.table("ring"), device) if has.ring is not None else None
    device.table = table
    return device


# ---- The header ----

def number(value, width=32):
    """A C literal for use with words of `width` bits. Why: ~mask and value << pos need the type of a wide word."""
    return f"{value}u" if value < 2**32 and width <= 32 else f"{value}ull"


def hexadecimal(value, width=32):
    return f"{value:#x}u" if value < 2**32 and width <= 32 else f"{value:#x}ull"


def c_string(text):
    """A C string literal. Bytes above ASCII become octal escapes, and no trigraph is left."""
    text = text.replace("\\", "\\\\").replace('"', '\\"').replace("?", "\\?")
    return '"' + "".join(chr(byte) if byte < 128 else f"\\{byte:o}" for byte in text.encode()) + '"'


def comment(*parts):
    return f"/* {' '.join(part for part in parts if part)} */"


class Header:
    """Lines of C, and every identifier they define, so that a clash is refused here and not met in a compiler."""

    def __init__(self, device_name):
        self.prefix, self.text, self.lines = device_name.upper(), [], {}

    def add(self, *text):
        self.text.extend(text)

    def claim(self, table, name):
        """The C name for `name`."""
        identifier = f"{self.prefix}_{name.upper()}"
        if identifier in self.lines:
            table.refuse(f"the C name {identifier} comes out twice, first for line {self.lines[identifier]}, "
                         "rename one")
        self.lines[identifier] = table.line()
        return identifier

    def define(self, table, name, value):
        self.add(f"#define {self.claim(table, name)} {value}")

    def define_bits(self, field, name):
        self.define(field.table, f"{name}_POS", number(field.lsb))
        self.define(field.table, f"{name}_MASK", hexadecimal(field.mask, field.width))
        for value_name, value in field.values.items():
            self.define(field.table, f"{name}_{value_name}", number(value, field.width))

    def refuse_edits(self, what, conditions):
        """Numbers edited by hand do not compile. Why #if: static asserts need C11, and these are plain numbers."""
        if conditions:
            self.add("", "#if " + " || \\\n    ".join(conditions), f'#error "{what}: generate this header again"',
                     "#endif")


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

    for register in device.registers:
        h.add("", comment(f"{register.name}: {register.access}, {register.width} bits.", register.description))
        h.define(register.table, f"{register.name}_OFFSET", hexadecimal(register.offset))
        for field in register.fields:
            if field.description:
                h.add(comment(f"{register.name}.{field.name}:", field.description))
            h.define_bits(field, f"{register.name}_{field.name}")
    h.refuse_edits("a register lies outside the BAR",
                   [f"{h.prefix}_{r.name.upper()}_OFFSET + {r.width // 8}u > {h.prefix}_BAR_BYTES"
                    for r in device.registers])

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
    h.add("", f"enum {lower}_op {{")
    h.add(",\n".join(f"    {h.claim(o.table, f'OP_{o.name}')} = {o.code}" for o in device.operators), "};")
    names = {o.code: o.span_name for o in device.operators}
    count = max(names) + 1
    h.define(device.table, "OP_COUNT", number(count))
    h.add("", "/* Span name of each op code; a code that is not described has its number. */")
    h.add(f"static const char *const {lower}_op_names[{h.prefix}_OP_COUNT] = {{")
    h.add(",\n".join("    " + c_string(names.get(code, f"op {code}")) for code in range(count)), "};")


def add_description(h, device):
    """The function <device>_npu_desc()."""
    lower, c, r = device.name.lower(), device.counter, device.ring
    todo = ".bar and .bar_bytes, or .resource"
    members = {"name": c_string(device.name), "pe_count": f"{h.prefix}_PE_COUNT"}
    if c:
        members["counter.lo_offset"] = f"{h.prefix}_{c.lo.name.upper()}_OFFSET"
        if c.hi:
            members["counter.hi_offset"] = f"{h.prefix}_{c.hi.name.upper()}_OFFSET"
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
        members["ring.producer_offset"] = f"{h.prefix}_{r.producer.name.upper()}_OFFSET"
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
    # Why its own guard: the header may have been included before npuprof_npu.h was, for the constants alone.
    # Why a static: zero in every member, in C and in C++, without a warning about the members not named.
    h.add("", f"#if defined(NPUPROF_NPU_H) && !defined({h.prefix}_NPU_DESC)",
          f"#define {h.claim(device.table, 'NPU_DESC')}",
          f"/* What is fixed about the device. The caller sets {todo}. */",
          f"static inline npuprof_npu_desc {lower}_npu_desc(void)",
          "{",
          "    static npuprof_npu_desc zero;",
          "    npuprof_npu_desc desc = zero;")
    h.add(*(f"    desc.{member} = {value};" for member, value in members.items()))
    h.add("    return desc;", "}", "#endif")


def generate(text, file):
    """The header for a TOML text, as text. Raises Refused; `file` is the input's name in the refusals."""
    device = read_device(file, text)
    input_name = os.path.basename(file)
    if unfit_for_comment(input_name):
        raise Refused(f"{file!r}:1: the file's name holds {unfit_for_comment(input_name)}")
    h = Header(device.name)
    guard = h.claim(device.table, "GENERATED_H")
    input_hash = hashlib.sha256(text.encode()).hexdigest()[:16]
    h.add(f"/* {device.title or device.name}: registers, records and npuprof description.",
          " * SPDX-License-Identifier: MIT",
          " *",
          f" * Generated by npuprof.py gen from {input_name}, sha256 {input_hash}.",
          " * Do not edit: change the description and generate again.")
    if device.source:
        h.add(f" * Source of the facts: {device.source}")
    h.add(" *",
          " * _OFFSET, _BYTES and _WIDTH count bytes; field = (word & _MASK) >> _POS.",
          " * Include it after npuprof_npu.h to get the description, too.",
          " */",
          "/* clang-format off */",
          f"#ifndef {guard}",
          f"#define {guard}", "")
    add_constants(h, device)
    add_operators(h, device)
    h.add("", f"#endif /* {guard} */")
    add_description(h, device)
    return "\n".join(h.text) + "\n"


# ---- The command ----

def add_arguments(parser):
    parser.add_argument("device", metavar="DEVICE.toml")
    parser.add_argument("-o", dest="header", metavar="HEADER", required=True)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if HEADER is stale or edited")


def run(arguments):
    data = read_bytes(arguments.device)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{arguments.device}:{line}: byte {error.start} is not UTF-8, save the file as UTF-8") from None
    header = generate(text, arguments.device).encode()
    if not arguments.check:
        write_whole(arguments.header, header)
    elif not os.path.exists(arguments.header):
        print(f"{arguments.header}: does not exist, generate it from {arguments.device}")
        return 1
    elif read_bytes(arguments.header) != header:
        print(f"{arguments.header}: stale or edited, generate it again from {arguments.device}")
        return 1
    return 0
