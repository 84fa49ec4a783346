// Splits, merges and moves of replicated partitions: no client notices, and nothing is lost when nodes are killed.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, run, until } from "../../support/server.mjs";

let cluster;
let database;
const clientOf = (member) => new CosmosClient({ endpoint: member.endpoint, key: emulatorKey });
before(async () => {
  cluster = await Cluster.start({
    nodes: 4,
    settings: { "account.consistency": "Strong", "balancer.interval_ms": 200, "balancer.merge_after_s": 0, "limits.partition_throughput": 50000 },
  });
  ({ database } = await clientOf(cluster.first).databases.create({ id: "d" }));
});
after(() => cluster?.remove());

let containers = 0;
async function makeContainer(definition = {}) {
  containers += 1;
  const { container } = await database.containers.create({ id: `c${containers}`, partitionKey: "/pk", ...definition });
  return container;
}
const ranges = async (container) => (await container.readPartitionKeyRanges().fetchAll()).resources;
const all = async (container) => (await container.items.readAll({ maxItemCount: 50 }).fetchAll()).resources;
const tryHand = (...args) => run([...args.map(String), "--data", cluster.running[0].data]);
const hand = (...args) =>
  until(`orrery ${args.join(" ")}`, async () => (await tryHand(...args)).code === 0, 20);
const count = (container, wanted) =>
  until(`${wanted} partitions`, async () => {
    const list = await ranges(container);
    return list.length === wanted ? list : undefined;
  }, 30);

// Writers and a reader, through all nodes, until it is stopped; what was acknowledged is in `acknowledged`.
function load(container, { keys = 200 } = {}) {
  const acknowledged = new Map();
  const failures = [];
  let stopped = false;
  const through = (n) => clientOf(cluster.running[n % cluster.running.length]).database("d").container(container.id);
  const writer = async (part) => {
    const here = through(part);
    for (let round = 1; !stopped; round += 1) {
      for (let n = part; n < keys && !stopped; n += 3) {
        try {
          await here.items.upsert({ id: `i${n}`, pk: `key ${n}`, n, round });
          acknowledged.set(n, round);
        } catch (error) {
          failures.push(error);
        }
      }
    }
  };
  const reader = async () => {
    const here = through(3);
    while (!stopped) {
      const known = [...acknowledged.keys()];
      try {
        const seen = (await here.items.readAll({ maxItemCount: 20 }).fetchAll()).resources.map(({ n }) => n);
        assert.equal(new Set(seen).size, seen.length, "an item was seen twice");
        assert.deepEqual(known.filter((n) => !seen.includes(n)), [], "items were missed");
      } catch (error) {
        failures.push(error);
      }
    }
  };
  const work = [writer(0), writer(1), writer(2), reader()];
  return {
    begun: () => until("everything was written once", () => acknowledged.size === keys, 30),
    async end() {
      stopped = true;
      await Promise.all(work);
      assert.deepEqual(failures.slice(0, 3).map((error) => `${error.code} ${error.message}`), []);
      const last = new Map((await all(container)).map(({ n, round }) => [n, round]));
      for (const [n, round] of acknowledged) assert.ok(last.get(n) >= round, `key ${n}: ${last.get(n)} instead of ${round}`);
      assert.equal(last.size, keys);
    },
  };
}

test("a container is split and merged under load, and nobody notices", async () => {
  await hand("balancer", "pause");
  const container = await makeContainer({ throughput: 50000 });
  const clients = load(container);
  await clients.begun();
  let list = await count(container, 1);
  for (const wanted of [2, 4]) {
    for (const { id } of list) await hand("partition", "split", id);
    list = await count(container, wanted);
  }
  await hand("partition", "merge", list[0].id);
  await count(container, 3);
  await hand("partition", "merge", list[2].id);
  list = await count(container, 2);
  assert.deepEqual(list.map(({ parents }) => parents.length), [2, 2]);
  await clients.end();
  await cluster.settled(4);
  await hand("balancer", "resume");
});

