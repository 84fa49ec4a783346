// Databases, containers and their throughput.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, plain, refused, until } from "./server.mjs";

let server;
let client;
let database;
before(async () => {
  server = await Server.start();
  client = server.client();
  ({ database } = await client.databases.createIfNotExists({ id: "resources" }));
});
after(() => server?.remove());

async function rangesOf(container) {
  const { resources } = await container.readPartitionKeyRanges().fetchAll();
  return resources;
}

function assertRing(ranges, count) {
  assert.equal(ranges.length, count);
  assert.equal(new Set(ranges.map((range) => range.id)).size, count);
  assert.equal(ranges[0].minInclusive, "");
  assert.equal(ranges.at(-1).maxExclusive, "FF");
  for (let i = 1; i < count; i += 1) {
    assert.equal(ranges[i].minInclusive, ranges[i - 1].maxExclusive);
    assert.ok(ranges[i].minInclusive < ranges[i].maxExclusive);
    assert.match(ranges[i].minInclusive, /^[0-9A-F]+$/);
  }
}

test("the account names an endpoint that the client can reach, and its consistency", async () => {
  const { resource } = await client.getDatabaseAccount();
  assert.equal(resource.consistencyPolicy, "Session");
  const account = (await server.request({ path: "/" })).json;
  assert.equal(account.writableLocations[0].databaseAccountEndpoint, server.endpoint);
  assert.notEqual(account.id, "localhost");
  assert.doesNotThrow(() => JSON.parse(account.queryEngineConfiguration));
});

test("a database is made once and found the second time", async () => {
  const first = await client.databases.createIfNotExists({ id: "once" });
  const second = await client.databases.createIfNotExists({ id: "once" });
  assert.equal(first.statusCode, 201);
  assert.equal(second.statusCode, 200);
  assert.equal(first.resource._rid, second.resource._rid);
  assert.equal(Buffer.from(first.resource._rid.replaceAll("-", "/"), "base64").length, 4);
  assert.equal(first.resource._self, `dbs/${first.resource._rid}/`);
});

test("a database that exists cannot be created again", async () => {
  await client.databases.createIfNotExists({ id: "taken" });
  await refused(client.databases.create({ id: "taken" }), 409);
});

test("databases are listed, and found by a query", async () => {
  await client.databases.createIfNotExists({ id: "listed" });
  const { resources: all } = await client.databases.readAll().fetchAll();
  assert.ok(all.some((one) => one.id === "listed"));
  const spec = { query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: "listed" }] };
  const { resources: found } = await client.databases.query(spec).fetchAll();
  assert.deepEqual(found.map((one) => one.id), ["listed"]);
});

