// A table is a container: the SQL API lists it, the commands show it, it splits and merges.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { run } from "../../support/server.mjs";
import { Server, rowsOf, until } from "./server.mjs";

let server;
let client;
let sql;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("things");
  sql = new CosmosClient({ endpoint: server.endpoint, key: server.key });
  await client.execute(
    "CREATE TABLE things.rows (p int, c int, v text, PRIMARY KEY (p, c)) WITH cosmosdb_provisioned_throughput = 20000",
  );
  for (let p = 0; p < 40; p += 1) {
    for (let c = 0; c < 3; c += 1) {
      await client.execute("INSERT INTO things.rows (p, c, v) VALUES (?, ?, ?)", [p, c, "x".repeat(100)], { prepare: true });
    }
  }
});
after(async () => {
  sql?.dispose();
  await server?.remove();
});

const partitionsOf = async () => {
  const { code, out, err } = await run(["status", "--json", "--data", server.data]);
  assert.equal(code, 0, err);
  return JSON.parse(out)
    .databases.find(({ id }) => id === "things")
    .containers.find(({ id }) => id === "rows").partitions;
};

test("the SQL API lists a table with its definition, and changes nothing of it", async () => {
  const { resources } = await sql.database("things").containers.readAll().fetchAll();
  const table = resources.find(({ id }) => id === "rows");
  assert.equal(table.partitionKey.kind, "Token");
  assert.deepEqual(
    table.cassandra.columns.map(({ name, type }) => `${name} ${type}`),
    ["p int", "c int", "v text"],
  );
  const container = sql.database("things").container("rows");
  await assert.rejects(container.items.create({ id: "a", p: 1 }), { code: 405 });
  await assert.rejects(container.replace({ ...table, defaultTtl: 5 }), { code: 400 });
  await assert.rejects(
    sql.database("things").containers.create({ id: "other", partitionKey: table.partitionKey, cassandra: {} }),
    { code: 400 },
  );
  assert.deepEqual(await rowsOf(client, "SELECT count(*) FROM things.rows"), [["120"]]);
});

test("the SQL API shows the throughput that the tables of a keyspace share, and changes it", async () => {
  await client.execute(
    "CREATE KEYSPACE sharing WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND cosmosdb_provisioned_throughput = 700",
  );
  await client.execute("CREATE TABLE sharing.rows (p int PRIMARY KEY)");
  const { resource: offer } = await sql.database("sharing").readOffer();
  assert.equal(offer.content.offerThroughput, 700);
  assert.equal((await sql.database("sharing").container("rows").readOffer()).resource, undefined);
  await client.execute("ALTER KEYSPACE sharing WITH cosmosdb_provisioned_throughput = 900");
  assert.equal((await sql.database("sharing").readOffer()).resource.content.offerThroughput, 900);
  await sql.offer(offer.id).replace({ ...offer, content: { offerThroughput: 1000 } });
  const [[statement]] = await rowsOf(client, "DESCRIBE ONLY KEYSPACE sharing").then((rows) => rows.map((row) => row.slice(3)));
  assert.match(statement, /AND cosmosdb_provisioned_throughput = 1000;/);
});

test("a table has the partitions of its throughput, and they can be split and merged", async () => {
  const before = await partitionsOf();
  assert.equal(before.length, 2);
  // Each of these counts as a row until somebody looks.
  for (let i = 0; i < 200; i += 1) {
    await client.execute("INSERT INTO things.rows (p, c, v) VALUES (?, 0, 'again')", [i % 40], { prepare: true });
  }
  assert.ok((await partitionsOf())[0].items > before[0].items);
  const split = await run(["partition", "split", `${before[0].id}`, "--data", server.data]);
  assert.equal(split.code, 0, split.err);
  await until("there are three partitions", async () => (await partitionsOf()).length === 3);
  const [left, right] = await partitionsOf();
  assert.equal(left.items + right.items, before[0].items, "a split counts what is there");
  let rows = 0;
  for await (const row of client.stream("SELECT p, c FROM things.rows", [], { fetchSize: 7, autoPage: true })) rows += row ? 1 : 0;
  assert.equal(rows, 120);
  assert.deepEqual(await rowsOf(client, "SELECT count(*) FROM things.rows WHERE p = 7"), [["3"]]);
  const [first] = await partitionsOf();
  const merge = await run(["partition", "merge", `${first.id}`, "--data", server.data]);
  assert.equal(merge.code, 0, merge.err);
  await until("there are two partitions", async () => (await partitionsOf()).length === 2);
  await client.execute("INSERT INTO things.rows (p, c) VALUES (100, 1)");
  assert.deepEqual(await rowsOf(client, "SELECT count(*) FROM things.rows"), [["121"]]);
});

test("requests are counted for Prometheus", async () => {
  await assert.rejects(client.execute("SELEC"));
  const text = await (await fetch(`${server.endpoint}metrics`)).text();
  for (const [operation, status] of [["cql_execute", 200], ["cql_query", 200], ["cql_query", 400], ["cql_prepare", 200]]) {
    const count = new RegExp(`orrery_requests_total\\{operation="${operation}",status="${status}"\\} (\\d+)`).exec(text);
    assert.ok(count && Number(count[1]) > 0, `${operation} ${status}`);
  }
  assert.match(text, /orrery_request_units_total\{operation="cql_execute"[^}]*\} \d/);
});

test("a keyspace that is dropped is gone from the SQL API too", async () => {
  await client.execute("CREATE KEYSPACE gone WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await client.execute("CREATE TABLE gone.t (p int PRIMARY KEY)");
  await sql.database("gone").container("t").read();
  await client.execute("DROP KEYSPACE gone");
  await assert.rejects(sql.database("gone").read(), { code: 404 });
  // And the name of a database that is none is not taken for one.
  await sql.databases.create({ id: "documents" });
  await assert.rejects(client.execute("CREATE TABLE documents.t (p int PRIMARY KEY)"), /doesn't exist/);
});
