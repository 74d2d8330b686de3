# SPDX-License-Identifier: MIT
"""Writes a Run as the C library writes a trace: one event in each line, tracks one after the other."""

import json
from collections import namedtuple

HZ = 1_000_000_000          # one tick is one ns; tick_ns makes it coarser

# How the trace is written. pid, move: of all events; reorder: tracks in another order; shift: added to all
# device stamps; tick_ns: of the device's clock; others: Runs of other devices in the same trace.
Form = namedtuple("Form", "pid move reorder shift tick_ns others",
                  defaults=(4711, 0, False, 0, 1, ()))


def us(ns):
    return f"{ns // 1000}.{ns % 1000:03}"


class Paper:
    """Collects lines by track; those of a PE's lanes together, as the library has them."""

    def __init__(self, form):
        self.form, self.tracks, self.flows, self.base = form, {}, 0, {}

    def line(self, tid, ns, text):
        self.tracks.setdefault(self.base.get(tid, tid), []).append((ns, text))

    def meta(self, tid, what, args):
        self.line(tid, -1, f'{{"ph":"M","name":"{what}","pid":{self.form.pid},"tid":{tid},"args":{args}}}')

    def name(self, tid, name):
        self.meta(tid, "thread_name", json.dumps({"name": name}))
        self.meta(tid, "thread_sort_index", json.dumps({"sort_index": tid}))

    def span(self, tid, name, cat, start, end, **args):
        given = f',"args":{json.dumps(args, separators=(",", ":"))}' if args else ""
        self.line(tid, start, f'{{"ph":"X","name":{json.dumps(name)},"cat":"{cat}","pid":{self.form.pid},'
                              f'"tid":{tid},"ts":{us(start)},"dur":{us(end - start)}{given}}}')

    def flow(self, name, from_tid, from_ns, to_tid, to_ns):
        self.flows += 1
        # Why both at one place: a reader needs the begin first.
        for phase, tid, ns, bind in (("s", from_tid, from_ns, ""), ("f", to_tid, to_ns, '"bp":"e",')):
            text = (f'{{"ph":"{phase}","name":"{name}","pid":{self.form.pid},"tid":{tid},{bind}'
                    f'"cat":"{name}","id":{self.flows},"ts":{us(ns)}}}')
            self.line(from_tid, from_ns, text)

    def counter(self, name, tid, ns, number):
        self.line(tid, ns, f'{{"ph":"C","name":"{name}","pid":{self.form.pid},"tid":{tid},"ts":{us(ns)},'
                           f'"args":{{"value":{number}}}}}')

    def memory(self, pool, tid, ns, tag, change, used, allocated):
        self.line(tid, ns, f'{{"ph":"C","name":"{pool}","pid":{self.form.pid},"tid":{tid},"cat":"memory",'
                           f'"tag":"{tag}","change":{change},"ts":{us(ns)},'
                           f'"args":{{"used":{used},"allocated":{allocated}}}}}')

    def instant(self, name, tid, ns):
        self.line(tid, ns, f'{{"ph":"i","name":"{name}","pid":{self.form.pid},"tid":{tid},"s":"p",'
                           f'"ts":{us(ns)}}}')

    def lines(self):
        tids = sorted(self.tracks)
        if self.form.reorder:
            tids.reverse()
        for tid in tids:
            # Why stable: of spans with the same begin the outer one was added first.
            yield from (text for _, text in sorted(self.tracks[tid], key=lambda entry: entry[0]))


def lanes_of(spans):
    """(lane, span) of each: lane 0 is the first that has no span open."""
    free = []
    for span in sorted(spans, key=lambda s: (s[1], -s[2])):
        lane = next((n for n, end in enumerate(free) if end <= span[1]), len(free))
        free[lane:lane + 1] = [span[2]]
        yield lane, span


