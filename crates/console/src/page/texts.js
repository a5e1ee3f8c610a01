// The words of the page, in English and Japanese.

import { JAPANESE } from "./texts_ja.js";

const ENGLISH = {
  skip: "Skip to the view",
  views: "Views",
  now: "Now",
  collections: "Collections",
  slow: "Slow queries",
  operations: "Operations",
  query: "Query",
  reports: "Reports",
  language: "Language",
  logIn: "Log in",
  logOut: "Log out",
  user: "User",
  password: "Password",
  userDatabase: "Database of the user",
  sessionEnded: "The session has ended: log in again.",
  wrongLogin: "The name or the password is wrong.",
  unreachable: "The server does not answer:",
  refresh: "Refresh",
  loading: "Loading …",
  none: "None",
  operationsPerSecond: "Operations per second",
  readLatency: "Latency of reads",
  writeLatency: "Latency of writes",
  memory: "Memory",
  ofProcess: "whole process",
  ofOperations: "operations",
  cache: "Cache",
  unflushed: "not flushed yet",
  messages: "messages",
  replies: "replies",
  idleCursors: "idle cursors",
  cacheHits: "Lookups in the cache",
  hitShare: "found there",
  logPerSecond: "Log, per second",
  records: "records",
  syncs: "syncs",
  stalledWrites: "stalled writes",
  syncLatency: "Latency of syncs",
  network: "Network",
  received: "received",
  sent: "sent",
  connections: "Connections",
  open: "open",
  uptime: "Up for",
  engine: "Engine",
  budget: "Memory of operations",
  diskFree: "Disk, free",
  diskReserve: "Disk reserve",
  inUse: "in use: make room",
  unused: "whole",
  segments: "Segments of the log",
  checkpoints: "Checkpoints",
  lastTook: "the last took",
  replication: "Replication",
  member: "Member",
  state: "State",
  lag: "Lag",
  nowHint: "The last five minutes. Percentiles are lower bounds of their histogram's bucket. Arrow keys move in a chart that has the focus.",
  database: "Database",
  collection: "Collection",
  kind: "Kind",
  documents: "Documents",
  dataSize: "Data",
  onDisk: "On disk",
  indexSize: "Indexes",
  reads: "Reads",
  writes: "Writes",
  indexes: "Indexes of {0}",
  index: "Index",
  keys: "Keys",
  size: "Size",
  used: "Used",
  since: "Since",
  neverUsed: "not used since then",
  showIndexes: "Show the indexes",
  firstOnly: "Only the first {0} are shown.",
  sizesUnknown: "Sizes are not shown: {0}",
  shape: "Query",
  times: "Times",
  mean: "Mean",
  longest: "Longest",
  total: "Total",
  examined: "Examined",
  returned: "Returned",
  plan: "Plan",
  slowHint: "From the last lines of the log that the server keeps in memory (at most 1,024 lines or 1 MiB). An operation is slow from slowOpThresholdMs on (100 ms).",
  noSlow: "The kept lines of the log have no slow operation.",
  example: "Example",
  advice: "An index that would serve it",
  adviceNone: "It read the whole collection, {0} documents each time, and returned none.",
  adviceWhy: "It read the whole collection: {0} documents for each one returned.",
  copy: "Copy",
  copied: "Copied",
  operation: "Operation",
  runsFor: "Runs for",
  client: "Client",
  command: "Command",
  kill: "Kill",
  reallyKill: "Really kill?",
  killed: "Operation {0} was told to end.",
  noOperations: "Nothing else runs.",
  ownOnly: "Only your own operations are shown: the privilege inprog is missing.",
  filter: "Filter",
  pipeline: "Pipeline",
  projection: "Projection",
  sort: "Sort",
  limit: "Limit",
  run: "Run",
  explain: "Explain",
  queryHint: "As in the shell: {a: {$gt: 1}, _id: ObjectId(\"…\"), at: ISODate(\"2026-01-01\")}; or Extended JSON. Ctrl+Enter runs it. Only reads; at most {0} documents and 30 seconds.",
  results: "Documents: {0} ({1})",
  noDocuments: "No documents.",
  planOf: "Plan",
  returnedCount: "returned",
  keysExamined: "keys",
  documentsExamined: "documents",
  estimated: "estimated",
  cost: "cost",
  rejected: "Rejected plans: {0}",
  notChosen: "Indexes not chosen",
  shortcuts: "Keys: digits choose a view, / goes to the query.",
  report: "Report",
  written: "Written",
  noReports: "The directory has no reports, which are files with names in .html.",
  newestOnly: "Only the newest {0} are shown.",
  reportsHint: "What bunko bench has measured. A report opens in a page of its own. Charts are drawn only of reports that this version of Bunko wrote.",
  notText: "line {0}, column {1}: {2}",
  expected: "{0} is expected",
};

const WORDS = { en: ENGLISH, ja: JAPANESE };
const KEPT = "language";

const chosen = () => {
  try {
    return localStorage.getItem(KEPT);
  } catch {
    return null;
  }
};

let language = chosen() ?? (navigator.language.startsWith("ja") ? "ja" : "en");
if (!(language in WORDS)) language = "en";

export const LANGUAGES = { en: "English", ja: "日本語" };
export const languageNow = () => language;
export const choose = (name) => {
  language = name;
  try {
    localStorage.setItem(KEPT, name);
  } catch {
    // The choice lasts as long as the page.
  }
};

/// The text of that name, with `{0}`, `{1}` ... replaced.
export const text = (name, ...values) =>
  (WORDS[language][name] ?? ENGLISH[name]).replace(/\{(\d)\}/g, (whole, place) => values[place] ?? whole);

/// Names of texts that a language lacks or has too many; for the test of the page.
export const differences = () => Object.keys(WORDS).flatMap((name) =>
  [...Object.keys(ENGLISH).filter((key) => !(key in WORDS[name])), ...Object.keys(WORDS[name]).filter((key) => !(key in ENGLISH))],
);
