// SPDX-License-Identifier: MIT
// What to change: the findings, in the words of the first screen, each with its spans on the timeline.

const FEW = 5; // findings shown at once; the others can be unfolded
const signs = text => text.replace(/ -(?=[\d.])/g, " −").replaceAll("+-", "±");
const folded = (summary, ...children) => el("details", {}, el("summary", {}, summary), ...children);
const capital = text => text.slice(0, 1).toUpperCase() + text.slice(1);

function findingCard(finding, n) {
    return el(
        "div",
        { class: finding.number ? "finding" : "finding follows" },
        el(
            "div",
            {},
            el(
                "h3",
                { id: `finding-${n}` },
                `${finding.number ? `${finding.number}.` : "consequence:"} ${finding.title}`,
            ),
            el("p", { class: "gain" }, signs(finding.worth)),
            finding.advice ? el("p", { class: "advice" }, finding.advice) : null,
            el("p", { class: "about" }, finding.sentence),
        ),
        T.groups.length
            ? button("Show me", {
                  "aria-label": `Show me: ${finding.title}`,
                  onclick: () => showFinding(finding),
              })
            : null,
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
        say(`${finding.title}: about the whole of ${time(D.verdict.to - D.verdict.from)}, no single span.`);
        return;
    }
    mark(
        finding.places.map(([g, i]) => ({ g, i })),
        finding.title,
    );
    showMarked(s => viewAround(...endsOf(s), 0.6));
}

function verdict() {
    const found = D.verdict;
    if (!found) return;
    const cards = found.findings.map(findingCard);
    const node = section(
        "verdict",
        "What to change",
        signs(`${found.looked_at}. ${capital(found.figures)}.`),
        null,
        cards.length ? cards.slice(0, FEW) : null,
        found.nothing ? el("p", {}, signs(found.nothing)) : null,
        found.questions.length ? el("p", { class: "together" }, signs(found.questions.join(" "))) : null,
        cards.length > FEW
            ? folded(plural(cards.length - FEW, "more finding"), cards.slice(FEW))
            : null,
        found.together ? el("p", { class: "together" }, signs(found.together)) : null,
        found.not_looked_at.length
            ? folded("Not looked at", el("ul", {}, found.not_looked_at.map(text => el("li", {}, text))))
            : null,
    );
    (byId("facts") || byId("sections")).before(node);
}
