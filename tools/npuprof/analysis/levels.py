# SPDX-License-Identifier: MIT
"""Levels: does the device change between two speeds again and again?

z of an execution is the logarithm of its time by the median of those of its kind: with the same name and
number of instructions. z is looked at in blocks of BLOCK executions, in the order of their starts. Changes
are those with the least sum of squares (PELT, penalty 3 sigma^2 ln n, two blocks at least between them);
sigma is that of the differences of neighbours, and the penalty a quarter of the square of the spread at
least. Two levels are there if all parts are within a third of the step between them of one or the other,
the step is 5 % or more, each level comes back, and 65 % of the single executions of each are on its side.

Of more than MOST executions those in the middle are looked at, and then longer blocks over all.
"""

from bisect import bisect_right
from collections import namedtuple
from math import exp, log
from statistics import median

from .engines import members

BLOCK, MOST = 8, 2048
NEAR = 0.05        # of the step between the levels
SIGMA = 0.002      # no less is believed
CLEAR = 0.65       # of the single executions of a level
OPERATORS = 64     # executions of each level in which operators are looked at
# factor: how much longer the slow ones take. times: (begin, end) of the slow parts. slow, period: executions
# in a row that are slow, and from one such row to the next; period_ns. count: of executions. clock: True if
# all operators change by this factor, False if not, None: it is not known. device: its number
class Levels(namedtuple("Levels", "device factor times slow period period_ns count clock")):
    __slots__ = ()

    def is_slow(self, ns):
        n = bisect_right(self.times, (ns, 2**63)) - 1
        return n >= 0 and ns < self.times[n][1]


def levels(facts):
    """[Levels] of the devices that have two."""
    found = (levels_of(facts, device) for device in range(len(facts.jobs.devices)))
    return [own for own in found if own]


