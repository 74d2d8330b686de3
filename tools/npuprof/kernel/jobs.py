# SPDX-License-Identifier: MIT
"""Jobs of devices, from what the kernel told of each: submitted, given to the hardware, ended.

A job begins somewhere in [low, high], where high is when the hardware had it for certain. In a lane that
works in order it begins no earlier than the job before it ends. Its end is told by the driver, later than it
was; the interrupt that led there is nearer to it. What is not known has no number: an error of None.
"""

import bisect
import itertools
from collections import Counter, namedtuple

from .contexts import A_TIMER

FOREVER = 2**63
# Where jobs run: the device or ring, and the lane in it by name; number: its fence context, or None;
# hardware: of which device the text says the ring is. Lanes of one, and all those without, may share it
Lane = namedtuple("Lane", "ring name number hardware", defaults=("",))
# What was not seen: intervals in which events were lost; these, and when jobs ended whose begin was not seen;
# when interrupts began that told more ends, or may have
Unseen = namedtuple("Unseen", "holes ends interrupts")
# When a job ended: in [earliest, told], None: nobody knows how early; drawn there
End = namedtuple("End", "earliest drawn told why")
NEVER = End(-1, -1, -1, "")
RARE = 8                         # an interrupt that leads to this many times fewer ends is a stranger
# A job as it is written. why: words on begin and end; error None: not known
Span = namedtuple("Span", "job start end start_error end_error start_why end_why")


class Job:
    """One job. ns of each step, None: not told.

    arm         the first sign of it, in the submitting thread
    runner      the thread that gave it to the hardware
    submit      it is in the queue
    low, high   the bracket of its begin; high is when the hardware had it
    done        its end was told; irq: the interrupt before that, or None, with its name; raised: if that one
                may have waited for another one, since when
    stated      the driver's line says when it began
    after_doorbell    the hardware had it before `high`, nobody knows how long
    doubted     its end may be another job's: they had one key at a time
    reused      its key may be another job's later
    ran         a line tells that it was given to the hardware
    at_once     the thread that gave it to the hardware told its end, and no interrupt led there
    own         only lines of the driver's own began it"""

    __slots__ = ("label", "lane", "tid", "runner", "client", "arm", "submit", "low", "high", "done", "irq",
                 "raised", "irq_who", "in_order", "stated", "after_doorbell", "doubted", "reused", "ran",
                 "own", "at_once")

    def __init__(self, label, ns, tid):
        self.label, self.arm, self.submit, self.tid = label, ns, ns, tid
        self.runner = self.lane = self.client = self.low = self.high = self.done = self.irq = None
        self.raised, self.doubted, self.reused, self.ran, self.own = None, False, False, False, False
        self.irq_who, self.in_order, self.stated, self.after_doorbell = "", True, False, False
        self.at_once = False


