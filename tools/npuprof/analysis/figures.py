# SPDX-License-Identifier: MIT
"""Figures of many numbers, as tables show them."""

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
