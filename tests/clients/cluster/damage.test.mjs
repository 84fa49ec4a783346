// Table files of one node are damaged while it runs: clients notice nothing, and the replica is made anew.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { closeSync, openSync, readSync, readdirSync, statSync, writeSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, until } from "../../support/server.mjs";

const count = 300;
const texts = Array.from({ length: count }, () => randomBytes(1800).toString("base64"));
const idOf = (i) => `item${i}`;

let cluster;
const containerThrough = (member) =>
  new CosmosClient({ endpoint: member.endpoint, key: emulatorKey }).database("d").container("c");
before(async () => {
  // Small buffers: most of the items are in files, and few blocks of these in memory.
  const settings = { "account.consistency": "Strong", "storage.write_buffer_mb": 1, "storage.cache_mb": 1 };
  cluster = await Cluster.start({ nodes: 4, settings });
  const client = new CosmosClient({ endpoint: cluster.first.endpoint, key: emulatorKey });
  const { database } = await client.databases.create({ id: "d" });
  await database.containers.create({ id: "c", partitionKey: "/pk" }, { offerThroughput: 10000 });
  await cluster.settled(4);
});
after(() => cluster?.remove());

async function inLanes(work) {
  await Promise.all(Array.from({ length: 8 }, async (_, lane) => {
    for (let i = lane; i < count; i += 8) await work(i);
  }));
}
const setOf = (status) => status.replicaSets.find(({ container }) => container === "d/c");

// Most blocks of each file that has more than a little.
function damageFiles(folder) {
  const files = readdirSync(folder).filter((name) => name.endsWith(".sst")).map((name) => path.join(folder, name))
    .filter((file) => statSync(file).size > 64 * 1024);
  for (const file of files) {
    const handle = openSync(file, "r+");
    const byte = Buffer.alloc(1);
    for (let place = 100; place < statSync(file).size * 0.9; place += 4096) {
      readSync(handle, byte, 0, 1, place);
      byte[0] ^= 0x5a;
      writeSync(handle, byte, 0, 1, place);
    }
    closeSync(handle);
  }
  return files.length;
}

test("a leader whose files are damaged is made anew, and its clients see all items and no error", async () => {
  const items = containerThrough(cluster.first);
  await inLanes((i) => items.items.create({ id: idOf(i), pk: idOf(i), text: texts[i] }));
  const before = setOf(await cluster.settled(4));
  const damaged = cluster.members.find(({ id }) => id === before.leader);
  assert.ok(damageFiles(path.join(damaged.data, "state")) > 0, "nothing was flushed yet");

  const container = containerThrough(damaged);
  await inLanes(async (i) => {
    const { resource } = await container.item(idOf(i), idOf(i)).read();
    assert.equal(resource?.text, texts[i], idOf(i));
  });
  const old = before.members.find(({ node }) => node === damaged.id).replica;
  const made = await until("another replica has taken its place", async () => {
    const set = setOf(await cluster.settled(4));
    return set.members.every(({ replica }) => replica !== old) && set;
  });
  assert.deepEqual(made.members.map(({ node }) => node).sort(), before.members.map(({ node }) => node).sort());

  const { resources } = await container.items.readAll({ maxItemCount: 1000 }).fetchAll();
  assert.equal(resources.length, count);
  assert.match(damaged.log(), /a replica is damaged/);
});
