# SPDX-License-Identifier: MIT
"""Distributions, and curves over time, cut to what a screen can show."""

import math
import sys
from array import array

from ...analysis import over_time
from ...base.contract import INFERENCE, UNFINISHED
from ...tables.arithmetic import mean, percentile
from ...tables.memory import memory_pools
from ...tables.submissions import path_rows

NAMES = 24            # distributions to choose from
POINTS = 240          # of a curve
CURVES = 12           # curves on the timeline
LANE = 1_000          # pieces of a curve on the timeline


def latency(trace, labels):
    """Distributions: all inferences, then the names with the most time. Warm-up and unfinished spans are left
    out."""
    durations, inferences = {}, array("q")
    warm_up, flags = trace.warm_up, trace.flags
    for i, (name, ns) in enumerate(zip(trace.name, trace.dur)):
        if warm_up[i] or flags[i] & UNFINISHED:
            continue
        column = durations.get(name)
        if column is None:
            column = durations[name] = array("q")
        column.append(ns)
        if trace.kind[i] == INFERENCE:
            inferences.append(ns)
    totals = sorted(durations, key=lambda name: (-sum(durations[name]), trace.names[name]))[:NAMES]
    found = []
    if inferences:
        found.append({"name": "All inferences", **distribution(inferences)})
    return found + [{"name": trace.names[name], **distribution(durations[name])} for name in totals]


def distribution(column):
    """One distribution: percentiles, a histogram, and the durations in the order of the run."""
    ordered = sorted(column)
    low, high, count = ordered[0], ordered[-1], len(ordered)
    log = low > 0 and high > 30 * low
    bins = [0] * (1 if low == high else max(12, min(60, round(3 * count ** (1 / 3)))))
    def place(ns):
        return math.log(ns / low) / math.log(high / low) if log else (ns - low) / (high - low or 1)
    for ns in ordered:
        bins[min(len(bins) - 1, int(place(ns) * len(bins)))] += 1
    figures = {key: percentile(ordered, p) for key, p in
               (("p50", 500), ("p90", 900), ("p95", 950), ("p97", 970), ("p99", 990), ("p999", 999))}
    series = [[part[0], part[len(part) // 2], part[-1]] for part in map(sorted, parts(column))]
    return {"count": count, "min": low, "max": high, "mean": mean(sum(ordered), count), "total": sum(ordered),
            "log": log, "bins": bins, "series": series, **figures}


def parts(column, most=POINTS):
    """The column in at most `most` pieces."""
    count = min(len(column), most)
    edges = [n * len(column) // count for n in range(count + 1)]
    return [column[a:b] for a, b in zip(edges, edges[1:])]


def memory(trace, zero):
    """Curves of used and allocated bytes of each pool. Many records become their first, fullest and last
    one."""
    pools = {}
    for record in sorted(trace.memory, key=lambda r: r.ts):
        pools.setdefault(record.device, []).append(record)
    found = []
    for device, peaks in memory_pools(trace).items():
        records = pools[device]
        points = [record for part in parts(records)
                  for record in once(part[0], max(part, key=lambda r: r.used), part[-1])]
        found.append({"name": device, "t": [r.ts - zero for r in points], "used": [r.used for r in points],
                      "allocated": [r.allocated for r in points],
                      "records": peaks["records"], "drops": peaks["drops"],
                      "peak_used": list(peaks["used"]), "peak_allocated": list(peaks["allocated"]),
                      "unused": max(peaks["held"] - peaks["used"][0], 0)})
    return found


def curve(values, zero, most=POINTS):
    """The points of (ns, value) pairs. Many values become their first, min, max and last one."""
    values.sort(key=lambda point: point[0])
    points = [point for part in parts(values, most)
              for point in once(part[0], min(part, key=value), max(part, key=value), part[-1])]
    points.sort(key=lambda point: point[0])
    return {"t": [ts - zero for ts, _ in points], "v": [drawable(v) for _, v in points], "count": len(values)}


def other_counters(trace):
    """Yields (name, series) of all counters except memory pools."""
    pools = {record.device for record in trace.memory}
    for series in trace.counters:
        if not (series.name in pools and series.key in ("used", "allocated")) and len(series.ts):
            yield series.name if series.key == "value" else f"{series.name} {series.key}", series


def counters(trace, zero):
    """Curves of all counters except memory pools."""
    return [{"name": name, **curve(list(zip(series.ts, series.values)), zero),
             "min": drawable(min(series.values)), "max": drawable(max(series.values))}
            for name, series in other_counters(trace)]


def lanes(trace, zero, findings=None):
    """Curves on the timeline's own axis: the submissions in flight, what lanes moved in the time of the
    findings, memory pools, counters. Each has the unit "" or "bytes"; `limit` is the allocated bytes of a
    pool."""
    found, pools = [], {}

    def add(name, unit, values, limit=None):
        found.append({"name": name, "unit": unit, **curve(values, zero, LANE), "limit": limit})
    depth = in_flight(trace)
    if depth:
        add("in flight", "", depth)
    for label, points in over_time.bandwidth(findings.facts).items() if findings else ():
        add(f"{label}, each second", "bytes", [(ns, float(rate)) for ns, rate in points])
    for record in trace.memory:
        pools.setdefault(record.device, []).append(record)
    for device, records in pools.items():
        add(device, "bytes", [(r.ts, r.used) for r in records], max(r.allocated for r in records))
    for name, series in other_counters(trace):
        add(name, "", list(zip(series.ts, series.values)))
    return found[:CURVES]


def in_flight(trace):
    """[(ns, how many submissions were in flight from then on)]: submitted, and not at the end of their
    execution. Of the same moment, ends come first."""
    changes = []
    for i, queue, ns, *_ in path_rows(trace):
        changes += [(trace.start[i] - queue, 1), (trace.start[i] + ns, -1)]
    depth, found = 0, []
    for at, change in sorted(changes):
        depth += change
        found.append((at, depth))
    return found


def drawable(number):
    """The number as JSON can hold it: without infinity."""
    return float(max(-sys.float_info.max, min(sys.float_info.max, number)))


def once(*things):
    """The things without those that are there twice."""
    return {id(thing): thing for thing in things}.values()


def value(point):
    return point[1]
