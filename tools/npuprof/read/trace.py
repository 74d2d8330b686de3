# SPDX-License-Identifier: MIT
"""Reads a trace into columns: Chrome JSON, CSV, or an image (through build/npuprof-convert).

    trace = load(path)
    len(trace)                               spans, in the order of the file
    trace.start[i], trace.dur[i]             ns; start counts from trace.base_ns (Unix ns)
    trace.names[trace.name[i]]               also trace.names[trace.cat[i]]; "" is number 0
    trace.tracks[trace.track[i]]             a Track: thread, device engine or other
    trace.kind[i], trace.flags[i]            SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR, DEVICE;
                                             UNFINISHED | UNWOUND | VIOLATED | IN_WARM_UP | SAMPLED | COUNTED
    trace.index["pe_index"][i]               also dram_base, execution_index, instruction_index, operator_index; NULL where empty
    trace.args(i)                            all arguments as a dict ({} from a CSV)
    trace.parents[i], trace.roots[i]         rows; -1: no parent. The root, of the trace id: the record around it, else the uppermost
    trace.warm_up[i]                         1: inside a warm-up record
    trace.span_id(i), trace.trace_id(i), trace.parent_span_id(i)    hex text, as in the CSV
    trace.row(i), trace.rows()               the contract's columns as dicts
    trace.to_pandas()                        the same as a data frame
    trace.memory_peaks                       (Unix ns, name) of the CSV's rows that are no spans: the peaks of memory pools
    trace.counters, trace.memory, trace.instants, trace.flows, trace.metadata, trace.damage

Ten million spans take about 500 MB: columns are arrays, names are numbers, and arguments stay in the file until asked for.

Kinds stand in the JSON's arguments. The CSV has no column for them and other tools' traces none at all: there a span
named Inference is an inference, a host span with an operator_index an operator, and a span named "warm up" a warm-up record.
"""

import bisect
import csv
import functools
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from array import array
from collections import namedtuple
from collections.abc import Sequence
from decimal import Decimal

import npuprof_check
import npuprof_columns as loops
from npuprof_common import Progress, Refused

COLUMNS = ("trace_id", "parent_span_id", "span_id", "start", "end", "cat", "name", "thread.id", "dram_base", "pe_index",
           "execution_index", "instruction_index", "operator_index", "dur")
INDEXES = COLUMNS[8:13]
SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR, DEVICE = range(6)
KINDS = {b"record": RECORD, b"warm_up": WARM_UP, b"inference": INFERENCE, b"operator": OPERATOR}
UNFINISHED, UNWOUND, VIOLATED, IN_WARM_UP, SAMPLED, COUNTED = 1, 2, 4, 8, 16, 32
WARM_OF_FLAGS = bytes(flags & IN_WARM_UP and 1 for flags in range(256))
NULL = loops.NULL
IDS = re.compile(rb'"trace_id":"([0-9a-f]{32})","span_id":"([0-9a-f]{16})"')
DEVICE_LANE = re.compile(r"( instructions| stream \w+)?( #\d+)?$")
VERSION = 0, 1                    # of npuprof.h, whose files this reads
BLOCK = 1 << 19
DOUBLE_MAX = int(sys.float_info.max)
DIGITS_MAX = len(str(DOUBLE_MAX))    # of a number's whole part; more are beyond a double
TIME_LIMIT_US = 4 * 10**15        # the sum of two such times in ns fits 64 bits
WARM_UP_NAMES = re.compile(r"warm[ _-]?up", re.I)
MASK = 2**64 - 1

Counter = namedtuple("Counter", "name pid key ts values")          # ts and values: lists of the same length; ts as trace.start
Memory = namedtuple("Memory", "ts device used allocated tag change warm_up")   # bytes; change: 0 if only the state is known
Instant = namedtuple("Instant", "ts track name cat args")
Flow = namedtuple("Flow", "name from_track from_ns to_track to_ns")  # tracks by number


def whole(text):
    if len(text) > DIGITS_MAX + 1 or abs(int(text)) > DOUBLE_MAX:
        raise ValueError(f"a number of {len(text)} digits is out of all bounds")
    return int(text)


def decimal(text):
    value = Decimal(text)
    if value.adjusted() >= DIGITS_MAX or abs(value) > DOUBLE_MAX:
        raise ValueError(f"{text[:20]} is out of all bounds")
    return value if value.adjusted() > -2 * DIGITS_MAX else Decimal(0)


# JSON whose numbers all fit a double: of the strict reader, and of single values as floats.
BOUNDED = npuprof_check.strict_decoder(decimal, whole)
PLAIN = json.JSONDecoder(parse_float=lambda text: float(decimal(text)), parse_int=whole, parse_constant=npuprof_check.refuse_constant)


class Track:
    """A row of the timeline. kind: "thread", "device" or "other" (finished and asynchronous spans).
    base: the number of the track whose overlaps this lane shows, or its own. thread_id: the contract's thread.id, or None.
    native_id: the system's number of the thread that had the track last, or None."""

    __slots__ = ("number", "pid", "tid", "name", "kind", "thread_id", "native_id", "base", "sort")

    def __init__(self, number, pid, tid):
        self.number, self.pid, self.tid = number, pid, tid
        self.name, self.kind, self.thread_id, self.native_id, self.base, self.sort = "", "thread", None, None, number, None

    def __repr__(self):
        return f"Track({self.number}, {self.kind} {self.name!r}, pid {self.pid}, tid {self.tid})"


class Flows(Sequence):
    """The arrows of a trace as Flow tuples, kept in columns."""

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


class _Numbers(dict):
    """key -> small number; a new key gets the next one by calling `new(key)`."""

    def __init__(self, new):
        super().__init__()
        self.new = new

    def __missing__(self, key):
        number = self[key] = self.new(key)
        return number