for (const [what, id] of [["a slash", "a/b"], ["a question mark", "a?b"], ["a number sign", "a#b"], ["no letters", ""],
                          ["256 letters", "x".repeat(256)]]) {
  test(`the name of a database or container with ${what} is refused`, async () => {
    const make = { method: "POST", headers: { "content-type": "application/json" } };
    const made = await server.request({ ...make, path: "/dbs", body: JSON.stringify({ id }) });
    assert.equal(made.status, 400, made.text);
    const body = JSON.stringify({ id, partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    const inside = await server.request({ ...make, path: "/dbs/resources/colls", body });
    assert.equal(inside.status, 400, inside.text);
  });
}

test("a deleted database is gone with its containers", async () => {
  const { database: doomed } = await client.databases.create({ id: "doomed" });
  const { container } = await doomed.containers.create({ id: "inside", partitionKey: "/pk" });
  await container.items.create({ id: "1", pk: "a" });
  assert.equal((await doomed.delete()).statusCode, 204);
  await refused(doomed.read(), 404);
  await refused(client.database("doomed").container("inside").read(), 404);
  await refused(doomed.delete(), 404);
  const { database: again } = await client.databases.create({ id: "doomed" });
  assert.deepEqual((await again.containers.readAll().fetchAll()).resources, []);
});

test("a container is made once and found the second time", async () => {
  const definition = { id: "once", partitionKey: { paths: ["/pk"] } };
  const first = await database.containers.createIfNotExists(definition);
  const second = await database.containers.createIfNotExists(definition);
  assert.equal(first.statusCode, 201);
  assert.equal(second.statusCode, 200);
  assert.equal(first.resource._self, second.resource._self);
  await refused(database.containers.create(definition), 409);
});

test("a container that says little gets the service's defaults", async () => {
  const { resource, headers } = await database.containers.create({ id: "defaults", partitionKey: { paths: ["/pk"] } });
  assert.deepEqual(resource.partitionKey, { paths: ["/pk"], kind: "Hash", version: 2 });
  assert.equal(resource.indexingPolicy.indexingMode, "consistent");
  assert.equal(resource.indexingPolicy.automatic, true);
  assert.deepEqual(resource.indexingPolicy.includedPaths.map((one) => one.path), ["/*"]);
  assert.deepEqual(resource.indexingPolicy.excludedPaths.map((one) => one.path), ['/"_etag"/?']);
  assert.equal(resource.conflictResolutionPolicy.mode, "LastWriterWins");
  assert.equal(resource.defaultTtl, undefined);
  assert.equal(Buffer.from(resource._rid.replaceAll("-", "/"), "base64").length, 8);
  assert.equal(headers.etag, resource._etag);
  assert.equal(headers["x-ms-content-path"], resource._rid);
  assert.equal(headers["x-ms-alt-content-path"], "dbs/resources/colls/defaults");
});

test("a container in a database that does not exist is refused", async () => {
  await refused(client.database("nowhere").containers.create({ id: "x", partitionKey: "/pk" }), 404, 1003);
});

test("containers are listed, and found by a query", async () => {
  await database.containers.createIfNotExists({ id: "listed", partitionKey: "/pk" });
  const { resources } = await database.containers.readAll().fetchAll();
  assert.ok(resources.some((one) => one.id === "listed"));
  const spec = { query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: "listed" }] };
  const found = await database.containers.query(spec).fetchAll();
  assert.deepEqual(found.resources.map((one) => one.id), ["listed"]);
});

test("a container of 25,000 RU/s has three partitions that divide the ring", async () => {
  const container = await makeContainer(client, { throughput: 25000 });
  const ranges = await rangesOf(container);
  assertRing(ranges, 3);
  // Keys hash into 00..3F: a cut beyond it would leave partitions empty for ever.
  for (const range of ranges.slice(1)) assert.ok(range.minInclusive < "40", range.minInclusive);
});

test("a container of 10,000 RU/s has one partition, one of 10,100 has two", async () => {
  assertRing(await rangesOf(await makeContainer(client, { throughput: 10000 })), 1);
  assertRing(await rangesOf(await makeContainer(client, { throughput: 10100 })), 2);
});

test("autoscale makes the partitions that its maximum needs", async () => {
  assertRing(await rangesOf(await makeContainer(client, { maxThroughput: 20000 })), 2);
});

test("a container with hash version 1 is divided inside the band of its hashes", async () => {
  const partitionKey = { paths: ["/pk"], kind: "Hash", version: 1 };
  const container = await makeContainer(client, { partitionKey, throughput: 25000 });
  const { resource } = await container.read();
  assert.deepEqual(resource.partitionKey, partitionKey);
  const ranges = await rangesOf(container);
  assertRing(ranges, 3);
  for (const range of ranges.slice(1)) assert.match(range.minInclusive, /^05C1/);
  const filled = new Set();
  for (let i = 0; i < 40; i += 1) {
    const { headers } = await container.items.create({ id: `${i}`, pk: `key ${i}` });
    filled.add(headers["x-ms-documentdb-partitionkeyrangeid"]);
  }
  assert.equal(filled.size, 3);
});

test("a container with a hierarchical key keeps its paths", async () => {
  const partitionKey = { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 };
  const container = await makeContainer(client, { partitionKey });
  assert.deepEqual((await container.read()).resource.partitionKey, partitionKey);
});