class Jobs:
    """All jobs of a trace. open: key -> [Job], the oldest first. counts: edge jobs, by what was not seen.
    submitters: a set that takes the threads of jobs. strange: when jobs ended whose begin was not seen;
    shared: when interrupts began that told more ends than are seen, or may have."""

    def __init__(self, contexts, submitters):
        self.contexts, self.submitters = contexts, submitters
        self.open, self.finished, self.counts, self.strange, self.shared = {}, [], Counter(), [], set()
        self.gone = []                   # jobs whose end was not seen, which are not open any more
        self.doubted = set()             # keys that two open jobs had, so whose end it is nobody knows
        self.fifo = set()                # keys that several jobs may have

    def hole(self):
        """Events were lost: of which of them is the next end of a key of several jobs nobody knows."""
        for key in self.fifo:
            self.gone += self.open.pop(key, ())
        self.fifo.clear()

    def submitted(self, key, job, many=False):
        """Opens a job. A key that is open already belongs to a job whose end was not seen."""
        own = self.open.setdefault(key, [])
        if own and not many:
            self.gone += own
            own.clear()
            self.doubted.add(key)
        if many:
            self.fifo.add(key)
        job.doubted = many or key in self.doubted
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
                job.irq, job.irq_who, job.raised = hop.ns, hop.context.who, hop.context.raised
            job.at_once = hop is None and event.tid == job.runner
            self.contexts.job_ended(event, job)

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

    def ended_unbegun(self, event):
        """A job ends here whose begin was not seen."""
        self.strange.append(event.ns)
        hop = self.contexts.interrupt_before(event)
        if hop:
            self.shared.add(hop.ns)

    def forget(self, wrong):
        """Drops a set of Jobs that were none."""
        self.finished = [job for job in self.finished if job not in wrong]
        self.open = {key: [job for job in own if job not in wrong] for key, own in self.open.items()}

    def finish(self, holes, lanes, runs):
        """Counts what is open at the end, and returns the Spans of all others by Lane. holes: [(since,
        until)] in which events were lost; lanes: number of a Lane -> what else is known of it; runs: ring ->
        since when lines tell which of its jobs it runs."""
        self.gone += [job for own in self.open.values() for job in own]
        self.counts["no end seen"] += len(self.gone)
        ends = self.strange + [job.done for job in self.finished if job.doubted]
        unseen = Unseen(apart(holes), apart(holes + [(ns, ns) for ns in ends]), self.shared)
        shared, unfinished = {}, [job for own in self.open.values() for job in own]
        for job in self.finished + self.gone:
            # Why: the line that ended this one and that of the other's begin may be among the lost ones.
            job.doubted |= job.reused and job.done is not None and in_hole(unseen.holes, job.arm, job.done)
            if job.lane is not None:
                job.lane = lanes.get(job.lane.number, job.lane)
        self.leave_out({job for job in self.finished if not job.ran and job.lane is not None
                        and runs.get(job.lane.ring, FOREVER) <= job.arm}, unseen.holes)
        for job in self.finished:
            if job.lane is None:
                self.counts["no begin seen"] += 1
            else:
                shared.setdefault(job.lane.hardware, []).append(job)
        found = {}
        for hardware, own in shared.items():
            late = [job for job in unfinished
                    if job.lane and job.lane.hardware == hardware and job.high is not None]
            for span in settled(own, late, unseen):
                found.setdefault(span.job.lane, []).append(span)
        return found

    def leave_out(self, unrun, holes):
        """Drops jobs that ended and that nothing ran: their thread was killed, or its device reset."""
        never = {job for job in unrun if not in_hole(holes, job.arm, job.done)}
        self.counts["never ran"] += len(never)
        self.forget(never)
        for job in unrun - never:
            job.high = job.irq = None                  # the line may be lost, or there was none

    def without_end(self, last):
        """ring -> the intervals in which jobs may have run whose end was not seen. last: ns of the last
        event."""
        behind, found = {}, {}           # Lane -> [(-submit, first end of those submitted then or later)]
        for job in sorted(self.finished, key=lambda job: -job.submit):
            own = behind.setdefault(job.lane, [])
            own.append((-job.submit, min(job.done, own[-1][1] if own else last)))
        for job in self.gone:
            own = behind.get(job.lane, ()) if job.in_order else ()
            n = bisect.bisect_left(own, (-job.submit,))
            # Why: in order, it has ended before the next one of its lane does.
            until = own[n - 1][1] if n else last
            since = lowest(job)
            if job.lane is not None and since < until:
                found.setdefault(job.lane.ring, []).append((since, until))
        return {ring: apart(own) for ring, own in found.items()}


def lowest(job):
    """The earliest ns at which the hardware may have had a job."""
    return job.submit if job.low is None else job.low


def bracket(job):
    """(low, high) of a job's begin, within its life."""
    low = min(job.done, lowest(job))
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


def settled(jobs, unfinished, unseen):
    """The Spans of the jobs of one hardware, in the order in which they ended. unseen: an Unseen."""
    lanes = {}
    for n, job in enumerate(jobs):
        lanes.setdefault(job.lane, []).append(n)
    past, parallel = set(), set()
    for lane, rows in lanes.items():
        own, several = overtaken([jobs[n] for n in rows], [job for job in unfinished if job.lane == lane])
        past |= {rows[n] for n in own}
        if several:
            parallel.add(lane)
    spans, ends, usual, last, others = [], {}, usual_interrupts(jobs), None, -1
    order = sorted(range(len(jobs)), key=lambda n: jobs[n].done)
    open_at_end = [job for job in unfinished if not in_hole(unseen.holes, job.high, FOREVER)]
    behind = still_there(jobs, order, open_at_end)
    for n in order:
        job = jobs[n]
        high = bracket(job)[1]
        if last is not None and last.job.lane != job.lane:
            others = last.job.done                   # the latest end in another lane
        ordered = job.in_order and n not in past and job.lane not in parallel
        before = ends.get(job.lane, NEVER)           # the job before it in its lane
        end = ending(job, before if ordered else NEVER, usual[job.lane.ring], unseen)
        if last is not None and job.irq is not None and (last.job.irq == job.irq or last.end == end.drawn):
            spans[-1] = last if last.end_error is None else one_interrupt(last)
            before = before._replace(earliest=None)
        start, error, why = starting(job, before, end.drawn, ordered, n in past)
        if (others > high or behind[n] < start) and not job.stated:
            error, why = None, "start not known: another lane was busy, maybe on the same hardware"
        if in_hole(unseen.ends, high, job.done):
            error, why = None, "start not known: something was not seen meanwhile"
        if job.doubted:
            end = End(None, job.done, job.done, "end as told, maybe of another job with its key")
        known = None if end.earliest is None else max(end.told - end.drawn, end.drawn - end.earliest)
        last = Span(job, start, end.drawn, error, known, why, end.why)
        spans.append(last)
        ends[job.lane] = end
    return spans


