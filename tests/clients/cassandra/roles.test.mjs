// Roles, permissions and passwords, as a driver meets them.
import assert from "node:assert/strict";
import net from "node:net";
import { after, before, test } from "node:test";
import { Server, cassandra, codes, refused, rowsOf, until } from "./server.mjs";

let server;
let account;
before(async () => {
  server = await Server.start({ dev: false });
  account = await as("orrery", server.keys().primary);
  await account.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await account.execute("CREATE TABLE k.t (p int PRIMARY KEY, v int)");
  await account.execute("CREATE TABLE k.u (p int PRIMARY KEY, v int)");
});
after(() => server?.remove());

const secure = () => ({ sslOptions: { ca: [server.certificate()], checkServerIdentity: () => undefined } });
const as = (username, password, options = {}) => server.client({ ...secure(), credentials: { username, password }, ...options });
// The error of a login; "connected" if there is none.
async function login(username, password, options = {}) {
  const client = new cassandra.Client({
    contactPoints: [`${server.host}:${server.cqlPort}`],
    localDataCenter: "datacenter1",
    ...secure(),
    credentials: { username, password },
    ...options,
  });
  return client.connect().then(
    () => client.shutdown().then(() => "connected"),
    (error) => client.shutdown().then(() => `${(Object.values(error.innerErrors ?? {})[0] ?? error).message}`),
  );
}
const forbidden = (user, permission, resource) =>
  new RegExp(`User ${user} has no ${permission} permission on ${resource} or any of its parents`);
