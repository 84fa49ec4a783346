// INSERT, UPDATE and DELETE: which write wins, what is deleted, what null and unset mean.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("writes");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);

test("INSERT and UPDATE both write; the cells that are not named stay", async () => {
  const t = await makeTable(client, "p int, c int, a text, b text, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, c, a, b) VALUES (1, 1, 'a', 'b')`, `INSERT INTO ${t} (p, c, b) VALUES (1, 1, 'B')`);
  await run(`UPDATE ${t} SET a = 'u' WHERE p = 1 AND c = 2`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [
    [1, 1, "a", "B"],
    [1, 2, "u", null],
  ]);
});

test("null deletes a cell, unset leaves it", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text, b text");
  await run(`INSERT INTO ${t} (p, a, b) VALUES (1, 'a', 'b')`);
  const insert = `INSERT INTO ${t} (p, a, b) VALUES (?, ?, ?)`;
  await client.execute(insert, [1, types.unset, null], { prepare: true });
  assert.deepEqual(await see(`SELECT a, b FROM ${t}`), [["a", null]]);
  await client.execute(`UPDATE ${t} SET a = ?, b = ? WHERE p = ?`, [undefined, "new", 1], {
    prepare: true,
    encoding: { useUndefinedAsUnset: true },
  });
  await refused(client.execute(insert, [types.unset, "x", "y"], { prepare: true }), codes.invalid, /unset/);
  await refused(client.execute(insert, [null, "x", "y"], { prepare: true }), codes.invalid, /null/);
});

test("a row that was inserted stays without cells, one of updates goes with its last cell", async () => {
  const t = await makeTable(client, "p int, c int, a int, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, c, a) VALUES (1, 1, 1)`, `UPDATE ${t} SET a = 1 WHERE p = 1 AND c = 2`);
  await run(`DELETE a FROM ${t} WHERE p = 1 AND c = 1`, `UPDATE ${t} SET a = null WHERE p = 1 AND c = 2`);
  assert.deepEqual(await see(`SELECT c, a FROM ${t}`), [[1, null]]);
});

test("the newest timestamp wins, whatever came last", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text, b text");
  await run(`INSERT INTO ${t} (p, a) VALUES (1, 'new') USING TIMESTAMP 2000`);
  await run(`INSERT INTO ${t} (p, a, b) VALUES (1, 'old', 'only') USING TIMESTAMP 1000`);
  assert.deepEqual(await see(`SELECT a, b, writetime(a), writetime(b) FROM ${t}`), [["new", "only", "2000", "1000"]]);
  await run(`UPDATE ${t} USING TIMESTAMP 1999 SET a = 'older' WHERE p = 1`);
  await run(`DELETE a FROM ${t} USING TIMESTAMP 1500 WHERE p = 1`);
  assert.deepEqual(await see(`SELECT a FROM ${t}`), [["new"]]);
  await run(`DELETE FROM ${t} USING TIMESTAMP 1500 WHERE p = 1`);
  assert.deepEqual(await see(`SELECT a, b FROM ${t}`), [["new", null]]);
  await run(
    `DELETE FROM ${t} USING TIMESTAMP 3000 WHERE p = 1`,
    `INSERT INTO ${t} (p, a) VALUES (1, 'late') USING TIMESTAMP 2500`,
  );
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("at one timestamp a delete wins over a value, and the larger value over the smaller", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text, b int");
  for (const [first, second] of [
    ["x", "y"],
    ["y", "x"],
  ]) {
    await run(`DELETE FROM ${t} USING TIMESTAMP 1 WHERE p = 1`);
    await run(
      `INSERT INTO ${t} (p, a) VALUES (1, '${first}') USING TIMESTAMP 50`,
      `INSERT INTO ${t} (p, a) VALUES (1, '${second}') USING TIMESTAMP 50`,
    );
    assert.deepEqual(await see(`SELECT a FROM ${t} WHERE p = 1`), [["y"]]);
  }
  await run(`UPDATE ${t} USING TIMESTAMP 50 SET a = null WHERE p = 1`);
  assert.deepEqual(await see(`SELECT a FROM ${t} WHERE p = 1`), [[null]]);
  await run(`UPDATE ${t} USING TIMESTAMP 60 SET b = 1 WHERE p = 2`, `DELETE FROM ${t} USING TIMESTAMP 60 WHERE p = 2`);
  await run(`DELETE FROM ${t} USING TIMESTAMP 60 WHERE p = 3`, `UPDATE ${t} USING TIMESTAMP 60 SET b = 1 WHERE p = 3`);
  assert.deepEqual(await see(`SELECT p FROM ${t} WHERE p IN (2, 3)`), []);
});

test("the driver's own timestamp is taken", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, a text");
  await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'x')`, [], { timestamp: types.Long.fromNumber(5000) });
  await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'y')`, [], { timestamp: types.Long.fromNumber(4000) });
  assert.deepEqual(await see(`SELECT a, writetime(a) FROM ${t}`), [["x", "5000"]]);
  await client.execute(`INSERT INTO ${t} (p, a) VALUES (1, 'z') USING TIMESTAMP ?`, [6000], { prepare: true });
  assert.deepEqual(await see(`SELECT a, writetime(a) FROM ${t}`), [["z", "6000"]]);
});

