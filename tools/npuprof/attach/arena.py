# SPDX-License-Identifier: MIT
"""An arena of another process, as src/format/arena.h describes it: its header, how much it has lost, and how
a copy forgets what was recorded too late."""

import collections
import struct

from ..base.messages import Refused

FULL, OVERWRITTEN, CAUSES = 0, 4, 16
HEADER = 640
CONTROL, ARG, RESULT, ID = 0xFFFF0, 0xFFFF2, 0xFFFF8, 0xFFFFF
MASK44, MASK64 = (1 << 44) - 1, (1 << 64) - 1
RECORDS = (1, 2)                # the states of a chunk with records
CHUNK = 32

Header = collections.namedtuple("Header", "arena_bytes chunks_offset chunk_bytes chunk_count chunk_next "
                                          "overwritten_offset slot_bytes slot_first when_full")


def read_header(data):
    """The header at the start of these bytes, checked; None: it is none."""
    magic, endian, form, layout, _, arena_bytes = struct.unpack_from("=8s4IQ", data)
    offset, size, count, used, overwritten, _, slot_bytes, slot_first = struct.unpack_from("=8I", data, 364)
    when_full, = struct.unpack_from("=I", data, 404)
    good = (magic == b"NPUPROF\n" and endian == 0x01020304 and form == 1 and layout == 1 and used <= count
            and size >= 64 and HEADER <= overwritten <= offset <= offset + size * count <= arena_bytes)
    return Header(arena_bytes, offset, size, count, used, overwritten, slot_bytes, slot_first,
                  when_full) if good else None


def header(copy):
    """The header of a copy's arena, as it is now."""
    found = read_header(copy.process.read(copy.base(), HEADER))
    if not found:
        raise Refused(f"{copy.process.pid}: what its words for tools point to is no arena")
    return found


def losses(image):
    """How much is lost in a copy, by cause, as npuprof_image_sum_lost_ counts it."""
    h = read_header(image)
    counts = list(struct.unpack_from(f"={CAUSES}Q", image, 72))
    for n in range(h.chunk_next):
        count, following = struct.unpack_from("=2Q", image, h.overwritten_offset + 16 * n)
        counts[OVERWRITTEN] += following - 1 if following else count
    at, left = h.slot_first, 1 << 20
    while at and left and at * 16 + 40 <= len(image):
        counts[FULL] += struct.unpack_from("=Q", image, at * 16 + 32)[0]
        at, left = struct.unpack_from("=I", image, at * 16 + 8)[0], left - 1
    return counts


def is_later(ticks, until):
    """Does this stamp lie behind that one? Both count modulo 2^64."""
    return 0 < (ticks - until & MASK64) < 1 << 63


def cut(image, until):
    """Takes out of a copy what began later than this: the next recording has it. A slot's records follow each
    other, so in one of its chunks the rest is later, and in the chunks behind that all is."""
    h, owners = read_header(image), collections.defaultdict(list)
    for n in range(h.chunk_next):
        at = h.chunks_offset + n * h.chunk_bytes
        base, position, owner, _, _, state, _ = struct.unpack_from("=2Q3I2H", image, at)
        if state in RECORDS and owner:
            owners[owner].append((position, at, is_later(base + (1 << 40), until)))
    for chunks in owners.values():
        chunks.sort()
        first = next((n for n, chunk in enumerate(chunks) if chunk[2]), len(chunks))
        for _, at, _ in chunks[max(0, first - 1):]:
            cut_chunk(image, at, at + h.chunk_bytes, until)


def cut_chunk(image, at, end, until):
    base, = struct.unpack_from("=Q", image, at)
    moved, = struct.unpack_from("=H", image, at + 30)
    first = unit = at + CHUNK
    while unit < end:
        w0, w1 = struct.unpack_from("=2Q", image, unit)
        mark, size, start = w0 & ID, 16, base + ((w0 >> 20) - base & MASK44)
        if not w0:
            return
        if unit < first + 16 * moved:
            start, size = struct.unpack_from("=Q", image, unit + 24)[0], 32
        elif mark == ARG:
            size += max(0, (w0 >> 52) - 8 + 15) // 16 * 16
        if (mark < CONTROL or mark == RESULT) and is_later(start, until):
            struct.pack_into("=H", image, at + 30, min(moved, (unit - first) // 16))
            image[unit:end] = bytes(end - unit)
            return
        unit += size
