// SPDX-License-Identifier: MIT
// The first screen: what to do first with its bar, the next answers in a row each, what was not looked at.

// Signs of print for those of a terminal; a number stays with its unit.
const signs = text =>
    text
        .replace(/(\d) us\b/g, "$1 µs")
        .replaceAll("+-", "±")
        .replace(/(\d) (?=(?:s|ms|µs|ns)\b|%)/g, "$1\u00a0");
const capital = text => text.slice(0, 1).toUpperCase() + text.slice(1);
// A text as a sentence: with a capital letter, if it does not begin with a name of the trace, and a full
// stop.
const sentence = text =>
    (D.names.some(([name]) => name && text.startsWith(name)) ? text : capital(text)) +
    (/[.!?]$/.test(text) ? "" : ".");
const folded = (summary, ...children) => el("details", {}, el("summary", {}, summary), ...children);
// Word, colour and shape of how sure an answer is.
function certainty(sure) {
    const ring = { cx: 7, cy: 7, r: 5.2, fill: "none", stroke: "currentColor", "stroke-width": 1.6 };
    const shapes = {
        sure: [
            svg("circle", { cx: 7, cy: 7, r: 6, fill: "currentColor" }),
            svg("path", {
                d: "M4 7.2l2.1 2.1L10.2 5",
                fill: "none",
                stroke: "var(--card)",
                "stroke-width": 1.7,
            }),
        ],
        likely: [
            svg("circle", ring),
            svg("path", { d: "M7 1.8a5.2 5.2 0 0 0 0 10.4z", fill: "currentColor" }),
        ],
    };
    const shape = shapes[sure] || svg("circle", { ...ring, "stroke-dasharray": "2.6 2" });
    return el(
        "span",
        { class: `cert ${sure}`, title: D.verdict.means[sure] },
        svg("svg", { viewBox: "0 0 14 14", "aria-hidden": "true" }, shape),
        capital(sure),
    );
}

// The stop of a slider as an answer: what its change brings there.
const atStop = (answer, n) => ({ ...answer, ...answer.stops[n],
                                 bar: { ...answer.bar, ...answer.stops[n].bar } });

// A slider over the stops of an answer, from as it is now on; show(answer) draws what holds there.
function tryIt(answer, show) {
    if (!answer.stops || answer.stops.length < 2) return null;
    const own = answer.stops.findIndex(stop => stop.own);
    const said = el("span", {}, signs(answer.given));
    const range = el("input", {
        type: "range",
        min: 0,
        max: answer.stops.length - 1,
        step: 1,
        value: own,
        "aria-label": `How much of it: ${signs(answer.do)}`,
        oninput: () => tell(true),
    });
    function tell(moved) {
        const n = Number(range.value),
            there = n === own ? answer : atStop(answer, n);
        const told = [there.given, `${there.bar.now} now, then ${there.bar.then}`, there.brings];
        range.setAttribute("aria-valuetext", signs(joined(told)));
        said.textContent = signs(there.given);
        if (moved) show(there);
    }
    tell(false);
    return el("label", { class: "try" }, el("span", {}, "Try"), range, said);
}

// Now and then on one scale: what is there in any case, and hatched what may be there or not.
function bars(answer) {
    const { of, now, then, now_ns, low_ns, high_ns } = answer.bar,
        // Why the stops: the scale stays where the slider moves.
        most = Math.max(now_ns, high_ns, ...(answer.stops || []).map(stop => stop.bar.high_ns)) || 1,
        width = ns => ({ width: `${(100 * ns) / most}%` });
    const row = (name, ...parts) =>
        el("div", { class: "row" }, el("em", {}, name), el("div", {}, parts));
    return el(
        "div",
        { role: "img", "aria-label": signs(`${of}: ${now} now, then ${then}, ${answer.given}`) },
        el("p", { class: "big" }, el("s", {}, signs(now)), " → ", el("b", {}, signs(then))),
        el("p", { class: "brings" }, signs(answer.brings)),
        row("Now", el("i", { class: "now", style: width(now_ns) })),
        row(
            "Then",
            el("i", { class: "then", style: width(low_ns) }),
            high_ns > low_ns ? el("i", { class: "hatch", style: width(high_ns - low_ns) }) : null,
        ),
    );
}

function beforeAndAfter(answer) {
    const place = el("div", {}, bars(answer)),
        slide = tryIt(answer, there => place.replaceChildren(bars(there)));
    return el(
        "figure",
        { class: "ba" },
        el("figcaption", {}, capital(answer.bar.of), slide ? null : el("span", {}, signs(answer.given))),
        place,
        slide,
    );
}

