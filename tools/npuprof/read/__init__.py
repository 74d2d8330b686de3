# SPDX-License-Identifier: MIT
"""Reads a trace into columns: Chrome JSON, CSV, a database of `export`, an image (through
build/npuprof-convert), or the file of another tool (see foreign/).

    trace = load(path)
    len(trace)                               spans, by track and start
    trace.start[i], trace.dur[i]             ns; start counts from trace.base_ns (Unix ns)
    trace.names[trace.name[i]]               also trace.names[trace.cat[i]]; "" is number 0
    trace.tracks[trace.track[i]]             a Track: thread, device engine or other
    trace.kind[i]                            SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR or DEVICE
    trace.flags[i]                           UNFINISHED | UNWOUND | VIOLATED | IN_WARM_UP | SAMPLED | COUNTED
    trace.index["pe_index"][i]               also dram_base, execution_index, instruction_index,
                                             operator_index; NULL: none
    trace.args(i)                            all arguments as a dict ({} from a CSV)
    trace.parents[i]                         a row; -1: no parent
    trace.callers[i]                         the row that opened it, over await, tasks and threads, too
    trace.roots[i]                           the row that gives the trace id: the record around it, else the
                                             uppermost ancestor
    trace.warm_up[i]                         1: inside a warm-up record
    trace.span_id(i), trace.trace_id(i), trace.parent_span_id(i)    hex text, as in the CSV
    trace.row(i), trace.rows()               the columns of the CSV as dicts
    trace.to_pandas()                        the same as a data frame
    trace.spans                              all spans in columns: to_pandas(), to_arrow(), columns()
    trace.tables["idle"]                     each table of `npuprof report`: columns, rows, to_pandas()
    trace.verdict()                          what to change, what it brings, and how sure that is
    trace.memory_peaks                       of a CSV: (Unix ns, name) of the peak of each memory pool
    trace.counters, trace.memory, trace.instants, trace.flows, trace.metadata, trace.damage
    trace.tool, trace.notes                  of another tool: its name, and what its trace does not say
    trace.left_out                           {what: how many} of what has no place here

What is not named here is private, and may change.

Ten million spans take about 500 MB: columns are arrays, names are numbers, and arguments stay in the file
until they are asked for.

In JSON of npuprof the kind of a span is an argument. The CSV has no column for it, and other tools do not
write it. There a span named Inference is an inference, a host span with an operator_index is an operator, and
a span named "warm up" is a warm-up record.
"""

import os

from ..base.built import SLOW_BYTES, say_slow
from ..base.files import open_plain
from ..base.messages import Progress, Refused
from ..loops import native
from .chrome_json import read_json
from .csv_rows import read_csv
from .database import is_database, read_database
from .events import EventReader
from .foreign import file_of, read_file
from .image import is_json, opened
from .layers import layers_of
from .trace import Trace


def load(path, progress=False, layers=None):
    """Reads a trace file. Raises Refused, with one line, if it cannot be used. progress: show it on a
    terminal. layers: a file that says which command is of which layer (layers.py)."""
    trace = read_any(os.fspath(path), progress)
    trace.layers = layers_of(trace, layers)
    return trace


def read_any(path, progress):
    if is_database(path):
        trace = read_database(path)
        check_times(trace)
        return trace
    if (tool := tool_of(path)) is not None:
        trace = Trace(path)
        read_file(tool, path, open_plain(path), EventReader(trace))
        check_times(trace)
        return trace
    file, damage, head = opened(path)
    size = os.fstat(file.fileno()).st_size
    bar = Progress(f"reading {path}", size) if progress else None
    if progress and size > SLOW_BYTES and not native.library():
        say_slow()
    if is_json(head):
        trace = read_json(path, file, bar)
    elif b"span_id" in head.partition(b"\n")[0]:
        trace = read_csv(path, file, bar)
    else:
        raise Refused(f"{path}:1: byte 0: neither a Chrome trace (JSON), nor npuprof's CSV, "
                      "nor an image of npuprof")
    check_times(trace)
    trace.damage = damage
    if bar:
        bar.done()
    return trace


def tool_of(path):
    """The tool whose own file this is; None: of none, or it cannot be read."""
    try:
        with open_plain(path) as file:
            return file_of(file.read(16))
    except OSError:
        return None


def check_times(trace):
    """Refuses times that 64 bits cannot add up. Why: the loops over all spans do that."""
    latest = max(trace.start, default=0), sum(trace.dur)
    if max(latest) >= 2**62 or min(trace.start, default=0) <= -2**62:
        longest = max(range(len(trace.start)), key=lambda i: max(abs(trace.start[i]), trace.dur[i]))
        place = f":{longest + 2}" if trace.format == "csv" else f": event {longest}"
        raise Refused(f"{trace.path}{place}: times of more than 2^62 ns (146 years) cannot be added up")
