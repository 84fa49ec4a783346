// Partition keys of every type and form.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PartitionKeyBuilder } from "@azure/cosmos";
import { Server, makeContainer, plain, refused } from "./server.mjs";

let server;
let client;
let container;
before(async () => {
  server = await Server.start();
  client = server.client();
  container = await makeContainer(client, { throughput: 25000 });
});
after(() => server?.remove());

// All with the same id: each must be an item of its own.
const values = ["", "a", "5", "null", "true", "ключ", "x".repeat(2048), 5, 0, -1, 1.5, 1e300, true, false, null];

test("keys of every type name partitions of their own", async () => {
  for (const [v, pk] of values.entries()) {
    assert.equal((await container.items.create({ id: "same", pk, v })).statusCode, 201);
  }
  assert.equal((await container.items.create({ id: "same", v: "none" })).statusCode, 201);
  for (const [v, pk] of values.entries()) {
    const { resource } = await container.item("same", pk).read();
    assert.deepEqual(plain(resource), { id: "same", pk, v });
  }
  const { resource: none } = await container.item("same", undefined).read();
  assert.deepEqual(plain(none), { id: "same", v: "none" });
});

test("an item without a key is not an item with a null key", async () => {
  await container.items.create({ id: "without" });
  assert.equal((await container.item("without", undefined).read()).statusCode, 200);
  assert.equal((await container.item("without", null).read()).statusCode, 404);
});

test("the old form of no key finds an item without a key", async () => {
  await container.items.create({ id: "old form" });
  const reply = await server.request({
    path: `/${container.url}/docs/old%20form`,
    headers: { "x-ms-documentdb-partitionkey": "[]" },
  });
  assert.equal(reply.status, 200, reply.text);
});

test("an item of every key type can be replaced, patched and deleted", async () => {
  for (const pk of ["s", 7, true, null]) {
    await container.items.create({ id: "whole", pk });
    const item = container.item("whole", pk);
    assert.equal((await item.replace({ id: "whole", pk, v: 1 })).resource.v, 1);
    assert.equal((await item.patch([{ op: "incr", path: "/v", value: 1 }])).resource.v, 2);
    assert.equal((await item.delete()).statusCode, 204);
  }
});

test("a query of one partition sees only its items", async () => {
  for (const pk of ["q1", "q2", 9, null]) {
    for (const id of ["1", "2"]) await container.items.create({ id: `query ${id}`, pk });
  }
  for (const partitionKey of ["q1", 9, null]) {
    const { resources } = await container.items.query("SELECT * FROM c WHERE STARTSWITH(c.id, 'query')", { partitionKey }).fetchAll();
    assert.deepEqual(resources.map(({ id, pk }) => [id, pk]), [["query 1", partitionKey], ["query 2", partitionKey]]);
  }
});

test("a key over 2,048 bytes is refused", async () => {
  await refused(container.items.create({ id: "long", pk: "x".repeat(2049) }), 400);
});

test("a key that is an object or an array is refused", async () => {
  for (const pk of ["{}", "[1]"]) {
    const reply = await server.request({ method: "POST", path: `/${container.url}/docs`, body: `{"id":"odd","pk":${pk}}` });
    assert.equal(reply.status, 400, reply.text);
  }
});

test("a key may lie deep in the item, and its path may have quotes", async () => {
  const nested = await makeContainer(client, { partitionKey: "/address/zip" });
  await nested.items.create({ id: "1", address: { zip: "12345" } });
  assert.equal((await nested.item("1", "12345").read()).statusCode, 200);
  const quoted = await makeContainer(client, { partitionKey: { paths: ['/"first-name"'], kind: "Hash", version: 2 } });
  await quoted.items.create({ id: "1", "first-name": "Ada" });
  assert.equal((await quoted.item("1", "Ada").read()).statusCode, 200);
});

test("the id may be the key", async () => {
  const byId = await makeContainer(client, { partitionKey: "/id" });
  await byId.items.create({ id: "self", v: 1 });
  assert.equal((await byId.item("self", "self").read()).resource.v, 1);
});

test("keys of hash version 1 are found again, also long ones that begin alike", async () => {
  const old = await makeContainer(client, { partitionKey: { paths: ["/pk"], kind: "Hash", version: 1 }, throughput: 25000 });
  const keys = ["a", "", 5, -1, true, null, `${"x".repeat(100)}1`, `${"x".repeat(100)}2`];
  for (const [v, pk] of keys.entries()) await old.items.create({ id: `${v}`, pk, v });
  for (const [v, pk] of keys.entries()) assert.equal((await old.item(`${v}`, pk).read()).resource.v, v);
});

test("the items of a hierarchical key are found by all of it, and queried by the beginning of it", async () => {
  const partitionKey = { paths: ["/tenant", "/user", "/session"], kind: "MultiHash", version: 2 };
  const levels = await makeContainer(client, { partitionKey, throughput: 25000 });
  for (const tenant of ["t1", "t2"]) {
    for (const user of ["u1", "u2"]) {
      for (const session of [1, 2]) await levels.items.create({ id: "same", tenant, user, session });
    }
  }
  const full = new PartitionKeyBuilder().addValue("t1").addValue("u2").addValue(2).build();
  assert.deepEqual(plain((await levels.item("same", full).read()).resource), { id: "same", tenant: "t1", user: "u2", session: 2 });
  const count = async (key) => (await levels.items.query("SELECT * FROM c", { partitionKey: key }).fetchAll()).resources.length;
  assert.equal(await count(["t1"]), 4);
  assert.equal(await count(["t1", "u1"]), 2);
  assert.equal(await count(["t1", "u1", 1]), 1);
  assert.equal((await levels.items.readAll().fetchAll()).resources.length, 8);
});

test("levels of a hierarchical key may be null or missing", async () => {
  const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
  const levels = await makeContainer(client, { partitionKey });
  await levels.items.create({ id: "null", tenant: "t", user: null });
  await levels.items.create({ id: "none", tenant: "t" });
  const withNull = new PartitionKeyBuilder().addValue("t").addNullValue().build();
  const withNone = new PartitionKeyBuilder().addValue("t").addNoneValue().build();
  assert.equal((await levels.item("null", withNull).read()).statusCode, 200);
  assert.equal((await levels.item("none", withNone).read()).statusCode, 200);
  assert.equal((await levels.item("none", withNull).read()).statusCode, 404);
});

test("a point read with the beginning of a hierarchical key is refused", async () => {
  const partitionKey = { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 };
  const levels = await makeContainer(client, { partitionKey });
  const reply = await server.request({
    path: `/${levels.url}/docs/1`,
    headers: { "x-ms-documentdb-partitionkey": '["t"]' },
  });
  assert.equal(reply.status, 400, reply.text);
});
