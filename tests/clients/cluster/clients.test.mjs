// Any node serves any client: what is written through one is read through all, budgets are one for all, and an SDK
// goes on when its node is killed.
import assert from "node:assert/strict";
import dns from "node:dns";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { createDefaultHttpClient } from "@azure/core-rest-pipeline";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, freePort, until } from "../../support/server.mjs";

// One port, four addresses, and a name for all of them.
const hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
const name = "cluster.orrery.test";
const lookup = dns.lookup;
dns.lookup = (host, options, done) => {
  if (host !== name) return lookup(host, options, done);
  const found = hosts.map((address) => ({ address, family: 4 }));
  return options.all ? setImmediate(done, null, found) : setImmediate(done, null, found[0].address, 4);
};

let cluster;
let database; // through the first node
before(async () => {
  cluster = await Cluster.start({ nodes: 4, hosts, port: await freePort(), settings: { "account.consistency": "Strong" } });
  ({ database } = await clientOf(cluster.first).databases.create({ id: "d" }));
  await until("all nodes know each other's endpoints", async () =>
    (await Promise.all(cluster.members.map((member) => member.request({ path: "/" }))))
      .every(({ json }) => json.readableLocations.length === 4));
});
after(() => cluster?.remove());

const clientOf = (member, options = {}) => new CosmosClient({ endpoint: member.endpoint, key: emulatorKey, ...options });
const through = (member, container, options) => clientOf(member, options).database("d").container(container.id);
let containers = 0;
async function makeContainer(definition = {}) {
  containers += 1;
  const made = await database.containers.create({ id: `c${containers}`, partitionKey: "/pk", ...definition });
  return made.container;
}
// Each pair of different nodes.
const pairs = () => cluster.members.flatMap((from) => cluster.members.filter((to) => to !== from).map((to) => [from, to]));

// Every kind of request, through a client.
async function useAll(container, id) {
  assert.equal((await container.item("a", "a").read()).statusCode, 200);
  assert.equal((await container.items.create({ id, pk: id })).statusCode, 201);
  assert.equal((await container.items.upsert({ id, pk: id, v: 2 })).statusCode, 200);
  assert.equal((await container.item(id, id).read()).resource.v, 2);
  const { resources } = await container.items.query("SELECT * FROM c").fetchAll();
  assert.ok(resources.some((item) => item.id === id));
}

test("the account lists all nodes, the asked one first", async () => {
  const all = cluster.members.map(({ endpoint }) => endpoint).sort();
  for (const member of cluster.members) {
    const { json } = await member.request({ path: "/" });
    assert.deepEqual(json.writableLocations, json.readableLocations);
    assert.equal(json.enableMultipleWriteLocations, true);
    const [first] = json.readableLocations;
    assert.deepEqual(first, { name: `Node ${member.id}`, databaseAccountEndpoint: member.endpoint });
    assert.deepEqual(json.readableLocations.map((one) => one.databaseAccountEndpoint).sort(), all);
    assert.equal(new Set(json.readableLocations.map((one) => one.name)).size, 4);
  }
});

test("a client that came by another name keeps it, with the other nodes behind it", async () => {
  const { json } = await cluster.first.request({ path: "/", headers: { host: `${name}:${cluster.first.port}` } });
  assert.deepEqual(json.readableLocations[0], { name: "Local", databaseAccountEndpoint: `http://${name}:${cluster.first.port}/` });
  assert.deepEqual(json.readableLocations.slice(1).map((one) => one.databaseAccountEndpoint).sort(),
    cluster.members.slice(1).map(({ endpoint }) => endpoint).sort());
});

test("containers are made, changed and dropped through any node", async () => {
  for (const [i, member] of cluster.members.entries()) {
    const other = cluster.members[(i + 1) % 4];
    const own = clientOf(member).database("d");
    const { container } = await own.containers.create({ id: `made-${i}`, partitionKey: "/pk", throughput: 1000 });
    await through(other, container).items.create({ id: "x", pk: "x" });
    const offer = await through(other, container).readOffer();
    offer.resource.content.offerThroughput = 2000;
    await offer.offer.replace(offer.resource);
    assert.equal((await container.readOffer()).resource.content.offerThroughput, 2000);
    await through(other, container).delete();
    assert.equal((await own.containers.readAll().fetchAll()).resources.some(({ id }) => id === container.id), false);
    await assert.rejects(container.items.create({ id: "y", pk: "y" }), { code: 404 });
  }
});

test("a Strong read sees what was written through any other node before", async () => {
  const container = await makeContainer();
  for (const [i, [from, to]] of pairs().entries()) {
    await through(from, container).items.upsert({ id: "s", pk: "s", v: i });
    const { resource } = await through(to, container).item("s", "s").read();
    assert.equal(resource.v, i, `written through ${from.id}, read through ${to.id}`);
  }
});

