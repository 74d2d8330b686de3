# SPDX-License-Identifier: MIT
"""The clock of the kernel's tracer against CLOCK_BOOTTIME.

By markers: a program that writes `npuprof_clock boot=N mono=N` (ns of both clocks, read right before) into
trace_marker makes any trace_clock usable. Two in a row bracket the first: its stamp lies between both
readings. If each stamp may be of CLOCK_BOOTTIME, or of CLOCK_MONOTONIC with one shift, that is the clock.
Else one such pair at the start and one at the end tell its rate; beyond them the error grows. Without markers
the name of the trace_clock is taken for true.
"""

import re
from collections import namedtuple

from ..base.messages import Refused
from .lines import FORMS, LOST, MARKS

MARKER = re.compile(r"npuprof_clock((?: \w+=\d+)+)")
BRACKET_NS = 1_000_000           # two markers that are farther apart bracket nothing
AGREE_NS = 1_000_000             # so far a stamp without a bracket may be off the clock that it is of
# A marker: stamp, CLOCK_BOOTTIME and CLOCK_MONOTONIC right before it, its thread; width: ns of its bracket,
# None: none
Marker = namedtuple("Marker", "stamp boot mono tid width", defaults=(None,))


class Clock(namedtuple("Clock", "convert error_ns how ends", defaults=(None,))):
    """convert: a function from stamps to CLOCK_BOOTTIME, None: they are that already. error_ns: None if not
    known. how: words. ends: the two moments that told the rate; the error holds between them."""

    def error(self, text):
        """The error of all of a text that was read."""
        if self.error_ns is None or self.ends is None or text.first_ns is None:
            return self.error_ns
        first, last = self.ends
        beyond, error = max(first - text.first_ns, text.last_ns - last, 0), self.error_ns + text.quantum_ns
        return error + error * beyond // (last - first) + 1 - text.quantum_ns if beyond else self.error_ns


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
                found.append(Marker(stamp, int(values["boot"]), int(values["mono"]), event["tid"]))
                break
    # Why the same thread: another one may have read its clocks before.
    return [own._replace(width=after.boot - own.boot)
            if after and own.tid == after.tid and 0 < after.boot - own.boot < BRACKET_NS else own
            for own, after in zip(found, [*found[1:], None])]


def form_name(form):
    return next(name for name, other in FORMS.items() if other is form)


def off_by(text, found, name):
    """How far the stamps of markers are off a clock at least, in ns; 0: they may be its."""
    worst, lone = 0, all(marker.width is None for marker in found)
    for marker in found:
        late = marker.stamp - getattr(marker, name)
        limit = marker.width if marker.width is not None else AGREE_NS if lone else late
        worst = max(worst, -late - text.quantum_ns, late - limit - text.quantum_ns)
    return worst


def by_markers(text, found, said):
    """The Clock that markers tell. said: the user's name of the trace_clock, or None."""
    wrong = off_by(text, found, said) if said in ("boot", "mono") else 0
    if wrong:
        raise Refused(f"{text.path}: its trace_clock is not {said}: a marker is {wrong / 1e6:.3f} ms off it; "
                      "leave out --ftrace-clock, the markers tell the clock")
    how = f"{len(found)} clock marker{'s' * (len(found) > 1)}"
    tight = [marker for marker in found if marker.width is not None]
    best = min(tight or found, key=lambda marker: marker.width or 0)
    shifts = [marker.boot - marker.stamp for marker in tight]
    highest = min((shift + marker.width for shift, marker in zip(shifts, tight)), default=0)
    if not tight:
        how += "; write two in a row, so that one brackets the other"
    if not off_by(text, found, "boot") or not off_by(text, found, "mono"):
        slept = max(shifts, default=0) > highest + text.quantum_ns
        return Clock(lambda stamp: stamp + best.boot - best.stamp, None if slept else best.width,
                     how + "; the machine was suspended between them: record with trace_clock boot" * slept)
    middle = (found[0].stamp + found[-1].stamp) // 2
    first, last = (min([marker for marker in tight or found if (marker.stamp > middle) == late] or [best],
                       key=lambda marker: marker.width or 0) for late in (False, True))
    ticks, ns = last.stamp - first.stamp, last.boot - first.boot
    if min(ticks, ns) <= 0:
        return Clock(lambda stamp: stamp + best.boot - best.stamp, None,
                     how + "; nothing tells its rate: write two at the start and two at the end")
    return Clock(lambda stamp: first.boot + (stamp - first.stamp) * ns // ticks,
                 max(first.width, last.width) if tight else None, how, (first.boot, last.boot))


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
    convert = (lambda ns: ns + shift) if shift else None
    if not said and form_of(text) == "perf":
        return Clock(convert, None, "perf's clock, taken for mono: nothing says so; record with "
                                    "`perf record -k mono` and say --ftrace-clock mono")
    return Clock(convert, 0, said or "mono")


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
