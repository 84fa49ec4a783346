// Every error class that a client can provoke, with its code; and that a connection outlives it.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, refused, rowsOf } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("errors");
});
after(() => server?.remove());

test("syntax errors say where", async () => {
  for (const [text, message] of [
    ["SELEC * FROM t", /line 1:0 no viable alternative at input 'SELEC'/],
    ["SELECT * FROM", /line \d+:-?\d+/],
    ["SELECT * FROM t WHERE", /line \d+:-?\d+/],
    ["INSERT INTO t (a) VALUES (1", /line \d+:-?\d+/],
    ["SELECT * FROM t; SELECT * FROM t", /line \d+:-?\d+/],
    ["", /line|input|empty/i],
    ["SELECT 'open FROM t", /line/],
    ["CREATE TABLE t (a int PRIMARY KEY,,)", /line \d+:-?\d+/],
  ]) {
    const error = await refused(client.execute(text), codes.syntaxError).catch((e) => assert.fail(`${text}: ${e.message}`));
    assert.match(error.message, message, text);
  }
});

test("comments and a closing semicolon are no errors", async () => {
  assert.equal((await rowsOf(client, "SELECT key FROM system.local; ")).length, 1);
  assert.equal((await rowsOf(client, "/* a */ SELECT key -- b\n FROM system.local // c\n")).length, 1);
});

test("what is not there is told with the words that tools look for", async () => {
  await refused(client.execute("SELECT * FROM nothing"), codes.invalid, /unconfigured table nothing/);
  await refused(client.execute("SELECT * FROM nowhere.t"), codes.invalid, /[Kk]eyspace '?nowhere'? does not exist/);
  const t = await makeTable(client, "p int PRIMARY KEY");
  await refused(client.execute(`SELECT nothing FROM ${t}`), codes.invalid, /Undefined column name nothing/);
});

test("system keyspaces cannot be written", async () => {
  await assert.rejects(
    client.execute("INSERT INTO system.local (key) VALUES ('x')"),
    ({ code }) => code === codes.unauthorized || code === codes.invalid,
  );
  await refused(client.execute("DROP TABLE system_schema.tables"), codes.unauthorized);
});

test("a value that is too large is refused and the connection goes on", async () => {
  const t = await makeTable(client, "p int PRIMARY KEY, v blob");
  await refused(
    client.execute(`INSERT INTO ${t} (p, v) VALUES (1, ?)`, [Buffer.alloc(17 << 20)], { prepare: true }),
    codes.invalid,
  );
  await client.execute(`INSERT INTO ${t} (p, v) VALUES (1, ?)`, [Buffer.alloc(1 << 20)], { prepare: true });
  const { rows } = await client.execute(`SELECT v FROM ${t}`);
  assert.equal(rows[0].v.length, 1 << 20);
});

test("a key that is too large is refused", async () => {
  const t = await makeTable(client, "p text PRIMARY KEY, v int");
  await refused(client.execute(`INSERT INTO ${t} (p, v) VALUES (?, 1)`, ["x".repeat(70000)], { prepare: true }), codes.invalid);
});

// What the server sends to bytes that no driver sends, until it closes or falls silent.
function exchange(bytes) {
  return new Promise((resolve) => {
    const socket = net.connect(server.cqlPort, server.host);
    const chunks = [];
    const end = (closed) => {
      socket.destroy();
      resolve({ closed, bytes: Buffer.concat(chunks) });
    };
    socket.on("data", (chunk) => {
      chunks.push(chunk);
      const all = Buffer.concat(chunks);
      if (all.length >= 9 && all.length >= 9 + all.readInt32BE(5)) socket.setTimeout(200);
    });
    socket.on("error", () => end(true));
    socket.on("close", () => end(true));
    socket.setTimeout(3000, () => end(false));
    socket.write(bytes);
  });
}
const frame = (version, opcode, body = Buffer.alloc(0), flags = 0) => {
  const head = Buffer.alloc(9);
  head[0] = version;
  head[1] = flags;
  head.writeInt16BE(1, 2);
  head[4] = opcode;
  head.writeInt32BE(body.length, 5);
  return Buffer.concat([head, body]);
};
const startup = Buffer.from("0001000b43514c5f56455253494f4e0005332e302e30", "hex");

test("an unknown version gets the error that makes drivers choose another", async () => {
  for (const version of [0x42, 0x41, 0x06, 0x02, 0x7f]) {
    const { bytes } = await exchange(frame(version, 1, startup));
    assert.equal(bytes[4], 0, "ERROR");
    assert.ok([0x83, 0x84, 0x85].includes(bytes[0]), `${bytes[0]}`);
    assert.equal(bytes.readInt32BE(9), codes.protocolError);
    assert.match(bytes.toString("latin1"), /Invalid or unsupported protocol version/);
  }
});

test("requests before STARTUP and unknown opcodes are protocol errors", async () => {
  const query = Buffer.concat([Buffer.from([0, 0, 0, 1]), Buffer.from("x"), Buffer.from([0, 1, 0])]);
  for (const bytes of [frame(4, 7, query), frame(4, 0x66)]) {
    const reply = await exchange(bytes);
    assert.equal(reply.bytes[4], 0);
    assert.equal(reply.bytes.readInt32BE(9), codes.protocolError);
  }
  const options = await exchange(frame(4, 5));
  assert.equal(options.bytes[4], 6, "OPTIONS is answered at any time");
  assert.match(options.bytes.toString("latin1"), /CQL_VERSION/);
});

test("frames that are nonsense do no harm", async () => {
  for (const bytes of [
    Buffer.from("GET / HTTP/1.1\r\n\r\n"),
    frame(4, 1, Buffer.from([0xff, 0xff, 0xff])),
    Buffer.alloc(64, 0xff),
    Buffer.concat([frame(4, 1, startup), frame(4, 7, Buffer.from([0x7f, 0xff, 0xff, 0xff]))]),
  ]) {
    await exchange(bytes);
    assert.equal((await rowsOf(client, "SELECT key FROM system.local")).length, 1);
  }
  assert.ok(server.alive());
});
