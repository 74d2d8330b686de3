# SPDX-License-Identifier: MIT
"""Traces of ranks that run in step, with a known truth: write(folder, ranks, inferences, ...)."""

import json
import random

OPERATORS = {"conv": 40_000, "pool": 6_000, "dense": 11_000}
BASE = 1_790_000_000_000_000_000


def stamp(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


def trace(rank, inferences, host="h0", slow=None, late=0, lost=0, layers=2, boot=None, more=()):
    """(text, truth) of one rank. slow: {operator: factor}; late: ns that its inferences begin later; more:
    {operator: ns}, which only this rank has.

    truth: a dict with durations (of the inferences), starts (Unix ns), busy_ns, spans, and operators
    {name: [count, ns]}"""
    rng, slow = random.Random(rank), slow or {}
    lines, durations, starts, busy, operators = [], [], [], 0, {}

    def span(name, tid, start, ns, args=""):
        lines.append(f'{{"ph":"X","name":"{name}","cat":"c","pid":{100 + rank},"tid":{tid},'
                     f'"ts":{stamp(start)},"dur":{stamp(ns)}{args}}}')
    for tid, name in ((1, "main"), (2, "npu PE 0"), (3, "npu PE 0 instructions")):
        lines.append(f'{{"ph":"M","name":"thread_name","pid":{100 + rank},"tid":{tid},'
                     f'"args":{{"name":"{name}"}}}}')
    now = 1_000_000
    for n in range(inferences):
        begin = now + late + rng.randrange(2_000)
        job = begin + 9_000 + rng.randrange(500)
        inside, at, device = [], job, f'"stamp":"device","pe_index":0,"error_ns":100,"execution_index":{n}'
        for k in range(layers):
            for name, ns in (OPERATORS | dict(more)).items():
                ns = int((ns + rng.randrange(300)) * slow.get(name, 1))
                inside.append((name, at, ns, k))
                count = operators.setdefault(name, [0, 0])
                count[0], count[1] = count[0] + 1, count[1] + ns
                at += ns
        end = at + 5_000 + rng.randrange(900)
        span("Inference", 1, begin, end - begin, ',"args":{"kind":"inference"}')
        span("Submit", 1, begin + 2_000, 3_000)
        lines.append(f'{{"ph":"s","name":"submit","pid":{100 + rank},"tid":1,"cat":"submit","id":{n + 1},'
                     f'"ts":{stamp(begin + 2_000)}}}')
        lines.append(f'{{"ph":"f","name":"submit","pid":{100 + rank},"tid":2,"bp":"e","cat":"submit",'
                     f'"id":{n + 1},"ts":{stamp(job)}}}')
        span("Wait", 1, begin + 5_500, end - begin - 5_600, ',"args":{"kind":"wait"}')
        span("Execution", 2, job, at - job, f',"args":{{{device}}}')
        for name, start, ns, k in inside:
            span(name, 3, start, ns, f',"args":{{{device},"instruction_index":{k}}}')
        durations.append(end - begin)
        starts.append(BASE + begin)
        busy += at - job
        now += 400_000
    about = {"version": "0.1.0", "host": host, "program": "train", "pid": 100 + rank, "threads": 1,
             "start_unix_ns": BASE, "lost": {"arena_full": lost}, "user": {"rank": str(rank)},
             "devices": [{"name": "npu", "clock_sync": {"max_error_ns": 100 + rank}}]}
    if boot is not None:
        about["start_boottime_ns"] = boot
    text = '{"traceEvents":[\n%s\n],\n"displayTimeUnit":"ns",\n"metadata":%s}\n' % (
        ",\n".join(lines), json.dumps({"npuprof": about}, separators=(",", ":")))
    return text, {"durations": durations, "starts": starts, "busy_ns": busy, "operators": operators,
                  "spans": inferences * (4 + len(OPERATORS | dict(more)) * layers)}
