// Partial changes of an item.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, plain, refused } from "./server.mjs";

let server;
let client;
let container;
before(async () => {
  server = await Server.start();
  client = server.client();
  container = await makeContainer(client);
});
after(() => server?.remove());

let count = 0;
async function make(body) {
  count += 1;
  const id = `item ${count}`;
  await container.items.create({ id, pk: "a", ...body });
  return container.item(id, "a");
}

for (const [what, before, operations, expected] of [
  ["add makes a property", {}, [{ op: "add", path: "/v", value: 1 }], { v: 1 }],
  ["add replaces a property", { v: 1 }, [{ op: "add", path: "/v", value: [2] }], { v: [2] }],
  ["add inserts before an element", { v: [1, 3] }, [{ op: "add", path: "/v/1", value: 2 }], { v: [1, 2, 3] }],
  ["add with - appends", { v: [1] }, [{ op: "add", path: "/v/-", value: { two: 2 } }], { v: [1, { two: 2 }] }],
  ["set makes a property", {}, [{ op: "set", path: "/v", value: null }], { v: null }],
  ["set replaces an element", { v: [1, 2] }, [{ op: "set", path: "/v/0", value: 9 }], { v: [9, 2] }],
  ["set goes deep", { v: { w: { x: 1 } } }, [{ op: "set", path: "/v/w/x", value: 2 }], { v: { w: { x: 2 } } }],
  ["replace changes a property", { v: 1, w: 2 }, [{ op: "replace", path: "/v", value: "one" }], { v: "one", w: 2 }],
  ["remove takes a property away", { v: 1, w: 2 }, [{ op: "remove", path: "/v" }], { w: 2 }],
  ["remove takes an element away", { v: [1, 2, 3] }, [{ op: "remove", path: "/v/1" }], { v: [1, 3] }],
  ["incr adds", { v: 40 }, [{ op: "incr", path: "/v", value: 2 }], { v: 42 }],
  ["incr adds a fraction", { v: 1 }, [{ op: "incr", path: "/v", value: -0.5 }], { v: 0.5 }],
  ["incr makes a property that is missing", {}, [{ op: "incr", path: "/v", value: 3 }], { v: 3 }],
  ["move moves", { v: 1, w: {} }, [{ op: "move", from: "/v", path: "/w/v" }], { w: { v: 1 } }],
  ["a path may hold ~0 and ~1", {}, [{ op: "set", path: "/a~1b~0c", value: 1 }], { "a/b~c": 1 }],
  ["operations see those before them", {}, [{ op: "add", path: "/v", value: [] }, { op: "add", path: "/v/-", value: 1 }, { op: "incr", path: "/v/0", value: 1 }], { v: [2] }],
]) {
  test(`patch: ${what}`, async () => {
    const item = await make(before);
    const { statusCode, resource } = await item.patch(operations);
    assert.equal(statusCode, 200);
    assert.deepEqual(plain(resource), { id: item.id, pk: "a", ...expected });
    assert.deepEqual((await item.read()).resource, resource);
  });
}

for (const [what, before, operations] of [
  ["a replace of what is missing", {}, [{ op: "replace", path: "/v", value: 1 }]],
  ["a remove of what is missing", {}, [{ op: "remove", path: "/v" }]],
  ["a parent that is missing", {}, [{ op: "set", path: "/v/w", value: 1 }]],
  ["an index out of the array", { v: [1] }, [{ op: "add", path: "/v/5", value: 1 }]],
  ["an incr of text", { v: "x" }, [{ op: "incr", path: "/v", value: 1 }]],
  ["an incr by text", { v: 1 }, [{ op: "incr", path: "/v", value: "1" }]],
  ["a change of the id", {}, [{ op: "set", path: "/id", value: "x" }]],
  ["a change of the partition key", {}, [{ op: "set", path: "/pk", value: "x" }]],
  ["a change of the time", {}, [{ op: "set", path: "/_ts", value: 1 }]],
  ["an unknown operation", {}, [{ op: "double", path: "/v" }]],
  ["a path without a slash", {}, [{ op: "set", path: "v", value: 1 }]],
  ["no operations", {}, []],
  ["eleven operations", {}, Array.from({ length: 11 }, (_, i) => ({ op: "set", path: `/v${i}`, value: 1 }))],
  ["one bad operation after a good one", {}, [{ op: "set", path: "/v", value: 1 }, { op: "remove", path: "/w" }]],
]) {
  test(`patch: ${what} is refused and changes nothing`, async () => {
    const item = await make(before);
    const { resource } = await item.read();
    await refused(item.patch(operations), 400);
    assert.deepEqual((await item.read()).resource, resource);
  });
}

test("ten operations are taken", async () => {
  const item = await make({});
  const operations = Array.from({ length: 10 }, (_, i) => ({ op: "set", path: `/v${i}`, value: i }));
  assert.equal((await item.patch(operations)).resource.v9, 9);
});

test("a patch whose condition is true is done", async () => {
  const item = await make({ v: 1 });
  const operations = [{ op: "incr", path: "/v", value: 1 }];
  assert.equal((await item.patch({ condition: "from c where c.v = 1", operations })).resource.v, 2);
  assert.equal((await item.patch({ condition: "FROM c WHERE c.v > 1 AND IS_DEFINED(c.pk)", operations })).resource.v, 3);
});

test("a patch whose condition is false is refused with 412", async () => {
  const item = await make({ v: 1 });
  const operations = [{ op: "incr", path: "/v", value: 1 }];
  await refused(item.patch({ condition: "from c where c.v = 2", operations }), 412);
  await refused(item.patch({ condition: "from c where c.nothing = 1", operations }), 412);
  assert.equal((await item.read()).resource.v, 1);
});

test("a patch whose condition is no condition is refused with 400", async () => {
  const item = await make({ v: 1 });
  await refused(item.patch({ condition: "from c where c.v =", operations: [{ op: "incr", path: "/v", value: 1 }] }), 400);
});

test("a patch of an item that is not there is answered with 404", async () => {
  await refused(container.item("nothing", "a").patch([{ op: "set", path: "/v", value: 1 }]), 404);
});

test("a patch may say that it is a patch", async () => {
  const item = await make({ v: 1 });
  const reply = await server.request({
    method: "PATCH",
    path: `/${container.url}/docs/${encodeURIComponent(item.id)}`,
    headers: { "content-type": "application/json_patch+json", "x-ms-documentdb-partitionkey": '["a"]' },
    body: '{"operations":[{"op":"incr","path":"/v","value":9007199254740992}]}',
  });
  assert.equal(reply.status, 200, reply.text);
  assert.ok(reply.text.includes('"v":9007199254740993'), reply.text);
});

test("many patches at once lose no increment", async () => {
  const item = await make({ v: 0 });
  await Promise.all(Array.from({ length: 40 }, () => item.patch([{ op: "incr", path: "/v", value: 1 }])));
  assert.equal((await item.read()).resource.v, 40);
});
