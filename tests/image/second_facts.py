# SPDX-License-Identifier: MIT
"""Brings what the second reader found, and what npuprof-convert wrote as JSON, to the same facts.

Left out are what is drawn and not read: lanes, ids, error bounds, where device ticks are in host time."""
import json
import re
import struct

import helpers

LABELLED = {"record", "warm_up", "inference", "operator"}
COUNTERS = {"counter_int", "counter_uint", "counter_real"}
NOT_READ = {"trace_id", "span_id", "parent_span_id", "kind", "unfinished", "end_before_start",
            "stamps_out_of_range", "error_ns", "causality", "warm_up", "start_ticks", "end_ticks", "stamp",
            "pe_index"}
# Where the times of a fact are.
TIMES = {"spans": (3, 4), "instants": (3,), "counters": (1,), "memory": (2,), "flows": (0, 1),
         "finished": (3, 4), "device": (), "pauses": (1,)}
UNNAMED = ("main",)           # how the converter calls a first thread that has no name
CAUSES = 12        # causes of loss that there were in format 1's first release
STAMPS = {0: "device", 1: "sampled", 4: "host", 5: "sampled"}

# Codes of results by number: an image holds the number, and the host has the text.
LIST = (helpers.TESTS / "golden" / "interface.txt").read_text(encoding="utf-8")
RESULTS = {int(number): name
           for name, number in re.findall(r"^. c constant (NPUPROF_(?:OK|ERR_\w+)) = (\d+)", LIST, re.M)}


def plain(value):
    """A value as JSON has it: integers beyond those of a double as text or as a double."""
    if isinstance(value, tuple):
        return RESULTS[value[1]]
    if isinstance(value, str) and value.startswith("NPUPROF_ERR_"):
        return value.split(":")[0]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 1 << 53:
        return str(value)
    return value


def arguments(args):
    return {key: plain(value) for key, value in sorted(args.items()) if key not in NOT_READ}


def counted(kind, value):
    """The value of a counter, of 64 bits, as a double."""
    if kind == "counter_real":
        return struct.unpack("d", struct.pack("Q", value))[0]
    return float(value - (1 << 64) if kind == "counter_int" and value >> 63 else value)


class Facts:
    """kind -> list of facts, whose times are ns."""

    def __init__(self, lost, metadata, devices):
        self.all = {name: [] for name in TIMES}
        self.lost, self.metadata, self.devices = list(lost)[:CAUSES], metadata, devices
        self.threads = {}                      # tid -> name, of those that have one

    def add(self, what, *fact):
        self.all[what].append(list(fact))

    def document(self):
        """All of it as JSON has it: times from the earliest one on, in a fixed order."""
        places = [(fact, n) for what, facts in self.all.items() for fact in facts for n in TIMES[what]
                  if fact[n] is not None]
        zero = min((fact[n] for fact, n in places), default=0)
        for fact, n in places:
            fact[n] -= zero
        facts = {what: sorted(facts, key=repr) for what, facts in self.all.items()}
        return json.loads(json.dumps({"lost": self.lost, "metadata": self.metadata, "devices": self.devices,
                                      "threads": self.threads, **facts}))


# ---- Of JSON

def ns(us):
    """Microseconds with three decimals, as text or a number, in ns."""
    return round(float(us) * 1000)


def of_json(document):
    own = document["metadata"]["npuprof"]
    facts = Facts(own["lost"].values(), own["user"],
                  [[device["name"], device["pe_count"]] for device in own["devices"]])
    tracks, starts = {}, {}
    for event in document["traceEvents"]:
        if event["ph"] == "M" and event["name"] == "thread_name":
            tracks[event["tid"]] = event["args"]["name"]
    facts.threads = {str(tid): name for tid, name in tracks.items()
                     if tid <= own["threads"] and name not in UNNAMED + (f"thread {tid}",)}
    for event in document["traceEvents"]:
        args, tid, category = event.get("args", {}), event["tid"], event.get("cat", "")
        phase, name, at = event["ph"], event["name"], ns(event.get("ts", 0))
        if phase == "X":
            span_of_json(facts, event, args, at, tracks if tid > own["threads"] else None)
        elif phase == "C" and category == "memory":
            facts.add("memory", name, event.get("tag", ""), at, args["used"], args["allocated"],
                      event.get("change", 0))
        elif phase == "C":
            facts.add("counters", name, at, float(args["value"]))
        elif phase == "i" and name in ("npuprof paused", "npuprof resumed"):
            facts.add("pauses", name.split()[1], at)
        elif phase == "i" and not event.get("derived"):
            facts.add("instants", tid, name, category, at, arguments(args))
        elif phase == "s" and name == "flow":
            starts[event["id"]] = at
        elif phase == "f" and name == "flow":
            facts.add("flows", starts.pop(event["id"]), at)
    return facts


