# SPDX-License-Identifier: MIT
"""npuprof in Python. With tools/ in sys.path, `import npuprof` finds this.

load(path) reads a trace: see read/__init__.py. The other functions record one: see recording/__init__.py.
"""

from .base.messages import Refused
from .read import load
from .recording import (RecordFormat, alloc, asynchronous, clear, counter, dump, finished, flow_in,
                        flow_out, free, get, inference, instant, memory, metadata, now_ns, operator,
                        pause, profile, reader, record, resume, scope, start, stop, thread_name)

__all__ = ["RecordFormat", "Refused", "alloc", "asynchronous", "clear", "counter", "dump", "finished",
           "flow_in", "flow_out", "free", "get", "inference", "instant", "load", "memory", "metadata",
           "now_ns", "operator", "pause", "profile", "reader", "record", "resume", "scope", "start",
           "stop", "thread_name"]
