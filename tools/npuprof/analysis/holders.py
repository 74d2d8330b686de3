# SPDX-License-Identifier: MIT
"""Memory: who holds it at the peak, who never gives it back, and what is allocated but not used.

Of a part of the trace the figures are of its time: what was held when it began counts.

Records with a change (PROF_ALLOC, PROF_FREE) tell what each tag holds; PROF_MEMORY states tell only the sum.
A tag is suspected of a leak if its bytes at the ends of the inferences, at least 8 of them, never fall, grow
by twice its usual allocation or more, and grow in both halves. Only likely: caches grow, too.
"""

from bisect import bisect_right
from fractions import Fraction

from ..tables.arithmetic import percentile
from ..tables.memory import memory_pools
from ..tables.table import Table, pct

POOLS = ("pool", "records", "peak_bytes", "peak_start_ns", "allocated_bytes", "headroom_pct",
         "fragmentation_bytes", "growth_steps", "drops", "churn_pct")
HOLDERS = ("pool", "tag", "held_bytes", "share_pct", "allocations", "usual_bytes")
LEAKS = ("pool", "tag", "first_bytes", "last_bytes", "samples", "per_inference_bytes")
TABLES = ("memory_pools", "memory_holders", "memory_leaks")
SAMPLES = 1000


class Memory:
    """rows of the three tables: pools, holders, leaks; tight: [(pool, peak, capacity)] of pools that are 90 %
    full; loose: [(pool, unused, allocated)] of pools that grew and are 25 % unused at their peak."""

    def __init__(self, facts):
        self.pools, self.holders, self.leaks, self.tight, self.loose = [], [], [], [], []
        trace = facts.trace
        window = facts.window
        pools = memory_pools(trace, (window.start_ns, window.end_ns) if any(window.selection) else None)
        self.known = bool(pools)
        self.tagged = False
        ends = sorted(trace.start[i] + trace.dur[i] for i in facts.window.inferences)
        step = max(1, len(ends) // SAMPLES)
        self.ends = ends[step - 1::step]
        of_pool = {name: [] for name in pools}
        for record in sorted(trace.memory, key=lambda record: record.ts):
            if not record.warm_up and record.device in of_pool:
                of_pool[record.device].append(record)
        for name, pool in pools.items():
            churn = sum(record.change for record in of_pool[name] if record.change > 0
                        and facts.window.holds(record.ts, record.ts))
            self._pool(name, pool, of_pool[name], Fraction(churn, len(ends)) if ends else None)
        self.holders.sort(key=lambda row: (row[0], -row[2], row[1]))

    def _pool(self, name, pool, records, churn):
        peak, held = pool["used"][0], pool["held"]
        limits = [limit for _, _, limit in pool["rows"]]
        grown = sum(b > a for a, b in zip(limits, limits[1:]))
        self.pools.append((name, pool["records"], peak, pool["used_ns"], held, pct(held - peak, held),
                           max(held - peak, 0), grown, pool["drops"],
                           None if churn is None or peak <= 0 else 100 * churn / peak))
        if not grown and held and 10 * peak >= 9 * held:
            self.tight.append((name, peak, held))
        if grown and held and 4 * (held - peak) >= held:
            self.loose.append((name, held - peak, held))
        if any(record.change for record in records):
            self.tagged = True
            self._tags(name, records, peak, pool["used_ns"])

    def _tags(self, name, records, peak, peak_ns):
        changes = {}
        for record in records:
            if record.change:
                changes.setdefault(record.tag, []).append((record.ts, record.change))
        for tag, own in changes.items():
            live, values, times = 0, [], []
            for ts, change in own:
                live = max(0, live + change)
                times.append(ts)
                values.append(live)
            at = bisect_right(times, peak_ns)
            held = values[at - 1] if at else 0
            sizes = sorted(change for _, change in own if change > 0)
            usual = percentile(sizes, 500) if sizes else None
            if held:
                self.holders.append((name, tag, held, pct(held, peak), len(sizes), usual))
            self._leak(name, tag, times, values, usual)

    def _leak(self, name, tag, times, values, usual):
        samples = [values[at - 1] if (at := bisect_right(times, end)) else 0 for end in self.ends]
        n = len(samples)
        if n < 8 or not usual or any(b < a for a, b in zip(samples, samples[1:])):
            return
        grown = samples[-1] - samples[0]
        if grown >= 2 * usual and samples[n // 2] > samples[0] and samples[-1] > samples[n // 2]:
            span = max(1, len(self.ends) - 1)
            self.leaks.append((name, tag, samples[0], samples[-1], n, grown // span))


def analyse(facts):
    memory = facts.memory
    notes = [] if memory.known else ["no memory records"]
    yield Table("memory_pools", "Memory pools (churn: bytes allocated in an inference, of the peak)", POOLS,
                memory.pools, notes)
    yield Table("memory_holders", "Who holds memory at the peak", HOLDERS, memory.holders, [])
    yield Table("memory_leaks", "Tags whose memory only grows", LEAKS, memory.leaks, [])
