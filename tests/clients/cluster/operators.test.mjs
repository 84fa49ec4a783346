// What operators see and do: status, node list, drain, remove, metrics.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { Server, emulatorKey, run, until } from "../../support/server.mjs";

const items = 30;
let cluster;
let container;
before(async () => {
  cluster = await Cluster.start({ nodes: 4 });
  const client = new CosmosClient({ endpoint: cluster.first.endpoint, key: emulatorKey });
  const { database } = await client.databases.create({ id: "d" });
  ({ container } = await database.containers.create({ id: "c", partitionKey: "/id", throughput: 25000 }));
  await Promise.all(Array.from({ length: items }, (_, i) => container.items.create({ id: `${i}` })));
  await cluster.settled(4);
});
after(() => cluster?.remove());

async function command(...args) {
  const { code, out, err } = await run([...args, "--data", cluster.running[0].data]);
  assert.equal(code, 0, err);
  return out;
}
async function refusedCommand(...args) {
  const { code, out, err } = await run([...args, "--data", cluster.running[0].data]);
  assert.equal(code, 1, out);
  return err;
}
const nodeOf = (status, member) => status.cluster.nodes.find(({ address }) => address === member.address);

test("status shows the same nodes, sets and figures through every node", async () => {
  for (const member of cluster.members) {
    const { code, out, err } = await run(["status", "--json", "--data", member.data]);
    assert.equal(code, 0, err);
    const status = JSON.parse(out);
    assert.equal(status.endpoint, member.endpoint);
    assert.equal(status.cluster.node, member.id);
    assert.deepEqual(status.cluster.nodes.map(({ id }) => id), [1, 2, 3, 4]);
    for (const one of cluster.members) {
      const { id, endpoint, state, alive, replicas, healthy } = nodeOf(status, one);
      assert.deepEqual({ id, endpoint, state, alive, replicas, healthy },
        { id: one.id, endpoint: one.endpoint, state: "active", alive: true, replicas: 3, healthy: true });
    }
    assert.equal(status.cluster.nodes.reduce((sum, { leaders }) => sum + leaders, 0), 3);

    const { underReplicated, moving, withoutLeader, replicaSets } = status.cluster;
    assert.deepEqual({ underReplicated, moving, withoutLeader }, { underReplicated: 0, moving: 0, withoutLeader: 0 });
    const [catalog, ...sets] = replicaSets;
    assert.equal(catalog.id, "catalog");
    assert.equal(catalog.members.filter(({ role }) => role === "voter").length, 3);
    assert.equal(sets.length, 3);
    for (const set of sets) {
      assert.equal(set.container, "d/c");
      assert.equal(set.wanted, 4);
      assert.deepEqual(set.members.map(({ node, role, alive, lag }) => ({ node, role, alive, lag })),
        [1, 2, 3, 4].map((node) => ({ node, role: "voter", alive: true, lag: 0 })));
      assert.ok(set.members.some(({ node }) => node === set.leader));
    }

    const { partitions } = status.databases[0].containers[0];
    assert.equal(partitions.reduce((sum, partition) => sum + partition.items, 0), items);
    assert.ok(partitions.every(({ bytes, share }) => bytes > 0 && share > 8000));
  }
});

test("status and node list are tables for people", async () => {
  const status = await command("status");
  assert.match(status, /cluster of 4 nodes, 4 alive/);
  assert.match(status, /catalog .*standby/);
  assert.match(status, /d\/c +\d +\d+ +1, 2, 3, 4/);
  assert.match(status, /d\/c {2}25000 RU\/s/);
  const list = await command("node", "list");
  assert.equal(list.trim().split("\n").length, 5);
  for (const { address, endpoint } of cluster.members) assert.ok(list.includes(address) && list.includes(endpoint), list);
  assert.deepEqual(JSON.parse(await command("node", "list", "--json")).nodes.map(({ id }) => id), [1, 2, 3, 4]);
});

test("metrics tell of nodes, replicas, sets and traffic", async () => {
  let leaders = 0;
  for (const member of cluster.members) {
    const { text } = await member.request({ path: "/metrics", unsigned: true });
    const value = (name) => Number(text.match(new RegExp(`^${name.replace(/[{}"]/g, "\\$&")} (.*)$`, "m"))?.[1]);
    assert.equal(value('orrery_cluster_nodes{state="active",alive="true"}'), 4);
    assert.equal(value("orrery_replicas"), 3);
    assert.equal(value("orrery_sets_under_replicated"), 0);
    assert.ok(value("orrery_peer_bytes_sent_total") > 0);
    leaders += value("orrery_leaders");
    const terms = [...text.matchAll(/^orrery_set_term\{set="[1-9]\d*"\} [1-9]/gm)];
    assert.equal(terms.length, value("orrery_leaders"));
  }
  assert.equal(leaders, 3);
});

test("a silent node is shown, with the sets that miss it, until it is back", async () => {
  const victim = cluster.members[3];
  const { id } = victim;
  await victim.kill();
  await until("it is shown as silent", async () => {
    const status = await cluster.first.status();
    return !nodeOf(status, victim).alive && status.cluster.underReplicated >= 3 && status.cluster.withoutLeader === 0;
  });
  assert.match(await command("status"), new RegExp(`\\n +${id} .*SILENT[\\s\\S]*UNDER-REPLICATED: 3 of 4`));
  await victim.up();
  await cluster.settled(4);
});

