# SPDX-License-Identifier: MIT
"""The spans of a thread that waits, against the kernel's own record of when that thread slept: both in one
.pftrace of `merge --ftrace`."""
from types import SimpleNamespace

SWITCH = 4                     # the field of sched_switch in Perfetto's FtraceEvent


def absences(found, tid):
    """(from, to, whether it slept) of each time that the thread did not run; found: of pftrace.read()."""
    away, left = [], None
    for ns, _, _, kind, said in found.kernel:
        if kind == SWITCH and said[2] == tid:
            left = ns, said[4] == 1
        elif kind == SWITCH and said[6] == tid and left is not None:
            away.append((left[0], ns, left[1]))
            left = None
    return away


def compare(test, found, error, least_ns):
    """Checks with the unittest that each sleep of the one thread lies in its span "wait", give or take
    `error` ns. Counts: waits; sleeps found; waits in which the thread was away for less than least_ns;
    returns of the thread that the kernel traced; and how far a sleep reached out of its span at most, in
    ns."""
    test.assertEqual(found.errors, [])
    (tid,) = {t.ids[1] for t in found.tracks.values() if t.kind == "thread"}
    away = absences(found, tid)
    waits = [s for s in found.slices if s.name == "wait"]
    at = slept = short = out_of_span = 0
    for wait in waits:
        begin, end, off = wait.start, wait.start + wait.dur, 0
        while at < len(away) and away[at][1] <= begin:
            at += 1
        for out, back, sleeps in away[at:]:
            if out >= end:
                break
            off += min(back, end) - max(out, begin)
            slept += sleeps
            if sleeps:               # only its sleep does that there
                out_of_span = max(out_of_span, begin - out, back - end)
                test.assertGreaterEqual(out + error, begin)
                test.assertLessEqual(back - error, end)
        short += off < least_ns
    return SimpleNamespace(waits=len(waits), slept=slept, short=short, away=len(away),
                           out_of_span=out_of_span)
