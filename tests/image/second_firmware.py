# SPDX-License-Identifier: MIT
"""The layouts COMPACT and PARTS, read by src/format/layouts.h and src/format/compact.h alone, with the names
of the firmware's ELF file."""
import struct
import zlib

from image.second_host import BOOL, INT, KINDS, NESTING, REAL, STR, STR_CUT, STR_NULL, UINT, Trace

MAGIC = b"NPUPROF\n"
HEADER = ("magic endian format layout header_bytes clock_bits context_bits pointer_bytes build_kind cells "
          "used lost lost_notes clock hz_low hz_high first_low first_high address_low address_high build "
          "crc").split()
PART_MARK, STREAM_MARK = 0x5442504E, 0x5453504E
OPEN, CLEARED = 0x8000, 2
CLAIMED = 0x4000
(THREAD, METADATA, PAUSE, DEVICE, ANCHOR, COUNT, CLOSE, SLEPT, NAME_OF, RESULT) = range(64, 74)
MORE = 1 << 31
(F_NAME, F_CATEGORY, F_TRACK, F_VALUE, F_SECOND, F_THIRD, F_RESULT) = range(8, 15)
TEXTS = {STR, STR_CUT, F_NAME, F_CATEGORY, F_TRACK}
SAMPLED, BY_HOST = 0x1000000, 0x2000000
LOST_FULL, LOST_OVERWRITTEN, LOST_NOTES = 0, 4, 9
LOST_BY_RESULT = {25: 10, 35: 11}              # of "no device span": the device was busy; too many calls
KEEP_NEWEST, STREAM = 1, 2


class Elf:
    """The bytes of an ELF file by address, loaded or not: for names."""

    def __init__(self, data):
        wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
        self.sections, self.order = [], order
        self.machine = struct.unpack_from(order + "H", data, 18)[0]
        at, = struct.unpack_from(order + ("Q" if wide else "I"), data, 40 if wide else 32)
        size, count = struct.unpack_from(order + "HH", data, 58 if wide else 46)
        for n in range(count):
            words = struct.unpack_from(order + ("IIQQQQ" if wide else "IIIIII"), data, at + n * size)
            _, kind, _, address, offset, length = words
            if kind == 1 and length:
                self.sections.append((address, data[offset:offset + length]))

    def bytes(self, address, count=None):
        """count bytes, or those up to a 0."""
        for start, data in self.sections:
            if start <= address < start + len(data):
                rest = data[address - start:]
                return rest[:count] if count else rest.split(b"\0")[0]
        return b""


