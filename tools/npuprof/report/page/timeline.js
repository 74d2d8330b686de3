// SPDX-License-Identifier: MIT
// Draws the report page from the JSON in #data. Texts of the trace go into the page as text, never as markup.
const D = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const HUES = 8;
const NOT_COMPUTE = new Set(["Execution", "Load", "Store"]);

// ---- small helpers

function make(space, tag, attributes, ...children) {
    const node = space ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
        else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
        else if (value !== null && value !== undefined && value !== false) node.setAttribute(key, value === true ? "" : value);
    }
    node.append(
        ...children
            .flat(9)
            .filter(child => child !== null && child !== undefined)
            .map(child => (child instanceof Node ? child : String(child))),
    );
    return node;
}
const el = (tag, attributes, ...children) => make(false, tag, attributes, ...children);
const svg = (tag, attributes, ...children) => make(true, tag, attributes, ...children);

const hint = (...children) => el("p", { class: "hint" }, ...children);
const h3 = text => el("h3", {}, text);
const dot = colour => el("i", { class: "dot", style: { background: colour } });
const rule = (x1, x2, y) => svg("line", { class: "axis", x1, x2, y1: y, y2: y });
const axisText = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);
const curve = (d, colour) => svg("path", { d, fill: "none", stroke: colour, "stroke-width": 1.5, "stroke-linejoin": "round" });
// Pairs of texts as a list of terms.
const pairsOf = pairs => pairs.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]);

const count = n => n.toLocaleString("en");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;
function digits(value, most, least = 0) {
    // at most four significant digits, no exponent
    const places = Math.max(0, Math.min(most, 3 - Math.floor(Math.log10(Math.abs(value) || 1))));
    return value.toLocaleString("en", { maximumFractionDigits: places, minimumFractionDigits: Math.min(least, places) });
}
function time(ns, least = 3) {
    const size = Math.abs(ns);
    if (size < 1e3) return `${Math.round(ns)} ns`;
    if (size < 1e6) return `${digits(ns / 1e3, 3, least)} µs`;
    if (size < 1e9) return `${digits(ns / 1e6, 3, least)} ms`;
    return `${digits(ns / 1e9, 3, least)} s`;
}
const brief = ns => (ns ? time(ns, 0) : "0"); // for axes
function bytes(n) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let u = 0;
    while (Math.abs(n) >= 1024 && u < 6) {
        n /= 1024;
        u++;
    }
    return `${digits(n, 2)} ${units[u]}`;
}
// Any number in a few characters: with the prefix of a unit, or an exponent where there is none.
function si(value) {
    const size = Math.abs(value);
    if (size && (size >= 1e21 || size < 1e-9)) return value.toExponential(2).replace("e+", "e");
    const prefixes = ["n", "µ", "m", "", "k", "M", "G", "T", "P", "E"];
    // Why not m for 0.25: people read the decimals of what is near 1.
    const step = size >= 1e3 || (size && size < 1e-3) ? Math.floor(Math.log10(size) / 3 + 1e-9) : 0;
    return `${digits(value / 1000 ** step, 3)}${step ? ` ${prefixes[step + 3]}` : ""}`;
}
const percent = share => `${(100 * share).toFixed(share < 0.0995 ? 2 : 1)} %`;
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Whole steps of a scale: 1, 2 or 5 times a power of ten.
function niceStep(rough) {
    const power = 10 ** Math.floor(Math.log10(rough || 1));
    return power * ([1, 2, 5].find(m => m * power >= rough) || 10);
}

// ---- colours: hues for the operators, then for what took most time; greys for the rest

const hueOf = new Map();
for (const table of D.tables)
    for (const row of table.rows)
        if (hueOf.size < HUES && !NOT_COMPUTE.has(row[0]) && !hueOf.has(row[0])) hueOf.set(row[0], hueOf.size);
const greyOf = new Map();
function variable(name) {
    if (hueOf.has(name)) return `--c${hueOf.get(name)}`;
    if (NOT_COMPUTE.has(name)) return "--plain2";
    if (!greyOf.has(name)) greyOf.set(name, ["--plain", "--plain3", "--plain4"][greyOf.size % 3]);
    return greyOf.get(name);
}
const paint = name => `var(${variable(name)})`;
let palette = {};
function readPalette() {
    palette = {};
    for (const name of [
        "--card",
        "--ink",
        "--soft",
        "--line",
        "--faint",
        "--accent",
        "--bad",
        "--plain",
        "--plain2",
        "--plain3",
        "--plain4",
        ...Array.from({ length: HUES }, (_, n) => `--c${n}`),
    ])
        palette[name] = css(name);
}
function darkInk(colour) {
    // is dark text the more readable one on this colour?
    const [r, g, b] = [1, 3, 5]
        .map(i => parseInt(colour.slice(i, i + 2), 16) / 255)
        .map(v => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.19;
}

// ---- tooltip

const tip = byId("tip");
function showTip(x, y, head, ...lines) {
    tip.replaceChildren(el("b", {}, head), ...lines.filter(Boolean).map(line => "\n" + line));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    tip.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
}
const hideTip = () => {
    tip.hidden = true;
};
const withTip = (head, ...lines) => ({
    onpointermove: event => showTip(event.clientX, event.clientY, head, ...lines),
    onpointerleave: hideTip,
});
addEventListener("keydown", event => {
    if (event.key === "Escape") hideTip();
});
addEventListener("scroll", hideTip, { passive: true, capture: true });

// ---- sections, and what is drawn anew when width or colours change

const drawings = [];
function redraw() {
    readPalette();
    for (const draw of drawings) draw();
}
function section(id, title, about, tools, ...children) {
    const node = el(
        "section",
        { id, "aria-labelledby": `${id}-title` },
        el(
            "div",
            { class: "head" },
            el("div", {}, el("h2", { id: `${id}-title` }, title), about ? el("p", { class: "about" }, about) : null),
            tools ? el("div", { class: "tools" }, tools) : null,
        ),
        ...children,
    );
    byId("sections").append(node);
    return node;
}
// A place for an SVG chart: draw(width) returns its height and children.
function chart(label, draw) {
    const place = svg("svg", { role: "img", "aria-label": label });
    drawings.push(() => {
        const width = Math.max(240, place.parentNode.clientWidth);
        const { height, nodes } = draw(width);
        place.setAttribute("viewBox", `0 0 ${width} ${height}`);
        place.setAttribute("height", height);
        place.replaceChildren(...nodes.filter(Boolean));
    });
    return place;
}

// ---- time with the long empty gaps folded

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
    parts.push({ t0: t, t1: Math.max(D.length, t + 1), u0: u, u1: u + Math.max(D.length - t, 1), gap: false });
}
const U = parts[parts.length - 1].u1;
function fold(t) {
    let low = 0,
        high = parts.length - 1;
    while (low < high) {
        const m = (low + high + 1) >> 1;
        if (parts[m].t0 <= t) low = m;
        else high = m - 1;
    }
    const p = parts[low];
    return p.u0 + ((t - p.t0) * (p.u1 - p.u0)) / (p.t1 - p.t0 || 1);
}
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
        for (let t = Math.ceil(from / step) * step; t <= to; t += step) found.push([p.u0 + t - p.t0, stamp(t, step, unfold(u1))]);
    }
    return found;
}
// A time on an axis that goes up to `most`: in the largest unit in which the step needs no more than one decimal.
function stamp(t, step, most) {
    const units = [
        [1e9, "s"],
        [1e6, "ms"],
        [1e3, "µs"],
        [1, "ns"],
    ];
    const [size, unit] = units.find(([size]) => size <= most && size <= 10 * step) || units[3];
    const places = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
    return `${(t / size).toLocaleString("en", { maximumFractionDigits: places, minimumFractionDigits: t ? places : 0 })} ${unit}`;
}
function timeAxis(width, left, y) {
    // for the SVG charts, the whole trace
    const x = u => left + ((width - left) * u) / U;
    let last = -99;
    return [
        ...parts
            .filter(p => p.gap)
            .map(p => svg("rect", { x: x(p.u0), width: Math.max(1, x(p.u1) - x(p.u0)), y: 0, height: y, fill: "var(--faint)" })),
        rule(left, width, y),
        ...timeTicks(0, U, width - left)
            .filter(([u]) => x(u) - last > 56 && x(u) < width - 20 && (last = x(u)))
            .map(([u, text]) => svg("text", { x: x(u), y: y + 16, "text-anchor": u === 0 ? "start" : "middle" }, text)),
    ];
}

