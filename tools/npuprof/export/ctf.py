# SPDX-License-Identifier: MIT
"""Writes a trace in the Common Trace Format 1.8: a folder of two files, for babeltrace2 and Trace Compass.

tsdl.py writes `metadata`. `lost` is there if the trace lost something: two packets without
events, between which all was lost, since the trace says how much, but not when. `events` has packets of
events by time, each with its track:

track         describes a lane of a track, or a process; before all others
span_begin    a span and its arguments; span_end: its end. Those of a track nest
instant       a moment and its arguments
counter       a value, on the track of its process
flow_out      where an arrow leaves a track; flow_in: where it arrives

An event class has fixed fields first, then the arguments as fields of their types: two spans with arguments
of other names or types are of two classes with one name. A key has one field in the whole trace; where it
has another name, env says which key it is.

Why not CTF 2: babeltrace2 reads that since 2.1, and CTF 1.8 in all versions; so does Trace Compass."""

import hashlib
import struct
from array import array
from uuid import UUID

from ..base.files import new_folder
from ..base.messages import Refused
from ..base.strict_json import json_text
from ..convert.scene import Output, draw
from ..read.trace import Numbered
from .rows import integer
from .tsdl import KEYWORDS, metadata, word

FIXED = "name", "category", "id", "key", "value"         # fields that are no arguments
MAGIC = 0xC1FC1FC1
PACKET = 1 << 18                       # bytes that are worth a packet
HEADER = struct.Struct("<I16sI6Q")     # of a packet, with its context
BEFORE = -2**63                        # the ns of what comes before all others
EVENT = struct.Struct("<IQI")          # of an event: class, ns, track


def typed(value):
    """The type of a field in TSDL, and its bytes. Why an enumeration for an empty text: babeltrace2 2.0.4
    shows the text before it (its pull request 116)."""
    if value == "":
        return "empty_t", b"\0"
    if isinstance(value, bool):
        return "bool_t", bytes([value])
    if integer(value) is not None:
        return "int64_t", struct.pack("<q", value)
    if type(value) is int and 0 <= value < 2**64:
        return "uint64_t", struct.pack("<Q", value)
    if isinstance(value, float):
        return "real_t", struct.pack("<d", value)
    return "string", text(value if isinstance(value, str) else json_text(value))


def text(value):
    """Why no NUL: it ends a text."""
    return value.replace("\0", "\ufffd").encode("utf-8", "replace") + b"\0"


class Events:
    """The events of a trace and their classes. The columns hold of each: its ns, class and track, and where
    its fields end in `content`.

    classes    (name, ((type, field), ...)) -> number
    words      of arguments: key -> field"""

    def __init__(self):
        self.content, self.classes = bytearray(), Numbered(lambda key: len(self.classes))
        self.words, self.taken = Numbered(self.new_word), {*FIXED, *KEYWORDS}
        self.at, self.of, self.track, self.end = array("q"), array("I"), array("I"), array("Q")

    def new_word(self, key):
        found = word(key, self.taken)
        self.taken.add(found)
        return found

    def add(self, ns, track, name, fixed, args=None):
        """fixed: fields by name; args: more of them, by any text."""
        fields = []
        for key, value in fixed.items():
            kind, content = typed(value)
            fields.append((kind, key))
            self.content += content
        for key, value in args.items() if args else ():
            kind, content = typed(value)
            fields.append((kind, "_" + self.words[key]))
            self.content += content
        self.at.append(ns)
        self.of.append(self.classes[name, tuple(fields)])
        self.track.append(track)
        self.end.append(len(self.content))

    def by_time(self):
        """(the numbers of all events by time, the first moment, the last one). Events of one moment stay in
        their order: spans nest."""
        order = sorted(range(len(self.at)), key=self.at.__getitem__)
        first = next((self.at[n] for n in order if self.at[n] != BEFORE), 0)
        return order, first, max(first, self.at[order[-1]]) if order else first

    def packets(self, order, first):
        """Yields (ns of the first event, of the last one, their bytes)."""
        packet, begin, ns = bytearray(), 0, 0
        for n in order:
            ns = max(self.at[n], first) - first
            if not packet:
                begin = ns
            packet += EVENT.pack(self.of[n], ns, self.track[n])
            packet += self.content[self.end[n - 1] if n else 0:self.end[n]]
            if len(packet) >= PACKET:
                yield begin, ns, packet
                packet = bytearray()
        if packet:
            yield begin, ns, packet


