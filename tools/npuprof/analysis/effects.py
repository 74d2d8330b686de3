# SPDX-License-Identifier: MIT
"""What a change brings: an Effect, and how several readings of a trace become one."""

from collections import namedtuple
from fractions import Fraction

SAME = Fraction(1, 10)             # gains that differ by less are one
# Points by which a gain may be off where threads share something, or jobs share a wait: they take turns in
# another order, then. Of the simulated drivers in tests/tools/grid.
MARGIN = 1
# inference (the median), window, jobs (all executions together): (low, high) in percent, positive if faster.
# before, after: twice the ns of the median inference, None without inferences; after is (low, high).
# edge: see replay.py. assumed: what is not known, and decides it: a set of what is below.
JOB, REQUEST, POLL = "what threads wait for", "when requests come", "when a poll sees the end"
LATE, TICK = "when threads come", "which tick of a clock a thread takes"
START = "what a job waits for before it starts"
CALL = "how much of a sampled kernel the device works"
TURNS, BESIDE = "whether lanes are one engine in turns", "whether other threads work on the same"
PREEMPT = "whether a job stops one of another lane"
KILL = "whether the host ended a job"
BATCH, CLOCK = "how large a batch is", "which rate the device has"
POOL = "which thread does how much"
ORDER = "which job a wait is for"
DOOR = "when in its submission a job reaches the device"
FENCE = "whether a job waits for one of another device"
Effect = namedtuple("Effect", "changes inference window jobs before after edge assumed")


def either(one, two, what, bounds=None):
    """The Effect that holds both, and gains within the bounds. what: what is not known, and differs."""
    def hull(a, b):
        return None if a is None else (min(a[0], b[0]), max(a[1], b[1]))
    inference, window = hull(one.inference, two.inference), hull(one.window, two.window)
    after = hull(one.after, two.after)
    if bounds:
        window, inference = hull(window, bounds), hull(inference, bounds)
        after = inference and tuple(Fraction(one.before) * (100 - gain) / 100 for gain in reversed(inference))
    both = one._replace(inference=inference, window=window, after=after, assumed=one.assumed | two.assumed,
                        edge=max(one.edge, two.edge))
    return both._replace(assumed=both.assumed | {what}) if apart(both, one) or apart(both, two) else both


def apart(one, two):
    """True: they do not promise the same."""
    pairs = (one.inference, two.inference), (one.window, two.window)
    return any(abs(a - b) > SAME for gain, other in pairs if gain for a, b in zip(gain, other))


def widened(effect):
    """The Effect with MARGIN at both ends; what saves something costs nothing by that, nor saves all."""
    def wide(gain):
        low, high = gain
        return (low - min(MARGIN, low) if low >= 0 else low - MARGIN,
                high - max(-MARGIN, high) if high <= 0 else max(high, min(high + MARGIN, 100)))
    inference = effect.inference and wide(effect.inference)
    return effect._replace(window=wide(effect.window), inference=inference, after=inference and tuple(
        Fraction(effect.before) * (100 - gain) / 100 for gain in reversed(inference)))


def differ(*gains):
    """True: the ends of one of these gains are not the same."""
    return any(max(gain) - min(gain) > SAME for gain in gains if gain)


def percent(part, whole):
    return Fraction(100 * part, whole)


def scaled(ns, part, whole):
    """ns * part / whole, rounded; part itself if ns is the whole."""
    return (2 * ns * part + whole) // (2 * whole) if whole else ns