def _mix(x):
    x ^= x >> 31
    x = x * 0x9E3779B97F4A7C15 & MASK
    x ^= x >> 29
    x = x * 0xD6E8FEB86659FD93 & MASK
    return x ^ x >> 32


class Trace:
    """A trace in columns; see the head of this file."""

    def __init__(self, path):
        self.path = str(path)
        self.format = ""              # "json", "csv"
        self.metadata = {}            # of npuprof: version, host, pid, clock, lost, devices, ...; {} without
        self.base_ns = 0
        self.damage = ""              # what the converter said of a damaged image
        self.names = [""]
        self.tracks = []
        self.start, self.dur = array("q"), array("q")
        self.name, self.cat, self.track = array("I"), array("I"), array("I")
        self.kind, self.flags = bytearray(), bytearray()
        self.index = {}               # only the columns that occur
        self.counters, self.memory, self.instants, self.flows = [], [], [], Flows(self.names)
        self.memory_peaks = []        # CSV
        self.ids = None               # CSV: (trace ids, 16 bytes each; span ids; parent ids) as bytearray and arrays
        self._file = None             # JSON: where the arguments stand
        self._blocks = []             # (first row, offset, bytes) of blocks read by pattern
        self._block = (0, 0, [])      # the last one: first row, end row, arguments
        self._args = {}               # row -> dict, of events not read by pattern
        self._given = array("I"), bytearray()    # rows whose ids the JSON states, and the ids: 16 and 8 bytes each
        self._nesting = self._executions = self._finder = None
        self._warm_up = None
        self._numbers = _Numbers(self._new_name)
        self._numbers[""] = 0

    def _new_name(self, text):
        self.names.append(text)
        return len(self.names) - 1

    def __len__(self):
        return len(self.start)

    def __repr__(self):
        return (f"<npuprof trace {self.path}: {len(self)} spans on {len({t.base for t in self.tracks})} tracks, "
                f"{(max(map(int.__add__, self.start, self.dur), default=0) - min(self.start, default=0)) / 1e6:.3f} ms>")

    def _repr_html_(self):
        from html import escape
        shown = [self.row(i) for i in range(min(len(self), 20))]
        cells = ("<tr>" + "".join(f"<td>{escape('' if row[c] is None else str(row[c]))}</td>" for c in COLUMNS) + "</tr>" for row in shown)
        head = "".join(f"<th>{c}</th>" for c in COLUMNS)
        return f"<p>{escape(repr(self)[1:-1])}</p><table><tr>{head}</tr>{''.join(cells)}</table>"

    # ---- Rows

    def text(self, i):
        return self.names[self.name[i]]

    def args(self, i):
        """The arguments of a span."""
        text = self._arguments(i)
        if text is None:
            return self._args.get(i, {})
        try:
            return PLAIN.decode(text[8:].rstrip(b",")[:-1].decode())
        except (ValueError, RecursionError) as error:
            number = bisect.bisect_right(self._blocks, i, key=lambda b: b[0]) - 1
            _, offset, length = self._blocks[number]
            self._file.seek(offset)
            data = self._file.read(length)
            raise Refused(f"{self.path}: byte {offset + data.find(text)}: arguments of span {i}: not strict JSON: {error}") from None

    def mentions(self, key):
        """False: no span has an argument of this name. Much quicker than to ask each of them."""
        if any(key in args for args in self._args.values()):
            return True
        quoted = f'"{key}":'.encode()
        for _, offset, length in self._blocks:
            self._file.seek(offset)
            if quoted in self._file.read(length):
                return True
        return False

    def _arguments(self, i):
        """What follows the stamps in a line of the own writer; None: the span has no arguments there."""
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
        """The contract's columns of one span."""
        start = self.base_ns + self.start[i]
        row = {"trace_id": self.trace_id(i), "parent_span_id": self.parent_span_id(i), "span_id": self.span_id(i), "start": start,
               "end": start + self.dur[i], "cat": self.names[self.cat[i]], "name": self.names[self.name[i]],
               "thread.id": self.tracks[self.track[i]].thread_id}
        for key in INDEXES:
            column = self.index.get(key)
            row[key] = None if column is None or column[i] == NULL else column[i]
        row["dur"] = self.dur[i]
        return row

    def rows(self):
        return (self.row(i) for i in range(len(self)))

    def to_pandas(self):
        """A pandas data frame with the contract's columns; index columns are nullable integers."""
        try:
            import pandas
        except ImportError:
            raise Refused("to_pandas() needs pandas, which is not installed; rows() gives the same as dicts") from None
        count = range(len(self))
        data = {"trace_id": list(map(self.trace_id, count)), "parent_span_id": list(map(self.parent_span_id, count)),
                "span_id": list(map(self.span_id, count)), "start": [self.base_ns + s for s in self.start],
                "end": [self.base_ns + s + d for s, d in zip(self.start, self.dur)],
                "cat": list(map(self.names.__getitem__, self.cat)), "name": list(map(self.names.__getitem__, self.name)),
                "thread.id": pandas.array([self.tracks[t].thread_id for t in self.track], dtype="Int64")}
        for key in INDEXES:
            column = self.index.get(key)
            data[key] = pandas.array([None] * len(self) if column is None else [None if v == NULL else v for v in column], dtype="Int64")
        data["dur"] = list(self.dur)
        return pandas.DataFrame(data, columns=list(COLUMNS))

    def rows_with(self, flags):
        """The rows that have one of these flags."""
        chosen, rows, i = self.flags.translate(bytes(f & flags and 1 for f in range(256))), [], -1
        while (i := chosen.find(1, i + 1)) >= 0:
            rows.append(i)
        return rows

    # ---- Nesting and ids

    @property
    def parents(self):
        if self._nesting is None:
            self._nesting = self._nest()
        return self._nesting[0]

    @property
    def roots(self):
        if self._nesting is None:
            self._nesting = self._nest()
        return self._nesting[1]

    def _nest(self):
        """Parents and roots of all rows: from the CSV's ids, else from the stamps of each thread, executions and arrows."""
        if self.ids:
            parents = loops.nest_by_id(self.ids[1], self.ids[2])
        else:
            # Lanes of one thread share its stack.
            parents = loops.nest(self.track, self.start, self.dur, [t.base if t.kind == "thread" else -1 for t in self.tracks])
            self._nest_devices(parents)
        return parents, loops.roots_of(parents, self.kind)

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
        """Device spans by execution; see npuprof_loops.executions()."""
        if self._executions is None:
            self._executions = loops.executions(
                self.track, self.start, self.dur, [t.base if t.kind == "device" else -1 for t in self.tracks],
                self.index.get("execution_index"), self.index.get("instruction_index"))
        return self._executions

    @functools.cached_property
    def has_processes(self):
        """Whether its tracks are of more than one process."""
        return len({track.pid for track in self.tracks}) > 1

    @property
    def finder(self):
        """finder.at(track, ns): the row of the innermost span there, or -1."""
        if self._finder is None:
            self._finder = loops.Finder(self.track, self.start, self.dur, len(self.tracks))
        return self._finder

    @property
    def warm_up(self):
        """A bytearray: 1 for every span in a warm-up record, the record included."""
        if self._warm_up is None:
            self._warm_up = self.flags.translate(WARM_OF_FLAGS)
            if WARM_UP in self.kind:
                order = sorted(range(len(self)), key=self.start.__getitem__) if self.ids else None
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
        root = self.roots[i]
        return self._given_id(i, "trace_id") or self._given_id(root, "trace_id") or f"{_mix(self._seed() ^ root):016x}{self.span_id(root)}"

    def ids_of(self, rows):
        """(trace_id, span_id) of each of these rows; quick where the file states them."""
        given, ids = self._given
        if self.ids or not self.metadata or "traceparent" in self.metadata or not given:
            return ((self.trace_id(i), self.span_id(i)) for i in rows)
        return self._given_ids(rows, given, ids)

    def _given_ids(self, rows, given, ids):
        k, last = -1, len(given) - 1
        for i in rows:
            if k < last and given[k + 1] == i:       # most come in order
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
        """The id that the file itself states: labelled spans and executions have one."""
        if self.kind[i] == SPAN or not self.metadata:
            return None
        rows, ids = self._given
        k = bisect.bisect_left(rows, i)
        if k < len(rows) and rows[k] == i:
            return ids[24 * k + 16:24 * k + 24].hex() if key == "span_id" else ids[24 * k:24 * k + 16].hex()
        return self._args.get(i, {}).get(key)


