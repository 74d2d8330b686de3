# SPDX-License-Identifier: MIT
"""The loops over all spans: in C (build/libnpuprof-columns.so, `make tools`) where that is built, else here, about four times slower.

Columns are arrays (module array) with one element a span; rows are numbers, -1 for none. Both ways give the same.
"""

import bisect
import ctypes
import functools
import pathlib
from array import array
from collections.abc import Sequence

NULL = -2**63
SPAN, RECORD, WARM_UP, OPERATOR = 0, 1, 2, 4
FORM = 1005                 # of what the C library takes and gives


class Block(ctypes.Structure):
    """Room for the rows of one block of lines; `block` in npuprof_columns.c."""
    _fields_ = [*((name, ctypes.c_void_p) for name in ("start", "dur")), ("index", ctypes.c_void_p * 5),
                *((name, ctypes.c_void_p) for name in ("label", "ids", "kind", "flags", "given", "given_ids", "others", "trace", "span", "parent")),
                *((name, ctypes.c_uint32) for name in ("given_count", "others_count", "indexes", "rich"))]


@functools.cache
def library():
    """The C library, or None where it is not built or is of another version."""
    path = pathlib.Path(__file__).resolve().parent.parent / "build" / "libnpuprof-columns.so"
    if not path.exists():
        return None
    try:
        lib = ctypes.CDLL(str(path))
        lib.columns_open.restype = lib.columns_text.restype = ctypes.c_void_p
        lib.columns_open.argtypes = [ctypes.c_size_t]
        for name in ("close", "text", "json", "csv", "gather", "add", "kinds", "tracks", "steps", "nest", "nest_by_id", "roots", "warm_up", "executions", "runs", "grouped", "self",
                     "busy", "by_base", "merge", "minus", "by_track", "innermost", "beginning",
                     "nest_devices", "ends"):
            function = getattr(lib, f"columns_{name}")
            if name != "text":
                function.restype = ctypes.c_int64
        lib.columns_close.argtypes = [ctypes.c_void_p]
        lib.columns_text.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_size_t)]
        lib.columns_json.argtypes = lib.columns_csv.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.POINTER(Block)]
        handle = lib.columns_open(FORM)
        if not handle:
            return None
        lib.columns_close(handle)
    except (OSError, AttributeError):
        return None
    return lib


def at(column):
    """The address of an array or bytearray, for C; NULL for None."""
    if column is None:
        return None
    if isinstance(column, bytearray):
        return ctypes.c_void_p(ctypes.addressof((ctypes.c_char * len(column)).from_buffer(column)) if column else None)
    return ctypes.c_void_p(column.buffer_info()[0])


def call(name, *arguments):
    """A function of the C library: numbers as 64 bits, columns by address."""
    return getattr(library(), f"columns_{name}")(*(ctypes.c_int64(a) if type(a) is int else at(a) for a in arguments))


def zeros(kind, count):
    return array(kind, [0]) * count


