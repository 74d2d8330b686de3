# SPDX-License-Identifier: MIT
"""One pass over a text of the kernel's tracer: its jobs, and the waits of threads."""

from collections import Counter

from .contexts import Contexts
from .fences import LOW, Fences
from .jobs import Job, Jobs, Lane, apart
from .lines import MARKS, Hole
from .names import Names
from .patterns import filled
from .power import Power
from .waits import Waits


class Witness:
    """What a KernelText tells. After read():

    spans     Lane -> [Span], in the order of their ends; times in the tracer's clock
    waits     Waits of the threads in `marked`, and of those that submit jobs from then on
    power     a Power
    names     Names of threads
    counts    Counter of jobs that are not drawn: "no begin seen", "no end seen", "never ran"
    holes     [(since, until)] in which events were lost
    unended   ring -> [(since, until)] in which a job may have run whose end was not seen
    shared    {hardware: [rings]} of lanes that may work at the same time or in turns; "": of unknown devices
    notes     sentences for the user"""

    def __init__(self, text, patterns, marked=()):
        self.text, self.patterns, self.notes = text, patterns, []
        wanted = set(marked)
        self.waits = Waits(wanted)
        self.names = Names(text)
        self.contexts = Contexts(self.waits.off, self.names)
        self.jobs = Jobs(self.contexts, wanted)
        self.fences, self.power = Fences(self.jobs), Power()
        self.counts, self.spans, self.holes, self.unended = self.jobs.counts, {}, [], {}
        self.shared = {}

    def read(self):
        """Reads the text once. Returns self."""
        handlers, of_event, holes = self.fences.handlers | self.power.handlers, self.patterns.of_event, []
        take = self.contexts.take
        for item in self.text.items():
            if type(item) is Hole:
                self.jobs.shared |= self.contexts.hole(item)
                self.jobs.hole()
                self.fences.holes += 1
                holes.append((item.since, item.until))
                continue
            if item.name in MARKS:
                continue
            take(item)
            handler = handlers.get(item.name)
            if handler:
                handler(item)
            elif item.name in of_event:
                self.driver(item)
        self.waits.first, self.waits.last = self.text.first_ns or 0, self.text.last_ns or 0
        for thread in self.contexts.threads.values():
            self.contexts.at_end(thread, self.waits.last)
        self.waits.settle(apart(holes) if self.contexts.running else None, self.names)
        self.holes = self.power.holes = apart(holes)
        self.jobs.forget(self.fences.wrong())
        self.spans = self.jobs.finish(holes, self.fences.known(), self.fences.running)
        self.unended = self.jobs.without_end(self.waits.last)
        self.shared = shared(self.spans)
        self.counts["no begin seen"] += self.fences.edge_jobs()
        self.counts += {}
        self.note()
        return self

    def driver(self, event):
        """Takes a line that the map of a driver may know."""
        for device, step, fields in self.patterns.find(event):
            values = tuple(fields[key] for key in device.key)
            if device.fence:
                values = tuple(value & LOW if type(value) is int else value for value in values)
            key = values if device.fence else (device, *values)
            job = self.jobs.get(key)
            if step == "submit":
                self.submit(event, device, fields, key, job)
            elif step in ("handed", "start") and job is not None and job.high is None:
                job.high, job.stated, job.ran = event.ns, step == "start", True
                job.low = event.ns if job.stated else job.low
            elif step == "end":
                self.end(event, device, fields, key, job)

    def submit(self, event, device, fields, key, job):
        if device.fence and job is not None:
            return                            # the scheduler has told it
        job = Job(":".join(str(fields[name]) for name in device.key), event.ns, event.tid)
        # Why the context: the lines of the scheduler for the same context may name the lane.
        job.lane = Lane(filled(device.name, fields), filled(device.lane, fields),
                        key[0] if device.fence else None, device.name)
        job.in_order, job.after_doorbell = device.in_order, device.after_doorbell
        job.own, job.reused, job.ran = True, not device.fence, True
        if device.after_doorbell:
            job.low = job.high = event.ns
        self.jobs.submitted(key, job, device.fifo)

    def end(self, event, device, fields, key, job):
        if job is None:
            if not device.fence or not self.fences.seen:
                self.counts["no begin seen"] += 1
                self.jobs.ended_unbegun(event)
        elif not job.own:
            self.jobs.told(job, event)        # the scheduler will close it
        else:
            self.jobs.ended(key, event)

    def note(self):
        """What a user should know of this text."""
        if self.fences.pointers and not self.fences.fences:
            self.notes.append("its events of the DRM scheduler name jobs by pointers only: record "
                              "dma_fence_init and dma_fence_signaled, too")
        if self.contexts.missing:
            self.notes.append(f"{self.contexts.missing} times a thread was back on a CPU and no line tells "
                              "since when: some kernels leave out switches from idle; it slept until it was "
                              "woken, and what follows is not known")
        if self.text.backwards:
            self.notes.append(f"{self.text.backwards} events are earlier than the one before them: jobs and "
                              "waits need the order of time, as the `trace` file of all CPUs has it")
        for name, count in sorted(self.patterns.addresses.items()):
            self.notes.append(f"{count} events {name} hold an address where the text is: the kernel prints "
                              "such texts only in the `trace` file of tracefs, so record that")


def shared(lanes):
    """{hardware: [rings]} of Lanes that may share it: rings of one device, or lanes whose device no line
    names."""
    rings, count = {}, Counter(lane.hardware for lane in lanes)
    for lane in lanes:
        rings.setdefault(lane.hardware, set()).add(lane.ring)
    return {hardware: sorted(own) for hardware, own in sorted(rings.items())
            if len(own) > 1 or (not hardware and count[hardware] > 1)}