// ---- head

function head() {
    byId("title").textContent = D.title;
    byId("subtitle").textContent = [
        `${plural(D.spans, "span")} in ${brief(D.length)}${D.recorded < D.length ? `, ${brief(D.length - D.recorded)} of it paused` : ""}`,
        ...D.about.filter(([key]) => key === "Started" || key === "Host").map(([, value]) => value),
        D.file,
    ].join("  ·  ");
    byId("foot").textContent = "Written by npuprof. This page is complete in itself: it loads nothing and sends nothing.";
    byId("warnings").append(...D.warnings.map(text => el("p", { class: "warning" }, text)));
    const fact = (label, value, more, alarm) =>
        byId("facts").append(
            el(
                "div",
                { class: alarm ? "alarm" : null },
                el("dt", {}, label),
                el("dd", {}, value, more ? el("small", {}, more) : null),
            ),
        );
    const all = D.latency[0];
    if (D.inferences && all) fact(`${plural(D.inferences, "inference")}, median`, time(all.p50), `99 % within ${time(all.p99)}`);
    const any = D.pes[D.pes.length - 1];
    if (any)
        fact(
            "Device busy",
            percent(any.share),
            `${time(any.busy)} of ${time(D.window)}${D.recorded < D.length ? ", pauses left out" : ""}`,
        );
    if (D.executions.count && D.executions.total)
        fact(
            "Execution computes",
            percent(D.executions.run / D.executions.total),
            `the rest of ${time(D.executions.total)} is waiting for data`,
        );
    const errors = D.devices.map(d => d.max_error_ns).filter(e => typeof e === "number");
    if (errors.length) fact("Device clock error", `± ${time(Math.max(...errors))}`, "bound of where device spans are drawn");
    if (D.lost !== null)
        fact(
            "Lost",
            count(D.lost),
            D.lost
                ? "spans and events"
                : D.damaged
                  ? "by its own count, but the image is damaged"
                  : D.open.count
                    ? `but ${plural(D.open.count, "span")} had not ended`
                    : "nothing: the trace is complete",
            D.lost > 0 || D.damaged,
        );
    if (!byId("facts").children.length) byId("facts").remove();
}

