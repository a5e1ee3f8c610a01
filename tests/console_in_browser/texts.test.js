// Modules of the page that need no browser: texts of the shell, advice, figures, languages.
import assert from "node:assert/strict";
import { test } from "node:test";

Object.assign(globalThis, { localStorage: { getItem: () => "en", setItem: () => {} } });
const PAGE = process.env.PAGE;
const { parse, toJson } = await import(`${PAGE}/shell_text.js`);
const { shellLines, shellText, readReply } = await import(`${PAGE}/values.js`);
const { indexFor, shapesOf } = await import(`${PAGE}/advice.js`);
const { differences } = await import(`${PAGE}/texts.js`);
const { figures, lags } = await import(`${PAGE}/status.js`);
const { bytes, count, micros, seconds } = await import(`${PAGE}/figures.js`);

test("texts of the shell become Extended JSON", () => {
  const pairs = [
    ["{a: 1, 'b': \"x\", $or: [{c: null}, {d: true,},],}", '{"a":1,"b":"x","$or":[{"c":null},{"d":true}]}'],
    ['{2: 1, 1: 2, "__proto__": 3, a: 1, a: 2}', '{"2":1,"1":2,"__proto__":3,"a":1,"a":2}'],
    ['ObjectId("0123456789abcdef01234567")', '{"$oid":"0123456789abcdef01234567"}'],
    ["ISODate('2026-01-01T00:00:00Z')", '{"$date":{"$numberLong":"1767225600000"}}'],
    ["new Date(5)", '{"$date":{"$numberLong":"5"}}'],
    ["NumberLong('9007199254740993')", '{"$numberLong":"9007199254740993"}'],
    ["9007199254740993", '{"$numberLong":"9007199254740993"}'],
    ["[-1.5e3, .5, Infinity, -Infinity, 0x10]", '[-1500,0.5,{"$numberDouble":"Infinity"},{"$numberDouble":"-Infinity"},16]'],
    ["/a\\/[/]b/xi", '{"$regularExpression":{"pattern":"a\\\\/[/]b","options":"ix"}}'],
    ["{a: {b: /* no */ 1} // end\n}", '{"a":{"b":1}}'],
    ['"\\u0041\\n\\x42\\\'"', '"A\\nB\'"'],
    ["Timestamp({t: 1, i: 2})", '{"$timestamp":{"t":1,"i":2}}'],
    ["[MinKey, MaxKey()]", '[{"$minKey":1},{"$maxKey":1}]'],
    ['UUID("00112233-4455-6677-8899-aabbccddeeff")', '{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}}'],
    ['{"$numberInt":"5"}', '{"$numberInt":"5"}'],
    ["Decimal128('1.50')", '{"$numberDecimal":"1.50"}'],
  ];
  for (const [typed, json] of pairs) assert.equal(toJson(parse(typed)), json, typed);
});

test("what is not a value is told with its place", () => {
  for (const wrong of ["", "{", "{a}", "{a: 1", "[1 2]", "{a: alert(1)}", "alert(1)", "constructor", "{a: 1} x", "'a", "ObjectId('x')", "ISODate('x')", "(1)", "a => 1", "`x`", "{a: toString}", "new Foo()", "\"\\u00g0\""]) {
    assert.throws(() => parse(wrong), /line \d+, column \d+/, wrong);
  }
  assert.throws(() => parse("{\n a: ?}"), /line 2, column 5/);
  assert.throws(() => parse("[".repeat(5000)), /180/);
});

test("values are written as in the shell", () => {
  const pairs = [
    ['{"_id":{"$oid":"0123456789abcdef01234567"},"2":{"$numberInt":"1"},"1":{"$numberLong":"9007199254740993"}}', '{_id: ObjectId("0123456789abcdef01234567"), "2": 1, "1": Long("9007199254740993")}'],
    ['{"d":{"$date":{"$numberLong":"0"}},"f":{"$numberDouble":"1.0"},"r":{"$regularExpression":{"pattern":"a/b","options":"i"}}}', '{d: ISODate("1970-01-01T00:00:00.000Z"), f: 1.0, r: /a\\/b/i}'],
    ['{"u":{"$binary":{"base64":"ABEiM0RVZneImaq7zN3u/w==","subType":"04"}},"b":{"$binary":{"base64":"AA==","subType":"80"}}}', '{u: UUID("00112233-4455-6677-8899-aabbccddeeff"), b: BinData(128, "AA==")}'],
    ['{"a":[],"o":{},"t":{"$timestamp":{"t":1,"i":2}},"n":null,"s":"<b>"}', '{a: [], o: {}, t: Timestamp({t: 1, i: 2}), n: null, s: "<b>"}'],
  ];
  for (const [json, text] of pairs) assert.equal(shellLines(readReply(json)), text);
  assert.equal(shellText({ a: { $gt: 1 }, "x y": [1, "b"] }), '{a: {$gt: 1}, "x y": [1, "b"]}');
  // What the page prints, it reads again.
  for (const [json, text] of pairs.slice(0, 1)) assert.equal(toJson(parse(text)).replace('"2":1', '"2":{"$numberInt":"1"}'), json);
});

