# SPDX-License-Identifier: MIT
"""Requests: where a thread may have waited for the next one, and nothing says when that came.

Times of requests are not in a trace, unless an arrow comes from who sent them. A server that waits in
epoll_wait() and a loop that is just ready again look the same, but only the second one does more if the
device gets faster. So these times are replayed as waiting and as work:

    in a span whose name sounds like it (WORDS), with no job of its thread under way; else
    before an inference, behind the one before it; without inferences before a submission, behind the last
    notice

A span counts by its name alone, the others if they are 2 % of the time. It is no wait for requests if the
loop is closed: where an inference took 1 ms longer, the next one began 1 ms later, and no few gaps are much
longer than the others. For that all pairs of them are compared (the slopes' median, and its 99 % interval
by Kendall's statistic).
"""

import re
from bisect import bisect_left
from math import sqrt

from ..base.contract import INFERENCE
from .moments import ARRIVAL, BEGIN, END, LEAVES, NOTICED, REQUEST, RETURN, SUBMIT

WORDS = {"recv", "recvfrom", "recvmsg", "accept", "epoll", "select", "listen", "dequeue", "request",
         "requests"}
PART = re.compile("[A-Z]?[a-z]+|[A-Z]+")
SHARE = 50         # gaps of less than one part of so many are no waiting
MOST = 300         # inferences that are compared
LEAST = 8
AT_ONCE = 50_000   # ns: an arrow that ends so soon behind the begin of an inference is why it began


def comes(trace, flow):
    """When what an arrow to a thread brings was there."""
    row = trace.finder.at(flow.to_track, flow.to_ns)
    while row >= 0 and trace.kind[row] != INFERENCE:
        row = trace.parents[row]
    return trace.start[row] if row >= 0 and flow.to_ns - trace.start[row] <= AT_ONCE else flow.to_ns


def spans(points, of_thread):
    """Rows of the spans that sound like waiting for a request, by thread: {base: [row]}. None of those at
    whose end an arrow comes. of_thread: {base: its Points so far}."""
    trace, jobs, finder, found = points.trace, points.jobs, points.trace.finder, {}
    names = [not WORDS.isdisjoint(word.lower() for word in PART.findall(text)) for text in trace.names]
    if not any(names):
        return found
    under_way = {}
    for k in range(points.count):
        if jobs.thread[k] >= 0:
            until = max(jobs.end[k], points.waits[k][1] if points.waits[k] else 0)
            under_way.setdefault(jobs.thread[k], []).append((jobs.s[k], until))
    for base, pairs in under_way.items():
        pairs.sort()
        arrivals = sorted(one.time for one in of_thread[base] if one.kind == ARRIVAL)
        begins, until = [s for s, _ in pairs], []
        for _, end in pairs:
            until.append(max(end, until[-1] if until else end))
        for i in finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]:
            start, end = trace.start[i], trace.start[i] + trace.dur[i]
            if names[trace.name[i]] and start < end <= points.until:
                n = bisect_left(begins, end)
                told = bisect_left(arrivals, start) < bisect_left(arrivals, end + AT_ONCE)
                if not told and (not n or until[n - 1] <= start):
                    found.setdefault(base, []).append(i)
    return found


def gaps(points, thread):
    """[(point, ns before it, ns that the one before it took)] of the inferences of a thread behind its first,
    or of its submissions."""
    point, found = points.point, []
    inside = any(point[p].kind == BEGIN for p in thread)
    first, last = (BEGIN, END) if inside else (SUBMIT, NOTICED)
    under_way, since, ended, told = 0, None, None, None
    for p in thread:
        kind, time, _ = point[p]
        if kind == first:
            if not under_way and ended is not None and told != time:
                found.append((p, time - ended, ended - since))
            if not under_way:
                since = time
            under_way += 1
        elif kind == last or (kind == RETURN and first == SUBMIT and not points.waits[point[p].ref]):
            under_way, ended = max(0, under_way - 1), time
        elif kind == ARRIVAL:
            told = time
    return found


def is_closed(points, found):
    """True: the next one begins when the one before it has ended, and nobody waits in between."""
    waited, whole = sum(before for _, before, _ in found), sum(before + took for _, before, took in found)
    if SHARE * waited <= whole:
        return True
    # Why: where most begin at once and some much later, those had nothing to do.
    if waited > 2 * len(found) * sorted(before for _, before, _ in found)[len(found) // 2]:
        return False
    step = max(1, len(found) // MOST)
    low, high = slope([took for _, _, took in found[::step]],
                      [before + took for _, before, took in found[::step]])
    return low > 0.5 and low <= 1.003 and high >= 0.997


def slope(x, y):
    """(low, high): the 99 % interval of the slope of y on x."""
    n = len(x)
    found = sorted((y[j] - y[i]) / (x[j] - x[i]) for i in range(n) for j in range(i) if x[i] != x[j])
    if n < LEAST or not found:
        return float("-inf"), float("inf")
    spread = 2.576 * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return (found[max(0, int((len(found) - spread) / 2))],
            found[min(len(found) - 1, int((len(found) + spread) / 2))])


def waited(points):
    """{point: ns before it in which its thread may have waited for a request}"""
    trace, found = points.trace, {}
    for thread in points.threads:
        own = [p for p in thread if points.point[p].kind == REQUEST]
        found |= {p: min(points.stretch[p], trace.dur[points.point[p].ref]) for p in own}
        pairs = [] if own else gaps(points, thread)
        if pairs and not is_closed(points, pairs):
            found |= {p: before for p, before, _ in pairs if before > 0}
    return found


def late(points):
    """{first point of a thread: ns that it may have been late}: of threads that come after a job has ended
    already. Why: they had nothing to do yet, or no processor, as the last one of a pool on a busy machine."""
    point, found = points.point, {}
    first = [thread[0] for thread in points.threads
             if any(point[p].kind in (BEGIN, SUBMIT) for p in thread) and point[thread[0]].kind != LEAVES]
    ended = min(points.end_of, default=None)
    least = min((ns for p, ns in points.arrive.items() if ns > 0), default=0)
    for p in first if ended is not None else ():
        if point[p].time > ended:
            ns = points.arrive[p] - least if point[p].kind == ARRIVAL else \
                point[p].time - min(point[q].time for q in first)
            found |= {p: ns} if ns > 0 else {}
    return found


def come(points, lags):
    """Makes late threads come as soon as the others, in the lags of a replay."""
    for p, ns in points.late.items():
        own = lags.arrive if points.point[p].kind == ARRIVAL else lags.stretch
        own[p] = max(0, own[p] - ns)


def hold(points, lags):
    """Makes requests come when they did, in the lags of a replay."""
    for p, before in points.waited.items():
        kind, time, _ = points.point[p]
        # Why: without inferences what comes before a submission is work for it, too.
        lags.held[p] = time + (lags.stretch[p] - points.stretch[p] if kind == SUBMIT else 0)
        lags.stretch[p] = max(0, lags.stretch[p] - before)