# ---- Reading

# The lines of npuprof's own writer, one event each. Anything else is read by the strict reader of `check`.
# Why possessive and few groups: these two lines are half of the time that a large trace takes.
STRING = rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"'
X_LINE = re.compile(rb'\{"ph":"X","name":(' + STRING + rb'(?:,"cat":' + STRING + rb')?+),"pid":(\d++,"tid":\d++),"ts":(\d++\.\d\d\d),'
                    rb'"dur":(\d++\.\d\d\d)(.*+)\n')
LABEL = re.compile(rb'(' + STRING + rb')(?:,"cat":(' + STRING + rb'))?')
FLOW_LINE = re.compile(rb'\{"ph":"([sf])","name":(' + STRING + rb'),"pid":(\d++,"tid":\d++)(?:,"bp":"e")?+,"cat":' + STRING +
                       rb',"id":(\d++),"ts":(\d++\.\d\d\d)\},\n')
HEAD = b'{"traceEvents":['
# Why no pattern: inside a string the quotes of such a key would have backslashes, so its bytes are the key and nothing else.
QUOTED = {key: f'"{key}":'.encode() for key in INDEXES}


def load(path, progress=False):
    """Reads a trace file; raises Refused (one line) for what it cannot use. progress: on stderr, if it takes long."""
    path = os.fspath(path)
    file, damage, head = opened(path)
    bar = Progress(f"reading {path}", os.fstat(file.fileno()).st_size) if progress else None
    if is_json(head):
        trace = _read_json(path, file, bar)
    elif b"span_id" in head.partition(b"\n")[0]:
        trace = _read_csv(path, file, bar)
    else:
        raise Refused(f"{path}:1: byte 0: neither a Chrome trace (JSON), nor npuprof's CSV, nor an image of npuprof")
    # Why here: the loops over all spans add these up in 64 bits.
    latest = max(trace.start, default=0), sum(trace.dur)
    if max(latest) >= 2**62 or min(trace.start, default=0) <= -2**62:
        longest = max(range(len(trace.start)), key=lambda i: max(abs(trace.start[i]), trace.dur[i]))
        place = f":{longest + 2}" if trace.format == "csv" else f": event {longest}"
        raise Refused(f"{path}{place}: times of more than 2^62 ns (146 years) cannot be added up")
    trace.damage = damage
    if bar:
        bar.done()
    return trace


def is_json(head):
    """Whether a file that begins so is JSON. Why not by its first line: a file on one line holds every word."""
    return head.lstrip(b" \t\r\n\xef\xbb\xbf")[:1] in (b"{", b"[")


def converter():
    """The path of npuprof-convert."""
    built = pathlib.Path(__file__).resolve().parent.parent / "build" / "npuprof-convert"
    return str(built) if built.exists() else shutil.which("npuprof-convert")


