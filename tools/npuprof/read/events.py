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
from .foreign import place
from .order import renumber_tracks, settle
from .pairs import BEGINS, ENDS, STEPS, Pairs, id_of, name_of
from .trace import Counter, Instant, Memory, Numbered, Track, kinds_by_name
from .track_names import name_tracks

# Metadata events that are read, or only say how a viewer sorts and labels tracks.
METADATA = {"thread_name", "thread_sort_index", "process_name", "process_labels", "process_sort_index"}
POINTS = "iIRPO" + STEPS          # phases of events without a length
TIME_LIMIT_US = 4 * 10**15        # 64 bits hold the sum of two such times in ns
ID_TEXT = re.compile(r"[+-]?[0-9]{1,18}")


def is_whole(value):
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and value == int(value)


def number_of(value):
    """A number, also one that is written as a text; None: it is none, as true and false are."""
    if isinstance(value, str):
        try:
            value = Decimal(value)
        except ArithmeticError:
            return None
        return value if value.is_finite() else None
    return value if isinstance(value, (int, float, Decimal)) and type(value) is not bool else None


class BadEvent(NotJson):
    """An event that cannot be placed in time."""


class EventReader(Pairs):
    """Fills a Trace from Chrome events."""

    def __init__(self, trace):
        super().__init__()
        self.trace = trace
        self.tracks = Numbered(self.new_track)        # (pid, tid) -> number
        self.track_names = {}         # (pid, tid) -> what metadata events say about the track
        self.series = {}              # (pid, name, key) -> Counter
        self.tool = None              # of foreign/FILES, if the file is one of theirs
        self.own = False              # True: npuprof wrote the file

    def new_track(self, key):
        track = Track(len(self.trace.tracks), *key)
        self.trace.tracks.append(track)
        return track.number

    def event(self, event, position):
        """Takes one event, a dict. Numbers are int, float or Decimal. What has no place here is counted."""
        if type(event) is not dict:
            self.trace.left_out["value that is no event"] += 1
            return
        phase, args = event.get("ph"), event.get("args")
        if phase is None:
            self.trace.left_out["event without ph"] += 1
            return
        args = args if type(args) is dict else {} if args is None else {"args": args}
        ids = self.id_key(event.get("pid")), self.id_key(event.get("tid"))
        if phase == "M":
            self.metadata(ids, str(event.get("name")), args)
            return
        ts = self.nanoseconds(event.get("ts"))
        if ts is None:
            if phase in ("X", "B", "E"):
                raise BadEvent(position or 0, f"ts {shown(event.get('ts'))} of an event is no time")
            if phase != "C" or type(event.get("entries")) is not list:
                self.trace.left_out[f"{phase} event without ts"] += 1
                return
        if ts is not None:
            self.last_ns = max(self.last_ns, ts)
        if phase == "X" or phase == "B":
            endless = phase == "B" or event.get("dur") is None
            duration = 0 if endless else self.length(event["ts"], event["dur"])
            if duration is None:
                raise BadEvent(position or 0, f"dur {shown(event.get('dur'))} of an event is no time")
            self.trace.left_out["negative duration"] += duration < 0
            self.last_ns = max(self.last_ns, ts + duration)
            self.span(ids, event, ts, duration, args)
            if phase == "B":
                self.marks.setdefault(ids, []).append((ts, False, name_of(event), len(self.trace) - 1))
            elif endless:
                self.endless.append(len(self.trace) - 1)
            if "bind_id" in event:
                self.bound_flow(event, ids, ts, self.trace.track[-1])
        elif phase == "E":
            self.marks.setdefault(ids, []).append((ts, True, name_of(event), plain(args)))
        elif phase == "C":
            self.counter(ids, event, ts, args)
        elif type(phase) is str and phase and phase in "stf":
            name = self.trace._numbers[str(event.get("name", ""))]
            apart = str(event.get("cat", "")), *id_of(event, ids[0] if "id2" in event else "")
            self.flow(name, apart, ts, "stf".index(phase), self.tracks[ids])
        elif type(phase) is str and phase and phase in BEGINS + ENDS:
            self.asynchronous(event, phase, ids, ts)
        elif type(phase) is str and phase and phase in POINTS:
            # derived: in a trace of npuprof it repeats a counter for viewers
            if event.get("derived") is not True or not self.own:
                self.trace.instants.append(Instant(ts, self.tracks[ids], str(event.get("name", "")),
                                                   str(event.get("cat", "")), plain(args)))
        else:
            self.trace.left_out[str(phase)] += 1

    def metadata(self, ids, key, args):
        names = self.track_names.setdefault(ids, {})
        said = args.get("name", args.get("labels", args.get("sort_index")))
        # If it is said twice, the greater one holds: the order of events means nothing.
        names[key] = max(said, names.get(key, said), key=str)
        if key == "thread_name" and type(args.get("native_id")) is int:
            names["native_id"] = max(args["native_id"], names.get("native_id", 0))
        if key not in METADATA:
            self.trace.left_out[f"{key} metadata event"] += 1

    def id_key(self, value):
        """A pid or tid: a whole number, also one that is written as a text of decimal digits, as Perfetto
        reads it; or a text for anything else, such as "0x10"."""
        if type(value) is str and ID_TEXT.fullmatch(value):
            return int(value)
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
            if abs(value) <= DOUBLE_MAX and value == int(value):
                return int(value)
        return str(value)

    def nanoseconds(self, value):
        """A time in µs as whole ns; None: it is no time, or out of bounds."""
        value = number_of(value)
        if value is None or not abs(value) < TIME_LIMIT_US:
            return None
        return value * 1000 if type(value) is int else round(value * 1000)

    def length(self, ts, dur):
        """A length in µs as whole ns. Why from both ends: rounded, what lies inside another one stays there.
        A sum of floats is no more exact than they are."""
        ts, dur, length = number_of(ts), number_of(dur), self.nanoseconds(dur)
        if length is None or int is type(ts) is type(dur) or float in (type(ts), type(dur)):
            return length
        return round((ts + dur) * 1000) - self.nanoseconds(ts)

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
        if args:
            trace._args[i] = plain(args)
            for key in INDEXES:
                value = args.get(key)
                if type(value) is str and re.fullmatch(r"-?\d+", value):
                    value = int(value)
                if type(value) is int and -2**63 < value < 2**63:
                    self.column(key, i).append(value)

    def counter(self, ids, event, ts, args):
        name, entries = str(event.get("name", "")), event.get("entries")
        if type(entries) is list:           # XProf: [µs, value, ...] of one counter, one after the other
            for entry in entries:
                at = self.nanoseconds(entry[0]) if type(entry) is list and len(entry) > 1 else None
                self.samples(ids[0], name, at, enumerate(entry[1:]) if at is not None else ())
            return
        if event.get("id") is not None:
            name += f" [{event['id']}]"
        self.samples(ids[0], name, ts, args.items())
        # Why reals, too: what 63 bits cannot hold is one in JSON.
        if set(args) == {"used", "allocated"} and all(is_whole(value) for value in args.values()):
            change = event.get("change")
            self.trace.memory.append(Memory(ts, name, int(args["used"]), int(args["allocated"]),
                                            str(event.get("tag", "")), change if type(change) is int else 0,
                                            event.get("warm_up") is True, ids[0]))

    def samples(self, pid, name, ts, values):
        """Takes the values of a counter at one time: (key, value)."""
        found = odd = 0
        for key, value in values:
            value = number_of(value)
            if value is None:
                odd += 1
                continue
            if not abs(value) <= DOUBLE_MAX:
                raise BadEvent(0, f"a counter value {str(value)[:20]} is out of all bounds")
            series = self.series.get((pid, name, key))
            if series is None:
                series = self.series[pid, name, key] = Counter(name, pid, str(key), [], [])
                self.trace.counters.append(series)
            series.ts.append(ts)
            series.values.append(value if type(value) is int else float(value))
            found += 1
        if not found:
            self.trace.left_out["counter event without a number"] += 1
        elif odd:
            self.trace.left_out["counter value that is no number"] += odd

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
        else:
            place(self, top)
        for column in trace.index:
            self.column(column, len(trace))
        trace.processes = {pid: str(names["process_name"]) for (pid, _), names in self.track_names.items()
                           if "process_name" in names}
        renumber_tracks(trace, self.tracks)
        name_tracks(trace, self.tracks, self.track_names)
        if not trace.metadata:
            kinds_by_name(trace)
        settle(trace)
