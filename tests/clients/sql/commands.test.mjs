// The commands of the program: start, status, backup, restore.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { after, before, test } from "node:test";
import { Server, freePort, makeContainer, run, temporaryFolder } from "./server.mjs";

let server;
let client;
let container;
let work; // folder for backups and such
before(async () => {
  work = temporaryFolder();
  server = await Server.start({ dev: false });
  client = server.client();
  container = await makeContainer(client, { throughput: 25000 });
  for (let i = 0; i < 40; i += 1) await container.items.create({ id: `${i}`, pk: `k${i}`, v: i });
});
after(async () => {
  await server?.remove();
  rmSync(work, { recursive: true, force: true });
});

test("status shows the containers and their partitions", async () => {
  for (const args of [["--data", server.data], ["--endpoint", server.endpoint, "--data", server.data]]) {
    const { code, out, err } = await run(["status", ...args]);
    assert.equal(code, 0, err);
    assert.match(out, /healthy/);
    assert.ok(out.includes(`tests/${container.id}`), out);
    assert.match(out, /25000 RU\/s/);
  }
});

test("status goes on until it is interrupted", async () => {
  const { code, out } = await run(["status", "--watch", "--data", server.data], { seconds: 3 });
  assert.equal(code, "SIGKILL");
  assert.ok(out.split("healthy").length > 2, out);
});

test("status gives its numbers as JSON", async () => {
  const { code, out } = await run(["status", "--json", "--data", server.data]);
  assert.equal(code, 0);
  const status = JSON.parse(out);
  const shown = status.databases.find(({ id }) => id === "tests").containers.find(({ id }) => id === container.id);
  assert.equal(shown.partitions.length, 3);
  assert.equal(shown.partitions.reduce((sum, { items }) => sum + items, 0), 40);
});

test("status of a server that does not run fails and says so", async () => {
  const { code, err } = await run(["status", "--endpoint", `https://127.0.0.1:${await freePort()}/`, "--data", server.data]);
  assert.notEqual(code, 0);
  assert.ok(err.length > 0);
});

test("partitions shows ranges, sizes and what stands out in a container", async () => {
  const own = await makeContainer(client, { id: "stand out, größer", throughput: 20000 });
  for (let i = 0; i < 12; i += 1) await own.items.create({ id: `${i}`, pk: i < 9 ? "large" : `small ${i}`, text: "x".repeat(1000) });
  for (let i = 0; i < 200; i += 1) await own.item("9", "small 9").read();
  const { code, out, err } = await run(["partitions", `tests/${own.id}`, "--json", "--data", server.data]);
  assert.equal(code, 0, err);
  const shown = JSON.parse(out);
  assert.equal(shown.kind, "unlimited");
  assert.equal(shown.throughput, 20000);
  assert.equal(shown.partitions.length, 2);
  assert.equal(shown.partitions[0].max, shown.partitions[1].min);
  assert.equal(shown.partitions.reduce((sum, { items }) => sum + items, 0), 12);
  for (const { generation, parents, share, throttled, complete } of shown.partitions) {
    assert.deepEqual({ generation, parents, share, throttled, complete }, { generation: 1, parents: [], share: 10000, throttled: 0, complete: true });
  }
  const largest = shown.partitions.flatMap(({ largestKeys }) => largestKeys).sort((a, b) => b.bytes - a.bytes);
  assert.deepEqual(largest[0].key, ["large"]);
  assert.equal(largest[0].items, 9);
  assert.equal(largest.length, 4);
  const home = shown.partitions.find(({ largestKeys }) => largestKeys.some(({ key }) => key[0] === "small 9"));
  assert.deepEqual(home.hottestKeys[0].key, ["small 9"]);
  assert.ok(home.hottestKeys[0].share > 0.5, JSON.stringify(home.hottestKeys));
  assert.ok(home.hottestKeys[0].requestUnitsPerSecond > 1, JSON.stringify(home.hottestKeys));

  const text = await run(["partitions", `tests/${own.id}`, "--data", server.data]);
  assert.equal(text.code, 0, text.err);
  assert.match(text.out, /unlimited, a logical partition at most 20\.0 GB; 20000 RU\/s/);
  assert.match(text.out, /largest logical partitions\n.*\n.*9 +\["large"\]/);
  assert.match(text.out, /hottest logical partitions\n.*\n.*% +\["small 9"\]/);
});

