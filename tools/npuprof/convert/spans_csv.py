# SPDX-License-Identifier: MIT
"""Writes a trace as npuprof's CSV."""

from ..base.cells import quoted
from ..base.contract import COLUMNS, DEVICE, OPERATOR, SOURCE
from ..base.metadata import sources
from ..base.messages import Progress
from ..tables.memory import memory_pools


def write_csv(trace, file):
    """Writes to a binary file, in the form of the C writer: a row for each span, then the peaks of memory
    pools."""
    bar = Progress(f"writing {len(trace)} spans", len(trace))

    def write(cells):
        file.write((",".join(cells) + "\n").encode("utf-8", "replace"))
    write((*COLUMNS, SOURCE))
    where = sources(trace.metadata)
    for n, row in enumerate(trace.rows()):
        # Why only threads: a device's span has no call site; its kernel on the host has it.
        source = ", ".join(where.get((row["name"], row["cat"]), ())) if row["thread.id"] else ""
        kind = trace.kind[n]
        # An argument of the user's that makes no operator, and no device span, of its row for who reads it.
        if kind not in (OPERATOR, DEVICE):
            row["operator_index"] = None
        if kind != DEVICE and not row["thread.id"]:
            row["pe_index"] = None
        row["cat"], row["name"] = quoted(row["cat"]) if row["cat"] else "", quoted(row["name"])
        write([*("" if row[c] is None else str(row[c]) for c in COLUMNS), quoted(source) if source else ""])
        if not n & 4095:
            bar.at(n)
    for ns, name in trace.memory_peaks or peaks(trace):
        write(("", "", "", str(ns), str(ns), '"memory"', quoted(name), *[""] * 6, "0", ""))
    bar.done()


def peaks(trace):
    """(Unix ns, text) of the peak of each memory pool."""
    return [(trace.base_ns + pool["used_ns"],
             f"{name} used_bytes={pool['used'][0]} allocated_bytes={pool['held']} tag={pool['used'][2]}")
            for name, pool in memory_pools(trace).items()]
