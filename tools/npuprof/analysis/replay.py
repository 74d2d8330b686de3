# SPDX-License-Identifier: MIT
"""What a change would bring: the graph of the trace, replayed with other lags.

    replay = of(facts)
    effect = replay.effect(change, ...)     an Effect; several changes are replayed together

The changes are listed in __init__.py. A gain is positive if it gets faster. Its two ends are the two readings
of a pipelined instruction (programs.py), for depth and PEs the two ends of the clock's error, and for the
host the usual notice of an end and none, where the trace has not shown one. Depth and PEs change how many
inferences run at a time, so look at the window, not at the median inference.

Where nothing says whether a thread works or waits for a job, there are two more readings, and the gain holds
both: all of it is work, and all of it is waiting, which ends as soon after the job as it ever did. So it is
where nothing says when requests came (requests.py): all as soon as a thread was ready, and when they did; and
where a thread came after others: as late as it did, and with them.

Threads that share a queue may come to it in another order: where they would, and the queue serves who comes
first, that is replayed, too. Threads that seem to wait for each other (handovers.py) do so in one reading,
and work in the other.

Not replayed: what off-CPU time, contention for memory or cores, and clock rates do when something changes;
another order of locks or another choice of PE. So a gain is no bound of the truth.
"""

from fractions import Fraction
from functools import cached_property

from . import bounds, doorbell, locks, looks, polls, reactions, requests
from .bounds import INSIDE, low, lows
from .effects import (CALL, DOOR, FENCE, JOB, KILL, ORDER, POLL, START, Effect, differ, either, percent,
                      scaled, widened)
from .fences import found as fences_of
from .graph import Graph, Points, host_rows, overlaps
from .moments import ARRIVAL, END, NOTICED, SUBMIT
from .part import has_job
from .paths import Paths
from .programs import Programs
from .schedule import deepened, first_come, free_first

# What could be unknown: at most that share of the time of the path inside jobs.
UNEXPLAINED = Fraction(1, 10)


def of(facts):
    """The Replay of the facts, made once."""
    if not hasattr(facts, "replayed"):
        facts.replayed = Replay(facts)
    return facts.replayed


