# SPDX-License-Identifier: MIT
"""Where the device says how far it has come: the producer index of a ring, or of all jobs. What C refuses of
it is left to C."""

from dataclasses import dataclass

from .counters import read_requirements
from .pick import pick_register_field
from .schema import EITHER, INDEX, NEEDS, PROGRESS


@dataclass(eq=False)
class Index:
    """An index in a register, or in memory."""
    register: object       # None: it lies in memory, `at` bytes on
    field: object          # of the register; None: all of it
    at: int
    width: int             # bits of the load
    bits: int
    unit: str              # a key of UNITS
    laps_at: int           # None: nothing counts the laps
    laps_first: int
    wrap_bit: int          # of the word, the other one in each lap; None: there is none

    @property
    def lsb(self):
        return self.field.lsb if self.field else 0

    @property
    def in_memory(self):
        return self.register is None

    @property
    def end(self):
        """The end in memory."""
        return max(self.at + self.width // 8, 0 if self.laps_at is None else self.laps_at + self.width // 8)


def has_index(r):
    """Whether a table has a key of an index."""
    return any(key in r.table.value for key in INDEX)


def read_register_width(table, register, device):
    """The bits of the load that reads the index. Why 32 for less: devices take such loads in any case."""
    offset, width = register.offset, register.width
    if width == 64:
        return 64
    if offset % 4 == 0 and offset + 4 <= device.bar_bytes and (width == 32 or device.endian == "little"):
        return 32
    if width == 16:
        return 16
    table.refuse(f"producer in {table.where()} names register {register.name}, "
                 "which one aligned 32-bit load cannot read, use one of 32 bits", "producer")


def read_place(table, r, device):
    """Where the index lies: (register, field, at, width)."""
    if r.producer is None and r.producer_at is None:
        table.refuse(f"{table.where()} needs either producer (a register) or producer_at (bytes into the "
                     "memory)", "producer")
    if r.producer is None:
        return None, None, r.producer_at, r.producer_width or 32
    register, field = pick_register_field(table, "producer", r.producer, device.registers)
    return register, field, register.offset, read_register_width(table, register, device)


def read_index(table, r, device):
    """The index that a table with the keys of INDEX describes; r: what it holds."""
    register, field, at, width = read_place(table, r, device)
    held = field.bits if field else register.width if register else width
    bits = held if r.producer_bits is None else r.producer_bits
    if not 1 <= bits <= held:
        table.refuse(f"producer_bits = {bits} in {table.where()}, use 1 to {held}", "producer_bits")
    if r.laps_at is not None and abs(r.laps_at - at) < width // 8:
        table.refuse(f"laps_at in {table.where()} overlaps the index, correct one", "laps_at")
    # producer_is_slot is the old way to say "slot".
    unit = r.producer_is or ("slot" if r.producer_is_slot else "count")
    return Index(register, field, at, width, bits, unit, r.laps_at, r.laps_first or 0, r.producer_wrap_bit)


def read_progress(table, device):
    """One index for all jobs: those before it are done."""
    p = table.read(PROGRESS)
    p.table = table
    table.check_pairs({key: other for key, other in NEEDS.items() if key in INDEX}, EITHER)
    p.index = read_index(table, p, device)
    where, unit = table.where(), p.index.unit
    if p.memory != p.index.in_memory:
        table.refuse(f"{where} needs memory = true with producer_at, and only then", "memory")
    if p.entry_bytes is not None and unit not in ("bytes", "byte_offset"):
        table.refuse(f"{where} needs entry_bytes with an index in bytes, and only then", "entry_bytes")
    if p.count is not None and unit not in ("slot", "byte_offset"):
        table.refuse(f"{where} needs count with an index that begins again in each lap, and only then",
                     "count")
    if p.count is not None and p.count * (p.entry_bytes or 1) > 2**p.index.bits:
        table.refuse(f"count = {p.count} in {where}, use 1 to what {p.index.bits} producer bits can count",
                     "count")
    read_requirements(table, device)
    return p