test("a Session read sees the session's writes through every node", async () => {
  const container = await makeContainer();
  const weak = { consistencyLevel: "Session" };
  for (const [i, [from, to]] of pairs().entries()) {
    const { headers } = await through(from, container, weak).items.upsert({ id: "s", pk: "s", v: i });
    const sessionToken = headers["x-ms-session-token"];
    const { resource } = await through(to, container, weak).item("s", "s").read({ sessionToken });
    assert.equal(resource.v, i, `written through ${from.id}, read through ${to.id}`);
  }
});

test("a session that no node has reached is refused at once, through every node", async () => {
  const container = await makeContainer();
  const { headers } = await container.items.create({ id: "s", pk: "s" });
  const [range, lsn] = headers["x-ms-session-token"].split(":-1#");
  const ahead = {
    "x-ms-session-token": `${range}:-1#${Number(lsn) + 1000}`, "x-ms-consistency-level": "Session",
    "x-ms-documentdb-partitionkey": '["s"]',
  };
  const docs = `/dbs/d/colls/${container.id}/docs`;
  for (const member of cluster.members) {
    for (const request of [{ path: `${docs}/s` }, { path: docs, method: "POST", body: '{"id":"t","pk":"s"}' }]) {
      const { status, headers: got, text } = await member.request({ ...request, headers: ahead, seconds: 3 });
      assert.equal(`${status}/${got["x-ms-substatus"]}`, "404/1002", `through ${member.id}: ${text}`);
    }
  }
});

test("a budget is one for all nodes", async () => {
  const container = await makeContainer({ throughput: 400 });
  const retryOptions = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 0 };
  const refused = new Map();
  let spent = 0;
  const start = performance.now();
  const lane = async (member) => {
    const own = through(member, container, { connectionPolicy: { retryOptions } });
    for (let i = 0; performance.now() - start < 2500; i += 1) {
      try {
        const { requestCharge } = await own.items.create({ id: `${member.id}-${i}`, pk: `${i}` });
        spent += requestCharge;
      } catch (error) {
        assert.equal(error.code, 429);
        assert.ok(error.retryAfterInMs > 0 && error.retryAfterInMs <= 1000, `${error.retryAfterInMs}`);
        refused.set(member, (refused.get(member) ?? 0) + 1);
      }
    }
  };
  await Promise.all(cluster.members.map(lane));
  const windows = Math.ceil((performance.now() - start) / 1000) + 1;
  assert.equal(refused.size, 4, "requests through every node are refused");
  assert.ok(spent <= 400 * windows + 50, `${spent} RU in ${windows} windows`);
  assert.ok(spent >= 400 * 2, `only ${spent} RU`);
});

// The victim is killed for the test, and comes back.
async function without(victim, body) {
  await victim.kill();
  try {
    await body();
  } finally {
    await victim.up();
    await cluster.settled(4);
  }
}