function themes() {
    const names = ["auto", "light", "dark"];
    let at = 0;
    try {
        at = Math.max(0, names.indexOf(localStorage.getItem("npuprof-theme")));
    } catch {
        /* no storage in this place: the choice lasts as the page does */
    }
    const apply = () => {
        if (at) document.documentElement.dataset.theme = names[at];
        else delete document.documentElement.dataset.theme;
        byId("theme").textContent = `Colours: ${names[at]}`;
    };
    byId("theme").addEventListener("click", () => {
        at = (at + 1) % 3;
        try {
            localStorage.setItem("npuprof-theme", names[at]);
        } catch {
            /* as above */
        }
        apply();
        redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    apply();
}

// ---- timeline

let showRange = () => {}; // zooms the timeline to a time and scrolls to it
let showSpan = () => {}; // selects the span of that name, start and length, too
function timeline() {
    const T = D.timeline,
        ROW = 17,
        PAD = 7,
        AXIS = 26,
        MAP = 40;
    if (!T.groups.length) {
        section("timeline", "Timeline", "No spans were recorded in this trace.");
        return;
    }
    let height = 0;
    const groups = T.groups.map(g => {
        const n = g.spans.length / 6,
            group = {
                ...g,
                n,
                row: new Uint16Array(n),
                start: new Float64Array(n),
                ns: new Float64Array(n),
                label: new Uint32Array(n),
                flags: new Uint8Array(n),
                text: new Uint32Array(n),
                lists: Array.from({ length: g.rows }, () => []),
                y: height,
            };
        let t = 0;
        for (let i = 0; i < n; i++) {
            const s = g.spans.slice(6 * i, 6 * i + 6);
            t += s[1];
            group.row[i] = s[0];
            group.start[i] = t;
            group.ns[i] = s[2];
            group.label[i] = s[3];
            group.flags[i] = s[4];
            group.text[i] = s[5];
            group.lists[s[0]].push(i);
        }
        group.height = Math.max(group.rows * ROW + PAD, 42);
        height += group.height;
        return group;
    });
    const links = new Map(); // "group,span" -> others
    for (let i = 0; i < T.links.length; i += 4) {
        const [a, b] = [`${T.links[i]},${T.links[i + 1]}`, `${T.links[i + 2]},${T.links[i + 3]}`];
        for (const [from, to] of [
            [a, b],
            [b, a],
        ])
            links.set(from, [...(links.get(from) || []), to]);
    }
    let u0 = 0,
        u1 = U,
        hover = null,
        chosen = null,
        only = null,
        here = 0,
        drag = null;

    const labels = el(
        "div",
        { "aria-hidden": "true" },
        groups.map(g =>
            el(
                "div",
                { class: "track", style: { height: `${g.height}px` }, title: g.name },
                el("b", {}, g.name),
                el("span", {}, `${percent(g.busy / (D.recorded || 1))} busy, ${count(g.count)}`),
            ),
        ),
    );
    const map = el("canvas", { id: "map", "aria-hidden": "true" }),
        axis = el("canvas", { "aria-hidden": "true" });
    const canvas = el("canvas", {
        id: "lanes",
        tabindex: 0,
        role: "application",
        "aria-roledescription": "timeline",
        "aria-label": `${groups.length} tracks over ${time(D.length)}: ${groups
            .slice(0, 12)
            .map(g => `${g.name}, ${count(g.count)} spans`)
            .join("; ")}`,
        "aria-describedby": "keys",
    });
    const detail = el("p", { class: "detail", role: "status" });
    const button = (text, label, act) =>
        el("button", { type: "button", class: "button", "aria-label": label, title: label, onclick: act }, text);
    const legend = el("ul", { class: "legend", "aria-label": "Show only spans of one name" });
    const shown = new Map();
    for (const g of groups)
        for (let i = 0; i < g.n; i++) shown.set(D.names[g.label[i]][0], (shown.get(D.names[g.label[i]][0]) || 0) + g.ns[i]);
    for (const g of groups) for (const [, name] of Object.values(g.density)) if (!shown.has(name)) shown.set(name, 0);
    const inLegend = [...hueOf.keys()]
        .filter(name => shown.has(name))
        .concat(
            [...shown.keys()]
                .filter(name => !hueOf.has(name))
                .sort((a, b) => shown.get(b) - shown.get(a))
                .slice(0, 6),
        );
    legend.append(
        ...inLegend.map(name =>
            el(
                "li",
                {},
                el(
                    "button",
                    {
                        type: "button",
                        class: "chip",
                        "aria-pressed": "false",
                        title: name,
                        onclick: event => {
                            only = only === name ? null : name;
                            for (const chip of legend.querySelectorAll("button"))
                                chip.setAttribute("aria-pressed", String(chip === event.currentTarget && only !== null));
                            draw();
                        },
                    },
                    dot(paint(name)),
                    el("span", {}, name || "(no name)"),
                ),
            ),
        ),
    );

    const about = [];
    if (T.folds.length)
        about.push(
            `${T.folds.length === 1 ? "A stretch without spans is" : `${T.folds.length} stretches without spans are`} folded (hatched).`,
        );
    if (T.drawn < D.spans)
        about.push(
            `${T.drawn ? `The shortest ${count(D.spans - T.drawn)} spans` : "The spans"} are drawn as density, in the colour of the name that has most of it.`,
        );
    if (T.left_out) about.push(`${count(T.left_out)} of the least busy tracks are left out.`);
    section(
        "timeline",
        "Timeline",
        `Host threads and device engines on one clock. ${about.join(" ")}`,
        [
            button("−", "Zoom out", () => zoom(2)),
            button("+", "Zoom in", () => zoom(0.5)),
            button("Whole trace", "Show the whole trace", () => view(0, U)),
        ],
        el("div", { class: "lanes" }, el("div", { class: "corner", "aria-hidden": "true" }, "Whole trace"), map, el("div"), axis),
        el("div", { class: "scroll" }, el("div", { class: "lanes" }, labels, canvas)),
        detail,
        legend,
        el(
            "p",
            { class: "hint", id: "keys" },
            "Drag over a range to zoom in, double-click for all; ",
            el("kbd", {}, "Ctrl"),
            " + wheel zooms. Keys: ",
            el("kbd", {}, "←"),
            " ",
            el("kbd", {}, "→"),
            " move, ",
            el("kbd", {}, "+"),
            " ",
            el("kbd", {}, "−"),
            " zoom, ",
            el("kbd", {}, "0"),
            " whole, ",
            el("kbd", {}, "↑"),
            " ",
            el("kbd", {}, "↓"),
            " track, ",
            el("kbd", {}, "N"),
            " ",
            el("kbd", {}, "P"),
            " next and previous span, ",
            el("kbd", {}, "Enter"),
            " zoom to it.",
        ),
    );

    const spanOf = key => {
        const [g, i] = key.split(",").map(Number);
        return { g, i };
    };
    const same = (a, b) => a && b && a.g === b.g && a.i === b.i;
    const nameOf = s => D.names[groups[s.g].label[s.i]][0];
    function describe(s) {
        const g = groups[s.g],
            flags = g.flags[s.i],
            [name, cat] = D.names[g.label[s.i]];
        return {
            head: name || "(no name)",
            when: `${time(g.ns[s.i])}, from ${time(g.start[s.i])}`,
            where: [g.name, cat].filter(Boolean).join("  ·  "),
            notes: [
                flags & 1 && "unfinished",
                flags & 2 && "ended by unwinding",
                flags & 4 && "outside its submission",
                flags & 8 && "warm-up",
            ]
                .filter(Boolean)
                .join(", "),
            args: T.texts[g.text[s.i]],
        };
    }
    function say(text) {
        detail.classList.add("told");
        detail.textContent = text;
    }
    function tell(s) {
        detail.classList.toggle("told", Boolean(s));
        if (!s) {
            detail.replaceChildren(el("span", { class: "muted" }, "No span selected."));
            return;
        }
        const d = describe(s);
        detail.replaceChildren(
            el("b", {}, d.head),
            `  ${d.when}  ·  ${d.where}`,
            d.notes ? `  ·  ${d.notes}` : "",
            d.args ? el("span", { class: "muted" }, el("br"), d.args) : "",
        );
    }

    function prepare(target, h) {
        // a canvas in device pixels; its context and width
        const ratio = devicePixelRatio || 1,
            width = target.clientWidth;
        if (target.width !== Math.round(width * ratio) || target.height !== Math.round(h * ratio)) {
            target.width = Math.round(width * ratio);
            target.height = Math.round(h * ratio);
            target.style.height = `${h}px`;
        }
        const c = target.getContext("2d");
        c.setTransform(ratio, 0, 0, ratio, 0, 0);
        c.clearRect(0, 0, width, h);
        return [c, width];
    }
    let hatch = null;
    function hatching(c) {
        const tile = document.createElement("canvas");
        tile.width = tile.height = 8;
        const t = tile.getContext("2d");
        t.strokeStyle = palette["--line"];
        t.lineWidth = 2;
        for (const o of [-8, 0, 8]) {
            t.beginPath();
            t.moveTo(o, 8);
            t.lineTo(o + 8, 0);
            t.stroke();
        }
        hatch = c.createPattern(tile, "repeat");
    }

    function drawSpans(c, g, width, top, row, rowHeight, from, to, small) {
        const list = g.lists[row],
            scale = width / (to - from),
            X = t => (fold(t) - from) * scale;
        const tMin = unfold(from),
            tMax = unfold(to);
        if (g.density[row]) {
            const [text, most] = g.density[row],
                step = U / text.length;
            c.fillStyle = palette[variable(most)];
            c.globalAlpha = only !== null && only !== most ? 0.15 : 0.7;
            for (let k = Math.max(0, Math.floor(from / step)); k < text.length && k * step < to; k++) {
                const level = parseInt(text[k], 32);
                if (level) {
                    const h = Math.max(2, ((rowHeight - 2) * level) / 31),
                        x = (k * step - from) * scale;
                    c.fillRect(x, top + rowHeight - 1 - h, Math.max(1, step * scale), h);
                }
            }
            c.globalAlpha = 1;
        }
        let low = 0,
            high = list.length; // the first span that may end in view
        while (low < high) {
            const m = (low + high) >> 1;
            if (g.start[list[m]] + g.ns[list[m]] < tMin) low = m + 1;
            else high = m;
        }
        let filled = -1,
            colour = "";
        for (let k = low; k < list.length; k++) {
            const i = list[k];
            if (g.start[i] > tMax) break;
            const x = Math.max(-2, X(g.start[i])),
                w = Math.min(width + 2, X(g.start[i] + g.ns[i])) - x;
            const name = D.names[g.label[i]][0],
                v = variable(name);
            if (w < 1 && Math.floor(x) === filled && v === colour) continue;
            filled = Math.floor(x);
            colour = v;
            const dim = only !== null && name !== only;
            c.globalAlpha = dim ? 0.15 : g.flags[i] & 8 ? 0.55 : 1;
            c.fillStyle = palette[v];
            c.fillRect(x, top + 1, Math.max(w - (w > 3 ? 0.6 : 0), 0.8), Math.max(1, rowHeight - 2));
            if (g.flags[i] & 5) {
                c.fillStyle = palette["--bad"];
                c.fillRect(x, top + rowHeight - 3, Math.max(w, 1), 2);
            }
            c.globalAlpha = 1;
            if (!small && w > 26 && !dim) {
                const text = fitted(c, name, w - 7);
                c.fillStyle = g.flags[i] & 8 ? palette["--ink"] : darkInk(palette[v]) ? "#14171b" : "#ffffff";
                if (text) c.fillText(text, Math.max(x, 0) + 4, top + rowHeight / 2 + 0.5);
            }
        }
    }

    const widths = new Map();
    function fitted(c, name, room) {
        // the text cut to its room; "" if hardly anything is left
        if (!widths.has(name)) widths.set(name, c.measureText(name).width);
        const wide = widths.get(name);
        if (wide <= room) return name;
        const keep = Math.floor((name.length * (room - 9)) / wide);
        return keep < 2 ? "" : name.slice(0, keep) + "…";
    }

    function outline(c, s, width, strong) {
        const g = groups[s.g],
            scale = width / (u1 - u0),
            x = (fold(g.start[s.i]) - u0) * scale;
        const w = Math.max(2, (fold(g.start[s.i] + g.ns[s.i]) - u0) * scale - x);
        c.strokeStyle = palette["--ink"];
        c.lineWidth = strong ? 2 : 1.2;
        c.strokeRect(x, g.y + 4 + g.row[s.i] * ROW + 0.5, w, ROW - 1);
        return { x, y: g.y + 4 + g.row[s.i] * ROW + ROW / 2 };
    }
    function arrowsOf(c, s, width) {
        const from = outline(c, s, width, same(s, chosen));
        for (const key of links.get(`${s.g},${s.i}`) || []) {
            const to = outline(c, spanOf(key), width, false);
            c.strokeStyle = palette["--accent"];
            c.lineWidth = 1.5;
            const bend = Math.max(16, Math.abs(to.x - from.x) / 2),
                way = to.x >= from.x ? 1 : -1;
            c.beginPath();
            c.moveTo(from.x, from.y);
            c.bezierCurveTo(from.x + way * bend, from.y, to.x - way * bend, to.y, to.x, to.y);
            c.stroke();
            c.beginPath();
            c.arc(to.x, to.y, 3, 0, 7);
            c.fillStyle = palette["--accent"];
            c.fill();
        }
    }

    function draw() {
        let [c, width] = prepare(canvas, height);
        const scale = width / (u1 - u0);
        hatching(c);
        c.font = `11.5px ${css("--sans")}`;
        c.textBaseline = "middle";
        groups.forEach((g, n) => {
            if (n) {
                c.fillStyle = palette["--faint"];
                c.fillRect(0, g.y, width, 1);
            }
            labels.children[n].classList.toggle("here", n === here && document.activeElement === canvas);
        });
        for (const p of parts)
            if (p.gap) {
                c.fillStyle = hatch;
                c.fillRect((p.u0 - u0) * scale, 0, (p.u1 - p.u0) * scale, height);
            }
        for (const [u] of timeTicks(u0, u1, width)) {
            c.fillStyle = palette["--faint"];
            c.fillRect(Math.round((u - u0) * scale), 0, 1, height);
        }
        for (const g of groups)
            for (let row = 0; row < g.rows; row++) drawSpans(c, g, width, g.y + 4 + row * ROW, row, ROW, u0, u1, false);
        for (const t of T.marks) {
            c.fillStyle = palette["--bad"];
            c.fillRect((fold(t) - u0) * scale, 0, 1, height);
        }
        if (chosen) arrowsOf(c, chosen, width);
        if (hover && !same(hover, chosen)) arrowsOf(c, hover, width);
        if (drag) {
            c.fillStyle = palette["--accent"];
            c.globalAlpha = 0.15;
            c.fillRect(Math.min(drag.x0, drag.x1), 0, Math.abs(drag.x1 - drag.x0), height);
            c.globalAlpha = 1;
        }

        [c, width] = prepare(axis, AXIS);
        c.font = `12px ${css("--sans")}`;
        c.textBaseline = "middle";
        let last = -99;
        for (const p of parts)
            if (p.gap && p.u1 > u0 && p.u0 < u1) {
                const x0 = (p.u0 - u0) * scale,
                    x1 = (p.u1 - u0) * scale,
                    text = `${brief(p.t1 - p.t0)} ${p.paused ? "paused" : "empty"}`;
                c.fillStyle = hatch;
                c.fillRect(x0, 0, x1 - x0, AXIS);
                c.fillStyle = palette["--card"];
                const w = c.measureText(text).width + 8,
                    x = Math.max(0, Math.min(width - w, (x0 + x1) / 2 - w / 2));
                c.fillRect(x, 3, w, AXIS - 6);
                c.fillStyle = palette["--ink"];
                c.fillText(text, x + 4, AXIS / 2);
                p.from = x;
                p.to = x + w;
            } else p.from = p.to = -999;
        c.fillStyle = palette["--soft"];
        for (const [u, text] of timeTicks(u0, u1, width)) {
            const x = (u - u0) * scale,
                w = c.measureText(text).width,
                at = Math.max(0, Math.min(width - w, x - w / 2));
            if (at < last + 12 || parts.some(p => p.gap && at < p.to + 6 && at + w > p.from - 6)) continue;
            c.fillText(text, at, AXIS / 2);
            last = at + w;
        }

        [c, width] = prepare(map, MAP);
        const each = Math.max(2, Math.min(9, (MAP - 4) / groups.length));
        groups.forEach((g, n) => {
            if (2 + (n + 1) * each <= MAP + each) drawSpans(c, g, width, 1 + n * each, 0, each, 0, U, true);
        });
        c.fillStyle = palette["--card"];
        c.globalAlpha = 0.72;
        const a = (width * u0) / U,
            b = (width * u1) / U;
        c.fillRect(0, 0, a, MAP);
        c.fillRect(b, 0, width - b, MAP);
        c.globalAlpha = 1;
        c.strokeStyle = palette["--accent"];
        c.lineWidth = 1.5;
        c.strokeRect(a + 0.75, 0.75, Math.max(3, b - a - 1.5), MAP - 1.5);
    }
    let asked = false;
    function later() {
        if (!asked) {
            asked = true;
            requestAnimationFrame(() => {
                asked = false;
                draw();
            });
        }
    }

    function view(a, b) {
        const least = Math.min(U, 50),
            size = Math.max(least, Math.min(U, b - a));
        a = Math.max(0, Math.min(U - size, (a + b) / 2 - size / 2));
        [u0, u1] = [a, a + size];
        later();
    }
    const zoom = (factor, at = (u0 + u1) / 2) => view(at - (at - u0) * factor, at + (u1 - at) * factor);
    const move = share => view(u0 + share * (u1 - u0), u1 + share * (u1 - u0));
    showRange = (from, to) => {
        const a = fold(from),
            b = fold(to);
        view(a - (b - a) * 0.6, b + (b - a) * 0.6);
        byId("timeline").scrollIntoView({ behavior: "smooth", block: "start" });
        canvas.focus({ preventScroll: true });
    };

    showSpan = (name, start, ns) => {
        showRange(start, start + ns);
        groups.forEach((g, n) => {
            const i = g.start.findIndex((t, k) => t === start && g.ns[k] === ns && nameOf({ g: n, i: k }) === name);
            if (i >= 0) choose({ g: n, i });
        });
        if (chosen) revealSpan(chosen, false);
    };
    // Scrolls so that these rows of pixels are in sight: in the box of lanes, and the box in the page, above what is told of them.
    function reveal(top, bottom, inPage = true) {
        const box = canvas.parentNode.parentNode;
        if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - 20;
        if (!inPage) return;
        const y = canvas.getBoundingClientRect().top,
            end = innerHeight - detail.offsetHeight;
        if (y + top < 0) scrollBy(0, y + top - 40);
        else if (y + bottom > end) scrollBy(0, Math.min(y + top - 40, y + bottom - end + 10));
    }
    function revealSpan(s, inPage) {
        const y = groups[s.g].y + 4 + groups[s.g].row[s.i] * ROW;
        reveal(y, y + ROW, inPage);
    }

    function at(x, y) {
        // the span under a point
        const n = groups.findIndex(g => y >= g.y && y < g.y + g.height);
        if (n < 0) return null;
        const g = groups[n],
            list = g.lists[Math.floor((y - g.y - 4) / ROW)];
        if (!list) return null;
        const scale = canvas.clientWidth / (u1 - u0),
            t0 = unfold(u0 + (x - 2) / scale),
            t1 = unfold(u0 + (x + 2) / scale);
        let low = 0,
            high = list.length;
        while (low < high) {
            const m = (low + high) >> 1;
            if (g.start[list[m]] <= t1) low = m + 1;
            else high = m;
        }
        for (let k = low - 1; k >= 0 && k > low - 8; k--) if (g.start[list[k]] + g.ns[list[k]] >= t0) return { g: n, i: list[k] };
        return null;
    }
    function choose(s) {
        chosen = s;
        if (s) here = s.g;
        tell(s);
        later();
    }
    function next(step) {
        const g = groups[here];
        if (!g.n) {
            say(`${g.name}: its spans are too short to be drawn one by one.`);
            return;
        }
        let i = chosen && chosen.g === here ? chosen.i + step : -1;
        if (i < 0 || i >= g.n) {
            const t = unfold(u0);
            i =
                chosen && chosen.g === here
                    ? Math.max(0, Math.min(g.n - 1, i))
                    : Math.max(
                          0,
                          g.start.findIndex(v => v >= t),
                      );
        }
        choose({ g: here, i });
        const a = fold(g.start[i]),
            b = fold(g.start[i] + g.ns[i]);
        if (a < u0 || b > u1) {
            const size = Math.max(u1 - u0, (b - a) * 1.2);
            view((a + b) / 2 - size / 2, (a + b) / 2 + size / 2);
        }
        revealSpan(chosen);
    }
    const place = event => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointerdown", event => {
        if (event.button) return;
        const [x] = place(event);
        drag = { x0: x, x1: x };
        canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
        const [x, y] = place(event);
        if (drag) {
            drag.x1 = x;
            hideTip();
            later();
            return;
        }
        const found = at(x, y);
        if (!same(found, hover) || !found !== !hover) {
            hover = found;
            later();
        }
        if (!found) {
            hideTip();
            return;
        }
        const d = describe(found);
        showTip(event.clientX, event.clientY, d.head, d.when, d.where, d.notes, d.args);
    });
    canvas.addEventListener("pointerup", event => {
        if (!drag) return;
        const [a, b] = [Math.min(drag.x0, drag.x1), Math.max(drag.x0, drag.x1)],
            scale = (u1 - u0) / canvas.clientWidth;
        drag = null;
        if (b - a > 4) view(u0 + a * scale, u0 + b * scale);
        else choose(at(...place(event)));
    });
    canvas.addEventListener("pointercancel", () => {
        drag = null;
        later();
    });
    canvas.addEventListener("pointerleave", () => {
        hover = null;
        hideTip();
        later();
    });
    canvas.addEventListener("dblclick", () => view(0, U));
    canvas.addEventListener("focus", later);
    canvas.addEventListener("blur", later);
    canvas.addEventListener(
        "wheel",
        event => {
            const [x] = place(event),
                wide = event.shiftKey ? event.deltaY : event.deltaX;
            if (event.ctrlKey || event.metaKey)
                zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120), u0 + (x * (u1 - u0)) / canvas.clientWidth);
            else if (Math.abs(wide) > Math.abs(event.shiftKey ? 0 : event.deltaY) && (u0 > 0 || u1 < U))
                move(wide / canvas.clientWidth);
            else return;
            event.preventDefault();
        },
        { passive: false },
    );
    const keys = {
        ArrowLeft: () => move(-0.15),
        ArrowRight: () => move(0.15),
        "+": () => zoom(0.6),
        "=": () => zoom(0.6),
        "-": () => zoom(1 / 0.6),
        0: () => view(0, U),
        Home: () => view(0, u1 - u0),
        End: () => view(U - (u1 - u0), U),
        n: () => next(1),
        p: () => next(-1),
        ArrowDown: () => track(1),
        ArrowUp: () => track(-1),
        Escape: () => choose(null),
        Enter: () => {
            if (chosen) {
                const g = groups[chosen.g],
                    a = fold(g.start[chosen.i]),
                    b = fold(g.start[chosen.i] + g.ns[chosen.i]);
                view(a - (b - a) * 0.1, b + (b - a) * 0.1);
            }
        },
    };
    function track(step) {
        here = Math.max(0, Math.min(groups.length - 1, here + step));
        const g = groups[here];
        say(`${g.name}: ${plural(g.count, "span")}, ${percent(g.busy / (D.recorded || 1))} busy.`);
        reveal(g.y, g.y + g.height);
        later();
    }
    canvas.addEventListener("keydown", event => {
        const act = keys[event.key] || keys[event.key.toLowerCase()];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
    });
    let grip = null;
    const over = event => {
        const box = map.getBoundingClientRect();
        return ((event.clientX - box.left) / box.width) * U;
    };
    map.addEventListener("pointerdown", event => {
        const u = over(event);
        grip = u >= u0 && u <= u1 && u1 - u0 < U ? u - u0 : (u1 - u0) / 2;
        map.setPointerCapture(event.pointerId);
        view(u - grip, u - grip + u1 - u0);
    });
    map.addEventListener("pointermove", event => {
        if (grip !== null) {
            const u = over(event);
            view(u - grip, u - grip + u1 - u0);
        }
    });
    map.addEventListener("pointerup", () => {
        grip = null;
    });
    tell(null);
    drawings.push(draw);
}

