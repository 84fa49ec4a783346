// Items one at a time: create, read, upsert, replace, delete, conditions, limits, fidelity.
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

const ifMatch = (condition) => ({ accessCondition: { type: "IfMatch", condition } });
const ifNoneMatch = (condition) => ({ accessCondition: { type: "IfNoneMatch", condition } });

// Requests that the SDK would not send.
const key = (value) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([value]) });
const post = (body, headers = {}) => server.request({ method: "POST", path: `/${container.url}/docs`, body, headers });
const itemPath = (id) => `/${container.url}/docs/${encodeURIComponent(id)}`;

test("a created item is read back with its system properties", async () => {
  const item = { id: "create", pk: "a", text: "x", nested: { list: [1, "two", null, true, { three: 3 }] } };
  const made = await container.items.create(item);
  assert.equal(made.statusCode, 201);
  assert.deepEqual(plain(made.resource), item);
  const read = await container.item("create", "a").read();
  assert.equal(read.statusCode, 200);
  assert.deepEqual(read.resource, made.resource);
  assert.equal(read.headers.etag, read.resource._etag);
  assert.match(read.resource._etag, /^"[^"]+"$/);
  assert.equal(Buffer.from(read.resource._rid.replaceAll("-", "/"), "base64").length, 16);
  assert.ok(Math.abs(read.resource._ts - Date.now() / 1000) < 60);
  assert.ok(read.resource._self.endsWith(`docs/${read.resource._rid}/`));
});

test("an item keeps the order of its properties", async () => {
  const { text } = await post('{"z":1,"id":"order","pk":"a","b":{"y":1,"x":2},"a":3}');
  assert.ok(text.startsWith('{"z":1,"id":"order","pk":"a","b":{"y":1,"x":2},"a":3,'), text);
});

test("an item that does not exist is answered with 404", async () => {
  const { statusCode, resource } = await container.item("nothing", "a").read();
  assert.equal(statusCode, 404);
  assert.equal(resource, undefined);
  await refused(container.item("nothing", "a").replace({ id: "nothing", pk: "a" }), 404);
  await refused(container.item("nothing", "a").delete(), 404);
});

test("an item of a container that does not exist is answered with 404 and substatus 1003", async () => {
  const reply = await server.request({ path: "/dbs/tests/colls/nowhere/docs/1", headers: key("a") });
  assert.equal(reply.status, 404);
  assert.equal(reply.headers["x-ms-substatus"], "1003");
});

test("the same id can live under two partition keys", async () => {
  await container.items.create({ id: "twin", pk: "a", v: 1 });
  await container.items.create({ id: "twin", pk: "b", v: 2 });
  assert.equal((await container.item("twin", "a").read()).resource.v, 1);
  assert.equal((await container.item("twin", "b").read()).resource.v, 2);
  await container.item("twin", "a").delete();
  assert.equal((await container.item("twin", "a").read()).statusCode, 404);
  assert.equal((await container.item("twin", "b").read()).resource.v, 2);
});

test("a second create of an item is a conflict and changes nothing", async () => {
  await container.items.create({ id: "duplicate", pk: "a", v: 1 });
  await refused(container.items.create({ id: "duplicate", pk: "a", v: 2 }), 409);
  assert.equal((await container.item("duplicate", "a").read()).resource.v, 1);
});

test("of many creates of one item at once, one succeeds", async () => {
  const tries = Array.from({ length: 20 }, (_, v) => container.items.create({ id: "race", pk: "a", v }));
  const results = await Promise.allSettled(tries);
  const made = results.filter((result) => result.status === "fulfilled");
  assert.equal(made.length, 1);
  for (const { status, reason } of results) if (status === "rejected") assert.equal(reason.code, 409);
  assert.equal((await container.item("race", "a").read()).resource.v, made[0].value.resource.v);
});

