# SPDX-License-Identifier: MIT
"""Processing elements: how busy each one was, how many at once, and how even.

busy: an execution runs; compute: an operator runs in it. Shares are of the window. imbalance = max / mean - 1
of the busy times over all PEs that the device has, among equals (lanes.py). n equal jobs on p PEs
cannot be more even than ceil(n / p) * p / n - 1: unavoidable. parallelism: sum of the busy times by the time
in which any PE is busy.
"""

from fractions import Fraction

from ..tables.arithmetic import union_of
from ..tables.table import Table, pct

TABLES = ("pe_busy", "pe_balance", "pe_at_once")
BUSY = ("device", "pe", "executions", "busy_ns", "busy_pct", "compute_ns", "compute_pct")
BALANCE = ("device", "pes", "used", "any_busy_ns", "any_busy_pct", "parallelism_ratio", "imbalance_pct",
           "unavoidable_pct")
AT_ONCE = ("device", "pes_busy", "total_ns", "share_pct")


def pe_count(facts, group, stated):
    """How many PEs there are of a group: what the trace says, else those that worked."""
    used, pid = len(group.bases), facts.trace.tracks[group.bases[0]].pid
    # Why alone: where the device has other lanes, too, nobody says how many are of this kind.
    count = stated.get((pid, group.name), stated.get((None, group.name)))
    known = isinstance(count, int) and facts.lanes.alone(group.device)
    return max(min(count, 2**20), used) if known else used


def stated_counts(trace):
    """{(process or None, name of the device): its PEs}, as the trace says."""
    found = {}
    for about in trace.metadata.get("devices") or ():
        pid, name = about.get("pid"), about.get("name")
        found[pid, f"{name} (pid {pid})" if trace.has_processes else name] = about.get("pe_count")
    return found


class Pes:
    """busy: {base track: Intervals}; jobs_on, compute: {base track: jobs, ns}. groups: equals, a lanes.Group
    each; count: of each group its PEs."""

    def __init__(self, facts):
        jobs, of, self.compute = facts.jobs, {}, {}
        for q, own in enumerate(facts.busy):
            of.setdefault(jobs.queues[q].base, []).append(own)
        self.busy = {base: union_of(own) for base, own in of.items()}
        self.jobs_on = dict.fromkeys(of, 0)
        for q in jobs.queue:
            self.jobs_on[jobs.queues[q].base] += 1
        for q, own in enumerate(facts.engines.queues):
            base = jobs.queues[q].base
            self.compute[base] = self.compute.get(base, 0) + own[3]
        self.groups = facts.lanes.groups
        stated = stated_counts(facts.trace)
        self.count = [pe_count(facts, group, stated) for group in self.groups]

    def figures(self, n):
        """(any busy ns, parallelism or None, imbalance in percent or None, the unavoidable part) of a
        group."""
        bases, count = self.groups[n].bases, self.count[n]
        busy = list(map(self.busy.get, bases))
        total, jobs = sum(own.length() for own in busy), sum(map(self.jobs_on.get, bases))
        anything, most = union_of(busy).length(), max(own.length() for own in busy)
        return (anything, Fraction(total, anything) if anything else None,
                Fraction(100 * most * count, total) - 100 if total else None,
                Fraction(100 * -(-jobs // count) * count, jobs) - 100 if jobs else None)

    def at_once(self, n, window):
        """{number of PEs of a group busy: ns of the window}"""
        changes = sorted((t, 1 if place % 2 == 0 else -1) for base in self.groups[n].bases
                         for place, t in enumerate(self.busy[base].flat))
        found, depth, at = {}, 0, None
        for t, step in changes:
            if depth and t > at:
                found[depth] = found.get(depth, 0) + t - at
            depth, at = depth + step, t
        found[0] = window.length_ns - sum(found.values())
        return {k: ns for k, ns in found.items() if ns}


def analyse(facts):
    pes, jobs, window, rows, balance, at_once = facts.pes, facts.jobs, facts.window, [], [], []
    label = {queue.base: queue.label.partition(" stream ")[0] for queue in jobs.queues}
    device = {queue.base: queue.device for queue in jobs.queues}
    for base, own in sorted(pes.busy.items(), key=lambda item: (device[item[0]], label[item[0]])):
        compute = pes.compute.get(base) or None
        rows.append((jobs.devices[device[base]], label[base], pes.jobs_on[base], own.length(),
                     pct(own.length(), window.length_ns), compute,
                     None if compute is None else pct(compute, window.length_ns)))
    for n, group in enumerate(pes.groups):
        anything, parallelism, imbalance, unavoidable = pes.figures(n)
        balance.append((group.name, pes.count[n], len(group.bases), anything,
                        pct(anything, window.length_ns), parallelism, imbalance, unavoidable))
        at_once += [(group.name, k, ns, pct(ns, window.length_ns))
                    for k, ns in sorted(pes.at_once(n, window).items())]
    yield Table("pe_busy", "How busy each PE was", BUSY, rows, [])
    yield Table("pe_balance", "PEs at the same time, and how even", BALANCE, balance, [])
    yield Table("pe_at_once", "Time with so many PEs busy", AT_ONCE, at_once, [])
