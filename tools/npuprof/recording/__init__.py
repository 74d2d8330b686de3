# SPDX-License-Identifier: MIT
"""Records from Python, through build/libnpuprof.so (`make tools`).

    with npuprof.profile(file="t.json") as p:        # .json, .csv, .npuprof, or a file object (it gets JSON)
        with p.record("warm up", warm_up=True):      # a labelled section; reports leave warm-up out
            model(x)
        for x in batch:
            with p.inference():                      # a row of the summary
                with p.operator(0, "Quantize"):      # a host operator
                    x = quantize(x)
                with p.scope("decode", "cpu", rows=len(x)):    # name, category, arguments
                    ...
        p.pause(); p.resume(); p.counter("queue", 3); p.instant("cache miss"); p.metadata("model", "digits")
    p.print_summary(); p.print_npu_operators()       # the tables of C
    p.report("names")                                # any table of `npuprof report`
    trace = p.load()                                 # the spans in columns: see read/__init__.py

    with npuprof.reader() as r:                      # while it runs: spans that ended since the last read,
        for span in r.read():                        # each once, or counted in r.lost
            print(span.name, span.start_ns, span.end_ns, span.args)

Code that has no `p` calls the same functions of the module: npuprof.scope("decode") does nothing while
nothing is recorded. record, scope, inference, operator and asynchronous also decorate functions of
all kinds: see calls.py.

Without a `with` block: start(level), stop(), clear(), dump(path), and get() as an object in the form of AWS
RAF. npuprof.seeds has the names of older profilers.

If NPUPROF_OUTPUT_PATH is set in the environment, the first call begins to record, and the trace is written
when the program ends; npuprof.h describes that.

Spans nest on the thread that opens them. One that is opened in a coroutine or a generator may be suspended.
It has a track of its task, and states what opened it: see tasks.py and trace.callers. It is recorded when it
ends; if the process is killed before, it is not there. An asynchronous() one is, from its beginning.

    with npuprof.scope("decode") as s:               # arguments that become known inside
        s.set(rows=len(decoded))

A decorated `async def` is recorded until it ends, a decorated generator once a step.

A process has one arena, of 16 MiB. For another one: profile(arena_bytes=2**28), or
profile(arena_path="t.npuprof"), which survives a kill.
"""

from .marks import (alloc, asynchronous, counter, finished, flow_in, flow_out, free, inference, instant,
                    memory, metadata, now_ns, operator, pause, record, resume, scope, thread_name)
from .profile import RecordFormat, profile
from .reading import reader
from .session import clear, dump, get, start, stop

__all__ = ["RecordFormat", "alloc", "asynchronous", "clear", "counter", "dump", "finished", "flow_in",
           "flow_out", "free", "get", "inference", "instant", "memory", "metadata", "now_ns", "operator",
           "pause", "profile", "reader", "record", "resume", "scope", "start", "stop", "thread_name"]
