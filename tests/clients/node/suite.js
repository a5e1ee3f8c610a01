// Gives every test an empty database on the server that BUNKO_URI names.
import assert from "node:assert/strict";
import { MongoClient } from "mongodb";

export const DATABASE = "clients_node";
const URI = process.env.BUNKO_URI;

/** Runs `act` with an empty database and drops it afterwards. */
export async function withDatabase(act, options = {}) {
  const client = new MongoClient(URI, { serverSelectionTimeoutMS: 10_000, ...options });
  try {
    const database = client.db(DATABASE);
    await database.dropDatabase();
    await act(database, client);
    await database.dropDatabase();
  } finally {
    await client.close();
  }
}

/** Wraps a test that needs one empty collection. */
export const withThings = (act) => () => withDatabase((database) => act(database.collection("things")));

/** Asserts that the server refuses with this code, and returns its error. */
export async function refused(code, promise) {
  let error;
  await assert.rejects(promise, (caught) => ((error = caught), true));
  assert.equal(error.code, code, String(error));
  return error;
}

export const identifiers = (count) => Array.from({ length: count }, (_, i) => ({ _id: i }));
