# SPDX-License-Identifier: MIT
"""The one order of what a JSON trace holds. The order of the events in the file means nothing in Chrome's
format, but in one tick for the pairs of pairs.py and the values of a counter. So nothing else comes from it:
tracks go by process and number, spans by track, start and length, and what is equal in that by its kind,
names and arguments.

npuprof's own writer has its events in this order, nearly always: then nothing is moved.
"""

import json
from array import array
from itertools import islice, takewhile
from operator import gt, itemgetter

from .. import loops
from ..base.contract import DEVICE, INFERENCE, OPERATOR, RECORD, SPAN, WARM_UP

# Of two spans of one time, what stands around the other.
OUTER = {kind: n for n, kind in enumerate((RECORD, WARM_UP, INFERENCE, DEVICE, OPERATOR, SPAN))}


def track_key(pid, tid):
    return str(pid) if type(pid) is not int else "", pid if type(pid) is int else 0, \
        type(tid) is not int, tid if type(tid) is int else 0, str(tid)


def text_of(args):
    return json.dumps(args, sort_keys=True, default=str)


def renumber_tracks(trace, numbers):
    """Numbers the tracks by process and thread. numbers: (pid, tid) -> number; changed, too."""
    tracks = sorted(trace.tracks, key=lambda t: track_key(t.pid, t.tid))
    new = array("I", bytes(4 * len(tracks)))
    for n, track in enumerate(tracks):
        new[track.number] = n
    if any(map(gt, new, islice(new, 1, None))):
        trace.track = array("I", map(new.__getitem__, trace.track))
        for column in trace.flows.columns[::2]:
            column[:] = array(column.typecode, map(new.__getitem__, column))
        trace.instants = [instant._replace(track=new[instant.track]) for instant in trace.instants]
    for n, track in enumerate(tracks):
        numbers[track.pid, track.tid] = track.number = track.base = n
    trace.tracks = tracks


def row_order(trace):
    """The rows in their order; None: they have it."""
    track, kind = trace.track, trace.kind
    order, equal, moved = loops.row_order(track, trace.start, trace.dur, [t.base for t in trace.tracks])

    def shape(i):
        return OUTER[kind[i]], track[i], trace.names[trace.name[i]], trace.names[trace.cat[i]]
    for first, end in equal:
        run = [(shape(i), i) for i in order[first:end]]
        if len({of for of, _ in run}) < len(run):
            run = [(of, text_of(trace.args(i)), i) for of, i in run]
        rows = array("i", [of[-1] for of in sorted(run)])
        moved = moved or rows != order[first:end]
        order[first:end] = rows
    return order if moved else None


def chained(records):
    """Records of memory pools by time; of one tick so that each begins with what the one before left."""
    found, used, records = [], {}, sorted(records)
    while len(found) < len(records):
        run = [records[len(found)]]
        run += takewhile(lambda r: r.ts == run[0].ts, islice(records, len(found) + 1, None))
        while run:
            device, last = run[0].device, used.get(run[0].device, 0)
            record = next((r for r in run if (r.device, r.used - r.change) == (device, last)), run[0])
            run.remove(record)
            used[record.device] = record.used
            found.append(record)
    return found


def settle(trace):
    """Puts spans, counters, instants, memory and arrows in their order."""
    order = row_order(trace)
    if order is not None:
        trace.reorder(order)
    trace.counters.sort(key=lambda c: (*track_key(c.pid, 0), c.name, c.key))
    for counter in trace.counters:
        if any(map(gt, counter.ts, islice(counter.ts, 1, None))):
            # Of one tick the last in the file holds from there on: nothing else says so.
            samples = sorted(zip(counter.ts, counter.values), key=itemgetter(0))
            counter.ts[:], counter.values[:] = ([s[0] for s in samples], [s[1] for s in samples])
    trace.memory[:] = chained(trace.memory)
    trace.instants.sort(key=lambda i: (i.ts, i.track, i.name, i.cat, text_of(i.args)))
    columns = trace.flows.name, *trace.flows.columns

    def flows():
        return zip(columns[3], columns[4], columns[2], columns[1], map(trace.names.__getitem__, columns[0]),
                   columns[0])
    if any(map(gt, flows(), islice(flows(), 1, None))):
        ordered = sorted(flows())
        for column, place in zip(columns, (5, 3, 2, 0, 1)):
            column[:] = array(column.typecode, [flow[place] for flow in ordered])
