# SPDX-License-Identifier: MIT
"""One value for each span or track, from its other columns."""

from array import array
from itertools import compress

from ..base.contract import NULL, OPERATOR, SPAN
from . import native


def moved(values, more):
    """The array with `more` added to every number. It may be the same array, changed."""
    if native.library():
        native.call("add", len(values), values, more)
        return values
    return array("q", [value + more for value in values])


def set_kinds(kind, name, track, of_name, host, operators):
    """Sets the kinds of spans on host tracks: to that of their name, else to OPERATOR if they have that
    index.

    of_name: bytes by name, 0 for no kind. host: bytes by track. operators: the index column, or None."""
    if native.library():
        native.call("kinds", len(kind), name, track, of_name, host, operators, kind)
        return
    for i, number in enumerate(name):
        if host[track[i]]:
            if of_name[number]:
                kind[i] = of_name[number]
            if operators and operators[i] != NULL and kind[i] == SPAN:
                kind[i] = OPERATOR


def tracks_with(track, kind, wanted, count):
    """Bytes by track: 1 if a span of that kind lies on it."""
    of_kind = kind.translate(bytes(number == wanted for number in range(256)))
    found = set(compress(track, of_kind))
    return bytearray(number in found for number in range(count))


def steps_on(track, name, compute, step, other):
    """The track of every span that has a step (instruction_index) and whose name computes; `other` for the
    rest.

    compute: bytes by name."""
    if step is None:
        return array("I", [other]) * len(track)
    if native.library():
        out = native.zeros("I", len(track))
        native.call("steps", len(track), track, name, compute, step, other, out)
        return out
    return array("I", (t if s != NULL and compute[n] else other for t, n, s in zip(track, name, step)))
