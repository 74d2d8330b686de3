# SPDX-License-Identifier: MIT
"""The analyses, in the order in which a report shows them. A new one is a module here and in ANALYSES."""

from . import depth, engines, holders, idle, latency, pes, roofline, steady, tail

ANALYSES = (idle, depth, latency, pes, engines, roofline, tail, steady, holders)


def tables(facts):
    """Yields every Table of every analysis."""
    for analysis in ANALYSES:
        yield from analysis.analyse(facts)
