# SPDX-License-Identifier: MIT
"""From a trace to answers: one module for each analysis, and the verdict over all of them.

    window = choose(trace)                  the part of the trace that is looked at: window.py
    jobs = Jobs(trace, window)              executions with their submissions and waits: jobs.py
    facts = Facts(trace, window)            both, and what several analyses share, made once: facts.py
    idle.analyse(facts)                     -> Tables; every other analysis the same

An analysis is a module with analyse(facts), which returns Tables (tables/table.py), and is named in ANALYSES
of catalogue.py. Text, JSON, CSV, SQLite and the page only print these tables.

What a change would bring comes from replay.py: of(facts).effect(change, ...) gives an Effect with the gains
(low_pct, high_pct) of the median inference, the window and the jobs, or None if it cannot say. A change is a
tuple:

    ("operator", NAME, K)      compute spans of that name take K times as long
    ("load", NAME, K)          transfers before that operator, or all with NAME None
    ("host", NAME, K)          host spans of that name
    ("dispatch", None, NS)     no start latency is longer than NS; NS None: than the 5th percentile of those
                               of its device. In place of None: the name of a device
    ("notice", None, NS)       the same for the notice of an end
    ("depth", None, N)         N submissions in flight on each queue
    ("pes", None, N)           jobs go to the PE that is free first; there are N PEs more (None: none)
    ("device", None, K)        everything on the device

Times are whole ns as in trace.start, intervals [a, b). Shares are Fractions in percent of the window without
its pauses. What is not known is None, never 0.
"""
