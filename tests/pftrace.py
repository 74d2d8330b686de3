# SPDX-License-Identifier: MIT
"""A decoder of .pftrace files for tests, from Perfetto's documented field numbers and rules.

It shares nothing with the writer. read(bytes) gives slices, instants, samples of counters, arrows, tracks,
attributes and errors, as an importer sees them: events are sorted by time (equal times in the order of the
file), an end closes the innermost open slice of its track, an arrow leads from the slice that has its number
first to the next one.
"""

import struct
from collections import namedtuple
from types import SimpleNamespace

Slice = namedtuple("Slice", "track name cats start dur args source correlation", defaults=("", 0))
Sample = namedtuple("Sample", "track start value")


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value & 2**64 - 1, at
        assert shift < 70, f"byte {at}: a varint of more than ten bytes"


def fields(data):
    """(number, value) of each field; bytes of a message or string, integers of the others."""
    at = 0
    while at < len(data):
        tag, at = varint(data, at)
        if tag & 7 == 0:
            value, at = varint(data, at)
        elif tag & 7 == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif tag & 7 == 2:
            length, at = varint(data, at)
            assert at + length <= len(data), f"byte {at}: a message ends behind its parent"
            value, at = data[at:at + length], at + length
        elif tag & 7 == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        else:
            raise AssertionError(f"byte {at}: wire type {tag & 7}")
        yield tag >> 3, value


def message(data, repeated=()):
    """The fields of a message; the last value of each, lists of the repeated ones."""
    found = {number: [] for number in repeated}
    for number, value in fields(data):
        if number in repeated:
            found[number].append(value)
        else:
            found[number] = value
    return found


def signed(value):
    return value - 2**64 if value >> 63 else value


def real(value):
    return struct.unpack("<d", struct.pack("<Q", value))[0]


def value_of(data):
    """The value of an argument; entries of an object have their names in them, those of a list have none."""
    arg = message(data, (11, 12))
    if arg[11]:
        return {message(entry)[10].decode(): value_of(entry) for entry in arg[11]}
    if arg[12]:
        return [value_of(entry) for entry in arg[12]]
    values = {2: bool, 3: int, 4: signed, 5: real, 6: bytes.decode}
    return next(values[number](arg[number]) for number in values if number in arg)


class Sequence:
    """What a sequence of packets has said so far."""

    def __init__(self):
        self.names = {1: {}, 2: {}, 3: {}, 4: {}}
        self.track = self.clock = self.own = None
        self.now = 0


