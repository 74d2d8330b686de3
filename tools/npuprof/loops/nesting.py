# SPDX-License-Identifier: MIT
"""Parents, roots and warm-up of all spans."""

from array import array

from ..base.contract import RECORD, WARM_UP
from . import native


def nest(track, start, dur, stack_of):
    """Parents by time: on each stack, the innermost span that encloses it. stack_of: by track, -1 for no
    stack."""
    parents = array("i", [-1]) * len(start)
    if native.library():
        native.call("nest", len(start), track, start, dur, array("i", stack_of),
                    array("i", [-1]) * len(stack_of), parents)
        return parents
    stacks = [[] for _ in stack_of]            # of (end, row)
    stacks = [stacks[n] if n >= 0 else None for n in stack_of]
    for i, (number, begin, ns) in enumerate(zip(track, start, dur)):
        stack = stacks[number]
        if stack is None:
            continue
        end = begin + ns
        while stack and (stack[-1][0] < end or stack[-1][0] <= begin):
            stack.pop()
        if stack:
            parents[i] = stack[-1][1]
        stack.append((end, i))
    return parents


def nest_by_id(span, above):
    """Parents by ids. above: the parent's id, 0 for none."""
    parents = array("i", [-1]) * len(span)
    if native.library() and native.call("nest_by_id", len(span), span, above, parents) == 0:
        return parents
    wanted = set(above)
    rows = {own: i for i, own in enumerate(span) if own in wanted}
    for i, parent in enumerate(above):
        if parent:
            parents[i] = rows.get(parent, -1)
    return parents


def roots_of(parents, kind):
    """The row that gives each row its trace id: the record around it, else its uppermost ancestor."""
    roots = array("i", range(len(parents)))
    if native.library():
        native.call("roots", len(parents), kind, parents, roots)
        return roots
    for i, parent in enumerate(parents):
        if kind[i] in (RECORD, WARM_UP):
            continue
        if 0 <= parent < i:
            roots[i] = roots[parent]
        elif parent >= 0:
            steps = 0
            while kind[parent] not in (RECORD, WARM_UP) and parents[parent] >= 0 and steps < 10000:
                parent, steps = parents[parent], steps + 1
            roots[i] = parent
    return roots


def warm_up(kind, parents, marked, order=None):
    """Sets marked[i] = 1 for every warm-up record and every row inside one. Rows already marked stay.

    order: the rows with parents first; None if they come so."""
    if native.library() and order is None:
        native.call("warm_up", len(parents), kind, parents, marked)
        return
    for i in order or range(len(parents)):
        above, steps = parents[i], 0
        while above > i and not marked[above] and kind[above] != WARM_UP and steps < 10000:
            above, steps = parents[above], steps + 1
        if kind[i] == WARM_UP or (above >= 0 and (marked[above] or kind[above] == WARM_UP)):
            marked[i] = 1


def nest_devices(grouping, callers, called, parents):
    """Sets the parents of device spans: the execution around them, else the caller's span that an arrow comes
    from.

    callers, called: the rows at both ends of each arrow."""
    groups, ends, members = grouping
    if native.library():
        native.call("nest_devices", len(groups), groups, ends, members, len(called), callers, called, parents)
        return
    first = 0
    for execution, last in zip(groups, ends):
        if execution >= 0:
            for i in members[first:last]:
                parents[i] = execution
        first = last
    for caller, i in zip(reversed(callers), reversed(called)):
        if i >= 0 and parents[i] < 0:
            parents[i] = caller