def span_of_json(facts, event, args, at, tracks):
    """tracks: if the span is on no thread."""
    name, category, end = event["name"], event.get("cat", ""), at + ns(event["dur"])
    if args.get("unfinished") is True:
        end = None
    if "stamp" in args:
        facts.add("device", name, category, args["stamp"], args.get("start_ticks"), args.get("end_ticks"),
                  args.get("pe_index"), arguments(args))
    elif tracks:
        facts.add("finished", tracks[event["tid"]].split(" (")[0], name, category, at, end)
    else:
        facts.add("spans", event["tid"], name, category, at, end, args.get("unfinished") == "unwound",
                  args.get("kind", "span"), arguments(args))


# ---- Of the second reader

class Made:
    """Facts of a Trace of the second reader."""

    def __init__(self, trace):
        self.trace, self.origin, self.hz = trace, trace.origin, trace.hz
        named = sorted(key for key in trace.devices if isinstance(key, int))
        self.facts = Facts(trace.lost, trace.metadata,
                           [[trace.devices[n]["name"], trace.devices[n]["pe_count"]] for n in named])
        self.facts.threads = {str(tid): name for tid, name in trace.threads.items()
                              if name and name not in UNNAMED}
        self.out, self.begun = {}, {}
        for event in sorted(trace.events, key=lambda e: (e["start"], e["position"])):
            self.event(event, event["kind"], self.time(event["start"]))
        for name, category, start in self.begun.values():
            self.facts.add("finished", name, name, category, start, None)
        for start, end in trace.pauses:
            self.facts.add("pauses", "paused", self.time(start))
            if end:
                self.facts.add("pauses", "resumed", self.time(end))

    def time(self, ticks):
        return (ticks - self.origin) * 10**9 // self.hz

    def event(self, event, kind, at):
        add, name, category, value = self.facts.add, event["name"], event["category"], event["value"]
        if "end" in event:
            add("spans", event["tid"], name, category, at,
                None if event["end"] is None else self.time(event["end"]), event["unwound"],
                kind if kind in LABELLED else "span", arguments(event["args"]))
        elif kind == "instant":
            add("instants", event["tid"], name, category, at, arguments(event["args"]))
        elif kind in COUNTERS:
            add("counters", name, at, counted(kind, value))
        elif kind == "memory":
            sign = {0: 0, 1: 1, 2: -1}[event["how"]]
            add("memory", category or "host", name, at, value, event["allocated"], sign * event["changed"])
        elif kind == "flow_out":
            self.out.setdefault(value, []).append(at)
        elif kind == "flow_in" and self.out.get(value):
            add("flows", self.out[value].pop(0), at)
        elif kind == "async_begin":
            self.begun[value] = name, category, at
        elif kind == "async_end" and value in self.begun:
            label, category, start = self.begun.pop(value)
            add("finished", label, label, category, start, at)
        elif kind == "finished":
            add("finished", event["track"], name, category, value - self.trace.zero_ns,
                event["end_ns"] - self.trace.zero_ns)
        elif kind == "device":
            ticks = (None, None) if event["flags"] & 4 else (value, event["device_end"])
            add("device", name, category, STAMPS[event["flags"] & 5], *ticks, event["pe"],
                arguments(event["args"]))


def of_trace(trace):
    return Made(trace).facts
