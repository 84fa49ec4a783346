// Collections, frozen or not, user types and tuples: whole and in parts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf, types } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("collections");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);

test("sets: add, remove, replace, and the order of their elements", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, s set<text>");
  const s = async () => (await see(`SELECT s FROM ${t} WHERE p = 1`))[0]?.[0];
  await run(`UPDATE ${t} SET s = s + {'b', 'a'} WHERE p = 1`);
  await client.execute(`UPDATE ${t} SET s = s + ? WHERE p = ?`, [["d", "c", "a"], 1], { prepare: true });
  assert.deepEqual(await s(), ["a", "b", "c", "d"]);
  await run(`UPDATE ${t} SET s = s - {'a', 'zz'} WHERE p = 1`, `DELETE s['b'] FROM ${t} WHERE p = 1`);
  assert.deepEqual(await s(), ["c", "d"]);
  await run(`INSERT INTO ${t} (p, s) VALUES (1, {'new'})`);
  assert.deepEqual(await s(), ["new"]);
  await run(`UPDATE ${t} SET s = {} WHERE p = 1`);
  assert.equal((await s()) ?? null, null);
});

test("maps: by key, as a whole, keys removed", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, m map<text, int>");
  const m = async () => (await see(`SELECT m FROM ${t} WHERE p = 1`))[0]?.[0];
  await run(`INSERT INTO ${t} (p, m) VALUES (1, {'b': 2, 'a': 1})`, `UPDATE ${t} SET m['c'] = 3, m['a'] = 10 WHERE p = 1`);
  assert.deepEqual(await m(), { a: 10, b: 2, c: 3 });
  await client.execute(`UPDATE ${t} SET m[?] = ? WHERE p = 1`, ["d", 4], { prepare: true });
  await client.execute(`UPDATE ${t} SET m = m + ? WHERE p = 1`, [{ e: 5 }], { prepare: true });
  await run(
    `UPDATE ${t} SET m = m - {'a'} WHERE p = 1`,
    `DELETE m['b'] FROM ${t} WHERE p = 1`,
    `UPDATE ${t} SET m['c'] = null WHERE p = 1`,
  );
  assert.deepEqual(await m(), { d: 4, e: 5 });
  assert.deepEqual(await see(`SELECT m['d'], m['nothing'] FROM ${t} WHERE p = 1`), [[4, null]]);
  assert.deepEqual(await see(`SELECT m['d'..'d'] FROM ${t} WHERE p = 1`), [[{ d: 4 }]]);
  await run(`DELETE m FROM ${t} WHERE p = 1`);
  assert.equal(await m(), null);
});

test("lists: append, prepend, by index, by value", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, l list<int>");
  const l = async () => (await see(`SELECT l FROM ${t} WHERE p = 1`))[0]?.[0];
  await run(
    `INSERT INTO ${t} (p, l) VALUES (1, [3, 4])`,
    `UPDATE ${t} SET l = l + [5, 3] WHERE p = 1`,
    `UPDATE ${t} SET l = [1, 2] + l WHERE p = 1`,
  );
  assert.deepEqual(await l(), [1, 2, 3, 4, 5, 3]);
  await run(`UPDATE ${t} SET l[0] = 10, l[5] = 60 WHERE p = 1`, `DELETE l[1] FROM ${t} WHERE p = 1`);
  assert.deepEqual(await l(), [10, 3, 4, 5, 60]);
  await client.execute(`UPDATE ${t} SET l[?] = ? WHERE p = 1`, [1, 3], { prepare: true });
  await run(`UPDATE ${t} SET l = l - [3, 5] WHERE p = 1`);
  assert.deepEqual(await l(), [10, 4, 60]);
  await run(`UPDATE ${t} SET l[0] = null WHERE p = 1`);
  assert.deepEqual(await l(), [4, 60]);
  await refused(client.execute(`UPDATE ${t} SET l[9] = 1 WHERE p = 1`), codes.invalid, /List index 9 out of bound/);
  await refused(client.execute(`DELETE l[-1] FROM ${t} WHERE p = 1`), codes.invalid, /out of bound/);
  await refused(client.execute(`UPDATE ${t} SET l[0] = 1 WHERE p = 2`), codes.invalid, /on a list which is null/);
});

