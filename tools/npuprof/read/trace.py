# SPDX-License-Identifier: MIT
"""Trace: a trace in columns. __init__.py says what they hold."""

import bisect
import collections
import functools
import re
from array import array
from collections import namedtuple
from collections.abc import Sequence

from .. import loops
from ..base.contract import COLUMNS, DEVICE, IN_WARM_UP, INDEXES, INFERENCE, NULL, SPAN, WARM_UP
from ..base.messages import Refused
from ..base.numbers import PLAIN
from .own_layout import X_LINE

WARM_OF_FLAGS = bytes(flags & IN_WARM_UP and 1 for flags in range(256))
# Arguments that mentions() knows of, by bit as C counts them: name and value, None for any.
ASKED = (("kind", "wait"), ("cpu_ns", None), ("ne.type", None), ("doorbell_ns", None), ("wait_cpu_ns", None),
         ("ops", None), ("bytes", None), ("stamps_out_of_range", None), ("end_before_start", None))
WARM_UP_NAMES = re.compile(r"warm[ _-]?up", re.I)
MASK = 2**64 - 1
# One counter over time: ts (as trace.start) and values are lists of the same length.
Counter = namedtuple("Counter", "name pid key ts values")
# One record of a memory pool, in bytes. change: 0 if only the state is known.
Memory = namedtuple("Memory", "ts device used allocated tag change warm_up pid")
Instant = namedtuple("Instant", "ts track name cat args")
# An arrow; tracks by number.
Flow = namedtuple("Flow", "name from_track from_ns to_track to_ns")


class Track:
    """A row of the timeline.

    kind        "thread", "device" or "other" (finished and asynchronous spans)
    base        the number of the track whose overlapping spans this one shows, else its own number
    thread_id   the thread.id of the CSV, or None: tid is no number that fits there
    native_id   the system's number of the thread that had the track last, or None
    """

    __slots__ = ("number", "pid", "tid", "name", "kind", "thread_id", "native_id", "base", "sort")

    def __init__(self, number, pid, tid):
        self.number, self.pid, self.tid = number, pid, tid
        self.name, self.kind, self.base = "", "thread", number
        self.thread_id = self.native_id = self.sort = None

    def __repr__(self):
        return f"Track({self.number}, {self.kind} {self.name!r}, pid {self.pid}, tid {self.tid})"


class Flows(Sequence):
    """The arrows of a trace: Flow tuples, stored in columns."""

    def __init__(self, names):
        self.names, self.name = names, array("I")
        self.columns = array("I"), array("q"), array("I"), array("q")

    def add(self, name, *ends):
        self.name.append(name)
        for column, end in zip(self.columns, ends):
            column.append(end)

    def __len__(self):
        return len(self.name)

    def __getitem__(self, n):
        return Flow(self.names[self.name[n]], *(column[n] for column in self.columns))

    def named(self, name):
        """The columns from_track, from_ns, to_track, to_ns of the arrows of that name."""
        found = [n for n, number in enumerate(self.name) if self.names[number] == name]
        if len(found) == len(self):
            return self.columns
        return [array(column.typecode, map(column.__getitem__, found)) for column in self.columns]


class Numbered(dict):
    """A dict from keys to small numbers. new(key) gives the number of a new key."""

    def __init__(self, new):
        super().__init__()
        self.new = new

    def __missing__(self, key):
        number = self[key] = self.new(key)
        return number


def _mix(x):
    """Scrambles 64 bits."""
    x ^= x >> 31
    x = x * 0x9E3779B97F4A7C15 & MASK
    x ^= x >> 29
    x = x * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


def several(what):
    """Several "counter value that is no number" are "counter values that are no number"."""
    one = re.split(" that | without ", what)[0]
    return f"{one}s{what[len(one):].replace(' that is ', ' that are ')}"


