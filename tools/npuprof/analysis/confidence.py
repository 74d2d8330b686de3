# SPDX-License-Identifier: MIT
"""How sure a gain is that was replayed.

    sure      it held whenever simulated drivers ran again (tests/tools/grid): of the median inference, of one
              thread that marks where it waits for each job alone, and nothing is taken for granted
    likely    most of such gains held
    unsure    the device's clock is not steady. Most were false then, unless the speed is what is changed
"""

from . import reactions
from .bounds import INSIDE
from .part import Part

ENOUGH = 30        # inferences; the median of fewer may move by chance


def of_gain(replay, effect, of):
    """of: "latency" or "throughput". Why the latter is never sure: that a loop without pauses is a closed one
    is taken for granted."""
    is_part = any(isinstance(name, Part) for _, name, _ in effect.changes)
    if not is_part and reactions.is_unsteady(replay):
        return "unsure"
    is_sure = of == "latency" and is_proven(replay) and not (effect.assumed or is_part)
    is_sure = is_sure and len(replay.facts.durations) >= ENOUGH
    return "sure" if is_sure and {what for what, *_ in effect.changes} <= {*INSIDE, "host"} else "likely"


def is_proven(replay):
    """True: one thread submits, and the trace says of each job where that thread waits for it alone."""
    jobs = replay.points.jobs
    return len(set(jobs.thread)) == 1 and not (
        replay.shares or jobs.unmarked or jobs.open or any(replay.sampled))
