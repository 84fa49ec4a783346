// cqlsh, where it is installed (CQLSH names another one than that of PATH): what people type into it. PyPI has it,
// Debian does not.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { temporaryFolder } from "../../support/server.mjs";
import { Server } from "./server.mjs";

const program = process.env.CQLSH ?? "cqlsh";
const skip = spawnSync(program, ["--version"]).status === 0 ? false : "cqlsh is not installed";

let server;
let folder;
before(async () => {
  if (skip) return;
  folder = temporaryFolder();
  mkdirSync(path.join(folder, "home"));
  server = await Server.start();
});
after(async () => {
  await server?.remove();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

// What it prints: {out, err, code}. Its history and its settings are in a home of their own.
function cqlsh(args, { of = server, env = {}, input = "", seconds = 90 } = {}) {
  return new Promise((resolve, reject) => {
    const home = { HOME: path.join(folder, "home"), TZ: "UTC", LC_ALL: "C.UTF-8" };
    const child = spawn(program, ["--no-color", ...args, of.host, `${of.cqlPort}`], { env: { ...process.env, ...home, ...env } });
    const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000);
    const result = { out: "", err: "" };
    child.stdout.on("data", (chunk) => (result.out += chunk));
    child.stderr.on("data", (chunk) => (result.err += chunk));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code: code ?? signal });
    });
    child.stdin.end(input);
  });
}

// What statements print; nothing of it may fail.
async function typed(text, options = {}) {
  const { out, err, code } = await cqlsh(options.args ?? [], { ...options, input: text });
  assert.deepEqual({ err, code }, { err: "", code: 0 }, out);
  return out;
}

// The cells of the lines that are rows of a table.
const cells = (out) =>
  out.split("\n").filter((line) => line.includes(" | ")).map((line) => line.split("|").map((cell) => cell.trim()));

test("statements are run from -e, from a file and from its input, and say whether they failed", { skip }, async () => {
  const shown = await cqlsh(["-e", "SHOW VERSION; SELECT key FROM system.local"]);
  assert.equal(shown.code, 0, shown.err);
  assert.match(shown.out, /CQL spec 3\.\d+\.\d+ \| Native protocol v5\]\n\n key\n-+\n local\n\n\(1 rows\)/);
  const file = path.join(folder, "statements.cql");
  writeFileSync(file, "SELECT key FROM system.local;\n");
  for (const out of [await typed("", { args: ["-f", file] }), await typed(`SOURCE '${file}'\n`)]) assert.match(out, /local/);
  const wrong = await cqlsh(["-e", "SELECT nothing FROM system.local"]);
  assert.equal(wrong.code, 2);
  assert.match(wrong.err, /InvalidRequest: .*Undefined column name nothing in table system\.local/);
  assert.match((await cqlsh(["-e", "SELEC 1"])).err, /SyntaxException: line 1:0 no viable alternative at input 'SELEC'/);
  assert.match((await cqlsh(["-k", "nowhere", "-e", "SHOW HOST"])).err, /using keyspace 'nowhere'/);
});

