# SPDX-License-Identifier: MIT
"""Doorbell: when in its submission a job reaches the device. replay: a Replay."""

from ..base.contract import NULL
from .graph import host_rows
from .part import name_of


def move(replay, lags, change, at_end):
    """What a shorter submission makes of the starts behind it. Why at its end or not at all: nothing says
    where in its span the device hears of a job, unless the span states doorbell_ns."""
    name, k = change
    jobs, chosen = replay.points.jobs, set(host_rows(replay.trace, replay.points, name))
    for n, i in enumerate(jobs.submit[:replay.points.count]):
        known, late = jobs.doorbell[n] != NULL, replay.points.latency[n]
        # Why not behind another job: that one is what it waits for.
        if i in chosen and (known or at_end) and replay.points.start_of[n] - late == jobs.s[n]:
            inside = min(late, (jobs.doorbell[n] if known else jobs.S[n]) - jobs.s[n])
            lags.latency[n] -= round((1 - k) * max(0, inside))


def is_open(replay, changes):
    """True: some of them change a span that submits, and does not say when the device hears of it."""
    names = {name_of(name) for what, name, _ in changes if what == "host"}
    return any(i >= 0 and door == NULL and replay.trace.text(i) in names
               for i, door in zip(replay.points.jobs.submit, replay.points.jobs.doorbell))
