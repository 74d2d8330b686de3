# SPDX-License-Identifier: MIT
"""Which span is open, or begins, at a moment."""

import bisect
from array import array

from . import kernels
from .native import call, zeros


class Finder:
    """The rows of each track ordered by start, of equal starts the longest first."""

    def __init__(self, track, start, dur, tracks):
        self.start, self.dur = start, dur
        # The rows of track t end at ends[t].
        self.ends, self.rows = zeros("q", tracks), zeros("i", len(start))
        call(kernels.by_track, len(start), track, start, dur, tracks, self.ends, self.rows)

    def after(self, track, ns):
        """Two places in `rows`: of the track's first row that begins after `ns`, and of its first row."""
        first = self.ends[track - 1] if track else 0
        return bisect.bisect_right(self.rows, ns, first, self.ends[track], key=self.start.__getitem__), first

    def innermost(self, tracks, moments):
        """For each track (array "I") and moment (array "q"): the row of the innermost span open then; -1 for
        none."""
        out = array("i", [-1]) * len(tracks)
        call(kernels.innermost, len(tracks), tracks, moments, self.start, self.dur, self.ends, self.rows, out)
        return out

    def at(self, track, ns):
        """The row of the innermost span of `track` that is open at `ns`; -1: none."""
        return self.innermost(array("I", [track]), array("q", [ns]))[0]

    def beginning(self, tracks, moments, kind, wanted):
        """For each track and moment: the row of that kind that begins exactly then, the longest of several;
        -1: none."""
        out = array("i", [-1]) * len(tracks)
        call(kernels.beginning, len(tracks), tracks, moments, self.start, self.ends, self.rows, kind, wanted,
             out)
        return out
