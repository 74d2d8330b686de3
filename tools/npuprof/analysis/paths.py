# SPDX-License-Identifier: MIT
"""The critical path: what the end of the window, or of an inference, had to wait for, by owner.

It goes back from the end along the moment that decided each other one, so its pieces touch and their sum is
the whole. Owners: a host span by name, "host, no span", the start latency, each operator and transfer on the
path inside a job, "other jobs" (the queue was busy with them), the notice, and the wait for a request.
"""

from collections import namedtuple

from ..tables.arithmetic import both, union
from .graph import ARRIVAL, NOTICED
from .leaves import Leaves
from .window import pauses

# One piece of a path. owner: (kind, name); kind: "host", "dispatch", "operator", "transfer", "queue",
# "notice", "request", "pause". start, end in ns; a start latency may be negative, by the error of the clock.
Piece = namedtuple("Piece", "kind name start end")


class Paths:
    """replay: a Replay whose graph explains the trace."""

    def __init__(self, replay):
        self.replay, self.trace = replay, replay.trace
        self.points, self.graph, self.programs = replay.points, replay.graph, replay.programs
        self.one, self.two = self.graph.lags(self.points.lags())
        self.leaves = Leaves(self.trace)
        self.paused = pauses(self.trace)

    def _decides(self, n):
        """The node that decided node n, or -1."""
        graph, times = self.graph, self.replay.base
        a, b = graph.first[n], graph.second[n]
        if b < 0:
            return a
        return b if times[b] + self.two[n] > (times[a] if a >= 0 else 0) + self.one[n] else a

    def pieces(self, n, since, whole=False):
        """The Pieces from `since` to node n, the latest first. whole: jobs of other inferences by operator,
        too."""
        times, graph, own = self.replay.base, self.graph, True
        while n >= 0 and times[n] > since:
            before, what = self._decides(n), graph.what[n]
            start = max(times[before] if before >= 0 else since, since)
            if what < 0:
                k = -what - 1
                begin = self.points.start_of[k]
                if own or (whole and begin >= since):
                    yield from self.job(k)
                else:
                    begin = max(begin, since)
                    yield Piece("queue", "other jobs", begin, times[n])
                yield Piece("dispatch", "start latency", start, begin)
                # Why: what runs before it in the queue is another inference's.
                own = before == graph.submitted[k]
            elif what < len(self.points.point):
                yield from self._stretch(what, n, before, start, times[n])
                own = own or self.points.point[what].kind == NOTICED
            n = before

    def job(self, k):
        """What was on the path inside job k, the latest first."""
        points, trace = self.points, self.trace
        begin, end = points.start_of[k], points.end_of[k]
        if self.programs.of[k] < 0:
            yield Piece("operator", trace.text(points.jobs.row[k]), begin, end)
            return
        rows, until = sorted(self.programs.rows_on_path(k), key=trace.start.__getitem__), end
        for i in reversed(rows):
            start = max(trace.start[i], begin)
            if start < until:
                transfer = self.programs.transfer[trace.name[i]]
                yield Piece("transfer" if transfer else "operator", trace.text(i), start, until)
                until = start
        if until > begin:
            yield Piece("operator", "before the first instruction", begin, until)

    def _stretch(self, p, n, before, start, end):
        """What a thread did before point p, or why it waited."""
        kind, _, ref = self.points.point[p]
        if kind == NOTICED and before == self.graph.second[n]:
            yield Piece("notice", "notice", start, end)
        elif kind == ARRIVAL and before == self.graph.second[n]:
            yield Piece("request", "from another thread", start, end)
        else:
            base, leaves = self.points.thread[p], self.leaves
            for a, b, row in reversed(leaves.pieces(base, start, end)):
                name = "no span" if row < 0 or leaves.is_container(row) else self.trace.text(row)
                paused = both(union([(a, b)]), self.paused).length() if self.paused else 0
                if paused:
                    yield Piece("pause", "not recorded", a, a + paused)
                if paused < b - a:
                    yield Piece("host", name, a + paused, b)

    # ---- Sums

    def whole(self):
        """The Pieces of the path of the window, the latest first."""
        points, graph, times = self.points, self.graph, self.replay.base
        if points.inferences:
            n = max((graph.at[p] for p in points.end), key=lambda n: (times[n], n))
            since = min(times[graph.at[p]] for p in points.begin)
        else:
            n = max(graph.done, key=lambda n: (times[n], n))
            since = min(points.start_of)
        return self.pieces(n, since, True)

    def of_inference(self, number):
        """The Pieces of the path of one inference of points.inferences."""
        points, graph, times = self.points, self.graph, self.replay.base
        return self.pieces(graph.at[points.end[number]], times[graph.at[points.begin[number]]])


def by_owner(pieces):
    """{(kind, name): (count, ns)}"""
    found = {}
    for kind, name, start, end in pieces:
        count, ns = found.get((kind, name), (0, 0))
        found[kind, name] = count + 1, ns + end - start
    return found


def slack_of(graph, one, two, times, last):
    """By node: ns that it may come later, and node `last` does not."""
    late = [2**62] * len(times)
    late[last] = times[last]
    for n in range(len(times) - 1, -1, -1):
        for before, lag in ((graph.first[n], one[n]), (graph.second[n], two[n])):
            if before >= 0 and late[n] - lag < late[before]:
                late[before] = late[n] - lag
    return [a - b for a, b in zip(late, times)]

