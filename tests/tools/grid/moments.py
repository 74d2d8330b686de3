# SPDX-License-Identifier: MIT
"""Simulated time: processes that sleep and wait for each other. All times are whole ns.

A process is a generator. It yields a number of ns to sleep, or an Event to wait for; `yield from` calls
another one. What happens at one moment happens in the order in which it was asked for.
"""

import heapq
from collections import deque
from itertools import count


class Time:
    """The clock of one simulation."""

    def __init__(self):
        self.now, self.todo, self.order = 0, [], count()

    def start(self, process):
        self.later(0, process)

    def later(self, ns, process):
        heapq.heappush(self.todo, (self.now + ns, next(self.order), process))

    def run(self):
        """Until nothing is left to happen."""
        while self.todo:
            self.now, _, process = heapq.heappop(self.todo)
            wanted = next(process, None)
            if isinstance(wanted, Event):
                wanted.hold(process)
            elif wanted is not None:
                self.later(wanted, process)


class Event:
    """Happens once. Who waits for it later does not wait."""

    def __init__(self, time):
        self.time, self.happened, self.waiting = time, False, []

    def hold(self, process):
        if self.happened:
            self.time.start(process)
        else:
            self.waiting.append(process)

    def happen(self):
        self.happened = True
        for process in self.waiting:
            self.time.start(process)


class Places:
    """A number of places; who finds none waits in line. One place is a lock."""

    def __init__(self, time, free=1):
        self.time, self.free, self.line = time, free, deque()

    def take(self):
        if self.free:
            self.free -= 1
        else:
            self.line.append(Event(self.time))
            yield self.line[-1]

    def give(self):
        if self.line:
            self.line.popleft().happen()
        else:
            self.free += 1


class Ring:
    """A queue of jobs with a number of slots. A job keeps its slot until the device has done it."""

    def __init__(self, time, slots):
        self.jobs, self.slots, self.filled = deque(), Places(time, slots), Places(time, 0)

    def put(self, job):
        yield from self.slots.take()
        self.jobs.append(job)
        self.filled.give()

    def get(self):
        yield from self.filled.take()
        return self.jobs.popleft()


class Barrier:
    """Goes on when `members` processes have come."""

    def __init__(self, time, members):
        self.time, self.members, self.come, self.event = time, members, 0, Event(time)

    def meet(self):
        self.come += 1
        event = self.event
        if self.come == self.members:
            self.come, self.event = 0, Event(self.time)
            event.happen()
        yield event
