// Who may do what: keys, signatures, dates, TLS.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { readdirSync, statSync } from "node:fs";
import https from "node:https";
import net from "node:net";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, emulatorKey, makeContainer, refused, run, sign, until } from "./server.mjs";

let server; // with TLS and keys of its own
let client;
let container;
before(async () => {
  server = await Server.start({ dev: false });
  client = server.client();
  container = await makeContainer(client);
  await container.items.create({ id: "1", pk: "a", v: 1 });
});
after(() => server?.remove());

const clientOf = (key) => server.client({ key }).database("tests").container(container.id);
const minutes = (count) => new Date(Date.now() + count * 60_000);
const docs = () => `/${container.url}/docs`;
const keyHeader = { "x-ms-documentdb-partitionkey": '["a"]' };

test("a client works over TLS with the server's own certificate", async () => {
  assert.equal((await container.item("1", "a").read()).resource.v, 1);
  const { json } = await server.request({ path: "/" });
  assert.equal(json.writableLocations[0].databaseAccountEndpoint, server.endpoint);
});

test("a client that does not know the certificate refuses the server", async () => {
  const failed = new Promise((resolve) => https.get(server.endpoint, () => resolve(null)).on("error", resolve));
  assert.match((await failed)?.code ?? "", /CERT|SELF_SIGNED|UNABLE/);
});

