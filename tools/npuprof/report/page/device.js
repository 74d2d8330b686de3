// SPDX-License-Identifier: MIT
// The device: executions, submissions, engines, gaps; and spans that were left open.

function stack(pieces, total) {
    // [{ name, value, colour }]; with ink, the name is written into a piece that is wide enough. look: the
    // class of a piece that is no plain colour.
    const fill = p => (p.look ? {} : { background: p.colour });
    const share = p => percent(p.value / (total || 1));
    return [
        el(
            "div",
            {
                class: "stack",
                role: "img",
                "aria-label": pieces.map(p => `${p.name} ${time(p.value)}`).join(", "),
            },
            pieces.map(p =>
                el(
                    "i",
                    {
                        class: p.look,
                        style: { width: `${(100 * p.value) / (total || 1)}%`, color: p.ink || "inherit",
                                 ...fill(p) },
                        ...withTip(p.name, time(p.value), share(p), ...(p.more || [])),
                    },
                    p.ink && p.value > 0.08 * total ? el("span", {}, p.name) : null,
                ),
            ),
        ),
        el(
            "ul",
            { class: "keys" },
            pieces.map(p => el("li", {}, el("i", { class: `dot ${p.look || ""}`, style: fill(p) }),
                             `${p.name} ${time(p.value)} (${share(p)})`)),
        ),
    ];
}

const showButton = (what, act) =>
    button("Show", { "aria-label": `Show ${what} in the timeline`, onclick: act });

function simpleTable(columns, rows) {
    const heads = columns.map(([text, isNumber]) =>
        el("th", { scope: "col", class: numeric(isNumber) }, text),
    );
    const line = row =>
        el("tr", {}, row.map((value, k) => el("td", { class: numeric(columns[k][1]) }, value)));
    return el(
        "div",
        { class: "wide" },
        el(
            "table",
            {},
            el("thead", {}, el("tr", {}, heads)),
            el("tbody", {}, rows.map(line)),
        ),
    );
}

function leftOpen() {
    if (!D.open.count) return;
    section(
        "open",
        "Open when it ended",
        `Spans without an end, as a crash leaves them: of each thread the innermost first.${
            D.open.count > D.open.rows.length
                ? ` The first ${D.open.rows.length} of ${count(D.open.count)}.`
                : ""
        }`,
        null,
        simpleTable(
            [["thread"], ["span"], ["begun", true], ["open for", true], [""]],
            D.open.rows.map(s => [
                s.thread,
                nameCell(s.span || "(no name)", s.span),
                time(s.start),
                time(s.ns),
                showButton(s.span, () => showSpan(s.span, s.start, s.ns)),
            ]),
        ),
    );
}

// What all executions together did.
function executionsBlock() {
    const { total, run, count: n } = D.executions;
    return block(
        `What ${n === 1 ? "the execution" : `${count(n)} executions`} did`,
        stack(
            [
                { name: "Run", value: run, colour: "var(--c2)" },
                { name: "IoWait", value: total - run, colour: "var(--plain)" },
            ],
            total,
        ),
        hint(
            "Run is the time in which at least one compute span was open, or the device counted as " +
                `busy. ${time(total / n)} an execution.`,
            D.executions.unknown ? ` ${plural(D.executions.unknown, "more execution")} without either.` : "",
        ),
    );
}

// Where the time of the submissions went.
function pathBlock() {
    const colours = { queue: "var(--c1)", execute: "var(--c2)", late: "var(--c4)", wait: "var(--c3)" },
        total = D.path.reduce((sum, p) => sum + p.total, 0);
    return block(
        "From submit to completion",
        stack(
            D.path.map(p => ({ name: p.phase, value: p.total, colour: colours[p.phase] })),
            total,
        ),
        simpleTable(
            [["phase"], ["mean", true], ["median", true], ["99 %", true], ["max", true]],
            D.path.map(p => [p.phase, time(p.mean), time(p.p50), time(p.p99), time(p.max)]),
        ),
        hint(
            "queue: submit to start. execute: on the device. late: it is done, and the thread does not " +
                "wait yet. wait: to the end of the wait span.",
        ),
    );
}

// How busy each engine was.
function enginesBlock() {
    return block(
        "Engines",
        simpleTable(
            [["engine"], ["busy"], ["computes", true], ["time", true], ["spans", true]],
            D.pes.map(p => [
                p.name,
                meter(p.share, "var(--c0)", percent(p.share)),
                p.compute === null ? "–" : percent(p.compute),
                time(p.busy),
                count(p.spans),
            ]),
        ),
        hint(
            `Busy: a span is open. Computes: an operator runs. Both of the ${time(D.window)} ` +
                "from the first to the last span of any engine" +
                (D.recorded < D.length ? ", pauses left out." : "."),
        ),
    );
}

// The longest gaps.
function gapsBlock() {
    return block(
        "The device is idle while the host works",
        simpleTable(
            [["at", true], ["idle", true], ["host was in"], [""]],
            D.gaps.slice(0, 6).map(g => [
                time(g.start),
                time(g.ns),
                nameCell(g.span ? `${g.span} (${g.thread})` : "–", `${g.span} on ${g.thread}`),
                showButton(`the gap at ${time(g.start)}`, () => showRange(g.start, g.start + g.ns)),
            ]),
        ),
    );
}

function device() {
    const blocks = [],
        columns = [[], []];
    if (D.executions.count) blocks.push(executionsBlock());
    if (D.path.length) blocks.push(pathBlock());
    if (D.pes.length) blocks.push(enginesBlock());
    if (D.gaps.length) blocks.push(gapsBlock());
    for (const block of blocks)
        (columns[0].length <= columns[1].length ? columns[0] : columns[1]).push(block);
    if (blocks.length)
        section(
            "device",
            "Device",
            "Where the device's time went, and why it was not busy.",
            null,
            el(
                "div",
                { class: "grid" },
                columns.filter(c => c.length).map(c => el("div", { class: "column" }, c)),
            ),
        );
}
