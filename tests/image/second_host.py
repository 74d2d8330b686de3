# SPDX-License-Identifier: MIT
"""The layouts ARENA and CODED, read by src/format/layouts.h and src/format/arena.h alone.

Nothing here is taken from the project's own reader: what this cannot read, the specification does not say.
What it leaves to a layer above: when device ticks were in host time."""
import struct
from collections import defaultdict

HEADER = [(name, code) for code, names in (
    ("8s", "magic"), ("I", "endian format layout header_bytes"), ("Q", "arena_bytes clock_hz clear_ticks "
     "seed_high seed_low streamed"), ("16Q", "lost"), ("QQqqq", "first last_0 last_1"),
    ("I", "last_used table_offset table_bytes table_unit table_first table_used sites queue_offset "
     "queue_slots queue_head queue_tail chunks_offset chunk_bytes chunk_count chunk_next overwritten_offset "
     "contexts slot_bytes slot_first threads devices when_full clock_source clock_bits pid closed"),
    ("64s", "host program"), ("56s", "traceparent")) for name in names.split()]
STRING, SITE, METADATA, ENVIRONMENT, PAUSE, DEVICE, ANCHORS, LANE, RECORDS, MODULE, SKIP = range(1, 12)
FREE, OPEN, RETIRED, SLOTS, HEADER_PIECE, TABLE_PIECE, SLOTS_PIECE = range(7)
CONTROL = 0xFFFF0
(MOVED_AWAY, MOVED, ARG, OF_FINISHED, OF_MEMORY, OF_DEVICE, LINK, LINK_ROOT,
 RESULT) = range(CONTROL, CONTROL + 9)
RESULTS_FLAG = 1 << 31
STARTS = (1 << 44) - 1
OPEN_END = (1 << 64) - 1
BLOCK_MARK, FACTOR = 0x4B4C424E, 0x9E3779B97F4A7C15
ALL = (1 << 64) - 1
(INT, UINT, REAL, BOOL, STR, STR_CUT, STR_NULL) = range(1, 8)
KINDS = ("none span record warm_up inference operator instant counter_int counter_uint counter_real memory "
         "flow_out flow_in async_begin async_end finished device").split()
NESTING = set(KINDS[1:6])
LOST_FULL, LOST_OVERWRITTEN = 0, 4


class Trace:
    """What an image holds. Times are ticks of the recorder, unless their name says ns."""

    def __init__(self, order):
        self.order = order                     # "<" or ">"
        self.header, self.events, self.threads = {}, [], {}        # threads: tid -> name
        self.metadata, self.environment, self.pauses = {}, {}, []
        self.devices, self.lanes, self.records, self.modules, self.sites = {}, {}, {}, [], {}
        self.lost = []                         # by cause
        self.unknown = defaultdict(int)        # what this reader does not know, and skipped: how many of each
        self.damaged = 0


def text(data):
    return data.split(b"\0")[0].decode("utf-8", "replace")


def read_header(data, order):
    header, at = {}, 0
    for name, code in HEADER:
        size = struct.calcsize(order + code)
        values = struct.unpack_from(order + code, data, at)
        header[name] = values if len(values) > 1 else text(values[0]) if code.endswith("s") else values[0]
        at += size
    return header


# ---- The table

