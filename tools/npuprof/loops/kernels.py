# SPDX-License-Identifier: MIT
"""The loops over all spans, in the few words of Python that to_c.py turns into C. Their callers beside this
file say what each gives.

Each line means the same in both: numbers have 64 bits, a division is one of whole numbers from 0 up, an
array's kind stands behind its name, and what has no kind is a number. A row counts from 0; -1 is none. Where
an array may be left out, it is None. What is not in those words is in `sort`, `sort_pairs` and `sort_rows`,
which C has by itself.
"""

from array import array
from itertools import chain

from ..base.contract import NULL, OPERATOR, RECORD, SPAN, WARM_UP

# The kinds of arrays: whole numbers of so many bits, with a sign or without.
I32 = U32 = I64 = U8 = array


def sort(values: I64, first, end):
    """Ascending, these of the values."""
    values[first:end] = array("q", sorted(values[first:end]))


def sort_pairs(pairs: I64, n):
    """n pairs that lie one behind the other."""
    pairs[:2 * n] = array("q", chain.from_iterable(sorted(zip(pairs[:2 * n:2], pairs[1:2 * n:2]))))


def sort_rows(rows: I32, first, end, start: I64, dur: I64):
    """These of the rows by start, of equal starts the longest first."""
    rows[first:end] = array("i", sorted(rows[first:end], key=lambda i: (start[i], -dur[i], i)))


IN_C = sort, sort_pairs, sort_rows


# ---- Columns

def add(n, values: I64, more):
    for i in range(n):
        values[i] += more


def kinds(n, name: U32, track: U32, of_name: U8, host: U8, operators: I64, kind: U8):
    for i in range(n):
        if host[track[i]]:
            if of_name[name[i]]:
                kind[i] = of_name[name[i]]
            if operators and operators[i] != NULL and kind[i] == SPAN:
                kind[i] = OPERATOR


def placed(n, track: U32, name: U32, device: U8, names, warm: U8, skip: U8, flags: U8, out: U32):
    for i in range(n):
        left_out = warm[i] or skip[flags[i]]
        out[i] = 2 * names if left_out else names * device[track[i]] + name[i]


def steps(n, track: U32, name: U32, compute: U8, step: I64, other, out: U32):
    for i in range(n):
        out[i] = track[i] if step[i] != NULL and compute[name[i]] else other


def permute_bytes(n, order: I32, values: U8, out: U8):
    for k in range(n):
        out[k] = values[order[k]]


def permute_ints(n, order: I32, values: U32, out: U32):
    for k in range(n):
        out[k] = values[order[k]]


def permute_longs(n, order: I32, values: I64, out: I64):
    for k in range(n):
        out[k] = values[order[k]]


def equal_rows(n, base: U32, start: I64, dur: I64, order: I32, pairs: I64):
    """Puts the places of the first and behind the last of those that are equal. How many such; without pairs
    it only counts."""
    count = 0
    k = 0
    while k < n:
        i = order[k]
        end = k + 1
        while end < n and base[order[end]] == base[i] and start[order[end]] == start[i] and (
                dur[order[end]] == dur[i]):
            end += 1
        if end > k + 1:
            if pairs:
                pairs[2 * count] = k
                pairs[2 * count + 1] = end
            count += 1
        k = end
    return count


def is_moved(n, order: I32):
    for k in range(n):
        if order[k] != k:
            return 1
    return 0


def on_tracks(n, track: U32, wanted: U8, out: I32):
    count = 0
    for i in range(n):
        if wanted[track[i]]:
            out[count] = i
            count += 1
    return count


def turns(n, track: U32, values: I64, last: I64, out: I32):
    count = 0
    for i in range(n):
        if values[i] != last[track[i]]:
            last[track[i]] = values[i]
            out[count] = i
            count += 1
    return count


# ---- Nesting

