// Roles of Cassandra's clients on a cluster: made at one node, known at every other.
import assert from "node:assert/strict";
import net from "node:net";
import { test } from "node:test";
import { Cluster, Member } from "../../support/cluster.mjs";
import { freePort, until } from "../../support/server.mjs";
import { cassandra, codes, refused, rowsOf } from "../cassandra/server.mjs";

// Listens on all addresses, of which 127.0.0.2 is one that 127.0.0.1 does not stand for.
class Open extends Member {
  args() {
    const args = super.args();
    args[args.indexOf("--listen") + 1] = "0.0.0.0";
    return args;
  }
}

const answersAt = (host, port) =>
  new Promise((resolve) => {
    const socket = net.connect({ host, port });
    socket.once("connect", () => resolve(true));
    socket.once("error", () => resolve(false));
    socket.on("close", () => resolve(false));
    socket.once("connect", () => socket.destroy());
  });

test("what is granted at one node counts at the others, and a changed password opens them all", async () => {
  const cluster = new Cluster();
  const clients = [];
  try {
    for (const Kind of [Member, Open]) {
      const settings = { "cluster.secret": "the secret of this cluster", "cassandra.port": await freePort() };
      const member = new Kind({ dev: false, join: cluster.members[0]?.address ?? "", settings });
      cluster.members.push(member);
      await member.up();
      await until("it serves Cassandra", () => answersAt("127.0.0.1", settings["cassandra.port"]));
    }
    const [first, open] = cluster.members;
    const connect = async (member, username, password) => {
      const client = new cassandra.Client({
        contactPoints: [`127.0.0.1:${member.settings["cassandra.port"]}`],
        localDataCenter: "datacenter1",
        sslOptions: { ca: [member.certificate()], checkServerIdentity: () => undefined },
        credentials: { username, password },
      });
      clients.push(client);
      await client.connect();
      return client;
    };
    assert.ok(!(await answersAt("127.0.0.2", open.settings["cassandra.port"])));
    const root = await connect(first, "cassandra", "cassandra");
    await root.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    await root.execute("CREATE TABLE k.t (p int PRIMARY KEY)");
    await root.execute("CREATE ROLE bob WITH PASSWORD = 'secret' AND LOGIN = true");
    const bob = await connect(open, "bob", "secret");
    await refused(bob.execute("SELECT * FROM k.t"), codes.unauthorized, /has no SELECT permission on <table k.t>/);
    await root.execute("GRANT SELECT ON k.t TO bob");
    assert.deepEqual(await rowsOf(bob, "SELECT * FROM k.t"), []);
    await root.execute("ALTER ROLE cassandra WITH PASSWORD = 'another'");
    await until("the other node is open", () => answersAt("127.0.0.2", open.settings["cassandra.port"]));
    await root.execute("DROP ROLE bob");
    await until("the other node has heard of it", () => bob.execute("SELECT * FROM k.t").then(() => false, () => true));
    await refused(bob.execute("SELECT * FROM k.t"), codes.unauthorized, /bob is not permitted to log in/);
  } finally {
    for (const client of clients) await client.shutdown();
    await cluster.remove();
  }
});