def opened(path):
    """(a trace file at its start, what the converter said of damage or "", its first bytes); images as JSON."""
    try:
        file = open(path, "rb")
        head = file.read(4096)
        file.seek(0)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    if not head:
        raise Refused(f"{path}:1: byte 0: the file is empty")
    if is_json(head) or b"span_id" in head.partition(b"\n")[0] or not (b"\0" in head or head.startswith(b"NPUPROF")):
        return file, "", head
    file.close()
    tool = converter()
    if not tool:
        raise Refused(f"{path}: an image needs npuprof-convert: run `make tools` first")
    with tempfile.TemporaryDirectory(prefix="npuprof-") as folder:
        out = os.path.join(folder, "trace.json")
        done = subprocess.run([tool, path, "-o", out], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        said = " ".join(done.stderr.split()).removeprefix("npuprof-convert: ")
        if done.returncode not in (0, 1) or not os.path.exists(out):
            raise Refused(said or f"{path}: npuprof-convert ended with {done.returncode}")
        # Why open: the file lives on without a name, for its arguments.
        file = open(out, "rb")
    if done.returncode:
        print(f"warning: {said}", file=sys.stderr)
    head = file.read(4096)
    file.seek(0)
    return file, said if done.returncode else "", head


class BadEvent(npuprof_check.NotJson):
    """An event that cannot be placed in time."""


class _JsonReader:
    """Fills a Trace from Chrome events."""

    def __init__(self, trace):
        self.trace = trace
        self.tracks = _Numbers(self.new_track)        # (pid, tid) -> number
        self.id_texts = _Numbers(self.parse_ids)      # b'1,"tid":2' -> number
        self.texts = _Numbers(lambda text: trace._numbers[json.loads(text)])     # of strings as quoted in the file
        self.labels = _Numbers(self.parse_label)      # b'"name","cat":"cat"' -> a place in the next two
        self.label_names, self.label_cats, self.ids_tracks = array("I"), array("I"), array("I")
        self.native = loops.Reader() if loops.library() else None
        self.values = _Numbers(_leading_integer)
        self.begun, self.half, self.series, self.pools = {}, {}, {}, []
        self.track_names, self.last_ns, self.own = {}, 0, False

    def new_track(self, key):
        track = Track(len(self.trace.tracks), *key)
        self.trace.tracks.append(track)
        return track.number

    def parse_ids(self, text):
        return self.tracks[tuple(map(int, re.findall(rb"\d+", text)))]

    def parse_label(self, text):
        name, cat = LABEL.fullmatch(text).groups()
        self.label_names.append(self.texts[name])
        self.label_cats.append(self.texts[cat] if cat else 0)
        return len(self.label_names) - 1

    # -- lines of the own writer, many at a time

    def block(self, offset, block):
        """Reads whole lines, each ending in },\n. False: some line is not of the own writer's form."""
        trace, lines = self.trace, block.count(b"\n")
        if self.native:
            return self.native_block(offset, block, lines)
        if block.count(b"},\n") != lines:
            return False
        spans = X_LINE.findall(block)
        flows = FLOW_LINE.findall(block) if b'{"ph":"s"' in block or b'{"ph":"f"' in block else ()
        others = []
        if len(spans) + len(flows) != lines:
            others = [line for line in block.split(b"\n") if not line.startswith((b'{"ph":"X"', b'{"ph":"s"', b'{"ph":"f"')) and line]
            if len(spans) + len(flows) + len(others) != lines:
                return False
        events = [json.loads(line[:-1]) for line in others]
        if spans:
            first = len(trace)
            labels, ids, starts, durations, rests = zip(*spans)
            rich = [i for i, rest in enumerate(rests) if rest != b"},"]
            if rich:
                texts = [rests[i] for i in rich]
                # Why at the ends only: what is between them is looked at when it is asked for.
                if {rest[:9] for rest in texts} != {b',"args":{'} or {rest[-3:] for rest in texts} != {b"}},"}:
                    return False
                trace._blocks.append((first, offset, len(block)))
            numbers = list(map(self.labels.__getitem__, labels))
            trace.name.extend(map(self.label_names.__getitem__, numbers))
            trace.cat.extend(map(self.label_cats.__getitem__, numbers))
            trace.track.extend(map(self.id_texts.__getitem__, ids))
            # Why a limit by digits: sums of two stamps fit 64 bits then. Larger ones are for the strict reader to refuse.
            if max(map(len, starts)) > 19 or max(map(len, durations)) > 19:
                return False
            trace.start.extend(map(int, b",".join(starts).replace(b".", b"").split(b",")))
            trace.dur.extend(map(int, b",".join(durations).replace(b".", b"").split(b",")))
            trace.kind += bytes(len(spans))
            trace.flags += bytes(len(spans))
            if rich:
                self.arguments(first, rich, texts, block)
        for phase, name, ids, flow, ts in flows:
            self.flow(phase == b"s", self.texts[name], flow, self.id_texts[ids], int(ts.replace(b".", b"")))
        for event in events:
            self.event(event, None)
        return True

    def native_block(self, offset, block, lines):
        """The same in C."""
        trace, native = self.trace, self.native
        first, count = len(trace), native.read("json", block, lines)
        if count < 0:
            return False
        for label in native.texts(0, len(self.label_names)):
            self.parse_label(label)
        for text in native.texts(1, len(self.ids_tracks)):
            self.ids_tracks.append(self.parse_ids(text))
        native.into(trace, count, self.label_names, self.label_cats, self.ids_tracks)
        if native.block.rich:
            trace._blocks.append((first, offset, len(block)))
        given = native.block.given_count
        trace._given[0].extend(map(first.__add__, native.column("given", 4 * given).cast("I")))
        trace._given[1].extend(native.column("given_ids", 24 * given))
        for k, key in enumerate(INDEXES):
            if native.block.indexes >> k & 1:
                self.column(key, first).frombytes(native.column(k, 8 * count))
        places = native.column("others", 16 * native.block.others_count).cast("Q")
        others = [block[at:at + length] for at, length in zip(places[::2], places[1::2])]
        arrows = [line for line in others if line.startswith((b'{"ph":"s"', b'{"ph":"f"'))]
        found = FLOW_LINE.findall(b"\n".join(arrows) + b"\n")
        if len(found) != len(arrows):
            return False
        half, flows = self.half, trace.flows
        for phase, name, ids, flow, ts in found:
            key = name + flow
            if phase == b"s":
                half[key] = ids, ts
            elif key in half:
                ids_from, from_ts = half.pop(key)
                flows.add(self.texts[name], self.id_texts[ids_from], int(from_ts.replace(b".", b"")), self.id_texts[ids], int(ts.replace(b".", b"")))
        for line in others if len(arrows) < len(others) else ():
            if not line.startswith((b'{"ph":"s"', b'{"ph":"f"')):
                self.event(json.loads(line[:-1]), None)
        return True

    def arguments(self, first, rows, texts, block):
        """What of the arguments has a column of its own. rows: places in the block; texts: the arguments there."""
        trace, kind, flags = self.trace, self.trace.kind, self.trace.flags
        rows_given, ids_given = trace._given
        if b'"args":{"kind":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"kind":"', 9):
                    kind[first + i] = KINDS.get(text[17:text.index(b'"', 17)], SPAN)
        if b'"args":{"stamp":"' in block:
            for i, text in zip(rows, texts):
                if text.startswith(b'"stamp":"', 9):
                    kind[first + i] = DEVICE
                    flags[first + i] |= SAMPLED * text.startswith(b'sampled"', 18) | COUNTED * (b'"busy_ticks":' in text)
        if b'"trace_id":"' in block:
            for i, text in zip(rows, texts):
                at = text.find(b'"trace_id":"')
                # Why the kind: in other spans the key is the user's own.
                found = IDS.match(text, at) if at > 0 and kind[first + i] != SPAN else None
                if found:
                    ids_given += bytes.fromhex((found[1] + found[2]).decode())
                    rows_given.append(first + i)
        if b'"causality":"violated"' in block or b'"unfinished":' in block or b'"warm_up":true' in block:
            for i, text in zip(rows, texts):
                flags[first + i] |= (VIOLATED * (b'"causality":"violated"' in text) | UNFINISHED * (b'"unfinished":true' in text) |
                                    UNWOUND * (b'"unfinished":"unwound"' in text) | IN_WARM_UP * (b'"warm_up":true' in text))
        value = self.values.__getitem__
        for key, quoted in QUOTED.items():
            if quoted in block:
                column = self.column(key, len(trace))
                for i, text in zip(rows, texts):
                    column[first + i] = value(text.partition(quoted)[2].partition(b",")[0])
        if len(self.values) > 100_000:
            self.values.clear()

    def column(self, key, rows):
        """The index column, filled up with NULL to that many rows."""
        column = self.trace.index.setdefault(key, array("q"))
        if len(column) < rows:
            column.extend(array("q", [NULL]) * (rows - len(column)))
        return column

    # -- any event

    def event(self, event, position):
        """One event as a dict. Numbers are int, float or Decimal."""
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
                raise BadEvent(position or 0, f"ts {npuprof_check.shown(event.get('ts'))} of an event is no time")
            return
        self.last_ns = max(self.last_ns, ts)
        if phase == "X" or phase == "B":
            duration = self.nanoseconds(event.get("dur")) if phase == "X" else -1
            if duration is None:
                raise BadEvent(position or 0, f"dur {npuprof_check.shown(event.get('dur'))} of an event is no time")
            self.span(ids, event, ts, duration, args)
        elif phase == "E":
            stack = self.begun.get(ids)
            if stack:
                i = stack.pop()
                self.trace.dur[i] = max(0, ts - self.trace.start[i])
        elif phase == "C":
            self.counter(ids, event, ts, args)
        elif phase in ("i", "I") and event.get("derived") is not True:   # what the counter beside it says again for viewers
            self.trace.instants.append(Instant(ts, self.tracks[ids], str(event.get("name", "")), str(event.get("cat", "")),
                                               _plain(args)))
        elif phase in ("s", "f"):
            name = self.trace._numbers[str(event.get("name", ""))]
            self.flow(phase == "s", name, str(event.get("id")), self.tracks[ids], ts)

    def id_key(self, value):
        if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool) and abs(value) <= DOUBLE_MAX and value == int(value):
            return int(value)
        return str(value)

    def nanoseconds(self, value):
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
        trace.flags.append((UNFINISHED if left is True else UNWOUND if left == "unwound" else 0) |
                           (VIOLATED if args.get("causality") == "violated" else 0) | (IN_WARM_UP if args.get("warm_up") is True else 0) |
                           (SAMPLED if on_device and args["stamp"] == "sampled" else 0) | (COUNTED if on_device and "busy_ticks" in args else 0))
        if duration < 0:
            self.begun.setdefault(ids, []).append(i)
        if args:
            trace._args[i] = _plain(args)
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
        if set(args) == {"used", "allocated"} and {type(v) for v in args.values()} == {int}:
            self.trace.memory.append(Memory(ts, name, args["used"], args["allocated"], str(event.get("tag", "")),
                                            event.get("change") if type(event.get("change")) is int else 0,
                                            event.get("warm_up") is True))

    def flow(self, begins, name, flow, track, ts):
        if begins:
            self.half[name, flow] = track, ts
        else:
            other = self.half.pop((name, flow), None)
            if other:
                self.trace.flows.add(name, *other, track, ts)

    # -- the end

    def finish(self, top):
        trace = self.trace
        for stack in self.begun.values():
            for i in stack:
                trace.dur[i] = max(0, self.last_ns - trace.start[i])
                trace.flags[i] |= UNFINISHED
        about = top.get("metadata", {}).get("npuprof") if type(top.get("metadata")) is dict else None
        if about is not None:
            about = check_about(trace.path, about)
            trace.metadata = about
            trace.base_ns = about["start_unix_ns"]
        for column in trace.index:
            self.column(column, len(trace))
        devices = loops.tracks_with(trace.track, trace.kind, DEVICE, len(trace.tracks))
        # Two traces of one process share a pid there; the threads of the later have numbers above its tid_shift.
        processes = {}
        for process in [*(about or {}).get("processes", []), about or {}]:
            processes.setdefault(process.get("pid"), []).append((process.get("tid_shift", 0), process.get("threads")))
        groups, last, lanes = {}, {}, {}
        for track in sorted(trace.tracks, key=lambda t: (str(t.pid), t.tid if type(t.tid) is int else 0)):
            names = self.track_names.get((track.pid, track.tid), {})
            track.name = str(names.get("thread_name", track.tid))
            sort = names.get("thread_sort_index")
            track.sort = sort if type(sort) is int else None
            track.native_id = names.get("native_id") if type(names.get("native_id")) is int else None
            above = [p for p in processes.get(track.pid, ()) if type(track.tid) is int and p[0] < track.tid]
            shift, threads = max(above, key=lambda p: p[0], default=(0, None))
            if devices[track.number]:
                track.kind = "device"
            elif type(threads) is int and track.tid - shift > threads:
                track.kind = "other"
                owner = self.tracks.get((track.pid, track.sort)) if track.name.endswith(" (overlap)") else None
                if owner is not None:
                    track.kind, track.base, track.thread_id = "thread", owner, track.sort
            else:
                track.thread_id = track.tid
            if track.kind == "device":
                # Lanes of a PE, one after the other: "npu0 PE 1", "npu0 PE 1 instructions", "npu0 stream 7", "npu0 stream 7 #2", ...
                pe = DEVICE_LANE.sub("", track.name)
                if lanes.get(track.pid, {}).get("pe") != pe or track.name in lanes[track.pid]["names"]:
                    lanes[track.pid] = {"pe": pe, "names": set(), "base": track.number}
                lanes[track.pid]["names"].add(track.name)
                track.base = lanes[track.pid]["base"]
                continue
            lanes.pop(track.pid, None)
            if track.kind != "thread":
                # Lanes of overlapping spans: "copy", "copy #2", ...
                stem, _, lane = track.name.rpartition(" #")
                of = track.pid, shift
                if stem and lane.isdigit() and last.get(of) == stem:
                    track.base = groups[of]
                else:
                    last[of], groups[of] = track.name, track.number
        if not trace.metadata:
            _kinds_by_name(trace)


