// Lightweight transactions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, plain, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("conditions");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);
// Whether it was applied, and what it shows otherwise.
async function attempt(text, values) {
  const result = await client.execute(text, values, { prepare: values !== undefined });
  const { "[applied]": applied, ...rest } = plain(result.rows[0]);
  assert.equal(result.wasApplied(), applied);
  return applied ? true : rest;
}

test("INSERT IF NOT EXISTS shows the row that is there", async () => {
  const t = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)");
  assert.equal(await attempt(`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'first') IF NOT EXISTS`), true);
  assert.deepEqual(await attempt(`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'second') IF NOT EXISTS`), { p: 1, c: 1, v: "first" });
  assert.equal(await attempt(`INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?) IF NOT EXISTS`, [1, 2, "other"]), true);
  await run(`DELETE FROM ${t} WHERE p = 1 AND c = 1`);
  assert.equal(await attempt(`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 'again') IF NOT EXISTS`), true);
  assert.deepEqual(await see(`SELECT c, v FROM ${t}`), [
    [1, "again"],
    [2, "other"],
  ]);
});

test("UPDATE and DELETE IF EXISTS", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v text");
  assert.deepEqual(await attempt(`UPDATE ${t} SET v = 'x' WHERE p = 1 IF EXISTS`), {});
  assert.deepEqual(await attempt(`DELETE FROM ${t} WHERE p = 1 IF EXISTS`), {});
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
  await run(`INSERT INTO ${t} (p) VALUES (1)`);
  assert.equal(await attempt(`UPDATE ${t} SET v = 'x' WHERE p = 1 IF EXISTS`), true);
  assert.equal(await attempt(`DELETE v FROM ${t} WHERE p = 1 IF EXISTS`), true);
  assert.equal(await attempt(`DELETE FROM ${t} WHERE p = 1 IF EXISTS`), true);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("every comparison of a cell", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int, w text");
  await run(`INSERT INTO ${t} (p, v) VALUES (1, 5)`);
  const no = { v: 5 };
  for (const [condition, expected] of [
    ["v = 5", true],
    ["v = 6", no],
    ["v != 6", true],
    ["v != 5", no],
    ["v < 6", true],
    ["v < 5", no],
    ["v <= 5", true],
    ["v > 4", true],
    ["v > 5", no],
    ["v >= 5", true],
    ["v IN (1, 5)", true],
    ["v IN (1, 2)", no],
    ["v IN ()", no],
    ["v = null", no],
    ["v != null", true],
    ["w = null", true],
    ["w != null", { w: null }],
    ["w != 'x'", true],
    ["w IN (null, 'x')", true],
    ["v > 4 AND w = null", true],
    ["v > 4 AND w = 'x'", { v: 5, w: null }],
    ["w = 'a' AND v = 7", { w: null, v: 5 }],
    ["w < 'x'", { w: null }],
  ]) {
    assert.deepEqual(await attempt(`UPDATE ${t} SET v = 5 WHERE p = 1 IF ${condition}`), expected, condition);
  }
  assert.deepEqual(await attempt(`UPDATE ${t} SET v = ? WHERE p = ? IF v = ? AND w IN ?`, [6, 1, 5, ["x"]]), { v: 5, w: null });
  assert.equal(await attempt(`UPDATE ${t} SET v = ? WHERE p = ? IF v IN ?`, [6, 1, [5, 7]]), true);
  assert.equal(await attempt(`UPDATE ${t} SET v = 8 WHERE p = 1 IF w = ?`, [null]), true);
  assert.deepEqual(await attempt(`UPDATE ${t} SET v = 1 WHERE p = 2 IF v = 1`), {});
  assert.equal(await attempt(`UPDATE ${t} SET v = 1 WHERE p = 2 IF v = null`), true);
  assert.deepEqual(await see(`SELECT v FROM ${t} WHERE p IN (1, 2)`), [[8], [1]]);
});

