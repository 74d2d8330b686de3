# SPDX-License-Identifier: MIT
"""The flame graph: call paths as a tree, cut to what a screen can show."""

from ...tables.call_paths import CallPaths

LEAST = 2000          # parts of the whole; a frame with less is not drawn
FRAMES = 2000


def flame(trace):
    """Frames [name, number of the frame around it or -1, width, total, self, count], each behind the one
    around it. Width is self time with the widths of the frames inside. None: there is no time."""
    paths = CallPaths(trace)
    width = [max(0, own) for own in paths.own]
    # Why backwards: a path has a larger number than the one around it.
    for n in range(len(width) - 1, -1, -1):
        if paths.above[n] >= 0:
            width[paths.above[n]] += width[n]
    whole = sum(ns for ns, above in zip(width, paths.above) if above < 0)
    # By width, an outer one first of equals: so the one around a drawn frame is drawn.
    drawn = sorted((n for n, ns in enumerate(width) if ns and LEAST * ns >= whole),
                   key=lambda n: (-width[n], n))[:FRAMES]
    place, frames = {-1: -1}, []
    for n in drawn:
        place[n] = len(frames)
        frames.append([paths.names[n], place[paths.above[n]], width[n], paths.total[n], paths.own[n],
                       paths.count[n]])
    return frames or None