// Whether somebody listens there.
const answersAt = (host, port) =>
  new Promise((resolve) => {
    const socket = net.connect({ host, port });
    const end = (answer) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
async function role(name, ...grants) {
  await account.execute(`CREATE ROLE ${name} WITH PASSWORD = 'secret' AND LOGIN = true`);
  for (const grant of grants) await account.execute(`GRANT ${grant} TO ${name}`);
  return as(name, "secret");
}

test("at first there is the superuser cassandra", async () => {
  const client = await as("cassandra", "cassandra");
  assert.deepEqual(await rowsOf(client, "LIST ROLES OF cassandra"), [["cassandra", true, true, {}, "ALL"]]);
  assert.deepEqual(await rowsOf(client, "SELECT * FROM k.t"), []);
});

test("who gives a wrong name, a wrong password or none is not let in", async () => {
  await account.execute("CREATE ROLE nologin WITH PASSWORD = 'secret'");
  await account.execute("CREATE ROLE hashed WITH LOGIN = true AND HASHED PASSWORD = '$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW'");
  assert.match(await login("nobody", "secret"), /Provided username nobody and\/or password are incorrect/);
  assert.match(await login("hashed", "secret"), /Provided username hashed and\/or password are incorrect/);
  assert.equal(await login("hashed", "U*U"), "connected");
  assert.match(await login("nologin", "secret"), /nologin is not permitted to log in/);
});

test("a role does what it was granted, prepared or not, and nothing else", async () => {
  const client = await role("reader", "SELECT ON k.t");
  await account.execute("INSERT INTO k.t (p, v) VALUES (1, 2)");
  assert.deepEqual(await rowsOf(client, "SELECT v FROM k.t WHERE p = ?", [1]), [[2]]);
  await refused(client.execute("SELECT * FROM k.u"), codes.unauthorized, forbidden("reader", "SELECT", "<table k.u>"));
  const insert = ["INSERT INTO k.t (p, v) VALUES (?, ?)", [2, 2]];
  await refused(client.execute(...insert, { prepare: true }), codes.unauthorized, forbidden("reader", "MODIFY", "<table k.t>"));
  await account.execute("GRANT MODIFY ON KEYSPACE k TO reader");
  await client.execute(...insert, { prepare: true });
  await client.batch([{ query: insert[0], params: [3, 3] }, { query: "INSERT INTO k.u (p) VALUES (3)" }], { prepare: true });
  await refused(client.execute("INSERT INTO k.u (p) VALUES (4) IF NOT EXISTS"), codes.unauthorized, forbidden("reader", "SELECT", "<table k.u>"));
  await account.execute("REVOKE MODIFY ON KEYSPACE k FROM reader");
  await refused(client.execute(...insert, { prepare: true }), codes.unauthorized);
  await refused(
    client.batch([{ query: insert[0], params: [3, 3] }, { query: "INSERT INTO k.u (p) VALUES (3)" }], { prepare: true }),
    codes.unauthorized,
    forbidden("reader", "MODIFY", "<table k.t>"),
  );
});

test("what a role is a member of counts, and who is a member of itself is refused", async () => {
  const client = await role("member");
  await account.execute("CREATE ROLE club");
  await account.execute("GRANT SELECT ON ALL KEYSPACES TO club");
  await refused(client.execute("SELECT * FROM k.u"), codes.unauthorized);
  await account.execute("GRANT club TO member");
  await client.execute("SELECT * FROM k.u");
  await refused(account.execute("GRANT member TO club"), codes.invalid, /member is a member of club/);
  await refused(client.execute("SELECT * FROM system_auth.roles"), codes.unauthorized, forbidden("member", "SELECT", "<table system_auth.roles>"));
  await account.execute("REVOKE club FROM member");
  await refused(client.execute("SELECT * FROM k.u"), codes.unauthorized);
});

test("definitions need permissions, and who makes something may use it", async () => {
  const client = await role("maker", "CREATE ON ALL KEYSPACES");
  await refused(client.execute("DROP TABLE k.t"), codes.unauthorized, forbidden("maker", "DROP", "<table k.t>"));
  await refused(client.execute("TRUNCATE k.t"), codes.unauthorized, forbidden("maker", "MODIFY", "<table k.t>"));
  await client.execute("CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await client.execute("CREATE TABLE made.t (p int PRIMARY KEY)");
  await client.execute("INSERT INTO made.t (p) VALUES (1)");
  await client.execute("DROP KEYSPACE made");
  await account.execute("CREATE KEYSPACE made WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  await account.execute("CREATE TABLE made.t (p int PRIMARY KEY)");
  await refused(client.execute("SELECT * FROM made.t"), codes.unauthorized, forbidden("maker", "SELECT", "<table made.t>"));
});

test("lists and system_auth show roles and permissions, and no hash", async () => {
  await account.execute("CREATE USER listed WITH PASSWORD 'p'");
  await account.execute("GRANT SELECT, MODIFY ON k.t TO listed");
  assert.deepEqual(await rowsOf(account, "LIST ROLES OF listed"), [["listed", false, true, {}, "ALL"]]);
  assert.deepEqual(await rowsOf(account, "LIST ALL PERMISSIONS OF listed"), [
    ["listed", "listed", "<table k.t>", "SELECT"],
    ["listed", "listed", "<table k.t>", "MODIFY"],
  ]);
  const { rows } = await account.execute("LIST USERS");
  assert.deepEqual(rows.find((row) => row.name === "listed").values(), ["listed", false, "ALL"]);
  assert.deepEqual(await rowsOf(account, "SELECT role, can_login, salted_hash FROM system_auth.roles WHERE role = 'listed'"), [["listed", true, null]]);
  assert.deepEqual(await rowsOf(account, "SELECT resource, permissions FROM system_auth.role_permissions WHERE role = 'listed'"), [["data/k/t", ["MODIFY", "SELECT"]]]);
});

test("a role that is dropped while it is connected is refused", async () => {
  const client = await role("leaver", "SELECT ON k.t");
  await client.execute("SELECT * FROM k.t");
  await account.execute("ALTER ROLE leaver WITH LOGIN = false");
  await refused(client.execute("SELECT * FROM k.t"), codes.unauthorized, /leaver is not permitted to log in/);
  await account.execute("DROP ROLE leaver");
  await refused(client.execute("SELECT * FROM k.t"), codes.unauthorized, /leaver is not permitted to log in/);
});

test("a password can be changed by its role, and roles survive a kill", async () => {
  const client = await role("keeper", "SELECT ON k.t");
  await client.execute("ALTER ROLE keeper WITH PASSWORD = 'another'");
  assert.match(await login("keeper", "secret"), /incorrect/);
  await server.kill();
  await server.up();
  await until("the server listens", () => answersAt(server.host, server.cqlPort));
  assert.equal(await login("keeper", "another"), "connected");
  assert.match(await login("keeper", "secret"), /incorrect/);
  const again = await as("keeper", "another");
  await again.execute("SELECT * FROM k.t");
  await refused(again.execute("SELECT * FROM k.u"), codes.unauthorized);
});

// 127.0.0.2 is this machine too, and not the address of a server that listens on 127.0.0.1 only.
test("the network is let in only after the first password was changed, without a restart", async () => {
  const open = await Server.start({ dev: false, settings: { "server.listen": "0.0.0.0" } });
  try {
    await until("the server listens", () => answersAt("127.0.0.1", open.cqlPort));
    assert.ok(!(await answersAt("127.0.0.2", open.cqlPort)));
    assert.match(open.log(), /ALTER ROLE cassandra WITH PASSWORD/);
    const sslOptions = { ca: [open.certificate()], checkServerIdentity: () => undefined };
    const client = await open.client({ sslOptions, credentials: { username: "cassandra", password: "cassandra" } });
    await client.execute("ALTER ROLE cassandra WITH PASSWORD = 'cassandra'");
    await client.execute("ALTER ROLE cassandra WITH PASSWORD = 'another'");
    await until("the port is open", () => answersAt("127.0.0.2", open.cqlPort));
    await client.execute("SELECT key FROM system.local"); // the connection stays
    await open.kill();
    await open.up();
    await until("it is open from the start", () => answersAt("127.0.0.2", open.cqlPort));
    assert.doesNotMatch(open.log().split("ALTER ROLE cassandra")[2] ?? "", /./, "it said so only once");
  } finally {
    await open.remove();
  }
});
