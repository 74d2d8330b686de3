# SPDX-License-Identifier: MIT
"""Reads Chrome events of any writer into a Trace, one at a time."""

import re
from array import array
from decimal import Decimal

from ..base.contract import (COUNTED, DEVICE, IN_WARM_UP, INDEXES, KINDS, NULL, SAMPLED, SPAN, UNFINISHED,
                             UNWOUND, VIOLATED)
from ..base.metadata import check_about, roles_of
from ..base.numbers import DOUBLE_MAX, plain
from ..base.strict_json import NotJson, shown
from .order import renumber_tracks, settle, text_of
from .trace import Counter, Instant, Memory, Numbered, Track, kinds_by_name
from .track_names import AsyncId, name_tracks

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
        self.begun = {}               # (pid, tid) -> rows of B events
        self.ended = {}               # (pid, tid) -> (ns, name, arguments) of E events
        self.ends = {}                # (name, id) -> (ns, phase, track) of arrows
        self.asyncs = {}              # (pid, category, id) -> (ns, ends, name, event) of asynchronous spans
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
            said = args.get("name", args.get("sort_index"))
            # If it is said twice, the greater one holds: the order of events means nothing.
            names[key] = max(said, names.get(key, said), key=str)
            if key == "thread_name" and type(args.get("native_id")) is int:
                names["native_id"] = max(args["native_id"], names.get("native_id", 0))
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
            self.ended.setdefault(ids, []).append((ts, event.get("name"), plain(args)))
        elif phase == "C":
            self.counter(ids, event, ts, args)
        # derived: it repeats a counter for viewers
        elif phase in ("i", "I", "R", "n", "T") and event.get("derived") is not True:
            self.trace.instants.append(Instant(ts, self.tracks[ids], str(event.get("name", "")),
                                               str(event.get("cat", "")), plain(args)))
        elif phase in ("s", "t", "f"):
            name = self.trace._numbers[str(event.get("name", ""))]
            self.flow(name, str(event.get("id")), ts, "stf".index(phase), self.tracks[ids])
        elif phase in ("b", "e", "S", "F"):
            local = event.get("id2") if type(event.get("id2")) is dict else {"id": event.get("id")}
            key = ids[0] if "global" not in local else None, str(event.get("cat", "")), text_of(local)
            name = str(event.get("name", ""))
            self.asyncs.setdefault(key, []).append((ts, phase in "eF", name, event, ids[0]))
        elif phase not in ("i", "I"):
            self.trace.left_out[str(phase)] += 1

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

    def flow(self, name, flow, ts, phase, track):
        """One end of an arrow. phase: 0 it leaves, 1 it passes, 2 it arrives."""
        self.ends.setdefault((name, flow), []).append((ts, phase, track))

    def join_flows(self):
        """Makes arrows of their ends: each leads from the end before it in time."""
        for (name, _), ends in self.ends.items():
            last = None
            for ts, phase, track in sorted(ends) if len(ends) > 2 else sorted(ends, key=lambda end: end[1]):
                if phase and last:
                    self.trace.flows.add(name, *last, track, ts)
                last = None if phase == 2 else (track, ts)

    def close_begun(self):
        """Finds the E of each B. At one time, what was begun before ends first."""
        trace = self.trace
        for ids, rows in self.begun.items():
            marks = [(trace.start[i], 1, trace.text(i), text_of(trace._args.get(i)), i) for i in rows]
            marks += [(ts, 0, str(name), text_of(args), (name, args))
                      for ts, name, args in self.ended.get(ids, ())]
            begun, waiting = [], []
            for ts, begins, _, _, what in [*sorted(marks, key=lambda mark: mark[:4]), (None,) * 5]:
                while waiting and waiting[0][0] != ts and begun:      # of no length: ends in the same tick
                    self.close(begun.pop(), *waiting.pop(0))
                waiting = [end for end in waiting if end[0] == ts]
                if begins == 1:
                    begun.append(what)
                elif ts is not None and begun:
                    self.close(begun.pop(), ts, what)
                elif ts is not None:
                    waiting.append((ts, what))
            for i in begun:
                trace.dur[i] = max(0, self.last_ns - trace.start[i])
                trace.flags[i] |= UNFINISHED

    def close(self, i, ts, end):
        """The E of a B: its time, and its arguments are the span's, too."""
        trace = self.trace
        trace.dur[i] = max(0, ts - trace.start[i])
        for key, value in end[1].items():
            trace._args.setdefault(i, {})[key] = value
            if key in INDEXES and type(value) is int and -2**63 < value < 2**63:
                self.column(key, len(trace))[i] = value

    def join_asyncs(self):
        """Makes spans of asynchronous begins and ends; those of one name are on one track."""
        for found in self.asyncs.values():
            begun = []
            for ts, ends, name, event, pid in sorted(found, key=lambda f: (*f[:3], text_of(f[3]))):
                if not ends:
                    begun.append((ts, event, begun[0][2] if begun else AsyncId(name or "async"), pid))
                elif begun:
                    self.async_span(*begun.pop(), event.get("args"), ts)
                else:
                    self.trace.left_out["e without b"] += 1
            for left in begun:
                self.async_span(*left, {"unfinished": True}, self.last_ns)

    def async_span(self, start, event, track, pid, more, end):
        args = {key: value for part in (event.get("args"), more) if type(part) is dict
                for key, value in part.items()}
        self.span((pid, track), event, start, max(0, end - start), args)

    def column(self, key, rows):
        """The index column, filled with NULL up to that many rows."""
        column = self.trace.index.setdefault(key, array("q"))
        if len(column) < rows:
            column.extend(array("q", [NULL]) * (rows - len(column)))
        return column

    def finish(self, top):
        """Called after the last event; `top` holds the other members of the file."""
        trace = self.trace
        self.join_asyncs()
        self.close_begun()
        self.join_flows()
        about = top.get("metadata", {}).get("npuprof") if type(top.get("metadata")) is dict else None
        if about is not None:
            trace.metadata = check_about(trace.path, about)
            trace.base_ns, trace.roles = trace.metadata["start_unix_ns"], roles_of(trace.metadata)
        for column in trace.index:
            self.column(column, len(trace))
        renumber_tracks(trace, self.tracks)
        name_tracks(trace, self.tracks, self.track_names)
        if not trace.metadata:
            kinds_by_name(trace)
        settle(trace)