test("a container whose throughput is raised splits by itself, and its replicas are all there", async () => {
  const container = await makeContainer({ throughput: 50000 });
  await container.items.create({ id: "1", pk: "1" });
  const { offer } = await container.readOffer();
  await offer.replace({ ...(await offer.read()).resource, content: { offerThroughput: 200000 } });
  await count(container, 4);
  await cluster.settled(4);
  assert.equal((await container.item("1", "1").read()).resource.id, "1");
});

test("a node that was away during splits gets what it missed", async () => {
  await hand("balancer", "pause");
  const container = await makeContainer({ throughput: 50000 });
  for (let n = 0; n < 50; n += 1) await container.items.create({ id: `i${n}`, pk: `key ${n}`, n });
  const away = cluster.members[3];
  await away.kill();
  const [{ id }] = await ranges(container);
  await hand("partition", "split", id);
  const [left] = await count(container, 2);
  for (let n = 50; n < 100; n += 1) await container.items.create({ id: `i${n}`, pk: `key ${n}`, n });
  await hand("partition", "split", left.id);
  await count(container, 3);
  await away.up();
  await cluster.settled(4);
  const there = clientOf(away).database("d").container(container.id);
  assert.equal((await there.items.readAll().fetchAll()).resources.length, 100);
  await hand("balancer", "resume");
});

test("a node that leads two partitions in use has another lead one of them", async () => {
  const container = await makeContainer({ throughput: 400000 });
  await cluster.settled(4);
  const leaders = async () => {
    const { replicaSets } = (await cluster.first.status()).cluster;
    return new Map(replicaSets.filter((set) => set.container === `d/${container.id}`).map(({ id, leader }) => [id, leader]));
  };
  // A partition and a key in it: the session token names the partition.
  const keys = new Map();
  for (let n = 0; keys.size < 8; n += 1) {
    const { headers } = await container.items.create({ id: "i", pk: `key ${n}` });
    keys.set(headers["x-ms-session-token"].split(":")[0], `key ${n}`);
  }
  const hot = await until("a node leads two of them", async () => {
    const list = [...await leaders()];
    return list.flatMap(([a, leader], i) => list.slice(i + 1).filter(([, other]) => leader && other === leader).map(([b]) => [a, b]))[0];
  }, 30);
  let stopped = false;
  const work = [0, 1, 2, 3].map(async (n) => {
    while (!stopped) await container.items.upsert({ id: "i", pk: keys.get(hot[n % 2]), text: "x".repeat(2000) });
  });
  const spread = await until("two nodes lead them", async () => {
    const list = await leaders();
    const [a, b] = hot.map((id) => list.get(id));
    return a && b && a !== b ? `${a} ${b}` : undefined;
  }, 60).finally(async () => {
    stopped = true;
    await Promise.all(work);
  });
  assert.notEqual(spread, "");
});

test("a new node fills, leads, and a drained one empties, while clients go on", async () => {
  const container = await makeContainer({ throughput: 300000 });
  const clients = load(container, { keys: 60 });
  await clients.begun();
  const added = await cluster.add();
  const rows = async () => JSON.parse((await tryHand("node", "list", "--json")).out).nodes;
  const even = (list) => Math.max(...list) - Math.min(...list) <= 1;
  await until("all nodes have alike", async () => {
    const list = await rows();
    return list.length === 5 && even(list.map(({ replicas }) => replicas));
  }, 60);
  // By what there is to do, not by number.
  await until("all nodes lead something", async () => (await rows()).every(({ leaders }) => leaders > 0), 60);
  const before = JSON.stringify((await rows()).map(({ replicas }) => replicas));
  await hand("node", "drain", added.id);
  await until("it is empty", async () => (await rows()).find(({ id }) => id === added.id)?.replicas === 0, 60);
  assert.notEqual(before, "");
  await clients.end();
});
