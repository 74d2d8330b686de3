# SPDX-License-Identifier: MIT
"""Writes a trace as npuprof's CSV."""

from ..base.contract import COLUMNS
from ..base.messages import Progress
from ..tables.memory import memory_pools


def write_csv(trace, file):
    """The contract's columns, in the form of the C writer."""
    bar = Progress(f"writing {len(trace)} spans", len(trace))
    file.write((",".join(COLUMNS) + "\n").encode())
    for n, row in enumerate(trace.rows()):
        for key in ("cat", "name"):
            row[key] = '"%s"' % row[key].replace('"', '""') if row[key] or key == "name" else ""
        file.write((",".join("" if row[c] is None else str(row[c]) for c in COLUMNS)
                    + "\n").encode("utf-8", "replace"))
        if not n & 4095:
            bar.at(n)
    peaks = trace.memory_peaks or [(trace.base_ns + p["used_ns"],
                                    f"{pool} used_bytes={p['used'][0]} allocated_bytes={p['held']} "
                                    f"tag={p['used'][2]}")
                                   for pool, p in memory_pools(trace).items()]
    for ns, name in peaks:
        file.write(',,,{0},{0},"memory","{1}",,,,,,,0\n'.format(ns, name.replace('"', '""')).encode("utf-8", "replace"))
    bar.done()
