# SPDX-License-Identifier: MIT
"""Writes a trace of JSON or CSV as Perfetto's .pftrace. npuprof-convert does it for images, and explains the
form (tools/convert/pftrace.h). This one differs in three points: spans that overlap are put into lanes here,
since a trace of another tool has none; arrows are bound to the spans around their ends, since JSON binds them
by time; a span has its place in the code if all spans of its name come from there, since JSON has the places
of each name.
"""

import json
import re
import struct
from collections import defaultdict

from ..base.contract import DEVICE
from ..base.messages import Progress
from ..base.metadata import sources
from .speedscope import lanes

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CATEGORIES, NAMES, KEYS, PLACES = 1, 2, 3, 4      # what is interned, in interned_data.proto
REALTIME, MONOTONIC, BOOTTIME, OWN_CLOCK = 1, 3, 6, 64
BYTES = 3                                         # the unit of a counter
NO_TASK = 2**23                                   # above any number of a task in Linux
LANE = re.compile(r" #\d+$")                      # what a further lane adds to the name of its track


def varint(value):
    value &= 2**64 - 1
    text = bytearray()
    while value > 127:
        text.append(value & 127 | 128)
        value >>= 7
    text.append(value)
    return bytes(text)


SMALL = [varint(n) for n in range(1 << 14)]


def number(field, value):
    return varint(field << 3) + (SMALL[value] if 0 <= value < 1 << 14 else varint(value))


def inside(field, content):
    """A message or a string."""
    return varint(field << 3 | 2) + varint(len(content)) + content


def text(field, content):
    return inside(field, content.encode("utf-8", "replace"))


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


class Writer:
    """Packets, and the numbers of tracks and sequences."""

    def __init__(self, file, clocks, places):
        self.file, self.clocks = file, clocks
        # (name, category) -> the only place in the code that records such spans: file, line
        self.places = {key: next(iter(of)).rpartition(":")[::2] for key, of in places.items() if len(of) == 1}
        # Numbers that another process is not likely to have: traces may be put together.
        self.seed = (clocks[BOOTTIME] * 0x9E3779B97F4A7C15 + clocks[REALTIME]) & 2**62 - 1
        self.tracks = self.sequences = self.arrows = 0
        self.has_tasks = False

    def packet(self, content):
        self.file.write(inside(1, content))

    def next_track(self):
        self.tracks += 1
        return (self.seed + self.tracks * 0xD6E8FEB86659FD93) % 2**63 | 1

    def track(self, content, parent=None):
        uuid = self.next_track()
        self.packet(inside(60, number(1, uuid) + (number(5, parent) if parent else b"") + content))
        return uuid


class Lane:
    """A sequence of packets, whose events are on one track."""

    def __init__(self, writer, track):
        self.writer, self.last, self.known = writer, 0, ({}, {}, {}, {}, {})
        writer.sequences += 1
        # Why no flags at the end of a span: it refers to no names, and they are 2 of its bytes.
        self.end = number(10, writer.sequences)
        self.tail = self.end + number(13, 2)
        clocks = b"".join(inside(1, number(1, clock) + number(2, ns)) for clock, ns in writer.clocks.items())
        clocks += inside(1, number(1, OWN_CLOCK) + number(2, writer.clocks[BOOTTIME]) + number(3, 1))
        defaults = number(58, OWN_CLOCK) + inside(11, number(11, track))
        writer.packet(number(10, writer.sequences) + number(13, 1) +
                      inside(6, clocks + number(2, BOOTTIME)) + inside(59, defaults))
        self.fresh = b""

    def intern(self, space, name):
        known = self.known[space]
        found = known.get(name)
        if found is None:
            found = known[name] = len(known) + 1
            what = text(2, name[0]) + number(4, int(name[1])) if space == PLACES else text(2, name)
            self.fresh += inside(space, number(1, found) + what)
        return found

    def names(self, name, cat, has_place=True):
        category = number(3, self.intern(CATEGORIES, cat)) if cat else b""
        place = self.writer.places.get((name, cat)) if has_place else None
        return (number(10, self.intern(NAMES, name)) + category
                + (number(34, self.intern(PLACES, place)) if place else b""))

    def arguments(self, args):
        return b"".join(inside(4, number(1, self.intern(KEYS, str(key))) + value_of(value))
                        for key, value in args.items())

    def event(self, kind, ns, content):
        stamp, self.last, fresh, self.fresh = number(8, ns - self.last), ns, self.fresh, b""
        event = inside(11, number(9, kind) + content)
        head = self.end if kind == END else self.tail
        self.writer.packet(head + stamp + (inside(12, fresh) if fresh else b"") + event)


