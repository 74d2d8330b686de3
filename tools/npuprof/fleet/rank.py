# SPDX-License-Identifier: MIT
"""What a fleet keeps of one trace."""

import functools
import gc
import os
import re
from itertools import islice

from ..analysis.facts import Facts
from ..analysis.verdict import judge
from ..analysis.window import choose
from ..base.messages import Refused
from ..base.losses import are_known, lost_by_cause, records_lost, syncs_of
from ..read import load
from ..tables.arithmetic import both, union_of
from ..tables.labelled import summary
from ..tables.tracks import label_of
from .histogram import Histogram

STEPS = 4096       # inferences of a rank whose times are compared with those of other ranks
OPERATORS = 200    # operators of a rank, those with the most time; the others are one row
OTHERS = "(others)"


def rank_of(path):
    """A dict of plain values about the trace. It has "left_out", a sentence, if it cannot be used."""
    freeze()
    try:
        return figures(path)
    except Refused as refused:
        return {"file": path, "left_out": str(refused)}
    except MemoryError:
        return {"file": path, "left_out": f"{path}: does not fit into memory"}
    # Why every exception: one bad file of a thousand must not cost the report.
    except Exception as error:
        return {"file": path, "left_out": f"{path}: cannot be used: {type(error).__name__}: {error}"}
    finally:
        # Why: a trace refers to itself, and its columns and its open file would stay for hundreds of traces.
        gc.collect()


@functools.cache
def freeze():
    """Why: modules are no garbage, and looking through them costs as much as reading a trace."""
    gc.freeze()


def figures(path):
    trace = load(path)
    if trace.damage:
        raise Refused(f"{path}: damaged: {trace.damage}")
    facts = Facts(trace, choose(trace))
    return {"file": path, **identity(trace), **latency(trace, facts.window), **device(trace, facts),
            **trust(trace.metadata), **advice(facts)}


def advice(facts):
    """The findings of the trace: (rule, subject, what other ranks call it, too, what the gain is of, gain,
    confidence, words)."""
    verdict = judge(facts)
    # Why: each rank may have a device and threads of its own.
    own = {*facts.jobs.devices, *(queue.label for queue in facts.jobs.queues),
           *(label_of(facts.trace, track) for track in facts.trace.tracks if track.base == track.number)}
    found = []
    for finding in verdict.every():
        subject = finding.subject[:80]
        common = re.sub(r"\d+", "#", subject) if finding.subject in own else subject
        found.append((finding.rule.name, subject, common, finding.of,
                      finding.gain[1] if finding.gain else None, finding.confidence,
                      (finding.sentence, finding.advice)))
    return {"findings": found,
            "missing": [(rule.name, text) for rule, text in verdict.missing]}


def identity(trace):
    about = trace.metadata
    user = about.get("user") if isinstance(about.get("user"), dict) else {}
    name = os.path.basename(trace.path)
    host = about.get("host") or ""
    return {"rank": str(user.get("rank", name))[:80], "host": host, "pid": about.get("pid"),
            "spans": len(trace), "unix_ns": trace.base_ns,
            "boot_ns": about.get("start_boottime_ns") if host else None}


def latency(trace, window):
    """Inferences: their number and latencies, and start and end of the first STEPS."""
    s = summary(trace)
    begins, lengths = trace.start, trace.dur
    histogram = Histogram()
    for i in window.inferences:
        histogram.add(lengths[i])
    return {"window_ns": window.length_ns, "inferences": s["count"], "total_ns": s.get("total", 0),
            **{key: s.get(place) for key, place in (("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990),
                                                    ("max_ns", "max"), ("mean_ns", "mean"))},
            "histogram": histogram.cells,
            "steps": [(begins[i], begins[i] + lengths[i]) for i in islice(window.inferences, STEPS)]}


def device(trace, facts):
    """How long the device was busy and computed inside the window, and on which operators outside warm-up."""
    known = facts.device
    busy = both(union_of(facts.busy), facts.window.intervals).length() if facts.busy else None
    found = sorted(known.operators.items(), key=lambda item: (-item[1][1], item[0]))
    rest = found[OPERATORS:]
    operators = {name: (count, total) for name, (count, total) in found[:OPERATORS]}
    if rest:
        count, total = operators.get(OTHERS, (0, 0))
        operators[OTHERS] = count + sum(c for _, (c, _) in rest), total + sum(t for _, (_, t) in rest)
    return {"pes": len({queue.base for queue in facts.jobs.queues}), "executions": len(facts.jobs),
            "busy_ns": busy, "operators": operators}


def trust(about):
    syncs = [sync for _, sync in syncs_of(about)]
    errors = [sync["max_error_ns"] for sync in syncs if isinstance(sync.get("max_error_ns"), int)]
    return {"lost": records_lost(lost_by_cause(about)) if are_known(about) else None,
            "violations": sum(n for sync in syncs if isinstance(n := sync.get("causality_violations"), int)),
            "max_error_ns": max(errors, default=None)}
