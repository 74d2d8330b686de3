# SPDX-License-Identifier: MIT
"""The part of a trace that is looked at.

Without a choice it lasts from the start of the first inference to the end of the last one, outside warm-up;
without inferences, of the submissions; without those, of the device's spans; else of all spans. Pauses are
left out. Every share is one of the window without its pauses.
"""

import re
from array import array
from collections import namedtuple

from .. import loops
from ..base.contract import DEVICE, INFERENCE, RECORD, UNFINISHED
from ..base.messages import Refused
from ..tables.arithmetic import both, union
from ..tables.labelled import labelled

# What a user chose; None: no choice. record, inference, between, name: texts as on the command line. nth:
# which of the spans of `name`, from 1. pe: a number. thread: a name or number.
Selection = namedtuple("Selection", "record inference between pe thread name nth", defaults=[None] * 7)


class Window:
    """intervals     Intervals that are looked at, without pauses
    length_ns     their length: what shares divide by
    start_ns, end_ns, paused_ns
    inferences    array of rows: inferences wholly inside, finished, outside warm-up, by start
    cut           inferences that are only partly inside
    text          how it was chosen, for a reader
    pe, threads   the chosen PE, and a set of the base tracks of the chosen threads; None: all"""

    def __init__(self, trace, pairs, text, selection):
        self.trace, self.text, self.selection = trace, text, selection
        chosen = union(pairs)
        paused = both(pauses(trace), chosen)
        self.intervals = loops.minus(chosen, paused)
        self.length_ns, self.paused_ns = self.intervals.length(), paused.length()
        self.start_ns = chosen[0][0] if len(chosen) else 0
        self.end_ns = chosen[-1][1] if len(chosen) else 0
        self.pe = selection.pe
        self.threads = None if selection.thread is None else threads_named(trace, selection.thread)
        # Why whole intervals with their pauses: an inference that was paused in its middle still counts.
        self._chosen = chosen
        self.inferences, self.cut = self._inferences()

    def _inferences(self):
        start, dur, track, tracks = self.trace.start, self.trace.dur, self.trace.track, self.trace.tracks
        rows = [i for i in labelled(self.trace, INFERENCE)
                if self.threads is None or tracks[track[i]].base in self.threads]
        inside = [i for i in rows if self.holds(start[i], start[i] + dur[i])]
        touched = sum(1 for i in rows if self.touches(start[i], start[i] + dur[i]))
        return array("i", sorted(sorted(inside), key=start.__getitem__)), touched - len(inside)

    def _place(self, ns):
        """The number of the last interval that begins at or before ns; -1: none."""
        flat, low, high = self._chosen.flat, 0, len(self._chosen)
        if high == 1:                  # the fast path, of the usual choice
            return 0 if flat[0] <= ns else -1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if flat[2 * middle] <= ns else (low, middle)
        return low - 1

    def holds(self, start, end):
        """True: [start, end) lies inside one interval of the choice."""
        k = self._place(start)
        return k >= 0 and end <= self._chosen.flat[2 * k + 1]

    def touches(self, start, end):
        """True: [start, end) overlaps the choice."""
        k = self._place(start)
        flat = self._chosen.flat
        return (k >= 0 and start < flat[2 * k + 1]) or (2 * k + 2 < len(flat) and flat[2 * k + 2] < end)


def choose(trace, selection=None):
    """The Window of a trace. Raises Refused if the selection fits nothing."""
    selection = selection or Selection()
    if selection.pe is not None:
        known = sorted(set().union(*trace.values_of("pe_index").values()))
        if selection.pe not in known:
            raise Refused(f"{trace.path}: --pe {selection.pe}: there is no such PE; "
                          f"there are: {', '.join(map(str, known[:20])) or 'none'}")
    parts = []
    if selection.record is not None:
        parts.append(spans_named(trace, *split_number(selection.record), "--record", RECORD))
    if selection.inference is not None:
        parts.append(inferences_of(trace, selection.inference))
    if selection.name is not None:
        parts.append(spans_matching(trace, selection.name, selection.nth))
    elif selection.nth is not None:
        raise Refused("--nth N: only with --name")
    if selection.between is not None:
        parts.append(([between(trace, selection.between)], f"between {selection.between}"))
    if not parts:
        return Window(trace, *default(trace), selection)
    intervals = union(parts[0][0])
    for pairs, _ in parts[1:]:
        intervals = both(intervals, union(pairs))
    text = ", ".join(text for _, text in parts)
    if not intervals.length():
        raise Refused(f"{trace.path}: nothing lies in: {text}")
    return Window(trace, list(intervals), text, selection)


