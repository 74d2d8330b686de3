# SPDX-License-Identifier: MIT
"""Small random traces for the analyses: threads that submit to a device of two PEs. They last some 4000 ns: a
test can look at every single one."""

import json
import random


class Small:
    """Lists of what is in the trace; write() puts it into a file.

    spans    (tid, name, start, end, args); jobs: (pe, start, end, error, s, tid, instructions)"""

    def __init__(self, seed, error=0, requests=True):
        self.random, self.error = random.Random(seed), error
        self.spans, self.jobs, self.flows, self.instants, self.memory = [], [], [], [], []
        free = [0, 0]
        plans = []
        for tid in (1, 2):
            now = self.random.randrange(50)
            for _ in range(self.random.randrange(3, 7)):
                plans.append((now, tid))
                now += self.random.randrange(150, 600)
        clock = {1: 0, 2: 0}
        for now, tid in sorted(plans):
            clock[tid] = self.inference(tid, max(now, clock[tid]), free, requests) + self.random.randrange(30)
        self.spans.sort(key=lambda span: (span[0], span[2], -span[3]))

    def inference(self, tid, now, free, requests):
        """One inference from about `now` on; returns its end."""
        draw, begin = self.random.randrange, now
        if requests and draw(2):
            self.flows.append(("request", 3, max(0, now - draw(80)), tid, now))
        if draw(3):
            now += draw(1, 20)
            self.spans.append((tid, "prepare", now, now + 40, {}))
            inner = now + draw(1, 20)
            self.spans.append((tid, "inner", inner, inner + draw(1, 15), {}))
            now += 40
        for _ in range(draw(1, 3)):
            now += draw(0, 25)
            s, pe = now, draw(2)
            now += draw(5, 120)
            self.spans.append((tid, "Submit", s, now, {}))
            start = max(s + draw(1, 30), free[pe] + draw(0, 20))
            end = start + draw(20, 150)
            free[pe] = end
            self.jobs.append((pe, start, end, self.error, s, tid, self.program(start, end)))
            now += draw(0, 40)
            w, now = now, max(now + 1, end + draw(0, 60))
            self.spans.append((tid, "Wait", w, now, {}))
        if draw(2):
            self.spans.append((tid, "lock queue", now, now + 15, {}))
            now += 15
        end = now + draw(0, 20)
        self.spans.append((tid, "Inference", begin, end, {"kind": "inference"}))
        return end

    def program(self, start, end):
        """[(name, start, end, index)] inside an execution."""
        found, draw = [], self.random.randrange
        for index in range(draw(0, 6)):
            a = draw(start, end)
            found.append((self.random.choice(("Load", "Store", "conv", "pad")), a, draw(a, end) + 1, index))
        return [(name, a, min(b, end), index) for name, a, b, index in sorted(found, key=lambda f: f[1])]

    def write(self, path, device=None, user=None):
        lines = []

        def event(ph, tid, ns, **more):
            lines.append(json.dumps({"ph": ph, **more, "pid": 9, "tid": tid, "ts": 0}, separators=(",", ":"))
                         .replace('"ts":0', f'"ts":{ns // 1000}.{ns % 1000:03}'))

        def span(tid, name, start, end, args):
            given = f',"args":{json.dumps(args, separators=(",", ":"))}' if args else ""
            ns = end - start
            lines.append(f'{{"ph":"X","name":"{name}","cat":"c","pid":9,"tid":{tid},"ts":{start // 1000}.'
                         f'{start % 1000:03},"dur":{ns // 1000}.{ns % 1000:03}{given}}}')
        for tid, name in ((1, "worker 0"), (2, "worker 1"), (3, "client")):
            event("M", tid, 0, name="thread_name", args={"name": name})
        for number, ends in enumerate(self.flows):
            name, *ends = ends
            for phase, (tid, ns) in zip("sf", (ends[:2], ends[2:])):
                event(phase, tid, ns, name=name, cat=name, id=100 + number)
        for one in self.spans:
            span(*one)
        for name, ns in self.instants:
            event("i", 1, ns, name=name, s="p")
        for pool, ns, tag, change, used, allocated in self.memory:
            event("C", 1, ns, name=pool, cat="memory", tag=tag, change=change,
                  args={"used": used, "allocated": allocated})
        for pe in (0, 1):
            event("M", 10 + 2 * pe, 0, name="thread_name", args={"name": f"dev PE {pe}"})
            event("M", 11 + 2 * pe, 0, name="thread_name", args={"name": f"dev PE {pe} instructions"})
        for number, (pe, start, end, error, s, tid, program) in enumerate(self.jobs):
            stamp = {"stamp": "device", "pe_index": pe, "error_ns": error}
            span(10 + 2 * pe, "Execution", start, end, {**stamp, "execution_index": number})
            event("s", tid, s, name="submit", cat="submit", id=number)
            event("f", 10 + 2 * pe, start, name="submit", cat="submit", id=number, bp="e")
            for name, a, b, index in program:
                span(11 + 2 * pe, name, a, b, {**stamp, "execution_index": number,
                                               "instruction_index": index})
        about = {"version": "0.1.0", "start_unix_ns": 5, "pid": 9, "threads": 3, "lost": {},
                 "clock": {"source": "x", "error_ns": 0}, "user": user or {},
                 "devices": [device or {"name": "dev", "pe_count": 2, "clock_sync": {"ring_lost": 0}}]}
        path.write_text('{"traceEvents":[\n' + ",\n".join(lines) + '\n],\n"metadata":{"npuprof":'
                        + json.dumps(about) + "}}\n")
        return path
