# SPDX-License-Identifier: MIT
"""The words of the first screen: what to do about a finding, gains, how sure they are, and times in one unit.

WORDS has a line for each rule of analysis/rules: what to do first, {} is the finding's subject; and what
nobody looked at where the rule could not run."""

import json
import pathlib
from collections import namedtuple
from fractions import Fraction
from math import floor

from ..analysis.part import Part

WORDS = {
    "trace_incomplete": ("Record again: this trace is not whole", "what was lost"),
    "clock_unsure": ("Set the clock of {} more often", "gaps against the clock's error"),
    "host_bound": ("Keep the device at work while the host is in {}", "a host that is late"),
    "host_off_cpu": ("Give the threads in {} a CPU sooner", "threads without a CPU"),
    "serial_submit": ("Keep two submissions in flight on {}", "one submission at a time"),
    "late_notice": ("Notice the device's end sooner, in {}", "ends that are noticed late"),
    "slow_dispatch": ("Start the jobs of {} sooner", "slow starts of jobs"),
    "short_kernels": ("Put more work into each job", "jobs that are too short"),
    "pe_idle": ("Use more PEs of {} at a time", "PEs without work"),
    "imbalance": ("Spread the work over all PEs of {}", "uneven PEs"),
    "dma_bound": ("Load earlier what {} needs", "transfers"),
    "hot_operator": ("Make {} faster", "operators that take the time"),
    "overhead_bound": ("Bring {} closer to the device's peak", "operators against the peaks"),
    "stall_inside": ("Find what the engines wait for inside jobs", "stalls inside jobs"),
    "tail": ("Look at {} in the slowest inferences", "the slowest inferences"),
    "periodic_stall": ("Find what runs at regular times", "stalls at regular times"),
    "throttled": ("Keep the device's clock up", "a clock that falls"),
    "warm_up_inside": ("Mark the warm-up of {}", "warm-up that is not marked"),
    "leak": ("Free {}", "memory that grows"),
    "memory_tight": ("Make room in {}", "full memory"),
    "no_demand": ("Send more requests at a time", "missing requests"),
    "untraced": ("Mark what happens inside {}", "host time without spans"),
    "causality": ("Check the clock of {}", "device spans before their submission"),
    "slow_pe": ("Find why {} is slower than its equals", "PEs against each other"),
    "slow_start": ("Find why {} starts its jobs later", "starts of PEs against each other"),
    "slow_end": ("Find why ends on {} are noticed later", "ends of PEs against each other"),
    "slow_thread": ("Find why one thread is slower in {}", "threads against each other"),
    "slow_times": ("Keep {} at its higher speed", "changes of the device's speed"),
    "outlier": ("Look at the slowest alone: {}", "single slow inferences"),
    "host_on_path": ("Make {} faster, or take it off the path", "host spans on the path")}
UNITS = (("s", 10**9), ("ms", 10**6), ("us", 10**3), ("ns", 1))
GIVEN = {"depth": "with that many in flight", "dispatch": "each started as soon as the fastest",
         "notice": "each noticed as soon as the fastest", "pes": "jobs go to the PE that is free first"}


def means():
    """{word: what it says about an answer}. held.json: of gains of that kind, how many held when simulated
    drivers ran again, and how many there were; python3 tests/tools/grid --write makes it."""
    held = json.loads(pathlib.Path(__file__).with_name("held.json").read_text())
    figures = {word: f"of such gains {right:,} of {count:,} held in simulated drivers that ran again"
               for word, (right, count) in held.items()}
    return {"sure": f"it is there, whatever the errors of the clocks; {figures['sure']}",
            "likely": f"part of it is taken for granted; {figures['likely']}",
            "unsure": "a hint to follow",
            "unknown": f"it depends on what the trace does not say; {figures['unknown']}"}


class Bar(namedtuple("Bar", "of now low high")):
    """What a change does to `of`, ns: it takes `now`, and then `low` to `high`."""

    @property
    def now_text(self):
        return in_unit(self.now, self.now)

    @property
    def then_text(self):
        low, high = (in_unit(ns, self.now) for ns in (self.low, self.high))
        return high if low == high else f"{low.partition(' ')[0]} to {high}"


def bar_of(of, now, gain):
    """The Bar of a gain in percent."""
    low, high = (max(Fraction(0), now * (100 - end) / 100) for end in (gain[1], gain[0]))
    return Bar({"latency": "median inference", "throughput": "whole window"}[of], now, low, high)


def in_unit(ns, like):
    """A time in the unit in which people say the time `like`, with three digits or all before the point."""
    unit, size = next((unit, size) for unit, size in UNITS if abs(like) >= size or size == 1)
    value = float(ns) / size
    if size == 1 or abs(value) >= 100:
        return f"{value:.0f} {unit}"
    return f"{value:.{1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3}f} {unit}"


def whole(percent):
    """Percent without decimals, halves up: 0 only below 0.5."""
    return floor(percent + Fraction(1, 2))


def brings(gain, of="latency"):
    """A gain in words: both ends, if they differ; below zero it costs."""
    low, high = map(whole, gain)
    what = {"latency": "latency", "throughput": "of the window", "device": "device time"}[of]
    if low == high == 0:
        return f"0 % less {what}"
    if low < 0 < high:
        return f"{-low} % more to {high} % less {what}"
    ends, more = ((-high, -low), "more") if low < 0 else ((low, high), "less")
    return f"{' to '.join(map(str, dict.fromkeys(ends)))} % {more} {what}"


def given(change):
    """Under which condition replay says so."""
    what, name, factor = change
    if isinstance(name, Part):
        return "as fast as its equals"
    if what in GIVEN:
        return GIVEN[what]
    if factor == 0:
        return "if all of that time is hidden"
    who = {"device": "the device ", "load": "transfers "}.get(what, "")
    return who + ("twice as fast" if factor == Fraction(1, 2) else f"in {whole(100 * factor)} % of the time")


def do(finding):
    """What to do about it, without a full stop."""
    name, subject = finding.rule.name, finding.subject or "the device"
    if name == "dma_bound" and subject == "(end)":
        return "Store earlier, or less"
    # Why: a phase of the tail is called as its column is.
    return WORDS[name][0].format(subject.replace("_", " ") if name == "tail" else subject)


def topic(rule):
    return WORDS[rule.name][1]


def decapital(text):
    return text[:1].lower() + text[1:]
