// Opens the reports in a browser and checks their contents: node open.js PAGES SCREENSHOTS
import chromium from "@sparticuz/chromium";
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";

const [pages, screenshots] = process.argv.slice(2);
const PHONE_WIDTH = 360;
// Time limits of closing the browser, and of one call to it.
const CLOSING_MS = 10_000;
const CALL_MS = 60_000;
const VIEWS = {
  desktop: { width: 1280, height: 900, scheme: "light" },
  dark: { width: 1280, height: 900, scheme: "dark" },
  phone: { width: PHONE_WIDTH, height: 740, scheme: "light" },
};

const launch = async () => {
  try {
    const executablePath = process.env.CHROMIUM ?? (await chromium.executablePath());
    // With LANG=C, a headless Chromium chooses the language "en-US@posix", which its own Intl refuses.
    const env = { ...process.env, LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" };
    const args = [...chromium.args, "--lang=en-US"];
    return await puppeteer.launch({ executablePath, args, headless: "shell", env, protocolTimeout: CALL_MS });
  } catch (error) {
    console.error(String(error));
    process.exit(77);
  }
};

// Contents that the pages of the fixture must show.
const EXPECTED = {
  plain: { rows: 1, panels: 6, curves: 1, maps: 0 },
  engines: { rows: 8, panels: 6, curves: 8, maps: 2 },
  sizes: { rows: 24, panels: 6, curves: 8, maps: 1 },
  mixed: { rows: 1, panels: 6, curves: 3, maps: 0 },
  "mixed-later": { rows: 2, panels: 6, curves: 4, maps: 0 },
  restores: { rows: 4, panels: 6, curves: 0, maps: 1 },
  allocation: { rows: 2, panels: 6, curves: 2, maps: 0 },
  hostile: { rows: 3, panels: 6, curves: 1, maps: 0 },
  "targets-compared": { rows: 24, panels: 0, curves: 0, maps: 0 },
  "runs-compared": { rows: 6, panels: 0, curves: 0, maps: 0 },
  nightly: { rows: 0, panels: 4, curves: 0, maps: 0 },
  nothing: { rows: 0, panels: 0, curves: 0, maps: 0 },
};

// Runs in the page.
const inventory = () => {
  const count = (selector) => document.querySelectorAll(selector).length;
  return {
    rows: count("#steps tbody tr"),
    panels: count("#seconds .panels .uplot, [data-history] .uplot"),
    curves: count("#curves-lines li"),
    maps: count("table.heat"),
  };
};
const faults = () => {
  const found = [];
  const check = (selector, holds, complaint) =>
    document.querySelectorAll(selector).forEach((element) => {
      if (!holds(element)) found.push(`${complaint}: ${element.outerHTML.slice(0, 120)}`);
    });
  check("th", (cell) => cell.scope !== "", "a heading without scope");
  check("select, input", (control) => control.labels.length > 0, "a control without label");
  check("nav a", (link) => document.querySelector(link.getAttribute("href")), "a link to nowhere");
  check("*", (element) => [...element.attributes].every(({ name }) => !name.startsWith("on")), "an inline handler");
  check("body *", (element) => !["IFRAME", "IMG", "OBJECT", "LINK"].includes(element.tagName), "a loaded thing");
  if (document.querySelector("#verdict p").textContent.length < 10) found.push("no verdict");
  if (document.documentElement.scrollWidth > innerWidth) {
    found.push(`wider than the window: ${document.documentElement.scrollWidth} of ${innerWidth} pixels`);
  }
  return found;
};

// Checks the part that a phone shows before scrolling, in either direction.
const firstScreen = () => {
  const found = [];
  const isSeen = (element) => {
    const box = element.getBoundingClientRect();
    return box.top >= 0 && box.bottom <= innerHeight && box.left >= 0 && box.right <= innerWidth;
  };
  const verdict = document.querySelector("#verdict p");
  if (verdict.getBoundingClientRect().top > innerHeight / 3) found.push("the verdict is not what a phone shows first");
  const figure = document.querySelector("#steps tbody .main-figure");
  // Many badges, which only a page of bad figures has, leave no room.
  const hasRoom = document.querySelector("#verdict").getBoundingClientRect().height < innerHeight / 3;
  if (figure && hasRoom && !isSeen(figure)) found.push("no figure on a phone's first screen");
  return found;
};

const visit = async (browser, name, [view, { width, height, scheme }]) => {
  const page = await browser.newPage();
  const complaints = [];
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith("file:")) complaints.push(`loads ${request.url()}`);
  });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height });
  await page.goto(pathToFileURL(join(pages, `${name}.html`)).href);
  complaints.push(...(await page.evaluate(faults)));
  if (view === "phone") complaints.push(...(await page.evaluate(firstScreen)));
  assert.deepEqual(complaints, [], `${name}, ${view}: on loading`);
  assert.deepEqual(await page.evaluate(inventory), EXPECTED[name], `${name}, ${view}: what is on the page`);
  await page.screenshot({ path: join(screenshots, `${name}-${view}.png`), fullPage: true });
  if (view === "desktop") {
    await interact(page, name);
    await page.pdf({ path: join(screenshots, `${name}.pdf`), format: "A4" });
  }
  assert.deepEqual(complaints, [], `${name}, ${view}: in use`);
  await page.close();
};

