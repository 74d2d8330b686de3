# SPDX-License-Identifier: MIT
"""Pairing: which wait of a thread is for which of its submissions.

An arrow from an execution to the wait decides. Else a wait takes one of the jobs under way by the rule of its
site: the oldest, the newest, one so many before the newest, or whichever ended first.

    site        waits of one name, behind equally many submissions in a row, at the same place in the waits
                that follow them; behind however many, where fewer than LEAST are alike

A rule fits a site if nearly always the job was done when the wait ended. Of those that fit, the one is taken
behind whose jobs the waits that blocked ended soonest: who waits for the last of three jobs ends as soon
behind it as always, and the first one was done long before. Why the oldest unless another one is clearly
sooner: most threads wait in turn, and jobs that end together make no difference. Where the next best rule is
not much worse, and its jobs end at other times, or where no one place fits, the site is open. So it is where
fewer than LEAST waits come behind several jobs, if that concerns more than one of SHARE.
"""

from bisect import bisect_right
from collections import Counter, namedtuple

SAYS_SO = 2        # of a name: its spans do wait, and do not only sound so
VOTES = 8          # waits of a name that show of which queue they are
PLACES = 8         # jobs before the newest that a wait may be for; also waits in a row that have rules
LOOKED_AT = 400    # waits of a site
LEAST = 3          # waits of a site: of fewer nothing is said
SHARE = 10         # waits: of so many, one may be of a site of which nothing is said
MISSED = 100       # one of so many waits of a site may end before the job of its rule
SOONER, MUCH = 2, 4                # times: another rule than the oldest is taken; the others are out
APART = 20         # jobs whose ends differ by less than one part of so many of their length end together
ANY = -1           # number of submissions before a site
OLDEST, FIRST = None, "first"      # rules; a number: so many before the newest
# One wait for a job. row: of the wait; look: begin of its first look; looks: those that saw nothing
Pair = namedtuple("Pair", "job row sure look looks", defaults=(None, None))


