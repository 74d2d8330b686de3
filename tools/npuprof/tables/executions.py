# SPDX-License-Identifier: MIT
"""Tables of the device: its executions and operators."""

from array import array
from collections import namedtuple
from fractions import Fraction

from .. import loops
from ..base.contract import COUNTED, NULL, SAMPLED
from .table import Rows

TRANSFERS = {"Load", "Store"}      # names of device spans that move data; others have the role "dma"
# One execution on the device: its row; NPU Total, Run, IoWait and Sum in ns. The last three are None if
# unmeasured.
Execution = namedtuple("Execution", "row total run wait added")


class Device:
    """The executions and operators of a trace. operators: name -> (count, total)."""

    def __init__(self, trace):
        compute = compute_names(trace)
        self.trace = trace
        self.rows, ends, _ = trace.executions
        self.run, self.added, found = loops.runs(trace.executions, trace.start, trace.dur, trace.name,
                                                 compute, trace.warm_up)
        self.operators = {trace.names[n]: entry for n, entry in found.items()}
        counted, silent, last = counted_runs(trace), trace.format == "csv" or bool(trace.tool), 0
        for n, (i, end) in enumerate(zip(self.rows, ends)):
            empty, last = end == last, end
            if i in counted:
                self.run[n] = self.added[n] = counted[i]
            # Why by name in a CSV and of other tools: they do not say which executions were sampled. Those
            # have an operator's name.
            elif empty and i >= 0 and (trace.flags[i] & SAMPLED or (silent and compute[trace.name[i]])):
                self.run[n] = NULL

    def groups(self, warm_up=False):
        """The numbers of the groups that are executions. warm_up=True: also those in warm-up."""
        warm = self.trace.warm_up
        return array("i", [g for g, i in enumerate(self.rows) if i >= 0 and (warm_up or not warm[i])])

    def executions(self, warm_up=False, groups=None):
        """Yields every Execution, or those of some groups."""
        dur = self.trace.dur
        for g in self.groups(warm_up) if groups is None else groups:
            i, run = self.rows[g], self.run[g]
            known = run != NULL
            yield Execution(i, dur[i], *((run, dur[i] - run, self.added[g]) if known else (None,) * 3))


def compute_names(trace):
    """Bytes by name: 1 if spans of that name compute. The role "execution": it only encloses operators."""
    return bytearray(not moves and text != "Execution" and trace.roles.get(text) != "execution"
                     for text, moves in zip(trace.names, transfer_names(trace)))


def transfer_names(trace):
    """Bytes by name: 1 if spans of that name move data."""
    return bytearray(text in TRANSFERS or trace.roles.get(text) == "dma" for text in trace.names)


def counted_runs(trace):
    """By row: ns that the device was busy in that span, according to its own counter."""
    def ticks(value):
        return int(value) if isinstance(value, int) or str(value).isdigit() else -1
    found = {}
    for i in trace.rows_with(COUNTED):
        args = trace.args(i)
        busy, start, end = (ticks(args.get(key)) for key in ("busy_ticks", "start_ticks", "end_ticks"))
        if "ticks" in args and "end_ticks" not in args:      # its stamps are the host's
            start, end = 0, ticks(args["ticks"])
        if busy >= 0 and 0 <= start < end and trace.dur[i] > 0:
            found[i] = trace.dur[i] * min(busy, end - start) // (end - start)
    return found


def npu_executions(trace, device=None):
    """Rows (trace_id, span_id, pe_index, execution_index or None, NPU Total, NPU Run, NPU IoWait, NPU
    Sum)."""
    index, pes = trace.index.get("execution_index"), trace.index.get("pe_index")
    device = device or Device(trace)

    def made(groups):
        ids = trace.ids_of([device.rows[g] for g in groups])
        for own, (i, *figures) in zip(ids, device.executions(groups=groups)):
            number = None if index is None or index[i] == NULL else index[i]
            yield (*own, 0 if pes is None or pes[i] == NULL else pes[i], number, *figures)
    return Rows(device.groups(), made)


def npu_operators(trace, device=None):
    """Rows (name, mean as a Fraction, count, total, share as a Fraction of 1), the longest mean first."""
    operators = (device or Device(trace)).operators
    everything = sum(total for count, total in operators.values())
    rows = [(name, Fraction(total, count), count, total, Fraction(total, everything or 1))
            for name, (count, total) in operators.items()]
    return sorted(rows, key=lambda row: -row[1])
