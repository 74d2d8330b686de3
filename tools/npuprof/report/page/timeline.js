// SPDX-License-Identifier: MIT
// The timeline: its data, its state and its elements. timeline_draw.js draws it, timeline_input.js moves it.

const T = D.timeline,
    ROW = 17,
    PAD = 7,
    AXIS = 26,
    MAP = 40,
    STRIP = 14; // of idle times, below the rows of an engine
let height = 0,
    threads = 0;
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
            lit: new Uint8Array(n),
            lists: Array.from({ length: g.rows }, () => []),
            y: height,
            thread: g.kind === "thread" ? threads++ : 0,
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
    group.height = Math.max(group.rows * ROW + PAD + (g.idle.length ? STRIP : 0), 42);
    height += group.height;
    return group;
});
// Curves lie below the tracks, on the same axis.
const CURVE = 46;
const curves = D.lanes.map(c => {
    const lane = {
        ...c,
        y: height,
        height: CURVE,
        low: Math.min(0, ...c.v),
        high: Math.max(c.limit || 0, ...c.v),
    };
    height += CURVE;
    return lane;
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
    here = 0,
    drag = null;

const labels = el(
    "div",
    { "aria-hidden": "true" },
    groups.map(g =>
        el(
            "div",
            {
                class: "track",
                style: {
                    height: `${g.height}px`,
                    "--lane": `var(${g.kind === "thread" ? `--h${g.thread % HOSTS}` : "--plain2"})`,
                },
                title: g.name,
            },
            el("b", {}, g.name),
            el("span", {}, `${percent(g.busy / (D.recorded || 1))} busy, ${count(g.count)}`),
        ),
    ),
    curves.map(c =>
        el(
            "div",
            { class: "track", style: { height: `${c.height}px` }, title: c.name },
            el("b", {}, c.name),
            el("span", {}, `up to ${amount(c, c.high)}`),
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
const tool = (text, label, act) => button(text, { "aria-label": label, title: label, onclick: act });
const legend = el("ul", { class: "legend", "aria-label": "Find the spans of one name" });
const shown = new Map();
for (const g of groups)
    for (let i = 0; i < g.n; i++)
        shown.set(D.names[g.label[i]][0], (shown.get(D.names[g.label[i]][0]) || 0) + g.ns[i]);
for (const g of groups)
    for (const [, name] of Object.values(g.density)) if (!shown.has(name)) shown.set(name, 0);
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
                    onclick: () => (marked && marked.name === name ? unmark() : findName(name)),
                },
                hueOf.has(name) || NOT_COMPUTE.has(name) ? dot(paint(name)) : null,
                el("span", {}, name || "(no name)"),
            ),
        ),
    ),
);

// A text in which the names of keys look like keys.
const KEYS = /(Ctrl|Enter|[←→−0↑↓NPFBIU/]|\+(?= −))/;
const keyed = text => text.split(KEYS).map((part, n) => (n % 2 ? el("kbd", {}, part) : part));

function timeline() {
    if (!T.groups.length) {
        section("timeline", "Timeline", "No spans were recorded in this trace.");
        return;
    }
    const about = [];
    if (openOn(D.verdict)) about.push('It opens on the time of the verdict; "Whole trace" shows all.');
    if (T.folds.length)
        about.push(
            T.folds.length === 1
                ? "A stretch without spans is folded (hatched)."
                : `${T.folds.length} stretches without spans are folded (hatched).`,
        );
    if (T.drawn < D.spans)
        about.push(
            (T.drawn ? `The shortest ${count(D.spans - T.drawn)} spans` : "The spans") +
                " are drawn as density, in the colour of the name that has most of it.",
        );
    if (T.left_out) about.push(`${count(T.left_out)} of the least busy tracks are left out.`);
    section(
        "timeline",
        "Timeline",
        `Host threads and device engines on one clock. ${about.join(" ")}`,
        [
            tool("−", "Zoom out", () => zoom(2)),
            tool("+", "Zoom in", () => zoom(0.5)),
            tool("Whole trace", "Show the whole trace", () => view(0, U)),
        ],
        finder,
        el(
            "div",
            { class: "lanes" },
            el("div", { class: "corner", "aria-hidden": "true" }, "Whole trace"),
            map,
            el("div"),
            axis,
        ),
        el("div", { class: "scroll" }, el("div", { class: "lanes" }, labels, canvas)),
        detail,
        legend,
        idleLegend(),
        el(
            "p",
            { class: "hint", id: "keys" },
            "Drag over a range to zoom in, double-click for all; ",
            ...keyed("Ctrl + wheel zooms. Keys: ← → move, + − zoom, 0 whole, ↑ ↓ track, "),
            ...keyed("N P next and previous span, F B of the same name or of what was found, "),
            ...keyed("I U next and previous idle time of an engine, Enter zoom to a span, / search."),
        ),
    );
    tell(null);
    drawings.push(draw);
}

// Opens the timeline on what the verdict is about. False: that is most of the trace, so all is shown.
function openOn(part) {
    if (!part) return false;
    const a = fold(part.from),
        b = fold(part.to),
        edge = (b - a) / 50;
    if (b <= a || b - a >= 0.8 * U) return false;
    [u0, u1] = [Math.max(0, a - edge), Math.min(U, b + edge)];
    return true;
}

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
