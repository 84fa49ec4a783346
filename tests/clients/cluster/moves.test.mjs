// A replica that is moved away votes until the others have removed it: however often a partition moves, it is never
// without a majority.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, until } from "../../support/server.mjs";

let cluster;
before(async () => {
  cluster = await Cluster.start({ nodes: 4, settings: { "cluster.replicas": 3, "account.consistency": "Strong" } });
});
after(() => cluster?.remove());

test("a partition that is moved again and again keeps its leader and its items", async () => {
  const client = new CosmosClient({ endpoint: cluster.first.endpoint, key: emulatorKey });
  const { database } = await client.databases.create({ id: "d" });
  const { container } = await database.containers.create({ id: "c", partitionKey: "/pk", throughput: 10000 });
  for (let n = 0; n < 50; n += 1) await container.items.create({ id: `i${n}`, pk: `key ${n}` });
  await cluster.first.request({ method: "POST", path: "/_orrery/balancer/pause" });
  const written = [];
  let stopped = false;
  let round = 0;
  const writer = (async () => {
    for (; !stopped; round += 1) written.push((await container.items.upsert({ id: "x", pk: "key 1", round })).resource.round);
  })();
  // Over all nodes each is counted once, by who led then.
  const counted = async () => {
    const texts = await Promise.all(cluster.members.map((member) => member.request({ path: "/metrics", unsigned: true })));
    return texts.reduce((sum, { text }) => sum + Number(text.match(/^orrery_moves_total (\d+)$/m)[1]), 0);
  };
  await cluster.settled(3);
  const countedBefore = await counted();
  const set = async () => (await cluster.first.status()).cluster.replicaSets.find(({ id }) => id === "1");
  const nodes = cluster.members.map(({ id }) => id);
  for (let moves = 0; moves < 8; moves += 1) {
    // Another one each time, so each node loses and gets it again; refused while the last move is not done.
    await until("it is moved", async () => {
      const has = (await set()).members.map(({ node }) => node);
      const to = nodes.find((id) => !has.includes(id));
      if (has.length !== 3 || to === undefined) return false;
      const body = JSON.stringify({ from: has[moves % 3], to });
      return (await cluster.first.request({ method: "POST", path: "/_orrery/partitions/1/move", body })).status === 200;
    });
    const before = round;
    await until("writes go on", () => round > before + 20);
  }
  stopped = true;
  await writer;
  await cluster.settled(3);
  assert.equal((await counted()) - countedBefore, 8);
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 51);
  assert.equal((await container.item("x", "key 1").read()).resource.round, written.at(-1));
});
