# SPDX-License-Identifier: MIT
"""By how much something may get shorter where nobody knows what waits for what. replay: a Replay."""

from array import array
from bisect import bisect_left, bisect_right
from fractions import Fraction

from ..tables.arithmetic import union_of
from .effects import percent
from .graph import host_rows, named_rows
from .idle import inference_of

INSIDE = "operator", "load", "device"            # changes of what happens in jobs
ALL = Fraction(100)


def low(values):
    """The 5th percentile, the lower of two."""
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 20] if ordered else 0


def lows(jobs, values):
    """{device: low() of its jobs}. values: (job, ns). Why not one for all: what one device does at best
    is nothing that another one can do."""
    found = {}
    for k, ns in values:
        found.setdefault(jobs.device_of(k), []).append(ns)
    return {device: low(own) for device, own in found.items()}


def shrinking(replay, changes, beside):
    """(low, high): by how many percent a job gets shorter, or an inference by its host spans, at least and at
    most; 0 is among them. beside: see beside()."""
    shares = [Fraction(0), *beside]
    for what, name, k in changes:
        if what == "host":
            shares += ((1 - k) * share for share in host_shares(replay, name))
        elif what == "pes":
            # Why: so many jobs may be under way then in the time of one.
            shares += (ALL * (1 - Fraction(1, min(count, max(1, replay.points.count))))
                       for count in replay.pe_counts(k or 0).values())
        elif what == "depth":
            shares.append(ALL * (1 - Fraction(1, k)))
    for fixed in (False, True) if any(change[0] in INSIDE for change in changes) else ():
        lags = replay.changed(changes, fixed, False)[0]
        pairs = [(before, after) for before, after in zip(replay.points.dur, lags.dur) if before != after]
        for pick in (min, max) if pairs else ():
            before, after = pick(pairs, key=lambda pair: (pair[0] - pair[1]) / pair[0])
            shares.append(percent(before - after, before))
    return min(shares), max(shares)


def host_shares(replay, name):
    """Of each inference with such spans, and of each thread in the window, their time in percent."""
    trace, sums, threads = replay.trace, {}, {}
    for i in host_rows(trace, replay.points, name):
        for number, found in (inference_of(trace, i), sums), (trace.track[i], threads):
            found[number] = found.get(number, 0) + trace.dur[i]
    wholes = [(ns, trace.dur[i]) for i, ns in sums.items() if i >= 0]
    wholes += [(ns, replay.facts.window.length_ns) for ns in threads.values()]
    return [min(percent(ns, whole or 1), ALL) for ns, whole in wholes]


def beside(replay, changes):
    """By how many percent the median inference, or the window without one, may get shorter by each change of
    host spans on threads that submit nothing. Why: those that submit may wait for them, too."""
    trace, facts, bases, shares = replay.trace, replay.facts, set(replay.points.thread), []
    whole, count = facts.durations_p50 or facts.window.length_ns or 1, max(1, len(facts.window.inferences))
    for what, name, k in changes:
        is_host = what == "host" and isinstance(name, str)
        rows = named_rows(trace, name, replay.points.until) if is_host else ()
        own = [trace.dur[i] for i in rows
               if trace.tracks[trace.track[i]].base not in bases and inference_of(trace, i) < 0]
        if own:
            ns = max(max(own), Fraction(sum(own), count))
            shares.append((1 - k) * min(100 * Fraction(ns) / whole, ALL))
    return shares


def held_up(replay):
    """By job, ns of its start latency in which other queues of its device worked. Why: two lanes may be one
    device in turns, such as those of two priorities, or share what is needed to start."""
    points, facts, found = replay.points, replay.facts, array("q")
    others = [union_of(own for q, own in enumerate(facts.busy) if q != queue and
                       facts.jobs.queues[q].device == facts.jobs.queues[queue].device).flat
              for queue in range(len(facts.busy))]
    for k, latency in enumerate(points.latency):
        start, flat = points.start_of[k], others[facts.jobs.queue[k]]
        since = start - max(0, latency)
        first, last = bisect_right(flat, since), bisect_left(flat, start)
        ends = [since, *flat[first:last], start] if first % 2 else [*flat[first:last], start]
        found.append(sum(b - a for a, b in zip(ends[::2], ends[1::2])))
    return found
