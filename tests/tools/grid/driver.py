# SPDX-License-Identifier: MIT
"""One run of a driver of the grid, as its case says. A change scales what it names; all else stays.

    Run(case)                           as it is
    Run(case, {"device": 0.5})          all on the device takes half; also "load", "operator:NAME" and
                                        "host:NAME": what a thread works in the spans of that name

Why draws by name and number: what is changed moves no draw of anything else.
"""

import functools
import math
import random

from .moments import Barrier, Event, Places, Ring, Time

OPERATORS = "conv", "gemm", "pool"
SLOTS = 16                 # of a ring
LOOK = 500                 # ns to see that a job is done
# By host load: how often work loses the CPU in each ms, and half of how often a wake-up comes late.
PREEMPTED = {0.0: 0, 0.7: 0.02, 1.5: 0.15}
LOADS = {"poisson 50 %": 0.5, "poisson 90 %": 0.9, "poisson 98 %": 0.98, "periodic": 0.7, "hidden": 0.9}
OF_BLOCK = "in the block", "sampled"
WORKS = "works then waits", "works only"


class Job:
    """d, f: begin and end on the device. s: begin of the submission. inside: (name, number, begin, end)."""

    def __init__(self, run, thread, inference, place, pe):
        self.thread, self.inference, self.place, self.pe = thread, inference, place, pe
        self.done, self.told, self.inside = Event(run.time), Event(run.time), []
        self.s = self.d = self.f = None


@functools.lru_cache(1 << 18)
def drawn(seed, *words):
    """Three numbers for one purpose: two in [0, 1) and one of the normal distribution."""
    draw = random.Random(f"{seed} {words}")
    return draw.random(), draw.random(), draw.gauss(0, 1)


def arrival_times(case, known={}):
    """When each inference is asked for, in ns; None: when a thread is free. Load: of what threads that are
    never idle could do."""
    kind, n, key = case.shape["arrivals"], case.shape["n"], (case.seed, *case.shape.values())
    if kind not in LOADS:
        return None
    if key not in known:
        closed = Run(case._replace(shape=case.shape | {"arrivals": "closed", "time": "even"}))
        each, now, known[key] = closed.window / n / LOADS[kind], 0.0, []
        for i in range(n):
            known[key].append(int(now))
            now += each if kind == "periodic" else -each * math.log(1 - drawn(case.seed, "arrival", i)[0])
    return known[key]


