# SPDX-License-Identifier: MIT
"""Reads npuprof's CSV."""

import csv
import io
import re
import sys
from array import array

from .. import loops
from ..base.cells import unguarded
from ..base.contract import COLUMNS, DEVICE, INDEXES, NULL, SOURCE, SPAN
from ..base.messages import Refused
from ..base.numbers import int64
from .own_layout import BLOCK
from .trace import Numbered, Trace, Track, kinds_by_name

CELL = rb'([^,"\n]*|"(?:[^"\n]|"")*")'      # of a text
CSV_LINE = re.compile(rb'^([0-9a-f]{32}),([0-9a-f]{16}|),([0-9a-f]{16}),(-?\d+),(-?\d+),' + CELL + b',' + CELL
                      + rb',(\d*),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+|),(-?\d+)'
                      rb'(?:,(?:"(?:[^"\n]|"")*")?)?$', re.M)
CSV_MEMORY_PEAK = re.compile(rb'^,,,(-?\d+),-?\d+,"memory",' + CELL + rb',,,,,,,0,?$', re.M)
ONE_DEVICE = ("a CSV does not name devices: if there were several, what PEs of one number did is on one "
              "track here; ask the JSON or the image")
# The form of each column's cells; None: a text.
FORMS = [r"[0-9a-f]{32}", r"[0-9a-f]{16}|", r"[0-9a-f]{16}", r"-?\d+", r"-?\d+", None, None, r"\d*",
         *[r"-?\d+|"] * 5, r"-?\d+"]


def unquoted(text):
    if text.startswith(b'"'):
        text = text[1:-1].replace(b'""', b'"')
    return unguarded(text.decode())


def read_csv(path, file, bar):
    """The Trace of a CSV file."""
    reader = CsvReader(path, file)
    while reader.next_block():
        if bar:
            bar.at(reader.offset)
    trace = reader.trace
    trace.base_ns = min(reader.absolute, default=0)
    trace.start = loops.moved(reader.absolute, -trace.base_ns)
    file.close()
    if any(track.kind == "device" for track in trace.tracks):
        trace.notes.append(ONE_DEVICE)
    kinds_by_name(trace)
    return trace