test("deletes of a row, a range, a prefix, several rows and a partition", async () => {
  const t = await makeTable(client, "p int, c int, d int, v int, PRIMARY KEY (p, c, d)");
  const fill = async () => {
    await client.batch(
      [0, 1, 2, 3].flatMap((c) =>
        [0, 1].map((d) => ({ query: `INSERT INTO ${t} (p, c, d, v) VALUES (1, ?, ?, 0)`, params: [c, d] })),
      ),
      { prepare: true },
    );
  };
  const left = async () => (await see(`SELECT c, d FROM ${t} WHERE p = 1`)).map(([c, d]) => `${c}${d}`).join(" ");
  const deletes = [
    ["c = 1 AND d = 0", "00 01 11 20 21 30 31"],
    ["c = 1", "00 01 20 21 30 31"],
    ["c > 1", "00 01 10 11"],
    ["c >= 1 AND c < 3", "00 01 30 31"],
    ["c = 2 AND d < 1", "00 01 10 11 21 30 31"],
    ["(c, d) > (1, 0) AND (c, d) <= (3, 0)", "00 01 10 31"],
    ["c IN (0, 2)", "10 11 30 31"],
    ["c = 3 AND d IN (0, 1)", "00 01 10 11 20 21"],
    ["c IN (0, 1) AND d = 1", "00 10 20 21 30 31"],
  ];
  for (const [where, rest] of deletes) {
    await fill();
    await run(`DELETE FROM ${t} WHERE p = 1 AND ${where}`);
    assert.equal(await left(), rest, where);
  }
  await fill();
  await run(`INSERT INTO ${t} (p, c, d, v) VALUES (2, 0, 0, 0)`, `DELETE FROM ${t} WHERE p = 1`);
  assert.equal(await left(), "");
  assert.equal((await see(`SELECT * FROM ${t}`)).length, 1);
  await fill();
  await run(`DELETE FROM ${t} WHERE p IN (1, 2)`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("a range delete hides older rows only, also those that come later", async () => {
  const t = await makeTable(client, "p int, c int, v int, PRIMARY KEY (p, c)");
  await run(
    `INSERT INTO ${t} (p, c, v) VALUES (1, 1, 1) USING TIMESTAMP 100`,
    `INSERT INTO ${t} (p, c, v) VALUES (1, 2, 2) USING TIMESTAMP 300`,
  );
  await run(`DELETE FROM ${t} USING TIMESTAMP 200 WHERE p = 1 AND c > 0 AND c < 10`);
  await run(
    `INSERT INTO ${t} (p, c, v) VALUES (1, 3, 3) USING TIMESTAMP 150`,
    `INSERT INTO ${t} (p, c, v) VALUES (1, 10, 4) USING TIMESTAMP 150`,
  );
  assert.deepEqual(await see(`SELECT c FROM ${t} WHERE p = 1`), [[2], [10]]);
  await run(`DELETE FROM ${t} USING TIMESTAMP 250 WHERE p = 1`);
  assert.deepEqual(await see(`SELECT c FROM ${t} WHERE p = 1`), [[2]]);
  await run(
    `INSERT INTO ${t} (p, c, v) VALUES (1, 4, 4) USING TIMESTAMP 250`,
    `INSERT INTO ${t} (p, c, v) VALUES (1, 5, 5) USING TIMESTAMP 251`,
  );
  assert.deepEqual(await see(`SELECT c FROM ${t} WHERE p = 1`), [[2], [5]]);
  assert.deepEqual(await see(`SELECT c FROM ${t} WHERE p = 1 ORDER BY c DESC`), [[5], [2]]);
});

test("static columns are the partition's", async () => {
  const t = await makeTable(client, "p int, c int, s text STATIC, v int, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, s) VALUES (1, 'alone')`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [[1, null, "alone", null]]);
  await run(`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 1)`, `INSERT INTO ${t} (p, c, s, v) VALUES (1, 2, 'both', 2)`);
  assert.deepEqual(await see(`SELECT c, s, v FROM ${t} WHERE p = 1`), [
    [1, "both", 1],
    [2, "both", 2],
  ]);
  await run(`UPDATE ${t} SET s = 'set' WHERE p = 1`, `DELETE FROM ${t} WHERE p = 1 AND c = 1`);
  assert.deepEqual(await see(`SELECT c, s, v FROM ${t} WHERE p = 1`), [[2, "set", 2]]);
  await run(`DELETE FROM ${t} WHERE p = 1 AND c > 0`);
  assert.deepEqual(await see(`SELECT c, s, v FROM ${t} WHERE p = 1`), [[null, "set", null]]);
  assert.deepEqual(await see(`SELECT c, s FROM ${t} WHERE p = 1 AND c = 2`), []);
  await run(`DELETE s FROM ${t} WHERE p = 1`);
  assert.deepEqual(await see(`SELECT * FROM ${t} WHERE p = 1`), []);
  await run(`UPDATE ${t} SET s = 'x' WHERE p = 2`, `DELETE FROM ${t} WHERE p = 2`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
});

test("TRUNCATE leaves nothing", async () => {
  const t = await makeTable(client, "p int, c int, s int STATIC, PRIMARY KEY (p, c)");
  await Promise.all(
    Array.from({ length: 30 }, (_, i) => client.execute(`INSERT INTO ${t} (p, c, s) VALUES (?, 1, 1)`, [i], { prepare: true })),
  );
  await run(`TRUNCATE ${t}`);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
  await run(`INSERT INTO ${t} (p, c) VALUES (1, 1)`, `TRUNCATE TABLE ${t}`, `INSERT INTO ${t} (p, c) VALUES (2, 2)`);
  assert.deepEqual(await see(`SELECT p FROM ${t}`), [[2]]);
});

test("counters add up", async () => {
  const t = await makeTable(client, "p int, c text, n counter, m counter, PRIMARY KEY (p, c)");
  await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      client.execute(`UPDATE ${t} SET n = n + ? WHERE p = 1 AND c = 'a'`, [types.Long.fromNumber(i)], { prepare: true }),
    ),
  );
  await run(
    `UPDATE ${t} SET n = n - 25, m = m + 1 WHERE p = 1 AND c = 'a'`,
    `UPDATE ${t} SET m = m - 9223372036854775807 WHERE p = 1 AND c = 'b'`,
  );
  assert.deepEqual(await see(`SELECT c, n, m FROM ${t}`), [
    ["a", "1200", "1"],
    ["b", null, "-9223372036854775807"],
  ]);
  await run(`DELETE n FROM ${t} WHERE p = 1 AND c = 'a'`, `DELETE FROM ${t} WHERE p = 1 AND c = 'b'`);
  assert.deepEqual(await see(`SELECT c, n, m FROM ${t}`), [["a", null, "1"]]);
  await refused(
    client.execute(`INSERT INTO ${t} (p, c, n) VALUES (1, 'a', 1)`),
    codes.invalid,
    /INSERT statements are not allowed on counter tables/,
  );
  await refused(client.execute(`UPDATE ${t} SET n = 5 WHERE p = 1 AND c = 'a'`), codes.invalid);
  await refused(client.execute(`UPDATE ${t} USING TTL 5 SET n = n + 1 WHERE p = 1 AND c = 'a'`), codes.invalid);
  await refused(client.execute(`UPDATE ${t} USING TIMESTAMP 5 SET n = n + 1 WHERE p = 1 AND c = 'a'`), codes.invalid);
});

test("counters begin anew after a deletion", async () => {
  const t = await makeTable(client, "p int, c int, s counter STATIC, n counter, PRIMARY KEY (p, c)");
  const add = async () => {
    for (let c = 1; c <= 4; c += 1) {
      await run(`UPDATE ${t} SET n = n + 1 WHERE p = 1 AND c = ${c}`);
    }
    await run(`UPDATE ${t} SET s = s + 1 WHERE p = 1`);
  };
  await add();
  await run(`DELETE FROM ${t} WHERE p = 1 AND c > 1 AND c < 4`);
  await add();
  assert.deepEqual(await see(`SELECT c, n, s FROM ${t}`), [
    [1, "2", "2"],
    [2, "1", "2"],
    [3, "1", "2"],
    [4, "2", "2"],
  ]);
  await run(`DELETE FROM ${t} WHERE p = 1`);
  assert.deepEqual(await see(`SELECT c, n, s FROM ${t}`), []);
  await run(`UPDATE ${t} SET n = n + 5 WHERE p = 1 AND c = 1`);
  assert.deepEqual(await see(`SELECT c, n, s FROM ${t}`), [[1, "5", null]]);
});

test("INSERT JSON", async () => {
  const t = await makeTable(client, `p int, "C" text, l list<int>, m map<text, int>, x decimal, PRIMARY KEY (p, "C")`);
  await client.execute(`INSERT INTO ${t} JSON ?`, ['{"p": 1, "\\"C\\"": "c", "l": [1, 2], "m": {"a": 1}, "x": 1.50}'], {
    prepare: true,
  });
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [[1, "c", [1, 2], { a: 1 }, "1.50"]]);
  await run(`INSERT INTO ${t} JSON '{"p": "1", "\\"C\\"": "c", "l": null}' DEFAULT UNSET`);
  assert.deepEqual(await see(`SELECT l, m FROM ${t}`), [[null, { a: 1 }]]);
  await run(`INSERT INTO ${t} JSON '{"p": 1, "\\"C\\"": "c"}'`);
  assert.deepEqual(await see(`SELECT l, m, x FROM ${t}`), [[null, null, null]]);
  assert.deepEqual(await see(`SELECT JSON p, "C", l FROM ${t}`), [['{"p": 1, "\\"C\\"": "c", "l": null}']]);
  await refused(client.execute(`INSERT INTO ${t} JSON '{"p": 1}'`), codes.invalid);
  await refused(client.execute(`INSERT INTO ${t} JSON '{"p": 1, "nothing": 2}'`), codes.invalid, /unrecognized column/);
  await refused(client.execute(`INSERT INTO ${t} JSON '{"p": '`), codes.invalid);
});

test("mistakes in writes are told", async () => {
  const t = await makeTable(client, "p int, c int, v int, s int STATIC, PRIMARY KEY (p, c)");
  const wrong = [
    [`INSERT INTO ${t} (p, v) VALUES (1, 1)`, /Some clustering keys are missing: c/],
    [`INSERT INTO ${t} (c, v) VALUES (1, 1)`, /Some partition key parts are missing: p/],
    [`INSERT INTO ${t} (p, c, v) VALUES (1, 1)`, /Unmatched column names\/values/],
    [`INSERT INTO ${t} (p, c, z) VALUES (1, 1, 1)`, /Undefined column name z/],
    [`INSERT INTO ${t} (p, c, v, v) VALUES (1, 1, 1, 1)`, /Multiple definitions|duplicates/],
    [`UPDATE ${t} SET v = 1 WHERE p = 1`, /Some clustering keys are missing: c/],
    [`UPDATE ${t} SET v = 1 WHERE c = 1`, /Some partition key parts are missing: p/],
    [`UPDATE ${t} SET p = 1 WHERE p = 1 AND c = 1`, /PRIMARY KEY part p found in SET part/],
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c > 1`, /./],
    [`UPDATE ${t} SET v = 1 WHERE p = 1 AND c = 1 AND v = 2`, /Non PRIMARY KEY columns found in where clause: v/],
    [`DELETE FROM ${t} WHERE c = 1`, /Some partition key parts are missing: p/],
    [`DELETE v FROM ${t} WHERE p = 1`, /./],
    [`DELETE v FROM ${t} WHERE p = 1 AND c > 1`, /./],
    [`DELETE p FROM ${t} WHERE p = 1 AND c = 1`, /Invalid identifier p for deletion/],
    [`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 1) USING TTL -1`, /TTL must be greater or equal to 0/],
    [`INSERT INTO ${t} (p, c, v) VALUES (1, 1, 1) USING TTL 999999999`, /ttl is too large/],
  ];
  for (const [text, message] of wrong)
    await refused(client.execute(text), codes.invalid, message).catch((error) => {
      throw new Error(`${text}: ${error.message}`);
    });
});
