# SPDX-License-Identifier: MIT
"""The C library of the loops, and its reader of whole blocks of lines."""

import ctypes
import functools
import inspect
import pathlib
import zlib
from array import array

from ..base.built import BUILD
from . import kernels, kernels_inside

KERNELS = kernels, kernels_inside          # of which to_c.py makes C


class Block(ctypes.Structure):
    """Where C puts the rows of one block of lines; `block` in npuprof_columns.c. The pointers are columns."""
    _fields_ = [("start", ctypes.c_void_p), ("dur", ctypes.c_void_p), ("index", ctypes.c_void_p * 5),
                *((name, ctypes.c_void_p) for name in
                  "label ids kind flags given given_ids others trace span parent".split()),
                *((name, ctypes.c_uint32) for name in "given_count others_count indexes rich asked".split())]


def form():
    """The version of the interface, of which the C library must be: a number of what decides it."""
    files = *(module.__file__ for module in KERNELS), __file__
    return zlib.crc32(b"".join(pathlib.Path(file).read_bytes() for file in files))


@functools.cache
def library():
    """The C library; None if it is not built or has another interface."""
    path = BUILD / "libnpuprof-columns.so"
    if not path.exists():
        return None
    try:
        lib = ctypes.CDLL(str(path))
        lib.columns_open.restype = lib.columns_text.restype = ctypes.c_void_p
        lib.columns_open.argtypes = [ctypes.c_size_t]
        for module in KERNELS:
            for name, function in inspect.getmembers(module, inspect.isfunction):
                if function.__module__ != module.__name__ or function in kernels.IN_C:
                    continue
                getattr(lib, f"columns_{name}").restype = ctypes.c_int64
        lib.columns_close.argtypes = [ctypes.c_void_p]
        lib.columns_text.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32,
                                     ctypes.POINTER(ctypes.c_size_t)]
        for function in (lib.columns_json, lib.columns_csv):
            function.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Block)]
        handle = lib.columns_open(form())
        if not handle:
            return None
        lib.columns_close(handle)
    except (OSError, AttributeError):
        return None
    return lib


def at(column):
    """The address of an array or bytearray, for C; NULL for None."""
    if column is None:
        return None
    if isinstance(column, bytearray):
        if not column:
            return ctypes.c_void_p(None)
        return ctypes.c_void_p(ctypes.addressof((ctypes.c_char * len(column)).from_buffer(column)))
    return ctypes.c_void_p(column.buffer_info()[0])


def call(kernel, *arguments):
    """Runs a function of the kernels: its C if the library is there, where whole numbers go as 64 bits and
    columns by address. A function that only C has goes by its name."""
    lib = library()
    if not lib and callable(kernel):
        return kernel(*arguments)
    function = getattr(lib, f"columns_{getattr(kernel, '__name__', kernel)}")
    return function(*(ctypes.c_int64(a) if type(a) is int else at(a) for a in arguments))


def zeros(kind, count):
    return array(kind, [0]) * count


class Reader:
    """Reads blocks of whole lines of npuprof's own JSON or CSV in C. `room`: lines that its columns can
    hold."""

    def __init__(self):
        self.lib, self.block, self.room = library(), Block(), 0
        self.handle = self.lib.columns_open(form())
        self.columns = {}

    def __del__(self):
        self.lib.columns_close(self.handle)

    def read(self, form, data, lines):
        """Reads a block; form is "json" or "csv". Returns the number of spans, whose columns column() then
        has; -1: some line has another form."""
        if lines > self.room:
            self.room = lines + lines // 4
            sizes = {"start": 8, "dur": 8, "label": 4, "ids": 4, "kind": 1, "flags": 1, "given": 4,
                     "given_ids": 24, "others": 16, **{k: 8 for k in range(5)}}
            if form == "csv":
                sizes |= {"trace": 16, "span": 8, "parent": 8}
            self.columns = {name: bytearray(size * self.room) for name, size in sizes.items()}
            for name, column in self.columns.items():
                if isinstance(name, int):
                    self.block.index[name] = at(column).value
                else:
                    setattr(self.block, name, at(column).value)
        return getattr(self.lib, f"columns_{form}")(self.handle, data, len(data), self.block)

    def column(self, name, size):
        return memoryview(self.columns[name])[:size]

    def into(self, trace, count, names, cats, tracks, start=None):
        """Appends the block's columns to those of a trace. names, cats, tracks: the trace's numbers of C's
        texts."""
        (trace.start if start is None else start).frombytes(self.column("start", 8 * count))
        trace.dur.frombytes(self.column("dur", 8 * count))
        for column, key, table in ((trace.name, "label", names), (trace.cat, "label", cats),
                                   (trace.track, "ids", tracks)):
            out = zeros("I", count)
            call("gather", count, self.columns[key], table, out)
            column.extend(out)
        trace.kind += self.column("kind", count)
        trace.flags += self.column("flags", count)

    def texts(self, which, known):
        """The texts that C has numbered, from number `known` on. which: 0 for labels, 1 for ids."""
        length = ctypes.c_size_t()
        while address := self.lib.columns_text(self.handle, which, known, length):
            yield ctypes.string_at(address, length.value)
            known += 1
