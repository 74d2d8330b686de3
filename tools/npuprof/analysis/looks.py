# SPDX-License-Identifier: MIT
"""Looks: what becomes of the notice of an end that a change moves, where threads poll. replay: a Replay.

A driver that looks by a clock also sets the pace of its thread: the next job begins behind a tick, so its
end is noticed as late as the one before. Then neither the notices nor the ends show how often it looks. But
the ends of the waits keep to a clock, and the ends of the jobs less so (ticks.py). There an end may be seen
at the tick at which it was, or at once.
"""

from . import ticks
from .bounds import INSIDE
from .polls import waits


# Why more than ticks.BETTER: where requests come by a clock, jobs and waits both keep to it, and the usual
# distance of fifty of them from its ticks is off by a sixth.
BETTER = 1.5


def tick_of(jobs, own):
    """ns between two ticks at which waits for those jobs end, or a multiple; None: they do not."""
    found = sorted(waits(jobs, own), key=jobs.n.__getitem__)
    threads = sorted({jobs.thread[k] for k in found})
    return next(filter(None, (ticks.period_of(*zip(*((jobs.end[k], jobs.n[k]) for k in found
                                                     if jobs.thread[k] == thread)), BETTER)
                              for thread in threads)), None)


def keeps_tick(replay, changes):
    """ns between two ticks, if these changes move what is seen at them, and nothing else says when; None."""
    kinds = {change[0] for change in changes}
    is_new = not replay.poll or ("host" in kinds and replay.polls_by_clock)
    return replay.tick if is_new and "notice" not in kinds else None


def is_slower(changes):
    return any(k is not None and k > 1 for what, _, k in changes if what in (*INSIDE, "host"))


def poll_of(replay, changes):
    """How late a poll may see an end that these changes move, ns; None."""
    names = {change[0] for change in changes}
    if not replay.poll or "notice" in names:
        return None
    # Why: looks that are counted from the begin of the wait move with what the host does before it.
    moved = names & {*INSIDE, "dispatch"} or ("host" in names and replay.polls_by_clock)
    return replay.poll if moved else None


def is_moved(replay, changes):
    """True: looks are by a clock, and what the host does sooner moves ends against it."""
    return replay.poll and replay.polls_by_clock and any(change[0] == "host" for change in changes)


def look(replay, lags, changes, early, most):
    """Sets the notices of polls that look each `most` ns: the earliest or the latest there may be. Why not
    any: a job that ends earlier is seen no later than it was, and one that ends later no earlier. Where
    only the latest notice is known, and not how often they look, that one is no bound of the next."""
    points, cap = replay.points, most if replay.poll_is_period else float("inf")
    moved, slower = is_moved(replay, changes), is_slower(changes)
    for p, ns in lags.notice.items():
        k = points.point[p].ref
        sooner = points.latency[k] + points.dur[k] - lags.latency[k] - lags.dur[k]
        # Why nine tenths: how often they look is not known to the ns.
        same = not replay.polls_by_clock and 0 <= sooner and 10 * (ns + sooner) < 9 * most
        if moved:
            lags.notice[p] = 0 if early else max(ns, most) if slower else ns
        elif points.before[k] >= 0:
            lags.notice[p] = 0 if early else max(ns, most)
        elif same:
            lags.notice[p] = ns + sooner
        elif early:
            lags.notice[p] = max(0, ns + sooner) if sooner <= 0 else 0
        else:
            lags.notice[p] = max(ns, min(cap, ns + sooner)) if sooner >= 0 else max(ns, most)
