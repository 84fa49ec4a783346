// Storage limits: full logical partitions, fixed containers, containers without a partition key. The limits are
// lowered to megabytes.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { BulkOperationType } from "@azure/cosmos";
import { Server, makeContainer, refused } from "./server.mjs";

const MB = 1 << 20;
const settings = { "limits.logical_partition_mb": 2, "limits.fixed_container_mb": 3 };
let server;
let client;
before(async () => {
  server = await Server.start({ settings });
  client = server.client();
});
after(() => server?.remove());

const item = (id, pk, bytes = 200_000) => ({ id, pk, text: "x".repeat(bytes) });
// Creates items of 200 KB until one is refused; gives how many there are and the refusal.
async function fill(container, pk) {
  for (let count = 0; ; count += 1) {
    try {
      await container.items.create(item(`${count}`, pk));
    } catch (error) {
      return { count, error };
    }
  }
}
const unlimited = () => makeContainer(client, { throughput: 10000, indexingPolicy: { indexingMode: "none", automatic: false } });
const fixed = () => makeContainer(client, { throughput: 900, indexingPolicy: { indexingMode: "none", automatic: false } });

test("a full logical partition is refused with 403, substatus 1014 and its limit", async () => {
  const container = await unlimited();
  const { count, error } = await fill(container, "full");
  assert.equal(count, 10);
  assert.equal(error.code, 403);
  assert.equal(Number(error.substatus ?? error.headers?.["x-ms-substatus"]), 1014);
  assert.match(error.message, /Partition key reached maximum size of 2 MB/);
});

test("other keys, reads, deletes and writes that do not grow go on while one is full", async () => {
  const container = await unlimited();
  await fill(container, "full");
  assert.equal((await container.items.create(item("1", "other"))).statusCode, 201);
  assert.equal((await container.item("0", "full").read()).statusCode, 200);
  assert.equal((await container.item("0", "full").replace(item("0", "full", 200_000))).statusCode, 200);
  await refused(container.item("0", "full").replace(item("0", "full", 600_000)), 403, 1014);
  await refused(container.item("0", "full").patch([{ op: "add", path: "/more", value: "x".repeat(300_000) }]), 403, 1014);
  assert.equal((await container.item("1", "full").delete()).statusCode, 204);
  assert.equal((await container.items.upsert(item("again", "full"))).statusCode, 201);
  await refused(container.items.upsert(item("again2", "full")), 403, 1014);
});

test("a transactional batch that does not fit is undone", async () => {
  const container = await unlimited();
  await fill(container, "full");
  const { code, result } = await container.items.batch(
    [
      { operationType: "Delete", id: "0" },
      { operationType: "Create", resourceBody: item("a", "full", 300_000) },
      { operationType: "Create", resourceBody: item("b", "full", 300_000) },
    ],
    "full",
  );
  assert.equal(code, 207);
  assert.deepEqual(result.map(({ statusCode }) => statusCode), [424, 424, 403]);
  assert.equal((await container.item("0", "full").read()).statusCode, 200);
});

test("many writers at once do not get beyond the limit", async () => {
  const container = await unlimited();
  const results = await Promise.allSettled(Array.from({ length: 60 }, (_, i) => container.items.create(item(`${i}`, "a", 100_000))));
  const made = results.filter(({ status }) => status === "fulfilled").length;
  for (const { reason } of results) if (reason) assert.equal(reason.code, 403, reason.message);
  assert.equal(made, Math.floor((2 * MB) / 100_200));
});

test("bulk tells of each operation whether it fitted", async () => {
  const container = await unlimited();
  await fill(container, "full");
  const operations = ["full", "free"].map((pk) => ({ operationType: BulkOperationType.Create, partitionKey: pk, resourceBody: item("bulk", pk) }));
  const results = await container.items.executeBulkOperations(operations);
  assert.deepEqual(results.map(({ response, error }) => response?.statusCode ?? error?.code), [403, 201]);
});

