# SPDX-License-Identifier: MIT
"""All lines that pass above some points and below others: exact, in whole numbers and fractions.

A device's stamp x and the host's time of it differ by shift + drift * x. A cause on the host says that this
is at least y, an effect on the host that it is at most y: so a line must pass above the lower points and
below the upper ones. For a drift r, the least shift is low(r) = max(y - r x) over the lower points, the
greatest is high(r) = min(y - r x) over the upper ones. low - high is convex and made of straight pieces,
whose corners are the slopes of the edges of the two hulls. Where it is 0 or less, there is a line."""

from bisect import bisect_left
from fractions import Fraction
from functools import cached_property


class Hull:
    """The upper hull of points: those that decide max(y - r x) for some r."""

    def __init__(self, points):
        highest = {}
        for x, y in points:
            highest[x] = max(y, highest.get(x, y))
        self.points = []
        for x, y in sorted(highest.items()):
            while len(self.points) > 1 and self.below(*self.points[-2:], (x, y)):
                self.points.pop()
            self.points.append((x, y))
        pairs = zip(self.points, self.points[1:])
        self.slopes = [Fraction(y1 - y0, x1 - x0) for (x0, y0), (x1, y1) in pairs]       # falling
        self.rising = [-slope for slope in self.slopes]

    @staticmethod
    def below(a, b, c):
        """True: b is not above the line from a to c."""
        return (b[0] - a[0]) * (c[1] - a[1]) >= (c[0] - a[0]) * (b[1] - a[1])

    def at(self, r):
        x, y = self.points[bisect_left(self.rising, -r)]
        return y - r * x

    def touched(self, r):
        """The points, one or two, that decide at(r)."""
        first = bisect_left(self.rising, -r)
        return [p for p in self.points[first:first + 2] if p[1] - r * p[0] == self.at(r)]


class Lines:
    """The lines above `lower` and below `upper`, both lists of (x, y) of whole numbers."""

    def __init__(self, lower, upper):
        self.lower = Hull(lower) if lower else None
        self.upper = Hull([(x, -y) for x, y in upper]) if upper else None      # turned around

    def low(self, r):
        """The least shift for a drift; None: there is no limit."""
        return self.lower.at(r) if self.lower else None

    def high(self, r):
        return -self.upper.at(-r) if self.upper else None

    def excess(self, r):
        """By how much the least shift is above the greatest."""
        return self.low(r) - self.high(r)

    @cached_property
    def corners(self):
        """[(drift, excess)] where the excess bends, rising by drift."""
        slopes = {*self.lower.slopes, *(-slope for slope in self.upper.slopes)} or {Fraction(0)}
        return [(r, self.excess(r)) for r in sorted(slopes)]

    @cached_property
    def drifts(self):
        """(least, greatest) drift of all lines; None in it: no limit. None: there is no line."""
        if not (self.lower and self.upper):
            return None, None
        corners = self.corners
        (first, at_first), (last, at_last) = corners[0], corners[-1]
        before = self.upper.points[0][0] - self.lower.points[-1][0]       # how the excess rises there
        after = self.upper.points[-1][0] - self.lower.points[0][0]
        if at_first <= 0:
            least = first - at_first / before if before < 0 else None
        elif before > 0:
            return None, first - at_first / before
        else:
            least = self.crossing(corners)
        if at_last <= 0:
            greatest = last - at_last / after if after > 0 else None
        elif after < 0:
            return last - at_last / after, None
        else:
            greatest = self.crossing(corners[::-1])
        return None if at_first > 0 and least is None else (least, greatest)

    @staticmethod
    def crossing(corners):
        """Where the excess first is no more above 0; None: nowhere."""
        for (r0, e0), (r1, e1) in zip(corners, corners[1:]):
            if e1 <= 0:
                return r0 + (r1 - r0) * e0 / (e0 - e1)
        return None

    def shifts(self, drifts):
        """(least, greatest) shift of all lines with a drift in that range, if no x is below 0."""
        least, greatest = drifts
        return (None if greatest is None else self.low(greatest), None if least is None else self.high(least))

    def smallest(self):
        """(shift, drift) that change least: no drift if that can be, then the shift nearest to 0."""
        drift = nearest(*self.drifts)
        return nearest(self.low(drift), self.high(drift)), drift

    def contradiction(self):
        """(by how much, the lower and the upper points of it), where there is no line."""
        drift, excess = min(self.corners, key=lambda corner: corner[1])
        lower = self.lower.touched(drift)
        upper = [(x, -y) for x, y in self.upper.touched(-drift)]
        for one, others in ((lower, upper), (upper, lower)):
            for point in one:
                beside = others if others[0][0] <= point[0] <= others[-1][0] else ()
                equal = [other for other in others if other[0] == point[0]]
                if beside:
                    found = equal[:1] or list(beside)
                    return excess, *(([point], found) if one is lower else (found, [point]))
        return excess, lower, upper


def nearest(least, greatest):
    """The number of a range that is nearest to 0."""
    if least is not None and least > 0:
        return least
    return greatest if greatest is not None and greatest < 0 else Fraction(0)
