# SPDX-License-Identifier: MIT
"""PyTorch's profiler, Kineto: trace.json of CUDA, ROCm, XPU and MTIA.

A span of a device's category is a job of its own. Its process is the device and its thread the stream. The
call that launched it has the same `correlation`, or an arrow "ac2g" says so. Annotations of a device repeat
those of the host, and "cuda_sync" the host's waits; MTIA's `event_wait` is its queue's: all stand beside the
device. A ProfilerStep is an inference; its number is an argument, so that `diff` finds the same name. A call
that synchronises returns when the device has done what was asked before: all of it is a wait.
"""

import re

from ...base.contract import DEVICE, INFERENCE

NAME = "PyTorch Kineto"
JOBS = {"kernel", "gpu_memcpy", "gpu_memset", "mtia_ccp_events", "hpu_op", "glow_op",
        "Kernel", "Memcpy", "Memset", "privateuse1_kernel"}            # the second line: of older versions
CALLS = {"cuda_runtime", "cuda_driver", "mtia_runtime", "xpu_runtime", "glow_runtime", "privateuse1_runtime",
         "privateuse1_driver", "xpu_driver", "Runtime"}
# CUDA, HIP and Level Zero: cudaStreamSynchronize, cuCtxSynchronize, zeFenceHostSynchronize
SYNCHRONISES = re.compile(r"(cuda|cu|hip|ze)[A-Z]\w*Synchronize(_\w+)?")
STEP = re.compile(r"(ProfilerStep)#?(\d{1,15})")


def is_of(places):
    return bool({"schemaVersion", "deviceProperties"} & places.top.keys()
                or {"cpu_op", "cuda_runtime"} & places.categories
                or {"Kernel", "Memcpy", "Operator"} & places.categories and "Node" not in places.categories)


def place(places):
    trace, jobs = places.trace, 0
    base = places.top.get("baseTimeNanoseconds")
    trace.base_ns = base if type(base) is int and 0 < base < 2**62 else 0
    for i in range(len(trace)):
        cat = places.cat(i)
        if cat in CALLS and SYNCHRONISES.fullmatch(trace.text(i)):
            trace._args.setdefault(i, {})["kind"] = "wait"
        if cat in JOBS and not trace.text(i).startswith("event_"):
            jobs += 1
            places.job(i)
        elif cat in CALLS and "correlation" in places.args(i):
            places.call(places.args(i)["correlation"], i)
        elif (step := STEP.fullmatch(trace.text(i))) and not cat.startswith("gpu_"):
            trace.kind[i], trace.name[i] = INFERENCE, trace._numbers[step[1]]
            trace._args.setdefault(i, {})["step"] = int(step[2])
    for track in {track for i, track in enumerate(trace.track) if places.cat(i) == "Trace"}:
        places.aside_track(track, str(places.keys[track][1]))
    lanes = {track: lane_of(places, track) for track in sorted(places.device_tracks)}
    for track, lane in lanes.items():
        places.lane(track, *lane)
    arrived = len(places.submissions("correlation"))
    for i in range(len(trace)):
        if trace.track[i] in lanes and trace.kind[i] != DEVICE:
            places.aside(i, "{} stream {} annotations".format(*lanes[trace.track[i]]))
    if jobs > arrived:
        places.note(f"{jobs - arrived} jobs have no launch in the trace: neither an arrow nor a "
                    "correlation says who submitted them")


def lane_of(places, track):
    """(device, stream)"""
    pid, tid = places.keys[track]
    name = str(places.said(track, "process_labels") or places.said(track, "process_name") or "")
    return name if re.search(r"\d", name) and not name.startswith("python") else f"GPU {pid}", tid
