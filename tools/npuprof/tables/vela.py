# SPDX-License-Identifier: MIT
"""The per-layer table of Arm's Vela compiler beside the measured device spans: estimated against measured
cycles.

Vela writes NAME_per-layer.csv with --verbose-performance: a line for each layer in the order of its command
stream, and the head again before each NPU subgraph. Its documentation (PERFORMANCE.md) gives the columns;
here are used: the operator ("TFLite_operator", "TOSA_operator" or "Original Operator"), "Op Cycles" and
"Name"."""

import csv
import io
from collections import namedtuple
from fractions import Fraction

from ..base.contract import DEVICE
from ..base.files import read_bytes
from ..base.messages import Refused
from .executions import Device
from .table import Table, pct

OPERATOR = ("TFLite_operator", "TOSA_operator", "Original Operator", "NNG Operator")
NEEDED = ("Op Cycles", "Name")
COLUMNS = ("layer", "operator", "estimated_ticks", "share_pct", "count", "measured_ticks", "measured_ratio",
           "difference_ticks")
CUT = 60              # bytes: a name of that length may have been cut by the recorder
# A layer: lines of one name are one. ticks: estimated cycles.
Layer = namedtuple("Layer", "name operator ticks")


def cycles(text, where):
    """A number of cycles, exact. Vela writes whole numbers with or without a decimal point."""
    try:
        value = Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        value = -1
    if not 0 <= value < 1 << 63 or len(text) > 40:
        raise Refused(f"{where}: Op Cycles is {text[:40]!r}: not a number of cycles; "
                      "let Vela write the file again")
    return int(value) if value.denominator == 1 else value


class Columns:
    """Which column of a head is which."""

    def __init__(self, head, where):
        missing = [name for name in NEEDED if name not in head]
        if missing:
            raise Refused(f"{where}: no column {missing[0]!r}: give NAME_per-layer.csv, which Vela writes "
                          "with --verbose-performance")
        self.head, self.width = head, len(head)
        self.cycles, self.name = (head.index(name) for name in NEEDED)
        self.operator = next((head.index(name) for name in OPERATOR if name in head), self.name)


def read_layers(path):
    """(layers in their order, number of NPU subgraphs) of a per-layer CSV."""
    text = read_bytes(path).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns, graphs, found = None, 0, {}
    try:
        for row in lines:
            where = f"{path}:{lines.line_num}"
            if not row:
                continue
            if columns is None or row == columns.head:
                columns, graphs = columns or Columns(row, where), graphs + 1
                continue
            if len(row) != columns.width:
                raise Refused(f"{where}: {len(row)} cells, the head has {columns.width}; "
                              "let Vela write the file again")
            name, ticks = row[columns.name], cycles(row[columns.cycles], where)
            before = found.get(name, Layer(name, row[columns.operator], 0))
            found[name] = before._replace(ticks=before.ticks + ticks)
    except csv.Error as error:
        raise Refused(f"{path}:{lines.line_num}: no CSV: {error}; let Vela write the file again") from None
    if not found:
        raise Refused(f"{path}:1: no layer in it: give NAME_per-layer.csv, which Vela writes with "
                      "--verbose-performance")
    return list(found.values()), graphs


class Names:
    """Which layer a span's name means: its whole name, one of the parts between its ";", or its beginning
    where the recorder cut it. What means two layers means none."""

    def __init__(self, layers):
        self.layers, self.parts = {layer.name: n for n, layer in enumerate(layers)}, {}
        for n, layer in enumerate(layers):
            for part in set(layer.name.split(";")):
                self.parts[part] = n if part not in self.parts else None

    def layer(self, text):
        found = self.layers.get(text, self.parts.get(text))
        if found is None and text not in self.parts and len(text.encode()) >= CUT:
            longer = [n for name, n in self.layers.items() if name.startswith(text)]
            found = longer[0] if len(longer) == 1 else None
        return found


def ticks_of(args):
    """The ticks of a device span; None: not known."""
    values = [args.get(key) for key in ("ticks", "start_ticks", "end_ticks")]
    whole, start, end = (v if isinstance(v, int) and not isinstance(v, bool) else None for v in values)
    if start is not None and end is not None and end >= start:
        return end - start
    return whole


class Sum:
    """Spans of a layer, or of one name: how many, and the sum of those ticks that are known."""

    def __init__(self):
        self.count = self.known = self.ticks = 0

    def add(self, ticks):
        self.count += 1
        self.known += ticks is not None
        self.ticks += ticks or 0

    @property
    def mean(self):
        return Fraction(self.ticks, self.known) if self.known else None


def measured(trace, layers):
    """(Sum by number of the layer, Sum by name of the other executions) of device spans outside warm-up."""
    names = Names(layers)
    layer_of = [names.layer(text) for text in trace.names]
    by_layer, others = {}, {}
    for i in range(len(trace)):
        n = layer_of[trace.name[i]]
        if n is not None and trace.kind[i] == DEVICE and not trace.warm_up[i]:
            by_layer.setdefault(n, Sum()).add(ticks_of(trace.args(i)))
    for execution in Device(trace).executions():
        if layer_of[trace.name[execution.row]] is None:
            others.setdefault(trace.text(execution.row), Sum()).add(ticks_of(trace.args(execution.row)))
    return by_layer, others


def row_of(name, operator, ticks, everything, spans):
    mean = spans.mean if spans else None
    known = mean is not None and ticks is not None
    return (name, operator, ticks, None if ticks is None else pct(ticks, everything),
            spans.count if spans else 0, mean, mean / ticks if known and ticks else None,
            mean - ticks if known else None)


def vela_table(trace, path):
    """Columns: COLUMNS. A row for each layer, in Vela's order; then one for each name of a device span that
    is no layer: a run of the whole network, against the sum of the layers."""
    layers, graphs = read_layers(path)
    by_layer, others = measured(trace, layers)
    everything = sum(layer.ticks for layer in layers)
    rows = [row_of(layer.name, layer.operator, layer.ticks, everything, by_layer.get(n))
            for n, layer in enumerate(layers)]
    whole = everything if graphs == 1 else None
    rows += [row_of(name, "(all layers)", whole, everything, spans)
             for name, spans in sorted(others.items())]
    notes = [f"{len(by_layer)} of {len(layers)} layers have device spans of their name"]
    if others and graphs > 1:
        notes.append(f"the file has {graphs} NPU subgraphs: a run of one of them is not all layers")
    if not any(spans.known for spans in (*by_layer.values(), *others.values())):
        csv_file = trace.format == "csv"
        notes.append("no device span has ticks" + ": give the JSON or the image, not a CSV" * csv_file)
    return Table("vela", "Layers of Vela's estimate (ticks of the device's counter: NPU cycles if it "
                         "counts the NPU's clock; measured: the mean)", COLUMNS, rows, notes)