class CsvReader:
    """Fills a Trace from the rows of a CSV.

    absolute    the starts in Unix ns
    offset      bytes before the next block; `line` is the number of its first line, `rest` what is read of it
    ordered     True: the columns come in the order of npuprof's own writer, and lines end as there
    """

    def __init__(self, path, file):
        self.path, self.file, self.trace = path, file, Trace(path)
        self.trace.format = "csv"
        self.trace.ids = bytearray(), array("Q"), array("Q")
        head = file.readline()
        # Why utf-8-sig: spreadsheets put a byte order mark before the text.
        self.columns = head.decode("utf-8-sig", "replace").rstrip("\r\n").split(",")
        missing = [c for c in COLUMNS if c not in self.columns]
        if missing:
            raise Refused(f"{path}:1: byte 0: no column {missing[0]}; the columns are {','.join(COLUMNS)}")
        own = self.columns in (list(COLUMNS), [*COLUMNS, SOURCE])
        self.ordered = own and not head.endswith(b"\r\n")
        self.texts = Numbered(lambda text: self.trace._numbers[unquoted(text)])
        self.tracks = Numbered(lambda key: new_track(self.trace, *key))
        self.absolute = array("q")
        self.offset, self.line, self.rest = len(head), 2, b""
        self.native = BlockReader(self) if loops.native.library() and self.ordered else None

    def refuse(self, sentence, lines=0, byte=None):
        raise Refused(f"{self.path}:{self.line + lines}: "
                      + (f"byte {self.offset + byte}: " if byte is not None else "") + sentence) from None

    def next_block(self):
        """Reads the rows that end in the next BLOCK bytes. False: the file is at its end."""
        data = self.file.read(BLOCK)
        block = self.rest + data
        if not block:
            return False
        if not data and not block.endswith(b"\n"):
            self.refuse("the file ends within a line, was it cut off?", block.count(b"\n"), len(block))
        cut = block.rfind(b"\n") + 1
        lines = block.count(b"\n", 0, cut)
        try:
            if not (self.native and self.native.read(block[:cut], lines)):
                if not self.own_rows(block, cut, lines):
                    self.any_rows(block + self.file.read())
                    return False
        except UnicodeDecodeError:
            self.refuse(f"invalid UTF-8 in the {lines} lines from here", byte=0)
        except (OverflowError, ValueError):
            self.refuse(f"a number out of 64 bits in the {lines} lines from here", byte=0)
        self.line += lines
        self.offset += cut
        self.rest = block[cut:]
        return True

    def own_rows(self, block, cut, lines):
        """Reads rows of npuprof's own writer. False: some row has another form, and nothing was read."""
        if not self.ordered:
            return False
        rows = CSV_LINE.findall(block, 0, cut)
        peaks = CSV_MEMORY_PEAK.findall(block, 0, cut) if len(rows) != lines else []
        if len(rows) + len(peaks) != lines:
            return False
        self.add_rows(rows)
        self.add_memory_peaks(peaks)
        return True

    def any_rows(self, data):
        """Reads the rest of the file in any form: columns in another order, line breaks in names. Checks each
        cell."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            self.refuse("invalid UTF-8", data.count(b"\n", 0, error.start), error.start)
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        places = [self.columns.index(c) for c in COLUMNS]
        rows, peaks = [], []
        try:
            for cells in reader:
                if len(cells) != len(self.columns):
                    self.refuse(f"{len(cells)} cells, the head has {len(self.columns)} columns",
                                reader.line_num - 1)
                row = [cells[p] for p in places]
                peak = row[5] == "memory" and not row[2]
                self.check(row, peak, reader.line_num - 1)
                row = [('"' + c.replace('"', '""') + '"').encode() if form is None else c.encode()
                       for form, c in zip(FORMS, row)]
                if peak:
                    peaks.append((row[3], row[6]))
                else:
                    rows.append(row)
        except csv.Error as error:
            self.refuse(f"not CSV: {error}", reader.line_num - 1)
        self.add_rows(rows)
        self.add_memory_peaks(peaks)

    def check(self, row, peak, line):
        """Refuses a cell that has another form than its column. Ids may be empty in the peak of a memory
        pool."""
        for column, form, cell in zip(COLUMNS, FORMS, row):
            if form is None or (peak and column in ("trace_id", "span_id") and not cell):
                continue
            if not re.fullmatch(form, cell):
                self.refuse(f"column {column}: not as it should be: {cell[:40]!r}", line)

    def add_rows(self, rows):
        """Appends rows, each a sequence of cells as bytes in the order of COLUMNS."""
        if not rows:
            return
        trace, first = self.trace, len(self.trace.name)
        trace_ids, parents, spans, starts, _, cats, names, threads, *indexes, durations = zip(*rows)
        trace.ids[0].extend(bytes.fromhex(b"".join(trace_ids).decode()))
        for column, texts in ((trace.ids[1], spans), (trace.ids[2], [p or b"0" * 16 for p in parents])):
            words = array("Q", bytes.fromhex(b"".join(texts).decode()))
            if sys.byteorder == "little":
                words.byteswap()
            column.extend(words)
        self.absolute.extend(map(int, starts))
        trace.dur.extend(map(int, durations))
        trace.name.extend(map(self.texts.__getitem__, names))
        trace.cat.extend(map(self.texts.__getitem__, cats))
        pes = indexes[1]
        trace.track.extend(self.tracks[thread, b"" if thread else pe] for thread, pe in zip(threads, pes))
        trace.kind += bytes(DEVICE if pe and not thread else SPAN for thread, pe in zip(threads, pes))
        trace.flags += bytes(len(rows))
        for key, texts in zip(INDEXES, indexes):
            if key not in trace.index:
                if not any(texts):
                    continue
                trace.index[key] = array("q", [NULL]) * first
            trace.index[key].extend([int64(t) if t else NULL for t in texts])

    def add_memory_peaks(self, peaks):
        self.trace.memory_peaks += [(int64(ns), unquoted(name)) for ns, name in peaks]


class BlockReader:
    """Reads blocks of rows in C. names, cats, of_ids: the trace's numbers of C's texts."""

    def __init__(self, reader):
        self.reader, self.native = reader, loops.Reader()
        self.names, self.cats, self.of_ids = array("I"), array("I"), array("I")

    def read(self, block, lines):
        """False: some row has another form, and nothing was read."""
        reader, native = self.reader, self.native
        trace, first, count = reader.trace, len(reader.trace.name), native.read("csv", block, lines)
        if count < 0:
            return False
        places = native.column("others", 16 * native.block.others_count).cast("Q")
        others = b"\n".join(block[at:at + length] for at, length in zip(places[::2], places[1::2]))
        reader.add_memory_peaks(CSV_MEMORY_PEAK.findall(others))
        for label in native.texts(0, len(self.names)):
            cat, name = re.findall(rb'(?:^|,)("(?:[^"]|"")*"|[^",]*)', label)
            self.cats.append(reader.texts[cat])
            self.names.append(reader.texts[name])
        for text in native.texts(1, len(self.of_ids)):
            self.of_ids.append(reader.tracks[(text[1:], b"") if text[:1] == b"t" else (b"", text[1:])])
        native.into(trace, count, self.names, self.cats, self.of_ids, reader.absolute)
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
    """The number of a new track: of a thread, of a PE, or of what has neither."""
    track = Track(len(trace.tracks), 1, int(thread) if thread else 0)
    trace.tracks.append(track)
    if thread:
        track.name, track.thread_id = f"thread {int(thread)}", int(thread)
    elif pe:
        track.name, track.kind = f"PE {int(pe)}", "device"
    else:
        track.name, track.kind = "other", "other"
    return track.number