test("an upsert creates with 201 and replaces with 200", async () => {
  const first = await container.items.upsert({ id: "upsert", pk: "a", v: 1, only: "first" });
  const second = await container.items.upsert({ id: "upsert", pk: "a", v: 2 });
  assert.equal(first.statusCode, 201);
  assert.equal(second.statusCode, 200);
  assert.equal(first.resource._rid, second.resource._rid);
  assert.notEqual(first.resource._etag, second.resource._etag);
  assert.deepEqual(plain((await container.item("upsert", "a").read()).resource), { id: "upsert", pk: "a", v: 2 });
});

test("a replace gives the whole new item, and a new etag", async () => {
  const { resource: before } = await container.items.create({ id: "replace", pk: "a", old: true });
  const { statusCode, resource } = await container.item("replace", "a").replace({ id: "replace", pk: "a", new: true });
  assert.equal(statusCode, 200);
  assert.deepEqual(plain(resource), { id: "replace", pk: "a", new: true });
  assert.equal(resource._rid, before._rid);
  assert.notEqual(resource._etag, before._etag);
});

test("system properties that a client sends back are not stored", async () => {
  const { resource } = await container.items.create({ id: "echo", pk: "a" });
  const forged = { ...resource, _rid: "forged", _ts: 1, v: 2 };
  const { resource: after } = await container.item("echo", "a").replace(forged);
  assert.equal(after._rid, resource._rid);
  assert.ok(after._ts >= resource._ts);
  assert.equal((await server.request({ path: itemPath("echo"), headers: key("a") })).text.match(/"_rid"/g).length, 1);
});

test("a delete gives 204, and then the item is gone", async () => {
  await container.items.create({ id: "delete", pk: "a" });
  const { statusCode } = await container.item("delete", "a").delete();
  assert.equal(statusCode, 204);
  assert.equal((await container.item("delete", "a").read()).statusCode, 404);
  assert.equal((await container.items.create({ id: "delete", pk: "a" })).statusCode, 201);
});

test("a write with the current etag succeeds, one with an older etag is refused with 412", async () => {
  const { resource: first } = await container.items.create({ id: "match", pk: "a", v: 1 });
  const item = container.item("match", "a");
  const { resource: second } = await item.replace({ id: "match", pk: "a", v: 2 }, ifMatch(first._etag));
  await refused(item.replace({ id: "match", pk: "a", v: 3 }, ifMatch(first._etag)), 412);
  await refused(item.delete(ifMatch(first._etag)), 412);
  await refused(item.patch([{ op: "set", path: "/v", value: 4 }], ifMatch(first._etag)), 412);
  await refused(container.items.upsert({ id: "match", pk: "a", v: 5 }, ifMatch(first._etag)), 412);
  assert.equal((await item.read()).resource.v, 2);
  assert.equal((await item.replace({ id: "match", pk: "a", v: 6 }, ifMatch("*"))).resource.v, 6);
  await refused(item.delete(ifMatch(second._etag)), 412);
  const { resource: last } = await item.read();
  assert.equal((await item.delete(ifMatch(last._etag))).statusCode, 204);
});

test("an upsert with an etag creates an item that is not there", async () => {
  const { statusCode } = await container.items.upsert({ id: "match-new", pk: "a" }, ifMatch('"0000-0000"'));
  assert.equal(statusCode, 201);
});

test("a read of what the client has is answered with 304 and no body", async () => {
  const { resource } = await container.items.create({ id: "fresh", pk: "a" });
  const item = container.item("fresh", "a");
  assert.equal((await item.read(ifNoneMatch(resource._etag))).statusCode, 304);
  const { resource: next } = await item.replace({ id: "fresh", pk: "a", v: 2 });
  const read = await item.read(ifNoneMatch(resource._etag));
  assert.equal(read.statusCode, 200);
  assert.equal(read.resource._etag, next._etag);
});

test("many writers with etags lose no update", async () => {
  await container.items.create({ id: "counter", pk: "a", v: 0 });
  const item = container.item("counter", "a");
  const add = async () => {
    for (;;) {
      const { resource } = await item.read();
      try {
        await item.replace({ ...resource, v: resource.v + 1 }, ifMatch(resource._etag));
        return;
      } catch (error) {
        if (error.code !== 412) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: 16 }, add));
  assert.equal((await item.read()).resource.v, 16);
});

