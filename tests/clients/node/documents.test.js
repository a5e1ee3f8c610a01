// Documents: every type of BSON, updates, findAndModify, queries, aggregation.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  BSON, BSONRegExp, Binary, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID,
} from "mongodb";
import { withThings } from "./suite.js";

const EVERY_TYPE = {
  _id: new Int32(1), double: new Double(1), fraction: new Double(1.5), string: "文庫 \0", object: { a: {} },
  array: [new Int32(1), "two", []], generic: new Binary(Buffer.from([0, 1, 255])),
  uuid: new UUID("00112233-4455-6677-8899-aabbccddeeff").toBinary(), objectId: new ObjectId("0123456789abcdef01234567"),
  true: true, false: false, date: new Date(-1_234_567), null: null, regex: new BSONRegExp("^a.*b$", "im"),
  code: new Code("f()"), scoped: new Code("x", { x: new Int32(1) }), int32: new Int32(-(2 ** 31)),
  timestamp: new Timestamp({ t: 4_000_000_000, i: 7 }), int64: Long.MAX_VALUE, decimal: Decimal128.fromString("1.10"),
  min: new MinKey(), max: new MaxKey(),
};

test("every type comes back byte for byte and is found", withThings(async (things) => {
  await things.insertOne(EVERY_TYPE);
  const [raw] = await things.find({}, { raw: true }).toArray();
  assert.deepEqual(Buffer.from(raw), Buffer.from(BSON.serialize(EVERY_TYPE)));
  for (const [field, value] of Object.entries(EVERY_TYPE)) {
    if (field !== "regex") assert.equal(await things.countDocuments({ [field]: value }), 1, field);
  }
}));

test("create, read, update, delete", withThings(async (things) => {
  assert.equal((await things.insertMany([{ _id: 1, n: 1 }, { _id: 2 }, { _id: 3 }])).insertedCount, 3);
  assert.equal((await things.updateMany({}, { $inc: { n: 1 } })).modifiedCount, 3);
  const updated = await things.updateOne({ _id: 1 }, { $set: { n: 2 } });
  assert.deepEqual([updated.matchedCount, updated.modifiedCount], [1, 0]);
  await things.replaceOne({ _id: 2 }, { replaced: true });
  assert.deepEqual(await things.findOne({ _id: 2 }), { _id: 2, replaced: true });
  const upserted = await things.updateOne({ _id: 9 }, { $setOnInsert: { born: true } }, { upsert: true });
  assert.equal(upserted.upsertedId, 9);
  assert.equal((await things.deleteMany({ n: { $exists: true } })).deletedCount, 2);
  assert.equal((await things.deleteOne({})).deletedCount, 1);
  assert.equal(await things.findOne({ _id: 1 }), null);
}));

for (const [before, update, after] of [
  [{ a: 1 }, { $set: { "b.c": 1 }, $unset: { a: "" } }, { b: { c: 1 } }],
  [{ a: 2 ** 31 - 1 }, { $inc: { a: 1 } }, { a: 2 ** 31 }],
  [{ a: 3 }, { $mul: { a: 2.5 } }, { a: 7.5 }],
  [{ a: 3, b: 3 }, { $min: { a: 2 }, $max: { b: 4 } }, { a: 2, b: 4 }],
  [{ a: 1 }, { $rename: { a: "z" } }, { z: 1 }],
  [{ a: [5, 1] }, { $push: { a: { $each: [3, 4], $sort: 1, $slice: -3 } } }, { a: [3, 4, 5] }],
  [{ a: [1, 5, 2] }, { $pull: { a: { $gt: 1 } } }, { a: [1] }],
  [{ a: [1, 2, 1] }, { $pullAll: { a: [1] } }, { a: [2] }],
  [{ a: [1, 2, 3] }, { $pop: { a: -1 } }, { a: [2, 3] }],
  [{ a: [1] }, { $addToSet: { a: { $each: [1, 2] } } }, { a: [1, 2] }],
  [{ a: 12 }, { $bit: { a: { and: 10 } } }, { a: 8 }],
]) {
  test(`update ${JSON.stringify(update)}`, withThings(async (things) => {
    await things.insertOne({ _id: 1, ...before });
    await things.updateOne({ _id: 1 }, update);
    assert.deepEqual(await things.findOne(), { _id: 1, ...after });
  }));
}

