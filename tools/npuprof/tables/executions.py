# SPDX-License-Identifier: MIT
"""Tables of the device: its executions and operators."""

from collections import namedtuple
from fractions import Fraction
from itertools import islice

from .. import loops
from ..base.contract import COUNTED, NULL, SAMPLED

NOT_COMPUTE = {"Execution", "Load", "Store"}
# One on the device: row of the trace; NPU Total, Run, IoWait and Sum in ns. The last three are None where nobody measured them.
Execution = namedtuple("Execution", "row total run wait added")


class Device:
    """One walk over the device spans: executions and operators."""

    def __init__(self, trace):
        compute = compute_names(trace)
        self.trace = trace
        self.rows, ends, _ = trace.executions
        self.run, self.added, found = loops.runs(trace.executions, trace.start, trace.dur, trace.name,
                                                 compute, trace.warm_up)
        self.operators = {trace.names[n]: entry for n, entry in found.items()}      # name -> (count, total)
        counted, csv, last = counted_runs(trace), trace.format == "csv", 0
        for n, (i, end) in enumerate(zip(self.rows, ends)):
            empty, last = end == last, end
            if i in counted:
                self.run[n] = self.added[n] = counted[i]
            # Why by name in a CSV: it does not say which executions were sampled; those bear an operator's name.
            elif empty and i >= 0 and (trace.flags[i] & SAMPLED or (csv and compute[trace.name[i]])):
                self.run[n] = NULL

    def executions(self, warm_up=False):
        """The Executions; warm_up: those in warm-up, too."""
        dur, warm = self.trace.dur, self.trace.warm_up
        for i, run, added in zip(self.rows, self.run, self.added):
            if i >= 0 and (warm_up or not warm[i]):
                yield Execution(i, dur[i], None, None,
                                None) if run == NULL else Execution(i, dur[i], run, dur[i] - run, added)


def compute_names(trace):
    """Bytes, by name: 1 for names of spans that compute."""
    return bytearray(text not in NOT_COMPUTE for text in trace.names)


def counted_runs(trace):
    """row -> ns that the device was busy in that span by its own counter."""
    found = {}
    for i in trace.rows_with(COUNTED):
        args = trace.args(i)
        busy, start, end = (int(value) if isinstance(value := args.get(key), int)
                            or str(value).isdigit() else -1
                            for key in ("busy_ticks", "start_ticks", "end_ticks"))
        if busy >= 0 and 0 <= start < end and trace.dur[i] > 0:
            found[i] = trace.dur[i] * min(busy, end - start) // (end - start)
    return found


def npu_executions(trace, device=None, limit=None):
    """Rows (trace_id, span_id, pe_index, execution_index or None, NPU Total, NPU Run, NPU IoWait, NPU Sum)."""
    index, pes = trace.index.get("execution_index"), trace.index.get("pe_index")
    rows = []
    executions = list(islice((device or Device(trace)).executions(), limit))
    for (i, *figures), (trace_id, span_id) in zip(executions, trace.ids_of([e.row for e in executions])):
        number = None if index is None or index[i] == NULL else index[i]
        rows.append((trace_id, span_id, pes[i] if pes is not None and pes[i] != NULL else 0, number,
                     *figures))
    return rows


def npu_operators(trace, device=None):
    """Rows (name, mean as a Fraction, count, total, share as a Fraction of 1), the longest mean first."""
    operators = (device or Device(trace)).operators
    everything = sum(total for count, total in operators.values())
    rows = [(name, Fraction(total, count), count, total, Fraction(total, everything or 1))
            for name, (count, total) in operators.items()]
    return sorted(rows, key=lambda row: -row[1])
