// SPDX-License-Identifier: MIT
// Replays with the page's own script: for each list of factors, one for each slider, what comes out.
// usage: node replay.mjs REPLAY_JS FIGURES.json FACTORS.json
import { readFileSync } from "node:fs";

const [, , script, figures, factors] = process.argv;
const D = JSON.parse(readFileSync(figures, "utf8"));
const replayed = new Function("D", `${readFileSync(script, "utf8")}; return replayed;`)(D);
console.log(JSON.stringify(JSON.parse(readFileSync(factors, "utf8"))
    .map(list => replayed(D.what_if.groups, list))));
