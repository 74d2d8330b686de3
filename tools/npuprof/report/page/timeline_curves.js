// SPDX-License-Identifier: MIT
// Curves on the timeline's own axis: submissions in flight, memory pools, counters.

// The number of the last value at or before t; -1: before the first.
const pointAt = (c, t) => firstPlace(c.t.length, m => c.t[m] > t) - 1;

// The curve under a point of the canvas, and what it says there; null: none.
function curveAt(x, y) {
    const c = curves.find(lane => y >= lane.y && y < lane.y + lane.height);
    if (!c) return null;
    const t = unfold(u0 + (x * (u1 - u0)) / canvas.clientWidth),
        k = pointAt(c, t);
    return { c, head: c.name, said: k < 0 ? "no value yet" : `${amount(c, c.v[k])} at ${time(t)}` };
}

function drawCurve(c, curve, width) {
    const scale = width / (u1 - u0),
        bottom = curve.y + curve.height - 5,
        room = curve.height - 12,
        // Why parts of the largest: a difference of two values may overflow.
        most = Math.max(Math.abs(curve.low), Math.abs(curve.high)) || 1,
        low = curve.low / most,
        span = curve.high / most - low || 1;
    const X = t => (foldIn(t) - u0) * scale,
        Y = v => bottom - (room * (v / most - low)) / span;
    const first = Math.max(0, pointAt(curve, unfold(u0))),
        last = Math.min(curve.t.length - 1, pointAt(curve, unfold(u1)) + 1);
    if (last < first) return;
    const path = new Path2D();
    path.moveTo(X(curve.t[first]), Y(0));
    for (let k = first; k <= last; k++) {
        if (k > first) path.lineTo(X(curve.t[k]), Y(curve.v[k - 1]));
        else path.lineTo(X(curve.t[k]), Y(curve.v[k]));
        path.lineTo(X(curve.t[k]), Y(curve.v[k]));
    }
    const end = last === curve.t.length - 1 ? Math.min(width, X(D.length)) : X(curve.t[last]);
    path.lineTo(end, Y(curve.v[last]));
    path.lineTo(end, Y(0));
    path.closePath();
    const colour = palette[curve.unit === "bytes" ? "--c0" : "--c6"];
    c.fillStyle = colour;
    c.globalAlpha = 0.3;
    c.fill(path);
    c.globalAlpha = 1;
    c.strokeStyle = colour;
    c.lineWidth = 1.2;
    c.stroke(path);
    if (curve.limit) {
        c.fillStyle = palette["--c1"];
        c.fillRect(0, Y(curve.limit), width, 1);
    }
}

function drawCurves(c, width) {
    for (const curve of curves) drawCurve(c, curve, width);
}
