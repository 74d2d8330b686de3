# SPDX-License-Identifier: MIT
"""Over time: warm-up that nobody marked, stalls at regular times, and operators that get slower.

Warm-up: first a trend. m is the Theil-Sen line through the last two thirds of a thread's inferences if the
Mann-Kendall test finds a trend there, else the median of their second half; sigma is 1.4826 times the median
deviation of the second half from it. Warm-up ends where every median of 5 from there on is within m +-
max(5 % of m, 3 sigma), if it is slower than that, and its step is more than twice what the trend makes in a
third of the run. Else there is no steady state.

Periods: t of the slowest 5 %, at least 8 that take 1.2 times the median. R(T) = |sum exp(2 pi i t / T)| / K
for the differences of such times, made exact by a fit. The longest T counts that has R >= 0.8 and
M exp(-K R^2) < 0.01, M being the number of periods that the window can tell apart, unless the starts of all
inferences have that period, too.

Steps: the best split of an operator's durations by absolute deviation, 8 or more on both sides, medians that
differ by 3 %, rank test p < 0.001. Drift: Theil-Sen slope and Mann-Kendall test. Transfers and operators by
one factor (within 1 %, or in the 95 % interval of each step) accuse the clock or heat, transfers alone the
memory, one operator its data.
"""

from bisect import bisect_left, bisect_right, insort
from cmath import exp as cexp
from fractions import Fraction
from heapq import heappush, heappushpop
from itertools import combinations
from math import erfc, exp, pi, sqrt
from statistics import median

from ..tables.arithmetic import percentile
from ..tables.table import Table, pct
from ..tables.tracks import label_of
from . import evidence
from .engines import members

WARM_UP = ("thread", "inferences", "first", "mean_ns", "mean_without_ns", "change_pct")
PERIOD = ("period_ns", "concentration_ratio", "inferences", "p_ratio")
DRIFT = ("operator", "instruction", "count", "kind", "at_ns", "before_ns", "after_ns", "change_pct")
TABLES = ("warm_up", "stalls", "drift")
SAMPLES, HALF = 128, Fraction(1, 2)
TREND = 0.2        # p below which there may be a trend: one that is not seen would pass for warm-up