test("appends at once are all kept", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, l list<int>, s set<int>");
  await Promise.all(
    Array.from({ length: 40 }, (_, i) => client.execute(`UPDATE ${t} SET l = l + [${i}], s = s + {${i}} WHERE p = 1`)),
  );
  const [[l, s]] = await see(`SELECT l, s FROM ${t}`);
  assert.equal(l.length, 40);
  assert.deepEqual(
    l.sort((a, b) => a - b),
    s,
  );
});

test("an older whole value does not take newer elements away", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, m map<int, int>");
  await run(
    `UPDATE ${t} USING TIMESTAMP 200 SET m[1] = 1 WHERE p = 1`,
    `UPDATE ${t} USING TIMESTAMP 100 SET m = {2: 2} WHERE p = 1`,
  );
  assert.deepEqual(await see(`SELECT m FROM ${t}`), [[{ 1: 1, 2: 2 }]]);
  await run(`UPDATE ${t} USING TIMESTAMP 150 SET m = {3: 3} WHERE p = 1`);
  assert.deepEqual(await see(`SELECT m FROM ${t}`), [[{ 1: 1, 3: 3 }]]);
  await run(`DELETE m FROM ${t} USING TIMESTAMP 150 WHERE p = 1`);
  assert.deepEqual(await see(`SELECT m FROM ${t}`), [[{ 1: 1 }]]);
});

test("frozen collections are written as a whole", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, l frozen<list<int>>, m map<text, frozen<list<int>>>");
  await run(`INSERT INTO ${t} (p, l, m) VALUES (1, [1, 2], {'a': [1], 'b': []})`, `UPDATE ${t} SET m['a'] = [7, 8] WHERE p = 1`);
  assert.deepEqual(await see(`SELECT l, m FROM ${t}`), [[[1, 2], { a: [7, 8], b: [] }]]);
  await refused(client.execute(`UPDATE ${t} SET l = l + [3] WHERE p = 1`), codes.invalid);
  await refused(client.execute(`UPDATE ${t} SET l[0] = 3 WHERE p = 1`), codes.invalid);
  await refused(client.execute(`DELETE l[0] FROM ${t} WHERE p = 1`), codes.invalid);
});

test("user types: fields one by one, frozen as a whole", async () => {
  await run(
    "CREATE TYPE phone (code int, number text)",
    "CREATE TYPE person (name text, age int, phones frozen<list<frozen<phone>>>)",
  );
  const t = await makeTable(client, "p int PRIMARY KEY, u person, f frozen<person>, l list<frozen<phone>>");
  await client.execute(
    `INSERT INTO ${t} (p, u, f, l) VALUES (?, ?, ?, ?)`,
    [1, { name: "A", age: 1, phones: [{ code: 1, number: "x" }] }, { name: "F" }, [{ code: 2, number: "y" }]],
    { prepare: true },
  );
  await run(`UPDATE ${t} SET u.age = 2, u.name = 'B' WHERE p = 1`);
  const [[u, f, l]] = await see(`SELECT u, f, l FROM ${t}`);
  assert.deepEqual(u, { name: "B", age: 2, phones: [{ code: 1, number: "x" }] });
  assert.equal(f.name, "F");
  assert.deepEqual(l, [{ code: 2, number: "y" }]);
  assert.deepEqual(await see(`SELECT u.name, f.name, u.phones FROM ${t}`), [["B", "F", [{ code: 1, number: "x" }]]]);
  await run(`DELETE u.name FROM ${t} WHERE p = 1`);
  assert.deepEqual(await see(`SELECT u.name, u.age FROM ${t}`), [[null, 2]]);
  await refused(client.execute(`UPDATE ${t} SET f.age = 2 WHERE p = 1`), codes.invalid);
  await refused(client.execute(`UPDATE ${t} SET u.nothing = 2 WHERE p = 1`), codes.invalid);
  await refused(client.execute(`INSERT INTO ${t} (p, u) VALUES (1, {nothing: 1})`), codes.invalid, /Unknown field 'nothing'/);
});

