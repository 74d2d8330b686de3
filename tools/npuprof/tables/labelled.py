# SPDX-License-Identifier: MIT
"""Tables of labelled spans: inferences and host operators."""

from array import array

from ..base.contract import INFERENCE, NULL, OPERATOR, UNFINISHED
from .arithmetic import mean, percentile
from .table import Rows


def labelled(trace, kind):
    """The finished rows of that kind outside warm-up, in the order of the file."""
    rows, kinds, wanted, i = array("i"), trace.kind, bytes([kind]), -1
    while (i := kinds.find(wanted, i + 1)) >= 0:
        rows.append(i)
    if not rows:
        return rows
    warm_up, flags = trace.warm_up, trace.flags
    return array("i", [i for i in rows if not flags[i] & UNFINISHED and not warm_up[i]])


def summary(trace):
    """Latencies of the inferences: count, min, max, mean, total, and percentiles by per mille (500 to 999).

    Without inferences it has only the count."""
    durations = sorted(trace.dur[i] for i in labelled(trace, INFERENCE))
    if not durations:
        return {"count": 0}
    total = sum(durations)
    return {"count": len(durations), "min": durations[0], "max": durations[-1],
            "mean": mean(total, len(durations)), "total": total,
            **{p: percentile(durations, p) for p in (500, 900, 950, 970, 990, 999)}}


def with_ids(trace, kind, own):
    """Rows (trace_id, span_id, thread.id, *own(row), dur) of the labelled spans of that kind."""
    def made(rows):
        for i, ids in zip(rows, trace.ids_of(rows)):
            yield (*ids, trace.tracks[trace.track[i]].thread_id, *own(i), trace.dur[i])
    return Rows(labelled(trace, kind), made)


def inferences(trace):
    """Rows (trace_id, span_id, thread.id, dur)."""
    return with_ids(trace, INFERENCE, lambda i: ())


def external_operators(trace):
    """Rows (trace_id, span_id, thread.id, name, operator_index, dur)."""
    index = trace.index.get("operator_index")
    return with_ids(trace, OPERATOR, lambda i: (
        trace.text(i), 0 if index is None or index[i] == NULL else index[i]))
