// SPDX-License-Identifier: MIT
// Replays the dependency graph with other times, as analysis/replay.py does. Factors are by slider: 0.5 is
// twice as fast.

const R = D.what_if && D.what_if.replay;

// ns of an execution of a program. fixed: all of a pipelined instruction is work.
function executionTime(program, factorOf, fixed) {
    const starts = [],
        ends = [];
    for (const b of program.order) {
        const [begin, end, lag, after, pipe] = program.rows[b],
            factor = factorOf(program.rows[b]);
        let at = Math.max(0, ...after.map(a => ends[a])),
            work = end - begin,
            rest = null;
        if (pipe) {
            const [a, share] = pipe,
                over = end - program.rows[a][1];
            at = Math.max(at, starts[a] + share * (ends[a] - starts[a]));
            if (over >= 0 && fixed) rest = 0;
            else if (over >= 0) {
                work = Math.min(work, share < 1 ? over / (1 - share) : Infinity);
                rest = (1 - share) * work;
            }
        }
        starts[b] = at + lag;
        ends[b] = starts[b] + factor * work;
        if (rest !== null) ends[b] = Math.max(ends[b], ends[pipe[0]] + factor * rest);
    }
    return Math.max(0, ...ends) + program.rest;
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
    const factorOf = row => (row[6] ? (loads < 0 ? 1 : factors[loads]) : row[5] < 0 ? 1 : factors[row[5]]);
    const device = groups.some((g, k) => g.kind !== "host" && factors[k] !== 1);
    const ratios = R.programs.map(p =>
        device && p.dur && p.rows.some(row => factorOf(row) !== 1)
            ? executionTime(p, factorOf, fixed) / p.dur
            : 1,
    );
    for (const [node, dur, program, own] of R.jobs) {
        const ratio = program >= 0 ? (ratios[program] ?? 1) : own >= 0 ? factors[own] : 1,
            more = Math.round(dur * ratio) - dur;
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

// Both ends of what a replay says: [{ median, window }, { median, window }].
function replayed(groups, factors) {
    const host = groups.some((g, k) => g.kind === "host" && factors[k] !== 1),
        device = groups.some((g, k) => g.kind !== "host" && factors[k] !== 1);
    return [
        [false, host],
        [device, false],
    ].map(([fixed, short]) => measured(nodeTimes(...lagsWith(groups, factors, fixed, short))));
}
