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

import os

from ..base.messages import Progress, Refused
from .chrome_json import read_json
from .csv_rows import read_csv
from .image import is_json, opened


def load(path, progress=False):
    """Reads a trace file; raises Refused (one line) for what it cannot use. progress: on stderr, if it takes long."""
    path = os.fspath(path)
    file, damage, head = opened(path)
    bar = Progress(f"reading {path}", os.fstat(file.fileno()).st_size) if progress else None
    if is_json(head):
        trace = read_json(path, file, bar)
    elif b"span_id" in head.partition(b"\n")[0]:
        trace = read_csv(path, file, bar)
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
