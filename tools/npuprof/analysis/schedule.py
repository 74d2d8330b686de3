# SPDX-License-Identifier: MIT
"""A replay in which each job goes to the PE of its device that is free first."""

import heapq
from array import array

from .graph import ARRIVAL, LEAVES, NOTICED, SUBMIT


class Placed:
    """Stands for a Graph: at[p] is the place of point p in the times."""

    def __init__(self, count):
        self.at = array("i", range(count))


def free_first(points, threads, lags, pes):
    """(times by point, then the ends of the jobs; Placed). pes: by device, how many PEs it has.

    Jobs are taken in the order of their submission; those without one keep the job before them."""
    jobs, point = points.jobs, points.point
    times, done = [0] * len(point), {}
    free = {device: [0] * count for device, count in pes.items()}
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
                now[t] = max(now[t] + lags.stretch[p], times[leaves[ref]] + points.arrive[p])
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
        queue = free[jobs.queues[jobs.queue[k]].device]
        first = heapq.heappop(queue)
        if k in points.dep:
            first = max(first, done.get(points.dep[k], 0))
        done[k] = max(s + lags.latency[k], first + lags.queue[k]) + lags.dur[k]
        heapq.heappush(queue, done[k])
        go([t, *parked.pop(("job", k), ())])
    # Why: without a wait, no point of a thread comes after the last job. A job without a submission stays.
    times += (done.get(k, points.end_of[k]) for k in range(points.count))
    return times, Placed(len(point))