// ---- latency

function latency() {
    if (!D.latency.length) return;
    let L = D.latency[0];
    const MARKS = [
        ["p50", "median"],
        ["p90", "90 %"],
        ["p99", "99 %"],
    ];
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
    const histogram = chart("", width => {
        const left = 44,
            bottom = 150,
            top = 34,
            n = L.bins.length,
            most = Math.max(...L.bins),
            wide = (width - left) / n;
        const flat = L.min === L.max,
            spread = L.log ? Math.log(L.max / L.min) : L.max - L.min;
        const X = ns => left + (width - left) * (flat ? 0.5 : L.log ? Math.log(ns / L.min) / spread : (ns - L.min) / spread);
        const edge = k => (flat ? L.min : L.log ? L.min * Math.exp((spread * k) / n) : L.min + (spread * k) / n);
        const nodes = [];
        const step = Math.max(1, niceStep(most / 3));
        for (let v = 0; v <= most; v += step) {
            const y = bottom - ((bottom - top) * v) / most;
            nodes.push(rule(left, width, y), axisText(left - 8, y + 4, "end", count(v)));
        }
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
                        ...withTip(`${count(v)} of ${count(L.count)}`, `${time(edge(k))} to ${time(edge(k + 1))}`),
                    }),
                );
        });
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
                svg("text", { class: "strong", x: at, y: top - 22 + (level % 2) * 15, "text-anchor": "middle" }, text),
            );
        }
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
    });
    const series = chart("", width => {
        const left = 60,
            bottom = 150,
            top = 16,
            n = L.series.length,
            most = Math.max(...L.series.map(s => s[2])) || 1,
            step = niceStep(most / 4);
        const high = Math.ceil(most / step) * step,
            Y = ns => bottom - ((bottom - top) * ns) / high,
            X = k => left + (width - left - 6) * (n > 1 ? k / (n - 1) : 0.5) + 3;
        const nodes = [];
        for (let v = 0; v <= high; v += step) nodes.push(rule(left, width, Y(v)), axisText(left - 8, Y(v) + 4, "end", brief(v)));
        if (L.count > n)
            nodes.push(
                svg("path", {
                    fill: "var(--c0)",
                    opacity: 0.25,
                    d:
                        "M" +
                        L.series.map((s, k) => `${X(k)},${Y(s[2])}`).join("L") +
                        "L" +
                        L.series
                            .map((s, k) => `${X(k)},${Y(s[0])}`)
                            .reverse()
                            .join("L") +
                        "Z",
                }),
            );
        if (n > 1)
            nodes.push(
                svg("path", {
                    fill: "none",
                    stroke: "var(--c0)",
                    "stroke-width": 1.5,
                    "stroke-linejoin": "round",
                    d: "M" + L.series.map((s, k) => `${X(k)},${Y(s[1])}`).join("L"),
                }),
            );
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
    });
    const note = el("p", { class: "hint" });
    function fill() {
        figures.replaceChildren(
            ...[
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
            ].map(([key, value]) => el("div", {}, el("dt", {}, key), el("dd", {}, value))),
        );
        histogram.setAttribute(
            "aria-label",
            `Distribution of ${L.name}: ${count(L.count)} durations from ${time(L.min)} to ${time(L.max)}, median ${time(L.p50)}, 99 % within ${time(L.p99)}`,
        );
        series.setAttribute(
            "aria-label",
            `Durations of ${L.name} from the first to the last, from ${time(L.min)} to ${time(L.max)}`,
        );
        note.textContent =
            L.count > L.series.length
                ? `The curve is the median of about ${count(Math.round(L.count / L.series.length))} in a row, the band their least and most.`
                : "";
    }
    fill();
    section(
        "latency",
        "Latency",
        "How long spans of one name took; warm-up is left out. Percentiles are interpolated between the two nearest (type 7).",
        [el("label", { for: "which", class: "muted" }, "Spans"), select],
        el(
            "div",
            { class: "grid" },
            el("div", {}, h3("Distribution"), histogram),
            el("div", {}, h3("In the order of the run"), series),
        ),
        figures,
        note,
    );
}