def value_of(value):
    if isinstance(value, bool):
        return number(2, int(value))
    if isinstance(value, int) and -2**63 <= value < 2**64:
        return number(3 if value >= 2**63 else 4, value)
    if isinstance(value, (int, float)):
        return varint(5 << 3 | 1) + struct.pack("<d", value)
    return text(6, value if isinstance(value, str) else repr(value))


class Arrows:
    """Which arrows leave and reach each span: they are bound to the innermost span around their ends."""

    def __init__(self, trace, writer):
        ends = defaultdict(list)                  # track -> [(ns, arrow, reaches)]
        for n, flow in enumerate(trace.flows):
            arrow = (writer.seed ^ (n + 1) * 0x9E3779B97F4A7C15) % 2**64
            ends[flow.from_track].append((flow.from_ns, arrow, False))
            ends[flow.to_track].append((flow.to_ns, arrow, True))
        self.leave, self.reach = defaultdict(list), defaultdict(list)
        self.ends = {track: sorted(list_) for track, list_ in ends.items()}

    def bind(self, trace, track, rows):
        """rows: the spans of a lane, by start."""
        stack, at, ends = [], 0, self.ends.get(track, ())
        for row in [*rows, None] if ends else ():
            until = trace.start[row] if row is not None else 2**63
            while at < len(ends) and ends[at][0] < until:
                ns, arrow, reaches = ends[at]
                around = next((r for r in reversed(stack) if trace.start[r] + trace.dur[r] >= ns), None)
                if around is not None:
                    (self.reach if reaches else self.leave)[around].append(arrow)
                at += 1
            while row is not None and stack and trace.start[stack[-1]] + trace.dur[stack[-1]] <= until:
                stack.pop()
            if row is not None:
                stack.append(row)


def write_lane(trace, lane, rows, arrows):
    """The spans of a lane, by start: they nest."""
    stack = []

    def close(until):
        while stack and stack[-1][0] <= until:
            ns, row = stack.pop()
            lane.event(END, ns, b"".join(fixed(48, arrow) for arrow in arrows.reach.get(row, ())))
    for row in rows:
        start = trace.start[row]
        close(start)
        content = lane.names(trace.text(row), trace.names[trace.cat[row]], trace.kind[row] != DEVICE)
        content += lane.arguments(trace.args(row))
        lane.event(BEGIN, start, content + b"".join(fixed(47, a) for a in arrows.leave.get(row, ())))
        stack.append((start + trace.dur[row], row))
    close(2**64)


def describe(trace, track, writer, processes, devices):
    """Describes a track, and its process and device if they are new. Returns its number."""
    if track.pid not in processes:
        about = next((p for p in trace.metadata.get("processes", ()) if p.get("pid") == track.pid), {})
        name = about.get("label") or trace.metadata.get("program") or "process"
        pid = track.pid if type(track.pid) is int else len(processes) + 1
        processes[track.pid] = writer.track(inside(3, number(1, pid) + text(6, str(name)))), pid
    process, pid = processes[track.pid]
    if track.kind == "thread" and track.base == track.number:
        tid = track.native_id or (track.tid if type(track.tid) is int else track.number)
        if writer.has_tasks and not track.native_id:
            tid = NO_TASK + track.number
        return writer.track(inside(4, number(1, pid) + number(2, tid) + text(5, track.name)))
    if track.kind != "device":
        return writer.track(text(2, track.name or "unnamed"), process)
    name = LANE.sub("", track.name)
    known = [d.get("name", "") for d in trace.metadata.get("devices", ())]
    device = max((d for d in known if name == d or name.startswith(f"{d} ")), key=len, default=name)
    if (pid, device) not in devices:
        devices[pid, device] = writer.track(text(2, device) + number(11, 3) + number(15, 2))
    engine = name[len(device) + 1:] or "PE 0"
    return writer.track(text(2, engine) + number(12, track.number + 1), devices[pid, device])


