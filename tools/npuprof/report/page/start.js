// SPDX-License-Identifier: MIT
// Builds the page, part by part, and draws it anew when the width changes.

themes();
readPalette();
head();
verdict();
leftOpen();
timeline();
latency();
operators();
device();
memory();
counters();
whatIf();
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
