// The tables and rows of the documents: a user's profile by one key, by a compound and by a composite one; before
// and after a restart.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, reconnected, rowsOf, types } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.client();
  await client.execute(
    "CREATE KEYSPACE IF NOT EXISTS uprofile WITH REPLICATION = {'class': 'NetworkTopologyStrategy', 'datacenter1': 1}",
  );
});
after(() => server?.remove());

const ids = Array.from({ length: 5 }, () => types.Uuid.random());
const people = [
  ["Mary", "Smith"],
  ["John", "Doe"],
  ["Mary", "Smith"],
  ["Ana", "Silva"],
  ["Mary", "Jones"],
];
const byToken = (rows) => [...rows].sort();

async function again(look) {
  const first = await look();
  for (const end of [() => server.stop(), () => server.kill()]) {
    await end();
    await server.up();
    await reconnected(client);
    assert.deepEqual(await look(), first);
  }
  return first;
}

test("a user by id", async () => {
  await client.execute("CREATE TABLE IF NOT EXISTS uprofile.user (user_id int PRIMARY KEY, user_name text, user_bcity text)");
  const users = [
    [1, "LyubovK", "Dubai"],
    [2, "JiriK", "Toronto"],
    [3, "IvanH", "Mumbai"],
    [4, "LiliyaB", "Seattle"],
    [5, "JindrichH", "Buenos Aires"],
  ];
  for (const user of users) {
    await client.execute("INSERT INTO uprofile.user (user_id, user_name, user_bcity) VALUES (?, ?, ?)", user, { prepare: true });
  }
  const rows = await again(async () => byToken(await rowsOf(client, "SELECT user_id, user_name, user_bcity FROM uprofile.user")));
  assert.deepEqual(rows, users);
  assert.deepEqual(await rowsOf(client, "SELECT user_name FROM uprofile.user WHERE user_id = 1"), [["LyubovK"]]);
});

test("a user by uuid, a simple primary key", async () => {
  await client.execute("CREATE TABLE uprofile.user_by_uuid (id uuid PRIMARY KEY, user text, message text)");
  for (let i = 0; i < 5; i += 1) {
    await client.execute("INSERT INTO uprofile.user_by_uuid (id, user, message) VALUES (?, ?, ?)", [ids[i], "theo", `m${i}`], {
      prepare: true,
    });
  }
  await again(async () => byToken(await rowsOf(client, "SELECT * FROM uprofile.user_by_uuid")));
  for (let i = 0; i < 5; i += 1) {
    const rows = await rowsOf(client, `SELECT message, user FROM uprofile.user_by_uuid WHERE id = ${ids[i]}`);
    assert.deepEqual(rows, [[`m${i}`, "theo"]]);
  }
});

test("by user and id, a compound primary key: one partition, in the order of the id", async () => {
  await client.execute("CREATE TABLE uprofile.user_and_id (user text, id int, message text, PRIMARY KEY (user, id))");
  for (const [user, id, message] of [
    ["theo", 2, "hello"],
    ["theo", 1, "hello again"],
    ["theo", 4, "4"],
    ["theo", 3, "3"],
    ["olia", 1, "mine"],
  ]) {
    await client.execute(`INSERT INTO uprofile.user_and_id (user, id, message) VALUES ('${user}', ${id}, '${message}')`);
  }
  const rows = await again(() => rowsOf(client, "SELECT id, message FROM uprofile.user_and_id WHERE user = 'theo'"));
  assert.deepEqual(rows, [
    [1, "hello again"],
    [2, "hello"],
    [3, "3"],
    [4, "4"],
  ]);
  assert.deepEqual(await rowsOf(client, "SELECT DISTINCT user FROM uprofile.user_and_id").then(byToken), [["olia"], ["theo"]]);
});

test("by first and last name and id, a composite partition key", async () => {
  await client.execute(
    "CREATE TABLE uprofile.user_by_name (firstname text, lastname text, id int, message text, PRIMARY KEY ((firstname, lastname), id))",
  );
  for (const [id, [first, last]] of people.entries()) {
    await client.execute(
      "INSERT INTO uprofile.user_by_name (firstname, lastname, id, message) VALUES (?, ?, ?, ?)",
      [first, last, id, `of ${id}`],
      {
        prepare: true,
      },
    );
  }
  const smiths = await again(() =>
    rowsOf(client, "SELECT id, message FROM uprofile.user_by_name WHERE firstname = 'Mary' AND lastname = 'Smith'"),
  );
  assert.deepEqual(smiths, [
    [0, "of 0"],
    [2, "of 2"],
  ]);
  assert.equal((await client.execute("SELECT * FROM uprofile.user_by_name")).rowLength, 5);
  await assert.rejects(client.execute("SELECT * FROM uprofile.user_by_name WHERE firstname = 'Mary'"), /ALLOW FILTERING/);
  assert.equal(
    (await client.execute("SELECT * FROM uprofile.user_by_name WHERE firstname = 'Mary' ALLOW FILTERING")).rowLength,
    3,
  );
});

test("a table with provisioned throughput", async () => {
  await client.execute(
    "CREATE TABLE uprofile.sized (user_id int, user_name text, PRIMARY KEY (user_id, user_name)) WITH cosmosdb_provisioned_throughput = 4000",
  );
  await client.execute("INSERT INTO uprofile.sized (user_id, user_name) VALUES (1, 'a')");
  await client.execute("ALTER TABLE uprofile.sized WITH cosmosdb_provisioned_throughput = 5000");
  await again(() => rowsOf(client, "SELECT * FROM uprofile.sized"));
});
