# SPDX-License-Identifier: MIT
"""Which span is open, or begins, at a moment."""

import bisect
from array import array

from . import native


class Finder:
    """The rows of each track ordered by start, of equal starts the longest first."""

    def __init__(self, track, start, dur, tracks):
        self.start, self.dur = start, dur
        # The rows of track t end at ends[t].
        self.ends, self.rows = native.zeros("q", tracks), native.zeros("i", len(start))
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
        """Two places in `rows`: of the track's first row that begins after `ns`, and of its first row."""
        first = self.ends[track - 1] if track else 0
        return bisect.bisect_right(self.rows, ns, first, self.ends[track], key=self.start.__getitem__), first

    def innermost(self, tracks, moments):
        """For each track (array "I") and moment (array "q"): the row of the innermost span open then; -1 for
        none."""
        out, start, dur = array("i", [-1]) * len(tracks), self.start, self.dur
        if native.library():
            native.call("innermost", len(tracks), tracks, moments, start, dur, self.ends, self.rows, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            # From the latest begun span backwards: the first that is still open is the innermost.
            k, first = self.after(track, ns)
            for k in range(k - 1, max(first, k - 4096) - 1, -1):
                i = self.rows[k]
                if start[i] + dur[i] > ns or (start[i] == ns and not dur[i]):
                    out[n] = i
                    break
        return out

    def ends_of(self, number):
        """The times at which the spans of a track end, ascending."""
        rows = self.rows[self.ends[number - 1] if number else 0:self.ends[number]]
        begins, lengths = (array("q", map(column.__getitem__, rows)) for column in (self.start, self.dur))
        if native.library():
            out = native.zeros("q", len(rows))
            native.call("ends", len(rows), begins, lengths, out, native.zeros("q", len(rows)))
            return out
        return array("q", sorted(map(int.__add__, begins, lengths)))

    def at(self, track, ns):
        """The row of the innermost span of `track` that is open at `ns`; -1: none."""
        return self.innermost(array("I", [track]), array("q", [ns]))[0]

    def beginning(self, tracks, moments, kind, wanted):
        """For each track and moment: the row of that kind that begins exactly then, the longest of several;
        -1: none."""
        out = array("i", [-1]) * len(tracks)
        if native.library():
            native.call("beginning", len(tracks), tracks, moments, self.start, self.ends, self.rows, kind,
                        wanted, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            k, first = self.after(track, ns)
            while k > first and self.start[self.rows[k - 1]] == ns:
                k -= 1
                if kind[self.rows[k]] == wanted:
                    out[n] = self.rows[k]
        return out