test("conditions on collections, their elements, fields and tuples", async () => {
  await run("CREATE TYPE pair (a int, b text)");
  const t = await makeTable(
    client,
    "p int PRIMARY KEY, l list<int>, s set<int>, m map<text, int>, f frozen<list<int>>, u pair, fu frozen<pair>, tu tuple<int, int>",
  );
  await run(
    `INSERT INTO ${t} (p, l, s, m, f, u, fu, tu) VALUES (1, [1, 2], {3, 4}, {'a': 1}, [9], {a: 1, b: 'x'}, {a: 2}, (1, 2))`,
  );
  const holds = async (condition) => (await attempt(`UPDATE ${t} SET f = [9] WHERE p = 1 IF ${condition}`)) === true;
  for (const condition of [
    "l = [1, 2]",
    "l[0] = 1",
    "l[1] > 1",
    "l[5] = null",
    "s = {4, 3}",
    "s != {1}",
    "m = {'a': 1}",
    "m['a'] = 1",
    "m['a'] IN (1, 2)",
    "m['z'] = null",
    "f = [9]",
    "f > [8, 9]",
    "u.a = 1",
    "u.b != 'y'",
    "fu.a = 2",
    "u = {a: 1, b: 'x'}",
    "tu = (1, 2)",
    "l CONTAINS 2",
    "m CONTAINS KEY 'a'",
  ]) {
    assert.equal(await holds(condition), true, condition);
  }
  for (const condition of [
    "l = [2, 1]",
    "l[0] = 2",
    "s = {3}",
    "m['a'] = 2",
    "m['z'] = 1",
    "u.a > 1",
    "tu = (1, 3)",
    "f = null",
    "l CONTAINS 7",
  ]) {
    assert.equal(await holds(condition), false, condition);
  }
});

test("DELETE with a condition", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int");
  await run(`INSERT INTO ${t} (p, v) VALUES (1, 1)`);
  assert.deepEqual(await attempt(`DELETE FROM ${t} WHERE p = 1 IF v = 2`), { v: 1 });
  assert.equal(await attempt(`DELETE v FROM ${t} WHERE p = 1 IF v = 1`), true);
  assert.equal(await attempt(`DELETE FROM ${t} WHERE p = 1 IF v = null`), true);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("static columns decide for the partition", async () => {
  const t = await makeTable(client, "p int, c int, s int STATIC, v int, PRIMARY KEY (p, c)");
  assert.equal(await attempt(`INSERT INTO ${t} (p, s) VALUES (1, 1) IF NOT EXISTS`), true);
  assert.equal((await attempt(`INSERT INTO ${t} (p, s) VALUES (1, 2) IF NOT EXISTS`)).s, 1);
  assert.equal(await attempt(`UPDATE ${t} SET s = 2 WHERE p = 1 IF s = 1`), true);
  assert.deepEqual(await attempt(`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF s = 1`), { s: 2 });
  assert.equal(await attempt(`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF s = 2`), true);
  assert.equal(await attempt(`INSERT INTO ${t} (p, c, v) VALUES (1, 2, 1) IF NOT EXISTS`), true);
  assert.deepEqual(await see(`SELECT c, s, v FROM ${t}`), [
    [1, 2, 1],
    [2, 2, 1],
  ]);
});

test("of many at once exactly one is applied", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int");
  const inserts = await Promise.all(
    Array.from({ length: 20 }, (_, i) => attempt(`INSERT INTO ${t} (p, v) VALUES (1, ?) IF NOT EXISTS`, [i])),
  );
  assert.equal(inserts.filter((result) => result === true).length, 1);
  await run(`INSERT INTO ${t} (p, v) VALUES (2, 0)`);
  const add = async () => {
    for (;;) {
      const [[v]] = await rowsOf(client, `SELECT v FROM ${t} WHERE p = 2`, [], { consistency: types.consistencies.serial });
      if ((await attempt(`UPDATE ${t} SET v = ? WHERE p = 2 IF v = ?`, [v + 1, v])) === true) return;
    }
  };
  await Promise.all(Array.from({ length: 10 }, add));
  assert.deepEqual(await see(`SELECT v FROM ${t} WHERE p = 2`), [[10]]);
});