def default(trace):
    """([(start, end)], how it was chosen)"""
    start, dur = trace.start, trace.dur

    def around(rows, what):
        return [(min(start[i] for i in rows), max(start[i] + dur[i] for i in rows))], what
    rows = labelled(trace, INFERENCE)
    if len(rows):
        return around(rows, "first to last inference outside warm-up")
    from_track, from_ns, to_track, to_ns = trace.flows.named("submit")
    called = trace.finder.beginning(to_track, to_ns, trace.kind, DEVICE) if len(from_ns) else ()
    pairs = [(ns, start[i] + dur[i]) for ns, i in zip(from_ns, called) if i >= 0 and not trace.warm_up[i]]
    if pairs:
        return [(min(pairs)[0], max(end for _, end in pairs))], "first to last submission outside warm-up"
    rows = labelled(trace, DEVICE)
    if len(rows):
        return around(rows, "first to last device span outside warm-up")
    return (around(range(len(trace)), "first to last span") if len(trace) else ([], "no spans"))


def pauses(trace):
    """Intervals in which nothing was recorded."""
    pairs, since = [], {}                      # since: by process, of a merged trace
    marks = [mark for mark in trace.instants if mark.name in ("npuprof paused", "npuprof resumed")]
    for mark in sorted(marks, key=lambda mark: mark.ts):
        pid = trace.tracks[mark.track].pid
        if mark.name == "npuprof paused":
            since.setdefault(pid, mark.ts)
        elif pid in since:
            pairs.append((since.pop(pid), mark.ts))
    if since:
        last = max(map(int.__add__, trace.start, trace.dur), default=0)
        pairs += [(begin, max(last, begin)) for begin in since.values()]
    return union(pairs)


def split_number(text):
    """NAME or NAME#n: (name, n or None)."""
    name, mark, number = text.rpartition("#")
    if mark and number.isdigit() and int(number) > 0:
        return name, int(number)
    return text, None


def spans_named(trace, name, nth, option, kind=None):
    """([(start, end)], text) of the finished spans of a name."""
    wanted = {n for n, text in enumerate(trace.names) if text == name}
    rows = [i for i, n in enumerate(trace.name) if n in wanted and not trace.flags[i] & UNFINISHED
            and (kind is None or trace.kind[i] == kind)]
    return numbered(trace, rows, nth, f"{option} {name}")


def spans_matching(trace, pattern, nth):
    """The same for a regular expression that finds the name."""
    try:
        expression = re.compile(pattern)
    except re.error as error:
        raise Refused(f"--name {pattern}: no regular expression: {error}") from None
    wanted = bytearray(bool(expression.search(text)) for text in trace.names)
    rows = [i for i, n in enumerate(trace.name) if wanted[n] and not trace.flags[i] & UNFINISHED]
    return numbered(trace, rows, nth, f"--name {pattern}")


def numbered(trace, rows, nth, what):
    """([(start, end)], text) of those rows, or of the nth of them by start."""
    rows.sort(key=lambda i: (trace.start[i], i))
    if not rows:
        raise Refused(f"{trace.path}: {what}: there is no such span")
    if nth is not None:
        if not 0 < nth <= len(rows):
            raise Refused(f"{trace.path}: {what}: no number {nth}, there are {len(rows)}")
        rows, what = [rows[nth - 1]], f"{what} number {nth} of {len(rows)}"
    return [(trace.start[i], trace.start[i] + trace.dur[i]) for i in rows], what


def inferences_of(trace, text):
    """--inference N or N-M, from 1, outside warm-up."""
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    rows = sorted(labelled(trace, INFERENCE), key=lambda i: (trace.start[i], i))
    first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not 0 < first <= last <= len(rows):
        raise Refused(f"--inference {text}: not N or N-M with 1 <= N <= M <= {len(rows)}")
    return ([(trace.start[i], trace.start[i] + trace.dur[i]) for i in rows[first - 1:last]],
            f"inference {text} of {len(rows)}")


def between(trace, text):
    """--between A:B; each is ns of the trace, or NAME#n: A its start, B its end."""
    ends = text.split(":")
    if len(ends) != 2:
        raise Refused(f"--between {text}: not A:B")
    places = []
    for side, end in enumerate(ends):
        if re.fullmatch(r"-?\d+", end):
            places.append(int(end))
        else:
            name, nth = split_number(end)
            places.append(spans_named(trace, name, nth or 1, "--between")[0][0][side])
    if not -2**62 < places[0] < places[1] < 2**62:
        raise Refused(f"--between {text}: {places[0]} ns is not before {places[1]} ns")
    return tuple(places)


def threads_named(trace, text):
    """The base tracks of the host threads of that name, number or system number."""
    found = {t.base for t in trace.tracks if t.kind == "thread"
             and text in (t.name, str(t.tid), str(t.native_id), str(t.thread_id))}
    if not found:
        names = ", ".join(sorted({t.name for t in trace.tracks if t.kind == "thread"})[:8])
        raise Refused(f"{trace.path}: --thread {text}: there is no such thread; there are: {names}")
    return found
