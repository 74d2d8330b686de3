# SPDX-License-Identifier: MIT
"""Facts: what several analyses of one window share, each made when it is first asked for."""

from array import array
from fractions import Fraction
from functools import cached_property

from .. import loops
from ..base.contract import NULL
from ..base.doctor import evidence_of, findings
from ..base.losses import lost_by_cause, records_lost
from ..tables.arithmetic import both, percentile
from ..tables.executions import Device
from ..tables.table import pct
from . import replay
from .depth import views
from .engines import Engines, members
from .equals import Equals
from .figures import largest_mode, median_noise
from .headline import headline
from .holders import Memory
from .idle import Idle, chained
from .jobs import jobs_of
from .lanes import Lanes
from .latency import preempted
from .levels import levels
from .owners import owners
from .pes import Pes
from .roofline import Roof
from .steady import Drift, stalls, warm_ups
from .tail import Tail
from .window import Window, choose

REPLAYED = 10000     # inferences; of more, a gain is that of the middle ones


class Facts:
    """trace, window, wait (names of spans that wait, beside those that say so), peaks (see roofline.py)."""

    def __init__(self, trace, window=None, wait=None, description=None):
        self.trace = trace
        self.window = choose(trace) if window is None else window
        self.wait, self.description = wait, description

    @cached_property
    def jobs(self):
        return jobs_of(self.trace, self.window, self.wait)

    @cached_property
    def device(self):
        """The Device of the tables: executions and operators of the whole trace."""
        return Device(self.trace)

    @cached_property
    def busy(self):
        """By queue: Intervals in which one of its jobs executes, inside the window."""
        flats = [array("q") for _ in self.jobs.queues]
        for q, start, end in zip(self.jobs.queue, self.jobs.start, self.jobs.end):
            flats[q].extend((start, end))
        return [both(loops.merged(flat), self.window.intervals) for flat in flats]

    @cached_property
    def idle(self):
        """Why the devices were idle: an Idle."""
        return Idle(self)

    @cached_property
    def members(self):
        """device -> its jobs that have rows inside their execution."""
        found = {}
        for k, _ in members(self):
            found.setdefault(self.jobs.device_of(k), array("i")).append(k)
        return found

    @cached_property
    def depth(self):
        """{view: {depth: ns}}: submissions in flight on all queues; {} without submissions."""
        return views(self)

    def depth_of(self, device):
        """The same for one device, by number."""
        return views(self, self.jobs.queues_of[device]) if len(self.jobs.devices) > 1 else self.depth

    @cached_property
    def engines(self):
        """Transfers and compute inside the executions: an Engines."""
        return Engines(self)

    @cached_property
    def lanes(self):
        """What the lanes of devices are for, and which are equals: a Lanes."""
        return Lanes(self)

    @cached_property
    def equals(self):
        """PEs and threads against their equals: an Equals."""
        return Equals(self)

    @cached_property
    def levels(self):
        """Devices that change between two speeds: [Levels]."""
        return levels(self)

    @cached_property
    def pes(self):
        """How busy the PEs were: a Pes."""
        return Pes(self)

    @cached_property
    def roof(self):
        """{operator: Limit}: how close each comes to the peaks; a Roof."""
        return Roof(self)

    @cached_property
    def tail(self):
        """What is different in the slowest inferences: a Tail."""
        return Tail(self)

    @cached_property
    def stalls(self):
        """[(period, R, how many, p)]: at most one."""
        return stalls(self)

    @cached_property
    def drift(self):
        """Operators that change their duration: a Drift."""
        return Drift(self)

    @cached_property
    def memory(self):
        return Memory(self)

    # ---- What changes bring

    @cached_property
    def part(self):
        """Facts of a window that replay can take."""
        return self.middle(REPLAYED)

    def middle(self, most):
        """Facts of so many inferences in the middle of the window, or of all, if they are not more."""
        rows, trace = self.window.inferences, self.trace
        if len(rows) <= most:
            return self
        first = (len(rows) - most) // 2
        own = rows[first:first + most]
        pairs = [(trace.start[own[0]], max(trace.start[i] + trace.dur[i] for i in own))]
        window = Window(trace, pairs, f"the middle {most} inferences", self.window.selection)
        return Facts(trace, window, self.wait, self.description)

    @cached_property
    def replay(self):
        """A Replay of the part."""
        return replay.of(self.part)

    def effect(self, *changes):
        """The Effect of changes, or None if replay cannot say."""
        return self.replay.effect(*changes)

    @cached_property
    def owners(self):
        """{(kind, name): its share of a critical path, percent}, the largest first; {} without a replay."""
        return owners(self.replay)

    @cached_property
    def threshold_pct(self):
        """What a change must bring to be worth a word: 2 %, or three times the noise of the median, at most
        10 %. Why at most: the spread of a small run does not make what is certain in it unsure."""
        return max(Fraction(2), min(3 * self.noise_pct, Fraction(10)))

    def gain(self, change, of="latency"):
        """(what the gain is of, (low, high) in percent, the Effect); None if replay cannot say."""
        effect = self.effect(change)
        if effect is None:
            return None
        if of == "latency" and effect.inference:
            # Why: where inferences differ, the median may be one that the change does not touch.
            if not effect.inference[1] < self.threshold_pct <= effect.window[1]:
                return of, effect.inference, effect
            of = "throughput"
        return of, effect.window, effect

    def promises(self, change):
        """True: replay says that the change shortens the median inference by at least the threshold."""
        effect = self.effect(change)
        return bool(effect and effect.inference and effect.inference[0] >= self.threshold_pct)

    # ---- Losses and errors

    @cached_property
    def losses(self):
        """{cause: count} of what was lost, each loss once."""
        return lost_by_cause(self.trace.metadata)

    @cached_property
    def diagnosis(self):
        """What is wrong with the trace: the findings of the doctor."""
        return findings(self.trace.metadata, evidence_of(self.trace))

    @cached_property
    def lost_records(self):
        return records_lost(self.losses)

    @cached_property
    def lost_pct(self):
        """Of all spans that there were, how many were lost; of executions, if that is more."""
        lost = Fraction(100 * self.lost_records, max(1, self.lost_records + len(self.trace)))
        return max(lost, self.missing_pct)

    @cached_property
    def missing_pct(self):
        """Of the executions in the window, how many are not there, by their numbers."""
        missing = self.jobs.missing
        return Fraction(100 * missing, max(1, missing + len(self.jobs)))

    @cached_property
    def host_error_ns(self):
        """How wrong a stamp of the host may be."""
        error = self.trace.metadata.get("clock", {}).get("error_ns")
        return error if isinstance(error, int) and 0 <= error < 2**62 else 0

    # ---- What the rules ask

    @cached_property
    def durations(self):
        """Durations of the inferences in the window, ascending."""
        return array("q", sorted(map(self.trace.dur.__getitem__, self.window.inferences)))

    @cached_property
    def durations_p50(self):
        """The median inference in the window; None without inferences."""
        return percentile(self.durations, 500) if self.durations else None

    @cached_property
    def noise_pct(self):
        """Half of the 95 % interval of the median inference, in percent of it."""
        ordered = self.durations or [1]
        if self.levels and ordered != [1]:
            ordered = sorted(self.trace.dur[i] for i in self.window.inferences
                             if not any(own.is_slow(self.trace.start[i]) for own in self.levels)) or ordered
        # Why one mode: between two of them the median jumps, and every gain would be noise.
        return Fraction(100 * median_noise(largest_mode(ordered)), percentile(ordered, 500) or 1)

    def share_of_inferences(self, ns):
        """Percent of the time of all inferences; without inferences, of the window. Why not above 100:
        several jobs may have waited at a time."""
        share = pct(ns, sum(self.durations) or self.window.length_ns)
        return None if share is None else min(share, 100)

    @cached_property
    def has_submissions(self):
        return any(k and s != NULL for k, s in zip(self.jobs.inside, self.jobs.s))

    @cached_property
    def preempted(self):
        """Submit spans that last beyond the end of their job; see rules/host.py."""
        return preempted(self)

    @cached_property
    def chained(self):
        """True: most jobs need the result of the one before them: an arrow says so."""
        return chained(self)

    def queue_slots(self, device):
        """How many jobs a queue of the device takes; None: not known."""
        return self.description.queue_slots if self.description else None

    @cached_property
    def marked_warm_up(self):
        """True: the first inferences are slower, and not marked."""
        return any(row[2] and row[5] is not None and abs(row[5]) >= 5 for row in warm_ups(self))

    @cached_property
    def regular_or_marked(self):
        """True: a period or a warm-up explains the slow ones."""
        return bool(self.stalls) or self.marked_warm_up

    @cached_property
    def headline(self):
        return headline(self)
