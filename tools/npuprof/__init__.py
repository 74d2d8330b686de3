# SPDX-License-Identifier: MIT
"""npuprof in Python. With tools/ in sys.path, `import npuprof` finds this.

load(path) reads a trace: see read/__init__.py. The other functions record one: see recording/__init__.py.
"""

from .base.messages import Refused
from .insight import Spans, Tables, Verdict
from .read import load
from .read.trace import Trace, Track
from .recording import (RecordFormat, alloc, asynchronous, clear, counter, dump, finished, flow_in,
                        flow_out, free, get, inference, instant, memory, metadata, now_ns, operator,
                        pause, profile, reader, record, resume, scope, start, stop, thread_name)
from .recording.reading import Reader, Span
from .recording.span import Scope
from .tables.table import Table

__all__ = ["RecordFormat", "Reader", "Refused", "Scope", "Span", "Spans", "Table", "Tables", "Trace",
           "Track", "Verdict", "alloc", "asynchronous", "clear", "counter", "dump", "finished", "flow_in",
           "flow_out", "free", "get", "inference", "instant", "load", "memory", "metadata", "now_ns",
           "operator", "pause", "profile", "reader", "record", "resume", "scope", "start", "stop",
           "thread_name"]