class Pairing:
    """The waits of one thread. pairs: [Pair], in the order of the waits. open: rows of waits that may be for
    another job. few: the jobs behind which there are too few waits to tell. given_up: jobs that ended behind
    their wait, and before the next submission, without another one. own: its jobs by submission; waits: rows
    by begin; by_arrow: {row: job}; names: see jobs.wait_names()."""

    def __init__(self, jobs, own, waits, by_arrow, names):
        self.jobs, self.own, self.waits, self.by_arrow, self.names = jobs, own, waits, by_arrow, names
        self.queue_of = queue_of(jobs, own, waits)
        self.rules, self.open_sites, self.open, self.seen, self.choices = {}, set(), set(), {}, 0
        self.count, self.few_alike = Counter(), set()
        self.pairs = list(self._walk())
        self.few_alike = {site for site, count in self.count.items() if count < LEAST}
        # Why one place after the other: which jobs are left is known when the waits before have theirs.
        for place in range(min(PLACES, self.choices)):
            self.seen = {}
            for _ in self._walk(place):
                pass
            self._decide()
        if self.rules or self.open_sites:
            self.pairs = list(self._walk())
        self.few = self._of_few()

    def _walk(self, place=-1):
        """Pairs all waits by the rules so far; notes in `seen` what those at that place in a row saw."""
        jobs, trace = self.jobs, self.jobs.trace
        start, dur, name = trace.start, trace.dur, trace.name
        pending, at, looks, row, undone = [], 0, (-1, -1), (0, 0), set()
        self.sites, self.asked, self.given_up = Counter(), [], set()
        for i, after in zip(self.waits, [*self.waits[1:], -1]):
            begin, end, before = start[i], start[i] + dur[i], at
            while at < len(self.own) and jobs.S[self.own[at]] <= begin:
                pending.append(self.own[at])
                at += 1
            row = (at - before, 0) if at > before else (row[0], row[1] + 1)
            if undone and at > before:
                self.given_up |= {k for k in undone if jobs.end[k] <= jobs.s[self.own[before]]}
                pending, undone = [k for k in pending if k not in self.given_up], set()
            if i in self.by_arrow:
                yield Pair(self.by_arrow[i], i, True)
                if self.by_arrow[i] in pending:
                    pending.remove(self.by_arrow[i])
                continue
            sure = self.names[name[i]] == SAYS_SO
            # Why: a name is no reason to believe that a job of an inference is waited for after its end.
            while pending and not sure and self._ended(pending[0], begin):
                pending.pop(0)
            left = self._left(pending, name[i])
            if not left:
                continue
            site = self._site(name[i], *row)
            if len(left) > 1:
                self.choices = max(self.choices, row[1] + 1)
                self._ask(site, i, left, begin, end)
            if row[1] == place:
                self._note(site, left, begin, end)
            k = self._pick(left, self.rules.get(site, OLDEST))
            if sure:
                same = looks[:2] == (k, name[i])
                looks = k, name[i], looks[2] if same else begin, looks[3] + 1 if same else 0
            if not self._done(k, end):
                undone |= {k} if sure and len(left) == 1 else set()
                continue
            if site in self.open_sites:
                self.open.add(i)
            yield Pair(k, i, sure, *(looks[2:] if sure else ()))
            undone.discard(k)
            place_of_job = pending.index(k)
            del pending[place_of_job]
            if sure and self._ends_row(at, after):
                for other in self._before(k, pending, place_of_job, begin):
                    yield Pair(other, i, sure)
                    pending.remove(other)
            # One wait for all jobs of an inference.
            inference = jobs.inference[k]
            if inference >= 0 and not self.queue_of and self._last_wait(after, inference):
                yield from (Pair(other, i, sure) for other in pending if jobs.inference[other] == inference)
                pending = [other for other in pending if jobs.inference[other] != inference]

    def _site(self, name, submissions, place):
        """The site of a wait. Counts the waits of each, until it is known which have too few."""
        self.count[name, submissions, place] += not self.few_alike
        return name, ANY if (name, submissions, place) in self.few_alike else submissions, place

    def _left(self, pending, name):
        """The jobs that a wait of that name may be for, the oldest first."""
        queue = self.queue_of.get(name)
        return pending if queue is None else [k for k in pending if self.jobs.queue[k] == queue]

    def _done(self, k, ns):
        return self.jobs.end[k] <= ns + max(self.jobs.error[k], 0)

    def _pick(self, left, rule):
        if rule == FIRST:
            return min(left, key=self.jobs.end.__getitem__)
        return left[0] if rule is OLDEST or rule >= len(left) else left[-1 - rule]

    def _note(self, site, left, begin, end):
        """What a wait saw: was a job done while it waited? {rule: (ns since the job was done, its length)}
        of the rules whose job was done when it ended."""
        found = self.seen.setdefault(site, [])
        if len(found) < LOOKED_AT:
            ends, own = self.jobs.end, {}
            for rule in (OLDEST, *range(min(PLACES, len(left))), FIRST):
                k = self._pick(left, rule)
                if self._done(k, end):
                    own[rule] = max(0, end - ends[k]), ends[k] - self.jobs.start[k]
            found.append((any(begin < ends[k] <= end for k in left[-PLACES:] + left[:1]), own))

    def _ask(self, site, i, left, begin, end):
        """Notes the first waits of a site: (site, row, the jobs that it may be for, did it block?)."""
        # Why not of an inference: one wait is for all of it. Of so many in a row those before tell as much.
        self.sites[site] += self.jobs.inference[left[-1]] < 0
        if self.sites[site] and site[1] == ANY and site[2] < PLACES and self.sites[site] < LEAST:
            self.asked.append((site, i, left[:], any(begin < self.jobs.end[k] <= end for k in left)))

    def _of_few(self):
        """The jobs of sites with fewer than LEAST waits, if they are many and some blocked: open ones."""
        few = {site: count for site, count in self.sites.items() if count < LEAST}
        asked = [one for one in self.asked if one[0] in few]
        if SHARE * sum(few.values()) <= len(self.waits) or not any(blocked for *_, blocked in asked):
            return set()
        self.open.update(i for _, i, *_ in asked)
        return {k for _, _, left, _ in asked for k in left}

    def _decide(self):
        """The rules of the sites that were seen."""
        for site, many in self.seen.items():
            rule, is_open = rule_of(many) if len(many) >= LEAST else (OLDEST, False)
            if rule is not OLDEST:
                self.rules[site] = rule
            if is_open:
                self.open_sites.add(site)

    def _ends_row(self, at, after):
        """True: the thread submits before the wait in row `after`, or has no other wait."""
        return after < 0 or (at < len(self.own)
                             and self.jobs.S[self.own[at]] <= self.jobs.trace.start[after])

    def _before(self, k, pending, place, begin):
        """The jobs of k's queue submitted before it that ended before it in the wait that began then. The
        thread has not waited for them sooner, and goes on without another wait. place: of k in pending, which
        is in the order of submissions."""
        jobs, found = self.jobs, []
        for n in range(place - 1, -1, -1):
            other = pending[n]
            if jobs.queue[other] == jobs.queue[k]:
                if jobs.end[other] < begin:
                    break        # Why: those before it ended sooner still, and there may be many of them
                if jobs.end[other] <= jobs.end[k]:
                    found.append(other)
        return found

    def _ended(self, k, ns):
        """True: the inference of job k ended before that moment."""
        inference, trace = self.jobs.inference[k], self.jobs.trace
        return inference >= 0 and trace.start[inference] + trace.dur[inference] <= ns

    def _last_wait(self, after, inference):
        """True: the wait in row `after`, -1 for none, begins behind that inference."""
        start, dur = self.jobs.trace.start, self.jobs.trace.dur
        return after < 0 or start[after] >= start[inference] + dur[inference]


