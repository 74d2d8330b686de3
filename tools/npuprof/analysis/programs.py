# SPDX-License-Identifier: MIT
"""Programs of the device: what its executions consist of, and how long they would take if some of it changed.

Executions with the same instructions are one program. An instruction begins when all these have happened:

    transfer    the transfer before it has ended (one DMA engine)
    data        its own Load has ended; the compute instruction before it has ended, or, where it began inside
                that one, has done the same share of its work: pipelined
    store       the last compute instruction has ended
    tight       another instruction has ended, and in a quarter of the executions looked at within two ticks
                of its begin. So the buffer shows that a Load waits for

Each rule counts only where all of SAMPLES executions obey it, spread over the run and over their lengths.
Then all are checked. Those that do not obey make a program of their own, with what they obey.

Each execution is replayed with its own times. What is left between the latest of the rules and the begin of
an instruction stays as a fixed lag; its sum along the path is `unexplained`.

Of a pipelined instruction nobody knows which part of its length is waiting. `matched` says: it works no
longer than the instruction before it lets it; `fixed`: all of its length is work. The truth lies between.
"""

import math
from array import array
from collections import Counter, namedtuple
from fractions import Fraction
from itertools import pairwise

from .. import loops
from ..base.contract import NULL
from ..tables.executions import transfer_names

# SAMPLES: executions that show the edges, fewer where they have more than LOOKED_AT instructions together.
# ORDERS: of the transfers of the same instructions. ROUNDS: programs of those that did not obey the one
# before.
SAMPLES, LOOKED_AT, ORDERS, ROUNDS = 64, 200_000, 64, 8
# index: instruction_index or -1; out: a transfer of results
Instruction = namedtuple("Instruction", "name index transfer out", defaults=(False,))


