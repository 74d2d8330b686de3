# SPDX-License-Identifier: MIT
"""The timeline's figures: tracks, spans one by one or as density, arrows, and gaps that are folded."""

import math
from bisect import bisect_right
from heapq import heappush, heapreplace
from itertools import islice, pairwise

from ...tables.arithmetic import union, union_of
from ...tables.submissions import arrows
from ...tables.tracks import label_of, rows_of

SPANS = 20_000        # drawn one by one, the longest
EACH, NAMES = 16, 512  # and the longest of each name, of the names with most time: a search finds them
COLUMNS = 1_600       # of density, for the other spans
TRACKS, ROWS = 64, 12  # tracks, and rows of nested spans in each
TEXTS = 400_000       # bytes of arguments
ARROWS = 4_000
# Density from 0 to 31, one character for each column.
LEVELS = "0123456789abcdefghijklmnopqrstuv"
# Arguments that are not shown.
HIDDEN = {"trace_id", "span_id", "kind", "stamp", "start_ticks", "end_ticks"}


class Labels:
    """Gives each pair of name and category a small number. rows: [name, category] by number."""

    def __init__(self, trace):
        self.trace, self.rows, self.numbers = trace, [], {}

    def number(self, name, cat=0):
        key = name, cat
        if key not in self.numbers:
            self.numbers[key] = len(self.rows)
            self.rows.append([self.trace.names[name], self.trace.names[cat]])
        return self.numbers[key]


def pauses(trace, zero, end):
    """The Intervals in which the recording was paused."""
    found, since = [], None
    for at, name in sorted((instant.ts, instant.name) for instant in trace.instants
                           if instant.name.startswith("npuprof ")):
        at = max(zero, min(end, at)) - zero
        if name == "npuprof paused" and since is None:
            since = at
        elif name == "npuprof resumed" and since is not None:
            found.append([since, at])
            since = None
    if since is not None:
        found.append([since, end - zero])
    return union([pause for pause in found if pause[0] < pause[1]])


def folds(tracks, zero, end, paused):
    """Gaps [from, to, whether it was a pause] in all tracks at once that would fill more than a quarter of
    what is left, and pauses above 3 %."""
    everything = union_of(t[2] for t in tracks.values())
    gaps = sorted(((b[0] - a[1], a[1], b[0]) for a, b in pairwise(everything)), reverse=True)
    left, folded = end - zero, []
    for ns, start, stop in gaps[:40]:
        pause = any(a < stop - zero and start - zero < b for a, b in paused)
        if ns * (33 if pause else 4) > left and len(folded) < 8:
            folded.append([start - zero, stop - zero, pause])
            left -= ns
    return sorted(folded)


class Folded:
    """Maps time to a place on the timeline, where each folded gap is as wide as 2 % of the rest."""

    def __init__(self, gaps, length):
        wide = (length - sum(stop - start for start, stop, _ in gaps)) / 50
        self.starts, self.places = [0], [(0, 0.0, 1.0)]
        shift = 0.0
        for start, stop, _ in gaps:
            self.starts += [start, stop]
            self.places.append((start, start - shift, wide / (stop - start)))
            shift += stop - start - wide
            self.places.append((stop, stop - shift, 1.0))
        self.length = length - shift

    def at(self, t):
        start, place, slope = self.places[bisect_right(self.starts, t) - 1]
        return place + (t - start) * slope


def timeline(trace, tracks, labels, zero, end, paused, wanted=()):
    """(the timeline, {row of a drawn span: (group, place)}). The timeline has groups, one for each base
    track, arrows as `links`, and the gaps that are folded. wanted: rows that are drawn however short."""
    gaps = folds(tracks, zero, end, paused)
    rows = rows_of(trace)
    bases = {}
    for track in rows:
        bases.setdefault(trace.tracks[track].base, []).append(track)
    rank = {"thread": 0, "device": 1, "other": 2}

    def place(base):
        track = trace.tracks[base]
        return rank[track.kind], str(track.pid), track.sort if isinstance(track.sort, int) else base, base
    chosen = sorted(bases, key=lambda base: -tracks[base][2].length())[:TRACKS]
    texts, drawing = Texts(trace), Lanes(trace, Folded(gaps, end - zero), zero, wanted)
    groups, drawn = [], {}
    for base in sorted(chosen, key=place):
        track = trace.tracks[base]
        group = {"name": ("thread " if track.name == str(track.tid) else "") + label_of(trace, track),
                 "base": base, "kind": track.kind,
                 "busy": tracks[base][2].length(), "count": tracks[base][0], "rows": 0,
                 "spans": [], "density": {}}
        spans = drawing.group([rows[lane] for lane in sorted(bases[base])], group)
        before = 0
        for i, row, start, ns in spans:
            drawn[i] = len(groups), len(group["spans"]) // 6
            flags = trace.flags[i] & 7 | (8 if trace.warm_up[i] else 0)
            group["spans"] += [row, start - before, ns, labels.number(trace.name[i], trace.cat[i]), flags,
                               texts.number(i)]
            before = start
        groups.append(group)
    return {"groups": groups, "folds": gaps, "texts": texts.texts, "links": links(trace, drawn),
            "marks": [at for pause in islice(paused, 100) for at in pause],
            "left_out": len(bases) - len(chosen), "drawn": len(drawn)}, drawn


