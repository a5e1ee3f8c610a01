// A server with a console, for as long as the suite runs, and what stands in it.
import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";

const START_MS = 60_000;

/// Starts a server and waits until it listens. `directory` is its data directory.
export const start = async (binary, directory, options) => {
  const flags = ["serve", "--dbpath", directory, "--port", "0", "--no-unix-socket", "--console", "0", ...options];
  const server = spawn(binary, flags, { stdio: ["ignore", "ignore", "pipe"] });
  const found = {};
  const lines = createInterface({ input: server.stderr });
  await new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the server did not start in time")), START_MS);
    server.on("exit", (code) => reject(new Error(`the server ended with ${code}`)));
    lines.on("line", (line) => {
      const { id, attr } = line.startsWith("{") ? JSON.parse(line) : {};
      if (id === 155) found.url = attr.url;
      if (id === 23016) found.uri = attr.uri;
      if (found.url && found.uri) {
        clearTimeout(timer);
        resolve();
      }
    });
  });
  server.removeAllListeners("exit");
  const flagsOfShell = (script) => ["shell", "--quiet", "--norc", found.uri, "--eval", script];
  const children = [server];
  return {
    ...found,
    stop: () => children.forEach((child) => child.kill("SIGTERM")),
    /// Runs a script to its end.
    shell: (script) => execFileSync(binary, flagsOfShell(script), { stdio: ["ignore", "pipe", "inherit"] }),
    /// Runs a script beside others.
    beside: (script) => children.unshift(spawn(binary, flagsOfShell(script), { stdio: "ignore" })),
  };
};

/// Names that do harm where text is read as HTML.
export const HOSTILE = ["<img src=x onerror=alert(1)>", "</td><script>alert(2)</script>", "x\" onmouseover=\"alert(3)", "{{7*7}}${7*7}"];

/// Collections with hostile names and documents, indexes that are used and not, and slow queries.
export const FILL = `
  const shop = db.getSiblingDB("shop");
  shop.orders.insertMany(Array.from({ length: 3000 }, (_, n) => ({ _id: n, customer: n % 50, state: n % 7 ? "sent" : "open", note: "x".repeat(60) })));
  shop.orders.createIndex({ customer: 1, state: -1 });
  shop.orders.createIndex({ note: 1 });
  shop.createCollection("capped", { capped: true, size: 4096 });
  shop.createView("open_orders", "orders", [{ $match: { state: "open" } }]);
  for (const name of ${JSON.stringify(HOSTILE)}) {
    shop.getCollection(name.replaceAll("$", "")).insertOne({
      [name.replaceAll("$", "")]: name, long: NumberLong("9007199254740993"), order: new Map([["2", 1], ["1", 2]]), when: ISODate("2026-01-02T03:04:05Z"),
    });
  }
  shop.setProfilingLevel(0, { slowms: 0 });
  for (let n = 0; n < 3; n += 1) {
    shop.orders.find({ state: "none" + n, price: { $gt: n } }).sort({ placed: -1 }).hint({ $natural: 1 }).toArray();
    shop.orders.find({ customer: n }).toArray();
    shop.orders.find({ $where: "false", "<b>x</b>": 1 }).toArray();
  }
  shop.setProfilingLevel(0, { slowms: 100 });
`;

/// What each report shows, and whether it has charts.
export const REPORTS = {
  "insert.html": { shows: /Steps/, hasCharts: true },
  "<img src=x>.html": { shows: /hostile words/, hasCharts: false },
};

/// Does harm if its script runs, or if it may load, send or keep anything.
const HOSTILE_REPORT = `<!DOCTYPE html><title>Hostile</title><body onload="document.body.dataset.acted = 1"><p>hostile words</p>
<script>document.body.dataset.acted = 1; fetch("/api/site")</script><script src="/main.js"></script><img src="/icon.svg" onerror="document.body.dataset.acted = 1">
<iframe src="/"></iframe><form action="/api/login" method="post"><button>Log in</button></form><link rel="stylesheet" href="/console.css">`;

/// A directory of reports: one that the lab makes, and a hostile one. Returns its path.
export const writeReports = (binary, directory) => {
  const output = `${directory}-run`;
  mkdirSync(directory, { recursive: true });
  const flags = ["bench", "insert-matrix", "--set", "load.duration=2s", "--repetitions", "1", "--output", output];
  try {
    execFileSync(binary, flags, { stdio: "ignore", cwd: directory });
  } catch (error) {
    // Status 2 is a report with cautions, which a short run has.
    if (error.status !== 2) throw error;
  }
  copyFileSync(`${output}/report.html`, `${directory}/insert.html`);
  writeFileSync(`${directory}/<img src=x>.html`, HOSTILE_REPORT);
  return directory;
};

/// Reads and writes until its process is killed, so that charts have something to show.
export const LOAD = `
  const busy = db.getSiblingDB("traffic").events;
  for (let n = 0; ; n += 1) {
    busy.insertOne({ n });
    busy.find({ n: { $gt: n - 5 } }).sort({ _id: -1 }).limit(3).toArray();
    busy.updateOne({ n: n - 1 }, { $set: { seen: true } });
    if (n % 20 === 0) busy.deleteMany({});
    sleep(10);
  }
`;
