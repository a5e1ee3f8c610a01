// Bulk writes, cursors, indexes, errors, compression, write concern, sessions.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Long } from "mongodb";
import { DATABASE, identifiers, refused, withDatabase, withThings } from "./suite.js";

for (const [ordered, kept] of [[true, [{ _id: 1 }]], [false, [{ _id: 2, a: 1 }]]]) {
  test(`bulk write with duplicates, ordered ${ordered}`, withThings(async (things) => {
    const writes = [
      { insertOne: { document: { _id: 1 } } }, { insertOne: { document: { _id: 1, again: 1 } } },
      { insertOne: { document: { _id: 2 } } }, { updateOne: { filter: { _id: 2 }, update: { $set: { a: 1 } } } },
      { deleteOne: { filter: { _id: 1 } } },
    ];
    const error = await refused(11000, things.bulkWrite(writes, { ordered }));
    assert.deepEqual(error.writeErrors.map(({ code, index }) => [code, index]), [[11000, 1]]);
    assert.deepEqual(await things.find().toArray(), kept);
  }));
}

test("a duplicate key is named", withThings(async (things) => {
  await things.createIndex({ a: 1, b: -1 }, { unique: true });
  await things.insertOne({ _id: 1, a: "x", b: 2 });
  const error = await refused(11000, things.insertOne({ _id: 2, a: "x", b: 2 }));
  assert.deepEqual(error.keyPattern, { a: 1, b: -1 });
  assert.deepEqual(error.keyValue, { a: "x", b: 2 });
  assert.match(error.message, /^E11000 duplicate key error collection: clients_node\.things index: a_1_b_-1 dup key: /);
}));

test("a cursor over 100,000 documents", withThings(async (things) => {
  await things.insertMany(identifiers(100_000));
  let next = 0;
  for await (const { _id } of things.find()) assert.equal(_id, next++);
  assert.equal(next, 100_000);
}));

test("a killed cursor is gone", () => withDatabase(async (database, client) => {
  await database.collection("things").insertMany(identifiers(10));
  await client.withSession(async (session) => {
    const { cursor } = await database.command({ find: "things", batchSize: 2 }, { session, promoteLongs: false });
    assert.ok(Long.isLong(cursor.id));
    await database.command({ killCursors: "things", cursors: [cursor.id] }, { session });
    await refused(43, database.command({ getMore: cursor.id, collection: "things" }, { session }));
  });
}));

test("indexes", withThings(async (things) => {
  await things.insertMany(Array.from({ length: 200 }, (_, i) => ({ _id: i, a: i % 10, b: i })));
  const names = await things.createIndexes([{ key: { a: 1 } }, { key: { b: -1 }, unique: true }, { key: { a: 1, b: 1 } }]);
  assert.deepEqual(names, ["a_1", "b_-1", "a_1_b_1"]);
  const listed = await things.listIndexes().toArray();
  assert.deepEqual(listed.map(({ name, unique }) => [name, unique]),
    [["_id_", undefined], ["a_1", undefined], ["b_-1", true], ["a_1_b_1", undefined]]);

  const scan = async (cursor) => (await cursor.explain("queryPlanner")).queryPlanner.winningPlan.inputStage;
  const compound = await scan(things.find({ a: 3, b: { $gt: 150 } }));
  assert.deepEqual([compound.stage, compound.indexName], ["IXSCAN", "a_1_b_1"]);
  assert.equal((await scan(things.find({ a: 3 }).hint("a_1"))).indexName, "a_1");
  assert.equal((await scan(things.find({ b: { $lt: 9 } }).hint({ b: -1 }))).indexName, "b_-1");
  await things.dropIndex("a_1");
  await refused(2, things.find().hint("a_1").toArray());
  await refused(27, things.dropIndex("a_1"));
}));

test("error codes", () => withDatabase(async (database, client) => {
  const admin = client.db("admin");
  const rename = (from, to) => admin.command({ renameCollection: `${DATABASE}.${from}`, to: `${DATABASE}.${to}` });
  await refused(26, database.command({ listIndexes: "missing" }));
  await refused(26, rename("missing", "x"));
  await database.createCollection("one");
  await database.createCollection("two");
  await refused(48, rename("one", "two"));
  const unknown = await refused(59, database.command({ noSuchCommand: 1 }));
  assert.equal(unknown.codeName, "CommandNotFound");
  await refused(14, database.command({ find: "one", filter: 5 }));
  await refused(40415, database.command({ find: "one", bogus: 5 }));
  await refused(9, database.collection("one").updateOne({}, { $bogus: { a: 1 } }));
}));

// zstd is left out: the driver takes it from a package that is compiled on installation.
for (const compressor of ["zlib", "snappy"]) {
  test(`compression with ${compressor}`, () => withDatabase(async (database) => {
    await database.collection("things").insertMany(identifiers(5_000));
    assert.equal((await database.collection("things").find().toArray()).length, 5_000);
    assert.deepEqual((await database.command({ hello: 1, compression: [compressor] })).compression, [compressor]);
  }, { compressors: [compressor] }));
}

test("write concerns", () => withDatabase(async (database) => {
  const things = (writeConcern) => database.collection("things", { writeConcern });
  for (const [i, concern] of [{ w: 1 }, { journal: true }, { w: "majority" }, { w: 0 }].entries()) {
    assert.equal((await things(concern).insertOne({ _id: i })).acknowledged, concern.w !== 0);
  }
  for (let attempt = 0; attempt < 500 && (await things().countDocuments()) < 4; attempt++) await sleep(10);
  assert.equal(await things().countDocuments(), 4);
  // BadValue from a server that stands alone, UnsatisfiableWriteConcern from a replica set.
  await assert.rejects(things({ w: 2 }).insertOne({}), ({ code }) => code === 2 || code === 100);
}));

test("a session reads its own writes", () => withDatabase(async (database, client) => {
  await client.withSession({ causalConsistency: true }, async (session) => {
    await database.collection("things").insertOne({ _id: 1 }, { session });
    assert.deepEqual(await database.collection("things").findOne({}, { session }), { _id: 1 });
  });
}));