class Reader:
    def __init__(self, order, elf):
        self.order, self.elf, self.trace = order, elf, Trace(order)
        self.number, self.cells, self.spans = 0, {}, {}
        self.before = None                # the start of the record before
        self.sent = {}                    # by a stream
        self.names, self.waiting, self.taken = {}, [], {}

    # ---- Names

    def pointer(self, word):
        """The address of a constant of which a cell holds the low 32 bits."""
        header = self.trace.header
        near = header["address_high"] << 32 | header["address_low"]
        if header["pointer_bytes"] == 8:
            word += near & ~0xFFFFFFFF
            word += 1 << 32 if near - word > 1 << 31 else -(1 << 32) if word - near > 1 << 31 else 0
        return word + (0x800000 if self.elf and self.elf.machine == 83 else 0)      # AVR: data

    def string(self, word):
        return self.elf.bytes(self.pointer(word)).decode("utf-8", "replace") if word else ""

    def site(self, word):
        """(kind, name, category) of a call site."""
        size = self.trace.header["pointer_bytes"]
        code = {2: "H", 4: "I", 8: "Q"}[size]
        behind = (2 * size + 4 + size - 1) // size * size
        data = self.elf.bytes(self.pointer(word), behind + size).ljust(behind + size, b"\0")
        name, category = struct.unpack_from(self.order + 2 * code, data)
        line = int.from_bytes(data[2 * size + 1:2 * size + 4], "little")
        file = struct.unpack_from(self.order + code, data, behind)[0] if line else 0
        avr = 0x800000 if self.elf.machine == 83 else 0
        name, category, file = (self.elf.bytes(address + avr).decode("utf-8", "replace") if address else ""
                                for address in (name, category, file))
        self.trace.sites[word] = (file, line)
        return data[2 * size], name, category

    # ---- Records

    def fields(self, number):
        """The field cells from this one on: {type: value}, {key: argument}, and how many cells they are."""
        said, arguments, first = {}, {}, number
        while number in self.cells:
            cell = self.cells[number]
            key, word, low, high = struct.unpack(self.order + "4I", cell)
            kind, length = word & 0xFF, word >> 8 & 0xFFF
            number += 1
            value = low | high << 32
            if kind in TEXTS:
                more = max(0, length - 8 + 15) // 16
                text = cell[8:] + b"".join(self.cells.get(number + n, bytes(16)) for n in range(more))
                number, value = number + more, text[:length].decode("utf-8", "replace")
            elif kind == INT:
                value -= 1 << 64 if value >> 63 else 0
            elif kind == REAL:
                value = struct.unpack("<d", struct.pack("<Q", value))[0]
            elif kind == BOOL:
                value = bool(value)
            elif kind == STR_NULL:
                value = None
            elif kind == F_RESULT:
                value = ("result", value)
            elif kind not in (UINT, F_VALUE, F_SECOND, F_THIRD, F_RESULT):
                self.trace.unknown["types of fields"] += 1
                kind = None
            if kind is not None and (kind < F_NAME or kind == F_RESULT):
                arguments[self.string(key)] = value
            elif kind is not None:
                said[kind] = value
            if not word & MORE:
                break
        return said, arguments, number - first

    def stamp(self, low, bits):
        """A start, of which `bits` bits are known: the nearest one to the start of the record before."""
        header, whole = self.trace.header, 1 << bits
        least = self.before - whole // 2
        if self.is_ring:               # its bits above follow from `clock`
            clock = header["clock"] << (16 if header["clock_bits"] >= 24 else header["clock_bits"] // 2)
            clock = header["first"] + (clock - header["first"]) % whole
            least = clock - whole // 4 * 3
        return least + (low - least) % whole

    def record(self, number):
        """The record that begins at a cell: how many cells it has."""
        ref, low, end, high = struct.unpack(self.order + "4I", self.cells[number])
        half = struct.unpack(self.order + "2H", self.cells[number][12:])
        if ref == 0:
            return max(end, 1)
        header = self.trace.header
        is_site = not ref & CLEARED
        kind = None if is_site else ref >> 8 & 0xFF
        is_nothing = kind == 0 or self.is_ring and half[1] & OPEN and half[1] & CLAIMED
        said, arguments, count = {}, {}, 0
        if ref & 1 and not (self.is_ring and is_nothing):
            said, arguments, count = self.fields(number + 1)
        if ref & 1 and self.is_ring:
            count = (struct.unpack_from(self.order + "I", self.cells[number + 1], 4)[0] >> 20 & 0x7FF) - 1
        if is_nothing:
            return 1 + count
        context = half[0] & (1 << header["context_bits"]) - 1
        bits = 48 - header["context_bits"]
        start = self.stamp(low | half[0] >> header["context_bits"] << 32, bits)
        if not (self.is_ring and half[1] & OPEN):
            self.before = start
        name, category = said.get(F_NAME, ""), said.get(F_CATEGORY, "")
        if is_site:
            kind, name, category = self.site(ref & ~3)
        event = {"tid": context + 1, "start": start, "position": number, "args": arguments, "name": name,
                 "category": category, "value": said.get(F_VALUE, 0), "second": said.get(F_SECOND, 0),
                 "third": said.get(F_THIRD, 0), "track": said.get(F_TRACK, ""), "context": context,
                 "named": ref >> 16 if not is_site else 0}
        low_end = end | (half[1] & 0x7FFF) << 32
        event["end"] = None if half[1] & OPEN else start + (low_end - start) % (1 << 47)
        event["unwound"] = False
        if self.is_ring:
            again = (self.index_of(number), ref, context, low)
            if self.is_stream and half[1] & OPEN and again in self.sent:
                return 1 + count                   # it is sent once a lap
            self.sent[again] = event
            self.taken[self.used_of(number, half[1])] = event
        self.take(kind, event, number)
        return 1 + count

    def span_of(self, position):
        """The span that a RESULT or a sampled device span means."""
        return self.taken.get(position) if self.is_ring else self.spans.get(position - 1)

    def used_of(self, number, half):
        """What `used` of a ring was when the cell was taken."""
        header = self.trace.header
        if half & OPEN:
            lap, index = half & 0x1FFF, self.index_of(number)
        elif self.is_stream:
            lap, index = number // header["cells"], number % header["cells"]
        else:
            index, lap = self.index_of(number), header["used"] >> 16
            lap -= index >= header["used"] & 0xFFFF
        return 1 << 31 | (lap & 0x1FFF) << 16 | index

    def index_of(self, number):
        header = self.trace.header
        begin = 0 if self.is_stream else header["used"] & 0xFFFF
        return (begin + number) % header["cells"]

    def take(self, kind, event, number):
        trace = self.trace
        if kind == THREAD:
            trace.threads[event["tid"]] = next(iter(event["args"].values()), "")
        elif kind == METADATA:
            trace.metadata[event["name"]] = next(iter(event["args"].values()), "")
        elif kind == PAUSE:
            trace.pauses.append((event["start"], event["end"] or 0))
        elif kind == NAME_OF:
            number_of = event["named"] - 1 if event["named"] else event["value"]
            self.names[number_of] = next(iter(event["args"].values()), event["name"])
        elif kind == DEVICE:
            trace.devices[event["third"] & 0xFF] = {
                "name": event["name"], "nominal_hz": event["value"],
                "pe_count": event["third"] >> 8 & 0xFFFFFF,
                "max_rate_ppb": event["second"] & 0xFFFFFFFF}
        elif kind in (ANCHOR, COUNT):
            pass                                   # how device ticks map to host time is a layer above
        elif kind == RESULT:
            self.waiting.append((event["value"], event["args"]))
        elif kind in (CLOSE, SLEPT):
            self.closes(kind, event)
        elif kind >= len(KINDS):
            trace.unknown["kinds"] += 1
        else:
            self.event(KINDS[kind], event, number)

    def closes(self, kind, event):
        if kind == SLEPT:
            return
        start = event["end"]                       # the span's start, of which 47 bits are here
        for span in reversed(self.trace.events):
            if (span["kind"] in NESTING and span["end"] is None and span["tid"] == event["tid"]
                    and (span["start"] - start) % (1 << 47) == 0):
                span["end"] = event["start"]
                return

    def event(self, kind, event, number):
        event["kind"] = kind
        if kind not in NESTING:
            for key in ("end", "unwound"):
                del event[key]
        else:
            self.spans[number] = event
        if kind == "finished":
            event.update(start_ns=event["value"], end_ns=event["second"])
        elif kind == "memory":
            event.update(allocated=event["second"], changed=event["third"] >> 2, how=event["third"] & 3)
        elif kind == "device":
            third = event["third"]
            host = self.span_of(third >> 32) if third & SAMPLED else None
            event.update(device=third & 0xFF, epoch=third >> 8 & 0xFFFF, device_end=event["second"],
                         pe=0 if third & SAMPLED else third >> 32,
                         flags=bool(third & SAMPLED) | (4 if third & BY_HOST else 0))
            if host:
                event.update(name=host["name"], category=host["category"])
        self.trace.events.append(event)

    # ---- The image

    def header(self, data):
        values = struct.unpack(self.order + "8s4I4B13I", data[:80])
        header = self.trace.header = dict(zip(HEADER, values))
        header["first"] = header["first_high"] << 32 | header["first_low"]
        header["hz"] = header["hz_high"] << 32 | header["hz_low"]
        self.policy = header["build_kind"] >> 4
        self.is_ring = self.policy in (KEEP_NEWEST, STREAM)
        self.is_stream = self.policy == STREAM

    def parts(self, data):
        """Finds headers by their magic and parts by their marks; a crc tells the good ones."""
        at, found = 0, []
        part, stream = (struct.pack(self.order + "I", mark) for mark in (PART_MARK, STREAM_MARK))
        while at < len(data):
            if data[at:at + 8] == MAGIC and at + 80 <= len(data) and (
                    zlib.crc32(data[at:at + 76]) == struct.unpack_from(self.order + "I", data, at + 76)[0]):
                self.header(data[at:])
                at += 80
                continue
            size = self.part(data, at, found) if data[at:at + 4] in (part, stream) else 0
            at += size or 1
        return found

    def part(self, data, at, found):
        if data[at:at + 4] == struct.pack(self.order + "I", STREAM_MARK):
            if at + 16 > len(data):
                return 0
            _, crc, behind, count, lead = struct.unpack_from(self.order + "IIIHH", data, at)
            whole, payload = 16 + 16 * count, at + 16
            if at + whole > len(data) or zlib.crc32(data[at + 8:at + whole]) != crc:
                return 0
            if data[payload:payload + 8] == MAGIC:
                self.header(data[payload:])
                return whole
            first = behind - count & 0xFFFFFFFF
        else:
            if at + 20 > len(data):
                return 0
            _, first, count, lead, _, crc = struct.unpack_from(self.order + "IIHHII", data, at)
            whole, payload = 20 + 16 * count, at + 20
            if at + whole > len(data) or zlib.crc32(data[at:at + 16] + data[payload:at + whole]) != crc:
                return 0
        for n in range(count):
            self.cells[first + n] = data[payload + 16 * n:payload + 16 * n + 16]
        found.append((first, lead))
        return whole

    def arena(self, data):
        """COMPACT: the cells in the order in which they were taken."""
        self.header(data)
        header, cells = self.trace.header, data[80:]
        used = header["used"]
        count, first = min(used, header["cells"]), 0
        if self.is_ring:
            count, first = header["cells"], used & 0xFFFF
            first = 0 if first == 0xFFFF else first
        for n in range(count):
            index = (first + n) % header["cells"]
            self.cells[n] = cells[16 * index:16 * index + 16]

    def read(self, data, is_arena):
        parts = self.arena(data) if is_arena else self.parts(data)
        header = self.trace.header
        self.before = self.trace.origin = header["first"]
        self.trace.hz, self.trace.zero_ns = header["hz"], 0
        number, last, leads = min(self.cells, default=0), max(self.cells, default=-1), dict(parts or ())
        while number <= last:
            if number in self.cells:
                number += self.record(number)
                continue
            number += 1                            # a gap: go on where a record begins
            if number in self.cells:
                self.trace.damaged += 1
                number += leads.get(number, 0)
        for position, arguments in self.waiting:
            span = self.span_of(position)
            if span:
                span["args"].update(arguments)
        for event in self.trace.events:
            if event["named"] and event["named"] - 1 in self.names:
                event["name"] = self.names[event["named"] - 1]
        lost = self.trace.lost = [0] * 16
        lost[LOST_NOTES] = header["lost_notes"]
        for event in self.trace.events:
            for value in event["args"].values():
                if isinstance(value, tuple) and value[1] in LOST_BY_RESULT:
                    lost[LOST_BY_RESULT[value[1]]] += 1
        if self.policy == KEEP_NEWEST:
            lost[LOST_OVERWRITTEN] = header["lost"] - len(self.trace.events)
        else:
            lost[LOST_FULL] = header["lost"]
        return self.trace


def read(data, order, layout, elf=None):
    return Reader(order, Elf(elf) if elf else None).read(data, layout == 3)
