# SPDX-License-Identifier: MIT
"""The scene: what a trace shows, decided once for every output that draws it track by track. src/read/scene.h
does the same for images.

An output is a table of functions, one for each kind. draw() calls them in this order:

begin()                      before all others
arrow(n, flow)               the nth arrow, from a moment of a track to one of another
track(track, lane, rows)     a lane of a track begins: spans and instants that follow are on it. rows: its
                             spans, which nest; none if there are only instants. Lanes count from 0
span(row), close(row)        the begin of a span; and its end, when all that is inside of it was shown
instant(instant)             one of the track; or derived from what another kind shows, on no track (None)
counter(counter)             all values of one
end()                        after all others

An output that has no form for a kind says left_out. Why no defaults: a kind that was forgotten is an error
when the table is made, and not missing in a viewer."""

from collections import namedtuple

from ..base.messages import Progress
from ..read.trace import Instant
from ..tables.tracks import rows_of

Output = namedtuple("Output", "begin arrow track span close instant counter end")
Derived = namedtuple("Derived", (*Instant._fields, "pid"))       # pid: of the process whose pool it was


def left_out(*_):
    """Shows nothing."""


def lanes(trace, rows):
    """Yields lists of a track's rows by start. It takes several if spans overlap: those of a list nest."""
    rows = sorted(rows, key=lambda i: (trace.start[i], -trace.dur[i], i))
    while rows:
        lane, rest, ends = [], [], []
        for i in rows:
            begin, end = trace.start[i], trace.start[i] + trace.dur[i]
            while ends and ends[-1] <= begin:
                ends.pop()
            if ends and end > ends[-1]:
                rest.append(i)
            else:
                ends.append(end)
                lane.append(i)
        yield lane
        rows = rest


def derived(trace):
    """What changed the memory pools: their counters show sums."""
    for change in trace.memory:
        if change.tag or change.change:
            yield Derived(change.ts, None, change.tag or "memory", "memory",
                          {"pool": change.device, "tag": change.tag, "change": change.change}, change.pid)


def draw_lane(trace, rows, output):
    stack = []                         # (end, row) of the spans that are open
    for row in rows:
        start = trace.start[row]
        while stack and stack[-1][0] <= start:
            output.close(stack.pop()[1])
        output.span(row)
        stack.append((start + trace.dur[row], row))
    while stack:
        output.close(stack.pop()[1])


def draw(trace, output, devices_last=False):
    """Draws a trace. The tracks come in the order of their first spans, or by number and then devices."""
    rows, instants, done = rows_of(trace), {}, 0
    for instant in trace.instants:
        instants.setdefault(instant.track, []).append(instant)
    numbers = [*rows, *(number for number in instants if number not in rows)]
    if devices_last:
        numbers.sort(key=lambda number: (trace.tracks[number].kind == "device", number))
    bar = Progress(f"writing {len(trace)} spans", len(trace))
    output.begin()
    for n, flow in enumerate(() if output.arrow is left_out else trace.flows):
        output.arrow(n, flow)
    for number in numbers:
        for n, lane in enumerate([*lanes(trace, rows.get(number, ()))] or [[]]):
            output.track(trace.tracks[number], n, lane)
            draw_lane(trace, lane, output)
            for instant in () if n else instants.get(number, ()):
                output.instant(instant)
            done += len(lane)
            bar.at(done)
    for counter in trace.counters:
        output.counter(counter)
    for instant in derived(trace):
        output.instant(instant)
    output.end()
    bar.done()