def rule_of(many):
    """(the rule of a site, is it open?), by what its waits saw; see _note()."""
    counts = Counter(rule for _, own in many for rule in own)
    fits = [rule for rule in (OLDEST, *range(PLACES), FIRST)
            if MISSED * (len(many) - counts[rule]) <= len(many)]
    blocked = [own for is_blocked, own in many if is_blocked and own.keys() >= set(fits)]
    if not fits or fits[0] == FIRST:
        return (FIRST, bool(blocked)) if fits else (OLDEST, False)
    places = [rule for rule in fits if rule != FIRST]
    if not blocked:
        return places[0], False

    def usual(values):
        return sorted(values)[len(blocked) // 2]
    late = {rule: usual(own[rule][0] for own in blocked) for rule in places}
    best = min(places, key=late.get)
    if OLDEST in late and late[OLDEST] <= SOONER * late[best]:
        best = OLDEST
    apart = (usual(abs(own[rule][0] - own[best][0]) * APART - own[best][1] for own in blocked)
             for rule in places if late[rule] < MUCH * late[best])
    return best, any(ns > 0 for ns in apart)


def queue_of(jobs, own, waits):
    """{name: queue} of a thread with several queues, where each has waits of a name of its own: jobs of it
    are the last to end in such waits, but for one of ten at most."""
    trace, queues, votes = jobs.trace, {jobs.queue[k] for k in own}, {}
    ends = sorted((jobs.end[k], jobs.queue[k]) for k in own if len(queues) > 1)
    for i in waits if ends else ():
        counts = votes.setdefault(trace.name[i], Counter())
        end, queue = ends[bisect_right(ends, (trace.start[i] + trace.dur[i], 2**31)) - 1]
        if trace.start[i] < end <= trace.start[i] + trace.dur[i]:
            counts[queue] += 1
    found = {name: max(counts, key=counts.get) for name, counts in votes.items()
             if sum(counts.values()) >= VOTES and 10 * max(counts.values()) >= 9 * sum(counts.values())}
    names, rest = votes.keys() - found.keys(), queues - set(found.values())
    if len(names) == len(rest) == 1:
        # Why: one that was always done by then tells nothing, and only that one is left.
        found |= zip(names, rest)
    return found if len(found) == len(votes) and set(found.values()) == queues else {}