test("partitions of a container that is not there, or of no container, fails and says so", async () => {
  const missing = await run(["partitions", "tests/nothing", "--data", server.data]);
  assert.equal(missing.code, 1);
  assert.match(missing.err, /there is no container tests\/nothing/);
  const wrong = await run(["partitions", "nothing", "--data", server.data]);
  assert.equal(wrong.code, 1);
  assert.match(wrong.err, /DATABASE\/CONTAINER/);
  assert.notEqual((await run(["partitions"])).code, 0);
  assert.match((await run(["partitions", "--help"])).out, /largest and hottest keys/);
});

test("what partitions shows needs an account key", async () => {
  const reply = await server.request({ path: `/_orrery/partitions/tests/${container.id}`, unsigned: true });
  assert.equal(reply.status, 401);
  assert.equal((await server.request({ path: `/_orrery/partitions/tests/${container.id}`, key: server.keys().primaryReadOnly })).status, 200);
});

test("metrics tell the size of the largest logical partition", async () => {
  const { text } = await server.request({ path: "/metrics", unsigned: true });
  assert.match(text, /orrery_partition_largest_key_bytes\{database="tests".*\} 0\n/);
});

test("a backup of the running server is restored into a new folder", async () => {
  const backup = path.join(work, "backup");
  const { code, err } = await run(["backup", backup, "--data", server.data]);
  assert.equal(code, 0, err);
  await container.items.create({ id: "after the backup", pk: "a" });

  const restored = path.join(work, "restored");
  const result = await run(["restore", backup, "--data", restored]);
  assert.equal(result.code, 0, result.err);
  const copy = await Server.start({ dev: false, data: restored });
  try {
    const same = copy.client().database("tests").container(container.id);
    const { resources } = await same.items.readAll().fetchAll();
    assert.deepEqual(resources.map(({ v }) => v).sort((a, b) => a - b), Array.from({ length: 40 }, (_, i) => i));
    assert.deepEqual((await same.item("7", "k7").read()).resource, (await container.item("7", "k7").read()).resource);
    assert.equal((await same.readOffer()).resource.content.offerThroughput, 25000);
    assert.equal((await same.items.create({ id: "new", pk: "a" })).statusCode, 201);
  } finally {
    await copy.remove();
  }
  assert.equal((await container.items.readAll().fetchAll()).resources.length, 41);
});

test("a backup under writes is whole: each batch is in it with all of its items, or with none", async () => {
  const busy = await makeContainer(client);
  let stop = false;
  let batches = 0;
  const write = async (worker) => {
    for (let i = 0; !stop; i += 1) {
      const pk = `${worker}-${i}`;
      const operations = ["a", "b", "c"].map((id) => ({ operationType: "Create", resourceBody: { id, pk } }));
      assert.equal((await busy.items.batch(operations, pk)).code, 200);
      batches += 1;
    }
  };
  const writers = Array.from({ length: 6 }, (_, worker) => write(worker));
  const backup = path.join(work, "busy");
  while (batches < 50) await Promise.race([new Promise(setImmediate), ...writers]);
  const acknowledged = batches;
  const { code, err } = await run(["backup", backup, "--data", server.data]);
  stop = true;
  await Promise.all(writers);
  assert.equal(code, 0, err);
  const restored = path.join(work, "busy-restored");
  assert.equal((await run(["restore", backup, "--data", restored])).code, 0);
  const copy = await Server.start({ dev: false, data: restored });
  try {
    const { resources } = await copy.client().database("tests").container(busy.id).items.readAll().fetchAll();
    const sizes = new Map();
    for (const { pk } of resources) sizes.set(pk, (sizes.get(pk) ?? 0) + 1);
    assert.deepEqual([...new Set(sizes.values())], [3]);
    assert.ok(sizes.size >= acknowledged, `${sizes.size} of ${acknowledged} batches`);
  } finally {
    await copy.remove();
  }
});

