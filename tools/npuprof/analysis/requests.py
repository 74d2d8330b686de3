# SPDX-License-Identifier: MIT
"""Requests: where a thread may have waited for the next one, and nothing says when that came.

Times of requests are not in a trace, unless an arrow comes from who sent them. A server that waits in
epoll_wait() and a loop that is just ready again look the same, but only the second one does more if the
device gets faster. So these times are replayed as waiting and as work:

    in a span whose name sounds like it (WORDS), or that waits, but for no job, while none of its thread is
    under way; else
    before an inference, behind the one before it; without inferences before a submission, behind the last
    notice

A span counts by its name alone, also where it takes the next frame of a camera or a display; the others if
they are 2 % of the time. So does a stretch that ends by a clock (ticks.py), whatever its name is. Who waits
for a clock may have taken an earlier tick, too, if it had been ready. It is no wait for requests if the loop
is closed: where an inference took 1 ms longer, the next one began 1 ms later, and no few gaps are much longer
than the others. For that all pairs of them are compared (the slopes' median, and its 99 % interval by
Kendall's statistic).
"""

import re
from bisect import bisect_left, bisect_right
from collections import namedtuple
from functools import partial
from itertools import accumulate
from math import ceil, sqrt

from ..base.contract import INFERENCE
from . import effects, ticks
from .leaves import Leaves
from .moments import ARRIVAL, BEGIN, END, LEAVES, NOTICED, REQUEST, RETURN, SUBMIT

WORDS = {"recv", "recvfrom", "recvmsg", "accept", "epoll", "select", "listen", "dequeue", "request",
         "requests"}
CAMERA = {"dqbuf", "vsync", "vblank"}
CLOCK = {"sleep", "usleep", "nanosleep", "frame", "tick", *CAMERA}
TAKES = {"next", "get", "grab", "read", "acquire", "capture", "wait", "pop", "take"}   # of a queue, a frame
PART = re.compile("[A-Z]?[a-z]+|[A-Z]+")
SHARE = 50         # gaps of less than one part of so many are no waiting
MOST = 300         # inferences that are compared
LEAST = 8
TICK_MAY_BE_OFF = 0.05             # of the time between two
SHORT = 1000       # ns: a shorter stretch waits for nothing
AT_ONCE = 50_000   # ns: an arrow that ends so soon behind the begin of an inference is why it began
# base: a thread; begin, end: when it may have waited; periods: ns between two ticks of the clock that it may
# have waited for, one or several; () for requests
Stretch = namedtuple("Stretch", "base begin end periods")


def comes(trace, flow):
    """When what an arrow to a thread brings was there."""
    row = trace.finder.at(flow.to_track, flow.to_ns)
    while row >= 0 and trace.kind[row] != INFERENCE:
        row = trace.parents[row]
    return trace.start[row] if row >= 0 and flow.to_ns - trace.start[row] <= AT_ONCE else flow.to_ns


def stretches(points, of_thread):
    """[Stretch]: where threads may wait for a request, by a name or by a clock. None of those at whose end an
    arrow comes. of_thread: {base: its Points so far}."""
    trace, leaves, found = points.trace, Leaves(points.trace), []
    known = set(points.jobs.wait)
    for base, (begins, until) in sorted(under_way(points).items()):
        arrivals = sorted(one.time for one in of_thread[base] if one.kind == ARRIVAL)
        sites, short, whole = {}, {}, until[-1] - begins[0]
        for begin, end, row in leaves.pieces(base, begins[0], until[-1]):
            n = bisect_left(begins, end)
            # Why not at its begin: that one ended the wait before it.
            told = bisect_right(arrivals, begin) < bisect_left(arrivals, end + AT_ONCE)
            if end <= points.until and not told and row not in known \
                    and (not n or until[n - 1] <= begin):
                of = sites if end - begin >= SHORT else short
                of.setdefault(trace.name[row] if row >= 0 else -1, []).append((begin, end))
        for name, own in sorted(sites.items()):
            periods = site(points, name, own, whole)
            # Why short ones, too: a request that was there came no later than it was taken, and maybe then.
            own += short.get(name, ()) if periods == () else ()
            found += [Stretch(base, *one, periods) for one in own] if periods is not None else []
    return found


