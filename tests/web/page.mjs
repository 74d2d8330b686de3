// SPDX-License-Identifier: MIT
// Opens a report page in headless Chromium, uses it, and prints what it found as JSON; the test judges. More
// pages are only looked at.
// usage: node page.mjs BUILD_WEB CHROMIUM SCREENSHOT_PREFIX PAGE.html [PAGE.html...]
import { launch } from "./browser.mjs";
import { pathToFileURL } from "node:url";

const [, , web, executablePath, prefix, file, ...others] = process.argv;
const browser = await launch(web, executablePath);
const found = { messages: [], requests: [] };
const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, colorScheme: "light",
                                     reducedMotion: "reduce" });
// Why one is left out: it is about the pixels that this script reads.
page.on("console", message => /willReadFrequently/.test(message.text())
        || found.messages.push(message.text()));
page.on("pageerror", error => found.messages.push(String(error.stack)));
page.on("request", request => found.requests.push(request.url()));

const text = async selector => ((await page.locator(selector).count())
                                ? page.locator(selector).first().innerText() : null);
const twoFrames = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
const settle = () => page.evaluate(twoFrames);
// Different pixels of a canvas, as a sum: tells whether anything is drawn, and whether it changed.
const ink = selector =>
    page.evaluate(s => {
        const canvas = document.querySelector(s);
        if (!canvas) return 0;
        const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
        const data = new Uint32Array(image.data.buffer);
        let sum = 0;
        for (const value of data) sum = (Math.imul(sum, 31) + value) | 0;
        return new Set(data).size > 3 ? sum : 0;
    }, selector);
