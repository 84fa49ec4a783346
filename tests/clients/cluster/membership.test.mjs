// How a cluster forms and grows, and who may not join.
import assert from "node:assert/strict";
import { mkdirSync, rmSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster, Member } from "../../support/cluster.mjs";
import { Server, emulatorKey, freePort, run, temporaryFolder, until } from "../../support/server.mjs";

const clientOf = (server) => new CosmosClient({ endpoint: server.endpoint, key: emulatorKey });
const secret = "the secret of the cluster of this test";

let work; // for data folders
before(() => {
  work = temporaryFolder();
});
after(() => rmSync(work, { recursive: true, force: true }));

let folders = 0;
function folder() {
  folders += 1;
  return path.join(work, `data-${folders}`);
}

// A start that must fail: {code, err}.
async function failedStart(args) {
  const { code, err } = await run(["start", "--dev", "--data", folder(), "--port", "0", ...args]);
  assert.notEqual(code, 0, err);
  return { code, err };
}

// Every node gives all items by query and by id.
async function readEverywhere(cluster, ids) {
  for (const member of cluster.running) {
    const container = clientOf(member).database("d").container("c");
    const { resources } = await container.items.readAll().fetchAll();
    assert.deepEqual(resources.map(({ id }) => id).sort(), ids, `through node ${member.id}`);
    assert.equal((await container.item(ids[0], ids[0]).read()).resource.id, ids[0]);
  }
}

test("a lone node with data becomes the first of a cluster, and its sets grow from 1 to 3 and 4 replicas", async () => {
  const data = folder();
  mkdirSync(data);
  const alone = await Server.start({ data });
  const { database } = await clientOf(alone).databases.create({ id: "d" });
  const { container } = await database.containers.create({ id: "c", partitionKey: "/id", throughput: 20000 });
  const ids = Array.from({ length: 40 }, (_, i) => `item-${i}`).sort();
  await Promise.all(ids.map((id) => container.items.create({ id })));
  await alone.stop();

  const cluster = await Cluster.start({ nodes: 1, data, settings: { "account.consistency": "Strong" } });
  try {
    await readEverywhere(cluster, ids);
    await cluster.add();
    const two = await cluster.settled(1);
    assert.equal(two.underReplicated, 0, "two nodes have one replica of each set");
    await cluster.add();
    await cluster.settled(3);
    await cluster.add();
    const four = await cluster.settled(4);
    assert.equal(four.replicaSets.length, 3);
    await readEverywhere(cluster, ids);

    // What is new goes to all of them as well.
    await clientOf(cluster.members[3]).database("d").container("c").items.create({ id: "item-new" });
    await readEverywhere(cluster, [...ids, "item-new"].sort());
    await cluster.first.kill();
    await readEverywhere(cluster, [...ids, "item-new"].sort());
    await cluster.first.up();
    await cluster.settled(4);
    await readEverywhere(cluster, [...ids, "item-new"].sort());
  } finally {
    await cluster.remove();
  }
});

test("a whole cluster that was stopped comes back, in any order, with its data", async () => {
  const cluster = await Cluster.start({ nodes: 3, settings: { "account.consistency": "Strong" } });
  try {
    const { database } = await clientOf(cluster.first).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/id" });
    await container.items.create({ id: "one" });
    await cluster.settled(3);
    for (const member of cluster.members) await member.stop();
    await Promise.all(cluster.members.toReversed().map((member) => member.up()));
    await readEverywhere(cluster, ["one"]);
    await clientOf(cluster.members[2]).database("d").container("c").items.create({ id: "two" });
    await readEverywhere(cluster, ["one", "two"]);
  } finally {
    await cluster.remove();
  }
});

test("after all nodes were killed a majority goes on, and a node without one waits", async () => {
  const cluster = await Cluster.start({ nodes: 3, settings: { "account.consistency": "Strong" } });
  try {
    const { database } = await clientOf(cluster.first).databases.create({ id: "d" });
    const { container } = await database.containers.create({ id: "c", partitionKey: "/id" });
    await container.items.create({ id: "one" });
    await cluster.settled(3);
    await Promise.all(cluster.members.map((member) => member.kill()));

    const [first, second] = cluster.members;
    const waiting = first.up().catch(() => "ended");
    await until("it waits", () => /waiting for a majority of the nodes\n$/.test(first.log()));
    first.child.kill("SIGTERM");
    assert.equal((await first.waitForEnd(5)).code, 1);
    assert.equal(await waiting, "ended");

    await Promise.all([first.up(), second.up()]);
    await readEverywhere(cluster, ["one"]);
    await clientOf(first).database("d").container("c").items.create({ id: "two" });
    await readEverywhere(cluster, ["one", "two"]);
  } finally {
    await cluster.remove();
  }
});

