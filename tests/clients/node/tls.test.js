// TLS, passwords and certificates, on the server that BUNKO_TLS_URI names, with the certificates of BUNKO_TLS_CERTIFICATES.
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { MongoClient } from "mongodb";
import { refused } from "./suite.js";

const URI = process.env.BUNKO_TLS_URI;
const skip = URI ? false : "BUNKO_TLS_URI names no server";
const file = (name) => path.join(process.env.BUNKO_TLS_CERTIFICATES ?? ".", `${name}.pem`);
const SCRAM = { auth: { username: "root", password: "secret" }, authSource: "admin" };
const X509 = { authMechanism: "MONGODB-X509", authSource: "$external" };
// As RFC 2253 writes it.
const ANN = "CN=ann,OU=clients\\, tests,O=Bunko";
const DATABASE = "clients_node_tls";

async function connected({ ca = "ca", certificate, ...options }, act) {
  const shown = certificate ? { tlsCertificateKeyFile: file(certificate) } : {};
  const client = new MongoClient(URI, {
    tls: true, tlsCAFile: file(ca), serverSelectionTimeoutMS: 3000, ...shown, ...options,
  });
  try {
    await act(client);
  } finally {
    await client.close();
  }
}

for (const authMechanism of ["SCRAM-SHA-1", "SCRAM-SHA-256"]) {
  test(`${authMechanism} over TLS`, { skip }, async () => {
    await connected({ ...SCRAM, authMechanism }, async (client) => {
      const things = client.db(DATABASE).collection("things");
      await things.insertMany(Array.from({ length: 500 }, (_, i) => ({ _id: i, pad: "x".repeat(10_000) })));
      assert.equal((await things.find({}, { batchSize: 50 }).toArray()).length, 500);
      await client.db(DATABASE).dropDatabase();
    });
    const wrong = { ...SCRAM, auth: { username: "root", password: "wrong" }, authMechanism };
    await connected(wrong, (client) => refused(18, client.db(DATABASE).command({ ping: 1 })));
  });
}

test("who is not trusted is not spoken with", { skip }, async () => {
  for (const options of [{ ca: "other-ca" }, { certificate: "stranger" }, { tls: false, ca: undefined, tlsCAFile: undefined }]) {
    await connected({ ...SCRAM, ...options }, async (client) => {
      const error = await client.db(DATABASE).command({ ping: 1 }).then(() => undefined, (caught) => caught);
      assert.match(String(error?.name), /MongoServerSelectionError|MongoNetworkError/, String(error));
    });
  }
});

test("logins by certificate", { skip }, async () => {
  await connected(SCRAM, async (root) => {
    const external = root.db("$external");
    await external.command({ createUser: ANN, roles: [{ role: "readWrite", db: DATABASE }] });
    try {
      await connected({ certificate: "ann", ...X509 }, async (client) => {
        const { authInfo } = await client.db("admin").command({ connectionStatus: 1 });
        assert.deepEqual(authInfo.authenticatedUsers, [{ user: ANN, db: "$external" }]);
        await client.db(DATABASE).collection("things").insertOne({ _id: 1 });
        await refused(13, client.db("admin").command({ serverStatus: 1 }));
      });
      await connected({ certificate: "nobody", ...X509 }, (client) => refused(18, client.db(DATABASE).command({ ping: 1 })));
    } finally {
      await external.command({ dropUser: ANN });
      await root.db(DATABASE).dropDatabase();
    }
  });
});
