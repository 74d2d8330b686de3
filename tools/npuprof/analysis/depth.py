# SPDX-License-Identifier: MIT
"""How many submissions were in flight, over the time of the window.

    pending   submitted, not started
    device    submitted, not done
    host      submitted, and the host has not noticed the end (without a wait: the later of the end of the
              submit span and of the job)

Where ends and begins coincide, ends come first. The mean of `device` times the window is the sum of all times
from submission to end (Little's law).
"""

from array import array
from fractions import Fraction

from .. import loops
from ..base.contract import NULL
from ..tables.arithmetic import both
from ..tables.table import Table, pct

SUMMARY = ("queue", "view", "mean_ratio", "max", "zero_pct")
HISTOGRAM = ("queue", "view", "depth", "total_ns", "share_pct")
VIEWS = ("pending", "device", "host")
TABLES = ("depth", "depth_time")
DEEPEST = 32       # depths shown one by one


def depths(window, pairs):
    """{depth: ns} over the window of the intervals that are open."""
    events = sorted(window.intervals.flat)
    inside = {}
    changes = []
    for start, end in pairs:
        if start < end:
            changes += (2 * start + 1, 2 * end)     # an end before a begin at the same time
    changes.sort()
    k, depth, at = 0, 0, None
    for a, b in window.intervals:
        while k < len(changes) and changes[k] >> 1 <= a:
            depth += 1 if changes[k] & 1 else -1
            k += 1
        at = a
        while k < len(changes) and changes[k] >> 1 < b:
            now = changes[k] >> 1
            inside[depth] = inside.get(depth, 0) + now - at
            depth += 1 if changes[k] & 1 else -1
            at, k = now, k + 1
        inside[depth] = inside.get(depth, 0) + b - at
    return {depth: ns for depth, ns in inside.items() if ns} if events else {}


def views(facts, queues=None):
    """{view: {depth: ns}} of all queues, or of these."""
    jobs, s = facts.jobs, facts.jobs.s
    own = range(len(jobs)) if queues is None else jobs.of_queues(queues)
    own = array("i", (k for k in own if s[k] != NULL))
    until = {"pending": jobs.start.__getitem__, "device": jobs.end.__getitem__,
             "host": lambda k: jobs.n[k] if jobs.n[k] != NULL else max(jobs.S[k], jobs.end[k])}
    if not own:
        return {}
    return {view: depths(facts.window, ((s[k], until[view](k)) for k in own)) for view in VIEWS}


def is_known(facts):
    """False: jobs without an end, which are not counted, may be in flight in more than 1 % of the window."""
    about, window = facts.trace.metadata.get("ftrace"), facts.window
    unended = about.get("unended_ns", ()) if isinstance(about, dict) else ()
    flat = array("q", [ns for _, *own in unended for ns in own])
    return 100 * both(loops.merged(flat), window.intervals).length() <= window.length_ns


def mean_of(depth):
    """The mean depth over time, as a Fraction."""
    return Fraction(sum(d * ns for d, ns in depth.items()), sum(depth.values()) or 1)


def analyse(facts):
    summary, histogram, length = [], [], facts.window.length_ns
    queues = facts.jobs.queues
    for label, queue in [("(all)", None), *((q.label, n) for n, q in enumerate(queues) if len(queues) > 1)]:
        of = facts.depth if queue is None else views(facts, {queue})
        for view, depth in of.items():
            summary.append((label, view, mean_of(depth), max(depth, default=0),
                            pct(depth.get(0, 0), length)))
            histogram += [(label, view, d, ns, pct(ns, length)) for d, ns in sorted(depth.items())
                          if d < DEEPEST]
    notes = [] if summary else ["no submissions: no arrow from a host span to an execution"]
    ftrace = facts.trace.metadata.get("ftrace")
    unended = ftrace.get("no_end_seen", 0) if isinstance(ftrace, dict) else 0
    notes += [f"{unended} jobs without an end are not in it: it may be deeper"] * bool(unended)
    yield Table("depth", "Submissions in flight", SUMMARY, summary, notes)
    yield Table("depth_time", "Time at each number of submissions in flight", HISTOGRAM, histogram, [])
