# SPDX-License-Identifier: MIT
"""Memory pools: peaks, fragmentation and drops."""


def memory_pools(trace):
    """device -> {"records", "drops", "used": (bytes, index, tag), "used_ns", "held", "allocated": (...), "rows": [(tag, used, allocated)]}, by time,
    outside warm-up. used_ns: when the peak of used was; held: what was allocated then."""
    pools = {}
    for record in sorted(trace.memory, key=lambda record: record.ts):
        if record.warm_up:
            continue
        pool = pools.setdefault(record.device,
                                {"records": 0, "drops": 0, "used": (-1, 0, ""), "used_ns": 0, "held": 0,
                                                 "allocated": (-1, 0, ""), "rows": []})
        index, allocated = pool["records"], record.allocated
        if index:
            last = pool["rows"][-1][2]
            # an alloc or a free takes nothing from the pool, however two threads stamp them
            if record.change:
                allocated = max(allocated, last)
            pool["drops"] += allocated < last
        if record.used > pool["used"][0]:
            pool["used"], pool["used_ns"], pool["held"] = (record.used, index,
                                                           record.tag), record.ts, allocated
        if allocated > pool["allocated"][0]:
            pool["allocated"] = allocated, index, record.tag
        pool["rows"].append((record.tag, record.used, allocated))
        pool["records"] += 1
    return pools


def megabytes(count):
    """Of 2^20 bytes, six decimals, rounded half up."""
    millionths = (count * 2000000 + 2**20) // 2**21
    return f"{millionths // 1000000}.{millionths % 1000000:06}"