COUNT = "a whole number of 64 bits"
NUMBER = "a number"
TEXT = "a text"
ABOUT = {"version": TEXT, "host": TEXT, "program": TEXT, "when_full": TEXT, "traceparent": TEXT, "label": TEXT, "file": TEXT,
         **dict.fromkeys(("pid", "threads", "start_unix_ns", "start_boottime_ns", "start_monotonic_ns", "tid_shift", "damaged_places"), COUNT),
         "clock": {"source": TEXT, "hz": NUMBER, "error_ns": COUNT, "drift_ns": COUNT}, "lost": {"*": COUNT}, "user": {"*": TEXT},
         "unused_environment": {"*": TEXT},
         "devices": [{"name": TEXT, "clock_sync": {"anchor_list": [[NUMBER]], "*": NUMBER}}]}
ABOUT["processes"] = [ABOUT | {"processes": []}]


def misfit(value, form):
    """Where a JSON value has not the form of metadata.npuprof: (path, what should be there); None if it has it everywhere."""
    if value is None:
        return None
    if isinstance(form, (dict, list)):
        if type(value) is not type(form):
            return "", "an object" if isinstance(form, dict) else "an array"
        known = value.items() if isinstance(form, dict) else enumerate(value)
        for key, inner in known:
            of_key = form.get(key, form.get("*")) if isinstance(form, dict) else form[0] if form else None
            if of_key is not None and (found := misfit(inner, of_key)):
                return f".{key}{found[0]}", found[1]
        return None
    fits = type(value) is str if form == TEXT else type(value) is int and -2**63 <= value < 2**63 if form == COUNT \
        else isinstance(value, (int, float, Decimal)) and abs(value) <= DOUBLE_MAX
    return None if fits else ("", form)


