# SPDX-License-Identifier: MIT
"""Handovers: spans that end when another thread does something, and no arrow says so: the wait for a lock, at
a barrier, for another thread's queue.

Where a thread lets go of what another one waits for, that one goes on at once. So for the spans of each name
and each kind of moment (a span of some name begins, or ends) it is counted how many of these spans end at
once behind such a moment of another thread. It may be chance; how often chance does that is seen at SHIFTS
other times. If most of the spans do, they may have waited for it, and are replayed so, and as work.

A lock may be taken inside a span, too. Then spans of that name in other threads hardly ever end sooner
behind each other than the shortest of them takes, and by chance they would. Such a span holds the lock from
the end of the one before it.

A long wait that ends at once behind the last moment of another thread joins it, and a thread that begins at
once behind it may have been started then. One is enough for both.

What a thread is in between its spans may be such a wait, too.

    site        the name of such spans; NO_SPAN: of pieces between them
    Handover    name (NO_SPAN: of no span), base, begin, end: of the span; lag: ns from the last moment to
                its end; moments: [(base, ns)], the latest of each other thread since the span before it at
                the same site, the last one last
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict, namedtuple
from itertools import pairwise

from ..base.contract import NULL
from .leaves import Leaves

NO_SPAN = -1
AT_ONCE = 50_000   # ns
SHORT = 1000       # ns: a shorter span waits for nothing
LEAST = 8          # spans of a name: of fewer nothing is said
LOOKED_AT, FEW = 500, 20           # of them
SHARE = 200        # spans of less than one part of so many of the time hold nothing up
SHIFTS = 8
NEARLY = 0.8       # of the shortest span
LONG, SOON = 50, 100               # a join takes one part of so many of the time, and the end one of it

Handover = namedtuple("Handover", "name base begin end lag moments")


class Spans:
    """The spans of some threads that may be waits, and all moments at which spans begin or end.

    sites: {name: [(base, begin, end)]}. moments: {(name, is it an end?): [(ns, base)]}, sorted. length: ns of
    all threads together."""

    def __init__(self, trace, threads, may_wait):
        self.sites, self.moments = defaultdict(list), defaultdict(list)
        finder = trace.finder
        for base in threads:
            for i in finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]:
                name, begin, end = trace.name[i], trace.start[i], trace.start[i] + trace.dur[i]
                self.moments[name, False].append((begin, base))
                self.moments[name, True].append((end, base))
                if end - begin >= SHORT and may_wait(name, begin, end, base, i):
                    self.sites[name].append((base, begin, end))
        for times in self.moments.values():
            times.sort()
        self._between(trace, threads, may_wait)
        ends = [time for times in self.moments.values() for time, _ in (times[0], times[-1])]
        self.length = len(threads) * (max(ends) - min(ends)) if ends else 0

    def _between(self, trace, threads, may_wait):
        """Pieces in no span, or in one that only holds others."""
        leaves, finder = Leaves(trace), trace.finder
        for base in threads:
            rows = finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]
            first = trace.start[rows[0]] if len(rows) else 0
            last = max((trace.start[i] + trace.dur[i] for i in rows), default=0)
            self.sites[NO_SPAN] += [
                (base, begin, end) for begin, end, row in leaves.pieces(base, first, last)
                if end - begin >= SHORT and (row < 0 or leaves.is_container(row))
                and may_wait(NO_SPAN, begin, end, base, row)]


def found(trace, threads, may_wait):
    """All Handovers of these threads. may_wait(name, begin, end, base, row): nothing else says what this
    span is, or this piece of a thread that is in no span (NO_SPAN)."""
    if len(threads) < 2:
        return []
    spans, handovers = Spans(trace, threads, may_wait), []
    for name, site in sorted(spans.sites.items()):
        if len(site) >= LEAST and SHARE * sum(end - begin for _, begin, end in site) >= spans.length:
            # Why long ones: what no lock or queue stops is soon over, and would be most of them.
            some = [one for one in site if name != NO_SPAN or one[2] - one[1] > AT_ONCE]
            kind = cause_of(spans, name, some) if len(some) >= LEAST else None
            handovers += of_site(name, site, without(spans.moments[kind], site)) if kind else \
                of_lock(name, site) if name != NO_SPAN else ()
    return handovers


def joins(trace, jobs):
    """{row: Handover} of the waits in which a thread waits for the end of others, all those that submit."""
    finder, last, found = trace.finder, {}, {}
    for base in set(jobs.thread) - {-1}:
        rows = finder.rows[finder.ends[base - 1] if base else 0:finder.ends[base]]
        last[base] = max((trace.start[i] + trace.dur[i] for i in rows), default=0)
    if len(last) < 2:
        return found
    least = (max(last.values()) - min(s for s in jobs.s if s != NULL)) // LONG
    for i in trace.host_rows:
        base, begin, end = trace.tracks[trace.track[i]].base, trace.start[i], trace.start[i] + trace.dur[i]
        if jobs.names[trace.name[i]] and base in last and end - begin > max(least, SHORT):
            ended = sorted((ns, other) for other, ns in last.items() if other != base and begin < ns < end)
            if ended and SOON * (end - ended[-1][0]) < end - begin:
                found[i] = Handover(trace.name[i], base, begin, end, end - ended[-1][0],
                                    [(other, ns) for ns, other in ended])
    return found


def follows(found):
    """[Handover] to threads that begin when another one has ended. found: {base: its Points}."""
    times = {base: [one.time for one in own] for base, own in found.items()}
    spans = {base: (min(own), max(own)) for base, own in times.items()}
    whole = max((last for _, last in spans.values()), default=0)
    whole -= min((begin for begin, _ in spans.values()), default=0)
    ends = sorted((last, base) for base, (_, last) in spans.items())
    for base, (begin, _) in sorted(spans.items()):
        n = bisect_left(ends, (begin, -1))
        if n and SOON * (begin - ends[n - 1][0]) < whole:
            yield Handover(-1, base, begin, begin, begin - ends[n - 1][0], [ends[n - 1][::-1]])


def until_sent(one, leaves):
    """The Handover, ended where its thread first sends something behind what it waited for. leaves: when it
    sends. Why: what is sent inside the span has waited for the same."""
    n = bisect_right(leaves, one.end - one.lag)
    end = min([one.end, *leaves[n:n + 1]])
    return one._replace(end=end, lag=one.lag - (one.end - end))


def without(moments, site):
    """The moments but for those at which a span of the site ends on that thread: they come from what the span
    waited for, as its own end does."""
    ends = {(end, base) for base, _, end in site}
    return [moment for moment in moments if moment not in ends]


def cause_of(spans, name, site):
    """The kind of moments that the spans of a site wait for, or None."""
    some, best = site[::-(-len(site) // LOOKED_AT)], None
    length = max(end for _, _, end in some) - min(begin for _, begin, _ in some)
    for kind in sorted(spans.moments):
        # Why asked twice: most kinds are none, and to leave some out costs more.
        if kind != (name, True) and how_many(spans.moments[kind], some):
            moments = without(spans.moments[kind], site)
            seen = how_many(moments, some)
            key = seen, len(moments)
            if seen and (best is None or key > best[0]) and not by_chance(moments, some, seen, length):
                best = key, kind
    return best and best[1]


def how_many(moments, some):
    """How many of the spans end at once behind one of the moments, if three of four do; else 0."""
    missed, most = 0, len(some) // 4
    for n, (base, begin, end) in enumerate(some):
        missed += not at_once(moments, base, begin, end)
        # Why so soon: of most kinds hardly any does.
        if missed > most or (n < FEW and missed > FEW // 2):
            return 0
    return len(some) - missed


def by_chance(moments, some, seen, length):
    """True: at half of the other times as many as half of the spans would do that, too."""
    counts = sorted(sum(at_once(moments, base, begin + shift, end + shift) for base, begin, end in some)
                    for shift in (length * (n + 1) // (10 * SHIFTS) for n in range(SHIFTS)))
    return 2 * counts[SHIFTS // 2] >= seen


def at_once(moments, base, begin, end):
    """True: the span ends at once behind such a moment of another thread."""
    return latest(moments, max(begin, end - AT_ONCE), end, base) is not None


def latest(moments, since, until, base):
    """The latest (ns, base) of sorted moments in (since, until) of another thread; None. Why not at its end:
    to be woken takes time."""
    n = bisect_left(moments, (until, -1)) - 1
    while n >= 0 and moments[n][0] > since:
        if moments[n][1] != base:
            return moments[n]
        n -= 1
    return None


def of_site(name, site, moments):
    """The Handovers of a site."""
    of_thread, before = defaultdict(list), {}
    for moment in moments:
        of_thread[moment[1]].append(moment)
    for base, begin, end in sorted(site, key=lambda span: span[2]):
        since = before.get(base, -2**62)
        told = sorted(found for times in of_thread.values()
                      if (found := latest(times, since, end, base)) is not None)
        before[base] = end
        if told and told[-1][0] > begin:
            yield Handover(name, base, begin, end, end - told[-1][0], [(other, ns) for ns, other in told])


def of_lock(name, site):
    """The Handovers of spans that take a lock, or none."""
    shortest = sorted(end - begin for _, begin, end in site)[len(site) // 20]
    length = max(end for _, _, end in site) - min(begin for _, begin, _ in site)
    threads = sorted({base for base, _, _ in site})

    def too_soon(shift):
        ends = sorted((end + threads.index(base) * shift, base) for base, _, end in site)
        return sum(b - a < NEARLY * shortest for (a, one), (b, other) in pairwise(ends) if one != other)
    chance = sorted(too_soon(length * (n + 1) // (10 * SHIFTS)) for n in range(SHIFTS))[SHIFTS // 2]
    if chance < LEAST or 10 * too_soon(0) > chance:
        return
    ends = sorted((end, base, begin) for base, begin, end in site)
    for (before, other, _), (end, base, begin) in pairwise(ends):
        if base != other and begin < before < end - 1:
            yield Handover(name, base, begin, before + 1, 1, [(other, before)])