test("the id of an item cannot be changed", async () => {
  await container.items.create({ id: "name", pk: "a" });
  await refused(container.item("name", "a").replace({ id: "other name", pk: "a" }), 400);
});

test("the partition key of an item cannot be changed", async () => {
  await container.items.create({ id: "home", pk: "a" });
  await refused(container.item("home", "a").replace({ id: "home", pk: "b" }), 400, 1001);
  assert.equal((await container.item("home", "a").read()).resource.pk, "a");
});

test("an item whose key is not that of the header is refused with substatus 1001", async () => {
  const reply = await post('{"id":"mismatch","pk":"a"}', key("b"));
  assert.equal(reply.status, 400);
  assert.equal(reply.headers["x-ms-substatus"], "1001");
  assert.equal(reply.json.code, "BadRequest");
});

test("a read without a partition key is refused", async () => {
  const reply = await server.request({ path: itemPath("create") });
  assert.equal(reply.status, 400);
  assert.match(reply.json.message, /PartitionKey/);
});

test("a partition key of the wrong length is refused", async () => {
  for (const header of ['["a","b"]', "[", '"a"', "[[1]]"]) {
    const reply = await server.request({ path: itemPath("create"), headers: { "x-ms-documentdb-partitionkey": header } });
    assert.equal(reply.status, 400, `${header}: ${reply.text}`);
  }
});