def nest(n, track: U32, start: I64, dur: I64, stack_of: I32, newest: I32, parents: I32):
    """A stack is its newest row and that row's parents."""
    for i in range(n):
        stack = stack_of[track[i]]
        if stack < 0:
            continue
        begin = start[i]
        end = begin + dur[i]
        top = newest[stack]
        while top >= 0 and (start[top] + dur[top] < end or start[top] + dur[top] <= begin):
            top = parents[top]
        parents[i] = top
        newest[stack] = i


def roots(n, kind: U8, parents: I32, roots: I32):
    for i in range(n):
        up = parents[i]
        if kind[i] == RECORD or kind[i] == WARM_UP or up < 0:
            continue
        if up < i:
            roots[i] = roots[up]
            continue
        climbed = 0
        while kind[up] != RECORD and kind[up] != WARM_UP and parents[up] >= 0 and climbed < 10000:
            up = parents[up]
            climbed += 1
        roots[i] = up


def warm_up(n, order: I32, kind: U8, parents: I32, marked: U8):
    """Rows whose parents come later climb past them."""
    for k in range(n):
        i = order[k] if order else k
        up = parents[i]
        climbed = 0
        while up > i and not marked[up] and kind[up] != WARM_UP and climbed < 10000:
            up = parents[up]
            climbed += 1
        if kind[i] == WARM_UP or (up >= 0 and (marked[up] or kind[up] == WARM_UP)):
            marked[i] = 1


def nest_devices(groups, execution: I32, group_ends: I32, members: I32, arrows, callers: I32, called: I32,
                 parents: I32):
    k = 0
    for g in range(groups):
        while k < group_ends[g]:
            if execution[g] >= 0:
                parents[members[k]] = execution[g]
            k += 1
    for q in range(arrows - 1, -1, -1):
        if called[q] >= 0 and parents[called[q]] < 0:
            parents[called[q]] = callers[q]


# ---- Groups

def put_group(row, member, after: I32, found: I64, groups: I32, ends: I32, members: I32):
    """A group and its members, from that one on. found: how many groups and members there are."""
    while member >= 0:
        members[found[1]] = member
        found[1] += 1
        member = after[member]
    groups[found[0]] = row
    ends[found[0]] = found[1]
    found[0] += 1


def encloses(e, i, start: I64, dur: I64, number: I64):
    if start[e] > start[i] or start[i] + dur[i] > start[e] + dur[e]:
        return 0
    return not number or number[i] == NULL or number[e] == NULL or number[e] == number[i]


def executions(n, track: U32, start: I64, dur: I64, base_of: I32, number: I64, step: I64, row: I32,
               first: I32, last: I32, after: I32, found: I64, groups: I32, ends: I32, members: I32):
    """row, first, last: the executions that are open, oldest first, and their first and last members. after:
    the next member of the same execution."""
    count = 0
    base = -1
    latest = 0
    for i in range(n):
        here = base_of[track[i]]
        if here < 0:
            continue
        other = here != base or start[i] < latest
        kept = 0
        for k in range(count):
            if other or start[row[k]] + dur[row[k]] < start[i]:
                put_group(row[k], first[k], after, found, groups, ends, members)
            else:
                row[kept] = row[k]
                first[kept] = first[k]
                last[kept] = last[k]
                kept += 1
        count = kept
        base = here
        latest = start[i]
        after[i] = -1
        if not step or step[i] == NULL:
            if count == 16:
                count -= 1
                put_group(row[count], first[count], after, found, groups, ends, members)
            row[count] = i
            first[count] = -1
            last[count] = -1
            count += 1
            continue
        k = count - 1
        while k >= 0 and not encloses(row[k], i, start, dur, number):
            k -= 1
        if k < 0:
            put_group(-1, i, after, found, groups, ends, members)
        elif last[k] < 0:
            first[k] = i
            last[k] = i
        else:
            after[last[k]] = i
            last[k] = i
    for k in range(count):
        put_group(row[k], first[k], after, found, groups, ends, members)


