# SPDX-License-Identifier: MIT
"""What desc.cpu_ns has recorded: jobs whose thread slept for them, and how much it worked before.

A thread that gave up the CPU once between its submission and the notice of the end, and never lost it, slept
once. It may have slept for something else. So of all such jobs that are waited for at one place the slope of
the notice on the device's end is asked (Theil and Sen, as in requests.py): where a job that ends 1 ms later
is noticed 1 ms later, threads slept for their jobs. A device whose times hardly vary tells nothing.
"""

from collections import defaultdict

from ..base.contract import NULL
from .arguments import chosen
from .requests import MOST, slope

KEYS = "wait_cpu_ns", "wait_switches", "wait_preempted"
LEAST = 20         # jobs at one place: of fewer nothing is said
VARIES = 4         # times the clock's error: by so much at least the device's times have to vary


def slept(trace, jobs, ends):
    """{job: (submission, end of its wait, ns that its thread worked in between, at most)}. ends: of the jobs
    for which nothing else says that their thread waits, {job: (place, end of its wait)}."""
    if not ends or not trace.mentions(KEYS[0]):
        return {}
    used, places = chosen(trace, [jobs.row[k] for k in ends], KEYS), defaultdict(list)
    for (k, (place, end)), cpu, switches, lost in zip(ends.items(), *(used[key] for key in KEYS)):
        if cpu != NULL and switches == 1 and lost == 0 and jobs.s[k] < jobs.end[k] < end:
            places[place].append((k, end, cpu))
    found = {}
    for own in places.values():
        if len(own) >= LEAST and follows(jobs, own):
            # Why not its own: what one job did not need another one may.
            most = sorted(cpu for _, _, cpu in own)[len(own) * 19 // 20]
            found |= {k: (jobs.s[k], end, most) for k, end, _ in own}
    return found


def follows(jobs, own):
    """True: the notices move with the ends of the jobs, as a wait for them does."""
    own = own[::-(-len(own) // MOST)]
    x = [jobs.end[k] - jobs.s[k] for k, _, _ in own]
    middle, errors = sorted(x)[len(x) // 2], sorted(max(jobs.error[k], 0) for k, _, _ in own)
    spread = sorted(abs(value - middle) for value in x)[len(x) // 2]
    low, high = slope(x, [end - jobs.s[k] for k, end, _ in own])
    return spread >= VARIES * errors[len(errors) // 2] and low > 0.5 and low <= 1.003 and high >= 0.997
