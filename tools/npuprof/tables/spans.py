# SPDX-License-Identifier: MIT
"""Tables of all spans, warm-up included: by name, by category, by thread, and those left open."""

from fractions import Fraction

from .. import loops
from ..base.contract import UNFINISHED
from .arithmetic import mean, percentile
from .table import Table
from .tracks import label_of, whole_window

LATENCY = ("count", "total", "self", "share", "mean", "p50", "p90", "p99")


class Spans:
    """Durations and self times of all spans, grouped by a column of numbers. texts: by number."""

    def __init__(self, trace, column, texts):
        self.texts = texts
        self.durations = loops.grouped(column, len(texts), trace.dur)
        self.totals = [sum(durations) for durations in self.durations]
        self.self_ns = loops.sums(column, len(texts), trace.own_ns)
        # An execution's self time is without the union of its spans. Why the union: engines run at the same
        # time.
        groups, inside = trace.executions[0], ()
        if groups:
            everything = bytearray([1]) * len(trace.names)
            inside, _, _ = loops.runs(trace.executions, trace.start, trace.dur, trace.name, everything,
                                      trace.warm_up)
        for i, ns in zip(groups, inside):
            if ns and i >= 0:
                self.self_ns[column[i]] -= ns

    def rows(self):
        """Rows (label, *LATENCY), the largest self time first. Shares are Fractions of all self time."""
        everything = sum(self.self_ns)
        rows = []
        for text, ordered, total, own in zip(self.texts, self.durations, self.totals, self.self_ns):
            if ordered:
                rows.append((text or "(none)", len(ordered), total, own, Fraction(own, everything or 1),
                             mean(total, len(ordered)), *(percentile(ordered, p) for p in (500, 900, 990))))
        return sorted(rows, key=lambda row: (-row[3], row[0]))


def at_least(labels):
    """The note of a table that adds up spans without an end: whose sums are no more than a lower bound."""
    labels = sorted(set(labels))
    more = f" and {len(labels) - 20} more" if len(labels) > 20 else ""
    return [f"at least so long, because spans were open when the recording ended: "
            f"{', '.join(labels[:20])}{more}"] if labels else []


def names_table(trace):
    return Table("names", "Spans by name (ns; self is without children, share is of self)",
                 ("name", *LATENCY), Spans(trace, trace.name, trace.names).rows(),
                 at_least(trace.text(i) or "(none)" for i in trace.rows_with(UNFINISHED)))


def categories_table(trace):
    return Table("categories", "Spans by category (ns)", ("category", *LATENCY),
                 Spans(trace, trace.cat, trace.names).rows(),
                 at_least(trace.names[trace.cat[i]] or "(none)" for i in trace.rows_with(UNFINISHED)))


def threads_table(trace, tracks):
    window = whole_window(tracks)
    rows = [(label_of(trace, trace.tracks[base]), trace.tracks[base].thread_id or "", count,
             intervals.length(), Fraction(intervals.length(), window or 1))
            for base, (count, total, intervals) in tracks.items() if trace.tracks[base].kind == "thread"]
    return Table("threads", f"Threads (busy: at least one span is open; share of the trace's {window} ns)",
                 ("thread", "thread.id", "spans", "busy", "share"), rows,
                 at_least(label_of(trace, trace.tracks[trace.tracks[trace.track[i]].base])
                          for i in trace.rows_with(UNFINISHED)))


def open_table(trace):
    """Spans that were open when the recording ended: for each thread the innermost first, then those around
    it."""
    stacks = {}
    for i in trace.rows_with(UNFINISHED):
        stacks.setdefault(trace.tracks[trace.track[i]].base, []).append(i)
    for stack in stacks.values():
        stack.sort(key=lambda i: (trace.start[i], -trace.dur[i], i), reverse=True)
    rows = [(label_of(trace, trace.tracks[base]), trace.text(i), trace.names[trace.cat[i]], trace.start[i],
             trace.dur[i])
            for base, stack in sorted(stacks.items(), key=lambda item: -trace.start[item[1][0]])
            for i in stack]
    notes = ["a CSV does not say which spans have no end"] if trace.format == "csv" else []
    return Table("open", "Open when it ended, for at least so long (of each thread the innermost first, then "
                         "what is around it; ns)",
                 ("thread", "span", "category", "begun", "open for"), rows, notes)