class Reader:
    """Reads blocks of whole lines of npuprof's own JSON or CSV in C."""

    def __init__(self):
        self.lib, self.block, self.room = library(), Block(), 0
        self.handle = self.lib.columns_open(FORM)
        self.columns = {}

    def __del__(self):
        self.lib.columns_close(self.handle)

    def read(self, form, data, lines):
        """form: "json" or "csv". The number of spans, or -1 if some line is of another form; then column() has them."""
        if lines > self.room:
            self.room = lines + lines // 4
            sizes = {"start": 8, "dur": 8, "label": 4, "ids": 4, "kind": 1, "flags": 1, "given": 4, "given_ids": 24, "others": 16,
                     **({"trace": 16, "span": 8, "parent": 8} if form == "csv" else {}), **{k: 8 for k in range(5)}}
            self.columns = {name: bytearray(size * self.room) for name, size in sizes.items()}
            for name, column in self.columns.items():
                if isinstance(name, int):
                    self.block.index[name] = at(column).value
                else:
                    setattr(self.block, name, at(column).value)
        return getattr(self.lib, f"columns_{form}")(self.handle, data, len(data), self.block)

    def column(self, name, size):
        return memoryview(self.columns[name])[:size]

    def into(self, trace, count, names, cats, tracks, start=None):
        """Adds the block's columns to those of a trace; names, cats, tracks: numbers of the texts."""
        (trace.start if start is None else start).frombytes(self.column("start", 8 * count))
        trace.dur.frombytes(self.column("dur", 8 * count))
        for column, key, table in ((trace.name, "label", names), (trace.cat, "label", cats), (trace.track, "ids", tracks)):
            out = zeros("I", count)
            call("gather", count, self.columns[key], table, out)
            column.extend(out)
        trace.kind += self.column("kind", count)
        trace.flags += self.column("flags", count)

    def texts(self, which, known):
        """The texts (0: labels, 1: ids) with the numbers from `known` on."""
        length = ctypes.c_size_t()
        while address := self.lib.columns_text(self.handle, which, known, length):
            yield ctypes.string_at(address, length.value)
            known += 1


def moved(values, more):
    """The array with `more` added to every number; it may be the same array."""
    if library():
        call("add", len(values), values, more)
        return values
    return array("q", [value + more for value in values])


def set_kinds(kind, name, track, of_name, host, operators):
    """Kinds of spans on host tracks (bytes, by track): of_name (bytes, by name) where not 0; OPERATOR where that index is not NULL."""
    if library():
        call("kinds", len(kind), name, track, of_name, host, operators, kind)
        return
    for i, number in enumerate(name):
        if host[track[i]]:
            if of_name[number]:
                kind[i] = of_name[number]
            if operators and operators[i] != NULL and kind[i] == SPAN:
                kind[i] = OPERATOR


def tracks_with(track, kind, wanted, count):
    """Bytes, by track: whether a span of that kind lies there."""
    out = bytearray(count)
    if library():
        call("tracks", len(track), track, kind, wanted, out)
    else:
        for number, own in zip(track, kind):
            if own == wanted:
                out[number] = 1
    return out


def steps_on(track, name, compute, step, other):
    """The tracks of spans with a step and a name that computes (bytes, by name); `other` for all other spans."""
    if step is None:
        return array("I", [other]) * len(track)
    if library():
        out = zeros("I", len(track))
        call("steps", len(track), track, name, compute, step, other, out)
        return out
    return array("I", (t if s != NULL and compute[n] else other for t, n, s in zip(track, name, step)))


def nest(track, start, dur, stack_of):
    """Parents by the stamps of each stack; stack_of: by track, -1 for a track that has none."""
    parents = array("i", [-1]) * len(start)
    if library():
        call("nest", len(start), track, start, dur, array("i", stack_of), array("i", [-1]) * len(stack_of), parents)
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
    """Parents by ids; 0 above: none."""
    parents = array("i", [-1]) * len(span)
    if library() and call("nest_by_id", len(span), span, above, parents) == 0:
        return parents
    wanted = set(above)
    rows = {own: i for i, own in enumerate(span) if own in wanted}
    for i, parent in enumerate(above):
        if parent:
            parents[i] = rows.get(parent, -1)
    return parents


def roots_of(parents, kind):
    """What each row has its trace id of: the record around it, else its uppermost ancestor."""
    roots = array("i", range(len(parents)))
    if library():
        call("roots", len(parents), kind, parents, roots)
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
    """Marks (bytes of 1) every row of or in a warm-up record, beside those that are marked. order: of rows, parents first."""
    if library() and order is None:
        call("warm_up", len(parents), kind, parents, marked)
        return
    for i in order or range(len(parents)):
        above, steps = parents[i], 0
        while above > i and not marked[above] and kind[above] != WARM_UP and steps < 10000:
            above, steps = parents[above], steps + 1
        if kind[i] == WARM_UP or (above >= 0 and (marked[above] or kind[above] == WARM_UP)):
            marked[i] = 1


