# SPDX-License-Identifier: MIT
"""Facts: what several analyses of one window share, each made when it is first asked for."""

from functools import cached_property

from ..base.metadata import LOST_SPANS
from ..tables.arithmetic import both, union
from ..tables.executions import Device
from .depth import views
from .engines import Engines
from .idle import Idle
from .jobs import Jobs
from .pes import Pes
from .window import choose


class Facts:
    """trace, window, wait (names of spans that wait, beside those that say so), peaks (see roofline.py)."""

    def __init__(self, trace, window=None, wait=None, description=None):
        self.trace = trace
        self.window = choose(trace) if window is None else window
        self.wait, self.description = wait, description

    @cached_property
    def jobs(self):
        return Jobs(self.trace, self.window, self.wait)

    @cached_property
    def device(self):
        """The Device of the tables: executions and operators of the whole trace."""
        return Device(self.trace)

    @cached_property
    def busy(self):
        """By queue: Intervals in which one of its jobs executes, inside the window."""
        flats = [[] for _ in self.jobs.queues]
        for q, start, end in zip(self.jobs.queue, self.jobs.start, self.jobs.end):
            flats[q].append((start, end))
        return [both(union(flat), self.window.intervals) for flat in flats]

    @cached_property
    def idle(self):
        """Why the devices were idle: an Idle."""
        return Idle(self)

    @cached_property
    def depth(self):
        """{view: {depth: ns}}: submissions in flight on all queues; {} without submissions."""
        return views(self)

    @cached_property
    def engines(self):
        """Transfers and compute inside the executions: an Engines."""
        return Engines(self)

    @cached_property
    def pes(self):
        """How busy the PEs were: a Pes."""
        return Pes(self)

    @cached_property
    def lost_records(self):
        """How many spans were lost, by anything."""
        about = self.trace.metadata
        lost = [count for count in about.get("lost", {}).values() if isinstance(count, int)]
        devices = about.get("devices") or ()
        return sum(lost) + sum(device.get("clock_sync", {}).get(key, 0) or 0 for device in devices
                               for key in LOST_SPANS)

    @cached_property
    def host_error_ns(self):
        """How wrong a stamp of the host may be."""
        error = self.trace.metadata.get("clock", {}).get("error_ns")
        return error if isinstance(error, int) and 0 <= error < 2**62 else 0