class Decoder:
    def __init__(self):
        self.sequences, self.tracks, self.errors, self.events = {}, {}, [], []
        self.snapshots, self.kernel_events, self.attributes = [], [], {}

    def kernel(self, data):
        """Events of the kernel: (CLOCK_BOOTTIME ns, cpu, tid, number of the kind, its fields)."""
        bundle = message(data, (2,))
        for event in bundle[2]:
            event = message(event)
            kind = next(number for number in event if number not in (1, 2))
            fields_of = {number: value for number, value in fields(event[kind])}
            self.kernel_events.append((event[1], bundle[1], event[2], kind, fields_of))

    def packet(self, data):
        packet = message(data)
        number = packet.get(10, 0)
        if packet.get(13, 0) & 1:
            self.sequences[number] = Sequence()
        sequence = self.sequences.get(number)
        if 60 in packet:
            self.track(packet[60])
        for attribute in message(packet.get(126, b""), (1,))[1]:
            attribute = message(attribute)
            value = attribute[3].decode() if 3 in attribute else signed(attribute[2])
            self.attributes[attribute[1].decode()] = value
        if 6 in packet:
            self.snapshot(sequence, packet[6])
        if 59 in packet:
            defaults = message(packet[59])
            sequence.clock = defaults.get(58)
            sequence.track = message(defaults[11]).get(11) if 11 in defaults else None
        if 12 in packet:
            self.intern(sequence, packet[12])
        if 11 in packet:
            if sequence is None:
                self.errors.append("an event without the state of its sequence")
                return
            self.event(sequence, packet)
        if 1 in packet:
            self.kernel(packet[1])

    def snapshot(self, sequence, data):
        clocks = {}
        for clock in message(data, (1,))[1]:
            clock = message(clock)
            clocks[clock[1]] = clock
        self.snapshots.append({number: signed(clock[2]) for number, clock in clocks.items()})
        for number in clocks.keys() - {1, 3, 6}:      # 64 to 127: the sequence's own
            assert 64 <= number < 128 and clocks[number].get(3) == 1
            # All at this moment; the stamps of its own clock are differences to the one before.
            sequence.own, sequence.now = number, signed(clocks[6][2])

    def intern(self, sequence, data):
        for space, entry in fields(data):
            entry = message(entry)
            text = entry[2] + b":%d" % entry[4] if space == 4 else entry[2]
            known = sequence.names[space].setdefault(entry[1], text)
            if known != text:
                self.errors.append(f"name {entry[1]} was interned twice, for {known} and {text}")

    def track(self, data):
        track = message(data)
        uuid = track[1]
        kind, name, ids = "track", track.get(2, b"").decode(), None
        if 3 in track:
            process = message(track[3])
            kind, name, ids = "process", process.get(6, b"").decode(), process[1]
        elif 4 in track:
            thread = message(track[4])
            kind, name, ids = "thread", thread.get(5, b"").decode(), (thread[1], thread[2])
        elif 8 in track:
            counter = message(track[8])
            kind, ids = "counter", counter.get(6, b"").decode() or counter.get(3, 0)
        key = track[17] if track.get(15) == 3 else (track.get(5, 0), name)      # of what is drawn as one
        found = SimpleNamespace(uuid=uuid, kind=kind, name=name, ids=ids, parent=track.get(5, 0), key=key)
        if self.tracks.setdefault(uuid, found) != found:
            self.errors.append(f"two descriptors of track {uuid}: {self.tracks[uuid]} and {found}")

    def event(self, sequence, packet):
        stamp = packet[8]
        clock = packet.get(58, sequence.clock)
        assert clock == sequence.own, "the writer stamps with its own clock"
        sequence.now += signed(stamp)
        event = message(packet[11], (3, 4, 22, 47, 48))
        self.events.append((sequence.now, len(self.events), event.get(11, sequence.track), sequence, event))

    # ---- As an importer sees it

    def text(self, sequence, space, iid):
        found = sequence.names[space].get(iid)
        if found is None:
            self.errors.append(f"name {iid} of space {space} is not known")
            return ""
        return found.decode()

    def arguments(self, sequence, event):
        args = {}
        for data in event[4]:
            arg = message(data)
            key = arg[10].decode() if 10 in arg else self.text(sequence, 3, arg[1])
            if key in args:
                self.errors.append(f"argument {key} twice")
            args[key] = value_of(data)
        return args

    def run(self):
        slices, instants, samples, arrows = [], [], [], []
        open_slices, sent = {}, {}
        for now, _, uuid, sequence, event in sorted(self.events, key=lambda e: e[:2]):
            kind, track, at = event[9], self.tracks.get(uuid), None
            if track is None:
                self.errors.append(f"track {uuid} has no descriptor")
            name = event[23].decode() if 23 in event else ""
            name = self.text(sequence, 2, event[10]) if 10 in event else name
            cats = [self.text(sequence, 1, iid) for iid in event[3]]
            cats += [text.decode() for text in event[22]]
            stack = open_slices.setdefault(uuid, [])
            if kind == 1:
                at = len(slices)
                slices.append([track, name, ",".join(cats), now, None, self.arguments(sequence, event),
                               self.text(sequence, 4, event[34]) if 34 in event else "", event.get(52, 0)])
                stack.append(at)
                if len(stack) > 512:
                    self.errors.append("deeper than 512")
            elif kind == 2:
                if not stack:
                    self.errors.append("an end without a begin")
                    continue
                at = stack.pop()
                slices[at][4] = now - slices[at][3]
                slices[at][5].update(self.arguments(sequence, event))
            elif kind == 3:
                args = self.arguments(sequence, event)
                instants.append(Slice(track, name, ",".join(cats), now, 0, args))
            elif kind == 4:
                samples.append(Sample(track, now, signed(event[30]) if 30 in event else real(event[44])))
            for number in event[47]:
                sent[number] = at
            for number in event[48]:
                if number in sent:
                    arrows.append((sent.pop(number), at))
        for stack in open_slices.values():
            if stack:
                self.errors.append(f"{len(stack)} slices have no end")
        return SimpleNamespace(slices=[Slice(*s) for s in slices], instants=instants, samples=samples,
                               arrows=arrows, tracks=self.tracks, errors=self.errors,
                               snapshots=self.snapshots, attributes=self.attributes,
                               kernel=sorted(self.kernel_events, key=lambda e: e[0]))


def read(data):
    decoder = Decoder()
    for number, packet in fields(data):
        assert number == 1, "a trace has nothing but packets"
        decoder.packet(packet)
    return decoder.run()


class Sums(Decoder):
    """Adds up the slices of a long trace of plain spans, and keeps none."""

    def __init__(self):
        super().__init__()
        self.count = self.total = 0

    def event(self, sequence, packet):
        known, stack = sequence.__dict__.setdefault("known", {}), sequence.__dict__.setdefault("stack", [])
        sequence.now += signed(packet[8])
        if packet[11] not in known:
            event = message(packet[11])
            known[packet[11]] = event[9], sequence.names[2].get(event.get(10))
        kind, name = known[packet[11]]
        if kind == 1:
            stack.append((name, sequence.now))
        elif kind == 2:
            name, start = stack.pop()
            self.count += 1
            self.total += hash((name, start - self.snapshots[0][6], sequence.now - start))


def sum_of_spans(file):
    """(how many slices there are, a sum of hashes of their name, start after the first snapshot, length)."""
    sums = Sums()
    while file.read(1):
        size = shift = 0
        for byte in iter(lambda: file.read(1)[0], None):
            size |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        sums.packet(file.read(size))
    assert not any(getattr(own, "stack", ()) for own in sums.sequences.values()), "a slice has no end"
    return sums.count, sums.total
