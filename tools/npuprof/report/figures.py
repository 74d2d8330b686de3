# SPDX-License-Identifier: MIT
"""Writes a trace as one self-contained page: report.html with its style, script and the trace's figures in it.

The page asks nothing of the network and loads nothing. All figures are made here, from the same functions as the tables of
`report`, and cut to what a screen can show: the longest 20,000 spans one by one and the others as density, at most 240 points
a curve. The script draws them, with textContent only, so a name is never markup.
"""

import datetime
import html
import json
import math
import os
import pathlib
import sys
from array import array
from bisect import bisect_right
from itertools import islice, pairwise

import npuprof_ne_csv
import npuprof_report as report
from npuprof_common import Progress, whole_file
from npuprof_load import INFERENCE, UNFINISHED, UNWOUND, VIOLATED
from npuprof_otlp import arrows

SPANS = 20_000        # drawn one by one
COLUMNS = 1_600       # of the density of the others
TRACKS, ROWS = 64, 12  # tracks, and nested spans in one, that are drawn
TEXTS = 400_000       # bytes of arguments
ARROWS = 4_000
NAMES = 24            # distributions to choose from
POINTS = 240          # of a curve
TABLE = 100           # rows
COUNTERS = 12
LEVELS = "0123456789abcdefghijklmnopqrstuv"
FAULTS = ("resets", "dead_reads", "torn_reads", "unplaced_spans", "ring_lost")
HIDDEN = {"trace_id", "span_id", "kind", "stamp", "start_ticks", "end_ticks"}


def write_html(trace, out):
    """Writes the page to the path `out`, whole or not at all."""
    bar = Progress(f"drawing {len(trace)} spans", 3)
    with whole_file(out) as file:
        file.write(page(trace, bar.at).encode("utf-8", "replace"))
    bar.done()


def page(trace, at=lambda part: None):
    here = pathlib.Path(__file__).resolve().parent
    text, style, script = ((here / f"report.{kind}").read_text(encoding="utf-8") for kind in ("html", "css", "js"))
    data = figures(trace, at)
    # Why <: no text of the trace can end the script element that holds it.
    packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).replace("<", "\\u003c")
    for mark, value in (("title", html.escape(data["title"])), ("style", style), ("script", script), ("data", packed)):
        before, _, after = text.partition("{{%s}}" % mark)
        text = before + value + after
    return text


def figures(trace, at=lambda part: None):
    """All that the page shows, as JSON values; times are ns from the first span."""
    device = report.Device(trace)
    tracks = report.track_intervals(trace)
    at(1)
    about = trace.metadata
    zero = min((t[2][0][0] for t in tracks.values()), default=0)
    end = max((t[2][-1][1] for t in tracks.values()), default=0)
    labels = Labels(trace)
    busy = report.pes_table(trace, tracks, device).rows
    paused = pauses(trace, zero, end)
    window = report.device_window(trace, tracks) or (zero, zero)
    active = window[1] - window[0] - report.both(report.union([window]), report.union((a + zero, b + zero) for a, b in paused)).length()
    executions = list(device.executions())
    known = [execution for execution in executions if execution.run is not None]
    left_open = report.open_table(trace).rows
    drawn, curves = timeline(trace, tracks, labels, zero, end, paused), counters(trace, zero)
    at(2)
    return {
        "title": str(about.get("program") or os.path.basename(trace.path)), "file": os.path.basename(trace.path),
        "about": about_lines(trace, zero), "warnings": warnings(trace), "length": end - zero,
        "recorded": end - zero - paused.length(), "window": active, "spans": len(trace),
        "lost": sum(v for v in about.get("lost", {}).values() if isinstance(v, int)) if "lost" in about else None,
        "timeline": drawn,
        "inferences": report.summary(trace)["count"],
        "latency": latency(trace, labels),
        "tables": operator_tables(trace, device, labels),
        "executions": {"count": len(known), "total": sum(execution.total for execution in known), "run": sum(execution.run for execution in known),
                       "unknown": len(executions) - len(known)},
        "open": {"count": len(left_open), "rows": [{"thread": thread, "span": span, "start": start - zero, "ns": ns}
                                                   for thread, span, _, start, ns in left_open[:report.SHOWN]]},
        "damaged": bool(trace.damage),
        "pes": [{"name": name, "spans": count, "busy": ns, "share": ns / (active or 1), "compute": None if run is None else run / (active or 1)}
                for name, count, ns, _, _, run, _ in busy],
        "path": [{"phase": row[0], "total": row[2], "mean": row[4], "p50": row[5], "p90": row[6], "p99": row[7], "max": row[8]}
                 for row in report.path_table(trace).rows],
        "gaps": [{"start": start - zero, "ns": ns, "thread": thread, "span": span}
                 for start, ns, thread, span in report.gaps_table(trace, tracks).rows],
        "memory": memory(trace, zero), "counters": curves[:COUNTERS], "counters_left_out": len(curves[COUNTERS:]), "what_if": what_if(trace, device),
        "devices": devices(about), "names": labels.rows,
    }


