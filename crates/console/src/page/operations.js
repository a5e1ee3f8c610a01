// Running operations, which can be ended.

import { isUnauthorized, run } from "./door.js";
import { element, replace, table } from "./elements.js";
import { micros } from "./figures.js";
import { text } from "./texts.js";
import { shellText } from "./values.js";

const INTERVAL_MS = 2000;
/// How long a button that asks whether to kill waits for the second click.
const ASK_MS = 4000;
const COMMAND_LENGTH_MAX = 400;
/// The comment by which the page's own look is left out.
const OWN = "bunko console: running operations";

const look = async (allUsers) => {
  const { cursor } = await run("admin", {
    aggregate: 1,
    pipeline: [{ $currentOp: { allUsers, idleConnections: false } }],
    cursor: { batchSize: 1000 },
    comment: OWN,
  });
  return cursor.firstBatch.filter(({ command }) => command?.comment !== OWN);
};

const shorten = (words) => (words.length > COMMAND_LENGTH_MAX ? `${words.slice(0, COMMAND_LENGTH_MAX)} …` : words);

/// A command without the fields that say nothing to a person.
const commandOf = ({ command, originatingCommand }) => {
  const { lsid, $clusterTime, $db, ...rest } = originatingCommand ?? command ?? {};
  return shorten(shellText(rest));
};

const userOf = ({ effectiveUsers }) => (effectiveUsers ?? []).map(({ user, db }) => `${user}@${db}`).join(", ");

export const view = (place, tell) => {
  const content = element("div", { id: "running" });
  const hint = element("p", { class: "hint" });
  /// The operation whose button asks again, and until when.
  let asked = null;
  let timer = null;
  let isLeft = false;
  let allUsers = true;
  let rows = [];

  const kill = async (opid) => {
    if (asked?.opid !== opid || Date.now() > asked.until) {
      asked = { opid, until: Date.now() + ASK_MS };
      return draw();
    }
    asked = null;
    try {
      await run("admin", { killOp: 1, op: opid });
      tell(text("killed", String(opid)));
    } catch (error) {
      tell(error.message);
    }
    return load();
  };
  const killButton = ({ opid }) => {
    const isAsked = asked?.opid === opid && Date.now() <= asked.until;
    return element(
      "button",
      { type: "button", class: "danger", "data-opid": opid, click: () => kill(opid) },
      text(isAsked ? "reallyKill" : "kill"),
    );
  };
  const draw = () => {
    const focused = document.activeElement?.dataset?.opid;
    replace(
      content,
      rows.length === 0
        ? element("p", { class: "quiet" }, text("noOperations"))
        : table(
            text("operations"),
            [
              { title: text("operation"), cell: (row) => [String(row.opid), element("div", { class: "quiet" }, row.desc ?? "")] },
              { title: text("runsFor"), isNumber: true, cell: (row) => micros(Number(row.microsecs_running ?? 0)) },
              { title: text("collection"), kind: "name", cell: (row) => [row.ns, element("div", { class: "quiet" }, row.planSummary ?? row.op)] },
              { title: text("client"), kind: "name", cell: (row) => [row.client ?? "–", element("div", { class: "quiet" }, userOf(row) || (row.appName ?? ""))] },
              { title: text("command"), kind: "code", cell: commandOf },
              { title: text("kill"), cell: (row) => (row.type === "op" && row.opid !== undefined ? killButton(row) : "") },
            ],
            rows,
          ),
    );
    if (focused !== undefined) content.querySelector(`[data-opid="${CSS.escape(focused)}"]`)?.focus();
  };
  const load = async () => {
    try {
      rows = await look(allUsers);
      replace(hint, allUsers ? "" : text("ownOnly"));
      if (!isLeft) draw();
    } catch (error) {
      if (allUsers && isUnauthorized(error)) {
        allUsers = false;
        return load();
      }
      if (!isLeft) replace(content, element("p", { class: "trouble" }, error.message));
    }
  };
  const tick = async () => {
    if (!document.hidden) await load();
    if (!isLeft) timer = setTimeout(tick, INTERVAL_MS);
  };
  replace(place, element("h2", {}, text("operations")), content, hint);
  tick();
  return () => {
    isLeft = true;
    clearTimeout(timer);
  };
};
