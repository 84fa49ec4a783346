// What died is dropped after gc_grace_seconds, and the space is there again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeTable, reconnected, rowsOf, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start({ settings: { "cassandra.purge_interval_ms": 50, "limits.logical_partition_mb": 1 } });
  client = await server.keyspaceClient("purge");
});
after(() => server?.remove());

const run = async (...texts) => {
  for (const text of texts) await client.execute(text);
};
const see = (text, values) => rowsOf(client, text, values);

// All partitions of a table together, and the logical partitions that have anything, deletions too.
async function sizeOf(table) {
  const { status, text } = await server.request({ path: `/_orrery/partitions/purge/${table}` });
  assert.equal(status, 200, text);
  const { partitions } = JSON.parse(text);
  const sum = (name) => partitions.reduce((all, each) => all + each[name], 0);
  return { bytes: sum("bytes"), items: sum("items"), keys: partitions.flatMap((each) => each.largestKeys).length };
}
const empty = { bytes: 0, items: 0, keys: 0 };
const emptied = (table) =>
  until(`${table} is empty`, async () => {
    const size = await sizeOf(table);
    return size.bytes === 0 && size.items === 0 && size.keys === 0;
  }, 30);

test("expired rows, deleted rows and the deletions of a partition leave nothing behind, also after kill -9", async () => {
  const t = await makeTable(client, "p int, c int, v text, s text STATIC, PRIMARY KEY (p, c)", "WITH gc_grace_seconds = 0");
  for (let round = 0; round < 2; round += 1) {
    const writes = [];
    for (let c = 0; c < 50; c += 1) {
      writes.push(client.execute(`INSERT INTO ${t} (p, c, v, s) VALUES (1, ${c}, 'expires', 's') USING TTL 1`));
      writes.push(client.execute(`INSERT INTO ${t} (p, c, v) VALUES (2, ${c}, 'is deleted')`));
      writes.push(client.execute(`INSERT INTO ${t} (p, c, v) VALUES (3, ${c}, 'is deleted')`));
      writes.push(client.execute(`INSERT INTO ${t} (p, c, v) VALUES (4, ${c}, 'is deleted')`));
    }
    await Promise.all(writes);
    for (let c = 0; c < 50; c += 1) await run(`DELETE FROM ${t} WHERE p = 2 AND c = ${c}`);
    for (let c = 0; c < 50; c += 10) await run(`DELETE FROM ${t} WHERE p = 3 AND c >= ${c} AND c < ${c + 10}`);
    await run(`DELETE FROM ${t} WHERE p = 4`);
    if (round === 0) {
      await server.kill();
      await server.up();
      await reconnected(client);
    }
    await emptied(t);
    assert.deepEqual(await see(`SELECT * FROM ${t}`), []);
  }
  await server.kill();
  await server.up();
  await reconnected(client);
  assert.deepEqual(await sizeOf(t), empty);
  const { text } = await server.request({ path: "/metrics", unsigned: true });
  assert.match(text, /^orrery_purged_keys_total \d+$/m);
});

test("what is alive stays, and what is dead stays for its grace", async () => {
  const t = await makeTable(client, "p int, c int, a text, b text, PRIMARY KEY (p, c)", "WITH gc_grace_seconds = 0");
  const kept = await makeTable(client, "p int PRIMARY KEY, a text");
  await run(
    `INSERT INTO ${t} (p, c, a) VALUES (1, 1, 'stays')`,
    `INSERT INTO ${t} (p, c, a) VALUES (1, 2, 'goes')`,
    `DELETE FROM ${t} WHERE p = 1 AND c > 1`,
    `INSERT INTO ${kept} (p, a) VALUES (1, 'x')`,
    `DELETE FROM ${kept} WHERE p = 1`,
  );
  await until("one row is left", async () => (await sizeOf(t)).items === 1, 30);
  const { bytes } = await sizeOf(t);
  await run(`UPDATE ${t} USING TTL 1 SET b = '${"goes".repeat(250)}' WHERE p = 1 AND c = 1`);
  await until("the cell has expired", async () => (await see(`SELECT b FROM ${t}`))[0][0] === null, 30);
  await until("the row is as small as before", async () => (await sizeOf(t)).bytes < bytes + 500, 30);
  assert.deepEqual(await see(`SELECT * FROM ${t}`), [[1, 1, "stays", null]]);
  assert.equal((await sizeOf(kept)).keys, 1);
  await run(`INSERT INTO ${kept} (p, a) VALUES (1, 'older') USING TIMESTAMP 5`);
  assert.deepEqual(await see(`SELECT * FROM ${kept}`), []);
});

test("a partition that was full has room again when its rows are gone", async () => {
  const t = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)", "WITH gc_grace_seconds = 0");
  const value = "x".repeat(50_000);
  const insert = (c) => client.execute(`INSERT INTO ${t} (p, c, v) VALUES (1, ?, ?)`, [c, value], { prepare: true });
  const fill = async (from) => {
    for (let c = from; ; c += 1) {
      try {
        await insert(c);
      } catch (error) {
        assert.match(error.message, /maximum size/);
        return c - from;
      }
    }
  };
  const rows = await fill(0);
  assert.ok(rows >= 15 && rows <= 21, `${rows} rows of 50 KB were taken where 1 MB is the limit`);
  for (let c = 0; c < 30; c += 1) await run(`DELETE FROM ${t} WHERE p = 1 AND c = ${c}`);
  await emptied(t);
  const again = await fill(1000);
  assert.ok(again >= 15 && again <= 21, `${again} rows`);
});
