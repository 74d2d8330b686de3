# SPDX-License-Identifier: MIT
"""Writes a Run as the library would record it: what it sees, with its device clock's error, and no more."""

import json
import math

from .driver import drawn


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


class Paper:
    """The lines of one trace."""

    def __init__(self, run):
        self.run, self.shape, self.lines, self.arrows = run, run.shape, [], 0
        self.is_sampled = run.shape["wait"] == "sampled"
        self.error = 100 if self.is_sampled else int(run.shape["error_us"] * 1000)
        threads = [*range(run.shape["submitters"]),
                   *sorted({one[0] for one in run.spans if isinstance(one[0], str)}), "clients"]
        self.tids = {thread: number for number, thread in enumerate(threads, 1)}
        self.first_pe = len(threads) + 1
        self.lost = 0

    def line(self, phase, name, tid, ns, **more):
        cat = name if phase in "sf" else "grid"
        self.lines.append((tid, ns, {"ph": phase, "name": name, "cat": cat, "pid": 1, "tid": tid, **more}))

    def name(self, tid, text):
        self.lines.append((tid, -1, {"ph": "M", "name": "thread_name", "pid": 1, "tid": tid,
                                     "args": {"name": text}}))

    def span(self, tid, name, begin, end, args):
        self.line("X", name, tid, begin, dur=end - begin, args=args)

    def arrow(self, name, from_tid, from_ns, to_tid, to_ns):
        self.arrows += 1
        self.line("s", name, from_tid, from_ns, id=self.arrows)
        self.line("f", name, to_tid, to_ns, id=self.arrows, bp="e")

    def stamp(self, ns, job):
        """The device's clock is off by up to its error, slowly changing, and by the same within a job."""
        return START + ns + int(0.8 * self.error * math.sin(job.d / 3e7))

    def threads(self):
        for thread, tid in self.tids.items():
            self.name(tid, thread if isinstance(thread, str) else f"worker {thread}")
        for thread, begin, end, _ in self.run.inferences:
            self.span(self.tids[thread], "Inference", START + begin, START + end, {"kind": "inference"})
        for thread, name, begin, end, args in self.run.spans:
            self.span(self.tids[thread], name, START + begin, START + end, args)
        for name, source, from_ns, target, to_ns in self.run.arrows:
            if name == "request":
                self.span(self.tids[source], name, START + from_ns, START + from_ns + 1, {})
            self.arrow(name, self.tids[source], START + from_ns, self.tids[target], START + to_ns)

    def device(self):
        for pe in range(self.shape["pes"]):
            for lane, text in enumerate(("", " instructions", " instructions #2")):
                self.name(self.first_pe + 3 * pe + lane, f"npu PE {pe}{text}")
        numbers = [0] * self.shape["pes"]
        for job in self.run.jobs:
            index, numbers[job.pe] = numbers[job.pe], numbers[job.pe] + 1
            hole = drawn(self.run.case.seed, "hole", job.inference, job.place)[0] < HOLES
            if self.shape["time"] == "holes" and hole:
                self.lost += 1
            else:
                self.job(job, index)

    def job(self, job, index):
        tid = self.first_pe + 3 * job.pe
        args = {"stamp": "device", "pe_index": job.pe, "error_ns": self.error, "stream": job.pe}
        if self.is_sampled:
            begin, end = START + job.call[0], START + job.call[1]
            self.span(tid, "kernel", begin, end, args | {"stamp": "sampled"})
        else:
            begin, end = self.stamp(job.d, job), self.stamp(job.f, job)
            self.span(tid, "Execution", begin, end, args | {"execution_index": index})
        self.arrow("submit", self.tids[job.thread], START + job.s, tid, begin)
        for name, k, begin, end in job.inside if self.inside() else ():
            lane = tid + 1 + (name == "Load")
            self.span(lane, name, self.stamp(begin, job), self.stamp(end, job),
                      args | {"execution_index": index, "instruction_index": k})

    def inside(self):
        return self.shape["records"] == "instructions" and not self.is_sampled

    def text(self):
        self.threads()
        self.device()
        # Why: of spans with the same begin the outer one is first.
        self.lines.sort(key=lambda line: (line[0], line[1], -line[2].get("dur", 0)))
        rows = []
        for _, ns, event in self.lines:
            rows.append(json.dumps(event, separators=(",", ":"))[:-1]
                        + (f',"ts":{us(ns)}}}' if ns >= 0 else "}"))
            if "dur" in event:
                rows[-1] = rows[-1].replace(f'"dur":{event["dur"]}', f'"dur":{us(event["dur"])}', 1)
        about = {"version": "0.1.0", "start_unix_ns": 10**18, "pid": 1, "threads": len(self.tids),
                 "clock": {"error_ns": 16}, "lost": {"device_ring": self.lost},
                 "devices": [{"name": "npu", "pe_count": self.shape["pes"]}]}
        return '{"traceEvents":[\n%s\n],\n"metadata":%s}\n' % (
            ",\n".join(rows), json.dumps({"npuprof": about}, separators=(",", ":")))


START = 1_000_000          # ns of the trace at which a run begins
HOLES = 0.05               # the share of executions that are lost
