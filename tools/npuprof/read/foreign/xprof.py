# SPDX-License-Identifier: MIT
"""XProf's trace.json.gz: of JAX, TensorFlow and PyTorch/XLA on TPUs, GPUs and others, as Neuron.

A process "/device:KIND:N" is a device. Its line "XLA Modules" has the executions, and "XLA Ops" the
instructions inside. Why they are numbered here: a run_id also counts runs of other devices. Each line
"Stream #N" is a queue, and each of its spans a job. From such lines XLA derives modules and operators: they
repeat the work then. What repeats a device's work, also by step, scope or source, or says what runs beside
it, stands beside it.
"""

import re
from bisect import bisect_right
from itertools import count

NAME = "XProf"
DEVICE_NAME = re.compile(r"/device:(\w+):(\d+).*", re.S)
STREAM = re.compile(r"[Ss]tream #?(\d+).*", re.S)
MODULES, OPS = "XLA Modules", "XLA Ops"
CORRELATION = "correlation_id"       # of a call on the host, and of the job that it launched


def is_of(places):
    return any(str(names.get("process_name", "")).startswith(("/device:", "/host:CPU", "/host:metadata"))
               for names in places.reader.track_names.values())


def place(places):
    trace, of_track, pids = places.trace, {}, {}
    for track in sorted(set(trace.track)):
        match = DEVICE_NAME.match(str(places.said(track, "process_name") or ""))
        if match:
            pids[track] = f"{match[1]} {match[2]}"
            of_track[track] = str(places.said(track, "thread_name") or "")
    rows, asides = {}, {}
    for i in range(len(trace)):
        track = trace.track[i]
        if track in of_track:
            rows.setdefault(track, []).append(i)
    queued = {places.keys[track][0] for track in rows if STREAM.fullmatch(of_track[track])}
    for track, own in rows.items():
        line, device = of_track[track], pids[track]
        stream = STREAM.fullmatch(line)
        if stream or (line in (MODULES, OPS) and places.keys[track][0] not in queued):
            for i in own:
                places.job(i)
            places.lane(track, f"{device} instructions" if line == OPS else device,
                        stream and stream[1])
        else:
            places.aside_track(track, f"{device} {line or 'line'}")
            asides[line or "line"] = asides.get(line or "line", 0) + len(own)
    for track, line in of_track.items():
        if line == OPS and track in rows and places.keys[track][0] not in queued:
            modules = next((t for t, other in of_track.items() if other == MODULES and t in rows
                            and pids[t] == pids[track] and places.keys[t][0] == places.keys[track][0]), None)
            steps(places, rows.get(modules, []), rows[track])
    if asides:
        text = ", ".join(f"{number} of {line[:40]}" for line, number in sorted(asides.items()))
        places.note(f"spans of a device that stand beside its work: {text}")
    arrows(places)


def steps(places, modules, ops):
    """Numbers the executions, and in each its instructions."""
    trace = places.trace
    modules.sort(key=trace.start.__getitem__)
    starts, inside = [trace.start[i] for i in modules], {}
    for number, i in enumerate(modules):
        places.column("execution_index", i, number)
        inside[i] = count()
    outside = count()
    for i in sorted(ops, key=trace.start.__getitem__):
        n = bisect_right(starts, trace.start[i]) - 1
        module = modules[n] if n >= 0 else None
        held = module is not None and trace.start[i] + trace.dur[i] <= trace.start[module] + trace.dur[module]
        places.column("instruction_index", i, next(inside[module] if held else outside))
        if held:
            trace.roles[trace.text(module)] = "execution"
            places.column("execution_index", i, trace.index["execution_index"][module])


def arrows(places):
    trace = places.trace
    for i in range(len(trace)):
        number = places.args(i).get(CORRELATION)
        if number is not None and not trace.kind[i]:
            places.call(number, i)
    places.submissions(CORRELATION)
