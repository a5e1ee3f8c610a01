// Opens the console in a browser, looks at what is drawn, and uses it: node open.js BINARY DATA SCREENSHOTS
import chromium from "@sparticuz/chromium";
import assert from "node:assert/strict";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { FILL, HOSTILE, LOAD, REPORTS, start, writeReports } from "./server.js";

const [binary, data, screenshots] = process.argv.slice(2);
// Time limits of closing the browser, of one call to it, and of what must appear on the page.
const CLOSING_MS = 10_000;
const CALL_MS = 60_000;
const APPEARS_MS = 20_000;
const LOOKS = {
  wide: { width: 1280, height: 900, scheme: "light", language: "en" },
  middle: { width: 800, height: 900, scheme: "light", language: "en" },
  narrow: { width: 400, height: 800, scheme: "light", language: "en" },
  dark: { width: 1280, height: 900, scheme: "dark", language: "en" },
  ja: { width: 1280, height: 900, scheme: "light", language: "ja" },
  "ja-narrow": { width: 400, height: 800, scheme: "dark", language: "ja" },
};
const VIEWS = ["now", "collections", "slow", "operations", "query", "reports"];

// Flags of that browser that turn off what keeps one site from another.
const UNSAFE = ["--disable-web-security", "--allow-running-insecure-content", "--disable-site-isolation-trials"];

const launch = async () => {
  try {
    const executablePath = process.env.CHROMIUM ?? (await chromium.executablePath());
    // With LANG=C, a headless Chromium chooses the language "en-US@posix", which its own Intl refuses.
    const env = { ...process.env, LANG: "en_US.UTF-8", LC_ALL: "en_US.UTF-8" };
    const args = [...chromium.args.filter((flag) => !UNSAFE.includes(flag)), "--lang=en-US"];
    return await puppeteer.launch({ executablePath, args, headless: "shell", env, protocolTimeout: CALL_MS });
  } catch (error) {
    console.error(String(error));
    process.exit(77);
  }
};

// Runs in the page.
const faults = () => {
  const found = [];
  const check = (selector, holds, complaint) =>
    document.querySelectorAll(selector).forEach((element) => {
      if (!holds(element)) found.push(`${complaint}: ${element.outerHTML.slice(0, 160)}`);
    });
  check("th", (cell) => cell.scope !== "", "a heading without scope");
  check("select, input, textarea", (control) => control.labels.length > 0 || control.ariaLabel, "a control without label");
  check("button, a", (control) => control.textContent.trim() !== "", "a control without text");
  check("*", (element) => [...element.attributes].every(({ name }) => !name.startsWith("on") && name !== "style"), "an inline handler or style");
  check("body *", (element) => !["IFRAME", "IMG", "OBJECT", "EMBED", "SCRIPT", "B"].includes(element.tagName) || element.closest(".counts"), "an element of the data");
  const { documentElement: page } = document;
  if (page.scrollWidth > innerWidth) found.push(`wider than the window: ${page.scrollWidth} of ${innerWidth} pixels`);
  check("main h2, main h3, main p, main dd, main code, main button, main pre", (element) => {
    const box = element.getBoundingClientRect();
    return element.closest(".scroll") || box.width === 0 || (box.left >= 0 && box.right <= innerWidth + 0.5);
  }, "cut at the side");
  return found;
};

/// The page that was opened last, for the message of a failure.
let last = null;

/// A page of the console with that look, and its complaints so far.
const open = async (browser, url, { width, height, scheme, language }) => {
  const page = await browser.newPage();
  const complaints = [];
  last = { page, complaints };
  page.on("console", (message) => complaints.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    complaints.push(`a dialog: ${dialog.message()}`);
    return dialog.dismiss();
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(url)) complaints.push(`loads ${request.url()}`);
  });
  page.setDefaultTimeout(APPEARS_MS);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height });
  await page.evaluateOnNewDocument((name) => localStorage.setItem("language", name), language);
  await page.goto(url);
  return { page, complaints };
};

// What must be on a view before it is looked at.
const READY = {
  now: ".chart polyline",
  collections: "#view table tbody tr",
  slow: ".shape",
  operations: "#running",
  query: "#query-text",
  reports: "#reports tbody tr",
};

