// SPDX-License-Identifier: MIT
// What is known about the run and the clocks, and what was not recorded.

function about() {
    const pairs = list => el("dl", { class: "pairs" }, pairsOf(list));
    const blocks = [block("Run", pairs(D.about))];
    for (const d of D.devices) {
        const known = [
            [
                "Error bound, whole recording",
                typeof d.max_error_ns === "number" && `± ${time(d.max_error_ns)}`,
            ],
            [
                "Rate",
                typeof d.rate_hz === "number" &&
                    `${d.rate_hz.toLocaleString("en", { maximumFractionDigits: 1 })} Hz, measured`,
            ],
            [
                "Drift",
                typeof d.drift_ppm === "number" && `${digits(d.drift_ppm, 3)} ppm from the nominal rate`,
            ],
            ["Anchors", typeof d.anchors === "number" && count(d.anchors)],
            ["Wraps, resets", typeof d.wraps === "number" && `${count(d.wraps)}, ${count(d.resets || 0)}`],
            [
                "Causality",
                typeof d.causality_violations === "number" &&
                    (d.causality_violations
                        ? plural(d.causality_violations, "violation")
                        : "every span lies in its submission"),
            ],
        ];
        blocks.push(
            block(
                `Clock of ${d.name}`,
                pairs(known.filter(([, value]) => value)),
                hint("The bound says how far a device span may truly be from where it is drawn."),
            ),
        );
    }
    const missing = [
        [D.inferences, "inferences (PROF_INFERENCE)"],
        [D.pes.length, "device spans"],
        [D.memory.length, "memory pools (PROF_MEMORY)"],
        [D.counters.length, "counters"],
        [D.sparse, "Neural Engine operators with weights (ne.type, ne.weight_shape)"],
    ]
        .filter(([there]) => !there)
        .map(([, name]) => name);
    if (D.about.length || D.devices.length || missing.length)
        section(
            "about",
            "About this trace",
            missing.length ? `Not recorded here: ${missing.join(", ")}.` : "",
            null,
            el("div", { class: "grid" }, D.about.length ? blocks : blocks.slice(1)),
        );
}