test("positional operators and arrayFilters", withThings(async (things) => {
  await things.insertOne({ _id: 1, rows: [{ n: 1 }, { n: 5 }] });
  await things.updateOne({ _id: 1 }, { $inc: { "rows.$[big].n": 100 } }, { arrayFilters: [{ "big.n": { $gte: 3 } }] });
  await things.updateOne({ "rows.n": 1 }, { $set: { "rows.$.n": 10 } });
  assert.deepEqual(await things.findOne(), { _id: 1, rows: [{ n: 10 }, { n: 105 }] });
}));

test("findAndModify", withThings(async (things) => {
  await things.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 2 }, { _id: 3, n: 3 }]);
  const increment = { $inc: { n: 10 } };
  assert.deepEqual(await things.findOneAndUpdate({ _id: 1 }, increment), { _id: 1, n: 1 });
  assert.deepEqual(await things.findOneAndUpdate({ _id: 1 }, increment, { returnDocument: "after" }), { _id: 1, n: 21 });
  const replaced = await things.findOneAndReplace({ _id: 9 }, { m: 1 }, { upsert: true, returnDocument: "after" });
  assert.deepEqual(replaced, { _id: 9, m: 1 });
  const deleted = await things.findOneAndDelete({ _id: { $lt: 9 } }, { sort: { _id: -1 }, projection: { _id: 0 } });
  assert.deepEqual(deleted, { n: 3 });
  assert.equal(await things.findOneAndDelete({ _id: 99 }), null);
}));

test("sort, skip, limit, projection, count, distinct", withThings(async (things) => {
  await things.insertMany(Array.from({ length: 10 }, (_, i) => ({ _id: i, a: i % 3, list: [i, i + 1] })));
  const page = things.find({}).sort({ a: -1, _id: 1 }).skip(2).limit(3).project({ a: 1 });
  assert.deepEqual(await page.toArray(), [{ _id: 8, a: 2 }, { _id: 1, a: 1 }, { _id: 4, a: 1 }]);
  const sliced = await things.findOne({ _id: 5 }, { projection: { list: { $slice: -1 }, a: 0 } });
  assert.deepEqual(sliced, { _id: 5, list: [6] });
  assert.equal(await things.countDocuments({ a: 1 }), 3);
  assert.equal(await things.estimatedDocumentCount(), 10);
  assert.deepEqual((await things.distinct("list", { _id: { $lt: 2 } })).sort(), [0, 1, 2]);
}));

test("aggregation", withThings(async (things) => {
  await things.insertMany([
    { _id: 1, who: "ann", lines: [{ sku: "a", n: 2 }, { sku: "b", n: 1 }] },
    { _id: 2, who: "bob", lines: [{ sku: "a", n: 5 }] }, { _id: 3, who: "ann", lines: [] },
  ]);
  const grouped = things.aggregate([
    { $match: { _id: { $lte: 3 } } }, { $unwind: "$lines" },
    { $group: { _id: "$lines.sku", n: { $sum: "$lines.n" }, mean: { $avg: "$lines.n" } } },
    { $sort: { n: -1 } }, { $project: { _id: 0, sku: "$_id", n: 1, mean: 1 } },
  ]);
  assert.deepEqual(await grouped.toArray(), [{ n: 7, mean: 3.5, sku: "a" }, { n: 1, mean: 1, sku: "b" }]);
  assert.deepEqual(await things.aggregate([{ $match: { who: "ann" } }, { $count: "n" }]).toArray(), [{ n: 2 }]);
}));
