# SPDX-License-Identifier: MIT
"""Jobs of devices, from what the kernel told of each: submitted, given to the hardware, ended.

A job begins somewhere in [low, high], where high is when the hardware had it for certain. In a lane that
works in order it begins no earlier than the job before it ends. Its end is told by the driver, later than it
was; the interrupt that led there is nearer to it. What is not known has no number: an error of None.
"""

import bisect
import itertools
from collections import Counter, namedtuple

FOREVER = 2**63
# Where jobs run: the device or ring, and the lane in it by name; number: its fence context, or None
Lane = namedtuple("Lane", "ring name number")
# A job as it is written. why: words on begin and end; error None: not known
Span = namedtuple("Span", "job start end start_error end_error start_why end_why")


class Job:
    """One job. ns of each step, None: not told.

    arm         the first sign of it, in the submitting thread
    runner      the thread that gave it to the hardware
    submit      it is in the queue
    low, high   the bracket of its begin; high is when the hardware had it
    done        its end was told; irq: the interrupt before that, or None, with its name
    stated      the driver's line says when it began
    after_doorbell    the hardware had it before `high`, nobody knows how long"""

    __slots__ = ("label", "lane", "tid", "runner", "client", "arm", "submit", "low", "high", "done", "irq",
                 "irq_who", "in_order", "stated", "after_doorbell")

    def __init__(self, label, ns, tid):
        self.label, self.arm, self.submit, self.tid = label, ns, ns, tid
        self.runner = self.lane = self.client = self.low = self.high = self.done = self.irq = None
        self.irq_who, self.in_order, self.stated, self.after_doorbell = "", True, False, False


class Jobs:
    """All jobs of a trace. open: key -> [Job], the oldest first. counts: edge jobs, by what was not seen.
    submitters: a set that takes the threads of jobs. strange: when jobs ended whose begin was not seen."""

    def __init__(self, contexts, submitters):
        self.contexts, self.submitters = contexts, submitters
        self.open, self.finished, self.counts, self.strange = {}, [], Counter(), []
        self.waiting = {}                # tid -> Job whose begin the next event of the thread brackets

    def tick(self, event):
        """Takes any event before others do."""
        job = self.waiting.get(event.tid)
        if job is not None and event.flags[2:3] in ("", "."):      # an interrupt's line is not the thread's
            del self.waiting[event.tid]
            if job.high is None:
                job.high = event.ns

    def submitted(self, key, job, many=False):
        """Opens a job. A key that is open already belongs to a job whose end was not seen."""
        own = self.open.setdefault(key, [])
        if own and not many:
            self.counts["no end seen"] += len(own)
            own.clear()
        own.append(job)
        self.submitters.add(job.tid)

    def get(self, key):
        """The oldest open job of a key, or None."""
        own = self.open.get(key)
        return own[0] if own else None

    def told(self, job, event):
        """The end of an open job is told here, for the first time."""
        if job.done is None:
            job.done = event.ns
            hop = self.contexts.interrupt_before(event)
            if hop:
                job.irq, job.irq_who = hop.ns, hop.context.who
            self.contexts.job_ended(event, job.label)

    def ended(self, key, event):
        """Closes the oldest job of a key. False: none is open."""
        own = self.open.get(key)
        if not own:
            return False
        job = own.pop(0)
        if not own:
            del self.open[key]
        self.told(job, event)
        self.finished.append(job)
        return True

    def finish(self, holes):
        """Counts what is open at the end, and returns the Spans of all others by Lane. holes: [(since,
        until)] in which events were lost."""
        self.counts["no end seen"] += sum(map(len, self.open.values()))
        holes = apart(holes + [(ns, ns) for ns in self.strange])
        rings, unfinished = {}, [job for own in self.open.values() for job in own]
        for job in self.finished:
            if job.lane is None:
                self.counts["no begin seen"] += 1
            else:
                rings.setdefault(job.lane.ring, []).append(job)
        found = {}
        for ring, own in rings.items():
            late = [job for job in unfinished if job.lane and job.lane.ring == ring and job.high is not None]
            for span in settled(own, late, holes):
                found.setdefault(span.job.lane, []).append(span)
        return found


def bracket(job):
    """(low, high) of a job's begin, within its life."""
    low = min(job.done, job.submit if job.low is None else job.low)
    return low, low if job.high is None else max(low, min(job.done, job.high))