// Chooses, hovers, unchecks, and moves the cursor by keyboard.
const interact = async (page, name) => {
  if (EXPECTED[name].panels === 0 || name === "nightly") return;
  const last = await page.$eval("#series-step", (select) => select.options[select.options.length - 1].value);
  await page.select("#series-step", last);
  await page.hover("#seconds .panels .u-over");
  await page.focus("#seconds .panels .chart");
  await page.keyboard.press("ArrowRight");
  const shown = await page.$$eval("#seconds .u-legend .u-value", (cells) => cells.map((cell) => cell.textContent));
  assert.ok(shown.filter((text) => /\d/.test(text)).length > 6, `${name}: all charts follow the cursor: ${shown}`);
  await page.click("#steps a[data-step]");
  if (EXPECTED[name].curves === 0) return;
  await page.hover("#curves-chart .u-over");
  const values = await page.$$eval("#curves-lines output", (outputs) => outputs.map((output) => output.value));
  assert.match(values.join(""), /\d (µs|ms|s)/, `${name}: latencies at the cursor`);
  const { curves } = EXPECTED[name];
  // A single curve has no choices.
  assert.equal((await page.$$("#curves-lines input")).length, curves > 1 ? curves : 0, `${name}: choices among curves`);
  if (curves > 1) await page.click("#curves-lines input");
  if ((await page.$("#curves-page")) !== null) {
    await page.select("#curves-page", "1");
    assert.equal((await page.evaluate(inventory)).curves, curves, `${name}: the next page of curves`);
  }
};

// Checks that the figures are there without scripts.
const withoutScripts = async (browser) => {
  const page = await browser.newPage();
  await page.setJavaScriptEnabled(false);
  await page.goto(pathToFileURL(join(pages, "engines.html")).href);
  const { rows, maps } = await page.evaluate(inventory);
  assert.deepEqual([rows, maps], [8, 2], "tables without scripts");
  await page.screenshot({ path: join(screenshots, "engines-without-scripts.png"), fullPage: true });
  await page.close();
};

// Closes the browser, and kills it if it does not close by itself: a failure must not become a hang.
const close = async (browser) => {
  const killer = setTimeout(() => browser.process()?.kill("SIGKILL"), CLOSING_MS);
  await browser.close().catch(() => {});
  clearTimeout(killer);
};

const browser = await launch();
let status = 1;
try {
  const names = readdirSync(pages).map((file) => file.replace(/\.html$/, ""));
  assert.deepEqual(names.sort(), Object.keys(EXPECTED).sort(), "pages of the fixture");
  for (const name of names) {
    console.log(`report_in_browser: ${name}`);
    for (const view of Object.entries(VIEWS)) await visit(browser, name, view);
  }
  await withoutScripts(browser);
  console.log(`report_in_browser: ${names.length} reports in ${await browser.version()}: all well`);
  status = 0;
} catch (error) {
  console.error(error);
} finally {
  await close(browser);
}
process.exit(status);
