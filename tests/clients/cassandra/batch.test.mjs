// Batches: logged, unlogged, of counters, of text and of prepared statements.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
let t;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("batches");
  t = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)");
});
after(() => server?.remove());

const see = (text, values) => rowsOf(client, text, values);

for (const logged of [true, false]) {
  test(`${logged ? "a logged" : "an unlogged"} batch writes all of it`, async () => {
    await client.execute(`TRUNCATE ${t}`);
    const queries = [
      { query: `INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?)`, params: [1, 1, "a"] },
      { query: `INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?)`, params: [1, 2, "b"] },
      { query: `UPDATE ${t} SET v = ? WHERE p = ? AND c = ?`, params: ["c", 2, 1] },
      { query: `DELETE FROM ${t} WHERE p = ? AND c = ?`, params: [1, 9] },
    ];
    await client.batch(queries, { prepare: true, logged });
    assert.deepEqual((await see(`SELECT * FROM ${t}`)).sort(), [
      [1, 1, "a"],
      [1, 2, "b"],
      [2, 1, "c"],
    ]);
    await client.batch([`UPDATE ${t} SET v = 'text' WHERE p = 1 AND c = 1`, `DELETE FROM ${t} WHERE p = 2`], { logged });
    assert.deepEqual(await see(`SELECT * FROM ${t}`), [
      [1, 1, "text"],
      [1, 2, "b"],
    ]);
  });
}

test("an empty batch is accepted", async () => {
  await client.execute("BEGIN BATCH APPLY BATCH");
  await client.execute("BEGIN UNLOGGED BATCH APPLY BATCH");
});

test("a batch as one text, with markers", async () => {
  await client.execute(`TRUNCATE ${t}`);
  const text = `BEGIN BATCH INSERT INTO ${t} (p, c, v) VALUES (?, 1, ?); UPDATE ${t} SET v = ? WHERE p = ? AND c = 2 APPLY BATCH`;
  await client.execute(text, [1, "x", "y", 1], { prepare: true });
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [
    [1, 1, "x"],
    [1, 2, "y"],
  ]);
});

test("the timestamp of a batch is that of its statements, or theirs", async () => {
  await client.execute(`TRUNCATE ${t}`);
  await client.execute(
    `BEGIN BATCH USING TIMESTAMP 1000 INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x'); INSERT INTO ${t} (p, c, v) VALUES (2, 1, 'y') APPLY BATCH`,
  );
  assert.deepEqual(await see(`SELECT writetime(v) FROM ${t}`), [["1000"], ["1000"]]);
  await client.execute(
    `BEGIN BATCH INSERT INTO ${t} (p, c, v) VALUES (3, 1, 'x') USING TIMESTAMP 5; INSERT INTO ${t} (p, c, v) VALUES (4, 1, 'y') USING TIMESTAMP 6 APPLY BATCH`,
  );
  assert.deepEqual((await see(`SELECT writetime(v) FROM ${t} WHERE p IN (3, 4)`)).sort(), [["5"], ["6"]]);
  await client.batch([`INSERT INTO ${t} (p, c, v) VALUES (5, 1, 'x')`], { timestamp: types.Long.fromNumber(777) });
  assert.deepEqual(await see(`SELECT writetime(v) FROM ${t} WHERE p = 5`), [["777"]]);
  await refused(
    client.execute(`BEGIN BATCH USING TIMESTAMP 1 INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x') USING TIMESTAMP 5 APPLY BATCH`),
    codes.invalid,
    /Timestamp must be set either on BATCH or individual statements/,
  );
});

test("of statements about one cell at one time, a delete wins", async () => {
  await client.execute(`TRUNCATE ${t}`);
  await client.batch(
    [
      `INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x')`,
      `DELETE v FROM ${t} WHERE p = 1 AND c = 1`,
      `INSERT INTO ${t} (p, c, v) VALUES (1, 2, 'a')`,
      `INSERT INTO ${t} (p, c, v) VALUES (1, 2, 'b')`,
    ],
    {},
  );
  assert.deepEqual(await see(`SELECT c, v FROM ${t}`), [
    [1, null],
    [2, "b"],
  ]);
});

test("counters have batches of their own", async () => {
  const n = await makeTable(client, "p int PRIMARY KEY, n counter");
  const add = { query: `UPDATE ${n} SET n = n + ? WHERE p = ?`, params: [types.Long.fromNumber(2), 1] };
  await client.batch([add, add, { ...add, params: [types.Long.fromNumber(5), 2] }], { prepare: true, counter: true });
  assert.deepEqual((await see(`SELECT p, n FROM ${n}`)).sort(), [
    [1, "4"],
    [2, "5"],
  ]);
  await client.execute(
    `BEGIN COUNTER BATCH UPDATE ${n} SET n = n + 1 WHERE p = 1; UPDATE ${n} SET n = n - 1 WHERE p = 2; APPLY BATCH`,
  );
  assert.deepEqual((await see(`SELECT p, n FROM ${n}`)).sort(), [
    [1, "5"],
    [2, "4"],
  ]);
  const insert = `INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x')`;
  await refused(
    client.batch([insert], { counter: true }),
    codes.invalid,
    /Cannot include non-counter statement in a counter batch/,
  );
  await refused(
    client.batch([`UPDATE ${n} SET n = n + 1 WHERE p = 1`], { logged: true }),
    codes.invalid,
    /Cannot include a counter statement in a logged batch/,
  );
  await refused(
    client.batch([`UPDATE ${n} SET n = n + 1 WHERE p = 1`, insert], { logged: false }),
    codes.invalid,
    /Counter and non-counter mutations cannot exist in the same batch|counter/i,
  );
});

test("a batch over several tables and many partitions", async () => {
  const other = await makeTable(client, "p int PRIMARY KEY, v int");
  const queries = Array.from({ length: 200 }, (_, i) => ({
    query: `INSERT INTO ${i % 2 ? other : t} (p, ${i % 2 ? "v" : "c"}) VALUES (?, ?)`,
    params: [i + 1000, i],
  }));
  await client.batch(queries, { prepare: true });
  assert.equal((await see(`SELECT p FROM ${other}`)).length, 100);
  assert.equal((await see(`SELECT p FROM ${t} WHERE p > 999 ALLOW FILTERING`)).length, 100);
});

test("a mistake in one statement writes nothing", async () => {
  await client.execute(`TRUNCATE ${t}`);
  await refused(
    client.batch([`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x')`, `INSERT INTO ${t} (p, v) VALUES (1, 'x')`], {}),
    codes.invalid,
  );
  await refused(client.batch([`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x')`, "INSERT nonsense"], {}), codes.syntaxError);
  await refused(
    client.batch([`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'x')`, `SELECT * FROM ${t}`], {}),
    codes.invalid,
    /only UPDATE, INSERT and DELETE/,
  );
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("unset values in a batch leave cells alone", async () => {
  await client.execute(`INSERT INTO ${t} (p, c, v) VALUES (7, 1, 'stays')`);
  await client.batch([{ query: `INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?)`, params: [7, 1, types.unset] }], { prepare: true });
  assert.deepEqual(await see(`SELECT v FROM ${t} WHERE p = 7`), [["stays"]]);
});
