# SPDX-License-Identifier: MIT
"""Groups of spans: by execution, by name, by category."""

from array import array

from ..base.contract import NULL
from . import native


def executions(track, start, dur, base_of, number, step):
    """Groups device spans by execution.

    Returns three arrays: the row of each group's execution (-1: none), the end of its members, and the
    members of all groups. On each track, groups are in the order in which the executions end.

    An execution is a span without a step (instruction_index). Other spans belong to the latest begun
    execution that encloses them and has the same number (execution_index), or has none. At most 16 are open
    at a time. If time steps back, another device begins: in a CSV its PE may have the same number.

    base_of: by track, the base track of a device's track, -1 for other tracks. number, step: index columns or
    None."""
    count = len(start)
    if native.library():
        groups, ends, members = (native.zeros("i", count) for _ in range(3))
        found = native.call("executions", count, track, start, dur, array("i", base_of), number, step,
                            native.zeros("i", count), groups, ends, members)
        del groups[found:], ends[found:]
        del members[ends[-1] if found else 0:]
        return groups, ends, members
    groups, ends, members = array("i"), array("i"), array("i")

    def put(row, inside):
        groups.append(row)
        members.extend(inside)
        ends.append(len(members))
    is_open, base, latest = [], -1, 0  # (start, end, row, index, inside), oldest first
    for i, n in enumerate(track):
        here = base_of[n]
        if here < 0:
            continue
        begin = start[i]
        end = begin + dur[i]
        other = here != base or begin < latest
        if is_open:
            for e in list(is_open) if other or any(e[1] < begin for e in is_open) else ():
                if other or e[1] < begin:
                    is_open.remove(e)
                    put(e[2], e[4])
        base, latest = here, begin
        index = number[i] if number else NULL
        if not step or step[i] == NULL:
            if len(is_open) == 16:
                newest = is_open.pop()
                put(newest[2], newest[4])
            is_open.append((begin, end, i, index, []))
            continue
        for e in reversed(is_open):
            if e[0] <= begin and end <= e[1] and (index == NULL or e[3] == NULL or e[3] == index):
                e[4].append(i)
                break
        else:
            put(-1, [i])
    for e in is_open:
        put(e[2], e[4])
    return groups, ends, members


def runs(grouping, start, dur, name, compute, warm):
    """For the groups of executions(): arrays of the union and of the sum of each group's compute spans, and
    {name: (count, total)} of the compute spans outside warm-up. compute: bytes by name, 1 if it computes."""
    groups, ends, members = grouping
    run, added = native.zeros("q", len(groups)), native.zeros("q", len(groups))
    if native.library():
        counts, totals, order = (native.zeros(kind, len(compute)) for kind in "qqI")
        names = native.call("runs", len(groups), groups, ends, members, start, dur, name, compute, warm, run,
                            added, counts, totals, order)
        return run, added, {n: (counts[n], totals[n]) for n in order[:names]}
    found, first = {}, 0
    for g, (execution, last) in enumerate(zip(groups, ends)):
        inside = members[first:last]
        first = last
        until = None
        for i in inside:
            if not compute[name[i]]:
                continue
            begin, ns = start[i], dur[i]
            added[g] += ns
            if until is None or begin >= until:
                run[g] += ns
                until = begin + ns
            elif begin + ns > until:
                run[g] += begin + ns - until
                until = begin + ns
        if warm[execution if execution >= 0 else inside[0]]:
            continue
        for i in [execution, *inside] if execution >= 0 else inside:
            if compute[name[i]]:
                count, total = found.get(name[i], (0, 0))
                found[name[i]] = count + 1, total + dur[i]
    return run, added, found


def grouped(key, keys, dur):
    """A list by key, from 0 to keys - 1: the durations of its spans, ascending."""
    if native.library():
        ends, out = native.zeros("q", keys), native.zeros("q", len(dur))
        native.call("grouped", len(dur), key, keys, dur, ends, out, native.zeros("q", len(dur)))
        view, first = memoryview(out), 0
        columns = []
        for last in ends:
            columns.append(view[first:last])
            first = last
        return columns
    columns = [array("q") for _ in range(keys)]
    append = [column.append for column in columns]
    for number, ns in zip(key, dur):
        append[number](ns)
    return [array("q", sorted(column)) for column in columns]


def own_time(key, dur, parents, track, host, totals):
    """Totals by key minus the durations of children on host tracks. host: bytes by track."""
    own = array("q", totals)
    if native.library():
        native.call("self", len(dur), key, dur, parents, track, host, own)
        return own
    for i, parent in enumerate(parents):
        if parent >= 0 and host[track[i]]:
            own[key[parent]] -= dur[i]
    return own
