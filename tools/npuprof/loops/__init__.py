# SPDX-License-Identifier: MIT
"""The loops over all spans: kernels.py and kernels_inside.py, in Python, of which to_c.py makes C.

The C library (build/libnpuprof-columns.so, from `make tools`) is used if it is built; Python takes about four
times as long and gives the same. A column is an array (module array) or bytearray with one element for each
span. A row is the number of a span; -1 means none.
"""

from . import native
from .columns import (latest, moved, nest, nest_by_id, nest_devices, on_tracks, permuted, placed, roots_of,
                      row_order, set_kinds, steps_on, tracks_with, turns, warm_up)
from .finder import Finder
from .groups import executions, grouped, own_time, runs, sums
from .inside import Executions, Inside
from .intervals import Intervals, busy, merged, minus
from .native import Reader

__all__ = ["Executions", "Finder", "Inside", "Intervals", "Reader", "busy", "executions", "grouped",
           "latest", "merged", "minus", "moved", "native", "nest", "nest_by_id", "nest_devices", "on_tracks",
           "own_time", "permuted", "placed", "roots_of", "row_order", "runs", "set_kinds", "steps_on", "sums",
           "tracks_with", "turns", "warm_up"]
