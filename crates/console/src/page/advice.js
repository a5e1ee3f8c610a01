// Slow operations of the log by their shapes, and the index that would serve a shape where the evidence is plain.

import { shellText } from "./values.js";

const SLOW_QUERY = 51803;
/// Evidence of a missing index: a scan of the whole collection that examined so many documents, and so many for each one
/// returned.
const EXAMINED_MIN = 1000;
const EXAMINED_FOR_EACH_MIN = 10;
/// The most fields of an index that is advised.
const FIELDS_MAX = 4;

const readLine = (line) => {
  try {
    const { id, t, attr } = JSON.parse(line);
    return id === SLOW_QUERY && typeof attr === "object" ? { at: new Date(t.$date), ...attr } : null;
  } catch {
    // A line in the format for people, or one that was cut.
    return null;
  }
};

const OPERATORS_OF_EQUALITY = ["$eq", "$in"];
const OPERATORS_OF_RANGE = ["$gt", "$gte", "$lt", "$lte"];

/// Whether an index answers the condition, and how: "equality", "range", or null.
const kindOf = (condition) => {
  if (condition === null || typeof condition !== "object" || Array.isArray(condition)) return "equality";
  const names = Object.keys(condition);
  const [first] = names;
  if (first === undefined || !first.startsWith("$")) return "equality";
  // Wrapped values of Extended JSON, such as {$oid: ...}; of these, expressions and whole documents are no constants.
  if (["$oid", "$date", "$numberLong", "$numberDouble", "$numberDecimal", "$binary", "$timestamp"].includes(first)) return "equality";
  if (names.every((name) => OPERATORS_OF_EQUALITY.includes(name))) return "equality";
  if (names.every((name) => [...OPERATORS_OF_EQUALITY, ...OPERATORS_OF_RANGE].includes(name))) return "range";
  return null;
};

/// The fields of a filter by the kind of their conditions; null if the filter has a condition that a plain index may not
/// serve, because then the evidence is not plain.
const fieldsOf = (filter) => {
  const fields = { equality: [], range: [] };
  for (const [name, condition] of Object.entries(filter)) {
    const inner = name === "$and" && Array.isArray(condition) ? condition.map(fieldsOf) : null;
    if (inner !== null) {
      if (inner.includes(null)) return null;
      for (const part of inner) {
        fields.equality.push(...part.equality);
        fields.range.push(...part.range);
      }
      continue;
    }
    const kind = name.startsWith("$") ? null : kindOf(condition);
    if (kind === null) return null;
    fields[kind].push(name);
  }
  return fields;
};

/// Filter and sort of an operation's command, or null if it has none that can be told.
const asked = (command) => {
  const { pipeline } = command;
  if (Array.isArray(pipeline)) {
    const [match, second] = pipeline;
    return match?.$match === undefined ? null : { filter: match.$match, sort: second?.$sort };
  }
  const filter = command.filter ?? command.q ?? command.query;
  return filter === undefined ? null : { filter, sort: command.sort };
};

const isDirection = (value) => value === 1 || value === -1;

/// The keys of an index that would serve the command: fields of equality, then of the sort, then of ranges.
export const indexFor = (command) => {
  const found = asked(command);
  if (found === null || found.filter === null || typeof found.filter !== "object") return null;
  const fields = fieldsOf(found.filter);
  if (fields === null || fields.equality.length + fields.range.length === 0) return null;
  const sort = Object.entries(found.sort ?? {});
  if (!sort.every(([, direction]) => isDirection(direction))) return null;
  const keys = new Map(fields.equality.map((name) => [name, 1]));
  for (const [name, direction] of sort) if (!keys.has(name)) keys.set(name, direction);
  // One range: the bounds of a second one would be of no use behind the first.
  const range = fields.range.find((name) => !keys.has(name));
  if (range !== undefined) keys.set(range, 1);
  // The index on _id exists.
  return keys.size > FIELDS_MAX || keys.has("_id") ? null : [...keys];
};

const commandText = (namespace, keys) => {
  const [database, ...rest] = namespace.split(".");
  const index = keys.map(([name, direction]) => `${/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : JSON.stringify(name)}: ${direction}`).join(", ");
  return `db.getSiblingDB(${JSON.stringify(database)}).getCollection(${JSON.stringify(rest.join("."))}).createIndex({ ${index} })`;
};

const advise = (shape) => {
  const { examined, returned, times, plan, namespace, example } = shape;
  const forEach = examined / Math.max(1, returned);
  if (!plan.startsWith("COLLSCAN") || examined / times < EXAMINED_MIN || forEach < EXAMINED_FOR_EACH_MIN) return null;
  const keys = indexFor(example);
  return keys === null ? null : commandText(namespace, keys);
};

/// The name of the command that a slow operation ran.
const nameOf = ({ type, command }) => (type === "command" ? Object.keys(command ?? {})[0] ?? type : type);

/// Fields that say nothing about the query.
const SILENT = ["lsid", "$db", "$clusterTime", "$readPreference", "txnNumber", "apiVersion"];

/// The shapes of the slow operations in these lines of the log, those that took the most time first.
export const shapesOf = (lines) => {
  const shapes = new Map();
  for (const slow of lines.map(readLine)) {
    if (slow === null) continue;
    const name = nameOf(slow);
    // Each of its statements has a line of its own, with the plan.
    if (slow.ns?.endsWith(".$cmd") && ["update", "delete"].includes(name)) continue;
    const key = JSON.stringify([slow.ns, name, slow.queryHash ?? "", slow.planSummary ?? ""]);
    const shape = shapes.get(key) ?? {
      namespace: slow.ns, name, plan: slow.planSummary ?? "", times: 0, total: 0, longest: -1, examined: 0, keys: 0, returned: 0,
    };
    shape.times += 1;
    shape.total += Number(slow.durationMillis);
    shape.examined += Number(slow.docsExamined ?? 0);
    shape.keys += Number(slow.keysExamined ?? 0);
    shape.returned += Number(slow.nreturned ?? slow.nMatched ?? slow.ndeleted ?? 0);
    if (Number(slow.durationMillis) > shape.longest) {
      shape.longest = Number(slow.durationMillis);
      shape.example = Object.fromEntries(Object.entries(slow.command ?? {}).filter(([field]) => !SILENT.includes(field)));
      shape.at = slow.at;
    }
    shapes.set(key, shape);
  }
  return [...shapes.values()]
    .sort((one, other) => other.total - one.total)
    .map((shape) => ({ ...shape, exampleText: shellText(shape.example), advice: advise(shape) }));
};
