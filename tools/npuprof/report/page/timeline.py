# SPDX-License-Identifier: MIT
"""The timeline's figures: tracks, spans one by one or as density, arrows, and gaps that are folded."""

import math
from array import array
from bisect import bisect_right
from itertools import islice, pairwise

from ...tables.arithmetic import union, union_of
from ...tables.submissions import arrows
from ...tables.tracks import label_of

SPANS = 20_000        # drawn one by one
COLUMNS = 1_600       # of the density of the others
TRACKS, ROWS = 64, 12  # tracks, and nested spans in one, that are drawn
TEXTS = 400_000       # bytes of arguments
ARROWS = 4_000
LEVELS = "0123456789abcdefghijklmnopqrstuv"
HIDDEN = {"trace_id", "span_id", "kind", "stamp", "start_ticks", "end_ticks"}


class Labels:
    """(name, category) -> a small number; rows: [name, category]."""

    def __init__(self, trace):
        self.trace, self.rows, self.numbers = trace, [], {}

    def number(self, name, cat=0):
        key = name, cat
        if key not in self.numbers:
            self.numbers[key] = len(self.rows)
            self.rows.append([self.trace.names[name], self.trace.names[cat]])
        return self.numbers[key]


def pauses(trace, zero, end):
    """Intervals in which the program had paused the recording."""
    found, since = [], None
    for at, name in sorted((instant.ts, instant.name) for instant in trace.instants
                           if instant.name.startswith("npuprof ")):
        at = max(zero, min(end, at)) - zero
        if name == "npuprof paused" and since is None:
            since = at
        elif name == "npuprof resumed" and since is not None:
            found.append([since, at])
            since = None
    return union([pause for pause in found + ([[since, end - zero]] if since is not None else [])
                  if pause[0] < pause[1]])


def folds(tracks, zero, end, paused):
    """Gaps [from, to, whether it was a pause] in all tracks at once that would fill more than a quarter of what is left, and
    pauses above 3 %."""
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
    """Time without the gaps; each is as wide as 2 % of the rest."""

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


def timeline(trace, tracks, labels, zero, end, paused):
    gaps = folds(tracks, zero, end, paused)
    folded = Folded(gaps, end - zero)
    shortest = drawn_from(trace)
    rows = {}
    for i, track in enumerate(trace.track):
        if track not in rows:
            rows[track] = array("q")
        rows[track].append(i)
    bases = {}
    for track in rows:
        bases.setdefault(trace.tracks[track].base, []).append(track)
    rank = {"thread": 0, "device": 1, "other": 2}

    def place(base):
        track = trace.tracks[base]
        return rank[track.kind], str(track.pid), track.sort if isinstance(track.sort, int) else base, base
    chosen = sorted(bases, key=lambda base: -tracks[base][2].length())[:TRACKS]
    groups, drawn = [], {}
    texts = Texts(trace)
    for base in sorted(chosen, key=place):
        track = trace.tracks[base]
        group = {"name": ("thread " if track.name == str(track.tid) else "") + label_of(trace, track),
                 "kind": track.kind, "busy": tracks[base][2].length(), "count": tracks[base][0], "rows": 0,
                 "spans": [],
                 "density": {}}
        spans = []
        for lane in sorted(bases[base]):
            first = group["rows"]
            group["rows"] += lane_rows(trace, rows[lane], folded, zero, shortest, first, spans,
                                       group["density"])
        spans.sort(key=lambda s: (s[2], s[0]))
        before = 0
        for i, row, start, ns in spans:
            drawn[i] = len(groups), len(group["spans"]) // 6
            flags = trace.flags[i] & 7 | (8 if trace.warm_up[i] else 0)
            group["spans"] += [row, start - before, ns, labels.number(trace.name[i], trace.cat[i]), flags,
                               texts.number(i)]
            before = start
        scale = folded.length / COLUMNS or 1
        group["density"] = {
            row: ["".join(LEVELS[min(31, math.ceil(31 * ns / scale))] for ns in column),
                  trace.names[max(names, key=names.get)]]
            for row, (column, names) in group["density"].items()}
        groups.append(group)
    links = []
    for i, ends in arrows(trace).items():
        for other, _, way in ends:
            if way == "out" and i in drawn and other in drawn and len(links) < 4 * ARROWS:
                links += [*drawn[i], *drawn[other]]
    return {"groups": groups, "folds": gaps, "texts": texts.texts, "links": links,
            "marks": [at for pause in islice(paused, 100) for at in pause],
            "left_out": len(bases) - len(chosen), "drawn": len(drawn)}


def drawn_from(trace):
    """Spans longer than this are drawn one by one."""
    return sorted(trace.dur)[-SPANS - 1] if len(trace) > SPANS else -1


def lane_rows(trace, rows, folded, zero, shortest, first, spans, density):
    """Sorts the spans of one lane into rows by nesting: to be drawn one by one into `spans`, the others into `density`: how
    much of each column they fill, and the time of each name. Returns how many rows that are."""
    start, dur = trace.start, trace.dur
    last = -1 << 63
    for i in rows:
        if start[i] < last:
            rows = sorted(rows, key=lambda i: (start[i], -dur[i], i))
            break
        last = start[i]
    ends, deepest = [], 0
    scale = folded.length / COLUMNS or 1
    for i in rows:
        begin, ns = start[i], dur[i]
        stop = begin + ns
        # Why stop: a span that overlaps without nesting (in traces of others) is drawn below, too.
        while ends and ends[-1] <= begin and not (ends[-1] == begin and ns == 0 and len(ends) > 1):
            ends.pop()
        depth = len(ends)
        ends.append(max(stop, begin + 1))
        if depth >= ROWS:
            continue
        deepest = max(deepest, depth + 1)
        if ns > shortest:
            spans.append((i, first + depth, begin - zero, ns))
        else:
            if first + depth not in density:
                density[first + depth] = [0.0] * COLUMNS, {}
            column, names = density[first + depth]
            names[trace.name[i]] = names.get(trace.name[i], 0) + ns
            u, v = folded.at(begin - zero), folded.at(stop - zero)
            c = min(COLUMNS - 1, int(u / scale))
            while c < COLUMNS - 1 and v > (c + 1) * scale:
                column[c] += (c + 1) * scale - u
                c += 1
                u = c * scale
            column[c] += max(v - u, scale / 1000)
    return deepest


class Texts:
    """The arguments of spans as short texts, each once."""

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