def write_counters(trace, writer, processes):
    """Counters, a track for each; and what changed the memory pools among them."""
    pools = {change.device for change in trace.memory}
    for counter in trace.counters:
        name = counter.name if counter.key == "value" else f"{counter.name} {counter.key}"
        unit = number(3, BYTES) if counter.name in pools and counter.key != "value" else b""
        process = processes[counter.pid][0] if counter.pid in processes else None
        lane = Lane(writer, writer.track(text(2, name or "unnamed") + inside(8, unit), process))
        for ns, value in zip(counter.ts, counter.values):
            whole = isinstance(value, int) and -2**63 <= value < 2**63
            lane.event(COUNTER, ns,
                       number(30, value) if whole else varint(44 << 3 | 1) + struct.pack("<d", value))
    marks = Lane(writer, next(iter(processes.values()))[0]) if trace.memory and processes else None
    for change in trace.memory:
        if marks and (change.tag or change.change):
            args = {"pool": change.device, "tag": change.tag, "change": change.change}
            names = marks.names(change.tag or "memory", "memory")
            marks.event(INSTANT, change.ts, names + marks.arguments(args))


def clocks_of(trace):
    """The clocks at the beginning of the trace: those of the first process, if it is a merged one."""
    about, shift = trace.metadata, 0
    if about.get("processes"):
        about = about["processes"][0]
        shift = about.get("shift_ns", 0)
    clocks = {BOOTTIME: about.get("start_boottime_ns", 0) - shift,
              MONOTONIC: about.get("start_monotonic_ns", 0) - shift, REALTIME: trace.base_ns}
    first = min([0, *trace.start, *(i.ts for i in trace.instants),
                 *(counter.ts[0] for counter in trace.counters if counter.ts)])
    # Why: a stamp below 0 would be a large one.
    shift = max(0, -first - clocks[BOOTTIME])
    return {clock: max(0, ns + shift) for clock, ns in clocks.items()}


def write_pftrace(trace, file):
    """Writes to a binary file."""
    writer = Writer(file, clocks_of(trace), sources(trace.metadata))
    rows, processes, devices = defaultdict(list), {}, {}
    for row, track in enumerate(trace.track):
        rows[track].append(row)
    arrows, bar, done = Arrows(trace, writer), Progress(f"writing {len(trace)} spans", len(trace)), 0
    marks = defaultdict(list)
    for instant in trace.instants:
        marks[instant.track].append(instant)
    # Devices last: of two events at one time the first in the file comes first, and arrows lead to devices.
    # Why: beside the system's numbers of tasks, a number of our own would be that of another task.
    writer.has_tasks = any(track.native_id for track in trace.tracks)
    for track in sorted(trace.tracks, key=lambda t: (t.kind == "device", t.number)):
        members, split = rows.get(track.number, ()), []
        if not members and not marks.get(track.number):
            continue
        for lane_rows in lanes(trace, members):
            split.append(lane_rows)
            arrows.bind(trace, track.number, lane_rows)
        for n, lane_rows in enumerate(split or [[]]):
            lane = Lane(writer, describe(trace, track, writer, processes, devices))
            write_lane(trace, lane, lane_rows, arrows)
            for instant in marks.get(track.number, ()) if n == 0 else ():
                lane.event(INSTANT, instant.ts,
                           lane.names(instant.name, instant.cat) + lane.arguments(instant.args))
            done += len(lane_rows)
            bar.at(done)
    write_counters(trace, writer, processes)
    if trace.metadata and processes:
        about = Lane(writer, next(iter(processes.values()))[0])
        said = json.dumps({"npuprof": trace.metadata}, ensure_ascii=False, separators=(",", ":"), default=str)
        about.event(INSTANT, 0, text(23, "npuprof") + about.arguments({"metadata": said}))
    bar.done()
