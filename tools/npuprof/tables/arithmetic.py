# SPDX-License-Identifier: MIT
"""Percentiles, means and unions, in whole numbers."""

from array import array
from itertools import chain

from .. import loops


def percentile(ordered, per_mille):
    """The percentile of a sorted sequence, by linear interpolation (type 7), rounded half up."""
    low, part = divmod((len(ordered) - 1) * per_mille, 1000)
    if not part:
        return ordered[low]
    return ordered[low] + ((ordered[low + 1] - ordered[low]) * part + 500) // 1000


def mean(total, count):
    """The mean, rounded half up."""
    return (2 * total + count) // (2 * count)


def union(spans):
    """The merged Intervals of (start, end) pairs in any order."""
    return loops.merged(array("q", chain.from_iterable(spans)))


def union_of(many):
    """The union of several Intervals."""
    flat = array("q")
    for intervals in many:
        flat.extend(intervals.flat)
    return loops.merged(flat)


def both(a, b):
    """The Intervals that both a and b cover."""
    return loops.minus(a, loops.minus(a, b))


def percent(share):
    """A Fraction of 1 as percent with two decimals, rounded half up."""
    return pointed((share.numerator * 20000 // share.denominator + 1) // 2, 2)


def pointed(count, digits):
    """A whole number of the last of that many decimals, with its point."""
    whole, part = divmod(abs(count), 10**digits)
    return f"{'-' if count < 0 else ''}{whole}.{part:0{digits}}"
