// Without --dev: TLS, and the account's name with one of its keys. Of roles: roles.test.mjs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, cassandra, rowsOf } from "./server.mjs";

let server;
before(async () => {
  server = await Server.start({ dev: false });
});
after(() => server?.remove());

const secure = () => ({ sslOptions: { ca: [server.certificate()], checkServerIdentity: () => undefined } });
const connect = (credentials) => {
  const client = new cassandra.Client({
    contactPoints: [`${server.host}:${server.cqlPort}`],
    localDataCenter: "datacenter1",
    ...secure(),
    ...(credentials ? { credentials } : {}),
  });
  return client.connect().then(
    () => client.shutdown().then(() => "connected"),
    (error) => client.shutdown().then(() => Object.values(error.innerErrors ?? {})[0] ?? error),
  );
};

test("of the account both primary keys open the door, nothing else does", async () => {
  const { primary, secondary, primaryReadOnly } = server.keys();
  assert.equal(await connect({ username: "orrery", password: primary }), "connected");
  assert.equal(await connect({ username: "orrery", password: secondary }), "connected");
  for (const credentials of [
    { username: "orrery", password: "wrong" },
    { username: "another", password: primary },
    { username: "orrery", password: primaryReadOnly ?? "" },
    { username: "cassandra", password: "another" },
  ]) {
    const error = await connect(credentials);
    assert.match(`${error.message}`, /incorrect/, credentials.username);
  }
  assert.match(`${(await connect(undefined)).message}`, /[Aa]uthentic/);
});

test("a client that is let in works over TLS", async () => {
  const client = await server.client({ ...secure(), credentials: { username: "orrery", password: server.keys().primary } });
  await client.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await client.execute("CREATE TABLE k.t (p int PRIMARY KEY, v text)");
  await client.execute("INSERT INTO k.t (p, v) VALUES (1, ?)", ["x".repeat(100000)], { prepare: true });
  assert.equal((await rowsOf(client, "SELECT v FROM k.t"))[0][0].length, 100000);
});
