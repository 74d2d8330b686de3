# SPDX-License-Identifier: MIT
"""Programs of the device: what one execution consists of, and how long it would take if some of it changed.

Executions with the same instructions and, within 2 %, the same durations are one program; one of them stands
for all. An instruction begins when all these have happened:

    transfer    the transfer before it has ended (one DMA engine)
    data        its own Load has ended; the compute instruction before it has ended, or, where it began inside
                that one, has done the same share of its work: pipelined
    store       the last compute instruction has ended
    tight       another instruction ends within two ticks of its begin, in every execution looked at. So the
                buffer shows that a Load waits for

Each rule counts only where the recorded times obey it. What is left between the latest of them and the begin
stays as a fixed lag; its sum along the path is `unexplained`.

Of a pipelined instruction nobody knows which part of its length is waiting. `matched` says: it works no
longer than the instruction before it lets it; `fixed`: all of its length is work. The truth lies between.
"""

import math
from collections import namedtuple
from operator import add, le, sub

from ..base.contract import NULL
from ..tables.executions import NOT_COMPUTE

ALIKE, KINDS_OF_ONE, SAMPLES = 0.02, 16, 8
# start, end: ns from the begin of the execution. index: instruction_index or -1.
Instruction = namedtuple("Instruction", "name index transfer start end")


