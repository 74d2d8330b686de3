# SPDX-License-Identifier: MIT
"""The functions that record: spans, instants, counters, memory, arrows. They do nothing while nothing is
recorded."""

import itertools

from . import calls
from .library import Arguments, arguments_of, encoded, library, name_of
from .span import new_span

SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR = range(1, 6)         # NPUPROF_KIND_*
RUNTIME = "Runtime"                                             # the category of labelled spans, as in C
async_ids = itertools.count(1 << 62)


class Asynchronous:
    """A span that may end on another thread, or after an await."""

    __slots__ = ("category", "name", "number")

    def __init__(self, category, name):
        self.category, self.name = category, name

    def __enter__(self):
        return self.begin()

    def __exit__(self, *_):
        self.end()

    def begin(self):
        self.number = 0
        if library.ready():
            self.number = next(async_ids)
            library.async_begin(self.category, self.name, self.number)
        return self

    def end(self):
        if self.number:
            library.async_end(self.number)
            self.number = 0

    def __call__(self, function):
        return calls.recorded(function, lambda: Asynchronous(self.category, self.name))


def record(name, warm_up=False):
    """A labelled section that starts a trace id. Reports leave a warm-up out."""
    return new_span(1, WARM_UP if warm_up else RECORD, RUNTIME, name, {})


def scope(name, category="", /, *, level=1, **args):
    """A span with a category and arguments."""
    return new_span(level, SPAN, category, name, args)


def inference(name="Inference", /, **args):
    """One inference query."""
    return new_span(1, INFERENCE, RUNTIME, name, args)


def operator(operator_index, name, /, **args):
    """A host ("external") operator."""
    return new_span(1, OPERATOR, RUNTIME, name, {"operator_index": operator_index, **args})


def asynchronous(name, category=""):
    """A span that need not nest, for jobs, tasks, awaits. It is a context manager, or has begin() and
    end()."""
    return Asynchronous(name_of(category), name_of(name))


def finished(track, name, start_ns, end_ns, category="", /, **args):
    """A span that is over, on the track of that name. Its times are those of now_ns()."""
    if library.ready():
        library.span(encoded(track), encoded(category), encoded(name), start_ns, end_ns,
                     Arguments(*arguments_of(args)))


def instant(name, category="", /, **args):
    """Marks a moment."""
    if library.ready():
        library.instant(encoded(category), encoded(name), Arguments(*arguments_of(args)))


def counter(name, value):
    """A value over time. An integer stays an integer."""
    if library.ready():
        if hasattr(value, "__index__") and -2**63 <= value.__index__() < 2**63:
            library.counter_int(encoded(name), value.__index__())
        else:
            library.counter_real(encoded(name), float(value))


def memory(used_bytes, allocated_bytes, tag="", device=None):
    """The state of a memory pool: of the device of that name, or of the host."""
    if library.ready():
        library.memory(None if device is None else encoded(device), used_bytes, allocated_bytes, encoded(tag))


def alloc(count, tag="", device=None):
    """Bytes taken from a memory pool. npuprof keeps the sum, also while nothing is recorded."""
    if library.ready():
        library.memory_change(None if device is None else encoded(device), False, count, encoded(tag))


def free(count, tag="", device=None):
    """Bytes given back to a memory pool."""
    if library.ready():
        library.memory_change(None if device is None else encoded(device), True, count, encoded(tag))


def flow_out(number):
    """The start of an arrow, in the innermost open span. flow_in() with the same number is its end."""
    if library.ready():
        library.flow(True, number & 2**64 - 1)


def flow_in(number):
    if library.ready():
        library.flow(False, number & 2**64 - 1)


def thread_name(name):
    """Names the calling thread. Otherwise it has its Python name."""
    if library.ready():
        library.named.done = True
        library.thread_name(encoded(name))


def metadata(key, value):
    """A key and value for the trace's metadata."""
    if library.ready():
        library.metadata(encoded(key), encoded(value))


def pause():
    """Records nothing until resume(). The gap is marked in the trace. Calling it again does nothing."""
    if library.ready():
        library.pause()


def resume():
    if library.ready():
        library.resume()


def now_ns():
    """The trace's clock: ns since the Unix epoch, monotonic."""
    return library.load().now_ns()
