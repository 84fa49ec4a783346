// Feeds and queries, and what is not supported yet.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ChangeFeedStartFrom } from "@azure/cosmos";
import { Server, makeContainer } from "./server.mjs";

let server;
let client;
let container;
const count = 230;
before(async () => {
  server = await Server.start();
  client = server.client();
  container = await makeContainer(client, { throughput: 25000 });
  const operations = Array.from({ length: count }, (_, i) => ({
    operationType: "Create",
    partitionKey: `key ${i % 23}`,
    resourceBody: { id: `${i}`, pk: `key ${i % 23}`, v: i, name: `name ${i}`, even: i % 2 === 0, tags: [`t${i % 5}`] },
  }));
  for (const { response } of await container.items.executeBulkOperations(operations)) assert.equal(response?.statusCode, 201);
});
after(() => server?.remove());

const sorted = (resources) => resources.map(({ v }) => v).sort((a, b) => a - b);
const numbers = (from, to, step = 1) => Array.from({ length: Math.ceil((to - from) / step) }, (_, i) => from + i * step);

async function query(text, parameters = [], options = {}) {
  return (await container.items.query({ query: text, parameters }, options).fetchAll()).resources;
}

function rawQuery(body, headers = {}) {
  return server.request({
    method: "POST",
    path: `/${container.url}/docs`,
    headers: { "content-type": "application/query+json", "x-ms-documentdb-isquery": "true", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
}

test("all items are read, over all partitions", async () => {
  assert.deepEqual(sorted((await container.items.readAll().fetchAll()).resources), numbers(0, count));
});

test("pages have the size asked for and together every item once", async () => {
  const iterator = container.items.readAll({ maxItemCount: 40 });
  const seen = [];
  let pages = 0;
  while (iterator.hasMoreResults()) {
    const { resources } = await iterator.fetchNext();
    assert.ok((resources ?? []).length <= 40);
    seen.push(...(resources ?? []));
    pages += 1;
  }
  assert.ok(pages >= Math.ceil(count / 40), `${pages} pages`);
  assert.deepEqual(sorted(seen), numbers(0, count));
});

test("a continuation goes on in a new iterator and in a new client", async () => {
  const seen = [];
  let continuationToken;
  do {
    const other = server.client().database("tests").container(container.id);
    const page = await other.items.query("SELECT * FROM c", { maxItemCount: 70, continuationToken }).fetchNext();
    seen.push(...page.resources);
    continuationToken = page.continuationToken;
  } while (continuationToken);
  assert.deepEqual(sorted(seen), numbers(0, count));
});

test("items written behind a page's end are not seen twice", async () => {
  const own = await makeContainer(client);
  for (const id of ["b", "d", "f"]) await own.items.create({ id, pk: "k" });
  const first = await own.items.readAll({ maxItemCount: 2 }).fetchNext();
  await own.items.create({ id: "a", pk: "k" });
  await own.items.create({ id: "e", pk: "k" });
  const rest = await own.items.readAll({ maxItemCount: 9, continuationToken: first.continuationToken }).fetchNext();
  const ids = [...first.resources, ...rest.resources].map(({ id }) => id);
  assert.equal(new Set(ids).size, ids.length, ids.join(" "));
  for (const id of ["b", "d", "f"]) assert.ok(ids.includes(id));
});

test("the read feed gives pages by GET", async () => {
  const seen = [];
  let continuation;
  do {
    const reply = await server.request({
      path: `/${container.url}/docs`,
      headers: { "x-ms-max-item-count": "100", "x-ms-continuation": continuation },
    });
    assert.equal(reply.status, 200, reply.text);
    assert.equal(reply.json._count, reply.json.Documents.length);
    assert.equal(reply.headers["x-ms-item-count"], `${reply.json._count}`);
    seen.push(...reply.json.Documents);
    continuation = reply.headers["x-ms-continuation"];
    assert.ok((continuation ?? "").length <= 1024);
  } while (continuation);
  assert.deepEqual(sorted(seen), numbers(0, count));
});

test("a query filters over all partitions", async () => {
  assert.deepEqual(sorted(await query("SELECT * FROM c WHERE c.v >= 100 AND c.v < 110")), numbers(100, 110));
  assert.deepEqual(sorted(await query("SELECT * FROM root WHERE root.even = true")), numbers(0, count, 2));
  assert.deepEqual(await query("SELECT * FROM c WHERE c.nothing = 1"), []);
});

test("a query takes parameters of every type", async () => {
  const parameters = [
    { name: "@low", value: 50 },
    { name: "@names", value: ["name 51", "name 52", "name 99"] },
    { name: "@even", value: false },
    { name: "@text", value: "name" },
  ];
  const text = "SELECT * FROM c WHERE c.v > @low AND ARRAY_CONTAINS(@names, c.name) AND c.even = @even AND STARTSWITH(c.name, @text)";
  assert.deepEqual(sorted(await query(text, parameters)), [51, 99]);
});

test("a query of one partition key reads one logical partition", async () => {
  assert.deepEqual(sorted(await query("SELECT * FROM c", [], { partitionKey: "key 3" })), numbers(3, count, 23));
  assert.deepEqual(sorted(await query("SELECT * FROM c WHERE c.v > 100", [], { partitionKey: "key 3" })), numbers(118, count, 23));
});

test("a query that finds little pages to its end", async () => {
  const found = await query("SELECT * FROM c WHERE c.v = 7 OR c.v = 229", [], { maxItemCount: 1 });
  assert.deepEqual(sorted(found), [7, 229]);
});

test("a query sees the system properties of items", async () => {
  const { resource } = await container.item("5", "key 5").read();
  assert.deepEqual(sorted(await query("SELECT * FROM c WHERE c._etag = @etag", [{ name: "@etag", value: resource._etag }])), [5]);
  assert.equal((await query("SELECT * FROM c WHERE c._ts >= @ts", [{ name: "@ts", value: resource._ts - 600 }])).length, count);
});

test("a query through the plan and through feed ranges finds the same", async () => {
  assert.deepEqual(sorted(await query("SELECT * FROM c WHERE c.v < 20", [], { forceQueryPlan: true })), numbers(0, 20));
  assert.deepEqual(sorted(await query("SELECT * FROM c WHERE c.v < 20", [], { enableQueryControl: true })), numbers(0, 20));
  const ranges = await container.getFeedRanges();
  assert.equal(ranges.length, 3);
});

test("a query of one partition range reads that partition", async () => {
  const { resources: ranges } = await container.readPartitionKeyRanges().fetchAll();
  const seen = [];
  for (const { id } of ranges) {
    const reply = await rawQuery({ query: "SELECT * FROM c" }, { "x-ms-documentdb-partitionkeyrangeid": id });
    assert.equal(reply.status, 200, reply.text);
    assert.ok(reply.json.Documents.length > 0);
    seen.push(...reply.json.Documents);
  }
  assert.deepEqual(sorted(seen), numbers(0, count));
});

test("a continuation that is none, a page size that is none, and a body that is none are refused", async () => {
  const all = { query: "SELECT * FROM c" };
  assert.equal((await rawQuery(all, { "x-ms-continuation": "junk" })).status, 400);
  assert.equal((await rawQuery(all, { "x-ms-continuation": "[]" })).status, 400);
  assert.equal((await rawQuery(all, { "x-ms-max-item-count": "many" })).status, 400);
  assert.equal((await rawQuery("not json")).status, 400);
  assert.equal((await rawQuery({})).status, 400);
  assert.equal((await rawQuery({ query: 5 })).status, 400);
});

for (const text of ["", "SELECT", "SELECT * FROM c WHERE", "SELECT * FROM c WHERE c.v = = 1", "DELETE FROM c", "SELECT * FROM c;", "(".repeat(100_000)]) {
  test(`the text '${text.slice(0, 30)}' is refused as no query`, async () => {
    const reply = await rawQuery({ query: text });
    assert.equal(reply.status, 400, reply.text);
    assert.match(reply.json.message, /SC\d{4}/);
  });
}

const unsupported = [
  "SELECT c.id FROM c",
  "SELECT VALUE c.v FROM c",
  "SELECT * FROM c ORDER BY c.v",
  "SELECT VALUE COUNT(1) FROM c",
  "SELECT TOP 3 * FROM c",
  "SELECT DISTINCT VALUE c.even FROM c",
  "SELECT c.even, COUNT(1) AS n FROM c GROUP BY c.even",
  "SELECT * FROM c JOIN t IN c.tags",
  "SELECT * FROM c OFFSET 1 LIMIT 2",
];
for (const text of unsupported) {
  test(`'${text}' is refused clearly`, async () => {
    const error = await query(text).then(() => assert.fail("it gave a result"), (reason) => reason);
    assert.match(error.message, /not supported/i);
    assert.ok(error.code === 501 || error.code === 400, `${error.code}: ${error.message}`);
  });
}

const features = {
  "a stored procedure": () => container.scripts.storedProcedures.create({ id: "s", body: "function () {}" }),
  "a call of a stored procedure": () => container.scripts.storedProcedure("s").execute("k", []),
  "a trigger": () => container.scripts.triggers.create({ id: "t", body: "function () {}", triggerType: "Pre", triggerOperation: "All" }),
  "a user-defined function": () => container.scripts.userDefinedFunctions.create({ id: "u", body: "function () {}" }),
  "a user": () => client.database("tests").users.create({ id: "u" }),
  "a permission": () => client.database("tests").user("u").permissions.readAll().fetchAll(),
  "the list of conflicts": () => container.conflicts.readAll().fetchAll(),
  "the change feed": () => container.items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() }).readNext(),
};
for (const [what, use] of Object.entries(features)) {
  test(`${what} is refused clearly`, async () => {
    const error = await use().then(() => assert.fail("it was accepted"), (reason) => reason);
    assert.match(`${error.message} ${error.body?.message}`, /not supported/i);
    assert.equal(error.code, 501);
  });
}

test("the server is alive after all this", async () => {
  assert.ok(server.alive());
  assert.equal((await container.item("1", "key 1").read()).resource.v, 1);
});
