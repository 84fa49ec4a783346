// Request units: what requests cost, and what happens when they are used up. Sessions and consistency levels.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createDefaultHttpClient } from "@azure/core-rest-pipeline";
import { Server, makeContainer, refused } from "./server.mjs";

let server;
let client;
let container;
before(async () => {
  server = await Server.start();
  client = server.client();
  container = await makeContainer(client, { throughput: 10000 });
});
after(() => server?.remove());

const charge = (headers) => Number(headers["x-ms-request-charge"]);
const item = (id, bytes = 900) => ({ id, pk: "a", text: "x".repeat(bytes) });
const token = (headers) => headers["x-ms-session-token"];
const lsn = (headers) => Number(token(headers).split("#")[1]);
const read = (id, headers = {}) =>
  server.request({ path: `/${container.url}/docs/${id}`, headers: { "x-ms-documentdb-partitionkey": '["a"]', ...headers } });

test("a read of 1 KB costs 1 RU, one of 64 KB about 4.76", async () => {
  await container.items.create(item("small"));
  assert.equal((await container.item("small", "a").read()).requestCharge, 1);
  await container.items.create(item("large", 64 * 1024 - 100));
  const large = (await container.item("large", "a").read()).requestCharge;
  assert.ok(large > 4.5 && large <= 4.76, `${large}`);
});

test("a create of 1 KB costs 4.95 RU and 0.2 for each index term", async () => {
  const { requestCharge } = await container.items.create(item("priced"));
  assert.ok(requestCharge > 4.95 && requestCharge < 7, `${requestCharge}`);
  const more = await container.items.create({ ...item("terms"), list: [1, 2, 3, 4, 5] });
  assert.equal(Math.round((more.requestCharge - requestCharge) * 100), 100);
});

test("a create without an index costs 4.95 RU", async () => {
  const bare = await makeContainer(client, { indexingPolicy: { indexingMode: "none", automatic: false } });
  assert.equal((await bare.items.create(item("1"))).requestCharge, 4.95);
});

test("a replace costs more than a create, a patch more than a replace", async () => {
  const made = await container.items.create({ id: "change", pk: "a", v: 1 });
  const replaced = await container.item("change", "a").replace({ id: "change", pk: "a", v: 2 });
  const patched = await container.item("change", "a").patch([{ op: "set", path: "/v", value: 3 }]);
  assert.ok(replaced.requestCharge > made.requestCharge);
  assert.equal(Math.round((patched.requestCharge - replaced.requestCharge) * 100), 40);
});

test("a batch costs what its operations cost", async () => {
  const operations = ["b1", "b2", "b3"].map((id) => ({ operationType: "Create", resourceBody: item(id) }));
  const { result, headers } = await container.items.batch(operations, "a");
  const sum = result.reduce((total, one) => total + one.requestCharge, 0);
  assert.equal(Math.round(charge(headers) * 100), Math.round(sum * 100));
});

test("a query of one item costs about 2.26 RU", async () => {
  await container.items.create({ id: "alone", pk: "alone" });
  const { requestCharge } = await container.items.query("SELECT * FROM c", { partitionKey: "alone" }).fetchNext();
  assert.ok(requestCharge >= 2.2 && requestCharge <= 2.4, `${requestCharge}`);
});

test("requests that fail carry a charge too", async () => {
  const { resource } = await container.items.create(item("failing"));
  await container.item("failing", "a").replace(item("failing"));
  const stale = { accessCondition: { type: "IfMatch", condition: resource._etag } };
  const errors = [
    await refused(container.items.create(item("failing")), 409),
    await refused(container.item("failing", "a").replace(item("failing"), stale), 412),
    await refused(container.item("nothing", "a").delete(), 404),
    await refused(container.item("failing", "a").patch([{ op: "remove", path: "/nothing" }]), 400),
  ];
  for (const error of errors) assert.ok(charge(error.headers) > 0, `${error.code}: ${charge(error.headers)}`);
  const missing = await read("nothing");
  assert.equal(missing.status, 404);
  assert.ok(charge(missing.headers) > 0);
  const malformed = await server.request({ method: "POST", path: `/${container.url}/docs`, body: "{" });
  assert.equal(malformed.status, 400);
  assert.ok(charge(malformed.headers) >= 0);
});