// ---- tables with bars

function operators() {
    if (!D.tables.length) return;
    const tabs = el("div", { class: "tools", role: "tablist", "aria-label": "Which spans" }),
        place = el("div", { role: "tabpanel", id: "panel", tabindex: -1 });
    const about = el("p", { class: "about" });
    let at = 0;
    function show(n) {
        at = n;
        [...tabs.children].forEach((tab, k) => {
            tab.setAttribute("aria-selected", String(k === n));
            tab.tabIndex = k === n ? 0 : -1;
        });
        about.textContent = D.tables[n].about;
        place.replaceChildren(barTable(D.tables[n]));
    }
    tabs.append(
        ...D.tables.map((table, n) =>
            el(
                "button",
                {
                    type: "button",
                    class: "button",
                    role: "tab",
                    "aria-controls": "panel",
                    onclick: () => show(n),
                    onkeydown: event => {
                        const to = { ArrowRight: n + 1, ArrowLeft: n - 1 }[event.key];
                        if (to !== undefined && tabs.children[to]) {
                            event.preventDefault();
                            show(to);
                            tabs.children[to].focus();
                        }
                    },
                },
                table.title,
            ),
        ),
    );
    const node = section("operators", "Operators", "", tabs, place);
    node.querySelector("h2").after(about);
    show(0);
}
function barTable(table) {
    const share = 1 + table.columns.findIndex(c => c === "self" || c === "total"); // the column that the bars show
    const sum = table.rows.reduce((all, row) => all + row[share], 0) || 1,
        most = Math.max(...table.rows.map(row => row[share])) || 1;
    let sorted = share,
        down = true;
    const body = el("tbody"),
        headers = [];
    function fill() {
        const rows = [...table.rows].sort(
            (a, b) =>
                (typeof a[sorted] === "string" ? a[sorted].localeCompare(b[sorted]) : a[sorted] - b[sorted]) * (down ? -1 : 1),
        );
        body.replaceChildren(
            ...rows.map(row =>
                el(
                    "tr",
                    {},
                    el(
                        "td",
                        {},
                        el("div", { class: "name", title: row[0] }, dot(paint(row[0])), el("span", {}, row[0] || "(no name)")),
                    ),
                    el(
                        "td",
                        { class: "bar" },
                        el(
                            "div",
                            { class: "meter" },
                            el(
                                "div",
                                {},
                                el("i", { style: { width: `${(100 * row[share]) / most}%`, background: paint(row[0]) } }),
                            ),
                            el("em", {}, percent(row[share] / sum)),
                        ),
                    ),
                    ...table.columns.map((c, k) =>
                        el("td", { class: "n" }, c === "count" ? count(row[k + 1]) : time(row[k + 1])),
                    ),
                ),
            ),
        );
        headers.forEach(([th, column]) => {
            if (column === sorted) th.setAttribute("aria-sort", down ? "descending" : "ascending");
            else th.removeAttribute("aria-sort");
        });
    }
    function header(text, column, numeric) {
        const th = el(
            "th",
            { scope: "col", class: numeric ? "n" : null },
            el(
                "button",
                {
                    type: "button",
                    onclick: () => {
                        down = sorted === column ? !down : numeric;
                        sorted = column;
                        fill();
                    },
                },
                text,
            ),
        );
        headers.push([th, column]);
        return th;
    }
    const node = el(
        "div",
        { class: "wide" },
        el(
            "table",
            {},
            el("caption", { hidden: true }, table.title),
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    header("name", 0, false),
                    el("th", { scope: "col" }, `share of ${table.columns[share - 1]}`),
                    ...table.columns.map((c, k) => header(c, k + 1, true)),
                ),
            ),
            body,
        ),
        table.left_out ? hint(`${count(table.left_out)} more names with less time are left out.`) : null,
    );
    fill();
    return node;
}

