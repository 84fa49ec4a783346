// Connecting, and what the driver knows of the server afterwards: hosts, tokens, tables, events.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, cassandra, codes, reconnected, refused, rowsOf, types, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("shop");
});
after(() => server?.remove());

test("the driver connects and sees one node of version 4", async () => {
  const [host] = client.hosts.values();
  assert.equal(client.hosts.length, 1);
  assert.equal(host.datacenter, "datacenter1");
  assert.equal(host.rack, "rack1");
  assert.match(host.cassandraVersion, /^4\./);
  assert.equal(client.controlConnection.protocolVersion, types.protocolVersion.v4);
  assert.ok(host.tokens.length > 0);
});

test("a driver of another data center is refused by itself", async () => {
  const stranger = new cassandra.Client({ contactPoints: [`${server.host}:${server.cqlPort}`], localDataCenter: "elsewhere" });
  await assert.rejects(stranger.connect(), /elsewhere/);
  await stranger.shutdown();
});

test("credentials are taken but not asked for with --dev", async () => {
  const authProvider = new cassandra.auth.PlainTextAuthProvider("someone", "secret");
  const known = await server.client({ authProvider });
  assert.equal((await known.execute("SELECT key FROM system.local")).rows[0].key, "local");
});

test("version 3 is spoken too", async () => {
  const old = await server.client({ protocolOptions: { maxVersion: 3 } });
  assert.equal(old.controlConnection.protocolVersion, 3);
  assert.deepEqual(await rowsOf(old, "SELECT key, bootstrapped FROM system.local"), [["local", "COMPLETED"]]);
});

test("system.local tells what drivers look for", async () => {
  const { rows } = await client.execute("SELECT * FROM system.local WHERE key = 'local'");
  const [local] = rows;
  assert.equal(local.partitioner, "org.apache.cassandra.dht.Murmur3Partitioner");
  assert.equal(local.rpc_port, server.cqlPort);
  assert.equal(local.native_protocol_version, "5");
  for (const column of ["host_id", "schema_version", "cluster_name", "cql_version", "rpc_address", "tokens"]) {
    assert.ok(local[column], column);
  }
  assert.deepEqual(await rowsOf(client, "SELECT * FROM system.peers"), []);
  assert.deepEqual(await rowsOf(client, "SELECT * FROM system.peers_v2"), []);
});

test("getTable shows the table as it was made", async () => {
  await client.execute(`CREATE TABLE orders (
    customer uuid, year int, id timeuuid, name text STATIC, lines list<text>, tags frozen<set<text>>, total decimal,
    PRIMARY KEY ((customer, year), id)) WITH CLUSTERING ORDER BY (id DESC) AND comment = 'what they bought'
    AND default_time_to_live = 86400`);
  const table = await client.metadata.getTable("shop", "orders");
  assert.deepEqual(
    table.partitionKeys.map(({ name }) => name),
    ["customer", "year"],
  );
  assert.deepEqual(
    table.clusteringKeys.map(({ name }) => name),
    ["id"],
  );
  assert.deepEqual(table.clusteringOrder, ["DESC"]);
  assert.equal(table.comment, "what they bought");
  assert.equal(table.defaultTtl, 86400);
  assert.equal(table.columnsByName.name.isStatic, true);
  assert.deepEqual(table.columnsByName.lines.type.code, types.dataTypes.list);
  assert.deepEqual(table.columnsByName.tags.type.options.frozen, true);
  assert.equal(table.columnsByName.total.type.code, types.dataTypes.decimal);
  assert.equal(await client.metadata.getTable("shop", "nothing"), null);
});

test("getUdt shows the type as it was made", async () => {
  await client.execute("CREATE TYPE address (street text, zip int, phones frozen<list<text>>)");
  const type = await client.metadata.getUdt("shop", "address");
  assert.deepEqual(
    type.fields.map(({ name }) => name),
    ["street", "zip", "phones"],
  );
  assert.equal(type.fields[1].type.code, types.dataTypes.int);
});

test("the token map gives the node for every key", async () => {
  const ranges = [...client.metadata.getTokenRanges()];
  assert.ok(ranges.length > 0);
  const replicas = client.metadata.getReplicas("shop", Buffer.from([0, 0, 0, 1]));
  assert.equal(replicas.length, 1);
  assert.equal(replicas[0].address, `${server.host}:${server.cqlPort}`);
});

test("token() is the one that the driver computes", async () => {
  await client.execute("CREATE TABLE tokens (a text, b int, c int, PRIMARY KEY ((a, b), c))");
  for (const [a, b] of [
    ["a", 1],
    ["ä€😀", -1],
    ["", 7],
    ["x".repeat(300), 123456],
  ]) {
    await client.execute("INSERT INTO tokens (a, b, c) VALUES (?, ?, 0)", [a, b], { prepare: true });
    const { rows } = await client.execute("SELECT token(a, b) AS t FROM tokens WHERE a = ? AND b = ?", [a, b], { prepare: true });
    const part = (bytes) => Buffer.concat([Buffer.from([bytes.length >> 8, bytes.length & 255]), bytes, Buffer.from([0])]);
    const number = Buffer.alloc(4);
    number.writeInt32BE(b);
    const key = Buffer.concat([part(Buffer.from(a)), part(number)]);
    assert.equal(
      `${rows[0].t}`,
      client.metadata
        .newToken([part(Buffer.from(a)), part(number)])
        .getValue()
        .toString(),
      key.toString("hex"),
    );
  }
  assert.equal(
    `${(await client.execute("SELECT token(a, b) AS t FROM tokens WHERE a = 'a' AND b = 1")).first().t}`,
    "8247712171917364652",
  );
});

