# SPDX-License-Identifier: MIT
"""The analyses, in the order in which a report shows them. A new one is a module here, with analyse() and the
names of its tables in TABLES, and a line in ANALYSES."""

from . import (communication, depth, energy, engines, holders, idle, latency, over_time, pes, roofline,
               sequences, shapes, steady, tail, whatif)

ANALYSES = (whatif, idle, depth, latency, over_time, pes, engines, communication, shapes, sequences, roofline,
            tail, steady, holders, energy)
TABLES = {name: analysis for analysis in ANALYSES for name in analysis.TABLES}


def tables(facts, wanted=tuple(TABLES)):
    """Yields the Tables of these names, in the order of TABLES."""
    for analysis in ANALYSES:
        if any(name in wanted for name in analysis.TABLES):
            for table in analysis.analyse(facts):
                if table.name in wanted:
                    yield table
