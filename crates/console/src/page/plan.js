// The reply of explain, drawn as a tree.

import { element, replace } from "./elements.js";
import { count, micros, millis } from "./figures.js";
import { text } from "./texts.js";
import { readReply, shellLines, shellText } from "./values.js";

/// A tree as an object whose wrapped numbers are plain.
const plain = (tree) => {
  if (Array.isArray(tree.items)) return tree.items.map(plain);
  if (!Array.isArray(tree.fields)) return tree.value;
  const [[name, value] = []] = tree.fields;
  if (tree.fields.length === 1 && ["$numberInt", "$numberLong", "$numberDouble"].includes(name)) return Number(value.value);
  return Object.fromEntries(tree.fields.map(([field, inner]) => [field, plain(inner)]));
};

const childrenOf = (stage) => [
  ...(stage?.inputStage === undefined ? [] : [stage.inputStage]),
  ...(stage?.inputStages ?? []),
  ...["thenStage", "elseStage", "outerStage", "innerStage"].map((name) => stage?.[name]).filter((inner) => inner !== undefined),
];

/// Facts of a stage that its line of code shows.
const DETAILS = ["indexName", "indexBounds", "direction", "filter", "sortPattern", "transformBy", "limitAmount", "skipAmount"];

const boundsText = (bounds) => Object.entries(bounds).map(([field, ranges]) => `${field}: ${ranges.join(" ∪ ")}`).join(", ");

const detailText = (name, value) => {
  if (name === "indexBounds") return boundsText(value);
  return typeof value === "string" ? value : shellText(value);
};

const detailLines = (stage) =>
  DETAILS.filter((name) => stage[name] !== undefined && !(name === "direction" && stage[name] === "forward")).map(
    (name) => `${name}: ${detailText(name, stage[name])}`,
  );

const counted = (label, value, estimate) =>
  value === undefined && estimate === undefined
    ? null
    : element(
        "span",
        {},
        `${label} `,
        value === undefined ? null : element("b", {}, count(value)),
        estimate === undefined ? null : element("span", { class: "quiet" }, ` (${text("estimated")} ${count(estimate)})`),
      );

const step = (name, planned, executed, details) =>
  element(
    "div",
    { class: "step" },
    element("strong", { class: name === "COLLSCAN" && "warn" }, name),
    element(
      "div",
      { class: "counts" },
      counted(text("returnedCount"), executed?.nReturned, planned?.cardinalityEstimate),
      counted(text("keysExamined"), executed?.keysExamined, planned?.numKeysEstimate),
      counted(text("documentsExamined"), executed?.docsExamined, planned?.numDocsEstimate),
      planned?.costEstimate === undefined ? null : counted(text("cost"), undefined, planned.costEstimate),
      executed?.executionTimeMillisEstimate ? element("span", {}, millis(executed.executionTimeMillisEstimate)) : null,
      executed?.usedDisk ? element("span", { class: "warn" }, "usedDisk") : null,
    ),
    details.map((line) => element("code", {}, line)),
  );

/// A stage and its inputs. The plan and its execution are trees of one form.
const stageItem = (planned, executed) => {
  const [plans, executions] = [childrenOf(planned), childrenOf(executed)];
  const inner = (plans.length >= executions.length ? plans : executions).map((_, index) => stageItem(plans[index], executions[index]));
  return element("li", {}, step((planned ?? executed).stage ?? "?", planned, executed, detailLines(planned ?? executed)), inner.length === 0 ? null : element("ul", {}, inner));
};

const planItems = ({ queryPlanner, executionStats }) => {
  const winner = queryPlanner?.winningPlan;
  // Plans of mongod's newer engine stand one level deeper.
  return stageItem(winner?.queryPlan ?? winner, executionStats?.executionStages);
};

/// The stages of a pipeline, last first: each takes the documents of the one below it.
const pipelineItems = (stages) =>
  stages.reduce((below, stage) => {
    const [name] = Object.keys(stage);
    if (name === "$cursor") return planItems(stage.$cursor);
    return element("li", {}, step(name, undefined, stage, [shellText(stage[name])]), below === null ? null : element("ul", {}, below));
  }, null);

const summary = (explained, planner) => {
  const { executionStats = planner?.executionStats } = explained;
  return executionStats === undefined
    ? null
    : element(
        "p",
        { id: "plan-summary" },
        `${text("returnedCount")} ${count(executionStats.nReturned)} · ${text("keysExamined")} ${count(executionStats.totalKeysExamined)} · ` +
          `${text("documentsExamined")} ${count(executionStats.totalDocsExamined)} · ${micros(executionStats.executionTimeMillis * 1000)}`,
      );
};

const others = (planner) => {
  const because = Object.entries(planner?.rejectedBecause ?? {});
  const rejected = planner?.rejectedPlans ?? [];
  return [
    because.length === 0
      ? null
      : element("details", {}, element("summary", {}, text("notChosen")), element("ul", {}, because.map(([name, reason]) => element("li", {}, element("code", {}, name), ` – ${reason}`)))),
    rejected.length === 0
      ? null
      : element("details", {}, element("summary", {}, text("rejected", rejected.length)), rejected.map((plan) => element("ul", { class: "plan" }, stageItem(plan.queryPlan ?? plan)))),
  ];
};

/// Draws the reply of explain, which is canonical Extended JSON, into a place.
export const drawPlan = (place, reply) => {
  const tree = readReply(reply);
  const explained = plain(tree);
  const cursor = explained.stages?.find((stage) => stage.$cursor !== undefined)?.$cursor;
  const planner = explained.queryPlanner ?? cursor?.queryPlanner;
  const item = explained.stages === undefined ? planItems(explained) : pipelineItems(explained.stages);
  replace(
    place,
    element("h3", {}, text("planOf")),
    summary(explained, cursor),
    element("ul", { class: "plan" }, item),
    others(planner),
    element("details", {}, element("summary", {}, "explain"), element("pre", {}, shellLines(tree))),
  );
};