test("every reply carries an activity id, and echoes the client's", async () => {
  const id = "12345678-1234-1234-1234-123456789abc";
  assert.equal((await read("small", { "x-ms-activity-id": id })).headers["x-ms-activity-id"], id);
  assert.match((await read("small")).headers["x-ms-activity-id"], /^[0-9a-f-]{36}$/);
});

test("requests beyond the throughput are refused with 429 and the time to wait", async () => {
  const impatient = server.impatientClient();
  const slow = await makeContainer(impatient, { id: "slow", throughput: 400 });
  await slow.items.create({ id: "first", pk: "a" });
  const results = await Promise.allSettled(Array.from({ length: 200 }, (_, i) => slow.items.create({ id: `${i}`, pk: `${i}` })));
  const throttled = results.filter(({ status }) => status === "rejected").map(({ reason }) => reason);
  assert.ok(throttled.length > 0, "none was throttled");
  assert.ok(throttled.length < 200, "all were throttled");
  for (const error of throttled) {
    assert.equal(error.code, 429, `${error.code} ${error.message}`);
    assert.equal(Number(error.substatus ?? error.headers["x-ms-substatus"]), 3200);
    assert.ok(error.retryAfterInMs > 0 && error.retryAfterInMs <= 10_000, `${error.retryAfterInMs}`);
    assert.ok(charge(error.headers) > 0);
    assert.match(error.message, /Request rate is large/);
  }
  const { resources } = await server.client().database("tests").container(slow.id).items.readAll().fetchAll();
  assert.equal(resources.length, 1 + results.length - throttled.length);
});

test("a client that waits as it is told gets everything done", async () => {
  const slow = await makeContainer(client, { id: "patient", throughput: 400 });
  const made = await Promise.all(Array.from({ length: 150 }, (_, i) => slow.items.create({ id: `${i}`, pk: `${i}` })));
  for (const { statusCode } of made) assert.equal(statusCode, 201);
});

test("a request dearer than a second's throughput is done", async () => {
  const slow = await makeContainer(client, { id: "dear", throughput: 400 });
  const { requestCharge } = await slow.items.create({ id: "1", pk: "a", text: "x".repeat(1_500_000) });
  assert.ok(requestCharge > 400);
});

test("a container whose throughput nobody chose is not throttled", async () => {
  const impatient = server.impatientClient();
  const free = await makeContainer(impatient, { id: "free" });
  const made = await Promise.all(Array.from({ length: 200 }, (_, i) => free.items.create({ id: `${i}`, pk: `${i}` })));
  assert.equal(made.length, 200);
});

test("more throughput takes effect at once", async () => {
  const impatient = server.impatientClient();
  const slow = await makeContainer(impatient, { id: "raised", throughput: 400 });
  const { offer, resource } = await slow.readOffer();
  await offer.replace({ ...resource, content: { offerThroughput: 10000 } });
  const made = await Promise.all(Array.from({ length: 200 }, (_, i) => slow.items.create({ id: `${i}`, pk: `${i}` })));
  assert.equal(made.length, 200);
});

