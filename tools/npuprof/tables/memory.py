# SPDX-License-Identifier: MIT
"""Memory pools: peaks, fragmentation and drops."""

from .arithmetic import pointed


def memory_pools(trace, part=None):
    """By device, outside warm-up, a dict; of a part (start, end) of the time: its records, and the last one
    before them.

    records     how many
    rows        (tag, used, allocated) of each record, by time
    used        the peak of the used bytes: (bytes, record, tag)
    used_ns     when that was
    held        what was allocated then
    allocated   the peak of the allocated bytes, as `used`
    drops       how often the allocated bytes got fewer
    """
    pools, records = {}, sorted(trace.memory, key=lambda record: record.ts)
    if part:
        before = {record.device: record for record in records if record.ts < part[0] and not record.warm_up}
        records = [*before.values(), *(record for record in records if part[0] <= record.ts < part[1])]
    for record in records:
        if record.warm_up:
            continue
        pool = pools.get(record.device)
        if pool is None:
            pool = pools[record.device] = {"records": 0, "drops": 0, "used": (-1, 0, ""), "used_ns": 0,
                                           "held": 0, "allocated": (-1, 0, ""), "rows": []}
        add(pool, record)
    return pools


def add(pool, record):
    index, allocated = pool["records"], record.allocated
    if index:
        last = pool["rows"][-1][2]
        # Why max: an alloc or a free never shrinks the pool, in whatever order two threads stamp them.
        if record.change:
            allocated = max(allocated, last)
        pool["drops"] += allocated < last
    if record.used > pool["used"][0]:
        pool |= {"used": (record.used, index, record.tag), "used_ns": record.ts, "held": allocated}
    if allocated > pool["allocated"][0]:
        pool["allocated"] = allocated, index, record.tag
    pool["rows"].append((record.tag, record.used, allocated))
    pool["records"] += 1


def megabytes(count):
    """Bytes in MB of 2^20, with six decimals, rounded half up."""
    return pointed((count * 2000000 + 2**20) // 2**21, 6)
