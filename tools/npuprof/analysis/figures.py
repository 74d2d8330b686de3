# SPDX-License-Identifier: MIT
"""Figures of many numbers, as tables show them."""

from functools import cache
from math import comb

from ..tables.arithmetic import percentile


def enough(count, per_mille, times=10):
    """True: that many samples have a percentile; 10 beyond it for a table, 5 for a finding."""
    return count * (1000 - per_mille) >= times * 1000


def spread(values):
    """(p50, p90, p99, max) of numbers; None where there are too few of them. The p50 is always given."""
    ordered = sorted(values)
    if not ordered:
        return None, None, None, None
    return (percentile(ordered, 500), *(percentile(ordered, p) if enough(len(ordered), p) else None
                                        for p in (900, 990)), ordered[-1])


@cache
def median_rank(count):
    """k, from 0: with at least 95 % probability the median lies between the k-th smallest and the k-th
    largest of that many values. Exact up to 1000 values, from the binomial distribution."""
    if count > 1000:
        return max(0, int(count / 2 - 0.98 * count ** 0.5))
    below, k = 0, -1
    while 40 * (below + comb(count, k + 1)) <= 2 ** count:
        k += 1
        below += comb(count, k)
    return max(k, 0)


def floor_of(ordered):
    """The usual best of sorted values: the 5th percentile, without interpolation. Why: between two modes a
    mean of both would be a time that never was."""
    return ordered[(len(ordered) - 1) // 20]


def largest_mode(ordered):
    """The sorted values, or if they are of two kinds, the larger kind: their largest gap is at least half of
    the median, with a tenth of the values on each side."""
    count = len(ordered)
    least = max(1, count // 10)
    if 2 * least > count - 1:
        return ordered
    at = max(range(least, count - least + 1), key=lambda k: ordered[k] - ordered[k - 1])
    if 4 * (ordered[at] - ordered[at - 1]) < median_of(ordered):
        return ordered
    return ordered[:at] if 2 * at >= count else ordered[at:]


def median_noise(ordered):
    """Half of the 95 % interval of the median of sorted values."""
    if not ordered:
        return 0
    k = median_rank(len(ordered))
    return (ordered[-1 - k] - ordered[k] + 1) // 2


def median_of(ordered):
    """The median of sorted whole numbers, times two: it stays whole."""
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]


def holm(chances):
    """The same p with Holm's correction for their number; None stays None."""
    tested = sorted((p, n) for n, p in enumerate(chances) if p is not None)
    out, least = list(chances), 0.0
    for k, (p, n) in enumerate(tested):
        least = out[n] = max(least, min(1.0, p * (len(tested) - k)))
    return out
