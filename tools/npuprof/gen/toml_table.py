# SPDX-License-Identifier: MIT
"""TOML tables that know their lines. tomllib does not tell them: a small scanner finds the line of each
key."""

import re
from types import SimpleNamespace

from ..base.messages import Refused
from .c_text import unfit_for_comment
from .model import UINT64_MAX
from .schema import MOST, NAMES, PAIR, RATE, REQUIRED, TABLES, WORDS

# What a message calls a type.
TYPE_NAMES = {str: "a string", int: "a whole number", bool: "true or false", dict: "a table",
              list: "an array of tables", WORDS: "a name or [low part, high part]", NAMES: "a list of names",
              PAIR: "a list of two whole numbers", RATE: "a number", TABLES: "a table or an array of tables"}
# The Python type of each; where it is left out, that of its name.
TYPES = {WORDS: (str, list), NAMES: (list,), PAIR: (list,), TABLES: (dict, list),
         RATE: (int, float)}
SCALE_MAX = 2**32          # NPUPROF_NPU_SCALE_LIMIT_BITS_
TOKEN = re.compile(r'''
    """(?:\\.|[^\\])*?"""(?!") | \'\'\'.*?\'\'\'(?!') | "(?:\\.|[^"\\])*" | '[^']*'    # strings
    | \#[^\n]* | [\[\]{}\n] | [^"'\#\[\]{}\n]+''', re.DOTALL | re.VERBOSE)
KEY = re.compile(r'''[\s\[.]*("(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_-]+)\s*(?=[.\]=])''')


def plain(kind):
    """The type of a value, without its limits."""
    if isinstance(kind, (tuple, dict)):
        kind = type(next(iter(kind)))
    return int if isinstance(kind, range) else kind


def statements(text):
    """Yields (line, text) of each `key = value` and each [header], without comments. `text` is valid TOML."""
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


def element_lines(line, value):
    """Yields the line of each table in an array that is written as a value: key = [ {...}, {...} ]."""
    depth = 0
    for token in TOKEN.findall(value) if value.lstrip().startswith("[") else ():
        if token == "{" and depth == 1:
            yield line
        depth += (token in ("[", "{")) - (token in ("]", "}"))
        line += token.count("\n")


def line_numbers(text):
    """Path of each table and key, such as ("register", 0, "name") -> its line.

    Keys of inline tables are left out: line_of() gives them the line of the table."""
    lines, array_lengths, base = {(): 1}, {}, ()
    for line, statement in statements(text):
        keys, position = [], 0
        while match := KEY.match(statement, position):
            keys.append(match[1].strip("\"'"))
            position = match.end()
        if not statement.startswith("["):
            lines[base + tuple(keys)] = line
            for index, element in enumerate(element_lines(line, statement[position + 1:])):
                lines[(*base, *keys, index)] = element
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
    """The line of a key, else of what is inside it, else of the table around it."""
    if path in lines:
        return lines[path]
    inside = [line for known, line in lines.items() if known[:len(path)] == path]
    return min(inside) if inside else line_of(lines, path[:-1])