class Labels:
    """(name, category) -> a small number; rows: [name, category]."""

    def __init__(self, trace):
        self.trace, self.rows, self.numbers = trace, [], {}

    def number(self, name, cat=0):
        key = name, cat
        if key not in self.numbers:
            self.numbers[key] = len(self.rows)
            self.rows.append([self.trace.names[name], self.trace.names[cat]])
        return self.numbers[key]


# ---- Head

def about_lines(trace, zero):
    about = trace.metadata
    lines = []
    if trace.base_ns:
        when = datetime.datetime.fromtimestamp((trace.base_ns + zero) // 10**9, datetime.timezone.utc)
        lines.append(["Started", when.strftime("%Y-%m-%d %H:%M:%S UTC")])
    for key, label in (("host", "Host"), ("pid", "Process"), ("version", "npuprof"), ("when_full", "When full")):
        if key in about:
            lines.append([label, str(about[key])])
    for process in about.get("processes", []):
        lines.append([f"Process {process.get('pid')}", f"{process.get('program', '')} on {process.get('host', '')}"])
    clock = about.get("clock", {})
    if clock:
        error = f", anchors read within {clock['error_ns']} ns" if isinstance(clock.get("error_ns"), (int, float)) else ""
        lines.append(["Host clock", f"{clock.get('source', '')}, {float(clock.get('hz', 0)):,.0f} Hz{error}"])
    lines += [[str(key), str(value)] for key, value in about.get("user", {}).items()]
    return lines


def warnings(trace):
    """What a reader must know before he believes the figures."""
    about = trace.metadata
    found = []
    if trace.damage:
        found.append(f"The image is damaged: {trace.damage}")
    lost = {key: count for key, count in about.get("lost", {}).items() if count}
    if lost:
        causes = ", ".join(f"{count:,} {key.replace('_', ' ')}" for key, count in lost.items())
        found.append(f"Spans or events were lost: {causes}. Counts and totals are too small by that.")
    for flag, what in ((UNFINISHED, "Spans that were open when the recording ended: {:,}. They end at its last stamp here, and are left out of latencies."),
                       (UNWOUND, "Spans that a jump or an exception ended: {:,}."),
                       (VIOLATED, "Device spans that lie outside the call that submitted them, by more than the clock error: {:,}.")):
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
    """The stated clock error and what it rests on."""
    rows = []
    for device in about.get("devices", []):
        sync = device.get("clock_sync", {})
        rows.append({"name": str(device.get("name", "")), **{key: sync.get(key) for key in
                    ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "wraps", "resets", "causality_violations")}})
    return rows


# ---- Timeline

def pauses(trace, zero, end):
    """Intervals in which the program had paused the recording."""
    found, since = [], None
    for at, name in sorted((instant.ts, instant.name) for instant in trace.instants if instant.name.startswith("npuprof ")):
        at = max(zero, min(end, at)) - zero
        if name == "npuprof paused" and since is None:
            since = at
        elif name == "npuprof resumed" and since is not None:
            found.append([since, at])
            since = None
    return report.union([pause for pause in found + ([[since, end - zero]] if since is not None else []) if pause[0] < pause[1]])


