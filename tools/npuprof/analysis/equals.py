# SPDX-License-Identifier: MIT
"""Equals: does one of several PEs or threads take longer for the same as the others?

    execute     executions of one kind (name, number of instructions, ops and bytes if they are there) on
                lanes that are equals (lanes.py)
    dispatch    from when a job could start to its start, by lane; behind another job apart from the others
    notice      from the end of the job that a wait waited for last to the end of the wait, by lane
    host        own time of host spans of one name, by thread

A member is compared with all others together. shift is the median of the differences of all pairs
(Hodges-Lehmann); low and high are its 99 % interval; of execute and host the differences are those of the
logarithms. It is unequal if the near end of the interval is 5 % of what the others take, and twice the
error of the clock; and p of the rank test passes Holm's test for all members of all groups at LEVEL. Of each
member SAMPLES spans are looked at, evenly over the window.

Host spans that may wait are no evidence: those in which jobs of their thread end, and those in which threads
seem to wait for each other (handovers.py).
"""

from bisect import bisect_right
from collections import namedtuple
from fractions import Fraction
from functools import cached_property
from math import exp, log, sqrt
from statistics import median

from ..base.contract import INFERENCE, NULL, RECORD, UNFINISHED, WARM_UP
from ..tables.tracks import label_of
from .arguments import chosen
from .engines import members
from .figures import holm
from .leaves import LOCKS, Leaves
from .polls import waits
from .steady import rank_p

SAMPLES, LEAST, ALL = 128, 8, 20_000       # of a member, and of all members of a group together
PIECE, ROWS = 64, 16_384                    # of the rows of threads: one piece, and those of all threads
LEVEL = 0.005
NEAR_PCT = 5       # what counts as slower
TOLD = 2.576       # standard deviations of a 99 % interval
OPERATED = 32      # jobs of a lane whose operators are looked at
# what: see above. name: of the spans, or "". base: the member's track; label: for a reader. count: of its
# spans; others: how many other members. own, usual: medians in ns. shift, low, high: ns that it takes longer
# for each. certain: True if the work is known to be the same. rows: the longest
# inside: True if the operators of execute take longer, too, False if not, None: there are none
Unequal = namedtuple("Unequal", "what name base label count others own usual shift low high certain inside "
                                "rows")