// The worst contrast of text to what is behind it.
const contrast = () =>
    page.evaluate(() => {
        const channel = v => ((v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        const parse = colour => colour.match(/[\d.]+/g).map(Number);
        const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
        let worst = { ratio: 99 };
        for (const node of document.querySelectorAll("body *")) {
            const own = [...node.childNodes].some(n => n.nodeType === 3 && n.data.trim());
            if (!own || !node.checkVisibility() || node.closest("script,noscript,.skip")) continue;
            const style = getComputedStyle(node),
                front = parse(node instanceof SVGElement ? style.fill : style.color);
            let behind = node,
                back = [0, 0, 0, 0];
            while (behind && back.length === 4 && back[3] === 0) {
                back = parse(getComputedStyle(behind).backgroundColor);
                behind = behind.parentElement;
            }
            const [a, b] = [light(front), light(back)],
                ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
            if (ratio < worst.ratio)
                worst = { ratio, text: node.textContent.trim().slice(0, 40),
                          where: node.className.baseVal ?? node.className };
        }
        return worst;
    });

// The texts of all charts, and those that stick out of their card.
const labels = () =>
    page.evaluate(() => {
        const all = [...document.querySelectorAll("section svg text")];
        const out = all.filter(node => {
            const [a, b] = [node, node.closest("section")].map(n => n.getBoundingClientRect());
            return a.left < b.left || a.right > b.right || a.top < b.top || a.bottom > b.bottom;
        });
        return [all, out].map(list => list.map(node => node.textContent));
    });

let clock = Date.now();
await page.goto(pathToFileURL(file).href);
await settle();
found.load_ms = Date.now() - clock;
found.title = await page.title();
found.sections = await page.locator("section h2").allInnerTexts();
found.warnings = await page.locator(".warning").allInnerTexts();
found.facts = (await page.locator("#facts").count()) ? await page.locator("#facts").innerText() : "";
found.body = await page.locator("body").innerText();
found.images = await page.locator("img").count();
found.scripts = await page.locator("script").count();
found.nameless = await page.evaluate(() =>
    [...document.querySelectorAll("button, input, select, canvas, svg, table, [role]")]
        .filter(node => {
            if (
                node.closest("[aria-hidden=true]") ||
                ["status", "tabpanel", "tooltip", "group", "tablist"].includes(node.getAttribute("role"))
            )
                return false;
            if (node.tagName === "TABLE") return !node.tHead;
            return !(node.getAttribute("aria-label") || node.textContent.trim()
                     || (node.labels && node.labels.length));
        })
        .map(node => node.outerHTML.slice(0, 120)),
);
found.twice = await page.evaluate(() => {
    const ids = [...document.querySelectorAll("[id]")].map(n => n.id);
    return ids.filter((id, n) => ids.indexOf(id) !== n);
});
found.contrast = { light: await contrast() };
await page.screenshot({ path: `${prefix}-light.png`, fullPage: true });

// The timeline by keyboard.
const lanes = page.locator("#lanes");
if (await lanes.count()) {
    found.ink = await ink("#lanes");
    await lanes.focus();
    found.keys = {};
    for (const key of ["ArrowDown", "n", "n", "p", "+", "+", "ArrowRight", "Enter", "0", "Escape"]) {
        await page.keyboard.press(key);
        await settle();
        (found.keys[key] ||= []).push([await text(".detail"), await ink("#lanes")]);
    }
    const box = await lanes.boundingBox();
    await page.mouse.move(box.x + box.width * 0.3, box.y + 12);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 12, { steps: 4 });
    await page.mouse.up();
    await settle();
    found.dragged = await ink("#lanes");
    await page.mouse.dblclick(box.x + box.width * 0.3, box.y + 12);
    await settle();
    found.whole_again = await ink("#lanes");
    found.tips = [];
    for (let x = 0.02; x < 1 && found.tips.length < 3; x += 0.02) {
        await page.mouse.move(box.x + box.width * x, box.y + Math.min(60, box.height - 4));
        const said = await page.evaluate(() => {
            const tip = document.getElementById("tip");
            return tip.hidden ? "" : tip.innerText;
        });
        if (said) found.tips.push(said);
    }
    await page.mouse.move(2, 2);
    const chip = page.locator(".chip").first();
    if (await chip.count()) {
        await chip.click();
        await settle();
        found.only = [await chip.getAttribute("aria-pressed"), await ink("#lanes")];
        await chip.click();
        await settle();
    }
    clock = Date.now();
    await lanes.focus();
    for (let n = 0; n < 12; n++) {
        await page.keyboard.press(n % 4 ? "ArrowRight" : "+");
        await settle();
    }
    found.step_ms = (Date.now() - clock) / 12;
    await page.keyboard.press("0");
}

// Distribution, tables, sliders.
if (await page.locator("#which").count()) {
    const before = await text(".figures");
    await page.locator("#which").focus();
    await page.keyboard.press("ArrowDown");
    await settle();
    found.distribution = [before, await text(".figures"),
                          await page.locator("#which option").allInnerTexts()];
}
if (await page.locator("#operators").count()) {
    const names = () => page.locator("#operators tbody .name").allInnerTexts();
    found.table = { first: await names(), text: await text("#operators table") };
    await page.locator("#operators th button").first().click();
    found.table.sorted = [await page.locator("#operators th").first().getAttribute("aria-sort"),
                          await names()];
    await page.locator("#operators [role=tab]").first().focus();
    await page.keyboard.press("ArrowRight");
    found.table.tab = [await text("#operators [aria-selected=true]"), await names()];
}
if (await page.locator("#sparse").count()) {
    const result = "#sparse .result";
    found.sparse = { first: await text(result), sliders: await page.locator("#sparse input").count() };
    for (const aim of await page.locator("#sparse [data-aim='70']").all()) await aim.click();
    const slider = page.locator("#sparse input").first();
    await slider.focus();
    for (let n = 0; n < 5; n++) await page.keyboard.press("ArrowLeft");
    found.sparse.moved = [await text(result), await slider.getAttribute("aria-valuetext")];
    await page.locator("#sparse").getByRole("button", { name: "Reset" }).click();
    found.sparse.reset = await text(result);
}
if (await page.getByRole("button", { name: /Show the gap/ }).count()) {
    const before = await ink("#lanes");
    await page
        .getByRole("button", { name: /Show the gap/ })
        .first()
        .click();
    await settle();
    found.gap = [before, await ink("#lanes"), await page.evaluate(() => document.activeElement.id)];
}

// Dark, by button; then narrow.
const light = await ink("#lanes");
await page.locator("#theme").click();
await page.locator("#theme").click();
(await page.locator("#lanes").count()) && (await page.keyboard.press("Escape"));
await settle();
found.dark = {
    button: await text("#theme"),
    page: await page.evaluate(() => getComputedStyle(document.body).backgroundColor),
    changed: light !== (await ink("#lanes")),
};
found.contrast.dark = await contrast();
await page.evaluate(() => scrollTo(0, 0));
await page.screenshot({ path: `${prefix}-dark.png`, fullPage: true });
await page.setViewportSize({ width: 390, height: 800 });
await settle();
found.overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
found.narrow_axis = await labels();
await page.screenshot({ path: `${prefix}-narrow.png` });
found.others = [];
await page.setViewportSize({ width: 1280, height: 900 });
for (const other of others) {
    const messages = found.messages.length,
        clock = Date.now();
    await page.goto(pathToFileURL(other).href);
    await settle();
    found.others.push({
        load_ms: Date.now() - clock,
        title: await page.title(),
        body: await page.locator("body").innerText(),
        ink: await ink("#lanes"),
        sections: await page.locator("section h2").allInnerTexts(),
        messages: found.messages.slice(messages),
        images: await page.locator("img").count(),
        nodes: await page.locator("*").count(),
        axis: await labels(),
        overflow: await page.evaluate(() => document.documentElement.scrollWidth - innerWidth),
    });
    await page.setViewportSize({ width: 390, height: 900 });
    await settle();
    found.others.at(-1).narrow_axis = await labels();
    await page.setViewportSize({ width: 1280, height: 900 });
    await settle();
    if (await page.locator("#lanes").count()) {
        const clock = Date.now();
        await page.locator("#lanes").focus();
        for (let n = 0; n < 12; n++) {
            await page.keyboard.press(n % 4 ? "ArrowRight" : "+");
            await settle();
        }
        found.others.at(-1).step_ms = (Date.now() - clock) / 12;
        // What the keyboard selects is in sight, its lane and what is told of it, from wherever the page
        // stood.
        await page.keyboard.press("0");
        found.others.at(-1).sight = [];
        for (const [keys, width] of [["ArrowDown", 1280], ["n", 390], ["ArrowUp", 1280]]) {
            await page.setViewportSize({ width, height: 700 });
            await page.evaluate(() => scrollTo(0, 0));
            // 29: from the first of 30 tracks to the last; further down there are curves.
            for (let n = 0; n < (keys === "ArrowDown" ? 29 : 45); n++) await page.keyboard.press(keys);
            await settle();
            found.others.at(-1).sight.push(
                await page.evaluate(() => {
                    const box = name => document.querySelector(name).getBoundingClientRect(),
                        [lane, told, scroll] = [box(".track.here"), box(".detail"), box(".scroll")];
                    return {
                        told: document.querySelector(".detail").innerText,
                        up: Math.min(lane.top, lane.top - scroll.top),
                        down: Math.min(told.top, scroll.bottom) - Math.min(lane.bottom, lane.top + 21),
                        below: innerHeight - told.bottom,
                    };
                }),
            );
        }
        await page.setViewportSize({ width: 1280, height: 900 });
    }
    await page.screenshot({ path: `${prefix}-${found.others.length}.png`, fullPage: true });
}
await browser.close();
console.log(JSON.stringify(found));
