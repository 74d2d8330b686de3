# the map of device ticks against an oracle in fractions: true, at most 1.1 times as wide as the best that the
# same anchors allow, and no wider by one anchor more
# SPDX-License-Identifier: MIT
import itertools
import math
import random
import statistics
import unittest
from fractions import Fraction

import helpers
from helpers import run, scratch

SECOND = 10 ** 9


class Clock:
    """A device clock whose rate stays within `ppb` of a centre, and reads of it with random delays."""

    def __init__(self, chance, ppb, hz, spacing, delay):
        self.pieces, host, ticks = [], 1e9, 1e6
        for _ in range(60):
            slope = SECOND / hz * (1 + chance.uniform(-ppb, ppb) * 1e-9)
            self.pieces.append((ticks, host, slope))
            ticks += 1e8 / slope
            host += 1e8
        self.chance, self.ppb, self.anchors, at = chance, ppb, [], 1.01e9
        for _ in range(48):
            at += chance.uniform(0.2, 1.8) * spacing
            width = delay * (1 + 3 * chance.random())
            self.anchors.append(self.read(at, width))

    def read(self, at, width):
        begin = at - self.chance.random() * width
        return math.floor(self.ticks(at)), math.floor(begin), math.ceil(begin + width)

    def ticks(self, at):
        ticks, host, slope = max(p for p in self.pieces if p[1] <= at)
        return ticks + (at - host) / slope

    def host(self, at):
        ticks, host, slope = max(p for p in self.pieces if p[0] <= at)
        return host + (at - ticks) * slope


def window_of(anchors, ticks):
    """The anchors around some ticks that are within half a second, at most 8 on each side, at least one."""
    last = max(i for i, a in enumerate(anchors) if a[0] <= ticks)
    first, end = last, last + 1
    while first and last - first < 8 and (first == last or
                                          anchors[last][2] - anchors[first - 1][1] <= SECOND / 2):
        first -= 1
    while end + 1 < len(anchors) and end - last <= 8 and \
            (end == last + 1 or anchors[end + 1][2] - anchors[last + 1][1] <= SECOND / 2):
        end += 1
    return anchors[first:end + 1]


def best(anchors, ppb, ticks):
    """The width of what the anchors allow at some ticks: two linear programmes, in the slope and the time."""
    base, zero = anchors[0][0], anchors[0][1]
    upper = [(x - base, Fraction(after - zero)) for x, _, after in anchors]
    lower = [(x + 1 - base, Fraction(before - zero)) for x, before, _ in anchors]
    span = Fraction(anchors[-1][2] - anchors[0][1], SECOND)
    r = Fraction(ppb, 10 ** 9) * max(1, span)
    smallest = max((low - high) / ((x - y) * (1 + r)) for (x, low), (y, high) in
                   itertools.product(lower, upper) if x > y)
    largest = min((high - low) / ((y - x) * (1 - r)) for (x, low), (y, high) in
                  itertools.product(lower, upper) if y > x)
    ends = []
    for points, at, sign in ((upper, ticks + 1 - base, 1), (lower, ticks - base, -1)):
        lines = [(sign * h, sign * (at - x) * (1 + (r if (at >= x) == (sign > 0) else -r)))
                 for x, h in points]
        rates = {smallest, largest}
        for (h, s), (g, t) in itertools.combinations(lines, 2):
            if s != t and smallest <= (g - h) / (s - t) <= largest:
                rates.add((g - h) / (s - t))
        ends.append(max(min(h + s * c for h, s in lines) for c in rates))
    return float(ends[0] + ends[1])


class Map(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = helpers.build("map_ticks.c", "map_ticks")

    def mapped(self, anchors, ppb, asked):
        """[(host, error)] of the library."""
        lines = [f"{ppb} {SECOND} {len(anchors)}", *(" ".join(map(str, a)) for a in anchors)]
        lines += map(str, asked)
        asking = scratch() / "map.txt"
        asking.write_text("\n".join(lines))
        done = run([self.program, asking])
        found = [tuple(map(int, line.split())) for line in done.stdout.splitlines()]
        self.assertTrue(len(found) == len(asked) and all(good for good, _, _ in found))
        return [(host, error) for _, host, error in found]

    def test_oracle(self):
        chance, ratios = random.Random(24), []
        for hz, spacing, delay in ((10 ** 8, 125e6, 3000), (10 ** 9, 30e6, 800), (24 * 10 ** 6, 60e6, 3000)):
            clock = Clock(chance, 2000, hz, spacing, delay)
            first, last = clock.anchors[0][0], clock.anchors[-1][0]
            asked = sorted(chance.randrange(first, last) for _ in range(300))
            found = self.mapped(clock.anchors, 2000, asked)
            for ticks, (host, error) in zip(asked, found):
                self.assertLessEqual(abs(clock.host(ticks) - host), error)
                self.assertLessEqual(abs(clock.host(ticks + 0.999) - host), error)
            for ticks, (host, error) in list(zip(asked, found))[::25]:
                ratios.append(2 * error / best(window_of(clock.anchors, ticks), 2000, ticks))
        print(f"note map / optimum: median {statistics.median(ratios):.3f}, at most {max(ratios):.3f}")
        self.assertLess(statistics.median(ratios), 1.1)
        self.assertLess(max(ratios), 1.25)

    def test_one_anchor_more(self):
        """A new anchor, narrow or 730 us wide, never widens a bound by more than 10 %."""
        chance = random.Random(6)
        clock = Clock(chance, 2000, 10 ** 8, 100e6, 3000)
        asked = sorted(chance.randrange(clock.anchors[0][0], clock.anchors[-1][0]) for _ in range(100))
        before = self.mapped(clock.anchors, 2000, asked)
        for width in (1000, 3000, 1460000):
            at = clock.host(clock.anchors[20][0]) + 40e6
            more = sorted([*clock.anchors, clock.read(at, width)])
            after = self.mapped(more, 2000, asked)
            for (_, error), (_, was) in zip(after, before):
                self.assertLess(error, was * 1.1 + 20)

    def test_behind_a_pair(self):
        """The last two reads lie close together: the rate is that of the reads before, not of the pair."""
        clock = Clock(random.Random(9), 2000, 10 ** 9, 1e9, 3000)
        anchors = [clock.read(at, 4000) for at in (1.1e9, 1.2e9, 2.2e9, 3.2e9, 3.20011e9)]
        ticks = math.floor(clock.ticks(3.6e9))
        (host, error), = self.mapped(anchors, 2000, [ticks])
        self.assertLessEqual(abs(clock.host(ticks + 0.5) - host), error)
        self.assertLess(error, 15_000)
