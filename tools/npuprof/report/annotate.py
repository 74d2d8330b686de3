# SPDX-License-Identifier: MIT
"""Writes the verdict into a copy of the trace, for viewers: a process "npuprof: what to change" above the
others, with a track for each finding and its spans, one for the critical path, one for each device with the
causes of its idle times, and counters of what was in flight and what lanes moved. The events of the trace
stay as they are, byte for byte."""

import json
import shutil

from ..analysis import over_time, replay
from ..analysis.verdict import judge
from ..base.files import whole_file
from ..base.messages import Refused
from ..base.strict_json import json_text
from ..read.own_layout import BLOCK, HEAD
from ..tables.arithmetic import pointed
from ..tables.table import decimal
from .first_screen import findings_of
from .page.curves import in_flight

MOST = 100_000      # spans on a track
PROCESS = "npuprof: what to change"


def write_annotated(facts, path):
    """Writes the annotated trace as JSON."""
    source = facts.trace._file
    if facts.trace.format != "json" or source is None:
        raise Refused(f"{facts.trace.path}: --annotate needs JSON or an image: a CSV has no tracks, and a "
                      "database is not the text of the trace")
    lines = list(events(facts))
    # Why the file that was read: of an image, and with --ftrace, it is not the one that the user named.
    source.seek(0)
    with whole_file(path) as target:
        if source.read(len(HEAD) + 1) == HEAD + b"\n":
            source.seek(0)
            insert(source, target, lines)
        else:
            source.seek(0)
            try:
                document = json.load(source)
            except ValueError:
                raise Refused(f"{facts.trace.path}: --annotate needs JSON that is whole, and this is cut "
                              "off or damaged") from None
            if isinstance(document, list):
                document = {"traceEvents": document}
            document["traceEvents"] += map(json.loads, lines)
            target.write(json.dumps(document, separators=(",", ":")).encode())


def insert(source, target, lines):
    """Copies a trace of npuprof's own layout, with more events behind its last one."""
    before = None
    for line in source:
        if line.startswith(b"]"):
            added = ",\n".join(lines).encode("utf-8", "replace") + b"\n"
            last = before if before == HEAD + b"\n" else before.rstrip(b"\r\n,") + b",\n"
            target.write(last + added + line)
            break
        if before is not None:
            target.write(before)
        before = line
    shutil.copyfileobj(source, target, BLOCK)


def events(facts):
    """Yields the events to add, as JSON without line breaks."""
    trace, verdict = facts.trace, judge(facts)
    # Why not all: other tools call a process by a text.
    pid = max((track.pid for track in trace.tracks if isinstance(track.pid, int)), default=0) + 1
    yield text(ph="M", name="process_name", pid=pid, tid=1, args={"name": PROCESS})
    yield text(ph="M", name="process_sort_index", pid=pid, tid=1, args={"sort_index": -1})
    tracks = [*of_findings(verdict), ("critical path", of_path(facts)),
              *((f"idle: {name}", of_idle(facts, device)) for device, name in enumerate(facts.jobs.devices))]
    for tid, (name, spans) in enumerate(tracks, 1):
        spans = apart(spans)
        if not spans:
            continue
        yield text(ph="M", name="thread_name", pid=pid, tid=tid, args={"name": name})
        yield text(ph="M", name="thread_sort_index", pid=pid, tid=tid, args={"sort_index": tid})
        for start, end, label, args in spans:
            yield text(ph="X", name=label, cat="verdict", pid=pid, tid=tid, ts=start, dur=end - start,
                       args=args)
    for name, points in of_counters(facts):
        for ns, value in points:
            yield json_text({"ph": "C", "name": name, "pid": pid, "tid": 1})[:-1] + \
                f',"ts":{micro(ns)},"args":{{"value":{decimal(value, 3)}}}}}'


def of_counters(facts):
    """Yields (name, [(ns, value from then on)]): submissions in flight, and what lanes moved."""
    yield "in flight", in_flight(facts.trace)
    for lane, points in over_time.bandwidth(facts).items():
        yield f"{lane}: bytes a second", points


def text(ts=None, dur=None, args=None, **members):
    """An event as text; ts and dur in ns."""
    known = json_text(members)[:-1]
    if ts is not None:
        known += f',"ts":{micro(ts)},"dur":{micro(dur)}'
    return f'{known},"args":{json_text(args)}}}'


def micro(ns):
    return pointed(ns, 3)


def apart(spans):
    """The spans by start, without those that overlap an earlier one: a track has one at a time."""
    found, until = [], None
    for span in sorted(spans, key=lambda span: span[:2]):
        if span[0] < span[1] and (until is None or span[0] >= until) and len(found) < MOST:
            found.append(span)
            until = span[1]
    return found


def of_findings(verdict):
    """[(track, spans)]: the spans that prove each finding; without such, the window."""
    facts, found = verdict.facts, []
    trace, window = facts.trace, facts.window
    for answer in findings_of(verdict):
        args = {"finding": answer.why, "advice": answer.advice, "gain": answer.brings, "sure": answer.sure}
        places = [(trace.start[i], trace.start[i] + trace.dur[i]) for i in answer.finding.rows]
        found.append((f"{answer.number} {answer.do}", [
            (start, end, answer.do, args) for start, end in places or [(window.start_ns, window.end_ns)]]))
    return found


def of_path(facts):
    """The pieces of the critical path; none if replay does not explain the trace."""
    part = facts.part
    own = replay.of(part)
    if own.why or not part.jobs.queues:
        return []
    return [(start, end, f"{kind}: {name}", {}) for kind, name, start, end in own.paths.whole()]


def of_idle(facts, device):
    """Why the device was idle, piece by piece."""
    idle, trace = facts.idle, facts.trace
    return [(start, end, f"{label} {trace.text(row)}" if row >= 0 else label, {"certain_ns": certain})
            for start, end, label, row, certain, _ in idle.all_pieces(facts.jobs.queues_of[device])]
