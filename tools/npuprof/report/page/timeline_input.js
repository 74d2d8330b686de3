// SPDX-License-Identifier: MIT
// What the user does to the timeline: zooming, moving and choosing, with the pointer and with keys.

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

// Where a span begins and ends on the folded axis.
function endsOf(s) {
    const g = groups[s.g];
    return [fold(g.start[s.i]), fold(g.start[s.i] + g.ns[s.i])];
}

// Moves the view around a span that is not all in it, at the same zoom if it fits.
function bringIn(s) {
    const [a, b] = endsOf(s);
    if (a >= u0 && b <= u1) return;
    const size = Math.max(u1 - u0, (b - a) * 1.2);
    view((a + b) / 2 - size / 2, (a + b) / 2 + size / 2);
}

// The view of a part of the axis, and so many times its length on both sides.
const viewAround = (a, b, more) => view(a - (b - a) * more, b + (b - a) * more);

// Zooms the timeline to a time and scrolls to it.
function showRange(from, to) {
    viewAround(fold(from), fold(to), 0.6);
    byId("timeline").scrollIntoView({ behavior: "smooth", block: "start" });
    canvas.focus({ preventScroll: true });
}

// Selects the span of that name, start and length, too.
function showSpan(name, start, ns) {
    showRange(start, start + ns);
    groups.forEach((g, n) => {
        const i = g.start.findIndex(
            (t, k) => t === start && g.ns[k] === ns && nameOf({ g: n, i: k }) === name,
        );
        if (i >= 0) choose({ g: n, i });
    });
    if (chosen) revealSpan(chosen, false);
}

// Scrolls the box of lanes, and the page, until these rows of pixels are visible above the detail.
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
    const end = firstPlace(list.length, m => g.start[list[m]] > t1);
    for (let k = end - 1; k >= 0 && k > end - 8; k--)
        if (g.start[list[k]] + g.ns[list[k]] >= t0) return { g: n, i: list[k] };
    return null;
}

function choose(s) {
    chosen = s;
    idleChosen = null;
    if (s) here = s.g;
    tell(s);
    later();
}

function next(step) {
    if (here >= groups.length) {
        nextValue(curves[here - groups.length], step);
        return;
    }
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
    bringIn(chosen);
    revealSpan(chosen);
}

// The next value of a curve, from the middle of the view on.
function nextValue(c, step) {
    const middle = unfold((u0 + u1) / 2),
        from = c.at === undefined ? pointAt(c, middle) : c.at;
    c.at = Math.max(0, Math.min(c.t.length - 1, from + step));
    const u = fold(c.t[c.at]),
        size = u1 - u0;
    if (u < u0 || u > u1) view(u - size / 2, u + size / 2);
    reveal(c.y, c.y + c.height);
    say(`${c.name}: ${amount(c, c.v[c.at])} from ${time(c.t[c.at])}.`);
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
        const idle = idleAt(x, y),
            over = idle ? { head: aboutIdle(idle.g, idle.k)[0], said: aboutIdle(idle.g, idle.k)[1] }
                        : curveAt(x, y);
        if (over) showTip(event.clientX, event.clientY, over.head, over.said);
        else hideTip();
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
    else if (!at(...place(event)) && idleAt(...place(event))) chooseIdle(idleAt(...place(event)));
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
            zoom(
                Math.exp(Math.max(-60, Math.min(60, event.deltaY)) / 120),
                u0 + (x * (u1 - u0)) / canvas.clientWidth,
            );
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
    i: () => nextIdle(1),
    u: () => nextIdle(-1),
    f: () => stepFound(1),
    b: () => stepFound(-1),
    "/": () => searchBox.select(),
    Escape: () => {
        choose(null);
        if (marked) unmark();
    },
    Enter: () => {
        if (chosen) viewAround(...endsOf(chosen), 0.1);
    },
};

function track(step) {
    here = Math.max(0, Math.min(groups.length + curves.length - 1, here + step));
    const g = groups[here] || curves[here - groups.length];
    if (here < groups.length)
        say(`${g.name}: ${plural(g.count, "span")}, ${percent(g.busy / (D.recorded || 1))} busy.`);
    else say(`${g.name}: ${plural(g.count, "value")} from ${amount(g, g.low)} to ${amount(g, g.high)}.`);
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
