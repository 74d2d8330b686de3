# SPDX-License-Identifier: MIT
"""All figures of the page, as JSON values."""

import datetime
import os
from collections import Counter

from ...analysis.facts import Facts
from ...base.contract import UNFINISHED, UNWOUND, VIOLATED
from ...tables.arithmetic import both, mean, union
from ...tables.devices import gaps_table, pes_table
from ...tables.executions import Device, npu_operators
from ...tables.labelled import external_operators, summary
from ...tables.sparse import RATIOS, milliseconds, operators
from ...tables.spans import names_table, open_table
from ...tables.submissions import path_table
from ...tables.tracks import device_window, track_intervals
from .curves import counters, lanes, latency, memory
from .findings import rows_of, shown_verdict, verdict
from .flame import flame
from .idle import strips
from .pictures import path, roof
from .replay import sliders
from .timeline import Labels, pauses, timeline

TABLE = 100           # rows of a table
COUNTERS = 12         # curves of counters
# Counts in a clock_sync that a reader must know of.
FAULTS = ("resets", "dead_reads", "torn_reads", "unplaced_spans", "ring_lost", "contradictions")
COUNTS = 5_000        # names whose number of spans is known to a search
OPEN = 20             # spans that were open when the recording ended
# A warning for each of these flags, with the number of spans that have it.
FLAGS = {UNFINISHED: "Spans that were open when the recording ended: {:,}. Each took at least so long as "
                     "it does here, and is left out of latencies.",
         UNWOUND: "Spans that a jump or an exception ended: {:,}.",
         VIOLATED: "Device spans that lie outside the call that submitted them, "
                   "by more than the clock error: {:,}."}


def figures(trace, at=lambda part: None, facts=None):
    """All that the page shows, as JSON values; times are ns from the first span. facts: as write_page()."""
    device = Device(trace)
    tracks = track_intervals(trace)
    at(1)
    about = trace.metadata
    zero = min((t[2][0][0] for t in tracks.values()), default=0)
    end = max((t[2][-1][1] for t in tracks.values()), default=0)
    labels = Labels(trace)
    busy = pes_table(trace, tracks, device).rows
    paused = pauses(trace, zero, end)
    window = device_window(trace, tracks) or (zero, zero)
    without = both(union([window]), union((a + zero, b + zero) for a, b in paused))
    active = window[1] - window[0] - without.length()
    findings = verdict(facts or Facts(trace))
    drawn, place = timeline(trace, tracks, labels, zero, end, paused,
                            rows_of(findings) if findings else ())
    idle, causes, classes = strips(findings.facts, zero) if findings else ({}, [], [])
    for group in drawn["groups"]:
        group["idle"] = idle.get(group.pop("base"), [])
    curves = counters(trace, zero)
    at(2)
    return {
        "title": str(about.get("program") or os.path.basename(trace.path)),
        "file": os.path.basename(trace.path),
        "about": about_lines(trace, zero), "warnings": warnings(trace), "length": end - zero,
        "recorded": end - zero - paused.length(), "window": active, "spans": len(trace),
        "lost": lost_count(about), "timeline": drawn, "inferences": summary(trace)["count"],
        "latency": latency(trace, labels), "tables": operator_tables(trace, device),
        "executions": executions(device), "open": left_open(trace, zero),
        "damaged": bool(trace.damage),
        "pes": [{"name": name, "spans": count, "busy": ns, "share": ns / (active or 1),
                 "compute": None if run is None else run / (active or 1)}
                for name, count, ns, _, _, run, _ in busy],
        "path": [dict(zip(("phase", "total", "mean", "p50", "p90", "p99", "max"), (row[0], row[2], *row[4:])))
                 for row in path_table(trace).rows],
        "gaps": [{"start": start - zero, "ns": ns, "thread": thread, "span": span}
                 for start, ns, thread, span in gaps_table(trace, tracks).rows],
        "verdict": shown_verdict(findings, place, zero), "lanes": lanes(trace, zero, findings),
        "memory": memory(trace, zero), "counters": curves[:COUNTERS],
        "counters_left_out": len(curves[COUNTERS:]), "what_if": what_if(device, findings),
        "sparse": sparse(trace),
        "roof": roof(findings.facts) if findings else None,
        "critical": path(findings.facts, zero) if findings else None,
        "idle": {"texts": causes, "classes": classes}, "devices": devices(about), "names": labels.rows,
        "counts": counts(trace), "flame": flame(trace),
    }


def counts(trace):
    """[name, how many spans have it in the whole trace], the most frequent first."""
    return [[trace.names[name], n] for name, n in Counter(trace.name).most_common(COUNTS)]


def lost_count(about):
    """How much was lost; None: the trace does not say."""
    return sum(v for v in about["lost"].values() if isinstance(v, int)) if "lost" in about else None


def executions(device):
    """NPU Run and NPU Total of all executions together; unknown: how many have no NPU Run."""
    everything = list(device.executions())
    known = [execution for execution in everything if execution.run is not None]
    return {"count": len(known), "total": sum(execution.total for execution in known),
            "run": sum(execution.run for execution in known), "unknown": len(everything) - len(known)}


