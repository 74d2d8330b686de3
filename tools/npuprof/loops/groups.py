# SPDX-License-Identifier: MIT
"""Spans by execution, by name and by category: what each group took."""

from array import array

from ..base.contract import NULL
from . import native


def executions(track, start, dur, base_of, number, step):
    """Device spans by execution: arrays (row of the execution or -1; end of its members; members), in the order in which
    executions end, for each track. base_of: the base track of a device's track, -1 of others. An execution is a span without step
    (instruction_index); a span lies in the latest begun one around it whose number (execution_index) is its own or empty, of at most
    16 at a time. Where time steps back, another device begins, whose PE has the same number in a CSV."""
    count = len(start)
    if native.library():
        groups, ends, members = (native.zeros("i", count) for _ in range(3))
        found = native.call("executions", count, track, start, dur, array("i", base_of), number, step, native.zeros("i", count), groups, ends, members)
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
    """Of executions(): run (the union of compute spans) and sum of each group, as arrays; and {name: (count, total)} of compute
    spans outside warm-up. compute: bytes, 1 for names that count."""
    groups, ends, members = grouping
    run, added = native.zeros("q", len(groups)), native.zeros("q", len(groups))
    if native.library():
        counts, totals, order = native.zeros("q", len(compute)), native.zeros("q", len(compute)), native.zeros("I", len(compute))
        names = native.call("runs", len(groups), groups, ends, members, start, dur, name, compute, warm, run, added, counts, totals, order)
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
    """[durations of that key, ascending] for the keys 0 to keys - 1."""
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
    """Totals by key without what children on host tracks last; host: bytes, by track."""
    own = array("q", totals)
    if native.library():
        native.call("self", len(dur), key, dur, parents, track, host, own)
        return own
    for i, parent in enumerate(parents):
        if parent >= 0 and host[track[i]]:
            own[key[parent]] -= dur[i]
    return own