test("an index is advised where the evidence is plain", () => {
  assert.deepEqual(indexFor({ find: "c", filter: { b: { $gt: 1 }, a: 1 }, sort: { s: -1 } }), [["a", 1], ["s", -1], ["b", 1]]);
  assert.deepEqual(indexFor({ aggregate: "c", pipeline: [{ $match: { $and: [{ a: 1 }, { d: { $in: [1] } }] } }, { $sort: { z: 1 } }] }), [["a", 1], ["d", 1], ["z", 1]]);
  assert.deepEqual(indexFor({ q: { a: { $oid: "0" } }, u: {} }), [["a", 1]]);
  for (const filter of [{}, { $or: [{ a: 1 }] }, { a: { $ne: 1 } }, { a: 1, $where: "x" }, { a: { $regex: "x" } }, { _id: 5 }, { $expr: {} }]) {
    assert.equal(indexFor({ find: "c", filter }), null, JSON.stringify(filter));
  }
  const line = (attr) => JSON.stringify({ t: { $date: "2026-01-01T00:00:00Z" }, id: 51803, attr: { type: "command", ns: "shop.a\"b.c", queryHash: "H", planSummary: "COLLSCAN", durationMillis: 5, docsExamined: 2000, nreturned: 1, ...attr } });
  const command = { find: "c", filter: { "x-y": 1 }, lsid: {} };
  const [shape, other] = shapesOf([line({ command }), line({ command, durationMillis: 9 }), "not JSON", line({ command, planSummary: "IXSCAN { a: 1 }", durationMillis: 1 })]);
  const ofCommand = line({ ns: "shop.$cmd", command: { update: "c", ordered: true }, planSummary: undefined });
  assert.deepEqual(shapesOf([ofCommand, line({ type: "update", command: { q: { a: 1 }, u: {} } })]).map(({ name }) => name), ["update"]);
  assert.deepEqual([shape.times, shape.total, shape.longest, shape.examined], [2, 14, 9, 4000]);
  assert.equal(shape.advice, 'db.getSiblingDB("shop").getCollection("a\\"b.c").createIndex({ "x-y": 1 })');
  assert.equal(shape.exampleText, '{find: "c", filter: {"x-y": 1}}');
  assert.equal(other.advice, null);
  assert.equal(shapesOf([line({ command, docsExamined: 500 })])[0].advice, null);
  assert.equal(shapesOf([line({ command, nreturned: 1900 })])[0].advice, null);
});

test("figures are those of the time between two replies", () => {
  const status = (seconds, operations, slow) => ({
    uptimeMillis: seconds * 1000,
    opcounters: { query: operations, insert: 0, update: 0, delete: 0, getmore: 0, command: 0 },
    opLatencies: Object.fromEntries(["reads", "writes", "commands"].map((kind) => [kind, { histogram: [{ micros: 64, count: operations }, { micros: 4096, count: slow }] }])),
    mem: { resident: 100 }, connections: { current: 3 }, network: { bytesIn: 0, bytesOut: 0 },
    lsm: { cache: { maximumBytes: 10, documentsBytes: 1, logBytes: 2, treesBytes: 3, hits: operations, misses: slow } },
    bunko: {
      memory: { heldBytes: 10, messageBytes: 4, replyBytes: 1, limitBytes: 20 }, disk: {}, idleCursors: { heldBytes: 0 }, unflushedBytes: 0,
      log: { appendedRecords: 0, syncedGroups: 0, segments: 1, syncLatencies: { histogram: {} } }, stalledWrites: 0, checkpoints: { count: 0, lastMillis: 0 },
    },
  });
  const found = figures(status(10, 100, 0), status(12, 298, 2));
  assert.deepEqual([found.query, found["reads-p50"], found["reads-p99"], found.cache, found.work, found.hits], [99, 64, 64, 6, 5, 99]);
  assert.equal(figures(status(10, 0, 0), status(12, 90, 10))["writes-p99"], 4096);
  assert.equal(figures(status(10, 100, 100), status(12, 298, 100))["reads-p99"], 64);
  // After a new start, counters begin again.
  assert.equal(figures(status(10, 100, 0), status(15, 5, 0)).query, null);
  assert.equal(figures(status(10, 100, 0), status(1, 5, 0)).query, null);
  assert.deepEqual(
    lags({ members: [{ name: "a", stateStr: "PRIMARY", optimeDate: { $date: "2026-01-01T00:00:05Z" } }, { name: "b", stateStr: "SECONDARY", optimeDate: { $date: "2026-01-01T00:00:02Z" } }, { name: "c", stateStr: "(not reachable)" }] }).map(({ seconds }) => seconds),
    [0, 3, null],
  );
  assert.deepEqual([bytes(0), bytes(1536), count(1234.5), count(0.12345), micros(1500), seconds(90), seconds(7200)], ["0 B", "1.5 KiB", "1,235", "0.123", "1.5 ms", "90 s", "2 h"]);
});

test("each text stands in each language", () => assert.deepEqual(differences(), []));
