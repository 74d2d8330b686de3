// SPDX-License-Identifier: MIT
// Curves over time: memory pools and counters.

function steps(t, v, X, Y, width) {
    // a stepped line
    let d = "";
    t.forEach((at, k) => {
        d += k ? `H${X(at).toFixed(1)}V${Y(v[k]).toFixed(1)}` : `M${X(at).toFixed(1)},${Y(v[k]).toFixed(1)}`;
    });
    return `${d}H${width}`;
}

const peak = (what, value, at, tag) =>
    `${what}, peak ${bytes(value)} at record ${count(at)}${tag ? ` (${tag})` : ""}`;

// A stepped line for each, the peak of the used bytes, and a tooltip with both values.
function memoryCurves(pool, width) {
    const [used] = pool.peak_used,
        [allocated] = pool.peak_allocated;
    const left = 76,
        bottom = 190,
        top = 26,
        high = 1.12 * Math.max(allocated, used, 1),
        X = t => left + ((width - left) * foldIn(t)) / U;
    const Y = b => bottom - ((bottom - top) * b) / high,
        unit = 1024 ** Math.max(0, Math.floor(Math.log(high) / Math.log(1024))),
        nodes = timeAxis(width, left, bottom);
    for (let v = 0, step = niceStep(high / unit / 4) * unit; v <= high; v += step)
        nodes.push(rule(left, width, Y(v)), axisText(left - 8, Y(v) + 4, "end", bytes(v)));
    nodes.push(
        area(`${steps(pool.t, pool.used, X, Y, width)}V${bottom}H${X(pool.t[0])}Z`, "var(--c0)", 0.3),
        curve(steps(pool.t, pool.used, X, Y, width), "var(--c0)"),
        curve(steps(pool.t, pool.allocated, X, Y, width), "var(--c1)"),
    );
    nodes.push(...memoryPeak(pool, X, Y, left, width), memoryTip(pool, left, top, width, bottom));
    return { height: bottom + 24, nodes };
}

function memoryPeak(pool, X, Y, left, width) {
    const [used, , usedTag] = pool.peak_used;
    const k = pool.used.indexOf(Math.max(...pool.used)),
        x = X(pool.t[k]),
        y = Y(pool.used[k]),
        said = `peak used ${bytes(used)}${usedTag ? `, ${usedTag}` : ""}`.slice(
            0,
            Math.floor((width - left) / 7),
        ),
        wide = 7 * said.length;
    return [
        svg("circle", { cx: x, cy: y, r: 4, fill: "var(--c0)", stroke: "var(--card)", "stroke-width": 2 }),
        strong(x + 9 + wide > width ? Math.max(left, x - 9 - wide) : x + 9, y - 8, null, said),
    ];
}

function memoryTip(pool, left, top, width, bottom) {
    return svg("rect", {
        x: left,
        width: width - left,
        y: top,
        height: bottom - top,
        fill: "transparent",
        onpointerleave: hideTip,
        onpointermove: event => {
            const box = event.currentTarget.getBoundingClientRect(),
                t = unfold((U * (event.clientX - box.left)) / box.width),
                k = Math.max(0, pointAt(pool, t));
            showTip(
                event.clientX,
                event.clientY,
                time(pool.t[k]),
                `used ${bytes(pool.used[k])}`,
                `allocated ${bytes(pool.allocated[k])}`,
            );
        },
    });
}

const dropsOf = pool =>
    `${plural(pool.drops, "drop")} of the allocated bytes in ${plural(pool.records, "record")}`;

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
            const graph = chart(
                `Memory of ${pool.name}: peak used ${bytes(used)}, peak allocated ${bytes(allocated)}`,
                width => memoryCurves(pool, width),
            );
            return block(
                pool.name,
                graph,
                el(
                    "ul",
                    { class: "keys" },
                    el("li", {}, dot("var(--c0)"), peak("used", used, usedAt, usedTag)),
                    el("li", {}, dot("var(--c1)"), peak("allocated", allocated, allocatedAt, allocatedTag)),
                    el("li", {}, `${bytes(pool.unused)} allocated but not used at the peak`),
                    el("li", {}, dropsOf(pool)),
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
            D.counters_left_out
                ? ` The first ${D.counters.length} of ${count(D.counters.length + D.counters_left_out)}.`
                : ""
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
                            // Why parts of the largest: a difference of two values may overflow.
                            most = Math.max(Math.abs(c.min), Math.abs(c.max)) || 1,
                            low = Math.min(0, c.min / most),
                            high = Math.max(0, c.max / most) || (low ? 0 : 1);
                        const said = [low, high].map(part => [part, si(part * most)]),
                            left = Math.max(56, 12 + 7 * Math.max(...said.map(([, text]) => text.length)));
                        const X = t => left + ((width - left) * foldIn(t)) / U,
                            Y = v => bottom - ((bottom - top) * (v / most - low)) / (high - low);
                        const nodes = timeAxis(width, left, bottom);
                        for (const [part, text] of said)
                            nodes.push(axisText(left - 8, Y(part * most) + 4, "end", text));
                        nodes.push(
                            curve(steps(c.t, c.v, X, Y, width), "var(--c6)"),
                            area(
                                `${steps(c.t, c.v, X, Y, width)}V${Y(0)}H${X(c.t[0])}Z`,
                                "var(--c6)",
                                0.15,
                            ),
                        );
                        return { height: bottom + 22, nodes };
                    },
                );
                return block(c.name, graph);
            }),
        ),
    );
}
