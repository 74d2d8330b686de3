# SPDX-License-Identifier: MIT
"""One value for each span or track, from its other columns."""

from array import array

from ..base.contract import NULL, OPERATOR, SPAN


def moved(values, more):
    """The array with `more` added to every number."""
    return array("q", [value + more for value in values])


def set_kinds(kind, name, track, of_name, host, operators):
    """Sets the kinds of spans on host tracks: to that of their name, else to OPERATOR if they have that
    index.

    of_name: bytes by name, 0 for no kind. host: bytes by track. operators: the index column, or None."""
    if not operators and not any(of_name):
        return
    for i, number in enumerate(name):
        if host[track[i]]:
            if of_name[number]:
                kind[i] = of_name[number]
            if operators and operators[i] != NULL and kind[i] == SPAN:
                kind[i] = OPERATOR


def tracks_with(track, kind, wanted, count):
    """Bytes by track: 1 if a span of that kind lies on it."""
    out = bytearray(count)
    for number, own in zip(track, kind):
        if own == wanted:
            out[number] = 1
    return out


def steps_on(track, name, compute, step, other):
    """The track of every span that has a step (instruction_index) and whose name computes; `other` for the
    rest.

    compute: bytes by name."""
    if step is None:
        return array("I", [other]) * len(track)
    return array("I", (t if s != NULL and compute[n] else other for t, n, s in zip(track, name, step)))