class Edges:
    """What each of some instructions waits for, as those views obey it. after: of each the numbers of those
    that must have ended; pair: the number that must have ended or that it keeps pace with, or -1; order:
    numbers in the order of their begin. views: (begins, ends) of executions; the order is of the first."""

    def __init__(self, instructions, views, tolerance):
        self.rows, self.views, self.tolerance = instructions, views, tolerance
        count, (since, until) = len(instructions), views[0]
        self.order = sorted(range(count), key=lambda b: (since[b], until[b], b))
        self.place = [0] * count
        for n, b in enumerate(self.order):
            self.place[b] = n
        self.after, self.pair = [set() for _ in range(count)], [-1] * count
        self._transfers()
        self._data(since)
        self._tight()

    def _follows(self, a, b):
        return all(since[b] >= until[a] - self.tolerance for since, until in self.views)

    def _wait(self, a, b):
        """Why the place: what begins later in the same tick cannot have held it up."""
        if self.place[a] < self.place[b] and self._follows(a, b):
            self.after[b].add(a)

    def _transfers(self):
        for a, b in pairwise(b for b in self.order if self.rows[b].transfer):
            self._wait(a, b)

    def _data(self, begins):
        rows = self.rows
        compute = [b for b, row in enumerate(rows) if not row.transfer]
        loads = {row.index: b for b, row in enumerate(rows) if row.transfer and not row.out}
        for b in compute:
            if rows[b].index >= 0 and rows[b].index in loads:
                self._wait(loads[rows[b].index], b)
        compute.sort(key=lambda b: (rows[b].index, begins[b]) if rows[b].index >= 0 else (0, begins[b]))
        for a, b in pairwise(compute):
            if self.place[a] < self.place[b] and all(
                    since[a] < since[b] or since[b] >= until[a] - self.tolerance
                    for since, until in self.views):
                self.pair[b] = a
        for b, row in enumerate(rows):
            if row.out and compute:
                self._wait(compute[-1], b)

    def _tight(self):
        found = Counter()
        for since, until in self.views:
            ends, first = sorted((end, a) for a, end in enumerate(until)), 0
            for b in sorted(range(len(since)), key=since.__getitem__):
                while first < len(ends) and ends[first][0] < since[b] - self.tolerance:
                    first += 1
                for end, a in ends[first:first + 16]:
                    if end > since[b] + self.tolerance:
                        break
                    if a != b:
                        found[a, b] += 1
        # Why not in all: what holds a Load up may be its buffer in one execution, and the DMA in another.
        few = min(len(self.views), max(3, len(self.views) // 4))
        for (a, b), times in found.items():
            if times >= few:
                self._wait(a, b)


class Program:
    """Executions with the same instructions. own: their loops.Executions; dur: ns of each; obeys: 0 for those
    that disobey an edge and stay as recorded; pipelined: how many pairs are. edges: found in some of them, if
    not given."""

    def __init__(self, instructions, own, tolerance, edges=None):
        self.instructions, self.own, self.marks = instructions, own, None
        self.dur = [own.columns[1][i] for i in own.whole]
        few = min(SAMPLES, max(8, LOOKED_AT // max(1, len(instructions))))
        self.edges = edges or Edges(instructions, [own.times(e) for e in spread(self.dur, few)], tolerance)
        own.edges(self.edges.order, [sorted(before) for before in self.edges.after], self.edges.pair,
                  tolerance)
        self.obeys, self.pipelined = own.obeyed()

    def rows(self, e):
        """The rows of execution e, by number."""
        count = len(self.instructions)
        return self.own.rows[e * count:(e + 1) * count]

    def totals(self, factors, fixed=False):
        """By execution its ns with those factors, by number for what is not 1."""
        count = len(self.instructions)
        return self.own.totals([factors.get(b, 1) for b in range(count)], fixed, self.obeys)

    def path(self, e):
        """Numbers of the instructions that decide when the last one of execution e ends."""
        count = len(self.instructions)
        return [b for b in self.edges.order if self._paths()[0][e * count + b]]

    def unexplained(self):
        """ns of fixed lags along the paths, without those of their begins."""
        return self._paths()[1]

    def _paths(self):
        self.marks = self.marks or self.own.on_path()
        return self.marks

    def slack(self, own):
        """By number: ns that the instruction may take longer, and no execution takes longer than its `own`
        allows."""
        return self.own.slack(own)

    def factors(self, what, name, k):
        """{number: k} for a change of operators or loads."""
        rows = self.instructions
        if what == "operator":
            return {b: k for b, row in enumerate(rows) if not row.transfer and row.name == name}
        if name is None:
            return {b: k for b, row in enumerate(rows) if row.transfer}
        users = {row.index for row in rows if not row.transfer and row.name == name}
        return {b: k for b, row in enumerate(rows)
                if row.transfer and not row.out and row.index in users}


class Programs:
    """The distinct programs of the first `count` jobs. of[k]: number in `all`; -1: the execution shows no
    instructions. place[k]: which of the program's executions it is."""

    def __init__(self, trace, jobs, count):
        self.trace, self.all, self.of, self.place = trace, [], [-1] * count, [-1] * count
        self.tolerance = 2 * tick_ns(trace)
        self.asked, self.told = None, {}           # see totals()
        _, ends, members = trace.executions
        self.step = trace.index.get("instruction_index")
        self.rows = jobs.row
        self.transfer = transfer_names(trace)
        # Names and steps of rows -> (order, number of their key); key -> its number.
        self.orders, self.signatures = {}, {}
        self.moves = {}                            # key -> numbers of its transfers
        alike = {}                                 # key of _ordered() -> {order of transfers: [(job, rows)]}
        for k in range(count):
            g = jobs.group[k]
            rows = members[ends[g - 1] if g else 0:ends[g]]
            if rows:
                rows, signature = self._ordered(rows)
                found = alike.setdefault(signature, {})
                order = self._transfers(rows, signature)
                if order not in found and len(found) >= ORDERS:
                    order = None
                found.setdefault(order, []).append((k, rows))
        for found in alike.values():
            for own in found.values():
                self._add(own)

    def _ordered(self, rows):
        """(rows in the order of the program, a key that executions with the same names and steps share)"""
        step, transfer, name, start = self.step, self.transfer, self.trace.name, self.trace.start
        if step is None:
            rows = array("i", sorted(rows, key=start.__getitem__))
            return rows, loops.permuted(name, rows).tobytes()
        names, steps = loops.permuted(name, rows), loops.permuted(step, rows)
        given = names.tobytes(), steps.tobytes()
        known = self.orders.get(given)
        if known is None:
            keys = [(s, not transfer[n], n) for n, s in zip(names, steps)]
            # Why None: of two rows that only their starts tell apart either may be the first.
            order = sorted(range(len(keys)), key=keys.__getitem__) if len(set(keys)) == len(keys) else None
            if order is not None:
                order = array("i", order)
            # Why counted: equal tuples of so many numbers take long to compare.
            signature = tuple((n, s) for s, _, n in sorted(keys))
            known = self.orders[given] = order, self.signatures.setdefault(signature, len(self.signatures))
        order, signature = known
        if order is None:
            order = array("i", sorted(range(len(rows)), key=lambda b: (
                steps[b], not transfer[names[b]], names[b], start[rows[b]])))
        return loops.permuted(rows, order), signature

    def _transfers(self, rows, signature):
        """In which order the transfers begin; None: as in the program."""
        moves = self.moves.get(signature)
        if moves is None:
            moves = [b for b, i in enumerate(rows) if self.transfer[self.trace.name[i]]]
            self.moves[signature] = moves
        begins = [self.trace.start[rows[b]] for b in moves]
        if begins == sorted(begins):
            return None
        return tuple(sorted(range(len(begins)), key=begins.__getitem__))

    def _instructions(self, rows):
        """The Instruction of each row. A transfer moves results if it is a Store, or by its role and no
        instruction of its number computes after it has begun."""
        trace, transfer = self.trace, self.transfer
        steps = [-1 if self.step is None or self.step[i] == NULL else self.step[i] for i in rows]
        used = {}                     # number -> when its last compute instruction begins
        for i, step in zip(rows, steps):
            if not transfer[trace.name[i]]:
                used[step] = max(trace.start[i], used.get(step, trace.start[i]))
        found = []
        for i, step in zip(rows, steps):
            text, moves = trace.text(i), transfer[trace.name[i]]
            out = text == "Store" or (moves and text != "Load" and used.get(step, NULL) < trace.start[i])
            found.append(Instruction(text, step, moves, out))
        return found

    def _add(self, own):
        """Programs of these (job, rows). Why those that do not obey make another one, and none of the edges
        goes: an edge that 1 of 100 disobeys still says what happens in 99, and a dropped one is a fixed lag
        in all."""
        instructions = self._instructions(own[0][1])
        for left in range(ROUNDS - 1, -1, -1):
            program = self._program(instructions, own)
            rest = [entry for entry, obeys in zip(own, program.obeys) if not obeys] if left else []
            if rest:
                own = [entry for entry, obeys in zip(own, program.obeys) if obeys]
                program = self._program(instructions, own, program.edges)
            for e, (k, _) in enumerate(own):
                self.of[k], self.place[k] = len(self.all), e
            self.all.append(program)
            if not rest:
                return
            own = rest

    def _program(self, instructions, own, edges=None):
        rows = array("i")
        for _, members in own:
            rows += members
        whole = [self.rows[k] for k, _ in own]
        executions = loops.Executions(self.trace.start, self.trace.dur, rows, whole)
        return Program(instructions, executions, self.tolerance, edges)

    def rows_on_path(self, k):
        """Rows of job k that decide when it ends."""
        program, e = self.all[self.of[k]], self.place[k]
        rows = program.rows(e)
        return [rows[b] for b in program.path(e)]

    def totals(self, changes, fixed=False):
        """By program its executions' ns with these changes of operators and loads. The last ones are kept:
        all readings of a gain ask one after the other."""
        if self.asked != changes:
            self.asked, self.told = changes, {}
        if fixed not in self.told:
            self.told[fixed] = [self._total(program, changes, fixed) for program in self.all]
        return self.told[fixed]

    def _total(self, program, changes, fixed):
        factors = {}
        for what, name, k in changes:
            factors |= program.factors(what, name, k)
        return program.totals(factors, fixed) if factors else program.dur

    def unexplained(self):
        """The share of the jobs' time that no rule explains."""
        return Fraction(sum(program.unexplained() for program in self.all),
                        sum(map(sum, (program.dur for program in self.all))) or 1)

    def as_recorded(self):
        """The share of the jobs that no program replays."""
        return Fraction(sum(program.obeys.count(0) for program in self.all), len(self.of) or 1)


def spread(lengths, few):
    """Numbers of about that many executions: the one of median length, then evenly over time and over
    length."""
    count = len(lengths)
    ordered = sorted(range(count), key=lengths.__getitem__)
    half = min(count, few // 2)
    places = range(count) if count <= few else [n * (count - 1) // (half - 1) for n in range(half)]
    return list(dict.fromkeys([ordered[count // 2], *places, *(ordered[n] for n in places)]))


def tick_ns(trace):
    """The coarsest tick of the devices, in whole ns; at least 1."""
    devices = trace.metadata.get("devices") or ()
    rates = [device.get("clock_sync", {}).get("rate_hz") for device in devices if isinstance(device, dict)]
    rates = [rate for rate in rates if isinstance(rate, (int, float)) and rate > 0]
    return max(1, min(math.ceil(1e9 / min(rates)), 1_000_000)) if rates else 1
