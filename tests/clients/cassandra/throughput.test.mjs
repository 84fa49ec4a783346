// Request units: a table with few of them refuses what is too much, and says when to come again.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, cassandra, codes, makeTable, rowsOf, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  // A driver that shows errors instead of trying again.
  client = await server.keyspaceClient("throughput", {
    policies: { retry: new cassandra.policies.retry.FallthroughRetryPolicy() },
  });
});
after(() => server?.remove());

test("too many writes in a second are refused with the time to wait, and go on after it", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v text", "WITH cosmosdb_provisioned_throughput = 400");
  const write = (p) =>
    client.execute(`INSERT INTO ${t} (p, v) VALUES (?, ?)`, [p, "x".repeat(900)], { prepare: true }).then(
      () => ({ p }),
      (error) => ({ p, error }),
    );
  const results = await Promise.all(Array.from({ length: 400 }, (_, p) => write(p)));
  const refused = results.filter(({ error }) => error);
  assert.ok(refused.length > 100 && refused.length < 400, `${refused.length}`);
  for (const { error } of refused) {
    assert.equal(error.code, codes.overloaded, error.message);
    assert.match(error.message, /RetryAfterMs=\d+/);
    const ms = Number(/RetryAfterMs=(\d+)/.exec(error.message)[1]);
    assert.ok(ms > 0 && ms <= 10000, error.message);
  }
  await until("a write is taken again", async () => !(await write(1000)).error);
  const there = await until("all can be read", () => rowsOf(client, `SELECT p FROM ${t}`).catch(() => null));
  const kept = new Set(there.map(([p]) => p));
  for (const { p, error } of results) assert.equal(kept.has(p), !error, `${p}`);
});

test("more throughput takes more", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v text", "WITH cosmosdb_provisioned_throughput = 400");
  await client.execute(`ALTER TABLE ${t} WITH cosmosdb_provisioned_throughput = 100000`);
  await Promise.all(
    Array.from({ length: 400 }, (_, p) =>
      client.execute(`INSERT INTO ${t} (p, v) VALUES (?, ?)`, [p, "x".repeat(900)], { prepare: true }),
    ),
  );
});

test("throughput that is none is refused", async () => {
  for (const value of [0, 100, 450.5, "'x'"]) {
    await assert.rejects(makeTable(client, "p int PRIMARY KEY", `WITH cosmosdb_provisioned_throughput = ${value}`), (error) =>
      [codes.configError, codes.invalid, codes.syntaxError].includes(error.code),
    );
  }
});

test("reads are refused too, and another table is not touched", async () => {
  const t = await makeTable(client, "p int, c int, v text, PRIMARY KEY (p, c)", "WITH cosmosdb_provisioned_throughput = 400");
  const other = await makeTable(client, "p int PRIMARY KEY", "WITH cosmosdb_provisioned_throughput = 400");
  for (let c = 0; c < 20; c += 1)
    await until("it is written", () =>
      client.execute(`INSERT INTO ${t} (p, c, v) VALUES (1, ?, ?)`, [c, "x".repeat(900)], { prepare: true }).catch(() => null),
    );
  const seen = new Set();
  const read = () =>
    client.execute(`SELECT * FROM ${t} WHERE p = 1`).then(
      () => seen.add(true),
      (error) => seen.add(error.code),
    );
  await until("some reads are taken and some are refused", async () => {
    await Promise.all(Array.from({ length: 300 }, read));
    return seen.has(true) && seen.has(codes.overloaded);
  });
  assert.equal(seen.size, 2);
  await client.execute(`INSERT INTO ${other} (p) VALUES (1)`);
});
