// SPDX-License-Identifier: MIT
// The headless Chromium of all pages' tests. web: the folder where playwright-core is installed; more:
// further flags.
import { createRequire } from "node:module";

export function launch(web, executablePath, ...more) {
    const { chromium } = createRequire(web + "/")("playwright-core");
    // Why so many: as root, without a screen, and without a network to look for updates in.
    const args = ["no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
                  "disable-background-networking", "disable-component-update", "disable-sync", ...more];
    return chromium.launch({ executablePath, args: args.map((name) => "--" + name) });
}
