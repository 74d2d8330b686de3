# SPDX-License-Identifier: MIT
"""The loops inside executions, in the words of kernels.py, from which C is made, too.

The executions of one program have the same instructions, which are numbered.

    count         how many instructions
    rows, whole   the rows of each execution's instructions, one behind the other; its own row
    order         the numbers, each after those that it waits for
    after         the numbers that must have ended before each, up to after_ends
    pair          the number that must have ended before each, or that it keeps pace with; -1 for none
    since, until  room for the begins and ends of one execution
"""

from .kernels import I32, I64, U8, U32, sort_pairs


def later(a, b):
    return a if a > b else b


def share(ns, part, whole):
    """ns * part / whole, rounded. Why in two: one product may have more than 64 bits."""
    times = ns // whole
    return times * part + ((ns - times * whole) * part + whole // 2) // whole


def put_times(e, count, rows: I32, whole: I32, start: I64, dur: I64, since: I64, until: I64):
    """The times of execution e from its begin on, in a unit that leaves them 31 bits. The unit, in ns."""
    unit = dur[whole[e]] // 2147483648 + 1
    for b in range(count):
        i = rows[e * count + b]
        since[b] = (start[i] - start[whole[e]]) // unit
        until[b] = (start[i] - start[whole[e]] + dur[i]) // unit
    return unit


def held_until(b, after_ends: I32, after: I32, until: I64):
    """When the last of those that must have ended before b ends."""
    latest = 0
    for k in range(after_ends[b - 1] if b else 0, after_ends[b]):
        latest = later(latest, until[after[k]])
    return latest


def pipelined(b, pair: I32, tolerance, since: I64, until: I64):
    """1: b begins inside its pair."""
    if pair[b] < 0 or until[pair[b]] - tolerance <= since[b]:
        return 0
    return since[pair[b]] < since[b]


def earliest(b, after_ends: I32, after: I32, pair: I32, tolerance, since: I64, until: I64):
    """When b could begin as recorded, but for its lag."""
    latest = held_until(b, after_ends, after, until)
    if pair[b] < 0:
        return latest
    return later(latest, since[b] if pipelined(b, pair, tolerance, since, until) else until[pair[b]])


def obeyed(n, count, rows: I32, whole: I32, start: I64, dur: I64, after_ends: I32, after: I32, pair: I32,
           tolerance, since: I64, until: I64, obeys: U8):
    """Which executions have no instruction that begins before what it waits for has ended. The number of
    pipelined pairs in those."""
    pairs = 0
    for e in range(n):
        put_times(e, count, rows, whole, start, dur, since, until)
        here = 0
        obeys[e] = 1
        for b in range(count):
            if pipelined(b, pair, tolerance, since, until):
                here += 1
            elif pair[b] >= 0 and until[pair[b]] > since[b] + tolerance:
                obeys[e] = 0
            if held_until(b, after_ends, after, until) > since[b] + tolerance:
                obeys[e] = 0
        if obeys[e]:
            pairs += here
    return pairs


def inside(n, count, rows: I32, whole: I32, start: I64, dur: I64, order: I32, after_ends: I32, after: I32,
           pair: I32, tolerance, since: I64, until: I64, obeys: U8, factors: I64, one, fixed, new_since: I64,
           new_until: I64, out: I64):
    """How long each execution takes if its instructions take factors / one times as long. fixed: all of the
    length of a pipelined one is its own work. Those that do not obey stay as they are."""
    for e in range(n):
        out[e] = dur[whole[e]]
        if not obeys[e]:
            continue
        unit = put_times(e, count, rows, whole, start, dur, since, until)
        last = 0
        new_last = 0
        for k in range(count):
            b = order[k]
            a = pair[b]
            work = until[b] - since[b]
            rest = -1
            moved = held_until(b, after_ends, after, new_until)
            if pipelined(b, pair, tolerance, since, until):
                length = until[a] - since[a]
                left = until[a] - since[b]
                over = until[b] - until[a]
                moved = later(moved, new_since[a] + share(new_until[a] - new_since[a], length - left, length))
                if over >= 0:
                    # What is left of its work when the other one ends. What is longer was waiting.
                    rest = 0 if fixed else share(work, left, length)
                    if rest > over:
                        rest = over
                        work = share(over, length, left)
            elif a >= 0:
                moved = later(moved, new_until[a])
            lag = since[b] - earliest(b, after_ends, after, pair, tolerance, since, until)
            new_since[b] = moved + lag
            new_until[b] = new_since[b] + share(work, factors[b], one)
            if rest >= 0:
                new_until[b] = later(new_until[b], new_until[a] + share(rest, factors[b], one))
            last = later(last, until[b])
            new_last = later(new_last, new_until[b])
        out[e] += (new_last - last) * unit


def on_path(n, count, rows: I32, whole: I32, start: I64, dur: I64, order: I32, after_ends: I32, after: I32,
            pair: I32, tolerance, since: I64, until: I64, out: U8):
    """Marks the instructions that decide when the last one of their execution ends. The ns that nothing
    explains before them, without those before the first."""
    lost = 0
    for e in range(n):
        unit = put_times(e, count, rows, whole, start, dur, since, until)
        b = -1
        for k in range(count):
            a = order[k]
            if b < 0 or until[a] > until[b] or (until[a] == until[b] and since[a] > since[b]):
                b = a
        while b >= 0:
            out[e * count + b] = 1
            before = -1
            for k in range(after_ends[b - 1] if b else 0, after_ends[b]):
                if before < 0 or until[after[k]] > until[before]:
                    before = after[k]
            a = pair[b]
            if pipelined(b, pair, tolerance, since, until):
                over = until[b] - until[a]
                rest = share(until[b] - since[b], until[a] - since[b], until[a] - since[a])
                # It may also be held by the end of the other one, not by its begin.
                if before < 0 or since[b] > until[before] or (over >= 0 and rest > over):
                    before = a
            elif a >= 0 and (before < 0 or until[a] > until[before]):
                before = a
            if before >= 0:
                at = earliest(b, after_ends, after, pair, tolerance, since, until)
                lost += later(0, since[b] - at) * unit
            b = before
    return lost


def slack(n, count, rows: I32, whole: I32, start: I64, dur: I64, order: I32, after_ends: I32, after: I32,
          pair: I32, tolerance, since: I64, until: I64, own: I64, late: I64, least: I64):
    """By number, the least time that an instruction may take longer in any execution. own: what the whole
    execution may take longer. late: room, as since and until."""
    for e in range(n):
        unit = put_times(e, count, rows, whole, start, dur, since, until)
        last = 0
        for b in range(count):
            last = later(last, until[b])
        for b in range(count):
            late[b] = last
        for k in range(count - 1, -1, -1):
            b = order[k]
            a = pair[b]
            more = late[b] - until[b]
            begin = more + earliest(b, after_ends, after, pair, tolerance, since, until)
            for m in range(after_ends[b - 1] if b else 0, after_ends[b]):
                if begin < late[after[m]]:
                    late[after[m]] = begin
            if a >= 0:
                if pipelined(b, pair, tolerance, since, until):
                    begin = until[a] + more
                if begin < late[a]:
                    late[a] = begin
            more = later(0, more) * unit + own[e]
            if more < least[b]:
                least[b] = more


def charge(begin, end, m, starts: I64, k, name: U32, last, pieces: I64, ns: I64, longest: I64, row: I32):
    """Charges a piece of transfers alone to the first of the m compute spans, from the kth on, that begins at
    its end or later: to its name, or behind the last one to `last`. Its place in starts."""
    while k < m and starts[2 * k] < end:
        k += 1
    i = starts[2 * k + 1] if k < m else -1
    to = name[i] if i >= 0 else last
    pieces[to] += 1
    ns[to] += end - begin
    if end - begin > longest[to]:
        longest[to] = end - begin
        row[to] = i
    return k


def overlap(n, queue: I32, first: I32, ends: I32, inside: I32, start: I64, dur: I64, name: U32, kinds: U8,
            last, starts: I64, events: I64, sums: I64, pieces: I64, ns: I64, longest: I64, row: I32,
            counts: I64, totals: I64, order: U32):
    """Of each of n executions, whose rows are inside[first:ends], the ns of transfers, compute, both at once,
    and all compute spans; added to the four sums of its queue. kinds: by name, 1 if it moves data, 2 if it
    computes. starts, events: room for pairs: a begin and its row; a moment and what changes then. counts,
    totals: of compute spans by name; order: these names as they come. The number of names."""
    names = 0
    for e in range(n):
        to = 4 * queue[e]
        count = 0
        m = 0
        for k in range(first[e], ends[e]):
            i = inside[k]
            kind = kinds[name[i]]
            if not kind:
                continue
            if kind == 2:
                starts[2 * m] = start[i]
                starts[2 * m + 1] = i
                m += 1
                sums[to + 3] += dur[i]
                if not counts[name[i]]:
                    order[names] = name[i]
                    names += 1
                counts[name[i]] += 1
                totals[name[i]] += dur[i]
            if dur[i]:
                # Why the ends' numbers are lower: at one time they come before the begins.
                events[2 * count] = start[i]
                events[2 * count + 1] = kind + 2
                events[2 * count + 2] = start[i] + dur[i]
                events[2 * count + 3] = kind
                count += 2
        sort_pairs(events, count)
        sort_pairs(starts, m)
        at = 0
        moving = 0
        working = 0
        place = 0
        for k in range(count):
            now = events[2 * k]
            what = events[2 * k + 1]
            if moving:
                sums[to] += now - at
                if working:
                    sums[to + 2] += now - at
                elif now > at:
                    place = charge(at, now, m, starts, place, name, last, pieces, ns, longest, row)
            if working:
                sums[to + 1] += now - at
            at = now
            if what == 1:
                moving -= 1
            elif what == 2:
                working -= 1
            elif what == 3:
                moving += 1
            else:
                working += 1
    return names


def named(n, first: I32, ends: I32, inside: I32, name: U32, wanted, out: I32):
    """The rows of that name; how many."""
    count = 0
    for e in range(n):
        for k in range(first[e], ends[e]):
            if name[inside[k]] == wanted:
                out[count] = inside[k]
                count += 1
    return count