def check_about(path, about):
    """metadata.npuprof, refused where it cannot be what npuprof writes; null is left out."""
    if type(about) is not dict or type(about.get("start_unix_ns")) is not int or not isinstance(about.get("version"), str):
        raise Refused(f"{path}: metadata.npuprof has no version or start_unix_ns: not a trace of npuprof")
    check_version(path, about["version"])
    if found := misfit(about, ABOUT):
        raise Refused(f"{path}: metadata.npuprof{found[0][:100]} is not {found[1]}: not a trace of npuprof")
    about = _plain(about)
    for key in [key for key in about if about[key] is None]:
        del about[key]
    return about


def check_version(path, text):
    """Refuses what a newer npuprof wrote; (major, minor)."""
    match = re.fullmatch(r"(\d+)\.(\d+)(\..*)?", text)
    version = (int(match[1]), int(match[2])) if match else None
    if version is None or version > VERSION:
        raise Refused(f"{path}: written by npuprof {text[:20]}, this tool reads up to {VERSION[0]}.{VERSION[1]}: use the tool of that version")
    return version


def _plain(value):
    """Decimals of the strict reader as floats, all the way down."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return float(value) if isinstance(value, Decimal) else value


def _leading_integer(text):
    match = re.match(rb"(-?\d+)\}*$", text)
    return _int64(match[1]) if match else NULL


def _int64(text):
    value = int(text)
    return value if -2**63 < value < 2**63 else NULL


def _kinds_by_name(trace):
    """Kinds where the file has none: from names and index columns."""
    of_name = bytearray(INFERENCE if text == "Inference" else WARM_UP if WARM_UP_NAMES.fullmatch(text) else 0 for text in trace.names)
    operators = trace.index.get("operator_index")
    if any(of_name) or operators:
        loops.set_kinds(trace.kind, trace.name, trace.track, of_name, bytearray(t.kind == "thread" for t in trace.tracks), operators)


def _read_json(path, file, bar):
    trace = Trace(path)
    trace.format = "json"
    trace._file = file
    reader = _JsonReader(trace)
    top = None
    try:
        if file.readline() == HEAD + b"\n":
            reader.own = True
            top = _read_own_lines(path, file, reader, bar)
    except (ValueError, RecursionError, npuprof_check.NotJson):
        top = None
    if top is None:
        trace = Trace(path)
        trace.format = "json"
        reader = _JsonReader(trace)
        top = _read_any_json(path, file, reader)
    reader.finish(top)
    return trace


def _read_own_lines(path, file, reader, bar):
    """Reads the events of the own writer's layout and returns the other members, or None where it is another layout."""
    offset, rest = file.tell(), b""
    while True:
        data = file.read(BLOCK)
        block = rest + data
        end = block.find(b"\n]")
        cut = end + 1 or block.rfind(b"\n", 0, -1) + 1
        # The last event has no comma behind it: it gets one and is a line like all others.
        if end >= 0:
            if not reader.block(offset, block[:end] + b",\n"):
                return None
            tail = block[cut + 1:] + file.read()
            return json.loads(b"{" + tail[tail.startswith(b","):])
        if not data or len(block) > 1 << 26 or (cut and not reader.block(offset, block[:cut])):
            return None
        offset += cut
        rest = block[cut:]
        if bar:
            bar.at(offset)


