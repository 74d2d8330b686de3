# SPDX-License-Identifier: MIT
"""The dependency graph of a trace: what each thread did between its submissions and waits, and the jobs.

A node is a moment; its time is the latest of up to two moments before it, each with a lag:

    point of a thread   the point before it, plus the time between them
    job (its end)       the begin of its submission, and the end of the job before it in its queue, each plus
                        start latency and execution
    end of a wait       the begin of the wait, and the end of the job, plus the notice
    arrival             the point before it, and the other end of an arrow between threads, or of what seems
                        to be handed over (handovers.py)
    request             the point before it, and a time of its own if requests do not react (requests.py)

Where the device was done before the wait began, no notice is known: the median of the others stands for it,
else 0. The nodes are in an order in which each comes after those it depends on, so one pass gives all times.
"""

from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from operator import itemgetter

from .. import loops
from ..base.contract import NULL, UNFINISHED
from . import handovers, requests
from .jobs import MARKED
from .moments import (ARRIVAL, BEGIN, END, LEAVES, NOTICED, OF_JOB, REQUEST, RETURN, SUBMIT, WAIT, Point)
from .part import name_of, rows_of

MOST = 50_000              # jobs in one graph; longer traces are replayed up to there
NEVER = -2**62
FIXED = -2                 # of a node's second: no node, but a time
TIME = itemgetter(1)


@dataclass
class Lags:
    """What a replay may change, all in ns. By job: latency (from its submission to its begin), queue (from
    the end of the job before it), dur. By point: stretch (time from the point before), arrive (from the other
    end of an arrow), notice, own (least time of a wait), held (no earlier than that moment)."""
    latency: array
    queue: array
    dur: array
    stretch: array
    arrive: dict = field(default_factory=dict)
    notice: dict = field(default_factory=dict)
    own: dict = field(default_factory=dict)
    held: dict = field(default_factory=dict)


def window_of(trace, jobs):
    """The number of jobs that are replayed, and the last moment of their points."""
    count = min(len(jobs), MOST)
    if count == len(jobs):
        return count, max([*jobs.end, *(n for n in jobs.n if n != NULL)], default=0) + 2**61
    return count, jobs.start[count]