class Group:
    """values: {base: [(ns, row)]}, evenly over the window. is_factor: differences are those of logarithms.
    error: ns. certain: the work is known to be the same. count: {base: all of its spans}"""

    def __init__(self, what, name, is_factor, values, count, error=0, certain=True):
        self.what, self.name, self.is_factor, self.error = what, name, is_factor, error
        self.certain, self.count = certain, count
        self.values = {base: own for base, own in values.items() if len(own) >= LEAST}

    def compared(self):
        """Yields (p, base, shift, low, high) of each member; none where it is not slower."""
        if len(self.values) < 2:
            return
        numbers = {base: [log(max(ns, 1)) if self.is_factor else ns for ns, _ in own]
                   for base, own in self.values.items()}
        middles = {base: median(own) for base, own in numbers.items()}
        for base, own in numbers.items():
            others = [value for other, values in numbers.items() if other != base for value in values]
            usual = median(others)
            # Why a look at the medians first: most members are equal.
            least = log(1 + NEAR_PCT / 100) if self.is_factor else max(1, NEAR_PCT * usual / 100)
            if middles[base] - usual < least:
                yield 1.0, base, None
                continue
            others = others[::len(others) // (2 * SAMPLES) + 1]
            shift, low, high = shift_of(own, others)
            if self.is_factor:
                shift, low, high = ((exp(value) - 1) * exp(usual) for value in (shift, low, high))
                usual = exp(usual)
            far = low > max(NEAR_PCT * usual / 100, 2 * self.error, 1)
            yield rank_p(own, others), base, (usual, shift, low, high) if far else None


def shift_of(one, two):
    """(shift, low, high): the Hodges-Lehmann estimate of by how much `one` is above `two`, and its 99 %
    interval."""
    n, m = len(one), len(two)
    differences = sorted(a - b for a in one for b in two)
    c = max(0, int(n * m / 2 - TOLD * sqrt(n * m * (n + m + 1) / 12)))
    return median(differences), differences[c], differences[-1 - c]


def in_pieces(values, most):
    """(about so many of the values, which share that is). Why pieces: what comes in turn would be missed."""
    count = len(values)
    if count <= most:
        return values, 1
    pieces = most // PIECE
    found = []
    for n in range(pieces):
        first = n * (count - PIECE) // (pieces - 1)
        found.extend(values[first:first + PIECE])
    return found, len(found) / count


def evenly(values, most):
    """At most so many of the values, evenly over them."""
    count = len(values)
    return values if count <= most else [values[n * count // most] for n in range(most)]


class Equals:
    """unequal: the Unequal members, the one with most to gain first; compared: how many members were."""

    def __init__(self, facts):
        self.facts, self.trace, self.jobs = facts, facts.trace, facts.jobs
        tests = []
        for group in self._groups():
            tests += [(*one, group) for one in group.compared()]
        self.compared, self.unequal = len(tests), []
        for p, (_, base, told, group) in zip(holm([test[0] for test in tests]), tests):
            if told and p <= LEVEL and group.name not in self.facts.replay.handing:
                self.unequal.append(self._unequal(group, base, *told))
        self.unequal.sort(key=lambda one: (-one.shift * one.count, one.what, one.base))

    def _unequal(self, group, base, usual, shift, low, high):
        own = sorted(group.values[base], reverse=True)
        return Unequal(group.what, group.name, base, self._label(base), group.count[base],
                       len(group.values) - 1, round(usual + shift), round(usual), round(shift), round(low),
                       round(high), group.certain, self._inside(group, base),
                       [row for _, row in own[:3]])

    def _inside(self, group, base):
        """Do the operators of a lane's jobs take longer, too?"""
        if group.what != "execute":
            return None
        sums = {}
        for other in group.values:
            jobs = evenly(self._of_lane[other], OPERATED)
            sums[other] = [log(max(ns, 1)) for ns in (sum(map(self.trace.dur.__getitem__, rows))
                                                      for _, rows in members(self.facts, jobs))]
        others = [ns for other, own in sums.items() if other != base for ns in own]
        if min(len(sums[base]), len(others)) < LEAST:
            return None
        return shift_of(sums[base], evenly(others, 2 * OPERATED))[1] > log(1 + NEAR_PCT / 100)

    def _label(self, base):
        return label_of(self.trace, self.trace.tracks[base])

    def _groups(self):
        for group in self.facts.lanes.groups:
            if len(group.bases) > 1:
                yield from self._of_lanes(group.bases)
        yield from self._of_threads()

    # ---- Lanes

    @cached_property
    def _of_lane(self):
        found = {}
        for k in range(len(self.jobs)):
            if self.jobs.inside[k]:
                found.setdefault(self.jobs.queues[self.jobs.queue[k]].base, []).append(k)
        return found

    def _of_lanes(self, bases):
        jobs, most = self.jobs, min(SAMPLES, max(LEAST, ALL // len(bases)))
        owns = {base: self._of_lane.get(base, []) for base in bases}
        taken = {base: evenly(own, most) for base, own in owns.items()}
        everything = [k for own in taken.values() for k in own]
        errors = sorted(max(jobs.error[k], 0) for k in everything)
        error = errors[len(errors) // 2] if errors else 0
        count = {base: len(own) for base, own in owns.items()}
        kinds, certain = self._kinds(everything)
        yield Group("execute", "", True, self._centred(taken, kinds, lambda k: jobs.end[k] - jobs.start[k],
                                                       True), count, error, certain)
        started = {base: [k for k in own if jobs.s[k] != NULL] for base, own in taken.items()}
        behind = {k: jobs.before[k] >= 0 and jobs.end[jobs.before[k]] > jobs.s[k] for k in everything}
        yield Group("dispatch", "", False, self._centred(started, behind, jobs.latency.__getitem__, False),
                    count, error)
        # Why all jobs: of a sample nobody knows which one its wait was for.
        own = [k for base in bases for k in owns[base]]
        last = set(waits(jobs, own)) if len(own) <= ALL else ()
        seen = {base: evenly([k for k in of if k in last], most) for base, of in owns.items()}
        yield Group("notice", "", False, {base: [(jobs.n[k] - jobs.end[k], jobs.row[k]) for k in of]
                                          for base, of in seen.items()}, count, error)

    def _kinds(self, ks):
        """({job: what must be the same}, True if that says how much work it is)"""
        trace, jobs = self.trace, self.jobs
        _, ends, _ = trace.executions
        found, certain = {}, True
        work = {key: chosen(trace, [jobs.row[k] for k in ks], (key,))[key] if trace.mentions(key)
                else [NULL] * len(ks) for key in ("ops", "bytes")}
        for n, k in enumerate(ks):
            g = jobs.group[k]
            inside, own = ends[g] - (ends[g - 1] if g else 0), (work["ops"][n], work["bytes"][n])
            found[k] = trace.name[jobs.row[k]], inside, own
            certain = certain and (inside > 1 or own != (NULL, NULL))
        return found, certain

    def _centred(self, taken, kinds, of, is_factor):
        """{base: [(ns, row)]}: each as if it were of the most frequent kind. Only kinds that two members have
        are looked at."""
        members, values = {}, {}
        for base, own in taken.items():
            for k in own:
                members.setdefault(kinds[k], {}).setdefault(base, []).append(of(k))
        centres = {kind: median(map(median, own.values())) for kind, own in members.items() if len(own) > 1}
        if not centres:
            return {}
        usual = centres[max(centres, key=lambda kind: (sum(map(len, members[kind].values())), str(kind)))]
        for base, own in taken.items():
            for k in own:
                if kinds[k] in centres:
                    centre = centres[kinds[k]]
                    ns = of(k) * usual / max(centre, 1) if is_factor else of(k) + usual - centre
                    values.setdefault(base, []).append((ns, self.jobs.row[k]))
        return values

    # ---- Threads

    def _of_threads(self):
        trace, window, found = self.trace, self.facts.window, {}
        quiet = {*(i for i in self.jobs.wait if i >= 0)}
        waiting = {trace.name[i] for i in quiet}
        # Why only threads that submit: others may do other work under the same name.
        threads = sorted(set(self.jobs.thread) - {-1})
        if len(threads) < 2:
            return
        finder, shares = trace.finder, {}
        for base in threads:
            rows = finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]
            rows, shares[base] = in_pieces(rows, max(16 * PIECE, ROWS // len(threads)))
            for i in rows:
                if trace.name[i] not in waiting and trace.kind[i] not in (RECORD, WARM_UP, INFERENCE) \
                        and not trace.flags[i] & UNFINISHED and window.holds(trace.start[i],
                                                                             trace.start[i] + trace.dur[i]):
                    found.setdefault(trace.name[i], {}).setdefault(base, []).append(i)
        leaves, ended = Leaves(trace), self._ends()
        for name, owns in sorted(found.items()):
            owns = {base: own for base, own in owns.items() if len(own) >= LEAST}
            if len(owns) < 2 or LOCKS.search(trace.names[name]):
                continue
            most = min(SAMPLES, max(LEAST, ALL // len(owns)))
            taken = {base: evenly(own, most) for base, own in owns.items()}
            if self._holds_ends(taken, ended):
                continue
            values = {base: [(own_time(leaves, i, base), i) for i in own] for base, own in taken.items()}
            count = {base: round(len(own) / shares[base]) for base, own in owns.items()}
            yield Group("host", trace.names[name], True, values, count, self.facts.host_error_ns, False)

    def _ends(self):
        """{thread: ends of its jobs, ascending}"""
        found = {}
        for thread, end in zip(self.jobs.thread, self.jobs.end):
            found.setdefault(thread, []).append(end)
        return {thread: sorted(own) for thread, own in found.items()}

    def _holds_ends(self, taken, ended):
        """True: in one of twenty of the spans a job of their thread ends."""
        start, dur = self.trace.start, self.trace.dur
        held = total = 0
        for base, own in taken.items():
            ends = ended.get(base, [])
            total += len(own)
            held += sum(bisect_right(ends, start[i] + dur[i]) > bisect_right(ends, start[i]) for i in own)
        return 20 * held >= total


def own_time(leaves, i, base):
    """ns of a span without those inside it."""
    start = leaves.trace.start[i]
    return sum(b - a for a, b, row in leaves.pieces(base, start, start + leaves.trace.dur[i]) if row == i)


def factor(one):
    """What a change multiplies the member's time with, so that it is like the others."""
    return Fraction(one.usual, one.own)
