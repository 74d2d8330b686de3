# SPDX-License-Identifier: MIT
"""Histogram: how many durations there are of each size, in bounded memory and to 1/128 of the duration."""

BITS = 7


class Histogram:
    """cells: {low end of the cell: count}. Below 2^8 a cell is one ns, above it 1/128 of its power of two."""

    def __init__(self):
        self.cells = {}

    def add(self, ns, count=1):
        shift = max(ns.bit_length() - BITS - 1, 0)
        cell = ns >> shift << shift
        self.cells[cell] = self.cells.get(cell, 0) + count

    def join(self, cells):
        for cell, count in cells.items():
            self.cells[cell] = self.cells.get(cell, 0) + count

    def percentile(self, per_mille):
        """The low end of the cell in which the percentile lies; None of nothing."""
        count = sum(self.cells.values())
        place = ((count - 1) * per_mille + 999) // 1000 if count else 0
        for cell in sorted(self.cells):
            if place < self.cells[cell]:
                return cell
            place -= self.cells[cell]
        return None