def _read_any_json(path, file, reader):
    """Strictly, one event at a time, whatever the layout."""
    file.seek(0)
    data = file.read()
    mark = 3 if data.startswith(b"\xef\xbb\xbf") else 0      # a byte order mark
    try:
        text = data[mark:].decode() if mark else data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, mark + error.start) + 1
        raise Refused(f"{path}:{line}: byte {mark + error.start}: not strict JSON: invalid UTF-8") from None
    del data
    reader.own = '"npuprof"' in text
    try:
        if text.lstrip().startswith("["):
            npuprof_check.read_events(text, text.index("["), lambda position, event: reader.event(event, position), BOUNDED)
            top = {"traceEvents": None}
        else:
            top = npuprof_check.read_trace(text, lambda position, event: reader.event(event, position), BOUNDED)
    except npuprof_check.NotJson as error:
        line = text.count("\n", 0, error.position) + 1
        byte = error.position if text.isascii() else len(text[:error.position].encode())
        cut_off = error.position >= len(text.rstrip()) or str(error).startswith("Unterminated")
        what = "the file ends too early, was it cut off?" if cut_off else error if isinstance(error, BadEvent) else f"not strict JSON: {error}"
        raise Refused(f"{path}:{line}: byte {mark + byte}: {what}") from None
    if top is None or top.get("traceEvents", 0) is not None:
        raise Refused(f"{path}:1: not a trace: no top-level object with an array traceEvents")
    if not reader.own and not len(reader.trace) and not reader.trace.counters and not reader.trace.instants:
        raise Refused(f"{path}:1: not a trace: no event in traceEvents can be read")
    return top


# ---- CSV

CSV_LINE = re.compile(rb'^([0-9a-f]{32}),([0-9a-f]{16}|),([0-9a-f]{16}),(-?\d+),(-?\d+),([^,"\n]*|"(?:[^"\n]|"")*"),'
                      rb'([^,"\n]*|"(?:[^"\n]|"")*"),(\d*),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+)$', re.M)
CSV_MEMORY_PEAK = re.compile(rb'^,,,(-?\d+),-?\d+,"memory",([^,"\n]*|"(?:[^"\n]|"")*"),,,,,,,0$', re.M)


def _unquoted(text):
    if text.startswith(b'"'):
        text = text[1:-1].replace(b'""', b'"')
    return text.decode()


def _read_csv(path, file, bar):
    trace = Trace(path)
    trace.format = "csv"
    trace.ids = bytearray(), array("Q"), array("Q")
    head = file.readline()
    columns = head.decode("utf-8", "replace").rstrip("\r\n").split(",")
    missing = [c for c in COLUMNS if c not in columns]
    if missing:
        raise Refused(f"{path}:1: byte 0: no column {missing[0]}; the columns are {','.join(COLUMNS)}")
    texts = _Numbers(lambda text: trace._numbers[_unquoted(text)])
    tracks = _Numbers(lambda key: _csv_track(trace, *key))
    absolute = array("q")
    offset, line, rest = len(head), 2, b""
    ordered = columns == list(COLUMNS) and not head.endswith(b"\r\n")
    native = _CsvReader(trace, texts, tracks, absolute) if loops.library() and ordered else None
    while True:
        data = file.read(BLOCK)
        block = rest + data
        if not block:
            break
        if not data and not block.endswith(b"\n"):
            raise Refused(f"{path}:{line + block.count(bytes([10]))}: byte {offset + len(block)}: the file ends within a line, was it cut off?")
        cut = block.rfind(b"\n") + 1
        lines = block.count(b"\n", 0, cut)
        try:
            if not (native and native.read(block[:cut], lines)):
                rows = CSV_LINE.findall(block, 0, cut) if ordered else []
                peaks = CSV_MEMORY_PEAK.findall(block, 0, cut) if ordered and len(rows) != lines else []
                if not ordered or len(rows) + len(peaks) != lines:
                    rows, peaks = _slow_csv_rows(path, block[:cut] + (block[cut:] + file.read()), columns, offset, line)
                    lines, cut = len(rows) + len(peaks), None
                _csv_block(trace, rows, texts, tracks, absolute)
                _csv_memory_peaks(trace, peaks)
        except UnicodeDecodeError:
            raise Refused(f"{path}:{line}: byte {offset}: invalid UTF-8 in the {lines} lines from here") from None
        except (OverflowError, ValueError):
            raise Refused(f"{path}:{line}: byte {offset}: a number out of 64 bits in the {lines} lines from here") from None
        if cut is None:
            break
        line += lines
        offset += cut
        rest = block[cut:]
        if bar:
            bar.at(offset)
    trace.base_ns = min(absolute, default=0)
    trace.start = loops.moved(absolute, -trace.base_ns)
    file.close()
    _kinds_by_name(trace)
    return trace


