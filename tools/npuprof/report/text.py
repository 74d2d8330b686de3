# SPDX-License-Identifier: MIT
"""Tables of a trace: spans by name, inferences, NPU executions and operators, gaps, the way of every submission.

All of them with at most 20 rows each, or with --table those you name, in full. Of all spans, warm-up included:
  names        spans by name: count, total, self (without children), share of self, mean, p50, p90, p99
  open         spans without an end, as a crash leaves them: of every thread the innermost, then what is around it
  threads      spans and busy time (union) of each thread
  categories   as names, by category
  pes          device tracks: occupancy (time in which a span is open) and utilisation (time in which one computes)
  gaps         the device idle while the host works
  path         every submission: queue (submit to start), execute, wait (end to the host's notice)
  trust        the clock error and causality violations of each device, and what was lost, by cause
Those of npuprof_print_*() in C, line for line; warm-up and unfinished spans are left out:
  summary      count, min, max, mean, percentiles and total of the inference latencies
  inferences   one row an inference
  executions   one row a device execution: NPU Total = NPU Run + NPU IoWait; Run is the union of its compute spans, or what the
               device's busy counter says; "-" where a sampled execution has neither
  operators    compute spans by name: mean, count, total, share
  external     host operators
  memory       pools: peaks, fragmentation, drops of the allocated figure, every record

With --csv FILE the Neural Engine table is written instead, operators with what sparse weights would bring, as a sheet with live
formulas; see below.

A CSV of npuprof has neither kinds nor arrows nor counters: inferences, operators and warm-up go by name there, `open`, `path` and
`memory` are empty, and the NPU Run of an execution without spans in it is known only where it is named Execution. A trace of ten million spans takes 15 to 45 s of CPU and up to 1.5 GB where `make tools` was run (`make bench-tools`), about four times as long where
not: the same loops are in Python, too. Percentiles are by linear interpolation (type 7), rounded half up; all times are ns.

Exit code 0; 2: the file cannot be used.
"""

import sys
from array import array
from bisect import bisect_left
from collections import namedtuple
from fractions import Fraction
from heapq import nlargest
from itertools import chain, islice

import npuprof_columns as loops
import npuprof_ne_csv
from npuprof_common import HARMLESS, Progress, Refused, check_output, doubts, write_whole
from npuprof_load import COUNTED, DEVICE, DEVICE_LANE, INFERENCE, NULL, OPERATOR, SAMPLED, UNFINISHED, load

Table = namedtuple("Table", "name title columns rows notes")
NOT_COMPUTE = {"Execution", "Load", "Store"}
LONGEST = 10       # gaps and submissions shown


def percentile(ordered, per_mille):
    """Type 7 of a sorted sequence, rounded half up, in whole numbers."""
    low, part = divmod((len(ordered) - 1) * per_mille, 1000)
    if not part:
        return ordered[low]
    return ordered[low] + ((ordered[low + 1] - ordered[low]) * part + 500) // 1000


def mean(total, count):
    """Rounded half up."""
    return (2 * total + count) // (2 * count)


def union(spans):
    """The merged Intervals of (start, end) pairs in any order."""
    return loops.merged(array("q", chain.from_iterable(spans)))


def union_of(many):
    """The union of several Intervals."""
    flat = array("q")
    for intervals in many:
        flat.extend(intervals.flat)
    return loops.merged(flat)


def both(a, b):
    """What the Intervals a and b both cover."""
    return loops.minus(a, loops.minus(a, b))


# ---- Tables of the C reports

def _labelled(trace, kind):
    """Rows of that kind outside warm-up records, in the order of the file."""
    rows, kinds, wanted, i = array("i"), trace.kind, bytes([kind]), -1
    while (i := kinds.find(wanted, i + 1)) >= 0:
        rows.append(i)
    if not rows:
        return rows
    warm_up, flags = trace.warm_up, trace.flags
    return array("i", [i for i in rows if not flags[i] & UNFINISHED and not warm_up[i]])