def still_there(jobs, order, unfinished):
    """[since when the device may have had the earliest job of another lane that ended later]. order: of the
    jobs' ends."""
    found, least = [FOREVER] * len(jobs), {}           # the lanes of the two earliest, the earliest first
    later = [(job.lane, lowest(job)) for job in unfinished]
    for n in reversed(order):
        for lane, low in later:
            least[lane] = min(low, least.pop(lane, FOREVER))
            least = dict(sorted(least.items(), key=lambda one: one[1])[:2])
        found[n] = next((low for lane, low in least.items() if lane != jobs[n].lane), FOREVER)
        later = [(jobs[n].lane, lowest(jobs[n]))]
    return found


def usual_interrupts(jobs):
    """ring -> the names of the interrupts that lead to the ends of its jobs. Why not all: the thread that
    tells an end may have slept on something else in between, and what woke it then came after the end."""
    found = {job.lane.ring: Counter() for job in jobs}
    for job in jobs:
        found[job.lane.ring][job.irq_who] += job.irq is not None
    return {ring: {who for who, count in named.items() if count * RARE >= max(named.values()) and count}
            for ring, named in found.items()}


def ending(job, before, usual, unseen):
    """The End of a job. before: the End of the one before it in its lane, if they run in order, else NEVER;
    usual: names of interrupts that may lead to it."""
    if job.irq is None or job.irq < bracket(job)[0]:
        why = "end as told, no interrupt seen"
    elif job.irq_who.startswith(A_TIMER):
        why = "end as told: a timer led there, so it was asked for"
    elif job.irq_who not in usual:
        why = "end as told: an interrupt led there that seldom does"
    elif in_hole(unseen.holes, bracket(job)[0], job.irq) or job.irq in unseen.interrupts:
        why = "end as told: something was not seen meanwhile"
    else:
        at, earliest = max(job.irq, before.drawn), job.irq if job.raised is None else job.raised
        earliest, words = max(earliest, before.earliest or 0), "one-sided"
        if earliest < at:
            words = "behind another one" if job.raised is not None else "drawn behind the job before"
        return End(earliest, at, job.done, f"end by interrupt, {words}")
    return End(None, job.done, job.done, why)


def starting(job, before, end, ordered, past):
    """(start, error or None, why) of a job. before: the End of the job before in its lane; end: its own, as
    it is drawn; ordered: its lane works in order; past: it ended before an earlier job."""
    low, high = bracket(job)
    at, busy = min(high, end), before.told > low       # of a short job: it ended before its bracket did
    if past or (busy and not ordered):
        return at, None, "start not known: jobs of this lane are not known to run in order"
    if job.at_once and not job.ran:
        return at, None, "start not known: it may have been killed, and never have run"
    if before.drawn > at:
        known = before.earliest is not None and job.high is not None
        error = max(before.told - before.drawn, before.drawn - before.earliest) if known else None
        return before.drawn, error, "start by order"
    if job.stated:
        return at, 0, "start as the driver's line says"
    if job.after_doorbell:
        return at, None, "start at the latest: the line of submit follows the doorbell"
    if job.high is None:
        return at, None, "start at the earliest: nothing tells when the hardware had the job"
    # Why not up to its own end: an interrupt may lead to the end of a job that began after it.
    latest = min(job.done, max(high, before.told))
    error = max(at - low, latest - at)
    return at, error, f"start bracketed {in_us(error)} us"


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
    error = max(span.end_error, span.end - bracket(span.job)[0])
    return span._replace(end_error=error, end_why="ended in one interrupt with the next job")


def in_us(ns):
    """ns as microseconds in words."""
    return f"{ns / 1000:.3f}".rstrip("0").rstrip(".")
