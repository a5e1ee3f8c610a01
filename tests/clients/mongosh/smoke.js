// The first commands of a new user. Run by mongosh itself: `mongosh --quiet URI --file smoke.js`. A failed assertion
// ends it with status 1.
const assert = require("node:assert/strict");

const plain = (value) => EJSON.stringify(value, { relaxed: true });
const same = (found, expected) => assert.equal(plain(found), plain(expected));
// assert.throws does not work here: mongosh makes its calls asynchronous, and waits for them only in functions of its
// own.
function refusal(act) {
  try {
    act();
  } catch (error) {
    return error.message;
  }
  return "nothing was refused";
}
const things = db.getSiblingDB("clients_mongosh").things;
things.drop();

// Handshake, and the commands that mongosh sends when it starts.
assert.equal(db.hello().isWritablePrimary, true);
assert.match(db.version(), /^[89]\./);
assert.equal(db.adminCommand({ ping: 1 }).ok, 1);
same(db.adminCommand({ getLog: "startupWarnings" }).log.filter((line) => /not MongoDB|non-genuine/i.test(line)), []);

// Documents.
same(things.insertOne({ _id: 1, name: "ann", n: 1 }).insertedId, 1);
same(things.insertMany([{ _id: 2, name: "bob", n: 2 }, { _id: 3, name: "eve", n: 3 }]).insertedIds, { 0: 2, 1: 3 });
same(things.find({ n: { $gte: 2 } }).sort({ n: -1 }).toArray(), [{ _id: 3, name: "eve", n: 3 }, { _id: 2, name: "bob", n: 2 }]);
same(things.updateOne({ _id: 1 }, { $inc: { n: 10 } }).modifiedCount, 1);
same(things.findOne({ _id: 1 }, { _id: 0, n: 1 }), { n: 11 });
same(things.findOneAndUpdate({ _id: 2 }, { $set: { n: 20 } }, { returnDocument: "after" }), { _id: 2, name: "bob", n: 20 });
same(things.deleteOne({ _id: 3 }).deletedCount, 1);
same(things.countDocuments(), 2);
same(things.distinct("name").sort(), ["ann", "bob"]);
same(things.aggregate([{ $group: { _id: null, total: { $sum: "$n" } } }]).toArray(), [{ _id: null, total: 31 }]);
const tenStages = [
  { $match: { n: { $gt: 0 } } },
  { $lookup: { from: "things", localField: "_id", foreignField: "_id", as: "same" } },
  { $unwind: "$same" },
  { $set: { half: { $divide: ["$same.n", 2] } } },
  { $unset: "same" },
  { $group: { _id: { $strLenCP: "$name" }, halves: { $push: "$half" }, n: { $count: {} } } },
  { $project: { least: { $min: "$halves" }, n: 1 } },
  { $sort: { _id: 1 } },
  { $skip: 0 },
  { $limit: 3 },
];
same(things.aggregate(tenStages).toArray(), [{ _id: 3, n: 2, least: 5.5 }]);
assert.match(refusal(() => things.insertOne({ _id: 1 })), /E11000 duplicate key error collection: clients_mongosh\.things index: _id_ dup key: \{ _id: 1 \}/);

// Indexes.
same(things.createIndex({ name: 1 }), "name_1");
same(things.createIndex({ n: -1, name: 1 }, { unique: true }), "n_-1_name_1");
same(things.getIndexes().map((index) => index.name), ["_id_", "name_1", "n_-1_name_1"]);
const explained = things.find({ name: "ann" }).explain("executionStats");
same(explained.queryPlanner.winningPlan.inputStage.stage, "IXSCAN");
same(explained.queryPlanner.winningPlan.inputStage.indexName, "name_1");
same(explained.executionStats.nReturned, 1);
same(things.find({ other: 1 }).explain().queryPlanner.winningPlan.stage, "COLLSCAN");
same(things.dropIndex("name_1").ok, 1);

// Looking round.
const shop = db.getSiblingDB("clients_mongosh");
same(shop.getCollectionNames(), ["things"]);
assert.ok(db.getMongo().getDBNames().includes("clients_mongosh"));
same(shop.stats().collections, 1);
same(things.stats().count, 2);
same(things.validate().valid, true);
assert.equal(typeof db.serverStatus().uptime, "number");
same(shop.dropDatabase().ok, 1);

print("smoke: every assertion held");
