// SPDX-License-Identifier: MIT
// Opens a page of a large trace, or of one with a verdict, and measures what a search and "Show me" take
// until the next frame is drawn; everything by keyboard. Prints what it found as JSON.
// usage: node answers.mjs BUILD_WEB CHROMIUM PAGE.html PART_OF_A_NAME SCREENSHOT_PREFIX
import { launch } from "./browser.mjs";
import { pathToFileURL } from "node:url";

const [, , web, executablePath, file, part, prefix] = process.argv;
const browser = await launch(web, executablePath);
const found = { messages: [], widths: {} };
const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
page.on("console", message => found.messages.push(message.text()));
page.on("pageerror", error => found.messages.push(String(error.stack)));
const settle = () =>
    page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
// Seconds of the page's thread on a CPU so far. Why not the clock: other programs run on this machine.
const devtools = await page.context().newCDPSession(page);
await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
const cpu = async () =>
    (await devtools.send("Performance.getMetrics")).metrics.find(m => m.name === "TaskDuration").value;
// CPU ms of the page from an act to the end of the frame that shows it.
const timed = async (act, more) => {
    const before = await cpu();
    await page.evaluate(
        ([code, given]) =>
            new Promise(done => {
                new Function("given", code)(given);
                requestAnimationFrame(() => setTimeout(done));
            }),
        [act, more],
    );
    return 1000 * ((await cpu()) - before);
};
const text = selector => page.locator(selector).first().innerText();
const focus = () =>
    page.evaluate(() => {
        const node = document.activeElement;
        return node.id || node.textContent || node.getAttribute("aria-label");
    });

let clock = Date.now();
await page.goto(pathToFileURL(file).href);
await settle();
found.load_ms = Date.now() - clock;
found.paint_ms = await page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint").map(entry => entry.startTime)[0] ?? -1);
found.load_cpu_ms = 1000 * (await cpu());

// What the first screen of a phone shows without scrolling: where each part of the answer ends.
await page.setViewportSize({ width: 390, height: 844 });
await settle();
found.phone = await page.evaluate(() =>
    [...document.querySelectorAll(".first h3, .first .ba .big, .first .ba .row, .first .advice")].map(node =>
        Math.round(node.getBoundingClientRect().bottom)));
await page.setViewportSize({ width: 1280, height: 900 });
await settle();

// The slider of the first answer, by keyboard, stop by stop.
const hero = page.locator(".first .try input");
found.stops = [];
if (await hero.count()) {
    const own = await hero.inputValue();
    await hero.focus();
    await page.keyboard.press("Home");
    for (let n = 0; n <= Number(await hero.getAttribute("max")); n++) {
        if (n) await page.keyboard.press("ArrowRight");
        found.stops.push([await text(".first .big"), await text(".first .brings"), await text(".first .try"),
                          await hero.getAttribute("aria-valuetext"), own === String(n)]);
    }
    await hero.fill(own);
}

// The pictures, as far as they are there: texts, and widths as parts of the whole.
found.pictures = await page.evaluate(() => {
    const widths = place => [...place.querySelectorAll(".stack > i")].map(
        node => node.getBoundingClientRect().width / node.parentNode.getBoundingClientRect().width);
    const all = selector => [...document.querySelectorAll(selector)];
    return {
        roofs: all("#limits .roof").length,
        label: all("#limits svg[aria-label]").map(node => node.getAttribute("aria-label")),
        texts: all("#limits svg[aria-label] text").map(node => node.textContent),
        padding: all("#limits .padding").map(widths),
        paths: all("#critical .path").map(widths),
        owners: all("#critical .keys li").map(node => node.innerText),
    };
});

// The first idle strip: which part of its pixels has the colour of which cause.
found.strip = await page.evaluate(() => {
    const colours = [...document.querySelectorAll(".keys.idle .dot")].map(node => [
        node.parentNode.innerText, getComputedStyle(node).backgroundColor.match(/\d+/g).map(Number)]);
    const n = JSON.parse(document.getElementById("data").textContent).timeline.groups.findIndex(
        group => group.idle.length);
    if (n < 0 || !colours.length) return null;
    const tracks = [...document.querySelectorAll(".track")],
        bottom = tracks.slice(0, n + 1).reduce((sum, node) => sum + node.offsetHeight, 0) - 2,
        canvas = document.getElementById("lanes"),
        pixels = canvas.getContext("2d").getImageData(0, bottom - 14, canvas.width, 14).data,
        backs = tracks[n] && getComputedStyle(document.documentElement).getPropertyValue("--faint").trim();
    colours.push(["works", [1, 3, 5].map(i => parseInt(backs.slice(i, i + 2), 16))]);
    const found = {};
    for (let i = 0; i < pixels.length; i += 4) {
        const far = ([, rgb]) => rgb.reduce((sum, v, k) => sum + (v - pixels[i + k]) ** 2, 0),
            [name] = colours.reduce((a, b) => (far(b) < far(a) ? b : a));
        found[name] = (found[name] || 0) + 4 / pixels.length;
    }
    return found;
});

