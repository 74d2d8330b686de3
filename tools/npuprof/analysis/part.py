# SPDX-License-Identifier: MIT
"""A part of what a change is about; it stands where the change has a name.

    ("device", Part(lanes=(BASE,)), K)          the jobs of those lanes
    ("device", Part(times=((A, B), ...)), K)    the jobs that begin in those times
    ("dispatch" or "notice", Part(lanes=...), NS)
    ("device", "dispatch" or "notice", DEVICE, ...)     the jobs of the device of that name
    ("host", Part(NAME, threads=(BASE,)), K)    spans of that name on those threads
    ("host", Part(NAME, without=ROWS), K)       all spans of that name but those
"""

from bisect import bisect_right
from collections import namedtuple

Part = namedtuple("Part", "name lanes times threads without", defaults=(None, None, None, None, ()))


def has_job(part, jobs, k):
    """True: job k is one of the part. part: a Part, the name of a device, or None for all jobs."""
    if not isinstance(part, Part):
        return part is None or part == jobs.devices[jobs.device_of(k)]
    if part.lanes is not None and jobs.queues[jobs.queue[k]].base not in part.lanes:
        return False
    if part.times is None:
        return True
    n = bisect_right(part.times, (jobs.start[k], 2**63)) - 1
    return n >= 0 and jobs.start[k] < part.times[n][1]


def rows_of(part, trace, rows):
    """Those of these rows that are in the part."""
    if not isinstance(part, Part):
        return rows
    without = set(part.without)
    return [i for i in rows if i not in without
            and (part.threads is None or trace.tracks[trace.track[i]].base in part.threads)]


def name_of(part):
    """The name of the spans that a change is about."""
    return part.name if isinstance(part, Part) else part
