# SPDX-License-Identifier: MIT
"""profile: records what happens in a `with` block, and prints tables of it."""

import contextlib
import ctypes
import enum
import itertools
import os
import tempfile
from ctypes import c_uint64

from ..base.messages import Refused
from ..read import load
from .library import check, encoded, library
from .marks import (alloc, asynchronous, counter, finished, flow_in, flow_out, free, inference, instant,
                    memory, metadata, now_ns, operator, pause, record, resume, scope, thread_name)


class RecordFormat(enum.Enum):
    """What a profile is for: a file for viewers, or a data frame. Both are there with either."""

    ChromeTrace = "ChromeTrace"
    PandasDataFrame = "PandasDataFrame"


class profile:
    """Records from the beginning of a `with` block to its end: see __init__.py for an example.

    file         a path (.json, .csv or .npuprof), or a file object open for writing, which gets JSON
    level        1: kernels and user scopes; 2: runtime detail, too
    categories   "npu,operator": only these; "-runtime": all except this one
    arena_bytes, arena_path, when_full ("keep-oldest", "keep-newest", "stream" into `file`)
                 settings of the process's arena; only those of its first profile count
    format       a RecordFormat or its name, for programs that say which
    """

    _running = None                   # (process, outer) of the one that runs; a child of fork() runs none
    _one_id_an_inference = False      # else a record's inferences have the record's trace id

    def __init__(self, file=None, *, level=1, categories=None, arena_bytes=None, arena_path=None,
                 when_full=None, format=RecordFormat.ChromeTrace):
        try:
            self.format = RecordFormat(getattr(format, "value", format))
        except ValueError:
            raise Refused(f"format {format!r}: it is "
                          + " or ".join(f"RecordFormat.{known.name}" for known in RecordFormat)) from None
        self.file = file if file is None or hasattr(file, "write") else os.fspath(file)
        if when_full == "stream" and not isinstance(self.file, (str, bytes, type(None))):
            raise Refused("a stream goes to a path, not to a file object")
        self.level, self.categories = level, categories
        self.arena = arena_bytes, None if arena_path is None else os.fspath(arena_path), when_full
        self.outer = False

    def __enter__(self):
        library.load()
        pid, outer = profile._running or (None, True)
        if pid == os.getpid():
            raise Refused("a profile is running: there is one at a time in a process")
        # True: the environment asked for a recording of everything, which this profile must not clear or
        # stop.
        self.outer = outer and library.level() >= 1
        self._set_up()
        if not self.outer:
            library.clear()
        if self.categories is not None:
            check(library.set_categories(encoded(self.categories)), f"categories {self.categories!r}")
        if not self.outer:
            refused = library.start(self.level)
            if refused:
                library.set_categories(None)
            check(refused, f"level {self.level!r}")
        profile._running = os.getpid(), self.outer
        return self

    def __exit__(self, *_):
        profile._running = None
        if not self.outer:
            library.stop()
        if self.categories is not None:
            library.set_categories(None)
        if self.file is not None and self.arena[2] != "stream":
            self.dump(self.file)
        elif self.file is not None:
            check(library.flush(), self.file)

    def _set_up(self):
        size, path, when_full = self.arena
        if self.arena == (None, None, None):
            return
        stream = encoded(self.file) if when_full == "stream" and self.file else None
        what = "the arena (its settings count at the first profile of a process)"
        check(library.setup(size or 0, None if path is None else os.fsencode(path),
                            None if when_full is None else encoded(when_full), stream), what)

    def dump(self, file):
        """Writes what is recorded so far to a path (.json, .csv or .npuprof), or as JSON to a file object."""
        if not hasattr(file, "write"):
            check(library.dump(os.fsencode(file)), file)
            return
        try:
            file.write("")
            form = {"mode": "r", "encoding": "utf-8", "newline": ""}
        except TypeError:                  # the file object is in binary mode
            form = {"mode": "rb"}
        with self._json() as path, open(path, **form) as written:
            while data := written.read(1 << 20):
                file.write(data)

    @contextlib.contextmanager
    def _json(self):
        """Yields the path of a temporary JSON file with what is recorded so far."""
        handle, path = tempfile.mkstemp(prefix="npuprof-", suffix=".json")
        os.close(handle)
        try:
            self.dump(path)
            yield path
        finally:
            os.unlink(path)

    def load(self):
        """What is recorded so far, as npuprof.load() gives it."""
        with self._json() as path:
            trace = load(path)
        trace.one_id_an_inference = self._one_id_an_inference
        return trace

    def get_pandas_dataframe(self):
        """What is recorded so far as a pandas data frame, with the columns of the CSV."""
        return self.load().to_pandas()

    def report(self, *tables, file=None):
        """Prints tables of what is recorded so far, to stdout or to a text file.

        tables: their names in `npuprof report`; none: an overview of all."""
        from ..report import text      # Why here: recording alone needs no report
        unknown = [table for table in tables if table not in text.NAMES]
        if unknown:
            raise Refused(f"no table {unknown[0]!r}; there are {', '.join(text.NAMES)}")
        trace = self.load()
        for n, lines in enumerate(text.tables(trace, tables) if tables else text.overview(trace)):
            print(*([""] if n else []), *lines, sep="\n", file=file)

    def _printer(table):
        return lambda self, file=None: self.report(table, file=file)

    # The tables that npuprof_print_*() prints in C.
    print_summary = _printer("summary")
    print_inferences = _printer("inferences")
    print_npu_executions = _printer("executions")
    print_npu_operators = _printer("operators")
    print_external_operators = _printer("external")
    print_memory = _printer("memory")
    del _printer

    def clear(self):
        """Forgets what is recorded so far."""
        library.clear()

    def stats(self):
        """Counts as a dict: recorded, lost, bytes_used, bytes_total, threads, and what each cause lost."""
        counts, value = {}, c_uint64()
        for n in itertools.count():
            name = library.stat(n, ctypes.byref(value))
            if name is None:
                return counts
            counts[name.decode()] = value.value

    for _function in (record, scope, inference, operator, asynchronous, finished, instant, counter, memory,
                      alloc, free, flow_out, flow_in, thread_name, metadata, pause, resume, now_ns):
        locals()[_function.__name__] = staticmethod(_function)
    del _function
