# SPDX-License-Identifier: MIT
"""Ticks: does a thread go on by a clock? Frames of a camera, a timer, the refresh of a display.

What begins as soon as the thing before it has ended drifts: each time that took 1 ms longer moves all later
ones. What keeps to a clock does not. So the ends of its waits are compared with the best period for them, of
which some ends may skip a tick or more. They keep to it if they are nearer to its ticks than to each other:
neighbours differ by more than any of them is off. Work after a clock keeps to it, too, as well as what comes
before does. So a stretch waits for a clock only if its ends keep to one better than its begins.
"""

from itertools import accumulate, pairwise

LEAST = 48         # ends; of fewer a drift does not show
MOST = 1000        # that are looked at
PARTS = 4          # the usual distance of two ends is that many ticks at most
NEAR = 10          # of a tick: no end is usually further off than one part of so many
BETTER = 1.1       # ends keep to the clock so many times better


def period_of(begins, ends, better=BETTER):
    """ns between two ticks of the clock that stretches from these begins to these ends wait for; None."""
    begins, ends = begins[:MOST], ends[:MOST]
    if len(ends) < LEAST:
        return None
    apart = sorted(b - a for a, b in pairwise(ends))
    for part in range(1, PARTS + 1):
        numbers = numbers_of(ends, apart[len(apart) // 2] / part)
        period, off = off_by(ends, numbers)
        steps = middle(b - a - period * (n - m) for (a, b), (m, n) in zip(pairwise(ends), pairwise(numbers)))
        if 4 * off < 5 * steps and NEAR * off < period and better * off < off_by(begins, numbers)[1]:
            return period
    return None


def numbers_of(times, period):
    """The ticks that are nearest to these times, from one to the next."""
    return list(accumulate((max(1, round((b - a) / period)) if period else 1
                            for a, b in pairwise(times)), initial=0))


def off_by(times, numbers):
    """(period, by how much these times are usually off its ticks): that of the line through them."""
    x, y = sum(numbers) / len(numbers), sum(times) / len(times)
    spread = sum((number - x) ** 2 for number in numbers)
    period = sum((number - x) * (time - y) for number, time in zip(numbers, times)) / spread
    return period, middle(time - y - period * (number - x) for number, time in zip(numbers, times))


def middle(values):
    """The median distance from 0."""
    ordered = sorted(map(abs, values))
    return ordered[len(ordered) // 2]
