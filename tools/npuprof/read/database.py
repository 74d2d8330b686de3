# SPDX-License-Identifier: MIT
"""Reads a SQLite database of `export` into a Trace: all that the exported trace held, in its order."""

import json
import os
import sqlite3
import urllib.parse
from array import array

from ..base.contract import (COUNTED, DEVICE, IN_WARM_UP, INDEXES, KINDS, NULL, SAMPLED, SPAN, UNFINISHED,
                             UNWOUND, VIOLATED)
from ..base.files import open_plain, plain_path
from ..base.messages import Refused
from ..base.metadata import check_about, roles_of
from .trace import Counter, Instant, Memory, Trace, Track

MAGIC = b"SQLite format 3\0"
KIND_NAMES = ("span", *(name.decode() for name in KINDS), "device")      # by number
BLOCK = 4096           # rows whose arguments are read at a time
STATED = "stamp", "error_ns", "job", "trace_id", "span_id", *INDEXES       # columns that are arguments, too
OPEN = 0, UNFINISHED, UNWOUND              # by the number in spans.unfinished


def is_database(path):
    """False, too, of what cannot be read."""
    try:
        with open_plain(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def read_database(path):
    """The Trace of a database. Refuses one that misses something, or holds what no trace holds."""
    try:
        with plain_path(path) as plain:
            database = sqlite3.connect(f"file:{urllib.parse.quote(os.fsencode(plain))}?mode=ro", uri=True)
            database.execute("SELECT 1 FROM sqlite_master")       # opens the file
        trace = Trace(path)
        for part in (read_meta, read_tracks, read_spans, read_ids, read_rest):
            part(trace, database.execute)
        return trace
    except sqlite3.Error as error:
        error = str(error)[:80]            # one of SQLite's sentences holds a whole cell
        raise Refused(f"{path}: no database of `npuprof export`, or of an older one: {error}") from None
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError):
        raise Refused(f"{path}: no database of `npuprof export`, or it was changed: a row holds what no "
                      "trace holds; export it again") from None


def read_meta(trace, execute):
    meta = dict(execute("SELECT key, value FROM meta"))
    if "metadata" not in meta:
        raise Refused(f"{trace.path}: an older `export` wrote it, and a verdict needs more: export it again")
    about = json.loads(meta["metadata"])
    trace.metadata = check_about(trace.path, about) if about else {}
    trace.roles = roles_of(trace.metadata)
    trace.format, trace.damage, trace.base_ns = meta["form"], meta["damage"], int(meta["base_unix_ns"])
    trace.left_out.update(json.loads(meta["left_out"]))
    trace.tool, trace.notes = meta.get("tool", ""), json.loads(meta.get("notes", "[]"))
    for table in ("strings", "tracks", "spans", "flows"):
        if execute(f"SELECT count(*) - 1 - coalesce(max(id), -1) FROM {table}").fetchone()[0]:
            raise IndexError            # a row is missing
    trace.names = trace.flows.names = [text for text, in execute("SELECT text FROM strings ORDER BY id")]
    trace._numbers.update((text, n) for n, text in enumerate(trace.names))


def read_tracks(trace, execute):
    columns = "pid, tid, name, kind, base, thread, native_id, sort"
    for n, (pid, tid, *rest) in enumerate(execute(f"SELECT {columns} FROM tracks ORDER BY id")):
        trace.tracks.append(track := Track(n, pid, tid))
        track.name, track.kind, track.base, track.thread_id, track.native_id, track.sort = rest
    for track in trace.tracks:
        if not (track.kind in ("thread", "device", "other") and trace.tracks[track.base].pid == track.pid):
            raise ValueError


def read_spans(trace, execute):
    index = [trace.index.setdefault(key, array("q")) for key in INDEXES]
    counts = len(trace.tracks), len(trace.names), len(trace.names)
    columns = trace.track, trace.name, trace.cat, trace.start, trace.dur
    kinds, trace._warm_up = {name: n for n, name in enumerate(KIND_NAMES)}, bytearray()
    for *five, kind, unfinished, violated, warm_up, stamp in execute(
            "SELECT track, name, cat, start_ns, dur_ns, kind, unfinished, violated, warm_up, stamp "
            "FROM spans ORDER BY id"):
        for column, value in zip(columns, five):
            column.append(value)
        on_device = kind == "device"
        trace.kind.append(kinds[kind])
        trace.flags.append(OPEN[unfinished] | VIOLATED * violated | IN_WARM_UP * (on_device and warm_up)
                           | SAMPLED * (stamp == "sampled"))
        trace._warm_up.append(warm_up)
    for key, column in zip(INDEXES, index):
        column.extend(NULL if value is None else value for value, in
                      execute(f"SELECT {key} FROM spans ORDER BY id"))
        if column.count(NULL) == len(column):
            del trace.index[key]
    if any(max(column, default=-1) >= count for column, count in zip(columns, counts)):
        raise IndexError
    for row, in execute("SELECT span FROM args JOIN strings s ON s.id = key WHERE s.text = 'busy_ticks'"):
        if trace.kind[row] == DEVICE:
            trace.flags[row] |= COUNTED
    trace._args = Arguments(execute, trace.kind)
    trace.parents = array("i", [-1 if parent is None else parent for parent, in
                                execute("SELECT parent FROM spans ORDER BY id")])
    if max(trace.parents, default=-1) >= len(trace) or min(trace.dur, default=0) < 0:
        raise IndexError


