# SPDX-License-Identifier: MIT
"""Reads npuprof's CSV."""

import csv
import io
import re
import sys
from array import array

from .. import loops
from ..base.contract import COLUMNS, DEVICE, INDEXES, NULL, SPAN
from ..base.messages import Refused
from ..base.numbers import int64
from .own_layout import BLOCK
from .trace import Numbered, Trace, Track, kinds_by_name

CSV_LINE = re.compile(rb'^([0-9a-f]{32}),([0-9a-f]{16}|),([0-9a-f]{16}),(-?\d+),(-?\d+),([^,"\n]*|"(?:[^"\n]|"")*"),'
                      rb'([^,"\n]*|"(?:[^"\n]|"")*"),(\d*),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+)$', re.M)
CSV_MEMORY_PEAK = re.compile(rb'^,,,(-?\d+),-?\d+,"memory",([^,"\n]*|"(?:[^"\n]|"")*"),,,,,,,0$', re.M)


def unquoted(text):
    if text.startswith(b'"'):
        text = text[1:-1].replace(b'""', b'"')
    return text.decode()


def read_csv(path, file, bar):
    trace = Trace(path)
    trace.format = "csv"
    trace.ids = bytearray(), array("Q"), array("Q")
    head = file.readline()
    columns = head.decode("utf-8", "replace").rstrip("\r\n").split(",")
    missing = [c for c in COLUMNS if c not in columns]
    if missing:
        raise Refused(f"{path}:1: byte 0: no column {missing[0]}; the columns are {','.join(COLUMNS)}")
    texts = Numbered(lambda text: trace._numbers[unquoted(text)])
    tracks = Numbered(lambda key: new_track(trace, *key))
    absolute = array("q")
    offset, line, rest = len(head), 2, b""
    ordered = columns == list(COLUMNS) and not head.endswith(b"\r\n")
    native = BlockReader(trace, texts, tracks, absolute) if loops.native.library() and ordered else None
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
                    rows, peaks = any_rows(path, block[:cut] + (block[cut:] + file.read()), columns, offset, line)
                    lines, cut = len(rows) + len(peaks), None
                add_rows(trace, rows, texts, tracks, absolute)
                add_memory_peaks(trace, peaks)
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
    kinds_by_name(trace)
    return trace


class BlockReader:
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
        add_memory_peaks(trace, CSV_MEMORY_PEAK.findall(b"\n".join(block[at:at + length] for at, length in zip(places[::2], places[1::2]))))
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


def new_track(trace, thread, pe):
    track = Track(len(trace.tracks), 1, int(thread) if thread else 0)
    trace.tracks.append(track)
    if thread:
        track.name, track.thread_id = f"thread {int(thread)}", int(thread)
    elif pe:
        track.name, track.kind = f"PE {int(pe)}", "device"
    else:
        track.name, track.kind = "other", "other"
    return track.number


def add_rows(trace, rows, texts, tracks, absolute):
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
        column.extend([int64(t) if t else NULL for t in texts_of])


def add_memory_peaks(trace, peaks):
    trace.memory_peaks += [(int64(ns), unquoted(name)) for ns, name in peaks]


def any_rows(path, data, columns, offset, line):
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