def executions(track, start, dur, base_of, number, step):
    """Device spans by execution: arrays (row of the execution or -1; end of its members; members), in the order in which
    executions end, for each track. base_of: the base track of a device's track, -1 of others. An execution is a span without step
    (instruction_index); a span lies in the latest begun one around it whose number (execution_index) is its own or empty, of at most
    16 at a time. Where time steps back, another device begins, whose PE has the same number in a CSV."""
    count = len(start)
    if library():
        groups, ends, members = (zeros("i", count) for _ in range(3))
        found = call("executions", count, track, start, dur, array("i", base_of), number, step, zeros("i", count), groups, ends, members)
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
    run, added = zeros("q", len(groups)), zeros("q", len(groups))
    if library():
        counts, totals, order = zeros("q", len(compute)), zeros("q", len(compute)), zeros("I", len(compute))
        names = call("runs", len(groups), groups, ends, members, start, dur, name, compute, warm, run, added, counts, totals, order)
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
    if library():
        ends, out = zeros("q", keys), zeros("q", len(dur))
        call("grouped", len(dur), key, keys, dur, ends, out, zeros("q", len(dur)))
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
    if library():
        call("self", len(dur), key, dur, parents, track, host, own)
        return own
    for i, parent in enumerate(parents):
        if parent >= 0 and host[track[i]]:
            own[key[parent]] -= dur[i]
    return own


# ---- Intervals

class Intervals(Sequence):
    """Merged (start, end) pairs, by start, in one flat array."""

    __slots__ = ("flat",)

    def __init__(self, flat):
        self.flat = flat

    def __len__(self):
        return len(self.flat) // 2

    def __getitem__(self, n):
        n = range(len(self))[n]
        return self.flat[2 * n], self.flat[2 * n + 1]

    def __iter__(self):
        flat = iter(self.flat)
        return zip(flat, flat)

    def length(self):
        return sum(self.flat[1::2]) - sum(self.flat[::2])


