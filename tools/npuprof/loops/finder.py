# SPDX-License-Identifier: MIT
"""What is open, or begins, at a moment."""

import bisect
from array import array

from . import native


class Finder:
    """Rows of each track by start, the longest first: what is open, or begins, at a moment."""

    def __init__(self, track, start, dur, tracks):
        self.start, self.dur = start, dur
        self.ends, self.rows = native.zeros("q", tracks), native.zeros("i", len(start))     # rows of track t end at ends[t]
        if native.library():
            native.call("by_track", len(start), track, start, dur, tracks, self.ends, self.rows)
            return
        of = [[] for _ in range(tracks)]
        for i, number in enumerate(track):
            of[number].append(i)
        last = 0
        for number, rows in enumerate(of):
            rows.sort(key=lambda i: (start[i], -dur[i], i))
            self.rows[last:last + len(rows)] = array("i", rows)
            last = self.ends[number] = last + len(rows)

    def after(self, track, ns):
        """The first place in `rows` of a row of the track that begins after that, and the first of the track."""
        first = self.ends[track - 1] if track else 0
        return bisect.bisect_right(self.rows, ns, first, self.ends[track], key=self.start.__getitem__), first

    def innermost(self, tracks, moments):
        """The rows of the innermost spans of these tracks (array "I") that hold these ns (array "q"); -1 for none."""
        out, start, dur = array("i", [-1]) * len(tracks), self.start, self.dur
        if native.library():
            native.call("innermost", len(tracks), tracks, moments, start, dur, self.ends, self.rows, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            # The newest begun span; its ancestors follow. Siblings that ended before are skipped by walking up their parents.
            k, first = self.after(track, ns)
            for k in range(k - 1, max(first, k - 4096) - 1, -1):
                i = self.rows[k]
                if start[i] + dur[i] > ns or (start[i] == ns and not dur[i]):
                    out[n] = i
                    break
        return out

    def ends_of(self, number):
        """The ends of a track's spans, ascending."""
        rows = self.rows[self.ends[number - 1] if number else 0:self.ends[number]]
        begins, lengths = (array("q", map(column.__getitem__, rows)) for column in (self.start, self.dur))
        if native.library():
            out = native.zeros("q", len(rows))
            native.call("ends", len(rows), begins, lengths, out, native.zeros("q", len(rows)))
            return out
        return array("q", sorted(map(int.__add__, begins, lengths)))

    def at(self, track, ns):
        """The row of the innermost span of `track` that holds `ns`, or -1."""
        return self.innermost(array("I", [track]), array("q", [ns]))[0]

    def beginning(self, tracks, moments, kind, wanted):
        """The rows of that kind that begin just then, the longest of several; -1 for none."""
        out = array("i", [-1]) * len(tracks)
        if native.library():
            native.call("beginning", len(tracks), tracks, moments, self.start, self.ends, self.rows, kind, wanted, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            k, first = self.after(track, ns)
            while k > first and self.start[self.rows[k - 1]] == ns:
                k -= 1
                if kind[self.rows[k]] == wanted:
                    out[n] = self.rows[k]
        return out
