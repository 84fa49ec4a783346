// Many operations in one request: transactional batches, bulk, and the delete of a logical partition.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
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

const create = (id, pk, more = {}) => ({ operationType: "Create", resourceBody: { id, pk, ...more } });
// As bulk wants it.
const bulkCreate = (id, pk, more) => ({ partitionKey: pk, ...create(id, pk, more) });
const codes = (reply) => reply.result.map((one) => one.statusCode);
const exists = async (id, pk) => (await container.item(id, pk).read()).statusCode === 200;

function rawBatch(operations, headers = {}) {
  return server.request({
    method: "POST",
    path: `/${container.url}/docs`,
    headers: {
      "x-ms-cosmos-is-batch-request": "true",
      "x-ms-cosmos-batch-atomic": "true",
      "x-ms-documentdb-partitionkey": '["raw"]',
      ...headers,
    },
    body: JSON.stringify(operations),
  });
}

test("a batch does every kind of operation, each seeing those before it", async () => {
  for (const id of ["replaced", "deleted", "patched", "read"]) await container.items.create({ id, pk: "kinds", v: 1 });
  const reply = await container.items.batch(
    [
      create("created", "kinds"),
      { operationType: "Upsert", resourceBody: { id: "upserted", pk: "kinds" } },
      { operationType: "Upsert", resourceBody: { id: "created", pk: "kinds", v: 2 } },
      { operationType: "Replace", id: "replaced", resourceBody: { id: "replaced", pk: "kinds", v: 3 } },
      { operationType: "Patch", id: "patched", resourceBody: { operations: [{ op: "incr", path: "/v", value: 3 }] } },
      { operationType: "Read", id: "read" },
      { operationType: "Read", id: "created" },
      { operationType: "Delete", id: "deleted" },
    ],
    "kinds",
  );
  assert.equal(reply.code, 200);
  assert.deepEqual(codes(reply), [201, 201, 200, 200, 200, 200, 200, 204]);
  assert.equal(reply.result[4].resourceBody.v, 4);
  assert.equal(reply.result[5].resourceBody.v, 1);
  assert.equal(reply.result[6].resourceBody.v, 2);
  for (const one of reply.result.slice(0, 7)) {
    assert.equal(one.eTag, one.resourceBody._etag);
    assert.ok(one.requestCharge > 0);
  }
  const { resources } = await container.items.readAll({ partitionKey: "kinds" }).fetchAll();
  const found = Object.fromEntries(resources.map(({ id, v }) => [id, v]));
  assert.deepEqual(found, { created: 2, patched: 4, read: 1, replaced: 3, upserted: undefined });
  for (const item of resources) assert.deepEqual((await container.item(item.id, "kinds").read()).resource, item);
});

test("a batch whose last operation fails does nothing", async () => {
  await container.items.create({ id: "taken", pk: "conflict" });
  const reply = await container.items.batch(
    [create("new", "conflict"), { operationType: "Delete", id: "taken" }, create("new", "conflict"), create("more", "conflict")],
    "conflict",
  );
  assert.equal(reply.code, 207);
  assert.deepEqual(codes(reply), [424, 424, 409, 424]);
  assert.equal(await exists("new", "conflict"), false);
  assert.equal(await exists("more", "conflict"), false);
  assert.equal(await exists("taken", "conflict"), true);
});

test("a batch with a stale etag does nothing", async () => {
  const { resource: old } = await container.items.create({ id: "guarded", pk: "etag", v: 1 });
  await container.item("guarded", "etag").replace({ id: "guarded", pk: "etag", v: 2 });
  const replace = { operationType: "Replace", id: "guarded", ifMatch: old._etag, resourceBody: { id: "guarded", pk: "etag", v: 3 } };
  const reply = await container.items.batch([create("beside", "etag"), replace], "etag");
  assert.equal(reply.code, 207);
  assert.deepEqual(codes(reply), [424, 412]);
  assert.equal((await container.item("guarded", "etag").read()).resource.v, 2);
  assert.equal(await exists("beside", "etag"), false);
});

test("a batch that reads what is not there fails with 404", async () => {
  const reply = await container.items.batch([create("1", "missing"), { operationType: "Read", id: "nothing" }], "missing");
  assert.equal(reply.code, 207);
  assert.deepEqual(codes(reply), [424, 404]);
});

test("a batch with an item of another partition key is refused", async () => {
  const reply = await container.items.batch([create("1", "mine"), create("2", "theirs")], "mine");
  assert.equal(reply.code, 207);
  assert.deepEqual(codes(reply), [424, 400]);
  assert.equal(reply.result[1].subStatusCode, 1001);
  assert.equal(await exists("1", "mine"), false);
  assert.equal(await exists("2", "theirs"), false);
});

