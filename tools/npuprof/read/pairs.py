# SPDX-License-Identifier: MIT
"""Chrome events that belong together: the begin and end of a span, of an asynchronous one, of an object, and
the ends of an arrow. What has no partner is counted in trace.left_out, or marked unfinished."""

from collections import Counter

from ..base.contract import INDEXES, UNFINISHED
from .order import text_of
from .track_names import AsyncId

BEGINS, ENDS, STEPS = "bSN", "eFD", "nTp"      # of asynchronous events: nestable ones, older ones, objects


def id_text(value):
    """An id as a text: a number is one in hexadecimal digits, as texts are."""
    return f"{value:x}" if type(value) is int else str(value).lower().removeprefix("0x")


def id_of(event, pid):
    """What tells the events of one id from others: its process if the id is local, its scope, and the id."""
    both = event.get("id2") if type(event.get("id2")) is dict else {"local": event.get("id")}
    is_global = "global" in both
    return (None if is_global else pid, str(event.get("scope", "")),
            id_text(both["global" if is_global else "local"] if both.keys() & {"local", "global"} else None))


class Pairs:
    """Holds what waits for its partner. The class that uses it has trace, span() and column()."""

    def __init__(self):
        self.begun = {}               # (pid, tid) -> rows of B events
        self.ended = {}               # (pid, tid) -> (ns, name, arguments) of E events
        self.ends = {}                # (name, what tells the arrow from others) -> (ns, phase, track)
        self.asyncs = {}              # what tells it from others -> (ns, ends, name, event, pid)
        self.endless = []             # rows of X events without a dur
        self.last_ns = -2**63         # the end of the trace: of its last span, or its last event

    # ---- Arrows

    def flow(self, name, flow, ts, phase, track):
        """One end of an arrow. phase: 0 it leaves, 1 it passes, 2 it arrives."""
        self.ends.setdefault((name, flow), []).append((ts, phase, track))

    def bound_flow(self, event, ids, ts, track):
        """The arrows that a span states by bind_id. They have no name of their own."""
        leaves, arrives = event.get("flow_out") is True, event.get("flow_in") is True
        if leaves or arrives:
            name = self.trace._numbers[str(event.get("cat") or "flow")]
            self.flow(name, ("bind", id_text(event["bind_id"])), ts, 1 if leaves and arrives else 2 * arrives,
                      track)

    def join_flows(self):
        """Makes arrows of their ends: each leads from the end before it in time. One begin may have several
        ends: a launch of many jobs. Where one begins, its ends may lie before it in time."""
        left_out = self.trace.left_out
        for (name, _), ends in self.ends.items():
            simple = sum(not phase for _, phase, _ in ends) == 1
            last, loose = None, False
            for ts, phase, track in sorted(ends, key=lambda end: (end[1], end)) if simple else sorted(ends):
                if phase and last:
                    self.trace.flows.add(name, *last, track, ts)
                    loose = False
                elif phase == 2:
                    left_out["unmatched arrow end"] += 1
                if phase < 2:
                    left_out["unmatched arrow begin"] += loose and not phase
                    last, loose = (track, ts), not (phase and last)
            left_out["unmatched arrow begin"] += loose
        self.trace.left_out += Counter()            # without zeros

    # ---- B and E

    def close_begun(self):
        """Finds the E of each B. At one time, what was begun before ends first."""
        trace = self.trace
        for ids in self.ended.keys() - self.begun.keys():
            trace.left_out["unmatched E event"] += len(self.ended[ids])
        for ids, rows in self.begun.items():
            marks = [(trace.start[i], 1, trace.text(i), text_of(trace._args.get(i)), i) for i in rows]
            marks += [(ts, 0, str(name), text_of(args), (name, args))
                      for ts, name, args in self.ended.get(ids, ())]
            begun, waiting = [], []
            for ts, begins, _, _, what in [*sorted(marks, key=lambda mark: mark[:4]), (None,) * 5]:
                while waiting and waiting[0][0] != ts and begun:      # of no length: ends in the same tick
                    self.close(begun.pop(), *waiting.pop(0))
                if lost := sum(end[0] != ts for end in waiting):
                    trace.left_out["unmatched E event"] += lost
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
        for i in self.endless:
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

    # ---- Asynchronous spans, and objects

    def asynchronous(self, event, phase, ids, ts):
        """A begin or an end. Of the older ones and of objects, those of another name are other ones."""
        name = str(event.get("name", ""))
        key = "be" if phase in "be" else phase in "SF", "" if phase in "be" else name, \
            str(event.get("cat", "")) if phase not in "ND" else "", *id_of(event, ids[0])
        self.asyncs.setdefault(key, []).append((ts, phase in ENDS, name, event, ids[0]))

    def join_asyncs(self):
        """Makes spans of asynchronous begins and ends; those of one name are on one track."""
        for found in self.asyncs.values():
            begun = []
            for ts, ends, name, event, pid in sorted(found, key=lambda f: (*f[:3], text_of(f[3]))):
                if not ends:
                    track = begun[0][2] if begun else AsyncId(name or "async")
                    begun.append((ts, event, track, pid))
                elif begun:
                    self.async_span(*begun.pop(), event.get("args"), ts)
                else:
                    phase = event["ph"]
                    self.trace.left_out[f"unmatched {phase} event"] += 1
            for left in begun:
                self.async_span(*left, {"unfinished": True}, self.last_ns)

    def async_span(self, start, event, track, pid, more, end):
        args = {key: value for part in (event.get("args"), more) if type(part) is dict
                for key, value in part.items()}
        self.span((pid, track), event, start, max(0, end - start), args)