def runs(groups, execution: I32, ends: I32, members: I32, start: I64, dur: I64, name: U32, compute: U8,
         warm: U8, run: I64, added: I64, counts: I64, totals: I64, order: U32):
    """order: the names in the order in which they came. The number of names."""
    names = 0
    k = 0
    for g in range(groups):
        begin = k
        until = NULL
        while k < ends[g]:
            i = members[k]
            k += 1
            if not compute[name[i]]:
                continue
            end = start[i] + dur[i]
            added[g] += dur[i]
            if start[i] >= until:
                run[g] += dur[i]
            elif end > until:
                run[g] += end - until
            until = end if end > until else until
        outer = execution[g]
        if warm[outer if outer >= 0 else members[begin]]:
            continue
        for m in range(begin - 1 if outer >= 0 else begin, k):
            i = outer if m < begin else members[m]
            if not compute[name[i]]:
                continue
            if not counts[name[i]]:
                order[names] = name[i]
                names += 1
            counts[name[i]] += 1
            totals[name[i]] += dur[i]
    return names


def place(n, key: U32, keys, ends: I64):
    """Where the rows of each key begin, in `ends`, which is 0."""
    for i in range(n):
        ends[key[i]] += 1
    at = 0
    for k in range(keys):
        count = ends[k]
        ends[k] = at
        at += count


def grouped(n, key: U32, keys, dur: I64, ends: I64, out: I64):
    place(n, key, keys, ends)
    for i in range(n):
        out[ends[key[i]]] = dur[i]
        ends[key[i]] += 1
    for k in range(keys):
        sort(out, ends[k - 1] if k else 0, ends[k])


def own_time(n, order: I32, track: U32, start: I64, dur: I64, stack_of: I32, below: I32, own: I64):
    """order: by stack and start. A stack is its newest row and those below it; its time is given up to `now`.
    """
    top = -1
    last = -1
    now = 0
    for k in range(n + 1):
        i = order[k] if k < n else -1
        stack = stack_of[track[i]] if k < n else -1
        while top >= 0:
            end = start[top] + dur[top]
            if stack == last and end > start[i]:
                own[top] += start[i] - now
                break
            if end > now:
                own[top] += end - now
                now = end
            top = below[top]
        if k < n:
            if stack < 0:
                own[i] = dur[i]
            else:
                below[i] = top
                top = i
                now = start[i]
        last = stack


def sums(n, key: U32, values: I64, out: I64):
    for i in range(n):
        out[key[i]] += values[i]


# ---- Intervals

def busy(n, track: U32, start: I64, dur: I64, bases: U32, spans: I64, sums: I64, begins: I64, ends: I64,
         base: U32, pairs: I64):
    """Intervals of each track, with their bases, as they end; such of one track may touch where it goes back
    in time. spans, sums: by track. begins, ends: its last interval, which is not among them. Their number;
    without pairs it only counts."""
    count = 0
    for i in range(n):
        t = track[i]
        end = start[i] + dur[i]
        if spans[t] and (start[i] > ends[t] or start[i] < begins[t]):
            if pairs:
                base[count] = bases[t]
                pairs[2 * count] = begins[t]
                pairs[2 * count + 1] = ends[t]
            count += 1
            begins[t] = start[i]
            ends[t] = end
        elif not spans[t]:
            begins[t] = start[i]
            ends[t] = end
        elif end > ends[t]:
            ends[t] = end
        spans[t] += 1
        sums[t] += dur[i]
    return count


def by_base(n, base: U32, pairs: I64, bases, ends: I64, out: I64):
    """The pairs by their bases."""
    place(n, base, bases, ends)
    for i in range(n):
        out[2 * ends[base[i]]] = pairs[2 * i]
        out[2 * ends[base[i]] + 1] = pairs[2 * i + 1]
        ends[base[i]] += 1