test("token-aware routing works with the indexes of a prepared statement", async () => {
  const aware = await server.client({
    keyspace: "shop",
    policies: {
      loadBalancing: new cassandra.policies.loadBalancing.TokenAwarePolicy(
        new cassandra.policies.loadBalancing.DCAwareRoundRobinPolicy("datacenter1"),
      ),
    },
  });
  // The columns of the key stand in another order than the markers.
  await aware.execute("INSERT INTO tokens (c, b, a) VALUES (?, ?, ?)", [5, 9, "routed"], { prepare: true });
  assert.deepEqual(await rowsOf(aware, "SELECT c FROM tokens WHERE b = ? AND a = ?", [9, "routed"]), [[5]]);
});

test("definitions are awaited, and their version changes", async () => {
  const version = async () => `${(await client.execute("SELECT schema_version FROM system.local")).first().schema_version}`;
  const before = await version();
  const { info } = await client.execute("CREATE TABLE agreed (a int PRIMARY KEY)");
  assert.equal(info.isSchemaInAgreement, true);
  assert.equal(await client.metadata.checkSchemaAgreement(), true);
  assert.notEqual(await version(), before);
});

test("one driver hears of the definitions of another", async () => {
  const other = await server.client();
  const has = (name) => until(`${name} is heard of`, () => other.metadata.keyspaces[name]);
  await client.execute("CREATE KEYSPACE heard WITH replication = {'class': 'NetworkTopologyStrategy', 'datacenter1': 3}");
  const { strategy, strategyOptions } = await has("heard");
  assert.equal(strategy, "org.apache.cassandra.locator.NetworkTopologyStrategy");
  assert.deepEqual(strategyOptions, { datacenter1: "3" });
  await client.execute("CREATE TABLE heard.t (a int PRIMARY KEY)");
  await until("the table", () => other.metadata.getTable("heard", "t"));
  await client.execute("ALTER TABLE heard.t ADD b text");
  await until("its new column", async () => (await other.metadata.getTable("heard", "t")).columnsByName.b);
  await client.execute("DROP TABLE heard.t");
  await until("the end of the table", async () => (await other.metadata.getTable("heard", "t")) === null);
  await client.execute("DROP KEYSPACE heard");
  await until("the end of the keyspace", () => !other.metadata.keyspaces.heard);
});

test("USE changes the keyspace of a client", async () => {
  const user = await server.client();
  await refused(user.execute("SELECT * FROM agreed"), codes.invalid, /keyspace/i);
  await user.execute("USE shop");
  assert.deepEqual(await rowsOf(user, "SELECT * FROM agreed"), []);
  await refused(user.execute("USE nothing"), codes.invalid, /Keyspace 'nothing' does not exist/);
  await assert.rejects(server.client({ keyspace: "nothing" }));
});

test("what a request cost is told", async () => {
  await client.execute("CREATE TABLE priced (a int PRIMARY KEY, b text)");
  const charge = ({ info }) => info.customPayload.RequestCharge.readDoubleBE();
  const write = charge(await client.execute("INSERT INTO priced (a, b) VALUES (1, ?)", ["x".repeat(800)], { prepare: true }));
  assert.ok(write > 4 && write < 8, `${write}`);
  const larger = charge(await client.execute("INSERT INTO priced (a, b) VALUES (2, ?)", ["x".repeat(8000)], { prepare: true }));
  assert.ok(larger > write, `${larger}`);
  const read = charge(await client.execute("SELECT * FROM priced WHERE a = 1"));
  assert.ok(read >= 1 && read < write, `${read}`);
  const scan = charge(await client.execute("SELECT * FROM priced"));
  assert.ok(scan > read, `${scan}`);
});

test("a trace tells the statement, how long it took and what it cost", async () => {
  const { info } = await client.execute("SELECT * FROM priced", [], { traceQuery: true });
  assert.ok(info.traceId instanceof types.Uuid);
  const trace = await client.metadata.getTrace(info.traceId);
  assert.equal(trace.requestType, "Execute CQL3 query");
  assert.equal(trace.parameters.query, "SELECT * FROM priced");
  assert.equal(`${trace.clientAddress}`, server.host);
  assert.ok(trace.duration > 0 && Date.now() - trace.startedAt < 60_000);
  assert.match(trace.events.map(({ activity }) => activity).join("; "), /Execute CQL3 query; \d+\.\d\d request units were charged; Request complete/);
});

test("every consistency level is taken where it has a meaning", async () => {
  const levels = types.consistencies;
  for (const name of ["one", "two", "three", "quorum", "all", "localQuorum", "eachQuorum", "localOne"]) {
    await client.execute("INSERT INTO priced (a, b) VALUES (3, 'x')", [], { consistency: levels[name] });
    assert.equal(
      (await client.execute("SELECT * FROM priced WHERE a = 3", [], { consistency: levels[name] })).rowLength,
      1,
      name,
    );
  }
  for (const name of ["serial", "localSerial"]) {
    assert.equal(
      (await client.execute("SELECT * FROM priced WHERE a = 3", [], { consistency: levels[name] })).rowLength,
      1,
      name,
    );
    await assert.rejects(
      client.execute("INSERT INTO priced (a, b) VALUES (3, 'x')", [], { consistency: levels[name] }),
      /You must use conditional updates for serializable writes/,
    );
  }
});

test("a driver goes on after a restart", async () => {
  await server.restart();
  await reconnected(client);
  assert.equal((await client.execute("SELECT * FROM shop.priced WHERE a = 3")).rowLength, 1);
  assert.equal((await client.metadata.getTable("shop", "orders")).comment, "what they bought");
});