class Program:
    """One distinct program. instructions: by index; after: of each the numbers of those that must have ended;
    pipe: (number, share) or None; lag: fixed ns before it; order: numbers in the order of their begin."""

    def __init__(self, instructions, dur, tolerance, others=()):
        self.instructions, self.dur = instructions, dur
        count = len(instructions)
        self.order = sorted(range(count), key=lambda b: (instructions[b].start, instructions[b].end, b))
        self.after, self.pipe, self.lag = [[] for _ in range(count)], [None] * count, [0] * count
        self._transfers(tolerance)
        self._data(tolerance)
        self._tight(tolerance, others)
        place = {b: n for n, b in enumerate(self.order)}
        for b in range(count):
            # Why: what begins later in the same tick cannot have held it up.
            self.after[b] = sorted({a for a in self.after[b] if place[a] < place[b]})
        starts, ends = [0] * count, [0] * count
        for b in self.order:
            # Why in order: what comes before b is complete, what comes after it does not count.
            self.lag[b] = instructions[b].start - self._earliest(b, starts, ends)
            self._place(b, starts, ends)
        self.end_lag = dur - max(ends, default=0)

    def _follows(self, a, b, tolerance):
        return self.instructions[b].start >= self.instructions[a].end - tolerance

    def _transfers(self, tolerance):
        moves = [b for b in self.order if self.instructions[b].transfer]
        for a, b in zip(moves, moves[1:]):
            if self._follows(a, b, tolerance):
                self.after[b].append(a)

    def _data(self, tolerance):
        rows = self.instructions
        compute = [b for b, row in enumerate(rows) if not row.transfer]
        loads = {row.index: b for b, row in enumerate(rows) if row.transfer and row.name != "Store"}
        for b in compute:
            a = loads.get(rows[b].index)
            if a is not None and rows[b].index >= 0 and self._follows(a, b, tolerance):
                self.after[b].append(a)
        compute.sort(key=lambda b: (rows[b].index, rows[b].start) if rows[b].index >= 0
                     else (0, rows[b].start))
        for a, b in zip(compute, compute[1:]):
            if self._follows(a, b, tolerance):
                self.after[b].append(a)
            elif rows[a].start < rows[b].start and rows[a].end > rows[a].start:
                self.pipe[b] = a, (rows[b].start - rows[a].start) / (rows[a].end - rows[a].start)
        for b, row in enumerate(rows):
            if row.name == "Store" and compute and self._follows(compute[-1], b, tolerance):
                self.after[b].append(compute[-1])

    def _tight(self, tolerance, others):
        rows = self.instructions
        ends = sorted((row.end, a) for a, row in enumerate(rows))
        first = 0
        for b in self.order:
            while first < len(ends) and ends[first][0] < rows[b].start - tolerance:
                first += 1
            for end, a in ends[first:first + 16]:
                if end > rows[b].start + tolerance:
                    break
                if a != b and all(abs(other[b].start - other[a].end) <= tolerance for other in others):
                    self.after[b].append(a)

    def _earliest(self, b, starts, ends):
        earliest = max((ends[a] for a in self.after[b]), default=0)
        if self.pipe[b]:
            a, share = self.pipe[b]
            earliest = max(earliest, starts[a] + share * (ends[a] - starts[a]))
        return earliest

    def _work(self, b, fixed):
        """(own work of b, its least time after the end of the one it follows), both before scaling."""
        row = self.instructions[b]
        if not self.pipe[b]:
            return row.end - row.start, None
        a, share = self.pipe[b]
        over = row.end - self.instructions[a].end
        if over < 0:
            return row.end - row.start, None
        if fixed:
            return row.end - row.start, 0
        work = min(row.end - row.start, over / (1 - share) if share < 1 else math.inf)
        return work, (1 - share) * work

    def times(self, scale=None, fixed=False):
        """Starts and ends by number. scale: by number, factors for what is not 1."""
        starts, ends = [0] * len(self.lag), [0] * len(self.lag)
        for b in self.order:
            self._place(b, starts, ends, scale.get(b, 1) if scale else 1, fixed)
        return starts, ends

    def _place(self, b, starts, ends, factor=1, fixed=False):
        """Fills in start and end of b; those before it are known."""
        starts[b] = self._earliest(b, starts, ends) + self.lag[b]
        work, rest = self._work(b, fixed)
        ends[b] = starts[b] + factor * work
        if rest is not None:
            ends[b] = max(ends[b], ends[self.pipe[b][0]] + factor * rest)

    def total(self, scale=None, fixed=False):
        """ns of the execution with those factors."""
        return max(self.times(scale, fixed)[1], default=0) + self.end_lag

    def path(self):
        """Numbers of the instructions that decide when the last one ends, in order."""
        if not self.order:
            return []
        starts, ends = self.times()
        b = max(self.order, key=lambda b: (ends[b], starts[b]))
        path, known = [b], {b}
        while True:
            best, which = None, None
            for a in self.after[b]:
                if best is None or ends[a] > best:
                    best, which = ends[a], a
            if self.pipe[b]:
                a, share = self.pipe[b]
                at = starts[a] + share * (ends[a] - starts[a])
                held = self._work(b, False)
                # It may also be held by the end of the one before, not by its own begin.
                if best is None or at > best or (held[1] is not None and held[0] < ends[b] - starts[b]):
                    best, which = at, a
            if which is None or which in known:
                return path[::-1]
            path.append(which)
            known.add(which)
            b = which

    def slack(self):
        """By number: ns that the instruction may take longer, and the execution does not."""
        starts, ends = self.times()
        last = max(ends, default=0)
        late = [last] * len(ends)                  # when it may end
        for b in reversed(self.order):
            begin = late[b] - (ends[b] - starts[b]) - self.lag[b]
            for a in self.after[b]:
                late[a] = min(late[a], begin)
            if self.pipe[b]:
                a, _ = self.pipe[b]
                late[a] = min(late[a], ends[a] + late[b] - ends[b])
        return [max(0, round(late[b] - ends[b])) for b in range(len(ends))]

    def unexplained(self):
        """ns of fixed lags along the path, without that of its begin."""
        path = self.path()
        return sum(max(0, self.lag[b]) for b in path[1:])

    def factors(self, what, name, k):
        """{number: k} for a change of operators or loads."""
        rows = self.instructions
        if what == "operator":
            return {b: k for b, row in enumerate(rows) if not row.transfer and row.name == name}
        if name is None:
            return {b: k for b, row in enumerate(rows) if row.transfer}
        users = {row.index for row in rows if not row.transfer and row.name == name}
        return {b: k for b, row in enumerate(rows)
                if row.transfer and row.name != "Store" and row.index in users}


