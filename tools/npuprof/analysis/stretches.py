# SPDX-License-Identifier: MIT
"""Stretches: where a thread may have waited for a job, and nothing says so.

The trace shows when a job ended and what its thread did then, not whether that was work or waiting: a thread
inside an ioctl, a queue's get() or no span at all looks the same in both. A stretch is a piece between two
changes of the innermost span. It may hide a wait only if hardly any job was still running when it ended: a
wait does not end before the device does.

    site    where a stretch is behind the submission: the name of its span, and how many pieces come before

The stretches of jobs that are submitted alike are those at the first site behind which 1 % of them ended or
less, if most of them ended there. Otherwise nobody knows where their threads wait.
"""

from array import array
from bisect import bisect_right
from collections import Counter

from .leaves import Leaves

BEHIND = 100       # one of so many jobs may end behind the stretch


class Stretches:
    """of: {job: (its submission, the end of its stretch)}. names: of the spans there; -1: none. loose: jobs
    that have neither a wait nor a stretch."""

    def __init__(self, trace, jobs):
        self.trace, self.jobs = trace, jobs
        self.leaves = Leaves(trace)
        self.of, self.names, self.loose, self.threads = {}, set(), [], {}
        pools = {}
        for k, thread in enumerate(jobs.thread):
            if thread >= 0 and jobs.wait[k] < 0:
                pools.setdefault((jobs.device_of(k), jobs.submit[k] >= 0 and trace.name[jobs.submit[k]]),
                                 []).append(k)
        submissions = {}
        for s, thread in zip(jobs.s, jobs.thread):
            submissions.setdefault(thread, array("q")).append(s)
        self.submissions = {thread: array("q", sorted(moments)) for thread, moments in submissions.items()}
        for pool in pools.values():
            self._pool(pool)
        for k, (begin, end) in self.of.items():
            self.threads.setdefault(jobs.thread[k], []).append((begin, end, jobs.end[k]))
        for found in self.threads.values():
            found.sort()

    def _pool(self, pool):
        """Finds the site of jobs that are submitted alike."""
        ended, pieces = [], {}
        for k in pool:
            pieces[k] = self._pieces(k)
            ended.append(self._ended_in(k, pieces[k]))
        order = sorted(ended)
        site = order[-1 - len(order) // BEHIND]
        counts = Counter(self._name(pieces[k][site]) for k, n in zip(pool, ended) if n == site)
        name = max(sorted(counts), key=counts.get)
        # Why half: a thread that does other things while its jobs run has no one place where they end.
        if 2 * counts[name] <= len(pool):
            self.loose += pool
            return
        self.names.add(name)
        for k, n in zip(pool, ended):
            own = pieces[k]
            if n != site or self._name(own[site]) != name:
                self.loose.append(k)
            else:
                # Why from the submission on: all in between may be waiting, as looks at a register are.
                self.of[k] = self.jobs.s[k], own[site][1]

    def _pieces(self, k):
        """[(start, end, row)] of its thread from the submission to the end of the inference, else to the next
        submission behind the job's end."""
        jobs, trace = self.jobs, self.trace
        moments, inference = self.submissions[jobs.thread[k]], jobs.inference[k]
        last = max(jobs.end[k], jobs.s[k])
        n = bisect_right(moments, last)
        ends = list(moments[n:n + 1])
        if inference >= 0:
            ends.append(trace.start[inference] + trace.dur[inference])
        return self.leaves.pieces(jobs.thread[k], jobs.s[k], max(min(ends, default=jobs.S[k] + 1), last + 1))

    def _ended_in(self, k, pieces):
        """The number of the piece in which job k ended; within the error of its clock an earlier one."""
        end = self.jobs.end[k]
        n = next(n for n, piece in enumerate(pieces) if end < piece[1] or n == len(pieces) - 1)
        while n and end - max(self.jobs.error[k], 0) <= pieces[n][0]:
            n -= 1
        return n

    def _name(self, piece):
        row = piece[2]
        return -1 if row < 0 or self.leaves.is_container(row) else self.trace.name[row]

    def waits_at(self, thread, ns):
        """True: at that moment the thread is in a stretch whose job has ended."""
        found = self.threads.get(thread, ())
        n = bisect_right(found, (ns, 2**62, 0)) - 1
        return n >= 0 and found[n][0] <= ns < found[n][1] and found[n][2] <= ns

