# SPDX-License-Identifier: MIT
"""Writes a trace as OTLP/JSON, the form that OpenTelemetry collectors read.

There is one resource for each process. Ids, parents and times are those of the CSV, so a program that was
started with TRACEPARENT in its environment joins the trace of its caller. A JSON does not state the ids of
plain spans, and those made of it are others. An arrow (submit to device,
PROF_FLOW) is a link at both of its ends; it makes them producer and consumer. Instants become events of the
span around them.
"""

import json
import math
from decimal import Decimal
from json.encoder import encode_basestring as quoted

from ..base.contract import DEVICE, KINDS, NULL, UNFINISHED, UNWOUND, VIOLATED
from ..base.messages import Progress
from ..tables.submissions import arrows

INTERNAL, PRODUCER, CONSUMER = 1, 4, 5                 # SpanKind
HAS_IS_REMOTE, IS_REMOTE = 0x100, 0x200                # flags of OTLP, above the eight of W3C
LINE = 10_000                                          # spans in a line of .jsonl
MARKS = {number: name.decode() for name, number in KINDS.items()} | {DEVICE: "device"}
# arguments that are not attributes: OTLP has fields for them
OWN = {"trace_id", "span_id", "kind"}


def value_of(value):
    """An AnyValue as JSON text. OTLP writes integers as strings."""
    if value is True or value is False:
        return '{"boolValue":%s}' % str(value).lower()
    if isinstance(value, int) and -2**63 <= value < 2**63:
        return '{"intValue":"%d"}' % value
    if isinstance(value, str):
        return '{"stringValue":%s}' % quoted(value)
    if isinstance(value, (int, float, Decimal)) and math.isfinite(float(value)):
        return '{"doubleValue":%s}' % json.dumps(float(value))
    return '{"stringValue":%s}' % quoted(json.dumps(value, default=str))


def attributes(pairs):
    return '"attributes":[%s]' % ",".join('{"key":%s,"value":%s}' % (quoted(str(key)), value_of(value))
                                          for key, value in pairs)


def resource(trace, pid, processes):
    """The resource of a process. processes: their metadata by pid, if there are several."""
    about = trace.metadata
    process = processes.get(pid, about)
    program = process.get("program")
    found = {"service.name": program or "unknown_service", "host.name": process.get("host"),
             "process.pid": pid if isinstance(pid, int) else None, "process.executable.name": program,
             "npuprof.clock.error_ns": process.get("clock", {}).get("error_ns")}
    for device in process.get("devices", []):
        for key, value in device.get("clock_sync", {}).items():
            if key in ("rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations"):
                found[f"npuprof.device.{device.get('name')}.{key}"] = value
    found["npuprof.lost"] = sum(process.get("lost", {}).values())
    found |= process.get("user", {})
    return '"resource":{%s}' % attributes((key, value) for key, value in found.items() if value is not None)


def events_of(trace):
    """By row, its instants; and how many instants lie in no span."""
    found, outside = {}, 0
    for instant in trace.instants:
        row = trace.finder.at(instant.track, instant.ts)
        if row >= 0:
            found.setdefault(row, []).append(instant)
        else:
            outside += 1
    return found, outside


