// SPDX-License-Identifier: MIT
// Builds the page, part by part, and draws it anew when the width changes.

themes();
readPalette();
head();
verdict();
leftOpen();
timeline();
criticalPath();
limits();
latency();
operators();
flame();
device();
memory();
counters();
whatIf(D.what_if, "what-if", "What if several things change");
whatIf(D.sparse, "sparse", "What if weights were sparse");
about();
redraw();
let width = innerWidth;
addEventListener("resize", () => {
    if (innerWidth !== width) {
        width = innerWidth;
        redraw();
    }
});
addEventListener("beforeprint", redraw);
