# SPDX-License-Identifier: MIT
"""Polling: how often a thread looks whether its job is done.

A thread that looks every 500 us notices ends at multiples of it, since its wait began or by its clock. A
period is tried if it is round, or the distance of the places at which notices lie. The longest is taken for
which they lie within a tenth of it of one another (the mean of their angles on a circle of that length is
0.95 or longer), at two multiples at least."""

from math import cos, hypot, pi, sin

from ..base.contract import NULL
from ..tables.arithmetic import percentile

ROUND = {digit * 10**power for digit in (1, 2, 4, 5) for power in range(4, 9)}
LEAST = 8


def polls(jobs, own):
    """ns between two looks of the threads of those jobs; None: they do not poll, or it cannot be told."""
    looked = sorted((jobs.w[k] - jobs.look[k]) // jobs.looks[k] for k in own if jobs.looks[k] > 0)
    if 2 * len(looked) > len(own):
        return looked[len(looked) // 2]
    waited = waits(jobs, own)
    found = period([jobs.n[k] for k in waited]) or period([jobs.n[k] - begin_of(jobs, k) for k in waited])
    # Why both: looks see ends at any time before them, so some are seen late and some at once.
    apart = late(jobs, waited, 750) - late(jobs, waited, 250)
    return found if found and 4 * late(jobs, waited, 750) >= found and 10 * apart >= found else None


def by_clock(jobs, own):
    """True: the looks come at multiples of a time of the clock, not since the wait began."""
    return period([jobs.n[k] for k in waits(jobs, own)]) is not None


def step(jobs, own):
    """How late a look may come, ns; None: nothing says that threads poll. Where notices lie in one place, and
    the ends before them do not, it is the latest there usually was. Of ends no further apart than their
    stamps may be wrong, nothing says where they lie."""
    found, waited = polls(jobs, own), waits(jobs, own)
    if found or len(waited) < LEAST:
        return found
    ends = spread([jobs.end[k] - begin_of(jobs, k) for k in waited])
    seen = spread([jobs.n[k] - begin_of(jobs, k) for k in waited])
    error = percentile(sorted(max(jobs.error[k], 0) for k in waited), 500)
    return late(jobs, waited, 990) if ends > max(4 * seen, error) else None


def waits(jobs, own):
    """Of each wait for one of those jobs that was under way, the last job."""
    last = {}
    for k in own:
        if jobs.n[k] != NULL and begin_of(jobs, k) < jobs.end[k]:
            other = last.setdefault(jobs.wait[k], k)
            last[jobs.wait[k]] = k if jobs.end[k] >= jobs.end[other] else other
    return list(last.values())


def late(jobs, waited, thousandth):
    """So many thousandths of the notices come no later behind the end, ns."""
    return percentile(sorted(jobs.n[k] - jobs.end[k] for k in waited) or [0], thousandth)


def spread(values):
    """The median distance from the median."""
    middle = sorted(values)[len(values) // 2]
    return sorted(abs(value - middle) for value in values)[len(values) // 2]


def begin_of(jobs, k):
    return jobs.w[k] if jobs.look[k] == NULL else jobs.look[k]


def period(moments):
    """The longest period at whose multiples, plus some offset, the times lie; None."""
    if len(moments) < LEAST:
        return None
    apart = [b - a for a, b in zip(moments, moments[1:])]
    tried = ROUND | {own for values in (moments, apart) for own in distances(values)}
    return max((own for own in tried if fits(moments, own)), default=None)


def distances(values):
    """The least distance of the places where values lie close together, in two and in three digits."""
    ordered = sorted(values)
    jumps = sorted(b - a for a, b in zip(ordered, ordered[1:]))
    wide, places = 8 * max(jumps[len(jumps) // 2], 1), [[ordered[0]]]
    for a, b in zip(ordered, ordered[1:]):
        if b - a > wide:
            places.append([])
        places[-1].append(b)
    centres = [sum(own) // len(own) for own in places if len(own) > 1]
    least = min((b - a for a, b in zip(centres, centres[1:])), default=0)
    return [int(float(f"{least:.{digits}e}")) for digits in (1, 2) if least >= 10_000]


def fits(moments, period):
    x = sum(cos(2 * pi * (t % period) / period) for t in moments)
    y = sum(sin(2 * pi * (t % period) / period) for t in moments)
    numbers = {(t - moments[0] + period // 2) // period for t in moments}
    return hypot(x, y) >= 0.95 * len(moments) and len(numbers) > 1
