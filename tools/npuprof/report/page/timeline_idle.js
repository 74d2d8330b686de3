// SPDX-License-Identifier: MIT
// The strip under each engine: when it was idle, and why, by class. Full height is all of that time.

const CLASSES = {
    // the colour of each class of analysis/idle.py, and its name in the legend
    host_busy: ["--c1", "host busy"],
    host_off_cpu: ["--c5", "host off the CPU"],
    host_blocked: ["--c3", "host waits"],
    host_untraced: ["--h3", "host, no span"],
    late_notice: ["--c6", "end not noticed"],
    late_thread: ["--c7", "thread does not run yet"],
    work_or_wait: ["--plain4", "works, or has not noticed"],
    work_or_idle: ["--plain4", "works, or waits for a request"],
    in_submit: ["--c4", "being submitted"],
    dispatch: ["--c0", "submitted, not started"],
    dependency: ["--c2", "another queue first"],
    unknown_lost: ["--bad", "spans lost"],
    unknown: ["--plain3", "not known"],
    no_demand: ["--plain2", "no request"],
    edge: ["--line", "before the first or after the last job"],
};
const classOf = k => CLASSES[D.idle.classes[k]] || CLASSES.unknown;

// kind: the class with most of a piece; mix: [class, ns, class, ns, ...] of all its classes.
function readStrip(group) {
    const n = group.idle.length / 5,
        strip = { n, start: new Float64Array(n), ns: new Float64Array(n), kind: [], mix: [], text: [],
                  count: [] };
    let t = 0;
    for (let i = 0; i < n; i++) {
        const [step, ns, kind, text, many] = group.idle.slice(5 * i, 5 * i + 5),
            mix = many > 1 ? kind : [kind, ns];
        t += step;
        strip.start[i] = t;
        strip.ns[i] = ns;
        strip.mix.push(mix);
        strip.kind.push(sharesOf(mix)[0][0]);
        strip.text.push(text);
        strip.count.push(many);
    }
    return strip;
}

// [[class, ns], ...], the most first.
function sharesOf(mix) {
    const found = [];
    for (let n = 0; n < mix.length; n += 2) found.push([mix[n], mix[n + 1]]);
    return found.sort((a, b) => b[1] - a[1]);
}
for (const g of groups) g.strip = readStrip(g);
let idleChosen = null; // { g: group, k: piece }

// The number of the first piece that ends behind t.
const pieceAfter = (strip, t) => firstPlace(strip.n, m => strip.start[m] + strip.ns[m] > t);

const stripTop = g => g.y + g.height - STRIP - 2;

// The classes of a piece, one upon the other: parts of its ns are parts of the height.
function drawMix(c, x, bottom, w, shares, whole) {
    let y = bottom;
    for (const [kind, ns] of shares) {
        const h = (STRIP * ns) / whole;
        c.fillStyle = palette[classOf(kind)[0]];
        c.fillRect(x, y - h, w, h);
        y -= h;
    }
}

// A piece of EACH pixels and more is drawn by itself; of all others, the share of each column of pixels that
// belongs to each class.
const EACH = 3;

function drawStrip(c, g, width) {
    const s = g.strip,
        scale = width / (u1 - u0),
        bottom = stripTop(g) + STRIP,
        tMax = unfold(u1),
        columns = D.idle.classes.map(() => null);
    c.fillStyle = palette["--faint"];
    c.fillRect(0, bottom - STRIP, width, STRIP);
    for (let k = pieceAfter(s, unfold(u0)); k < s.n && s.start[k] <= tMax; k++) {
        const x = Math.max(-2, (fold(s.start[k]) - u0) * scale),
            w = Math.min(width + 2, (fold(s.start[k] + s.ns[k]) - u0) * scale) - x,
            chosenOne = idleChosen && idleChosen.g === g && idleChosen.k === k;
        if (w >= EACH) drawMix(c, x, bottom, w, sharesOf(s.mix[k]), s.ns[k]);
        else
            for (let n = 0; n < s.mix[k].length; n += 2)
                spread((columns[s.mix[k][n]] ||= new Float64Array(width + 3)), x, w,
                       s.mix[k][n + 1] / s.ns[k]);
        if (chosenOne) {
            c.strokeStyle = palette["--ink"];
            c.lineWidth = 2;
            c.strokeRect(x, bottom - STRIP, Math.max(w, 2), STRIP);
        }
    }
    drawColumns(c, columns, width, bottom);
}

