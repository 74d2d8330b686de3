// SPDX-License-Identifier: MIT
// Operators as tables with bars, which can be sorted.

function operators() {
    if (!D.tables.length) return;
    const tabs = el("div", { class: "tools", role: "tablist", "aria-label": "Which spans" }),
        place = el("div", { role: "tabpanel", id: "panel", tabindex: -1 });
    const about = el("p", { class: "about" });
    let at = 0;
    function show(n) {
        at = n;
        [...tabs.children].forEach((tab, k) => {
            tab.setAttribute("aria-selected", String(k === n));
            tab.tabIndex = k === n ? 0 : -1;
        });
        about.textContent = D.tables[n].about;
        place.replaceChildren(barTable(D.tables[n]));
    }
    tabs.append(
        ...D.tables.map((table, n) =>
            button(table.title, {
                role: "tab",
                "aria-controls": "panel",
                onclick: () => show(n),
                onkeydown: event => {
                    const to = { ArrowRight: n + 1, ArrowLeft: n - 1 }[event.key];
                    if (to !== undefined && tabs.children[to]) {
                        event.preventDefault();
                        show(to);
                        tabs.children[to].focus();
                    }
                },
            }),
        ),
    );
    const node = section("operators", "Operators", "", tabs, place);
    node.querySelector("h2").after(about);
    show(0);
}

const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);

// A row with a bar: `part` of the longest one, `fraction` of the sum.
function barRow(table, row, part, fraction) {
    return el(
        "tr",
        {},
        el("td", {}, el("div", { class: "name", title: row[0] }, dot(paint(row[0])), nameButton(row[0]))),
        el("td", { class: "bar" }, meter(part, paint(row[0]), percent(fraction))),
        ...table.columns.map((c, k) =>
            el("td", { class: "n" }, c === "count" ? count(row[k + 1]) : time(row[k + 1])),
        ),
    );
}

// Marks the head of the column by which the rows are sorted.
function markSorted(headers, sorted, down) {
    for (const [th, column] of headers)
        if (column === sorted) th.setAttribute("aria-sort", down ? "descending" : "ascending");
        else th.removeAttribute("aria-sort");
}

function barTable(table) {
    // The column that the bars show.
    const share = 1 + table.columns.findIndex(c => c === "self" || c === "total");
    const sum = table.rows.reduce((all, row) => all + row[share], 0) || 1,
        most = Math.max(...table.rows.map(row => row[share])) || 1;
    let sorted = share,
        down = true;
    const body = el("tbody"),
        headers = [];
    function fill() {
        const rows = [...table.rows].sort((a, b) => compare(a[sorted], b[sorted]) * (down ? -1 : 1));
        body.replaceChildren(...rows.map(row => barRow(table, row, row[share] / most, row[share] / sum)));
        markSorted(headers, sorted, down);
    }
    function header(text, column, isNumber) {
        const th = el(
            "th",
            { scope: "col", class: numeric(isNumber) },
            el(
                "button",
                {
                    type: "button",
                    onclick: () => {
                        down = sorted === column ? !down : isNumber;
                        sorted = column;
                        fill();
                    },
                },
                text,
            ),
        );
        headers.push([th, column]);
        return th;
    }
    const node = el(
        "div",
        { class: "wide" },
        el(
            "table",
            {},
            el("caption", { hidden: true }, table.title),
            el(
                "thead",
                {},
                el(
                    "tr",
                    {},
                    header("name", 0, false),
                    el("th", { scope: "col" }, `share of ${table.columns[share - 1]}`),
                    ...table.columns.map((c, k) => header(c, k + 1, true)),
                ),
            ),
            body,
        ),
        table.left_out ? hint(`${count(table.left_out)} more names with less time are left out.`) : null,
    );
    fill();
    return node;
}
