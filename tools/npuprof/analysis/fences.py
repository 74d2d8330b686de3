# SPDX-License-Identifier: MIT
"""Fences: jobs that may wait for one of another device before they start, and no arrow says so.

A driver may submit both at once, and let the second device wait for the first one. Then its jobs start soon
behind an end there. It looks like a slow start; but what makes the first device faster lets the second one
start sooner. So both are replayed. It is taken for possible where half of the jobs of a queue become ready
before the end of a job there and start behind it, and how long behind

    is little beside how long they were ready,
    differs no more from job to job than how long they were ready, and
    differs little beside the time from one end there to the next: by chance it would not.
"""

from bisect import bisect_right

LEAST = 8          # jobs; of fewer nothing is said
SOON = 4           # start within one part of so many of the time since they were ready
STEADY = 8         # times the usual difference is less than the time between two ends


def found(points):
    """{job: the job of another device that it may wait for}"""
    jobs, best, ends = points.jobs, {}, {}
    for q in range(len(jobs.queues)):
        own = sorted((points.end_of[k], k) for k in jobs.of_queue[q] if k < points.count)
        # Why here: of a thousand queues with a job each there are a million pairs.
        if len(own) >= LEAST:
            ends[q] = own
    for q in ends:
        pairs = [own for other in ends if jobs.queues[other].device != jobs.queues[q].device
                 for own in [behind(points, q, ends[other])] if own]
        best |= {k: other for k, other, *_ in min(pairs, key=lambda own: middle(gap for *_, gap, _ in own),
                                                  default=())}
    return best


def behind(points, q, ends):
    """[(job of q, job of the other queue, ns from its end to the start, ns that it was ready)], if jobs of q
    may wait for those; else []. ends: [(ns, job)] of the other queue."""
    jobs, pairs = points.jobs, []
    own = [k for k in jobs.of_queue[q] if k < points.count and k not in points.dep]
    for k in own:
        start, ready = points.start_of[k], points.start_of[k] - points.latency[k]
        n = bisect_right(ends, (start + max(0, jobs.error[k]), points.count)) - 1
        if n >= 0 and ends[n][0] > ready and ends[n][1] < k:
            pairs.append((k, ends[n][1], start - ends[n][0], points.latency[k]))
    if len(pairs) < LEAST or 2 * len(pairs) < len(own):
        return []
    gaps, waits = ([pair[n] for pair in pairs] for n in (2, 3))
    apart = middle(b[0] - a[0] for a, b in zip(ends, ends[1:]))
    is_so = SOON * middle(gaps) <= middle(waits) and spread(gaps) <= spread(waits) \
        and STEADY * spread(gaps) <= apart
    return [pair for pair in pairs if SOON * pair[2] <= pair[3]] if is_so else []


def middle(values):
    ordered = sorted(values)
    return ordered[len(ordered) // 2]


def spread(values):
    """The median distance from the median."""
    usual = middle(values)
    return middle(abs(value - usual) for value in values)
