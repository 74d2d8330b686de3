// SPDX-License-Identifier: MIT
// Sliders: the time of the trace if some of its parts were faster, or its weights sparse. W: D.what_if or
// D.sparse; only the latter has ratios to aim at.

const ms = v => time(v * 1e6);
const COUNTED = { device: "job" }; // what a slider counts, if it is not spans
// The aim of a group at first, and how much faster it is with each aim; "": dense.
const initial = W => ({ aim: W.ratios ? "90" : "", ratios: { ...W.ratios, "": 1 } });
const ratio = s => s.ratios[s.aim];

// A stacked bar of all groups and the rest, as wide as its share of the time before.
function compared(W, name, values, before) {
    return [
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
                                ? W.ratios
                                    ? `var(--c${k % HUES})`
                                    : paint(W.groups[k].name)
                                : "var(--plain2)",
                    },
                }),
            ),
        ),
        el("span", {}, ms(values.reduce((sum, v) => sum + v, 0))),
    ];
}

// The ratios that a weight can aim at; nothing for operators that are not sparse.
function aimsOf(W, name, s, update) {
    if (!W.ratios) return el("span");
    return el(
        "div",
        { class: "tools", role: "group", "aria-label": `Sparse ratio aimed at for ${name}` },
        ["", "70", "80", "90"].map(aim =>
            button(aim ? `${aim} %` : "dense", {
                "data-aim": aim,
                onclick: () => {
                    s.aim = aim;
                    update();
                },
            }),
        ),
    );
}

// The line of a group: its slider, and show(), which writes its figures anew.
function slider(W, k, s, update) {
    const g = W.groups[k],
        name = W.ratios ? `weight ${g.name.replace("x", " × ")}` : g.name;
    const range = el("input", {
        type: "range",
        min: W.ratios ? 0.5 : 1,
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
    const aims = aimsOf(W, name, s, update);
    function show() {
        const r = ratio(s);
        range.value = r;
        range.disabled = Boolean(W.ratios) && !s.aim;
        range.setAttribute("aria-valuetext", `${r.toFixed(1)} times as fast`);
        shown.textContent = `${r.toFixed(1)} ×`;
        after.textContent = `${ms(g.ms / r)}`;
        for (const b of aims.children) b.setAttribute("aria-pressed", String(b.dataset.aim === s.aim));
    }
    const node = el(
        "div",
        { class: "slide" },
        el(
            "div",
            { class: "name", title: g.name },
            dot(W.ratios ? `var(--c${k % HUES})` : paint(g.name)),
            el(
                "span",
                {},
                name,
                el(
                    "small",
                    {},
                    `${g.kind === "host" ? "host, " : ""}` +
                        `${plural(g.ops, W.ratios ? "operator" : COUNTED[g.kind] || "span")}, ${ms(g.ms)}`,
                ),
            ),
        ),
        aims,
        range,
        shown,
        after,
    );
    return { node, show };
}

function aboutSliders(W) {
    if (W.replay)
        return (
            "The time if parts were faster, by replay of the dependency graph: what waits for what stays " +
            "as recorded. Contention, off-CPU time and clock rates may react: not replayed." +
            (R.assumed ? ` ${R.assumed}` : "") +
            (R.of ? ` Of ${R.of}: so a little other than above.` : "")
        );
    return W.ratios
        ? "Latency of one iteration if the weights were sparse. Choose the ratio to aim at and how " +
              "much faster its kernel is; the defaults and the arithmetic are those of the Neural " +
              "Engine sheet."
        : "Device time if an operator were faster. Times of operators add up here, also where they " +
              "overlap, so the gain is at most this.";
}

// "a → b" of two times, the second one between two ends.
function change(before, ends) {
    const [low, high] = ends.map(ns => time(ns)),
        gain = ns => percent((before - ns) / (before || 1)),
        gains = [gain(ends[1]), gain(ends[0])];
    return (
        `${time(before)} → ${low === high ? low : `${low} to ${high}`}, ` +
        `${gains[0] === gains[1] ? gains[0] : `${gains[0]} to ${gains[1]}`} less`
    );
}

// The line of results of the replay, and nothing where nothing is changed.
function showReplayed(result, groups, state) {
    const factors = state.map(s => 1 / ratio(s)),
        { before, median, window } = replayed(groups, factors),
        whole = change(before.window, window);
    result.replaceChildren(
        median === null ? `All of it: ${whole}` : `Median inference: ${change(before.median, median)}`,
        median === null ? "" : el("small", {}, ` · all of it: ${whole}`),
    );
}

function whatIf(W, id, title) {
    if (!W) return;
    const state = W.groups.map(() => initial(W));
    const result = el("p", { class: "result", role: "status" }),
        bars = el("div", { class: "compare", "aria-hidden": "true" }),
        list = el("div");
    const updates = [];
    function update() {
        for (const u of updates) u();
        if (W.replay) {
            showReplayed(result, W.groups, state);
            return;
        }
        const before = W.groups.reduce((sum, g) => sum + g.ms, W.rest),
            part = W.groups.reduce((sum, g) => sum + g.ms, 0);
        const after = W.groups.reduce((sum, g, k) => sum + g.ms / ratio(state[k]), W.rest),
            left = after - W.rest;
        result.replaceChildren(
            `${ms(before)} → ${ms(after)}, ${(before / after || 1).toFixed(2)} times as fast`,
            W.ratios
                ? el(
                      "small",
                      {},
                      ` · sparse-able operators: ${percent(part / (before || 1))} of the time before, ` +
                          `${percent(left / (after || 1))} after`,
                  )
                : "",
        );
        bars.replaceChildren(
            ...compared(W, "now", [...W.groups.map(g => g.ms), W.rest], before),
            ...compared(W, "then", [...W.groups.map((g, k) => g.ms / ratio(state[k])), W.rest], before),
        );
    }
    W.groups.forEach((_, k) => {
        const { node, show } = slider(W, k, state[k], update);
        updates.push(show);
        list.append(node);
    });
    section(
        id,
        title,
        aboutSliders(W),
        [
            button("Reset", {
                onclick: () => {
                    state.forEach(s => Object.assign(s, initial(W)));
                    update();
                },
            }),
        ],
        result,
        bars,
        list,
    );
    update();
}
