// A node that dies at any step of a split or a merge, as the leader of the partition or as another: the cluster goes on
// with the parents or with all heirs, the node comes back, and nothing is lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, run, until } from "../../support/server.mjs";
import { rangesOf as ranges } from "../../support/partitions.mjs";

const items = 30;
const partitions = 5; // more than nodes: each leads one that is not the last on the ring

let cluster;
let database;
const clientOf = (member) => new CosmosClient({ endpoint: member.endpoint, key: emulatorKey });
const command = (...args) => run([...args.map(String), "--data", cluster.running[0].data]);
before(async () => {
  cluster = await Cluster.start({
    nodes: 4,
    settings: {
      "account.consistency": "Strong",
      "balancer.interval_ms": 200,
      "limits.partition_throughput": 20000,
    },
  });
  ({ database } = await clientOf(cluster.first).databases.create({ id: "d" }));
  assert.equal((await command("balancer", "pause")).code, 0);
});
after(() => cluster?.remove());

const item = (n, round = 0) => ({ id: `i${n}`, pk: `key ${n}`, n, round });
const through = (member, container) => clientOf(member).database("d").container(container.id);
const ids = (ranges) => ranges.map(({ id }) => id);

// Its partitions as `orrery status` shows them.
async function partitionsOf(container) {
  const { code, out, err } = await command("status", "--json");
  assert.equal(code, 0, err);
  return JSON.parse(out).databases.find(({ id }) => id === "d").containers.find(({ id }) => id === container.id).partitions;
}
const countOf = (list) => list.reduce((sum, partition) => sum + partition.items, 0);

async function restart(member, killAt) {
  if (member.alive()) await member.stop();
  member.settings["test.kill_at"] = killAt;
  await member.up();
}

// A container, and the partition of it that is to change: one that the member leads, or one that it does not.
async function prepare(number, victim, leads) {
  const { container } = await database.containers.create({ id: `c${number}`, partitionKey: "/pk", throughput: 20000 * partitions });
  const { id } = await until("one is led as it should be", async () => {
    const list = (await partitionsOf(container)).slice(0, -1);
    return list.find(({ leader }) => leader > 0 && (leader === victim.id) === leads);
  });
  await cluster.settled(4);
  await Promise.all(Array.from({ length: items }, (_, n) => container.items.create(item(n))));
  return { container, partition: id };
}

// Writes through those members until it is ended; `rounds` of what was acknowledged, `latest` items since it was emptied.
function writeThrough(members, container) {
  const rounds = new Map();
  const latest = new Set();
  const failures = [];
  let stopped = false;
  const writer = async (member, part) => {
    const here = through(member, container);
    for (let round = 1; !stopped; round += 1) {
      for (let n = part; n < items && !stopped; n += members.length) {
        try {
          await here.items.upsert(item(n, round));
          rounds.set(n, round);
          latest.add(n);
        } catch (error) {
          failures.push(error);
        }
      }
    }
  };
  const work = members.map(writer);
  return {
    rounds,
    latest,
    async end() {
      stopped = true;
      await Promise.all(work);
      assert.deepEqual(failures.slice(0, 3).map((error) => `${error.code} ${error.message}`), []);
    },
  };
}

async function check(container, rounds, heirs) {
  for (const member of cluster.members) {
    const here = through(member, container);
    assert.deepEqual(ids(await ranges(here)), ids(heirs));
    const found = (await here.items.readAll({ maxItemCount: 20 }).fetchAll()).resources.sort((a, b) => a.n - b.n);
    assert.deepEqual(found.map(({ n }) => n), Array.from({ length: items }, (_, n) => n));
    for (const { n, round } of found) assert.equal(round, rounds.get(n) ?? 0, `item ${n}`);
  }
  for (let n = 0; n < items; n += 7) {
    const { resource } = await container.item(`i${n}`, `key ${n}`).read();
    assert.equal(resource.round, rounds.get(n) ?? 0);
  }
  assert.equal(countOf(await partitionsOf(container)), items);
}

// The ranges when the change is finished. A merge that waits too long for a node is called off: then it is asked again.
async function finished(container, action, partition) {
  const wanted = partitions + (action === "split" ? 1 : -1);
  return until("the change is finished", async () => {
    const now = await ranges(container);
    if (now.length === wanted) return now;
    assert.deepEqual([now.length, now.some(({ id }) => id === partition)], [partitions, true], JSON.stringify(now));
    if (action === "merge") await command("partition", "merge", partition);
  }, 20);
}

let cases = 0;
// enough: so many items are written again before the node comes back.
async function survives(action, step, { leads = true, enough = items } = {}) {
  cases += 1;
  const victim = cluster.members[cases % cluster.members.length];
  const others = cluster.members.filter((member) => member !== victim);
  await restart(victim, step);
  const { container, partition } = await prepare(cases, victim, leads);
  const here = through(others[0], container);
  const clients = writeThrough(others, container);
  let heirs;
  try {
    await until(`the ${action} begins`, async () =>
      (await run(["partition", action, partition, "--data", others[0].data])).code === 0);
    await until(`the node dies at ${step}`, () => !victim.alive(), 10);
    assert.equal(victim.child.signalCode, "SIGKILL");
    clients.latest.clear();
    await until("writes go on without it", () => clients.latest.size >= enough);
    await restart(victim, "");
    heirs = await finished(here, action, partition);
  } finally {
    if (heirs === undefined) await restart(victim, ""); // for the next ones
    await clients.end();
  }
  await cluster.settled(4);
  await check(here, clients.rounds, heirs);
  await container.delete();
}

for (const step of ["split.begun", "split.frozen", "split.finished", "heirs.detached", "heirs.in_state", "heirs.in_log", "heirs.begun"]) {
  test(`a split survives that the leader dies at ${step}`, () => survives("split", step));
}
test("a merge survives that the leader dies at merge.begun, and is called off while it stays away", () => survives("merge", "merge.begun"));
for (const step of ["merge.left_frozen", "merge.frozen", "merge.finished"]) {
  test(`a merge survives that the leader dies at ${step}`, () => survives("merge", step, { enough: 3 }));
}
for (const step of ["heirs.detached", "heirs.in_state", "heirs.in_log", "heirs.begun"]) {
  test(`a merge survives that the leader dies at ${step}`, () => survives("merge", step));
}
for (const [action, step] of [["split", "heirs.detached"], ["split", "heirs.in_log"], ["merge", "heirs.in_state"], ["merge", "heirs.begun"]]) {
  test(`a ${action} survives that a follower dies at ${step}`, () => survives(action, step, { leads: false }));
}
