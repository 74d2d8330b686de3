# SPDX-License-Identifier: MIT
"""Operators by shape: spans whose arguments say the shapes of their tensors, together if they have the same.

The arguments are those of npuprof's own sheet (ne.*), of PyTorch, ONNX Runtime and XLA, and plain words such
as "shape" and "input_shapes". Lists of numbers become 1x3x224x224, several tensors stand with semicolons
between, inputs, outputs and weights with bars. The share is of the time of all operators with a shape."""

import json
import re

from ..base.contract import UNFINISHED
from ..tables.arithmetic import mean, percentile
from ..tables.table import Table, pct
from .arguments import lines_that

TABLES = ("shapes",)
COLUMNS = ("operator", "where", "shape", "count", "total_ns", "share_pct", "mean_ns", "p50_ns", "p99_ns",
           "max_ns")
KEYS = ("shape", "shapes", "input_shape", "input_shapes", "input_type_shape", "Input Dims", "Input dims",
        "ne.input_shapes", "output_shape", "output_shapes", "output_type_shape", "ne.output_shapes",
        "weight_shape", "ne.weight_shape", "shape_with_layout")
ASKED = re.compile(b'"(%s)":("(?:[^"\\\\]|\\\\.)*"|-?[0-9]+)?' % b"|".join(
    re.escape(key.encode()) for key in KEYS))


def text_of(value):
    """A shape as text; "": it says none."""
    if isinstance(value, list):
        flat = all(type(side) is int for side in value)
        return ("x" if flat else ";").join(filter(None, map(text_of, value)))
    if isinstance(value, dict):
        return ";".join(f"{kind} {text_of(sides)}".strip() for kind, sides in value.items())
    return "" if value is None or isinstance(value, (bool, float)) else str(value)


def shape_of(args):
    """The shapes that the arguments of a span say; "": none."""
    return " | ".join(filter(None, (text_of(args.get(key)) for key in KEYS)))


def said(trace):
    """Yields (row, shape) of the spans that say one, in any order."""
    of_file = map(trace._args.get, map(trace.place, range(len(trace)))) if trace._args else ()
    for i, args in enumerate(of_file):
        if args and (shape := shape_of(args)):
            yield i, shape
    known = {}
    for i, line in lines_that(trace, ASKED):
        pairs = tuple(ASKED.findall(line))
        if all(value for _, value in pairs):
            shape = known.get(pairs)
            if shape is None:
                shape = known[pairs] = shape_of({key.decode(): json.loads(value) for key, value in pairs})
        else:
            shape = shape_of(trace.args(i))
        if shape:
            yield i, shape


def groups(facts):
    """{(name, "host" or "device", shape): durations}"""
    trace, window, found = facts.trace, facts.window, {}
    warm, flags, pes = trace.warm_up, trace.flags, trace.index.get("pe_index")
    for i, shape in said(trace):
        start = trace.start[i]
        if warm[i] or flags[i] & UNFINISHED or not window.holds(start, start + trace.dur[i]):
            continue
        if window.pe is not None and (pes is None or pes[i] != window.pe):
            continue
        where = "device" if trace.tracks[trace.track[i]].kind == "device" else "host"
        found.setdefault((trace.text(i), where, shape), []).append(trace.dur[i])
    return found


def analyse(facts):
    found, rows = groups(facts), []
    everything = sum(map(sum, found.values()))
    for key, durations in found.items():
        durations.sort()
        total = sum(durations)
        rows.append((*key, len(durations), total, pct(total, everything), mean(total, len(durations)),
                     percentile(durations, 500), percentile(durations, 990), durations[-1]))
    rows.sort(key=lambda row: (-row[4], row[:3]))
    notes = [] if rows else ["no span says the shape of its tensors, by an argument such as shape, "
                             "input_shapes or ne.input_shapes"]
    yield Table("shapes", "Operators by name and shape", COLUMNS, rows, notes)
