// The SQL API reads the rows of a table as items: what a driver of Cassandra wrote, the SDK of Cosmos DB shows.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ChangeFeedStartFrom, CosmosClient } from "@azure/cosmos";
import { run } from "../../support/server.mjs";
import { Server, makeTable, until } from "./server.mjs";

let server;
let client;
let sql;
let database;
const partitions = 40;
const count = 1000;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("shop");
  sql = new CosmosClient({ endpoint: server.endpoint, key: server.key });
  database = sql.database("shop");
  await client.execute(
    "CREATE TABLE shop.orders (customer text, number int, total double, tags set<text>, region text static, " +
      "PRIMARY KEY (customer, number)) WITH cosmosdb_provisioned_throughput = 20000",
  );
  const insert = "INSERT INTO shop.orders (customer, number, total, tags, region) VALUES (?, ?, ?, ?, ?)";
  const rows = Array.from({ length: count }, (_, i) => [`c${i % partitions}`, i, i / 2, [`t${i % 5}`, "all"], `r${i % partitions}`]);
  for (let at = 0; at < count; at += 50) {
    await Promise.all(rows.slice(at, at + 50).map((row) => client.execute(insert, row, { prepare: true })));
  }
});
after(async () => {
  sql?.dispose();
  await server?.remove();
});

// Without what the server adds.
const plain = ({ _rid, _self, _etag, _attachments, _ts, ...rest }) => rest;
const numbers = (resources) => resources.map(({ number }) => number).sort((a, b) => a - b);
const all = Array.from({ length: count }, (_, i) => i);
const byKey = (a, b) => (a.id < b.id ? -1 : 1);

async function pages(iterator) {
  const found = [];
  while (iterator.hasMoreResults()) found.push((await iterator.fetchNext()).resources ?? []);
  return found;
}

// What a statement made, as the SDK shows it.
async function documentsOf(columns, statements) {
  const name = await makeTable(client, columns);
  for (const statement of statements) await client.execute(statement.replace("$t", name));
  const container = database.container(name);
  const { resources } = await container.items.readAll().fetchAll();
  return { name, container, resources: resources.sort(byKey) };
}

test("a row is an item with a member for each column, an id and the properties of the system", async () => {
  const container = database.container("orders");
  const reply = await container.item("47", "c7").read();
  assert.equal(reply.statusCode, 200);
  assert.deepEqual(plain(reply.resource), {
    id: "47", customer: "c7", number: 47, region: "r7", tags: ["all", "t2"], total: 23.5,
  });
  const { _rid, _self, _etag, _ts } = reply.resource;
  const { resource: definition } = await container.read();
  assert.equal(_self, `${definition._self}docs/${_rid}/`);
  assert.equal(reply.headers.etag, _etag);
  assert.ok(Math.abs(_ts - Date.now() / 1000) < 600, `${_ts}`);
  assert.ok(reply.requestCharge >= 1, `${reply.requestCharge} RU`);
  assert.ok(reply.headers["x-ms-session-token"]);
});

test("all rows are paged through, over several partitions, each once", async () => {
  const found = await pages(database.container("orders").items.readAll({ maxItemCount: 100 }));
  assert.ok(found.length >= 10, `${found.length} pages`);
  assert.ok(found.every((page) => page.length <= 100));
  assert.deepEqual(numbers(found.flat()), all);
  assert.equal(new Set(found.flat().map(({ _rid }) => _rid)).size, count);
});

test("a continuation goes on in a new iterator", async () => {
  const seen = [];
  let continuationToken;
  do {
    const page = await database.container("orders").items.query("SELECT * FROM c", { maxItemCount: 170, continuationToken }).fetchNext();
    seen.push(...page.resources);
    continuationToken = page.continuationToken;
  } while (continuationToken);
  assert.deepEqual(numbers(seen), all);
});