class Trace:
    """A trace in columns; see __init__.py."""

    def __init__(self, path):
        self.path = str(path)
        self.format = ""              # "json", "csv"
        self.metadata = {}            # metadata.npuprof: version, host, pid, clock, lost, devices, ...
        self.roles = {}               # name of an operator or a lane of a device -> its role
        self.base_ns = 0
        self.damage = ""              # what the converter said about a damaged image
        self.names = [""]
        self.tracks = []
        self.processes = {}           # of JSON: pid -> the name of the process, if it has one
        self.start, self.dur = array("q"), array("q")
        self.name, self.cat, self.track = array("I"), array("I"), array("I")
        self.kind, self.flags = bytearray(), bytearray()
        self.index = {}               # index columns by name, only those that occur
        self.left_out = collections.Counter()      # events that have no place here, by what they are
        self.layers = None            # which command is of which layer: see layers.py
        self.tool, self.notes = "", []             # of a foreign trace: see foreign/__init__.py
        self.counters, self.memory, self.instants, self.flows = [], [], [], Flows(self.names)
        self.memory_peaks = []        # of a CSV
        self.ids = None               # of a CSV: trace ids (16 bytes each), span ids, parent ids
        self._file = None             # of JSON: the file, for the arguments
        self._blocks = []             # (first row, offset, bytes) of blocks read by pattern
        self._block = (0, 0, [])      # the last block asked for: first row, end row, arguments
        self._args = {}               # row -> arguments, of events not read by pattern
        self._mentioned = set()       # of ASKED, those of the rest
        # By row, the row that it was in the file, where these three know it; None: the same.
        self._places = None
        # The rows whose ids the JSON states, and these ids: 16 bytes of the trace and 8 of the span for each.
        self._given = array("I"), bytearray()
        self._executions = self._finder = None
        self._warm_up = None
        self.one_id_an_inference = False       # else one a PROF_RECORD, as in the files
        self._numbers = Numbered(self._new_name)
        self._numbers[""] = 0

    def _new_name(self, text):
        self.names.append(text)
        return len(self.names) - 1

    def __len__(self):
        return len(self.start)

    def __repr__(self):
        ns = max(map(int.__add__, self.start, self.dur), default=0) - min(self.start, default=0)
        tracks = len({track.base for track in self.tracks})
        return f"<npuprof trace {self.path}: {len(self)} spans on {tracks} tracks, {ns / 1e6:.3f} ms>"

    def _repr_html_(self):
        from html import escape
        shown = [self.row(i) for i in range(min(len(self), 20))]
        texts = (["" if row[c] is None else str(row[c]) for c in COLUMNS] for row in shown)
        cells = ("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>" for row in texts)
        head = "".join(f"<th>{c}</th>" for c in COLUMNS)
        return f"<p>{escape(repr(self)[1:-1])}</p><table><tr>{head}</tr>{''.join(cells)}</table>"

    def left_out_text(self):
        """What has no place here, in words: how many of what."""
        return ", ".join(f"{count} of ph {what}" if len(what) == 1 else f"{count} {what}" if count == 1
                         else f"{count} {several(what)}" for what, count in sorted(self.left_out.items()))

    # ---- Rows

    def text(self, i):
        return self.names[self.name[i]]

    def args(self, i):
        """The arguments of a span; of a command also its layer, where something says it."""
        args = self._own_args(i)
        layer = self.layers.of(self, i) if self.layers else None
        return args if layer is None or "layer" in args else args | {"layer": layer}

    def _own_args(self, i):
        i = self.place(i)
        text = self._arguments(i)
        if text is None:
            return self._args.get(i, {})
        try:
            return PLAIN.decode(text[8:].rstrip(b",")[:-1].decode())
        except (ValueError, RecursionError) as error:
            number = bisect.bisect_right(self._blocks, i, key=lambda b: b[0]) - 1
            _, offset, length = self._blocks[number]
            self._file.seek(offset)
            byte = offset + self._file.read(length).find(text)
            raise Refused(f"{self.path}: byte {byte}: "
                          f"arguments of span {i}: not strict JSON: {error}") from None

    def place(self, i):
        """The row that a row was in the file."""
        return i if self._places is None else self._places[i]

    def reorder(self, order):
        """Puts the rows in another order. order: the present rows, an array "i"."""
        for name in ("start", "dur", "name", "cat", "track", "kind", "flags"):
            setattr(self, name, loops.permuted(getattr(self, name), order))
        self.index = {key: loops.permuted(column, order) for key, column in self.index.items()}
        self._places = order

    def mentions(self, key, text=None):
        """False: no span has an argument of this name (text: with this value), which is one of ASKED. Much
        faster than asking each span."""
        if (key, text) not in ASKED:
            raise KeyError(key)
        if any(key in args and text in (None, args[key]) for args in self._args.values()):
            return True
        return (key, text) in self._mentioned

    def _arguments(self, i):
        """What follows the times in a line of npuprof's own writer; None: no arguments there."""
        first, end, block = self._block
        if not first <= i < end:
            number = bisect.bisect_right(self._blocks, i, key=lambda b: b[0]) - 1
            if number < 0:
                return None
            first, offset, length = self._blocks[number]
            self._file.seek(offset)
            block = [match[4] for match in X_LINE.findall(self._file.read(length))]
            end = first + len(block)
            self._block = first, end, block
            if not first <= i < end:
                return None
        text = block[i - first]
        return None if text.startswith(b"}") else text

    def row(self, i):
        """The columns of the CSV for one span."""
        start = self.base_ns + self.start[i]
        row = {"trace_id": self.trace_id(i), "parent_span_id": self.parent_span_id(i),
               "span_id": self.span_id(i), "start": start, "end": start + self.dur[i],
               "cat": self.names[self.cat[i]], "name": self.names[self.name[i]],
               "thread.id": self.tracks[self.track[i]].thread_id}
        for key in INDEXES:
            column = self.index.get(key)
            row[key] = None if column is None or column[i] == NULL else column[i]
        row["dur"] = self.dur[i]
        return row

    def rows(self):
        return (self.row(i) for i in range(len(self)))

    def to_pandas(self):
        """A pandas data frame with the columns of the CSV. Index columns are nullable integers."""
        try:
            import pandas
        except ImportError:
            raise Refused("to_pandas() needs pandas, which is not installed; "
                          "rows() gives the same as dicts") from None
        count = range(len(self))
        data = {"trace_id": list(map(self.trace_id, count)),
                "parent_span_id": list(map(self.parent_span_id, count)),
                "span_id": list(map(self.span_id, count)), "start": [self.base_ns + s for s in self.start],
                "end": [self.base_ns + s + d for s, d in zip(self.start, self.dur)],
                "cat": list(map(self.names.__getitem__, self.cat)),
                "name": list(map(self.names.__getitem__, self.name)),
                "thread.id": pandas.array([self.tracks[t].thread_id for t in self.track], dtype="Int64")}
        for key in INDEXES:
            column = self.index.get(key)
            data[key] = pandas.array([None] * len(self) if column is None
                                     else [None if v == NULL else v for v in column], dtype="Int64")
        data["dur"] = list(self.dur)
        return pandas.DataFrame(data, columns=list(COLUMNS))

    def rows_with(self, flags):
        """The rows that have one of these flags."""
        chosen, rows, i = self.flags.translate(bytes(f & flags and 1 for f in range(256))), [], -1
        while (i := chosen.find(1, i + 1)) >= 0:
            rows.append(i)
        return rows

    def values_of(self, key):
        """{track: the set of its values} of an index column; without it {}."""
        column, found = self.index.get(key), {}
        for i in loops.turns(self.track, column, len(self.tracks)) if column else ():
            if column[i] != NULL:
                found.setdefault(self.track[i], set()).add(column[i])
        return found

    @functools.cached_property
    def host_rows(self):
        """The rows that are on no device."""
        bases = [self.tracks[track.base] for track in self.tracks]
        return loops.on_tracks(self.track, bytearray(base.kind != "device" for base in bases))

    # ---- Nesting and ids

    @functools.cached_property
    def parents(self):
        """Of all rows: from the ids of a CSV, else from times, executions and arrows."""
        if self.ids:
            return loops.nest_by_id(self.ids[1], self.ids[2])
        # All tracks of a thread share its stack.
        parents = loops.nest(self.track, self.start, self.dur, self._stacks())
        self._nest_devices(parents)
        return parents

    def _stacks(self):
        return [t.base if t.kind == "thread" else -1 for t in self.tracks]

    @functools.cached_property
    def own_ns(self):
        """Of all rows: the time without what is inside them; see loops.own_time()."""
        return loops.own_time(self.track, self.start, self.dur, [t.base for t in self.tracks], self._stacks())

    @functools.cached_property
    def callers(self):
        """Of all rows: the row that opened it. That is its parent, but where a recording from Python states
        another one, as over tasks and threads."""
        callers = array("i", self.parents)
        if not any(track.kind == "other" and track.name.startswith("task ") for track in self.tracks):
            return callers
        stated, numbers = {}, {}
        for i in range(len(self)):
            args, pid = self.args(i), self.tracks[self.track[i]].pid
            if "scope.id" in args:
                numbers[pid, args["scope.id"]] = i
            if "scope.parent" in args:
                stated[i] = pid, args["scope.parent"]
        for i, number in stated.items():
            callers[i] = numbers.get(number, callers[i])
        return callers

    @functools.cached_property
    def roots(self):
        return loops.roots_of(self.parents, self.kind)

    @functools.cached_property
    def inference_of(self):
        """Of all rows: the outermost inference around it, or itself; -1: none."""
        found = array("i", [-1]) * len(self)
        for i in range(len(self)):
            chain = [i]
            while (parent := self.parents[chain[-1]]) >= 0:
                chain.append(parent)
            found[i] = next((row for row in reversed(chain) if self.kind[row] == INFERENCE), -1)
        return found

    def _nest_devices(self, parents):
        """A device span's parent is its execution, else the host span that submitted it."""
        from_track, from_ns, to_track, to_ns = self.flows.named("submit")
        callers = called = array("i")
        if from_track:
            callers = self.finder.innermost(from_track, from_ns)
            called = self.finder.beginning(to_track, to_ns, self.kind, DEVICE)
        loops.nest_devices(self.executions, callers, called, parents)

    @property
    def executions(self):
        """Device spans by execution; see loops.executions()."""
        if self._executions is None:
            self._executions = loops.executions(
                self.track, self.start, self.dur, [t.base if t.kind == "device" else -1 for t in self.tracks],
                self.index.get("execution_index"), self.index.get("instruction_index"))
        return self._executions

    @functools.cached_property
    def has_processes(self):
        """True: its tracks belong to more than one process."""
        return len({track.pid for track in self.tracks}) > 1

    @property
    def finder(self):
        """finder.at(track, ns) is the row of the innermost span open there, or -1."""
        if self._finder is None:
            self._finder = loops.Finder(self.track, self.start, self.dur, len(self.tracks))
        return self._finder

    @property
    def warm_up(self):
        """A bytearray: 1 for every span in a warm-up record, and for the record."""
        if self._warm_up is None:
            self._warm_up = self.flags.translate(WARM_OF_FLAGS)
            if WARM_UP in self.kind:
                order = array("i", sorted(range(len(self)), key=self.start.__getitem__)) if self.ids else None
                loops.warm_up(self.kind, self.parents, self._warm_up, order)
        return self._warm_up

    def span_id(self, i):
        if self.ids:
            return f"{self.ids[1][i]:016x}"
        given = self._given_id(i, "span_id")
        return given or f"{_mix(self._seed() ^ _mix(i + 1)) or 1:016x}"

    def parent_span_id(self, i):
        if self.ids:
            return f"{self.ids[2][i]:016x}" if self.ids[2][i] else ""
        parent = self.parents[i]
        return self.span_id(parent) if parent >= 0 else self.metadata.get("traceparent", "")[36:52]

    def trace_id(self, i):
        if self.ids:
            return self.ids[0][16 * i:16 * i + 16].hex()
        if "traceparent" in self.metadata:
            return self.metadata["traceparent"][3:35]
        inference = self.inference_of[i] if self.one_id_an_inference else -1
        if inference >= 0:
            return f"{_mix(self._seed() ^ _mix(inference)):016x}{self.span_id(inference)}"
        root = self.roots[i]
        given = self._given_id(i, "trace_id") or self._given_id(root, "trace_id")
        return given or f"{_mix(self._seed() ^ root):016x}{self.span_id(root)}"

    def ids_of(self, rows):
        """Yields (trace_id, span_id) of each row. Fast if the file states them."""
        given, ids = self._given
        others = self.one_id_an_inference or self.ids or self._places or not given
        if others or not self.metadata or "traceparent" in self.metadata:
            return ((self.trace_id(i), self.span_id(i)) for i in rows)
        return self._given_ids(rows, given, ids)

    def _given_ids(self, rows, given, ids):
        k, last = -1, len(given) - 1
        for i in rows:
            if k < last and given[k + 1] == i:       # the fast path: most rows come in order
                k += 1
            else:
                k = bisect.bisect_left(given, i)
            if k <= last and given[k] == i and self.kind[i] != SPAN:
                yield ids[24 * k:24 * k + 16].hex(), ids[24 * k + 16:24 * k + 24].hex()
            else:
                yield self.trace_id(i), self.span_id(i)

    def _seed(self):
        return (self.base_ns ^ self.metadata.get("pid", 0) << 32) & MASK

    def _given_id(self, i, key):
        """The id that the JSON states. Labelled spans and executions have one."""
        if self.kind[i] == SPAN or not self.metadata:
            return None
        rows, ids = self._given
        i = self.place(i)
        k = bisect.bisect_left(rows, i)
        if k < len(rows) and rows[k] == i:
            return ids[24 * k + 16:24 * k + 24].hex() if key == "span_id" else ids[24 * k:24 * k + 16].hex()
        return self._args.get(i, {}).get(key)


def kinds_by_name(trace):
    """Sets kinds from names and index columns, for files that do not state them."""
    of_name = bytearray(INFERENCE if text == "Inference" else WARM_UP if WARM_UP_NAMES.fullmatch(text) else 0
                        for text in trace.names)
    operators = trace.index.get("operator_index")
    if any(of_name) or operators:
        loops.set_kinds(trace.kind, trace.name, trace.track, of_name,
                        bytearray(t.kind == "thread" for t in trace.tracks), operators)
