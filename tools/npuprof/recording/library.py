# SPDX-License-Identifier: MIT
"""libnpuprof.so: its functions, and Python values in their form."""

import ctypes
import functools
import os
import sys
import threading
from ctypes import POINTER, c_bool, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p

from ..base.built import BUILD, remedy
from ..base.messages import Refused
from . import native


class Value(ctypes.Union):
    _fields_ = [("i", c_int64), ("u", c_uint64), ("d", c_double), ("s", c_char_p)]


class Argument(ctypes.Structure):
    _fields_ = [("key", c_char_p), ("type", c_uint32), ("value", Value)]


class Arguments(ctypes.Structure):
    _fields_ = [("items", POINTER(Argument)), ("count", c_size_t)]


# Each of these asks for a recording without a change of the program.
RECORDING = ("NPUPROF_OUTPUT_PATH", "NPUPROF_ARENA_PATH")
# name: (result, parameters). QUICK functions are called with Python's lock held. Why: releasing it takes
# longer than the call.
QUICK = {
    "npuprof_begin": (c_uint32, (c_int, c_uint32, c_char_p, c_char_p, POINTER(Argument), c_size_t)),
    "npuprof_end": (None, (c_uint32,)),
    "npuprof_add_args": (None, (POINTER(Argument), c_size_t)),
    "npuprof_instant": (None, (c_char_p, c_char_p, Arguments)),
    "npuprof_counter_int": (None, (c_char_p, c_int64)),
    "npuprof_counter_real": (None, (c_char_p, c_double)),
    "npuprof_flow": (None, (c_bool, c_uint64)),
    "npuprof_memory": (None, (c_char_p, c_uint64, c_uint64, c_char_p)),
    "npuprof_memory_change": (None, (c_char_p, c_bool, c_uint64, c_char_p)),
    "npuprof_async_begin": (None, (c_char_p, c_char_p, c_uint64)),
    "npuprof_async_end": (None, (c_uint64,)),
    "npuprof_span": (None, (c_char_p, c_char_p, c_char_p, c_int64, c_int64, Arguments)),
    "npuprof_thread_name": (None, (c_char_p,)),
    "npuprof_metadata": (c_int, (c_char_p, c_char_p)),
    "npuprof_now_ns": (c_int64, ()),
    "npuprof_level": (c_int, ()),
    "npuprof_result_string": (c_char_p, (c_int,)),
}
SLOW = {
    "npuprof_setup": (c_int, (c_size_t, c_char_p, c_char_p, c_char_p)),
    "npuprof_start": (c_int, (c_int,)),
    "npuprof_stop": (c_int, ()),
    "npuprof_pause": (c_int, ()),
    "npuprof_resume": (c_int, ()),
    "npuprof_clear": (c_int, ()),
    "npuprof_set_categories": (c_int, (c_char_p,)),
    "npuprof_dump": (c_int, (c_char_p,)),
    "npuprof_flush": (c_int, ()),
    "npuprof_read": (c_int, (c_void_p, c_uint32, c_void_p, c_void_p, c_void_p)),
    "npuprof_read_end": (None, (c_void_p,)),
    "npuprof_stat": (c_char_p, (c_uint32, POINTER(c_uint64))),
}


class Library:
    """libnpuprof.so, loaded when first needed."""

    def __init__(self):
        self.begin = None             # set when the library is loaded; the hot path looks only here
        self.lock = threading.Lock()
        self.asked = False            # the environment was looked at
        self.named = threading.local()  # .done is set on threads that have a name in the trace

    def load(self):
        with self.lock:
            if self.begin is None:
                self.bind()
        return self

    def bind(self):
        """Makes each function of the library an attribute. Why `begin` last: it says that all are there."""
        built = BUILD / "libnpuprof.so"
        path = str(built) if built.exists() else "libnpuprof.so"
        try:
            functions = {}
            for library, group in ((ctypes.PyDLL(path), QUICK), (ctypes.CDLL(path), SLOW)):
                for name, (result, parameters) in group.items():
                    function = functions[name.removeprefix("npuprof_")] = getattr(library, name)
                    function.restype, function.argtypes = result, parameters
        except OSError:
            raise Refused(f"{built}: not built: recording from Python needs it; {remedy()}") from None
        except AttributeError as error:
            raise Refused(f"{path}: of another version than this module ({error}); {remedy()}") from None
        begin = functions.pop("begin")
        vars(self).update(functions)
        if native.module:
            native.module.bind(*(ctypes.cast(function, c_void_p).value for function in
                                 (begin, self.end, self.add_args, self.level)))
        self.begin = begin

    def ready(self):
        """True if the library is loaded. Loads it if the environment asks for a recording."""
        if self.begin is None and not self.asked:
            self.asked = True
            if any(os.environ.get(key) for key in RECORDING):
                try:
                    self.load()
                except Refused as refused:
                    # Why no exception: a program must not behave differently because it is asked to be
                    # recorded.
                    print(f"npuprof: nothing is recorded: {refused}", file=sys.stderr)
        return self.begin is not None

    def name_thread(self):
        """Gives the calling thread its Python name in the trace."""
        if hasattr(self.named, "done"):
            return
        self.named.done = True
        thread = threading.current_thread()
        if thread is not threading.main_thread() and not isinstance(thread, threading._DummyThread):
            self.thread_name(encoded(thread.name))


library = Library()


def encoded(text):
    """The text in UTF-8, for C: a zero byte becomes the replacement character."""
    data = str(text).encode("utf-8", "replace")
    return data.replace(b"\0", "\ufffd".encode()) if b"\0" in data else data


# For names and categories. Why cached: they come again and again.
name_of = functools.lru_cache(4096)(encoded)


def plain(value):
    """The value as a bool, an int of 64 bits, a float or a str."""
    if isinstance(value, (bool, str)):
        return bool(value) if isinstance(value, bool) else str(value)
    try:
        if hasattr(value, "__index__"):
            number = value.__index__()
            return int(number) if -2**63 <= number < 2**64 else str(value)
        return float(value) if hasattr(value, "__float__") else str(value)
    except Exception:                  # Why: the span is recorded, whatever its arguments do
        return f"<{type(value).__name__}>"


def arguments_of(values):
    """A dict of arguments as (array of npuprof_arg or None, its length)."""
    if not values:
        return None, 0
    items = (Argument * len(values))()
    for item, (key, value) in zip(items, values.items()):
        item.key, value = name_of(key), plain(value)
        if isinstance(value, bool):
            item.type, item.value.u = 4, value
        elif isinstance(value, int):
            item.type, item.value.u = 1 if value < 2**63 else 2, value & 2**64 - 1
        elif isinstance(value, float):
            item.type, item.value.d = 3, value
        else:
            item.type, item.value.s = 5, encoded(value)
    return items, len(values)


def check(result, what):
    """Refuses what the library does not accept; `what` begins the sentence."""
    if result:
        raise Refused(f"{what}: {library.result_string(result).decode()}")
