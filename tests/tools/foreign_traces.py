# SPDX-License-Identifier: MIT
"""Small traces in the layouts of other tools, made by our own lines; see npuprof/read/foreign/."""

import gzip
import json
import struct


def write(path, events, pack=False, **members):
    """A file of Chrome events: an object with those members, or an array without any."""
    text = json.dumps({**members, "traceEvents": events} if members else events)
    path.write_bytes(gzip.compress(text.encode()) if pack else text.encode())
    return path


def x(name, pid, tid, ts, dur, cat="", **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def about(what, pid, tid, name, key="name"):
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {key: name}}


# ---- PyTorch Kineto

def kineto(path, steps=3, clock=0):
    """Steps of two kernels on two streams of a GPU and a copy. clock: µs by which its clock is ahead."""
    events = [about("process_name", 0, 0, "python"), about("process_labels", 0, 0, "GPU 0", "labels"),
              x("PyTorch Profiler (0)", "Spans", "PyTorch Profiler", 0, 1000 * steps, "Trace")]
    for n in range(steps):
        at = 100 + 1000 * n
        events += [x(f"ProfilerStep#{n}", 77, 77, at, 800, "user_annotation"),
                   x("aten::conv", 77, 77, at + 10, 300, "cpu_op")]
        for k, (cat, name, stream, begin, length) in enumerate((
                ("kernel", "sgemm", 7, 60, 100), ("gpu_memcpy", "Memcpy HtoD", 7, 170, 40),
                ("kernel", "relu", 20, 90, 30))):
            number, begin = 10 * n + k + 1, at + begin + clock
            events += [x("cudaLaunchKernel", 77, 77, at + 20 + 10 * k, 8, "cuda_runtime", correlation=number),
                       x(name, 0, stream, begin, length, cat, correlation=number, device=0, stream=stream)]
            if k < 2:           # the third has only its correlation
                events += [{"ph": "s", "id": number, "pid": 77, "tid": 77, "ts": at + 20 + 10 * k,
                            "cat": "ac2g", "name": "ac2g"},
                           {"ph": "f", "id": number, "pid": 0, "tid": stream, "ts": begin, "cat": "ac2g",
                            "name": "ac2g", "bp": "e"}]
        events += [x("step", 0, 7, at + 60 + clock, 150, "gpu_user_annotation"),
                   x("cudaDeviceSynchronize", 77, 77, at + 400, 200, "cuda_runtime", correlation=10 * n + 9)]
    return write(path, events, schemaVersion=1, deviceProperties=[{"id": 0}], baseTimeNanoseconds=10**18)


# ---- ONNX Runtime

def onnx(path, provider="CPUExecutionProvider", kernels=False):
    events = [x("model_loading_uri", 5, 5, 1, 50, "Session"),
              x("session_initialization", 5, 5, 60, 90, "Session")]
    for n in range(4):
        at = 1000 * (n + 1)
        events += [x("conv1_kernel_time", 5, 5, at + 10, 300, "Node", op_name="Conv", node_index="0",
                     provider=provider),
                   x("soft_kernel_time", 5, 5, at + 320, 20, "Node", op_name="Softmax", node_index="1",
                     provider="CPUExecutionProvider"),
                   x("SequentialExecutor::Execute", 5, 5, at + 5, 350, "Session"),
                   x("model_run", 5, 5, at, 360, "Session")]
        if kernels:
            events.append(x("sgemm", 5, 5, at + 11, 200, "Kernel", stream="7", op_name="Conv"))
    return write(path, events)


# ---- XProf

def xprof(path, runs=3):
    """A TPU with modules, operators and a line of steps, and a host that launches through bind_id."""
    events = [about("process_name", 3, 0, "/device:TPU:0"), about("process_name", 7, 0, "/host:CPU"),
              about("thread_name", 7, 1, "python")]
    events += [about("thread_name", 3, tid, name) for tid, name in
               ((1, "Steps"), (2, "XLA Modules"), (3, "XLA Ops"), (4, "Framework Name Scope"))]
    for n in range(runs):
        at = 100 * n
        events += [x("Execute", 7, 1, at + 1, 5) | {"bind_id": n + 1, "flow_out": True},
                   x("0", 3, 1, at + 10, 60), x("scope", 3, 4, at + 10, 50),
                   x("jit_step(1)", 3, 2, at + 10, 50, run_id=str(7 + 9 * n))
                   | {"bind_id": n + 1, "flow_in": True},
                   x("fusion.1", 3, 3, at + 12, 20, hlo_category="fusion"), x("dot.2", 3, 3, at + 33, 25)]
    events += [{"ph": "C", "name": "HBM", "pid": 3, "entries": [[1, 5], [2, 6.5], [3, 7]]}]
    return write(path, events, pack=True, displayTimeUnit="ns", metadata={"highres-ticks": True})


# ---- IREE

