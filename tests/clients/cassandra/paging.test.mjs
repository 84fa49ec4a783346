// Pages: every size gives every row once, whatever is asked; states outlive clients, restarts and definitions.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, plain, reconnected, refused } from "./server.mjs";

let server;
let client;
let t; // partitions of 0 to 12 rows, some of them deleted, some with a static row only
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("paging");
  t = await makeTable(
    client,
    "p int, c int, v int, s int STATIC, PRIMARY KEY (p, c)",
    "WITH cosmosdb_provisioned_throughput = 100000",
  );
  for (let p = 0; p <= 12; p += 1) {
    const queries = Array.from({ length: p }, (_, c) => ({
      query: `INSERT INTO ${t} (p, c, v) VALUES (?, ?, ?)`,
      params: [p, c, p * 100 + c],
    }));
    if (p % 3 === 0) queries.push({ query: `INSERT INTO ${t} (p, s) VALUES (?, ?)`, params: [p, p] });
    if (queries.length > 0) await client.batch(queries, { prepare: true });
  }
  await client.execute(`DELETE FROM ${t} WHERE p = 9 AND c >= 2 AND c < 7`);
  for (let p = 20; p < 30; p += 1) await client.execute(`INSERT INTO ${t} (p, s) VALUES (${p}, ${p})`);
  await client.execute(`DELETE FROM ${t} WHERE p = 5`);
  await client.execute(`DELETE FROM ${t} WHERE p = 11 AND c = 10`);
});
after(() => server?.remove());

const show = (rows) => rows.map((row) => row.values().map(plain));

// All pages of a statement: their rows, and how many pages there were.
async function pages(text, fetchSize, { between = async () => {}, values, from = client } = {}) {
  const rows = [];
  let pageState;
  let count = 0;
  do {
    const page = await from.execute(text, values, { fetchSize, pageState, prepare: values !== undefined });
    assert.ok(page.rowLength <= fetchSize, `${text}: a page of ${page.rowLength}`);
    rows.push(...show(page.rows));
    pageState = page.pageState;
    count += 1;
    if (pageState) await between(count);
  } while (pageState);
  return { rows, count };
}

const statements = [
  "SELECT * FROM T",
  "SELECT p, c FROM T WHERE p = 12",
  "SELECT p, c FROM T WHERE p = 12 ORDER BY c DESC",
  "SELECT p, c, s FROM T WHERE p = 9",
  "SELECT p, c, s FROM T WHERE p = 9 ORDER BY c DESC",
  "SELECT p, c FROM T WHERE p IN (3, 12, 5, 0, 9)",
  "SELECT p, c FROM T WHERE p = 12 AND c IN (1, 3, 5, 7)",
  "SELECT p, c FROM T WHERE p IN (11, 12) AND c IN (1, 10, 3)",
  "SELECT p, c FROM T WHERE p = 12 AND c > 2 AND c < 9",
  "SELECT p, c FROM T LIMIT 17",
  "SELECT p, c FROM T WHERE p IN (12, 7, 8) LIMIT 11",
  "SELECT p, c FROM T PER PARTITION LIMIT 2",
  "SELECT p, c FROM T PER PARTITION LIMIT 3 LIMIT 20",
  "SELECT p, c FROM T WHERE p IN (12, 7, 3) PER PARTITION LIMIT 4",
  "SELECT DISTINCT p, s FROM T",
  "SELECT DISTINCT p FROM T LIMIT 7",
  "SELECT p, c, v FROM T WHERE v > 700 ALLOW FILTERING",
  "SELECT p, c, v FROM T WHERE v > 300 PER PARTITION LIMIT 3 ALLOW FILTERING",
  "SELECT p, c, v FROM T WHERE v > 300 LIMIT 9 ALLOW FILTERING",
  "SELECT p, c FROM T WHERE c = 3 ALLOW FILTERING",
  "SELECT p, c FROM T WHERE token(p) > -4000000000000000000 AND token(p) <= 5000000000000000000",
  "SELECT p, c + 1, writetime(v) FROM T",
  "SELECT JSON p, c FROM T",
];

for (const statement of statements) {
  test(`pages of every size: ${statement}`, async () => {
    const text = statement.replace("FROM T", `FROM ${t}`);
    const { rows: all } = await client.execute(text, [], { fetchSize: 0 }).then(({ rows }) => ({ rows: show(rows) }));
    assert.ok(all.length > 3);
    for (const size of [1, 2, 3, 5, 7, all.length - 1, all.length, all.length + 1]) {
      const { rows } = await pages(text, size);
      assert.deepEqual(rows, all, `pages of ${size}`);
    }
  });
}

test("the last page has no state", async () => {
  const page = await client.execute(`SELECT * FROM ${t} WHERE p = 7`, [], { fetchSize: 100 });
  assert.equal(page.rowLength, 7);
  assert.equal(page.pageState, null);
});

