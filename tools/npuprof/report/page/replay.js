// SPDX-License-Identifier: MIT
// Replays the dependency graph with other times, as analysis/replay.py does. Factors are by slider: 0.5 is
// twice as fast.

const R = D.what_if && D.what_if.replay;

// ns * part / whole in whole ns.
const shareOf = (ns, part, whole) => Math.floor((ns * part) / whole + 0.5);

// ns of an execution: its own times, and what its program waits for. fixed: all of a pipelined instruction is
// work.
function executionTime([number, ns, times], factorOf, fixed) {
    const { order, rows } = R.programs[number],
        newSince = [],
        newUntil = [],
        since = b => times[2 * b],
        until = b => times[2 * b] + times[2 * b + 1];
    let last = 0,
        newLast = 0;
    for (const b of order) {
        const [after, a] = rows[b],
            factor = factorOf(rows[b]);
        let at = Math.max(0, ...after.map(until)),
            moved = Math.max(0, ...after.map(c => newUntil[c])),
            work = times[2 * b + 1],
            rest = -1;
        if (a >= 0 && until(a) - R.tolerance > since(b) && since(a) < since(b)) {
            const length = times[2 * a + 1],
                left = until(a) - since(b),
                over = until(b) - until(a);
            at = Math.max(at, since(b));
            moved = Math.max(moved, newSince[a] + shareOf(newUntil[a] - newSince[a], length - left, length));
            if (over >= 0) {
                rest = fixed ? 0 : shareOf(work, left, length);
                if (rest > over) {
                    rest = over;
                    work = shareOf(over, length, left);
                }
            }
        } else if (a >= 0) {
            at = Math.max(at, until(a));
            moved = Math.max(moved, newUntil[a]);
        }
        newSince[b] = moved + since(b) - at;
        newUntil[b] = newSince[b] + shareOf(work, factor, 1);
        if (rest >= 0) newUntil[b] = Math.max(newUntil[b], newUntil[a] + shareOf(rest, factor, 1));
        last = Math.max(last, until(b));
        newLast = Math.max(newLast, newUntil[b]);
    }
    return ns + newLast - last;
}

// The time of every node with those lags: the latest of up to two nodes before it.
function nodeTimes(one, two) {
    const times = new Float64Array(one.length);
    for (let n = 0; n < times.length; n++) {
        const a = R.first[n],
            b = R.second[n];
        let t = a >= 0 ? times[a] + one[n] : one[n];
        if (b >= 0) t = Math.max(t, times[b] + two[n]);
        times[n] = t;
    }
    return times;
}

// { median, window } in ns: of the inferences, and from the first begin or submission to the last end.
function measured(times) {
    if (!R.begins.length) return { median: null, window: times.reduce((a, b) => Math.max(a, b)) - R.from };
    const all = R.begins.map((b, n) => times[R.ends[n]] - times[b]).sort((a, b) => a - b),
        half = all.length >> 1;
    let first = Infinity,
        last = -Infinity;
    for (const b of R.begins) first = Math.min(first, times[b]);
    for (const e of R.ends) last = Math.max(last, times[e]);
    return { median: (all[(all.length - 1) >> 1] + all[half]) / 2, window: last - first };
}

// The lags with those factors. fixed: see executionTime(); short: notices that the trace has not shown take
// no time.
function lagsWith(groups, factors, fixed, short) {
    const one = Float64Array.from(R.one, lag => (lag === null ? -Infinity : lag)),
        two = Float64Array.from(R.two);
    const loads = groups.findIndex(g => g.kind === "load");
    const factorOf = row => (row[3] ? (loads < 0 ? 1 : factors[loads]) : row[2] < 0 ? 1 : factors[row[2]]);
    const device = groups.some((g, k) => g.kind !== "host" && factors[k] !== 1);
    const all = groups.findIndex(g => g.kind === "device"),
        whole = ns => (all < 0 ? ns : shareOf(ns, factors[all], 1));
    const changed = R.programs.map(p => device && p.rows.some(row => factorOf(row) !== 1)),
        totals = R.runs.map(run => (changed[run[0]] ? executionTime(run, factorOf, fixed) : run[1]));
    for (const [node, dur, run, own] of R.jobs) {
        const ns = run >= 0 ? totals[run] : Math.round(dur * (own >= 0 ? factors[own] : 1)),
            more = whole(ns) - dur;
        one[node] += more;
        two[node] += more;
    }
    groups.forEach((g, k) => {
        if (g.kind !== "host" || factors[k] === 1) return;
        for (let n = 0; n < g.stretches.length; n += 2) {
            const node = g.stretches[n];
            one[node] = Math.max(0, one[node] + Math.round(g.stretches[n + 1] * (factors[k] - 1)));
        }
    });
    if (short) for (const node of R.early) two[node] = 0;
    return [one, two];
}

// The least and the most of some times, with the margin of threads that share something: as widened() in
// analysis/effects.py.
function widened(before, times) {
    const margin = (before * R.margin) / 100,
        least = Math.min(...times),
        most = Math.max(...times);
    return [
        least < before ? Math.max(least - margin, 0) : Math.max(least - margin, before),
        most > before ? most + margin : Math.min(most + margin, before),
    ];
}

// What replay says: { median, window } with nothing changed, in ns, and with the changes, where each is the
// least and the most.
function replayed(groups, factors) {
    const host = groups.some((g, k) => g.kind === "host" && factors[k] !== 1),
        device = groups.some((g, k) => g.kind !== "host" && factors[k] !== 1);
    const nothing = factors.map(() => 1),
        before = measured(nodeTimes(...lagsWith(groups, nothing, false, false))),
        found = [
            [false, host],
            [device, false],
        ].map(([fixed, short]) => measured(nodeTimes(...lagsWith(groups, factors, fixed, short))));
    const ends = key => (before[key] === null ? null : widened(before[key], found.map(m => m[key])));
    return { before, median: ends("median"), window: ends("window") };
}
