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
    trace = p.load()                                 # the spans as columns: see npuprof_load.py

The same functions are those of this module, for code that has no `p`: npuprof.scope("decode") does nothing while nothing is
recorded. record, scope, inference, operator and asynchronous also decorate functions. With NPUPROF_OUTPUT_PATH in the
environment the first of them begins to record, and the trace is written when the program ends: see npuprof.h.

Spans nest on the thread that opens them, so they are right for threads, but a span that is open across an await ends on the
wrong place of the stack: use asynchronous() there. There is one arena for the process, of 16 MiB; a profile that needs another
one says so: profile(arena_bytes=2**28) or profile(arena_path="t.npuprof"), which survives a kill.
"""

import contextlib
import ctypes
import functools
import itertools
import os
import pathlib
import sys
import tempfile
import threading
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64

from npuprof_common import Refused

SPAN, RECORD, WARM_UP, INFERENCE, OPERATOR = range(1, 6)         # NPUPROF_KIND_*
RUNTIME = b"Runtime"                                             # the category of labelled spans, as in C
RECORDING = ("NPUPROF_OUTPUT_PATH", "NPUPROF_ARENA_PATH")


class _Value(ctypes.Union):
    _fields_ = [("i", c_int64), ("u", c_uint64), ("d", c_double), ("s", c_char_p)]


class _Argument(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("type", c_uint32), ("value", _Value)]


class _Arguments(ctypes.Structure):
    _fields_ = [("items", POINTER(_Argument)), ("count", c_size_t)]


# name: (result, parameters). The first group is called with Python's lock held, because it takes less time than to let go of it.
QUICK = {
    "npuprof_begin": (c_uint32, (c_int, c_uint32, c_char_p, c_char_p, POINTER(_Argument), c_size_t)),
    "npuprof_end": (None, (c_uint32,)),
    "npuprof_instant": (None, (c_char_p, c_char_p, POINTER(_Argument), c_size_t)),
    "npuprof_counter_int": (None, (c_char_p, c_int64)),
    "npuprof_counter_real": (None, (c_char_p, c_double)),
    "npuprof_flow": (None, (c_bool, c_uint64)),
    "npuprof_memory": (None, (c_char_p, c_uint64, c_uint64, c_char_p)),
    "npuprof_memory_change": (None, (c_char_p, c_bool, c_uint64, c_char_p)),
    "npuprof_async_begin": (None, (c_char_p, c_char_p, c_uint64)),
    "npuprof_async_end": (None, (c_uint64,)),
    "npuprof_span": (None, (c_char_p, c_char_p, c_char_p, c_int64, c_int64, _Arguments)),
    "npuprof_thread_name": (None, (c_char_p,)),
    "npuprof_metadata": (None, (c_char_p, c_char_p)),
    "npuprof_now_ns": (c_int64, ()),
    "npuprof_level": (c_int, ()),
    "npuprof_result_string": (c_char_p, (c_int,)),
}
SLOW = {
    "npuprof_setup": (c_int, (c_size_t, c_char_p, c_char_p, c_char_p)),
    "npuprof_start": (None, (c_int,)),
    "npuprof_stop": (None, ()),
    "npuprof_pause": (None, ()),
    "npuprof_resume": (None, ()),
    "npuprof_clear": (None, ()),
    "npuprof_set_categories": (c_int, (c_char_p,)),
    "npuprof_dump": (c_int, (c_char_p,)),
    "npuprof_flush": (c_int, ()),
    "npuprof_stat": (c_char_p, (c_uint32, POINTER(c_uint64))),
}


class _Library:
    """libnpuprof.so, loaded when first needed."""

    def __init__(self):
        self.begin = None             # the hot path asks only for this
        self.lock = threading.Lock()
        self.asked = False            # whether the environment asks for a recording
        self.named = threading.local()

    def load(self):
        with self.lock:
            if self.begin is None:
                built = pathlib.Path(__file__).resolve().parent.parent / "build" / "libnpuprof.so"
                path = str(built) if built.exists() else "libnpuprof.so"
                try:
                    quick, slow = ctypes.PyDLL(path), ctypes.CDLL(path)
                    for library, functions in ((quick, QUICK), (slow, SLOW)):
                        for name, (result, parameters) in functions.items():
                            function = getattr(library, name)
                            function.restype, function.argtypes = result, parameters
                            setattr(self, name.removeprefix("npuprof_") + "_" * (name == "npuprof_begin"), function)
                except OSError:
                    raise Refused(f"{built}: not built: recording from Python needs it; "
                                  f"run `make tools` in {built.parent.parent}") from None
                except AttributeError as error:
                    raise Refused(f"{path}: of another version than this module ({error}); run `make tools` again") from None
                self.begin = self.begin_
        return self

    def ready(self):
        """True if the library is loaded, or the environment asks for it: then it is loaded now."""
        if self.begin is None and not self.asked:
            self.asked = True
            if any(os.environ.get(key) for key in RECORDING):
                try:
                    self.load()
                except Refused as refused:
                    # Why no exception: a program must not behave differently because it is asked to be recorded.
                    print(f"npuprof: nothing is recorded: {refused}", file=sys.stderr)
        return self.begin is not None

    def name_thread(self):
        """Gives a thread its Python name, once."""
        self.named.done = True
        thread = threading.current_thread()
        if thread is not threading.main_thread() and not isinstance(thread, threading._DummyThread):
            self.thread_name(_bytes(thread.name))


_library = _Library()
_async_ids = itertools.count(1 << 62)


def _bytes(text):
    data = str(text).encode("utf-8", "replace")
    return data.replace(b"\0", "\ufffd".encode()) if b"\0" in data else data


_name = functools.lru_cache(4096)(_bytes)      # names and categories come again and again


def _arguments(values):
    """A dict as (array of npuprof_arg or None, count)."""
    if not values:
        return None, 0
    items = (_Argument * len(values))()
    for item, (key, value) in zip(items, values.items()):
        item.key = _name(key)
        if isinstance(value, bool):
            item.type, item.value.u = 4, value
        elif isinstance(value, str):
            item.type, item.value.s = 5, _bytes(value)
        elif isinstance(value, float):
            item.type, item.value.d = 3, value
        elif hasattr(value, "__index__") and -2**63 <= value.__index__() < 2**64:
            number = value.__index__()
            item.type = 1 if number < 2**63 else 2
            item.value.u = number & 2**64 - 1
        elif hasattr(value, "__float__") and not hasattr(value, "__index__"):
            item.type, item.value.d = 3, float(value)
        else:
            item.type, item.value.s = 5, _bytes(value)
    return items, len(values)


def _check(result, what):
    if result:
        raise Refused(f"{what}: {_library.result_string(result).decode()}")


class _Span:
    """A span as a context, or as a decorator: then each call is one."""

    __slots__ = ("level", "kind", "category", "name", "values", "token")

    def __init__(self, level, kind, category, name, values):
        self.level, self.kind, self.category, self.name, self.values = level, kind, category, name, values

    def __enter__(self):
        self.token = 0
        if _library.begin is not None or _library.ready():
            if not hasattr(_library.named, "done"):
                _library.name_thread()
            if self.values:
                self.token = _library.begin(self.level, self.kind, self.category, self.name, *_arguments(self.values))
            else:
                self.token = _library.begin(self.level, self.kind, self.category, self.name, None, 0)
        return self

    def __exit__(self, *_):
        if self.token:
            _library.end(self.token)

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with _Span(self.level, self.kind, self.category, self.name, self.values):
                return function(*args, **kwargs)
        return recorded


class _Asynchronous:
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
        if _library.ready():
            self.number = next(_async_ids)
            _library.async_begin(self.category, self.name, self.number)
        return self

    def end(self):
        if self.number:
            _library.async_end(self.number)
            self.number = 0

    def __call__(self, function):
        @functools.wraps(function)
        def recorded(*args, **kwargs):
            with _Asynchronous(self.category, self.name):
                return function(*args, **kwargs)
        return recorded


def record(name, warm_up=False):
    """A labelled section that starts a trace id. A warm-up is left out of the reports."""
    return _Span(1, WARM_UP if warm_up else RECORD, RUNTIME, _name(name), None)


def scope(name, category="", /, *, level=1, **args):
    """A span with a category and arguments."""
    return _Span(level, SPAN, _name(category), _name(name), args)


def inference(name="Inference", /, **args):
    """One inference query."""
    return _Span(1, INFERENCE, RUNTIME, _name(name), args)


def operator(operator_index, name, /, **args):
    """A host ("external") operator."""
    return _Span(1, OPERATOR, RUNTIME, _name(name), {"operator_index": operator_index, **args})


def asynchronous(name, category=""):
    """A span with begin() and end(), or a context, that need not nest: jobs, tasks, awaits."""
    return _Asynchronous(_name(category), _name(name))


def finished(track, name, start_ns, end_ns, category="", /, **args):
    """A span that is over, with stamps of now_ns()'s clock, on the track of that name."""
    if _library.ready():
        _library.span(_bytes(track), _bytes(category), _bytes(name), start_ns, end_ns, _Arguments(*_arguments(args)))