def summary(trace):
    """{"count", "min", "max", "mean", "total", and 500, 900, 950, 970, 990, 999: the percentiles}; only count if there are none."""
    durations = sorted(trace.dur[i] for i in _labelled(trace, INFERENCE))
    if not durations:
        return {"count": 0}
    total = sum(durations)
    return {"count": len(durations), "min": durations[0], "max": durations[-1], "mean": mean(total, len(durations)), "total": total,
            **{p: percentile(durations, p) for p in (500, 900, 950, 970, 990, 999)}}


def inferences(trace, limit=None):
    """Rows (trace_id, span_id, thread.id, dur)."""
    rows = _labelled(trace, INFERENCE)[:limit]
    return [(trace_id, span_id, trace.tracks[trace.track[i]].thread_id, trace.dur[i]) for i, (trace_id, span_id) in zip(rows, trace.ids_of(rows))]


def external_operators(trace, limit=None):
    """Rows (trace_id, span_id, thread.id, name, operator_index, dur)."""
    index = trace.index.get("operator_index")
    rows = _labelled(trace, OPERATOR)[:limit]
    return [(trace_id, span_id, trace.tracks[trace.track[i]].thread_id, trace.text(i), 0 if index is None or index[i] == NULL else index[i],
             trace.dur[i]) for i, (trace_id, span_id) in zip(rows, trace.ids_of(rows))]


class Device:
    """One walk over the device spans: executions and operators."""

    def __init__(self, trace):
        compute = compute_names(trace)
        self.trace = trace
        self.rows, ends, _ = trace.executions
        self.run, self.added, found = loops.runs(trace.executions, trace.start, trace.dur, trace.name, compute, trace.warm_up)
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
                yield Execution(i, dur[i], None, None, None) if run == NULL else Execution(i, dur[i], run, dur[i] - run, added)


# One on the device: row of the trace; NPU Total, Run, IoWait and Sum in ns. The last three are None where nobody measured them.
Execution = namedtuple("Execution", "row total run wait added")


def compute_names(trace):
    """Bytes, by name: 1 for names of spans that compute."""
    return bytearray(text not in NOT_COMPUTE for text in trace.names)


