// Time to live.
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

const gone = async (container, id) => (await container.item(id, "a").read()).statusCode === 404;
const stored = async (container) => {
  const { headers } = await container.read({ populateQuotaInfo: true });
  return Number(/documentsCount=(\d+);/.exec(headers["x-ms-resource-usage"])[1]);
};

test("items vanish by the container's time, or by their own", async () => {
  const ages = await makeContainer(client, { id: "ages", defaultTtl: 1 });
  const unique = { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } };
  const own = await makeContainer(client, { id: "own", defaultTtl: -1, ...unique });
  const never = await makeContainer(client, { id: "never" });
  await never.items.create({ id: "mortal nowhere", pk: "a", ttl: 1 });
  await ages.items.create({ id: "default", pk: "a" });
  await ages.items.create({ id: "immortal", pk: "a", ttl: -1 });
  await ages.items.create({ id: "longer", pk: "a", ttl: 3600 });
  await own.items.create({ id: "mortal", pk: "a", ttl: 1, email: "x" });
  await own.items.create({ id: "immortal", pk: "a", email: "y" });

  await until("the item with the container's time is gone", () => gone(ages, "default"));
  await until("the item with its own time is gone", () => gone(own, "mortal"));
  for (const [container, id] of [[ages, "immortal"], [ages, "longer"], [own, "immortal"], [never, "mortal nowhere"]]) {
    assert.equal(await gone(container, id), false, id);
  }
  const { resources } = await ages.items.readAll().fetchAll();
  assert.deepEqual(resources.map(({ id }) => id).sort(), ["immortal", "longer"]);

  // What is gone holds neither its id nor its unique values.
  assert.equal((await own.items.create({ id: "next", pk: "a", email: "x" })).statusCode, 201);
  assert.equal((await own.items.create({ id: "mortal", pk: "a", email: "z" })).statusCode, 201);

  await until("expired items are deleted", async () => (await stored(ages)) === 2);
});

test("a write to an expired item finds none", async () => {
  const ages = await makeContainer(client, { id: "writes", defaultTtl: 1 });
  await ages.items.create({ id: "old", pk: "a" });
  await until("it is gone", () => gone(ages, "old"));
  await refused(ages.item("old", "a").replace({ id: "old", pk: "a" }), 404);
  assert.equal((await ages.items.upsert({ id: "old", pk: "a", ttl: -1 })).statusCode, 201);
});

test("a change of the item begins its time anew", async () => {
  const ages = await makeContainer(client, { id: "renewed", defaultTtl: 2 });
  const first = await ages.items.create({ id: "kept", pk: "a" });
  await until("3 seconds of changes", async () => {
    const { resource } = await ages.item("kept", "a").patch([{ op: "incr", path: "/v", value: 1 }]);
    return resource._ts >= first.resource._ts + 3;
  });
  assert.equal(await gone(ages, "kept"), false);
});

test("a container can be given a time to live later", async () => {
  const late = await makeContainer(client, { id: "late" });
  await late.items.create({ id: "old", pk: "a" });
  const { resource } = await late.read();
  await late.replace({ ...resource, defaultTtl: 1 });
  await until("it is gone", () => gone(late, "old"));
});

test("times to live that are none are refused", async () => {
  const ages = await makeContainer(client, { id: "wrong", defaultTtl: -1 });
  for (const ttl of [0, -2, 1.5, "1", 2 ** 31]) await refused(ages.items.create({ id: "1", pk: "a", ttl }), 400);
});
