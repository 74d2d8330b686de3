# SPDX-License-Identifier: MIT
"""Why the device was idle: every gap between jobs, cut where the cause changes.

A gap is the time between two jobs of a queue, or between the jobs of all queues of a device. It is cut at the
submission of the next job, where the device is known to be done, and at each change of what the submitting
thread does. Each piece gets the first class that fits:

    unknown_lost   records were lost between the two jobs
    dependency     the next job is submitted, but a job that an arrow comes from still runs
    in_submit      it is being submitted: from the begin of the submit span to the doorbell, else to the usual
                   start latency before the start
    dispatch       it is submitted, and the device has not started it
    late_notice    the thread waits for a job that is done
    work_or_wait   the same, if it waits: nothing says whether it works or has not noticed the end
    work_or_idle   the thread is in a span between two inferences: it works, or waits for a request
    host_off_cpu   the span did not have the CPU (argument cpu_ns, or the kernel saw it ready)
    host_busy      the thread is in that span
    host_blocked   the thread is in a lock, or waits for something else: the kernel saw it asleep
    host_untraced  only a record or an inference is open on the thread: what it does has no span
    late_thread    no span but a record is open, though the request was there: an arrow into the inference
    no_demand      the same, and no request was there
    edge           before the first job or after the last
    unknown        within the error of the clocks, or there is no submission

A piece lasts at least its length without the errors of its two ends: certain_ns. Without an arrow "submit"
the newest span of any thread is blamed, never surely. Confidence: sure if 90 % of the time is certain, likely
from 50 %, else unsure.
"""

from array import array
from bisect import bisect_left

from .. import loops
from ..base.contract import INFERENCE, NULL, RECORD
from ..tables.arithmetic import percentile
from ..tables.table import Table, pct
from .figures import floor_of
from .leaves import LOCKS, Leaves

COLUMNS = ("device", "queue", "class", "span", "count", "total_ns", "certain_ns", "share_of_idle_pct",
           "share_of_window_pct", "p50_ns", "max_ns", "confidence")
GAPS = ("device", "queue", "start_ns", "dur_ns", "previous", "next", "class", "span", "class_ns", "error_ns")
TABLES = ("idle", "idle_gaps")
LONGEST = 20
ALL = "(all)"


class Entry:
    """What is known of one class and span: lengths of its pieces, certain ns, and the longest ones."""

    __slots__ = ("lengths", "total", "certain", "capped", "longest")

    def __init__(self):
        self.lengths, self.total, self.certain, self.capped, self.longest = array("q"), 0, 0, False, []

    def add(self, ns, certain, row, job, capped):
        self.lengths.append(ns)
        self.total += ns
        self.certain += certain
        self.capped = self.capped or capped
        if len(self.longest) < 3 or ns > self.longest[-1][0]:
            self.longest = sorted([*self.longest, (ns, row, job)], reverse=True)[:3]

    def confidence(self):
        return confidence_of(self.certain, self.total, self.capped)


def confidence_of(certain, total, capped=False):
    """sure, likely or unsure. capped: likely at most."""
    if 10 * certain >= 9 * total and not capped:
        return "sure"
    return "likely" if 2 * certain >= total else "unsure"