// ---- the device

function stack(pieces, total) {
    // [{ name, value, colour }]
    return [
        el(
            "div",
            { class: "stack", role: "img", "aria-label": pieces.map(p => `${p.name} ${time(p.value)}`).join(", ") },
            pieces.map(p =>
                el("i", {
                    style: { width: `${(100 * p.value) / (total || 1)}%`, background: p.colour },
                    ...withTip(p.name, time(p.value), percent(p.value / (total || 1))),
                }),
            ),
        ),
        el(
            "ul",
            { class: "keys" },
            pieces.map(p => el("li", {}, dot(p.colour), `${p.name} ${time(p.value)} (${percent(p.value / (total || 1))})`)),
        ),
    ];
}
function simpleTable(columns, rows) {
    return el(
        "div",
        { class: "wide" },
        el(
            "table",
            {},
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    columns.map(([text, numeric]) => el("th", { scope: "col", class: numeric ? "n" : null }, text)),
                ),
            ),
            el(
                "tbody",
                {},
                rows.map(row =>
                    el(
                        "tr",
                        {},
                        row.map((value, k) => el("td", { class: columns[k][1] ? "n" : null }, value)),
                    ),
                ),
            ),
        ),
    );
}
function leftOpen() {
    if (!D.open.count) return;
    section(
        "open",
        "Open when it ended",
        `Spans without an end, as a crash leaves them: of each thread the innermost first, then what is around it.${
            D.open.count > D.open.rows.length ? ` The first ${D.open.rows.length} of ${count(D.open.count)}.` : ""
        }`,
        null,
        simpleTable(
            [["thread"], ["span"], ["begun", true], ["open for", true], [""]],
            D.open.rows.map(s => [
                s.thread,
                el("div", { class: "name", title: s.span }, el("span", {}, s.span || "(no name)")),
                time(s.start),
                time(s.ns),
                el(
                    "button",
                    {
                        type: "button",
                        class: "button",
                        "aria-label": `Show ${s.span} in the timeline`,
                        onclick: () => showSpan(s.span, s.start, s.ns),
                    },
                    "Show",
                ),
            ]),
        ),
    );
}
function device() {
    const blocks = [],
        columns = [[], []];
    if (D.executions.count) {
        const { total, run, count: n } = D.executions;
        blocks.push(
            el(
                "div",
                {},
                h3(`What ${n === 1 ? "the execution" : `${count(n)} executions`} did`),
                stack(
                    [
                        { name: "Run", value: run, colour: "var(--c2)" },
                        { name: "IoWait", value: total - run, colour: "var(--plain)" },
                    ],
                    total,
                ),
                hint(
                    `Run is the time in which at least one compute span was open, or the device counted as busy. ${time(total / n)} an execution.`,
                    D.executions.unknown ? ` ${plural(D.executions.unknown, "more execution")} without either.` : "",
                ),
            ),
        );
    }
    if (D.path.length) {
        const colours = { queue: "var(--c1)", execute: "var(--c2)", wait: "var(--c3)" },
            total = D.path.reduce((sum, p) => sum + p.total, 0);
        blocks.push(
            el(
                "div",
                {},
                h3("From submit to completion"),
                stack(
                    D.path.map(p => ({ name: p.phase, value: p.total, colour: colours[p.phase] })),
                    total,
                ),
                simpleTable(
                    [["phase"], ["mean", true], ["median", true], ["99 %", true], ["max", true]],
                    D.path.map(p => [p.phase, time(p.mean), time(p.p50), time(p.p99), time(p.max)]),
                ),
                hint("queue: submit to start. execute: on the device. wait: its end to the host's notice."),
            ),
        );
    }
    if (D.pes.length)
        blocks.push(
            el(
                "div",
                {},
                h3("Engines"),
                simpleTable(
                    [["engine"], ["busy"], ["computes", true], ["time", true], ["spans", true]],
                    D.pes.map(p => [
                        p.name,
                        el(
                            "div",
                            { class: "meter" },
                            el("div", {}, el("i", { style: { width: `${100 * p.share}%`, background: "var(--c0)" } })),
                            el("em", {}, percent(p.share)),
                        ),
                        p.compute === null ? "–" : percent(p.compute),
                        time(p.busy),
                        count(p.spans),
                    ]),
                ),
                hint(
                    `Busy: a span is open. Computes: an operator runs. Both of the ${time(D.window)} from the first to the last span of any engine${D.recorded < D.length ? ", pauses left out" : ""}.`,
                ),
            ),
        );
    if (D.gaps.length)
        blocks.push(
            el(
                "div",
                {},
                h3("The device is idle while the host works"),
                simpleTable(
                    [["at", true], ["idle", true], ["host was in"], [""]],
                    D.gaps.slice(0, 6).map(g => [
                        time(g.start),
                        time(g.ns),
                        el(
                            "div",
                            { class: "name", title: `${g.span} on ${g.thread}` },
                            el("span", {}, g.span ? `${g.span} (${g.thread})` : "–"),
                        ),
                        el(
                            "button",
                            {
                                type: "button",
                                class: "button",
                                "aria-label": `Show the gap at ${time(g.start)} in the timeline`,
                                onclick: () => showRange(g.start, g.start + g.ns),
                            },
                            "Show",
                        ),
                    ]),
                ),
            ),
        );
    for (const block of blocks) (columns[0].length <= columns[1].length ? columns[0] : columns[1]).push(block);
    if (blocks.length)
        section(
            "device",
            "Device",
            "Where the device's time went, and why it was not busy.",
            null,
            el(
                "div",
                { class: "grid" },
                columns.filter(c => c.length).map(c => el("div", { class: "column" }, c)),
            ),
        );
}

