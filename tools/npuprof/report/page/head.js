// SPDX-License-Identifier: MIT
// The top of the page: title, facts, warnings, and the choice of colours.

function head() {
    byId("title").textContent = D.title;
    const paused = D.recorded < D.length ? `, ${brief(D.length - D.recorded)} of it paused` : "";
    const more = [
        ...D.about.filter(([key]) => key === "Started" || key === "Host").map(([, value]) => value),
        ...[D.file].filter(file => file !== D.title),
    ];
    byId("subtitle").append(
        `${plural(D.spans, "span")} in ${brief(D.length)}${paused}`,
        el("span", { class: "more" }, more.map(text => `  ·  ${text}`)),
    );
    byId("foot").textContent =
        "Written by npuprof. This page is complete in itself: it loads nothing and sends nothing.";
    byId("warnings").append(...D.warnings.map(text => el("p", { class: "warning" }, text)));
    const fact = (label, value, more, alarm) =>
        byId("facts").append(
            el(
                "div",
                { class: alarm ? "alarm" : null },
                el("dt", {}, label),
                el("dd", {}, value, more ? el("small", {}, more) : null),
            ),
        );
    const all = D.latency[0],
        // Too few for a percentile: the first screen says the longest, too.
        few = D.verdict && D.verdict.headline.p99_ns === null ? D.verdict.headline : null;
    if (D.inferences && all)
        fact(
            `${plural(D.inferences, "inference")}, median`,
            time(all.p50),
            few ? `max ${time(few.max_ns)}` : `99 % within ${time(all.p99)}`,
        );
    const any = D.pes[D.pes.length - 1],
        busy = D.verdict && D.verdict.headline.busy_pct;
    if (typeof busy === "number")
        fact("Device busy", percent(busy / 100), `of the ${time(D.verdict.length)} of the verdict`);
    else if (D.verdict && D.verdict.headline.executions) fact("Device busy", "not known", "see the verdict");
    else if (any)
        fact(
            "Device busy",
            percent(any.share),
            `${time(any.busy)} of ${time(D.window)}${D.recorded < D.length ? ", pauses left out" : ""}`,
        );
    if (D.executions.count && D.executions.total)
        fact(
            "Execution computes",
            percent(D.executions.run / D.executions.total),
            `the rest of ${time(D.executions.total)} is waiting for data`,
        );
    const error = D.verdict && D.verdict.headline.max_error_ns;
    if (typeof error === "number")
        fact("Device clock error", `± ${time(error)}`, "at most, of a device span in that time");
    if (D.lost !== null)
        fact(
            "Lost",
            count(D.lost),
            D.lost
                ? "spans, events or arguments"
                : D.damaged
                  ? "by its own count, but the image is damaged"
                  : D.open.count
                    ? `but ${plural(D.open.count, "span")} had not ended`
                    : "nothing: the trace is complete",
            D.lost > 0 || D.damaged,
        );
    if (!byId("facts").children.length) byId("facts").remove();
}

function themes() {
    const names = ["auto", "light", "dark"];
    let at = 0;
    try {
        at = Math.max(0, names.indexOf(localStorage.getItem("npuprof-theme")));
    } catch {
        /* no storage in this place: the choice lasts as the page does */
    }
    const apply = () => {
        if (at) document.documentElement.dataset.theme = names[at];
        else delete document.documentElement.dataset.theme;
        byId("theme").textContent = `Colours: ${names[at]}`;
    };
    byId("theme").addEventListener("click", () => {
        at = (at + 1) % 3;
        try {
            localStorage.setItem("npuprof-theme", names[at]);
        } catch {
            /* as above */
        }
        apply();
        redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    apply();
}
