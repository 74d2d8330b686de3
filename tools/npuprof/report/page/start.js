// SPDX-License-Identifier: MIT
themes();
readPalette();
head();
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