test("a batch keeps the unique keys of its container, and may exchange values", async () => {
  const unique = await makeContainer(client, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  const upsert = (id, email) => ({ operationType: "Upsert", resourceBody: { id, pk: "p", email } });
  const clash = await unique.items.batch([upsert("1", "x"), upsert("2", "x")], "p");
  assert.equal(clash.code, 207);
  assert.deepEqual(codes(clash).sort(), [409, 424]);
  assert.equal((await unique.items.batch([upsert("1", "x"), upsert("2", "y")], "p")).code, 200);
  assert.equal((await unique.items.batch([upsert("1", "y"), upsert("2", "x")], "p")).code, 200);
  await refused(unique.items.create({ id: "3", pk: "p", email: "y" }), 409);
});

test("a batch of 100 operations is done, one of 101 is refused", async () => {
  const operations = (count) => Array.from({ length: count }, (_, i) => create(`${i}`, "raw"));
  const many = await rawBatch(operations(101));
  assert.equal(many.status, 400, many.text);
  assert.equal(await exists("0", "raw"), false);
  const reply = await container.items.batch(operations(100), "raw");
  assert.equal(reply.code, 200);
  assert.deepEqual(new Set(codes(reply)), new Set([201]));
  const { resources } = await container.items.readAll({ partitionKey: "raw" }).fetchAll();
  assert.equal(resources.length, 100);
});

test("a batch over 2 MB is refused with 413", async () => {
  const text = "x".repeat(800_000);
  const reply = await rawBatch([create("a", "raw", { text }), create("b", "raw", { text }), create("c", "raw", { text })]);
  assert.equal(reply.status, 413, reply.text);
});

for (const [what, body] of [
  ["nothing", []],
  ["an object", { operationType: "Create" }],
]) {
  test(`a batch of ${what} is refused`, async () => {
    assert.equal((await rawBatch(body)).status, 400);
  });
}

for (const [what, operation] of [
  ["of an unknown kind", { operationType: "Destroy", id: "1" }],
  ["without an item", { operationType: "Create" }],
  ["without an id", { operationType: "Delete" }],
  ["that is no object", 5],
]) {
  test(`a batch with an operation ${what} is refused`, async () => {
    const reply = await rawBatch([operation]);
    assert.ok(reply.status === 400 || (reply.status === 207 && reply.json[0].statusCode === 400), reply.text);
  });
}

test("a batch without a partition key is refused", async () => {
  const reply = await rawBatch([create("1", "raw")], { "x-ms-documentdb-partitionkey": undefined });
  assert.equal(reply.status, 400, reply.text);
});

test("a batch moves the session token by one", async () => {
  const lsn = (headers) => Number(headers["x-ms-session-token"].split("#")[1]);
  const before = lsn((await container.items.create({ id: "before", pk: "lsn" })).headers);
  const reply = await container.items.batch([create("1", "lsn"), create("2", "lsn"), create("3", "lsn")], "lsn");
  assert.equal(lsn(reply.headers), before + 1);
});

test("batches that run at once keep their sums", async () => {
  const pk = "accounts";
  await container.items.batch([create("a", pk, { money: 100 }), create("b", pk, { money: 100 })], pk);
  const transfer = (from, to) => {
    const patch = (id, value) => ({ operationType: "Patch", id, resourceBody: { operations: [{ op: "incr", path: "/money", value }] } });
    return container.items.batch([patch(from, -1), patch(to, 1)], pk);
  };
  const replies = await Promise.all(Array.from({ length: 30 }, (_, i) => (i % 3 ? transfer("a", "b") : transfer("b", "a"))));
  for (const reply of replies) assert.equal(reply.code, 200);
  assert.equal((await container.item("a", pk).read()).resource.money, 90);
  assert.equal((await container.item("b", pk).read()).resource.money, 110);
});

test("bulk creates 1,000 items on several partitions", async () => {
  const bulk = await makeContainer(client, { throughput: 25000 });
  const operations = Array.from({ length: 1000 }, (_, i) => bulkCreate(`${i}`, `key ${i % 97}`, { v: i }));
  const results = await bulk.items.executeBulkOperations(operations);
  assert.equal(results.length, 1000);
  for (const [i, { response, error }] of results.entries()) {
    assert.equal(error, undefined);
    assert.equal(response.statusCode, 201);
    assert.deepEqual(plain(response.resourceBody), operations[i].resourceBody);
    assert.equal(response.eTag, response.resourceBody._etag);
    assert.ok(response.requestCharge > 4.95);
  }
  const { resources } = await bulk.items.readAll().fetchAll();
  assert.deepEqual(resources.map(({ v }) => v).sort((a, b) => a - b), Array.from({ length: 1000 }, (_, i) => i));
});

test("bulk answers each operation for itself", async () => {
  const bulk = await makeContainer(client, { throughput: 25000 });
  for (let i = 0; i < 6; i += 1) await bulk.items.create({ id: `${i}`, pk: `k${i}`, v: i });
  const results = await bulk.items.executeBulkOperations([
    bulkCreate("0", "k0"),
    { operationType: "Upsert", partitionKey: "k1", resourceBody: { id: "1", pk: "k1", v: 11 } },
    { operationType: "Replace", partitionKey: "k2", id: "2", resourceBody: { id: "2", pk: "k2", v: 12 } },
    { operationType: "Patch", partitionKey: "k3", id: "3", resourceBody: { operations: [{ op: "incr", path: "/v", value: 10 }] } },
    { operationType: "Read", partitionKey: "k4", id: "4" },
    { operationType: "Delete", partitionKey: "k5", id: "5" },
    { operationType: "Read", partitionKey: "k5", id: "nothing" },
    { operationType: "Upsert", partitionKey: "new", resourceBody: { id: "7", pk: "new", v: 7 } },
    { operationType: "Replace", partitionKey: "k1", id: "nothing", resourceBody: { id: "nothing", pk: "k1" } },
  ]);
  const status = results.map(({ response, error }) => response?.statusCode ?? error.code);
  assert.deepEqual(status, [409, 200, 200, 200, 200, 204, 404, 201, 404]);
  assert.equal(results[4].response.resourceBody.v, 4);
  assert.equal((await bulk.item("0", "k0").read()).resource.v, 0);
  assert.equal((await bulk.item("1", "k1").read()).resource.v, 11);
  assert.equal((await bulk.item("2", "k2").read()).resource.v, 12);
  assert.equal((await bulk.item("3", "k3").read()).resource.v, 13);
  assert.equal((await bulk.item("5", "k5").read()).statusCode, 404);
});

test("the older bulk call gives its results in order", async () => {
  const bulk = await makeContainer(client, { throughput: 25000 });
  const operations = Array.from({ length: 90 }, (_, i) => create(`${i}`, `key ${i}`, { v: i }));
  const results = await bulk.items.bulk([...operations, create("0", "key 0")]);
  assert.deepEqual(results.map(({ statusCode }) => statusCode), [...operations.map(() => 201), 409]);
  for (const [i, { resourceBody }] of results.slice(0, 90).entries()) assert.equal(resourceBody.v, i);
});

test("bulk on keys of every type finds the right partition", async () => {
  const bulk = await makeContainer(client, { throughput: 25000 });
  const keys = ["a", "", 5, 0, -1.5, true, false, null];
  const results = await bulk.items.executeBulkOperations(keys.map((pk, i) => bulkCreate(`${i}`, pk)));
  for (const { response, error } of results) assert.equal(response?.statusCode ?? error, 201);
  for (const [i, pk] of keys.entries()) assert.equal((await bulk.item(`${i}`, pk).read()).statusCode, 200);
});

test("bulk that names a partition that never was is answered with 410", async () => {
  const reply = await server.request({
    method: "POST",
    path: `/${container.url}/docs`,
    headers: {
      "x-ms-cosmos-is-batch-request": "true",
      "x-ms-cosmos-batch-atomic": "false",
      "x-ms-cosmos-batch-continue-on-error": "true",
      "x-ms-documentdb-partitionkeyrangeid": "987654",
    },
    body: JSON.stringify([{ operationType: "Read", id: "1", partitionKey: '["a"]' }]),
  });
  assert.equal(reply.status, 410, reply.text);
  assert.equal(reply.headers["x-ms-substatus"], "1002");
});

test("bulk reads that do not fit one reply say so, and none is empty", async () => {
  const big = await makeContainer(client, { throughput: 10000 });
  const text = "x".repeat(1_000_000);
  for (let i = 0; i < 7; i += 1) await big.items.create({ id: `${i}`, pk: "big", text });
  const operations = Array.from({ length: 7 }, (_, i) => ({ operationType: "Read", id: `${i}`, partitionKey: '["big"]' }));
  const reply = await server.request({
    method: "POST",
    path: `/${big.url}/docs`,
    headers: { "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "false", prefer: "return=minimal" },
    body: JSON.stringify(operations),
  });
  const found = reply.json.filter((one) => one.statusCode === 200);
  const cut = reply.json.filter((one) => one.statusCode === 413);
  assert.equal(found.length + cut.length, 7, reply.text.slice(0, 500));
  assert.ok(found.length >= 3 && cut.length >= 1);
  for (const one of found) assert.equal(one.resourceBody.text.length, text.length);
  for (const one of cut) assert.equal(one.subStatusCode, 3402);
});

test("a logical partition is deleted whole, and nothing beside it", async () => {
  const bulk = await makeContainer(client, { throughput: 25000 });
  const operations = Array.from({ length: 1300 }, (_, i) => bulkCreate(`${i}`, i < 1200 ? "doomed" : `other ${i % 7}`));
  for (const { response } of await bulk.items.executeBulkOperations(operations)) assert.equal(response?.statusCode, 201);
  const { statusCode } = await bulk.deleteAllItemsForPartitionKey("doomed");
  assert.ok(statusCode === 200 || statusCode === 204, `${statusCode}`);
  assert.deepEqual((await bulk.items.readAll({ partitionKey: "doomed" }).fetchAll()).resources, []);
  assert.equal((await bulk.items.readAll().fetchAll()).resources.length, 100);
  assert.equal((await bulk.items.create({ id: "1", pk: "doomed" })).statusCode, 201);
});

test("the delete of a logical partition frees its unique values", async () => {
  const unique = await makeContainer(client, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  await unique.items.create({ id: "1", pk: "p", email: "x" });
  await unique.deleteAllItemsForPartitionKey("p");
  assert.equal((await unique.items.create({ id: "2", pk: "p", email: "x" })).statusCode, 201);
});
