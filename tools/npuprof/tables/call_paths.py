# SPDX-License-Identifier: MIT
"""All spans by call path: a span's name behind those of the spans around it. Threads are together, and so are
the engines of a device. A path begins with where it is: "host", the name of a device, or "async" for spans
that do not nest. The table, the flame graph of the page and folded text are made from it."""

from array import array

from ..analysis.lanes import Names
from ..base.contract import UNFINISHED
from .spans import Spans
from .table import Table, pct

CALL_PATHS = ("path", "depth", "count", "total_ns", "self_ns", "self_pct", "mean_ns")
DEEPEST = 200      # frames of a path; what lies deeper is in one more, DEEPER
DEEPER = "(deeper)"


class CallPaths:
    """above, names, depth: by number of a path, the number of the one around it (-1: none), its last name and
    its frames. key: the path of each row. count, total, own: by path, spans and ns; own is without children.
    """

    def __init__(self, trace):
        self.trace = trace
        self.above, self.names, self.depth, self.numbers = [], [], [], {}
        self.key = self._keys(self._roots())
        spans = Spans(trace, self.key, self.names)
        self.count, self.total, self.own = list(map(len, spans.durations)), spans.totals, spans.self_ns

    def _roots(self):
        """By track, the path that its outermost spans are in."""
        trace, devices, found = self.trace, Names(self.trace), array("I")
        for track in trace.tracks:
            base = trace.tracks[track.base]
            text = "host" if base.kind == "thread" else "async"
            if base.kind == "device":
                text = devices.of(base)[0] or base.name
            found.append(self._inside(-1, f"{text} (pid {track.pid})" if trace.has_processes else text))
        return found

    def _inside(self, above, name):
        """The number of a path: `name` inside the path `above`."""
        depth = self.depth[above] + 1 if above >= 0 else 1
        if depth > DEEPEST + 1:
            return above
        name = DEEPER if depth > DEEPEST else name
        number = self.numbers.get((above, name))
        if number is None:
            number = self.numbers[above, name] = len(self.above)
            self.above.append(above)
            self.names.append(name)
            self.depth.append(depth)
        return number

    def _keys(self, roots):
        """The path of each row."""
        trace, known, place = self.trace, {}, array("i", [-1]) * len(self.trace)
        on_device = bytes(track.kind == "device" for track in trace.tracks)
        parents, tracks, names = trace.parents, trace.track, trace.name
        for i in parents_first(parents):
            parent, track, name = parents[i], tracks[i], names[i]
            # Why not across: a job may last longer than the call that submitted it.
            inside = parent >= 0 and on_device[tracks[parent]] == on_device[track]
            above = place[parent] if inside and place[parent] >= 0 else roots[track]
            number = known.get(above << 32 | name)
            if number is None:
                number = known[above << 32 | name] = self._inside(above, trace.names[name] or "(none)")
            place[i] = number
        return array("I", place)
    def texts(self):
        """By number, the path as text; semicolons stand between the names."""
        found = []
        for above, name in zip(self.above, self.names):
            name = name.replace(";", ",")
            found.append(f"{found[above]};{name}" if above >= 0 else name)
        return found


def parents_first(parents):
    """Yields each row once, behind its parent; of a circle, as ids of a CSV may have, somehow."""
    done = bytearray(len(parents))
    for i, parent in enumerate(parents):
        if done[i]:
            continue
        if parent < 0 or done[parent]:
            done[i] = 1
            yield i
            continue
        chain = []
        while i >= 0 and not done[i]:
            done[i] = 1
            chain.append(i)
            i = parents[i]
        yield from reversed(chain)


def call_paths_table(trace):
    paths = CallPaths(trace)
    everything = sum(paths.own)
    rows = [(text, depth - 1, count, total, own, pct(own, everything), (2 * total + count) // (2 * count))
            for text, depth, count, total, own in
            zip(paths.texts(), paths.depth, paths.count, paths.total, paths.own) if count]
    still = len(trace.rows_with(UNFINISHED))
    notes = [f"{still} spans were open when the recording ended, and took at least so long"] if still else []
    return Table("call_paths", "Spans by call path (self is without children, its share is of all self time)",
                 CALL_PATHS, sorted(rows, key=lambda row: (-row[4], row[0])), notes)
