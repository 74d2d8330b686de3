# SPDX-License-Identifier: MIT
"""Replays in another order: jobs in the order in which they are submitted, each by the PE of its device that
is free first or by its own queue; and threads that submit more before they wait."""

import heapq
from array import array

from .moments import ARRIVAL, BEGIN, END, LEAVES, NOTICED, REQUEST, SUBMIT, WAIT


class Placed:
    """Stands for a Graph: at[p] is the place of point p in the times."""

    def __init__(self, count):
        self.at = array("i", range(count))


def free_first(points, threads, lags, pes):
    """(times by point, then the ends of the jobs; Placed). pes: by device, how many PEs it has."""
    queues, jobs = points.jobs.queues, points.jobs
    return taken(points, threads, lags, {device: [0] * count for device, count in pes.items()},
                 lambda k: queues[jobs.queue[k]].device)


def first_come(points, threads, lags):
    """The same where each job keeps its queue."""
    queue = points.jobs.queue
    return taken(points, threads, lags, {q: [0] for q in set(queue)}, queue.__getitem__)


def taken(points, threads, lags, free, where):
    """The same; free: {what where(job) says: when each of its places is free}. Jobs without a submission keep
    the job before them."""
    jobs, point = points.jobs, points.point
    times, done = [0] * len(point), {}
    leaves = {one.ref: p for p, one in enumerate(point) if one.kind == LEAVES}
    came, parked, heap, place = set(), {}, [], [0] * len(threads)
    now = [0] * len(threads)

    def walk(t):
        """Goes on with thread t until it submits or has to wait."""
        thread, woken = threads[t], []
        while place[t] < len(thread):
            p = thread[place[t]]
            kind, _, ref = point[p]
            if kind == NOTICED:
                if ref not in done:
                    parked.setdefault(("job", ref), []).append(t)
                    break
                now[t] = max(now[t] + lags.own[p], done[ref] + lags.notice[p])
            elif kind == ARRIVAL:
                if leaves[ref] not in came:
                    parked.setdefault(("point", leaves[ref]), []).append(t)
                    break
                now[t] = max(now[t] + lags.stretch[p], times[leaves[ref]] + lags.arrive[p])
            else:
                now[t] = max(now[t] + lags.stretch[p], lags.held.get(p, 0))
            times[p] = now[t]
            place[t] += 1
            if kind == LEAVES:
                came.add(p)
                woken += parked.pop(("point", p), ())
            elif kind == SUBMIT:
                heapq.heappush(heap, (now[t], ref, t))
                break
        return woken

    def go(ready):
        while ready:
            ready += walk(ready.pop())
    go(list(range(len(threads))))
    while heap:
        s, k, t = heapq.heappop(heap)
        queue = free[where(k)]
        first = heapq.heappop(queue)
        if k in points.dep:
            first = max(first, done.get(points.dep[k], 0))
        done[k] = max(s + lags.latency[k], first + lags.queue[k]) + lags.dur[k]
        heapq.heappush(queue, done[k])
        go([t, *parked.pop(("job", k), ())])
    # Why: without a wait, no point of a thread comes after the last job. A job without a submission stays.
    times += (done.get(k, points.end_of[k]) for k in range(points.count))
    return times, Placed(len(point))


def deepened(points, thread, depth):
    """The points of a thread in the order they would have if it submitted `depth` jobs before it waited for
    the first. As it is, where a thread does not submit and wait in turn."""
    blocks, block, waits = [], [], []
    for p in thread:
        kind = points.point[p].kind
        if kind == WAIT:
            waits.append(len(block))
        # A block is one submission, its wait, and all up to the end of the inference.
        if block and waits and kind not in (NOTICED, WAIT) and ends_block(points, block, kind):
            blocks.append((block[:waits[0]], block[waits[0]:]))
            block, waits = [], []
        block.append(p)
    if depth == 1 or any(sum(points.point[p].kind == SUBMIT for p in first + rest) != 1
                         for first, rest in blocks):
        return thread
    order, pending = [], []
    for first, rest in blocks:
        order += first
        pending.append(rest)
        if len(pending) == depth:
            order += pending.pop(0)
    if waits and sum(points.point[p].kind == SUBMIT for p in block) == 1:
        order += block[:waits[0]]
        pending.append(block[waits[0]:])
        block = []
    for rest in pending:
        order += rest
    return order + block


def ends_block(points, block, kind):
    """True: the point after the block belongs to the next submission."""
    last = points.point[block[-1]].kind
    return kind in (ARRIVAL, REQUEST, BEGIN, SUBMIT) and last in (NOTICED, END)
