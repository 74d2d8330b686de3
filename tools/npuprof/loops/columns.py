# SPDX-License-Identifier: MIT
"""One value for each span: its kind, track, parent, root, and whether it is warm-up."""

from array import array
from itertools import compress

from ..base.contract import NULL
from . import kernels, native
from .native import call, zeros


def moved(values, more):
    """The array, with `more` added to every number."""
    call(kernels.add, len(values), values, more)
    return values


def set_kinds(kind, name, track, of_name, host, operators):
    """Sets the kinds of spans on host tracks: to that of their name, else to OPERATOR if they have that
    index.

    of_name: bytes by name, 0 for no kind. host: bytes by track. operators: the index column, or None."""
    call(kernels.kinds, len(kind), name, track, of_name, host, operators, kind)


def tracks_with(track, kind, wanted, count):
    """Bytes by track: 1 if a span of that kind lies on it."""
    of_kind = kind.translate(bytes(number == wanted for number in range(256)))
    found = set(compress(track, of_kind))
    return bytearray(number in found for number in range(count))


def steps_on(track, name, compute, step, other):
    """The track of every span that has a step (instruction_index) and whose name computes; `other` for the
    rest.

    compute: bytes by name."""
    out = array("I", [other]) * len(track)
    if step is not None:
        call(kernels.steps, len(track), track, name, compute, step, other, out)
    return out


def nest(track, start, dur, stack_of):
    """Parents by time: on each stack, the innermost span that encloses it. stack_of: by track, the track
    whose stack it shares, -1 for no stack."""
    parents = array("i", [-1]) * len(start)
    call(kernels.nest, len(start), track, start, dur, array("i", stack_of), array("i", [-1]) * len(stack_of),
         parents)
    return parents


def nest_by_id(span, above):
    """Parents by ids. above: the parent's id, 0 for none. Why not in kernels.py: C has no dict."""
    parents = array("i", [-1]) * len(span)
    if native.library() and call("nest_by_id", len(span), span, above, parents) == 0:
        return parents
    wanted = set(above)
    rows = {own: i for i, own in enumerate(span) if own in wanted}
    for i, parent in enumerate(above):
        if parent:
            parents[i] = rows.get(parent, -1)
    return parents


def nest_devices(grouping, callers, called, parents):
    """Sets the parents of device spans: the execution around them, else the caller's span that an arrow comes
    from.

    callers, called: the rows at both ends of each arrow."""
    groups, ends, members = grouping
    call(kernels.nest_devices, len(groups), groups, ends, members, len(called), callers, called, parents)


def roots_of(parents, kind):
    """The row that gives each row its trace id: the record around it, else its uppermost ancestor."""
    roots = array("i", range(len(parents)))
    call(kernels.roots, len(parents), kind, parents, roots)
    return roots


def warm_up(kind, parents, marked, order=None):
    """Sets marked[i] = 1 for every warm-up record and every row inside one. Rows already marked stay.

    order: the rows with parents first, as array "i"; None if they come so."""
    call(kernels.warm_up, len(parents), order, kind, parents, marked)


def latest(first, one, second, two):
    """Replay: the time of each node is the latest of up to two nodes before it, each plus its lag. A first of
    -1 is time 0; a second of -1 is none. Why a list in Python: its sums have no end."""
    out = zeros("q", len(one)) if native.library() else [0] * len(one)
    call(kernels.latest, len(one), first, one, second, two, out)
    return out


def placed(track, name, device, names, warm, flags, skip):
    """A key of each span: its name's number, plus `names` on a device; 2 * names in warm-up and with one of
    the flags `skip`. device: bytes by track."""
    out, skipped = zeros("I", len(name)), bytearray(bool(f & skip) for f in range(256))
    call(kernels.placed, len(name), track, name, device, names, warm, skipped, flags, out)
    return out


def permuted(column, order):
    """The array or bytearray with its elements in that order, an array "i"."""
    if len(order) < 64:                # the fast path: a call of C costs as much as so many elements
        few = map(column.__getitem__, order)
        return bytearray(few) if isinstance(column, bytearray) else array(column.typecode, few)
    wide = {1: "bytes", 4: "ints", 8: "longs"}[1 if isinstance(column, bytearray) else column.itemsize]
    out = bytearray(len(order)) if wide == "bytes" else zeros(column.typecode, len(order))
    call(getattr(kernels, f"permute_{wide}"), len(order), order, column, out)
    return out


def by_start(track, start, dur, bases):
    """Of each row its base track; and the rows by that, start and length, the longest first. bases: by track.
    """
    count, tracks = len(start), len(bases)
    base, ends, order = zeros("I", count), zeros("q", tracks), zeros("i", count)
    call(kernels.permute_ints, count, track, array("I", bases), base)
    call(kernels.by_track, count, base, start, dur, tracks, ends, order)
    return base, order


def row_order(track, start, dur, bases):
    """The rows of by_start(); the (first, end) of those that are equal in it, by place; and whether it is
    another order than theirs."""
    count = len(start)
    base, order = by_start(track, start, dur, bases)
    pairs = zeros("q", 2 * call(kernels.equal_rows, count, base, start, dur, order, None))
    call(kernels.equal_rows, count, base, start, dur, order, pairs)
    return order, list(zip(pairs[::2], pairs[1::2])), bool(call(kernels.is_moved, count, order))


def on_tracks(track, wanted):
    """The rows on those tracks. wanted: bytes by track."""
    rows = zeros("i", len(track))
    del rows[call(kernels.on_tracks, len(track), track, wanted, rows):]
    return rows


def turns(track, values, tracks):
    """The rows whose value is another than that of the row before them on their track."""
    rows, last = zeros("i", len(track)), array("q", [NULL]) * tracks
    del rows[call(kernels.turns, len(track), track, values, last, rows):]
    return rows
