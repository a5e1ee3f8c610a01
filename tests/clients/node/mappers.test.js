// Libraries that write the queries for their users: mongoose, Agenda, and connect-mongo, which keeps sessions of
// Express.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Agenda } from "agenda";
import { MongoBackend } from "@agendajs/mongo-backend";
import MongoStore from "connect-mongo";
import mongoose from "mongoose";
import { DATABASE, withDatabase } from "./suite.js";

const { Schema } = mongoose;

/** Models of a connection of its own. */
async function withModels(act) {
  await withDatabase(async () => {
    const connection = await mongoose.createConnection(process.env.BUNKO_URI, { dbName: DATABASE }).asPromise();
    try {
      const author = new Schema({ name: { type: String, unique: true }, born: Number }, { timestamps: true });
      const book = new Schema({
        title: { type: String, required: true, index: true },
        author: { type: Schema.Types.ObjectId, ref: "Author" },
        reviews: [{ stars: { type: Number, min: 1, max: 5 }, by: { type: Schema.Types.ObjectId, ref: "Author" } }],
        place: { type: { type: String }, coordinates: [Number] },
        prices: { type: Map, of: Number },
      });
      book.index({ title: "text" }).index({ place: "2dsphere" });
      const models = { Author: connection.model("Author", author), Book: connection.model("Book", book) };
      await Promise.all(Object.values(models).map((model) => model.init()));
      await act(models);
    } finally {
      await connection.close();
    }
  });
}

test("mongoose: documents, populate, optimistic versions", () => withModels(async ({ Author, Book }) => {
  const [abe, oe] = await Author.create([{ name: "Abe", born: 1924 }, { name: "Oe", born: 1935 }]);
  await assert.rejects(Author.create({ name: "Abe" }), { code: 11000 });
  await assert.rejects(Book.create({ title: "x", reviews: [{ stars: 6 }] }), { name: "ValidationError" });
  await Book.create({
    title: "The Box Man", author: abe, reviews: [{ stars: 4, by: oe }, { stars: 5, by: oe }],
    place: { type: "Point", coordinates: [139.7, 35.7] }, prices: new Map([["yen", 900]]),
  });
  const found = await Book.findOne({ "reviews.stars": 5 }).populate("author").populate("reviews.by", "name");
  assert.deepEqual([found.author.name, found.reviews[1].by.name, found.prices.get("yen")], ["Abe", "Oe", 900]);
  const other = await Book.findById(found._id);
  found.reviews.pull(found.reviews[0]);
  await found.save();
  other.reviews[1].stars = 1;
  await assert.rejects(other.save(), { name: "VersionError" });
  const updated = await Book.findOneAndUpdate(
    { _id: found._id }, { $set: { "reviews.$[low].stars": 3 } }, { arrayFilters: [{ "low.stars": { $gt: 3 } }], returnDocument: "after" },
  );
  assert.equal(updated.reviews[0].stars, 3);
  assert.equal(await Book.countDocuments({ $text: { $search: "box" } }), 1);
  const near = { $near: { $geometry: { type: "Point", coordinates: [139, 35] }, $maxDistance: 200_000 } };
  assert.equal((await Book.find({ place: near })).length, 1);
}));

test("mongoose: a pipeline of ten stages", () => withModels(async ({ Author, Book }) => {
  const authors = await Author.insertMany([{ name: "A", born: 1900 }, { name: "B", born: 1950 }]);
  await Book.bulkWrite(Array.from({ length: 20 }, (_, i) => ({
    insertOne: { document: { title: `t${i}`, author: authors[i % 2]._id, reviews: [{ stars: 1 + i % 5 }, { stars: 5 }] } },
  })));
  const rows = await Book.aggregate()
    .match({ title: { $ne: "t0" } })
    .lookup({ from: "authors", localField: "author", foreignField: "_id", as: "who" })
    .unwind("who")
    .addFields({ stars: { $avg: "$reviews.stars" } })
    .group({ _id: "$who.name", stars: { $avg: "$stars" }, titles: { $push: "$title" }, n: { $sum: 1 } })
    .project({ stars: { $round: ["$stars", 2] }, n: 1, first: { $min: "$titles" } })
    .sort({ _id: 1 })
    .skip(0)
    .limit(5)
    .append({ $set: { name: { $toLower: "$_id" } } });
  assert.deepEqual(rows, [
    { _id: "A", n: 9, stars: 4.11, first: "t10", name: "a" }, { _id: "B", n: 10, stars: 4, first: "t1", name: "b" },
  ]);
}));

test("mongoose: cursors and a big bulk", () => withModels(async ({ Author }) => {
  await Author.insertMany(Array.from({ length: 2_500 }, (_, i) => ({ name: `n${i}`, born: i })));
  let sum = 0;
  for await (const author of Author.find({ born: { $lt: 2_000 } }).cursor({ batchSize: 100 })) sum += author.born;
  assert.equal(sum, 1_999_000);
  assert.equal((await Author.distinct("born", { born: { $mod: [100, 0] } })).length, 25);
}));

test("Agenda: jobs run once, and are taken from one queue by two workers", () => withDatabase(async (database) => {
  const worker = () => new Agenda({ backend: new MongoBackend({ mongo: database, collection: "jobs" }), processEvery: 50 });
  const workers = [worker(), worker()];
  const done = [];
  for (const agenda of workers) {
    // A lock's timer outlives its job, and the process waits for it: ten minutes by default.
    agenda.define("count", async (job) => { done.push(job.attrs.data.n); }, { lockLifetime: 1_000 });
    await agenda.start();
  }
  for (let n = 0; n < 10; n += 1) await workers[0].now("count", { n });
  for (let waited = 0; done.length < 10 && waited < 200; waited += 1) await setTimeout(50);
  assert.deepEqual(done.sort((a, b) => a - b), [...Array(10).keys()]);
  await Promise.all(workers.map((agenda) => agenda.stop()));
}));

test("connect-mongo: sessions are kept, touched and end", () => withDatabase(async (database, client) => {
  const store = MongoStore.create({ client, dbName: DATABASE, ttl: 60, touchAfter: 0 });
  const call = (name, ...values) => new Promise((resolve, reject) => {
    store[name](...values, (error, value) => (error ? reject(error) : resolve(value)));
  });
  await call("set", "sid", { cookie: { originalMaxAge: null }, visits: 3 });
  assert.equal((await call("get", "sid")).visits, 3);
  await call("touch", "sid", { cookie: { originalMaxAge: null }, visits: 3 });
  assert.equal(await call("length"), 1);
  const indexes = await database.collection("sessions").indexes();
  assert.ok(indexes.some((index) => index.expireAfterSeconds === 0));
  await call("destroy", "sid");
  assert.equal((await call("get", "sid")) ?? null, null);
}));