class Run:
    """jobs; spans: (thread, name, begin, end, arguments); inferences: (thread, begin, end, number); arrows:
    (name, from thread, ns, to thread, ns); latencies; window: from the first begin to the last end."""

    def __init__(self, case, change=None):
        self.case, self.shape, self.change = case, case.shape, change or {}
        self.time, self.jobs, self.spans, self.inferences, self.arrows = Time(), [], [], [], []
        self.requests = arrival_times(case)
        shape, time = self.shape, self.time
        self.rings = [Ring(time, SLOTS) for _ in range(shape["pes"])]
        self.dma = [Places(time)] * shape["pes"] if shape["dma"] == "shared" else \
            [Places(time) for _ in range(shape["pes"])]
        self.lock, self.barrier = Places(time), Barrier(time, shape["submitters"])
        self.finished = {}                       # thread: jobs for whoever tells it of their ends
        for pe in range(shape["pes"]):
            time.start(self.processor(pe))
        for thread in range(shape["submitters"]):
            self.finished[thread] = Ring(time, 1 << 30)
            time.start(self.server(thread))
            if self.shape["wait"] in ("completion thread", "callback"):
                time.start(self.teller(thread))
        time.run()
        self.inferences.sort(key=lambda inference: inference[3])
        self.latencies = sorted(end - begin for _, begin, end, _ in self.inferences)
        self.window = max(one[2] for one in self.inferences) - min(one[1] for one in self.inferences)

    @property
    def median(self):
        n = len(self.latencies)
        return (self.latencies[(n - 1) // 2] + self.latencies[n // 2]) / 2

    # ---- How long things take

    def us(self, name, *place):
        """A time of the case's numbers with noise, in ns: where it is one of the device's, a share of it."""
        numbers = self.case.numbers
        us = numbers[name] if name.endswith("_us") else numbers[name] * numbers["device_us"]
        return max(1, int(1000 * us * self.noise(name, *place)))

    def noise(self, *place):
        return max(0.2, 1 + self.shape["noise"] * drawn(self.case.seed, *place)[2])

    def operators(self, job):
        """[(name, ns of its transfer, ns of its work)] of a job, before any change."""
        numbers, found = self.case.numbers, []
        whole = numbers["first"] + numbers["second"] + numbers["third"]
        for k, (name, part) in enumerate(zip(OPERATORS, ("first", "second", "third"))):
            ns = 1000 * numbers["device_us"] * numbers[part] / whole * self.episode(name, job)
            ns *= self.noise(name, job.inference, job.place)
            found.append((name, int(ns * numbers["load"]) + 1, int(ns) + 1))
        return found

    def episode(self, name, job):
        """The factor of the shape's time."""
        kind, i, n = self.shape["time"], job.inference, self.shape["n"]
        return {"drift": 1 + 2 * i / n if name == "conv" else 1, "steps": 1.25 if i // 30 % 2 else 1,
                "warm-up": 2 if i < max(3, n // 10) else 1, "one outlier": 20 if i == n // 2 else 1,
                "one of 8": 2 if i % 8 == 3 else 1,
                "slow PE": 1.7 if 0 < job.pe == self.shape["pes"] - 1 else 1}.get(kind, 1)

    def scaled(self, ns, *names):
        for name in names:
            ns *= self.change.get(name, 1)
        return int(ns)

    # ---- The device

    def processor(self, pe):
        while True:
            job = yield from self.rings[pe].get()
            yield self.us("dispatch_us", job.inference, job.place)
            job.d = self.time.now
            yield from self.execution(job)
            job.f = self.time.now
            self.jobs.append(job)
            self.rings[pe].slots.give()
            job.done.happen()

    def execution(self, job):
        operators = self.operators(job)
        buffers, loaded = Places(self.time, self.shape["buffers"]), [Event(self.time) for _ in operators]
        self.time.start(self.transfers(job, operators, buffers, loaded))
        for k, (name, _, ns) in enumerate(operators):
            yield loaded[k]
            begin = self.time.now
            yield self.scaled(ns, "device", f"operator:{name}")
            job.inside.append((name, k, begin, self.time.now))
            buffers.give()

    def transfers(self, job, operators, buffers, loaded):
        engine = self.dma[job.pe]
        for k, (_, ns, _) in enumerate(operators):
            yield from buffers.take()
            yield from engine.take()
            begin = self.time.now
            yield self.scaled(ns, "device", "load")
            engine.give()
            job.inside.append(("Load", k, begin, self.time.now))
            loaded[k].happen()

    # ---- The threads

    def server(self, thread):
        for i in range(thread, self.shape["n"], self.shape["submitters"]):
            yield from self.request(thread, i)
            begin = self.time.now
            yield from self.work(thread, "prepare", self.us("prepare", i), i)
            if self.shape["lock"] != "none":
                yield from self.locked(thread, i)
            yield from self.device_part(thread, i)
            if self.shape["barrier"]:
                met = self.woken(self.barrier.meet(), "barrier", thread, i)
                yield from self.spanned(thread, "barrier", met)
            yield from self.work(thread, "finish", self.us("finish", i), i)
            self.inferences.append((thread, begin, self.time.now, i))

    def request(self, thread, i):
        if self.shape["arrivals"] == "think time":
            yield int(2000 * self.case.numbers["device_us"] * drawn(self.case.seed, "think", i)[0])
        elif self.requests and self.requests[i] > self.time.now:
            yield self.requests[i] - self.time.now
            yield self.notice("request", i)
        else:
            yield 5000
        if self.requests and self.shape["arrivals"] != "hidden":
            self.arrows.append(("request", "clients", self.requests[i], thread, self.time.now))

    def work(self, thread, name, ns, i):
        yield from self.spanned(thread, name, self.busy(name, ns, i))

    def busy(self, name, ns, i):
        ns = self.scaled(ns, f"host:{name}")
        yield ns
        often, long, _ = drawn(self.case.seed, "preempted", name, i)
        if often < PREEMPTED[self.shape["host_load"]] * ns / 1_000_000:
            yield int(1_000_000 * (0.5 + 2 * long))

    def spanned(self, thread, name, what, **args):
        begin = self.time.now
        yield from what
        if self.time.now > begin:
            self.spans.append((thread, name, begin, self.time.now, args))

    def locked(self, thread, i):
        """The threads pack one after the other. Hidden: the span is around the lock."""
        if self.shape["lock"] == "visible":
            yield from self.spanned(thread, "lock", self.woken(self.lock.take(), "lock", i))
            yield from self.work(thread, "pack", self.us("pack", i), i)
        else:
            yield from self.spanned(thread, "pack", self.hidden_lock(i))
        self.lock.give()

    def hidden_lock(self, i):
        yield from self.woken(self.lock.take(), "lock", i)
        yield from self.busy("pack", self.us("pack", i), i)

    def device_part(self, thread, i):
        """Submits all jobs of an inference, and waits for them as the style says."""
        shape, waiting = self.shape, []
        many = shape["depth"] > 1 or shape["pes"] > shape["submitters"] or shape["wait"] == "batch"
        for place in range(4 if many and shape["wait"] not in WORKS else 1):
            pe = (thread + place * shape["submitters"]) % shape["pes"]
            job = Job(self, thread, i, place, pe)
            if shape["wait"] in OF_BLOCK:
                yield from self.block(thread, job)
                continue
            yield from self.spanned(thread, "submit", self.submission(job))
            waiting.append(job)
            if len(waiting) >= shape["depth"] and shape["wait"] != "batch":
                yield from self.wait(thread, [waiting.pop(0)])
        for jobs in ([waiting] if shape["wait"] == "batch" else [[job] for job in waiting]):
            yield from self.wait(thread, jobs)

    def block(self, thread, job):
        begin = self.time.now
        yield from self.spanned(thread, "submit", self.submitted_and_awaited(job))
        job.call = begin, self.time.now

    def submitted_and_awaited(self, job):
        yield from self.submission(job)
        yield from self.asleep(job.done, job)

    def submission(self, job):
        job.s = self.time.now
        yield self.us("submit_us", job.inference, job.place)
        yield from self.finished[job.thread].put(job)
        yield from self.rings[job.pe].put(job)

    def wait(self, thread, jobs):
        style, job = self.shape["wait"], jobs[-1]
        if style in ("marked", "batch"):
            yield from self.spanned(thread, "wait", self.all_asleep(jobs), kind="wait")
        elif style == "completion thread":
            yield from self.spanned(thread, "wait", self.asleep(job.told, job), kind="wait")
            self.arrows.append(("wake", f"irq {thread}", job.told_ns, thread, self.time.now))
        elif style == "callback":
            yield from self.spanned(thread, "future.get", self.asleep(job.told, job))
        elif style in WORKS:
            yield from self.spanned(thread, "step", self.works(job, style == "works then waits"))
        elif style == "no span":
            yield from self.asleep(job.done, job)
        else:
            name = {"span": "block_until_ready"}.get(style, style.split()[0])
            looks = name in ("spin", "poll")
            yield from self.spanned(thread, name, self.looks(job) if looks else self.asleep(job.done, job))

    def works(self, job, waits):
        """Why before the change: work that follows the size does so by the data, not by the device."""
        operators = self.operators(job)
        ns = sum(ns for _, _, ns in operators) if self.shape["size"] == "follows" else \
            self.us("device_us", "step", job.inference)
        yield from self.busy("step", int(ns * self.shape["work"]), job.inference)
        if waits:
            yield from self.asleep(job.done, job)

    def looks(self, job):
        if self.shape["wait"] == "spin":
            yield job.done
        yield LOOK
        while not job.done.happened:
            yield 100_000 if self.shape["wait"] == "poll 0.1 ms" else 1_000_000

    def asleep(self, event, job):
        if event.happened:
            yield LOOK
        else:
            yield event
            yield self.notice("notice", job.inference, job.place)

    def woken(self, what, *place):
        """Waits for another thread, and is woken as for a job."""
        begin = self.time.now
        yield from what
        if self.time.now > begin:
            yield self.notice(*place)

    def all_asleep(self, jobs):
        for job in jobs:
            yield from self.asleep(job.done, job)

    def notice(self, *place):
        """A wake-up: on a busy machine now and then a late one."""
        often, long, _ = drawn(self.case.seed, "late", *place)
        late = often < 2 * PREEMPTED[self.shape["host_load"]]
        return self.us("notice_us", *place) + (int(3_000_000 * long) if late else 0)

    def teller(self, thread):
        """The thread that hears of ends, works, and then tells the one that waits."""
        name = "complete" if self.shape["wait"] == "completion thread" else "postprocess"
        while True:
            job = yield from self.finished[thread].get()
            yield from self.asleep(job.done, job)
            yield from self.work(f"irq {thread}", name, self.us("complete", job.inference, job.place),
                                 job.inference)
            job.told_ns = self.time.now
            job.told.happen()
