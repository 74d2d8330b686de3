# SPDX-License-Identifier: MIT
"""C header from a device description: TOML, CMSIS-SVD, or both.

    gen DEVICE.toml -o HEADER                        a device described in TOML; it may name an SVD file for its registers
    gen DEVICE.svd -o HEADER                         the registers of every peripheral
    gen DEVICE.svd --peripheral NAME -o HEADER       those of one; may be given more than once
    gen DEVICE.svd --roles ROLES.toml -o HEADER      the TOML says which register plays which role

Reads the description, refuses what cannot be right (one line, file:line, exit code 2), and writes offsets,
positions, masks, op codes and, from TOML, a ready <device>_npu_desc(). The same input gives the same bytes; the
header names the hash of its input.

What a vendor's SVD file has wrong and a header can live with (a field that ends outside its register, registers or fields that
overlap, a size that is no word, a name twice) is left out, kept or numbered, with a warning that names the line; --strict refuses it.

With --check nothing is written.

Keys of the TOML (examples/digits/npusim.toml and examples/devices show them in use; * must be given; any other key is refused):
  [device]            name*, title, source, usage: texts of the header; bar_bytes* unless there is svd; pe_count (1);
                      endian: "little" (default) or "big"; svd: a CMSIS-SVD file with the registers; peripheral: which of it
  [[register]]        name*, offset*, width* (bits), access* ("ro", "rw", "wo", "rc": a read clears), description;
                      [[register.field]] name*, bits* ("7:0" or "3"), description, values = { READY = 1 }
  [[record]]          one entry of the ring: name*, bytes*, description;
                      [[record.field]] name*, offset* (bytes), width* (8, 16, 32, 64), bits (part of it), description, values
  [roles.counter]     lo*, hi: registers; bits: valid ones; counts_down; hz: nominal, up to 10^15, 0 = unknown; lag_ns: a read may be so old;
                      order: "hi-lo-hi" (split halves, default), "lo-latches-hi", "single" (one load)
  [roles.ring]        record*, count* (entries), producer* (register: records written, running on); then either
                      offset: of the ring in the BAR, or memory = true: in host memory, the driver sets desc.ring.memory;
                      producer_bits: valid ones; producer_is_slot: it is the index of the next entry;
                      fields of the record, start or end at least: start, end, job, pe, op, sequence (low bits of its number),
                      status, execution, instruction; category: of the spans; execution_op: the operator that ends a job
  [[roles.pmu]]       an event counter: name*, lo*, hi, bits, order, counts_down; busy = true: it gives NPU Run
  [operators]         NAME = { code = 4, name = "Conv2d" }: what the op field holds

Exit code 0; 1: with --check, the header on disk is not what would be generated; 2: the description cannot be used.
"""

import ast
import hashlib
import os
import re
import sys
import tomllib
from types import SimpleNamespace

import npuprof_svd
from npuprof_common import Refused, check_output, read_bytes, write_whole
from npuprof_model import (UINT32_MAX, UINT64_MAX, WORD_WIDTHS, Field, Operator, Record, Register,
                           overlaps)

REQUIRED = object()
HZ_MAX = 10**15  # what npuprof_npu_open() takes
HEADERS = (".h", ".hh", ".hpp", ".hxx", ".inc")
OP_CODE_MAX = 1023  # Why: the table of names has one entry for each code up to the largest.
RING_FIELDS = ("sequence", "job", "start", "end", "pe", "op", "status", "execution", "instruction")
ORDERS = {"hi-lo-hi": "NPUPROF_NPU_HI_LO_HI", "lo-latches-hi": "NPUPROF_NPU_LO_LATCHES_HI",
          "single": "NPUPROF_NPU_SINGLE"}

# Every key a table may hold: its type and its default.
ROOT = {"device": (dict, REQUIRED), "register": (list, []), "record": (list, []), "roles": (dict, {}),
        "operators": (dict, {})}
DEVICE = {"name": (str, REQUIRED), "title": (str, ""), "source": (str, ""), "usage": (str, ""), "svd": (str, None),
          "peripheral": (str, None), "bar_bytes": (int, None), "endian": (str, None), "pe_count": (int, 1)}
REGISTER = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED), "access": (str, REQUIRED),
            "description": (str, ""), "field": (list, [])}
