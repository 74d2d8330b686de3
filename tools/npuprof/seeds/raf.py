# SPDX-License-Identifier: MIT
"""The profilers of AWS RAF, by its names: raf.utils.profiler, raf.utils.memory_profiler, raf.Device and
raf._ffi.op_profiler."""

import time
from types import SimpleNamespace

from ..base.messages import Refused
from ..recording import session

MEGABYTE = 1 << 20


class Number(float):
    """A number that RAF wraps: `.value` is its own."""

    value = property(float)


class Device:
    """A device by the name of its memory pool: "cuda", "npu0"; "cpu" and "host" are the host."""

    def __init__(self, name, wait=None):
        self.name, self.wait = str(name), wait

    def __str__(self):
        return self.name


def get_duration(data, event, category=None):
    """Milliseconds of the one event of that name."""
    found = [e for e in data["traceEvents"] if e["name"] == event and category in (None, e["cat"])]
    begins, ends = ([e["ts"] for e in found if e["ph"] == ph] for ph in "BE")
    assert len(begins) <= 1, f"{event} is there {len(begins)} times"
    if not begins or not ends:
        raise ValueError(f"{event} has no begin or no end")
    return (ends[0] - begins[0]) / 1000


def _pool(device):
    name = str(device)
    wanted = ("host", "") if name in ("cpu", "host") else (name,)
    return [record for record in session.load().memory if (record.device or "") in wanted]


def get_max_memory_info(device):
    """max_used and max_allocated in MB, max_trace_idx of the most used, num_gc: how often less was
    allocated than before."""
    records = _pool(device)
    if not records:
        return {"max_used": Number(0), "max_allocated": Number(0), "max_trace_idx": Number(-1),
                "num_gc": Number(0)}
    most = max(range(len(records)), key=lambda i: (records[i].used, -i))
    drops = sum(b.allocated < a.allocated for a, b in zip(records, records[1:]))
    return {"max_used": Number(records[most].used / MEGABYTE),
            "max_allocated": Number(max(record.allocated for record in records) / MEGABYTE),
            "max_trace_idx": Number(most), "num_gc": Number(drops)}


def get_memory_trace(device):
    """A text with a line for each record, in MB; "" for a device without one."""
    def line(*cells):
        return "\t".join(str(cell).ljust(width) for cell, width in zip(cells, (6, 80, 15, 15)))
    records = _pool(device)
    if not records:
        return ""
    rows = [line(i, record.tag, f"{record.used / MEGABYTE:.6g}", f"{record.allocated / MEGABYTE:.6g}")
            for i, record in enumerate(records)]
    return "\n".join(["Unit: MB", line("#Trace", "#Tag", "used", "alloc"), *rows]) + "\n"


_cache = {}


def Profile(expr, device=None, warmup=10, exec_number=10, repeat=1):
    """Calls expr(). latency: for each repeat the mean of a call, in us; workspace_size: that of
    expr.workspace_size, in bytes, or 0."""
    if not callable(expr) or exec_number < 1 or repeat < 1:
        raise Refused("Profile(expr, device, warmup, exec_number, repeat): expr is a function without "
                      "arguments")
    wait = getattr(device, "wait", None) or (lambda: None)
    key = expr, str(device), warmup, exec_number, repeat
    if key not in _cache:
        for _ in range(warmup):
            expr()
        latency = []
        for _ in range(repeat):
            wait()
            begin = time.perf_counter_ns()
            for _ in range(exec_number):
                expr()
            wait()
            latency.append(Number((time.perf_counter_ns() - begin) / exec_number / 1000))
        _cache[key] = latency
    return {"latency": list(_cache[key]), "workspace_size": Number(getattr(expr, "workspace_size", 0))}


def ResetCache(device=None):
    for key in [key for key in _cache if device is None or key[1] == str(device)]:
        del _cache[key]


def GetCacheSize(device=None):
    return sum(device is None or key[1] == str(device) for key in _cache)




utils = SimpleNamespace(
    profiler=SimpleNamespace(start=session.start, stop=session.stop, get=session.get, clear=session.clear,
                             dump=session.dump, get_duration=get_duration),
    memory_profiler=SimpleNamespace(start=session.start, stop=session.stop, reset=session.clear,
                                    get_max_memory_info=get_max_memory_info,
                                    get_memory_trace=get_memory_trace))
_ffi = SimpleNamespace(op_profiler=SimpleNamespace(Profile=Profile, ResetCache=ResetCache,
                                                   GetCacheSize=GetCacheSize))