class Replay:
    """why: None, or in words why nothing can be replayed. In this Replay all that may be waiting is. working:
    the Replay of the other reading, made with this one as `waiting`; None: it is known what waits. fenced:
    the one in which jobs wait for those of other devices, made with these `fences` (fences.py), or None."""

    def __init__(self, facts, waiting=None, fences=None):
        self.facts, self.trace = facts, facts.trace
        self.effects, self.graphs, self.reactions = {}, {}, {}
        self.working, self.fenced, self.fences = None, None, fences or (waiting.fences if waiting else {})
        jobs = facts.jobs
        self.why = waiting.why if waiting else self._missing(jobs)
        if self.why:
            return
        self._graph_of(all_work=waiting is not None)
        if self.graph.stuck and self.points.handed:
            self._graph_of(handing=False)
        self.programs = waiting.programs if waiting else Programs(facts.trace, jobs, self.points.count)
        self.base = self.graph.times(self.points.lags())
        self.why = self._check()
        if not self.why and (jobs.unmarked or jobs.slept or self.points.handed) and not waiting:
            self.working = Replay(facts, self)
            self.why = self.working.why
        if not self.why and not waiting and not fences:
            found = fences_of(self.points)
            self.fenced = Replay(facts, fences=found) if found else None
            self.fenced = None if self.fenced and self.fenced.why else self.fenced

    def _graph_of(self, **what):
        self.points = Points(self.trace, self.facts.jobs, self.facts.window.inferences, **what)
        self.points.fence(self.fences)
        self.graph = Graph(self.points)

    def _missing(self, jobs):
        """In words, what is missing for a graph."""
        if not len(jobs):
            # Why: the operators of an interpreter are spans of the host.
            return None if self.facts.window.inferences and not jobs.queues else \
                "no execution of a device lies in the window"
        if jobs.are_drawn_loosely and jobs.by_order:
            return (f"the clock of {jobs.by_order[0]} is no steady one: of {len(jobs.unsure)} of {len(jobs)} "
                    "jobs it does not tell the length to a tenth")
        with_arrow = sum(thread >= 0 for thread in jobs.thread)
        if 10 * with_arrow < 9 * len(jobs):
            return (f"{len(jobs) - with_arrow} of {len(jobs)} executions have no arrow from a submission: "
                    "sampled kernels, or jobs without a number")
        if jobs.are_drawn_loosely:
            return (f"of {len(jobs.unsure)} of {len(jobs)} jobs the kernel's text does not tell the length "
                    "to a tenth: its device works on several jobs at once, its driver asks for ends by a "
                    "timer, or events were lost")
        if self.facts.missing_pct > 1:
            return (f"{jobs.missing} of {jobs.missing + len(jobs)} executions are missing, by their numbers: "
                    "those would get faster, too")
        own = sum(inference >= 0 for inference in jobs.inference)
        if self.facts.window.inferences and 2 * own < len(jobs):
            return (f"{len(jobs) - own} of {len(jobs)} executions are submitted outside of the inferences: "
                    "what those wait for is not known")
        return None

    def _check(self):
        """The graph with nothing changed must give every time as recorded."""
        points, wrong = self.points, 0
        if self.graph.stuck:
            return f"{self.graph.stuck} moments wait for each other"
        for p, n in enumerate(self.graph.at):
            wrong += self.base[n] != points.point[p].time and p not in points.shared
        for k, n in enumerate(self.graph.done):
            wrong += self.base[n] != points.end_of[k]
        if wrong:
            return f"the graph does not explain {wrong} of {len(self.base)} moments"
        return None

    def unexplained(self):
        """The share of the jobs' time that no rule of programs.py explains, a Fraction."""
        return self.programs.unexplained()

    # ---- Changes

    def effect(self, *changes):
        """The Effect of all changes together, or None if nothing can be replayed."""
        if self.why:
            return None
        if changes not in self.effects:
            own = self._readings(changes)
            for reading, what in requests.readings(self, own) if own else ():
                own = either(own, self._readings(changes, reading), what)
            own = own and reactions.bounded(self, own)
            own = widened(own) if own and self.shares else own
            other = own and self.fenced and self.fenced.effect(*changes)
            self.effects[changes] = either(own, other, FENCE) if other else own
        return self.effects[changes]

    @cached_property
    def shares(self):
        """True: threads share a queue, or wait for one another, or one wait is that of several jobs."""
        users, waits = {}, [i for i in self.points.jobs.wait if i >= 0]
        for q, thread in zip(self.points.jobs.queue, self.points.jobs.thread):
            users.setdefault(q, set()).add(thread)
        return bool(self.points.handing) or len(set(waits)) < len(waits) \
            or any(len(threads - {-1}) > 1 for threads in users.values())

    def _readings(self, changes, reading=None):
        """The Effect over what threads may do until their jobs end. reading: sets when requests come."""
        own, beside = self._effect(changes, reading), bounds.beside(self, changes)
        if own and self.facts.jobs.open:
            own = either(own, own, ORDER, bounds.shrinking(self, changes, beside))
        if not own or not (self.working or self.hears or self.locked or beside):
            return own
        other = self.working._effect(changes, reading) if self.working else own
        # Where nobody knows what waits for what, all shrinks as the jobs do, or nothing.
        is_open = beside or self.hears or self.locked or (self.facts.jobs.unmarked and self.loose)
        return either(own, other, JOB, bounds.shrinking(self, changes, beside) if is_open else None)

    @property
    def handing(self):
        """Names of the spans in which threads seem to wait for one another."""
        return set() if self.why else self.points.handing

    @cached_property
    def loose(self):
        """True: more may be unknown than whether a stretch is a wait. More than one of a hundred jobs has no
        such stretch, or several threads submit, which may wait for each other."""
        jobs = self.facts.jobs
        return 100 * len(jobs.stretches.loose) > len(jobs) or len(set(jobs.thread) - {-1}) > 1

    @cached_property
    def locked(self):
        """True: threads that submit seem to wait for one another."""
        return locks.wait_for_each_other(self.points) or locks.says_so(self.points)

    @cached_property
    def hears(self):
        """True: a thread with a job under way hears from another one, which may have waited for the job, or
        from one that seems to wait for it otherwise."""
        return any(map(self._hears, self.points.threads)) or reactions.senders_wait(self)

    def _hears(self, thread):
        """True: an arrow from another thread comes between a submission and the end of its inference, or the
        notice of its end."""
        under_way, until = set(), None
        for p in thread:
            kind, time, ref = self.points.point[p]
            if kind == SUBMIT:
                under_way.add(ref)
            elif kind == END:
                # Why not all: who works ahead waits for a job in a later inference.
                under_way = {k for k in under_way if (self.points.waits[k] or (0, 0))[1] > time}
                until = None
            elif kind == NOTICED:
                under_way.discard(ref)
                # Why not at once: what wakes a thread has the time of its waking.
                until = None if under_way else self._inference_end(ref, time)
            elif kind == ARRIVAL and ref not in self.points.handed and (
                    under_way or (until is not None and time <= until)):
                return True
        return False

    def _inference_end(self, k, time):
        inference, trace = self.facts.jobs.inference[k], self.trace
        return time if inference < 0 else max(time, trace.start[inference] + trace.dur[inference])

    def _effect(self, changes, reading):
        if any(change[0] in ("operator", "load") for change in changes) and self.unexplained() > UNEXPLAINED:
            return None
        forms = ((False, 0, None),) if self._is_nothing(changes) else self._forms(changes)
        results = [one for form in forms for one in self._measures(changes, reading, *form)]
        before = self._measure(*self._before(reading))
        window = self.facts.window.length_ns
        # Why as recorded, too: who looks by a clock may see an end at the tick at which it did.
        by_clock = looks.keeps_tick(self, changes) or looks.is_moved(self, changes)
        same = [before] if by_clock and len(forms) > 1 else []
        spans = [percent(before[1] - after[1], min(window, before[1]) or 1) for after in [*results, *same]]
        inference = None
        if before[0]:
            gains = [percent(before[0] - after[0], before[0]) for after in [*results, *same]]
            inference = min(gains), max(gains)
        assumed = self._reasons(changes) if differ(spans, inference) else ()
        medians, busy = [after[0] or 0 for after in [*results, *same]], sum(self.points.dur)
        jobs = [percent(busy - after[3], busy or 1) for after in results]
        return Effect(changes, inference, (min(spans), max(spans)), (min(jobs), max(jobs)), before[0],
                      (min(medians), max(medians)) if before[0] else None, max(after[2] for after in results),
                      frozenset(assumed))

    def _reasons(self, changes):
        """What is not known where the two ends of a gain differ."""
        kinds = {change[0] for change in changes}
        looked = looks.keeps_tick(self, changes) or looks.poll_of(self, changes)
        return {what for what, is_so in ((POLL, looked), (DOOR, doorbell.is_open(self, changes)),
                                         (KILL if self.points.jobs.given_up else CALL,
                                          any(self.sampled) and kinds & set(INSIDE)),
                                         (START, "dispatch" in kinds and any(self.held_up))) if is_so}

    def _before(self, reading):
        """(times, graph) with nothing changed. Why not as recorded if late threads come sooner: no change
        brings that."""
        if reading is not requests.come:
            return self.base, self.graph
        lags = self.points.lags()
        reading(self, lags)
        if self.served_in_order:
            return first_come(self.points, self.graph.threads, lags)
        return self.graph.times(lags), self.graph

    def _is_nothing(self, changes):
        """True: the trace has nothing that they change, such as transfers."""
        lags, depth, pes = self.changed(changes, False, None)
        return depth is None and pes is None and lags == self.points.lags()

    @cached_property
    def sampled(self):
        """Bytes by job: whether its time is that of a call, and for more than a tenth of it nothing says that
        the device worked."""
        jobs = self.points.jobs
        return bytes(10 * own > dur for own, dur in zip(jobs.call, self.points.dur))

    @cached_property
    def held_up(self):
        return bounds.held_up(self)

    @cached_property
    def poll(self):
        """How late a poll may see an end, ns; None: nothing says that threads poll."""
        return polls.step(self.facts.jobs, self._waited_for())

    @cached_property
    def poll_is_period(self):
        return polls.polls(self.facts.jobs, self._waited_for()) is not None

    @cached_property
    def polls_by_clock(self):
        return polls.by_clock(self.facts.jobs, self._waited_for())

    @cached_property
    def tick(self):
        """ns between two ticks of the clock by which threads look, or a multiple; None: they do not."""
        return looks.tick_of(self.facts.jobs, self._waited_for())

    def _waited_for(self):
        return [k for k in range(self.points.count) if self.facts.jobs.wait[k] >= 0]

    def _forms(self, changes):
        """(is a pipelined instruction all work, and a sampled kernel all the host's?, sign of the clock's
        error, notices that the trace has not shown take no time; None: polls see ends as late as they did)
        of each end of the interval.

        Why the error: a job that finds its queue busy for the first time begins after a job, not after its
        submission, and how long after is known only by a stamp of the host against one of the device.
        Why the notice: where threads lost the CPU while they waited, the usual one is no bound."""
        kinds = {change[0] for change in changes}
        if self.working and not kinds & {"depth", "pes", "notice"}:
            return (False, 0, True), (True, 0, False)
        if kinds & {"depth", "pes"}:
            return (False, -1, True), (False, 1, False)
        if looks.poll_of(self, changes):
            return (False, 0, True), (True, 0, False), (False, 0, None)
        two = any(program.pipelined for program in self.programs.all) or any(self.points.jobs.call) \
            or not self.points.early
        if kinds & {"device", "dispatch"} or looks.keeps_tick(self, changes) or (kinds & set(INSIDE) and two):
            return (False, 0, True), (True, 0, False)
        return ((False, 0, True), (False, 0, False)) if "host" in kinds else ((False, 0, False),)

    def changed(self, changes, fixed, short):
        """(lags, depth or None, more PEs or None) with the changes."""
        lags, depth, pes, jobs = self.points.lags(), None, None, self.points.jobs
        if short and any(change[0] == "host" for change in changes):
            lags.notice |= dict.fromkeys(self.points.early, 0)
        is_device = any(change[0] == "device" for change in changes)
        if short and (self.working or is_device or not self.points.early):
            lags.own = dict(self.points.own_at_least)
        if short and (self.working or is_device):
            # Why: a thread that finds less to wait for may be woken as soon as it ever was.
            floor = low(lags.notice.values())
            lags.notice = {p: min(ns, floor) for p, ns in lags.notice.items()}
        tick = looks.keeps_tick(self, changes)
        if tick and short is not None and (short or looks.is_slower(changes)):
            lags.notice = {p: 0 if short else max(ns, round(tick)) for p, ns in lags.notice.items()}
        # Why first: the other changes add to what these make of it.
        for change in sorted(changes, key=lambda change: change[0] not in ("dispatch", "notice")):
            what, name, k = change
            if what in ("operator", "load"):
                self._inside(lags, change, changes, fixed)
            elif what == "device":
                for n, ns in enumerate(lags.dur):
                    if has_job(name, jobs, n):
                        own = jobs.call[n] if fixed else 0
                        lags.dur[n] = own + round(k * (ns - own))
            elif what == "host":
                self._host(lags, name, k)
                doorbell.move(self, lags, (name, k), short)
            elif what == "dispatch":
                # Why not below 0: that is the clock's error.
                floors = lows(jobs, enumerate(lags.latency)) if k is None else {}
                for n, ns in enumerate(lags.latency):
                    if has_job(name, jobs, n):
                        floor = max(0, floors[jobs.device_of(n)]) if k is None else k
                        own = min(ns, floor + (fixed and self._clock_error(n) + self.held_up[n]))
                        lags.latency[n] = lags.queue[n] = own
            elif what == "notice":
                of = {p: self.points.point[p].ref for p in lags.notice}
                floors = lows(jobs, ((of[p], ns) for p, ns in lags.notice.items()
                                     if p not in self.points.early)) if k is None else {}
                lags.notice = {p: min(ns, floors.get(jobs.device_of(of[p]), 0) if k is None else k)
                               if has_job(name, jobs, of[p]) else ns for p, ns in lags.notice.items()}
            elif what == "depth":
                depth = k
            elif what == "pes":
                pes = k or 0
            else:
                raise ValueError(f"no change: {change}")
        if short is not None and looks.poll_of(self, changes):
            looks.look(self, lags, changes, short, looks.poll_of(self, changes))
        return lags, depth, pes

    def _measures(self, changes, reading, fixed, sign, short):
        lags, depth, pes = self.changed(changes, fixed, short)
        if reading:
            reading(self, lags)
        graph = self._deep(depth) if depth else self.graph
        if sign:
            self._queues(lags, sign)
        if pes is not None:
            times, graph = free_first(self.points, graph.threads, lags, self.pe_counts(pes))
            yield *self._measure(times, graph), 0, sum(lags.dur)
            return
        times = graph.times(lags)
        edge = self._edge(times, lags) if graph is self.graph else 0
        swaps = not depth and self.served_in_order and self._swaps(times)
        if not (swaps and reading is requests.come):
            yield *self._measure(times, graph), edge, sum(lags.dur)
        if swaps:
            yield *self._measure(*first_come(self.points, graph.threads, lags)), 0, sum(lags.dur)

    def _swaps(self, times):
        """True: with these times jobs would come to their queues in another order."""
        last, submitted = {}, self.graph.submitted
        for k, q in enumerate(self.points.jobs.queue[:self.points.count]):
            if submitted[k] >= 0:
                if times[submitted[k]] < last.get(q, times[submitted[k]]):
                    return True
                last[q] = times[submitted[k]]
        return False

    @cached_property
    def served_in_order(self):
        """True: each queue takes its jobs in the order of their submission, as the trace shows it."""
        times, _ = first_come(self.points, self.graph.threads, self.points.lags())
        return all(times[len(self.points.point) + k] == end for k, end in enumerate(self.points.end_of))

    def _inside(self, lags, change, changes, fixed):
        """Operators and loads. Why all of them at once: they share the paths of a program."""
        inside = [c for c in changes if c[0] in ("operator", "load")]
        if change != inside[0]:
            return
        programs = self.programs
        totals = programs.totals(inside, fixed)
        trace, rows = self.trace, self.points.jobs.row
        whole = {name: k for what, name, k in inside if what == "operator"}
        for n, (number, e) in enumerate(zip(programs.of, programs.place)):
            if number >= 0:
                # Why not the total itself: another change may have been there before.
                lags.dur[n] = scaled(lags.dur[n], totals[number][e], programs.all[number].dur[e])
            else:
                own = min(self.points.jobs.call[n], lags.dur[n]) if fixed else 0
                lags.dur[n] = own + round((lags.dur[n] - own) * whole.get(trace.text(rows[n]), 1))

    def _clock_error(self, k):
        """By how much two start latencies may differ for the clock's error alone, where the one of job k is
        from a stamp of the host to one of the device."""
        b, jobs = self.points.before[k], self.points.jobs
        error = max(0, jobs.error[k])
        return 2 * error if b < 0 or self.points.end_of[b] - error < jobs.s[k] else 0

    def _queues(self, lags, sign):
        """Moves the start after another job by the error of the clock, where it was not seen. At best it
        takes no longer than the 5th percentile: a device that has work need not wake up."""
        jobs, floors = self.points.jobs, lows(self.points.jobs, enumerate(lags.latency))
        for k, ns in enumerate(lags.queue):
            b = self.points.before[k]
            if b < 0 or self.points.end_of[b] < jobs.s[k]:
                usual = ns if sign > 0 else min(ns, floors[jobs.device_of(k)])
                lags.queue[k] = max(0, usual + sign * max(0, jobs.error[k]))

    def _host(self, lags, name, k):
        points = self.points
        for p, ns in overlaps(points, host_rows(self.trace, points, name), True).items():
            changed = round(ns * (k - 1))
            if points.point[p].kind != NOTICED:
                lags.stretch[p] = max(0, lags.stretch[p] + changed)
            elif p in points.early:
                lags.own[p] = max(0, lags.own[p] + changed)

    def _deep(self, depth):
        """The graph with that many submissions in flight on each queue."""
        if depth not in self.graphs:
            points, jobs = self.points, self.points.jobs
            users = {}
            for k in range(points.count):
                users.setdefault(jobs.queue[k], set()).add(jobs.thread[k])
            of_thread = {}
            for queue, threads in users.items():
                for thread in threads:
                    of_thread[thread] = max(of_thread.get(thread, 1), -(-depth // len(threads)))
            threads = [deepened(points, thread, of_thread.get(points.thread[thread[0]], 1))
                       for thread in points.threads]
            self.graphs[depth] = Graph(points, threads)
        return self.graphs[depth]

    def pe_counts(self, more):
        """By device, the number of its PEs and `more`."""
        queues, counts = self.points.jobs.queues, {}
        for queue in queues:
            counts[queue.device] = counts.get(queue.device, 0) + 1
        devices = self.trace.metadata.get("devices") or ()
        named = {d.get("name"): d.get("pe_count") for d in devices if isinstance(d, dict)}
        for device, count in counts.items():
            known = named.get(self.points.jobs.devices[device])
            known = known if isinstance(known, int) and 0 < known < 4096 else 0
            counts[device] = max(count, known) + more
        return counts

    def _measure(self, times, graph):
        """(twice the median inference, ns from the first begin or submission to the last end)"""
        points, at = self.points, graph.at
        if points.inferences:
            ends = [times[at[p]] for p in points.end]
            begins = [times[at[p]] for p in points.begin]
            ordered = sorted(map(int.__sub__, ends, begins))
            median = ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]
            return median, max(ends) - min(begins)
        return None, max(times) - points.first

    def _edge(self, times, lags):
        """The share of waits, in percent, that would come to decide the time if the device were 10 % of a job
        slower: there a notice that this trace has not shown decides."""
        near = 0
        for p in self.points.early:
            n, k = self.graph.at[p], self.points.point[p].ref
            since, done = times[self.graph.first[n]] + lags.own[p], times[self.graph.done[k]] + lags.notice[p]
            near += done <= since < done + lags.dur[k] // 10
        return percent(near, len(self.points.notice) or 1)

    # ---- The critical path

    @property
    def paths(self):
        if not hasattr(self, "_paths"):
            self._paths = Paths(self)
        return self._paths
