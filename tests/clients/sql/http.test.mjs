// HTTP itself: pipelining, chunked bodies, malformed requests, clients that misbehave.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { Server, emulatorKey, makeContainer, sign, until } from "./server.mjs";

let server;
let container;
before(async () => {
  server = await Server.start();
  container = await makeContainer(server.client());
  for (let i = 0; i < 8; i += 1) await container.items.create({ id: `${i}`, pk: "a", v: i });
});
after(async () => {
  try {
    assert.ok(server.alive(), `the server died:\n${server.log().slice(-3000)}`);
  } finally {
    await server.remove();
  }
});

const docs = () => `/${container.url}/docs`;
const post = (body, headers = {}) => server.request({ method: "POST", path: docs(), body, headers });

function head(method, target, headers = {}) {
  const date = new Date().toUTCString();
  const all = {
    host: `127.0.0.1:${server.port}`,
    "x-ms-date": date,
    authorization: sign({ method, path: target, date, key: emulatorKey }),
    "x-ms-documentdb-partitionkey": '["a"]',
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
}

// Sends the parts, then collects what comes until `enough` says so, the peer closes, or the time is over.
function exchange(parts, enough = () => false, seconds = 10) {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = net.connect(server.port, "127.0.0.1");
    const timer = setTimeout(() => socket.destroy(), seconds * 1000);
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      if (enough(text)) socket.destroy();
    });
    socket.on("error", (error) => (["EPIPE", "ECONNRESET"].includes(error.code) ? null : reject(error)));
    socket.on("close", () => {
      clearTimeout(timer);
      resolve(text);
    });
    for (const part of parts) socket.write(part);
  });
}

const replies = (text) => text.split(/(?=HTTP\/1\.1 \d{3})/).filter((reply) => reply.startsWith("HTTP/1.1"));
const statusOf = (reply) => Number(/^HTTP\/1\.[01] (\d{3})/.exec(reply)?.[1]);

test("pipelined requests are answered in their order", async () => {
  const requests = Array.from({ length: 8 }, (_, i) => head("GET", `${docs()}/${i}`)).join("");
  const text = await exchange([requests], (got) => (got.match(/"_ts":\d+\}/g) ?? []).length === 8);
  const found = replies(text).map((reply) => [statusOf(reply), Number(/"v":(\d)/.exec(reply)?.[1])]);
  assert.deepEqual(found, Array.from({ length: 8 }, (_, i) => [200, i]));
});

test("a pipelined write is seen by the read behind it", async () => {
  const body = '{"id":"piped","pk":"a"}';
  const parts = [head("POST", docs(), { "content-length": body.length }) + body + head("GET", `${docs()}/piped`)];
  const text = await exchange(parts, (got) => (got.match(/"_ts":\d+\}/g) ?? []).length === 2);
  assert.deepEqual(replies(text).map(statusOf), [201, 200]);
});

