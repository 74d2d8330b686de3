# SPDX-License-Identifier: MIT
"""Every table of a report as a Table whose columns name their units, for CSV and JSON.

Maker.make() makes one; NAMES lists them. The columns of a table are the same for every trace."""

from functools import cached_property
from fractions import Fraction

from ..base.losses import syncs_of
from ..tables.call_paths import CALL_PATHS, call_paths_table
from ..tables.devices import gaps_table, pes_table
from ..tables.executions import Device, npu_executions, npu_operators
from ..tables.labelled import external_operators, inferences, summary
from ..tables.memory import memory_pools
from ..tables.spans import categories_table, names_table, open_table, threads_table
from ..tables.submissions import path_table
from ..tables.table import Table
from ..tables.tracks import track_intervals

LATENCY = ("count", "total_ns", "self_ns", "share_pct", "mean_ns", "p50_ns", "p90_ns", "p99_ns")
PERCENTILES = {"p50_ns": 500, "p90_ns": 900, "p95_ns": 950, "p97_ns": 970, "p99_ns": 990, "p999_ns": 999}
# The columns of the tables whose own have no units.
COLUMNS = {
    "names": ("name", *LATENCY),
    "categories": ("category", *LATENCY),
    "threads": ("thread", "thread_id", "spans", "busy_ns", "share_pct"),
    "call_paths": CALL_PATHS,
    "open": ("thread", "name", "category", "start_ns", "open_ns"),
    "pes": ("track", "spans", "busy_ns", "sum_ns", "occupancy_pct", "compute_ns", "utilisation_pct"),
    "gaps": ("start_ns", "dur_ns", "thread", "name"),
    "path": ("phase", "count", "total_ns", "share_pct", "mean_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"),
    "summary": ("count", "min_ns", "max_ns", "mean_ns", "total_ns", *PERCENTILES),
    "inferences": ("trace_id", "span_id", "thread_id", "dur_ns"),
    "executions": ("trace_id", "span_id", "pe_index", "execution_index", "total_ns", "run_ns", "wait_ns",
                   "sum_ns"),
    "operators": ("name", "mean_ns", "count", "total_ns", "share_pct"),
    "external": ("trace_id", "span_id", "thread_id", "name", "operator_index", "dur_ns"),
    "memory": ("device", "record", "tag", "used_bytes", "allocated_bytes"),
    "pools": ("device", "records", "peak_used_bytes", "peak_start_ns", "held_bytes", "peak_tag",
              "peak_allocated_bytes", "allocated_tag", "drops"),
    "trust": ("device", "rate_hz", "drift_ppm", "max_error_ns", "anchors", "causality_violations",
              "unplaced_spans", "ring_lost"),
    "losses": ("cause", "count")}
NAMES = tuple(COLUMNS)
# Those that need nothing but the trace; the others are methods of Maker.
OF_TRACE = {"names": names_table, "categories": categories_table, "open": open_table, "path": path_table,
            "call_paths": call_paths_table, "inferences": inferences, "external": external_operators}


def with_units(name, table):
    """The Table with the columns of COLUMNS. A Table that has units already stays as it is."""
    columns, old = COLUMNS.get(name), table.columns
    if columns is None or len(columns) != len(old) or any(c.endswith(("_ns", "_pct")) for c in old):
        return table

    def with_unit(value, column):
        if column.endswith("_pct") and isinstance(value, Fraction):
            return value * 100
        # Why: text shows a thread without a number as "", and here that is not known.
        return None if column == "thread_id" and value == "" else value
    return table._replace(columns=columns, rows=[tuple(map(with_unit, row, columns)) for row in table.rows])


class Maker:
    """Makes the tables of one trace. What several of them need is made once."""

    def __init__(self, trace):
        self.trace = trace

    @cached_property
    def device(self):
        return Device(self.trace)

    @cached_property
    def tracks(self):
        return track_intervals(self.trace)

    @cached_property
    def memory_pools(self):
        return memory_pools(self.trace)

    def own(self, name):
        """The Table of that name, of NAMES, as text shows it: the oldest have no units."""
        made = OF_TRACE[name](self.trace) if name in OF_TRACE else getattr(self, name)()
        return made if isinstance(made, Table) else Table(name, name, COLUMNS[name], made, [])

    def make(self, name):
        """The Table of that name with its units."""
        return with_units(name, self.own(name))

    def threads(self):
        return threads_table(self.trace, self.tracks)

    def pes(self):
        return pes_table(self.trace, self.tracks, self.device)

    def gaps(self):
        return gaps_table(self.trace, self.tracks)

    def summary(self):
        s = summary(self.trace)
        keys = ("min", "max", "mean", "total", *PERCENTILES.values())
        return [(s["count"], *(s.get(key) for key in keys))]

    def executions(self):
        return npu_executions(self.trace, self.device)

    def operators(self):
        return [(*row[:4], row[4] * 100) for row in npu_operators(self.trace, self.device)]

    def memory(self):
        return [(device, n, *row) for device, pool in self.memory_pools.items()
                for n, row in enumerate(pool["rows"])]

    def pools(self):
        return [(device, pool["records"], pool["used"][0], pool["used_ns"], pool["held"], pool["used"][2],
                 pool["allocated"][0], pool["allocated"][2], pool["drops"])
                for device, pool in self.memory_pools.items()]

    def trust(self):
        return [(name, *(exact(sync.get(key)) for key in COLUMNS["trust"][1:]))
                for name, sync in syncs_of(self.trace.metadata, None)]

    def losses(self):
        lost = self.trace.metadata.get("lost")
        return list(lost.items()) if isinstance(lost, dict) else []


def exact(value):
    """A number of the metadata as a cell: a float as the Fraction of its decimals."""
    return Fraction(str(value)) if isinstance(value, float) else value if type(value) is int else None


def about(trace):
    """What a JSON document says about the trace."""
    known = ("version", "host", "program", "pid", "label", "clock", "lost", "user")
    found = {"path": trace.path, "form": trace.format, "base_unix_ns": trace.base_ns, "spans": len(trace)}
    return found | {key: trace.metadata.get(key) for key in known} | {"damage": trace.damage or None}