def left_open(trace, zero):
    """The spans that were open when the recording ended."""
    rows = open_table(trace).rows
    return {"count": len(rows), "rows": [{"thread": thread, "span": span, "start": start - zero, "ns": ns}
                                         for thread, span, _, start, ns in rows[:OPEN]]}


def about_lines(trace, zero):
    """Pairs of texts on the run."""
    about = trace.metadata
    lines = []
    if trace.base_ns:
        when = datetime.datetime.fromtimestamp((trace.base_ns + zero) // 10**9, datetime.timezone.utc)
        lines.append(["Started", when.strftime("%Y-%m-%d %H:%M:%S UTC")])
    for key, label in (("host", "Host"), ("pid", "Process"), ("version", "npuprof"),
                       ("when_full", "When full")):
        if key in about:
            lines.append([label, str(about[key])])
    for process in about.get("processes", []):
        lines.append([f"Process {process.get('pid')}",
                      f"{process.get('program', '')} on {process.get('host', '')}"])
    clock = about.get("clock", {})
    if clock:
        error = clock.get("error_ns")
        error = f", anchors read within {error} ns" if isinstance(error, (int, float)) else ""
        lines.append(["Host clock", f"{clock.get('source', '')}, {float(clock.get('hz', 0)):,.0f} Hz{error}"])
    lines += [[str(key), str(value)] for key, value in about.get("user", {}).items()]
    return lines


def warnings(trace):
    """What a reader must know before trusting the figures."""
    about = trace.metadata
    found = []
    if trace.damage:
        found.append(f"The image is damaged: {trace.damage}")
    lost = {key: count for key, count in about.get("lost", {}).items() if count}
    if lost:
        causes = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in lost.items())
        found.append(f"Spans or events were lost: {causes}. Counts and totals are too small by that.")
    for flag, what in FLAGS.items():
        rows = trace.rows_with(flag)
        if rows:
            found.append(what.format(len(rows)))
    for device in about.get("devices", []):
        sync = device.get("clock_sync", {})
        bad = [f"{sync[key]} {key.replace('_', ' ')}" for key in FAULTS if sync.get(key)]
        if bad:
            found.append(f"{device.get('name')}: " + ", ".join(bad) + ".")
    for key, why in about.get("unused_environment", {}).items():
        found.append(f"{key} was not used: {why}")
    return found


def devices(about):
    """The clock error of each device, and how it was measured."""
    rows = []
    for device in about.get("devices", []):
        sync = device.get("clock_sync", {})
        keys = ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "wraps", "resets", "causality_violations")
        rows.append({"name": str(device.get("name", "")), **{key: sync.get(key) for key in keys}})
    return rows


def operator_tables(trace, device):
    """A list of {"title", "about", "columns", "rows"}. A row is a name, then the columns; the largest total
    first."""
    tables = []

    def add(title, about, columns, rows):
        if rows:
            tables.append({"title": title, "about": about, "columns": columns, "rows": rows[:TABLE],
                           "left_out": max(0, len(rows) - TABLE)})
    rows = [[name, count, total, round(float(mean))]
            for name, mean, count, total, _ in npu_operators(trace, device)]
    add("NPU operators",
        "Compute spans of the device by name, warm-up left out. "
        "Operators that ran at the same time count in full.",
        ["count", "total", "mean"], sorted(rows, key=lambda row: -row[2]))
    host = {}
    for _, _, _, name, _, ns in external_operators(trace):
        entry = host.setdefault(name, [name, 0, 0, 0])
        entry[1] += 1
        entry[2] += ns
        entry[3] = mean(entry[2], entry[1])
    add("Host operators", "Operators that the host computes, warm-up left out.", ["count", "total", "mean"],
        sorted(host.values(), key=lambda row: -row[2]))
    names = names_table(trace).rows
    add("All spans", "Every span by name, warm-up included. Self time is without the spans inside.",
        ["count", "self", "total", "mean", "p50", "p99"],
        [[r[0], r[1], r[3], r[2], r[5], r[6], r[8]] for r in names])
    return tables


def sparse(trace):
    """Groups of the weights that can be sparse, as in the Neural Engine sheet; None: there are none."""
    shapes, rest = {}, 0.0
    for op in operators(trace):
        ms = float(milliseconds(op["total_ns"], op["count"]))
        if op["sparse"]:
            shape = op["ne.weight_shape"]
            entry = shapes.setdefault(shape, {"name": shape, "ops": 0, "ms": 0.0})
            entry["ops"] += 1
            entry["ms"] += ms
        else:
            rest += ms
    ratios = dict(zip(("90", "80", "70"), map(float, RATIOS)))
    return {"groups": list(shapes.values()), "rest": rest, "ratios": ratios} if shapes else None


def what_if(device, findings):
    """Groups whose time a slider divides: what replay can make faster; else device operators."""
    graph = findings and sliders(findings.facts, {finding.change[:2] for finding in
                                                  (*findings.every(), *findings.questions) if finding.change})
    if graph:
        return {"groups": graph.pop("groups"), "rest": 0, "replay": graph}
    rows = sorted(((total, count, name) for name, (count, total) in device.operators.items()), reverse=True)
    if not rows:
        return None
    groups = [{"name": name, "ops": count, "ms": total / 1e6} for total, count, name in rows[:8]]
    return {"groups": groups, "rest": sum(row[0] for row in rows[8:]) / 1e6}
