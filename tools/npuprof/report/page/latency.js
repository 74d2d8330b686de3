// SPDX-License-Identifier: MIT
// Distributions of one name: a histogram, and the durations in the order of the run.

const MARKS = [
    ["p50", "median"],
    ["p90", "90 %"],
    ["p99", "99 %"],
];
const HISTOGRAM = { left: 44, bottom: 150, top: 34 };

// The scale of a histogram: X is the place of a duration, edge the duration where bin k begins.
function histogramScale(L, width) {
    const { left } = HISTOGRAM,
        n = L.bins.length;
    const flat = L.min === L.max,
        spread = L.log ? Math.log(L.max / L.min) : L.max - L.min;
    const X = ns =>
        left + (width - left) * (flat ? 0.5 : L.log ? Math.log(ns / L.min) / spread : (ns - L.min) / spread);
    const edge = k => (flat ? L.min : L.log ? L.min * Math.exp((spread * k) / n) : L.min + (spread * k) / n);
    return { X, edge, flat, spread };
}

function histogramBars(L, width, { X, edge, flat }) {
    const { left, bottom, top } = HISTOGRAM,
        most = Math.max(...L.bins),
        wide = (width - left) / L.bins.length,
        nodes = [];
    L.bins.forEach((v, k) => {
        const h = v ? Math.max(2, ((bottom - top) * v) / most) : 0,
            bar = flat ? Math.min(wide, 60) : wide;
        if (v)
            nodes.push(
                svg("rect", {
                    x: flat ? X(0) - bar / 2 : left + k * wide + 0.5,
                    width: Math.max(1, bar - 1),
                    y: bottom - h,
                    height: h,
                    rx: 1.5,
                    fill: "var(--c0)",
                    ...withTip(
                        `${count(v)} of ${count(L.count)}`,
                        `${time(edge(k))} to ${time(edge(k + 1))}`,
                    ),
                }),
            );
    });
    return nodes;
}

// The percentiles as dashed lines. A text that would touch the one before it stands a step lower.
function histogramMarks(L, width, { X, flat }) {
    const { left, bottom, top } = HISTOGRAM,
        nodes = [];
    let last = -99,
        level = 0;
    for (const [key, label] of flat ? [] : MARKS) {
        const x = X(L[key]),
            text = `${label} ${time(L[key])}`,
            half = text.length * 3.7;
        const at = Math.max(left + half, Math.min(width - half, x));
        level = at - half < last ? level + 1 : 0;
        last = Math.max(last, at + half + 8);
        nodes.push(
            svg("line", { class: "mark", x1: x, x2: x, y1: top - 18 + (level % 2) * 15, y2: bottom }),
            strong(at, top - 22 + (level % 2) * 15, "middle", text),
        );
    }
    return nodes;
}

function histogram(L, width) {
    const { left, bottom, top } = HISTOGRAM,
        n = L.bins.length,
        most = Math.max(...L.bins),
        scale = histogramScale(L, width),
        { X, edge, flat, spread } = scale;
    const nodes = [];
    const step = Math.max(1, niceStep(most / 3));
    for (let v = 0; v <= most; v += step) {
        const y = bottom - ((bottom - top) * v) / most;
        nodes.push(rule(left, width, y), axisText(left - 8, y + 4, "end", count(v)));
    }
    nodes.push(...histogramBars(L, width, scale), ...histogramMarks(L, width, scale));
    const ends = flat
        ? [[X(0), L.min, "middle"]]
        : L.log
          ? [
                [left, L.min, "start"],
                [(left + width) / 2, edge(n / 2), "middle"],
                [width, L.max, "end"],
            ]
          : [
                [left, L.min, "start"],
                [left + (width - left) / 2, L.min + spread / 2, "middle"],
                [width, L.max, "end"],
            ];
    nodes.push(...ends.map(([x, ns, anchor]) => axisText(x, bottom + 17, anchor, brief(ns))));
    if (L.log) nodes.push(axisText(width, bottom + 33, "end", "logarithmic scale"));
    return { height: bottom + (L.log ? 38 : 22), nodes };
}

// The median of each piece of the run, and the band from its min to its max.
function series(L, width) {
    const left = 60,
        bottom = 150,
        top = 16,
        n = L.series.length,
        most = Math.max(...L.series.map(s => s[2])) || 1,
        step = niceStep(most / 4);
    const high = Math.ceil(most / step) * step,
        Y = ns => bottom - ((bottom - top) * ns) / high,
        X = k => left + (width - left - 6) * (n > 1 ? k / (n - 1) : 0.5) + 3;
    const nodes = [],
        line = which => L.series.map((s, k) => `${X(k)},${Y(s[which])}`);
    for (let v = 0; v <= high; v += step)
        nodes.push(rule(left, width, Y(v)), axisText(left - 8, Y(v) + 4, "end", brief(v)));
    if (L.count > n)
        nodes.push(area(`M${[...line(2), ...line(0).reverse()].join("L")}Z`, "var(--c0)", 0.25));
    if (n > 1) nodes.push(curve(`M${line(1).join("L")}`, "var(--c0)"));
    if (n <= 80)
        nodes.push(
            ...L.series.map((s, k) =>
                svg("circle", {
                    cx: X(k),
                    cy: Y(s[1]),
                    r: 3,
                    fill: "var(--c0)",
                    ...withTip(time(s[1]), `number ${k + 1} of ${n}`),
                }),
            ),
        );
    nodes.push(axisText(left, bottom + 17, "start", "first"), axisText(width, bottom + 17, "end", "last"));
    return { height: bottom + 22, nodes };
}

const figuresOf = L => [
    ["Count", count(L.count)],
    ["Min", time(L.min)],
    ["Mean", time(L.mean)],
    ["Median", time(L.p50)],
    ["90 %", time(L.p90)],
    ["95 %", time(L.p95)],
    ["97 %", time(L.p97)],
    ["99 %", time(L.p99)],
    ["99.9 %", time(L.p999)],
    ["Max", time(L.max)],
];

function latency() {
    if (!D.latency.length) return;
    let L = D.latency[0];
    const select = el(
        "select",
        {
            id: "which",
            onchange: () => {
                L = D.latency[select.selectedIndex];
                fill();
                redraw();
            },
        },
        D.latency.map(l => el("option", {}, `${l.name || "(no name)"} (${count(l.count)})`)),
    );
    const figures = el("dl", { class: "figures" });
    const distribution = chart("", width => histogram(L, width)),
        run = chart("", width => series(L, width));
    const note = el("p", { class: "hint" });
    function fill() {
        figures.replaceChildren(
            ...figuresOf(L).map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))),
        );
        distribution.setAttribute(
            "aria-label",
            `Distribution of ${L.name}: ${count(L.count)} durations from ${time(L.min)} to ${time(L.max)}, ` +
                `median ${time(L.p50)}, 99 % within ${time(L.p99)}`,
        );
        run.setAttribute(
            "aria-label",
            `Durations of ${L.name} from the first to the last, from ${time(L.min)} to ${time(L.max)}`,
        );
        note.textContent =
            L.count > L.series.length
                ? "The curve is the median of about " +
                  `${count(Math.round(L.count / L.series.length))} in a row, the band their min and max.`
                : "";
    }
    fill();
    section(
        "latency",
        "Latency",
        "How long spans of one name took; warm-up is left out. " +
            "Percentiles are interpolated between the two nearest (type 7).",
        [el("label", { for: "which", class: "muted" }, "Spans"), select],
        el(
            "div",
            { class: "grid" },
            block("Distribution", distribution),
            block("In the order of the run", run),
        ),
        figures,
        note,
    );
}