test("the read feed gives pages by GET, of a range and of a partition key", async () => {
  const docs = "/dbs/shop/colls/orders/docs";
  const read = async (headers) => {
    const found = [];
    let continuation;
    do {
      const reply = await server.request({
        path: docs,
        headers: { "x-ms-max-item-count": "33", "x-ms-continuation": continuation, ...headers },
      });
      assert.equal(reply.status, 200, reply.text);
      assert.equal(Number(reply.headers["x-ms-item-count"]), reply.json.Documents.length);
      assert.ok(Number(reply.headers["x-ms-request-charge"]) > 0);
      found.push(...reply.json.Documents);
      continuation = reply.headers["x-ms-continuation"];
    } while (continuation);
    return found;
  };
  const ranges = (await server.request({ path: "/dbs/shop/colls/orders/pkranges" })).json.PartitionKeyRanges;
  assert.equal(ranges.length, 2);
  const found = [];
  for (const { id } of ranges) found.push(await read({ "x-ms-documentdb-partitionkeyrangeid": id }));
  assert.ok(found.every((part) => part.length > 0));
  assert.deepEqual(numbers(found.flat()), all);
  const one = await read({ "x-ms-documentdb-partitionkey": '["c7"]' });
  assert.deepEqual(one.map(({ number }) => number), all.filter((i) => i % partitions === 7), "in the order of the table");
  const none = await server.request({ path: docs, headers: { "x-ms-continuation": '[{"token":"AAAA","range":{"min":"","max":"FF"}}]' } });
  assert.equal(none.status, 400, none.text);
});

test("queries filter rows as they do items", async () => {
  const container = database.container("orders");
  const query = async (text, parameters = [], options = {}) =>
    numbers((await container.items.query({ query: text, parameters }, options).fetchAll()).resources);
  assert.deepEqual(await query("SELECT * FROM c WHERE c.number < @n", [{ name: "@n", value: 30 }]), all.slice(0, 30));
  assert.deepEqual(await query("SELECT * FROM c WHERE c.customer = 'c3' AND c.total >= 400"), [803, 843, 883, 923, 963]);
  assert.deepEqual(await query("SELECT * FROM c WHERE ARRAY_CONTAINS(c.tags, 't4') AND c.number < 20"), [4, 9, 14, 19]);
  assert.deepEqual(await query("SELECT * FROM c WHERE c.region = 'r5'", [], { partitionKey: "c5" }), all.filter((i) => i % partitions === 5));
  assert.deepEqual(await query("SELECT * FROM c WHERE c._ts > 0 AND c.id = '12'"), [12]);
  assert.deepEqual(await query("SELECT * FROM c WHERE c.number >= 990", [], { maxItemCount: 3 }), all.slice(990));
  assert.deepEqual(await query("SELECT * FROM c WHERE c.nothing = 1"), []);
  await assert.rejects(query("SELECT * FROM c WHERE"), { code: 400 });
});

test("what is not there is 404", async () => {
  const container = database.container("orders");
  for (const [id, key] of [["47", "c8"], ["48", "c7"], ["x", "c7"], ["047", "c7"], ["~", "c7"], ["47", "nobody"], ["47|1", "c7"]]) {
    const { statusCode } = await container.item(id, key).read();
    assert.equal(statusCode, 404, `${id} of ${key}`);
  }
  const { statusCode } = await database.container("no_such_table").item("1", "1").read();
  assert.equal(statusCode, 404);
});