for (const [what, partitionKey] of [
  ["four paths", { paths: ["/a", "/b", "/c", "/d"], kind: "MultiHash", version: 2 }],
  ["no paths", { paths: [], kind: "Hash", version: 2 }],
  ["a path without a slash", { paths: ["pk"], kind: "Hash", version: 2 }],
  ["version 3", { paths: ["/pk"], kind: "Hash", version: 3 }],
  ["an unknown kind", { paths: ["/pk"], kind: "Round", version: 2 }],
  ["two paths for one hash", { paths: ["/a", "/b"], kind: "Hash", version: 2 }],
]) {
  test(`a partition key with ${what} is refused`, async () => {
    const reply = await server.request({
      method: "POST",
      path: "/dbs/resources/colls",
      body: JSON.stringify({ id: `bad key ${what}`, partitionKey }),
    });
    assert.equal(reply.status, 400, reply.text);
  });
}

test("the time to live and the indexing policy of a container can be replaced", async () => {
  const container = await makeContainer(client);
  const { resource: before } = await container.read();
  const indexingPolicy = {
    indexingMode: "consistent",
    automatic: true,
    includedPaths: [{ path: "/name/?" }],
    excludedPaths: [{ path: "/*" }, { path: '/"_etag"/?' }],
  };
  const { resource: after, statusCode } = await container.replace({ ...plain(before), defaultTtl: 3600, indexingPolicy });
  assert.equal(statusCode, 200);
  assert.equal(after.defaultTtl, 3600);
  assert.notEqual(after._etag, before._etag);
  assert.equal(after._rid, before._rid);
  const { resource: read } = await container.read();
  assert.equal(read.defaultTtl, 3600);
  assert.deepEqual(read.indexingPolicy.includedPaths.map((one) => one.path), ["/name/?"]);
  assert.ok(read.indexingPolicy.excludedPaths.some((one) => one.path === "/*"));
  const { defaultTtl, ...without } = plain(read);
  assert.equal(defaultTtl, 3600);
  assert.equal((await container.replace(without)).resource.defaultTtl, undefined);
});

test("a container is replaced only if its etag is the one named", async () => {
  const container = await makeContainer(client);
  const { resource } = await container.read();
  const condition = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
  await container.replace({ ...plain(resource), defaultTtl: 5 }, condition(resource._etag));
  await refused(container.replace({ ...plain(resource), defaultTtl: 6 }, condition(resource._etag)), 412);
});

test("a container's partition key cannot be changed", async () => {
  const container = await makeContainer(client);
  const { resource } = await container.read();
  const other = { ...plain(resource), partitionKey: { paths: ["/other"], kind: "Hash", version: 2 } };
  const error = await refused(container.replace(other), 400);
  assert.match(error.message, /partition key cannot be changed/);
});

