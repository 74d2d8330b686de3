# SPDX-License-Identifier: MIT
"""Jobs of the DRM scheduler: by its own events (stable from Linux 6.17 on), and on every kernel by dma_fence.

A job has two fences of one number: "scheduled" in context C, signalled when the hardware has the job, and
"finished" in C + 1. dma_fence prints 32 bits of both, so all are joined modulo 2^32; no pointer is used. The
line of run and the signal of "scheduled" are of one thread: between them the hardware gets the job.
"""

import re
from collections import namedtuple

from .jobs import Job, Lane

LOW = 2**32 - 1
FENCE = re.compile(r"driver=(.*) timeline=(.*) context=(\d+) seqno=(\d+)")
STABLE = re.compile(r"dev=(.*), fence=(\d+):(\d+), ring=(.*), job count:(\d+), hw job count:(-?\d+)"
                    r"(?:, client_id:(\d+))?")
# A ring with the name of a device of a bus: its driver names each by its device.
OF_A_BUS = re.compile(r"[\da-f]+\.[a-z][\w-]*|[\da-f]{4}:[\da-f]{2}:[\da-f]{2}\.[0-7]")
DONE = re.compile(r"fence=(\d+):(\d+) signaled")
# Before 6.17. Its fence is a pointer and its id counts per ring: the thread tells which job it is.
OLD_RUN = re.compile(r"entity=.*, fence=.*, ring=(.*), job count:(\d+), hw job count:(-?\d+)")
SCHEDULER = "drm_sched"
STRANGERS, KEPT = 100_000, 4096  # fences that are kept: without a begin; closed by the scheduler
# The last fence that a thread began. holes: how many were seen before; first: of a job's two; sure: it is
# known which of the two it is
Init = namedtuple("Init", "context seqno ring ns cpu holes first sure")


def know(lanes, lane):
    """Notes a Lane by its context as dma_fence prints it; None: it has several, as two contexts that are
    printed alike do, and one whose jobs go to several rings."""
    if lanes.setdefault(lane.number & LOW, lane) != lane:
        lanes[lane.number & LOW] = None


