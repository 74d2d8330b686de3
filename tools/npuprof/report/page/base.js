// SPDX-License-Identifier: MIT
// What all parts of the page use: elements, numbers as text, colours, the tooltip, sections and charts.
// D is the JSON in #data. Texts of the trace go into the page as text, never as markup.
const D = JSON.parse(document.getElementById("data").textContent);
const byId = id => document.getElementById(id);
const HUES = 8;
const NOT_COMPUTE = new Set(["Execution", "Load", "Store"]);

// ---- small helpers

function make(space, tag, attributes, ...children) {
    const node = space
        ? document.createElementNS("http://www.w3.org/2000/svg", tag)
        : document.createElement(tag);
    for (const [key, value] of Object.entries(attributes || {})) {
        if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
        else if (key === "style") for (const [k, v] of Object.entries(value)) node.style.setProperty(k, v);
        else if (value !== null && value !== undefined && value !== false)
            node.setAttribute(key, value === true ? "" : value);
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
const block = (title, ...children) => el("div", {}, h3(title), ...children);
const button = (text, attributes) => el("button", { type: "button", class: "button", ...attributes }, text);
const nameCell = (text, title) => el("div", { class: "name", title }, el("span", {}, text));
const numeric = is => (is ? "n" : null);
const dot = colour => el("i", { class: "dot", style: { background: colour } });
const rule = (x1, x2, y) => svg("line", { class: "axis", x1, x2, y1: y, y2: y });
// A bar of that part of its place, and a text.
const meter = (part, background, text) =>
    el(
        "div",
        { class: "meter" },
        el("div", {}, el("i", { style: { width: `${100 * part}%`, background } })),
        el("em", {}, text),
    );
const axisText = (x, y, anchor, text) => svg("text", { x, y, "text-anchor": anchor }, text);
const strong = (x, y, anchor, text) => svg("text", { class: "strong", x, y, "text-anchor": anchor }, text);
const area = (d, fill, opacity) => svg("path", { d, fill, opacity });
const curve = (d, colour) =>
    svg("path", { d, fill: "none", stroke: colour, "stroke-width": 1.5, "stroke-linejoin": "round" });
// Pairs of texts as a list of terms.
const pairsOf = pairs => pairs.map(([key, value]) => [el("dt", {}, key), el("dd", {}, value)]);

const count = n => n.toLocaleString("en");
const plural = (n, word) => `${count(n)} ${word}${n === 1 ? "" : "s"}`;

// The first of n places where a test holds that holds for all behind it, too; n: nowhere.
function firstPlace(n, holds) {
    let low = 0;
    while (low < n) {
        const m = (low + n) >> 1;
        if (holds(m)) n = m;
        else low = m + 1;
    }
    return low;
}

function digits(value, most, least = 0) {
    // at most four significant digits, no exponent
    const places = Math.max(0, Math.min(most, 3 - Math.floor(Math.log10(Math.abs(value) || 1))));
    return value.toLocaleString("en", {
        maximumFractionDigits: places,
        minimumFractionDigits: Math.min(least, places),
    });
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

// A value of a curve on the timeline.
const amount = (curve, v) => (curve.unit === "bytes" ? bytes(v) : si(v));

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
        if (hueOf.size < HUES && !NOT_COMPUTE.has(row[0]) && !hueOf.has(row[0]))
            hueOf.set(row[0], hueOf.size);
const greyOf = new Map();

function variable(name) {
    if (hueOf.has(name)) return `--c${hueOf.get(name)}`;
    if (NOT_COMPUTE.has(name)) return "--plain2";
    if (!greyOf.has(name)) greyOf.set(name, ["--plain", "--plain3", "--plain4"][greyOf.size % 3]);
    return greyOf.get(name);
}

// The colour of a span: an operator has its own, another host span that of its thread.
const HOSTS = 6;
const colourIn = (g, name) =>
    g.kind === "thread" && !hueOf.has(name) ? `--h${g.thread % HOSTS}` : variable(name);

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
        ...Array.from({ length: HOSTS }, (_, n) => `--h${n}`),
    ])
        palette[name] = css(name);
}

function inkOn(colour) {
    // black or white, whichever is the more readable on this colour: at least 4.5 to 1
    const [r, g, b] = [1, 3, 5]
        .map(i => parseInt(colour.slice(i, i + 2), 16) / 255)
        .map(v => (v <= 0.04 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.18 ? "#000000" : "#ffffff";
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
            el(
                "div",
                {},
                el("h2", { id: `${id}-title` }, title),
                about ? el("p", { class: "about" }, about) : null,
            ),
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