class Drawing:
    """A trace as events: what the scene asks of an output.

    tracks       the names of tracks, by number in the file
    lanes        number of a track in the trace -> number of its first lane
    processes    pid -> number of the track that has its counters"""

    def __init__(self, trace):
        self.trace, self.events = trace, Events()
        self.tracks, self.lanes, self.processes, self.lane = [], {}, Numbered(self.new_process), 0

    def new_track(self, name, about):
        """The number of a new track. It is described before all events."""
        self.tracks.append(name)
        self.events.add(BEFORE, len(self.tracks) - 1, "track", {},
                        {key: value for key, value in about.items() if value is not None})
        return len(self.tracks) - 1

    def new_process(self, pid):
        about = self.trace.metadata
        part = next((p for p in about.get("processes", ()) if p.get("pid") == pid), about)
        name = self.trace.processes.get(pid) or part.get("label") or part.get("program") or "process"
        return self.new_track(name, {"kind": "process", "pid": pid})

    def begin(self):
        for track in self.trace.tracks:
            self.lanes[track.number] = self.new_lane(track, 0)

    def new_lane(self, track, lane):
        name = (track.name or f"tid {track.tid}") + (f" ({lane + 1})" if lane else "")
        base = track.base if track.base != track.number else None
        return self.new_track(name, {
            "kind": track.kind, "pid": track.pid, "tid": track.tid, "native_id": track.native_id,
            "lane_of": self.lanes[track.number] if lane else self.lanes.get(base)})

    def named(self, name, category):
        return {"name": name, "category": category} if category else {"name": name}

    def arrow(self, n, flow):
        fixed = {"id": n, "name": flow.name}
        self.events.add(flow.from_ns, self.lanes[flow.from_track], "flow_out", fixed)
        self.events.add(flow.to_ns, self.lanes[flow.to_track], "flow_in", fixed)

    def track(self, track, lane, rows):
        self.lane = self.new_lane(track, lane) if lane else self.lanes[track.number]

    def span(self, row):
        trace = self.trace
        self.events.add(trace.start[row], self.lane, "span_begin",
                        self.named(trace.text(row), trace.names[trace.cat[row]]), trace.args(row))

    def close(self, row):
        trace = self.trace
        self.events.add(trace.start[row] + trace.dur[row], self.lane, "span_end", {"name": trace.text(row)})

    def instant(self, instant):
        track = self.lanes[instant.track] if instant.track is not None else self.first_process()
        self.events.add(instant.ts, track, "instant", self.named(instant.name, instant.cat), instant.args)

    def first_process(self):
        pids = [owner.pid for owner in (*self.trace.tracks, *self.trace.counters)]
        return self.processes[pids[0] if pids else self.trace.metadata.get("pid", 0)]

    def counter(self, counter):
        track = self.processes[counter.pid]
        for ns, value in zip(counter.ts, counter.values):
            self.events.add(ns, track, "counter",
                            {"name": counter.name, "key": counter.key, "value": value})

    def end(self):
        pass


def packet(identity, begin, end, number, lost, content=b""):
    """A packet of a stream. lost: how many events the stream lost until its end."""
    bits = 8 * (HEADER.size + len(content))
    return HEADER.pack(MAGIC, identity, 0, begin, end, bits, bits, number, lost) + content


def write_ctf(trace, folder):
    """Writes a new folder, which is there when it is whole. Refuses one that holds something."""
    d = Drawing(trace)
    draw(trace, Output(begin=d.begin, arrow=d.arrow, track=d.track, span=d.span, close=d.close,
                       instant=d.instant, counter=d.counter, end=d.end))
    events = d.events
    order, first, last = events.by_time()
    origin = max(0, trace.base_ns + first)
    if origin + last - first >= 2**63:
        raise Refused(f"{trace.path}: its times go beyond the year 2262, where readers of CTF cannot follow")
    identity = hashlib.blake2b(events.content + json_text(trace.metadata).encode(), digest_size=16).digest()
    with new_folder(folder) as create:
        with create("metadata") as file:
            file.write(metadata(trace.metadata, UUID(bytes=identity), (origin, trace.base_ns > 0), d.tracks,
                                events).encode())
        with create("events") as file:
            for n, (begin, end, content) in enumerate(events.packets(order, first)):
                file.write(packet(identity, begin, end, n, 0, content))
        lost = sum(n for n in (trace.metadata.get("lost") or {}).values() if n and n > 0)
        if lost:
            with create("lost") as file:
                file.write(packet(identity, 0, 0, 0, 0) + packet(identity, 0, last - first, 1, lost))