test("a folder that has data but no identity does not join", async () => {
  const cluster = await Cluster.start({ nodes: 1 });
  try {
    const data = folder();
    const lone = await Server.start({ data });
    await lone.stop();
    const args = ["start", "--dev", "--data", data, "--port", "0", "--cluster-listen", "127.0.0.1:0"];
    const { code, err } = await run([...args, "--join", cluster.first.address]);
    assert.notEqual(code, 0);
    assert.match(err, /has data, but is of no member/);
    assert.equal((await cluster.first.status()).cluster.nodes.length, 1);
  } finally {
    await cluster.remove();
  }
});

test("a node that ends before it could write down who it is joins as the same node", async () => {
  const cluster = await Cluster.start({ nodes: 1 });
  try {
    const member = new Member({ join: cluster.first.address });
    cluster.members.push(member);
    member.port = await freePort();
    member.peerPort = await freePort();
    const start = (...more) => run(["start", "--dev", "--data", member.data, "--port", `${member.port}`, "--cluster-listen", member.address, ...more]);
    const nowhere = await start("--join", "127.0.0.1:1", "--set", "cluster.join_timeout_s=1");
    assert.match(nowhere.err, /cannot join/);
    const inTheWay = path.join(member.data, "node.json.new");
    mkdirSync(inTheWay);
    const unwritten = await start("--join", cluster.first.address);
    assert.match(unwritten.err, /node\.json/);
    rmSync(inTheWay, { recursive: true });
    await member.up();
    const { nodes } = (await cluster.first.status()).cluster;
    assert.deepEqual(nodes.map(({ id }) => id).sort(), [cluster.first.id, member.id].sort());
  } finally {
    await cluster.remove();
  }
});

test("a node that does not know the secret, or speaks without TLS, is refused", async () => {
  const cluster = await Cluster.start({ nodes: 1, settings: { "cluster.secret": secret } });
  const open = await Cluster.start({ nodes: 1 });
  try {
    const soon = ["--set", "cluster.join_timeout_s=1"];
    const join = ["--join", cluster.first.address, ...soon];
    const [wrong, plain, secured] = await Promise.all([
      failedStart([...join, "--set", `cluster.secret=${secret}!`]),
      failedStart(join),
      failedStart(["--join", open.first.address, ...soon, "--set", `cluster.secret=${secret}`]),
    ]);
    for (const { err } of [wrong, plain, secured]) assert.match(err, /cannot join the cluster at 127\.0\.0\.1:\d+/);
    assert.match(wrong.err, /the same secret/);
    assert.match(cluster.first.log(), /connection of a peer refused/);
    assert.equal((await cluster.first.status()).cluster.nodes.length, 1);
    assert.equal((await open.first.status()).cluster.nodes.length, 1);

    await cluster.add();
    assert.equal((await cluster.first.status()).cluster.nodes.length, 2);
  } finally {
    await cluster.remove();
    await open.remove();
  }
});

test("a node that waits to join can be stopped", async () => {
  const member = new Member({ data: folder(), join: "127.0.0.1:1" });
  const starting = member.up().catch(() => "ended");
  await until("it says that it cannot join yet", () => /cannot join the cluster yet/.test(member.log()));
  member.child.kill("SIGTERM");
  assert.equal((await member.waitForEnd(5)).code, 1);
  assert.equal(await starting, "ended");
});

test("a cluster refuses periodic durability, and to go without a secret beyond loopback", async () => {
  const periodic = await failedStart(["--cluster-listen", "127.0.0.1:0", "--set", "storage.durability=periodic"]);
  assert.match(periodic.err, /periodic.*is for a node that is alone/);
  const open = await run(["start", "--data", folder(), "--port", "0", "--cluster-listen", "127.0.0.1:0"]);
  assert.notEqual(open.code, 0);
  assert.match(open.err, /cluster\.secret/);
});

test("the folder of a node of a cluster does not start alone", async () => {
  const cluster = await Cluster.start({ nodes: 1 });
  try {
    await cluster.first.stop();
    const { code, err } = await run(["start", "--dev", "--data", cluster.first.data, "--port", "0"]);
    assert.notEqual(code, 0);
    assert.match(err, /belongs to a cluster/);
    await cluster.first.up();
  } finally {
    await cluster.remove();
  }
});
