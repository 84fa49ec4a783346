// What was acknowledged is there after a stop and after a kill.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, refused, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = server.client();
});
after(() => server?.remove());

// Everything that a client can see of a container.
async function see(container) {
  const { resource } = await container.read();
  const { resource: offer } = await container.readOffer();
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  const { resources: items } = await container.items.readAll().fetchAll();
  const { headers } = await container.read({ populateQuotaInfo: true });
  return { resource, offer, ranges, items, usage: headers["x-ms-resource-usage"] };
}

async function fill(name) {
  const container = await makeContainer(client, {
    id: name,
    throughput: 25000,
    defaultTtl: 3600,
    uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] },
  });
  const operations = Array.from({ length: 200 }, (_, i) => ({
    operationType: "Create",
    partitionKey: `k${i % 17}`,
    resourceBody: { id: `${i}`, pk: `k${i % 17}`, v: i, email: `${i}@x` },
  }));
  for (const { response } of await container.items.executeBulkOperations(operations)) assert.equal(response?.statusCode, 201);
  await container.item("0", "k0").replace({ id: "0", pk: "k0", v: "replaced", email: "0@x" });
  await container.item("1", "k1").patch([{ op: "set", path: "/v", value: "patched" }]);
  await container.item("2", "k2").delete();
  await container.items.batch([3, 20].map((i) => ({ operationType: "Delete", id: `${i}` })), "k3");
  return container;
}

for (const [how, end] of [["a clean stop", () => server.stop()], ["kill -9", () => server.kill()]]) {
  test(`everything is there after ${how}`, async () => {
    const container = await fill(how.replace(" ", "-"));
    const { headers: last } = await container.items.create({ id: "last", pk: "k0", email: "last" });
    const before = await see(container);
    assert.equal(before.items.length, 198);
    await end();
    await server.up();
    assert.deepEqual(await see(container), before);
    const next = await container.items.create({ id: "next", pk: "k0", email: "next" });
    const lsn = (headers) => Number(headers["x-ms-session-token"].split("#")[1]);
    assert.ok(lsn(next.headers) > lsn(last), "the session goes on");
    await refused(container.items.create({ id: "other", pk: "k0", email: "last" }), 409);
    await refused(container.items.create({ id: "last", pk: "k0", email: "other" }), 409);
  });
}

test("a deleted container stays deleted, and its name can be used again", async () => {
  const container = await makeContainer(client, { id: "doomed" });
  await container.items.create({ id: "1", pk: "a" });
  await container.delete();
  await server.kill();
  await server.up();
  await refused(container.read(), 404);
  await client.database("tests").containers.create({ id: container.id, partitionKey: "/pk" });
  assert.deepEqual((await container.items.readAll().fetchAll()).resources, []);
});

test("the time to live goes on over a restart", async () => {
  const container = await makeContainer(client, { id: "ages", defaultTtl: 2 });
  await container.items.create({ id: "1", pk: "a" });
  await server.restart();
  await until("it is gone", async () => (await container.item("1", "a").read()).statusCode === 404);
});

test("a client goes on by itself after a restart", async () => {
  const container = await makeContainer(client, { id: "client" });
  await container.items.create({ id: "1", pk: "a" });
  await server.restart();
  assert.equal((await container.item("1", "a").read()).statusCode, 200);
  assert.equal((await container.items.create({ id: "2", pk: "a" })).statusCode, 201);
});

test("restarts in a row change nothing", async () => {
  const container = await fill("row");
  const before = await see(container);
  for (let i = 0; i < 3; i += 1) {
    await (i % 2 ? server.stop() : server.kill());
    await server.up();
  }
  assert.deepEqual(await see(container), before);
});

test("requests that are under way at a stop are answered", async () => {
  const container = await makeContainer(server.impatientClient(), { id: "stopping" });
  const writes = Array.from({ length: 50 }, (_, i) => container.items.create({ id: `${i}`, pk: "a" }).then(() => i, () => null));
  await Promise.race(writes);
  await server.stop();
  await server.up();
  // Those that wait for their answer now go on with the new process, or have failed.
  const made = (await Promise.all(writes)).filter((i) => i !== null);
  const { resources } = await container.items.readAll().fetchAll();
  const there = new Set(resources.map(({ id }) => Number(id)));
  for (const i of made) assert.ok(there.has(i), `${i} was acknowledged and is gone`);
});
