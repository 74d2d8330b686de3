// SPDX-License-Identifier: MIT
// Two pictures: what the end had to wait for, and how close operators come to the peaks of the device.

// ---- the critical path

const OWNERS = {
    // the colour of each kind of owner that is no operator, and how it is called
    host: ["--plain3", name => (name === "no span" ? "host, no span" : name)],
    dispatch: ["--c4", () => "submitted, not started"],
    transfer: ["--faint", name => `${name}, not hidden by work`],
    queue: ["--plain2", () => "other jobs of its queue"],
    notice: ["--c6", () => "end not noticed"],
    request: ["--plain4", () => "waits for a request"],
    pause: ["--line", () => "recording paused"],
    rest: ["--line", name => name],
};
const ownerColour = (kind, name) => (OWNERS[kind] ? OWNERS[kind][0] : variable(name));
const ownerName = (kind, name) => (OWNERS[kind] ? OWNERS[kind][1](name) : name);

// A piece for stack(): its label is written into it where there is room.
const ownPiece = (kind, name, value, ...more) => ({
    name: ownerName(kind, name),
    value,
    colour: `var(${ownerColour(kind, name)})`,
    ink: inkOn(css(ownerColour(kind, name))),
    look: kind === "transfer" ? "lost" : null,
    more,
});

// Two strips: the path of one inference in the order of time, and that of the whole window by owner.
function criticalPath() {
    const found = D.critical;
    if (!found || !found.owners.length) return;
    const { owners, pieces } = found,
        most = owners.slice(0, 2).map(([kind, name, , share]) =>
            `${ownerName(kind, name)} ${percent(share)}`);
    const first = pieces[0],
        last = pieces[pieces.length - 1],
        length = pieces.reduce((sum, piece) => sum + piece[3], 0);
    const one = el("div", { class: "path" }),
        all = el("div", { class: "path" });
    drawings.push(() => {
        one.replaceChildren(
            stack(pieces.map(([kind, name, start, ns]) =>
                ownPiece(kind, name, ns, `from ${time(start)}`)), length)[0],
        );
        all.replaceChildren(
            ...stack(owners.map(([kind, name, ns]) => ownPiece(kind, name, ns)),
                     owners.reduce((sum, [, , ns]) => sum + ns, 0)),
        );
    });
    section(
        "critical",
        "What the end had to wait for",
        `The critical path: ${most.join(", ")}. Only what is on it changes the time when it gets faster.` +
            (found.of ? ` Of ${found.of}.` : "") + (found.assumed ? ` ${found.assumed}` : ""),
        first
            ? [button("Show this inference", { onclick: () => showRange(first[2], last[2] + last[3]) })]
            : null,
        first ? block(`An inference near the median, ${time(length)}, in the order of time`, one) : null,
        block("All of it, by owner", all),
    );
}

// ---- the roof

const BOUND = {
    // colour, shape and words of each kind of operator
    compute: ["--c0", "circle", "at the peak of work (65 % and more)"],
    memory: ["--c5", "square", "at the peak of bytes (65 % and more)"],
    overhead: ["--c2", "triangle", "below both: something else takes the time"],
    unknown: ["--soft", "square", "one of both is not known"],
};

function sign(shape, x, y, fill) {
    const d = {
        circle: `M${x - 5},${y}a5,5 0 1 0 10,0a5,5 0 1 0 -10,0`,
        square: `M${x - 4.5},${y - 4.5}h9v9h-9z`,
        triangle: `M${x},${y - 7}l7,12h-14z`,
    }[shape];
    return svg("path", { d, fill, stroke: "var(--card)", "stroke-width": 1.5 });
}

// The ends of a logarithmic axis around values, and its marks: 1 and, if there is room, 3 of each power of
// ten.
function logAxis(values, room) {
    const low = Math.log10(Math.min(...values)) - 0.3,
        high = Math.max(low + 1, Math.log10(Math.max(...values)) + 0.3),
        marks = [];
    for (let k = Math.floor(low); k <= high; k++)
        marks.push(...(room > 90 * (high - low) ? [10 ** k, 3 * 10 ** k] : [10 ** k]));
    return {
        low: 10 ** low,
        high: 10 ** high,
        marks: marks.filter(v => v >= 10 ** low && v <= 10 ** high),
        part: v => (Math.log10(v) - low) / (high - low),
    };
}