test("eachRow and iteration read all pages by themselves", async () => {
  const { rows } = await pages(`SELECT * FROM ${t}`, 1000);
  const seen = [];
  await new Promise((resolve, reject) => {
    client.eachRow(
      `SELECT * FROM ${t}`,
      [],
      { fetchSize: 4, autoPage: true, prepare: true },
      (_, row) => seen.push(row),
      (error) => (error ? reject(error) : resolve()),
    );
  });
  assert.deepEqual(show(seen), rows);
  const iterated = [];
  for await (const row of await client.execute(`SELECT * FROM ${t}`, [], { fetchSize: 9, prepare: true })) iterated.push(row);
  assert.deepEqual(show(iterated), rows);
});

test("a state can be used by another client, and twice", async () => {
  const other = await server.client({ keyspace: "paging" });
  const { rows } = await pages(`SELECT * FROM ${t}`, 1000);
  const first = await client.execute(`SELECT * FROM ${t}`, [], { fetchSize: 10 });
  for (const from of [other, client]) {
    const second = await from.execute(`SELECT * FROM ${t}`, [], { fetchSize: 10, pageState: first.pageState });
    assert.deepEqual(show(second.rows), rows.slice(10, 20));
  }
});

test("rows that come and go between pages change nothing of the others", async () => {
  const w = await makeTable(client, "p int, c int, PRIMARY KEY (p, c)");
  await client.batch(
    Array.from({ length: 30 }, (_, c) => ({ query: `INSERT INTO ${w} (p, c) VALUES (1, ?)`, params: [c * 2] })),
    { prepare: true },
  );
  const { rows } = await pages(`SELECT c FROM ${w} WHERE p = 1`, 10, {
    between: async (page) => {
      if (page === 1) {
        await client.execute(`DELETE FROM ${w} WHERE p = 1 AND c = 18`); // the last that was given
        await client.execute(`INSERT INTO ${w} (p, c) VALUES (1, 3)`); // before it
        await client.execute(`INSERT INTO ${w} (p, c) VALUES (1, 19)`); // right behind it
      }
    },
  });
  assert.deepEqual(rows.flat(), [
    ...Array.from({ length: 10 }, (_, c) => c * 2),
    19,
    ...Array.from({ length: 20 }, (_, c) => 20 + c * 2),
  ]);
});

test("pages go on after a restart and after ALTER TABLE", async () => {
  const { rows: all } = await pages(`SELECT p, c, v FROM paging.${t}`, 1000);
  const { rows } = await pages(`SELECT p, c, v FROM paging.${t} WHERE v > ? ALLOW FILTERING`, 10, {
    values: [-1],
    between: async (page) => {
      if (page === 1) {
        await server.restart();
        await reconnected(client);
      }
      if (page === 2) await client.execute(`ALTER TABLE paging.${t} ADD later text`);
    },
  });
  assert.deepEqual(
    rows,
    all.filter(([, , v]) => v !== null),
  );
  const star = await pages(`SELECT * FROM paging.${t}`, 15, {
    values: [],
    between: async (page) => {
      if (page === 1) await client.execute(`ALTER TABLE paging.${t} ADD last_one int`);
    },
  });
  assert.equal(star.rows.length, all.length);
  assert.equal(star.rows.at(-1).length, 6, "the new columns are there from then on");
});

test("a state that is none is refused", async () => {
  for (const pageState of ["00", "ff".repeat(20), "0102030405"]) {
    await refused(client.execute(`SELECT * FROM paging.${t}`, [], { fetchSize: 5, pageState }), codes.invalid, /paging state/);
  }
});

test("many rows in pages of 5000, and at once", async () => {
  const w = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)", "WITH cosmosdb_provisioned_throughput = 1000000");
  for (let from = 0; from < 12000; from += 500) {
    await client.batch(
      Array.from({ length: 500 }, (_, i) => ({
        query: `INSERT INTO ${w} (p, c, v) VALUES (1, ?, ?)`,
        params: [from + i, "x".repeat(50)],
      })),
      { prepare: true, logged: false },
    );
  }
  const first = await client.execute(`SELECT c FROM ${w} WHERE p = 1`);
  assert.equal(first.rowLength, 5000);
  const { rows, count } = await pages(`SELECT c FROM ${w} WHERE p = 1`, 5000);
  assert.equal(rows.length, 12000);
  assert.ok(count <= 4);
  assert.equal((await client.execute(`SELECT c FROM ${w} WHERE p = 1`, [], { fetchSize: 0 })).rowLength, 12000);
  assert.equal(`${(await client.execute(`SELECT count(*) FROM ${w}`)).first().count}`, "12000");
});