def levels_of(facts, device):
    jobs = facts.jobs
    own = [k for k in jobs.of_queues(jobs.queues_of[device]) if jobs.inside[k]]
    if len(own) <= MOST:
        return two_levels(facts, device, own, BLOCK)
    middle = own[(len(own) - MOST) // 2:(len(own) + MOST) // 2]
    return two_levels(facts, device, middle, BLOCK) or two_levels(facts, device, own,
                                                                 BLOCK * len(own) // MOST)


def two_levels(facts, device, own, size):
    values = speeds(facts, own)
    blocks = [median(values[n:n + min(size, 64)]) for n in range(0, len(values) - size + 1, size)]
    parts = changes(blocks)
    if len(parts) < 4:
        return None
    edges = sorted({0, *(edge(values, b * size, size) for _, b in parts[:-1]), len(values)})
    found = alternating([median(values[a:b]) for a, b in zip(edges, edges[1:])])
    if not found:
        return None
    step, is_slow = found
    if not apart(values, edges, is_slow):
        return None
    jobs, slow = facts.jobs, joined(edges, is_slow)
    whole = [b - a for a, b in slow if a and b < len(values)] or [b - a for a, b in slow]
    begins = [a for a, _ in slow]
    times = tuple((jobs.start[own[a]], jobs.start[own[b]] if b < len(own) else 2**62) for a, b in slow)
    between = [b - a for a, b in zip(begins, begins[1:])]
    distances = [b[0] - a[0] for a, b in zip(times, times[1:])]
    return Levels(device, exp(step), times, round(median(whole)), round(median(between)),
                  round(median(distances)), len(own), same_factor(facts, own, slow, step))


def joined(edges, is_slow):
    """[(begin, end)] of the slow parts; neighbours are one."""
    found = []
    for begin, end, slow in zip(edges, edges[1:], is_slow):
        if slow and found and found[-1][1] == begin:
            found[-1] = found[-1][0], end
        elif slow:
            found.append((begin, end))
    return found


def speeds(facts, own):
    """z of these jobs."""
    trace, jobs, kinds, dur = facts.trace, facts.jobs, {}, {}
    _, ends, _ = trace.executions
    for k in own:
        g = jobs.group[k]
        kinds[k] = trace.name[jobs.row[k]], ends[g] - (ends[g - 1] if g else 0)
        dur.setdefault(kinds[k], []).append(jobs.end[k] - jobs.start[k])
    usual = {kind: log(max(median(values), 1)) for kind, values in dur.items()}
    return [log(max(jobs.end[k] - jobs.start[k], 1)) - usual[kinds[k]] for k in own]


def changes(values):
    """[(begin, end)] of the parts of these values between their changes, by PELT."""
    n = len(values)
    if n < 8:
        return [(0, n)]
    steps = sorted(abs(b - a) for a, b in zip(values, values[1:]))
    sigma = max(SIGMA, 1.4826 * steps[len(steps) // 2] / 2 ** 0.5)
    ordered = sorted(values)
    spread = ordered[-1 - n // 20] - ordered[n // 20]
    # Why the spread: a block on both sides of a change is no part of its own.
    penalty = max(3 * sigma * sigma * log(n), spread * spread / 4)
    sums, squares = [0.0], [0.0]
    for v in values:
        sums.append(sums[-1] + v)
        squares.append(squares[-1] + v * v)

    def cost(a, b):
        return squares[b] - squares[a] - (sums[b] - sums[a]) ** 2 / (b - a)
    best, before, alive = [-penalty] + [float("inf")] * n, [0] * (n + 1), [0]
    for end in range(2, n + 1):
        tried = [(best[a] + cost(a, end) + penalty, a) for a in alive]
        best[end], before[end] = min(tried)
        alive = [a for value, a in tried if value - penalty <= best[end]] + [end - 1] * (end > 2)
    parts, end = [], n
    while end:
        parts.append((before[end], end))
        end = before[end]
    return parts[::-1]


def alternating(middles):
    """(step between the levels, [is it slow?]) if there are two and each comes back; else None."""
    low, high = min(middles), max(middles)
    if low == high:
        return None
    is_slow = [m - low > high - m for m in middles]
    lows, highs = ([m for m, slow in zip(middles, is_slow) if slow == which] for which in (False, True))
    step = median(highs) - median(lows)
    near = all(abs(m - median(highs if slow else lows)) <= step / 3 for m, slow in zip(middles, is_slow))
    turns = sum(a != b for a, b in zip(is_slow, is_slow[1:]))
    return (step, is_slow) if near and turns >= 3 and step >= NEAR else None


def apart(values, edges, is_slow):
    """True: of the single executions, too, most of the slow parts are slower than most of the others. Why:
    where some take much longer by chance, the middle of a part says little."""
    sides = [], []
    for begin, end, slow in zip(edges, edges[1:], is_slow):
        sides[slow].extend(values[begin:end])
    between = sum(map(median, sides)) / 2
    return all(sum((v > between) == slow for v in own) >= CLEAR * len(own) for slow, own in enumerate(sides))


def edge(values, near, size):
    """Where a change is to the execution: the best split of the values within a block."""
    first, last = max(0, near - 2 * size), min(len(values), near + 2 * size)
    part = values[first:last]
    left, right = median(part[:size]), median(part[-size:])
    costs, at = [0.0], 0.0
    for v in part:
        at += abs(v - left) - abs(v - right)
        costs.append(at)
    return first + min(range(len(costs)), key=costs.__getitem__)


def same_factor(facts, own, slow, step):
    """True: all operators, two at least, take longer by the same factor; None: it is not known."""
    inside = {n for a, b in slow for n in range(a, b)}
    sides = [own[n] for n in range(len(own)) if n not in inside], [own[n] for n in sorted(inside)]
    (fast, one), (long, other) = (middles(facts, side[::len(side) // OPERATORS + 1]) for side in sides)
    steps = [long[name] - ns for name, ns in fast.items() if name in long]
    if len(steps) < 2:
        return None
    apart, unsure = max(steps) - min(steps), 4 * max(one, other)
    return True if apart <= step / 3 else None if apart <= step / 3 + unsure else False


def middles(facts, own):
    """({operator: median logarithm of its ns}, the largest standard error of one of them)"""
    times, found, error = {}, {}, 0
    for _, rows in members(facts, own):
        for i in rows:
            times.setdefault(facts.trace.name[i], []).append(log(max(facts.trace.dur[i], 1)))
    for name, values in times.items():
        found[name] = middle = median(values)
        deviation = 1.4826 * median(abs(v - middle) for v in values)
        error = max(error, 1.25 * deviation / len(values) ** 0.5)
    return found, error
