// SELECT: which rows, in which order, how many.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf } from "./server.mjs";

let server;
let client;
let t; // two partitions of 3 x 3 rows
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("selects");
  t = await makeTable(client, "p int, c int, d int, v int, s text STATIC, PRIMARY KEY (p, c, d)");
  for (const p of [1, 2]) {
    const queries = [{ query: `INSERT INTO ${t} (p, s) VALUES (?, ?)`, params: [p, `s${p}`] }];
    for (const c of [0, 1, 2]) {
      for (const d of [0, 1, 2])
        queries.push({ query: `INSERT INTO ${t} (p, c, d, v) VALUES (?, ?, ?, ?)`, params: [p, c, d, c * 10 + d] });
    }
    await client.batch(queries, { prepare: true });
  }
});
after(() => server?.remove());

const see = (text, values) => rowsOf(client, text, values);
const found = async (where, rest = "") =>
  (await see(`SELECT c, d FROM ${t} WHERE ${where} ${rest}`)).map((row) => row.join("")).join(" ");
const all = "00 01 02 10 11 12 20 21 22";

test("slices of the clustering key", async () => {
  for (const [where, expected] of [
    ["p = 1", all],
    ["p = 1 AND c = 1", "10 11 12"],
    ["p = 1 AND c > 0", "10 11 12 20 21 22"],
    ["p = 1 AND c >= 1 AND c < 2", "10 11 12"],
    ["p = 1 AND c = 1 AND d = 2", "12"],
    ["p = 1 AND c = 1 AND d >= 1", "11 12"],
    ["p = 1 AND c = 1 AND d > 0 AND d <= 1", "11"],
    ["p = 1 AND c > 5", ""],
    ["p = 1 AND c > 1 AND c < 1", ""],
    ["p = 3", ""],
  ]) {
    assert.equal(await found(where), expected, where);
    assert.equal(await found(where, "ORDER BY c DESC, d DESC"), expected.split(" ").reverse().join(" "), `${where}, reversed`);
  }
});

test("slices of several columns", async () => {
  for (const [where, expected] of [
    ["(c, d) > (1, 1)", "12 20 21 22"],
    ["(c, d) >= (1, 1) AND (c, d) < (2, 1)", "11 12 20"],
    ["(c, d) <= (0, 2)", "00 01 02"],
    ["(c) > (1)", "20 21 22"],
    ["(c, d) = (1, 2)", "12"],
    ["(c, d) IN ((2, 0), (0, 1), (5, 5))", "01 20"],
    ["c = 1 AND (d) >= (1)", "11 12"],
  ]) {
    assert.equal(await found(`p = 1 AND ${where}`), expected, where);
  }
  const rows = await see(`SELECT c, d FROM ${t} WHERE p = ? AND (c, d) > (?, ?)`, [1, 2, 0]);
  assert.deepEqual(rows, [
    [2, 1],
    [2, 2],
  ]);
});

test("IN, for partitions and rows", async () => {
  assert.equal(await found("p = 1 AND c IN (2, 0, 2)"), "00 01 02 20 21 22");
  assert.equal(await found("p = 1 AND c IN (1, 2) AND d IN (0, 2)"), "10 12 20 22");
  assert.equal(await found("p = 1 AND c IN ()"), "");
  assert.deepEqual(await see(`SELECT p, c FROM ${t} WHERE p IN (2, 1, 7) AND c = 0 AND d = 0`), [
    [1, 0],
    [2, 0],
  ]);
  assert.deepEqual(await see(`SELECT p, d FROM ${t} WHERE p IN ? AND c = ? AND d IN ?`, [[1, 2], 0, [1]]), [
    [1, 1],
    [2, 1],
  ]);
  const both = await client.execute(`SELECT p, c, d FROM ${t} WHERE p IN (1, 2) ORDER BY c DESC, d DESC LIMIT 4`, [], {
    fetchSize: 0,
  });
  assert.deepEqual(
    both.rows.map(({ c, d }) => [c, d]),
    [
      [2, 2],
      [2, 2],
      [2, 1],
      [2, 1],
    ],
  );
});