class Device:
    """Puts the jobs of one run on tracks of a device."""

    def __init__(self, paper, form, run, name, first_tid, error_ns):
        self.paper, self.form, self.run, self.name = paper, form, run, name
        self.error, self.lost, self.spans = error_ns, 0, 0
        self.options = run.model.options
        self.tids = {pe: first_tid + 4 * pe for pe in range(run.model.pes)}
        self.last_tid = first_tid + 4 * run.model.pes

    def stamp(self, ns):
        """Trace time of a moment in true time."""
        tick = self.form.tick_ns
        return (ns + self.form.move) // tick * tick + self.form.shift

    def put(self, skip):
        for pe, tid in self.tids.items():
            self.paper.name(tid, f"{self.name} PE {pe}")
            for lane in (1, 2, 3):
                self.paper.base[tid + lane] = tid
                self.paper.name(tid + lane, f"{self.name} PE {pe} instructions" + (f" #{lane}" if lane > 1
                                                                                    else ""))
        number = dict.fromkeys(self.tids, 0)
        for job in sorted(self.run.jobs, key=lambda job: job.d):
            index, number[job.pe] = number[job.pe], number[job.pe] + 1
            if skip(job):
                continue
            if job.inference in self.options.get("lost_jobs", ()):
                self.lost += 1 + len(job.spans)
                continue
            self.job(job, index, self.tids[job.pe])

    def job(self, job, index, tid):
        sampled = self.options.get("sampled")
        begin, end = self.stamp(job.d), self.stamp(job.f)
        args = {"stamp": "sampled" if sampled else "device", "pe_index": job.pe,
                "start_ticks": (begin - self.form.shift) // self.form.tick_ns,
                "end_ticks": (end - self.form.shift) // self.form.tick_ns, "error_ns": self.error}
        if not sampled:
            args |= {"trace_id": f"{job.inference + 1:032x}", "span_id": f"{job.inference + 2**32:016x}",
                     "stream": job.pe, "job": job.inference, "execution_index": index}
        self.paper.span(tid, "kernel" if sampled else "Execution", "NPU", begin, end, **args)
        self.spans += 1
        if sampled:
            return
        args.pop("trace_id"), args.pop("span_id")
        placed = [(instr, start, end, n) for n, (instr, start, end) in enumerate(job.spans)]
        for lane, (instr, start, end, n) in lanes_of(placed):
            begin, end = self.stamp(start), self.stamp(end)
            ticks = {"start_ticks": (begin - self.form.shift) // self.form.tick_ns,
                     "end_ticks": (end - self.form.shift) // self.form.tick_ns}
            self.paper.span(tid + 1 + lane, instr.name, "NPU", begin, end, **{**args, **ticks},
                            instruction_index=n if instr.number is None else instr.number,
                            **(instr.args or {}))
            self.spans += 1

    def sync(self):
        last = max(job.f for job in self.run.jobs) + self.form.move
        moments = range(self.form.move, last + 20_000_000, max(10_000_000, last // 50))
        anchors = [[ns, self.error // 2, ns // self.form.tick_ns] for ns in moments]
        return {"rate_hz": HZ / self.form.tick_ns, "rate_uncertainty_ppm": 0.5,
                "nominal_hz": HZ // self.form.tick_ns, "drift_ppm": 0.0, "max_error_ns": self.error,
                "anchors": len(anchors), "wraps": 0, "resets": 0, "ambiguous_gaps": 0, "dead_reads": 0,
                "torn_reads": 0, "ring_lost": self.lost, "spans": self.spans, "unplaced_spans": 0,
                "causality_violations": 0, "arrows_left_out": 0, "anchor_list": anchors}


def put_host(paper, run, first_tid, move, skip):
    """The threads of a run, and the arrows between them."""
    options, model = run.model.options, run.model
    for thread, leaves in enumerate(run.leaves):
        tid = first_tid + thread
        paper.name(tid, f"worker {thread}")
        kept = [leaf for leaf in leaves if not skip(leaf)]
        if kept:
            paper.span(tid, "trace", "record", kept[0].start - 1000 + move, kept[-1].end + 1000 + move,
                       kind="record")
        for job in run.jobs:
            if job.thread == thread and not skip(job):
                ids = {"trace_id": f"{job.inference + 1:032x}", "span_id": f"{job.inference + 1:016x}"}
                paper.span(tid, "Inference", "Runtime", job.begin + move, job.end + move, kind="inference",
                           **ids)
        for leaf in kept:
            if leaf.name:
                args = {"kind": "wait"} if leaf.kind == "wait" else {}
                if leaf.kind in ("submit", "wait") and model.submit_cpu is not None:
                    cpu = model.submit_cpu if leaf.kind == "submit" else 500
                    args["cpu_ns"] = min(cpu, leaf.end - leaf.start)
                paper.span(tid, leaf.name, "Runtime", leaf.start + move, leaf.end + move, **args)
    # (thread, name, start, end): spans of other threads
    others = {}
    for thread, name, start, end in options.get("spans", ()):
        number = others.setdefault(thread, first_tid + model.threads + len(others))
        paper.span(number, name, "Runtime", start + move, end + move)
    for thread, number in others.items():
        paper.name(number, thread)
    for thread, ns, inference in options.get("requests", ()):
        job = next(job for job in run.jobs if job.inference == inference)
        paper.flow("request", others[thread], ns + move, first_tid + job.thread, job.begin + move)
    for name, ns, number in options.get("counters", ()):
        paper.counter(name, first_tid, ns + move, number)
    for pool, ns, tag, change, used, allocated in options.get("memory", ()):
        paper.memory(pool, first_tid, ns + move, tag, change, used, allocated)
    return first_tid + model.threads + len(others)


def put_arrows(paper, device, first_tid, move, skip):
    """From each submission to its job; `dep` from a job to the one that needs its result."""
    run, before = device.run, None
    if device.options.get("sampled"):
        return
    lost = device.options.get("lost_jobs", ())
    for job in run.jobs:
        if skip(job) or job.inference in lost:
            continue
        paper.flow("submit", first_tid + job.thread, job.s + move, device.tids[job.pe], device.stamp(job.d))
        if run.model.depends and before is not None:
            paper.flow("dep", device.tids[before.pe], device.stamp(before.d), device.tids[job.pe],
                       device.stamp(job.d))
        before = job


def write(path, run, error_ns, form=Form()):
    """Writes the trace. error_ns: what the trace says of the device's stamps."""
    paper, runs = Paper(form), [run, *form.others]
    paused = run.model.options.get("paused")

    def skip(what):
        if not paused:
            return False
        start, end = (what.begin, what.end) if hasattr(what, "begin") else (what.start, what.end)
        return start < paused[1] and end > paused[0]
    tid, first = 1, []
    for one in runs:
        first.append(tid)
        tid = put_host(paper, one, tid, form.move, skip)
    threads, devices = tid - 1, []
    for n, (one, host_tid) in enumerate(zip(runs, first)):
        device = Device(paper, form, one, f"npu{n}", tid, error_ns)
        device.put(skip)
        put_arrows(paper, device, host_tid, form.move, skip)
        devices.append(device)
        tid = device.last_tid
    paper.meta(1, "process_name", '{"name":"planted"}')
    if paused:
        paper.instant("npuprof paused", 1, paused[0] + form.move)
        paper.instant("npuprof resumed", 1, paused[1] + form.move)
    lost = dict.fromkeys("arena_full names_full too_deep no_context overwritten sink device_ring arguments "
                         "reading notes device_busy".split(), 0)
    lost["device_ring"] = sum(device.lost for device in devices)
    about = {"version": "0.1.0", "host": "vm", "program": "planted", "pid": form.pid,
             "start_unix_ns": 1_700_000_000_000_000_000, "start_monotonic_ns": 0, "start_boottime_ns": 0,
             "clock": {"source": "tsc", "hz": 2.5e9, "error_ns": 16},
             "recorded": sum(map(len, paper.tracks.values())), "lost": lost, "streamed": 0,
             "when_full": "keep-oldest", "threads": threads, "counter_values_not_finite": 0,
             "unused_environment": {}, "user": {"model": "planted"},
             "devices": [{"name": device.name, "pe_count": device.run.model.pes, "clock_sync": device.sync()}
                         for device in devices]}
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"traceEvents":[\n' + ",\n".join(paper.lines()) + '\n],\n"displayTimeUnit":"ns",\n')
        file.write('"metadata":' + json.dumps({"npuprof": about}, separators=(",", ":")) + "}\n")
    return path
