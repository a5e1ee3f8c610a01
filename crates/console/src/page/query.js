// A query, its documents or its plan.

import { databases } from "./collections.js";
import { run, runText } from "./door.js";
import { element, labelled, replace } from "./elements.js";
import { count, micros } from "./figures.js";
import { drawPlan } from "./plan.js";
import { parse, toJson } from "./shell_text.js";
import { text } from "./texts.js";
import { readReply, shellLines } from "./values.js";

const LIMIT_MAX = 200;
const UNTOUCHED = { kind: "find", database: "", collection: "", find: "{}", aggregate: "[]", projection: "", sort: "", limit: "20" };
/// What was typed, which stays while other views are shown.
const typed = { ...UNTOUCHED };

/// Forgets what a user has typed.
export const forget = () => Object.assign(typed, UNTOUCHED);

/// The limit, within its bounds.
const limitOf = () => Math.min(LIMIT_MAX, Math.max(1, Math.trunc(Number(typed.limit)) || 1));

const part = (name, source) => (source.trim() === "" ? "" : `,${JSON.stringify(name)}:${toJson(parse(source))}`);

/// The command as Extended JSON.
const commandText = () => {
  const collection = JSON.stringify(typed.collection);
  if (typed.kind === "find") {
    const rest = part("filter", typed.find) + part("projection", typed.projection) + part("sort", typed.sort);
    return `{"find":${collection}${rest},"limit":${limitOf()},"batchSize":${limitOf()},"singleBatch":true}`;
  }
  const pipeline = parse(typed.aggregate.trim() === "" ? "[]" : typed.aggregate);
  if (!Array.isArray(pipeline.items)) throw new Error(text("expected", "[ … ]"));
  // Without the last stage, a cursor would stay open.
  const stages = { items: [...pipeline.items, { fields: [["$limit", { value: limitOf() }]] }] };
  return `{"aggregate":${collection},"pipeline":${toJson(stages)},"cursor":{"batchSize":${limitOf() + 1}}}`;
};

const fieldOf = (tree, name) => tree.fields?.find(([field]) => field === name)?.[1];

const showDocuments = (place, reply, elapsed) => {
  const documents = fieldOf(fieldOf(readReply(reply), "cursor"), "firstBatch").items;
  replace(
    place,
    element("p", { class: "hint" }, documents.length === 0 ? text("noDocuments") : text("results", count(documents.length), micros(elapsed * 1000))),
    documents.map((found) => element("pre", { class: "document" }, shellLines(found))),
  );
};

const kept = (name, attributes = {}) => {
  const control = element("input", {
    ...attributes,
    id: `query-${name}`,
    value: typed[name],
    spellcheck: "false",
    autocapitalize: "none",
    autocomplete: "off",
    input: () => {
      typed[name] = control.value;
      attributes.changed?.();
    },
  });
  return control;
};

const fillNames = async (list, names) => replace(list, (await names.catch(() => [])).map((name) => element("option", { value: name })));

const collectionNames = async (database) => {
  if (database === "") return [];
  const { cursor } = await run(database, { listCollections: 1, nameOnly: true, authorizedCollections: true, cursor: { batchSize: 1000 } });
  return cursor.firstBatch.map(({ name }) => name).sort();
};

export const view = (place) => {
  const result = element("div", { id: "result", "aria-live": "polite" });
  const databaseList = element("datalist", { id: "database-names" });
  const collectionList = element("datalist", { id: "collection-names" });
  const label = element("span", {}, "");
  const area = element("textarea", {
    id: "query-text",
    spellcheck: "false",
    autocapitalize: "none",
    input: () => {
      typed[typed.kind] = area.value;
    },
  });
  const ofFind = [
    labelled(text("projection"), kept("projection", { class: "text" })),
    labelled(text("sort"), kept("sort", { class: "text" })),
  ];
  const showKind = () => {
    replace(label, text(typed.kind === "find" ? "filter" : "pipeline"));
    area.value = typed[typed.kind];
    for (const field of ofFind) field.hidden = typed.kind !== "find";
  };
  const kind = element(
    "select",
    {
      id: "query-kind",
      change: () => {
        typed.kind = kind.value;
        showKind();
      },
    },
    ["find", "aggregate"].map((name) => element("option", { value: name, selected: name === typed.kind }, name)),
  );
  const buttons = [];
  const ask = async (use) => {
    for (const button of buttons) button.disabled = true;
    replace(result, element("p", { class: "quiet" }, text("loading")));
    const began = performance.now();
    try {
      await use(commandText(), began);
    } catch (error) {
      replace(result, element("p", { class: "trouble", role: "alert" }, error.message));
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  };
  const find = () => ask(async (command, began) => showDocuments(result, await runText(typed.database, command), performance.now() - began));
  const explain = () =>
    ask(async (command) => {
      const reply = await runText(typed.database, `{"explain":${command},"verbosity":"executionStats"}`);
      drawPlan(result, reply);
    });
  buttons.push(
    element("button", { class: "main", id: "run" }, text("run")),
    element("button", { type: "button", id: "explain", click: explain }, text("explain")),
  );
  const form = element(
    "form",
    {
      class: "query-form",
      submit: (event) => {
        event.preventDefault();
        find();
      },
      keydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !buttons[0].disabled) {
          event.preventDefault();
          find();
        }
      },
    },
    element(
      "div",
      { class: "row" },
      labelled(text("kind"), kind),
      labelled(text("database"), kept("database", { list: "database-names", required: true, changed: () => fillNames(collectionList, collectionNames(typed.database)) })),
      labelled(text("collection"), kept("collection", { list: "collection-names", required: true })),
      labelled(text("limit"), kept("limit", { type: "number", min: 1, max: LIMIT_MAX })),
    ),
    element("label", { class: "field" }, label, area),
    element("div", { class: "row" }, ofFind),
    element("div", { class: "actions" }, buttons),
    databaseList,
    collectionList,
  );
  replace(place, element("h2", {}, text("query")), form, element("p", { class: "hint" }, text("queryHint", LIMIT_MAX), " ", text("shortcuts")), result);
  showKind();
  fillNames(databaseList, databases().then((found) => found.map(({ name }) => name)));
  fillNames(collectionList, collectionNames(typed.database));
};
