# SPDX-License-Identifier: MIT
"""Recorded spans, read back while the program runs: npuprof_read()."""

import ctypes
from ctypes import (CFUNCTYPE, POINTER, c_bool, c_char_p, c_int64, c_size_t, c_uint16, c_uint32, c_uint64,
                    c_void_p)
from dataclasses import dataclass

from ..base.messages import Refused, meant
from .library import Argument, Value, check, library

KINDS = ("none", "span", "record", "warm_up", "inference", "operator", "instant", "counter", "counter",
         "counter", "memory", "flow_out", "flow_in", "async_begin", "async_end", "finished", "device")
SPANS = ("span", "record", "warm_up", "inference", "operator", "finished", "device")
NO_DRAIN = 1 << 31
HAS_TICKS, NO_TIME, HOST_STAMPS, SAMPLED, POINT, CUT, WARM_UP, ARGS_LOST = (1 << n for n in range(8))
UNKNOWN = 2**64 - 1
MEMBERS = {1: "i", 2: "u", 3: "d", 4: "u", 5: "s"}          # NPUPROF_ARG_*: the member of a value
COUNTERS = {7: "i", 8: "u", 9: "d"}                         # NPUPROF_KIND_COUNTER_*


class Cursor(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("busy", c_uint32), ("memory", c_void_p),
                ("reserved", c_uint64 * 6)]


class Result(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("reserved", c_uint32), ("spans", c_uint64), ("lost", c_uint64),
                ("open", c_uint64)]


class CSpan(ctypes.Structure):
    _fields_ = [("struct_size", c_uint32), ("kind", c_uint16), ("flags", c_uint16), ("id", c_uint64),
                ("parent", c_uint64), ("job", c_uint64), ("start_ns", c_int64), ("end_ns", c_int64),
                ("error_ns", c_uint64), ("start_ticks", c_uint64), ("end_ticks", c_uint64),
                ("epoch", c_uint32), ("device", c_uint32), ("engine", c_uint32), ("thread", c_uint32),
                ("native_id", c_uint32), ("name", c_char_p), ("category", c_char_p), ("track", c_char_p),
                ("value", Value), ("allocated_bytes", c_uint64), ("args", POINTER(Argument)),
                ("arg_count", c_size_t)]


@dataclass(frozen=True)
class Span:
    """A span or event. See npuprof_read_span in npuprof.h for each field. kind: one of KINDS. error_ns None:
    no bound is known. start_ticks and end_ticks are None where no device stamped it."""

    kind: str
    name: str
    category: str
    track: str
    id: int
    parent: int
    job: int
    start_ns: int
    end_ns: int
    error_ns: int | None
    start_ticks: int | None
    end_ticks: int | None
    epoch: int
    device: int
    engine: int
    thread: int
    native_id: int
    value: int | float
    allocated_bytes: int
    args: dict
    has_time: bool
    sampled: bool
    cut: bool
    warm_up: bool
    args_lost: bool


def text(data):
    return data.decode("utf-8", "replace")


def value_of(item):
    value = getattr(item.value, MEMBERS[item.type])
    return text(value) if item.type == 5 else bool(value) if item.type == 4 else value


def span_of(c):
    flags, ticks = c.flags, bool(c.flags & HAS_TICKS)
    return Span(KINDS[c.kind] if c.kind < len(KINDS) else f"kind {c.kind}", text(c.name), text(c.category),
                text(c.track), c.id, c.parent, c.job, c.start_ns, c.end_ns,
                None if c.error_ns == UNKNOWN else c.error_ns,
                c.start_ticks if ticks else None, c.end_ticks if ticks else None, c.epoch, c.device, c.engine,
                c.thread, c.native_id, getattr(c.value, COUNTERS.get(c.kind, "u")), c.allocated_bytes,
                {text(item.key): value_of(item) for item in c.args[:c.arg_count]},
                not flags & NO_TIME, bool(flags & SAMPLED), bool(flags & CUT), bool(flags & WARM_UP),
                bool(flags & ARGS_LOST))


class Reader:
    """A place in the trace: each read() gives what was completed since the last one, once.

    lost: spans and events, of all kinds, that this reader will never get, so far. open: spans that had begun
    and not ended. Also a context manager; close() gives its memory back.
    """

    _FUNCTION = CFUNCTYPE(c_bool, c_void_p, POINTER(CSpan))

    def __init__(self):
        library.load()
        self.cursor = Cursor(struct_size=ctypes.sizeof(Cursor))
        self.lost = self.open = 0

    def read(self, kinds=SPANS, drain=True):
        """The spans of these kinds, a list of Span; all others are passed over. kinds: words of KINDS, or
        one. drain=False leaves the devices' rings alone."""
        if self.cursor is None:
            raise Refused("read(): this reader is closed: npuprof.reader() makes another")
        kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
        for kind in kinds:
            if kind not in KINDS:
                raise Refused(f"read(): kind {kind!r}: unknown{meant(kind, dict.fromkeys(KINDS))}")
        mask = sum({1 << n for n, kind in enumerate(KINDS) if kind in kinds})
        spans, failed = [], []

        def take(_, span):
            try:
                spans.append(span_of(span.contents))
            except Exception as error:        # it cannot go through C: read() raises it
                failed.append(error)
            return not failed
        result = Result(struct_size=ctypes.sizeof(Result))
        code = library.read(ctypes.byref(self.cursor), mask | (0 if drain else NO_DRAIN),
                            self._FUNCTION(take), None, ctypes.byref(result))
        self.lost += result.lost
        self.open = result.open
        if failed:
            raise failed[0]
        check(code, "read")
        return spans

    def close(self):
        if self.cursor is not None:
            library.read_end(ctypes.byref(self.cursor))
        self.cursor = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __del__(self):
        if library.begin is not None and hasattr(self, "cursor"):
            self.close()


def reader():
    """A Reader that begins at the beginning of the trace. read() gives what ended since the last read(), a
    list of spans with name, category, track, start_ns, end_ns, error_ns, args and more, and lost counts what
    it will never get. read(kinds=("device",)) gives only these kinds: span, record, warm_up, inference,
    operator, finished, device, or also instant, counter, memory, flow_out, flow_in, async_begin, async_end.
    open: how many spans had not ended. close() gives its memory back; with does it, too.
    """
    return Reader()
