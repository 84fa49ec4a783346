// Prepared statements: markers, and what happens to them when the server or the table changes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, reconnected, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("prepared");
});
after(() => server?.remove());

const see = (text, values, options) => rowsOf(client, text, values, options);

test("named markers, in any order and more than once", async () => {
  const t = await makeTable(client, "p int, c int, a text, b text, PRIMARY KEY (p, c)");
  await client.execute(
    `INSERT INTO ${t} (p, c, a, b) VALUES (:p, :c, :text, :text)`,
    { text: "same", c: 2, p: 1 },
    { prepare: true },
  );
  assert.deepEqual(
    await see(`SELECT a, b FROM ${t} WHERE p = :part AND c >= :low AND c <= :high`, { high: 5, low: 0, part: 1 }),
    [["same", "same"]],
  );
});

test("values by name without preparing", async () => {
  const t = await makeTable(client, "p text PRIMARY KEY, v text");
  await client.execute(`INSERT INTO ${t} (p, v) VALUES (:p, :v)`, { v: "x", p: "k" }, { hints: { p: "text", v: "text" } });
  await client.execute(`UPDATE ${t} SET v = ? WHERE p = ?`, ["y", "k"]);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [["k", "y"]]);
});

test("markers everywhere", async () => {
  const t = await makeTable(client, "p int, c int, l list<int>, m map<text, int>, v int, PRIMARY KEY (p, c)");
  await client.execute(
    `INSERT INTO ${t} (p, c, l, m, v) VALUES (?, ?, ?, ?, ?) USING TIMESTAMP ? AND TTL ?`,
    [1, 1, [1, 2], { a: 1 }, 5, types.Long.fromNumber(1000), 900],
    { prepare: true },
  );
  await client.execute(`UPDATE ${t} USING TTL ? SET m[?] = ?, l = l + ? WHERE p = ? AND c IN ?`, [800, "b", 2, [3], 1, [1, 2]], {
    prepare: true,
  });
  assert.deepEqual(await see(`SELECT l, m, v FROM ${t} WHERE p = ? AND c = ?`, [1, 1]), [[[1, 2, 3], { a: 1, b: 2 }, 5]]);
  assert.deepEqual(await see(`SELECT c FROM ${t} WHERE p IN ? LIMIT ?`, [[1], 1]), [[1]]);
  assert.equal((await see(`SELECT c FROM ${t} WHERE p = ? AND c > ?`, [1, 0])).length, 2);
  await client.execute(
    `DELETE m[?] FROM ${t} USING TIMESTAMP ? WHERE p = ? AND c = ?`,
    ["b", types.Long.fromNumber(Date.now() * 1000 + 1e9), 1, 1],
    { prepare: true },
  );
  assert.deepEqual(await see(`SELECT m FROM ${t} WHERE p = 1 AND c = 1`), [[{ a: 1 }]]);
});

test("a wrong number of values is refused", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int");
  await refused(client.execute(`INSERT INTO ${t} (p, v) VALUES (?, ?)`, [1], { hints: ["int"] }), codes.invalid, /markers/);
  await refused(client.execute(`SELECT * FROM ${t} WHERE p = ?`, [1, 2], { hints: ["int", "int"] }), codes.invalid);
  await refused(client.execute(`SELECT * FROM ${t} WHERE p = ?`), codes.invalid);
});

test("a statement that cannot be prepared is refused when it is prepared", async () => {
  await refused(
    client.execute("SELECT * FROM nothing WHERE a = ?", [1], { prepare: true }),
    codes.invalid,
    /unconfigured table nothing/,
  );
  await refused(client.execute("SELEC * FROM nothing", [1], { prepare: true }), codes.syntaxError);
});