test("token ranges go over all partitions once", async () => {
  const w = await makeTable(client, "p int PRIMARY KEY, v int");
  await Promise.all(
    Array.from({ length: 100 }, (_, i) => client.execute(`INSERT INTO ${w} (p, v) VALUES (?, 0)`, [i], { prepare: true })),
  );
  const tokens = (await see(`SELECT token(p), p FROM ${w}`)).map(([token, p]) => [BigInt(token), p]);
  const sorted = [...tokens].sort(([a], [b]) => (a < b ? -1 : 1));
  assert.deepEqual(tokens, sorted, "a scan is in the order of tokens");
  const seen = [];
  const min = -(2n ** 63n);
  for (let from = min, i = 1; i <= 8; i += 1) {
    const to = i === 8 ? 2n ** 63n - 1n : min + 2n ** 61n * BigInt(i);
    seen.push(...(await see(`SELECT p FROM ${w} WHERE token(p) > ${from} AND token(p) <= ${to}`)).flat());
    from = to;
  }
  assert.deepEqual(
    seen,
    tokens.map(([, p]) => p),
  );
  const [[token]] = await see(`SELECT token(p) FROM ${w} WHERE p = 7`);
  assert.deepEqual(await see(`SELECT p FROM ${w} WHERE token(p) = ${token}`), [[7]]);
  assert.deepEqual(await see(`SELECT p FROM ${w} WHERE token(p) = token(7)`), [[7]]);
  assert.equal((await see(`SELECT p FROM ${w} WHERE token(p) >= token(?)`, [7]))[0][0], 7);
});

test("LIMIT, PER PARTITION LIMIT and DISTINCT", async () => {
  assert.equal(await found("p = 1", "LIMIT 2"), "00 01");
  assert.equal((await see(`SELECT c FROM ${t} LIMIT ?`, [12])).length, 12);
  assert.deepEqual(await see(`SELECT p, c, d FROM ${t} WHERE p IN (1, 2) PER PARTITION LIMIT 2`), [
    [1, 0, 0],
    [1, 0, 1],
    [2, 0, 0],
    [2, 0, 1],
  ]);
  assert.equal((await see(`SELECT p FROM ${t} PER PARTITION LIMIT 4 LIMIT 6`)).length, 6);
  assert.deepEqual((await see(`SELECT DISTINCT p, s FROM ${t}`)).sort(), [
    [1, "s1"],
    [2, "s2"],
  ]);
  assert.deepEqual(await see(`SELECT DISTINCT p FROM ${t} WHERE p IN (1, 5)`), [[1]]);
  assert.equal((await see(`SELECT DISTINCT p FROM ${t} LIMIT 1`)).length, 1);
  for (const text of ["LIMIT 0", "LIMIT -1", "PER PARTITION LIMIT 0"]) {
    await refused(client.execute(`SELECT * FROM ${t} ${text}`), codes.invalid, /strictly positive/);
  }
  await refused(client.execute(`SELECT DISTINCT c FROM ${t}`), codes.invalid, /DISTINCT/);
});

test("the table's own order can be turned round", async () => {
  const w = await makeTable(client, "p int, c int, d text, PRIMARY KEY (p, c, d)", "WITH CLUSTERING ORDER BY (c DESC, d ASC)");
  for (const [c, d] of [
    [1, "a"],
    [1, "b"],
    [2, "a"],
    [3, "a"],
    [3, "b"],
  ])
    await client.execute(`INSERT INTO ${w} (p, c, d) VALUES (0, ${c}, '${d}')`);
  const order = async (rest) => (await see(`SELECT c, d FROM ${w} WHERE p = 0 ${rest}`)).map((row) => row.join("")).join(" ");
  assert.equal(await order(""), "3a 3b 2a 1a 1b");
  assert.equal(await order("ORDER BY c ASC"), "1b 1a 2a 3b 3a");
  assert.equal(await order("ORDER BY c DESC, d ASC"), "3a 3b 2a 1a 1b");
  assert.equal(await order("AND c <= 2 LIMIT 2"), "2a 1a");
  assert.equal(await order("AND c >= 2 ORDER BY c ASC, d DESC"), "2a 3b 3a");
  await refused(
    client.execute(`SELECT * FROM ${w} WHERE p = 0 ORDER BY c ASC, d ASC`),
    codes.invalid,
    /Unsupported order by relation/,
  );
  await refused(client.execute(`SELECT * FROM ${w} WHERE p = 0 ORDER BY d ASC`), codes.invalid);
  await refused(
    client.execute(`SELECT * FROM ${w} ORDER BY c ASC`),
    codes.invalid,
    /ORDER BY is only supported when the partition key is restricted/,
  );
});

test("columns, names and wildcards", async () => {
  const { columns, rows } = await client.execute(`SELECT v AS value, p, v FROM ${t} WHERE p = 1 LIMIT 1`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["value", "p", "v"],
  );
  assert.deepEqual(rows[0].values(), [0, 1, 0]);
  const star = await client.execute(`SELECT * FROM ${t} WHERE p = 1 LIMIT 1`);
  assert.deepEqual(
    star.columns.map(({ name }) => name),
    ["p", "c", "d", "s", "v"],
  );
});

