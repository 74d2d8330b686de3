# SPDX-License-Identifier: MIT
"""Writes a trace of JSON or CSV as Perfetto's .pftrace. npuprof-convert does it for images, and explains the
form (tools/convert/pftrace.h). This one differs in three points: spans that overlap are put into lanes here,
since a trace of another tool has none; arrows are bound to the spans around their ends, since JSON binds them
by time; a span has its place in the code if all spans of its name come from there, since JSON has the places
of each name.
"""

import hashlib
import json
import re
import struct
from collections import defaultdict
from functools import cached_property

from ..base.contract import DEVICE
from ..base.metadata import sources, units_of
from .scene import Output, draw, left_out

BEGIN, END, INSTANT, COUNTER = 1, 2, 3, 4
CATEGORIES, NAMES, KEYS, PLACES = 1, 2, 3, 4      # what is interned, in interned_data.proto
REALTIME, MONOTONIC, BOOTTIME = 1, 3, 6
NEVER, BY_KEY = 2, 3                              # which tracks are drawn as one
BY_RANK = 3                                       # how the tracks below one are ordered
BYTES = 3                                         # the unit of a counter
MACHINE = 98                                      # of a packet: which host it is from
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


def scrambled(*of):
    """64 bits that depend on all that is given."""
    return int.from_bytes(hashlib.blake2b(repr(of).encode(), digest_size=8).digest(), "little")


def fixed(field, value):
    return varint(field << 3 | 1) + struct.pack("<Q", value)


class Writer:
    """Packets of one sequence, and the numbers of tracks. tools/convert/pftrace.h says why one."""

    def __init__(self, file, clocks, places, process, machine=0):
        self.file, self.machine = file, number(MACHINE, machine) if machine else b""
        # (name, category) -> the only place in the code that records such spans: file, line
        self.places = {key: next(iter(of)).rpartition(":")[::2] for key, of in places.items() if len(of) == 1}
        # Numbers that another process is not likely to have: traces may be put together.
        self.seed = scrambled(process, *clocks.values(), *([machine] if machine else ()))
        self.clock = 65 + (self.seed >> 40) % 63           # one that the sequence has for itself
        self.tracks = self.arrows = self.last = self.of_events = 0
        self.known, self.fresh = ({}, {}, {}, {}, {}), b""
        self.head = number(10, 8192 + (self.seed >> 8) % 8192)
        now = b"".join(inside(1, number(1, clock) + number(2, ns)) for clock, ns in clocks.items())
        now += inside(1, number(1, self.clock) + number(2, clocks[BOOTTIME]) + number(3, 1))
        self.packet(self.head + number(13, 1) + inside(6, now + number(2, BOOTTIME)))

    def packet(self, content):
        self.file.write(inside(1, content + self.machine))

    def key(self, *of):
        """A number that no other trace is likely to have."""
        return scrambled(self.seed, *of) >> 1 | 1

    def track(self, content, parent=None):
        self.tracks += 1
        uuid = self.key("track", self.tracks)
        self.packet(inside(60, number(1, uuid) + (number(5, parent) if parent else b"") + content))
        return uuid

    def use(self, track):
        """Events that name no track are on this one from now on."""
        self.of_events = track
        self.packet(self.head + inside(59, number(58, self.clock) + inside(11, number(11, track))))

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
        place = self.places.get((name, cat)) if has_place else None
        return (number(10, self.intern(NAMES, name)) + category
                + (number(34, self.intern(PLACES, place)) if place else b""))

    def arguments(self, args):
        return b"".join(inside(4, number(1, self.intern(KEYS, str(key))) + value_of(value))
                        for key, value in args.items())

    def event(self, track, kind, ns, content):
        stamp, self.last, fresh, self.fresh = number(8, ns - self.last), ns, self.fresh, b""
        of_track = number(11, track) if track != self.of_events else b""
        self.packet(self.head + stamp + (inside(12, fresh) if fresh else b"")
                    + inside(11, number(9, kind) + content + of_track))


def value_of(value):
    if isinstance(value, bool):
        return number(2, int(value))
    if isinstance(value, int) and -2**63 <= value < 2**64:
        return number(3 if value >= 2**63 else 4, value)
    if isinstance(value, (int, float)):
        return varint(5 << 3 | 1) + struct.pack("<d", value)
    if isinstance(value, dict) and value:
        return b"".join(inside(11, text(10, str(key)) + value_of(inner)) for key, inner in value.items())
    if isinstance(value, list) and value:
        return b"".join(inside(12, value_of(inner)) for inner in value)
    return text(6, value if isinstance(value, str) else json.dumps(value, default=str))


