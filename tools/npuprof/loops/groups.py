# SPDX-License-Identifier: MIT
"""Groups of spans: by execution, by name, by category."""

from array import array

from . import kernels
from .columns import by_start
from .native import call, zeros


def executions(track, start, dur, base_of, number, step):
    """Groups device spans by execution.

    Returns three arrays: the row of each group's execution (-1: none), the end of its members, and the
    members of all groups. On each track, groups are in the order in which the executions end.

    An execution is a span without a step (instruction_index). Other spans belong to the latest begun
    execution that encloses them and has the same number (execution_index), or has none. At most 16 are open
    at a time. If time steps back, another device begins: in a CSV its PE may have the same number.

    base_of: by track, the base track of a device's track, -1 for other tracks. number, step: index columns or
    None."""
    count, found = len(start), zeros("q", 2)
    groups, ends, members = (zeros("i", count) for _ in range(3))
    call(kernels.executions, count, track, start, dur, array("i", base_of), number, step,
         *(zeros("i", 16) for _ in range(3)), zeros("i", count), found, groups, ends, members)
    del groups[found[0]:], ends[found[0]:], members[found[1]:]
    return groups, ends, members


def runs(grouping, start, dur, name, compute, warm):
    """For the groups of executions(): arrays of the union and of the sum of each group's compute spans, and
    {name: (count, total)} of the compute spans outside warm-up. compute: bytes by name, 1 if it computes."""
    groups, ends, members = grouping
    run, added = zeros("q", len(groups)), zeros("q", len(groups))
    counts, totals, order = (zeros(kind, len(compute)) for kind in "qqI")
    names = call(kernels.runs, len(groups), groups, ends, members, start, dur, name, compute, warm, run,
                 added, counts, totals, order)
    return run, added, {n: (counts[n], totals[n]) for n in order[:names]}


def grouped(key, keys, dur):
    """A list by key, from 0 to keys - 1: the durations of its spans, ascending."""
    ends, out = zeros("q", keys), zeros("q", len(dur))
    call(kernels.grouped, len(dur), key, keys, dur, ends, out)
    view = memoryview(out)
    return [view[first:last] for first, last in zip([0, *ends], ends)]


def own_time(track, start, dur, bases, stack_of):
    """Of all rows: on a stack, each moment is that of the latest begun span of those that are open, so that
    no two share one; beside the stacks a span has all its time. bases, stack_of: by track, its base, and the
    base whose stack it shares or -1."""
    count = len(dur)
    (_, order), own = by_start(track, start, dur, bases), zeros("q", count)
    call(kernels.own_time, count, order, track, start, dur, array("i", stack_of), zeros("i", count), own)
    return own


def sums(key, keys, values):
    """The sum by key, from 0 to keys - 1, of a value of each span."""
    out = zeros("q", keys)
    call(kernels.sums, len(values), key, values, out)
    return out
