# SPDX-License-Identifier: MIT
"""The rows of an export's tables, table by table, in bounded pieces. tables.py names the columns."""

import json
import re
from itertools import islice

from ..base.contract import DEVICE, INDEXES, NULL, UNFINISHED, UNWOUND, VIOLATED
from ..base.messages import Progress
from ..base.metadata import sources
from ..base.strict_json import json_text
from ..read.database import KIND_NAMES
from ..tables.submissions import ends_of_arrows
from .tables import VERSION, columns

PIECE = 4096       # rows handed over at a time
INDEX_COLUMNS = (*INDEXES[1:], INDEXES[0])
SPAN_COLUMNS = [name for name, _ in columns("spans")]
PE = re.compile(r" PE (\d+)")


def clean(text):
    """The text without half characters, which no database takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def pieces(rows):
    """Lists of at most PIECE rows."""
    rows = iter(rows)
    while piece := list(islice(rows, PIECE)):
        yield piece


def integer(value):
    """A whole number that 64 bits hold, else None."""
    return value if type(value) is int and -2**63 <= value < 2**63 else None


def of_device(given):
    """error_ns, job and stamp of a device span, as columns hold them."""
    stamp = given.get("stamp")
    stamp = None if stamp is None else clean(str(stamp))
    return integer(given.get("error_ns")), integer(given.get("job")), stamp


def number(value):
    return float(value) if type(value) in (int, float) else None


def leave_out_large(trace):
    """Takes out of a trace, and counts, what the tables have no place for: numbers beyond 64 bits."""
    fitting = [record for record in trace.memory
               if None not in map(integer, (record.used, record.allocated, record.change))]
    away = len(trace.memory) - len(fitting)
    for series in trace.counters:
        kept = [n for n, value in enumerate(series.values)
                if integer(value) is not None or float(value) == value]
        away += len(series.values) - len(kept)
        for column in (series.ts, series.values):
            column[:] = map(column.__getitem__, kept)
    trace.memory = fitting
    if away:
        trace.left_out["value that 64 bits cannot hold"] += away


class Rows:
    """The rows of one trace. each() yields (table, list of rows)."""

    def __init__(self, trace):
        self.trace = trace
        self.strings = {text: n for n, text in enumerate(sorted(set(trace.names)))}      # "" is 0
        self.of_name = [self.strings[text] for text in trace.names]
        found = trace.metadata.get("devices")
        self.about = [d for d in found if isinstance(d, dict)] if isinstance(found, list) else []

    def string(self, text):
        """The number of a text."""
        return self.strings.setdefault(text, len(self.strings))

    def each(self):
        """Yields every table's rows; strings last, because the others number them."""
        for table in ("meta", "devices", "anchors", "tracks"):
            yield from ((table, piece) for piece in pieces(getattr(self, table)()))
        yield from self.spans_and_args()
        for table in ("flows", "counters", "memory", "instants", "sites", "losses",
                      "texts"):
            name = "strings" if table == "texts" else table
            yield from ((name, piece) for piece in pieces(getattr(self, table)()))

    def meta(self):
        about = self.trace.metadata
        found = {"schema": str(VERSION), "base_unix_ns": str(self.trace.base_ns), "form": self.trace.format,
                 "metadata": json_text(about), "damage": self.trace.damage,
                 "left_out": json_text(self.trace.left_out)}
        if self.trace.tool or self.trace.notes:
            found |= {"tool": self.trace.tool, "notes": json_text(self.trace.notes)}
        for key in sorted(about):
            if key != "user" and isinstance(about[key], (str, int, float)):
                found.setdefault(key, str(about[key]))
        for group in ("clock", "user", "unused_environment"):
            inside = about.get(group)
            for key in sorted(inside) if isinstance(inside, dict) else ():
                found[f"{group}.{key}"] = str(inside[key])
        return [(clean(key), clean(value)) for key, value in found.items()]

    def devices(self):
        for n, device in enumerate(self.about):
            sync = device.get("clock_sync")
            sync = sync if isinstance(sync, dict) else {}
            peaks = device.get("peaks")
            peaks = peaks if isinstance(peaks, dict) else {}
            yield (n, clean(str(device.get("name"))), integer(device.get("pe_count")),
                   number(sync.get("rate_hz")), number(sync.get("drift_ppm")),
                   *(integer(sync.get(key)) for key in ("max_error_ns", "anchors", "causality_violations",
                                                        "unplaced_spans", "ring_lost")),
                   number(peaks.get("ops_per_s")), number(peaks.get("bytes_per_s")))

    def texts(self):
        return ((n, clean(text)) for text, n in self.strings.items())

    def anchors(self):
        for n, device in enumerate(self.about):
            listed = (device.get("clock_sync") or {}).get("anchor_list")
            for anchor in listed if isinstance(listed, list) else ():
                if len(anchor) >= 3:
                    yield (n, *map(integer, anchor[:3]))

    def tracks(self):
        names = [str(d.get("name")) for d in self.about]
        for track in self.trace.tracks:
            device = pe = None
            if track.kind == "device":
                fitting = [n for n, name in enumerate(names) if track.name.startswith(name + " ")]
                device = max(fitting, key=lambda n: len(names[n]), default=None)
                pe = int(found[1][:18]) if (found := PE.search(track.name)) else None
            yield track.number, track.pid, track.tid, clean(track.name), track.kind, track.base, device, pe, \
                track.thread_id, track.native_id, track.sort

    def spans_and_args(self):
        """Both tables in one pass. Why: each needs the arguments, which are decoded only once so."""
        trace, spans, args = self.trace, [], []
        parents, warm_up = trace.parents, trace.warm_up
        indexes = [trace.index.get(key) for key in INDEX_COLUMNS]
        bar = Progress(f"writing {len(trace)} spans", len(trace))
        for i in range(len(trace)):
            given = trace.args(i)
            flags, kind = trace.flags[i], trace.kind[i]
            trace_id, span_id = self.ids(i, given)
            numbers = [None if column is None or column[i] == NULL else column[i] for column in indexes]
            error_ns, job, stamp = of_device(given) if kind == DEVICE else (None, None, None)
            spans.append((
                i, trace.track[i], parents[i] if parents[i] >= 0 else None, self.of_name[trace.name[i]],
                self.of_name[trace.cat[i]],
                KIND_NAMES[kind], trace.start[i], trace.dur[i],
                error_ns, warm_up[i], 2 if flags & UNWOUND else flags & UNFINISHED,
                1 if flags & VIOLATED else 0, trace_id, span_id, *numbers[:4], job, numbers[4], stamp))
            if given:
                stated = {key for key, value in zip(INDEX_COLUMNS, numbers) if value is not None}
                if kind:
                    said = self.said(kind, flags, spans[-1])
                    stated |= {key for key in said.keys() & given.keys()
                               if type(given[key]) is type(said[key]) and given[key] == said[key]}
                args += self.args(i, given, stated)
            if len(spans) == PIECE:
                bar.at(i)
                yield "spans", spans
                yield "args", args
                spans, args = [], []
        yield "spans", spans
        yield "args", args
        bar.done()

    @staticmethod
    def said(kind, flags, row):
        """Arguments of a span with a kind that its columns say as they are. In a plain span these keys are
        the user's."""
        row = dict(zip(SPAN_COLUMNS, row))
        said = {key: row[key] for key in ("trace_id", "span_id") if row[key] is not None}
        if flags & (UNFINISHED | UNWOUND):
            said["unfinished"] = "unwound" if flags & UNWOUND else True
        if kind != DEVICE:
            return said | {"kind": KIND_NAMES[kind]}
        said |= {key: row[key] for key in ("error_ns", "job", "stamp") if row[key] is not None}
        return said | {"warm_up": True} | ({"causality": "violated"} if flags & VIOLATED else {})

    def ids(self, i, given):
        """(trace_id, span_id) as the file states them. In JSON only labelled spans and executions have
        them."""
        if self.trace.ids:
            return self.trace.trace_id(i), self.trace.span_id(i)
        found = given.get("trace_id"), given.get("span_id")
        return found if self.trace.kind[i] and all(type(text) is str for text in found) else (None, None)

    def args(self, i, given, stated):
        """Rows of the table args by the number of the key, without the keys that are stated in columns."""
        rows = []
        for key, value in given.items():
            if key in stated:
                continue
            key = self.string(key)
            if type(value) is float:
                rows.append((i, key, None, value, None, None))
            elif isinstance(value, str):
                rows.append((i, key, None, None, clean(value), None))
            elif type(value) is int and integer(value) is not None:
                rows.append((i, key, value, None, None, None))
            else:
                text = clean(json.dumps(value, ensure_ascii=False))
                whole = int(value) if isinstance(value, bool) else None
                shown = None if value is None or whole is not None else text
                rows.append((i, key, whole, None, shown, text))
        rows.sort(key=lambda row: row[1])
        return rows

    def flows(self):
        for n, (flow, (source, target)) in enumerate(zip(self.trace.flows, ends_of_arrows(self.trace))):
            yield (n, clean(flow.name), flow.from_track, flow.from_ns, source if source >= 0 else None,
                   flow.to_track, flow.to_ns, target if target >= 0 else None)

    def counters(self):
        for series in self.trace.counters:
            name, key = self.string(series.name), self.string(series.key)
            for ts, value in zip(series.ts, series.values):
                yield name, key, series.pid, ts, float(value), integer(value)

    def memory(self):
        for record in self.trace.memory:
            yield (record.ts, clean(record.device), record.used, record.allocated, record.change,
                   clean(record.tag), int(record.warm_up))

    def instants(self):
        for instant in self.trace.instants:
            args = clean(json_text(instant.args)) if instant.args else None
            yield instant.ts, instant.track, clean(instant.name), clean(instant.cat), args

    def sites(self):
        for (name, cat), places in sources(self.trace.metadata).items():
            for place in places:
                file, _, line = place.rpartition(":")
                yield self.string(name), self.string(cat), clean(file), int(line)

    def losses(self):
        lost = self.trace.metadata.get("lost")
        for cause in lost if isinstance(lost, dict) else ():
            yield clean(cause), integer(lost[cause])
