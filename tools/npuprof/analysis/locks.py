# SPDX-License-Identifier: MIT
"""Locks: do the threads that submit wait for one another, although no arrow says so?

Where a thread lets go of what another one waits for, that one goes on at once. So the notices of each thread
are looked at: how many of them are followed within AT_ONCE by another thread that ends what it was in? It may
be chance; how often chance does that is seen with the same notices, moved by SHIFTS other times. A span whose
name says so (SAYS) is believed, if handovers.py has not shown what it waits for."""

import re
from bisect import bisect_left

from .moments import ARRIVAL, NOTICED

AT_ONCE = 50_000   # ns
MOST = 2000        # notices that are looked at
SHIFTS = 12
SAYS = re.compile("lock|mutex|semaphore|barrier|join|cond|fence|sync|wait", re.I)
SHARE = 50         # spans of less than one part of so many of the time are no matter


def wait_for_each_other(points):
    """True: it looks as if they did."""
    pairs = [(p.time, points.thread[thread[0]]) for thread in points.threads
             for p in map(points.point.__getitem__, thread) if p.kind == NOTICED]
    if len({base for _, base in pairs}) < 2:
        return False
    pairs = sorted(pairs)[::len(pairs) // MOST + 1]
    # Why not these: it is known what ends there.
    known = {(points.point[p].time, points.thread[thread[0]]) for thread in points.threads for p in thread
             if p in points.notice
             or (points.point[p].kind == ARRIVAL and points.point[p].ref in points.handed)}
    changes = sorted(one for base in {base for _, base in pairs} for one in changes_of(points.trace, base)
                     if one not in known)
    length = pairs[-1][0] - pairs[0][0]

    def handed_over(shift):
        return sum(goes_on(changes, base, ns + shift) for ns, base in pairs)
    seen = handed_over(0)
    # Why a tenth of the whole at most: the others do the same things then.
    chance = sorted(handed_over(length * (n + 1) // (10 * SHIFTS)) for n in range(SHIFTS))
    return 4 * seen >= len(pairs) and seen > 2 * chance[SHIFTS // 2]


def says_so(points):
    """True: threads that submit are in spans that sound like waiting, and not for a job."""
    trace, jobs, known = points.trace, points.jobs, points.handing
    threads = {points.thread[thread[0]] for thread in points.threads} & set(jobs.thread)
    names = {n for n, text in enumerate(trace.names) if SAYS.search(text) and text not in known}
    names -= {trace.name[row] for row in jobs.wait if row >= 0} | jobs.stretches.names
    if len(threads) < 2 or not names:
        return False
    times = [one.time for one in points.point]
    spent = sum(trace.dur[i] for i, n in enumerate(trace.name) if n in names and trace.track[i] in threads)
    return SHARE * spent >= len(threads) * (max(times) - min(times))


def changes_of(trace, base):
    """[(ns, thread)]: when it went from what it was in for AT_ONCE or longer to something else."""
    finder = trace.finder
    rows = finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]
    moments = sorted({ns for i in rows for ns in (trace.start[i], trace.start[i] + trace.dur[i])})
    return [(ns, base) for before, ns in zip(moments, moments[1:]) if ns - before >= AT_ONCE]


def goes_on(changes, base, ns):
    """True: another thread ends at once what it was in."""
    # Why before it, too: a lock may be given back just before the span ends.
    n = bisect_left(changes, (ns - AT_ONCE // 2, -1))
    while n < len(changes) and changes[n][0] <= ns + AT_ONCE:
        if changes[n][1] != base:
            return True
        n += 1
    return False
