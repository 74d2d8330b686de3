# SPDX-License-Identifier: MIT
"""The loops over all spans, each in C and in Python.

The C library (build/libnpuprof-columns.so, from `make tools`) is used if it is built; Python takes about four
times as long and gives the same. A column is an array (module array) or bytearray with one element for each
span. A row is the number of a span; -1 means none.
"""

from . import native
from .finder import Finder
from .groups import executions, grouped, own_time, runs
from .intervals import Intervals, busy, merged, minus
from .marks import moved, set_kinds, steps_on, tracks_with
from .native import Reader
from .nesting import nest, nest_by_id, nest_devices, roots_of, warm_up

__all__ = ["Finder", "Intervals", "Reader", "busy", "executions", "grouped", "merged", "minus", "moved",
           "native", "nest", "nest_by_id", "nest_devices", "own_time", "roots_of", "runs", "set_kinds",
           "steps_on", "tracks_with", "warm_up"]
