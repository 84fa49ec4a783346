// A node that neither answers nor refuses: frozen, or behind a network that drops everything. The others go on without
// it within a few election time-outs, whatever was under way.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, until } from "../../support/server.mjs";

const answeredMs = 5000;

let cluster;
before(async () => {
  cluster = await Cluster.start({ nodes: 4 });
  const client = new CosmosClient({ endpoint: cluster.first.endpoint, key: emulatorKey });
  const { database } = await client.databases.create({ id: "d" });
  await database.containers.create({ id: "c", partitionKey: "/pk" });
  client.dispose();
  await cluster.settled(4);
});
after(() => cluster?.remove());

// The node that leads a set.
const leaderOf = (isWanted) => until("the set is led", async () => {
  const { leader } = (await cluster.settled(4)).replicaSets.find(isWanted);
  return cluster.members.find(({ id }) => id === leader);
});
// Runs `work` while the node is frozen, and wakes it before its time is over in any case.
async function frozen(member, work) {
  member.child.kill("SIGSTOP");
  const wake = () => member.child.kill("SIGCONT");
  const timer = setTimeout(wake, 15_000);
  try {
    await work(cluster.members.filter((other) => other !== member));
  } finally {
    clearTimeout(timer);
    wake();
  }
  await cluster.settled(4);
}
async function timed(what, request) {
  const began = performance.now();
  const reply = await request;
  const took = performance.now() - began;
  assert.equal(reply.status, 201, `${what}: ${reply.text} after ${took} ms`);
  assert.ok(took < answeredMs, `${what} took ${took} ms`);
}
const create = (member, id) => member.request({
  method: "POST", path: "/dbs/d/colls/c/docs", body: JSON.stringify({ id, pk: "one" }),
  headers: { "x-ms-documentdb-partitionkey": '["one"]' },
});
const createDatabase = (member, id) => member.request({ method: "POST", path: "/dbs", body: JSON.stringify({ id }) });

test("writes through any other node go on when a partition's leader is silent", async () => {
  for (const member of cluster.members) {
    assert.equal((await create(member, `before-${member.id}`)).status, 201); // now it knows the leader
  }
  const leader = await leaderOf(({ container }) => container === "d/c");
  await frozen(leader, async (others) => {
    await Promise.all(others.map((member) => timed(`a write through ${member.id}`, create(member, `under-way-${member.id}`))));
    for (const member of others) {
      await timed(`a later write through ${member.id}`, create(member, `later-${member.id}`));
    }
  });
});

test("changes of the catalog through any other node go on when its leader is silent", async () => {
  const leader = await leaderOf(({ id }) => id === "catalog");
  await frozen(leader, async (others) => {
    await Promise.all(others.map((member) => timed(`a database through ${member.id}`, createDatabase(member, `n${member.id}`))));
  });
  await until("the one that was frozen knows them", async () =>
    (await leader.request({ path: "/dbs" })).json.Databases.length === 4);
});