def overtaken(jobs, unfinished):
    """(rows of jobs that ended before one that the hardware got earlier, True: such a one did end)"""
    highs = [(bracket(job)[1], job.done, n) for n, job in enumerate(jobs) if job.high is not None]
    highs.sort()
    # Why the next end: in order, a job whose end was not seen has ended before the one behind it.
    starts = [high for high, _, _ in highs]
    ends = list(itertools.accumulate((done for _, done, _ in reversed(highs)), min))[::-1]
    for job in unfinished:
        n = bisect.bisect_right(starts, job.high)
        if n < len(ends):
            highs.append((job.high, ends[n] + 1, -1))
    found, parallel, latest = set(), False, (-1, -1, -1)
    for high, done, n in sorted(highs):
        if n >= 0 and latest[0] > done and latest[1] < high:
            found.add(n)
            parallel = parallel or latest[2] >= 0
        latest = max(latest, (done, high, n))
    return found, parallel


def settled(jobs, unfinished, holes):
    """The Spans of the jobs of a ring, in the order in which they ended."""
    lanes = {}
    for n, job in enumerate(jobs):
        lanes.setdefault(job.lane, []).append(n)
    past, parallel = set(), set()
    for lane, rows in lanes.items():
        own, several = overtaken([jobs[n] for n in rows], [job for job in unfinished if job.lane == lane])
        past |= {rows[n] for n in own}
        if several:
            parallel.add(lane)
    spans, ends, last = [], {}, None             # ends: lane -> (end, error) of its last job
    for n in sorted(range(len(jobs)), key=lambda n: jobs[n].done):
        job = jobs[n]
        others = max((end for lane, (end, _) in ends.items() if lane != job.lane), default=-1)
        span = placed(job, ends.get(job.lane, (-1, 0)), others, n in past, job.lane in parallel)
        if in_hole(holes, bracket(job)[1], job.done):
            span = span._replace(start_error=None,
                                 start_why="start not known: something was not seen meanwhile")
        if last is not None and span.job.irq is not None and span.end == last.end:
            spans[-1] = one_interrupt(last)
        spans.append(span)
        last = span
        ends[job.lane] = span.end, span.end_error
    return spans


def placed(job, before, others, past, parallel):
    """The Span of a job. before: (end, error) of the job before in its lane; others: the latest end in other
    lanes of its ring; past: it ended before an earlier job; parallel: so did others of its lane."""
    low, high = bracket(job)
    ended, ended_error = before
    end, end_error, end_why = job.done, None, "end as told, no interrupt seen"
    in_order = job.in_order and not parallel and not past
    if job.irq is not None and job.irq >= low:
        end = max(job.irq, ended) if in_order else job.irq
        end_error, end_why = job.done - end, "end by interrupt, one-sided"
    high = min(high, end)                        # of a short job: it ended before its bracket did
    start, error, why = high, high - low, f"start bracketed {in_us(high - low)} us"
    if job.stated:
        why = "start as the driver's line says"
    elif job.after_doorbell:
        error, why = None, "start at the latest: the line of submit follows the doorbell"
    elif job.high is None:
        error, why = None, "start at the earliest: nothing tells when the hardware had the job"
    if past or (ended > low and (parallel or not job.in_order)):
        error = None
        why = "start not known: jobs of this lane are not known to run in order"
    elif others > high:
        error, why = None, "start not known: another lane of this ring was busy"
    elif ended > high:
        start, error, why = ended, ended_error, "start by order"
    elif error is not None and not job.stated and ended >= 0 and ended + (ended_error or 0) > high:
        # Why: the job before may have ended only when its end was told.
        error = max(high - max(ended, low), ended + ended_error - high)
        why = f"start bracketed {in_us(error)} us"
    elif ended > low:
        error, why = high - ended, f"start bracketed {in_us(high - ended)} us"
    return Span(job, start, end, error, end_error, why, end_why)


def apart(holes):
    """Intervals in ascending order, joined where they touch."""
    found = []
    for since, until in sorted(holes):
        if found and since <= found[-1][1]:
            found[-1] = found[-1][0], max(until, found[-1][1])
        else:
            found.append((since, until))
    return found


def in_hole(holes, start, end):
    """True: events were lost in [start, end]."""
    n = bisect.bisect_right(holes, (end, FOREVER)) - 1
    return n >= 0 and holes[n][1] >= start


def one_interrupt(span):
    """A Span that ended in the same interrupt as the next: its own end is anywhere before."""
    error = None if span.end_error is None else max(span.end_error, span.end - span.start)
    return span._replace(end_error=error, end_why="ended in one interrupt with the next job")


def in_us(ns):
    """ns as microseconds in words."""
    return f"{ns / 1000:.3f}".rstrip("0").rstrip(".")