def folds(tracks, zero, end, paused):
    """Gaps [from, to, whether it was a pause] in all tracks at once that would fill more than a quarter of what is left, and
    pauses above 3 %."""
    everything = report.union_of(t[2] for t in tracks.values())
    gaps = sorted(((b[0] - a[1], a[1], b[0]) for a, b in pairwise(everything)), reverse=True)
    left, folded = end - zero, []
    for ns, start, stop in gaps[:40]:
        pause = any(a < stop - zero and start - zero < b for a, b in paused)
        if ns * (33 if pause else 4) > left and len(folded) < 8:
            folded.append([start - zero, stop - zero, pause])
            left -= ns
    return sorted(folded)


class Folded:
    """Time without the gaps; each is as wide as 2 % of the rest."""

    def __init__(self, gaps, length):
        wide = (length - sum(stop - start for start, stop, _ in gaps)) / 50
        self.starts, self.places = [0], [(0, 0.0, 1.0)]
        shift = 0.0
        for start, stop, _ in gaps:
            self.starts += [start, stop]
            self.places.append((start, start - shift, wide / (stop - start)))
            shift += stop - start - wide
            self.places.append((stop, stop - shift, 1.0))
        self.length = length - shift

    def at(self, t):
        start, place, slope = self.places[bisect_right(self.starts, t) - 1]
        return place + (t - start) * slope


def timeline(trace, tracks, labels, zero, end, paused):
    gaps = folds(tracks, zero, end, paused)
    folded = Folded(gaps, end - zero)
    shortest = drawn_from(trace)
    rows = {}
    for i, track in enumerate(trace.track):
        if track not in rows:
            rows[track] = array("q")
        rows[track].append(i)
    bases = {}
    for track in rows:
        bases.setdefault(trace.tracks[track].base, []).append(track)
    rank = {"thread": 0, "device": 1, "other": 2}

    def place(base):
        track = trace.tracks[base]
        return rank[track.kind], str(track.pid), track.sort if isinstance(track.sort, int) else base, base
    chosen = sorted(bases, key=lambda base: -tracks[base][2].length())[:TRACKS]
    groups, drawn = [], {}
    texts = Texts(trace)
    for base in sorted(chosen, key=place):
        track = trace.tracks[base]
        group = {"name": ("thread " if track.name == str(track.tid) else "") + report.label_of(trace, track),
                 "kind": track.kind, "busy": tracks[base][2].length(), "count": tracks[base][0], "rows": 0, "spans": [],
                 "density": {}}
        spans = []
        for lane in sorted(bases[base]):
            first = group["rows"]
            group["rows"] += lane_rows(trace, rows[lane], folded, zero, shortest, first, spans, group["density"])
        spans.sort(key=lambda s: (s[2], s[0]))
        before = 0
        for i, row, start, ns in spans:
            drawn[i] = len(groups), len(group["spans"]) // 6
            flags = trace.flags[i] & 7 | (8 if trace.warm_up[i] else 0)
            group["spans"] += [row, start - before, ns, labels.number(trace.name[i], trace.cat[i]), flags, texts.number(i)]
            before = start
        scale = folded.length / COLUMNS or 1
        group["density"] = {
            row: ["".join(LEVELS[min(31, math.ceil(31 * ns / scale))] for ns in column), trace.names[max(names, key=names.get)]]
            for row, (column, names) in group["density"].items()}
        groups.append(group)
    links = []
    for i, ends in arrows(trace).items():
        for other, _, way in ends:
            if way == "out" and i in drawn and other in drawn and len(links) < 4 * ARROWS:
                links += [*drawn[i], *drawn[other]]
    return {"groups": groups, "folds": gaps, "texts": texts.texts, "links": links,
            "marks": [at for pause in islice(paused, 100) for at in pause], "left_out": len(bases) - len(chosen), "drawn": len(drawn)}


