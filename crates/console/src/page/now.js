// What the server does now: charts of the last minutes.

import { POINTS_MAX, chart } from "./chart.js";
import { CommandFailed, isUnauthorized, run } from "./door.js";
import { element, replace, table } from "./elements.js";
import { bytes, count, micros, millis, seconds } from "./figures.js";
import { figures, lags } from "./status.js";
import { text } from "./texts.js";

const INTERVAL_MS = 2000;
/// Asks of the set's state are rarer: its lags change slowly.
const SET_EVERY = 5;

const percent = (value) => (value === null || value === undefined ? "–" : `${count(value)} %`);
const perSecond = (value) => count(value);
const bytesPerSecond = (value) => `${bytes(value)}/s`;

const CHARTS = () => [
  {
    id: "operations",
    title: text("operationsPerSecond"),
    format: perSecond,
    lines: ["query", "insert", "update", "delete", "getmore", "command"].map((name) => ({ name, label: name })),
  },
  {
    id: "reads",
    title: text("readLatency"),
    format: micros,
    lines: [{ name: "reads-p50", label: "p50" }, { name: "reads-p99", label: "p99" }],
  },
  {
    id: "writes",
    title: text("writeLatency"),
    format: micros,
    lines: [{ name: "writes-p50", label: "p50" }, { name: "writes-p99", label: "p99" }],
  },
  {
    id: "memory",
    title: text("memory"),
    format: bytes,
    isBinary: true,
    lines: [
      { name: "resident", label: text("ofProcess") },
      { name: "cache", label: text("cache") },
      { name: "unflushed", label: text("unflushed") },
      { name: "work", label: text("ofOperations") },
      { name: "messages", label: text("messages") },
      { name: "replies", label: text("replies") },
      { name: "cursors", label: text("idleCursors") },
    ],
  },
  { id: "hits", title: text("cacheHits"), format: percent, lines: [{ name: "hits", label: text("hitShare") }] },
  {
    id: "log",
    title: text("logPerSecond"),
    format: perSecond,
    lines: [
      { name: "records", label: text("records") },
      { name: "syncs", label: text("syncs") },
      { name: "stalled", label: text("stalledWrites") },
    ],
  },
  { id: "sync", title: text("syncLatency"), format: micros, lines: [{ name: "sync-p99", label: "p99" }] },
  {
    id: "network",
    title: text("network"),
    format: bytesPerSecond,
    isBinary: true,
    lines: [{ name: "bytesIn", label: text("received") }, { name: "bytesOut", label: text("sent") }],
  },
  { id: "connections", title: text("connections"), format: count, lines: [{ name: "connections", label: text("open") }] },
];

/// The points so far, which stay while other views are shown.
const points = [];
let last = null;
let set = null;
let rounds = 0;
let timer = null;
let failure = null;
let shown = () => {};

const look = async () => {
  try {
    const status = await run("admin", { serverStatus: 1, opLatencies: { histograms: true } });
    if (last !== null) {
      points.push(figures(last, status));
      if (points.length > POINTS_MAX) points.shift();
    }
    last = status;
    failure = null;
    if (status.repl !== undefined && rounds % SET_EVERY === 0) set = await run("admin", { replSetGetStatus: 1 });
    rounds += 1;
  } catch (error) {
    failure = error;
    // A user without the privilege will not get it by asking each second.
    if (isUnauthorized(error)) return false;
  }
  return true;
};

/// Begins to ask the server. Nothing is asked while the page is hidden.
export const start = () => {
  stop();
  const tick = async () => {
    const mine = timer;
    const goesOn = document.hidden || (await look());
    shown();
    if (goesOn && timer === mine) timer = setTimeout(tick, INTERVAL_MS);
  };
  timer = setTimeout(tick, 0);
};

export const stop = () => {
  clearTimeout(timer);
  timer = null;
};

/// Forgets what a user has seen.
export const forget = () => {
  stop();
  points.length = 0;
  last = set = failure = null;
  rounds = 0;
};

const facts = (status, point) => [
  [text("uptime"), seconds(Number(status.uptime))],
  [text("engine"), status.storageEngine.name],
  [text("budget"), `${bytes(Number(status.bunko.memory.heldBytes))} / ${bytes(Number(status.bunko.memory.limitBytes))}`],
  [text("cache"), point.cacheLimit > 0 ? `${bytes(point.cache)} / ${bytes(point.cacheLimit)}` : "–"],
  [text("diskFree"), `${bytes(point.diskFree)} / ${bytes(point.diskTotal)}`],
  [text("diskReserve"), point.reserveInUse ? text("inUse") : text("unused")],
  [text("segments"), count(point.segments)],
  [text("checkpoints"), `${count(point.checkpoints)} (${text("lastTook")} ${millis(point.checkpointMillis)})`],
];

const factList = (pairs) =>
  element("dl", { class: "facts" }, pairs.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));

const members = () =>
  set === null
    ? null
    : element(
        "section",
        {},
        element("h3", {}, text("replication")),
        table(
          text("replication"),
          [
            { title: text("member"), cell: (row) => row.name },
            { title: text("state"), cell: (row) => row.state },
            { title: text("lag"), isNumber: true, cell: (row) => (row.seconds === null ? "–" : seconds(row.seconds)) },
          ],
          lags(set),
        ),
      );

export const view = (place) => {
  const charts = CHARTS().map(chart);
  const summary = element("div", { id: "facts" });
  const trouble = element("p", { class: "trouble", role: "alert" });
  const replication = element("div", { id: "replication" });
  replace(
    place,
    element("h2", {}, text("now")),
    trouble,
    summary,
    element("div", { class: "charts" }, charts.map(({ figure }) => figure)),
    replication,
    element("p", { class: "hint" }, text("nowHint")),
  );
  shown = () => {
    replace(trouble, failure === null ? "" : failure instanceof CommandFailed ? failure.message : `${text("unreachable")} ${failure.message}`);
    trouble.hidden = failure === null;
    if (points.length > 0) replace(summary, factList(facts(last, points.at(-1))));
    for (const { update } of charts) update(points);
    replace(replication, members());
  };
  shown();
  return () => {
    shown = () => {};
  };
};