// A bar of the gain: what it brings in any case, and hatched what it may bring.
function gainBar({ bar }) {
    if (!bar) return "";
    const part = ns => Math.max(0, 100 - (100 * ns) / (bar.now_ns || 1)),
        [sure, may] = [part(bar.high_ns), part(bar.low_ns)];
    return el(
        "div",
        { class: "mini", "aria-hidden": "true" },
        el("i", { class: "then", style: { width: `${sure}%` } }),
        el("i", { class: "hatch", style: { width: `${may - sure}%` } }),
    );
}

const joined = texts => texts.filter(Boolean).join("; ");
const showMe = answer =>
    T.groups.length && answer.places
        ? button("Show me", { "aria-label": `Show me: ${answer.do}`, onclick: () => showFinding(answer) })
        : null;
const soToo = answer =>
    answer.results.map(one =>
        el("p", { class: "about" }, signs(sentence(`So, too: ${joined([one.why, one.brings])}`))),
    );

function firstAnswer(answer) {
    return el(
        "div",
        { class: "finding first" },
        el(
            "div",
            {},
            certainty(answer.sure),
            el("h3", { id: "finding-0" }, signs(answer.do)),
            answer.brings && !answer.bar ? el("p", { class: "gain" }, signs(answer.brings)) : null,
        ),
        answer.bar ? beforeAndAfter(answer) : null,
        el(
            "div",
            { class: "how" },
            answer.why ? el("p", { class: "why" }, signs(sentence(answer.why))) : null,
            answer.advice ? el("p", { class: "advice" }, signs(sentence(answer.advice))) : null,
            soToo(answer),
            el("p", { class: "tools" }, showMe(answer), toSliders()),
        ),
    );
}

const toSliders = () =>
    D.what_if ? el("a", { class: "button", href: "#what-if" }, "Try more changes") : null;

function nextAnswer(answer, n) {
    const gain = el("p", { class: "gain" }, signs(answer.brings)),
        bar = el("div", { class: "bar" }, gainBar(answer));
    return el(
        "li",
        { class: "finding" },
        el("span", { class: "number", "aria-hidden": "true" }, answer.number || "?"),
        el(
            "div",
            {},
            el("h3", { id: `finding-${n + 1}` }, signs(answer.do)),
            gain,
            folded(
                "Why, and how",
                answer.why ? el("p", {}, signs(sentence(answer.why))) : null,
                answer.advice ? el("p", {}, signs(sentence(answer.advice))) : null,
                soToo(answer),
                tryIt(answer, there => {
                    gain.textContent = signs(there.brings);
                    bar.replaceChildren(gainBar(there));
                }),
            ),
        ),
        bar,
        certainty(answer.sure),
        showMe(answer),
    );
}

// Zooms to the longest span of the finding and marks all of them. One without spans is about the whole time
// of the verdict.
function showFinding(finding) {
    searchBox.value = "";
    if (!finding.places.length) {
        unmark();
        choose(null);
        showRange(D.verdict.from, D.verdict.to);
        say(`${finding.do}: about the whole of ${time(D.verdict.to - D.verdict.from)}, no single span.`);
        return;
    }
    mark(
        finding.places.map(([g, i]) => ({ g, i })),
        finding.do,
    );
    showMarked(s => viewAround(...endsOf(s), 0.6));
}

const listed = (title, texts) =>
    texts.length ? block(title, el("ul", {}, texts.map(text => el("li", {}, signs(text))))) : null;

function verdict() {
    const found = D.verdict;
    if (!found) return;
    const [first, ...others] = found.answers,
        shown = others.slice(0, found.shown - 1),
        more = others.slice(found.shown - 1);
    const list = (answers, from) =>
        el("ol", { class: "answers" }, answers.map((answer, n) => nextAnswer(answer, from + n)));
    const node = section(
        "verdict",
        "What to change",
        "",
        null,
        first ? firstAnswer(first) : null,
        found.nothing ? el("p", { class: "nothing" }, signs(found.nothing)) : null,
        shown.length ? list(shown, 0) : null,
        more.length ? folded(plural(more.length, "more answer"), list(more, shown.length)) : null,
        found.faster ? el("p", { class: "together" }, signs(found.faster)) : null,
        found.operators ? el("p", { class: "together" }, signs(found.operators)) : null,
        el(
            "div",
            { class: "grid missing" },
            listed("Not looked at", found.not_looked_at),
            listed("Record to know more", found.record),
        ),
        el("p", { class: "about" }, signs(`${joined([found.trace, found.figures])}.`)),
        el(
            "p",
            { class: "about means" },
            Object.keys(found.means).map(sure =>
                el("span", {}, certainty(sure), el("span", {}, `${found.means[sure]}.`)),
            ),
        ),
    );
    (byId("facts") || byId("sections")).before(node);
}