class Spans:
    """The spans of a trace as JSON texts."""

    def __init__(self, trace):
        self.trace = trace
        self.links = arrows(trace)
        self.events, self.outside = events_of(trace)
        self.names = [quoted(name) for name in trace.names]
        parent = trace.metadata.get("traceparent", "")
        self.flags = int(parent[53:55], 16) if len(parent) == 55 else 1
        self.threads = [[("thread.id", t.thread_id), ("thread.name", t.name)] if isinstance(t.thread_id, int)
                        else [("npuprof.track", t.name)] for t in trace.tracks]

    def text(self, i):
        """One span."""
        trace, links = self.trace, self.links.get(i, ())
        start = trace.base_ns + trace.start[i]
        kind = INTERNAL if not links else PRODUCER if any(way == "out" for _, _, way in links) else CONSUMER
        above, own = trace.parent_span_id(i), self.flags | HAS_IS_REMOTE
        if above and trace.parents[i] < 0:
            own |= IS_REMOTE
        text = '{"traceId":"%s","spanId":"%s",' % (trace.trace_id(i), trace.span_id(i))
        if above:
            text += '"parentSpanId":"%s",' % above
        text += '"flags":%d,"name":%s,"kind":%d,"startTimeUnixNano":"%d","endTimeUnixNano":"%d",%s' % (
            own, self.names[trace.name[i]], kind, start, start + trace.dur[i], attributes(self.pairs(i)))
        if i in self.events:
            text += ',"events":[%s]' % ",".join(map(self.event, self.events[i]))
        if links:
            text += ',"links":[%s]' % ",".join(self.link(*link) for link in links)
        return text + "}"

    def pairs(self, i):
        """The attributes of a span."""
        trace, args, flags = self.trace, self.trace.args(i), self.trace.flags[i]
        pairs = [*self.threads[trace.track[i]]]
        if trace.cat[i]:
            pairs.append(("npuprof.category", trace.names[trace.cat[i]]))
        if trace.kind[i]:
            pairs.append(("npuprof.kind", MARKS[trace.kind[i]]))
        pairs += [(key, value) for key, value in args.items() if key not in OWN]
        pairs += [(key, column[i]) for key, column in trace.index.items() if column[i] != NULL
                  and key not in args]
        if flags & (UNFINISHED | UNWOUND | VIOLATED) and not args:
            pairs.append(("npuprof.flags", flags))
        return pairs

    def event(self, e):
        pairs = [("npuprof.category", e.cat)] if e.cat else []
        return '{"timeUnixNano":"%d","name":%s,%s}' % (self.trace.base_ns + e.ts, quoted(e.name),
                                                       attributes([*pairs, *e.args.items()]))

    def link(self, other, name, way):
        return '{"traceId":"%s","spanId":"%s","flags":%d,%s}' % (
            self.trace.trace_id(other), self.trace.span_id(other), self.flags | HAS_IS_REMOTE,
            attributes([("npuprof.arrow", name), ("npuprof.direction", way)]))


def rows_by_process(trace):
    """pid -> its rows."""
    rows_of = {track.pid: [] for track in trace.tracks}
    if len(rows_of) == 1:
        return {pid: range(len(trace)) for pid in rows_of}
    rows_on = [rows_of[track.pid] for track in trace.tracks]
    for i, track in enumerate(trace.track):
        rows_on[track].append(i)
    return rows_of


def write_otlp(trace, file, lines=False):
    """Writes to a binary file: one TracesData object; with `lines`, one in each line for every 10,000 spans,
    as collectors write files. Returns how many instants were left out because no span is around them."""
    spans, rows_of = Spans(trace), rows_by_process(trace)
    # Why from the last: of two traces of one process the first speaks for it.
    processes = {p.get("pid"): p
                 for p in reversed(trace.metadata.get("processes", []))} if len(rows_of) > 1 else {}
    scope = '"scope":{"name":"npuprof","version":%s}' % quoted(str(trace.metadata.get("version", "")))
    bar = Progress(f"writing {len(trace)} spans", len(trace))
    done = 0
    separator = b'{"resourceSpans":['
    for pid, rows in rows_of.items():
        head = '{%s,"scopeSpans":[{%s,"spans":[' % (resource(trace, pid, processes), scope)
        for first in range(0, len(rows), LINE):
            begins, ends = lines or first == 0, lines or first + LINE >= len(rows)
            file.write(separator if begins else b",")
            if begins:
                file.write(head.encode("utf-8", "replace"))
            file.write(",".join(map(spans.text, rows[first:first + LINE])).encode("utf-8", "replace"))
            if ends:
                file.write(b"]}]}")
            if lines:
                file.write(b"]}\n")
            elif ends:
                separator = b","
            done += min(LINE, len(rows) - first)
            bar.at(done)
    if not lines:
        file.write(b'{"resourceSpans":[]}' if separator != b"," else b"]}")
    bar.done()
    return spans.outside
