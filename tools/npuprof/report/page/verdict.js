// SPDX-License-Identifier: MIT
// What to change: the findings, the largest gain first, each with its spans on the timeline.

const FEW = 5; // findings shown at once; the others can be unfolded

// "latency at most −18.0 %" or "".
function gainOf(finding) {
    for (const [range, of] of [
        [finding.gain.inference_pct, "latency"],
        [finding.gain.window_pct, "run time"],
    ]) {
        if (!range || !range[1]) continue;
        const [low, high] = range.map(v => digits(Math.abs(v), 1));
        return `${of} ${low === high ? "" : "at most "}−${high} %`;
    }
    return "";
}

const plain = name => name.replaceAll("_", " ");

function findingCard(finding, n) {
    const name = plain(finding.rule),
        gain = gainOf(finding);
    return el(
        "div",
        { class: finding.follows ? "finding follows" : "finding" },
        el(
            "div",
            {},
            el(
                "h3",
                { id: `finding-${n}` },
                finding.follows ? "follows from it: " : "",
                [name, finding.subject].filter(Boolean).join(": "),
            ),
            el("p", { class: "gain" }, [gain, `(${finding.confidence})`].filter(Boolean).join(" ")),
            el("p", { class: "advice" }, finding.advice),
            el("p", { class: "about" }, finding.sentence),
        ),
        finding.places.length
            ? el(
                  "button",
                  {
                      type: "button",
                      class: "button",
                      "aria-label": `Show me: ${name} ${finding.subject}`,
                      onclick: () => showFinding(finding, name),
                  },
                  "Show me",
              )
            : null,
    );
}

// Zooms to the longest span of the finding and marks all of them.
function showFinding(finding, name) {
    searchBox.value = "";
    mark(
        finding.places.map(([g, i]) => ({ g, i })),
        name,
    );
    showMarked(s => {
        const a = fold(groups[s.g].start[s.i]),
            b = fold(groups[s.g].start[s.i] + lengthOf(s));
        view(a - (b - a) * 0.6, b + (b - a) * 0.6);
    });
}

// One line of figures.
function headlineOf(h) {
    return [
        h.inferences ? `${plural(h.inferences, "inference")}, median ${time(h.p50_ns, 0)}` : null,
        h.rate_per_s !== null && h.rate_per_s !== undefined ? `${digits(h.rate_per_s, 1)} per second` : null,
        h.busy_pct !== null ? `device busy ${digits(h.busy_pct, 1)} %` : null,
        h.largest_idle
            ? `most idle time: ${h.largest_idle.replace(/^\S+/, plain)} (${digits(h.largest_idle_pct, 1)} %)`
            : null,
    ]
        .filter(Boolean)
        .join("; ");
}

function verdict() {
    const found = D.verdict;
    if (!found) return;
    const cards = found.findings.map(findingCard);
    const node = section(
        "verdict",
        "What to change",
        `${headlineOf(found.headline)} (${found.window}).`,
        null,
        cards.length
            ? cards.slice(0, FEW)
            : el(
                  "p",
                  {},
                  `No change promises more than ${digits(found.threshold_pct, 1)} % of the median inference.`,
              ),
        cards.length > FEW
            ? el(
                  "details",
                  {},
                  el("summary", {}, `${plural(cards.length - FEW, "more finding")}`),
                  cards.slice(FEW),
              )
            : null,
        found.not_evaluated.length
            ? el(
                  "details",
                  {},
                  el("summary", {}, `${plural(found.not_evaluated.length, "rule")} could not be tried`),
                  el(
                      "ul",
                      {},
                      found.not_evaluated.map(([rule, missing]) =>
                          el("li", {}, `${plain(rule)}: ${missing.join(", ")}`),
                      ),
                  ),
              )
            : null,
    );
    (byId("facts") || byId("sections")).before(node);
}
