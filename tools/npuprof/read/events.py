# SPDX-License-Identifier: MIT
"""Reads Chrome events of any writer into a Trace, one at a time."""

import re
from array import array
from decimal import Decimal

from ..base.contract import (COUNTED, DEVICE, IN_WARM_UP, INDEXES, KINDS, NULL, SAMPLED, SPAN, UNFINISHED,
                             UNWOUND, VIOLATED)
from ..base.metadata import check_about
from ..base.numbers import DOUBLE_MAX, plain
from ..base.strict_json import NotJson, shown
from .trace import Counter, Instant, Memory, Numbered, Track, kinds_by_name
from .track_names import name_tracks

TIME_LIMIT_US = 4 * 10**15        # 64 bits hold the sum of two such times in ns


def is_whole(value):
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and value == int(value)


class BadEvent(NotJson):
    """An event that cannot be placed in time."""


class EventReader:
    """Fills a Trace from Chrome events."""

    def __init__(self, trace):
        self.trace = trace
        self.tracks = Numbered(self.new_track)        # (pid, tid) -> number
        self.track_names = {}         # (pid, tid) -> what metadata events say about the track
        self.begun = {}               # (pid, tid) -> rows of B events without an E
        self.half = {}                # (name, id) -> start of an arrow without an end
        self.series = {}              # (pid, name, key) -> Counter
        self.last_ns = 0
        self.own = False              # True: npuprof wrote the file

    def new_track(self, key):
        track = Track(len(self.trace.tracks), *key)
        self.trace.tracks.append(track)
        return track.number

    def event(self, event, position):
        """Takes one event, a dict. Numbers are int, float or Decimal."""
        if type(event) is not dict:
            return
        phase, args = event.get("ph"), event.get("args")
        args = args if type(args) is dict else {}
        ids = self.id_key(event.get("pid")), self.id_key(event.get("tid"))
        if phase == "M":
            names, key = self.track_names.setdefault(ids, {}), str(event.get("name"))
            names[key] = args.get("name", args.get("sort_index"))
            if key == "thread_name" and type(args.get("native_id")) is int:
                names["native_id"] = args["native_id"]
            return
        ts = self.nanoseconds(event.get("ts"))
        if ts is None:
            if phase in ("X", "B", "E"):
                raise BadEvent(position or 0, f"ts {shown(event.get('ts'))} of an event is no time")
            return
        self.last_ns = max(self.last_ns, ts)
        if phase == "X" or phase == "B":
            duration = self.nanoseconds(event.get("dur")) if phase == "X" else -1
            if duration is None:
                raise BadEvent(position or 0, f"dur {shown(event.get('dur'))} of an event is no time")
            self.span(ids, event, ts, duration, args)
        elif phase == "E":
            stack = self.begun.get(ids)
            if stack:
                i = stack.pop()
                self.trace.dur[i] = max(0, ts - self.trace.start[i])
        elif phase == "C":
            self.counter(ids, event, ts, args)
        # derived: it repeats a counter for viewers
        elif phase in ("i", "I") and event.get("derived") is not True:
            self.trace.instants.append(Instant(ts, self.tracks[ids], str(event.get("name", "")),
                                               str(event.get("cat", "")), plain(args)))
        elif phase in ("s", "f"):
            name = self.trace._numbers[str(event.get("name", ""))]
            self.flow(phase == "s", name, str(event.get("id")), self.tracks[ids], ts)

    def id_key(self, value):
        """A pid or tid: a whole number, or a text for anything else."""
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            if abs(value) <= DOUBLE_MAX and value == int(value):
                return int(value)
        return str(value)

    def nanoseconds(self, value):
        """A time in µs as whole ns; None: it is no time, or out of bounds."""
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                return None
        if value is None or isinstance(value, (bool, list, dict)) or not abs(value) < TIME_LIMIT_US:
            return None
        return value * 1000 if type(value) is int else round(value * 1000)

    def span(self, ids, event, ts, duration, args):
        trace = self.trace
        i = len(trace)
        trace.start.append(ts)
        trace.dur.append(max(duration, 0))
        trace.name.append(trace._numbers[str(event.get("name", ""))])
        trace.cat.append(trace._numbers[str(event.get("cat", ""))])
        trace.track.append(self.tracks[ids])
        on_device = "stamp" in args and self.own
        trace.kind.append(DEVICE if on_device else KINDS.get(str(args.get("kind")).encode(), SPAN))
        left = args.get("unfinished")
        trace.flags.append((UNFINISHED if left is True else UNWOUND if left == "unwound" else 0)
                           | VIOLATED * (args.get("causality") == "violated")
                           | IN_WARM_UP * (args.get("warm_up") is True)
                           | SAMPLED * (on_device and args["stamp"] == "sampled")
                           | COUNTED * (on_device and "busy_ticks" in args))
        if duration < 0:
            self.begun.setdefault(ids, []).append(i)
        if args:
            trace._args[i] = plain(args)
            for key in INDEXES:
                value = args.get(key)
                if type(value) is str and re.fullmatch(r"-?\d+", value):
                    value = int(value)
                if type(value) is int and -2**63 < value < 2**63:
                    self.column(key, i).append(value)

    def counter(self, ids, event, ts, args):
        name = str(event.get("name", ""))
        for key, value in args.items():
            if not isinstance(value, (int, float, Decimal)):
                continue
            if not abs(value) <= DOUBLE_MAX:
                raise BadEvent(0, f"a counter value {str(value)[:20]} is out of all bounds")
            series = self.series.get((ids[0], name, key))
            if series is None:
                series = self.series[ids[0], name, key] = Counter(name, ids[0], key, [], [])
                self.trace.counters.append(series)
            series.ts.append(ts)
            series.values.append(value if type(value) is int else float(value))
        # Why reals, too: what 63 bits cannot hold is one in JSON.
        if set(args) == {"used", "allocated"} and all(is_whole(value) for value in args.values()):
            change = event.get("change")
            self.trace.memory.append(Memory(ts, name, int(args["used"]), int(args["allocated"]),
                                            str(event.get("tag", "")), change if type(change) is int else 0,
                                            event.get("warm_up") is True))

    def flow(self, begins, name, flow, track, ts):
        if begins:
            self.half[name, flow] = track, ts
        else:
            other = self.half.pop((name, flow), None)
            if other:
                self.trace.flows.add(name, *other, track, ts)

    def column(self, key, rows):
        """The index column, filled with NULL up to that many rows."""
        column = self.trace.index.setdefault(key, array("q"))
        if len(column) < rows:
            column.extend(array("q", [NULL]) * (rows - len(column)))
        return column

    def finish(self, top):
        """Called after the last event; `top` holds the other members of the file."""
        trace = self.trace
        for stack in self.begun.values():
            for i in stack:
                trace.dur[i] = max(0, self.last_ns - trace.start[i])
                trace.flags[i] |= UNFINISHED
        about = top.get("metadata", {}).get("npuprof") if type(top.get("metadata")) is dict else None
        if about is not None:
            trace.metadata = check_about(trace.path, about)
            trace.base_ns = trace.metadata["start_unix_ns"]
        for column in trace.index:
            self.column(column, len(trace))
        name_tracks(trace, self.tracks, self.track_names)
        if not trace.metadata:
            kinds_by_name(trace)
