// Secondary indexes and materialized views: made for tables with rows, kept by every write.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Server, codes, refused, rowsOf, until } from "./server.mjs";

let server;
let client;
let sql;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("derived");
  sql = new CosmosClient({ endpoint: server.endpoint, key: server.key });
});
after(async () => {
  sql?.dispose();
  await server?.remove();
});

const sorted = async (query, values) => (await rowsOf(client, query, values)).map((row) => row.join()).sort();
const chargeOf = async (query) => (await client.execute(query)).info.customPayload.RequestCharge.readDoubleBE(0);
const built = (index) =>
  until("the index is built", async () =>
    (await rowsOf(client, `SELECT index_name FROM system."IndexInfo" WHERE table_name = 'derived'`)).flat().includes(index),
  );

test("an index of a table with rows finds them without a look at the others", async () => {
  await client.execute("CREATE TABLE users (id int PRIMARY KEY, name text, city text, tags set<text>)");
  for (let i = 0; i < 400; i += 1) {
    await client.execute("INSERT INTO users (id, name, city, tags) VALUES (?, ?, ?, ?)", [i, "x".repeat(2000), `c${i % 50}`, [`t${i % 5}`]], {
      prepare: true,
    });
  }
  await refused(client.execute("SELECT id FROM users WHERE city = 'c7'"), codes.invalid, /ALLOW FILTERING/);
  const scan = await chargeOf("SELECT id FROM users WHERE city = 'c7' ALLOW FILTERING");
  await client.execute("CREATE INDEX by_city ON users (city)");
  await client.execute("CREATE INDEX by_tag ON users (tags)");
  await built("by_city");
  await built("by_tag");
  assert.deepEqual(await sorted("SELECT id FROM users WHERE city = 'c7'"), ["107", "157", "207", "257", "307", "357", "57", "7"]);
  const found = await chargeOf("SELECT id FROM users WHERE city = 'c7'");
  assert.ok(found < scan / 2, `${found} RU by the index, ${scan} without`);
  assert.equal((await client.execute("SELECT id FROM users WHERE tags CONTAINS 't3'")).rowLength, 80);
  let paged = 0;
  for await (const row of client.stream("SELECT id FROM users WHERE tags CONTAINS 't3'", [], { fetchSize: 7, autoPage: true })) paged += row ? 1 : 0;
  assert.equal(paged, 80);
  await client.execute("UPDATE users SET city = 'c7' WHERE id = 1");
  await client.execute("DELETE FROM users WHERE id = 57");
  await client.execute("UPDATE users USING TTL 1 SET city = 'c7' WHERE id = 2");
  assert.ok((await sorted("SELECT id FROM users WHERE city = 'c7'")).includes("1"));
  assert.ok(!(await sorted("SELECT id FROM users WHERE city = 'c7'")).includes("57"));
  await until("the row is gone with its time", async () => !(await sorted("SELECT id FROM users WHERE city = 'c7'")).includes("2"));
});

test("drivers see indexes and views in their metadata", async () => {
  await client.execute(
    "CREATE MATERIALIZED VIEW users_by_city AS SELECT name FROM users WHERE city IS NOT NULL AND id IS NOT NULL " +
      "PRIMARY KEY (city, id) WITH CLUSTERING ORDER BY (id DESC)",
  );
  const table = await client.metadata.getTable("derived", "users");
  assert.deepEqual(table.indexes.map(({ name }) => name).sort(), ["by_city", "by_tag"]);
  const view = await client.metadata.getMaterializedView("derived", "users_by_city");
  assert.equal(view.tableName, "users");
  assert.equal(view.includeAllColumns, false);
  assert.match(view.whereClause, /city IS NOT NULL/);
  assert.deepEqual(view.columns.map(({ name }) => name).sort(), ["city", "id", "name"]);
  await refused(client.execute("INSERT INTO users_by_city (city, id) VALUES ('x', 1)"), codes.invalid, /directly modify/);
  await refused(client.execute("DROP TABLE users"), codes.invalid, /materialized views still depend on it/);
});

test("a view has what its table says, in the order of its own key", async () => {
  await until("the view is built", async () => (await rowsOf(client, "SELECT view_name FROM system.built_views")).length === 1);
  const ids = async (city) => (await rowsOf(client, "SELECT id FROM users_by_city WHERE city = ?", [city])).flat();
  assert.deepEqual(await ids("c9"), [359, 309, 259, 209, 159, 109, 59, 9]);
  await client.execute("UPDATE users SET city = 'c10' WHERE id = 59");
  await client.execute("DELETE city FROM users WHERE id = 109");
  await client.execute("BEGIN BATCH INSERT INTO users (id, city, name) VALUES (1000, 'c9', 'new'); DELETE FROM users WHERE id = 9; APPLY BATCH");
  assert.deepEqual(await ids("c9"), [1000, 359, 309, 259, 209, 159]);
  assert.ok((await ids("c10")).includes(59));
  assert.deepEqual(await rowsOf(client, "SELECT name FROM users_by_city WHERE city = 'c9' AND id = 1000"), [["new"]]);
});

test("what is dropped is gone, and an index of the same name begins anew", async () => {
  await client.execute("DROP MATERIALIZED VIEW derived.users_by_city");
  await refused(client.execute("SELECT * FROM derived.users_by_city"), codes.invalid, /unconfigured table|does not exist/);
  await client.execute("DROP INDEX derived.by_city");
  await refused(client.execute("SELECT id FROM derived.users WHERE city = 'c7'"), codes.invalid, /ALLOW FILTERING/);
  await client.execute("CREATE INDEX by_city ON derived.users (city)");
  await built("by_city");
  assert.ok((await sorted("SELECT id FROM derived.users WHERE city = 'c7'")).includes("107"));
  await client.execute("DROP TABLE derived.users");
  const containers = await sql.database("derived").containers.readAll().fetchAll();
  assert.deepEqual(containers.resources, []);
});
