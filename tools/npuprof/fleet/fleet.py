# SPDX-License-Identifier: MIT
"""Fleet: the figures of many traces, added one by one in the order of their paths."""

from array import array

from .findings import Findings
from .histogram import Histogram
from .rank import OTHERS, STEPS

NAMES = 20_000     # operators told apart over all ranks
SAME_BOOT = 10**9  # ns that the Unix clock of one host may step between two of its traces


class Fleet:
    """ranks      the dicts of rank.py without what is joined below, each with
                     base_ns     Unix ns of its time 0; of one host by its clock since boot; None: it names no
                                 host, so nobody knows by which clock
                     operators   {number of the name: ns on it}
    left_out   [(file, why)]
    latencies  Histogram of all inferences
    names      names of the operators; of each: ranks, count, total, (worst mean as total and count, its rank)
    steps      by number of the inference: a Step
    findings   Findings: what the verdicts of the ranks say together"""

    def __init__(self):
        self.ranks, self.left_out = [], []
        self.latencies, self.steps = Histogram(), []
        self.names, self.operators = {}, []
        self.findings = Findings()
        self._boots = {}           # host: Unix ns of its boot, by its first trace

    def add(self, rank):
        if "left_out" in rank:
            self.left_out.append((rank["file"], rank["left_out"]))
            return
        number = len(self.ranks)
        self.latencies.join(rank.pop("histogram"))
        rank["base_ns"] = self._base(rank)
        rank["operators"] = self._operators(number, rank["operators"])
        self._steps(number, rank["base_ns"], rank.pop("steps"))
        self.findings.add(number, rank.pop("findings"), rank.pop("missing"))
        self.ranks.append(rank)

    def _base(self, rank):
        if not rank["host"]:
            return None
        if not isinstance(rank["boot_ns"], int):
            return rank["unix_ns"]
        boot = self._boots.setdefault(rank["host"], rank["unix_ns"] - rank["boot_ns"])
        base = boot + rank["boot_ns"]
        return base if abs(base - rank["unix_ns"]) < SAME_BOOT else rank["unix_ns"]

    def _operators(self, number, found):
        keys, totals = array("I"), array("q")
        for name, (count, total) in found.items():
            if name not in self.names and len(self.names) >= NAMES:
                name = OTHERS
            key = self.names.setdefault(name, len(self.names))
            if key == len(self.operators):
                self.operators.append([0, 0, 0, (0, 1), 0])
            entry = self.operators[key]
            entry[0], entry[1], entry[2] = entry[0] + 1, entry[1] + count, entry[2] + total
            if total * entry[3][1] > entry[3][0] * count:
                entry[3], entry[4] = (total, count), number
            keys.append(key)
            totals.append(total)
        return keys, totals

    def _steps(self, number, base, steps):
        for n, (start, end) in enumerate(steps[:STEPS]):
            if n == len(self.steps):
                self.steps.append(Step())
            self.steps[n].add(end - start)
            if base is not None:
                self.steps[n].place(number, base + start, base + end)


class Step:
    """The n-th inference of every rank: when the first and the last rank began and ended it, of the `placed`
    ones, whose clocks can be compared."""

    __slots__ = ("count", "total", "placed", "start", "end")

    def __init__(self):
        self.count = self.total = self.placed = 0
        self.start = self.end = None          # (earliest, latest, rank that was latest)

    def add(self, ns):
        self.count += 1
        self.total += ns

    def place(self, number, start, end):
        self.placed += 1
        self.start, self.end = widened(self.start, start, number), widened(self.end, end, number)


def widened(known, moment, number):
    if known is None:
        return moment, moment, number
    first, last, who = known
    return min(first, moment), max(last, moment), number if moment > last else who