class Idle:
    """entries      {(device number, queue number or -1 for all, class, span): Entry}
    idle         {(device, queue): ns}
    gaps         {(device, queue): (lengths, certain ns) of each gap}, arrays
    longest      {(device, queue): [(ns, start, job before, job after)]}"""

    def __init__(self, facts):
        self.facts, self.trace, self.jobs = facts, facts.trace, facts.jobs
        self.leaves = Leaves(facts.trace)
        self.leaves.read_cpu(set(self.jobs.thread))
        self.entries, self.idle, self.gaps, self.longest = {}, {}, {}, {}
        self.locks = bytearray(LOCKS.search(name) is not None for name in self.trace.names)
        self.host_error = facts.host_error_ns
        self.job_of_wait = {row: k for k, row in enumerate(self.jobs.wait) if row >= 0}
        self.floor = dispatch_floor(self.jobs)
        self.arrivals, self.blockers = arrivals(facts.trace), blockers(facts.trace, self.jobs)
        self.lost = facts.lost_records
        self.doubts = doubts(facts)
        self.errors_known = all(error != NULL for error in self.jobs.error)
        self.whole = None                # the entries of whole devices, by device
        for device in range(len(self.jobs.devices)):
            own = self.jobs.queues_of[device]
            self._walk(device, -1, own)
            for q in own if len(own) > 1 else ():
                self._walk(device, q, [q])

    def _walk(self, device, queue, queues):
        """Finds the gaps of these queues and classifies them."""
        self.key = device, queue
        self.idle[self.key], self.gaps[self.key], self.longest[self.key] = 0, (array("q"), array("q")), []
        for gap in self._gaps(queues):
            self._gap(*gap)

    def _gaps(self, queues):
        """Yields (start, end, job before, job after) of each gap; -1: no job there."""
        jobs, last, until = self.jobs, -1, self.facts.window.start_ns
        for k in jobs.of_queues(queues):
            start, end = jobs.start[k], jobs.end[k]
            if start > until:
                yield until, start, last, k
            if end > until:
                until, last = end, k
        if until < self.facts.window.end_ns:
            yield until, self.facts.window.end_ns, last, -1

    def all_pieces(self, queues):
        """Yields the pieces() of all gaps between the jobs of these queues."""
        for start, end, i, j in self._gaps(queues):
            for a, b in self.looked_at(start, end):
                yield from self.pieces(a, b, i, j)

    def _gap(self, start, end, i, j):
        """One gap from the end of job i to the start of job j; -1: no job there."""
        certain = total = 0
        add, job = self._add, j if j >= 0 else i
        for a, b in self.looked_at(start, end):
            total += b - a
            for piece in self.pieces(a, b, i, j):
                certain += add(piece, job)
        if not total:
            return
        self.idle[self.key] += total
        if i >= 0 and j >= 0:
            lengths, certains = self.gaps[self.key]
            lengths.append(total)
            certains.append(certain)
            longest = self.longest[self.key]
            if len(longest) < LONGEST or total > longest[-1][0]:
                self.longest[self.key] = sorted([*longest, (total, start, i, j)], reverse=True)[:LONGEST]

    def looked_at(self, start, end):
        """[(start, end)] of the parts of [start, end) that lie in the window."""
        flat = self.facts.window.intervals.flat
        if len(flat) == 2 and flat[0] <= start and end <= flat[1]:
            return [(start, end)]
        k, out = max(bisect_left(flat, start) // 2 * 2 - 2, 0), []
        while k < len(flat) and flat[k] < end:
            a, b = max(start, flat[k]), min(end, flat[k + 1])
            if a < b:
                out.append((a, b))
            k += 2
        return out

    def pieces(self, a, b, i, j):
        """[(start, end, class, row of the host span or -1, certain ns, likely at most)] of [a, b)."""
        found, job = self._pieces(a, b, i, j), j if j >= 0 else i
        doubted = self.doubts.get(self.jobs.queue[job]) if job >= 0 else None
        return [self._doubted(piece, doubted) for piece in found] if doubted else found

    @staticmethod
    def _doubted(piece, doubted):
        """A piece without what is not certain in intervals, flat, in which nobody knows what ran."""
        start, end, label, row, certain, capped = piece
        ns = overlap(doubted, start, end)
        return (start, end, label, row, max(0, certain - ns), capped or 2 * ns > end - start) if ns else piece

    def _pieces(self, a, b, i, j):
        """pieces() as the trace has them."""
        jobs = self.jobs
        before = 0
        if i >= 0 and jobs.end[i] == a:
            # Why n: the job was done when the host noticed it.
            before = error_of(jobs, i) if jobs.n[i] == NULL else min(error_of(jobs, i), jobs.n[i] - a)
        after = error_of(jobs, j) if j >= 0 and jobs.start[j] == b else 0
        if i < 0 or j < 0:
            return self._edge(a, b, before, after, j if j >= 0 else i)
        if self.lost and lost_between(self.trace, jobs, i, j):
            return [(a, b, "unknown_lost", -1, 0, True)]
        submitted = jobs.s[j]
        if submitted == NULL:
            return [self._without_submission(a, b)]
        s = min(max(submitted, a), b)
        out = self._host(a, s, before, j) if a < s else []
        if s < b:
            out += self._submitted(s, b, before if s == a else self.host_error, after, j,
                                   s == a and submitted + before < a)
        return out

    def _edge(self, a, b, before, after, job):
        thread = self.jobs.thread[job] if job >= 0 else -1
        host, out = self.host_error, []
        if thread < 0:
            return [(a, b, "edge", -1, max(0, b - a - before - after), False)]
        for start, end, row in self.leaves.pieces(thread, a, b):
            errors = (before if start == a else host) + (after if end == b else host)
            out.append((start, end, "edge", row, max(0, end - start - errors), False))
        return out

    def _without_submission(self, a, b):
        """No arrow: the newest begun span of any thread, in the middle of the gap."""
        trace, middle = self.trace, (a + b) // 2
        rows = [trace.finder.at(t.number, middle) for t in trace.tracks if t.kind == "thread"]
        row = max((row for row in rows if row >= 0), key=lambda i: (trace.start[i], i), default=-1)
        if row < 0 or self.leaves.is_container(row) or row in self.job_of_wait:
            return a, b, "unknown", -1, 0, True
        return a, b, "host_busy", row, (b - a) // 2, True

    def _submitted(self, s, b, left, right, j, whole):
        """The job is submitted. whole: it was so through the whole gap, whatever the error."""
        jobs, spans = self.jobs, []
        blocker = self.blockers.get(j, -1)
        if blocker >= 0 and jobs.end[blocker] > s:
            spans.append((s, min(jobs.end[blocker], b), "dependency", jobs.row[blocker]))
            s = min(jobs.end[blocker], b)
        door = jobs.doorbell[j] if jobs.doorbell[j] != NULL else b - self.floor[jobs.queue[j]]
        called = max(s, min(jobs.S[j], door, b))
        spans += [(s, called, "in_submit", jobs.submit[j]), (called, b, "dispatch", jobs.submit[j])]
        spans, out = [span for span in spans if span[0] < span[1]], []
        for start, end, label, row in spans:
            errors = max(0, left - (start - spans[0][0])) + max(0, right - (b - end))
            errors = 0 if whole and len(spans) == 1 else errors
            out.append(self._settled(start, end, label, row, errors, errors > 0, False))
        return out

    def _host(self, a, s, before, j):
        """The next job is not submitted yet: what its thread does, in pieces."""
        host, out = self.host_error, []
        for start, end, row in self.leaves.pieces(self.jobs.thread[j], a, s):
            for begin, stop, label, left, right in self._of_leaf(start, end, row, j):
                # Why a difference: an error may reach beyond the first piece.
                early = before - (begin - a)
                errors = max(early, host if a < begin == start else 0, left)
                errors += max(host if stop == end else 0, right)
                capped = label == "no_demand" and not self.arrivals
                out.append(self._settled(begin, stop, label, row, errors, early > 0 or left or right, capped))
        return out

    def _of_leaf(self, start, end, row, j):
        """[(start, end, class, error of the start, of the end)] of a piece with leaf `row`. The errors are
        those of the end of the job that the leaf waits for."""
        if row < 0 or (self.trace.kind[row] == RECORD and self._asked(j) is not None):
            asked = self._asked(j)
            if asked is None or asked >= end:
                return [(start, end, "no_demand", 0, 0)]
            if asked <= start:
                return [(start, end, "late_thread", 0, 0)]
            return [(start, asked, "no_demand", 0, 0), (asked, end, "late_thread", 0, 0)]
        k = self.job_of_wait.get(row)
        if k is not None:
            done, error = self.jobs.end[k], error_of(self.jobs, k)
            if done <= start:
                return [(start, end, "late_notice", max(0, done + error - start), 0)]
            if done >= end:
                return [(start, end, "host_blocked", 0, max(0, end + error - done))]
            return [(start, done, "host_blocked", 0, error), (done, end, "late_notice", error, 0)]
        if self.jobs.unmarked and self.jobs.stretches.waits_at(self.jobs.thread[j], start):
            return [(start, end, "work_or_wait", 0, 0)]
        if self.leaves.is_container(row):
            return [(start, end, "host_untraced", 0, 0)]
        between = self.jobs.inference[j] >= 0 and inference_of(self.trace, row) < 0
        if between and not self._worked(row, end - start):
            return [(start, end, "work_or_idle", 0, 0)]
        if self.locks[self.trace.name[row]] or self.leaves.slept(row, end - start):
            return [(start, end, "host_blocked", 0, 0)]
        off = self.leaves.off_cpu(row, end - start)
        return [(start, end, "host_off_cpu" if off else "host_busy", 0, 0)]

    def _worked(self, row, ns):
        """True: that span says that it had the CPU for half of a piece of `ns`."""
        return (row in self.leaves.cpu and not self.leaves.off_cpu(row, ns)
                and not self.leaves.slept(row, ns))

    def _asked(self, j):
        """When the request of job j was there: the begin of an arrow into its inference; None: not known."""
        arrows = self.arrivals.get(self.jobs.thread[j])
        inference = self.jobs.inference[j]
        if not arrows or inference < 0:
            return None
        start, dur = self.trace.start, self.trace.dur
        k = bisect_left(arrows, (start[inference],))
        if k < len(arrows) and arrows[k][0] < start[inference] + dur[inference]:
            return arrows[k][1]
        return None

    def _settled(self, start, end, label, row, errors, device, capped):
        """A piece. One that the errors of the clocks cover may belong to its neighbour: unknown."""
        certain = max(0, end - start - errors)
        if not certain and device:
            return start, end, "unknown", -1, 0, capped
        return start, end, label, row, certain, capped or not self.errors_known

    def _add(self, piece, job):
        """Adds a piece of a gap before or after that job. Returns its certain ns."""
        start, end, label, row, certain, capped = piece
        if self.trace.tool:                # nobody knows how far its clocks are off
            certain, capped = 0, True
        span = self.trace.names[self.trace.name[row]] if row >= 0 else ""
        key = (*self.key, label, span)
        entry = self.entries.get(key)
        if entry is None:
            entry = self.entries[key] = Entry()
        entry.add(end - start, certain, row, job, capped)
        return 0 if label == "unknown" else certain

    def of_class(self, *labels, device=None):
        """(total ns, certain ns, [(span, Entry)]) of these classes over whole devices, the largest first."""
        if self.whole is None:
            self.whole = {}
            for key, entry in self.entries.items():
                if key[1] == -1:
                    self.whole.setdefault(key[0], []).append((key, entry))
        devices = self.whole if device is None else (device,)
        found = [(key[3], entry) for d in devices for key, entry in self.whole.get(d, ())
                 if key[2] in labels]
        found.sort(key=lambda item: (-item[1].total, item[0]))
        return sum(e.total for _, e in found), sum(e.certain for _, e in found), found


def doubts(facts):
    """{queue: intervals, flat, in which a text of the kernel does not tell what its device did}: events were
    lost, or a job has no end, or a lane worked that may be of the same engine."""
    about = facts.trace.metadata.get("ftrace")
    about = about if isinstance(about, dict) else {}
    jobs, found = facts.jobs, {}
    for q, rings in enumerate(jobs.rings):
        others = {other for own in jobs.shared if q in own for other in own} - {q}
        beside = rings.union(*(jobs.rings[other] for other in others))
        every = [*(about["not_seen_ns"] if rings else ()),
                 *(own for ring, *own in about.get("unended_ns", ()) if ring in beside),
                 *(pair for other in sorted(others) for pair in facts.busy[other])]
        if every:
            found[q] = loops.merged(array("q", [ns for own in every for ns in own])).flat
    return found


def overlap(flat, start, end):
    """ns of [start, end) that lie in intervals, flat and in order."""
    k, ns = max(bisect_left(flat, start) // 2 * 2 - 2, 0), 0
    while k < len(flat) and flat[k] < end:
        ns += max(0, min(end, flat[k + 1]) - max(start, flat[k]))
        k += 2
    return ns


def error_of(jobs, k):
    return max(jobs.error[k], 0)


def dispatch_floor(jobs):
    """By queue: the 5th percentile of the start latencies."""
    latencies = [array("q") for _ in jobs.queues]
    for k, s in enumerate(jobs.s):
        if s != NULL:
            latencies[jobs.queue[k]].append(jobs.latency[k])
    return [floor_of(sorted(own)) if own else 0 for own in latencies]


def arrivals(trace):
    """{thread: sorted [(to_ns, from_ns)]} of the user's arrows between threads."""
    found = {}
    for n, number in enumerate(trace.flows.name):
        if trace.names[number] == "submit":
            continue
        from_track, from_ns, to_track, to_ns = (column[n] for column in trace.flows.columns)
        if trace.tracks[from_track].kind == "thread" and trace.tracks[to_track].kind == "thread":
            found.setdefault(trace.tracks[to_track].base, []).append((to_ns, from_ns))
    for arrows in found.values():
        arrows.sort()
    return found


def blockers(trace, jobs):
    """{job: the job that it depends on: an arrow "dep" leads from one execution to the other}."""
    columns = trace.flows.named("dep")
    if not len(columns[0]):
        return {}
    starts = {(jobs.queues[q].base, start): k for k, (q, start) in enumerate(zip(jobs.queue, jobs.start))}
    ends = {(jobs.queues[q].base, end): k for k, (q, end) in enumerate(zip(jobs.queue, jobs.end))}
    found = {}
    for from_track, from_ns, to_track, to_ns in zip(*columns):
        source = trace.tracks[from_track].base, from_ns
        target = starts.get((trace.tracks[to_track].base, to_ns))
        if target is not None and (source in starts or source in ends):
            found[target] = starts[source] if source in starts else ends[source]
    return found


def chained(facts):
    """True: most jobs need the job before them: an arrow leads to them from it, or to their inference from
    behind its end."""
    jobs, trace, ends = facts.jobs, facts.trace, {}
    if 2 * len(facts.idle.blockers) > len(jobs):
        return True
    for k, inference in enumerate(jobs.inference):
        if inference >= 0:
            ends[inference] = max(ends.get(inference, 0), jobs.end[k])
    if not ends:
        return False
    targets = set()
    for n, number in enumerate(trace.flows.name):
        from_track, from_ns, to_track, to_ns = (column[n] for column in trace.flows.columns)
        if trace.names[number] == "submit" or trace.tracks[to_track].kind != "thread":
            continue
        source, target = trace.finder.at(from_track, from_ns), trace.finder.at(to_track, to_ns)
        source, target = inference_of(trace, source), inference_of(trace, target)
        if source in ends and target in ends and source != target and from_ns >= ends[source]:
            targets.add(target)
    return 2 * len(targets) > len(ends)


def inference_of(trace, row):
    while row >= 0 and trace.kind[row] != INFERENCE:
        row = trace.parents[row]
    return row


def lost_between(trace, jobs, i, j):
    """True: numbers of executions are missing between two jobs of one queue."""
    numbers = trace.index.get("execution_index")
    if numbers is None or jobs.queue[i] != jobs.queue[j]:
        return False
    first, second = numbers[jobs.row[i]], numbers[jobs.row[j]]
    return NULL not in (first, second) and second - first > 1


def analyse(facts):
    """The table idle, and the longest gaps of each device."""
    idle, rows = facts.idle, []
    for (device, queue, label, span), entry in idle.entries.items():
        total, ordered = entry.total, sorted(entry.lengths)
        rows.append((*names(facts.jobs, device, queue), label, span, len(ordered), total, entry.certain,
                     pct(total, idle.idle[device, queue]), pct(total, facts.window.length_ns),
                     percentile(ordered, 500), ordered[-1], entry.confidence()))
    rows.sort(key=lambda row: (row[0], row[1] != ALL, row[1], -row[5], row[2:4]))
    notes = [] if facts.jobs.queues else ["no executions in the window"]
    yield Table("idle", "Why the device was idle (its queues together, then each)", COLUMNS, rows, notes)
    yield gaps(facts)


def names(jobs, device, queue):
    return jobs.devices[device], jobs.queues[queue].label if queue >= 0 else ALL


def gaps(facts):
    """The longest gaps of each whole device, each with its largest piece."""
    idle, jobs, trace, rows = facts.idle, facts.jobs, facts.trace, []
    for (device, queue), longest in idle.longest.items():
        for ns, start, i, j in longest if queue < 0 else ():
            pieces = [piece for a, b in idle.looked_at(start, jobs.start[j])
                      for piece in idle.pieces(a, b, i, j)]
            begin, end, label, row = max(pieces, key=lambda piece: piece[1] - piece[0])[:4]
            error = None if NULL in (jobs.error[i], jobs.error[j]) else jobs.error[i] + jobs.error[j]
            rows.append((*names(jobs, device, queue), start, ns, trace.text(jobs.row[i]),
                         trace.text(jobs.row[j]), label, trace.text(row) if row >= 0 else "", end - begin,
                         error))
    return Table("idle_gaps", f"The {LONGEST} longest gaps, and the largest piece of each", GAPS, rows, [])
