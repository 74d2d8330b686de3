# SPDX-License-Identifier: MIT
"""Outliers: few spans that take so long that they would pass for a pattern.

k = max(1, n / 200) of n spans are few. The k longest inferences are outliers if each takes FAR times the
median, no other one comes half as close, and what they take beyond it is 5 % of the window. A gain is no
pattern if the k longest of its spans are half of their time, and without them less than half of it is left.
"""

from collections import namedtuple
from heapq import nlargest

from .graph import host_rows
from .part import Part

FEW, FAR, SHARE_PCT = 6, 3, 5
# rows: the longest first; least: ns of the last of them; phase, span, ns: in what each loses most; lost: ns
# of the window
Outliers = namedtuple("Outliers", "rows least phase span ns lost")


def few_of(count):
    return max(1, count // 200)


def outliers(facts):
    """Outliers or None. None of fewer than FEW inferences: those are all there is."""
    ordered, trace = facts.durations, facts.trace
    count = len(ordered)
    p50 = facts.durations_p50
    k = next((k for k in range(few_of(count), 0, -1) if count >= FEW and ordered[-k] >= FAR * p50
              and 2 * (ordered[-k - 1] - p50) <= ordered[-k] - p50), 0)
    lost = sum(ordered[count - k:]) - k * (p50 or 0)
    if not k or not lost or 100 * lost < SHARE_PCT * facts.window.length_ns:
        return None
    rows = nlargest(k, facts.window.inferences, key=lambda i: (trace.dur[i], -i))
    (phase, span), ns = phase_of(facts, rows)
    return Outliers(rows, ordered[-k], phase, span, ns, lost)


def phase_of(facts, rows):
    """((phase, span), ns) in which these inferences lose most."""
    tail, own = facts.tail, {}
    looked_at = [i for i in rows if i in set(tail.slow)]
    for i in looked_at:
        for phase, span, ns in tail.path(i):
            own[phase, span] = own.get((phase, span), 0) + ns
    over = {key: ns // max(1, len(looked_at)) - tail.mean(0, key) for key, ns in own.items()}
    return max(over.items(), key=lambda item: (item[1], item[0]), default=(("the inference", ""), 0))


def is_pattern(facts, finding):
    """False: most of what the finding promises hangs on few spans of the host."""
    if not finding.gain or not finding.change or finding.change[0] != "host":
        return True
    _, name, factor = finding.change
    if isinstance(name, Part):
        return True
    trace, window = facts.trace, facts.window
    rows = [i for i in host_rows(trace, Everywhere(trace), name)
            if window.holds(trace.start[i], trace.start[i] + trace.dur[i])]
    longest = nlargest(few_of(len(rows)), rows, key=lambda i: (trace.dur[i], -i))
    most, whole = (sum(map(trace.dur.__getitem__, own)) for own in (longest, rows))
    # Why first: between two kinds of inferences one span may decide which of them is the median.
    if 2 * most < whole or not finding.replayed:
        return 2 * most < whole
    rest = facts.effect(("host", Part(name, without=tuple(longest)), factor))
    gain = rest.inference if finding.of == "latency" and rest.inference else rest.window
    return 2 * gain[1] >= finding.gain[1]


class Everywhere:
    """Stands for the points of all threads."""

    def __init__(self, trace):
        self.thread = [track.number for track in trace.tracks if track.kind == "thread"]
        self.until = 2**62
