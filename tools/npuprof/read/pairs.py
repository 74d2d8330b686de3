# SPDX-License-Identifier: MIT
"""Chrome events that belong together: the begin and end of a span, of an asynchronous one, of an object, and
the ends of an arrow. What has no partner is counted in trace.left_out, or marked unfinished."""

from collections import Counter

from ..base.contract import INDEXES, UNFINISHED
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


def name_of(event):
    """The name of a begin or an end; "": it has none."""
    name = event.get("name")
    return "" if name is None else str(name)


def in_time(marks):
    """The numbers of marks, which begin with their ns, by time. Why the file's order in a tick: nothing else
    says what came first, and viewers take it, too."""
    return sorted(range(len(marks)), key=lambda n: marks[n][0])


def partners(marks, strict=False):
    """For each mark the number of its partner; None: it has none. marks: (ns, does it end, name, ...) in the
    order of the file.

    An end belongs to what began last of its name or, without a name, to what began last. Of what is left, an
    end may stand before its begin of the same tick. The rest goes by nesting alone, whatever its names are;
    not if it is strict."""
    found = [None] * len(marks)
    order = in_time(marks)
    behind = sorted(order, key=lambda n: marks[n][:2])
    for numbers, by_name in ((order, True), (behind, True), (order, False))[:2 if strict else 3]:
        left = [n for n in numbers if found[n] is None]
        if not any(marks[n][1] for n in left):
            break
        begun, of_name = [], {}
        for n in left:
            ends, name = marks[n][1:3]
            if not ends:
                begun.append(n)
                of_name.setdefault(name, []).append(n)
                continue
            stack = of_name.get(name, []) if by_name and name else begun
            while stack and found[stack[-1]] is not None:
                stack.pop()
            if stack:
                found[n] = stack.pop()
                found[found[n]] = n
    return found


class Pairs:
    """Holds what waits for its partner. The class that uses it has trace, span() and column()."""

    def __init__(self):
        self.marks = {}               # (pid, tid) -> (ns, is it E, name, the row of a B or arguments of an E)
        self.ends = {}                # (name, what tells the arrow from others) -> (ns, phase, track)
        self.asyncs = {}              # what tells it from others -> (ns, does it end, name, (event, pid))
        self.endless = []             # rows of X events without a dur, and of B events without an E
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
        """Finds the E of each B."""
        trace = self.trace
        for marks in self.marks.values():
            for (ts, ends, _, what), partner in zip(marks, partners(marks)):
                if ends and partner is None:
                    trace.left_out["unmatched E event"] += 1
                elif ends:
                    self.close(marks[partner][3], ts, what)
                elif partner is None:
                    self.endless.append(what)
        for i in self.endless:
            trace.dur[i] = max(0, self.last_ns - trace.start[i])
            trace.flags[i] |= UNFINISHED

    def close(self, i, ts, end):
        """The E of a B: its time, and its arguments are the span's, too."""
        trace = self.trace
        trace.dur[i] = ts - trace.start[i]
        for key, value in end.items():
            trace._args.setdefault(i, {})[key] = value
            if key in INDEXES and type(value) is int and -2**63 < value < 2**63:
                self.column(key, len(trace))[i] = value

    # ---- Asynchronous spans, and objects

    def asynchronous(self, event, phase, ids, ts):
        """A begin or an end. Of the older ones and of objects, those of another name are other ones."""
        name = name_of(event)
        key = "be" if phase in "be" else phase in "SF", "" if phase in "be" else name, \
            str(event.get("cat", "")) if phase not in "ND" else "", *id_of(event, ids[0])
        self.asyncs.setdefault(key, []).append((ts, phase in ENDS, name, (event, ids[0])))

    def join_asyncs(self):
        """Makes spans of asynchronous begins and ends. Those of one name are on one track, and on it what
        begins inside them. Why strict: two steps of an id may overlap, so an end is only that of its name."""
        for marks in self.asyncs.values():
            found, begun, track = partners(marks, strict=True), 0, None
            for n in in_time(marks):
                ts, ends, name, (event, pid) = marks[n]
                partner = None if found[n] is None else marks[found[n]]
                if ends:
                    begun -= partner is not None
                    self.trace.left_out[f"unmatched {event['ph']} event"] += partner is None
                    continue
                track = track if begun > 0 else AsyncId(name or "async")
                begun += 1
                end, more = (partner[0], partner[3][0].get("args")) if partner else (
                    self.last_ns, {"unfinished": True})
                self.async_span(ts, event, track, pid, more, end)
        self.trace.left_out += Counter()            # without zeros

    def async_span(self, start, event, track, pid, more, end):
        args = {key: value for part in (event.get("args"), more) if type(part) is dict
                for key, value in part.items()}
        self.span((pid, track), event, start, max(0, end - start), args)
