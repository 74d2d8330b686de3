# SPDX-License-Identifier: MIT
"""Streams of a firmware, made and read here by the words of src/format/compact.h alone: the truth that the
tests of npuprof-convert compare with."""
import struct
import zlib

HEADER, HEAD, CELL = 96, 16, 16       # HEADER with the HEAD in front of it
MARK = 0x5453504E
STREAM = 2
HZ = 1000000
OPEN, CLOSE = 0x8000, 70


class Target:
    """Writes a stream as a target with a ring of `cells` cells would. Spans are numbered by their call site's
    address, so a name is "@" and 8 digits."""

    def __init__(self, cells=256, order="<", start=1000):
        self.cells, self.order, self.start, self.clock = cells, order, start, start
        self.bytes = bytearray()
        self.pending, self.begins = [], []
        self.sent, self.parts = 0, 0
        self.places = []                  # (offset, bytes) of each header and part
        self.spans, self.parts_of = {}, {}
        self.lengths = {}                 # of the records that have more than one cell
        self.lost = 0

    def header(self):
        words = (0x01020304, 1, 4, HEADER - HEAD)
        body = b"NPUPROF\n" + struct.pack(self.order + "4I4B", *words, 32, 0, 4, STREAM << 4)
        body += struct.pack(self.order + "11I", self.cells, 0, self.lost, 0, self.clock >> 16, HZ, 0,
                            self.start, 0, 0, 0)
        body += struct.pack(self.order + "2I", 0, 0x80000000)
        self.put_part((HEADER - HEAD) // CELL, 0, body)

    def put_part(self, count, lead, body):
        rest = struct.pack(self.order + "I2H", self.sent & 0xFFFFFFFF, count, lead) + body
        self.put(struct.pack(self.order + "2I", MARK, zlib.crc32(rest)) + rest)

    def put(self, item):
        self.places.append((len(self.bytes), len(item)))
        self.bytes += item

    def part(self, count=16):
        """Sends up to `count` of the cells that wait."""
        cells, begins = self.pending[:count], self.begins[:count]
        del self.pending[:count], self.begins[:count]
        if self.parts % 64 == 0:
            self.header()
        lead = begins.index(True) if True in begins else len(begins)
        self.sent += len(cells)
        self.put_part(len(cells), lead, b"".join(cells))
        self.parts += 1

    def cell(self, ref, start, end, low, high, begins=True):
        self.pending.append(struct.pack(self.order + "3I2H", ref, start & 0xFFFFFFFF, end & 0xFFFFFFFF, low,
                                        high))
        self.begins.append(begins)

    def span(self, site, ticks):
        """A closed span of one cell."""
        start = self.clock
        self.clock += ticks
        self.spans[self.sent + len(self.pending)] = (f"@{site:08x}", start - self.start, ticks)
        self.cell(site, start, self.clock, start >> 32, self.clock >> 32 & 0x7FFF)
        self.clock += 1

    def event(self, site, value):
        """A record of three cells: a span with two arguments."""
        start = self.clock
        self.clock += 5
        self.spans[self.sent + len(self.pending)] = (f"@{site:08x}", start - self.start, 5)
        self.lengths[self.sent + len(self.pending)] = 3
        self.cell(site | 1, start, self.clock, start >> 32, self.clock >> 32 & 0x7FFF)
        for more in (0x80000000, 0):
            field = struct.pack(self.order + "4I", 0x20000, 2 | more | (3 << 20 if more else 0), value, 0)
            self.pending.append(field)
            self.begins.append(False)
        self.clock += 1


def parts_at(data, order):
    """Every undamaged part and header: (offset, number behind it, count, lead, whether it is a header)."""
    mark = struct.pack(order + "I", MARK)
    at = data.find(mark)
    while at >= 0:
        if at + HEAD <= len(data):
            _, crc, behind, count, lead = struct.unpack_from(order + "3I2H", data, at)
            end = at + HEAD + CELL * count
            if 0 < count <= 16 and end <= len(data) and zlib.crc32(data[at + 8:end]) == crc:
                yield at, behind, count, lead, data[at + HEAD:at + HEAD + 8] == b"NPUPROF\n"
        at = data.find(mark, at + 1)


def parts_in(data, order="<"):
    """Every undamaged part in the bytes: number of the first cell: (count, lead, offset)."""
    found = {}
    for at, behind, count, lead, is_header in parts_at(data, order):
        if not is_header:
            found.setdefault((behind - count) & 0xFFFFFFFF, (count, min(lead, count), at))
    return found


def headers_in(data, order="<"):
    """Every undamaged header in the bytes: (offset, number of the cell behind it)."""
    return [(at, behind) for at, behind, _, _, is_header in parts_at(data, order) if is_header]
