# SPDX-License-Identifier: MIT
"""The figures of the first two lines of a verdict."""

from fractions import Fraction

from ..base.contract import NULL
from ..base.losses import are_known
from ..tables.arithmetic import percentile, union_of
from ..tables.table import pct
from .depth import is_known, mean_of
from .figures import enough

# What nobody knows where the lengths of jobs are not known.
OF_LENGTHS = ("busy_pct", "parallelism_ratio", "device_depth_ratio", "idle_ns", "idle_pct", "largest_idle",
              "largest_idle_pct")
# And where nobody knows which lanes are one engine.
OF_DEPTH = "open_ratio", "device_depth_ratio"       # and where jobs without an end are not counted
OF_ENGINES = "parallelism_ratio", "idle_ns", "idle_pct", "largest_idle", "largest_idle_pct"


def headline(facts):
    """A dict with the names of the JSON form."""
    window, jobs, ordered = facts.window, facts.jobs, facts.durations
    n = len(ordered)
    figures = list(map(facts.pes.figures, range(len(facts.pes.groups))))
    devices = [union_of(map(facts.busy.__getitem__, queues)).length()
               for queues in [*jobs.queues_of, *jobs.shared]]
    busy = max((pct(ns, window.length_ns) for ns in devices if window.length_ns), default=None)
    all_ns = window.length_ns * len(jobs.devices)
    total, _, _ = facts.idle.of_class(*{key[2] for key in facts.idle.entries})
    labels = {}
    for (_, queue, label, span), entry in facts.idle.entries.items():
        if queue < 0:
            labels[label, span] = labels.get((label, span), 0) + entry.total
    largest = max(labels, key=lambda key: (labels[key], key), default=None)
    about = facts.trace.metadata
    errors = [error for error in jobs.error if error != NULL]
    found = {"inferences": n, "cut": window.cut, "executions": len(jobs), "devices": len(jobs.devices),
            "pes": sum(facts.pes.count), "lost": facts.lost_records if are_known(about) else None,
            "violated": jobs.violated if about or jobs.violated else None,
            "max_error_ns": max(errors, default=None),
            "p50_ns": percentile(ordered, 500) if n else None, "noise_pct": facts.noise_pct,
            "p99_ns": percentile(ordered, 990) if n and enough(n, 990) else None,
            "max_ns": ordered[-1] if n else None,
            "rate_per_s": Fraction(n * 10**9, window.length_ns) if n and window.length_ns else None,
            "busy_pct": busy, "parallelism_ratio": max((f[1] for f in figures if f[1]), default=None),
            "open_ratio": mean_of(facts.depth["host"]) if facts.depth else None,
            "device_depth_ratio": mean_of(facts.depth["device"]) if facts.depth else None,
            "idle_ns": total,
            "idle_pct": pct(total, all_ns),
            "largest_idle": None if largest is None else " ".join(filter(None, largest)),
            "largest_idle_pct": pct(labels[largest], all_ns) if largest else None}
    unknown = OF_LENGTHS if jobs.are_drawn_loosely else OF_ENGINES if jobs.shared else ()
    unknown += () if is_known(facts) else OF_DEPTH
    return found | dict.fromkeys(unknown)