def words_of(text):
    return {word.lower() for word in PART.findall(text)}


def site(points, name, own, whole):
    """None: nothing says that such stretches wait. Else the periods of the clock that they may wait for.
    own: [(begin, end)]; whole: ns of which they are a part."""
    words = words_of(points.trace.names[name] if name >= 0 else "")
    is_clock, waits = words & CLOCK, name >= 0 and points.jobs.names[name]
    asks = words & WORDS or ("queue" in words and words & TAKES)
    by_name = asks or words & CAMERA or ("frame" in words and words & TAKES)
    if SHARE * sum(end - begin for begin, end in own) < whole and not by_name:
        return None
    begins, ends = zip(*own)
    period = ticks.period_of(begins, ends)
    if not period and not is_clock:
        return () if waits or asks else None
    usual = period or sorted(map(int.__sub__, ends[1:], ends))[len(own) // 2 - 1] if len(own) > 1 else 0
    longest = sorted(map(int.__sub__, ends, begins))[len(own) * 19 // 20]
    # Why parts of it: who always takes each second tick looks as if they came half as often.
    least = longest * (1 - TICK_MAY_BE_OFF)
    return tuple(usual / n for n in range(1, ticks.PARTS + 1) if usual / n > least) or (longest,)


def under_way(points):
    """{base: (begins, until)}: the submissions of each thread in order, and up to when at the latest a job
    was under way that was submitted by then."""
    jobs, pairs, found = points.jobs, {}, {}
    for k in range(points.count):
        if jobs.thread[k] >= 0:
            until = max(jobs.end[k], points.waits[k][1] if points.waits[k] else 0)
            pairs.setdefault(jobs.thread[k], []).append((jobs.s[k], until))
    for base, own in pairs.items():
        own.sort()
        found[base] = [s for s, _ in own], list(accumulate((end for _, end in own), max))
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
    usual = sorted(before for _, before, _ in found)[len(found) // 2]
    if SHARE * waited <= whole:
        # Why not so few: a thread loses the CPU now and then.
        return sum(before > 2 * usual + AT_ONCE for _, before, _ in found) < LEAST
    # Why: where most begin at once and some much later, those had nothing to do.
    if waited > 2 * len(found) * usual:
        return False
    step = max(1, len(found) // MOST)
    low, high = slope([took for _, _, took in found[::step]],
                      [before + took for _, before, took in found[::step]])
    return low > 0.5 and low <= 1.003 and high >= 0.997


def slope(x, y):
    """(low, high): the 99 % interval of the slope of y on x."""
    n, found, points = len(x), [], list(zip(x, y))
    for i, (a, b) in enumerate(points):
        found += [(y - b) / (x - a) for x, y in points[:i] if x != a]
    found.sort()
    if n < LEAST or not found:
        return float("-inf"), float("inf")
    spread = 2.576 * sqrt(n * (n - 1) * (2 * n + 5) / 18)
    return (found[max(0, int((len(found) - spread) / 2))],
            found[min(len(found) - 1, int((len(found) + spread) / 2))])


def waited(points):
    """{point: ns before it in which its thread may have waited for a request}"""
    found = {}
    for thread in points.threads:
        own = [p for p in thread if points.point[p].kind == REQUEST]
        found |= {p: min(points.stretch[p], one.end - one.begin)
                  for p in own for one in [points.asked[points.point[p].ref]]}
        pairs = [] if own else gaps(points, thread)
        if pairs and not is_closed(points, pairs):
            found |= {p: before for p, before, _ in pairs if before > 0}
    return found


def ticking(points):
    """{point: periods} of those of them that may have waited for a clock."""
    return {p: points.asked[points.point[p].ref].periods for p in points.waited
            if points.point[p].kind == REQUEST and points.asked[points.point[p].ref].periods}


def late(points):
    """{first point of a thread: ns that it may have been late}: of threads that come after a job has ended
    already. Why: they had nothing to do yet, or no processor, as the last one of a pool on a busy machine."""
    point, found = points.point, {}
    first = [thread[0] for thread in points.threads
             if any(point[p].kind in (BEGIN, SUBMIT) for p in thread) and point[thread[0]].kind != LEAVES]
    ended = min(points.end_of, default=None)
    least = min((ns for p, ns in points.arrive.items() if ns > 0), default=0)
    earliest = min((point[p].time for p in first), default=0)
    for p in first if ended is not None else ():
        if point[p].time > ended:
            ns = points.arrive[p] - least if point[p].kind == ARRIVAL else point[p].time - earliest
            if ns > 0:
                found[p] = ns
    return found


def come(replay, lags):
    """Makes late threads come as soon as the others, in the lags of a replay."""
    points = replay.points
    for p, ns in points.late.items():
        own = lags.arrive if points.point[p].kind == ARRIVAL else lags.stretch
        own[p] = max(0, own[p] - ns)


def readings(replay, effect):
    """(what sets when requests come, what is not known) of each reading but the first one, of which this is
    the Effect."""
    points = replay.points
    if replay.working and not points.waited:
        points = replay.working.points
    if points.waited:
        yield hold, effects.TICK if points.waited.keys() == points.ticking.keys() else effects.REQUEST
    if points.ticking:
        yield partial(ticked, 0), effects.TICK
    if points.ticking and effect.window[0] < 0:
        yield partial(ticked, 1), effects.TICK
    if points.late:
        yield come, effects.LATE


def ticked(is_late, replay, lags):
    """Makes who waits for a clock take the first tick for which it is ready, in the lags of a replay.
    is_late: one more where it is ready just before it. Who works no longer than it did takes no later one."""
    points = replay.points
    ready = points.lags()
    ready.__dict__ |= vars(lags) | {"stretch": lags.stretch[:]}
    for p, before in points.waited.items():
        ready.stretch[p] = max(0, ready.stretch[p] - before)
    times, at, last = replay.graph.times(ready), replay.graph.at, {}
    for p in sorted(points.ticking, key=lambda p: points.point[p].time):
        a = last.get(points.thread[p])
        last[points.thread[p]] = p
        if a is None:
            continue
        was, works = points.point[p].time - points.point[a].time, times[at[p]] - times[at[a]]
        periods = points.ticking[p]
        new = max(next_tick(works, period, True) for period in periods) if is_late else \
            min(next_tick(works, ns, False) for period in periods for ns in may_be(period, points.waited[p]))
        is_slower = works > was - points.waited[p]
        lags.stretch[p] = ready.stretch[p] + round((max if is_slower else min)(new, was)) - works


def may_be(period, waited):
    """The periods that a clock may have which seems to have this one. None is shorter than a thread waited.
    Why: who takes each second tick of a clock looks as who takes each third one of a faster clock."""
    found = [ns for ns in (period, period / 2, period * 3 / 2, period * 3) if ns > waited]
    return found or [period]


def next_tick(ns, period, is_late):
    """The first tick behind work of so many ns since the last one. Why not sharply: ticks are not exact."""
    return ceil(ns / period + (2 * is_late - 1) * TICK_MAY_BE_OFF) * period


def hold(replay, lags):
    """Makes requests come when they did, in the lags of a replay."""
    points = replay.points
    for p, before in points.waited.items():
        kind, time, _ = points.point[p]
        # Why: without inferences what comes before a submission is work for it, too.
        lags.held[p] = time + (lags.stretch[p] - points.stretch[p] if kind == SUBMIT else 0)
        lags.stretch[p] = max(0, lags.stretch[p] - before)
