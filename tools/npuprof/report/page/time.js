// SPDX-License-Identifier: MIT
// Time in which long empty gaps are folded: t is ns of the trace, u is a place on the folded axis.

const parts = []; // { t0, t1, u0, u1, gap }
{
    const gaps = D.timeline.folds,
        empty = gaps.reduce((sum, g) => sum + g[1] - g[0], 0),
        wide = (D.length - empty) / 50;
    let t = 0,
        u = 0;
    for (const [from, to, paused] of gaps) {
        parts.push({ t0: t, t1: from, u0: u, u1: u + from - t, gap: false });
        u += from - t;
        parts.push({ t0: from, t1: to, u0: u, u1: u + wide, gap: true, paused });
        u += wide;
        t = to;
    }
    parts.push({
        t0: t,
        t1: Math.max(D.length, t + 1),
        u0: u,
        u1: u + Math.max(D.length - t, 1),
        gap: false,
    });
}
const U = parts[parts.length - 1].u1;

function fold(t) {
    const p = parts[Math.max(0, firstPlace(parts.length, m => parts[m].t0 > t) - 1)];
    return p.u0 + ((t - p.t0) * (p.u1 - p.u0)) / (p.t1 - p.t0 || 1);
}

// The place of a time of the trace; of others, of its begin or end.
const foldIn = t => fold(Math.max(0, Math.min(D.length, t)));

function unfold(u) {
    const p = parts.find(q => u <= q.u1) || parts[parts.length - 1];
    return p.t0 + ((u - p.u0) * (p.t1 - p.t0)) / (p.u1 - p.u0 || 1);
}

function timeTicks(u0, u1, width) {
    // [u, text]
    const step = niceStep((u1 - u0) / Math.max(2, width / 110)),
        found = [];
    for (const p of parts) {
        if (p.gap || p.u1 < u0 || p.u0 > u1) continue;
        const from = p.t0 + Math.max(0, u0 - p.u0),
            to = p.t1 - Math.max(0, p.u1 - u1);
        for (let t = Math.ceil(from / step) * step; t <= to; t += step)
            found.push([p.u0 + t - p.t0, stamp(t, step, unfold(u1))]);
    }
    return found;
}

// A time on an axis up to `most`, in the largest unit in which a step needs at most one decimal.
function stamp(t, step, most) {
    const units = [
        [1e9, "s"],
        [1e6, "ms"],
        [1e3, "µs"],
        [1, "ns"],
    ];
    const [size, unit] = units.find(([size]) => size <= most && size <= 10 * step) || units[3];
    const places = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
    const format = { maximumFractionDigits: places, minimumFractionDigits: t ? places : 0 };
    return `${(t / size).toLocaleString("en", format)} ${unit}`;
}

function timeAxis(width, left, y) {
    // for the SVG charts, the whole trace
    const x = u => left + ((width - left) * u) / U;
    let last = -99;
    return [
        ...parts
            .filter(p => p.gap)
            .map(p =>
                svg("rect", {
                    x: x(p.u0),
                    width: Math.max(1, x(p.u1) - x(p.u0)),
                    y: 0,
                    height: y,
                    fill: "var(--faint)",
                }),
            ),
        rule(left, width, y),
        ...timeTicks(0, U, width - left)
            .filter(([u]) => x(u) - last > 56 && x(u) < width - 20 && (last = x(u)))
            .map(([u, text]) =>
                axisText(x(u), y + 16, u === 0 ? "start" : "middle", text),
            ),
    ];
}
