# SPDX-License-Identifier: MIT
"""Owners of the time: whose spans the critical paths go through, and for how much of them."""

from .paths import by_owner

LOOKED_AT = 32             # inferences whose paths are looked at, spread over the run


def owners(replay):
    """{(kind, name): percent}, the largest first: the larger share of the paths of the inferences looked at,
    else of the window's, where all that may be waiting waits and where it works. kind and name are those of
    paths.py. {} if there is no replay."""
    found = {}
    for reading in (replay, replay.working) if replay.why is None else ():
        for owner, share in shares(pieces_of(reading)).items() if reading else ():
            found[owner] = max(share, found.get(owner, 0))
    return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


def pieces_of(replay):
    """The Pieces of some inferences together, or of the window."""
    count = len(replay.points.inferences)
    if not count:
        return replay.paths.whole()
    return (piece for number in range(0, count, -(-count // LOOKED_AT))
            for piece in replay.paths.of_inference(number))


def shares(pieces):
    """{owner: percent of the whole}"""
    sums = by_owner(pieces)
    whole = sum(ns for _, ns in sums.values())
    return {owner: 100 * ns / whole for owner, (_, ns) in sums.items()} if whole > 0 else {}
