// Indexes and views of a table whose server is killed while it splits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { run } from "../../support/server.mjs";
import { Server, reconnected, rowsOf, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("derived", { socketOptions: { readTimeout: 3000 } });
});
after(() => server?.remove());

const sorted = async (query) => (await rowsOf(client, query, undefined, { fetchSize: 10000 })).map((row) => row.join()).sort();

test("writers are killed, the table splits: indexes and views are right all the same", async () => {
  await client.execute("CREATE TABLE kills (p int, c int, v int, PRIMARY KEY (p, c)) WITH cosmosdb_provisioned_throughput = 100000");
  await client.execute("CREATE INDEX kills_by_v ON kills (v)");
  await client.execute(
    "CREATE MATERIALIZED VIEW kills_view AS SELECT * FROM kills WHERE v IS NOT NULL AND p IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, p, c)",
  );
  for (let round = 0; round < 2; round += 1) {
    let going = true;
    const work = async (seed) => {
      for (let i = seed; going; i += 7) {
        const statement = i % 5 === 0 ? ["DELETE FROM derived.kills WHERE p = ? AND c = ?", [i % 20, i % 3]]
          : ["INSERT INTO derived.kills (p, c, v) VALUES (?, ?, ?)", [i % 20, i % 3, i % 4]];
        await client.execute(...statement, { prepare: true }).catch(() => {});
      }
    };
    const workers = [1, 2, 3, 4].map(work);
    if (round === 1) {
      const { out } = await run(["status", "--json", "--data", server.data]);
      const [partition] = JSON.parse(out).databases.find(({ id }) => id === "derived").containers.find(({ id }) => id === "kills").partitions;
      const split = await run(["partition", "split", `${partition.id}`, "--data", server.data]);
      assert.equal(split.code, 0, split.err);
    }
    const begun = Date.now();
    await until("they have written", async () => Date.now() - begun > 700);
    going = false; // those that are under way go on
    await server.kill();
    await Promise.all(workers);
    await server.up();
    await reconnected(client);
  }
  // What was under way is done to its end by the server itself.
  await until(
    "all agree",
    async () => {
      const rows = await sorted("SELECT v, p, c FROM derived.kills");
      const view = await sorted("SELECT v, p, c FROM derived.kills_view");
      const index = [];
      for (let v = 0; v < 4; v += 1) index.push(...(await sorted(`SELECT v, p, c FROM derived.kills WHERE v = ${v}`)));
      return rows.length > 0 && rows.join(";") === view.join(";") && rows.join(";") === index.sort().join(";");
    },
    30,
  );
});
