// SPDX-License-Identifier: MIT
// Draws the timeline on its three canvases: the lanes, the axis above them, the map of the whole trace.

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
const MANY_ARROWS = 60;

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
        c.fillStyle = palette[colourIn(g, most)];
        c.globalAlpha = marked && !marked.names.has(most) ? 0.15 : 0.7;
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
    // From the first span that may end in view.
    const low = firstPlace(list.length, m => g.start[list[m]] + g.ns[list[m]] >= tMin);
    let filled = -1,
        colour = "",
        faint = false;
    for (let k = low; k < list.length; k++) {
        const i = list[k];
        if (g.start[i] > tMax) break;
        const x = Math.max(-2, X(g.start[i])),
            w = Math.min(width + 2, X(g.start[i] + g.ns[i])) - x;
        const name = D.names[g.label[i]][0],
            v = colourIn(g, name);
        const dim = marked !== null && !g.lit[i];
        if (w < 1 && Math.floor(x) === filled && v === colour && dim === faint) continue;
        filled = Math.floor(x);
        colour = v;
        faint = dim;
        c.globalAlpha = dim ? 0.15 : g.flags[i] & 8 ? 0.55 : 1;
        c.fillStyle = palette[v];
        c.fillRect(x, top + 1, Math.max(w - (w > 3 ? 0.6 : 0), 0.8), Math.max(1, rowHeight - 2));
        if (g.flags[i] & 5) {
            c.fillStyle = palette["--bad"];
            c.fillRect(x, top + rowHeight - 3, Math.max(w, 1), 2);
        }
        if (marked && !dim) {
            // Why a frame: a marked span of less than a pixel is seen, too.
            c.fillStyle = palette["--accent"];
            c.fillRect(x - 0.5, top, Math.max(w, 2), 2);
        }
        c.globalAlpha = 1;
        if (!small && w > 26 && !dim) {
            const text = fitted(c, name, w - 7);
            c.fillStyle = g.flags[i] & 8 ? palette["--ink"] : inkOn(palette[v]);
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

// Where a span begins, in the middle of its row.
function placeOf(s, width) {
    const g = groups[s.g];
    return { x: ((fold(g.start[s.i]) - u0) * width) / (u1 - u0), y: g.y + 4 + g.row[s.i] * ROW + ROW / 2 };
}

function outline(c, s, width, strong) {
    const g = groups[s.g],
        at = placeOf(s, width),
        end = ((fold(g.start[s.i] + g.ns[s.i]) - u0) * width) / (u1 - u0);
    c.strokeStyle = palette["--ink"];
    c.lineWidth = strong ? 2 : 1.2;
    c.strokeRect(at.x, at.y - ROW / 2 + 0.5, Math.max(2, end - at.x), ROW - 1);
    return at;
}

function arrow(c, from, to, least, wide) {
    const bend = Math.max(least, Math.abs(to.x - from.x) / 2),
        way = to.x >= from.x ? 1 : -1;
    c.strokeStyle = c.fillStyle = palette["--accent"];
    c.lineWidth = wide;
    c.beginPath();
    c.moveTo(from.x, from.y);
    c.bezierCurveTo(from.x + way * bend, from.y, to.x - way * bend, to.y, to.x, to.y);
    c.stroke();
    c.beginPath();
    c.arc(to.x, to.y, 2 * wide, 0, 7);
    c.fill();
}

function arrowsOf(c, s, width) {
    const from = outline(c, s, width, same(s, chosen));
    for (const key of links.get(`${s.g},${s.i}`) || [])
        arrow(c, from, outline(c, spanOf(key), width, false), 16, 1.5);
}

// All arrows in view from a thread to an engine. Why not when they are many: they would hide the spans.
function allArrows(c, width) {
    const seen = [];
    for (let k = 0; k < T.links.length && seen.length <= MANY_ARROWS; k += 4) {
        if (groups[T.links[k]].kind === "device" || groups[T.links[k + 2]].kind !== "device") continue;
        const [from, to] = [0, 2].map(n => placeOf({ g: T.links[k + n], i: T.links[k + n + 1] }, width));
        if (Math.max(from.x, to.x) >= 0 && Math.min(from.x, to.x) <= width) seen.push([from, to]);
    }
    if (seen.length <= MANY_ARROWS) for (const [from, to] of seen) arrow(c, from, to, 0, 1);
}

function drawLanes() {
    const [c, width] = prepare(canvas, height);
    const scale = width / (u1 - u0);
    hatching(c);
    c.font = `11.5px ${css("--sans")}`;
    c.textBaseline = "middle";
    [...groups, ...curves].forEach((g, n) => {
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
        for (let row = 0; row < g.rows; row++)
            drawSpans(c, g, width, g.y + 4 + row * ROW, row, ROW, u0, u1, false);
    drawStrips(c, width);
    drawCurves(c, width);
    for (const t of T.marks) {
        c.fillStyle = palette["--bad"];
        c.fillRect((fold(t) - u0) * scale, 0, 1, height);
    }
    if (chosen) arrowsOf(c, chosen, width);
    else allArrows(c, width);
    if (hover && !same(hover, chosen)) arrowsOf(c, hover, width);
    if (drag) {
        c.fillStyle = palette["--accent"];
        c.globalAlpha = 0.15;
        c.fillRect(Math.min(drag.x0, drag.x1), 0, Math.abs(drag.x1 - drag.x0), height);
        c.globalAlpha = 1;
    }
}

function drawAxis() {
    const [c, width] = prepare(axis, AXIS),
        scale = width / (u1 - u0);
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
}

function drawMap() {
    const [c, width] = prepare(map, MAP);
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

function draw() {
    drawLanes();
    drawAxis();
    drawMap();
}
