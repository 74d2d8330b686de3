// SPDX-License-Identifier: MIT
// Opens traces in speedscope's own page and report pages (*.html) in headless Chromium, reads back what they
// show, and prints it as JSON.
// usage: node viewers.mjs BUILD_WEB CHROMIUM JOBS.json; jobs: [{"file": path, "shot": path or null,
// "track": part of the name of the one that a speedscope shot shows, "height": of the window,
// "walk": how many tracks of a report page to visit, "of": a part of it that is shot, and its last element}]
// speedscope: {messages, error, tracks: [{name, unit, spans: [[name, start, duration]]}], left_open}, from
// the page's own export.
// report: {messages, error, tracks: [{name, count}], details: [what the page says of the first spans of
// each track]}.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "./browser.mjs";

const [, , web, executablePath, jobs] = process.argv;
const SPEEDSCOPE = pathToFileURL(join(web, "node_modules/speedscope/dist/release/index.html")).href;
const browser = await launch(web, executablePath, "enable-unsafe-swiftshader");
const IGNORED = /GL Driver Message|WebGL|willReadFrequently|^speedscope v|^Importing as|^Saving |^import: /;

async function open(url, found, height = 560) {
    const page = await browser.newPage({ viewport: { width: 1280, height }, colorScheme: "light",
                                         reducedMotion: "reduce" });
    page.on("console", message => IGNORED.test(message.text())
            || found.messages.push(message.text().slice(0, 300)));
    page.on("pageerror", error => found.messages.push(String(error)));
    page.on("dialog", dialog => {
        found.refused = dialog.message(); // "Unrecognized format!"
        dialog.dismiss();
    });
    await page.goto(url);
    return page;
}

// The events of an exported profile as spans in the order of their begin.
function spans(profile, frames) {
    const done = [],
        open = [];
    for (const { type, frame, at } of profile.events) {
        if (type === "O") {
            const span = [frames[frame].name, at - profile.startValue, null];
            open.push([frame, span]);
            done.push(span);
        } else {
            const [opened, span] = open.pop();
            if (opened !== frame) throw new Error("speedscope exported crossing spans");
            span[2] = at - profile.startValue - span[1];
        }
    }
    return done;
}

async function speedscope(job) {
    const found = { messages: [] };
    const page = await open(SPEEDSCOPE, found, job.height);
    await page.locator("input[type=file]").setInputFiles(job.file);
    const shown = page.getByText("Export"),
        failed = page.getByText("Something went wrong");
    for (let n = 0; n < 400 && !found.refused && !(await shown.or(failed).count()); n++)
        await page.waitForTimeout(50);
    if (found.refused) found.error = found.refused;
    else if (await failed.count()) found.error = await page.locator("body").innerText();
    else {
        const [download] = await Promise.all([page.waitForEvent("download"), shown.first().click()]);
        const { profiles, shared } = JSON.parse(readFileSync(await download.path(), "utf-8"));
        found.tracks = profiles.map(profile => ({ name: profile.name, unit: profile.unit,
                                                  spans: spans(profile, shared.frames) }));
        found.left_open = found.messages.filter(text => /still open/.test(text)).length;
        found.title = await page.locator("body").innerText();
    }
    if (job.shot) {
        const wanted = (found.tracks ?? []).findIndex(track => track.name.includes(job.track));
        for (let n = 0; n < wanted; n++) await page.keyboard.press("n");
        await page.waitForTimeout(300);
        await page.screenshot({ path: job.shot });
    }
    await page.close();
    return found;
}

async function report(job) {
    const found = { messages: [], tracks: [], details: [] };
    const page = await open(pathToFileURL(job.file).href, found, job.height);
    const lanes = page.locator("#lanes");
    if (await lanes.count()) {
        await lanes.focus();
        if (job.walk) {
            await page.keyboard.press("ArrowDown");
            await page.keyboard.press("ArrowUp");
        }
        for (let n = 0; n < job.walk; n++) {
            if (n) await page.keyboard.press("ArrowDown");
            found.tracks.push(await page.locator(".detail").first().innerText());
        }
        await page.keyboard.press("0");
        for (let n = 0; n < (job.walk ? 3 : 0); n++) {
            await page.keyboard.press("n");
            found.details.push(await page.locator(".detail").first().innerText());
        }
        await page.keyboard.press("Escape");
    }
    await page.evaluate(() => scrollTo(0, 0));
    if (job.shot) await page.screenshot({ path: job.shot, ...(job.of ? await clip(page, ...job.of) : {}) });
    await page.close();
    return found;
}

// What a shot from the top of one element to the bottom of another has to say.
async function clip(page, first, last) {
    const [a, b] = [await page.locator(first).boundingBox(), await page.locator(last).boundingBox()];
    return { fullPage: true, clip: { x: a.x, y: a.y, width: a.width, height: b.y + b.height - a.y } };
}

const answers = [];
for (const job of JSON.parse(readFileSync(jobs, "utf-8"))) {
    try {
        answers.push(await (job.file.endsWith(".html") ? report(job) : speedscope(job)));
    } catch (error) {
        answers.push({ messages: [], error: String(error) });
    }
}
await browser.close();
console.log(JSON.stringify(answers));
