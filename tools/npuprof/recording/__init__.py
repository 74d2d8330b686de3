# SPDX-License-Identifier: MIT
"""Records from Python, through build/libnpuprof.so (`make tools`).

    with npuprof.profile(file="t.json") as p:        # .json, .csv or .npuprof, or a file object, which gets JSON
        with p.record("warm up", warm_up=True):      # a labelled section with a trace id; warm-up is left out of the reports
            model(x)
        for x in batch:
            with p.inference():                      # a row of the summary
                with p.operator(0, "Quantize"):      # a host operator
                    x = quantize(x)
                with p.scope("decode", "cpu", rows=len(x)):    # name, category, arguments
                    ...
        p.pause(); p.resume(); p.counter("queue", 3); p.instant("cache miss"); p.metadata("model", "digits")
    p.print_summary(); p.print_npu_operators()       # the tables of C; p.report("names") prints any of `npuprof.py report`
    trace = p.load()                                 # the spans as columns: see read/

The same functions are those of this module, for code that has no `p`: npuprof.scope("decode") does nothing while nothing is
recorded. record, scope, inference, operator and asynchronous also decorate functions. With NPUPROF_OUTPUT_PATH in the
environment the first of them begins to record, and the trace is written when the program ends: see npuprof.h.

Spans nest on the thread that opens them, so they are right for threads, but a span that is open across an await ends on the
wrong place of the stack: use asynchronous() there. There is one arena for the process, of 16 MiB; a profile that needs another
one says so: profile(arena_bytes=2**28) or profile(arena_path="t.npuprof"), which survives a kill.
"""

from .marks import (alloc, asynchronous, counter, finished, flow_in, flow_out, free, inference, instant, memory,
                    metadata, now_ns, operator, pause, record, resume, scope, thread_name)
from .profile import profile

__all__ = ["alloc", "asynchronous", "counter", "finished", "flow_in", "flow_out", "free", "inference", "instant", "memory",
           "metadata", "now_ns", "operator", "pause", "profile", "record", "resume", "scope", "thread_name"]
