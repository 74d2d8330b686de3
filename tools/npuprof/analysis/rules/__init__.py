# SPDX-License-Identifier: MIT
"""The rules of the verdict. A new rule is a function, and a line in RULES.

The function takes Facts (facts.py) and yields Findings (finding.py), or raises Missing with what the trace
lacks. Its docstring says what it finds. It tests its own condition; the verdict leaves out what promises less
than its threshold, asks replay for the gain, and puts the findings in order. Functions are in

    trust.py     is the trace good enough?
    host.py      is the host late?
    device.py    PEs, transfers, operators
    equals.py    a PE, a thread or a time that is slower than its equals; outliers
    run.py       over time: warm-up, tail, stalls, throttling; memory

Numbers are those of docs and tests; they never change their meaning.
"""

from collections import namedtuple

from . import device, equals, host, run, trust

# kind: "trust" comes first; "gain" needs a gain above the threshold; "state" is said without one.
Rule = namedtuple("Rule", "number name kind judge")
RULES = tuple(Rule(*rule) for rule in (
    ("V0", "trace_incomplete", "trust", trust.trace_incomplete),
    ("V1", "clock_unsure", "state", trust.clock_unsure),
    ("V2", "host_bound", "gain", host.host_bound),
    ("V3", "host_off_cpu", "gain", host.host_off_cpu),
    ("V4", "serial_submit", "gain", host.serial_submit),
    ("V5", "late_notice", "gain", host.late_notice),
    ("V6", "slow_dispatch", "gain", host.slow_dispatch),
    ("V7", "short_kernels", "gain", host.short_kernels),
    ("V8", "pe_idle", "gain", device.pe_idle),
    ("V9", "imbalance", "gain", device.imbalance),
    ("V10", "dma_bound", "gain", device.dma_bound),
    ("V11", "hot_operator", "gain", device.hot_operator),
    ("V12", "overhead_bound", "gain", device.overhead_bound),
    ("V13", "stall_inside", "gain", device.stall_inside),
    ("V14", "tail", "state", run.tail_phase),
    ("V15", "periodic_stall", "state", run.periodic_stall),
    ("V16", "throttled", "state", run.throttled),
    ("V17", "warm_up_inside", "state", run.warm_up_inside),
    ("V18", "leak", "state", run.leak),
    ("V19", "memory_tight", "state", run.memory_tight),
    ("V20", "no_demand", "state", host.no_demand),
    ("V21", "untraced", "state", host.untraced),
    ("V22", "causality", "trust", trust.causality),
    ("V23", "slow_pe", "gain", equals.slow_pe),
    ("V24", "slow_start", "gain", equals.slow_start),
    ("V25", "slow_end", "gain", equals.slow_end),
    ("V26", "slow_thread", "gain", equals.slow_thread),
    ("V27", "slow_times", "gain", equals.slow_times),
    ("V28", "outlier", "state", equals.outlier),
    ("V29", "host_on_path", "gain", host.host_on_path),
))
OWNERS = "hot_operator", "host_on_path"      # about the time itself: they say no more than where it is
NAMES = tuple(rule.name for rule in RULES)