class Points:
    """All points by thread, with their lags as recorded. point[p], of thread t: threads[t] lists p in order.

    waits: of each job (begin, end) of the wait of its thread, or None. all_work: only what says that it waits
    is a wait. Otherwise what may be one, by its name or as a stretch (stretches.py) or a handover, is all
    waiting. handed: {arrow of a handover: its lag}; handing: names of the spans that end so.

    inferences: rows, those replayed; begin[i], end[i]: the points of inference i. start_of[k], end_of[k]: of
    job k, as recorded. waited: {point: ns before it that may be waiting for a request}; ticking: those that
    may be waiting for a clock, {point: (ns before it, periods)}; late: {first point of a thread: ns that it
    may have been late}. asked: stretches that end with a REQUEST, by number."""

    def __init__(self, trace, jobs, inferences, all_work=False, handing=True):
        self.trace, self.jobs = trace, jobs
        self.count, self.until = window_of(trace, jobs)
        self.joins = handovers.joins(trace, jobs) if handing and self.count == len(jobs) else {}
        self.waits = [self._wait(k, all_work) for k in range(self.count)]
        # Why not jobs.start: that is moved within the clock's error, one job at a time.
        self.start_of = array("q", (trace.start[jobs.row[k]] for k in range(self.count)))
        self.end_of = array("q", (trace.start[i] + trace.dur[i] for i in jobs.row[:self.count]))
        self.inferences = [i for i in inferences if trace.start[i] + trace.dur[i] <= self.until]
        found = {}                                 # thread -> points
        # Why submissions, too: no replay moves the first one, so no end comes before it.
        self.first = min([*self.start_of, *(jobs.s[k] for k in range(self.count)
                                            if jobs.thread[k] >= 0 and jobs.s[k] != NULL)],
                         default=min((trace.start[i] for i in self.inferences), default=0))
        self._of_jobs(found)
        self._of_inferences(found)
        number = self._arrows(found)
        self.handed, self.handing = {}, set()
        self._handovers(found, number, handing and not all_work)
        self._of_requests(found)
        self.point, self.threads, self.thread = [], [], []
        self.inference_number = {row: n for n, row in enumerate(self.inferences)}
        for thread in sorted(found):
            self._order(found[thread])
            self.threads.append(list(range(len(self.point), len(self.point) + len(found[thread]))))
            self.point += found[thread]
            self.thread += [thread] * len(found[thread])
        self._lags(all_work)
        self._places()
        self.waited, self.late = requests.waited(self), requests.late(self)
        self.ticking = requests.ticking(self)

    def _wait(self, k, all_work):
        jobs = self.jobs
        if k in jobs.slept:
            return jobs.slept[k][:2]
        if jobs.wait[k] in self.joins:
            return None
        if jobs.wait[k] >= 0 and (jobs.sure[k] or not all_work):
            end = jobs.w[k] + self.trace.dur[jobs.wait[k]]
            if jobs.sure[k] == MARKED or all_work:
                return jobs.w[k] if jobs.look[k] == NULL else jobs.look[k], end
            # Why not its begin: of several looks only the last is paired, and all of them may be waiting.
            return min(jobs.s[k], end), end
        return None if all_work else jobs.stretches.of.get(k)

    def _order(self, points):
        """Sorts the points of a thread: as they happen, and within one ns as the inferences come."""
        begins = sorted((point.time, point.ref) for point in points if point.kind == BEGIN)
        moments, jobs = [time for time, _ in begins], self.jobs
        number = self.inference_number

        def key(point):
            kind, time, ref = point
            inference = None
            if kind in (BEGIN, END):
                inference = ref
            elif kind in OF_JOB:
                inference = number.get(jobs.inference[ref])
            if inference is None:
                n = bisect_right(moments, time) - 1
                inference = begins[n][1] if n >= 0 else -1
            # A wait that takes no time ends after its begin, any other before all else.
            if kind == NOTICED and time == self.waits[ref][0]:
                kind = WAIT + 0.5
            return inference, kind, ref
        points.sort(key=TIME)
        times, first = list(map(TIME, points)), 0
        for n, time in enumerate([*times[1:], None], 1):
            if time != times[first]:
                if n - first > 1:
                    points[first:n] = sorted(points[first:n], key=key)
                first = n

    def _of_jobs(self, found):
        jobs = self.jobs
        for k in range(self.count):
            if jobs.thread[k] >= 0:
                points = found.setdefault(jobs.thread[k], [])
                points.append(Point(SUBMIT, jobs.s[k], k))
                wait = self.waits[k]
                # Why not inside of a wait: that is no work which takes so long.
                if not wait or wait[0] > jobs.s[k] or wait[1] <= jobs.S[k]:
                    points.append(Point(RETURN, max(jobs.s[k], jobs.S[k]), k))
                if wait and wait[0] >= jobs.s[k]:
                    points.append(Point(WAIT, self.waits[k][0], k))
                    points.append(Point(NOTICED, self.waits[k][1], k))

    def _of_inferences(self, found):
        trace = self.trace
        for number, i in enumerate(self.inferences):
            points = found.setdefault(trace.tracks[trace.track[i]].base, [])
            points.append(Point(BEGIN, trace.start[i], number))
            points.append(Point(END, trace.start[i] + trace.dur[i], number))

    def _of_requests(self, found):
        self.asked = requests.stretches(self, found)
        for n, one in enumerate(self.asked):
            found[one.base].append(Point(REQUEST, one.end, n))

    def _arrows(self, found):
        """Arrows to a thread with points, forward in time, from all but devices, as (from point, to point) by
        number."""
        trace, number, tracks = self.trace, 0, self.trace.tracks
        if all(trace.names[n] in ("submit", "dep") for n in set(trace.flows.name)):
            return 0
        for flow in trace.flows:
            source, target = tracks[flow.from_track], tracks[flow.to_track]
            if source.kind == "device" or target.kind != "thread" or source.base == target.base:
                continue
            if target.base in found and flow.from_ns <= flow.to_ns <= self.until:
                comes = requests.comes(trace, flow)
                found.setdefault(source.base, []).append(Point(LEAVES, min(flow.from_ns, comes), number))
                found[target.base].append(Point(ARRIVAL, comes, number))
                number += 1
        return number

    def _handovers(self, found, number, all_of_them):
        """Where one thread seems to wait for another. Why a point at its begin: what comes before is work.
        all_of_them: not only where it waits for the end of others."""
        trace, jobs = self.trace, self.jobs
        known = {*self.joins, *jobs.wait[:self.count], *jobs.submit[:self.count], *trace.parents}
        told, leaving = ({base: sorted(one.time for one in points if one.kind == kind)
                          for base, points in found.items()} for kind in (ARRIVAL, LEAVES))

        def may_wait(name, begin, end, base, row):
            since, row = (begin, None) if name == handovers.NO_SPAN else (end, row)
            hears = bisect_left(told[base], since) < bisect_right(told[base], end + handovers.AT_ONCE)
            return not (hears or row in known or name in jobs.stretches.names or end > self.until)
        others = [*handovers.follows(found), *handovers.found(trace, sorted(found), may_wait)] \
            if all_of_them else ()
        for one in (*self.joins.values(), *others):
            found[one.base].append(Point(LEAVES, one.begin, number))
            self.handing |= {trace.names[one.name]} if one.name >= 0 else set()
            one = handovers.until_sent(one, leaving[one.base])
            for base, ns in one.moments:
                number += 1
                self.handed[number] = one.lag
                found[base].append(Point(LEAVES, ns, number))
                found[one.base].append(Point(ARRIVAL, one.end, number))
            number += 1

    def _lags(self, all_work):
        """Every lag as recorded."""
        jobs, point = self.jobs, self.point
        self.before = array("i", map(self._holds_up, range(self.count)))
        self.dep = self._dependencies()
        self.dur = array("q", (self.end_of[k] - self.start_of[k] for k in range(self.count)))
        self.latency = array("q", bytes(8 * self.count))
        for k in range(self.count):
            self.latency[k] = self.start_of[k] - max(self._ready(k), default=0)
        self.stretch = array("q", bytes(8 * len(point)))
        for points in self.threads:
            for a, b in zip([None, *points], points):
                self.stretch[b] = point[b].time - (point[a].time if a is not None else 0)
        # Of a wait for several jobs the last of them decides; the points of the others are no moments.
        last, of = {}, [wait and (jobs.thread[k], wait[1]) for k, wait in enumerate(self.waits)]
        for k, key in enumerate(of):
            if key:
                last[key] = max(last.get(key, NULL), self.end_of[k])
        waits = [p for p, one in enumerate(point) if one.kind == NOTICED]
        late = [p for p in waits if last[of[point[p].ref]] > self.waits[point[p].ref][0]]
        self.notice = {p: point[p].time - last[of[point[p].ref]] for p in late}
        self.early = {p for p in waits if p not in self.notice}
        self.shared = {p for p in late if self.end_of[point[p].ref] < last[of[point[p].ref]]}
        known = sorted(self.notice.values())
        self.usual_notice = known[len(known) // 2] if known else None
        own = {p: self.stretch[p] for p in self.early}
        # Why: where no wait was early, the shortest notice may be work that the thread does in each of them.
        least = min(own.values(), default=known[0] if known else 0)
        self.own = {p: own.get(p, min(least, max(0, self.stretch[p]))) for p in waits}
        for p in late if all_work else ():
            k = point[p].ref
            if k in jobs.slept:
                self.own[p] = min(jobs.slept[k][2], self.stretch[p])
        # An early wait that is over as soon behind the job's end as others may have taken nothing of its own.
        sooner = {p for p in self.early if known and point[p].time - self.end_of[point[p].ref] <= known[-1]}
        least = min((own[p] for p in self.early - sooner), default=0)
        self.own_at_least = {p: 0 if p in sooner else ns if p in self.early else min(ns, least)
                             for p, ns in self.own.items()}
        for p in self.early:
            # Why not more: the host did notice by then.
            k = point[p].ref
            self.notice[p] = min(self.usual_notice or 0, point[p].time - self.end_of[k])
        self._waiting()

    def _holds_up(self, k):
        """The job before it in its queue; -1 if the thread had noticed the end of that one before it
        submitted. Why: so the order is known, and no stamp of the host is compared with one of the
        device."""
        jobs, b = self.jobs, self.jobs.before[k]
        if b >= 0 and self.waits[b] and jobs.thread[b] == jobs.thread[k] >= 0:
            if self.waits[b][1] <= jobs.s[k]:
                return -1
        return b

    def _ready(self, k):
        """The moments after which job k could begin."""
        jobs = self.jobs
        if jobs.s[k] != NULL and jobs.thread[k] >= 0:
            yield jobs.s[k]
        if self.before[k] >= 0:
            yield self.end_of[self.before[k]]
        if k in self.dep:
            yield self.end_of[self.dep[k]]

    def fence(self, found):
        """Makes jobs wait for those: {job: the job before it}."""
        self.dep |= found
        for k in found:
            self.latency[k] = self.start_of[k] - max(self._ready(k), default=0)

    def _dependencies(self):
        """{job: the job whose result it needs} from arrows named dep."""
        trace, jobs, found = self.trace, self.jobs, {}
        columns = trace.flows.named("dep")
        if not len(columns[0]):
            return found
        place = {(trace.tracks[trace.track[jobs.row[k]]].base, self.start_of[k]): k
                 for k in range(self.count)}
        for from_track, from_ns, to_track, to_ns in zip(*columns):
            a = place.get((trace.tracks[from_track].base, from_ns), -1)
            b = place.get((trace.tracks[to_track].base, to_ns), -1)
            if 0 <= a < b and self.end_of[a] <= self.start_of[b]:
                found[b] = a
        return found

    def _waiting(self):
        """What of the time before an arrival was only waiting for it: none if it had come before the thread
        was ready. The first moment of a thread that is an arrival was waited for."""
        leaves = {one.ref: one.time for one in self.point if one.kind == LEAVES}
        first = {thread[0] for thread in self.threads if thread}
        self.arrive = {}
        for p, one in enumerate(self.point):
            if one.kind == ARRIVAL and one.ref in self.handed:
                # Why shared: of several moments the last one decides.
                self.arrive[p], self.stretch[p] = self.handed[one.ref], 0
                if leaves[one.ref] + self.arrive[p] < one.time:
                    self.shared.add(p)
            elif one.kind == ARRIVAL:
                ready = one.time - self.stretch[p]
                if leaves[one.ref] > ready or p in first:
                    self.arrive[p], self.stretch[p] = one.time - leaves[one.ref], 0
                else:
                    self.arrive[p] = 0

    def _places(self):
        none = array("i", [-1]) * len(self.inferences)
        self.begin, self.end = none[:], none
        for p, one in enumerate(self.point):
            if one.kind in (BEGIN, END):
                (self.begin if one.kind == BEGIN else self.end)[one.ref] = p

    def lags(self):
        """A fresh copy of everything that a replay may change."""
        return Lags(self.latency[:], self.latency[:], self.dur[:], self.stretch[:], dict(self.arrive),
                    dict(self.notice), dict(self.own))


class Graph:
    """Nodes in an order for one pass. threads: lists of points, in another order than recorded if you like;
    then all jobs of a queue hold each other up.

    node of a point: at[p]; of a job's end: done[k]. first, second: the nodes before each, -1 for none; a
    second of FIXED is a time of its own.
    stuck: points and jobs that were never reached; anything but 0 is a contradiction."""

    def __init__(self, points, threads=None):
        self.points = points
        self.threads = points.threads if threads is None else threads
        self.before = points.before if threads is None else points.jobs.before
        self.at, self.done = array("i", [-1]) * len(points.point), array("i", [-1]) * points.count
        self.first, self.second = array("i"), array("i")
        # what each node is: a point p as p, the end of job k as -k - 1
        self.what = array("i")
        self._place()
        self.recorded = None                       # lags() of nothing changed; made when first asked for
        self.stuck = sum(n < 0 for n in self.at) + sum(n < 0 for n in self.done)

    def _add(self, what, first, second):
        number = len(self.what)
        self.what.append(what)
        self.first.append(first)
        self.second.append(second)
        return number

    def _place(self):
        """Walks all threads as far as what they need is there."""
        points, count = self.points, self.points.count
        self.leaves = {one.ref: p for p, one in enumerate(points.point) if one.kind == LEAVES}
        self.waiting = {}                          # ("job", k) or ("point", p) -> what to go on with
        self.next = [0] * len(self.threads)
        self.submitted = array("i", [-1]) * count
        ready = [("thread", t) for t in range(len(self.threads))]
        ready += [("job", k) for k in range(count) if points.jobs.thread[k] < 0]
        ready.reverse()
        while ready:
            kind, number = ready.pop()
            ready += self._walk(number) if kind == "thread" else self._run(number)

    def _walk(self, t):
        points, at, thread, woken, n = self.points, self.at, self.threads[t], [], self.next[t]
        point = points.point
        before = at[thread[n - 1]] if n else -1
        while n < len(thread):
            p, other = thread[n], -1
            kind, _, ref = point[p]
            if kind == NOTICED:
                other = self.done[ref]
                if other < 0:
                    self.waiting.setdefault(("job", ref), []).append(("thread", t))
                    break
            elif kind == ARRIVAL:
                other = at[self.leaves[ref]]
                if other < 0:
                    self.waiting.setdefault(("point", self.leaves[ref]), []).append(("thread", t))
                    break
            elif p in points.waited:
                other = FIXED
            before = at[p] = self._add(p, before, other)
            n += 1
            if kind == SUBMIT:
                self.submitted[ref] = before
                woken.append(("job", ref))
            elif kind == LEAVES:
                woken += self.waiting.pop(("point", p), ())
        self.next[t] = n
        return woken

    def _run(self, k):
        points = self.points
        if self.done[k] >= 0 or (points.jobs.thread[k] >= 0 and self.submitted[k] < 0):
            return ()
        for other in (self.before[k], points.dep.get(k, -1)):
            if other >= 0 and self.done[other] < 0:
                self.waiting.setdefault(("job", other), []).append(("job", k))
                return ()
        ready = [self.submitted[k], self.done[self.before[k]] if self.before[k] >= 0 else -1]
        if k in points.dep and points.dep[k] != self.before[k]:
            # A node of its own for the third: the later of both jobs before.
            other = self.done[points.dep[k]]
            ready[1] = other if ready[1] < 0 else self._add(len(points.point), ready[1], other)
        self.done[k] = self._add(-k - 1, *ready)
        return self.waiting.pop(("job", k), ())

    def lags(self, lags):
        """The lag of both edges of each node, as two arrays."""
        points = self.points
        if lags.held or (lags.stretch, lags.arrive, lags.notice, lags.own) != (
                points.stretch, points.arrive, points.notice, points.own):
            one, two = self._of_points(lags)
        else:
            # Why kept: most changes are of jobs alone.
            if self.recorded is None:
                self.recorded = self._of_points(lags)
            one, two = self.recorded[0][:], self.recorded[1][:]
        first, second = self.first, self.second
        for n, latency, queue, dur in zip(self.done, lags.latency, lags.queue, lags.dur):
            if n < 0:
                continue
            # A job without a submission has only the job before it.
            one[n] = NEVER if first[n] < 0 <= second[n] else latency + dur
            two[n] = queue + dur
        return one, two

    def _of_points(self, lags):
        """lags() without those of the jobs."""
        one, two = array("q", bytes(8 * len(self.what))), array("q", bytes(8 * len(self.what)))
        if self.stuck:
            return one, two
        for n, ns in zip(self.at, lags.stretch):
            one[n] = ns
        for p, ns in lags.own.items():
            one[self.at[p]], two[self.at[p]] = ns, lags.notice[p]
        for p, ns in lags.arrive.items():
            two[self.at[p]] = ns
        for p in self.points.waited:
            two[self.at[p]] = lags.held.get(p, NEVER)
        return one, two

    def times(self, lags):
        """The time of every node."""
        one, two = self.lags(lags)
        return loops.latest(self.first, one, self.second, two)


def overlaps(points, rows, own):
    """{point: ns} of the stretch before each point that lies in those host spans, children not counted if
    `own`."""
    trace, found = points.trace, {}
    by_thread = {points.thread[thread[0]]: thread for thread in points.threads if thread}
    times = {base: [points.point[p].time for p in thread] for base, thread in by_thread.items()}

    def put(i, sign):
        base = trace.tracks[trace.track[i]].base
        moments = times.get(base)
        if not moments:
            return
        start, end = trace.start[i], trace.start[i] + trace.dur[i]
        n = bisect_right(moments, start)
        while n < len(moments) and start < end:
            until = min(end, moments[n])
            p = by_thread[base][n]
            if until > start and n:
                found[p] = found.get(p, 0) + sign * (until - start)
            start = max(start, until)
            n += 1
    chosen = set(rows)
    for i in rows:
        put(i, 1)
    for i in trace.host_rows if own and chosen else ():
        if trace.parents[i] in chosen and trace.tracks[trace.track[i]].kind == "thread":
            put(i, -1)
    return found


def host_rows(trace, points, name):
    """Rows of the finished host spans of that name on threads with points, in the part that is replayed.
    name: also a Part (part.py)."""
    bases = set(points.thread)
    return rows_of(name, trace, [i for i in named_rows(trace, name_of(name), points.until)
                                 if trace.tracks[trace.track[i]].base in bases])


def named_rows(trace, name, until):
    """Rows of the finished host spans of that name that begin by then."""
    numbers = {n for n, text in enumerate(trace.names) if text == name}
    return [i for i in trace.host_rows if trace.name[i] in numbers and trace.start[i] <= until
            and not trace.flags[i] & UNFINISHED]