test("values of every type are taken and shown", { skip }, async () => {
  const out = await typed(`
    CREATE KEYSPACE kinds WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    USE kinds;
    CREATE TYPE place (street text, tags set<text>);
    CREATE TABLE t (id int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e decimal, f double, g float, h inet,
      i smallint, j tinyint, k text, l varint, m timestamp, n date, o time, p uuid, q timeuuid, r duration,
      s tuple<int, text>, t frozen<place>, u list<int>, v set<text>, w map<text, int>,
      x frozen<map<text, frozen<list<int>>>>, y vector<float, 3>, z place);
    INSERT INTO t JSON '{"id": 2}';
    INSERT INTO t (id, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z) VALUES (1, 'asc',
      9223372036854775807, 0xcafe, true, 1.250, 0.5, 2.5, '127.0.0.1', 32000, -7, 'Grüße ''日本''',
      123456789012345678901234567890, '2024-02-29 12:34:56.789+0000', '2024-02-29', '08:12:54.123456789',
      550e8400-e29b-41d4-a716-446655440000, 50554d6e-29bb-11e5-b345-feff819cdc9f, 1y2mo3d4h5m6s, (1, 'one'),
      {street: 'High', tags: {'a', 'b'}}, [1, 2], {'x', 'y'}, {'one': 1}, {'l': [1, 2]}, [1.5, 2.5, 3.5], {street: 'Low'});
    UPDATE t SET u = u + [3], v = v - {'x'}, w['two'] = 2, z.tags = {'c'} WHERE id = 1;
    DELETE w['one'], u[0] FROM t WHERE id = 1;
    EXPAND ON
    SELECT * FROM t WHERE id = 1;
    EXPAND OFF
    SELECT JSON id, s, w FROM t;
    SELECT id, writetime(a) AS written, ttl(a) FROM t WHERE id = 2;
  `);
  const values = Object.fromEntries(cells(out).filter((row) => row.length === 2));
  assert.deepEqual(values, {
    id: "1", a: "asc", b: "9223372036854775807", c: "0xcafe", d: "True", e: "1.250", f: "0.5", g: "2.5", h: "127.0.0.1",
    i: "32000", j: "-7", k: "Grüße '日本'", l: "123456789012345678901234567890", m: "2024-02-29 12:34:56.789000+0000",
    n: "2024-02-29", o: "08:12:54.123456789", p: "550e8400-e29b-41d4-a716-446655440000",
    q: "50554d6e-29bb-11e5-b345-feff819cdc9f", r: "1y2mo3d4h5m6s", s: "(1, 'one')",
    t: "{street: 'High', tags: {'a', 'b'}}", u: "[2, 3]", v: "{'y'}", w: "{'two': 2}", x: "{'l': [1, 2]}",
    y: "[1.5, 2.5, 3.5]", z: "{street: 'Low', tags: {'c'}}",
  });
  assert.match(out, /\{"id": 1, "s": \[1, "one"\], "w": \{"two": 2\}\}/);
  assert.match(out, /2 \|    null \|   null\n/);
});