// Both axes and the roof; X and Y are the places of amounts.
function roofOf(points, width) {
    const { ops, bytes: moved } = D.roof,
        left = 62, top = 24, bottom = 262,
        ridge = ops && moved ? [ops / moved] : [];
    const x = logAxis([...points.map(p => p.per_byte), ...ridge], width - left),
        y = logAxis([...points.map(p => p.rate), ...(ops ? [ops] : [])], bottom - top);
    const X = v => left + (width - left - 8) * x.part(v),
        Y = v => bottom - (bottom - top) * y.part(v);
    const nodes = [axisText(left, 12, "start", "operations a second"),
                   axisText(width - 8, bottom + 34, "end", "operations for each byte")];
    for (const v of y.marks)
        nodes.push(rule(left, width - 8, Y(v)), axisText(left - 8, Y(v) + 4, "end", si(v)));
    for (const v of x.marks) nodes.push(axisText(X(v), bottom + 17, "middle", si(v)));
    const roofAt = at => Math.min(ops || Infinity, moved ? moved * at : Infinity, y.high),
        from = moved ? Math.min(x.high, Math.max(x.low, y.low / moved)) : x.low,
        turn = moved ? Math.min(x.high, Math.max(from, (ops || y.high) / moved)) : from;
    const line = [from, turn, ops ? x.high : turn].map(at => `${X(at)},${Y(roofAt(at))}`);
    nodes.push(svg("path", { class: "roof", d: `M${line.join("L")}` }));
    if (ops) nodes.push(strong(width - 8, Y(ops) - 7, "end", `peak ${si(ops)}op/s`));
    if (moved && turn > from) {
        const [dx, dy] = [X(turn) - X(from), Y(roofAt(turn)) - Y(roofAt(from))],
            [cx, cy] = [X(from) + dx / 2, Y(roofAt(from)) + dy / 2],
            text = `peak ${si(moved)}B/s`,
            transform = `rotate(${(Math.atan2(dy, dx) * 180) / Math.PI} ${cx} ${cy})`;
        nodes.push(
            Math.hypot(dx, dy) > 8 * text.length
                ? svg("text", { class: "strong", x: cx, y: cy - 7, "text-anchor": "middle", transform }, text)
                : strong(cx + 10, cy + 14, "start", text),
        );
    }
    // Where no name of a point goes: on the level part of the roof, and on its name.
    const level = ops ? [X(turn), Y(ops) - 20, width, Y(ops) + 2] : [0, 0, 0, 0];
    return { X, Y, nodes, height: bottom + 40, right: width - 8, level };
}

// The name of a point beside it, where no other name or point is; "" where there is no room.
function nameAt(x, y, name, taken, right) {
    const wide = 7 * name.length;
    for (const [dx, dy] of [[10, 4], [-10 - wide, 4], [-wide / 2, -10], [-wide / 2, 19], [10, 19],
                            [10, -10]]) {
        const box = [x + dx, y + dy - 10, x + dx + wide, y + dy + 3];
        if (box[0] < 62 || box[2] > right || box[1] < 0) continue;
        if (taken.some(b => box[0] < b[2] && b[0] < box[2] && box[1] < b[3] && b[1] < box[3])) continue;
        taken.push(box);
        return strong(box[0], y + dy, "start", name);
    }
    return null;
}

function roofline(points, width) {
    const { X, Y, nodes, height, right, level } = roofOf(points, width),
        places = points.map(p => [X(p.per_byte), Y(p.rate)]),
        taken = [level, ...places.map(([x, y]) => [x - 6, y - 6, x + 6, y + 6])];
    points.forEach((p, k) => {
        const [colour, shape] = BOUND[p.bound],
            point = sign(shape, ...places[k], `var(${colour})`),
            at = { ...withTip(p.name, `${si(p.rate)}op/s, ${si(p.per_byte)} operations for each byte`) };
        for (const [event, act] of Object.entries(at)) point.addEventListener(event.slice(2), act);
        nodes.push(point, nameAt(...places[k], p.name, taken, right));
    });
    return { height, nodes };
}

const orNot = (value, text) => (value === null || value === undefined ? "–" : text(value));
const whole = share => `${share.toFixed(share < 9.95 ? 1 : 0)} %`;

// How much of an operator's work is padding: full length is all the work that it does.
function padding(points) {
    const padded = points.filter(p => p.waste > 0);
    if (!padded.length) return null;
    return block(
        "Work that is padding",
        el(
            "div",
            { class: "padding" },
            padded.map(p => [
                nameCell(p.name, p.name),
                el(
                    "div",
                    { class: "stack", role: "img",
                      "aria-label": `${p.name}: ${whole(p.waste)} of its work is padding` },
                    el("i", { style: { width: `${100 - p.waste}%`, background: "var(--c0)" } }),
                    el("i", { class: "lost", style: { width: `${p.waste}%` } }),
                ),
                el("em", {}, `${whole(p.waste)} padding`),
            ]),
        ),
        hint("Solid: what the network asks for. Striped: what the engine computes beside it."),
    );
}

function limits() {
    const found = D.roof;
    if (!found) return;
    const { points } = found,
        placed = points.filter(p => p.rate && p.per_byte),
        worst = points.reduce((a, b) => (b.above > a.above ? b : a));
    const label = placed.map(p => `${p.name} ${si(p.rate)}op/s`).join(", ");
    section(
        "limits",
        "How close operators come to the peaks",
        `${worst.name} has most to gain: at the peaks that ${found.device || "the trace"} states, ` +
            `its work and bytes need ${time(worst.above)} less. ` +
            found.refused.map(text => `${text}. `).join(""),
        null,
        el(
            "div",
            { class: "grid" },
            placed.length
                ? el(
                      "div",
                      {},
                      h3("Roofline of one engine"),
                      chart(`Roofline: ${label}`, width => roofline(placed, width)),
                      el("ul", { class: "keys" }, [...new Set(placed.map(p => p.bound))].map(bound =>
                          el("li", {}, svg("svg", { viewBox: "0 0 14 14", class: "sign" },
                                           sign(BOUND[bound][1], 7, 7, `var(${BOUND[bound][0]})`)),
                             BOUND[bound][2]))),
                  )
                : null,
            el(
                "div",
                { class: "column" },
                block(
                    "Operators by their time",
                    simpleTable(
                        [["operator"], ["time", true], ["of peak work", true], ["of peak bytes", true],
                         ["above both", true]],
                        points.map(p => [nameCell(p.name, p.name), time(p.total), orNot(p.compute, whole),
                                         orNot(p.memory, whole), time(p.above)]),
                    ),
                    found.left_out ? hint(`${count(found.left_out)} more with less time.`) : null,
                ),
                padding(points),
            ),
        ),
    );
}