// Adds a part of the pixels from x to x + w to the columns that they lie in.
function spread(column, x, w, part) {
    for (let p = Math.max(0, Math.floor(x)); p < x + w && p < column.length; p++)
        column[p] += (Math.min(x + w, p + 1) - Math.max(x, p)) * part;
}

function drawColumns(c, columns, width, bottom) {
    const known = [...columns.keys()].filter(kind => columns[kind]);
    for (let p = 0; p < width && known.length; p++) {
        const shares = known.map(kind => [kind, columns[kind][p]]).filter(share => share[1] > 0),
            sum = shares.reduce((all, [, part]) => all + part, 0);
        // Why not less than a pixel: idle time that is there is seen.
        if (sum) drawMix(c, p, bottom, 1, shares, Math.min(Math.max(1, sum), sum * STRIP));
    }
}

function drawStrips(c, width) {
    for (const g of groups) if (g.strip.n) drawStrip(c, g, width);
}

// What is known of a piece, in two lines.
function aboutIdle(g, k) {
    const s = g.strip,
        why = D.idle.texts[s.text[k]];
    if (s.count[k] === 1) return [`idle for ${time(s.ns[k])}`, why];
    const shares = sharesOf(s.mix[k]),
        idle = shares.reduce((all, [, ns]) => all + ns, 0),
        parts = shares.map(([kind, ns]) => `${classOf(kind)[1]} ${percent(ns / idle)}`);
    return [
        `idle for ${time(idle)} of ${time(s.ns[k])}, in ${plural(s.count[k], "piece")}`,
        `${parts.slice(0, 3).join(", ")}; most often ${why}`,
    ];
}

// The piece of a strip under a point of the canvas; null: none.
function idleAt(x, y) {
    const g = groups.find(group => group.strip.n && y >= stripTop(group) - 1 && y < group.y + group.height);
    if (!g) return null;
    const scale = (u1 - u0) / canvas.clientWidth,
        k = pieceAfter(g.strip, unfold(u0 + (x - 2) * scale));
    return k < g.strip.n && g.strip.start[k] <= unfold(u0 + (x + 2) * scale) ? { g, k } : null;
}

function chooseIdle(found) {
    idleChosen = found;
    const [head, why] = aboutIdle(found.g, found.k);
    say(`${found.g.name}: ${head}, from ${time(found.g.strip.start[found.k])}: ${why}.`);
    later();
}

// The next piece of the track where the keyboard is, or of the first engine that was idle.
function nextIdle(step) {
    const g = groups[here] && groups[here].strip.n ? groups[here] : groups.find(group => group.strip.n);
    if (!g) {
        say("No engine's idle time is known in this trace.");
        return;
    }
    here = groups.indexOf(g);
    const s = g.strip,
        again = idleChosen && idleChosen.g === g,
        k = Math.max(0, Math.min(s.n - 1, again ? idleChosen.k + step : pieceAfter(s, unfold(u0))));
    const a = fold(s.start[k]),
        b = fold(s.start[k] + s.ns[k]),
        size = Math.max((b - a) * 1.2, Math.min(u1 - u0, (b - a) * 200));
    if (a < u0 || b > u1 || size < u1 - u0) view((a + b) / 2 - size / 2, (a + b) / 2 + size / 2);
    reveal(g.y, g.y + g.height);
    chooseIdle({ g, k });
}

// What the colours of the strips mean, the class with most time first.
function idleLegend() {
    const totals = new Map();
    for (const g of groups)
        for (const [kind, ns] of g.strip.mix.flatMap(sharesOf))
            totals.set(kind, (totals.get(kind) || 0) + ns);
    if (!totals.size) return null;
    return el(
        "ul",
        { class: "keys idle", "aria-label": "Why an engine is idle: the strip under its track" },
        el("li", {}, "Idle:"),
        [...totals.keys()]
            .sort((a, b) => totals.get(b) - totals.get(a))
            .map(kind => el("li", {}, dot(`var(${classOf(kind)[0]})`), classOf(kind)[1])),
    );
}
