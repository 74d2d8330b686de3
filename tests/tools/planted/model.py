# SPDX-License-Identifier: MIT
"""An exact model of a host that gives work to a device: whole ns, no chance but what a case asks for.

A thread does its inferences one after the other: spans before, the submission, a wait, spans after. A queue
belongs to a PE, which takes its jobs in the order of submission:

    d = max(s, end of the job before) + dispatch          s: begin of the submit span, d: begin of the job
    n = max(begin of the wait + look, f + notice)          f: end of the job, n: end of the wait
    n = the first poll at or after f                      if the host polls, from the begin of the wait on

A job is a program: instructions on engines that begin when their engine and all they depend on is ready.
"""

import heapq
import random
from collections import deque, namedtuple
from dataclasses import dataclass, field, replace

# One instruction. engine: "dma", "matrix", "vector". after: numbers of instructions that must have ended.
# pipe: (number, share): it begins when that share of the other one is done, and keeps pace with it.
# number: the instruction_index; a Load has that of its user. args: more arguments of its span.
Instr = namedtuple("Instr", "name engine work after pipe number args", defaults=((), None, None, None))
Leaf = namedtuple("Leaf", "kind name start end inference")       # what a thread does; name "": no span
Job = namedtuple("Job", "inference thread pe s S d f wait n begin end spans")


@dataclass
class Model:
    """Each time may be a number or a function of the number of the inference."""
    n: int = 200
    threads: int = 1
    pes: int = 1
    depth: int = 1                          # jobs of a thread in flight
    pe_of: object = None                    # function of (inference, thread); default: thread modulo PEs
    before: tuple = (("prepare", 2000),)    # (name, ns); name "" is time without a span
    after: tuple = (("finish", 1000),)
    submit: object = 2000
    submit_cpu: object = None               # cpu_ns of the submit span; None: not recorded
    dispatch: object = 2000
    notice: object = 2000
    look: int = 100                         # what a wait costs, if the device was done before it
    poll: object = None                     # period, instead of notice
    pause: object = 200                     # between two inferences of a thread
    arrival: object = None                  # when the request of inference i arrives
    program: object = None                  # function of the inference: a list of Instr
    depends: bool = False                   # job i needs the result of job i - 1
    options: dict = field(default_factory=dict)      # for write.py

    def but(self, **changes):
        return replace(self, **changes)


def value(what, i):
    return what(i) if callable(what) else what


def chance(*words):
    """A random number generator for one purpose. Why: to remove a plant must not change other draws."""
    return random.Random(" ".join(map(str, words)))


def schedule(program):
    """[(start, end)] of the instructions from the begin of the job on."""
    times, free = [], {}
    for instr in program:
        start = max([free.get(instr.engine, 0), *(times[k][1] for k in instr.after)])
        if instr.pipe:
            k, share = instr.pipe
            start = max(start, times[k][0] + int(share * (times[k][1] - times[k][0])))
        end = start + instr.work
        if instr.pipe:
            end = max(end, times[k][1] + int((1 - share) * instr.work))
        times.append((start, end))
        free[instr.engine] = end
    return times


class Run:
    """What happened. jobs: Job in the order of submission; leaves: by thread, a list of Leaf."""

    def __init__(self, model):
        self.model, self.jobs, self.leaves = model, [], [[] for _ in range(model.threads)]
        self.free = [0] * model.pes
        self.ready = 0                       # end of the newest job, for `depends`

    def start_job(self, i, thread, s):
        model = self.model
        pe = model.pe_of(i, thread) if model.pe_of else thread % model.pes
        program = model.program(i)
        times = schedule(program)
        since = max(s, self.free[pe], self.ready if model.depends else 0)
        d = since + value(model.dispatch, i)
        spans = [(instr, d + start, d + end) for instr, (start, end) in zip(program, times)]
        f = max(end for _, _, end in spans)
        self.free[pe] = self.ready = f
        return pe, d, f, spans

    def worker(self, thread):
        """Yields the time of each submission, and is sent what the device makes of it."""
        model, now, waiting = self.model, 1_000_000, deque()
        leaves = self.leaves[thread]

        def does(kind, steps, i):
            nonlocal now
            for name, ns in steps:
                ns = value(ns, i)
                leaves.append(Leaf(kind, name, now, now + ns, i))
                now += ns

        def wait():
            nonlocal now
            i, begin, s, end_of_submit, (pe, d, f, spans) = waiting.popleft()
            start = now
            period = value(model.poll, i)
            if period:
                now += max(1, -(-(f - start) // period)) * period
            else:
                now = max(start + model.look, f + value(model.notice, i))
            leaves.append(Leaf("wait", "Wait", start, now, i))
            noticed = now
            does("after", model.after, i)
            self.jobs.append(Job(i, thread, pe, s, end_of_submit, d, f, start, noticed, begin, now, spans))
            now += value(model.pause, i)

        for i in range(thread, model.n, model.threads):
            if model.arrival:
                now = max(now, model.arrival(i) + 5000)
            begin = now
            does("before", model.before, i)
            s = now
            job = yield s, i
            does("submit", (("Submit", model.submit),), i)
            waiting.append((i, begin, s, now, job))
            if len(waiting) == model.depth:
                wait()
        while waiting:
            wait()


def simulate(model):
    """Runs the model: a Run."""
    run, heap = Run(model), []

    def step(thread, worker, answer):
        try:
            s, i = worker.send(answer)
            heapq.heappush(heap, (s, thread, i, worker))
        except StopIteration:
            pass
    for thread in range(model.threads):
        step(thread, run.worker(thread), None)
    while heap:
        s, thread, i, worker = heapq.heappop(heap)
        step(thread, worker, run.start_job(i, thread, s))
    run.jobs.sort(key=lambda job: (job.s, job.inference))
    return run


def median(values):
    """Twice the median. Why twice: it stays whole."""
    values = sorted(values)
    return values[(len(values) - 1) // 2] + values[len(values) // 2]


def latencies(run):
    return [job.end - job.begin for job in sorted(run.jobs, key=lambda job: job.inference)]


def window(run):
    """From the begin of the first inference to the end of the last."""
    return max(job.end for job in run.jobs) - min(job.begin for job in run.jobs)


def idle(run):
    """{class: ns} of the gaps between consecutive jobs of a queue, piece by piece, from what the threads did.

    The classes: "in_submit" is the time from the begin of the submission to the begin of the job; split it as
    you like into in_submit and dispatch."""
    names = {"wait": "late_notice", "submit": "host_busy", "before": "host_busy", "after": "host_busy"}
    total = {}
    for pe in range(run.model.pes):
        jobs = sorted((job for job in run.jobs if job.pe == pe), key=lambda job: job.d)
        for one, two in zip(jobs, jobs[1:]):
            leaves = run.leaves[two.thread]
            since, until = one.f, two.d
            rest = until - since
            for leaf in leaves:
                ns = min(leaf.end, until, two.s) - max(leaf.start, since)
                if leaf.start >= until or ns <= 0:
                    continue
                kind = names[leaf.kind] if leaf.name else "host_untraced"
                kind = f"{kind}:{leaf.name}" if kind == "host_busy" else kind
                total[kind] = total.get(kind, 0) + ns
                rest -= ns
            launch = until - max(since, two.s)
            total["in_submit"] = total.get("in_submit", 0) + launch
            if rest > launch:
                total["other"] = total.get("other", 0) + rest - launch
    return total