class _CsvReader:
    """Blocks of rows in C."""

    def __init__(self, trace, texts, tracks, absolute):
        self.trace, self.texts, self.tracks, self.absolute = trace, texts, tracks, absolute
        self.native, self.names, self.cats, self.of_ids = loops.Reader(), array("I"), array("I"), array("I")

    def read(self, block, lines):
        """False: some row is of another form, and nothing was read."""
        trace, native = self.trace, self.native
        first, count = len(trace.name), native.read("csv", block, lines)
        if count < 0:
            return False
        places = native.column("others", 16 * native.block.others_count).cast("Q")
        _csv_memory_peaks(trace, CSV_MEMORY_PEAK.findall(b"\n".join(block[at:at + length] for at, length in zip(places[::2], places[1::2]))))
        for label in native.texts(0, len(self.names)):
            cat, name = re.findall(rb'(?:^|,)("(?:[^"]|"")*"|[^",]*)', label)
            self.cats.append(self.texts[cat])
            self.names.append(self.texts[name])
        for text in native.texts(1, len(self.of_ids)):
            self.of_ids.append(self.tracks[(text[1:], b"") if text[:1] == b"t" else (b"", text[1:])])
        native.into(trace, count, self.names, self.cats, self.of_ids, self.absolute)
        trace.ids[0].extend(native.column("trace", 16 * count))
        trace.ids[1].frombytes(native.column("span", 8 * count))
        trace.ids[2].frombytes(native.column("parent", 8 * count))
        for k, key in enumerate(INDEXES):
            if native.block.indexes >> k & 1 or key in trace.index:
                if key not in trace.index:
                    trace.index[key] = array("q", [NULL]) * first
                trace.index[key].frombytes(native.column(k, 8 * count))
        return True


def _csv_track(trace, thread, pe):
    track = Track(len(trace.tracks), 1, int(thread) if thread else 0)
    trace.tracks.append(track)
    if thread:
        track.name, track.thread_id = f"thread {int(thread)}", int(thread)
    elif pe:
        track.name, track.kind = f"PE {int(pe)}", "device"
    else:
        track.name, track.kind = "other", "other"
    return track.number


def _csv_block(trace, rows, texts, tracks, absolute):
    if not rows:
        return
    first = len(trace.name)
    trace_ids, parents, spans, starts, ends, cats, names, threads, *indexes, durations = zip(*rows)
    trace.ids[0].extend(bytes.fromhex(b"".join(trace_ids).decode()))
    for column, texts_of in ((trace.ids[1], spans), (trace.ids[2], [p or b"0000000000000000" for p in parents])):
        words = array("Q", bytes.fromhex(b"".join(texts_of).decode()))
        if sys.byteorder == "little":
            words.byteswap()
        column.extend(words)
    absolute.extend(map(int, starts))
    trace.dur.extend(map(int, durations))
    trace.name.extend(map(texts.__getitem__, names))
    trace.cat.extend(map(texts.__getitem__, cats))
    pes = indexes[1]
    trace.track.extend(tracks[thread, b"" if thread else pe] for thread, pe in zip(threads, pes))
    trace.kind += bytes(len(rows)) if not any(pes) else bytes(DEVICE if pe and not thread else SPAN for thread, pe in zip(threads, pes))
    trace.flags += bytes(len(rows))
    for key, texts_of in zip(INDEXES, indexes):
        column = trace.index.get(key)
        if column is None and not any(texts_of):
            continue
        if column is None:
            column = trace.index[key] = array("q", [NULL]) * first
        column.extend([_int64(t) if t else NULL for t in texts_of])


def _csv_memory_peaks(trace, peaks):
    trace.memory_peaks += [(_int64(ns), _unquoted(name)) for ns, name in peaks]


def _slow_csv_rows(path, data, columns, offset, line):
    """Rows of another form: columns in another order, line breaks in names. Checks every cell. Spans, peaks of memory pools."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{path}:{line + data.count(bytes([10]), 0, error.start)}: byte {offset + error.start}: invalid UTF-8") from None
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    places = [columns.index(c) for c in COLUMNS]
    forms = [r"[0-9a-f]{32}", r"[0-9a-f]{16}|", r"[0-9a-f]{16}", r"-?\d+", r"-?\d+", None, None, r"\d*"] + [r"-?\d+|"] * 5 + [r"-?\d+"]
    rows, peaks = [], []
    try:
        for cells in reader:
            if len(cells) != len(columns):
                raise Refused(f"{path}:{line + reader.line_num - 1}: {len(cells)} cells, the head has {len(columns)} columns")
            row = [cells[p] for p in places]
            peak = row[5] == "memory" and not row[2]
            for column, form, cell in zip(COLUMNS, forms, row):
                if form and not (peak and column in ("trace_id", "span_id") and not cell) and not re.fullmatch(form, cell):
                    raise Refused(f"{path}:{line + reader.line_num - 1}: column {column}: not as it should be: {cell[:40]!r}")
            row = [('"' + c.replace('"', '""') + '"').encode() if n in (5, 6) else c.encode() for n, c in enumerate(row)]
            if peak:
                peaks.append((row[3], row[6]))
            else:
                rows.append(row)
    except csv.Error as error:
        raise Refused(f"{path}:{line + reader.line_num - 1}: not CSV: {error}") from None
    return rows, peaks
