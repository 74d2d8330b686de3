# SPDX-License-Identifier: MIT
"""Which lines of a driver tell of a job: devices.toml, and a file of the user of the same form."""

import pathlib
import re
import tomllib
from collections import namedtuple

from ..base.files import read_bytes
from ..base.messages import Refused

BUILT_IN = pathlib.Path(__file__).with_name("devices.toml")
STEPS = ("submit", "handed", "start", "end")
TEXTS, FLAGS = ("name", "lane"), ("in_order", "fifo", "after_doorbell", "fence")
PIECE = re.compile(r"\{(\w+)\}")
NUMBER = re.compile(r"-?(?:0x[\da-fA-F]+|\d+)")
ADDRESS = re.compile(r"(?:0x)?[\da-f]{8,16}\b|\(null\)|\(efault\)|\(ERROR")
# One way to tell a step of a job. system: "" is any
Pattern = namedtuple("Pattern", "device step system match")


class Device:
    """A driver's map: its texts, its flags, its key."""

    def __init__(self, table):
        self.name, self.lane, self.key = table["name"], table.get("lane", ""), tuple(table["key"])
        self.in_order, self.fifo, self.after_doorbell, self.fence = (table.get(flag, False) for flag in FLAGS)


class Patterns:
    """The maps of all drivers. of_event: name of an event -> its Patterns. addresses: how many events of a
    driver had an address where the text should be, by event."""

    def __init__(self, paths=()):
        self.of_event, self.addresses = {}, {}
        for path in (*paths, BUILT_IN):                # the user's come first
            self.read(path)

    def read(self, path):
        try:
            tables = tomllib.loads(read_bytes(path).decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Refused(f"{path}: no TOML: {error}") from None
        devices = tables.get("device")
        if not isinstance(devices, list) or not devices or set(tables) != {"device"}:
            raise Refused(f"{path}: it must have [[device]] tables and nothing else")
        for number, table in enumerate(devices, 1):
            self.add(f"{path}: device {number}", table)

    def add(self, where, table):
        """Takes the map of one driver."""
        for key, value in table.items():
            kind = (str if key in TEXTS else bool if key in FLAGS else list if key == "key" else dict)
            if key not in (*TEXTS, *FLAGS, *STEPS, "key") or type(value) is not kind:
                raise Refused(f"{where}: {key} = {value!r}: not a member of a device; "
                              f"it has {', '.join((*TEXTS, 'key', *STEPS, *FLAGS))}")
        lacks = next((key for key in ("name", "key", "submit", "end") if key not in table), None)
        if lacks:
            raise Refused(f"{where}: it has no {lacks}")
        device = Device(table)
        for step in STEPS:
            if step in table:
                self.add_step(f"{where}: {step}", device, step, table[step])

    def add_step(self, where, device, step, table):
        matches = table.get("match")
        matches = [matches] if isinstance(matches, str) else matches
        if (set(table) != {"event", "match"} or type(table["event"]) is not str or type(matches) is not list
                or not all(type(match) is str for match in matches)):
            raise Refused(f'{where}: it must be {{ event = "NAME", match = "TEXT" }}')
        system, _, name = table["event"].rpartition(":")
        needed = {*device.key, *(PIECE.findall(device.name + device.lane) if step == "submit" else ())}
        for match in matches:
            missing = needed - set(PIECE.findall(match))
            if missing:
                raise Refused(f"{where}: match has no {{{min(missing)}}}")
            pattern = Pattern(device, step, system, compiled(match))
            self.of_event.setdefault(name, []).append(pattern)

    def events(self):
        """The events that they need, as system/name, where they name the system."""
        return dict.fromkeys(f"{pattern.system}/{name}" for name, patterns in self.of_event.items()
                             for pattern in patterns if pattern.system)

    def find(self, event):
        """Yields (Device, step, fields) for what an event tells; fields are texts, or whole numbers."""
        own = self.of_event.get(event.name)
        for pattern in own or ():
            if pattern.system and event.system and pattern.system != event.system:
                continue
            found = pattern.match(event.text)
            if found:
                yield pattern.device, pattern.step, {k: value_of(v) for k, v in found.groupdict().items()}
                return
        if own and ADDRESS.match(event.text):
            self.addresses[event.name] = self.addresses.get(event.name, 0) + 1


def compiled(match):
    """The function that matches a text of TOML from its begin; what stands behind it is allowed."""
    parts, seen = PIECE.split(match), set()
    pattern = re.escape(parts[0])
    for n in range(1, len(parts), 2):
        name, literal = parts[n], parts[n + 1]
        some = r".+?" if literal else r"[^\s,]+"
        pattern += f"(?:{some})" if name == "_" else f"(?P={name})" if name in seen else f"(?P<{name}>{some})"
        pattern += re.escape(literal)
        seen.add(name)
    return re.compile(pattern + r"(?![\w])").match


def value_of(text):
    """A field: a whole number, decimal or hexadecimal, else its text."""
    return int(text, 0 if "x" in text else 10) if NUMBER.fullmatch(text) else text


def filled(text, fields):
    """A name or lane with the fields of a line in it."""
    return PIECE.sub(lambda piece: str(fields[piece[1]]), text)
