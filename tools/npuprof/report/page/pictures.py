# SPDX-License-Identifier: MIT
"""The figures of two pictures: operators against the peaks, and the critical path by owner."""

from itertools import groupby

from ...analysis import replay
from ...analysis.whatif import path_rows
from .replay import assumed

OWNERS, PIECES, POINTS = 12, 300, 40      # of the list, the strip and the roof
LEAST = 1000                              # parts of the path; an owner with less is not named


def roof(facts):
    """Each operator with work or bytes by the time it takes, the longest first; None: nothing to compare."""
    found, peaks = facts.roof, facts.roof.peaks
    if not found:
        return None
    whole = sum(ns for _, ns in facts.engines.operators.values()) or 1
    points = [{"name": name, "total": limit.total_ns, "share": limit.total_ns / whole, "bound": limit.bound,
               "rate": limit.ops and limit.ops * 1e9 / limit.total_ns,
               "per_byte": limit.ops and limit.bytes and limit.ops / limit.bytes,
               "compute": number(limit.compute_pct), "memory": number(limit.memory_pct),
               "waste": number(limit.waste_pct), "above": limit.headroom_ns}
              for name, limit in sorted(found.items(), key=lambda item: (-item[1].total_ns, item[0]))]
    return {"ops": number(peaks.ops_per_s), "bytes": number(peaks.bytes_per_s), "device": peaks.name,
            "measured": peaks.measured, "refused": found.refused, "points": points[:POINTS],
            "left_out": len(points[POINTS:])}


def number(value):
    return None if value is None else float(value)


def path(facts, zero):
    """What the end had to wait for. owners: [kind, name, ns, share] of the window without its pauses; pieces:
    [kind, name, start, ns] of the inference whose time is the median. None: there is no replay."""
    part = facts.part
    found = replay.of(part)
    if found.why:
        return None
    rows = [row for row in path_rows(part) if row[3] > 0 and row[0] != "pause"]
    whole = sum(row[3] for row in rows) or 1
    owners = [[kind, name, ns, ns / whole] for kind, name, _, ns, *_ in rows[:OWNERS] if LEAST * ns >= whole]
    rest = whole - sum(owner[2] for owner in owners)
    if rest and len(owners) < len(rows):
        owners.append(["rest", f"{len(rows) - len(owners)} more", rest, rest / whole])
    return {"owners": owners, "pieces": pieces(found, zero), "assumed": assumed(found),
            "of": "" if part is facts else part.window.text}


def pieces(found, zero):
    """Of the inference whose time is the median, in the order of time; pieces of one owner that follow each
    other are one. []: there is no inference, or its path is too long to be seen."""
    trace, rows = found.trace, found.points.inferences
    if not rows:
        return []
    middle = sorted(range(len(rows)), key=lambda n: (trace.dur[rows[n]], n))[(len(rows) - 1) // 2]
    out = []
    for (kind, name), run in groupby(reversed(list(found.paths.of_inference(middle))), lambda one: one[:2]):
        run = list(run)
        out.append([kind, name, run[0].start - zero, run[-1].end - run[0].start])
    return out if len(out) <= PIECES else []