def merged(flat):
    """Sorts and merges an array of start, end, start, end ..., in place."""
    if library():
        del flat[2 * call("merge", len(flat) // 2, flat):]
        return Intervals(flat)
    out = array("q")
    for start, end in sorted(zip(flat[::2], flat[1::2])):
        if out and start <= out[-1]:
            out[-1] = max(out[-1], end)
        else:
            out.extend((start, end))
    return Intervals(out)


def minus(a, b):
    """What of the Intervals a no interval of b covers."""
    if library():
        out = zeros("q", 2 * (len(a) + len(b)))
        del out[2 * call("minus", len(a), a.flat, len(b), b.flat, out):]
        return Intervals(out)
    left, k, b = array("q"), 0, list(b)
    for start, end in a:
        while k and b[k - 1][1] > start:
            k -= 1
        while k < len(b) and b[k][1] <= start:
            k += 1
        while k < len(b) and b[k][0] < end:
            if b[k][0] > start:
                left.extend((start, b[k][0]))
            start = b[k][1]
            k += 1
        if start < end:
            left.extend((start, end))
    return Intervals(left)


def busy(track, start, dur, bases):
    """base track -> (spans, sum, Intervals in which one is open). bases: the base of each track."""
    tracks = len(bases)
    if library():
        state = zeros("q", 4 * tracks)
        count = call("busy", len(start), track, start, dur, tracks, state, None)
        found = zeros("q", 3 * count)
        call("busy", len(start), track, start, dur, tracks, state, found)
        spans, sums = state[::4], state[1::4]
        out, ends = zeros("q", 2 * count), zeros("q", tracks)
        call("by_base", count, found, array("q", bases), tracks, ends, out)
        flats = {base: out[2 * (ends[base - 1] if base else 0):2 * ends[base]] for base in dict.fromkeys(bases)}
    else:
        states, flats = {}, {base: array("q") for base in dict.fromkeys(bases)}
        for number, begin, ns in zip(track, start, dur):
            end = begin + ns
            state = states.get(number)
            if state is None:
                state = states[number] = [0, 0, begin, end]
            elif begin > state[3] or begin < state[2]:
                flats[bases[number]].extend(state[2:])
                state[2:] = begin, end
            elif end > state[3]:
                state[3] = end
            state[0] += 1
            state[1] += ns
        for number, state in states.items():
            flats[bases[number]].extend(state[2:])
        spans, sums = ([states.get(t, (0, 0))[n] for t in range(tracks)] for n in (0, 1))
    totals = {}
    for base, count, ns in zip(bases, spans, sums):
        if count:
            before = totals.get(base, (0, 0))
            totals[base] = before[0] + count, before[1] + ns
    return {base: (count, ns, merged(flats[base])) for base, (count, ns) in totals.items()}


# ---- Moments

class Finder:
    """Rows of each track by start, the longest first: what is open, or begins, at a moment."""

    def __init__(self, track, start, dur, tracks):
        self.start, self.dur = start, dur
        self.ends, self.rows = zeros("q", tracks), zeros("i", len(start))     # rows of track t end at ends[t]
        if library():
            call("by_track", len(start), track, start, dur, tracks, self.ends, self.rows)
            return
        of = [[] for _ in range(tracks)]
        for i, number in enumerate(track):
            of[number].append(i)
        last = 0
        for number, rows in enumerate(of):
            rows.sort(key=lambda i: (start[i], -dur[i], i))
            self.rows[last:last + len(rows)] = array("i", rows)
            last = self.ends[number] = last + len(rows)

    def after(self, track, ns):
        """The first place in `rows` of a row of the track that begins after that, and the first of the track."""
        first = self.ends[track - 1] if track else 0
        return bisect.bisect_right(self.rows, ns, first, self.ends[track], key=self.start.__getitem__), first

    def innermost(self, tracks, moments):
        """The rows of the innermost spans of these tracks (array "I") that hold these ns (array "q"); -1 for none."""
        out, start, dur = array("i", [-1]) * len(tracks), self.start, self.dur
        if library():
            call("innermost", len(tracks), tracks, moments, start, dur, self.ends, self.rows, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            # The newest begun span; its ancestors follow. Siblings that ended before are skipped by walking up their parents.
            k, first = self.after(track, ns)
            for k in range(k - 1, max(first, k - 4096) - 1, -1):
                i = self.rows[k]
                if start[i] + dur[i] > ns or (start[i] == ns and not dur[i]):
                    out[n] = i
                    break
        return out

    def ends_of(self, number):
        """The ends of a track's spans, ascending."""
        rows = self.rows[self.ends[number - 1] if number else 0:self.ends[number]]
        begins, lengths = (array("q", map(column.__getitem__, rows)) for column in (self.start, self.dur))
        if library():
            out = zeros("q", len(rows))
            call("ends", len(rows), begins, lengths, out, zeros("q", len(rows)))
            return out
        return array("q", sorted(map(int.__add__, begins, lengths)))

    def at(self, track, ns):
        """The row of the innermost span of `track` that holds `ns`, or -1."""
        return self.innermost(array("I", [track]), array("q", [ns]))[0]

    def beginning(self, tracks, moments, kind, wanted):
        """The rows of that kind that begin just then, the longest of several; -1 for none."""
        out = array("i", [-1]) * len(tracks)
        if library():
            call("beginning", len(tracks), tracks, moments, self.start, self.ends, self.rows, kind, wanted, out)
            return out
        for n, (track, ns) in enumerate(zip(tracks, moments)):
            k, first = self.after(track, ns)
            while k > first and self.start[self.rows[k - 1]] == ns:
                k -= 1
                if kind[self.rows[k]] == wanted:
                    out[n] = self.rows[k]
        return out


def nest_devices(grouping, callers, called, parents):
    """Parents of device spans: of those in an execution, and of those that an arrow from a caller's row ties to it."""
    groups, ends, members = grouping
    if library():
        call("nest_devices", len(groups), groups, ends, members, len(called), callers, called, parents)
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