const text = (page, selector) => page.$eval(selector, (element) => element.textContent);
const type = async (page, selector, words) => {
  await page.$eval(selector, (control) => {
    control.value = "";
    control.focus();
  });
  await page.type(selector, words);
};

const look = async (page, complaints, name) => {
  complaints.push(...(await page.evaluate(faults)));
  assert.deepEqual(complaints, [], name);
  await page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true });
};

/// What each view shows of the server's data, once.
const USES = {
  now: async (page) => {
    const charts = await page.$$eval(".chart", (found) => found.map(({ id }) => id));
    assert.deepEqual(charts, ["operations", "reads", "writes", "memory", "hits", "log", "sync", "network", "connections"]);
    await page.focus("#memory .area");
    await page.keyboard.press("ArrowLeft");
    assert.match(await text(page, "#memory .time"), /\d\d:\d\d:\d\d/);
    assert.match(await text(page, "#memory .legend"), /MiB/);
    assert.match(await text(page, "#facts"), /lsm/);
    // Two points at least make a line.
    await page.waitForFunction(() => document.querySelector("#operations polyline").getAttribute("points").split(" ").length > 2);
  },
  collections: async (page) => {
    const names = await page.$$eval("#view tbody td:first-child", (cells) => cells.map((cell) => cell.textContent));
    for (const name of HOSTILE) assert.ok(names.includes(name.replaceAll("$", "")), `${name}: ${names}`);
    assert.ok(names.includes("orders") && names.includes("open_orders"), String(names));
    const rows = await page.$$eval("#view tbody tr", (found) => found.map((row) => row.textContent));
    assert.match(rows.find((row) => row.startsWith("orders")), /3,000.*KiB/);
    await page.evaluate(() => [...document.querySelectorAll("#view td button")].find((button) => button.textContent === "orders").click());
    await page.waitForSelector("#indexes tbody tr");
    const indexes = await page.$$eval("#indexes tbody tr", (found) => found.map((row) => row.textContent));
    assert.equal(indexes.length, 3);
    assert.ok(indexes.some((row) => row.startsWith("customer_1_state_-1{customer: 1, state: -1}")), String(indexes));
    const warned = await page.$$eval("#indexes .warn", (found) => found.map((element) => element.closest("tr").textContent));
    assert.ok(warned.length === 1 && warned[0].startsWith("note_1"), String(warned));
  },
  slow: async (page) => {
    const shapes = await page.$$eval(".shape", (found) => found.map((shape) => shape.textContent));
    const scanned = shapes.find((shape) => shape.includes("shop.orders · find") && shape.includes("createIndex"));
    assert.match(scanned, /getCollection\("orders"\)\.createIndex\(\{ state: 1, placed: -1, price: 1 \}\)/);
    assert.match(scanned, /Times3|回数3/);
    assert.equal(shapes.filter((shape) => shape.includes("createIndex({")).length, 1, "only plain evidence");
    await page.click(".shape summary");
  },
  query: async (page) => {
    await type(page, "#query-database", "shop");
    await type(page, "#query-collection", "orders");
    await type(page, "#query-text", "{customer: 7, state: {$in: ['open', \"sent\"]}}");
    await type(page, "#query-sort", "{_id: -1}");
    await type(page, "#query-limit", "3");
    await page.keyboard.down("Control");
    await page.keyboard.press("Enter");
    await page.keyboard.up("Control");
    await page.waitForSelector("pre.document");
    const documents = await page.$$eval("pre.document", (found) => found.map((element) => element.textContent));
    assert.equal(documents.length, 3);
    assert.match(documents[0], /_id: 2957/);
    await page.click("#explain");
    await page.waitForSelector("#plan-summary");
    const plan = await text(page, ".plan");
    for (const stage of ["SORT", "FETCH", "IXSCAN", "customer_1_state_-1"]) assert.ok(plan.includes(stage), plan);
  },
  operations: async () => {},
  reports: async (page) => {
    const names = await page.$$eval("#reports tbody td:first-child", (cells) => cells.map((cell) => cell.textContent));
    assert.deepEqual(names.sort(), [...Object.keys(REPORTS)].sort());
  },
};

