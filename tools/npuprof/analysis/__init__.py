# SPDX-License-Identifier: MIT
"""From a trace to answers: one module for each analysis, and the verdict over all of them.

    window = choose(trace)                  the part of the trace that is looked at: window.py
    idle.analyse(trace, window)             -> Tables; every other analysis the same

An analysis is a module with analyse(trace, window), which returns Tables (tables/table.py), and is named in
ANALYSES of catalogue.py. Text, JSON, CSV, SQLite and the page only print these tables.

Times are whole ns as in trace.start, intervals [a, b). Shares are Fractions in percent of the window without
its pauses. What is not known is None, never 0.
"""
