# SPDX-License-Identifier: MIT
"""What is true of the trace of npu.c: where each device span lies, and what is counted."""
import json


def true_ns(device, name, value, truth):
    """When a counter of npu.c had that value: ns since the trace's begin, first and last."""
    zero = {"down": 0x1FFFFF000 - 0x200000000, "split": 0x1FFFFF000 + truth["split"],
            "function": 0x1FFFFF000 - (truth["reset"] if name == "after reset" else 0)}[device]
    return -(-(value - zero) * 4 // 3) * 10 - 80, ((value - zero + 1) * 4 - 1) // 3 * 10 - 80


CALLS = {f"{letter} name of run time": stream for stream, letter in enumerate("vwxyz")}


def check_call(events, e):
    """A device span of begin and end as calls: its host span is in the task and ends before it begins to
    count; the interrupt's arguments are those of the end."""
    hosts = [h for h in events if h["ph"] == "X" and h["name"] == e["name"] and h["tid"] == 1]
    arrows = [a for a in events if a["ph"] == "s" and hosts and a["ts"] == hosts[0]["ts"] and a["tid"] == 1]
    i = CALLS[e["name"]]
    macs = None if i == 3 else i
    if len(hosts) != 1 or len(arrows) != 1 or hosts[0]["args"]["i"] != i or e["args"].get("macs") != macs:
        raise AssertionError(f"{e['name']}: host spans {hosts}, arrows {arrows}, {e['args']}")


def check_npu(text):
    """Each device span lies where it truly was, within the error it states, on its device's and stream's
    track, and inside its host span."""
    trace = json.loads(text)
    events = trace["traceEvents"]
    truth = next(e["args"] for e in events if e["name"] == "truth")
    lanes = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    tracks = {tid: name.split()[0] for tid, name in lanes.items()}
    spans = [e for e in events if e["ph"] == "X" and "start_ticks" in e.get("args", {})]
    names = sorted((tracks[e["tid"]], e["name"]) for e in spans)
    wanted = [("down", "after wraps"), ("down", "over wraps"), *[("down", "wraps")] * 3,
              ("function", "after reset"), *[("function", "function")] * 3,
              *[("split", f"{letter} name of run time") for letter in "abc"], ("split", "own stamps"),
              *[("split", f"{letter} name of run time") for letter in "vwxy"]]
    if names != wanted:
        raise AssertionError(f"device spans: {names}")
    for e in spans:
        device, args, start = tracks[e["tid"]], e["args"], round(e["ts"] * 1000)
        for at, value in ((start, args["start_ticks"]), (start + round(e["dur"] * 1000), args["end_ticks"])):
            first, last = true_ns(device, e["name"], value, truth)
            if not first - args["error_ns"] <= at <= last + args["error_ns"]:
                raise AssertionError(f"{device} {e['name']}: {at} ns, truly {first} to {last}, error "
                                     f"{args['error_ns']}")
        stream = {"function": 0x1234, "a name of run time": 0, "b name of run time": 1,
                  "c name of run time": 2, "own stamps": None, **CALLS}.get(e["name"], 0)
        lane = f"{device} PE 2" if stream is None else f"{device} stream {stream}"
        if (args.get("stream"), lanes[e["tid"]]) != (stream, lane):
            raise AssertionError(f"{device} {e['name']}: on {lanes[e['tid']]!r}, {args}; not of stream "
                                 f"{stream}")
        if e["name"] == "own stamps":
            continue
        if e["name"] in CALLS:
            check_call(events, e)
            continue
        host = [h for h in events if h["ph"] == "X" and h["name"] == e["name"] and h["tid"] == 1
                and h["ts"] <= e["ts"] and e["ts"] + e["dur"] <= h["ts"] + h["dur"]]
        if len(host) != 1 or not (300 < args["error_ns"] < 20000 if device == "function"
                                  else args["error_ns"] < 3000) or args["stamp"] != "sampled":
            raise AssertionError(f"{device} {e['name']}: in {len(host)} host spans, {args}")
    why = [(e["args"]["device"], e["args"]["why"].split(":")[0]) for e in events
           if e["name"] == "no device span"]
    if why != [("function", "NPUPROF_ERR_NPU_RESET"), ("split", "NPUPROF_ERR_NPU_DEAD"),
               ("split", "NPUPROF_ERR_NPU_CALLS"), ("split", "NPUPROF_ERR_NPU_BUSY")]:
        raise AssertionError(f"no device span: {why}")
    sync = [(d["name"], d["clock_sync"]) for d in trace["metadata"]["npuprof"]["devices"]]
    counts = [(name, s["wraps"], s["resets"], s["dead_reads"], s["causality_violations"], s["unplaced_spans"])
              for name, s in sync]
    if counts != [("down", 7, 0, 0, 0, 0), ("split", 0, 0, 2, 0, 0), ("function", 0, 1, 0, 0, 0)]:
        raise AssertionError(f"clock_sync: {counts}")
    arrows = [e for e in events if e["ph"] == "f"]
    if len(arrows) != len(spans) - 1:
        raise AssertionError(f"{len(arrows)} arrows")