const visit = async (browser, url, name, isUsed) => {
  const { page, complaints } = await open(browser, url, LOOKS[name]);
  for (const [index, view] of VIEWS.entries()) {
    // The views by their keys.
    await page.waitForSelector("nav a");
    await page.evaluate(() => document.activeElement?.blur());
    await page.keyboard.press(String(index + 1));
    await page.waitForSelector(READY[view]);
    assert.equal(await page.$eval("nav a[aria-current]", (link) => link.hash), `#${view}`);
    if (view === "now") await page.waitForFunction(() => Number(document.querySelector("#operations output").textContent) > 0);
    if (isUsed || view !== "operations") await USES[view](page);
    await look(page, complaints, `${view}-${name}`);
  }
  await page.close();
};

/// Hostile documents are text, and keep the order of their fields and the digits of their numbers.
const askHostile = async (page, complaints) => {
  await page.keyboard.press("5");
  await page.waitForSelector("#query-text");
  for (const name of HOSTILE.map((hostile) => hostile.replaceAll("$", ""))) {
    await type(page, "#query-database", "shop");
    await type(page, "#query-collection", name);
    await type(page, "#query-text", "{}");
    await type(page, "#query-sort", "");
    await page.click("#run");
    await page.waitForFunction((words) => document.querySelector("pre.document")?.textContent.includes(words), {}, JSON.stringify(name).slice(1, -1));
    const shown = await text(page, "pre.document");
    assert.match(shown, /Long\("9007199254740993"\),\s+order: \{\s*"2": 1,\s+"1": 2\s*\},\s+when: ISODate\("2026-01-02T03:04:05.000Z"\)/, shown);
    await page.click("#explain");
    await page.waitForSelector("#plan-summary");
  }
  for (const [typed, answer] of [["{a: ?}", /line 1, column 5/], ["{a: {$no: 1}}", /BadValue/], ["{a: alert(1)}", /line 1, column 5/]]) {
    await type(page, "#query-text", typed);
    await page.click("#run");
    await page.waitForSelector("#result .trouble");
    assert.match(await text(page, "#result .trouble"), answer);
  }
  await page.select("#query-kind", "aggregate");
  await type(page, "#query-collection", "orders");
  await type(page, "#query-text", "[{$match: {customer: 3}}, {$group: {_id: '$state', n: {$sum: 1}}}, {$sort: {_id: 1}}]");
  await page.click("#run");
  await page.waitForSelector("pre.document");
  assert.deepEqual(await page.$$eval("pre.document", (found) => found.map((element) => element.textContent)), ['{_id: "open", n: 8}', '{_id: "sent", n: 52}']);
  await page.click("#explain");
  await page.waitForSelector("#plan-summary");
  assert.match(await text(page, ".plan"), /\$group/);
  await type(page, "#query-text", "[{$out: 'copy'}]");
  await page.click("#run");
  await page.waitForSelector("#result .trouble");
  assert.match(await text(page, "#result .trouble"), /\$out in the console is not supported yet/);
  // Browsers tell of the status 403.
  assert.match(complaints.splice(0).join(), /^console: Failed to load resource: .*403 \(Forbidden\)$/);
};

/// A query that does not end is seen among the operations, and killed by two clicks.
const kill = async (page) => {
  await page.select("#query-kind", "find");
  await type(page, "#query-text", "{$where: 'while (true) {}'}");
  await page.click("#run");
  await page.evaluate(() => {
    location.hash = "operations";
  });
  const button = () => page.waitForFunction(() => [...document.querySelectorAll("#running tr")].find((row) => row.textContent.includes("while (true)"))?.querySelector("button"));
  await (await button()).click();
  await page.screenshot({ path: join(screenshots, "operations-kill.png"), fullPage: true });
  assert.match(await (await button()).evaluate((element) => element.textContent), /Really/);
  await (await button()).click();
  await page.waitForFunction(() => /was told to end/.test(document.getElementById("notice").textContent));
  await page.waitForFunction(() => !document.getElementById("running").textContent.includes("while (true)"));
};

