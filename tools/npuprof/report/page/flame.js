// SPDX-License-Identifier: MIT
// The flame graph: each frame lies under the one that called it, as wide as the time in it.

const FRAME = 20; // pixels of a row

// The frames to draw when frame `at` (-1: none) has the whole width: [frame, x, width, row], in parts of 1.
function layout(frames, at) {
    const inside = frames.map(() => []),
        outer = [],
        found = [];
    frames.forEach(([, above], n) => (above < 0 ? outer : inside[above]).push(n));
    function put(some, x, width, whole, row) {
        for (const n of some) {
            const part = (width * frames[n][2]) / whole;
            found.push([n, x, part, row]);
            if (part > 0.001) put(inside[n], x, part, frames[n][2], row + 1);
            x += part;
        }
    }
    const around = [];
    for (let n = at; n >= 0; n = frames[n][1]) around.unshift(n);
    around.forEach((n, row) => found.push([n, 0, 1, row]));
    if (at < 0) put(outer, 0, 1, outer.reduce((sum, n) => sum + frames[n][2], 0), 0);
    else put(inside[at], 0, 1, frames[at][2], around.length);
    return found;
}

function flame() {
    const frames = D.flame;
    if (!frames) return;
    const whole = frames.reduce((sum, frame) => sum + (frame[1] < 0 ? frame[2] : 0), 0),
        place = el("div", { class: "flame", role: "group", "aria-label": "Frames by call path" });
    function show(at) {
        const drawn = layout(frames, at);
        place.style.height = `${FRAME * (1 + Math.max(...drawn.map(([, , , row]) => row)))}px`;
        place.replaceChildren(
            ...drawn.map(([n, x, part, row]) => {
                const [name, , ns, total, own, spans] = frames[n];
                return el(
                    "button",
                    {
                        type: "button",
                        style: {
                            left: `${100 * x}%`,
                            width: `${100 * part}%`,
                            top: `${FRAME * row}px`,
                            background: paint(name),
                            color: inkOn(css(variable(name))),
                        },
                        "aria-label": `${name}, ${percent(ns / whole)}`,
                        onclick: () => show(n),
                        ...withTip(
                            name,
                            spans ? `${plural(spans, "span")}, ${time(total)}` : null,
                            spans ? `self ${time(Math.max(0, own))}` : null,
                            `${percent(ns / whole)} of all`,
                        ),
                    },
                    part > 0.02 ? name : "",
                );
            }),
        );
    }
    section(
        "flame",
        "Call paths",
        "All spans, warm-up included: each under the one around it, as wide as its time. Threads are " +
            "together. Choose a frame to see what is in it.",
        [button("Show all", { onclick: () => show(-1) })],
        place,
    );
    drawings.push(() => show(-1));
}