// ---- curves over time

function steps(t, v, X, Y, width) {
    // a stepped line
    let d = "";
    t.forEach((at, k) => {
        d += k ? `H${X(at).toFixed(1)}V${Y(v[k]).toFixed(1)}` : `M${X(at).toFixed(1)},${Y(v[k]).toFixed(1)}`;
    });
    return `${d}H${width}`;
}
function memory() {
    if (!D.memory.length) return;
    section(
        "memory",
        "Memory",
        "State of each memory pool over time. The figures below a curve leave warm-up out.",
        null,
        ...D.memory.map(pool => {
            const [used, usedAt, usedTag] = pool.peak_used,
                [allocated, allocatedAt, allocatedTag] = pool.peak_allocated;
            const graph = chart(`Memory of ${pool.name}: peak used ${bytes(used)}, peak allocated ${bytes(allocated)}`, width => {
                const left = 76,
                    bottom = 190,
                    top = 26,
                    high = 1.12 * Math.max(allocated, used, 1),
                    X = t => left + ((width - left) * fold(Math.max(0, Math.min(D.length, t)))) / U;
                const Y = b => bottom - ((bottom - top) * b) / high,
                    unit = 1024 ** Math.max(0, Math.floor(Math.log(high) / Math.log(1024))),
                    nodes = timeAxis(width, left, bottom);
                for (let v = 0, step = niceStep(high / unit / 4) * unit; v <= high; v += step)
                    nodes.push(rule(left, width, Y(v)), axisText(left - 8, Y(v) + 4, "end", bytes(v)));
                nodes.push(
                    svg("path", {
                        d: `${steps(pool.t, pool.used, X, Y, width)}V${bottom}H${X(pool.t[0])}Z`,
                        fill: "var(--c0)",
                        opacity: 0.3,
                    }),
                    curve(steps(pool.t, pool.used, X, Y, width), "var(--c0)"),
                    curve(steps(pool.t, pool.allocated, X, Y, width), "var(--c1)"),
                );
                const k = pool.used.indexOf(Math.max(...pool.used)),
                    x = X(pool.t[k]),
                    y = Y(pool.used[k]),
                    said = `peak used ${bytes(used)}${usedTag ? `, ${usedTag}` : ""}`.slice(0, Math.floor((width - left) / 7)),
                    wide = 7 * said.length;
                nodes.push(
                    svg("circle", { cx: x, cy: y, r: 4, fill: "var(--c0)", stroke: "var(--card)", "stroke-width": 2 }),
                    svg(
                        "text",
                        { class: "strong", x: x + 9 + wide > width ? Math.max(left, x - 9 - wide) : x + 9, y: y - 8 },
                        said,
                    ),
                );
                nodes.push(
                    svg("rect", {
                        x: left,
                        width: width - left,
                        y: top,
                        height: bottom - top,
                        fill: "transparent",
                        onpointerleave: hideTip,
                        onpointermove: event => {
                            const box = event.currentTarget.getBoundingClientRect(),
                                t = unfold((U * (event.clientX - box.left)) / box.width);
                            let k = pool.t.findIndex(v => v > t);
                            k = k < 0 ? pool.t.length - 1 : Math.max(0, k - 1);
                            showTip(
                                event.clientX,
                                event.clientY,
                                time(pool.t[k]),
                                `used ${bytes(pool.used[k])}`,
                                `allocated ${bytes(pool.allocated[k])}`,
                            );
                        },
                    }),
                );
                return { height: bottom + 24, nodes };
            });
            return el(
                "div",
                {},
                h3(pool.name),
                graph,
                el(
                    "ul",
                    { class: "keys" },
                    el(
                        "li",
                        {},
                        dot("var(--c0)"),
                        `used, peak ${bytes(used)} at record ${count(usedAt)}${usedTag ? ` (${usedTag})` : ""}`,
                    ),
                    el(
                        "li",
                        {},
                        dot("var(--c1)"),
                        `allocated, peak ${bytes(allocated)} at record ${count(allocatedAt)}${allocatedTag ? ` (${allocatedTag})` : ""}`,
                    ),
                    el("li", {}, `${bytes(pool.unused)} allocated but not used at the peak`),
                    el("li", {}, `${plural(pool.drops, "drop")} of the allocated figure in ${plural(pool.records, "record")}`),
                ),
            );
        }),
    );
}
function counters() {
    if (!D.counters.length) return;
    section(
        "counters",
        "Counters",
        `Values that the program recorded over time.${
            D.counters_left_out ? ` The first ${D.counters.length} of ${count(D.counters.length + D.counters_left_out)}.` : ""
        }`,
        null,
        el(
            "div",
            { class: "grid" },
            D.counters.map(c => {
                const graph = chart(
                    `${c.name}: ${plural(c.count, "value")} from ${si(c.min)} to ${si(c.max)}`,
                    width => {
                        const bottom = 96,
                            top = 8,
                            // Why parts of the largest: the difference of two values may be too large for a number.
                            most = Math.max(Math.abs(c.min), Math.abs(c.max)) || 1,
                            low = Math.min(0, c.min / most),
                            high = Math.max(0, c.max / most) || (low ? 0 : 1);
                        const said = [low, high].map(part => [part, si(part * most)]),
                            left = Math.max(56, 12 + 7 * Math.max(...said.map(([, text]) => text.length)));
                        const X = t => left + ((width - left) * fold(Math.max(0, Math.min(D.length, t)))) / U,
                            Y = v => bottom - ((bottom - top) * (v / most - low)) / (high - low);
                        const nodes = timeAxis(width, left, bottom);
                        for (const [part, text] of said) nodes.push(axisText(left - 8, Y(part * most) + 4, "end", text));
                        nodes.push(
                            curve(steps(c.t, c.v, X, Y, width), "var(--c6)"),
                            svg("path", {
                                d: `${steps(c.t, c.v, X, Y, width)}V${Y(0)}H${X(c.t[0])}Z`,
                                fill: "var(--c6)",
                                opacity: 0.15,
                            }),
                        );
                        return { height: bottom + 22, nodes };
                    },
                );
                return el("div", {}, h3(c.name), graph);
            }),
        ),
    );
}