test("an item without an id gets one", async () => {
  const reply = await post('{"pk":"a"}', key("a"));
  assert.equal(reply.status, 201);
  assert.match(reply.json.id, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
});

for (const id of ["with space", "ünï çödé 😀", "100%", "a+b&c=d", "dots...", "'quotes\"", "x".repeat(1023), "%2F", ".."]) {
  test(`an item can have the id ${id.slice(0, 20)}`, async () => {
    const { resource } = await container.items.create({ id, pk: "ids" });
    assert.equal(resource.id, id);
    const read = await server.request({ path: itemPath(id), headers: key("ids") });
    assert.equal(read.status, 200, read.text);
    assert.equal(read.json.id, id);
  });
}

for (const id of ["with space", "ünï çödé 😀", "a+b&c=d"]) {
  test(`the client reads and deletes an item with the id ${id}`, async () => {
    await container.items.create({ id, pk: "client ids" });
    assert.equal((await container.item(id, "client ids").read()).resource.id, id);
    assert.equal((await container.item(id, "client ids").delete()).statusCode, 204);
  });
}

for (const id of ['""', '"a/b"', '"a\\\\b"', "5", "null", "{}", `"${"x".repeat(1024)}"`]) {
  test(`the id ${id.slice(0, 20)} is refused`, async () => {
    const reply = await post(`{"id":${id},"pk":"a"}`, key("a"));
    assert.equal(reply.status, 400, reply.text);
  });
}

test("an item of 2 MB is stored, a larger one is refused with 413", async () => {
  const large = { id: "large", pk: "a", text: "x".repeat(2 * 1024 * 1024 - 200) };
  assert.equal((await container.items.create(large)).statusCode, 201);
  assert.equal((await container.item("large", "a").read()).resource.text.length, large.text.length);
  await refused(container.items.create({ ...large, id: "larger", text: `${large.text}${"x".repeat(400)}` }), 413);
  await refused(container.items.create({ ...large, id: "largest", text: "x".repeat(3 * 1024 * 1024) }), 413);
});

test("a patch cannot make an item larger than 2 MB", async () => {
  await container.items.create({ id: "growing", pk: "a", one: "x".repeat(1024 * 1024) });
  const patch = [{ op: "add", path: "/two", value: "x".repeat(1024 * 1024) }];
  await refused(container.item("growing", "a").patch(patch), 413);
});

test("nesting of 100 levels is stored, of 1,000 and of 200,000 is refused", async () => {
  const nested = (levels) => `{"id":"nested","pk":"a","v":${"[".repeat(levels)}${"]".repeat(levels)}}`;
  assert.equal((await post(nested(100))).status, 201);
  for (const levels of [1000, 200_000]) {
    const reply = await post(nested(levels));
    assert.ok([400, 413].includes(reply.status), reply.text);
  }
  assert.ok((await server.request({ path: itemPath("nested"), headers: key("a") })).text.includes("[".repeat(100)));
});

test("text of every kind survives", async () => {
  const texts = ["", "ä€😀", "\u0000\u0001\u001f", '"\\/\b\f\n\r\t', "\u2028\u2029", "\uFFFD\uFEFF", "e\u0301 é", "𝒳".repeat(1000)];
  const item = { id: "texts", pk: "ключ 🔑", texts, "näme \" \\ \n": 1, "": "empty name", $dollar: 1, "a.b": 2 };
  await container.items.create(item);
  assert.deepEqual(plain((await container.item("texts", "ключ 🔑").read()).resource), item);
});

test("numbers are kept to the last digit", async () => {
  const numbers = {
    max: "9223372036854775807",
    min: "-9223372036854775808",
    odd: "9007199254740993",
    tenth: "0.1",
    third: "0.3333333333333333",
    tiny: "5e-324",
    zero: "0",
  };
  const members = Object.entries(numbers).map(([name, value]) => `"${name}":${value}`).join(",");
  const made = await post(`{"id":"numbers","pk":"a",${members}}`);
  assert.equal(made.status, 201, made.text);
  const { text } = await server.request({ path: itemPath("numbers"), headers: key("a") });
  for (const [name, value] of Object.entries(numbers)) assert.ok(text.includes(`"${name}":${value}`), `${name} in ${text}`);
});

test("doubles come back as they were", async () => {
  const doubles = [1.5, -1.5, 1e21, 1.7976931348623157e308, 2.2250738585072014e-308, 123456789.12345679, 1e-7, 100, 1e15];
  await container.items.create({ id: "doubles", pk: "a", doubles });
  assert.deepEqual((await container.item("doubles", "a").read()).resource.doubles, doubles);
});

test("a number that no double holds is refused", async () => {
  assert.equal((await post('{"id":"huge","pk":"a","v":1e400}')).status, 400);
});

test("a reply can be asked for without the item", async () => {
  const { status, text, headers } = await post('{"id":"quiet","pk":"a"}', { prefer: "return=minimal" });
  assert.equal(status, 201);
  assert.equal(text, "");
  assert.equal(headers.etag, (await container.item("quiet", "a").read()).resource._etag);
  const operations = [{ operationType: "Create", resourceBody: { id: "quiet too", pk: "a" } }];
  const { result } = await container.items.batch(operations, "a", { contentResponseOnWriteEnabled: false });
  assert.equal(result[0].statusCode, 201);
  assert.equal(result[0].resourceBody, undefined);
});

test("a value that must be unique in its partition is refused the second time", async () => {
  const unique = await makeContainer(client, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }, { paths: ["/a", "/b"] }] } });
  await unique.items.create({ id: "1", pk: "p", email: "x", a: 1, b: 1 });
  await refused(unique.items.create({ id: "2", pk: "p", email: "x", a: 2, b: 2 }), 409);
  await refused(unique.items.create({ id: "2", pk: "p", email: "y", a: 1, b: 1 }), 409);
  await unique.items.create({ id: "2", pk: "p", email: "y", a: 1, b: 2 });
  await unique.items.create({ id: "1", pk: "other", email: "x", a: 1, b: 1 });
  await refused(unique.item("2", "p").replace({ id: "2", pk: "p", email: "x", a: 5, b: 5 }), 409);
  await refused(unique.item("2", "p").patch([{ op: "set", path: "/email", value: "x" }]), 409);
  await unique.item("1", "p").delete();
  assert.equal((await unique.item("2", "p").patch([{ op: "set", path: "/email", value: "x" }])).statusCode, 200);
});

test("two items without a unique value collide, as in the service", async () => {
  const unique = await makeContainer(client, { uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/email"] }] } });
  await unique.items.create({ id: "1", pk: "p" });
  await refused(unique.items.create({ id: "2", pk: "p" }), 409);
});
