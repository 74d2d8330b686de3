# SPDX-License-Identifier: MIT
"""Makes a trace that has everything the report page shows, always the same: sample(layers) -> JSON text.

Two processes' worth of names nobody would choose included. `python3 tests/web/sample.py FILE [LAYERS]` writes
it.
"""

import json
import random
import sys

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\"><b>&amp;"


def sample(layers=4, inferences=24):
    rng = random.Random(5)
    events = []

    def put(**event):
        events.append(event)

    def span(tid, name, cat, start, ns, **args):
        event = dict(ph="X", name=name, cat=cat, pid=7, tid=tid, ts=start, dur=ns)
        if args:
            event["args"] = args
        put(**event)

    threads = {1: "main", 2: "worker 0", 3: "worker 1", 4: "loader"}
    engines = {10: "npu0 PE 0", 11: "npu0 PE 1", 12: "npu0 PE 1 #2", 13: "npu1 PE 0"}
    put(ph="M", name="process_name", pid=7, tid=1, args={"name": "encoder"})
    for tid, name in (threads | engines | {14: "irq"}).items():
        put(ph="M", name="thread_name", pid=7, tid=tid, args={"name": name})
        put(ph="M", name="thread_sort_index", pid=7, tid=tid, args={"sort_index": tid})
    now, flow, used = 50_000, 0, 6 << 20
    span(1, "Compile", "Runtime", now, 900_000)
    span(1, "fuse", "compiler", now + 40_000, 300_000, passes=12)
    span(1, HOSTILE, "compiler", now + 400_000, 380_000, note=HOSTILE)
    span(4, "load weights", "io", now + 100_000, 1_700_000, bytes=25 << 20)
    now += 2_000_000
    free = {10: now, 11: now, 13: now}
    weights = {"InnerProduct": ["256x256", "256x1024", "1024x256"], "Matmul": [""], "Softmax": [""],
               "LayerNorm": [""]}
    cost = {"256x256": 38_000, "256x1024": 96_000, "1024x256": 91_000, "": 14_000}
    for n in range(inferences):
        if n == 4:
            put(ph="i", name="npuprof paused", pid=7, tid=1, s="p", ts=now)
            now += 180_000_000
            put(ph="i", name="npuprof resumed", pid=7, tid=1, s="p", ts=now)
        tid = 2 + n % 2
        begin = now
        warm = n < 2
        row = len(events)
        put()
        row2 = len(events)
        put()
        t = now + 8_000
        span(tid, "Quantize", "Runtime", t, 6_000 + rng.randrange(3_000), kind="operator", operator_index=0)
        t += 12_000
        put(ph="C", name="queue depth", pid=7, tid=tid, ts=t, args={"value": rng.randrange(9)})
        pe = (10, 11, 13)[n % 3]
        flow += 1
        span(tid, "Submit", "NPU", t, 5_000, queue=pe - 10)
        put(ph="s", name="submit", cat="submit", id=flow, pid=7, tid=tid, ts=t)
        start = max(free[pe], t + 9_000 + rng.randrange(12_000))
        e = len(events)
        put()
        put(ph="f", name="submit", cat="submit", id=flow, pid=7, tid=pe, ts=start, bp="e")
        d, k = start + 4_000, 0
        slow = 2.6 if n in (9, 17) else 1
        for layer in range(layers):
            for op, shapes in weights.items():
                for shape in shapes:
                    ns = int(cost[shape] * slow * rng.uniform(0.96, 1.05))
                    args = dict(stamp="device", pe_index=pe - 10, error_ns=rng.randrange(300, 1200),
                                execution_index=n, instruction_index=k)
                    args |= {"ne.type": op, "ne.weight_shape": shape, "ne.sparse_ratio": 0.0,
                             "ne.sparse_support": bool(shape)}
                    span(pe, f"{op}_{layer}_{shape or 'x'}" if layers < 3 else op
                         + (f" {shape}" if shape else ""), "NPU", d, ns, **args)
                    if pe == 11 and k % 3 == 0:
                        span(12, "Load", "NPU", d + 2_000, ns // 2, stamp="device", pe_index=1,
                             execution_index=n, instruction_index=k)
                    used += rng.randrange(-(1 << 19), (1 << 19) + (1 << 16))
                    used = max(4 << 20, used)
                    put(ph="C", name="npu0 memory", pid=7, tid=tid, tag=f"{op} {layer}", ts=d + ns,
                        args={"used": used, "allocated": max(8 << 20, (used >> 22) + 2 << 22)})
                    d, k = d + ns + rng.randrange(1_000, 6_000), k + 1
        args = dict(stamp="device", pe_index=pe - 10, error_ns=640, execution_index=n)
        if n == 11:
            args["causality"] = "violated"
        if warm:
            args["warm_up"] = True
        events[e] = dict(ph="X", name="Execution", cat="NPU", pid=7, tid=pe, ts=start, dur=d - start,
                         args=args)
        free[pe] = d + 3_000
        seen = d + 15_000 + rng.randrange(9_000)
        span(tid, "Wait", "Runtime", t + 6_000, seen - t - 6_000)
        span(tid, "Dequantize", "Runtime", seen + 2_000, 4_500 + rng.randrange(2_000), kind="operator",
             operator_index=1)
        put(ph="C", name="temperature", pid=7, tid=tid, ts=seen,
            args={"value": round(48 + n * 0.7 + rng.random(), 2)})
        span(14, "interrupt", "hw", d + 1_000, 2_500)
        done = seen + 12_000
        events[row] = dict(ph="X", name="warm up" if warm else "request", cat="Runtime", pid=7, tid=tid,
                           ts=begin, dur=done + 3_000 - begin,
                           args={"kind": "warm_up" if warm else "record"})
        events[row2] = dict(ph="X", name="Inference", cat="Runtime", pid=7, tid=tid, ts=begin + 3_000,
                            dur=done - begin - 3_000,
                            args={"kind": "inference", "batch": 8})
        now = done + 40_000 if n % 3 else begin + 150_000
        now = max(now, done + 10_000) if n % 2 else now
    about = {"version": "0.1.0", "host": "bench-03", "program": "encoder", "pid": 7,
             "start_unix_ns": 1_790_000_000_123_456_789, "threads": 4,
             "clock": {"source": "tsc", "hz": 2_899_998_812.25, "error_ns": 43},
             "lost": {"arena_full": 17, "names_full": 0},
             "user": {"model": "bert_mini, int8", "firmware": "2.3.1 " + HOSTILE},
             "unused_environment": {"NPUPROF_LEVEL": "\"high\" is no number"},
             "devices": [{"name": name, "clock_sync": {"rate_hz": hz, "drift_ppm": ppm, "max_error_ns": error,
                                                       "anchors": 41, "wraps": 2, "resets": 0,
                                                       "causality_violations": bad}}
                         for name, hz, ppm, error, bad in (("npu0", 25_003_174.8, 126.9, 1_219, 1),
                                                           ("npu1", 24_999_871.2, -5.15, 870, 0))]}
    return '{"traceEvents":[\n%s\n],\n"displayTimeUnit":"ns",\n"metadata":%s}\n' % (
        ",\n".join(map(line, events)), json.dumps({"npuprof": about}, separators=(",", ":")))


def line(event):
    """An event as the C writer puts it: stamps in us with three decimals, arguments last."""
    parts = []
    for key in ("ph", "name", "pid", "tid", "s", "bp", "cat", "id", "tag", "ts", "dur",
                "args") if event["ph"] != "X" else \
            ("ph", "name", "cat", "pid", "tid", "ts", "dur", "args"):
        if key in event:
            value = event[key]
            parts.append('"%s":%s' % (key, f"{value // 1000}.{value % 1000:03}" if key in ("ts", "dur") else
                                      json.dumps(value, separators=(",", ":"), ensure_ascii=False)))
    return "{%s}" % ",".join(parts)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(sample(*map(int, sys.argv[2:])))
