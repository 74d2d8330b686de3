// SPDX-License-Identifier: MIT
// Asks for a trace as the Perfetto UI does: a page of https://ui.perfetto.dev (a stand-in, its network is
// this script), under that page's content policy, by the browser's own rules for pages that read from this
// machine.
// usage: node view.mjs BUILD_WEB CHROMIUM URL. Prints {"allowed": [status, text], "other": error}: another
// page may not read it.
import { launch } from "./browser.mjs";

const [, , web, executablePath, url] = process.argv;
const browser = await launch(web, executablePath);
async function ask(origin) {
    const context = await browser.newContext();
    const cdp = await browser.newBrowserCDPSession();
    const { browserContextIds } = await cdp.send("Target.getBrowserContexts");
    // The question that Chromium asks its user, answered with yes. Its name has changed over the versions.
    for (const name of ["loopback-network", "local-network", "local-network-access"])
        await cdp
            .send("Browser.setPermission", {
                permission: { name },
                setting: "granted",
                origin,
                browserContextId: browserContextIds.at(-1),
            })
            .catch(() => {});
    const page = await context.newPage();
    await context.route(`${origin}/**`, route =>
        route.fulfill({
            contentType: "text/html",
            body: "<title>page</title>",
            headers: {
                "content-security-policy": "default-src 'self'; connect-src 'self' http://127.0.0.1:9001",
            },
        }),
    );
    await page.goto(origin);
    const answer = await page.evaluate(async url => {
        try {
            const got = await fetch(url);
            return [got.status, await got.text()];
        } catch (error) {
            return String(error);
        }
    }, url);
    await context.close();
    return answer;
}
const other = await ask("https://evil.example");
console.log(JSON.stringify({ other, allowed: await ask("https://ui.perfetto.dev") }));
await browser.close();