test("what nodes do is for those who have a key that writes", async () => {
  const drain = { method: "POST", path: "/_orrery/nodes/4/drain" };
  assert.equal((await cluster.first.request({ ...drain, unsigned: true })).status, 401);
  const { primaryReadOnly } = cluster.first.keys();
  assert.equal((await cluster.first.request({ ...drain, key: primaryReadOnly })).status, 403);
  assert.equal((await cluster.first.request({ path: "/_orrery/nodes", key: primaryReadOnly })).status, 200);
  assert.equal(nodeOf(await cluster.first.status(), cluster.members[3]).state, "active");
});

test("nodes that are none, and what is none of their commands, are refused", async () => {
  assert.match(await refusedCommand("node", "drain", "99"), /no node 99/);
  assert.match(await refusedCommand("node", "remove", "99"), /no node 99/);
  for (const target of ["/_orrery/nodes/1", "/_orrery/nodes/1/paint", "/_orrery/nodes/x/drain", "/_orrery/nodes/1x/drain"]) {
    assert.equal((await cluster.first.request({ method: "POST", path: target })).status, 404, target);
  }
  const alone = await Server.start();
  try {
    const { code, err } = await run(["node", "list", "--data", alone.data]);
    assert.equal(code, 1);
    assert.match(err, /alone/);
  } finally {
    await alone.remove();
  }
});

test("a drained node gives all away and can be removed; then no other may go", async () => {
  const [first, second, third, leaving] = cluster.members;
  const { id } = leaving;
  const read = async () => (await container.items.readAll().fetchAll()).resources.length;

  // Through a node that is neither the one that goes nor, perhaps, the one that decides.
  const { code, err } = await run(["node", "drain", `${id}`, "--data", second.data]);
  assert.equal(code, 0, err);
  await until("it has no replicas", async () => nodeOf(await third.status(), leaving).replicas === 0, 20);
  assert.equal(nodeOf(await third.status(), leaving).state, "draining");
  assert.equal(await read(), items);

  for (const what of ["drain", "remove"]) {
    assert.match(await refusedCommand("node", what, `${first.id}`), /there are 2 active nodes, and sets with 3 replicas/);
  }
  assert.match(await command("node", "undrain", `${id}`), /takes replicas again/);
  await cluster.settled(4);
  assert.equal(nodeOf(await third.status(), leaving).state, "active");
  assert.match(await command("node", "drain", `${id}`), /is being drained/);
  await until("it has no replicas again", async () => nodeOf(await third.status(), leaving).replicas === 0, 20);

  assert.match(await command("node", "remove", `${id}`), /removed, for good/);
  await leaving.waitForEnd(10);
  assert.match(leaving.log(), /was removed from its cluster/);
  await until("all know", async () =>
    (await Promise.all([first, second, third].map((one) => one.status()))).every((status) => !nodeOf(status, leaving)));
  assert.equal(await read(), items);
  await cluster.settled(3);

  const again = await run(leaving.args());
  assert.notEqual(again.code, 0);
  assert.match(again.err, /was removed from its cluster/);
});

test("a node that does not come back is removed, and a new one takes its place", async () => {
  await cluster.add();
  await cluster.settled(4);
  const [first, lost, other] = cluster.members;
  const { id } = lost;
  await lost.kill();
  await until("its end is noticed", async () => !nodeOf(await first.status(), lost).alive);
  assert.match(await refusedCommand("node", "remove", `${other.id}`), /\d of the \d voters of (the catalog|set \d+) are alive, which is no majority/);
  assert.match(await command("node", "remove", `${id}`), /removed, for good/);
  await cluster.settled(3);
  const again = await run(lost.args());
  assert.notEqual(again.code, 0);
  assert.match(again.err, /was removed from its cluster/);
  await cluster.add();
  const { nodes } = await cluster.settled(4);
  assert.ok(!nodes.some((node) => node.id === id));
  assert.equal((await container.items.readAll().fetchAll()).resources.length, items);
});

test("a node whose disk is nearly full leads nothing, and writes go on", async () => {
  const own = await Cluster.start({ nodes: 2 });
  try {
    const full = await own.add({ settings: { "storage.free_reserve_mb": 1_000_000_000 } });
    const { database } = await new CosmosClient({ endpoint: own.first.endpoint, key: emulatorKey }).databases.create({ id: "d" });
    for (const id of ["a", "b", "c", "e"]) {
      const { container: made } = await database.containers.create({ id, partitionKey: "/id" });
      await until("it takes a write", () => made.items.upsert({ id: "one" }).then(() => true, ({ code }) => {
        assert.equal(code, 503);
        return false;
      }));
    }
    const { replicaSets } = await own.settled(3);
    for (const { id, leader } of replicaSets) assert.notEqual(leader, full.id, `set ${id}`);
  } finally {
    await own.remove();
  }
});
