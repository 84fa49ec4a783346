// What a SELECT can compute: aggregates, groups, functions, casts, arithmetic, JSON.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
let one; // a table of one row
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("functions");
  one = await makeTable(
    client,
    "p int PRIMARY KEY, i int, b bigint, f double, x decimal, t text, ts timestamp, d date, u timeuuid, l list<int>, m map<text, int>, bl blob",
  );
  await client.execute(
    `INSERT INTO ${one} (p, i, b, f, x, t, ts, d, u, l, m, bl) VALUES (1, 7, 10, 2.5, 1.10, 'text', '2020-02-03T04:05:06.007Z', '2020-02-03',
     50554d6e-29bb-11e5-b345-feff819cdc9f, [1, 2], {'a': 1}, 0x00000007)`,
  );
});
after(() => server?.remove());

const see = (text, values) => rowsOf(client, text, values);
const value = async (expression) => (await see(`SELECT ${expression} FROM ${one}`))[0][0];

test("aggregates", async () => {
  const t = await makeTable(client, "p int, c int, v int, d decimal, w text, PRIMARY KEY (p, c)");
  for (let i = 0; i < 10; i += 1)
    await client.execute(`INSERT INTO ${t} (p, c, v, d, w) VALUES (${i % 2}, ${i}, ${i === 9 ? "null" : i}, ${i}.5, 'w${i}')`);
  assert.deepEqual(await see(`SELECT count(*), count(1) AS ones, count(v), sum(v), min(v), max(v), avg(v) FROM ${t}`), [
    ["10", "10", "9", 36, 0, 8, 4],
  ]);
  assert.deepEqual(await see(`SELECT sum(d), min(w), max(w) FROM ${t}`), [["50.0", "w0", "w9"]]);
  assert.deepEqual(await see(`SELECT count(*), max(c) FROM ${t} WHERE p = 1 AND c > 3`), [["3", 9]]);
  assert.deepEqual(await see(`SELECT count(*), sum(v), min(v) FROM ${t} WHERE p = 5`), [["0", 0, null]]);
  const { columns } = await client.execute(`SELECT count(*), COUNT(v) AS n, max(v) FROM ${t}`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["count", "n", "system.max(v)"],
  );
  assert.deepEqual((await client.execute(`SELECT count(*) FROM ${t}`, [], { fetchSize: 2 })).rows[0].count.toString(), "10");
});

test("groups", async () => {
  const t = await makeTable(client, "p int, c int, d int, v int, PRIMARY KEY (p, c, d)");
  for (let i = 0; i < 16; i += 1)
    await client.execute(`INSERT INTO ${t} (p, c, d, v) VALUES (${i & 1}, ${(i >> 1) & 1}, ${i >> 2}, ${i})`);
  assert.deepEqual((await see(`SELECT p, sum(v) FROM ${t} GROUP BY p`)).sort(), [
    [0, 56],
    [1, 64],
  ]);
  assert.deepEqual(await see(`SELECT c, count(*), max(v) FROM ${t} WHERE p = 1 GROUP BY c`), [
    [0, "4", 13],
    [1, "4", 15],
  ]);
  assert.deepEqual(await see(`SELECT p, c, d FROM ${t} WHERE p = 0 GROUP BY p, c`), [
    [0, 0, 0],
    [0, 1, 0],
  ]);
  assert.equal((await see(`SELECT p, c, count(*) FROM ${t} GROUP BY p, c`)).length, 4);
  assert.equal((await see(`SELECT p, c, count(*) FROM ${t} GROUP BY p, c LIMIT 3`)).length, 3);
  assert.deepEqual((await see(`SELECT p, c, count(*) FROM ${t} GROUP BY p, c PER PARTITION LIMIT 1`)).sort(), [
    [0, 0, "4"],
    [1, 0, "4"],
  ]);
  await refused(
    client.execute(`SELECT v, count(*) FROM ${t} GROUP BY v`),
    codes.invalid,
    /Group by is currently only supported on the columns of the PRIMARY KEY/,
  );
  await refused(client.execute(`SELECT p FROM ${t} GROUP BY c`), codes.invalid);
});

test("arithmetic", async () => {
  for (const [expression, expected] of [
    ["i + 1", 8],
    ["i - 10", -3],
    ["i * 2 + 1", 15],
    ["i / 2", 3],
    ["i % 4", 3],
    ["-i", -7],
    ["(i + 1) * 2", 16],
    ["f * 2", 5],
    ["b + i", "17"],
    ["x + x", "2.20"],
    ["d + 1d", "2020-02-04"],
    ["ts - 1h", "2020-02-03T03:05:06.007Z"],
  ]) {
    assert.deepEqual(await value(expression), expected, expression);
  }
  await assert.rejects(client.execute(`SELECT i / 0 FROM ${one}`), /the operation 'int \/ int' failed: \/ by zero/);
});

test("arithmetic in writes", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int, b bigint");
  await client.execute(`INSERT INTO ${t} (p, v, b) VALUES (1 + 1, 2 * 3, (bigint)? + 1)`, [types.Long.fromNumber(4)], {
    prepare: true,
  });
  assert.deepEqual(await see(`SELECT p, v, b FROM ${t}`), [[2, 6, "5"]]);
  await refused(
    client.execute(`INSERT INTO ${t} (p, v) VALUES (1, ? + 1)`, [1], { prepare: true }),
    codes.invalid,
    /Ambiguous '\+' operation/,
  );
});