// ---- what if

function whatIf() {
    const W = D.what_if;
    if (!W) return;
    const state = W.groups.map(() => ({ aim: W.sparse ? "90" : "", ratios: { ...W.ratios, "": 1 } })),
        ms = v => time(v * 1e6);
    const result = el("p", { class: "result", role: "status" }),
        bars = el("div", { class: "compare", "aria-hidden": "true" }),
        list = el("div");
    const ratio = s => (s.aim || !W.sparse ? s.ratios[s.aim] : 1);
    const updates = [];
    function update() {
        const before = W.groups.reduce((sum, g) => sum + g.ms, W.rest),
            part = W.groups.reduce((sum, g) => sum + g.ms, 0);
        const after = W.groups.reduce((sum, g, k) => sum + g.ms / ratio(state[k]), W.rest),
            left = after - W.rest;
        result.replaceChildren(
            `${ms(before)} → ${ms(after)}, ${(before / after || 1).toFixed(2)} times as fast`,
            W.sparse
                ? el(
                      "small",
                      {},
                      ` · sparse-able operators: ${percent(part / (before || 1))} of the time before, ${percent(left / (after || 1))} after`,
                  )
                : "",
        );
        const row = (name, values, total) => [
            el("span", {}, name),
            el(
                "div",
                { class: "stack" },
                values.map((v, k) =>
                    el("i", {
                        style: {
                            width: `${(100 * v) / (before || 1)}%`,
                            background:
                                k < W.groups.length
                                    ? W.sparse
                                        ? `var(--c${k % HUES})`
                                        : paint(W.groups[k].name)
                                    : "var(--plain2)",
                        },
                    }),
                ),
            ),
            el("span", {}, ms(total)),
        ];
        bars.replaceChildren(
            ...row("now", [...W.groups.map(g => g.ms), W.rest], before),
            ...row("then", [...W.groups.map((g, k) => g.ms / ratio(state[k])), W.rest], after),
        );
        for (const u of updates) u();
    }
    W.groups.forEach((g, k) => {
        const s = state[k],
            name = W.sparse ? `weight ${g.name.replace("x", " × ")}` : g.name;
        const range = el("input", {
            type: "range",
            min: W.sparse ? 0.5 : 1,
            max: 10,
            step: 0.1,
            "aria-label": `Speed-up of ${name}`,
            oninput: () => {
                s.ratios[s.aim] = Number(range.value);
                update();
            },
        });
        const shown = el("output", {}),
            after = el("span", { class: "after" });
        const aims = W.sparse
            ? el(
                  "div",
                  { class: "tools", role: "group", "aria-label": `Sparse ratio aimed at for ${name}` },
                  ["", "70", "80", "90"].map(aim =>
                      el(
                          "button",
                          {
                              type: "button",
                              class: "button",
                              "data-aim": aim,
                              onclick: () => {
                                  s.aim = aim;
                                  update();
                              },
                          },
                          aim ? `${aim} %` : "dense",
                      ),
                  ),
              )
            : el("span");
        updates.push(() => {
            const r = ratio(s);
            range.value = r;
            range.disabled = W.sparse && !s.aim;
            range.setAttribute("aria-valuetext", `${r.toFixed(1)} times as fast`);
            shown.textContent = `${r.toFixed(1)} ×`;
            after.textContent = `${ms(g.ms / r)}`;
            for (const b of aims.children) b.setAttribute("aria-pressed", String(b.dataset.aim === s.aim));
        });
        list.append(
            el(
                "div",
                { class: "slide" },
                el(
                    "div",
                    { class: "name", title: g.name },
                    dot(W.sparse ? `var(--c${k % HUES})` : paint(g.name)),
                    el("span", {}, name, el("small", {}, `${plural(g.ops, W.sparse ? "operator" : "span")}, ${ms(g.ms)}`)),
                ),
                aims,
                range,
                shown,
                after,
            ),
        );
    });
    section(
        "what-if",
        "What if",
        W.sparse
            ? "Latency of one iteration if the weights were sparse. Choose the ratio to aim at and how much faster its kernel is; the defaults and the arithmetic are those of the Neural Engine sheet."
            : "Device time if an operator were faster. Times of operators add up here, also where they overlap, so the gain is at most this.",
        [
            el(
                "button",
                {
                    type: "button",
                    class: "button",
                    onclick: () => {
                        state.forEach(s => {
                            s.aim = W.sparse ? "90" : "";
                            s.ratios = { ...W.ratios, "": 1 };
                        });
                        update();
                    },
                },
                "Reset",
            ),
        ],
        result,
        bars,
        list,
    );
    update();
}

// ---- about the trace

function about() {
    const blocks = [el("div", {}, h3("Run"), el("dl", { class: "pairs" }, pairsOf(D.about)))];
    for (const d of D.devices) {
        const pairs = [
            ["Error bound", typeof d.max_error_ns === "number" && `± ${time(d.max_error_ns)}`],
            [
                "Rate",
                typeof d.rate_hz === "number" && `${d.rate_hz.toLocaleString("en", { maximumFractionDigits: 1 })} Hz, measured`,
            ],
            ["Drift", typeof d.drift_ppm === "number" && `${digits(d.drift_ppm, 3)} ppm from the nominal rate`],
            ["Anchors", typeof d.anchors === "number" && count(d.anchors)],
            ["Wraps, resets", typeof d.wraps === "number" && `${count(d.wraps)}, ${count(d.resets || 0)}`],
            [
                "Causality",
                typeof d.causality_violations === "number" &&
                    (d.causality_violations ? plural(d.causality_violations, "violation") : "every span lies in its submission"),
            ],
        ];
        blocks.push(
            el(
                "div",
                {},
                h3(`Clock of ${d.name}`),
                el("dl", { class: "pairs" }, pairsOf(pairs.filter(([, value]) => value))),
                hint("The bound says how far a device span may truly be from where it is drawn."),
            ),
        );
    }
    const missing = [
        [D.inferences, "inferences (PROF_INFERENCE)"],
        [D.pes.length, "device spans"],
        [D.memory.length, "memory pools (PROF_MEMORY)"],
        [D.counters.length, "counters"],
        [D.what_if && D.what_if.sparse, "Neural Engine operators with weights (ne.type, ne.weight_shape)"],
    ]
        .filter(([there]) => !there)
        .map(([, name]) => name);
    if (D.about.length || D.devices.length || missing.length)
        section(
            "about",
            "About this trace",
            missing.length ? `Not recorded here: ${missing.join(", ")}.` : "",
            null,
            el("div", { class: "grid" }, D.about.length ? blocks : blocks.slice(1)),
        );
}

themes();
readPalette();
head();
leftOpen();
timeline();
latency();
operators();
device();
memory();
counters();
whatIf();
about();
redraw();
let width = innerWidth;
addEventListener("resize", () => {
    if (innerWidth !== width) {
        width = innerWidth;
        redraw();
    }
});
addEventListener("beforeprint", redraw);
