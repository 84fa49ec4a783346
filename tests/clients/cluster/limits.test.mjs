// Storage limits and what `orrery partitions` shows, on a cluster. The limits are lowered to megabytes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, run } from "../../support/server.mjs";

let cluster;
let container; // through the first node
before(async () => {
  cluster = await Cluster.start({ nodes: 4, settings: { "limits.logical_partition_mb": 1 } });
  const { database } = await clientOf(cluster.first).databases.create({ id: "d" });
  const indexingPolicy = { indexingMode: "none", automatic: false };
  ({ container } = await database.containers.create({ id: "c", partitionKey: "/pk", throughput: 10000, indexingPolicy }));
  await cluster.settled(4);
});
after(() => cluster?.remove());

const clientOf = (member) => new CosmosClient({ endpoint: member.endpoint, key: emulatorKey });
const through = (member) => clientOf(member).database("d").container("c");
const item = (id, pk, bytes = 100_000) => ({ id, pk, text: "x".repeat(bytes) });
async function codeOf(write) {
  try {
    return (await write).statusCode;
  } catch (error) {
    return `${error.code}/${error.substatus ?? error.headers?.["x-ms-substatus"]}`;
  }
}
async function partitions(member) {
  const { code, out, err } = await run(["partitions", "d/c", "--json", "--data", member.data]);
  assert.equal(code, 0, err);
  return JSON.parse(out).partitions;
}

test("a logical partition is full through every node, and stays so under the next leader", async () => {
  for (let i = 0; i < 10; i += 1) assert.equal(await codeOf(container.items.create(item(`${i}`, "full"))), 201);
  for (const member of cluster.members) {
    assert.equal(await codeOf(through(member).items.create(item("more", "full"))), "403/1014");
    assert.equal(await codeOf(through(member).items.create(item(`of ${member.id}`, "other", 1000))), 201);
  }
  const [{ leader }] = await partitions(cluster.first);
  const killed = cluster.members.find(({ id }) => id === leader);
  await killed.kill();
  try {
    const others = through(cluster.running[0]);
    assert.equal(await codeOf(others.items.create(item("more", "full"))), "403/1014");
    assert.equal(await codeOf(others.items.create(item("more", "other", 1000))), 201);
    assert.equal(await codeOf(others.item("0", "full").delete()), 204);
    assert.equal(await codeOf(others.items.create(item("more", "full"))), 201);
    assert.equal(await codeOf(others.items.create(item("most", "full"))), "403/1014");
  } finally {
    await killed.up();
  }
});

test("partitions shows the same ranges, sizes and keys through every node", async () => {
  await cluster.settled(4);
  const seen = [];
  for (const member of cluster.members) {
    const [one, ...others] = await partitions(member);
    assert.equal(others.length, 0);
    assert.ok(cluster.members.some(({ id }) => id === one.leader), `${one.leader}`);
    assert.deepEqual(one.largestKeys.map(({ key }) => key), [["full"], ["other"]]);
    assert.ok(one.hottestKeys.some(({ key }) => key[0] === "full"), JSON.stringify(one));
    seen.push(JSON.stringify([one.items, one.bytes, one.largestKeys, one.leader]));
  }
  assert.equal(new Set(seen).size, 1, seen.join("\n"));
  const { out } = await run(["partitions", "d/c", "--data", cluster.first.data]);
  assert.match(out, /partition +from +to +parents +generation +leader +items +size/);
});