test("a session that the partition has not reached is answered with 404 and substatus 1002", async () => {
  const key = { "x-ms-documentdb-partitionkey": '["c7"]' };
  const ask = (path, token) => server.request({ path: `/dbs/shop/colls/orders/${path}`, headers: { ...key, "x-ms-session-token": token } });
  for (const path of ["docs/47", "docs"]) {
    const { status, headers } = await ask(path);
    assert.equal(status, 200);
    const token = headers["x-ms-session-token"];
    assert.equal((await ask(path, token)).status, 200);
    const later = await ask(path, token.replace(/#.*/, "#99999999"));
    assert.equal(later.status, 404);
    assert.equal(later.headers["x-ms-substatus"], "1002");
  }
});

test("a partition key that the table does not have is refused", async () => {
  const container = database.container("orders");
  for (const key of [7, ["c7", 1], null, []]) {
    await assert.rejects(container.item("47", key).read(), { code: 400 }, JSON.stringify(key));
  }
});

test("rows are written by CQL only: everything that writes is answered with 405", async () => {
  const container = database.container("orders");
  const body = { id: "1", customer: "c1", number: 1 };
  const writes = {
    create: () => container.items.create(body),
    upsert: () => container.items.upsert(body),
    replace: () => container.item("1", "c1").replace(body),
    patch: () => container.item("1", "c1").patch([{ op: "add", path: "/total", value: 1 }]),
    delete: () => container.item("1", "c1").delete(),
    batch: () => container.items.batch([{ operationType: "Create", resourceBody: body }], "c1"),
    "delete of a partition": () => container.deleteAllItemsForPartitionKey("c1"),
  };
  for (const [name, write] of Object.entries(writes)) {
    // The SDK hides the code of a batch behind an error of its own.
    await assert.rejects(write(), (error) => (name === "batch" || error.code === 405) && /written with CQL/.test(error.message), name);
  }
  const docs = { method: "POST", path: "/dbs/shop/colls/orders/docs", headers: { "x-ms-documentdb-partitionkey": '["c1"]' } };
  const batch = { "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" };
  const reply = await server.request({ ...docs, headers: { ...docs.headers, ...batch }, body: "[]" });
  assert.equal(reply.status, 405, reply.text);
  assert.equal(reply.json.code, "MethodNotAllowed");
  assert.equal((await client.execute("SELECT count(*) FROM shop.orders")).rows[0].count.toNumber(), count);
});

test("the change feed of a table is refused clearly", async () => {
  const iterator = database.container("orders").items.getChangeFeedIterator({ changeFeedStartFrom: ChangeFeedStartFrom.Beginning() });
  await assert.rejects(iterator.readNext(), { code: 501 });
});

test("a table without clustering columns has its partition key as id", async () => {
  const { container, resources } = await documentsOf("a text, b int, v text, PRIMARY KEY ((a, b))", [
    "INSERT INTO $t (a, b, v) VALUES ('x', 1, 'one')",
    "INSERT INTO $t (a, b) VALUES ('y', 2)",
  ]);
  assert.deepEqual(resources.map(plain), [
    { id: "x|1", a: "x", b: 1, v: "one" },
    { id: "y|2", a: "y", b: 2, v: null },
  ]);
  assert.equal((await container.item("x|1", ["x", 1]).read()).resource.v, "one");
  assert.equal((await container.item("x|1", ["y", 2]).read()).statusCode, 404);
  const { resources: one } = await container.items.query("SELECT * FROM c", { partitionKey: ["y", 2] }).fetchAll();
  assert.deepEqual(one.map(({ id }) => id), ["y|2"]);
});

test("a column named id is the item's own if it is the key and a uuid, else it stands beside it", async () => {
  const uuid = "123e4567-e89b-12d3-a456-426655440000";
  const users = await documentsOf("id uuid PRIMARY KEY, name text", [`INSERT INTO $t (id, name) VALUES (${uuid}, 'Ada')`]);
  assert.deepEqual(users.resources.map(plain), [{ id: uuid, name: "Ada" }]);
  assert.equal((await users.container.item(uuid, uuid).read()).resource.name, "Ada");
  const things = await documentsOf("id int, n int, PRIMARY KEY (id, n)", ["INSERT INTO $t (id, n) VALUES (5, 6)"]);
  assert.deepEqual(things.resources.map(plain), [{ id: "6", id_: 5, n: 6 }]);
  // A tool finds the key of an item by the paths of its container.
  const { resource: definition } = await things.container.read();
  assert.deepEqual(definition.partitionKey.paths, ["/id_"]);
  assert.equal((await things.container.item("6", 5).read()).statusCode, 200);
});

test("static columns stand in each row, and alone where there is none", async () => {
  const { container, resources } = await documentsOf("p int, c int, s text static, v int, PRIMARY KEY (p, c)", [
    "INSERT INTO $t (p, c, s, v) VALUES (1, 1, 'both', 10)",
    "INSERT INTO $t (p, c, v) VALUES (1, 2, 20)",
    "INSERT INTO $t (p, s) VALUES (2, 'alone')",
    "INSERT INTO $t (p, c) VALUES (3, 3)",
  ]);
  assert.deepEqual(resources.map(plain), [
    { id: "1", p: 1, c: 1, s: "both", v: 10 },
    { id: "2", p: 1, c: 2, s: "both", v: 20 },
    { id: "3", p: 3, c: 3, s: null, v: null },
    { id: "~", p: 2, c: null, s: "alone", v: null },
  ]);
  assert.equal((await container.item("~", 2).read()).resource.s, "alone");
  assert.equal((await container.item("~", 1).read()).statusCode, 404);
  assert.equal((await container.item("1", 2).read()).statusCode, 404);
  assert.deepEqual((await pages(container.items.readAll({ maxItemCount: 1 }))).flat().length, 4);
});

test("keys of every kind are found again by the id that they are shown with", async () => {
  const awkward = ["a/b", "a\\b?c#d", "100%", "x|y~z", " spaces ", "", "..", "ä € 𝄞", "'quoted' \"twice\"", "new\nline", "+&=;:@$,"];
  const texts = await makeTable(client, "p text, c text, PRIMARY KEY (p, c)");
  for (const c of awkward) await client.execute(`INSERT INTO ${texts} (p, c) VALUES (?, ?)`, [`p ${c}`, c], { prepare: true });
  const { resources } = await database.container(texts).items.readAll().fetchAll();
  assert.deepEqual(resources.map(({ c }) => c).sort(), [...awkward].sort());
  for (const { id, p, c } of resources) {
    const { resource, statusCode } = await database.container(texts).item(id, p).read();
    assert.equal(statusCode, 200, id);
    assert.equal(resource.c, c);
  }
  const kinds = {
    bigint: "9007199254740993", varint: "123456789012345678901234567890", double: "-0.25", float: "1.5", boolean: "true",
    timestamp: "'2024-02-29 12:30:00.123Z'", date: "'2024-02-29'", time: "'12:30:00.000000001'", inet: "'fe80::1'",
    blob: "0x00ff", uuid: "123e4567-e89b-12d3-a456-426655440000", decimal: "12.5", smallint: "-3", ascii: "'a'",
    "frozen<list<int>>": "[1, 2]", "tuple<int, text>": "(1, 'a')",
  };
  for (const [type, value] of Object.entries(kinds)) {
    const { container, resources: [row] } = await documentsOf(`p ${type}, c ${type}, PRIMARY KEY (p, c)`, [`INSERT INTO $t (p, c) VALUES (${value}, ${value})`]);
    // A number that JavaScript cannot hold is sent as a string, and so is what is no simple value.
    const exact = typeof row.p === "number" && !Number.isSafeInteger(row.p) && Number.isInteger(row.p) ? value : row.p;
    const { statusCode, resource } = await container.item(row.id, typeof exact === "object" ? JSON.stringify(exact) : exact).read();
    assert.equal(statusCode, 200, `${type}: ${row.id}`);
    assert.deepEqual(resource, row);
  }
});

test("values have the JSON that toJson() gives", async () => {
  await client.execute("CREATE TYPE shop.place (street text, zip int)");
  const { name, resources: [row] } = await documentsOf(
    "p int PRIMARY KEY, a list<int>, b map<text, int>, d frozen<place>, e tuple<int, text>, f blob, g timestamp, h decimal, i place",
    ["INSERT INTO $t (p, a, b, d, e, f, g, h, i) VALUES (1, [3, 1], {'x': 1}, {street: 'S', zip: 9}, (1, 'a'), 0xff, '2024-01-02 03:04:05Z', 1.50, {zip: 4})"],
  );
  for (const column of ["a", "b", "d", "e", "f", "g", "h", "i"]) {
    const { rows } = await client.execute(`SELECT toJson(${column}) AS j FROM ${name}`);
    assert.deepEqual(row[column], JSON.parse(rows[0].j), column);
  }
  const counters = await documentsOf("p int PRIMARY KEY, n counter", ["UPDATE $t SET n = n + 5 WHERE p = 1", "UPDATE $t SET n = n + 2 WHERE p = 1"]);
  assert.equal(counters.resources[0].n, 7);
  assert.ok(counters.resources[0]._ts > 1e9);
});

test("numbers beyond those of JavaScript are shown to the last digit, and compared as far as a double goes", async () => {
  const { name, container } = await documentsOf("p int PRIMARY KEY, v varint, d decimal", [
    "INSERT INTO $t (p, v, d) VALUES (1, 123456789012345678901234567890, 0.1)",
  ]);
  const text = async () => (await server.request({ path: `/dbs/shop/colls/${name}/docs` })).text;
  assert.match(await text(), /"v":123456789012345678901234567890,/);
  const query = () => container.items.query("SELECT * FROM c WHERE c.v > 1 AND c.d < 1").fetchAll();
  assert.equal((await query()).resources.length, 1);
  await client.execute(`INSERT INTO ${name} (p, d) VALUES (2, 1E+400)`);
  assert.match(await text(), /"d":1E\+400/);
  await assert.rejects(query(), (error) => error.code === 400 && /The row '2' cannot be compared/.test(error.message));
});

test("what CQL changes, deletes or adds is seen at once, and an etag tells", async () => {
  const { name, container, resources: [row] } = await documentsOf("p int, c int, v int, PRIMARY KEY (p, c)", ["INSERT INTO $t (p, c, v) VALUES (1, 1, 1)"]);
  const read = (etag) => container.item("1", 1).read(etag ? { accessCondition: { type: "IfNoneMatch", condition: etag } } : {});
  assert.equal((await read(row._etag)).statusCode, 304);
  await client.execute(`UPDATE ${name} SET v = 2 WHERE p = 1 AND c = 1`);
  const changed = await read(row._etag);
  assert.equal(changed.statusCode, 200);
  assert.equal(changed.resource.v, 2);
  assert.equal(changed.resource._rid, row._rid);
  await client.execute(`ALTER TABLE ${name} ADD w text`);
  assert.deepEqual(plain((await read()).resource), { id: "1", p: 1, c: 1, v: 2, w: null });
  await client.execute(`INSERT INTO ${name} (p, c, w) VALUES (1, 2, 'new')`);
  await client.execute(`DELETE FROM ${name} WHERE p = 1 AND c = 1`);
  assert.equal((await read()).statusCode, 404);
  assert.deepEqual((await container.items.readAll().fetchAll()).resources.map(plain), [{ id: "2", p: 1, c: 2, v: null, w: "new" }]);
});

test("pages go on where they were when a partition is split", async () => {
  const iterator = database.container("orders").items.readAll({ maxItemCount: 60 });
  const seen = [...(await iterator.fetchNext()).resources];
  const ranges = async () => (await server.request({ path: "/dbs/shop/colls/orders/pkranges" })).json.PartitionKeyRanges;
  const split = await run(["partition", "split", (await ranges())[0].id, "--data", server.data]);
  assert.equal(split.code, 0, split.err);
  await until("there are three partitions", async () => (await ranges()).length === 3);
  while (iterator.hasMoreResults()) seen.push(...((await iterator.fetchNext()).resources ?? []));
  assert.deepEqual(numbers(seen), all);
});