class Table:
    """Names and facts. pieces: (offset in the table, bytes), later ones replace earlier ones."""

    def __init__(self, trace, pieces):
        self.trace, header = trace, trace.header
        self.data = bytearray(header["table_used"])
        for offset, piece in pieces:
            piece = piece[:max(0, len(self.data) - offset)]
            self.data[offset:offset + len(piece)] = piece
        self.strings, self.sites, late = {0: ""}, {}, []
        at = first = header["table_first"]
        if 4 * first + 16 <= len(self.data) and first & (first - 1) == 0 and header["layout"] == 1:
            here, draft = (self.words(place, 1)[0] >> 24 for place in (first, 4 * first))
            at = 4 * first if draft and not here else first
        while at + 16 <= len(self.data):
            first_part, chunk = header["table_bytes"], header["chunk_bytes"]
            if at >= first_part and (at - first_part) % chunk == 0:
                at += 32                       # the head of the chunk that this part is
                continue
            word, _, _, a = self.words(at, 4)
            units = word & 0xFFFFFF
            if not units:
                if word or at % 16:
                    break
                at += 16
                continue
            if word >> 24 == STRING:
                self.strings[at // 16] = bytes(self.data[at + 16:at + 16 + a]).decode("utf-8", "replace")
            elif word >> 24:
                late.append((at, word >> 24, a))
            at += 16 * units
        for at, kind, a in late:
            self.entry(at, kind, a)

    def words(self, at, count):
        return struct.unpack_from(f"{self.trace.order}{count}I", self.data, at)

    def longs(self, at, count):
        return struct.unpack_from(f"{self.trace.order}{count}Q", self.data, at)

    def string(self, number):
        return self.strings.get(number, "")

    def entry(self, at, kind, a):
        trace, order = self.trace, self.trace.order
        if kind == SITE:
            name, category, file, line = self.words(at + 16, 4)
            self.sites[a >> 8] = (a & 0xFF, self.string(name), self.string(category))
            trace.sites[a >> 8] = (self.string(file), line & ~RESULTS_FLAG)
        elif kind in (METADATA, ENVIRONMENT):
            key, value = self.words(at + 16, 2)
            (trace.metadata if kind == METADATA else trace.environment)[self.string(key)] = self.string(value)
        elif kind == PAUSE:
            trace.pauses.append(self.longs(at + 16, 2))
        elif kind == DEVICE:
            values = struct.unpack_from(order + "Q8Q3Q8I", self.data, at + 16)
            trace.devices.setdefault(a, {"anchors": []}).update(
                nominal_hz=values[0], notes=values[1:9], overflow=values[9:12], name=self.string(values[14]),
                pe_count=values[15], max_rate_ppb=values[16])
        elif kind == ANCHORS:
            epoch, count = self.words(at + 16, 2)
            # Whose they are follows from the device's list: first_anchors, then a of each.
            trace.devices.setdefault(("anchors", at // 16), {}).update(
                next=a, epoch=epoch, anchors=[self.longs(at + 24 + 24 * n, 3) for n in range(count)])
        elif kind == LANE:
            pe, name = self.words(at + 16, 2)
            trace.lanes[a, pe] = self.string(name)
        elif kind == RECORDS:
            trace.records[a] = self.longs(at + 16, 16)
        elif kind == MODULE:
            bias, start, end = self.longs(at + 16, 3)
            trace.modules.append((bias, start, end, *map(self.string, self.words(at + 40, 2))))
        elif kind != SKIP:
            trace.unknown["table entries"] += 1


# ---- Chunks

class Slot:
    """The records of one thread, or of one of its signal handlers: chunks in the order of their positions."""

    def __init__(self, trace, table, tid, context):
        self.trace, self.table, self.tid, self.context = trace, table, tid, context
        self.spans, self.arguments, self.results = {}, {}, []     # by first position

    def read(self, chunks):
        for first_position in sorted(chunks):
            self.chunk(*chunks[first_position])
        for position, arguments in self.results:
            if position in self.spans:
                self.spans[position]["args"].update(arguments)

    def chunk(self, base, first_position, moved_units, units):
        """units: [(w0, w1)]."""
        at = 0
        while at < len(units) and units[at][0]:
            w0, w1 = units[at]
            number, position, payload = w0 & 0xFFFFF, first_position + at, w0 >> 20
            if at < moved_units:
                self.moved(units[at:at + 2])
                at += 2
            elif number < CONTROL:
                start = (base + ((payload - base) & STARTS)) & ALL
                at = self.record(number, start, w1, position, units, at + 1)
            elif number == MOVED_AWAY:
                arguments, _, at = self.rest(units, at + 1)
                self.arguments[position] = arguments
                if position in self.spans:
                    self.spans[position]["args"].update(arguments)
            elif number == RESULT:
                arguments, _, at = self.rest(units, at + 1)
                self.results.append((w1, arguments))
            else:
                if number > RESULT:
                    self.trace.unknown["control ids"] += 1
                at += 1

    def moved(self, pair):
        """A span that was open when the thread began this chunk."""
        if len(pair) < 2 or pair[1][0] & 0xFFFFF != MOVED:
            if pair[0][0] & 0xFFFFF == MOVED_AWAY:
                return                         # it moved on
            self.trace.damaged += 1
            return
        (w0, end), (w2, start) = pair
        if w0 & 0xFFFFF == MOVED_AWAY:
            return
        self.span(w0 & 0xFFFFF, start, end, w2 >> 20, {})

    def span(self, number, start, end, position, more):
        kind, name, category = self.table.sites.get(number, (0, "", ""))
        event = {"kind": KINDS[kind] if kind < len(KINDS) else kind, "name": name, "category": category,
                 "tid": self.tid, "context": self.context, "start": start, "value": end, "position": position,
                 "args": {}, **more}
        if kind >= len(KINDS):
            self.trace.unknown["kinds"] += 1
            return None
        if event["kind"] in NESTING:
            event["end"] = None if end == OPEN_END else end & ~(1 << 63)
            event["unwound"] = end != OPEN_END and end >> 63 == 1
            self.spans[position] = event
            event["args"].update(self.arguments.get(position, {}))
        if start >= self.trace.header["clear_ticks"]:
            self.trace.events.append(event)
        return event

    def record(self, number, start, w1, position, units, at):
        arguments, more, at = self.rest(units, at)
        event = self.span(number, start, w1, position, more)
        if event:
            event["args"].update(arguments)
        return at

    def rest(self, units, at):
        """The units that continue a record: (arguments, what else they say, where the next record is)."""
        order, arguments, more = self.trace.order, {}, {}
        while at < len(units) and units[at][0]:
            w0, w1 = units[at]
            number, payload = w0 & 0xFFFFF, w0 >> 20
            at += 1
            if number == ARG:
                length, key, kind = payload >> 32, payload >> 4 & 0xFFFFFFF, payload & 15
                data = struct.pack(order + "Q", w1)
                if kind in (STR, STR_CUT):
                    more_units = max(0, length - 8 + 15) // 16
                    data += b"".join(struct.pack(order + "QQ", *unit) for unit in units[at:at + more_units])
                    at += more_units
                value = self.value(kind, data, length, w1)
                if value is not NotImplemented:
                    arguments[self.table.string(key)] = value
            elif number == OF_FINISHED:
                more.update(track=self.table.string(payload), end_ns=w1)
            elif number == OF_MEMORY:
                more.update(changed=payload >> 2, how=payload & 3, allocated=w1)
            elif number == OF_DEVICE:
                more.update(device=payload & 0xFF, pe=payload >> 8 & 0xFFFF, epoch=payload >> 24 & 0xFFFF,
                            flags=payload >> 40, device_end=w1)
            elif number == LINK:
                more.update(link=payload, link_start=w1)
            elif number == LINK_ROOT:
                more.update(root=payload, link_tid=w1 & 0xFFFFFFFF, link_warm_up=w1 >> 32)
            elif number > RESULT:
                self.trace.unknown["control ids"] += 1
            else:
                return arguments, more, at - 1
        return arguments, more, at

    def value(self, kind, data, length, w1):
        if kind == INT:
            return w1 - (1 << 64) if w1 >> 63 else w1
        if kind in (UINT, BOOL):
            return bool(w1) if kind == BOOL else w1
        if kind == REAL:
            return struct.unpack(self.trace.order + "d", data[:8])[0]
        if kind in (STR, STR_CUT):
            return data[:length].decode("utf-8", "replace")
        if kind == STR_NULL:
            return None
        self.trace.unknown["types of arguments"] += 1
        return NotImplemented


def finish(trace, table_pieces, slots, chunks, overwritten):
    """slots: heads; chunks: (tid, context) -> first position -> chunk."""
    table = Table(trace, table_pieces)
    header, lost = trace.header, list(trace.header["lost"])
    for tid, context, _, name, _, _, _, _, slot_lost in slots:
        lost[LOST_FULL] += slot_lost
        if tid and not context:
            trace.threads[tid] = table.string(name)
    lost[LOST_OVERWRITTEN] += overwritten
    trace.lost = lost
    trace.origin, trace.zero_ns, trace.hz = header["first"][0], header["first"][4], header["clock_hz"]
    for tid, context in sorted(chunks):
        Slot(trace, table, tid, context).read(chunks[tid, context])


# ---- ARENA

def read_arena(data, order):
    trace = Trace(order)
    header = trace.header = read_header(data, order)
    pieces = [(0, data[header["table_offset"]:header["table_offset"] + header["table_bytes"]])]
    chunks, slots, overwritten = defaultdict(dict), [], 0
    for n in range(header["chunk_count"]):
        at = header["chunks_offset"] + n * header["chunk_bytes"]
        head = data[at:at + header["chunk_bytes"]]
        base, first, owner, _, _, state, moved = struct.unpack_from(order + "QQIIIHH", head)
        gone = (0, 0)
        if header["overwritten_offset"]:
            gone = struct.unpack_from(order + "QQ", data, header["overwritten_offset"] + 16 * n)
            overwritten += gone[1] - 1 if gone[1] else gone[0]
        if state == TABLE_PIECE:
            pieces.append((base, head[32:32 + first]))
        elif state in (OPEN, RETIRED) and owner and not gone[1]:
            units = list(struct.iter_unpack(order + "QQ", head[32:len(head) // 16 * 16]))
            chunks[owner >> 3, owner & 7][first] = (base, first, moved, units)
        elif state > TABLE_PIECE + 1:
            trace.unknown["states of chunks"] += 1
    unit = header["slot_first"]
    while unit:
        slots.append(struct.unpack_from(order + "8IQ", data, unit * 16))
        unit = slots[-1][2]
    finish(trace, pieces, slots, chunks, overwritten)
    return trace


# ---- STREAM

def block_sum(block, order):
    total = 0
    for n, word in enumerate(struct.unpack(f"{order}{len(block) // 8}Q", block)):
        total = ((total ^ (0 if n == 1 else word)) * FACTOR) & ALL
        total = total >> 32 | total << 32 & ALL
    return total


def blocks(trace, data, order):
    """(state, base, first_position, owner, moved_units, first_unit, payload) of each good block."""
    at = trace.header["header_bytes"]
    mark = struct.pack(order + "I", BLOCK_MARK)
    good = True
    while at < len(data):
        at = data.find(mark, at)
        if at < 0 or at + 40 > len(data):
            break
        _, count, first_unit, said, base, first, owner, state, moved = struct.unpack_from(
            order + "IHHQQQIHH", data, at)
        whole = 40 + (count + 7) // 8 * 8
        if at + whole > len(data) or block_sum(data[at:at + whole], order) != said:
            trace.damaged += good
            good, at = False, at + 1
            continue
        good = True
        yield state, base, first, owner, moved, first_unit, data[at + 40:at + 40 + count]
        at += whole


class Code:
    """The units of one payload."""

    def __init__(self, payload, base):
        self.payload, self.at, self.base = payload, 0, base
        self.start = self.end = base & STARTS
        self.site, self.payload_of, self.w1_of, self.event_w1 = 0, [0] * 14, [0] * 14, 0

    def number(self, count):
        value = int.from_bytes(self.payload[self.at:self.at + count], "little")
        self.at += count
        return value

    def units(self):
        while self.at < len(self.payload):
            first = self.number(1)
            yield self.plain(first) if first & 7 else self.other(first >> 3)

    def plain(self, first):
        gap, length, site = first & 7, first >> 3 & 7, first >> 6
        if site:
            self.site = self.number(site)
        since = self.end if gap in (4, 5, 6) else self.start
        gap = self.number({7: 6}.get(gap, gap - 3 if gap > 3 else gap))
        self.start = (since + gap) & STARTS
        w1 = OPEN_END
        if length != 7:
            whole = self.base + ((self.start - self.base) & STARTS)
            w1 = (whole + self.number(length)) & ALL
            self.end = w1 & STARTS
        return self.start << 20 | self.site, w1

    def other(self, kind):
        if kind == 31:
            return self.number(8), self.number(8)
        second = self.number(1)
        if second >> 7:
            self.site = self.number(3)
        one, two = self.number(second & 7), self.number(second >> 3 & 15)
        value = (-(two + 1 >> 1) if two & 1 else two >> 1) & ALL
        if kind < 28:
            of = kind >> 1
            self.payload_of[of] ^= one
            self.w1_of[of] = (self.w1_of[of] + value) & ALL if kind & 1 else value
            return self.payload_of[of] << 20 | CONTROL + of, self.w1_of[of]
        if kind == 30:
            self.event_w1 = value
            return self.site, value
        self.start = (self.start + one) & STARTS
        self.event_w1 = (self.event_w1 + value) & ALL if kind == 29 else value
        return self.start << 20 | self.site, self.event_w1


def read_coded(data, order):
    trace = Trace(order)
    trace.header = read_header(data, order)
    pieces, slot_bytes, found = [], bytearray(), defaultdict(dict)
    for state, base, first, owner, moved, first_unit, payload in blocks(trace, data, order):
        if state in (OPEN, RETIRED):
            chunks, key = found[owner >> 3, owner & 7], first
            if first_unit == 0:
                chunks[key] = (base, first, moved, [])
            if key in chunks and len(chunks[key][3]) == first_unit:
                chunks[key][3].extend(Code(payload, base).units())
        elif state == HEADER_PIECE:
            trace.header = read_header(payload, order)
        elif state == TABLE_PIECE:
            pieces.append((base, payload))
        elif state == SLOTS_PIECE:
            slot_bytes[len(slot_bytes):] = bytes(max(0, base - len(slot_bytes)))
            slot_bytes[base:base + len(payload)] = payload
        else:
            trace.unknown["states of blocks"] += 1
    slots = list(struct.iter_unpack(order + "8IQ", slot_bytes[:len(slot_bytes) // 40 * 40]))
    finish(trace, pieces, slots, found, 0)
    return trace