test("TLS before 1.2 is refused", async () => {
  const options = { ca: server.certificate(), minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" };
  const failed = new Promise((resolve) => https.get(server.endpoint, options, () => resolve(null)).on("error", resolve));
  assert.ok(await failed, "TLS 1.1 was accepted");
});

test("plain HTTP on the TLS port gets no answer and does no harm", async () => {
  await new Promise((resolve) => {
    const socket = net.connect(server.port, "127.0.0.1", () => socket.write("GET / HTTP/1.1\r\nhost: x\r\n\r\n"));
    socket.on("error", resolve).on("close", resolve).resume();
  });
  assert.equal((await container.item("1", "a").read()).statusCode, 200);
});

test("keys are random, 64 bytes long, and readable by their owner only", async () => {
  const keys = Object.entries(server.keys());
  assert.deepEqual(keys.map(([name]) => name).sort(), ["primary", "primaryReadOnly", "secondary", "secondaryReadOnly"]);
  for (const [, key] of keys) assert.equal(Buffer.from(key, "base64").length, 64);
  assert.equal(new Set(keys.map(([, key]) => key)).size, 4);
  for (const name of readdirSync(server.data)) {
    if (/key/i.test(name)) assert.equal(statSync(path.join(server.data, name)).mode & 0o077, 0, name);
  }
});

test("the program prints the keys", async () => {
  const { code, out } = await run(["keys", "--data", server.data]);
  assert.equal(code, 0);
  for (const key of Object.values(server.keys())) assert.ok(out.includes(key));
});

test("both main keys may write", async () => {
  for (const name of ["primary", "secondary"]) {
    assert.ok((await clientOf(server.keys()[name]).items.upsert({ id: name, pk: "a" })).statusCode < 300);
  }
});

test("a read-only key may read and query but not write", async () => {
  for (const name of ["primaryReadOnly", "secondaryReadOnly"]) {
    const key = server.keys()[name];
    const reader = clientOf(key);
    assert.equal((await reader.item("1", "a").read()).resource.v, 1);
    assert.ok((await reader.items.query("SELECT * FROM c WHERE c.v = 1").fetchAll()).resources.length > 0);
    assert.ok((await reader.items.readAll().fetchAll()).resources.length > 0);
    assert.equal((await reader.read()).statusCode, 200);
    const item = reader.item("1", "a");
    await refused(reader.items.create({ id: "no", pk: "a" }), 403);
    await refused(reader.items.upsert({ id: "1", pk: "a" }), 403);
    await refused(item.replace({ id: "1", pk: "a" }), 403);
    await refused(item.patch([{ op: "set", path: "/v", value: 2 }]), 403);
    await refused(item.delete(), 403);
    const batch = { "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true", ...keyHeader };
    const body = '[{"operationType":"Create","resourceBody":{"id":"no","pk":"a"}}]';
    assert.equal((await server.request({ method: "POST", path: docs(), key, headers: batch, body })).status, 403);
    await refused(reader.delete(), 403);
    await refused(reader.deleteAllItemsForPartitionKey("a"), 403);
    await refused(server.client({ key }).databases.create({ id: "no" }), 403);
    const offer = (await container.readOffer()).resource;
    const reply = await server.request({ method: "PUT", path: `/offers/${offer.id}`, key, body: JSON.stringify(offer) });
    assert.equal(reply.status, 403);
  }
  assert.equal((await container.item("1", "a").read()).resource.v, 1);
});

test("a key that is not the account's is refused with 401", async () => {
  const wrong = Buffer.alloc(64, 7).toString("base64");
  for (const key of [wrong, emulatorKey]) {
    assert.equal((await server.request({ path: docs(), key })).status, 401);
    await refused(clientOf(key).read(), 401);
  }
});

test("a request without authorization learns nothing", async () => {
  for (const target of ["/", "/dbs", "/dbs/tests", "/dbs/nowhere", docs(), "/offers", "/nonsense", "/_orrery/status"]) {
    const reply = await server.request({ path: target, unsigned: true });
    assert.equal(reply.status, 401, target);
    assert.ok(reply.json, "the body is JSON");
  }
});

for (const [what, authorization] of [
  ["empty signature", "type%3Dmaster%26ver%3D1.0%26sig%3D"],
  ["signature that is not base64", "type%3Dmaster%26ver%3D1.0%26sig%3D***"],
  ["other version", "type%3Dmaster%26ver%3D9.9%26sig%3DAAAA"],
  ["nonsense", "nonsense"],
  ["broken escapes", "%%%"],
  ["8 KB of text", "x".repeat(8000)],
]) {
  test(`an authorization with ${what} is refused`, async () => {
    const reply = await server.request({ path: "/dbs", headers: { authorization } });
    assert.equal(reply.status, 401, reply.text);
  });
}

test("a signature is good for its method, its resource and its date only", async () => {
  const date = new Date();
  const authorization = sign({ method: "GET", path: "/dbs", date: date.toUTCString(), key: server.key });
  assert.equal((await server.request({ path: "/dbs", date, headers: { authorization } })).status, 200);
  assert.equal((await server.request({ path: "/dbs/tests", date, headers: { authorization } })).status, 401);
  assert.equal((await server.request({ method: "POST", path: "/dbs", date, headers: { authorization }, body: '{"id":"x"}' })).status, 401);
  assert.equal((await server.request({ path: "/dbs", date: minutes(1), headers: { authorization } })).status, 401);
});

test("a date more than 15 minutes off is refused with 403", async () => {
  assert.equal((await server.request({ path: "/dbs", date: minutes(-20) })).status, 403);
  assert.equal((await server.request({ path: "/dbs", date: minutes(20) })).status, 403);
  assert.equal((await server.request({ path: "/dbs", date: minutes(-14) })).status, 200);
  assert.equal((await server.request({ path: "/dbs", date: minutes(14) })).status, 200);
});

test("a request may be dated by the Date header", async () => {
  const date = new Date().toUTCString();
  const text = `get\ndbs\n\n\n${date.toLowerCase()}\n`;
  const signature = createHmac("sha256", Buffer.from(server.key, "base64")).update(text).digest("base64");
  const authorization = encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
  const reply = await server.request({ path: "/dbs", unsigned: true, headers: { date, authorization } });
  assert.equal(reply.status, 200, reply.text);
});

test("headers of a query do not make a write a read", async () => {
  const key = server.keys().primaryReadOnly;
  for (const headers of [{ "x-ms-cosmos-is-query-plan-request": "True" }, { "x-ms-documentdb-isquery": "True" }]) {
    const made = await server.request({ method: "POST", path: "/dbs", key, headers, body: JSON.stringify({ id: "stolen" }) });
    assert.ok(made.status >= 400, made.text);
    const path = `/dbs/tests/colls/${container.id}/operations/partitionkeydelete`;
    const deleted = await server.request({ method: "POST", path, key, headers: { ...headers, ...keyHeader } });
    assert.ok(deleted.status === 403 || deleted.status === 401, deleted.text);
  }
  assert.equal((await server.request({ path: "/dbs/stolen" })).status, 404);
});

test("resource tokens and directory tokens are refused clearly", async () => {
  for (const type of ["resource", "aad"]) {
    const reply = await server.request({ path: "/dbs", headers: { authorization: `type%3D${type}%26ver%3D1.0%26sig%3DAAAA` } });
    assert.ok(reply.status >= 400, reply.text);
    assert.match(reply.json.message, /not supported/);
  }
});

test("a key is made anew without a restart", async () => {
  const before = server.keys();
  const pid = server.pid;
  const { code, err } = await run(["keys", "--regenerate", "primary", "--data", server.data]);
  assert.equal(code, 0, err);
  const now = server.keys();
  assert.notEqual(now.primary, before.primary);
  assert.equal(now.secondary, before.secondary);
  assert.equal((await server.request({ path: "/dbs", key: before.primary })).status, 401);
  assert.equal((await server.request({ path: "/dbs", key: now.primary })).status, 200);
  assert.equal((await server.request({ path: "/dbs", key: now.secondary })).status, 200);
  assert.equal((await clientOf(now.primary).item("1", "a").read()).resource.v, 1);
  assert.equal(server.pid, pid);
  assert.ok(server.alive());
  await server.restart();
  assert.equal((await server.request({ path: "/dbs", key: before.primary })).status, 401);
  assert.equal((await server.request({ path: "/dbs", key: now.primary })).status, 200);
});

test("a key of an unknown name is refused", async () => {
  const { code, err } = await run(["keys", "--regenerate", "tertiary", "--data", server.data]);
  assert.notEqual(code, 0);
  assert.match(err, /primary/);
});

test("the certificate and the keys are the same after a restart", async () => {
  const keys = server.keys();
  const certificate = server.certificate();
  await server.restart();
  assert.deepEqual(server.keys(), keys);
  assert.deepEqual(server.certificate(), certificate);
  const again = clientOf(keys.primary);
  await until("a client is connected again", async () => (await again.item("1", "a").read().catch(() => null))?.statusCode === 200);
});

test("metrics can be read on this machine, and tell of requests", async () => {
  const reply = await server.request({ path: "/metrics", unsigned: true });
  assert.equal(reply.status, 200);
  assert.match(reply.text, /^orrery_\w+(\{.*\})? \d/m);
  assert.equal((await server.request({ path: docs(), headers: keyHeader })).status, 200);
});
