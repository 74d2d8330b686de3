# SPDX-License-Identifier: MIT
"""Energy: what counters of energy say of the window, and of each inference.

A counter with the unit uJ is the energy since its first sample (`counters`). Between two samples nobody
knows it, but that it does not fall: the error is what that leaves open at both ends of the window. How old
the value of the device was when it was read is not in it. It is the energy of all that the counter counts,
idle or not.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction

from ..base.contract import ENERGY
from ..tables.table import Table

COLUMNS = ("counter", "samples", "energy_uj", "error_uj", "per_inference_uj", "per_inference_error_uj",
           "mean_power_mw")
TABLES = ("energy",)


def at(series, ns):
    """(low, high): what the counter may have been at that time; None: before its first or behind its last
    sample."""
    before, behind = bisect_right(series.ts, ns) - 1, bisect_left(series.ts, ns)
    if before < 0 or behind == len(series.ts):
        return None
    return series.values[before], series.values[behind]


def row_of(series, window):
    """The row of a counter; None: it does not cover the window."""
    first, last = at(series, window.start_ns), at(series, window.end_ns)
    if first is None or last is None or window.length_ns <= 0:
        return None
    low, high = (Fraction(value) for value in (max(0, last[0] - first[1]), last[1] - first[0]))
    energy, error, count = (low + high) / 2, (high - low) / 2, len(window.inferences)
    samples = bisect_right(series.ts, window.end_ns) - bisect_left(series.ts, window.start_ns)
    each = (energy / count, error / count) if count else (None, None)
    return series.name, samples, energy, error, *each, 10**6 * energy / (window.end_ns - window.start_ns)


def analyse(facts):
    found = [series for series in facts.trace.counters if series.key == ENERGY]
    rows = [row_of(series, facts.window) for series in found]
    notes = [f"{series.name}: its samples do not cover the window"
             for series, row in zip(found, rows) if row is None]
    if facts.window.paused_ns and found:
        notes.append("with the pauses of the recording")
    yield Table("energy", "Energy, by counters that were sampled", COLUMNS, list(filter(None, rows)), notes)