class Fences:
    """Feeds Jobs with what the DRM scheduler and dma_fence tell."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.inits, self.holes = {}, 0               # tid -> its Init; how many holes were seen
        self.sure, self.unsure = set(), []           # contexts C + 1 for certain; (context, Job) of others
        self.runs = {}               # tid -> (ring, ns) of the job that it gives to the hardware
        self.running = {}            # ring of a Lane -> when the first line told that it runs a job
        self.handed = {}             # tid -> ns at which it gave the last one
        # Context, as dma_fence prints it -> the Lane that the scheduler names, that dma_fence names
        self.lanes, self.timelines = {}, {}
        self.closed = {}             # keys that the scheduler's own event closed: their signal follows
        self.strangers, self.finished = set(), set()    # signalled fences without a begin; contexts C + 1
        self.pointers, self.fences = 0, 0               # events of the old scheduler; of its fences
        self.seen = False                               # some event of the scheduler's own
        self.handlers = {
            "drm_sched_job_queue": self.queue, "drm_sched_job_run": self.run, "drm_sched_job_done": self.done,
            "drm_run_job": self.old_run, "dma_fence_init": self.init, "dma_fence_signaled": self.signaled}

    # ---- The scheduler's own events

    def queue(self, event):
        found = STABLE.match(event.text)
        if not found:
            return
        key, lane = self.named(found)
        job = self.jobs.get(key)
        if job is None:
            job = Job("", event.ns, event.tid)
            self.jobs.submitted(key, job)
        job.label, job.lane = f"{found[2]}:{found[3]}", lane
        job.submit, job.tid, job.client = event.ns, event.tid, int(found[7]) if found[7] else None
        self.jobs.submitters.add(event.tid)
        self.finished.add(key[0])
        self.sure.add(key[0])

    def run(self, event):
        found = STABLE.match(event.text)
        if not found:
            return
        key, lane = self.named(found)
        self.running.setdefault(lane.ring, event.ns)
        job = self.jobs.get(key)
        if job is None:
            return
        job.low, job.runner, job.ran = event.ns, event.tid, True
        self.runs[event.tid] = found[4], event.ns

    def named(self, found):
        """(key, Lane) of a line of the scheduler's own."""
        device, context, seqno, ring = found.groups()[:4]
        lane = Lane(f"{device} {ring}", f"stream {context}", int(context), device)
        know(self.lanes, lane)
        return (int(context) & LOW, int(seqno) & LOW), lane

    def done(self, event):
        found, self.seen = DONE.match(event.text), True
        if found:
            key = int(found[1]) & LOW, int(found[2]) & LOW
            self.finished.add(key[0])
            self.sure.add(key[0])
            self.closed[key] = None
            if len(self.closed) > KEPT:
                del self.closed[next(iter(self.closed))]
            if not self.jobs.ended(key, event):
                self.stranger(key, event)

    def old_run(self, event):
        self.pointers += 1
        found = OLD_RUN.match(event.text)
        if found:
            self.runs[event.tid] = found[1], event.ns
            self.running.setdefault(found[1], event.ns)

    # ---- dma_fence

    def init(self, event):
        found = FENCE.fullmatch(event.text)
        if not found or found[1] != SCHEDULER:
            return
        self.fences += 1
        ring, context, seqno = found[2], int(found[3]), int(found[4])
        before = self.inits.get(event.tid)
        whole = before is not None and (before.cpu, before.holes) == (event.cpu, self.holes)
        follows = before is not None and before[:3] == ((context - 1) & LOW, seqno, ring)
        second = follows and before.first is not False
        # Why: what does not follow the fence before is the first of a job's two, and so on from there. Else
        # it may be the second one of a job whose first was lost, and the next job's context the next one.
        sure = whole and (before.sure if follows else True)
        self.inits[event.tid] = Init(context, seqno, ring, event.ns, event.cpu, self.holes, not second, sure)
        if second and (sure or not self.contradicted(context)):
            job = Job(f"{context}:{seqno}", event.ns, event.tid)
            hardware = ring if OF_A_BUS.fullmatch(ring) else ""
            job.arm, job.lane = before.ns, Lane(ring, f"stream {context}", context, hardware)
            self.jobs.submitted((context, seqno), job)
            self.finished.add(context)
            if sure:
                self.sure.add(context)
                know(self.timelines, job.lane)
            else:
                self.unsure.append((context, job))

    def known(self):
        """{context: Lane} of those with one lane."""
        found = self.timelines | self.lanes
        return {context: lane for context, lane in found.items() if lane is not None}

    def contradicted(self, context):
        """True: a context is not that of a "finished", as those beside it are."""
        return bool({(context - 1) & LOW, (context + 1) & LOW} & self.sure)

    def wrong(self):
        """The Jobs whose two fences are of two jobs, as is known at the end."""
        return {job for context, job in self.unsure if self.contradicted(context)}

    def signaled(self, event):
        found = FENCE.fullmatch(event.text)
        if not found or found[1] != SCHEDULER:
            return
        self.seen = True
        self.fences += 1
        key = int(found[3]), int(found[4])
        if key in self.closed:
            del self.closed[key]
        elif not self.jobs.ended(key, event):
            job = self.jobs.get(((key[0] + 1) & LOW, key[1]))
            if job is None:
                self.stranger(key, event)
            else:
                self.give(job, found[2], event)

    def give(self, job, ring, event):
        """The hardware has the job: its fence "scheduled" is signalled, in the thread that ran run_job."""
        ran = self.runs.pop(event.tid, None)
        if job.stated:
            return
        if ran and ran[0] == ring:
            job.low, job.ran = ran[1], True
        elif job.low is None:
            # Why the job before: a scheduler's thread gives one after the other.
            job.low = max(job.submit, self.handed.get(event.tid, 0))
        job.runner, self.handed[event.tid] = event.tid, event.ns
        if job.high is None:                           # else the driver told it, nearer to it
            job.high = event.ns

    # ---- What began before the trace

    def stranger(self, key, event):
        self.jobs.ended_unbegun(event)
        if len(self.strangers) < STRANGERS:
            self.strangers.add(key)

    def edge_jobs(self):
        """How many jobs ended whose begin is not in the trace: fences of contexts that are known as
        "finished", or that follow a context with the same number."""
        return sum(key[0] in self.finished or ((key[0] - 1) & LOW, key[1]) in self.strangers
                   for key in self.strangers)
