# SPDX-License-Identifier: MIT
"""What a host thread does at a time: its leaf, the innermost open span."""

import re

from ..base.contract import INFERENCE, NULL, RECORD, WARM_UP
from .arguments import whole_arguments

LOCKS = re.compile("lock|mutex|semaphore", re.I)


class Leaves:
    """Asks the spans of a trace."""

    def __init__(self, trace):
        self.trace, self.finder, self.parents = trace, trace.finder, trace.parents
        self.has_child, self.cpu, self.asleep, self.place = {}, {}, {}, {}

    def pieces(self, track, start, end):
        """[(start, end, row)] that cover [start, end): the leaf of each piece, -1 for none."""
        if start >= end:
            return []
        begun, dur, rows, parents = self.trace.start, self.trace.dur, self.finder.rows, self.parents
        k, first = self._after(track, start)
        leaf = rows[k - 1] if k > first else -1
        while leaf >= 0 and begun[leaf] + dur[leaf] <= start:
            leaf = parents[leaf]
        out, at, last = [], start, self.finder.ends[track]
        while at < end:
            opens = begun[rows[k]] if k < last else end
            closes = begun[leaf] + dur[leaf] if leaf >= 0 else end
            until = min(opens, closes, end)
            if until > at:
                out.append((at, until, leaf))
                at = until
            if at >= end:
                break
            if closes <= at and leaf >= 0:
                leaf = parents[leaf]
                while leaf >= 0 and begun[leaf] + dur[leaf] <= at:
                    leaf = parents[leaf]
            elif k < last and opens <= at:
                if dur[rows[k]]:
                    leaf = rows[k]
                k += 1
        return out

    def _after(self, track, ns):
        """As finder.after(), faster where the moment is soon after the one asked before."""
        k, first = self.place.get(track, (0, 0))
        rows, begun, last = self.finder.rows, self.trace.start, self.finder.ends[track]
        near = min(k + 8, last)
        if k <= first or begun[rows[k - 1]] > ns:
            k, first = self.finder.after(track, ns)
        else:
            while k < near and begun[rows[k]] <= ns:
                k += 1
            if k == near < last:
                k, first = self.finder.after(track, ns)
        self.place[track] = k, first
        return k, first

    def is_container(self, row):
        """True: the span only holds others: record, warm-up, inference, or the outermost of several."""
        if self.trace.kind[row] in (RECORD, WARM_UP, INFERENCE):
            return True
        if self.parents[row] >= 0:
            return False
        known = self.has_child.get(row)
        if known is None:
            start, dur, track = self.trace.start, self.trace.dur, self.trace.track[row]
            rows, last = self.finder.rows, self.finder.ends[track]
            k, _ = self.finder.after(track, start[row])
            inside = k < last and start[rows[k]] < start[row] + dur[row]
            before = k >= 2 and rows[k - 1] != row and start[rows[k - 1]] == start[row]
            known = self.has_child[row] = inside or before
        return known

    def read_cpu(self, threads):
        """Reads cpu_ns of the spans of these tracks, if the trace has such. Of a thread that the kernel saw,
        what it was ready and did not run is off the CPU; what it slept is a wait."""
        trace = self.trace
        if trace.mentions("cpu_ns") or "ftrace" in trace.metadata:
            rows = [i for i, track in enumerate(trace.track) if track in threads]
            values = whole_arguments(trace, rows, ("cpu_ns", "ready_ns", "asleep_ns"))
            for i, cpu, ready, asleep in zip(rows, *values.values()):
                cpu = cpu if ready == NULL else trace.dur[i] - ready
                if cpu != NULL:
                    self.cpu[i] = cpu
                if asleep > 0:
                    self.asleep[i] = asleep

    def slept(self, row, ns):
        """True: the kernel says that at least half of a piece of `ns` of that span was slept."""
        return 2 * self.asleep.get(row, 0) >= ns

    def off_cpu(self, row, ns):
        """True: at least half of a piece of `ns` of that span was spent off the CPU."""
        cpu = self.cpu.get(row)
        return cpu is not None and 2 * (self.trace.dur[row] - cpu) >= ns
