// Clients of Cassandra are told which nodes come and go, and which can be reached.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import cassandra from "cassandra-driver";
import { Cluster } from "../../support/cluster.mjs";
import { freePort, until } from "../../support/server.mjs";

const hosts = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"];
let cluster;
let port;
let events; // what the first node told, as "DOWN 127.0.0.2"
let socket;
let driver;
before(async () => {
  port = await freePort();
  cluster = await Cluster.start({ nodes: 1, hosts, port: await freePort(), settings: { "cassandra.port": port } });
  ({ events, socket } = await register(hosts[0]));
  driver = new cassandra.Client({ contactPoints: [`${hosts[0]}:${port}`], localDataCenter: "datacenter1" });
  await driver.connect();
});
after(async () => {
  socket?.destroy();
  await driver?.shutdown();
  await cluster?.remove();
  // A driver that had to connect again leaves timers behind, of many minutes.
  setTimeout(() => process.exit(), 1000).unref();
});

// A connection of version 4 that does nothing but listen.
async function register(host) {
  const frame = (opcode, body) => Buffer.concat([Buffer.from([4, 0, 0, 0, opcode, 0, 0, 0, body.length]), body]);
  const text = (value) => Buffer.concat([Buffer.from([0, value.length]), Buffer.from(value)]);
  const told = [];
  let ready = 0;
  let bytes = Buffer.alloc(0);
  const connection = net.connect(port, host);
  connection.on("data", (data) => {
    bytes = Buffer.concat([bytes, data]);
    while (bytes.length >= 9 && bytes.length >= 9 + bytes.readUInt32BE(5)) {
      const [opcode, body] = [bytes[4], bytes.subarray(9, 9 + bytes.readUInt32BE(5))];
      bytes = bytes.subarray(9 + body.length);
      if (opcode === 0x02) ready += 1;
      if (opcode === 0x0c) told.push(eventOf(body));
    }
  });
  connection.write(frame(0x01, Buffer.concat([Buffer.from([0, 1]), text("CQL_VERSION"), text("3.0.0")])));
  connection.write(frame(0x0b, Buffer.concat([Buffer.from([0, 2]), text("TOPOLOGY_CHANGE"), text("STATUS_CHANGE")])));
  await until("the node answers", () => ready === 2);
  return { events: told, socket: connection };
}

function eventOf(body) {
  const kind = body.readUInt16BE(0);
  const change = body.readUInt16BE(2 + kind);
  const address = 4 + kind + change;
  assert.equal(body.readInt32BE(address + 1 + body[address]), port);
  return `${body.subarray(4 + kind, address)} ${[...body.subarray(address + 1, address + 1 + body[address])].join(".")}`;
}

const told = (...wanted) =>
  until(`${wanted} is told`, () => wanted.every((event) => events.includes(event))).catch((error) => {
    throw new Error(`${error.message}; ${events}`);
  });
const known = () => driver.hosts.values().map(({ address }) => address.split(":")[0]).sort();

test("nodes that join are new and up, and a driver knows them", async () => {
  assert.deepEqual(known(), hosts.slice(0, 1));
  for (const host of hosts.slice(1)) {
    await cluster.add({ host, port: cluster.first.port });
    await told(`NEW_NODE ${host}`, `UP ${host}`);
    assert.ok(events.indexOf(`NEW_NODE ${host}`) < events.indexOf(`UP ${host}`));
  }
  await until("the driver knows the new nodes", () => known().length === hosts.length);
  assert.deepEqual(known(), hosts);
});

test("a node that dies is down, and up again when it is back", async () => {
  events.length = 0;
  await cluster.members[1].kill();
  await told("DOWN 127.0.0.2");
  assert.ok(!events.includes("UP 127.0.0.2"), `${events}`);
  await cluster.members[1].up();
  await told("UP 127.0.0.2");
  assert.ok(!events.some((event) => event.includes("NODE")), `${events}`);
});

test("a node that is removed is gone, and a driver forgets it", async () => {
  events.length = 0;
  const [last] = cluster.members.slice(-1);
  const id = last.id;
  await last.kill();
  await told("DOWN 127.0.0.4");
  const remove = await cluster.first.request({ method: "POST", path: `/_orrery/nodes/${id}/remove` });
  assert.equal(remove.status, 200, remove.text);
  await told("REMOVED_NODE 127.0.0.4");
  await until("the driver has forgotten it", () => known().length === 3);
});
