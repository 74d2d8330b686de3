# SPDX-License-Identifier: MIT
"""What a rule gives: Findings, or what it would need."""

from dataclasses import dataclass, field


@dataclass
class Finding:
    """One answer to "what do I change?".

    subject     what it is about: a span, an operator, a pool; ""
    evidence    {name with unit: number}, the figures that prove it
    sentence    the evidence in words
    advice      what to do, one sentence
    certain_ns  of its time, what no error of a clock can explain; None: it is no time
    share       percent of the inferences, or of the window, that it costs at most; None: it promises no time
    confidence  "sure", "likely" or "unsure"
    change      what to replay, as analysis/__init__.py says; None: nothing
    rows        spans that show it, the longest first
    below       names of rules: if one of them is found too, this one follows from it
    hidden_by   names of rules: the same, if it promises too little for itself, but shortens the jobs by 5 %
    of          what the gain is of: "latency", "throughput" or "device"
    gain        (low, high) in percent, set by the verdict; None: it promises none
    ns          (now, at best) of what the gain is of: the median inference or the window; None without one
    hidden      True: it brings less than the threshold as long as the finding above it is there
    replayed    True: the gain is from replay
    assumed     what the trace does not say and the gain hangs on: texts, or nothing
    jobs        (low, high): percent of the time of all jobs that replay says, or None"""

    subject: str
    sentence: str
    advice: str
    evidence: dict = field(default_factory=dict)
    certain_ns: int | None = None
    share: object = None
    confidence: str = "sure"
    change: tuple | None = None
    rows: list = field(default_factory=list)
    below: tuple = ()
    hidden_by: tuple = ()
    of: str = "latency"
    gain: tuple | None = None
    ns: tuple | None = None
    hidden: bool = False
    replayed: bool = False
    assumed: frozenset = frozenset()
    jobs: tuple | None = None
    rule: object = None


class Missing(Exception):
    """A rule cannot run. Its text says what the trace lacks."""


def ns_text(ns):
    """A time as people say it, in three digits: 2.25 us, 1.90 ms, 314 us; a whole number stays one: 2 ms."""
    for unit, size in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
        if abs(ns) >= size:
            value = float(ns) / size
            whole = ns % size == 0 or abs(value) >= 99.95
            return f"{value:.0f} {unit}" if whole else f"{value:#.3g} {unit}"
    return f"{round(ns)} ns"


# Why a device is idle, by class of idle.py; {} is the span.
IDLE = {"pause": "the recording is paused", "unknown_lost": "spans are lost",
        "dependency": "another queue has to end first", "in_submit": "a job is being submitted{}",
        "dispatch": "a job is submitted and not started", "late_notice": "the host has not noticed an end{}",
        "work_or_wait": "the host works or has not noticed an end{}",
        "work_or_idle": "the host works or waits for a request{}",
        "host_off_cpu": "the host is off the CPU{}", "host_busy": "the host is busy{}",
        "host_blocked": "the host waits{}", "host_untraced": "the host does what has no span{}",
        "late_thread": "the next thread does not run yet{}", "no_demand": "no request is there",
        "edge": "the first job has not come or the last one is done"}


def idle_text(label, span):
    """Why the device is idle, in words."""
    return IDLE.get(label, "the reason is not known").format(f", in {span}" if span else "")


def bytes_text(count):
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(count) >= size:
            return f"{float(count) / size:.3g} {unit}"
    return f"{count} bytes"


def pct_text(value):
    """Percent as people say it: 0.42, 7.3, 81."""
    value = float(value)
    return f"{value:.2f}" if abs(value) < 1 else f"{value:.1f}" if abs(value) < 10 else f"{value:.0f}"