def iree(path, ended=True, clocks=2, extra=()):
    """Two submissions of a queue, with an execution and two dispatches each. A tick is 10 ns, and tick 0 is
    at 1000 ns."""
    none, content = 2**32 - 1, b"application/vnd.iree.hal.profile."
    body = b""

    def chunk(kind, *records, record_type=2, dropped=0):
        nonlocal body
        payload, name = b"".join(records), content + kind
        size = 104 + len(name) + len(payload)
        body += struct.pack("<7Q5I4xQQIHH", size, len(payload), 1, 0, 0, 0, 0, 104, len(name), 0, 0, 0, 0,
                            dropped, 0, record_type, 0) + name + payload

    def sized(form, *fields, behind=b""):
        size = struct.calcsize(form) + len(behind)
        return struct.pack(form, size, *fields) + behind
    chunk(b"session", record_type=1)
    chunk(b"executable-functions", *(sized("<2IQ8I2Q", 0, 4, k, 0, 0, 0, 1, 1, 1, 4, 0, 0, behind=name)
                                     for k, name in enumerate((b"conv", b"gemm"))))
    chunk(b"clock-correlations", *(sized("<4I5Q2q", 9, 0, 0, k, 1000 * k, 0, 0, 0, 990 + 10000 * k,
                                         1010 + 10000 * k) for k in range(clocks)))
    for n in range(2):
        at = 100 + 300 * n
        chunk(b"queue-events", sized("<4IQq4Q6IQq", 3, 0, 0, n, 1500 + 3000 * n, n, 0, 0, 0, 0, 0, 0, 0, 0, 0,
                                     0, 0), dropped=n)
        chunk(b"queue-device-events", sized("<4I6Q4I2Q", 3, 0, 0, n, n, 0, 0, 0, 0, 0, 0, 2, 0, at, at + 90))
        chunk(b"dispatch-events", *(sized("<2I4Q8I2Q", 0, 9, n, 0, 4, k, k, 1, 1, 1, 1, 1, 1,
                                          at + 5 + 40 * k, at + 35 + 40 * k) for k in range(2)))
    form, ones = "<4I6Q4I6I2q2Qq2I", [1] * 6
    chunk(b"host-execution-events",
          sized(form, 3, 0, 0, 1, 0, 0, 4, 0, 0, 0, 1, none, none, *ones, 2000, 2600, 0, 0, 0, 1, 0),
          sized(form, 2, 1, 0, 1, 0, 0, 4, 0, 0, 0, 1, 0, 1, *ones, 2100, 2500, 0, 0, 0, 1, 0))
    chunk(b"memory-events", sized("<4IQq4Q4I9Q2I", 9, 0, 0, 1, 1200, 31, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2048,
                                  *[0] * 7))
    for kind in extra:
        chunk(kind)
    if ended:
        chunk(b"session", record_type=3)
    path.write_bytes(struct.pack("<4sHHIIQ", b"IRPF", 1, 6, 24, 0, 24 + len(body) if ended else 0) + body)
    return path


# ---- ExecuTorch: a FlatBuffer. A table is a dict {field: value}, a vector a list, a text bytes, a number
# (form, value).

def flat(value, out):
    """Appends a table, a vector or a text. Returns where it begins."""
    if isinstance(value, dict):
        fields = [(value[n][0] if isinstance(value[n], tuple) else "<I") if n in value else None
                  for n in range(max(value, default=-1) + 1)]
        offsets, at = [], 4
        for form in fields:
            at += form and -(-at // struct.calcsize(form)) * struct.calcsize(form) - at or 0
            offsets.append(at if form else 0)
            at += struct.calcsize(form) if form else 0
        out += bytes(-len(out) % 8) + struct.pack(f"<HH{len(offsets)}H", 4 + 2 * len(offsets), at, *offsets)
        table = len(out) - 4 - 2 * len(offsets)
        out += bytes(-len(out) % 8)
        begin = len(out)
        out += struct.pack("<i", begin - table) + bytes(at - 4)
        for n, offset in enumerate(offsets):
            if offset and isinstance(value[n], tuple):
                struct.pack_into(value[n][0], out, begin + offset, value[n][1])
            elif offset:
                struct.pack_into("<I", out, begin + offset, flat(value[n], out) - begin - offset)
        return begin
    out += bytes(-len(out) % 4)
    begin = len(out)
    out += struct.pack("<I", len(value))
    if isinstance(value, bytes):
        out += value + b"\0"
        return begin
    out += bytes(4 * len(value))
    for n, item in enumerate(value):
        place = begin + 4 + 4 * n
        struct.pack_into("<I", out, place, flat(item, out) - place)
    return begin


def etdump(path, sized=True):
    def event(name, start, end, instruction=-1, delegate=None):
        fields = {0: name, 2: ("<i", instruction), 6: ("<Q", start), 7: ("<Q", end)}
        return {0: fields | ({4: delegate} if delegate else {})}
    runs = [{0: b"default", 3: [event(b"Method::execute", 1000 * n, 1000 * n + 900),
                                event(b"OPERATOR_CALL", 1000 * n + 10, 1000 * n + 410, 0),
                                event(b"native_call_add.out", 1000 * n + 20, 1000 * n + 400, 0),
                                event(b"DELEGATE_CALL", 1000 * n + 420, 1000 * n + 880, 1),
                                event(b"conv", 5, 77, 1, b"delegate conv"), {1: {1: ("<Q", 64)}}]}
            for n in (1, 2)]
    out = bytearray(8)
    out[4:8] = b"ED00"
    struct.pack_into("<I", out, 0, flat({0: ("<I", 1), 1: runs}, out))
    path.write_bytes((struct.pack("<I", len(out)) if sized else b"") + out)
    return path