test("ALLOW FILTERING finds by any column", async () => {
  const w = await makeTable(
    client,
    "p int, c int, a int, l list<text>, m map<text, int>, f frozen<set<int>>, u text, PRIMARY KEY (p, c)",
  );
  for (let i = 0; i < 10; i += 1) {
    await client.execute(
      `INSERT INTO ${w} (p, c, a, l, m, f, u) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      [i % 2, i, i * i, [`x${i % 3}`, "all"], { [`k${i}`]: i }, [i, 100], i > 5 ? `late ${i}` : null],
      { prepare: true },
    );
  }
  const by = async (where) =>
    (await see(`SELECT c FROM ${w} WHERE ${where} ALLOW FILTERING`))
      .flat()
      .sort((x, y) => x - y)
      .join(" ");
  assert.equal(await by("a = 9"), "3");
  assert.equal(await by("a > 16 AND a < 60"), "5 6 7");
  assert.equal(await by("a IN (1, 4, 5)"), "1 2");
  assert.equal(await by("p = 1 AND a >= 9"), "3 5 7 9");
  assert.equal(await by("c = 4"), "4");
  assert.equal(await by("c > 7"), "8 9");
  assert.equal(await by("l CONTAINS 'x1'"), "1 4 7");
  assert.equal(await by("l CONTAINS 'x1' AND p = 1"), "1 7");
  assert.equal(await by("m CONTAINS KEY 'k3'"), "3");
  assert.equal(await by("m CONTAINS 5"), "5");
  assert.equal(await by("m['k8'] = 8"), "8");
  assert.equal(await by("f CONTAINS 4"), "4");
  assert.equal(await by("f = {5, 100}"), "5");
  assert.equal(await by("u > 'late 7'"), "8 9");
  assert.deepEqual(await see(`SELECT c FROM ${w} WHERE l CONTAINS ? AND a = ? ALLOW FILTERING`, ["all", 49]), [[7]]);
  assert.equal((await see(`SELECT c FROM ${w} WHERE a > 3 LIMIT 3 ALLOW FILTERING`)).length, 3);
  for (const where of ["a = 1", "c = 1", "p = 1 AND a = 1", "l CONTAINS 'x1'"]) {
    await refused(client.execute(`SELECT * FROM ${w} WHERE ${where}`), codes.invalid, /ALLOW FILTERING/);
  }
});

test("static columns with and without rows", async () => {
  const w = await makeTable(client, "p int, c int, s int STATIC, v int, PRIMARY KEY (p, c)");
  await client.execute(`INSERT INTO ${w} (p, s) VALUES (1, 5)`);
  await client.execute(`INSERT INTO ${w} (p, c, v) VALUES (2, 1, 1)`);
  assert.deepEqual((await see(`SELECT p, c, s, v FROM ${w}`)).sort(), [
    [1, null, 5, null],
    [2, 1, null, 1],
  ]);
  assert.deepEqual(await see(`SELECT s FROM ${w} WHERE p = 1`), [[5]]);
  assert.deepEqual((await see(`SELECT DISTINCT p, s FROM ${w}`)).sort(), [
    [1, 5],
    [2, null],
  ]);
  assert.deepEqual(await see(`SELECT p FROM ${w} WHERE p = 1 AND c > 0`), []);
});

test("mistakes in WHERE are told", async () => {
  for (const [where, message] of [
    ["p = 1 AND d = 1", /cannot be restricted as preceding column "c" is not restricted|ALLOW FILTERING/],
    ["p = 1 AND c > 1 AND d = 1", /cannot be restricted|ALLOW FILTERING/],
    ["p > 1", /ALLOW FILTERING|Only EQ and IN relation/],
    ["p = 1 AND p = 2", /more than one relation/],
    ["p = 1 AND c > 1 AND c > 2", /More than one restriction/],
    ["z = 1", /Undefined column name z/],
    ["p = 'x'", /Invalid STRING constant/],
    ["token(c) > 1", /token function|partition key/],
    ["p = 1 AND (d, c) > (1, 1)", /PRIMARY KEY order|Clustering columns/],
    ["p = 1 AND (v) > (1)", /Multi-column relations/],
    ["v CONTAINS 1", /CONTAINS/],
    ["p = 1 AND c = null", /null/i],
  ]) {
    const error = await refused(client.execute(`SELECT * FROM ${t} WHERE ${where}`), codes.invalid).catch((e) =>
      assert.fail(`${where}: ${e.message}`),
    );
    assert.match(error.message, message, where);
  }
});