/// A report of the lab opens in a page of its own, with its charts; a hostile one is drawn, and does nothing.
const openReports = async (browser, page) => {
  await page.evaluate(() => {
    location.hash = "reports";
  });
  for (const name of Object.keys(REPORTS)) {
    await page.waitForSelector("#reports tbody tr");
    const opened = new Promise((resolve) => browser.once("targetcreated", resolve));
    await page.evaluate((words) => [...document.querySelectorAll("#reports button")].find((button) => button.textContent === words).click(), name);
    const report = await (await opened).page();
    await report.waitForSelector("body *");
    const { origin, words, hasOpener, keeps } = await report.evaluate(() => ({
      origin: self.origin,
      words: document.body.textContent,
      hasOpener: opener !== null,
      keeps: (() => {
        try {
          return localStorage.length >= 0;
        } catch {
          return false;
        }
      })(),
    }));
    assert.deepEqual({ origin, hasOpener, keeps }, { origin: "null", hasOpener: false, keeps: false }, name);
    assert.match(words, REPORTS[name].shows, name);
    const charts = await report.$$eval("canvas", (found) => found.length);
    assert.equal(charts > 0, REPORTS[name].hasCharts, name);
    assert.equal(await report.evaluate(() => document.body.dataset.acted), undefined, name);
    await report.screenshot({ path: join(screenshots, `opened-${name}.png`) });
    await report.close();
  }
};

const use = async (browser, url) => {
  const { page, complaints } = await open(browser, url, LOOKS.wide);
  await page.waitForSelector("nav a");
  await askHostile(page, complaints);
  await kill(page);
  await openReports(browser, page);
  await page.select("#language", "ja");
  assert.match(await text(page, "nav"), /現在の状態/);
  assert.equal(await page.$eval("html", (html) => html.lang), "ja");
  await look(page, complaints, "used");
  await page.close();
};

/// Logins: a wrong one, a right one, a user of few rights, and the end of a session.
const logIn = async (browser, url, shell) => {
  shell('db.getSiblingDB("admin").createUser({user: "root", pwd: "p", roles: ["root"]})');
  const { page, complaints } = await open(browser, url, LOOKS.narrow);
  await page.waitForSelector("#user");
  await look(page, complaints, "login-narrow");
  await page.keyboard.type("root");
  await page.keyboard.press("Tab");
  await page.keyboard.type("wrong");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".trouble:not([hidden])");
  assert.match(await text(page, ".trouble"), /wrong/);
  // Browsers tell of the status 401.
  assert.match(complaints.splice(0).join(), /^console: Failed to load resource: .*401/);
  await page.keyboard.type("p");
  await page.keyboard.press("Enter");
  await page.waitForSelector(".chart polyline");
  await page.reload();
  await page.waitForSelector("#user");
  await page.keyboard.type("root");
  await type(page, "#password", "p");
  await page.keyboard.press("Enter");
  await page.waitForSelector("#log-out");
  await page.click("#log-out");
  await page.waitForSelector("#user");
  assert.deepEqual(complaints, [], "logins");
  await page.close();
};

// Closes the browser, and kills it if it does not close by itself: a failure must not become a hang.
const close = async (browser) => {
  const killer = setTimeout(() => browser.process()?.kill("SIGKILL"), CLOSING_MS);
  await browser.close().catch(() => {});
  clearTimeout(killer);
};

const browser = await launch();
const servers = [];
let status = 1;
try {
  const reports = writeReports(binary, join(data, "reports"));
  const plain = await start(binary, join(data, "open"), ["--console-reports", reports]);
  servers.push(plain);
  plain.shell(FILL);
  plain.beside(LOAD);
  for (const name of Object.keys(LOOKS)) {
    console.log(`console_in_browser: ${name}`);
    await visit(browser, plain.url, name, name === "wide");
  }
  await use(browser, plain.url);
  const guarded = await start(binary, join(data, "guarded"), ["--auth"]);
  servers.push(guarded);
  await logIn(browser, guarded.url, guarded.shell);
  console.log(`console_in_browser: ${Object.keys(LOOKS).length} looks in ${await browser.version()}: all well`);
  status = 0;
} catch (error) {
  console.error(error, last?.complaints);
  await last?.page.screenshot({ path: join(screenshots, "failure.png") }).catch(() => {});
} finally {
  await close(browser);
  for (const server of servers) server.stop();
}
process.exit(status);
