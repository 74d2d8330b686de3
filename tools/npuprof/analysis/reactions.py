# SPDX-License-Identifier: MIT
"""Reactions: what else may change when something gets faster, and the graph does not have.

    turns       lanes of one device, or that may be of one, never work at the same time, and jobs wait while
                another one works: they may be one engine in turns
    preempts    jobs of one lane run wholly inside of those of another lane of their device, which take longer
                then: they may stop them
    beside      a thread that submits nothing works nearly as long as all would take then. It may bring what
                is worked on, or take the results: then it is what all wait for
    batches     an inference takes longer behind one that took longer: it may take all requests that have come
                meanwhile, and these are fewer if that one is done sooner
    pool        threads begin and end together: they may take from one list, and who gets faster takes more
    clock       the same work takes clearly longer in some parts of the run: the device's rate is not steady

The first five make a gain an interval. The last one only says that no gain is sure: which rate there would
be nobody knows.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import pairwise, permutations
from math import sqrt
from statistics import median

from ..tables.arithmetic import union_of
from . import requests
from .bounds import ALL, shrinking
from .effects import BATCH, BESIDE, POOL, PREEMPT, TURNS, either, percent
from .leaves import Leaves
from .levels import same_factor, speeds
from .moments import ARRIVAL, LEAVES

SHARE = 50         # waits of less than one part of so many of the work of a device are no matter
FEW = 30           # inferences or jobs; of fewer nothing is said
NEAR = Fraction(9, 10)             # of the time that is left
# What may be waiting, by the words of its name.
WAITS = requests.WORDS | {"wait", "lock", "mutex", "semaphore", "barrier", "join", "cond", "fence", "sync",
                          "poll", "sleep", "usleep", "nanosleep", "idle", "queue", "get", "put", "push",
                          "pop", "take"}
AROUND = 10        # inferences before and behind; of so many jobs inside of others, one only in part
AGAIN = 4          # jobs inside of others
BLOCK, MOST = 5, 4000              # jobs in a row, and that are looked at
CLEAR = 4          # times the usual error of a correlation by chance
UNSTEADY = 0.01    # by which parts of a run differ


def bounded(replay, effect):
    """The Effect that holds what these reactions may bring."""
    if in_turns(replay):
        effect = either(effect, effect, TURNS, shrinking(replay, effect.changes, ()))
    if preempts(replay):
        effect = either(effect, effect, PREEMPT, shrinking(replay, effect.changes, ()))
    whole = replay.facts.window.length_ns
    left = (ALL - effect.window[1]) * whole / 100
    if effect.window[1] > 0 and beside(replay) > NEAR * left:
        # Why two points less: the median of what waits so is not its mean.
        least = max(0, ALL * (whole - beside(replay)) / (whole or 1)) - 2
        effect = either(effect, effect, BESIDE, (min(least, effect.window[0]), effect.window[1]))
    if effect.inference and effect.inference[1] > 0 and in_batches(replay):
        shortest = min(replay.facts.durations) / Fraction(replay.facts.durations_p50 or 1)
        low, high = effect.after
        other = effect._replace(inference=(effect.inference[0], ALL - (ALL - effect.inference[1]) * shortest),
                                after=(low * shortest, high))
        effect = either(effect, other, BATCH)
    shared = is_pool(replay) and not {"depth", "pes"} & {change[0] for change in effect.changes}
    return either(effect, shared_out(replay, effect), POOL) if shared else effect


def waiting_names(trace, words=frozenset(WAITS)):
    """Numbers of the names that sound like waiting."""
    return {n for n, text in enumerate(trace.names) if requests.words_of(text) & words}


def once(made):
    """Keeps what is made of a Replay with it."""
    def kept(replay):
        if made.__name__ not in replay.reactions:
            replay.reactions[made.__name__] = made(replay)
        return replay.reactions[made.__name__]
    return kept


@once
def in_turns(replay):
    """True: lanes of one device do not work at the same time, and jobs of one wait while others work."""
    facts, points = replay.facts, replay.points
    for queues in [*facts.jobs.queues_of, *facts.jobs.shared]:
        lanes = [facts.busy[q] for q in queues if len(facts.busy[q])]
        work = sum(lane.length() for lane in lanes)
        held = sum(ns for ns, q in zip(replay.held_up, points.jobs.queue) if q in queues)
        if len(lanes) > 1 and 100 * (work - union_of(lanes).length()) < work < SHARE * held:
            return True
    return False


@once
def preempts(replay):
    """True: jobs of one lane hardly ever run in part beside those of another one of their device, but often
    wholly inside of them. And nothing says that those do not take longer by as much than the ones without."""
    jobs = replay.facts.jobs
    for one, other in (pair for queues in jobs.queues_of for pair in permutations(queues, 2)):
        outer = jobs.of_queue[other]
        held, inside, beside_them = contained(jobs, jobs.of_queue[one], outer)
        # Why others without: where all have some, each PE may simply have its share of the work.
        if AGAIN <= min(inside, len(outer) - len(held)) and AROUND * beside_them <= inside:
            some = outer[::len(outer) // requests.MOST + 1]
            if requests.slope([held.get(k, 0) for k in some],
                              [jobs.end[k] - jobs.start[k] for k in some])[1] >= 1:
                return True
    return False


def contained(jobs, inner, outer):
    """({outer job: ns of the inner ones in it}, how many of those there are, how many run only in part beside
    an outer one)"""
    begins, held, inside, beside_them = [jobs.start[k] for k in outer], {}, 0, 0
    for k in inner:
        first = max(0, bisect_right(begins, jobs.start[k]) - 1)
        for other in outer[first:bisect_left(begins, jobs.end[k])]:
            if jobs.start[other] <= jobs.start[k] and jobs.end[k] <= jobs.end[other]:
                held[other] = held.get(other, 0) + jobs.end[k] - jobs.start[k]
                inside += 1
            elif jobs.end[other] > jobs.start[k]:
                beside_them += 1
    return held, inside, beside_them


@once
def beside(replay):
    """ns in the window that a thread without points works at most. What sounds like waiting is no work."""
    trace, window, known, most = replay.trace, replay.facts.window, set(replay.points.thread), 0
    waits, leaves = waiting_names(trace), Leaves(trace)
    for base in {trace.tracks[trace.track[i]].base for i in trace.host_rows} - known:
        pieces = leaves.pieces(base, window.start_ns, window.end_ns)
        most = max(most, sum(end - begin for begin, end, row in pieces
                             if row >= 0 and trace.name[row] not in waits))
    return most


@once
def senders_wait(replay):
    """True: a thread that submits nothing, and from which arrows come, is in spans that sound like waiting,
    and not for a clock. It may wait until others take what it brings."""
    points, window, trace = replay.points, replay.facts.window, replay.trace
    arrivals, senders = {}, set()
    for p, (kind, time, ref) in enumerate(points.point):
        if kind == ARRIVAL and ref not in points.handed:
            arrivals.setdefault(points.thread[p], []).append(time)
        elif kind == LEAVES and ref not in points.handed:
            senders.add(points.thread[p])
    waits, leaves = waiting_names(trace, WAITS - requests.CLOCK - {"idle"}), Leaves(trace)
    for base in senders - set(points.jobs.thread):
        told = arrivals.get(base, [])
        own = (end - begin for begin, end, row in leaves.pieces(base, window.start_ns, window.end_ns)
               if row >= 0 and trace.name[row] in waits
               and bisect_left(told, begin) == bisect_right(told, end + requests.AT_ONCE))
        if SHARE * sum(own) >= window.length_ns:
            return True
    return False


@once
def in_batches(replay):
    """True: requests come when they come, and an inference takes longer behind one that took longer. What
    drifts is no batch: they are compared with those around them."""
    points = replay.points
    known = set(points.handed)
    if not points.waited and not any(p.kind == ARRIVAL and p.ref not in known for p in points.point):
        return False
    took = [points.point[b].time - points.point[a].time for a, b in zip(points.begin, points.end)]
    # Why not of several threads: they are held up together.
    if len(took) < FEW or len({points.thread[p] for p in points.begin} | set(points.jobs.thread)) > 1:
        return False
    usual = [median(took[max(0, n - AROUND):n + AROUND + 1]) for n in range(len(took))]
    pairs = list(pairwise(map(int.__sub__, took, map(int, usual))))
    return requests.slope(*zip(*pairs[::len(pairs) // requests.MOST + 1]))[0] > 0


def of_threads(replay, times):
    """{thread: [(begin, end)] of its inferences} at these times."""
    points, at, found = replay.points, replay.graph.at, {}
    for begin, end in zip(points.begin, points.end):
        found.setdefault(points.thread[begin], []).append((times[at[begin]], times[at[end]]))
    return found


@once
def is_pool(replay):
    """True: threads with inferences begin within one of them, and end so. Why not of as many each: they may
    have their own."""
    own = of_threads(replay, replay.base).values()
    counts = set(map(len, own))
    if len(counts) < 2 or min(counts) < BLOCK:
        return False
    longest = max(end - begin for many in own for begin, end in many)
    return all(max(ends) - min(ends) <= longest for ends in (
        [min(begin for begin, _ in many) for many in own], [max(end for _, end in many) for many in own]))


def shared_out(replay, effect):
    """The Effect if each thread does as many inferences as it has time for until all end together."""
    times = replay.graph.times(replay.changed(effect.changes, False, False)[0])
    (before, usual), (after, then) = (balanced(of_threads(replay, own)) for own in (replay.base, times))
    return effect._replace(window=2 * (percent(before - after, before),), after=(2 * then, 2 * then),
                           inference=2 * (percent(usual - then, usual or 1),))


def balanced(own):
    """(ns until all end, the median inference) of threads that share the inferences out by their speed."""
    first = min(begin for many in own.values() for begin, _ in many)
    took = {thread: max(end for _, end in many) - first or 1 for thread, many in own.items()}
    speed = sum(Fraction(len(many), took[thread]) for thread, many in own.items())
    whole = sum(map(len, own.values())) / speed
    # Why weights: who ends early does more of them.
    weights = sorted((end - begin, whole / took[thread]) for thread, many in own.items()
                     for begin, end in many)
    left = sum(weight for _, weight in weights) / 2
    for ns, weight in weights:
        left -= weight
        if left <= 0:
            return whole, ns


@once
def is_unsteady(replay):
    """True: some device is faster in some parts of the run than in others, and no operator alone is."""
    facts, jobs = replay.facts, replay.facts.jobs
    for queues in jobs.queues_of:
        # Why by queue: one that is always slower than another one has no other clock for it.
        of_queue = [[k for k in jobs.of_queue[q] if jobs.inside[k]] for q in queues]
        pairs = sorted(pair for own in of_queue for pair in zip(own, speeds(facts, own)))
        first = max(0, len(pairs) - MOST) // 2
        if len(pairs) >= FEW and changes_rate(facts, *zip(*pairs[first:first + MOST])):
            return True
    return False


def changes_rate(facts, own, values):
    """True: so do these jobs, in phases of the run or by how long the device was idle before. values: how
    slow each is."""
    jobs, places = facts.jobs, {}
    # Why by inference: one whose input is larger has several jobs that take longer, and is no phase.
    for n, k in enumerate(own):
        places.setdefault(jobs.inference[k] if jobs.inference[k] >= 0 else ~n, []).append(n)
    places = list(places.values()) if len(places) > 2 * BLOCK else [[n] for n in range(len(own))]
    each = [median(values[n] for n in many) for many in places]
    usual = [median(each[n:n + BLOCK]) for n in range(len(each) - BLOCK + 1)]
    low, high = ends(usual, 50)
    if high - low > UNSTEADY and alike(*2 * [clipped(each, low, high)], 1) > CLEAR:
        slow = [(n, n + 1) for many, value in zip(places, usual) if value > (low + high) / 2 for n in many]
        return same_factor(facts, own, slow, high - low) is not False
    idle = [0, *(max(0, jobs.start[b] - jobs.end[a]) for a, b in pairwise(own))]
    values, idle = (clipped(many, *ends(many, 20)) for many in (values, idle))
    return max(values) - min(values) > UNSTEADY and any(
        abs(alike(idle, values, lag)) > CLEAR for lag in (0, 1))


def ends(values, part):
    """The values below and above which one of `part` lies."""
    ordered = sorted(values)
    return ordered[len(ordered) // part], ordered[-1 - len(ordered) // part]


def clipped(values, low, high):
    """Why: one that takes much longer by chance says nothing about the others."""
    return [min(max(value, low), high) for value in values]


def alike(one, two, lag):
    """How much what comes so many later in `two` goes with `one`, in times of what chance usually brings."""
    one, two = one[:len(one) - lag], two[lag:]
    x, y = ([float(value - sum(many) / len(many)) for value in many] for many in (one, two))
    size = sqrt(sum(a * a for a in x) * sum(b * b for b in y))
    return sum(map(float.__mul__, x, y)) / size * sqrt(len(x)) if size else 0
