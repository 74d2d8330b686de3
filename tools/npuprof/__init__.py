# SPDX-License-Identifier: MIT
"""npuprof in Python, with tools/ in sys.path: load(path) reads a trace (see read/), the rest records one (see recording/)."""

from .base.messages import Refused
from .read import load
from .recording import (alloc, asynchronous, counter, finished, flow_in, flow_out, free, inference, instant, memory,
                        metadata, now_ns, operator, pause, profile, record, resume, scope, thread_name)

__all__ = ["Refused", "alloc", "asynchronous", "counter", "finished", "flow_in", "flow_out", "free", "inference", "instant",
           "load", "memory", "metadata", "now_ns", "operator", "pause", "profile", "record", "resume", "scope", "thread_name"]