test("DESCRIBE shows what makes everything again", { skip }, async () => {
  const schema = `CREATE KEYSPACE "Shop" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    CREATE TYPE "Shop".address (street text, tags set<text>);
    CREATE TYPE "Shop".person (name text, home frozen<address>);
    CREATE TABLE "Shop".orders (customer text, day date, nr int, note text static, state text, who person,
      PRIMARY KEY (customer, day, nr)) WITH CLUSTERING ORDER BY (day DESC, nr ASC) AND comment = 'it''s ours';
    CREATE INDEX of_state ON "Shop".orders (state);
    CREATE MATERIALIZED VIEW "Shop".by_day AS SELECT customer, day, nr, state FROM "Shop".orders
      WHERE day IS NOT NULL AND customer IS NOT NULL AND nr IS NOT NULL PRIMARY KEY (day, customer, nr);`;
  assert.doesNotMatch(await typed(schema), /Warnings/);
  const named = await typed(`
    DESCRIBE CLUSTER; DESC KEYSPACES; USE "Shop"; DESCRIBE CLUSTER; DESC TABLES; DESC TYPES; DESC FUNCTIONS; DESC AGGREGATES;
  `);
  assert.match(named, /Cluster: orrery\nPartitioner: Murmur3Partitioner\nSnitch: SimpleSnitch\n/);
  assert.match(named, /Range ownership:\n +-?\d+ {2}\[\/127\.0\.0\.1:\d+\]/);
  assert.match(named, /"Shop" .*system_schema/);
  assert.match(named, /\norders\n/);
  assert.match(named, /\naddress {2}person\n/);
  const of = async (what) => (await typed(`DESC ${what};`, { args: ["-k", "Shop"] })).match(/CREATE [A-Z ]*[a-z_."A-Z]+/g);
  assert.deepEqual(await of("TABLE orders"), [
    'CREATE TABLE "Shop".orders',
    "CREATE INDEX of_state",
    'CREATE MATERIALIZED VIEW "Shop".by_day',
  ]);
  assert.deepEqual(await of("INDEX of_state; DESC MATERIALIZED VIEW by_day; DESC TYPE person; DESC by_day"), [
    "CREATE INDEX of_state",
    'CREATE MATERIALIZED VIEW "Shop".by_day',
    'CREATE TYPE "Shop".person',
    'CREATE MATERIALIZED VIEW "Shop".by_day',
  ]);
  assert.ok((await of("FULL SCHEMA")).includes("CREATE TABLE system.local"));
  assert.match((await cqlsh(["-e", 'DESC TABLE "Shop".nothing'])).err, /Table 'nothing' not found in keyspace 'Shop'/);
  const told = await typed("DESC KEYSPACE;", { args: ["-k", "Shop"] });
  await typed(`DROP KEYSPACE "Shop";\n${told.slice(told.indexOf("CREATE"))}`);
  assert.equal(await typed("DESC KEYSPACE;", { args: ["-k", "Shop"] }), told);
});

test("batches, conditions, counters, consistency levels", { skip }, async () => {
  const out = await typed(`
    CREATE KEYSPACE writes WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    USE writes;
    CREATE TABLE t (p text, c int, v text, PRIMARY KEY (p, c));
    BEGIN BATCH
      INSERT INTO t (p, c, v) VALUES ('a', 1, 'one');
      UPDATE t SET v = 'two' WHERE p = 'a' AND c = 2;
    APPLY BATCH;
    CONSISTENCY QUORUM
    SERIAL CONSISTENCY LOCAL_SERIAL
    INSERT INTO t (p, c, v) VALUES ('a', 1, 'x') IF NOT EXISTS;
    UPDATE t SET v = 'three' WHERE p = 'a' AND c = 2 IF v = 'two';
    CONSISTENCY SERIAL
    SELECT * FROM t WHERE p = 'a' ORDER BY c DESC;
    CONSISTENCY ALL
    CREATE TABLE hits (page text PRIMARY KEY, n counter);
    BEGIN COUNTER BATCH UPDATE hits SET n = n + 5 WHERE page = '/'; UPDATE hits SET n = n - 1 WHERE page = '/'; APPLY BATCH;
    SELECT * FROM hits;
  `);
  assert.deepEqual(cells(out), [
    ["[applied]", "p", "c", "v"],
    ["False", "a", "1", "one"],
    ["p", "c", "v"],
    ["a", "2", "three"],
    ["a", "1", "one"],
    ["page", "n"],
    ["/", "4"],
  ]);
  assert.match(out, /\[applied\]\n-+\n +True\n/);
  const refused = await cqlsh(["-e", "CONSISTENCY SERIAL; INSERT INTO writes.t (p, c) VALUES ('a', 3)"]);
  assert.match(refused.err, /You must use conditional updates for serializable writes/);
});

test("TRACING shows who asked and what it cost, PAGING goes through all rows", { skip }, async () => {
  const out = await typed(`
    TRACING ON
    SELECT key FROM system.local;
    TRACING OFF
    PAGING 7
    SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'system' AND table_name = 'local';
  `);
  assert.match(out, /Tracing session: [0-9a-f-]{36}\n/);
  const [head, ...steps] = cells(out);
  assert.deepEqual(head, ["activity", "timestamp", "source", "source_elapsed", "client"]);
  assert.deepEqual([steps[0][0], steps.at(-1)[0]], ["Execute CQL3 query", "Request complete"]);
  assert.ok(steps.some(([what]) => /^\d+\.\d\d request units were charged/.test(what)));
  assert.ok(steps.every((step) => step[2] === server.host && step[4] === server.host));
  assert.match(out, /\n\(20 rows\)\n/);
});

test("COPY brings thousands of rows in and out", { skip }, async () => {
  const file = (name) => path.join(folder, name);
  const rows = Array.from({ length: 3000 }, (_, i) =>
    [i, `"name, ${i}"`, i / 4, i % 2 ? "True" : "False", "2024-01-31 10:00:00.000+0000", `"[${i}, 2]"`, `"{'a': ${i}, 'b': 2}"`,
      `"{street: 's', number: ${i}}"`, "0x00ff"].join(","),
  );
  writeFileSync(file("in.csv"), `${rows.join("\n")}\n`);
  const columns = "id int PRIMARY KEY, a text, b decimal, c boolean, d timestamp, e list<int>, f map<text, int>, g frozen<place>, h blob";
  const out = await typed(`
    CREATE KEYSPACE copies WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
    USE copies;
    CREATE TYPE place (street text, number int);
    CREATE TABLE t (${columns});
    CREATE TABLE again (${columns});
    COPY t FROM '${file("in.csv")}';
    COPY t TO '${file("out.csv")}' WITH HEADER = true AND PAGESIZE = 500;
    COPY again FROM '${file("out.csv")}' WITH HEADER = true AND PREPAREDSTATEMENTS = false AND TTL = 9000;
    COPY again TO '${file("again.csv")}';
    SELECT count(a), min(ttl(a)) FROM again;
  `);
  assert.match(out, /3000 rows imported from 1 files/);
  assert.match(out, /3000 rows exported to 1 files/);
  const sorted = (name) => readFileSync(file(name), "utf8").split(/\r?\n/).filter((line) => /^\d/.test(line)).sort();
  for (const name of ["out.csv", "again.csv"]) {
    const lines = sorted(name);
    const wrong = [...rows].sort().findIndex((row, i) => row !== lines[i]);
    assert.deepEqual([lines.length, lines[wrong]], [rows.length, undefined], name);
  }
  const [[all, left]] = cells(out).filter(([one]) => one === "3000");
  assert.ok(all === "3000" && Number(left) > 8000 && Number(left) <= 9000, left);
});

test("credentials and LOGIN over TLS", { skip }, async () => {
  const secure = await Server.start({ dev: false });
  try {
    const env = { SSL_CERTFILE: path.join(secure.data, "certificate.pem") };
    const run = (user, password, input) =>
      cqlsh(["--ssl", ...(user ? ["-u", user, "-p", password] : [])], { of: secure, env, input });
    assert.match((await run(null, null, "SHOW HOST\n")).err, /requires authentication/);
    assert.match((await run("cassandra", "wrong", "SHOW HOST\n")).err, /username cassandra and\/or password are incorrect/);
    const { out, err } = await run("cassandra", "cassandra", `
      CREATE ROLE reader WITH PASSWORD = 'secret' AND LOGIN = true;
      CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
      CREATE TABLE k.t (a int PRIMARY KEY, b text);
      INSERT INTO k.t (a, b) VALUES (1, 'x');
      GRANT SELECT ON k.t TO reader;
      LIST ROLES;
      LIST ALL PERMISSIONS OF reader;
      LOGIN reader 'wrong'
      LOGIN reader 'secret'
      SELECT b, a FROM k.t;
      INSERT INTO k.t (a) VALUES (2);
      COPY k.t TO STDOUT;
    `);
    const found = cells(out).filter(([one]) => ["reader", "x"].includes(one));
    assert.deepEqual(found, [
      ["reader", "False", "True", "{}", "ALL"],
      ["reader", "reader", "<table k.t>", "SELECT"],
      ["x", "1"],
    ]);
    assert.match(out, /\n1,x\r?\n/);
    const refusals = err.split("\n").filter((line) => line.startsWith("<stdin>"));
    assert.equal(refusals.length, 2, err);
    assert.match(refusals[0], /Bad credentials/);
    assert.match(refusals[1], /User reader has no MODIFY permission on <table k\.t>/);
  } finally {
    await secure.remove();
  }
});
