// Time to live: of cells, of rows, of a table.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, reconnected, refused, rowsOf, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("expiry");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);
const gone = (what, text) => until(what, async () => (await see(text)).length === 0);

test("cells, rows, elements and static cells vanish at their time", async () => {
  const t = await makeTable(client, "p int, c int, a text, b text, s text STATIC, m map<text, int>, PRIMARY KEY (p, c)");
  await run(
    `INSERT INTO ${t} (p, c, a) VALUES (1, 1, 'row') USING TTL 1`,
    `INSERT INTO ${t} (p, c, a, b) VALUES (2, 1, 'a', 'stays')`,
    `UPDATE ${t} USING TTL 1 SET a = 'cell' WHERE p = 2 AND c = 1`,
    `UPDATE ${t} USING TTL 1 SET a = 'only' WHERE p = 3 AND c = 1`,
    `UPDATE ${t} USING TTL 1 SET s = 'static' WHERE p = 4`,
    `UPDATE ${t} SET m['stays'] = 1 WHERE p = 5 AND c = 1`,
    `UPDATE ${t} USING TTL 1 SET m['goes'] = 2 WHERE p = 5 AND c = 1`,
    `INSERT INTO ${t} (p, c, a) VALUES (6, 1, 'x') USING TTL 1`,
    `UPDATE ${t} SET b = 'kept by this' WHERE p = 6 AND c = 1`,
  );
  for (const p of [1, 3, 4]) await gone(`${p} is gone`, `SELECT * FROM ${t} WHERE p = ${p}`);
  await until("cells are gone", async () => (await see(`SELECT a FROM ${t} WHERE p = 2`))[0][0] === null);
  assert.deepEqual(await see(`SELECT a, b FROM ${t} WHERE p = 2`), [[null, "stays"]]);
  await until("the element is gone", async () => !("goes" in (await see(`SELECT m FROM ${t} WHERE p = 5`))[0][0]));
  assert.deepEqual(await see(`SELECT m FROM ${t} WHERE p = 5`), [[{ stays: 1 }]]);
  assert.deepEqual(await see(`SELECT a, b FROM ${t} WHERE p = 6`), [[null, "kept by this"]]);
  assert.equal((await see(`SELECT p FROM ${t}`)).length, 3);
});

test("ttl() tells the rest", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text, b text");
  await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'x') USING TTL ?`, [1000], { prepare: true });
  await run(`UPDATE ${t} SET b = 'y' WHERE p = 1`);
  const [[a, b]] = await see(`SELECT ttl(a), ttl(b) FROM ${t}`);
  assert.ok(a > 900 && a <= 1000, `${a}`);
  assert.equal(b, null);
  await run(`UPDATE ${t} USING TTL 0 SET a = 'for ever' WHERE p = 1`);
  assert.deepEqual(await see(`SELECT ttl(a) FROM ${t}`), [[null]]);
});

test("the time of the table is the default, and 0 means none", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text", "WITH default_time_to_live = 1");
  await run(
    `INSERT INTO ${t} (p, a) VALUES (1, 'x')`,
    `INSERT INTO ${t} (p, a) VALUES (2, 'x') USING TTL 0`,
    `INSERT INTO ${t} (p, a) VALUES (3, 'x') USING TTL 500`,
  );
  await gone("the default's row is gone", `SELECT * FROM ${t} WHERE p = 1`);
  assert.deepEqual((await see(`SELECT p FROM ${t}`)).flat().sort(), [2, 3]);
  await run(`ALTER TABLE ${t} WITH default_time_to_live = 1000`, `INSERT INTO ${t} (p, a) VALUES (4, 'x')`);
  const [[rest]] = await see(`SELECT ttl(a) FROM ${t} WHERE p = 4`);
  assert.ok(rest > 900 && rest <= 1000, `${rest}`);
});

test("a write without TTL makes a row last, one with TTL does not", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 'x') USING TTL 1`, `INSERT INTO ${t} (p, a) VALUES (1, 'y')`);
  await run(`INSERT INTO ${t} (p, a) VALUES (2, 'x')`, `INSERT INTO ${t} (p, a) VALUES (2, 'y') USING TTL 1`);
  await gone("the second is gone", `SELECT * FROM ${t} WHERE p = 2`);
  assert.deepEqual(await see(`SELECT a FROM ${t} WHERE p = 1`), [["y"]]);
  assert.deepEqual(await see(`SELECT count(*) FROM ${t}`), [["1"]]);
});

test("an expired row does not exist for conditions", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 'x') IF NOT EXISTS USING TTL 1`);
  assert.equal((await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'y') IF NOT EXISTS`)).wasApplied(), false);
  await until("it can be inserted again", async () =>
    (await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'y') IF NOT EXISTS`)).wasApplied(),
  );
  assert.deepEqual(await see(`SELECT a, ttl(a) FROM ${t}`), [["y", null]]);
});

test("a batch has a TTL in its statements", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(
    `BEGIN BATCH INSERT INTO ${t} (p, a) VALUES (1, 'x') USING TTL 1; INSERT INTO ${t} (p, a) VALUES (2, 'x'); APPLY BATCH`,
  );
  await gone("the first is gone", `SELECT * FROM ${t} WHERE p = 1`);
  assert.equal((await see(`SELECT * FROM ${t}`)).length, 1);
});

test("time goes on over a restart", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 'x') USING TTL 2`, `INSERT INTO ${t} (p, a) VALUES (2, 'x')`);
  await server.restart();
  await reconnected(client);
  await gone("it is gone", `SELECT * FROM expiry.${t} WHERE p = 1`);
  assert.equal((await see(`SELECT * FROM expiry.${t}`)).length, 1);
});

test("a TTL that is none is refused", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await refused(client.execute(`UPDATE ${t} USING TTL -5 SET a = 'x' WHERE p = 1`), codes.invalid, /greater or equal to 0/);
  await refused(client.execute(`UPDATE ${t} USING TTL 630720001 SET a = 'x' WHERE p = 1`), codes.invalid, /too large/);
  await refused(client.execute(`SELECT ttl(p) FROM ${t}`), codes.invalid, /PRIMARY KEY part p/);
});