class Table:
    """A TOML table that knows its place. refuse() names the line of a key, or of the table."""

    def __init__(self, file, lines, path, value, warnings=None):
        self.file, self.lines, self.path, self.value = file, lines, path, value
        self.warnings = [] if warnings is None else warnings     # one list for all tables of a text

    def refuse(self, sentence, *key):
        raise Refused(f"{self.file}:{line_of(self.lines, self.path + key)}: {sentence}")

    def warn(self, sentence, *key):
        self.warnings.append(f"{self.file}:{line_of(self.lines, self.path + key)}: warning: {sentence}")

    def line(self, *key):
        return line_of(self.lines, self.path + key)

    def where(self):
        """The table as its header would name it: [roles.ring], [[register]]."""
        names = ".".join(part for part in self.path if isinstance(part, str))
        if self.path and isinstance(self.path[-1], int):
            return f"[[{names}]]"
        return f"[{names}]" if names else "the file"

    def read(self, schema):
        """The values of the schema's keys, or their defaults."""
        for key in self.value:
            if key not in schema:
                self.refuse(f"unknown key {key!r} in {self.where()}, known are {', '.join(schema)}", key)
        result = {}
        for key, (kind, default) in schema.items():
            if key in self.value:
                result[key] = self.typed(key, kind)
            elif default is REQUIRED:
                self.refuse(f"{self.where()} has no {key!r}, add {TYPE_NAMES[plain(kind)]}")
            else:
                result[key] = default
        return SimpleNamespace(**result)

    def typed(self, key, kind):
        """The value of a key, which must have that type."""
        value, where = self.value[key], f"{key} in {self.where()}"
        items = {WORDS: (str,), NAMES: (str,), PAIR: (int,)}.get(kind if isinstance(kind, str) else None)
        # Why not isinstance: true is an int, too.
        if type(value) not in TYPES.get(plain(kind), (plain(kind),)) or (
                items and type(value) is list and any(type(item) not in items for item in value)):
            self.refuse(f"{where} is not {TYPE_NAMES[plain(kind)]}, write one", key)
        if isinstance(kind, range) and value not in kind:
            self.refuse(f"{key} = {value} in {self.where()}, use {kind[0]} to {kind[-1]}", key)
        if isinstance(kind, (tuple, dict)) and value not in kind:
            self.refuse(f"{key} = {value!r} in {self.where()}, use one of {', '.join(map(str, kind))}", key)
        if kind is PAIR and (len(value) != 2 or not all(1 <= number <= SCALE_MAX for number in value)):
            self.refuse(f"{where} is {value}, write two numbers, each 1 to {SCALE_MAX}", key)
        if kind is int and not 0 <= value <= UINT64_MAX:
            self.refuse(f"{where} is outside 0 to 2^64-1, write a number inside", key)
        if key in MOST and len(value) > MOST[key]:
            self.refuse(f"{where} has {len(value)}, use at most {MOST[key]}", key)
        if kind is str:
            for line in value.splitlines() if key == "usage" else [value]:
                if unfit_for_comment(line):
                    self.refuse(f"{where} holds {unfit_for_comment(line)}", key)
        return value

    def check_pairs(self, needs, either=()):
        """Refuses a key without the one that it needs, and two of which one is not looked at."""
        for key, other in needs.items():
            if key in self.value and other not in self.value:
                self.refuse(f"{key} in {self.where()} goes with {other}, add that, or take {key} out", key)
        for key, other in either:
            if self.value.get(key, False) is not False and self.value.get(other, False) is not False:
                self.refuse(f"{key} in {self.where()} does not go with {other}, take one out", key)

    def table(self, *keys):
        """A table inside this one; an empty one if there is none."""
        value = self.value
        for key in keys:
            value = value.get(key, {}) if isinstance(value, dict) else value[key]
        return Table(self.file, self.lines, self.path + keys, value, self.warnings)

    def tables(self, key):
        """The tables of an array of tables."""
        for index, value in enumerate(self.value.get(key, [])):
            if type(value) is not dict:
                self.refuse(f"{key} in {self.where()} is not an array of tables, "
                            f"write [[{'.'.join([*(k for k in self.path if isinstance(k, str)), key])}]]",
                            key)
            yield self.table(key, index)

    def identifier(self, name, what, *key):
        """Refuses a name that is no C name. Why underscores only single and inside: others are reserved."""
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*", name):
            self.refuse(f"{what} name {name!r} is no C name, use letters, digits and single underscores",
                        *key)


class Names:
    """The names of one kind. Names that differ only in case are the same. Why: C names are written in
    capitals."""

    def __init__(self, what):
        self.what, self.lines = what, {}

    def add(self, table, name, *key):
        table.identifier(name, self.what, *key)
        line = line_of(table.lines, table.path + key)
        if name.upper() in self.lines:
            first = self.lines[name.upper()]
            table.refuse(f"duplicate {self.what} name {name!r}, first on line {first}, rename one", *key)
        self.lines[name.upper()] = line