def drawn_from(trace):
    """Spans longer than this are drawn one by one."""
    return sorted(trace.dur)[-SPANS - 1] if len(trace) > SPANS else -1


def lane_rows(trace, rows, folded, zero, shortest, first, spans, density):
    """Sorts the spans of one lane into rows by nesting: to be drawn one by one into `spans`, the others into `density`: how
    much of each column they fill, and the time of each name. Returns how many rows that are."""
    start, dur = trace.start, trace.dur
    last = -1 << 63
    for i in rows:
        if start[i] < last:
            rows = sorted(rows, key=lambda i: (start[i], -dur[i], i))
            break
        last = start[i]
    ends, deepest = [], 0
    scale = folded.length / COLUMNS or 1
    for i in rows:
        begin, ns = start[i], dur[i]
        stop = begin + ns
        # Why stop: a span that overlaps without nesting (in traces of others) is drawn below, too.
        while ends and ends[-1] <= begin and not (ends[-1] == begin and ns == 0 and len(ends) > 1):
            ends.pop()
        depth = len(ends)
        ends.append(max(stop, begin + 1))
        if depth >= ROWS:
            continue
        deepest = max(deepest, depth + 1)
        if ns > shortest:
            spans.append((i, first + depth, begin - zero, ns))
        else:
            if first + depth not in density:
                density[first + depth] = [0.0] * COLUMNS, {}
            column, names = density[first + depth]
            names[trace.name[i]] = names.get(trace.name[i], 0) + ns
            u, v = folded.at(begin - zero), folded.at(stop - zero)
            c = min(COLUMNS - 1, int(u / scale))
            while c < COLUMNS - 1 and v > (c + 1) * scale:
                column[c] += (c + 1) * scale - u
                c += 1
                u = c * scale
            column[c] += max(v - u, scale / 1000)
    return deepest


class Texts:
    """The arguments of spans as short texts, each once."""

    def __init__(self, trace):
        self.trace, self.texts, self.numbers, self.room = trace, [""], {"": 0}, TEXTS

    def number(self, i):
        if self.room <= 0:
            return 0
        text = "  ".join(f"{key}: {value}" for key, value in self.trace.args(i).items() if key not in HIDDEN)[:300]
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
            self.room -= len(text) + 4
        return self.numbers[text]


# ---- Distributions