test("a backup onto a folder that exists is refused", async () => {
  const folder = path.join(work, "exists");
  mkdirSync(folder);
  const { code, err } = await run(["backup", folder, "--data", server.data]);
  assert.notEqual(code, 0);
  assert.match(err, /exists/);
});

test("a restore onto a folder with data, or from what is no backup, is refused", async () => {
  const onto = await run(["restore", work, "--data", server.data]);
  assert.notEqual(onto.code, 0);
  const from = await run(["restore", work, "--data", path.join(work, "never")]);
  assert.notEqual(from.code, 0);
  assert.equal(existsSync(path.join(work, "never")), false);
  assert.equal((await container.item("1", "k1").read()).statusCode, 200);
});

test("a second server on the same folder, or on the same port, does not start", async () => {
  const folder = await run(["start", "--data", server.data, "--port", String(await freePort())]);
  assert.notEqual(folder.code, 0);
  assert.match(folder.err, /lock|use|running/i);
  const port = await run(["start", "--dev", "--data", path.join(work, "second"), "--port", String(server.port)]);
  assert.notEqual(port.code, 0);
  assert.match(port.err, new RegExp(`${server.port}|in use`));
  assert.equal((await container.item("1", "k1").read()).statusCode, 200);
});

test("a folder with other files is not taken for data", async () => {
  const folder = path.join(work, "photos");
  mkdirSync(folder);
  writeFileSync(path.join(folder, "cat.jpg"), "meow");
  const { code, err } = await run(["start", "--dev", "--data", folder, "--port", String(await freePort())]);
  assert.notEqual(code, 0);
  assert.match(err, /photos/);
});

test("settings that are none are refused, and named", async () => {
  for (const [set, named] of [["storage.colour=blue", "storage.colour"], ["storage.durability=maybe", "storage.durability"], ["nonsense", "nonsense"]]) {
    const { code, err } = await run(["start", "--dev", "--data", path.join(work, "never"), "--set", set]);
    assert.notEqual(code, 0);
    assert.ok(err.includes(named), err);
  }
});

test("settings come from a file, and a flag is stronger", async () => {
  const config = path.join(work, "orrery.toml");
  writeFileSync(config, '[storage]\ncolour = "blue"\n');
  const wrong = await run(["start", "--dev", "--config", config, "--data", path.join(work, "never")]);
  assert.notEqual(wrong.code, 0);
  assert.match(wrong.err, /storage\.colour/);
});

test("the development mode listens on this machine only", async () => {
  const { code, err } = await run(["start", "--dev", "--listen", "0.0.0.0", "--data", path.join(work, "never"), "--port", String(await freePort())]);
  assert.notEqual(code, 0);
  assert.match(err, /loopback/);
});

test("simulate tells a good key from a bad one", async () => {
  const good = JSON.parse((await run(["simulate", "--keys", "uniform", "--json"])).out);
  assert.equal(good.days.length, 100);
  assert.match(good.verdicts.join(" "), /a good key/);
  assert.equal(good.days.at(-1).throttled, 0);
  const bad = JSON.parse((await run(["simulate", "--keys", "time", "--size", "1TB", "--json"])).out);
  assert.match(bad.verdicts.join(" "), /too few partitions/);
  const table = await run(["simulate", "--keys", "zipf", "--event", "5:lose=2", "--days", "10"]);
  assert.equal(table.code, 0);
  assert.match(table.out, /^ +day +data +nodes/);
  for (const args of [["--keys", "nonsense"], ["--size", "5 apples"], ["--nodes", "2"], ["--event", "x"]]) {
    const { code, err } = await run(["simulate", ...args]);
    assert.equal(code, 2, err);
    assert.match(err, /^orrery simulate: /);
  }
});