REGISTER_FIELD = {"name": (str, REQUIRED), "bits": (str, REQUIRED), "description": (str, ""), "values": (dict, {})}
RECORD = {"name": (str, REQUIRED), "bytes": (int, REQUIRED), "description": (str, ""), "field": (list, [])}
RECORD_FIELD = {"name": (str, REQUIRED), "offset": (int, REQUIRED), "width": (int, REQUIRED), "bits": (str, None),
                "description": (str, ""), "values": (dict, {})}
PMU_MAX = 8                # what npuprof samples
ROLES = {"counter": (dict, None), "ring": (dict, None), "pmu": (list, [])}
COUNTER = {"lo": (str, REQUIRED), "hi": (str, None), "bits": (int, None), "order": (str, None),
           "counts_down": (bool, False), "hz": (int, 0), "lag_ns": (int, 0)}
PMU = {"name": (str, REQUIRED), "lo": (str, REQUIRED), "hi": (str, None), "bits": (int, None), "order": (str, None),
       "counts_down": (bool, False), "busy": (bool, False)}
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

    def line(self, *key):
        return line_of(self.lines, self.path + key)

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
        if kind is str:
            for line in value.splitlines() if key == "usage" else [value]:
                if unfit_for_comment(line):
                    self.refuse(f"{key} in {self.where()} holds {unfit_for_comment(line)}", key)
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


def some(names):
    """The first of some names, for a message."""
    names = list(names)
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def pick(table, key, name, things, what):
    """The thing a role names."""
    for thing in things:
        if thing.name == name:
            return thing
    known = "use one of " + some(thing.name for thing in things) if things else "and there is none, add it"
    table.refuse(f"{key} in {table.where()} names {what} {name!r}, which does not exist, {known}", key)


def pick_register(table, key, path, registers):
    """The register a role names: NAME, CLUSTER.NAME, and an [index] for each array on the way."""
    index = re.findall(r"\[(\w*)\]", path)
    register = pick(table, key, re.sub(r"\[\w*\]", "", path), registers, "register")
    if not register.dims and not index:
        return register
    positions = tuple(dim.position(i) for i, dim in zip(index, register.dims))
    if len(index) != len(register.dims) or None in positions:
        arrays = ", ".join(map(str, register.dims)) or "no array"
        table.refuse(f"{key} in {table.where()} names {path!r}, but register {register.name} lies in {arrays}, "
                     "write one [index] for each", key)
    return register.element(positions)