def instant(name, category="", /, **args):
    """A moment."""
    if _library.ready():
        _library.instant(_bytes(category), _bytes(name), *_arguments(args))


def counter(name, value):
    """A value over time; an integer stays one."""
    if _library.ready():
        if hasattr(value, "__index__") and -2**63 <= value.__index__() < 2**63:
            _library.counter_int(_bytes(name), value.__index__())
        else:
            _library.counter_real(_bytes(name), float(value))


def memory(used_bytes, allocated_bytes, tag="", device=None):
    """The state of a memory pool: of a device by name, or of the host."""
    if _library.ready():
        _library.memory(None if device is None else _bytes(device), used_bytes, allocated_bytes, _bytes(tag))


def alloc(count, tag="", device=None):
    """Bytes taken from a memory pool: npuprof keeps the sum, also while nothing is recorded."""
    if _library.ready():
        _library.memory_change(None if device is None else _bytes(device), False, count, _bytes(tag))


def free(count, tag="", device=None):
    """Bytes given back to it."""
    if _library.ready():
        _library.memory_change(None if device is None else _bytes(device), True, count, _bytes(tag))


def flow_out(number):
    """The start of an arrow, in the span around it; flow_in() of the same number is its end."""
    if _library.ready():
        _library.flow(True, number & 2**64 - 1)