class Programs:
    """The distinct programs of the first `count` jobs. of[k]: number in `all`; -1: the execution shows no
    instructions."""

    def __init__(self, trace, jobs, count):
        self.trace, self.all, self.of = trace, [], []
        self.tolerance = 2 * tick_ns(trace)
        _, ends, members = trace.executions
        self.members = members
        self.step = trace.index.get("instruction_index")
        transfer = [text in NOT_COMPUTE for text in trace.names]
        self.transfer = transfer
        alike = {}                                 # key of _ordered() -> [(number, least, most, their sum)]
        samples = []                               # by number: the jobs that it stands for, a few
        self.orders = {}                           # names and steps of rows -> (order, key)
        self.rows = []                             # by job: its rows in the order of the program
        for k in range(count):
            g = jobs.group[k]
            rows, signature = self._ordered(members[ends[g - 1] if g else 0:ends[g]])
            self.rows.append(rows)
            self.of.append(self._known(k, rows, alike.setdefault(signature, []), samples) if rows else -1)
        for jobs_of in samples:
            views = [self._view(jobs.row[k], self.rows[k]) for k in jobs_of]
            self.all.append(Program(views[0], trace.dur[jobs.row[jobs_of[0]]], self.tolerance, views[1:]))

    def _ordered(self, rows):
        """(rows in the order of the program, a key that executions with the same names and steps share)"""
        step, transfer, name, start = self.step, self.transfer, self.trace.name, self.trace.start
        if step is None:
            rows = sorted(rows, key=start.__getitem__)
            return rows, tuple(map(name.__getitem__, rows))
        names, steps = tuple(map(name.__getitem__, rows)), tuple(map(step.__getitem__, rows))
        known = self.orders.get((names, steps))
        if known is None:
            keys = [(s, not transfer[n], n) for n, s in zip(names, steps)]
            # Why None: of two rows that only their starts tell apart either may be the first.
            order = sorted(range(len(keys)), key=keys.__getitem__) if len(set(keys)) == len(keys) else None
            known = self.orders[names, steps] = order, tuple((n, s) for s, _, n in sorted(keys))
        order, signature = known
        if order is None:
            order = sorted(range(len(rows)), key=lambda b: (steps[b], not transfer[names[b]], names[b],
                                                            start[rows[b]]))
        return list(map(rows.__getitem__, order)), signature

    def _known(self, k, rows, known, samples):
        """The number of the program of job k. known: the programs with its names and steps."""
        lengths = list(map(self.trace.dur.__getitem__, rows))
        for number, least, most, _ in known:
            if all(map(le, least, lengths)) and all(map(le, lengths, most)):
                break
        else:
            whole = sum(lengths)
            if len(known) == KINDS_OF_ONE:
                return min(known, key=lambda entry: abs(entry[3] - whole))[0]
            number, near = len(samples), [max(self.tolerance, int(ALIKE * ns)) for ns in lengths]
            known.append((number, list(map(sub, lengths, near)), list(map(add, lengths, near)), whole))
            samples.append([])
        if len(samples[number]) < SAMPLES:
            samples[number].append(k)
        return number

    def _view(self, execution, rows):
        trace, begin = self.trace, self.trace.start[execution]
        return [Instruction(trace.text(i), -1 if self.step is None or self.step[i] == NULL else self.step[i],
                            self.transfer[trace.name[i]], trace.start[i] - begin,
                            trace.start[i] + trace.dur[i] - begin) for i in rows]

    def ratios(self, scales, fixed=False):
        """By program, its new length as a share of the old. scales: a function from a Program to factors."""
        out = []
        for program in self.all:
            scale = scales(program)
            out.append(program.total(scale, fixed) / program.dur if scale and program.dur else 1)
        return out


def tick_ns(trace):
    """The coarsest tick of the devices, in whole ns; at least 1."""
    devices = trace.metadata.get("devices") or ()
    rates = [device.get("clock_sync", {}).get("rate_hz") for device in devices if isinstance(device, dict)]
    rates = [rate for rate in rates if isinstance(rate, (int, float)) and rate > 0]
    return max(1, min(math.ceil(1e9 / min(rates)), 1_000_000)) if rates else 1