def trend_of(values):
    """(the value at 0, change for each): a line; see the head of this file."""
    first = len(values) // 3
    size = -(-(len(values) - first) // SAMPLES)
    points = [(k + (size - 1) / 2, percentile(sorted(values[k:k + size]), 500))
              for k in range(first, len(values) - size + 1, size)]
    if kendall_p([v for _, v in points]) >= TREND:
        return percentile(sorted(values[len(values) // 2:]), 500), 0
    slope = median((b - a) / (u - t) for (t, a), (u, b) in combinations(points, 2))
    return median(v - slope * t for t, v in points), slope


def warm_up_of(durations):
    """k: the first k of these durations are warm-up; None: no steady state, or fewer than 20."""
    n = len(durations)
    if n < 20:
        return None
    begin, slope = trend_of(durations)
    line = [begin + slope * k for k in range(n)]
    rest = [d - m for d, m in zip(durations, line)]
    deviation = percentile(sorted(map(abs, rest[n // 2:])), 500)
    allowed = [max(m * 0.05, 3 * 1.4826 * deviation) for m in line]
    k = n - 4
    while k > 0 and abs(sorted(rest[k - 1:k + 4])[2]) <= allowed[k + 1]:
        k -= 1
    # Why: three of five decide a median, so the last slow ones may be up to two later.
    while 0 < k < n and abs(rest[k]) > allowed[k] and k <= n // 2:
        k += 1
    if k > n // 2:
        return None
    step = median(rest[:k]) if k else 0
    change = max(abs(slope), slope_after(durations, k)) * n / 3
    return None if k and (step <= allowed[0] or change >= step / 2) else k


def slope_after(durations, k):
    """How much the durations behind the first k change for each, with or without a trend: medians of three
    parts are compared."""
    part = (len(durations) - k) // 3
    first, last = median(durations[k:k + part]), median(durations[-part:])
    return abs(last - first) / (2 * part)


def stands_out(durations, k):
    """True: the first k are above the others by five times their usual deviation (1.4826 times the median
    one)."""
    middle = median(durations[k:])
    usual = 1.4826 * median(abs(d - middle) for d in durations[k:])
    return median(durations[:k]) - middle >= 5 * usual


def by_thread(facts):
    """[(name of the thread, rows of its inferences by start)]"""
    trace, threads = facts.trace, {}
    for i in facts.window.inferences:
        threads.setdefault(trace.tracks[trace.track[i]].base, []).append(i)
    return sorted((label_of(trace, trace.tracks[base]), own) for base, own in threads.items())


def warm_ups(facts):
    """Rows of WARM_UP."""
    rows, dur = [], facts.trace.dur
    for name, own in by_thread(facts):
        durations = [dur[i] for i in own]
        k = warm_up_of(durations)
        mean = round(sum(durations) / len(durations))
        without = round(sum(durations[k:]) / (len(durations) - k)) if k else mean
        rows.append((name, len(own), k, mean, without, pct(mean - without, without)))
    return rows


def concentration(times, period):
    """R(T)."""
    return abs(sum(cexp(2j * pi * (t % period) / period) for t in times)) / len(times)


def fitted(times, period):
    """The period made exact: a straight line through (number of periods, time), over longer and longer
    parts."""
    length = 4
    while True:
        part = times[:length]
        numbers = [round((t - part[0]) / period) for t in part]
        n, x, y = len(part), sum(numbers), sum(part) - len(part) * part[0]
        xx = sum(k * k for k in numbers)
        xy = sum(k * (t - part[0]) for k, t in zip(numbers, part))
        if n * xx != x * x:
            period = (n * xy - x * y) / (n * xx - x * x)
        if length >= len(times) or period <= 0:
            return period
        length *= 2


def stalls(facts):
    """[(T, R, K, p)]: at most one row, the period of slow inferences."""
    trace, rows = facts.trace, list(facts.window.inferences)
    n = len(rows)
    if n < 160:
        return []
    ordered = sorted(trace.dur[i] for i in rows)
    limit = max(ordered[n - n // 20], percentile(ordered, 500) * 6 // 5)
    slow = [trace.start[i] + trace.dur[i] // 2 for i in rows if trace.dur[i] >= limit][:1000]
    # Why the 90th percentile: the longer of two kinds of inferences are no stalls.
    # Why half of the window: slow ones at one place are a warm-up or a disturbance.
    if len(slow) >= 8 and 2 * (slow[-1] - slow[0]) < facts.window.length_ns:
        return []
    if len(slow) < 8 or 5 * limit < 6 * percentile(ordered, 900):
        return []
    starts = [trace.start[i] for i in rows]
    usual = percentile(sorted(b - a for a, b in zip(starts, starts[1:])), 500)
    low, high = 2 * max(usual, 1), (slow[-1] - slow[0]) / 4
    chances, best = max(1, facts.window.length_ns / low), None
    gaps = sorted(b - a for a, b in zip(slow, slow[1:]) if b > a)
    for k in range(0, len(gaps), max(1, len(gaps) // 100)):
        period = fitted(slow, gaps[k])
        if not low <= period <= high or (best and period <= best[0]):
            continue
        r = concentration(slow, period)
        p = chances * exp(-len(slow) * r * r)
        step = max(1, n // 1000)
        if r >= 0.8 and p < 0.01 and concentration(starts[::step], period) < 0.5:
            best = round(period), r, len(slow), p
    return [best] if best else []


def rank_p(one, two):
    """Two-sided p of the rank-sum test, by the normal distribution, with ties."""
    order = sorted([(v, 0) for v in one] + [(v, 1) for v in two])
    n, m, rank, at, ties = len(one), len(two), 0.0, 0, 0
    while at < len(order):
        end = at
        while end < len(order) and order[end][0] == order[at][0]:
            end += 1
        rank += sum(1 for _, side in order[at:end] if side == 0) * (at + end + 1) / 2
        ties += (end - at) ** 3 - (end - at)
        at = end
    total = n + m
    variance = n * m / 12 * (total + 1 - ties / (total * (total - 1)))
    return erfc(abs(rank - n * (total + 1) / 2) / sqrt(2 * variance)) if variance > 0 else 1.0


def deviations(values):
    """Of each beginning values[:k], the sum of the absolute deviations from its median: its upper half less
    its lower half, each in a heap."""
    low, high, below, above, out = [], [], 0, 0, [0]
    for v in values:
        if len(low) > len(high):
            moved = -heappushpop(low, -v)
            heappush(high, moved)
            below, above = below + v - moved, above + moved
        else:
            moved = heappushpop(high, v)
            heappush(low, -moved)
            below, above = below + moved, above + v - moved
        out.append(above - below - (low[0] if len(low) > len(high) else 0))
    return out


def split_of(values):
    """(k, deviation): the best split into values[:k] and values[k:], with 8 on both sides."""
    left, right = deviations(values), deviations(values[::-1])
    return min(((left[k] + right[-k - 1], k) for k in range(8, len(values) - 7)), default=(0, 0))[::-1]


def kendall_p(values):
    """Two-sided p of the Mann-Kendall test for a trend."""
    n, s, before = len(values), 0, []
    for v in values:
        s += bisect_left(before, v) + bisect_right(before, v) - len(before)
        insort(before, v)
    counts = {}
    for v in values:
        counts[v] = counts.get(v, 0) + 1
    ties = sum(t * (t - 1) * (2 * t + 5) for t in counts.values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    return erfc(max(abs(s) - 1, 0) / sqrt(2 * variance)) if variance > 0 else 1.0


def change_of(times, values, names):
    """(kind, index of the step, before, after) of a series; None: it is steady. names: how many series."""
    if len(values) < 16:
        return None
    k, left = split_of(values)
    before, after = (percentile(sorted(part), 500) for part in (values[:k], values[k:]))
    if 100 * abs(after - before) >= 3 * before and rank_p(values[:k], values[k:]) < 0.001:
        kind = "step"
    elif kendall_p(values) < 0.01 / names:
        kind = "drift"
    else:
        return None
    pairs = sorted((b - a) / (u - t) for i, (t, a) in enumerate(zip(times, values))
                   for u, b in zip(times[i + 1:], values[i + 1:]) if u > t)
    slope = pairs[len(pairs) // 2] if pairs else 0
    middle = percentile(sorted(values), 500)
    line = sum(abs(v - middle - slope * (t - times[len(times) // 2])) for t, v in zip(times, values))
    if kind == "drift" or line < left * 0.7:
        change = slope * (times[-1] - times[0])
        return ("drift", 0, values[0], round(values[0] + change)) if abs(change) >= 0.03 * middle else None
    return kind, k, before, after


class Drift:
    """rows of DRIFT; tested: how many series; common: (kind, at_ns, percent) if all change by one factor,
    else None."""

    def __init__(self, facts):
        self.rows, self.common, self.tested = [], None, 0
        for device in range(len(facts.jobs.devices)):
            self._device(facts, device)

    def _device(self, facts, device):
        trace, series, first, factors = facts.trace, sampled(facts, device), len(self.rows), []
        self.tested += len(series)
        for (name, number), rows in series.items():
            rows.sort(key=lambda i: trace.start[i])
            times, values = [trace.start[i] for i in rows], [trace.dur[i] for i in rows]
            found = change_of(times, values, len(series))
            if found:
                kind, k, before, after = found
                self.rows.append((name, number, len(rows), kind, times[k] if kind == "step" else times[0],
                                  before, after, pct(after - before, before)))
                factors.append(factor_of(self.rows[-1][7], values, k, len(series)))
        own = self.rows[first:]
        if own and len(own) == len(series):
            # Why no None: what took no time before has no factor.
            changes = sorted(row[7] for row in own if row[7] is not None)
            steps = sorted(row[4] for row in own if row[3] == "step")
            lows, highs = zip(*factors)
            if len(changes) == len(own) and max(lows) <= min(highs):
                at = exact_step(facts, device, steps[len(steps) // 2]) if steps else None
                self.common = "step" if steps else "drift", at, changes[len(changes) // 2]


def factor_of(change, values, k, times):
    """Between which percents the change of one operator lies. k: where it steps; 0: it drifts. Why half a
    percent at least: more than that, operators do not share a clock alike."""
    if change is None:
        return 0, 0
    if not k:
        return change - HALF, change + HALF
    low, high = evidence.interval(sorted(values[:k]), sorted(values[k:]), 500, times)
    return min(low, change - HALF), max(high, change + HALF)


def exact_step(facts, device, near):
    """The start of the first job behind the step. near: the same from samples, good to a few jobs."""
    jobs = facts.jobs
    whole = [k for k in range(len(jobs)) if jobs.inside[k] and jobs.device_of(k) == device]
    place = next((n for n, k in enumerate(whole) if jobs.end[k] > near), 0)
    reach = max(16, 2 * len(whole) // SAMPLES)
    part = whole[max(0, place - reach):place + reach]
    values = [jobs.end[k] - jobs.start[k] for k in part]
    k, _ = split_of(values)
    return jobs.start[part[k]] if part else near


def sampled(facts, device):
    """{(name, instruction or None): rows} of SAMPLES executions of a device, evenly over the window."""
    trace, found = facts.trace, {}
    steps = trace.index.get("instruction_index")
    whole = facts.members.get(device, [])
    if len(whole) > SAMPLES:
        whole = [whole[n * len(whole) // SAMPLES] for n in range(SAMPLES)]
    for _, inside in members(facts, whole):
        for i in inside:
            found.setdefault((trace.text(i), steps[i] if steps else None), []).append(i)
    return {key: rows for key, rows in found.items() if len(rows) >= 16}


def analyse(facts):
    yield Table("warm_up", "Warm-up that is not marked (the first inferences of each thread)", WARM_UP,
                warm_ups(facts), [])
    periods = [(t, as_fraction(r), k, as_fraction(p)) for t, r, k, p in facts.stalls]
    yield Table("stalls", "Stalls at regular times", PERIOD, periods, [])
    yield Table("drift", "Operators that change their duration", DRIFT, facts.drift.rows, [])


def as_fraction(value):
    return Fraction(value).limit_denominator(10**9)