// Sends requests through all nodes at once for a while; gives what was spent, the windows of a second that it touched,
// and the substatus of what was refused.
async function spendEverywhere(seconds, request) {
  const retryOptions = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 0 };
  const start = performance.now();
  let spent = 0;
  const refused = new Set();
  const lane = async (member) => {
    const client = clientOf(member, { consistencyLevel: "Session", connectionPolicy: { retryOptions } });
    for (let i = 0; performance.now() - start < seconds * 1000; i += 1) {
      try {
        const { requestCharge } = await request(client, member, i);
        spent += requestCharge;
      } catch (error) {
        assert.equal(error.code, 429, error.message);
        refused.add(Number(error.substatus ?? error.headers["x-ms-substatus"]));
      }
    }
    client.dispose();
  };
  await Promise.all(cluster.members.map(lane));
  return { spent, refused, windows: Math.ceil((performance.now() - start) / 1000) + 1 };
}
// How many requests the replicas of a node have had, by container.
async function requestsAt(member, container) {
  const { text } = await member.request({ path: "/metrics" });
  const lines = text.split("\n").filter((line) => line.startsWith("orrery_partition_requests_total{") && line.includes(`container="${container.id}"`));
  return lines.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

test("Session reads are answered by every node that has a replica, within one budget", async () => {
  const container = await makeContainer({ throughput: 400 });
  // Large, so that also a slow machine can spend the budget.
  await container.items.create({ id: "a", pk: "a", pad: "x".repeat(100_000) });
  await cluster.settled(4);
  const before = await Promise.all(cluster.members.map((member) => requestsAt(member, container)));
  const { spent, windows } = await spendEverywhere(2.5, (client) => client.database("d").container(container.id).item("a", "a").read());
  assert.ok(spent <= 400 * windows + 50, `${spent} RU in ${windows} windows`);
  assert.ok(spent >= 400 * 1.5, `only ${spent} RU`);
  const after = await Promise.all(cluster.members.map((member) => requestsAt(member, container)));
  for (const [i, member] of cluster.members.entries()) {
    assert.ok(after[i] - before[i] > 3, `node ${member.id} answered ${after[i] - before[i]}`);
  }
});

test("the throughput of a database is one for all of its partitions", async () => {
  const client = clientOf(cluster.first);
  const { database: shared } = await client.databases.create({ id: "shared", throughput: 400 });
  for (let i = 0; i < 4; i += 1) await shared.containers.create({ id: `s${i}`, partitionKey: "/pk" });
  await cluster.settled(4);
  // Their first leaders are on one node. Without it others take over, and not the same for all.
  const leaders = async () => new Set((await cluster.settled(4)).replicaSets
    .filter(({ container }) => container?.startsWith("shared/")).map(({ leader }) => leader));
  for (let tries = 0; tries < 20 && (await leaders()).size === 1; tries += 1) {
    const [leader] = await leaders();
    await without(cluster.members.find(({ id }) => id === leader), async () => {});
  }
  assert.ok((await leaders()).size > 1, "its partitions are led by more than one node");
  const { spent, windows } = await spendEverywhere(2.5, (own, member, i) =>
    own.database("shared").container(`s${i % 4}`).items.create({ id: `${member.id}-${i}`, pk: `${i}` }));
  assert.ok(spent <= 400 * windows + 100, `${spent} RU in ${windows} windows`);
  assert.ok(spent >= 400 * 1.5, `only ${spent} RU`);
  await shared.delete();
  client.dispose();
});

test("a throughput bucket is one for all nodes", async () => {
  const container = await makeContainer({ throughput: 10000 });
  // Large, so that also a slow machine can spend what the bucket has.
  await container.items.create({ id: "a", pk: "a", pad: "x".repeat(200_000) });
  const body = JSON.stringify({ database: "d", container: container.id, buckets: [{ id: 1, percent: 2 }] });
  const reply = await cluster.members[2].request({ method: "POST", path: "/_orrery/throughput/buckets", body });
  assert.equal(reply.status, 200, reply.text);
  await cluster.settled(4);
  const read = (client) => client.database("d").container(container.id).item("a", "a").read({ throughputBucket: 1 });
  await until("the bucket is there", async () => (await spendEverywhere(0.2, read)).refused.has(3212));
  const { spent, windows, refused } = await spendEverywhere(2.5, read);
  assert.ok(spent <= 200 * windows + 50, `${spent} RU in ${windows} windows`);
  assert.ok(spent >= 200, `only ${spent} RU`);
  assert.deepEqual([...refused], [3212]);
});

test("what autoscale is scaled to is told by every node", async () => {
  const container = await makeContainer({ maxThroughput: 1000 });
  const item = { id: "a", pk: "a", pad: "x".repeat(200_000) };
  await until("every node shows more than the least", async () => {
    await Promise.all([1, 2, 3].map(() => container.items.upsert(item)));
    const offers = await Promise.all(cluster.members.map((member) => through(member, container).readOffer()));
    return offers.every(({ resource }) => resource.content.offerThroughput > 100);
  }, 60);
});

test("an SDK that knows the nodes by one name goes on when its node is killed", async () => {
  const container = await makeContainer();
  await container.items.create({ id: "a", pk: "a" });
  await cluster.settled(4);
  const client = new CosmosClient({ endpoint: `http://${name}:${cluster.first.port}/`, key: emulatorKey });
  const own = client.database("d").container(container.id);
  await useAll(own, "before");
  await without(cluster.first, () => useAll(own, "after"));
  client.dispose();
});

test("an SDK goes on at another node when connections are refused and its HTTP client says so", async () => {
  const container = await makeContainer();
  await container.items.create({ id: "a", pk: "a" });
  const plain = createDefaultHttpClient();
  // The SDK tries the other locations on this error, but not on ECONNREFUSED.
  const httpClient = {
    sendRequest: (request) => plain.sendRequest(request).catch((error) => {
      if (error.code === "ECONNREFUSED" && new URL(request.url).pathname !== "/") error.code = "REQUEST_SEND_ERROR";
      throw error;
    }),
  };
  const client = clientOf(cluster.members[1], { httpClient });
  const own = client.database("d").container(container.id);
  await useAll(own, "before");
  await without(cluster.members[1], () => useAll(own, "after"));
  client.dispose();
});

test("an application can leave a node out", async () => {
  const container = await makeContainer();
  await container.items.create({ id: "a", pk: "a" });
  const client = clientOf(cluster.members[2]);
  const own = client.database("d").container(container.id);
  await useAll(own, "before");
  const options = { excludedLocations: [`Node ${cluster.members[2].id}`] };
  await without(cluster.members[2], async () => {
    assert.equal((await own.item("a", "a").read(options)).statusCode, 200);
    assert.equal((await own.items.create({ id: "after", pk: "after" }, options)).statusCode, 201);
  });
  client.dispose();
});

test("an SDK reads at another node when its own does not answer in time", async () => {
  const container = await makeContainer();
  await container.items.create({ id: "a", pk: "a" });
  const frozen = cluster.members[3];
  const client = clientOf(frozen, { connectionPolicy: { requestTimeout: 1500 } });
  const own = client.database("d").container(container.id);
  assert.equal((await own.item("a", "a").read()).statusCode, 200);
  frozen.child.kill("SIGSTOP");
  try {
    assert.equal((await own.item("a", "a").read()).statusCode, 200);
  } finally {
    frozen.child.kill("SIGCONT");
  }
  await cluster.settled(4);
  client.dispose();
});