test("a full logical partition is full after a restart, and has room when something was deleted", async () => {
  const container = await unlimited();
  const { count } = await fill(container, "full");
  await server.restart();
  await refused(container.items.create(item("more", "full")), 403, 1014);
  assert.equal((await container.items.create(item("more", "other"))).statusCode, 201);
  for (let i = 0; i < count; i += 1) await container.item(`${i}`, "full").delete();
  assert.equal((await fill(container, "full")).count, 10);
});

test("a container with less than 1,000 RU/s is fixed: full as a whole, until its RU/s are raised", async () => {
  const container = await fixed();
  let last;
  let made = 0;
  for (; last === undefined; made += 1) {
    await container.items.create(item("1", `k${made}`)).catch((error) => (last = error));
  }
  assert.equal(made - 1, 15);
  assert.equal(last.code, 403);
  assert.match(last.message, /Storage quota for 'Document' exceeded/);
  assert.match(last.message, /3 MB/);
  const { resource: offer } = await container.readOffer();
  await client.offer(offer.id).replace({ ...offer, content: { ...offer.content, offerThroughput: 1000 } });
  assert.equal((await container.items.create(item("1", "now"))).statusCode, 201);
});

test("with the rules of today's service a container with a key is never fixed", async () => {
  const current = await Server.start({ settings: { ...settings, "limits.rules": "current" } });
  try {
    const container = await makeContainer(current.client(), { throughput: 900, indexingPolicy: { indexingMode: "none", automatic: false } });
    for (let i = 0; i < 20; i += 1) await container.items.create(item("1", `k${i}`));
    assert.equal((await fill(container, "one")).error.code, 403);
  } finally {
    await current.remove();
  }
});

// Containers without a partition key: the SDK always sends one when it creates a container.
async function keyless(throughput) {
  await client.databases.createIfNotExists({ id: "tests" });
  const id = `keyless-${Math.random().toString(36).slice(2)}`;
  const headers = throughput ? { "x-ms-offer-throughput": String(throughput) } : {};
  const reply = await server.request({ method: "POST", path: "/dbs/tests/colls", headers, body: JSON.stringify({ id }) });
  return { reply, container: client.database("tests").container(id) };
}

test("a container without a partition key shows the system's", async () => {
  const { reply } = await keyless();
  assert.equal(reply.status, 201);
  assert.deepEqual(reply.json.partitionKey, { paths: ["/_partitionKey"], kind: "Hash", version: 2, systemKey: true });
});

test("items of a container without a partition key are made, read, changed and queried by the SDK without one", async () => {
  const { container } = await keyless();
  await container.items.create({ id: "1", v: 1 });
  await container.items.upsert({ id: "2", v: 2 });
  assert.equal((await container.item("1").read()).resource.v, 1);
  await container.item("1").replace({ id: "1", v: 3 });
  await container.item("2").patch([{ op: "set", path: "/v", value: 4 }]);
  const { resources } = await container.items.query("SELECT * FROM c WHERE c.v > 2").fetchAll();
  assert.deepEqual(resources.map(({ id }) => id).sort(), ["1", "2"]);
  const { result } = await container.items.batch([{ operationType: "Create", resourceBody: { id: "3" } }]);
  assert.equal(result[0].statusCode, 201);
  await container.item("1").delete();
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 2);
});

test("items of a container without a partition key need no header", async () => {
  const { container } = await keyless();
  const made = await server.request({ method: "POST", path: `/${container.url}/docs`, body: JSON.stringify({ id: "1" }) });
  assert.equal(made.status, 201, made.text);
  assert.equal((await server.request({ path: `/${container.url}/docs/1` })).status, 200);
  const { status, text } = await server.request({ method: "DELETE", path: `/${container.url}/docs/1` });
  assert.equal(status, 204, text);
});

test("a container without a partition key has at most 10,000 RU/s and one partition", async () => {
  const { reply } = await keyless(10100);
  assert.equal(reply.status, 400);
  assert.match(reply.json.message, /10000 RU\/s/);
  const { container } = await keyless(10000);
  const ranges = await server.request({ path: `/${container.url}/pkranges` });
  assert.equal(ranges.json.PartitionKeyRanges.length, 1);
  const { resource: offer } = await container.readOffer();
  await refused(client.offer(offer.id).replace({ ...offer, content: { offerThroughput: 20000 } }), 400);
});