test("the session token names the partition and grows with writes only", async () => {
  const first = await container.items.create({ id: "session 1", pk: "a" });
  const second = await container.items.create({ id: "session 2", pk: "a" });
  const seen = await container.item("session 2", "a").read();
  assert.match(token(first.headers), /^\d+:-1#\d+$/);
  assert.equal(lsn(second.headers), lsn(first.headers) + 1);
  assert.equal(lsn(seen.headers), lsn(second.headers));
  assert.equal(seen.headers.lsn, `${lsn(seen.headers)}`);
});

test("a page over several partitions has the session token of each, and a client keeps them all", async () => {
  const wide = await makeContainer(client, { throughput: 20000 });
  const { resources: ranges } = await wide.readPartitionKeyRanges().fetchAll();
  assert.equal(ranges.length, 2);
  const sent = [];
  const plain = createDefaultHttpClient();
  const httpClient = {
    sendRequest: (request) => {
      sent.push(request.headers.get("x-ms-session-token"));
      return plain.sendRequest(request);
    },
  };
  const reader = server.client({ consistencyLevel: "Session", httpClient });
  const own = reader.database("tests").container(wide.id);
  const page = await own.items.readAll().fetchNext();
  const tokens = page.headers["x-ms-session-token"];
  assert.deepEqual(tokens.split(",").map((one) => one.split(":")[0]), ranges.map(({ id }) => id));
  await own.items.readAll().fetchNext();
  assert.equal(sent.at(-1), tokens);
  reader.dispose();
});

test("a client with session consistency reads what it wrote", async () => {
  const session = server.client({ consistencyLevel: "Session" }).database("tests").container(container.id);
  for (let i = 0; i < 10; i += 1) {
    await session.items.upsert({ id: "mine", pk: "a", v: i });
    assert.equal((await session.item("mine", "a").read()).resource.v, i);
  }
});

test("a session that the partition has not reached is answered with 404 and substatus 1002", async () => {
  const { headers } = await container.items.create({ id: "session 3", pk: "a" });
  const [range] = token(headers).split(":");
  const ahead = await read("session%203", { "x-ms-session-token": `${range}:-1#${lsn(headers) + 1000}` });
  assert.equal(ahead.status, 404);
  assert.equal(ahead.headers["x-ms-substatus"], "1002");
  const foreign = `999999:-1#5000000,${token(headers)}`;
  assert.equal((await read("session%203", { "x-ms-session-token": foreign })).status, 200);
  assert.equal((await read("session%203", { "x-ms-session-token": "nonsense" })).status, 400);
});

test("a consistency level stronger than the account's is refused, a weaker one is taken", async () => {
  await container.items.upsert(item("levels"));
  for (const level of ["Strong", "BoundedStaleness", "Psychic"]) {
    const reply = await read("levels", { "x-ms-consistency-level": level });
    assert.equal(reply.status, 400, `${level}: ${reply.text}`);
  }
  for (const level of ["Session", "ConsistentPrefix", "Eventual"]) {
    assert.equal((await read("levels", { "x-ms-consistency-level": level })).status, 200);
  }
  const strong = server.client({ consistencyLevel: "Strong" }).database("tests").container(container.id);
  await refused(strong.item("levels", "a").read(), 400);
});

test("an account with strong consistency reads at twice the price", async () => {
  const strict = await Server.start({ settings: { "account.consistency": "Strong" } });
  try {
    const own = await makeContainer(strict.client());
    await own.items.create({ id: "1", pk: "a" });
    assert.equal((await own.item("1", "a").read()).requestCharge, 2);
    assert.equal((await own.item("1", "a").read({ consistencyLevel: "Session" })).requestCharge, 1);
  } finally {
    await strict.remove();
  }
});

test("requests of the control plane have a budget of their own", async () => {
  const small = await Server.start({ settings: { "limits.control_throughput": 20 } });
  try {
    const replies = await Promise.all(Array.from({ length: 60 }, () => small.request({ path: "/dbs" })));
    const status = new Set(replies.map((reply) => reply.status));
    assert.deepEqual([...status].sort(), [200, 429]);
    for (const reply of replies) if (reply.status === 429) assert.ok(Number(reply.headers["x-ms-retry-after-ms"]) > 0);
  } finally {
    await small.remove();
  }
});