def pick_readable(table, key, path, registers):
    register = pick_register(table, key, path, registers)
    if register.access in ("wo", "rc") or register.clears:
        access = "rc" if register.clears else register.access
        table.refuse(f"{key} in {table.where()} names register {path} with access {access}, "
                     "use one that can be read and stays as it is", key)
    if register.offset % (register.width // 8):
        table.refuse(f"{key} in {table.where()} names register {path} at {register.offset:#x}, which is misaligned, "
                     f"use one at a multiple of {register.width // 8}", key)
    return register


def read_counter(table, registers, schema=COUNTER):
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
        table.refuse(f"bits = {c.bits} in {table.where()}, but the registers hold {held}, use 1 to {held}", "bits")
    c.order = c.order if c.order is not None else "hi-lo-hi" if c.hi else "single"
    orders = ("hi-lo-hi", "lo-latches-hi") if c.hi else ("single",)
    if c.order not in orders:
        table.refuse(f"order {c.order!r} in {table.where()} does not go with {'a' if c.hi else 'no'} hi register, "
                     f"use {' or '.join(orders)}", "order")
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
            table.refuse(f"event counter {c.name!r} is busy, and so is {first.name!r}, say busy = true for one", "busy")
        counters.append(c)
    return counters


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
    if r.start is not None and r.start == r.end:
        table.refuse(f"start and end in {table.where()} are the same field {r.end}, take one out", "end")
    if device.counter is None:
        table.refuse(f"{table.where()} goes with no counter, add [roles.counter]: start and end are its ticks")
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
            if register.offset < end and r.offset < register.whole_end:
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


def read_svd(device, table, path, peripherals, strict):
    """Takes the registers, the size and the byte order of a device from an SVD file."""
    folder = os.path.dirname(table.file)
    if path is None:
        path = os.path.join(folder, device.svd)
    if not os.path.isfile(path):
        table.refuse(f"svd = {device.svd!r} in [device]: {path} is no file, correct it", "svd")
    svd = npuprof_svd.Device(read_bytes(path), path, strict)
    names = peripherals or ([device.peripheral] if device.peripheral is not None else [])
    found = svd.peripherals(names)
    print_warnings(svd)
    start = min(p.base for p in found)
    alone = len(found) == 1 and not found[0].dims
    if device.bar_bytes is None:
        device.bar_bytes = max(p.base - start + p.bytes + sum((d.count - 1) * d.stride for d in p.dims) for p in found)
    if device.endian is None and svd.big_endian:
        device.endian = "big"
    device.inputs.append((path, svd.data))
    for peripheral in found:
        dims = {id(dim): dim for register in peripheral.registers for dim in register.dims}
        for dim in () if alone else dims.values():
            dim.path = (peripheral.name, *dim.path)
        for register in peripheral.registers:
            register.offset += peripheral.base - start
            if not alone:
                register.name = f"{peripheral.name}.{register.name}"
                register.dims = peripheral.dims + register.dims
            device.registers.append(register)
    for _, second in overlaps(device.registers):
        second.alternate = True      # Why: peripherals of a vendor's file may share addresses.


def read_device(file, text, svd=None, peripherals=(), strict=False):
    """The checked device of a TOML text; `svd` and `peripherals` go before what it says itself. Raises Refused."""
    try:
        value = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        line = line[1] if line else text.count("\n") + 1
        said = re.sub(r"\(((?:'[^']*'|\"[^\"]*\")(?:, )?)+,?\)", lambda m: "[" + ".".join(ast.literal_eval(m[0])) + "]", str(error))
        raise Refused(f"{file}:{line}: TOML syntax: {said}, correct it there or just before") from None
    except (RecursionError, ValueError):
        raise Refused(f"{file}:1: nested too deeply, or a number too long, write it simpler") from None
    root = Table(file, line_numbers(text), (), value)
    root.read(ROOT)
    table = root.table("device")
    device = table.read(DEVICE)
    table.identifier(device.name, "device", "name")
    if clashes(device.name):
        table.refuse(f"device name {device.name!r} would clash with npuprof's own names, choose another", "name")
    device.inputs, device.registers = [(file, text.encode())], []
    device.from_svd = svd is not None or device.svd is not None
    if device.from_svd:
        read_svd(device, table, svd, peripherals, strict)
    elif peripherals or device.peripheral is not None:
        table.refuse("a peripheral is named, but no SVD file, add svd", "peripheral")
    if device.bar_bytes is None:
        table.refuse("[device] has no 'bar_bytes', add a whole number")
    device.endian = device.endian or "little"
    if device.endian not in ("little", "big"):
        table.refuse(f"endian {device.endian!r} in [device], use little or big", "endian")
    if not 1 <= device.pe_count < 2**32:
        table.refuse(f"pe_count = {device.pe_count} in [device], use 1 to 2^32-1", "pe_count")

    names = Names("register")
    for sub in root.tables("register"):
        register = read_register(sub)
        names.add(sub, register.name, "name")
        device.registers.append(register)
    for register in device.registers:
        if register.whole_end > device.bar_bytes:
            register.table.refuse(f"register {register.name} at {register.offset:#x} lies outside the BAR of "
                                  f"{device.bar_bytes:#x} bytes, correct offset or bar_bytes", "offset")
    for first, second in overlaps(device.registers):
        second.table.refuse(f"register {second.name} overlaps register {first.name} on line {first.table.line()}, move one",
                            "offset")

    names, device.records = Names("record"), []
    for sub in root.tables("record"):
        record = read_record(sub, device.endian == "big")
        names.add(sub, record.name, "name")
        device.records.append(record)

    device.operators = read_operators(root.table("operators"))
    roles = root.table("roles")
    has = roles.read(ROLES)
    device.counter = read_counter(roles.table("counter"), device.registers) if has.counter is not None else None
    device.pmu = read_pmu(roles, device.registers)
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
    """A comment on one line. Texts of SVD files come as they are."""
    text = "".join(c if c.isprintable() else "?" for c in " ".join(part for part in parts if part))
    while "*/" in text or "/*" in text:
        text = text.replace("*/", "* /").replace("/*", "/ *")
    return f"/* {text} */"


def c_name(*parts):
    """The capitals, digits and single underscores of an identifier behind a prefix, from any texts."""
    return "_".join(re.sub(r"[^A-Z0-9]+", "_", part.upper()).strip("_") or "X" for part in parts)


def clashes(name):
    """Would a device of that name have the names of npuprof's own?"""
    return re.match(r"npuprof(_|$)", name.lower())


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
        ends, repeats = {"POS": None, "MASK": None} | ({"COUNT": None, "STRIDE": None} if field.dims else {}), {}
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
            self.add("", "#if " + " || \\\n    ".join(conditions), f'#error "{what}: generate this header again"',
                     "#endif")


def c_end(h, register):
    """C for the end of a register, or of the last one of an array."""
    arrays = (f"({h.prefix}_{dim.c_name}_COUNT - 1u) * {h.prefix}_{dim.c_name}_STRIDE" for dim in register.dims)
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
        h.add("", comment(f"{label}: {register.access}, {register.width} bits{count}{reset}{clears}.", register.description))
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
    own = h.claim(device.table, "OP_COUNT")      # Why before the operators: one that is called COUNT is what to rename.
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
    return ", ".join((c.lo.c_offset(h.prefix), c.hi.c_offset(h.prefix) if c.hi else "0", number(c.bits), number(c.lo.width),
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


def generate(text, file, svd=None, peripherals=(), strict=False):
    """The header for a TOML text, as text. Raises Refused; `file` is the input's name in the refusals."""
    return header_of(read_device(file, text, svd, peripherals, strict))


def header_of(device):
    """The header for a checked device."""
    h = Header(device.name, device.from_svd)
    guard = start_header(h, device.table, f"{device.title or device.name}: registers, records and npuprof description.",
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


def print_warnings(svd):
    for warning in svd.warnings:
        print(warning, file=sys.stderr)


def generate_svd(svd, peripherals=()):
    """The header for the peripherals of an SVD file (npuprof_svd.Device), all without names. Raises Refused."""
    found = svd.peripherals(peripherals)
    prefix = c_name(svd.name)
    if clashes(prefix):
        svd.root.refuse(f"device name {svd.name!r} would clash with npuprof's own names, rename it")
    h = Header(prefix if prefix[0].isalpha() else f"D{prefix}", renames=True)
    guard = start_header(h, svd.root, comment(f"{svd.name}: registers.")[3:-3], [(svd.file, svd.data)], names=peripherals)
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
                       [f"{c_end(h, register)} > {h.prefix}_{name}_BYTES" for register in peripheral.registers])
    h.add(*nonempty(h), "", f"#endif /* {guard} */")
    return "\n".join(h.text) + "\n"


# ---- The command ----

def add_arguments(parser):
    parser.add_argument("device", metavar="DEVICE", help="a .toml or .svd file")
    parser.add_argument("-o", dest="header", metavar="HEADER", required=True)
    parser.add_argument("--roles", metavar="ROLES.toml", help="with DEVICE.svd: the device's name and the roles of its registers")
    parser.add_argument("--peripheral", metavar="NAME", action="append", default=[],
                        help="only this peripheral of the SVD file; may be repeated; default: all")
    parser.add_argument("--strict", action="store_true", help="refuse what else is a warning")
    parser.add_argument("--check", action="store_true", help="write nothing, fail if HEADER is stale or edited")


def names_svd(path):
    return path.lower().endswith((".svd", ".xml"))


def read_text(path):
    data = read_bytes(path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise Refused(f"{path}:{line}: byte {error.start} is not UTF-8, save the file as UTF-8") from None


def run(arguments):
    is_svd = names_svd(arguments.device)
    if not arguments.check:
        check_output(arguments.header, HEADERS, arguments.device, arguments.roles)
    if not is_svd and arguments.roles is not None:
        raise Refused(f"{arguments.device}: --roles goes with a .svd file; name that one, or add svd to the TOML")
    if is_svd and arguments.roles is None:
        svd = npuprof_svd.Device(read_bytes(arguments.device), arguments.device, arguments.strict)
        header = generate_svd(svd, arguments.peripheral)
        print_warnings(svd)
    else:
        toml = arguments.roles if is_svd else arguments.device
        device = read_device(toml, read_text(toml), arguments.device if is_svd else None, arguments.peripheral, arguments.strict)
        if not arguments.check:
            check_output(arguments.header, HEADERS, *(path for path, _ in device.inputs))
        header = header_of(device)
    header = header.encode()
    if not arguments.check:
        write_whole(arguments.header, header)
    elif not os.path.exists(arguments.header):
        print(f"{arguments.header}: does not exist, generate it from {arguments.device}")
        return 1
    elif read_bytes(arguments.header) != header:
        print(f"{arguments.header}: stale or edited, generate it again from {arguments.device}")
        return 1
    return 0
