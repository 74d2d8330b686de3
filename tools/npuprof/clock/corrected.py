# SPDX-License-Identifier: MIT
"""Writes a trace again with the stamps of devices set right; all else stays as it was."""

from decimal import Decimal

from ..base.messages import Refused
from ..base.numbers import BOUNDED
from ..base.strict_json import json_text, read_events, read_trace
from ..read.events import EventReader
from ..read.image import is_json, opened

NOTE = "npuprof.clock"             # key of what was done, in the metadata or in otherData


def write_corrected(trace, answers, file):
    """answers: with device.tracks, right(ns), shift and drift. file: to write bytes to."""
    source, _, head = opened(trace.path)
    if not is_json(head):
        raise Refused(f"{trace.path}: only JSON and images can be written with other stamps")
    with source:
        text = source.read().decode().removeprefix("\ufeff")
    reader = EventReader(trace)
    right = {(track.pid, track.tid): answer.right for answer in answers for track in trace.tracks
             if track.number in answer.device.tracks and (answer.shift or answer.drift)}
    separator = b'{"traceEvents":[\n'

    def put(_, event):
        nonlocal separator
        if type(event) is dict:
            ids = reader.id_key(event.get("pid")), reader.id_key(event.get("tid"))
            if ids in right and event.get("ph") != "M":
                event = corrected(event, right[ids], reader)
        file.write(separator + encoded(event).encode())
        separator = b",\n"

    if text.lstrip().startswith("["):
        read_events(text, text.index("["), put, BOUNDED)
        others = {}
    else:
        others = read_trace(text, put, BOUNDED)
        others.pop("traceEvents")
    note = "; ".join(f"{a.device.name}: shift {float(a.shift)} ns, drift {float(a.drift * 10**6)} ppm from "
                     f"{a.start} ns" for a in answers)
    own = others.get("metadata", {}).get("npuprof") if type(others.get("metadata")) is dict else None
    place = own.setdefault("user", {}) if type(own) is dict else others.setdefault("otherData", {})
    if type(place) is dict:
        place[NOTE] = note
    rest = "".join(f',\n{json_text(key)}:{encoded(value)}' for key, value in others.items())
    file.write(f"\n]{rest}}}\n".encode())


def corrected(event, right, reader):
    """The event with its times set right. Why not its length: both ends are rounded to whole ns."""
    ts, dur = reader.nanoseconds(event.get("ts")), reader.nanoseconds(event.get("dur"))
    if ts is None:
        return event
    event = event | {"ts": microseconds(right(ts))}
    if dur is not None and "dur" in event:
        event["dur"] = microseconds(right(ts + dur) - right(ts))
    return event


def microseconds(ns):
    return Decimal(ns).scaleb(-3)


def encoded(value):
    """The text of a JSON value, with the digits that its numbers had."""
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",".join(f"{json_text(key)}:{encoded(inner)}" for key, inner in value.items()) + "}"
    return "[" + ",".join(map(encoded, value)) + "]" if isinstance(value, list) else json_text(value)