test("a container's unique keys cannot be changed", async () => {
  const container = await makeContainer(client, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  const { resource } = await container.read();
  assert.deepEqual(resource.uniqueKeyPolicy.uniqueKeys[0].paths, ["/email"]);
  await refused(container.replace({ ...plain(resource), uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/name"] }] } }), 403);
});

for (const [what, change] of [
  ["a time to live of 0", { defaultTtl: 0 }],
  ["a time to live of -2", { defaultTtl: -2 }],
  ["an unknown indexing mode", { indexingPolicy: { indexingMode: "sometimes" } }],
  ["an index path without a slash", { indexingPolicy: { includedPaths: [{ path: "name" }], excludedPaths: [{ path: "/*" }] } }],
]) {
  test(`a container with ${what} is refused`, async () => {
    await refused(makeContainer(client, change), 400);
  });
}

test("a deleted container is gone, and a new one of its name is empty", async () => {
  const { container } = await database.containers.create({ id: "doomed", partitionKey: "/pk" });
  await container.items.create({ id: "1", pk: "a" });
  assert.equal((await container.delete()).statusCode, 204);
  await refused(container.read(), 404);
  await refused(container.items.create({ id: "2", pk: "a" }), 404);
  await database.containers.create({ id: "doomed", partitionKey: "/pk" });
  const { resources } = await database.container("doomed").items.readAll().fetchAll();
  assert.deepEqual(resources, []);
});

test("the partition ranges carry an etag that answers 304", async () => {
  const path = `${(await makeContainer(client)).url}/pkranges`;
  const first = await server.request({ path: `/${path}` });
  const second = await server.request({ path: `/${path}`, headers: { "if-none-match": first.headers.etag } });
  assert.equal(first.status, 200);
  assert.equal(second.status, 304);
  assert.equal(second.text, "");
});

test("the throughput of a container is read and replaced", async () => {
  const container = await makeContainer(client, { throughput: 400 });
  const { offer, resource } = await container.readOffer();
  assert.equal(resource.content.offerThroughput, 400);
  assert.equal(resource.offerVersion, "V2");
  assert.equal(resource.resource, (await container.read()).resource._self);
  const { resource: after } = await offer.replace({ ...resource, content: { offerThroughput: 1000 } });
  assert.equal(after.content.offerThroughput, 1000);
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 1000);
  assert.equal((await client.offer(resource.id).read()).resource.content.offerThroughput, 1000);
});

test("the throughput of an autoscale container is read and replaced", async () => {
  const container = await makeContainer(client, { maxThroughput: 4000 });
  const { offer, resource } = await container.readOffer();
  assert.equal(resource.content.offerAutopilotSettings.maxThroughput, 4000);
  assert.equal(resource.content.offerThroughput, 400);
  const content = { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: 6000 } };
  const { resource: after } = await offer.replace({ ...resource, content });
  assert.equal(after.content.offerAutopilotSettings.maxThroughput, 6000);
});

test("throughput that the partitions cannot hold is granted, and they split", async () => {
  const container = await makeContainer(client, { throughput: 400 });
  const { offer, resource } = await container.readOffer();
  await offer.replace({ ...resource, content: { offerThroughput: 20000 } });
  assert.equal((await container.readOffer()).resource.content.offerThroughput, 20000);
  await until("there are two", async () => (await container.readPartitionKeyRanges().fetchAll()).resources.length === 2);
});

for (const throughput of [100, 399, 450, 1_000_100]) {
  test(`a throughput of ${throughput} is refused`, async () => {
    await refused(makeContainer(client, { throughput }), 400);
  });
}

for (const maxThroughput of [500, 1500]) {
  test(`an autoscale maximum of ${maxThroughput} is refused`, async () => {
    await refused(makeContainer(client, { maxThroughput }), 400);
  });
}

test("containers of a database with throughput share it", async () => {
  const { database: shared } = await client.databases.create({ id: "shared", throughput: 600 });
  assert.equal((await shared.readOffer()).resource.content.offerThroughput, 600);
  const { container } = await shared.containers.create({ id: "one", partitionKey: "/pk" });
  assert.equal((await container.readOffer()).resource, undefined);
  const { container: own } = await shared.containers.create({ id: "own", partitionKey: "/pk", throughput: 500 });
  assert.equal((await own.readOffer()).resource.content.offerThroughput, 500);
  assert.equal((await container.items.create({ id: "1", pk: "a" })).statusCode, 201);
});

test("offers are listed", async () => {
  const container = await makeContainer(client, { throughput: 700 });
  const { resource } = await container.readOffer();
  const { resources } = await client.offers.readAll().fetchAll();
  assert.ok(resources.some((one) => one.id === resource.id && one.content.offerThroughput === 700));
});

test("a container tells how many items it holds", async () => {
  const container = await makeContainer(client);
  for (const id of ["1", "2", "3"]) await container.items.create({ id, pk: id });
  const { headers } = await container.read({ populateQuotaInfo: true });
  assert.match(headers["x-ms-resource-usage"], /documentsCount=3;/);
});