test("casts", async () => {
  for (const [expression, expected] of [
    ["CAST(i AS text)", "7"],
    ["CAST(i AS double)", 7],
    ["CAST(f AS int)", 2],
    ["CAST(b AS smallint)", 10],
    ["CAST(ts AS date)", "2020-02-03"],
    ["CAST(u AS timestamp)", "2015-07-14T00:46:17.310Z"],
    ["CAST(x AS text)", "1.10"],
    ["CAST(i AS decimal)", "7"],
  ]) {
    const result = await value(expression);
    if (expression.startsWith("CAST(u")) assert.match(result, /^2015-07-1/);
    else assert.deepEqual(result, expected, expression);
  }
  await refused(client.execute(`SELECT CAST(t AS int) FROM ${one}`), codes.invalid);
});

test("functions", async () => {
  for (const [expression, expected] of [
    ["blobasint(bl)", 7],
    ["intasblob(i)", "0x00000007"],
    ["textAsBlob(t)", "0x74657874"],
    ["blobAsText(textAsBlob(t))", "text"],
    ["bigintAsBlob(b)", "0x000000000000000a"],
    ["toDate(ts)", "2020-02-03"],
    ["to_date(u)", "2015-07-14"],
    ["toUnixTimestamp(ts)", "1580702706007"],
    ["tounixtimestamp(d)", "1580688000000"],
    ["toTimestamp(d)", "2020-02-03T00:00:00.000Z"],
    ["toJson(l)", "[1, 2]"],
    ["toJson(m)", '{"a": 1}'],
    ["abs(-5)", 5],
    ["round(f)", 3],
    ["token(p)", "-4069959284402364209"],
  ]) {
    const result = await value(expression);
    if (expression.includes("to_date(u)")) assert.match(result, /^2015-07-1/);
    else assert.deepEqual(result, expected, expression);
  }
  const made = await client.execute(
    `SELECT now(), uuid(), currentTimestamp(), currentDate(), currentTimeUUID(), minTimeuuid('2020-01-01'), maxTimeuuid(ts) FROM ${one}`,
  );
  const [now, uuid, time] = made.rows[0].values();
  assert.ok(now instanceof types.TimeUuid && Math.abs(now.getDate() - Date.now()) < 60000);
  assert.ok(uuid instanceof types.Uuid);
  assert.ok(Math.abs(time - Date.now()) < 60000);
  await refused(client.execute(`SELECT nothing(i) FROM ${one}`), codes.invalid, /Unknown function/);
  await refused(client.execute(`SELECT intasblob(t) FROM ${one}`), codes.invalid, /Type error/);
});

test("functions in WHERE and VALUES", async () => {
  const t = await makeTable(client, "p int, c timeuuid, v timestamp, PRIMARY KEY (p, c)");
  await client.execute(`INSERT INTO ${t} (p, c, v) VALUES (1, now(), toTimestamp(now()))`);
  assert.equal(
    (await see(`SELECT * FROM ${t} WHERE p = 1 AND c > minTimeuuid('2020-01-01') AND c < maxTimeuuid('2100-01-01')`)).length,
    1,
  );
  assert.equal((await see(`SELECT * FROM ${t} WHERE p = 1 AND c < minTimeuuid(?)`, [new Date("2020-01-01")])).length, 0);
  const j = await makeTable(client, "p int PRIMARY KEY, l list<int>");
  await client.execute(`INSERT INTO ${j} (p, l) VALUES (1, fromJson('[1, 2]'))`);
  assert.deepEqual(await see(`SELECT l FROM ${j}`), [[[1, 2]]]);
});

test("writetime", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v int, m map<int, int>, f frozen<list<int>>");
  await client.execute(`INSERT INTO ${t} (p, v, f) VALUES (1, 1, [1]) USING TIMESTAMP 1234`);
  assert.deepEqual(await see(`SELECT writetime(v), writetime(f), WRITETIME(v) AS w FROM ${t}`), [["1234", "1234", "1234"]]);
  await refused(client.execute(`SELECT writetime(p) FROM ${t}`), codes.invalid, /PRIMARY KEY part p/);
});

test("SELECT JSON", async () => {
  const rows = await see(`SELECT JSON p, x, t, ts, l, m, bl, u AS "Mixed" FROM ${one}`);
  assert.deepEqual(JSON.parse(rows[0][0]), {
    p: 1,
    x: 1.1,
    t: "text",
    ts: "2020-02-03 04:05:06.007Z",
    l: [1, 2],
    m: { a: 1 },
    bl: "0x00000007",
    '"Mixed"': "50554d6e-29bb-11e5-b345-feff819cdc9f",
  });
  const { columns } = await client.execute(`SELECT JSON * FROM ${one}`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["[json]"],
  );
  assert.deepEqual(await see(`SELECT JSON count(*) FROM ${one}`), [['{"count": 1}']]);
});

test("a marker or a literal as a column needs a type", async () => {
  assert.deepEqual(await see(`SELECT (int)5, (text)'x', p FROM ${one}`), [[5, "x", 1]]);
  await refused(client.execute(`SELECT ? FROM ${one}`, [1], { prepare: true }), codes.invalid);
});
