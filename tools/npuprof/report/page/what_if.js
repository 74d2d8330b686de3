// SPDX-License-Identifier: MIT
// Sliders: the time of the trace if some operators were faster.

const W = D.what_if;
const ms = v => time(v * 1e6);
const ratio = s => (s.aim || !W.sparse ? s.ratios[s.aim] : 1);
// The aim of a group at first, and how much faster it is with each aim.
const initial = () => ({ aim: W.sparse ? "90" : "", ratios: { ...W.ratios, "": 1 } });

// A stacked bar of all groups and the rest, as wide as its share of the time before.
function compared(name, values, before) {
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
                                ? W.sparse
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
function aimsOf(name, s, update) {
    if (!W.sparse) return el("span");
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
function slider(g, k, s, update) {
    const name = W.sparse ? `weight ${g.name.replace("x", " × ")}` : g.name;
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
    const aims = aimsOf(name, s, update);
    function show() {
        const r = ratio(s);
        range.value = r;
        range.disabled = W.sparse && !s.aim;
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
            dot(W.sparse ? `var(--c${k % HUES})` : paint(g.name)),
            el(
                "span",
                {},
                name,
                el(
                    "small",
                    {},
                    `${g.kind === "host" ? "host, " : ""}` +
                        `${plural(g.ops, W.sparse ? "operator" : "span")}, ${ms(g.ms)}`,
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

function aboutSliders() {
    if (R)
        return (
            "The time if parts were faster, by replay of the dependency graph: what waits for what stays " +
            "as recorded. Contention, off-CPU time and clock rates may react: not replayed." +
            (R.assumed ? ` ${R.assumed}` : "") +
            (R.of ? ` Of ${R.of}.` : "")
        );
    return W.sparse
        ? "Latency of one iteration if the weights were sparse. Choose the ratio to aim at and how " +
              "much faster its kernel is; the defaults and the arithmetic are those of the Neural " +
              "Engine sheet."
        : "Device time if an operator were faster. Times of operators add up here, also where they " +
              "overlap, so the gain is at most this.";
}

// "a → b" of two times, the second one between two ends.
function change(before, ends) {
    const [low, high] = [Math.min(...ends), Math.max(...ends)].map(ns => time(ns)),
        gain = ns => percent((before - ns) / (before || 1)),
        gains = [gain(Math.max(...ends)), gain(Math.min(...ends))];
    return (
        `${time(before)} → ${low === high ? low : `${low} to ${high}`}, ` +
        `${gains[0] === gains[1] ? gains[0] : `${gains[0]} to ${gains[1]}`} less`
    );
}

// The line of results of the replay, and nothing where nothing is changed.
function showReplayed(result, state) {
    const factors = state.map(s => 1 / ratio(s)),
        now = measured(nodeTimes(...lagsWith(W.groups, factors.map(() => 1), false, false))),
        then = replayed(W.groups, factors);
    const window = change(now.window, then.map(m => m.window));
    result.replaceChildren(
        now.median === null
            ? `All of it: ${window}`
            : `Median inference: ${change(now.median, then.map(m => m.median))}`,
        now.median === null ? "" : el("small", {}, ` · all of it: ${window}`),
    );
}

function whatIf() {
    if (!W) return;
    const state = W.groups.map(initial);
    const result = el("p", { class: "result", role: "status" }),
        bars = el("div", { class: "compare", "aria-hidden": "true" }),
        list = el("div");
    const updates = [];
    function update() {
        for (const u of updates) u();
        if (R) {
            showReplayed(result, state);
            return;
        }
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
                      ` · sparse-able operators: ${percent(part / (before || 1))} of the time before, ` +
                          `${percent(left / (after || 1))} after`,
                  )
                : "",
        );
        bars.replaceChildren(
            ...compared("now", [...W.groups.map(g => g.ms), W.rest], before),
            ...compared("then", [...W.groups.map((g, k) => g.ms / ratio(state[k])), W.rest], before),
        );
    }
    W.groups.forEach((g, k) => {
        const { node, show } = slider(g, k, state[k], update);
        updates.push(show);
        list.append(node);
    });
    section(
        "what-if",
        "What if",
        aboutSliders(),
        [
            button("Reset", {
                onclick: () => {
                    state.forEach(s => Object.assign(s, initial()));
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
