// kill -9 in the middle of writes: whatever was acknowledged is there.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, reconnected, rowsOf, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("crash", { socketOptions: { readTimeout: 3000 } });
  await client.execute(
    "CREATE TABLE rows (p int, c int, v text, s int STATIC, PRIMARY KEY (p, c)) WITH cosmosdb_provisioned_throughput = 1000000",
  );
  await client.execute("CREATE TABLE counts (p int PRIMARY KEY, n counter)");
  await client.execute("CREATE TABLE lists (p int PRIMARY KEY, l list<int>)");
  await client.execute("CREATE TABLE once (p int PRIMARY KEY, v int)");
});
after(() => server?.remove());

const key = (i) => [i % 10, i];

test("rows, deletes, counters, lists and conditions outlive three kills", async () => {
  let next = 0;
  const kept = new Map(); // of rows: what was acknowledged last
  const unsure = new Set();
  const appended = new Set();
  const won = new Set();
  let counted = 0;
  let maybe = 0;
  for (let round = 0; round < 3; round += 1) {
    let going = true;
    const worker = async () => {
      while (going) {
        const i = (next += 1);
        const [p, c] = key(i);
        const tries = [
          [
            i,
            "written",
            () =>
              client.execute("INSERT INTO crash.rows (p, c, v) VALUES (?, ?, ?)", [p, c, "x".repeat(i % 300)], { prepare: true }),
          ],
        ];
        if (i % 3 === 0)
          tries.push([
            i,
            "deleted",
            () => client.execute("DELETE FROM crash.rows WHERE p = ? AND c = ?", [p, c], { prepare: true }),
          ]);
        for (const [id, state, write] of tries) {
          try {
            await write();
            if (!unsure.has(id)) kept.set(id, state);
          } catch {
            unsure.add(id);
          }
        }
        maybe += 1;
        await client.execute("UPDATE crash.counts SET n = n + 1 WHERE p = 1").then(
          () => (counted += 1),
          () => {},
        );
        await client.execute("UPDATE crash.lists SET l = l + [?] WHERE p = 1".replace("[?]", `[${i}]`)).then(
          () => appended.add(i),
          () => {},
        );
        await client.execute("INSERT INTO crash.once (p, v) VALUES (?, ?) IF NOT EXISTS", [i, i], { prepare: true }).then(
          (result) => result.wasApplied() && won.add(i),
          () => {},
        );
      }
    };
    const workers = Array.from({ length: 8 }, worker);
    const goal = next + 120;
    await until("enough is written", () => next >= goal);
    going = false; // those that are under way go on
    await server.kill();
    await Promise.all(workers);
    await server.up();
    await reconnected(client);
    const there = new Set((await rowsOf(client, "SELECT c FROM crash.rows", [], { fetchSize: 100000 })).map(([c]) => c));
    for (const [i, state] of kept) {
      if (!unsure.has(i)) assert.equal(there.has(i), state === "written", `${i} was ${state}`);
    }
    const [[n]] = await rowsOf(client, "SELECT n FROM crash.counts WHERE p = 1");
    assert.ok(Number(n) >= counted && Number(n) <= maybe, `${counted} <= ${n} <= ${maybe}`);
    const [[l]] = await rowsOf(client, "SELECT l FROM crash.lists WHERE p = 1");
    for (const i of appended) assert.ok(l.includes(i), `${i} was appended`);
    const once = new Map(await rowsOf(client, "SELECT p, v FROM crash.once", [], { fetchSize: 100000 }));
    for (const i of won) assert.equal(once.get(i), i);
    assert.ok(kept.size > 50);
  }
});

test("a batch of one partition is there as a whole or not at all", async () => {
  const batch = (p) =>
    client
      .batch(
        Array.from({ length: 20 }, (_, c) => ({
          query: "INSERT INTO crash.rows (p, c, v, s) VALUES (?, ?, ?, ?)",
          params: [p, c, "batch", p],
        })),
        { prepare: true },
      )
      .then(
        () => true,
        () => false,
      );
  const results = Array.from({ length: 60 }, (_, i) => batch(1000 + i));
  await Promise.race(results.slice(10, 20));
  await server.kill();
  const done = await Promise.all(results);
  await server.up();
  await reconnected(client);
  for (const [i, acknowledged] of done.entries()) {
    const rows = await rowsOf(client, "SELECT c FROM crash.rows WHERE p = ?", [1000 + i]);
    if (acknowledged) assert.equal(rows.length, 20, `${i}`);
    assert.ok(rows.length === 0 || rows.length === 20, `${rows.length} of 20 rows of ${i}`);
  }
});

test("a logged batch over two partitions is there as a whole or not at all, after each of three kills", async () => {
  let next = 0;
  const acknowledged = new Set();
  for (let round = 0; round < 3; round += 1) {
    const first = next;
    let going = true;
    const worker = async () => {
      while (going) {
        const i = (next += 1);
        const halves = [-1, 1].map((side) => ({
          query: "INSERT INTO crash.rows (p, c, v) VALUES (?, 0, ?)",
          params: [side * (100000 + i), `batch ${i}`],
        }));
        await client.batch(halves, { prepare: true, logged: true }).then(
          () => acknowledged.add(i),
          () => {},
        );
      }
    };
    const workers = Array.from({ length: 8 }, worker);
    await until("enough is written", () => acknowledged.size >= 40 * (round + 1));
    going = false; // those that are under way go on
    await server.kill();
    await Promise.all(workers);
    await server.up();
    await reconnected(client);
    // What the kill interrupted is done to its end when the server is back.
    const halves = async () => {
      const there = new Set((await rowsOf(client, "SELECT p FROM crash.rows", [], { fetchSize: 100000 })).map(([p]) => p));
      return Array.from({ length: next - first }, (_, i) => first + i + 1).map((i) => [
        i,
        [-1, 1].filter((side) => there.has(side * (100000 + i))).length,
      ]);
    };
    const whole = await until("no batch is done by half", async () => {
      const found = await halves();
      return found.every(([, count]) => count !== 1) ? found : null;
    });
    for (const [i, count] of whole) if (acknowledged.has(i)) assert.equal(count, 2, `${i}`);
  }
});
