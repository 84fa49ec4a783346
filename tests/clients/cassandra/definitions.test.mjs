// Keyspaces, tables, types: made, altered and dropped, with the errors of each.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, reconnected, refused, rowsOf } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("definitions");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);
const simple = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
const wrong = async (code, cases) => {
  for (const [text, message] of cases) {
    await refused(client.execute(text), code, message).catch((error) => {
      throw new Error(`${text}: ${error.message}`);
    });
  }
};

test("a keyspace is made, shown, altered and dropped", async () => {
  await run(`CREATE KEYSPACE one WITH replication = ${simple} AND durable_writes = false`);
  const shown = "SELECT durable_writes, replication FROM system_schema.keyspaces WHERE keyspace_name = 'one'";
  const strategy = "org.apache.cassandra.locator.SimpleStrategy";
  assert.deepEqual(await see(shown), [[false, { class: strategy, replication_factor: "1" }]]);
  await run(
    "ALTER KEYSPACE one WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 2} AND durable_writes = true",
  );
  assert.deepEqual(await see(shown), [[true, { class: strategy, replication_factor: "2" }]]);
  const spread = "org.apache.cassandra.locator.NetworkTopologyStrategy";
  await run("ALTER KEYSPACE one WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 3}");
  assert.deepEqual(await see(shown), [[true, { class: spread, datacenter1: "3" }]]);
  await run("DROP KEYSPACE one");
  assert.deepEqual(await see(shown), []);
  await run("CREATE KEYSPACE one WITH replication = {'class': 'NetworkTopologyStrategy', 'replication_factor': 1, 'far': 2}");
  assert.deepEqual(await see(shown), [[true, { class: spread, datacenter1: "1", far: "2" }]]);
  await run("DROP KEYSPACE one");
});

