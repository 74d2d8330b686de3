# SPDX-License-Identifier: MIT
"""Where the device says how far it has come: the producer index of a ring, or of all jobs."""

from dataclasses import dataclass

from .counters import read_requirements
from .model import UINT32_MAX
from .pick import choice, pick_register_field
from .schema import PROGRESS, UNITS


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
    if (r.producer is None) == (r.producer_at is None):
        table.refuse(f"{table.where()} needs either producer (a register) or producer_at (bytes into the "
                     "memory)", "producer" if r.producer is None else "producer_at")
    if r.producer is not None:
        if r.producer_width is not None:
            table.refuse(f"producer_width in {table.where()} goes with producer_at, take it out",
                         "producer_width")
        register, field = pick_register_field(table, "producer", r.producer, device.registers)
        return register, field, register.offset, read_register_width(table, register, device)
    width = 32 if r.producer_width is None else r.producer_width
    if width not in (16, 32, 64):
        table.refuse(f"producer_width = {width} in {table.where()}, use 16, 32 or 64", "producer_width")
    if r.producer_at % (width // 8):
        table.refuse(f"producer_at = {r.producer_at} in {table.where()} is misaligned, "
                     f"use a multiple of {width // 8}", "producer_at")
    return None, None, r.producer_at, width


def read_unit(table, r):
    """What the index counts, from producer_is or the older producer_is_slot."""
    if r.producer_is is None:
        return "slot" if r.producer_is_slot else "count"
    if "producer_is_slot" in table.value:
        table.refuse(f"producer_is and producer_is_slot in {table.where()} say the same, "
                     "take producer_is_slot out", "producer_is_slot")
    return choice(table, "producer_is", r.producer_is, UNITS)


def read_index(table, r, device):
    """The index that a table with the keys of INDEX describes; r: what it holds."""
    register, field, at, width = read_place(table, r, device)
    held = field.bits if field else register.width if register else width
    bits = held if r.producer_bits is None else r.producer_bits
    if not 1 <= bits <= held:
        table.refuse(f"producer_bits = {bits} in {table.where()}, use 1 to {held}", "producer_bits")
    index = Index(register, field, at, width, bits, read_unit(table, r), r.laps_at, r.laps_first or 0,
                  r.producer_wrap_bit)
    if index.wrap_bit is not None:
        check_wrap(table, index)
    if r.laps_at is None:
        if r.laps_first is not None:
            table.refuse(f"{table.where()} has laps_first but no laps_at, add it", "laps_first")
        return index
    if index.unit not in ("slot", "byte_offset"):
        table.refuse(f"laps_at in {table.where()} goes with an index that begins again in each lap, "
                     'say producer_is = "slot" or "byte_offset"', "laps_at")
    if r.laps_at % (width // 8):
        table.refuse(f"laps_at = {r.laps_at} in {table.where()} is misaligned, "
                     f"use a multiple of {width // 8}", "laps_at")
    if abs(r.laps_at - at) < width // 8:
        table.refuse(f"laps_at in {table.where()} overlaps the index, correct one", "laps_at")
    if index.laps_first > UINT32_MAX:
        table.refuse(f"laps_first = {index.laps_first} in {table.where()}, use at most {UINT32_MAX}",
                     "laps_first")
    return index


def check_wrap(table, index):
    """The wrap bit is a bit of the same word, beside those of a slot."""
    where = table.where()
    if index.unit not in ("slot", "byte_offset") or index.laps_at is not None:
        table.refuse(f"producer_wrap_bit in {where} goes with an index that begins again in each lap, and "
                     'without laps_at, say producer_is = "slot"', "producer_wrap_bit")
    if not 0 <= index.wrap_bit < index.width or index.lsb <= index.wrap_bit < index.lsb + index.bits:
        table.refuse(f"producer_wrap_bit = {index.wrap_bit} in {where} is outside the word of {index.width} "
                     "bits, or a bit of the index, correct one, or give producer_bits", "producer_wrap_bit")


def check_count(table, count, index, entry_bytes=1):
    """Refuses a number of entries that the index cannot count."""
    limit = 2**index.bits
    if index.unit in ("bytes", "byte_offset"):
        limit //= entry_bytes
    if not 1 <= count <= min(limit, UINT32_MAX):
        table.refuse(f"count = {count} in {table.where()}, "
                     f"use 1 to what {index.bits} producer bits can count", "count")
    if index.unit == "count" and index.bits < 64 and 2**index.bits % count:
        table.refuse(f"count = {count} in {table.where()} loses its place when the producer wraps, "
                     "use a power of two or producer_is_slot", "count")


def read_progress(table, device):
    """One index for all jobs: those before it are done."""
    p = table.read(PROGRESS)
    p.index = read_index(table, p, device)
    if p.memory != p.index.in_memory:
        table.refuse(f"{table.where()} needs memory = true with producer_at, and only then", "memory")
    in_bytes = p.index.unit in ("bytes", "byte_offset")
    if in_bytes != (p.entry_bytes is not None):
        table.refuse(f"{table.where()} needs entry_bytes with an index in bytes, and only then",
                     "producer_is" if in_bytes else "entry_bytes")
    if p.entry_bytes is not None and not 1 <= p.entry_bytes <= UINT32_MAX:
        table.refuse(f"entry_bytes = {p.entry_bytes} in {table.where()}, use 1 to {UINT32_MAX}",
                     "entry_bytes")
    in_laps = p.index.unit in ("slot", "byte_offset")
    if in_laps != (p.count is not None):
        table.refuse(f"{table.where()} needs count with an index that begins again in each lap, "
                     "and only then", "count")
    if p.count is not None:
        check_count(table, p.count, p.index, p.entry_bytes or 1)
    read_requirements(table, device)
    return p