def attributes(value, path):
    """(key, value) of all that is in a value. What the program said of itself has its own key alone; a span
    says itself at which site it is."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "sites":
                yield from attributes(inner, [*path, str(key)])
    elif isinstance(value, list):
        for n, inner in enumerate(value):
            yield from attributes(inner, [*path, str(n)])
    else:
        yield ".".join(path[2:] if path[1:2] == ["user"] and path[2:] else path), value


class Arrows:
    """Which arrows leave and reach each span: they are bound to the innermost span around their ends."""

    def __init__(self, trace):
        self.trace, self.ends = trace, defaultdict(list)       # track -> [(ns, arrow, reaches)]
        self.leave, self.reach = defaultdict(list), defaultdict(list)

    def add(self, arrow, flow):
        self.ends[flow.from_track].append((flow.from_ns, arrow, False))
        self.ends[flow.to_track].append((flow.to_ns, arrow, True))

    def bind(self, track, rows):
        """rows: the spans of a lane, by start."""
        trace, stack, at, ends = self.trace, [], 0, sorted(self.ends.get(track, ()))
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


class Tracks:
    """The tracks of a file: processes, their threads, devices and what has a track of its own.

    processes   pid -> (number of the track, number of the process)
    devices     (pid, name, how many of that name are before it) -> number of the track, engines by their name
    """

    def __init__(self, trace, hosts):
        self.trace, self.hosts, self.writer, self.processes, self.devices = trace, hosts, None, {}, {}
        self.has_tasks = any(track.native_id for track in trace.tracks)
        self.names = [d.get("name", "") for d in trace.metadata.get("devices", ())]

    def process(self, of):
        if of not in self.processes:
            about = self.trace.metadata
            part = next((p for p in about.get("processes", ()) if p.get("pid") == of), {})
            name = part.get("label") or about.get("program") or "process"
            pid = self.system_pid(part, of if type(of) is int else len(self.processes) + 1)
            described = inside(3, number(1, pid) + text(6, str(name)))
            self.processes[of] = self.writer.track(described), pid
        return self.processes[of]

    def system_pid(self, part, pid):
        """The number that the process had, if there is one on its host; else `pid`, which merge gave."""
        own = part.get("original_pid")
        same = {p.get("pid") for p in self.trace.metadata.get("processes", ())
                if (p.get("host"), p.get("original_pid")) == (part.get("host"), own)}
        return own if own and self.hosts and len(same) == 1 else pid

    def device(self, pid, name, base):
        """(number of the track, name of the engine). Why `base`: two devices may have one name."""
        device = max((d for d in self.names if name == d or name.startswith(f"{d} ")), key=len, default=name)
        engine, n = name[len(device) + 1:] or "PE 0", 0
        while n + 1 < self.names.count(device):
            engines = self.devices.get((pid, device, n), (0, {}))[1]
            if engines.get(engine, base) == base:
                break
            n += 1
        if (pid, device, n) not in self.devices:
            described = text(2, device) + self.clock(device, n) + number(11, BY_RANK) + number(15, NEVER)
            self.devices[pid, device, n] = self.writer.track(described), {}
        number_of, engines = self.devices[pid, device, n]
        engines[engine] = base
        return number_of, engine

    def clock(self, device, n):
        """What stands below a device's name: how wrong its stamps may be."""
        own = [d for d in self.trace.metadata.get("devices", ()) if d.get("name") == device][n:n + 1]
        sync = own[0].get("clock_sync") or {} if own else {}
        return text(14, f"the device's stamps, at most {sync['max_error_ns']} ns wrong on the host's clock") \
            if sync.get("spans") and sync.get("max_error_ns") else b""

    def describe(self, track, lane):
        """Describes a lane of a track, and its process and device if they are new. Returns its number."""
        process, pid = self.process(track.pid)
        named = track.name if track.base == track.number else LANE.sub("", track.name)
        key = track.base, ""
        if track.kind == "thread" and track.base == track.number and not lane:
            tid = track.native_id or (track.tid if type(track.tid) is int else track.number)
            # Why: beside the system's numbers of tasks, one of our own would be that of another task.
            if self.has_tasks and not track.native_id:
                tid = NO_TASK + track.number
            return self.writer.track(inside(4, number(1, pid) + number(2, tid) + text(5, track.name)))
        rank = b""
        if track.kind == "device":
            process, named = self.device(track.pid, LANE.sub("", track.name), track.base)
            key, rank = (track.base, named), number(12, track.number + 1)
        elif track.kind == "thread" and lane:
            named += " (overlap)"
        merged = number(15, BY_KEY) + number(17, self.writer.key("lanes", *key))
        return self.writer.track(text(2, named or "unnamed") + rank + merged, process)


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


def hosts_of(trace):
    """{pid: number of its host} of a trace of several hosts. {} if arrows lead between them. Why: an importer
    draws no arrow from one machine to another."""
    numbers, hosts = {}, {}
    for part in trace.metadata.get("processes", ()):
        hosts[part.get("pid")] = numbers.setdefault(part.get("host"), len(numbers))
    of_track = [hosts.get(track.pid, 0) for track in trace.tracks]
    sources, _, targets, _ = trace.flows.columns
    between = len(numbers) > 1 and any(of_track[a] != of_track[b] for a, b in zip(sources, targets))
    return {} if between else hosts


