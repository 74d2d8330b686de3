# SPDX-License-Identifier: MIT
"""By how much something may get shorter where nobody knows what waits for what. replay: a Replay."""

from fractions import Fraction

from .effects import percent
from .graph import host_rows, named_rows
from .idle import inference_of

INSIDE = "operator", "load", "device"            # changes of what happens in jobs
ALL = Fraction(100)


def shrinking(replay, changes, beside):
    """(low, high): by how many percent a job gets shorter, or an inference by its host spans, at least and at
    most; 0 is among them. beside: see beside()."""
    shares = [Fraction(0), *beside]
    for what, name, k in changes:
        if what == "host":
            shares += ((1 - k) * share for share in host_shares(replay, name))
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