test("a body may come in chunks", async () => {
  const chunks = ['{"id":"chunked",', '"pk":"a","text":"', "x".repeat(5000), '"}'];
  const body = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`).join("") + "0\r\n\r\n";
  const text = await exchange([head("POST", docs(), { "transfer-encoding": "chunked" }), body], (got) => /"_ts":\d+\}/.test(got));
  assert.equal(statusOf(text), 201, text);
  assert.equal((await container.item("chunked", "a").read()).resource.text.length, 5000);
});

test("nothing of a reply is left in the next one, of whatever size it was", async () => {
  for (const bytes of [10, 15_000, 17_000, 40_000, 100_000, 1_000_000]) {
    const id = `size-${bytes}`;
    const made = await post(JSON.stringify({ id, pk: "a", text: "x".repeat(bytes) }));
    assert.equal(made.status, 201, made.text.slice(0, 300));
    for (const one of [id, "1", id, "2"]) {
      const key = { "x-ms-documentdb-partitionkey": '["a"]' };
      const read = await server.request({ path: `${docs()}/${one}`, headers: key });
      assert.equal(read.json?.id, one, `after ${bytes} bytes: ${read.text.slice(0, 300)}`);
      assert.match(read.headers["x-ms-request-charge"], /^\d+(\.\d+)?$/);
      assert.match(read.headers["x-ms-activity-id"], /^[0-9a-f-]{36}$/);
    }
  }
});

test("a request may come byte by byte", async () => {
  const request = head("GET", `${docs()}/3`);
  const text = await exchange([...request], (got) => /"_ts":\d+\}/.test(got));
  assert.equal(statusOf(text), 200);
});

test("a client that expects 100-continue is told to go on", async () => {
  const body = '{"id":"expects","pk":"a"}';
  const got = await new Promise((resolve, reject) => {
    let text = "";
    const socket = net.connect(server.port, "127.0.0.1", () =>
      socket.write(head("POST", docs(), { "content-length": body.length, expect: "100-continue" })));
    let sent = false;
    socket.setTimeout(10_000, () => socket.destroy(new Error(`no answer: ${text}`)));
    socket.on("error", reject).on("data", (chunk) => {
      text += chunk;
      if (!sent && text.includes("100")) {
        sent = true;
        socket.write(body);
      }
      if (/"_ts":\d+\}/.test(text)) {
        socket.destroy();
        resolve(text);
      }
    });
  });
  assert.match(got, /^HTTP\/1\.1 100 /);
  assert.match(got, /HTTP\/1\.1 201 /);
});

test("a connection that the client wants closed is closed", async () => {
  const text = await exchange([head("GET", `${docs()}/1`, { connection: "close" })]);
  assert.equal(statusOf(text), 200);
});

for (const [what, body] of [
  ["nothing", ""],
  ["half an object", '{"id":"1"'],
  ["two objects", '{"id":"1"}{"id":"2"}'],
  ["an array", "[1,2]"],
  ["a number", "5"],
  ["a trailing comma", '{"id":"1",}'],
  ["bytes that are not UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ["an unfinished escape", '{"id":"\\u12"}'],
]) {
  test(`a body of ${what} is refused as no item`, async () => {
    const reply = await post(body);
    assert.equal(reply.status, 400, reply.text);
    assert.equal(reply.json.code, "BadRequest");
    assert.match(reply.json.message, /ActivityId: [0-9a-f-]{36}/);
    assert.match(reply.headers["content-type"], /json/);
  });
}

test("of a property that comes twice the last counts", async () => {
  const reply = await post('{"id":"twice","pk":"a","v":1,"v":2}');
  assert.equal(reply.status, 201, reply.text);
  assert.equal(reply.json.v, 2);
});

test("paths that are none are answered with 404, methods that are none with 405", async () => {
  for (const target of ["/nonsense", "/dbs/tests/nonsense", "/dbs/tests/colls/x/docs/1/2/3/4/5/6/7", `${docs()}/1/2`]) {
    const { status } = await server.request({ path: target });
    assert.ok(status === 404 || status === 400, `${target}: ${status}`);
  }
  assert.equal((await server.request({ method: "DELETE", path: docs() })).status, 405);
  assert.equal((await server.request({ method: "PUT", path: "/dbs" })).status, 405);
});

for (const [what, request] of [
  ["no HTTP", "hello\r\n\r\n"],
  ["a request line without a version", "GET /\r\n\r\n"],
  ["two different lengths", "POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello"],
  ["a length and chunks", "POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"],
  ["a negative length", "POST /dbs HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"],
  ["a chunk size that is none", "POST /dbs HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n"],
  ["a header without a colon", "GET / HTTP/1.1\r\nhost: x\r\nnonsense\r\n\r\n"],
  ["a header of 1 MB", `GET / HTTP/1.1\r\nhost: x\r\nlong: ${"x".repeat(1_000_000)}\r\n\r\n`],
  ["100,000 headers", `GET / HTTP/1.1\r\nhost: x\r\n${"a: b\r\n".repeat(100_000)}\r\n`],
  ["a broken escape in the path", "GET /dbs/%zz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"],
  ["TLS on a plain port", Buffer.from("16030100c8010000c40303", "hex")],
]) {
  test(`${what} is refused, and the connection ends`, async () => {
    const text = await exchange([request, typeof request === "string" ? "" : Buffer.alloc(300)], undefined, 15);
    const status = statusOf(text);
    assert.ok(text === "" || (status >= 400 && status < 500), text.slice(0, 300));
    assert.equal((await server.request({ path: "/healthz", unsigned: true })).status, 200);
  });
}

test("a body far over the limit is refused without being read to its end", async () => {
  const text = await exchange([head("POST", docs(), { "content-length": 10_000_000_000 }), "x".repeat(100_000)], (got) => got.includes("\r\n\r\n"));
  assert.equal(statusOf(text), 413, text.slice(0, 300));
});

test("clients that go away in the middle of a request leave nothing behind", async () => {
  for (let i = 0; i < 50; i += 1) {
    await new Promise((resolve) => {
      const socket = net.connect(server.port, "127.0.0.1", () => {
        socket.write(head("POST", docs(), { "content-length": 1000 }) + '{"id":"half"', () => socket.destroy());
      });
      socket.on("close", resolve).on("error", resolve);
    });
  }
  assert.equal((await container.item("half", "a").read()).statusCode, 404);
});

test("a slow client does not hold up others", async () => {
  const slow = Array.from({ length: 50 }, () => {
    const socket = net.connect(server.port, "127.0.0.1", () => socket.write(head("POST", docs(), { "content-length": 1000 })));
    return socket.on("error", () => {});
  });
  try {
    const started = performance.now();
    assert.equal((await container.item("1", "a").read()).statusCode, 200);
    assert.ok(performance.now() - started < 5000);
  } finally {
    slow.forEach((socket) => socket.destroy());
  }
});

test("500 connections at once are served", async () => {
  const results = await Promise.all(Array.from({ length: 500 }, (_, i) => server.request({ path: `${docs()}/${i % 8}`, headers: { "x-ms-documentdb-partitionkey": '["a"]' } })));
  for (const { status } of results) assert.equal(status, 200);
});

test("health is told to anyone", async () => {
  const reply = await server.request({ path: "/healthz", unsigned: true });
  assert.equal(reply.status, 200);
  assert.equal(reply.json.status, "ok");
  await until("connections are closed again", async () => {
    const { text } = await server.request({ path: "/metrics", unsigned: true });
    const open = /^orrery_\w*connections\w*(?:\{.*\})? (\d+)/m.exec(text);
    return open === null || Number(open[1]) < 100;
  });
});