test("a conditional write is newer than what it saw, also than a write of the future", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v text");
  const future = (Date.now() + 10000) * 1000;
  await run(`INSERT INTO ${t} (p, v) VALUES (1, 'plain') USING TIMESTAMP ${future}`);
  assert.equal(await attempt(`UPDATE ${t} SET v = 'condition' WHERE p = 1 IF v = 'plain'`), true);
  assert.deepEqual(await see(`SELECT v, writetime(v) FROM ${t}`), [["condition", `${future + 1}`]]);
  await run(`UPDATE ${t} USING TIMESTAMP ${future + 2} SET v = 'after' WHERE p = 1`);
  assert.equal(await attempt(`UPDATE ${t} SET v = 'end' WHERE p = 1 IF v = 'after'`), true);
  assert.deepEqual(await see(`SELECT v FROM ${t}`), [["end"]]);
  await refused(client.execute(`UPDATE ${t} USING TIMESTAMP 5 SET v = 'x' WHERE p = 1 IF v = 'end'`), codes.invalid, /custom timestamp/);
});

test("batches with conditions are all or nothing", async () => {
  const t = await makeTable(client, "p int, c int, v int, s int STATIC, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 1)`);
  const batch = async (...queries) => {
    const result = await client.batch(queries, {});
    return result.wasApplied();
  };
  assert.equal(
    await batch(`UPDATE ${t} SET v = 2 WHERE p = 1 AND c = 1 IF v = 1`, `INSERT INTO ${t} (p, c, v) VALUES (1, 2, 2)`),
    true,
  );
  assert.equal(
    await batch(`UPDATE ${t} SET v = 3 WHERE p = 1 AND c = 1 IF v = 1`, `INSERT INTO ${t} (p, c, v) VALUES (1, 3, 3)`),
    false,
  );
  assert.equal(
    await batch(
      `INSERT INTO ${t} (p, c, v) VALUES (1, 2, 9) IF NOT EXISTS`,
      `UPDATE ${t} SET v = 9 WHERE p = 1 AND c = 1 IF v = 2`,
    ),
    false,
  );
  assert.equal(
    await batch(
      `INSERT INTO ${t} (p, c, v) VALUES (1, 4, 4) IF NOT EXISTS`,
      `DELETE FROM ${t} WHERE p = 1 AND c = 2 IF EXISTS`,
      `UPDATE ${t} SET s = 5 WHERE p = 1 IF s = null`,
    ),
    true,
  );
  assert.deepEqual(await see(`SELECT c, v, s FROM ${t}`), [
    [1, 2, 5],
    [4, 4, 5],
  ]);
  await refused(
    batch(`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF v = 1`, `UPDATE ${t} SET v = 1 WHERE p = 2 AND c = 1`),
    codes.invalid,
    /multiple partitions/,
  );
  const other = await makeTable(client, "p int PRIMARY KEY, v int");
  await refused(
    batch(`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF v = 1`, `UPDATE ${other} SET v = 1 WHERE p = 1`),
    codes.invalid,
    /multiple tables/,
  );
});

test("mistakes in conditions are told", async () => {
  const t = await makeTable(client, "p int, c int, v int, n list<int>, PRIMARY KEY (p, c)");
  for (const [text, message] of [
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF p = 1`, /PRIMARY KEY column 'p' cannot have IF conditions/],
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF z = 1`, /Undefined column name z/],
    [
      `UPDATE ${t} SET v = 1 WHERE p IN (1, 2) AND c = 1 IF v = 1`,
      /IN on the partition key is not supported with conditional updates/,
    ],
    [
      `UPDATE ${t} SET v = 1 WHERE p = 1 AND c IN (1, 2) IF v = 1`,
      /IN on the clustering key columns is not supported with conditional updates/,
    ],
    [`DELETE FROM ${t} WHERE p = 1 IF v = 1`, /./],
    [`DELETE FROM ${t} WHERE p = 1 AND c > 1 IF EXISTS`, /./],
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF v > null`, /null/],
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 IF v = 'x'`, /Invalid STRING constant/],
  ]) {
    const error = await refused(client.execute(text), codes.invalid).catch((e) => assert.fail(`${text}: ${e.message}`));
    assert.match(error.message, message, text);
  }
});