def counted_runs(trace):
    """row -> ns that the device was busy in that span by its own counter."""
    found = {}
    for i in trace.rows_with(COUNTED):
        args = trace.args(i)
        busy, start, end = (int(value) if isinstance(value := args.get(key), int) or str(value).isdigit() else -1
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
        rows.append((trace_id, span_id, pes[i] if pes is not None and pes[i] != NULL else 0, number, *figures))
    return rows


def npu_operators(trace, device=None):
    """Rows (name, mean as a Fraction, count, total, share as a Fraction of 1), the longest mean first."""
    operators = (device or Device(trace)).operators
    everything = sum(total for count, total in operators.values())
    rows = [(name, Fraction(total, count), count, total, Fraction(total, everything or 1)) for name, (count, total) in operators.items()]
    return sorted(rows, key=lambda row: -row[1])


def cell(text, limit=48):
    """A name as the C tables show it: what is no plain text as ?, cut to the room."""
    data = text.encode("utf-8", "replace")
    if len(data) > limit:
        while limit and data[limit] & 0xC0 == 0x80:
            limit -= 1
        data = data[:limit]
    return data.decode("utf-8", "replace").translate(HARMLESS).replace("\t", "?").replace("\n", "?")


def padded(text, width):
    """To a width in bytes, as printf does."""
    return text + " " * (width - len(text.encode()))


def summary_lines(trace):
    s = summary(trace)
    yield from ("=" * 48, "  Inference Results Summary", "=" * 48, f"Inference counts                : {s['count']}")
    if s["count"]:
        for label, key in (("Min", "min"), ("Max", "max"), ("Mean", "mean"), ("Median", 500)):
            yield f"{label} latency (ns)".ljust(32) + f": {s[key]}"
        for p in (900, 950, 970, 990, 999):
            yield f"{p // 10}.{p % 10} percentile Latency (ns)".ljust(32) + f": {s[p]}"
        yield "Total latency (ns)".ljust(32) + f": {s['total']}"


def inferences_lines(trace, limit=None):
    yield f"{'trace_id':<32}  {'span_id':<16}  {'thread.id':>9}  {'dur':>12}"
    for trace_id, span_id, thread, dur in inferences(trace, limit):
        yield f"{trace_id}  {span_id}  {'' if thread is None else thread:>9}  {dur:12}"
    yield from left_out(len(_labelled(trace, INFERENCE)), limit, "inferences")


def executions_lines(trace, device=None, limit=None):
    yield (f"{'trace_id':<32}  {'span_id':<16}  {'pe_index':>8}  {'execution_index':>15}  {'NPU Total':>12}  {'NPU Run':>12}  "
           f"{'NPU IoWait':>12}  {'NPU Sum':>12}")
    device = device or Device(trace)
    for trace_id, span_id, pe, number, *figures in npu_executions(trace, device, limit):
        columns = "  ".join(f"{'-' if ns is None else ns:>12}" for ns in figures)
        yield f"{trace_id}  {span_id}  {pe:8}  {'' if number is None else number:>15}  {columns}"
    if limit is not None:
        yield from left_out(sum(1 for _ in device.executions()), limit, "executions")


def operators_lines(trace, device=None, limit=None):
    yield f"{'name':<40}  {'average_elapsed (ns)':>21}  {'count':>8}  {'total (ns)':>14}  {'share (%)':>9}"
    rows = npu_operators(trace, device)
    everything = sum(row[3] for row in rows)
    for name, _, count, total, _ in rows[:limit]:
        whole, millionths = divmod(mean(total * 1000000, count), 1000000)
        share = (total * 20000 // everything + 1) // 2 if everything else 0
        yield f"{padded(cell(name), 40)}  {whole:14}.{millionths:06}  {count:8}  {total:14}  {share // 100:6}.{share % 100:02}"
    yield from left_out(len(rows), limit, "operators")


def external_lines(trace, limit=None):
    yield f"{'trace_id':<32}  {'span_id':<16}  {'thread.id':>9}  {'name':<24}  {'operator_index':>14}  {'dur':>12}"
    for trace_id, span_id, thread, name, index, dur in external_operators(trace, limit):
        yield f"{trace_id}  {span_id}  {'' if thread is None else thread:>9}  {padded(cell(name), 24)}  {index:14}  {dur:12}"
    yield from left_out(len(_labelled(trace, OPERATOR)), limit, "external")


# ---- All spans

class Spans:
    """Durations and self times of all spans by one of the columns name and cat."""

    def __init__(self, trace, key):
        column, count = getattr(trace, key), len(trace.names)
        self.durations = loops.grouped(column, count, trace.dur)           # by number of the text, ascending
        self.totals = [sum(durations) for durations in self.durations]
        host = bytearray(track.kind == "thread" for track in trace.tracks)
        self.self_ns = loops.own_time(column, trace.dur, trace.parents, trace.track, host, self.totals)
        # Why the union: engines of one PE run at the same time.
        groups, _, _ = trace.executions
        inside, _, _ = loops.runs(trace.executions, trace.start, trace.dur, trace.name, bytearray([1]) * count, trace.warm_up) if groups else ([], 0, 0)
        for i, ns in zip(groups, inside):
            if ns and i >= 0:
                self.self_ns[column[i]] -= ns

    def rows(self, trace):
        """(label, count, total, self, share of all, mean, p50, p90, p99), the largest self time first."""
        everything = sum(self.self_ns)
        rows = []
        for text, ordered, total, own in zip(trace.names, self.durations, self.totals, self.self_ns):
            if ordered:
                rows.append((text or "(none)", len(ordered), total, own, Fraction(own, everything or 1), mean(total, len(ordered)),
                             *(percentile(ordered, p) for p in (500, 900, 990))))
        return sorted(rows, key=lambda row: (-row[3], row[0]))


LATENCY = ("count", "total", "self", "share", "mean", "p50", "p90", "p99")


def names_table(trace):
    return Table("names", "Spans by name (ns; self is without children, share is of self)", ("name", *LATENCY), Spans(trace, "name").rows(trace), [])


def categories_table(trace):
    return Table("categories", "Spans by category (ns)", ("category", *LATENCY), Spans(trace, "cat").rows(trace), [])


def track_intervals(trace):
    """number of a base track -> (spans, sum, merged Intervals)."""
    return loops.busy(trace.track, trace.start, trace.dur, [track.base for track in trace.tracks])


def label_of(trace, track):
    name = DEVICE_LANE.sub("", track.name) if track.kind == "device" else track.name      # of all its lanes
    return f"{name} (pid {track.pid})" if trace.has_processes else name


def threads_table(trace, tracks):
    window = whole_window(tracks)
    rows = [(label_of(trace, trace.tracks[base]), trace.tracks[base].thread_id or "", count, intervals.length(),
             Fraction(intervals.length(), window or 1))
            for base, (count, total, intervals) in tracks.items() if trace.tracks[base].kind == "thread"]
    return Table("threads", f"Threads (busy: at least one span is open; share of the trace's {window} ns)",
                 ("thread", "thread.id", "spans", "busy", "share"), rows, [])


def whole_window(tracks):
    if not tracks:
        return 0
    return max(t[2][-1][1] for t in tracks.values()) - min(t[2][0][0] for t in tracks.values())


def device_window(trace, tracks):
    """From the first to the last moment of any device span."""
    devices = [intervals for base, (_, _, intervals) in tracks.items() if trace.tracks[base].kind == "device"]
    return (min(i[0][0] for i in devices), max(i[-1][1] for i in devices)) if devices else None


def compute_on(trace, device):
    """base track -> (Intervals in which a compute span is open, ns of executions that the device counted, whether that is all).
    It is not where an execution has no known NPU Run."""
    counts, known = {}, {}
    for execution in device.executions(warm_up=True):
        base = trace.tracks[trace.track[execution.row]].base
        known[base] = known.get(base, True) and execution.run is not None
        if execution.run and trace.flags[execution.row] & COUNTED:
            counts[base] = counts.get(base, 0) + execution.run
    other = len(trace.tracks)
    steps = loops.steps_on(trace.track, trace.name, compute_names(trace), trace.index.get("instruction_index"), other)
    busy = loops.busy(steps, trace.start, trace.dur, [*(track.base for track in trace.tracks), other])
    nothing = 0, 0, union(())
    return {base: (busy.get(base, nothing)[2], counts.get(base, 0), known.get(base, True))
            for base, track in enumerate(trace.tracks) if track.kind == "device" and track.base == base}


def pes_table(trace, tracks, device=None):
    window = device_window(trace, tracks)
    rows, together, steps, uncertain = [], [], [], False
    ns = window[1] - window[0] if window else 0

    def row(label, count, intervals, total, run):
        rows.append((label, count, intervals.length(), total, Fraction(intervals.length(), ns or 1), run, None if run is None else Fraction(run, ns or 1)))
    if window:
        compute = compute_on(trace, device or Device(trace))
        for base, (count, total, intervals) in tracks.items():
            if trace.tracks[base].kind == "device":
                computes, counted, known = compute[base]
                row(label_of(trace, trace.tracks[base]), count, intervals, total, computes.length() + counted if known else None)
                together.append(intervals)
                steps.append(computes)
                uncertain = uncertain or counted or not known
        if len(rows) > 1:
            # Why not where the device counts: when it was busy is not known, so neither is what overlaps.
            row("(any)", sum(r[1] for r in rows), union_of(together), sum(r[3] for r in rows), None if uncertain else union_of(steps).length())
    title = f"Device tracks (busy: a span is open; compute: an operator runs; shares of the {ns} ns from the first span to the last)"
    return Table("pes", title if window else "Device tracks", ("track", "spans", "busy", "sum", "occupancy", "compute", "utilisation"), rows, [])


def gaps_table(trace, tracks):
    """Time in the device's window in which no device span runs and a host span is open; the longest such gaps."""
    window = device_window(trace, tracks)
    if not window:
        return Table("gaps", "Host gaps", ("start", "ns", "host thread", "host span"), [], [])
    busy = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "device")
    host = union_of(t[2] for b, t in tracks.items() if trace.tracks[b].kind == "thread")
    idle = loops.minus(union([window]), busy)
    gaps = both(idle, host)
    ns = window[1] - window[0]
    notes = [f"device window {ns}, device busy {busy.length()}, idle {idle.length()}, idle while the host works {gaps.length()} "
             f"in {len(gaps)} gaps ({percent(Fraction(gaps.length(), ns or 1))} % of the window)"]
    threads = [t for t in trace.tracks if t.kind == "thread"]
    rows = []
    for start, end in nlargest(LONGEST, gaps, key=lambda g: (g[1] - g[0], -g[0])):
        # The host span at its middle: the newest begun one of all threads is what the host was at.
        at = [row for row in (trace.finder.at(t.number, (start + end) // 2) for t in threads) if row >= 0]
        row = max(at, key=lambda i: (trace.start[i], i), default=-1)
        rows.append((start, end - start, label_of(trace, trace.tracks[trace.track[row]]) if row >= 0 else "", trace.text(row) if row >= 0 else ""))
    return Table("gaps", "Host gaps: the device is idle while the host works (the longest)", ("start", "ns", "host thread", "host span"), rows, notes)


def path_rows(trace):
    """One row a submission that an arrow ties to its device span: (row, queue, execute, wait or None).
    wait: to the first end of a span on the submitting thread after the device's end, when the host can have noticed."""
    from_track, from_ns, to_track, to_ns = trace.flows.named("submit")
    if not from_track:
        return []
    ends = {track: trace.finder.ends_of(track) for track in set(from_track)}
    rows = []
    for track, since, i in zip(from_track, from_ns, trace.finder.beginning(to_track, to_ns, trace.kind, DEVICE)):
        if i >= 0:
            done = trace.start[i] + trace.dur[i]
            seen = ends[track]
            k = bisect_left(seen, done)
            rows.append((i, trace.start[i] - since, trace.dur[i], seen[k] - done if k < len(seen) else None))
    return rows


def path_table(trace):
    rows = [row for row in path_rows(trace) if not trace.warm_up[row[0]]]
    complete = [row for row in rows if row[3] is not None]
    everything = sum(row[1] + row[2] + row[3] for row in complete)
    out = []
    for label, place in (("queue", 1), ("execute", 2), ("wait", 3)):
        ordered = sorted(row[place] for row in complete)
        if ordered:
            total = sum(ordered)
            out.append((label, len(ordered), total, Fraction(total, everything or 1), mean(total, len(ordered)),
                        *(percentile(ordered, p) for p in (500, 900, 990)), ordered[-1]))
    notes = []
    if len(complete) < len(rows):
        notes.append(f"{len(rows) - len(complete)} submissions without a host span that ends after the device")
    for i, queue, execute, wait in nlargest(3, complete, key=lambda row: (row[1] + row[2] + row[3], -row[0])):
        longest = max((queue, "queue"), (execute, "execute"), (wait, "wait"))
        notes.append(f"{queue + execute + wait} from submit to notice: {trace.text(i)} at {trace.start[i]} on {trace.tracks[trace.track[i]].name}: "
                     f"queue {queue}, execute {execute}, wait {wait}; most of it is {longest[1]}")
    return Table("path", "From submit to completion (submit -> queue -> execute -> wait; ns)",
                 ("phase", "count", "total", "share", "mean", "p50", "p90", "p99", "max"), out, notes)


def memory_pools(trace):
    """device -> {"records", "drops", "used": (bytes, index, tag), "used_ns", "held", "allocated": (...), "rows": [(tag, used, allocated)]}, by time,
    outside warm-up. used_ns: when the peak of used was; held: what was allocated then."""
    pools = {}
    for record in sorted(trace.memory, key=lambda record: record.ts):
        if record.warm_up:
            continue
        pool = pools.setdefault(record.device, {"records": 0, "drops": 0, "used": (-1, 0, ""), "used_ns": 0, "held": 0,
                                                 "allocated": (-1, 0, ""), "rows": []})
        index, allocated = pool["records"], record.allocated
        if index:
            last = pool["rows"][-1][2]
            if record.change:                 # an alloc or a free takes nothing from the pool, however two threads stamp them
                allocated = max(allocated, last)
            pool["drops"] += allocated < last
        if record.used > pool["used"][0]:
            pool["used"], pool["used_ns"], pool["held"] = (record.used, index, record.tag), record.ts, allocated
        if allocated > pool["allocated"][0]:
            pool["allocated"] = allocated, index, record.tag
        pool["rows"].append((record.tag, record.used, allocated))
        pool["records"] += 1
    return pools


def megabytes(count):
    """Of 2^20 bytes, six decimals, rounded half up."""
    millionths = (count * 2000000 + 2**20) // 2**21
    return f"{millionths // 1000000}.{millionths % 1000000:06}"


def memory_lines(trace, limit=None):
    pools = memory_pools(trace)
    if not pools:
        yield "no memory records"
    for device, pool in pools.items():
        def peak(key):
            value, index, tag = pool[key]
            return f"{megabytes(value)} at #{index} {cell(tag, 80)}"
        unused = max(pool["held"] - pool["used"][0], 0)
        yield f"Memory of {cell(device, 80)} (MB of 2^20 bytes): {pool['records']} records"
        yield f"peak used       : {peak('used')}"
        yield f"peak allocated  : {peak('allocated')}"
        yield f"fragmentation   : {megabytes(unused)} ({percent(Fraction(unused, pool['held'] or 1))} %) allocated but not used at the peak"
        yield f"allocated drops : {pool['drops']}"
        yield f"{'#Trace':<6}\t{'#Tag':<80}\t{'used':<15}\t{'alloc':<15}"
        for index, (tag, used, allocated) in enumerate(pool["rows"][:limit]):
            yield f"{index:<6}\t{padded(cell(tag, 80), 80)}\t{megabytes(used):<15}\t{megabytes(allocated):<15}"
        yield from left_out(len(pool["rows"]), limit, "memory")


# ---- Printing

def percent(share):
    """Two decimals, rounded half up."""
    hundredths = (share.numerator * 20000 // share.denominator + 1) // 2
    return f"{hundredths // 100}.{hundredths % 100:02}"


def shown(value):
    if isinstance(value, Fraction):
        return percent(value)
    return "-" if value is None else cell(value) if isinstance(value, str) else str(value)


def table_lines(table, limit=None):
    """Aligned text: words to the left, numbers to the right."""
    yield table.title
    if table.rows:
        head = [c + " (%)" if any(isinstance(row[n], Fraction) for row in table.rows) else c for n, c in enumerate(table.columns)]
        cells = [list(map(shown, row)) for row in table.rows[:limit]]
        left = [isinstance(v, str) and not v.replace(".", "").isdigit() for v in table.rows[0]]
        widths = [max(len(c) for c in column) for column in zip(head, *cells)]
        for line in (head, *cells):
            yield "  ".join(c.ljust(w) if l else c.rjust(w) for c, w, l in zip(line, widths, left)).rstrip()
        yield from left_out(len(table.rows), limit, table.name)
    elif not table.notes:
        yield "(none)"
    yield from table.notes


def left_out(count, limit, table):
    """How to see the rows beyond the limit."""
    if limit is not None and count > limit:
        yield f"({count - limit} more of {count} rows; all of them: --table {table})"


def open_table(trace):
    """Spans that were open when the recording ended: of every thread the innermost, then what is around it; the newest thread first."""
    stacks = {}
    for i in trace.rows_with(UNFINISHED):
        stacks.setdefault(trace.tracks[trace.track[i]].base, []).append(i)
    for stack in stacks.values():
        stack.sort(key=lambda i: (trace.start[i], -trace.dur[i], i), reverse=True)
    rows = [(label_of(trace, trace.tracks[base]), trace.text(i), trace.names[trace.cat[i]], trace.start[i], trace.dur[i])
            for base, stack in sorted(stacks.items(), key=lambda item: -trace.start[item[1][0]]) for i in stack]
    notes = ["a CSV does not say which spans have no end"] if trace.format == "csv" else []
    return Table("open", "Open when it ended (of each thread the innermost first, then what is around it; ns)",
                 ("thread", "span", "category", "begun", "open for"), rows, notes)


NAMES = ("names", "open", "summary", "inferences", "executions", "operators", "external", "path", "pes", "threads", "gaps", "categories", "memory", "trust")
TITLES = {"inferences": "Inferences (ns)", "executions": "NPU executions (ns)", "operators": "NPU operators", "external": "External operators: on the host (ns)"}
EMPTY = {"summary": 4, "inferences": 1, "executions": 1, "operators": 1, "external": 1, "memory": 1}      # lines without rows
SHOWN = 20         # rows of a table when all tables are printed


def trust_table(trace):
    """The clock error of each device, and what was lost: what the other tables rest on."""
    def of(sync, key):
        return "-" if sync.get(key) is None else str(sync[key])
    keys = ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations", "unplaced_spans", "ring_lost")
    found = trace.metadata.get("devices")
    devices = [d for d in found if isinstance(d, dict) and isinstance(d.get("clock_sync"), dict)] if isinstance(found, list) else []
    rows = [(str(d.get("name")), *(of(d["clock_sync"], key) for key in keys)) for d in devices]
    notes = doubts(trace.metadata) or (["lost 0"] if "lost" in trace.metadata else ["not known: this form of a trace does not say what was lost"])
    return Table("trust", "Clock error of the devices, and what was lost", ("device", *keys), rows, notes)


def tables(trace, wanted=NAMES, limit=None):
    """The lines of the tables, one block each; at most `limit` rows of each."""
    device = Device(trace) if {"executions", "operators", "pes"} & set(wanted) else None
    tracks = track_intervals(trace) if {"threads", "pes", "gaps"} & set(wanted) else None
    lines = {"summary": lambda: summary_lines(trace), "inferences": lambda: inferences_lines(trace, limit),
             "executions": lambda: executions_lines(trace, device, limit), "operators": lambda: operators_lines(trace, device, limit),
             "external": lambda: external_lines(trace, limit), "memory": lambda: memory_lines(trace, limit)}
    make = {"names": lambda: names_table(trace), "open": lambda: open_table(trace), "categories": lambda: categories_table(trace),
            "threads": lambda: threads_table(trace, tracks), "pes": lambda: pes_table(trace, tracks, device),
            "gaps": lambda: gaps_table(trace, tracks), "path": lambda: path_table(trace), "trust": lambda: trust_table(trace)}
    for name in wanted:
        yield lines[name]() if name in lines else table_lines(make[name](), limit)


def overview(trace):
    """The lines of all tables that have rows, under titles, with at most SHOWN rows each; then the names of the others."""
    empty = []
    for name, lines in zip(NAMES, tables(trace, limit=SHOWN)):
        lines = list(lines)
        if lines[-1] == "(none)" or len(lines) == EMPTY.get(name):
            empty.append(name)
        else:
            yield [TITLES[name], *lines] if name in TITLES else lines
    if empty:
        yield ["Nothing to show in: " + ", ".join(empty)]


def add_arguments(parser):
    parser.epilog = npuprof_ne_csv.__doc__
    parser.add_argument("trace", metavar="TRACE", help="a .json, .csv or .npuprof file")
    parser.add_argument("--table", action="append", metavar="NAME", choices=NAMES, help="only this table; may be repeated: " + ", ".join(NAMES))
    parser.add_argument("--csv", metavar="FILE", help="write the Neural Engine table")
    parser.add_argument("--html", metavar="FILE", help="write one self-contained page: timeline, distributions, bars, curves, sliders")
    parser.add_argument("--aim", default="90%", choices=("90%", "80%", "70%"), help="its column N at first (default 90%%)")
    parser.add_argument("--ratio", action="append", default=[], metavar="SHAPE=R90,R80,R70[,OTHERS]",
                        help="its sparse kernel ratios for weights of SHAPE (default 4,4,4,1)")


def run(arguments):
    for output, endings in ((arguments.html, (".html", ".htm")), (arguments.csv, (".csv",))):
        if output:
            check_output(output, endings, arguments.trace)
    trace = load(arguments.trace, progress=True)
    wanted = arguments.table or ()
    if arguments.html:
        from npuprof_html import write_html
        write_html(trace, arguments.html)
    if arguments.csv:
        ratios = dict(map(npuprof_ne_csv.parse_ratio, arguments.ratio))
        write_whole(arguments.csv, npuprof_ne_csv.text(trace, arguments.aim, ratios).encode())
    elif arguments.ratio:
        raise Refused("--ratio is for --csv")
    every = not (wanted or arguments.csv or arguments.html)
    wanted = NAMES if every else wanted
    bar = Progress("making tables", len(wanted))
    for n, lines in enumerate(overview(trace) if every else tables(trace, wanted)):
        bar.at(n)
        if n:
            print()
        sys.stdout.writelines(line + "\n" for line in lines)
    bar.done()
    return 0
