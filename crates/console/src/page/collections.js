// Databases, their collections and indexes, with sizes and use.

import { isUnauthorized, run } from "./door.js";
import { element, labelled, replace, table } from "./elements.js";
import { bytes, count, micros, moment } from "./figures.js";
import { text } from "./texts.js";
import { shellText } from "./values.js";

/// The greatest number of collections whose sizes are asked for.
const COLLECTIONS_MAX = 200;

/// The database that was shown last.
let chosen = null;

const one = async (database, collection, stage) => {
  const reply = await run(database, { aggregate: collection, pipeline: [stage], cursor: {} });
  return reply.cursor.firstBatch;
};

/// A collection's statistics; the error where there are none.
const statistics = async (database, { name, type }) => {
  if (type !== "collection") return { name, type };
  try {
    const [found] = await one(database, name, { $collStats: { storageStats: {}, latencyStats: {} } });
    return { name, type, ...found };
  } catch (error) {
    return { name, type, error };
  }
};

const latency = (tally) => (tally === undefined ? "–" : tally.ops === 0 ? "0" : `${count(tally.ops)} · ${micros(tally.latency / tally.ops)}`);

const collectionTable = (database, rows, open) =>
  table(
    text("collections"),
    [
      {
        title: text("collection"),
        kind: "name",
        cell: (row) =>
          row.storageStats === undefined
            ? row.name
            : element("button", { type: "button", class: "link", title: text("showIndexes"), click: () => open(row) }, row.name),
      },
      { title: text("documents"), isNumber: true, cell: (row) => count(row.storageStats?.count) },
      { title: text("dataSize"), isNumber: true, cell: (row) => bytes(row.storageStats?.size) },
      { title: text("onDisk"), isNumber: true, cell: (row) => bytes(row.storageStats?.storageSize) },
      { title: text("indexSize"), isNumber: true, cell: (row) => bytes(row.storageStats?.totalIndexSize) },
      { title: text("reads"), isNumber: true, cell: (row) => latency(row.latencyStats?.reads) },
      { title: text("writes"), isNumber: true, cell: (row) => latency(row.latencyStats?.writes) },
      { title: text("kind"), cell: (row) => (row.storageStats?.capped ? "capped" : row.type) },
    ],
    rows,
  );

const indexTable = (name, stats, indexes) =>
  table(
    text("indexes", name),
    [
      { title: text("index"), kind: "name", cell: (row) => row.name },
      { title: text("keys"), kind: "code", cell: (row) => shellText(row.key) },
      { title: text("size"), isNumber: true, cell: (row) => bytes(stats?.indexSizes?.[row.name]) },
      {
        title: text("used"),
        isNumber: true,
        // The index on _id keeps ids unique, used or not.
        cell: (row) => element("span", { class: row.accesses.ops === 0 && row.name !== "_id_" && "warn" }, count(row.accesses.ops)),
      },
      {
        title: text("since"),
        cell: (row) => [
          moment(new Date(row.accesses.since.$date)),
          row.accesses.ops === 0 && row.name !== "_id_" ? element("div", { class: "quiet" }, text("neverUsed")) : null,
        ],
      },
    ],
    indexes,
  );

const showIndexes = async (place, database, row) => {
  const heading = element("h3", { tabindex: -1 }, text("indexes", `${database}.${row.name}`));
  replace(place, heading);
  try {
    const indexes = await one(database, row.name, { $indexStats: {} });
    place.append(indexTable(row.name, row.storageStats, indexes));
  } catch (error) {
    place.append(element("p", { class: "trouble" }, error.message));
  }
  heading.focus();
  heading.scrollIntoView({ block: "nearest" });
};

const showDatabase = async (place, database) => {
  const indexes = element("div", { id: "indexes" });
  replace(place, element("p", { class: "quiet" }, text("loading")));
  try {
    const { cursor } = await run(database, { listCollections: 1, nameOnly: true, authorizedCollections: true, cursor: { batchSize: 10_000 } });
    const all = cursor.firstBatch.sort((a, b) => (a.name < b.name ? -1 : 1));
    const rows = [];
    for (const found of all.slice(0, COLLECTIONS_MAX)) rows.push(await statistics(database, found));
    const failed = rows.find(({ error }) => error !== undefined);
    replace(
      place,
      rows.length === 0 ? element("p", { class: "quiet" }, text("none")) : collectionTable(database, rows, (row) => showIndexes(indexes, database, row)),
      all.length > COLLECTIONS_MAX ? element("p", { class: "hint" }, text("firstOnly", COLLECTIONS_MAX)) : null,
      failed === undefined ? null : element("p", { class: "hint" }, text("sizesUnknown", failed.error.message)),
      indexes,
    );
  } catch (error) {
    replace(place, element("p", { class: "trouble" }, error.message));
  }
};

/// The names of the databases that the user may see.
export const databases = async () => {
  try {
    return (await run("admin", { listDatabases: 1 })).databases;
  } catch (error) {
    if (isUnauthorized(error)) return [];
    throw error;
  }
};

export const view = (place) => {
  const content = element("div", {});
  const select = element("select", { id: "database", change: () => choose(select.value) });
  const choose = (name) => {
    chosen = name;
    return showDatabase(content, name);
  };
  replace(
    place,
    element("h2", {}, text("collections")),
    element(
      "div",
      { class: "bar" },
      labelled(text("database"), select),
      element("button", { type: "button", click: () => select.value !== "" && choose(select.value) }, text("refresh")),
    ),
    content,
  );
  databases()
    .then((found) => {
      replace(
        select,
        found.map(({ name, sizeOnDisk }) => element("option", { value: name }, `${name} (${bytes(Number(sizeOnDisk))})`)),
      );
      const names = found.map(({ name }) => name);
      const first = names.includes(chosen) ? chosen : names.find((name) => !["admin", "config", "local"].includes(name)) ?? names[0];
      if (first === undefined) return replace(content, element("p", { class: "quiet" }, text("none")));
      select.value = first;
      return choose(first);
    })
    .catch((error) => replace(content, element("p", { class: "trouble" }, error.message)));
};
