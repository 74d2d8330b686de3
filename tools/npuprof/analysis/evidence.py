# SPDX-License-Identifier: MIT
"""What two samples tell of a quantity: whether it changed, and by how much. Each has its own evidence.

A percentile: how many samples may lie below the true one follows the binomial distribution. Two true
percentiles contradict two samples by z^2 = za^2 + zb^2, from the exact (mid-p) tails of both sides. The
interval holds each ratio of them with z^2 below 3.84; p is of the least z^2 with which both are equal.
Nothing is assumed of the form of the distributions.

A mean: Welch's t, and t with the spread of both sides together; the larger p counts. Why the second: a
small sample may have missed the rare long ones that the other side shows. The spread of values of which few
are long is not well known: its degrees of freedom come from the kurtosis. No p is smaller than the chance
that one side holds all of the smallest values.

The ranks (Mann and Whitney) tell two distributions apart, not two percentiles or means.
"""

import math
from bisect import bisect_left, bisect_right
from functools import cache
from statistics import NormalDist

LEAST = 4                                 # samples that tell of a mean
TAIL = 0.025                              # of a 95 % interval, on each side
FAR, REACH = 64.0, 9                      # the largest z^2, and how many sigma lead there


class Standing:
    """z^2 of each count of samples, of `size`, that may lie below their true percentile."""

    def __init__(self, size, per_mille):
        share = per_mille / 1000
        middle = int(size * share)
        reach = int(REACH * math.sqrt(size * share * (1 - share))) + REACH * REACH
        self.first, last = max(0, middle - reach), min(size, middle + reach)
        chances = [chance_of(k, size, share) for k in range(self.first, last + 1)]
        least = [min(pair) for pair in zip(tails(chances), tails(chances[::-1])[::-1])]
        self.squares = [min(FAR, NormalDist().inv_cdf(p) ** 2) if p > 0 else FAR for p in least]
        self.best = self.first + self.squares.index(min(self.squares))

    def of(self, count):
        place = count - self.first
        return self.squares[place] if 0 <= place < len(self.squares) else FAR

    def at(self, ordered, value):
        """The least z^2 if the percentile is this value. Why a range: equal samples may lie on both sides."""
        low, high = bisect_left(ordered, value), bisect_right(ordered, value)
        return self.of(min(max(self.best, low), high))

    def within(self, square):
        """The smallest and the largest count with z^2 up to that; None: there is none."""
        near, far = self.best - self.first + 1, len(self.squares)
        if self.squares[near - 1] > square:
            return None
        low = bisect_left(range(near), -square, key=lambda k: -self.squares[k])
        high = bisect_right(range(near, far), square, key=lambda k: self.squares[k]) + near - 1
        return self.first + low, self.first + high

    def near(self, ordered):
        """The samples between which the percentile may lie."""
        return ordered[max(0, self.first - 1):self.first + len(self.squares)]


def chance_of(k, size, share):
    """The binomial probability of k in `size`."""
    ways = math.lgamma(size + 1) - math.lgamma(k + 1) - math.lgamma(size - k + 1)
    return math.exp(ways + k * math.log(share) + (size - k) * math.log1p(-share))


def tails(chances):
    """Of each, the sum of those before it and half of it."""
    below, out = 0.0, []
    for chance in chances:
        out.append(below + chance / 2)
        below += chance
    return out


@cache
def standing(size, per_mille):
    return Standing(size, per_mille)


def least(per_mille):
    """How many samples a percentile needs, so that its interval ends among them: 5 for p50, 29 for p90, 299
    for p99."""
    share = max(per_mille, 1000 - per_mille) / 1000
    return math.ceil(math.log(2 * TAIL) / math.log(share))


def percentile_p(a, b, per_mille):
    """p of samples this far apart if the percentile of both sides is the same."""
    one, two = standing(len(a), per_mille), standing(len(b), per_mille)
    square = min(one.at(a, value) + two.at(b, value) for value in {*one.near(a), *two.near(b)})
    return math.erfc(math.sqrt(square / 2))


def interval(a, b, per_mille, times=1):
    """The 95 % interval of the change of a percentile, in percent; of so many `times`, one that holds in all
    of them. Both sides have least() or more; with more times, it ends at the outermost samples."""
    inside = NormalDist().inv_cdf(TAIL / times) ** 2
    one, two = standing(len(a), per_mille), standing(len(b), per_mille)
    changes, (first, last) = [], one.within(inside)
    for i in range(first, last + 1):
        counts = two.within(inside - one.of(i))
        if counts:
            changes.append((percent_of(a[min(i, len(a) - 1)], b[max(0, counts[0] - 1)]),
                            percent_of(a[max(0, i - 1)], b[min(counts[1], len(b) - 1)])))
    return min(low for low, _ in changes), max(high for _, high in changes)


def percent_of(before, after):
    if before == after:
        return 0.0
    return 100 * (after - before) / before if before else math.inf


def rank_p(a, b):
    """The two-sided p of Mann and Whitney's U, for two sorted sequences: normal, with corrections for ties
    and continuity."""
    n, m = len(a), len(b)
    i = j = 0
    ranks_of_a, ties = 0, 0
    while i < n or j < m:
        value = a[i] if j == m or (i < n and a[i] <= b[j]) else b[j]
        i0, j0 = i, j
        while i < n and a[i] == value:
            i += 1
        while j < m and b[j] == value:
            j += 1
        same = i - i0 + j - j0
        ranks_of_a += (i - i0) * (2 * (i0 + j0) + same + 1)      # twice the mean rank
        ties += same ** 3 - same
    distance = abs(ranks_of_a / 2 - n * (n + 1) / 2 - n * m / 2)
    variance = n * m / 12 * (n + m + 1 - ties / ((n + m) * (n + m - 1)))
    if variance <= 0:
        return 1.0
    return math.erfc(max(0.0, distance - 0.5) / math.sqrt(2 * variance))


def moments(values):
    """How many, their mean, and the sums of the second and fourth powers of what they are off it."""
    count = len(values)
    middle = sum(values) / count
    squares = [(value - middle) ** 2 for value in values]
    return count, middle, sum(squares), sum(square * square for square in squares)


def freedom(count, second, fourth):
    """The degrees of freedom of a variance: fewer where a few values make it."""
    if not second:
        return count - 1
    return min(count - 1, 2 * count / (count * fourth / second ** 2 - 1 + 2 / (count - 1)))


def t_p(square, degrees):
    """The two-sided p of t^2, by Wallace's approximation."""
    z = math.sqrt(degrees * math.log1p(square / degrees)) * (8 * degrees + 1) / (8 * degrees + 3)
    return math.erfc(z / math.sqrt(2))


@cache
def smallest_p(n, m):
    """The chance that one side holds all of the smallest values."""
    return 2 / math.comb(n + m, n)


def mean_p(a, b):
    """p of means this far apart if the mean of both sides is the same; None: too few to tell."""
    if min(len(a), len(b)) < LEAST:
        return None
    (n, one, a2, a4), (m, two, b2, b4) = moments(a), moments(b)
    square = (one - two) ** 2
    if not square or not a2 + b2:
        return 1.0 if not square else smallest_p(n, m)
    va, vb = a2 / (n - 1) / n, b2 / (m - 1) / m
    welch = (va + vb) ** 2 / (va * va / freedom(n, a2, a4) + vb * vb / freedom(m, b2, b4))
    together = (a2 + b2) / (n + m - 2) * (1 / n + 1 / m)
    return max(t_p(square / (va + vb), welch),
               t_p(square / together, freedom(n + m - 1, a2 + b2, a4 + b4)), smallest_p(n, m))