class Drawing:
    """A trace as packets: what the scene asks of an output."""

    def __init__(self, trace, file):
        self.trace, self.file, self.lane = trace, file, 0
        self.hosts, self.writers, self.arrows = hosts_of(trace), {}, Arrows(trace)
        self.tracks = Tracks(trace, self.hosts)
        self.of_process(None)
        self.units = units_of(trace.metadata)
        self.pools = {change.device: {} for change in trace.memory}      # name -> {process: its track}

    def of_process(self, pid):
        """What follows is of the host of a process, which has a sequence for itself."""
        trace, host = self.trace, self.hosts.get(pid, 0)
        if host not in self.writers:
            self.writers[host] = Writer(self.file, clocks_of(trace), sources(trace.metadata),
                                        trace.metadata.get("pid"), host)
        self.writer = self.tracks.writer = self.writers[host]

    def arrow(self, n, flow):
        self.arrows.add(self.writers[0].key("arrow", n), flow)

    def track(self, track, lane, rows):
        self.arrows.bind(track.number, rows)
        self.of_process(track.pid)
        self.lane = self.tracks.describe(track, lane)
        self.writer.use(self.lane)

    def span(self, row):
        trace, writer = self.trace, self.writer
        content = writer.names(trace.text(row), trace.names[trace.cat[row]], trace.kind[row] != DEVICE)
        content += writer.arguments(trace.args(row)) + self.correlation(row)
        writer.event(self.lane, BEGIN, trace.start[row],
                     content + b"".join(fixed(47, arrow) for arrow in self.arrows.leave.get(row, ())))

    @cached_property
    def submitters(self):
        """{row of a device span, or of the span that submitted it: row of the latter}"""
        kind, found = self.trace.kind, {}
        for row in (row for row, of in enumerate(kind) if of == DEVICE):
            caller = self.trace.parents[row]
            if caller >= 0 and kind[caller] == DEVICE:
                caller = self.trace.parents[caller]
            if caller >= 0:
                found[row] = found[caller] = caller
        return found

    def correlation(self, row):
        """A span and what it submitted have one number, by which the viewer colours them."""
        of = self.submitters.get(row)
        return b"" if of is None else number(52, self.writer.key("jobs", of) >> 29)

    def close(self, row):
        self.writer.event(self.lane, END, self.trace.start[row] + self.trace.dur[row],
                          b"".join(fixed(48, arrow) for arrow in self.arrows.reach.get(row, ())))

    def instant(self, instant):
        track = self.lane
        if instant.track is None:
            self.of_process(instant.pid)
            track = self.pool(instant.args["pool"], instant.pid)
        if track:
            self.writer.event(track, INSTANT, instant.ts, self.writer.names(instant.name, instant.cat)
                              + self.writer.arguments(instant.args))

    def process(self, pid):
        """The number of its track, or None."""
        return self.tracks.processes.get(pid, (None,))[0]

    def pool(self, name, pid):
        """The track of a process's memory pool: what changed it, and below it its counters."""
        pools = self.pools[name]
        if pid not in pools:
            pools[pid] = self.writer.track(text(2, name or "unnamed"), self.process(pid))
        return pools[pid]

    def counter(self, counter):
        """Each has a track for itself."""
        self.of_process(counter.pid)
        name = counter.name if counter.key == "value" else f"{counter.name} {counter.key}"
        of_pool = counter.name in self.pools and counter.key != "value"
        unit = number(3, BYTES) + text(7, counter.name) if of_pool else b""      # both have one scale
        if not of_pool and counter.name in self.units:
            unit = text(6, self.units[counter.name])
        parent = self.pool(counter.name, counter.pid) if of_pool else self.process(counter.pid)
        track = self.writer.track(text(2, name or "unnamed") + inside(8, unit), parent)
        self.writer.use(track)
        for ns, value in zip(counter.ts, counter.values):
            whole = isinstance(value, int) and -2**63 <= value < 2**63
            self.writer.event(track, COUNTER, ns,
                              number(30, value) if whole else varint(44 << 3 | 1) + struct.pack("<d", value))

    def end(self):
        """The metadata as attributes of the trace; tools/convert/pftrace_attributes.h says how."""
        about = self.trace.metadata
        self.of_process(None)
        for key, value in attributes(about, [f"npuprof.{about.get('pid', 0)}"]):
            is_number = isinstance(value, int) and not isinstance(value, bool) and -2**63 <= value < 2**63
            said = number(2, value) if is_number else text(3, value if isinstance(value, str)
                                                           else json.dumps(value))
            self.writer.packet(inside(126, inside(1, text(1, key) + said)))


def write_pftrace(trace, file):
    """Writes to a binary file."""
    d = Drawing(trace, file)
    # Devices last: of two events at one time the first in the file comes first, and arrows lead to devices.
    draw(trace, Output(begin=left_out, arrow=d.arrow, track=d.track, span=d.span, close=d.close,
                       instant=d.instant, counter=d.counter, end=d.end), devices_last=True)