def latency(trace, labels):
    """Distributions: all inferences, then the names with the most time. Warm-up and unfinished spans are left out."""
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
    ordered = sorted(column)
    low, high, count = ordered[0], ordered[-1], len(ordered)
    log = low > 0 and high > 30 * low
    bins = [0] * (1 if low == high else max(12, min(60, round(3 * count ** (1 / 3)))))
    place = (lambda ns: math.log(ns / low) / math.log(high / low)) if log else (lambda ns: (ns - low) / (high - low or 1))
    for ns in ordered:
        bins[min(len(bins) - 1, int(place(ns) * len(bins)))] += 1
    figures = {key: report.percentile(ordered, p) for key, p in
               (("p50", 500), ("p90", 900), ("p95", 950), ("p97", 970), ("p99", 990), ("p999", 999))}
    return {"count": count, "min": low, "max": high, "mean": report.mean(sum(ordered), count), "total": sum(ordered), "log": log,
            "bins": bins, "series": [[part[0], part[len(part) // 2], part[-1]] for part in map(sorted, parts(column))], **figures}


def parts(column):
    """The column in at most POINTS pieces."""
    count = min(len(column), POINTS)
    edges = [n * len(column) // count for n in range(count + 1)]
    return [column[a:b] for a, b in zip(edges, edges[1:])]


# ---- Tables and bars

def operator_tables(trace, device, labels):
    """[{"title", "about", "columns", "rows"}]; a row is [name, count, total, mean, more...], the largest total first."""
    tables = []

    def add(title, about, columns, rows):
        if rows:
            tables.append({"title": title, "about": about, "columns": columns, "rows": rows[:TABLE],
                           "left_out": max(0, len(rows) - TABLE)})
    rows = [[name, count, total, round(float(mean))] for name, mean, count, total, _ in report.npu_operators(trace, device)]
    add("NPU operators",
        "Compute spans of the device by name, warm-up left out. Operators that ran at the same time count in full.", ["count", "total", "mean"], sorted(rows, key=lambda row: -row[2]))
    host = {}
    for _, _, _, name, _, ns in report.external_operators(trace):
        entry = host.setdefault(name, [name, 0, 0, 0])
        entry[1] += 1
        entry[2] += ns
        entry[3] = report.mean(entry[2], entry[1])
    add("Host operators", "Operators that the host computes, warm-up left out.", ["count", "total", "mean"],
        sorted(host.values(), key=lambda row: -row[2]))
    names = report.names_table(trace).rows
    add("All spans", "Every span by name, warm-up included. Self time is without the spans inside.",
        ["count", "self", "total", "mean", "p50", "p99"], [[r[0], r[1], r[3], r[2], r[5], r[6], r[8]] for r in names])
    return tables


def memory(trace, zero):
    """Curves of used and allocated bytes of each pool; of a piece of many records its first, its fullest and its last."""
    pools = {}
    for record in sorted(trace.memory, key=lambda r: r.ts):
        pools.setdefault(record.device, []).append(record)
    found = []
    for device, peaks in report.memory_pools(trace).items():
        records = pools[device]
        points = [record for part in parts(records) for record in once(part[0], max(part, key=lambda r: r.used), part[-1])]
        found.append({"name": device, "t": [r.ts - zero for r in points], "used": [r.used for r in points],
                      "allocated": [r.allocated for r in points], "records": peaks["records"], "drops": peaks["drops"],
                      "peak_used": list(peaks["used"]), "peak_allocated": list(peaks["allocated"]),
                      "unused": max(peaks["held"] - peaks["used"][0], 0)})
    return found


def counters(trace, zero):
    pools = {record.device for record in trace.memory}
    found = []
    for series in trace.counters:
        if (series.name in pools and series.key in ("used", "allocated")) or not len(series.ts):
            continue
        whole = sorted(zip(series.ts, series.values), key=lambda point: point[0])
        points = [point for part in parts(whole) for point in once(part[0], min(part, key=value), max(part, key=value), part[-1])]
        points.sort(key=lambda point: point[0])
        name = series.name if series.key == "value" else f"{series.name} {series.key}"
        found.append({"name": name, "t": [ts - zero for ts, _ in points], "v": [drawable(v) for _, v in points],
                      "min": drawable(min(series.values)), "max": drawable(max(series.values)), "count": len(series.ts)})
    return found


def drawable(number):
    """A value that JSON can hold."""
    return float(max(-sys.float_info.max, min(sys.float_info.max, number)))


def once(*things):
    return {id(thing): thing for thing in things}.values()


def value(point):
    return point[1]


def what_if(trace, device):
    """Groups whose time a slider divides: weights that can be sparse, as in the Neural Engine sheet, else device operators."""
    ops = npuprof_ne_csv.operators(trace)
    shapes, rest = {}, 0.0
    for op in ops:
        ms = float(npuprof_ne_csv.milliseconds(op["total_ns"], op["count"]))
        if op["sparse"]:
            entry = shapes.setdefault(op["ne.weight_shape"], {"name": op["ne.weight_shape"], "ops": 0, "ms": 0.0})
            entry["ops"] += 1
            entry["ms"] += ms
        else:
            rest += ms
    if shapes:
        return {"sparse": True, "groups": list(shapes.values()), "rest": rest,
                "ratios": dict(zip(("90", "80", "70"), map(float, npuprof_ne_csv.RATIOS)))}
    rows = sorted(((total, count, name) for name, (count, total) in device.operators.items()), reverse=True)
    if not rows:
        return None
    return {"sparse": False, "groups": [{"name": name, "ops": count, "ms": total / 1e6} for total, count, name in rows[:8]],
            "rest": sum(row[0] for row in rows[8:]) / 1e6, "ratios": {}}
