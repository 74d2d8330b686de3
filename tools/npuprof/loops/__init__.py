# SPDX-License-Identifier: MIT
"""The loops over all spans: in C (build/libnpuprof-columns.so, `make tools`) where that is built, else in Python, about four
times slower.

Columns are arrays (module array) with one element a span; rows are numbers, -1 for none. Both ways give the same.
"""

from . import native
from .finder import Finder
from .groups import executions, grouped, own_time, runs
from .intervals import Intervals, busy, merged, minus
from .marks import moved, set_kinds, steps_on, tracks_with
from .native import Reader
from .nesting import nest, nest_by_id, nest_devices, roots_of, warm_up

__all__ = ["Finder", "Intervals", "Reader", "busy", "executions", "grouped", "merged", "minus", "moved", "native", "nest",
           "nest_by_id", "nest_devices", "own_time", "roots_of", "runs", "set_kinds", "steps_on", "tracks_with", "warm_up"]