test("the driver prepares again after a restart", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v text");
  const insert = `INSERT INTO prepared.${t} (p, v) VALUES (?, ?)`;
  await client.execute(insert, [1, "before"], { prepare: true });
  await client.batch([{ query: insert, params: [2, "batch"] }], { prepare: true });
  for (const end of [
    () => server.restart(),
    async () => {
      await server.kill();
      await server.up();
    },
  ]) {
    await end();
    await reconnected(client);
    await client.execute(insert, [1, "after"], { prepare: true });
    await client.batch([{ query: insert, params: [2, "batch again"] }], { prepare: true });
    assert.deepEqual(await see(`SELECT v FROM prepared.${t} WHERE p IN ?`, [[1, 2]]), [["after"], ["batch again"]]);
  }
  await client.execute("USE prepared");
});

test("SELECT * has the new columns after ALTER TABLE", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text, z text");
  const text = `SELECT * FROM ${t} WHERE p = ?`;
  await client.execute(`INSERT INTO ${t} (p, a, z) VALUES (1, 'a', 'z')`);
  const names = async () => (await client.execute(text, [1], { prepare: true })).rows[0].keys();
  assert.deepEqual(await names(), ["p", "a", "z"]);
  await client.execute(`ALTER TABLE ${t} ADD m int`);
  assert.deepEqual(await names(), ["p", "a", "m", "z"]);
  await client.execute(`ALTER TABLE ${t} DROP a`);
  assert.deepEqual(await names(), ["p", "m", "z"]);
  const { rows } = await client.execute(text, [1], { prepare: true });
  assert.deepEqual(rows[0].values(), [1, null, "z"]);
});

test("a statement about a column that is gone is refused, and works when it is back", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  const insert = `INSERT INTO ${t} (p, a) VALUES (?, ?)`;
  await client.execute(insert, [1, "x"], { prepare: true });
  await client.execute(`ALTER TABLE ${t} DROP a`);
  await refused(client.execute(insert, [1, "x"], { prepare: true }), codes.invalid, /Undefined column name a/);
  await client.execute(`ALTER TABLE ${t} ADD a text`);
  await client.execute(insert, [1, "y"], { prepare: true });
  assert.deepEqual(await see(`SELECT a FROM ${t}`), [["y"]]);
});

test("a table that was made anew serves old statements", async () => {
  await client.execute("CREATE TABLE anew (p int PRIMARY KEY, v int)");
  const insert = "INSERT INTO anew (p, v) VALUES (?, ?)";
  await client.execute(insert, [1, 1], { prepare: true });
  await client.execute("DROP TABLE anew");
  await refused(client.execute(insert, [1, 1], { prepare: true }), codes.invalid, /unconfigured table anew/);
  await client.execute("CREATE TABLE anew (p int PRIMARY KEY, v int)");
  await client.execute(insert, [2, 2], { prepare: true });
  assert.deepEqual(await see("SELECT * FROM anew"), [[2, 2]]);
});

test("one text in two keyspaces is two statements", async () => {
  const other = await server.keyspaceClient("prepared_too");
  for (const [from, value] of [
    [client, "one"],
    [other, "two"],
  ]) {
    await from.execute("CREATE TABLE twice (p int PRIMARY KEY, v text)");
    await from.execute("INSERT INTO twice (p, v) VALUES (?, ?)", [1, value], { prepare: true });
  }
  for (const [from, value] of [
    [client, "one"],
    [other, "two"],
  ])
    assert.deepEqual(await rowsOf(from, "SELECT v FROM twice WHERE p = ?", [1]), [[value]]);
});

test("many statements at once", async () => {
  const t = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)");
  const parameters = Array.from({ length: 500 }, (_, i) => [i % 20, i, `v${i}`]);
  await Promise.all(
    parameters.map((values) =>
      client.execute(`INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?)`, values, { prepare: true, isIdempotent: true }),
    ),
  );
  const read = await Promise.all(parameters.map(([p, c]) => see(`SELECT v FROM ${t} WHERE p = ? AND c = ?`, [p, c])));
  assert.deepEqual(
    read.map(([[v]]) => v),
    parameters.map(([, , v]) => v),
  );
  assert.equal((await see(`SELECT * FROM ${t}`)).length, 500);
});