def flow_in(number):
    if _library.ready():
        _library.flow(False, number & 2**64 - 1)


def thread_name(name):
    """Names the calling thread. Without it a thread has the name that Python knows."""
    if _library.ready():
        _library.named.done = True
        _library.thread_name(_bytes(name))


def metadata(key, value):
    """A key and value for the trace's metadata."""
    if _library.ready():
        _library.metadata(_bytes(key), _bytes(value))


def pause():
    """Records nothing until resume(). The gap stays in the trace and is marked. May be called twice."""
    if _library.ready():
        _library.pause()


def resume():
    if _library.ready():
        _library.resume()


def now_ns():
    """The trace's clock: ns since the Unix epoch, monotonic."""
    return _library.load().now_ns()


class profile:
    """Records from its beginning to its end: see the head of this module.

    file         a path (.json, .csv or .npuprof), or a file object open for writing, in text or binary mode, which gets JSON
    level        1: kernels and user scopes; 2: runtime detail, too
    categories   "npu,operator": only these; "-runtime": all but this one
    arena_bytes, arena_path, when_full ("keep-oldest", "keep-newest", "stream" into `file`)
                 of the process's arena: they count at its first profile only
    """

    _running = None

    def __init__(self, file=None, *, level=1, categories=None, arena_bytes=None, arena_path=None, when_full=None):
        self.file = file if file is None or hasattr(file, "write") else os.fspath(file)
        if when_full == "stream" and not isinstance(self.file, (str, bytes, type(None))):
            raise Refused("a stream goes to a path, not to a file object")
        self.level, self.categories = level, categories
        self.arena = arena_bytes, None if arena_path is None else os.fspath(arena_path), when_full
        self.outer = False

    def __enter__(self):
        library = _library.load()
        if profile._running is not None:
            raise Refused("a profile is running: there is one at a time in a process")
        # Why not clear() then: the environment asked for a recording of everything.
        self.outer = library.level() >= 1
        self._set_up(library)
        if not self.outer:
            library.clear()
        if self.categories is not None:
            _check(library.set_categories(_bytes(self.categories)), f"categories {self.categories!r}")
        profile._running = self
        if not self.outer:
            library.start(self.level)
        return self

    def __exit__(self, *_):
        profile._running = None
        if not self.outer:
            _library.stop()
        if self.categories is not None:
            _library.set_categories(None)
        if self.file is not None and self.arena[2] != "stream":
            self.dump(self.file)
        elif self.file is not None:
            _check(_library.flush(), self.file)

    def _set_up(self, library):
        size, path, when_full = self.arena
        if self.arena == (None, None, None):
            return
        stream = _bytes(self.file) if when_full == "stream" and self.file else None
        what = "the arena (its settings count at the first profile of a process)"
        _check(library.setup(size or 0, None if path is None else os.fsencode(path),
                             None if when_full is None else _bytes(when_full), stream), what)

    def dump(self, file):
        """Writes what is recorded so far: to a path, .json, .csv or .npuprof, or as JSON to a file object."""
        if not hasattr(file, "write"):
            _check(_library.dump(os.fsencode(file)), file)
            return
        try:
            file.write("")
            form = {"mode": "r", "encoding": "utf-8", "newline": ""}
        except TypeError:                  # in binary mode
            form = {"mode": "rb"}
        with self._json() as path, open(path, **form) as written:
            while data := written.read(1 << 20):
                file.write(data)

    @contextlib.contextmanager
    def _json(self):
        """The path of a temporary file with what is recorded so far."""
        handle, path = tempfile.mkstemp(prefix="npuprof-", suffix=".json")
        os.close(handle)
        try:
            self.dump(path)
            yield path
        finally:
            os.unlink(path)

    def load(self):
        """What is recorded so far, as npuprof.load() gives it."""
        from npuprof_load import load
        with self._json() as path:
            return load(path)

    def report(self, *tables, file=None):
        """Prints tables of what is recorded so far, by their names in `npuprof.py report`, all without any; to stdout or a text file."""
        import npuprof_report
        unknown = [table for table in tables if table not in npuprof_report.NAMES]
        if unknown:
            raise Refused(f"no table {unknown[0]!r}; there are {', '.join(npuprof_report.NAMES)}")
        trace = self.load()
        for n, lines in enumerate(npuprof_report.tables(trace, tables) if tables else npuprof_report.overview(trace)):
            print(*([""] if n else []), *lines, sep="\n", file=file)

    def _printer(table):
        return lambda self, file=None: self.report(table, file=file)

    # The tables of npuprof_print_*() in C, to stdout or a text file.
    print_summary = _printer("summary")
    print_inferences = _printer("inferences")
    print_npu_executions = _printer("executions")
    print_npu_operators = _printer("operators")
    print_external_operators = _printer("external")
    print_memory = _printer("memory")
    del _printer

    def clear(self):
        """Forgets what is recorded so far."""
        _library.clear()

    def stats(self):
        """Counts of spans and events: {"recorded", "lost", "bytes_used", "bytes_total", "threads", and what each cause lost}."""
        counts, value = {}, c_uint64()
        for n in itertools.count():
            name = _library.stat(n, ctypes.byref(value))
            if name is None:
                return counts
            counts[name.decode()] = value.value

    for _function in (record, scope, inference, operator, asynchronous, finished, instant, counter, memory, alloc, free, flow_out,
                      flow_in, thread_name, metadata, pause, resume, now_ns):
        locals()[_function.__name__] = staticmethod(_function)
    del _function