def merge(n, pairs: I64):
    """In place; the number of pairs that are left."""
    k = 1
    while k < n and pairs[2 * k - 2] <= pairs[2 * k]:
        k += 1
    if k < n:
        sort_pairs(pairs, n)
    merged = 0
    for k in range(n):
        if merged and pairs[2 * k] <= pairs[2 * merged - 1]:
            if pairs[2 * k + 1] > pairs[2 * merged - 1]:
                pairs[2 * merged - 1] = pairs[2 * k + 1]
        else:
            pairs[2 * merged] = pairs[2 * k]
            pairs[2 * merged + 1] = pairs[2 * k + 1]
            merged += 1
    return merged


def minus(n, a: I64, m, b: I64, out: I64):
    """The number of pairs in out, which has room for n + m."""
    count = 0
    k = 0
    for i in range(n):
        begin = a[2 * i]
        end = a[2 * i + 1]
        while k and b[2 * k - 1] > begin:
            k -= 1
        while k < m and b[2 * k + 1] <= begin:
            k += 1
        while k < m and b[2 * k] < end:
            if b[2 * k] > begin:
                out[2 * count] = begin
                out[2 * count + 1] = b[2 * k]
                count += 1
            begin = b[2 * k + 1]
            k += 1
        if begin < end:
            out[2 * count] = begin
            out[2 * count + 1] = end
            count += 1
    return count


# ---- Finding spans

def by_track(n, track: U32, start: I64, dur: I64, tracks, ends: I64, rows: I32):
    place(n, track, tracks, ends)
    for i in range(n):
        rows[ends[track[i]]] = i
        ends[track[i]] += 1
    for t in range(tracks):
        first = ends[t - 1] if t else 0
        k = first + 1
        while k < ends[t] and (start[rows[k - 1]] < start[rows[k]] or (
                start[rows[k - 1]] == start[rows[k]] and dur[rows[k - 1]] >= dur[rows[k]])):
            k += 1
        if k < ends[t]:
            sort_rows(rows, first, ends[t], start, dur)


def behind(track, ns, start: I64, ends: I64, rows: I32):
    """The place of a track's first row that begins after that moment."""
    low = ends[track - 1] if track else 0
    high = ends[track]
    while low < high:
        middle = (low + high) // 2
        if start[rows[middle]] <= ns:
            low = middle + 1
        else:
            high = middle
    return low


def innermost(queries, at_track: U32, at_ns: I64, start: I64, dur: I64, ends: I64, rows: I32, out: I32):
    """From the latest begun span backwards: the first that is still open is the innermost."""
    for q in range(queries):
        ns = at_ns[q]
        first = ends[at_track[q] - 1] if at_track[q] else 0
        k = behind(at_track[q], ns, start, ends, rows)
        if k - 4096 > first:
            first = k - 4096
        for k in range(k - 1, first - 1, -1):
            i = rows[k]
            if start[i] + dur[i] > ns or (start[i] == ns and not dur[i]):
                out[q] = i
                break


def beginning(queries, at_track: U32, at_ns: I64, start: I64, ends: I64, rows: I32, kind: U8, wanted,
              out: I32):
    for q in range(queries):
        first = ends[at_track[q] - 1] if at_track[q] else 0
        k = behind(at_track[q], at_ns[q], start, ends, rows) - 1
        while k >= first and start[rows[k]] == at_ns[q]:
            if kind[rows[k]] == wanted:
                out[q] = rows[k]
            k -= 1


# ---- Replay

def latest(n, first: I32, one: I64, second: I32, two: I64, out: I64):
    """The time of each node is the latest of up to two nodes before it, each plus its lag. A first of -1 is
    time 0, as is a second of -2; a second of -1 is none."""
    for i in range(n):
        a = out[first[i]] + one[i] if first[i] >= 0 else one[i]
        b = out[second[i]] + two[i] if second[i] >= 0 else two[i]
        out[i] = a if second[i] == -1 or a > b else b