def read_ids(trace, execute):
    """The ids that the trace stated: each row of a CSV, in JSON labelled spans and executions."""
    rows = execute("SELECT id, trace_id, span_id FROM spans WHERE span_id IS NOT NULL ORDER BY id")
    if trace.format == "csv":
        ids = [(bytes.fromhex(of_trace), int(of_span, 16)) for _, of_trace, of_span in rows]
        spans = array("Q", [of_span for _, of_span in ids])
        above = array("Q", [spans[parent] if parent >= 0 else 0 for parent in trace.parents])
        trace.ids = bytearray(b"".join(of_trace for of_trace, _ in ids)), spans, above
        return
    for row, of_trace, of_span in rows:
        if (len(of_trace), len(of_span)) == (32, 16):
            trace._given[0].append(row)
            trace._given[1].extend(bytes.fromhex(of_trace + of_span))


def read_rest(trace, execute):
    """Arrows, counters, memory and instants."""
    for name, *ends in execute("SELECT name, from_track, from_ns, to_track, to_ns FROM flows ORDER BY id"):
        trace.flows.add(trace._numbers[name], *ends)
    series = {}
    for *whose, ts, value in execute(
            "SELECT name, key, pid, ts_ns, coalesce(int, value) FROM counters ORDER BY rowid"):
        name, key, pid = whose
        if (found := series.get(tuple(whose))) is None:
            found = series[tuple(whose)] = Counter(trace.names[name], pid, trace.names[key], [], [])
        found.ts.append(ts)
        found.values.append(value)
    trace.counters = list(series.values())
    # Whose a pool is, its counter says: it has the same values at the same times.
    owners = {(counter.name, ts, value): counter.pid for counter in trace.counters if counter.key == "used"
              for ts, value in zip(counter.ts, counter.values)}
    trace.memory = [Memory(*row[:-1], bool(row[-1]), owners.get((row[1], *row[:3:2]))) for row in execute(
        "SELECT ts_ns, device, used_bytes, allocated_bytes, tag, change_bytes, warm_up FROM memory "
        "ORDER BY rowid")]
    if not all(type(number) is int for one in trace.memory for number in (one.ts, *one[2:4], one.change)):
        raise ValueError
    trace.instants = [Instant(*row, json.loads(args) if args else {}) for *row, args in execute(
        "SELECT ts_ns, track, name, cat, args FROM instants ORDER BY rowid")]
    used = *trace.flows.columns[::2], [instant.track for instant in trace.instants]
    if max(max(column, default=-1) for column in used) >= len(trace.tracks):
        raise IndexError


class Arguments:
    """The arguments of all rows, BLOCK rows at a time: what trace._args is asked for."""

    def __init__(self, execute, kinds):
        self.execute, self.kinds, self.first, self.block = execute, kinds, None, {}

    def get(self, row, default=None):
        first = row - row % BLOCK
        if first != self.first:
            self.first, self.block = first, self.read(first)
        return self.block.get(row, default)

    def values(self):
        for first in range(0, len(self.kinds), BLOCK):
            yield from self.read(first).values()

    def __len__(self):
        return len(self.kinds)

    def read(self, first):
        """{row: its arguments} of a block."""
        found, between = {}, (first, first + BLOCK)
        for row, unfinished, violated, warm_up, *stated in self.execute(
                f"SELECT id, unfinished, violated, warm_up, {', '.join(STATED)} FROM spans "
                "WHERE id >= ? AND id < ?", between):
            kind = self.kinds[row]
            given = {key: value for key, value in zip(STATED, stated) if value is not None}
            if kind != SPAN:
                given |= {"kind": KIND_NAMES[kind]} if kind != DEVICE else \
                    {"causality": "violated"} if violated else {}
                given |= {"unfinished": unfinished == 1 or "unwound"} if unfinished else {}
                given |= {"warm_up": True} if warm_up and kind == DEVICE else {}
            if given:
                found[row] = given
        for row, key, whole, real, text, as_json in self.execute(
                "SELECT span, s.text, int, real, a.text, json FROM args a JOIN strings s ON s.id = key "
                "WHERE span >= ? AND span < ?", between):
            value = json.loads(as_json) if as_json else whole if whole is not None else \
                real if real is not None else text
            found.setdefault(row, {})[key] = value
        return found
