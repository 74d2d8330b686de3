# SPDX-License-Identifier: MIT
"""Processing elements: how busy each one was, how many at once, and how even.

busy: an execution runs; compute: an operator runs in it. Shares are of the window. imbalance = max / mean - 1
of the busy times over all PEs that the device has. n equal jobs on p PEs cannot be more even than
ceil(n / p) * p / n - 1: unavoidable. parallelism: sum of the busy times by the time in which any PE is busy.
"""

from fractions import Fraction

from ..tables.arithmetic import union_of
from ..tables.table import Table, pct

TABLES = ("pe_busy", "pe_balance", "pe_at_once")
BUSY = ("device", "pe", "executions", "busy_ns", "busy_pct", "compute_ns", "compute_pct")
BALANCE = ("device", "pes", "used", "any_busy_ns", "any_busy_pct", "parallelism_ratio", "imbalance_pct",
           "unavoidable_pct")
AT_ONCE = ("device", "pes_busy", "total_ns", "share_pct")


def pe_count(facts, device):
    """How many PEs a device has: what the trace says, else those that worked."""
    jobs = facts.jobs
    used = len({jobs.queues[q].base for q in jobs.queues_of[device]})
    for about in facts.trace.metadata.get("devices") or ():
        if about.get("name") == jobs.devices[device] and isinstance(about.get("pe_count"), int):
            return max(min(about["pe_count"], 2**20), used)
    return used


class Pes:
    """By device: busy[device] = {base track: Intervals}, count[device], jobs_on[device] = {base: jobs}."""

    def __init__(self, facts):
        jobs = facts.jobs
        self.busy, self.jobs_on, self.compute = [], [], {}
        for device in range(len(jobs.devices)):
            of = {}
            for q in jobs.queues_of[device]:
                of.setdefault(jobs.queues[q].base, []).append(facts.busy[q])
            self.busy.append({base: union_of(own) for base, own in of.items()})
            self.jobs_on.append(dict.fromkeys(of, 0))
        for q in jobs.queue:
            self.jobs_on[jobs.queues[q].device][jobs.queues[q].base] += 1
        for q, own in enumerate(facts.engines.queues):
            base = jobs.queues[q].base
            self.compute[base] = self.compute.get(base, 0) + own[3]
        self.count = [pe_count(facts, device) for device in range(len(jobs.devices))]

    def figures(self, device):
        """(any busy ns, parallelism or None, imbalance in percent or None, the unavoidable part)"""
        busy, count = self.busy[device], self.count[device]
        total, n = sum(own.length() for own in busy.values()), sum(self.jobs_on[device].values())
        anything = union_of(busy.values()).length()
        most = max((own.length() for own in busy.values()), default=0)
        return (anything, Fraction(total, anything) if anything else None,
                Fraction(100 * most * count, total) - 100 if total else None,
                Fraction(100 * -(-n // count) * count, n) - 100 if n and count else None)

    def at_once(self, device, window):
        """{number of PEs busy: ns of the window}"""
        changes = sorted((t, 1 if n % 2 == 0 else -1) for own in self.busy[device].values()
                         for n, t in enumerate(own.flat))
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
    for device, name in enumerate(jobs.devices):
        for base, own in sorted(pes.busy[device].items(), key=lambda item: label[item[0]]):
            compute = pes.compute.get(base) or None
            rows.append((name, label[base], pes.jobs_on[device][base], own.length(),
                         pct(own.length(), window.length_ns), compute,
                         None if compute is None else pct(compute, window.length_ns)))
        anything, parallelism, imbalance, unavoidable = pes.figures(device)
        balance.append((name, pes.count[device], len(pes.busy[device]), anything,
                        pct(anything, window.length_ns), parallelism, imbalance, unavoidable))
        at_once += [(name, k, ns, pct(ns, window.length_ns))
                    for k, ns in sorted(pes.at_once(device, window).items())]
    yield Table("pe_busy", "How busy each PE was", BUSY, rows, [])
    yield Table("pe_balance", "PEs at the same time, and how even", BALANCE, balance, [])
    yield Table("pe_at_once", "Time with so many PEs busy", AT_ONCE, at_once, [])