def links(trace, drawn):
    """Arrows between drawn spans, four numbers each: group and place of both ends. drawn: row -> (group,
    place)."""
    found = []
    for i, ends in arrows(trace).items():
        for other, _, way in ends:
            if way == "out" and i in drawn and other in drawn and len(found) < 4 * ARROWS:
                found += [*drawn[i], *drawn[other]]
    return found


def longest_of_names(trace):
    """The rows of the EACH longest spans of each of the NAMES names with most time."""
    longest, totals = {}, {}
    for i, (name, ns) in enumerate(zip(trace.name, trace.dur)):
        heap = longest.get(name)
        if heap is None:
            heap, totals[name] = longest.setdefault(name, []), 0
        totals[name] += ns
        if len(heap) < EACH:
            heappush(heap, (ns, -i))
        elif heap[0] < (ns, -i):
            heapreplace(heap, (ns, -i))
    most = sorted(totals, key=lambda name: (-totals[name], name))[:NAMES]
    return {-i for name in most for _, i in longest[name]}


class Lanes:
    """Sorts the spans of a group into rows by nesting: the long ones one by one, the others as density."""

    def __init__(self, trace, folded, zero, wanted):
        self.trace, self.folded, self.zero = trace, folded, zero
        self.scale = folded.length / COLUMNS or 1      # ns of a column
        # Spans longer than this are drawn one by one.
        self.shortest, self.wanted = -1, set()
        if len(trace) > SPANS:
            self.shortest = sorted(trace.dur)[-SPANS - 1]
            self.wanted = longest_of_names(trace).union(wanted)

    def group(self, lanes, group):
        """Takes the rows of each lane; sets group["rows"] and group["density"]. Returns (row of the trace,
        row of the group, start, ns) of the spans to be drawn one by one, by start."""
        spans, density = [], {}
        for rows in lanes:
            group["rows"] += self.lane(self.by_start(rows), group["rows"], spans, density)
        names = self.trace.names
        group["density"] = {
            row: ["".join(LEVELS[min(31, math.ceil(31 * ns / self.scale))] for ns in column),
                  names[max(ns_of, key=ns_of.get)]]
            for row, (column, ns_of) in density.items()}
        return sorted(spans, key=lambda s: (s[2], s[0]))

    def by_start(self, rows):
        """The rows ordered by start. Why the test: most come so."""
        start, dur = self.trace.start, self.trace.dur
        if all(start[a] <= start[b] for a, b in pairwise(rows)):
            return rows
        return sorted(rows, key=lambda i: (start[i], -dur[i], i))

    def lane(self, rows, first, spans, density):
        """One lane, from row `first` of the group on. Returns how many rows it takes."""
        start, dur = self.trace.start, self.trace.dur
        ends, deepest = [], 0
        for i in rows:
            begin, ns = start[i], dur[i]
            # A span that overlaps without nesting (in traces of other tools) is drawn below, too.
            while ends and ends[-1] <= begin and not (ends[-1] == begin and ns == 0 and len(ends) > 1):
                ends.pop()
            depth = len(ends)
            ends.append(max(begin + ns, begin + 1))
            if depth >= ROWS:
                continue
            deepest = max(deepest, depth + 1)
            if ns > self.shortest or i in self.wanted:
                spans.append((i, first + depth, begin - self.zero, ns))
            else:
                self.add(density.setdefault(first + depth, ([0.0] * COLUMNS, {})), i)
        return deepest

    def add(self, density, i):
        """Adds a span to a row's density: (how much of each column is filled, ns by name)."""
        column, names = density
        name, begin, ns = self.trace.name[i], self.trace.start[i] - self.zero, self.trace.dur[i]
        names[name] = names.get(name, 0) + ns
        scale, u, v = self.scale, self.folded.at(begin), self.folded.at(begin + ns)
        c = min(COLUMNS - 1, int(u / scale))
        while c < COLUMNS - 1 and v > (c + 1) * scale:
            column[c] += (c + 1) * scale - u
            c += 1
            u = c * scale
        column[c] += max(v - u, scale / 1000)


class Texts:
    """The arguments of spans as short texts. Equal texts are stored once."""

    def __init__(self, trace):
        self.trace, self.texts, self.numbers, self.room = trace, [""], {"": 0}, TEXTS

    def number(self, i):
        if self.room <= 0:
            return 0
        text = "  ".join(f"{key}: {value}" for key, value in self.trace.args(i).items()
                         if key not in HIDDEN)[:300]
        if text not in self.numbers:
            self.numbers[text] = len(self.texts)
            self.texts.append(text)
            self.room -= len(text) + 4
        return self.numbers[text]
