// SPDX-License-Identifier: MIT
// The strip under each engine: when it was idle, and why, by class.

const CLASSES = {
    // the colour of each class of analysis/idle.py, and its name in the legend
    host_busy: ["--c1", "host busy"],
    host_off_cpu: ["--c5", "host off the CPU"],
    host_blocked: ["--c3", "host waits"],
    host_untraced: ["--h3", "host, no span"],
    late_notice: ["--c6", "end not noticed"],
    late_thread: ["--c7", "thread does not run yet"],
    in_submit: ["--c4", "being submitted"],
    dispatch: ["--c0", "submitted, not started"],
    dependency: ["--c2", "another queue first"],
    unknown_lost: ["--bad", "spans lost"],
    unknown: ["--plain3", "not known"],
    no_demand: ["--plain2", "no request"],
    edge: ["--line", "before the first or after the last job"],
};
const classOf = k => CLASSES[D.idle.classes[k]] || CLASSES.unknown;

function readStrip(group) {
    const n = group.idle.length / 5,
        strip = { n, start: new Float64Array(n), ns: new Float64Array(n), kind: [], text: [], count: [] };
    let t = 0;
    for (let i = 0; i < n; i++) {
        const [step, ns, kind, text, many] = group.idle.slice(5 * i, 5 * i + 5);
        t += step;
        strip.start[i] = t;
        strip.ns[i] = ns;
        strip.kind.push(kind);
        strip.text.push(text);
        strip.count.push(many);
    }
    return strip;
}
for (const g of groups) g.strip = readStrip(g);
let idleChosen = null; // { g: group, k: piece }

// The number of the first piece that ends behind t.
const pieceAfter = (strip, t) => firstPlace(strip.n, m => strip.start[m] + strip.ns[m] > t);

const stripTop = g => g.y + g.height - STRIP - 2;

function drawStrip(c, g, width) {
    const s = g.strip,
        scale = width / (u1 - u0),
        y = stripTop(g),
        tMax = unfold(u1);
    let filled = -1,
        colour = "";
    for (let k = pieceAfter(s, unfold(u0)); k < s.n && s.start[k] <= tMax; k++) {
        const x = Math.max(-2, (fold(s.start[k]) - u0) * scale),
            w = Math.min(width + 2, (fold(s.start[k] + s.ns[k]) - u0) * scale) - x,
            v = classOf(s.kind[k])[0];
        const chosenOne = idleChosen && idleChosen.g === g && idleChosen.k === k;
        if (w < 1 && Math.floor(x) === filled && v === colour && !chosenOne) continue;
        filled = Math.floor(x);
        colour = v;
        c.globalAlpha = s.count[k] > 1 ? 0.6 : 1;
        c.fillStyle = palette[v];
        c.fillRect(x, y, Math.max(w, 0.8), STRIP);
        c.globalAlpha = 1;
        if (chosenOne) {
            c.strokeStyle = palette["--ink"];
            c.lineWidth = 2;
            c.strokeRect(x, y, Math.max(w, 2), STRIP);
        }
    }
}

function drawStrips(c, width) {
    for (const g of groups) if (g.strip.n) drawStrip(c, g, width);
}

// What is known of a piece, in two lines.
function aboutIdle(g, k) {
    const s = g.strip,
        why = D.idle.texts[s.text[k]];
    return s.count[k] > 1
        ? [`${plural(s.count[k], "piece")} of idle time in ${time(s.ns[k])}`, `most of it: ${why}`]
        : [`idle for ${time(s.ns[k])}`, why];
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
        for (let k = 0; k < g.strip.n; k++)
            totals.set(g.strip.kind[k], (totals.get(g.strip.kind[k]) || 0) + g.strip.ns[k]);
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