test("a field that is added to a type is null in the rows that are there", async () => {
  await run("CREATE TYPE grows (a int)");
  const t = await makeTable(client, "p int PRIMARY KEY, f frozen<grows>, l list<frozen<grows>>, u grows");
  await run(`INSERT INTO ${t} (p, f, l, u) VALUES (1, {a: 1}, [{a: 2}], {a: 3})`, "ALTER TYPE grows ADD b text");
  assert.deepEqual(await see(`SELECT f.a, f.b, u.a, u.b FROM ${t}`), [[1, null, 3, null]]);
  await run(`INSERT INTO ${t} (p, f, l, u) VALUES (2, {a: 1, b: 'x'}, [{b: 'y'}], {b: 'z'})`);
  assert.deepEqual(await see(`SELECT f.b, u.b FROM ${t} WHERE p = 2`), [["x", "z"]]);
  await run("ALTER TYPE grows RENAME a TO first");
  assert.deepEqual(await see(`SELECT f.first, u.first FROM ${t} WHERE p = 1`), [[1, 3]]);
});

test("tuples", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, t tuple<int, frozen<tuple<text, boolean>>>");
  await client.execute(`INSERT INTO ${t} (p, t) VALUES (1, ?)`, [new types.Tuple(1, new types.Tuple("x", true))], {
    prepare: true,
  });
  await run(`INSERT INTO ${t} (p, t) VALUES (2, (2, ('y', null)))`);
  assert.deepEqual(await see(`SELECT t FROM ${t} WHERE p IN (1, 2)`), [[[1, ["x", true]]], [[2, ["y", null]]]]);
  await refused(client.execute(`INSERT INTO ${t} (p, t) VALUES (2, (1, ('y', true), 3))`), codes.invalid);
});

test("collections as keys must be frozen", async () => {
  await refused(makeTable(client, "p list<int> PRIMARY KEY, v int"), codes.invalid, /non-frozen collection/);
  const t = await makeTable(client, "p frozen<set<int>>, c frozen<map<text, int>>, v int, PRIMARY KEY (p, c)");
  await run(`INSERT INTO ${t} (p, c, v) VALUES ({2, 1}, {'b': 1, 'a': 2}, 5)`);
  assert.deepEqual(await see(`SELECT v FROM ${t} WHERE p = {1, 2} AND c = {'a': 2, 'b': 1}`), [[5]]);
});

test("null has no place in a collection", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, l list<int>, m map<text, int>");
  await refused(
    client.execute(`INSERT INTO ${t} (p, l) VALUES (1, [1, null])`),
    codes.invalid,
    /null is not supported inside collections/,
  );
  await refused(
    client.execute(`INSERT INTO ${t} (p, m) VALUES (1, {'a': null})`),
    codes.invalid,
    /null is not supported inside collections/,
  );
});

test("a vector is a type of a fixed length", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v vector<float, 3>");
  await run(`INSERT INTO ${t} (p, v) VALUES (1, [1.5, 2, -3])`);
  const { rows } = await client.execute(`SELECT v FROM ${t}`);
  assert.deepEqual([...rows[0].v], [1.5, 2, -3]);
  await client.execute(`INSERT INTO ${t} (p, v) VALUES (2, ?)`, [new types.Vector(new Float32Array([1, 2, 3]))], {
    prepare: true,
  });
  await refused(client.execute(`INSERT INTO ${t} (p, v) VALUES (1, [1.5, 2])`), codes.invalid);
});