// A pan: the CPU time of each of 40 moves, zoomed in.
await page.locator("#lanes").focus();
for (const key of ["+", "+", "+"]) await page.keyboard.press(key);
await settle();
const before = await cpu();
for (let n = 0; n < 40; n++) {
    await page.keyboard.press(n % 20 < 10 ? "ArrowRight" : "ArrowLeft");
    await settle();
}
found.pan_cpu_ms = (1000 * ((await cpu()) - before)) / 40;
await page.keyboard.press("0");
await settle();

// The search, letter by letter.
found.search_ms = [];
for (let n = 0; n < 3 * part.length; n++)
    found.search_ms.push(
        await timed(
            `const box = document.getElementById("find"); box.value = given;
             box.dispatchEvent(new Event("input"));`,
            part.slice(0, 1 + (n % part.length)),
        ),
    );
found.said = [await text("#found")];
await page.locator("#lanes").focus();
await page.keyboard.press("/");
found.focus = [await focus()];
await page.keyboard.type(part);
for (const key of ["Enter", "Enter", "Shift+Enter"]) {
    await page.keyboard.press(key);
    await settle();
    found.said.push(`${await text("#found")} | ${await text(".detail")}`);
}
found.step_ms = await timed(`document.querySelector("[aria-label^='Next of']").click()`);
await page.screenshot({ path: `${prefix}-search.png` });
await page.locator("#lanes").focus();
await page.keyboard.press("f");
await settle();
found.said.push(await text("#found"));
await page.keyboard.press("Escape");
await settle();
found.said.push(await text("#found"));

// From a row of the table to its spans.
if (await page.locator("#operators .link").count()) {
    const link = page.locator("#operators .link").first();
    found.row = [await link.innerText()];
    await timed(`document.querySelector("#operators .link").click()`);
    await settle();
    found.row.push(await text("#found"), await text(".detail"), await focus());
    await page.keyboard.press("Escape");
}

// "Show me" of each finding.
found.findings = [];
for (let n = 0; n < (await page.locator(".finding").count()); n++) {
    const card = page.locator(".finding").nth(n);
    const entry = { text: await card.innerText() };
    if (await card.locator("button").count()) {
        entry.ms = [];
        for (let k = 0; k < 3; k++)
            entry.ms.push(await timed(
                `document.querySelectorAll(".finding")[given].querySelector("button").click()`, n));
        await settle();
        Object.assign(entry, { said: await text("#found"), detail: await text(".detail"),
                               focus: await focus() });
        if (n === 0) await page.screenshot({ path: `${prefix}-show.png` });
        await page.keyboard.press("Escape");
    }
    found.findings.push(entry);
}

// Why the engine is idle, by keyboard.
found.idle = [];
if (await page.locator(".keys.idle").count()) {
    await page.locator("#lanes").focus();
    for (const key of ["i", "i", "u"]) {
        await page.keyboard.press(key);
        await settle();
        found.idle.push(await text(".detail"));
    }
    found.idle_legend = await text(".keys.idle");
    await page.keyboard.press("Escape");
}

// The sliders, by keyboard.
if (await page.locator("#what-if input").count()) {
    const slider = page.locator("#what-if input").first();
    found.slider = [await text(".result")];
    await slider.focus();
    for (let n = 0; n < 5; n++) await page.keyboard.press("ArrowRight");
    await settle();
    found.slider.push(await text(".result"), await slider.getAttribute("aria-valuetext"));
    found.slider_ms = [];
    for (const value of [2, 3, 4])
        found.slider_ms.push(
            await timed(
                `const range = document.querySelector("#what-if input"); range.value = given;
                 range.dispatchEvent(new Event("input"));`,
                value,
            ),
        );
}

// Every width, light and dark: nothing sticks out, and what is told is in view.
for (const [width, scheme] of [[390, "light"], [390, "dark"], [768, "dark"], [1280, "light"], [2560, "dark"],
                               [2560, "light"]]) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.setViewportSize({ width, height: 844 });
    await page.evaluate(() => scrollTo(0, 0));
    await settle();
    await page.screenshot({ path: `${prefix}-${width}-${scheme}.png` });
    await page.locator("#lanes").focus();
    for (const key of ["n", "n"]) await page.keyboard.press(key);
    await settle();
    found.widths[`${width} ${scheme}`] = await page.evaluate(() => {
        const told = document.querySelector(".detail").getBoundingClientRect(),
            lanes = document.getElementById("lanes").getBoundingClientRect(),
            small = [...document.querySelectorAll(".find button, .find input, #theme")].filter(
                node => node.getBoundingClientRect().height < 28,
            );
        return {
            overflow: document.documentElement.scrollWidth - innerWidth,
            told: told.bottom <= innerHeight + 1 && told.top >= 0,
            lanes: lanes.width,
            small: small.length,
        };
    });
    await page.screenshot({ path: `${prefix}-${width}-${scheme}-lanes.png` });
}

// By the keyboard alone: what Tab reaches, in order.
await page.setViewportSize({ width: 1280, height: 900 });
await page.goto(pathToFileURL(file).href);
await settle();
found.tabs = [];
for (let n = 0; n < 24; n++) {
    await page.keyboard.press("Tab");
    found.tabs.push(await focus());
}
await browser.close();
console.log(JSON.stringify(found));
