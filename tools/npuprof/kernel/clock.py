# SPDX-License-Identifier: MIT
"""The clock of the kernel's tracer against CLOCK_BOOTTIME.

By markers: a program that writes `npuprof_clock boot=N mono=N` (ns of both clocks, read right before) into
trace_marker makes any trace_clock usable. Two in a row bracket the first: its stamp lies between both
readings. One such pair at the start and one at the end also give the rate. Without markers the name of the
trace_clock is taken for true.
"""

import re
from collections import namedtuple

from ..base.messages import Refused
from .lines import FORMS, LOST, MARKS

MARKER = re.compile(r"npuprof_clock((?: \w+=\d+)+)")
BRACKET_NS = 1_000_000           # two markers that are farther apart bracket nothing
AGREE_NS = 1_000_000             # so far a stamp may be from the clock that it is said to be
# A marker: stamp, CLOCK_BOOTTIME and CLOCK_MONOTONIC right before it; width: ns of its bracket, None: none
Marker = namedtuple("Marker", "stamp boot mono width")
# convert: a function from stamps to CLOCK_BOOTTIME, None: they are that already. error_ns: None if not known.
# how: words
Clock = namedtuple("Clock", "convert error_ns how")


def markers(text):
    """The Markers of a KernelText."""
    found = []
    for number, line in enumerate(text.lines(), 1):
        if "npuprof_clock" not in line or LOST.match(line):
            continue
        for form in FORMS.values():
            event, said = form.fullmatch(line), MARKER.search(line)
            if event and said and event["name"] in MARKS:
                values = dict(pair.split("=") for pair in said[1].split())
                if "boot" not in values or "mono" not in values:
                    raise Refused(f"{text.path}:{number}: a clock marker without boot= and mono=: "
                                  f"{said[0][:60]!r}")
                text.form = form_name(form)
                stamp = text.time(number, event["whole"], event["part"])
                found.append((stamp, int(values["boot"]), int(values["mono"])))
                break
    pairs = zip(found, [*found[1:], (0, 0, 0)])
    return [Marker(*own, after[1] - own[1] if 0 < after[1] - own[1] < BRACKET_NS else None)
            for own, after in pairs]


def form_name(form):
    return next(name for name, other in FORMS.items() if other is form)


def by_markers(text, found, said):
    """The Clock that markers tell. said: the user's name of the trace_clock, or None."""
    if said in ("boot", "mono"):
        for marker in found:
            wrong = marker.stamp - getattr(marker, said)
            if abs(wrong) > AGREE_NS:
                raise Refused(f"{text.path}: its trace_clock is not {said}: a marker is {wrong / 1e6:.3f} ms "
                              f"off it; leave out --ftrace-clock, the markers tell the clock")
    tight = [marker for marker in found if marker.width is not None]
    chosen = tight or found
    middle = (chosen[0].stamp + chosen[-1].stamp) // 2

    def best(part):
        return min(part, key=lambda marker: marker.width or 0)
    first = best([marker for marker in chosen if marker.stamp <= middle] or chosen)
    last = best([marker for marker in chosen if marker.stamp > middle] or chosen)
    ticks, ns = last.stamp - first.stamp, last.boot - first.boot
    if ticks <= 0:
        ticks = ns = 1

    def convert(stamp):
        return first.boot + (stamp - first.stamp) * ns // ticks
    error = max(first.width, last.width) if tight else None
    return Clock(convert, error, f"{len(found)} clock marker{'s' * (len(found) > 1)}")


def clock_of(text, said=None, part=None):
    """The Clock of a KernelText.

    said: the trace_clock by name (mono, boot, x86-tsc), None: markers, else mono. part: the trace that it is
    put beside, with the times of its start, or None."""
    found = markers(text)
    if found:
        return by_markers(text, found, said)
    if form_of(text) == "latency":
        raise Refused(f"{text.path}: in the latency format times count from the first event, so they cannot "
                      "be placed: record with options/latency-format 0, or write clock markers")
    if said == "x86-tsc":
        return Clock(by_ticks(text, part), 0, said)
    shift = part.boot - part.about.get("start_monotonic_ns", 0) if part and said != "boot" else 0
    return Clock((lambda ns: ns + shift) if shift else None, 0, said or "mono")


def by_ticks(text, part):
    """A function from stamps of x86-tsc to CLOCK_BOOTTIME, by the clock of a trace."""
    if not part:
        raise Refused(f"{text.path}: stamps of x86-tsc need a trace of npuprof, or clock markers")
    host = part.about.get("clock", {})
    if host.get("source") != "tsc" or "start_ticks" not in host:
        raise Refused(f"{part.path}: its clock is {host.get('source', 'not known')}, not tsc, "
                      "so stamps of x86-tsc cannot be placed: record the kernel with trace_clock mono")
    hz = round(host["hz"] * 1000)
    return lambda ticks: part.boot + (ticks - host["start_ticks"]) * 10**12 // hz


def form_of(text):
    """The form of the text, by its first event; "" if there is none."""
    for line in text.lines():
        for name, form in FORMS.items():
            if form.fullmatch(line):
                return name
    return ""
