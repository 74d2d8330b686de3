// SPDX-License-Identifier: MIT
// Finding spans: by a part of their name, by a name, or those of a finding. What is found is marked, the rest
// is dimmed, and F and B (or the buttons) go from one to the next.

const MOST = 200_000; // spans that are found at a time
// null, or { list: [{ g, i }] by start, names: Set, name: the exact name or null, all: how many there are in
// the whole trace, text }. The marked spans have a 1 in their group's `lit`.
let marked = null;
let spot = -1; // place of the chosen one in marked.list

const searchBox = el("input", {
    id: "find",
    type: "search",
    placeholder: "Find spans by name",
    "aria-label": "Find spans by a part of their name",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => (searchBox.value ? findPart(searchBox.value) : unmark(false)),
    onkeydown: event => {
        if (event.key === "Enter") {
            event.preventDefault();
            stepFound(event.shiftKey ? -1 : 1);
        } else if (event.key === "Escape") unmark();
    },
});
const saidFound = el("output", { id: "found", for: "find" });
const finder = el(
    "div",
    { class: "find", role: "search" },
    searchBox,
    tool("‹", "Previous of what was found", () => stepFound(-1)),
    tool("›", "Next of what was found", () => stepFound(1)),
    saidFound,
);
// How many spans of each name there are in the whole trace, drawn one by one or not.
const totals = new Map(D.counts);

// Marks spans: list of { g, i } in any order.
function mark(list, text, name = null, all = list.length) {
    for (const s of list) s.t = groups[s.g].start[s.i];
    list.sort((a, b) => a.t - b.t || a.g - b.g || a.i - b.i);
    for (const g of groups) g.lit.fill(0);
    for (const s of list) groups[s.g].lit[s.i] = 1;
    marked = {
        list,
        text,
        name,
        all,
        names: new Set(list.map(nameOf)),
    };
    spot = -1;
    pressChips();
    tellFound();
    later();
}

function pressChips() {
    inLegend.forEach((name, n) =>
        legend.children[n].firstChild.setAttribute(
            "aria-pressed",
            String(marked !== null && marked.name === name),
        ),
    );
}

function unmark(clear = true) {
    marked = null;
    spot = -1;
    if (clear) searchBox.value = "";
    pressChips();
    tellFound();
    later();
}

function tellFound() {
    if (!marked) {
        saidFound.textContent = "";
        return;
    }
    const { list, all, text } = marked;
    saidFound.textContent = list.length
        ? `${spot >= 0 ? `${count(spot + 1)} of ` : ""}${plural(list.length, "span")}` +
          (all > list.length ? ` drawn one by one of ${count(all)}` : "") +
          (text ? `: ${text}` : "")
        : all
          ? `${plural(all, "span")}, all too short to be drawn one by one`
          : "No span has such a name";
}

// Marks all spans whose name fits.
function findWhere(fits, text, name) {
    const labels = D.names.map(([label]) => fits(label)),
        list = [];
    groups.forEach((g, n) => {
        for (let i = 0; i < g.n && list.length < MOST; i++) if (labels[g.label[i]]) list.push({ g: n, i });
    });
    let all = 0;
    for (const [label, n] of totals) if (fits(label)) all += n;
    mark(list, text, name, Math.max(all, list.length));
}

function findPart(part) {
    const wanted = part.toLowerCase();
    findWhere(label => label.toLowerCase().includes(wanted), "", null);
}

function findName(name) {
    searchBox.value = name;
    findWhere(label => label === name, "", name);
}

// Goes to the next or previous of what is found; without it, of the chosen span's name.
function stepFound(step) {
    if (!marked && chosen) {
        const from = chosen;
        findName(nameOf(from));
        spot = marked.list.findIndex(s => same(s, from));
    }
    if (!marked || !marked.list.length) {
        say("Nothing is found: type a part of a name above, or select a span.");
        return;
    }
    const { list } = marked;
    if (spot < 0) {
        const t = chosen ? groups[chosen.g].start[chosen.i] : unfold(u0);
        spot = list.findIndex(s => groups[s.g].start[s.i] >= t);
        if (spot < 0) spot = step > 0 ? 0 : list.length;
        if (step < 0) spot--;
    } else spot += step;
    spot = (spot + list.length) % list.length;
    goTo(list[spot]);
    tellFound();
}

// Selects a span and brings it into view at the same zoom.
function goTo(s) {
    choose(s);
    bringIn(s);
    revealSpan(s, false);
}

// From elsewhere in the page: marks the spans of a name, shows the whole trace, selects the longest.
function showName(name) {
    findName(name);
    showMarked(() => view(0, U));
}

// Selects the longest of what is marked and scrolls to the timeline. zoom(span): sets the view before.
function showMarked(zoom) {
    const { list } = marked;
    let best = -1;
    list.forEach((s, k) => {
        if (best < 0 || lengthOf(s) > lengthOf(list[best])) best = k;
    });
    if (best >= 0) {
        zoom(list[best]);
        spot = best;
        choose(list[best]);
        revealSpan(list[best], false);
        tellFound();
    }
    byId("timeline").scrollIntoView({ behavior: "auto", block: "start" });
    canvas.focus({ preventScroll: true });
}

const lengthOf = s => groups[s.g].ns[s.i];
// The name of spans as a button that shows them.
const nameButton = name =>
    el(
        "button",
        {
            type: "button",
            class: "link",
            title: `Show the spans of ${name || "(no name)"} in the timeline`,
            onclick: () => showName(name),
        },
        name || "(no name)",
    );