test("IF EXISTS and IF NOT EXISTS make nothing of it; else there are errors", async () => {
  await run(`CREATE KEYSPACE two WITH replication = ${simple}`, `CREATE KEYSPACE IF NOT EXISTS two WITH replication = ${simple}`);
  const there = await refused(client.execute(`CREATE KEYSPACE two WITH replication = ${simple}`), codes.alreadyExists, /two/);
  assert.equal(there.keyspace, "two");
  await run("CREATE TABLE two.t (a int PRIMARY KEY)", "CREATE TABLE IF NOT EXISTS two.t (a int PRIMARY KEY)");
  const table = await refused(client.execute("CREATE TABLE two.t (a int PRIMARY KEY)"), codes.alreadyExists, /"?t"?/);
  assert.deepEqual([table.keyspace, table.table], ["two", "t"]);
  await run("CREATE TYPE two.u (a int)", "CREATE TYPE IF NOT EXISTS two.u (a int)");
  await refused(client.execute("CREATE TYPE two.u (a int)"), codes.invalid, /already exists/);
  await run("DROP TYPE two.u", "DROP TYPE IF EXISTS two.u", "DROP TABLE two.t", "DROP TABLE IF EXISTS two.t");
  await refused(client.execute("DROP TYPE two.u"), codes.invalid);
  await refused(client.execute("DROP TABLE two.t"), codes.invalid, /(doesn't exist|unconfigured table|does not exist)/);
  await run("DROP KEYSPACE two", "DROP KEYSPACE IF EXISTS two", "DROP TABLE IF EXISTS two.t");
  await refused(client.execute("DROP KEYSPACE two"), codes.invalid, /doesn't exist|does not exist/);
});

test("names are of lower case unless quoted", async () => {
  await run(`CREATE KEYSPACE "MixedCase" WITH replication = ${simple}`);
  await run(`CREATE TABLE "MixedCase"."Tab" (Key int PRIMARY KEY, "Value" text, "select" int)`);
  await run(`INSERT INTO "MixedCase"."Tab" (KEY, "Value", "select") VALUES (1, 'x', 2)`);
  const { columns } = await client.execute(`SELECT * FROM "MixedCase"."Tab"`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["key", "Value", "select"],
  );
  await refused(client.execute(`SELECT * FROM MixedCase.Tab`), codes.invalid);
  await run(`DROP KEYSPACE "MixedCase"`);
});

test("columns can be added, dropped and, those of the key, renamed", async () => {
  const t = await makeTable(client, "p int, c int, a text, b text, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, c, a, b) VALUES (1, 1, 'a', 'b')`);
  await run(`ALTER TABLE ${t} ADD (d int, e list<text>)`, `ALTER TABLE ${t} ADD s text STATIC`, `ALTER TABLE ${t} DROP a`);
  const { columns } = await client.execute(`SELECT * FROM ${t}`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["p", "c", "s", "b", "d", "e"],
  );
  assert.deepEqual(await see(`SELECT b, d, e, s FROM ${t}`), [["b", null, null, null]]);
  await run(`UPDATE ${t} SET d = 1, e = ['x'] WHERE p = 1 AND c = 1`);
  await run(`ALTER TABLE ${t} ADD a text`);
  assert.deepEqual(await see(`SELECT a, b, d, e FROM ${t}`), [[null, "b", 1, ["x"]]]);
  await run(`UPDATE ${t} SET a = 'again' WHERE p = 1 AND c = 1`, `ALTER TABLE ${t} RENAME c TO clus`);
  assert.deepEqual(await see(`SELECT p, clus, a FROM ${t} WHERE p = 1 AND clus = 1`), [[1, 1, "again"]]);
  await wrong(codes.invalid, [
    [`ALTER TABLE ${t} ADD b int`, /already exists|conflicts with an existing column/],
    [`ALTER TABLE ${t} DROP nothing`, /nothing/],
    [`ALTER TABLE ${t} DROP p`, /PRIMARY KEY/],
    [`ALTER TABLE ${t} RENAME b TO x`, /non-primary-key|non PRIMARY KEY/],
    [`ALTER TABLE ${t} RENAME clus TO b`, /already|another column|collide/],
    [`ALTER TABLE nothing ADD x int`, /nothing/],
  ]);
});

test("a partition key column can be renamed", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 'x')`, `ALTER TABLE ${t} RENAME p TO part`);
  assert.deepEqual(await see(`SELECT part, a FROM ${t} WHERE part = 1`), [[1, "x"]]);
  await run(`INSERT INTO ${t} (part, a) VALUES (2, 'y')`);
  assert.deepEqual((await see(`SELECT part FROM ${t}`)).flat().sort(), [1, 2]);
});

test("all options are kept and shown", async () => {
  const t = await makeTable(
    client,
    "p int PRIMARY KEY",
    `WITH comment = 'it''s' AND gc_grace_seconds = 1000 AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': 100}
     AND compression = {'class': 'LZ4Compressor', 'chunk_length_in_kb': 64} AND caching = {'keys': 'NONE', 'rows_per_partition': 'ALL'}
     AND bloom_filter_fp_chance = 0.05 AND speculative_retry = '50p' AND memtable_flush_period_in_ms = 5`,
  );
  const { rows } = await client.execute(
    `SELECT * FROM system_schema.tables WHERE keyspace_name = 'definitions' AND table_name = '${t}'`,
  );
  const [table] = rows;
  assert.equal(table.comment, "it's");
  assert.equal(table.gc_grace_seconds, 1000);
  assert.match(table.compaction.class, /LeveledCompactionStrategy$/);
  assert.equal(table.compaction.sstable_size_in_mb, "100");
  assert.equal(table.bloom_filter_fp_chance, 0.05);
  assert.deepEqual(table.caching, { keys: "NONE", rows_per_partition: "ALL" });
  assert.equal(table.memtable_flush_period_in_ms, 5);
  await run(`ALTER TABLE ${t} WITH comment = 'other' AND gc_grace_seconds = 7`);
  assert.deepEqual(
    await see(
      `SELECT comment, gc_grace_seconds FROM system_schema.tables WHERE keyspace_name = 'definitions' AND table_name = '${t}'`,
    ),
    [["other", 7]],
  );
});

test("system_schema.columns tells kind, position and order", async () => {
  const t = await makeTable(
    client,
    "a int, b text, c int, d int, s frozen<set<int>> STATIC, v map<text, int>, PRIMARY KEY ((a, b), c, d)",
    "WITH CLUSTERING ORDER BY (c DESC, d ASC)",
  );
  const rows = await see(
    `SELECT column_name, kind, position, clustering_order, type FROM system_schema.columns WHERE keyspace_name = 'definitions' AND table_name = '${t}'`,
  );
  assert.deepEqual(rows, [
    ["a", "partition_key", 0, "none", "int"],
    ["b", "partition_key", 1, "none", "text"],
    ["c", "clustering", 0, "desc", "int"],
    ["d", "clustering", 1, "asc", "int"],
    ["s", "static", -1, "none", "frozen<set<int>>"],
    ["v", "regular", -1, "none", "map<text, int>"],
  ]);
});

test("a type in use cannot be dropped; its fields can be added and renamed", async () => {
  await run("CREATE TYPE inner_type (a int)", "CREATE TYPE outer_type (x frozen<inner_type>, y text)");
  const t = await makeTable(client, "p int PRIMARY KEY, v frozen<outer_type>");
  await wrong(codes.invalid, [
    ["DROP TYPE inner_type", /still|used/],
    ["DROP TYPE outer_type", /still|used/],
    ["ALTER TYPE inner_type ADD a text", /already/],
    ["ALTER TYPE inner_type RENAME nothing TO b", /nothing/],
    ["CREATE TYPE wrong (a frozen<nothing>)", /nothing/],
    ["CREATE TYPE wrong (a counter)", /counter/i],
  ]);
  await run("ALTER TYPE inner_type ADD b text", "ALTER TYPE outer_type RENAME y TO z");
  assert.deepEqual(
    await see("SELECT type_name, field_names, field_types FROM system_schema.types WHERE keyspace_name = 'definitions'"),
    [
      ["inner_type", ["a", "b"], ["int", "text"]],
      ["outer_type", ["x", "z"], ["frozen<inner_type>", "text"]],
    ],
  );
  await run(`DROP TABLE ${t}`, "DROP TYPE outer_type", "DROP TYPE inner_type");
});

test("a table that was dropped is gone with its rows, and its name is free", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a int");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 1)`, `DROP TABLE ${t}`);
  await refused(client.execute(`SELECT * FROM ${t}`), codes.invalid, /unconfigured table|does not exist/);
  await run(`CREATE TABLE ${t} (q text PRIMARY KEY)`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("mistakes in definitions are told", async () => {
  await wrong(codes.invalid, [
    ["CREATE TABLE x (a int, b int)", /No PRIMARY KEY specif/],
    ["CREATE TABLE x (a int PRIMARY KEY, b int, PRIMARY KEY (b))", /Multiple PRIMARY KEY/i],
    ["CREATE TABLE x (a int PRIMARY KEY, a text)", /declared|Multiple definition|duplicate/i],
    ["CREATE TABLE x (a int PRIMARY KEY, s int STATIC)", /Static columns/i],
    ["CREATE TABLE x (a int, PRIMARY KEY (b))", /b/],
    ["CREATE TABLE x (a int PRIMARY KEY, b nothing)", /Unknown type/],
    ["CREATE TABLE x (a int PRIMARY KEY, b list<list<int>>)", /[Nn]on-frozen/],
    ["CREATE TABLE x (a int PRIMARY KEY, n counter, v int)", /counter/],
    ["CREATE TABLE x (a counter PRIMARY KEY)", /counter/i],
    ["CREATE TABLE x (a duration PRIMARY KEY)", /duration/i],
    ["CREATE TABLE nothing.x (a int PRIMARY KEY)", /[Kk]eyspace '?nothing'?/],
    ["CREATE TABLE x (a int, b int, PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (a ASC)", /./],
  ]);
  await wrong(codes.configError, [
    ["CREATE KEYSPACE x WITH replication = {'class': 'NothingStrategy'}", /./],
    ["CREATE KEYSPACE x WITH replication = {'replication_factor': 1}", /class/],
    ["CREATE TABLE x (a int PRIMARY KEY) WITH bloom_filter_fp_chance = 5", /bloom_filter_fp_chance/],
    ["CREATE TABLE x (a int PRIMARY KEY) WITH compaction = {'class': 'Nothing'}", /./],
  ]);
  await wrong(codes.syntaxError, [
    ["CREATE TABLE x (a int PRIMARY KEY) WITH nothing = 5", /nothing/],
    ["CREATE KEYSPACE x", /./],
  ]);
  await wrong(codes.unauthorized, [
    ["CREATE TABLE system.x (a int PRIMARY KEY)", /./],
    ["DROP KEYSPACE system", /./],
  ]);
});

test("functions and aggregates of users are disabled", async () => {
  await refused(
    client.execute("CREATE FUNCTION f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a;'"),
    codes.invalid,
    /disabled/,
  );
  await refused(client.execute("CREATE AGGREGATE g (int) SFUNC f STYPE int"), codes.invalid, /disabled/);
});

test("definitions at once are all done", async () => {
  const table = await makeTable(client, "p int PRIMARY KEY");
  const names = Array.from({ length: 6 }, (_, i) => `c${i}`);
  await Promise.all(names.map((name) => client.execute(`ALTER TABLE ${table} ADD ${name} int`)));
  await Promise.all(names.map((name) => client.execute(`CREATE TYPE at_once_${name} (x int)`)));
  assert.deepEqual((await client.execute(`SELECT * FROM ${table}`)).columns.map(({ name }) => name), ["p", ...names]);
  const types = await rowsOf(client, "SELECT type_name FROM system_schema.types");
  assert.equal(types.filter(([name]) => name.startsWith("at_once_")).length, 6);
});

test("definitions are there after a kill", async () => {
  const t = await makeTable(
    client,
    "p int, c text, v frozen<map<int, text>>, PRIMARY KEY (p, c)",
    "WITH CLUSTERING ORDER BY (c DESC)",
  );
  await run(`ALTER TABLE ${t} ADD late int`);
  const look = async () => [
    await see("SELECT * FROM system_schema.columns WHERE keyspace_name = 'definitions'"),
    await see("SELECT * FROM system_schema.tables WHERE keyspace_name = 'definitions'"),
  ];
  const before = await look();
  await server.kill();
  await server.up();
  await reconnected(client);
  assert.deepEqual(await look(), before);
});
