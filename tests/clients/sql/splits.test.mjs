// Partitions split and merge, by their size, by the throughput, and by hand, and no client notices.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, plain, refused, run, until } from "./server.mjs";

let server;
let client;
before(async () => {
  server = await Server.start({
    settings: {
      "limits.partition_storage_mb": 1,
      "limits.partition_throughput": 20000,
      "limits.throughput_max": 10000000,
      "balancer.interval_ms": 50,
      "balancer.merge_after_s": 0,
    },
  });
  client = server.client();
});
after(() => server?.remove());

const ranges = async (container) => (await container.readPartitionKeyRanges().fetchAll()).resources;
const command = async (...args) => {
  const { code, out, err } = await run([...args, "--data", server.data]);
  assert.equal(code, 0, err);
  return out;
};
const hand = (...args) => command("partition", ...args.map(String));
const item = (n, bytes = 1000) => ({ id: `i${n}`, pk: `key ${n}`, n, text: "x".repeat(bytes) });
const fill = (container, from, to, bytes) =>
  container.items.executeBulkOperations(
    Array.from({ length: to - from }, (_, i) => ({
      operationType: "Upsert",
      partitionKey: `key ${from + i}`,
      resourceBody: item(from + i, bytes),
    })),
  );
const all = async (container, options) => (await container.items.readAll(options).fetchAll()).resources;
const partitionsOf = async (container) => {
  const status = JSON.parse(await command("status", "--json"));
  const databases = status.databases.flatMap((database) => database.containers);
  return databases.find(({ id }) => id === container.id).partitions;
};

// A value of /metrics; with labels as they are written there.
async function metric(name) {
  const { text } = await server.request({ path: "/metrics", unsigned: true });
  const line = text.split("\n").find((line) => line.startsWith(`${name} `));
  assert.notEqual(line, undefined, `${name} is not there`);
  return Number(line.split(" ").at(-1));
}
const underWay = async () => (await metric('orrery_reshapes{kind="split"}')) + (await metric('orrery_reshapes{kind="merge"}'));

// Every item exactly once, by a scan, a query and point reads.
async function check(container, count, bytes = 1000) {
  const found = await all(container, { maxItemCount: 100 });
  assert.deepEqual(found.map(({ n }) => n).sort((a, b) => a - b), Array.from({ length: count }, (_, n) => n));
  for (let n = 0; n < count; n += Math.ceil(count / 50)) {
    const { resource } = await container.item(`i${n}`, `key ${n}`).read();
    assert.deepEqual(plain(resource), item(n, bytes));
  }
}

test("a partition at its storage limit splits near the half, and the sizes stay exact", async () => {
  await command("balancer", "pause");
  const container = await makeContainer(client, { throughput: 100000 });
  // Five partitions for the throughput; more for what is in them.
  const before = await ranges(container);
  assert.equal(before.length, 5);
  const results = await fill(container, 0, 7000);
  assert.ok(results.every(({ response }) => response.statusCode === 201));
  const parents = await partitionsOf(container);
  await command("balancer", "resume");
  const now = await until("they split", async () => {
    const list = await ranges(container);
    return list.length === 10 ? list : undefined;
  }, 30);
  for (const range of now) assert.ok(before.some(({ id }) => range.parents.includes(id)), JSON.stringify(range));
  await check(container, 7000);
  const partitions = await partitionsOf(container);
  assert.equal(partitions.reduce((sum, { items }) => sum + items, 0), 7000);
  assert.equal(
    partitions.reduce((sum, { bytes }) => sum + bytes, 0),
    parents.reduce((sum, { bytes }) => sum + bytes, 0),
  );
  for (const parent of before) {
    const whole = parents.find(({ id }) => String(id) === parent.id).bytes;
    const children = now.filter((range) => range.parents.includes(parent.id));
    for (const child of children) {
      const share = partitions.find(({ id }) => String(id) === child.id).bytes / whole;
      assert.ok(share >= 0.4 && share <= 0.6, `${share}`);
    }
  }
});

test("raising the throughput splits in the background, lowering it merges", async () => {
  const container = await makeContainer(client, { throughput: 20000 });
  await fill(container, 0, 100, 10);
  const { resource: offer } = await container.readOffer();
  const scale = async (throughput) => {
    const { offer: handle } = await container.readOffer();
    await handle.replace({ ...(await handle.read()).resource, content: { offerThroughput: throughput } });
  };
  assert.equal(offer.content.offerThroughput, 20000);
  await scale(100000);
  await until("there are five partitions", async () => (await ranges(container)).length === 5);
  await check(container, 100, 10);
  const partitions = await partitionsOf(container);
  assert.deepEqual(partitions.map(({ share }) => share), [20000, 20000, 20000, 20000, 20000]);
  await scale(20000);
  await until("there is one again", async () => (await ranges(container)).length === 1, 30);
  await check(container, 100, 10);
  assert.deepEqual((await partitionsOf(container)).map(({ share, items }) => [share, items]), [[20000, 100]]);
});

test("a share above the limit of one partition splits it, and its heirs have half of it each", async () => {
  const container = await makeContainer(client, { throughput: 40000 });
  const [first] = await ranges(container);
  await command("throughput", "redistribute", `tests/${container.id}`, `${first.id}=30000`);
  await until("it is split", async () => (await ranges(container)).length === 3);
  assert.deepEqual((await partitionsOf(container)).map(({ share }) => share), [15000, 15000, 20000]);
});

test("hierarchical keys are split below the first level if one value fills a partition", async () => {
  const container = await makeContainer(client, {
    throughput: 20000,
    partitionKey: { paths: ["/tenant", "/user"], kind: "MultiHash", version: 2 },
  });
  const operations = Array.from({ length: 1500 }, (_, n) => ({
    operationType: "Create",
    partitionKey: ["one", `user ${n}`],
    resourceBody: { id: `${n}`, tenant: "one", user: `user ${n}`, text: "x".repeat(1000) },
  }));
  await container.items.executeBulkOperations(operations);
  const list = await until("it is split", async () => {
    const now = await ranges(container);
    return now.length > 1 ? now : undefined;
  });
  assert.equal(list[0].maxExclusive.length, 64, "the cut is within the tenant");
  const { resources } = await container.items.query("SELECT * FROM c", { partitionKey: ["one"] }).fetchAll();
  assert.equal(resources.length, 1500);
  assert.equal((await container.item("7", ["one", "user 7"]).read()).resource.id, "7");
});

test("one logical partition is never split", async () => {
  const container = await makeContainer(client, { throughput: 20000 });
  for (let n = 0; n < 40; n += 1) await container.items.create({ id: `${n}`, pk: "one", text: "x".repeat(50000) });
  await until("it was tried", () => server.log().includes("one logical partition holds nearly all of it"));
  await until("that is counted", async () => (await metric('orrery_reshapes_called_off_total{kind="split"}')) >= 1);
  assert.equal(await metric('orrery_reshapes_called_off_total{kind="merge"}'), 0);
  assert.equal((await ranges(container)).length, 1);
  assert.equal((await all(container)).length, 40);
});

test("by hand: split at a place, merge again; ids are never used again and the old ones stay answerable", async () => {
  await command("balancer", "pause");
  const container = await makeContainer(client, { throughput: 20000 });
  await fill(container, 0, 200, 10);
  const [parent] = await ranges(container);
  await hand("split", parent.id, "--at", "10000000000000000000000000000000");
  const [left, right] = await until("it is split", async () => {
    const list = await ranges(container);
    return list.length === 2 ? list : undefined;
  });
  assert.equal(left.maxExclusive, "10000000000000000000000000000000");
  assert.equal(right.minInclusive, left.maxExclusive);
  assert.deepEqual(left.parents, [parent.id]);
  assert.ok(Number(left.id) > Number(parent.id) && Number(right.id) > Number(left.id));
  await check(container, 200, 10);
  // A query that names the retired range is answered by its heirs: an SDK asks for ever after 410.
  const named = (id) =>
    server.request({
      method: "POST",
      path: `/${container.url}/docs`,
      headers: {
        "content-type": "application/query+json",
        "x-ms-documentdb-isquery": "true",
        "x-ms-documentdb-partitionkeyrangeid": id,
        "x-ms-max-item-count": "-1",
      },
      body: JSON.stringify({ query: "SELECT * FROM c" }),
    });
  const old = await named(parent.id);
  assert.equal(old.status, 200);
  assert.equal(old.json._count, 200);
  // So is bulk: the SDK may look the ranges up too early after 410, and then sends to nobody for ever.
  const bulk = await server.request({
    method: "POST",
    path: `/${container.url}/docs`,
    headers: {
      "x-ms-cosmos-is-batch-request": "true",
      "x-ms-cosmos-batch-atomic": "false",
      "x-ms-cosmos-batch-continue-on-error": "true",
      "x-ms-documentdb-partitionkeyrangeid": parent.id,
    },
    body: JSON.stringify(
      (await all(container)).map(({ id, pk }) => ({ operationType: "Read", id, partitionKey: JSON.stringify([pk]) })).slice(0, 100),
    ),
  });
  assert.equal(bulk.status, 200, bulk.text);
  assert.ok(bulk.json.every(({ statusCode }) => statusCode === 200));
  const halves = [(await named(left.id)).json._count, (await named(right.id)).json._count];
  assert.equal(halves[0] + halves[1], 200);
  assert.ok(halves[0] > 20 && halves[0] < 80, `${halves}`);

  await hand("merge", left.id);
  const [whole] = await until("they are merged", async () => {
    const list = await ranges(container);
    return list.length === 1 ? list : undefined;
  });
  assert.deepEqual(whole.parents, [left.id, right.id]);
  await check(container, 200, 10);
  assert.equal((await named(left.id)).json._count, halves[0]);
  await command("balancer", "resume");
});

test("metrics count what was done, by kind", async () => {
  await command("balancer", "pause");
  await until("nothing is under way", async () => (await underWay()) === 0);
  const container = await makeContainer(client, { throughput: 20000 });
  const counts = () => Promise.all(["orrery_splits_total", "orrery_merges_total"].map(metric));
  const [splits, merges] = await counts();
  const become = (wanted) => until(`${wanted}`, async () => `${await counts()}` === `${wanted}`);
  await hand("split", (await ranges(container))[0].id);
  await become([splits + 1, merges]);
  await hand("merge", (await ranges(container))[0].id);
  await become([splits + 1, merges + 1]);
  assert.equal(await underWay(), 0);
  assert.equal((await ranges(container)).length, 1);
  await command("balancer", "resume");
});

test("what cannot be done by hand says why", async () => {
  await command("balancer", "pause");
  const container = await makeContainer(client, { throughput: 20000 });
  const [{ id }] = await ranges(container);
  const fails = async (pattern, ...args) => {
    const { code, err } = await run(["partition", ...args.map(String), "--data", server.data]);
    assert.notEqual(code, 0);
    assert.match(err, pattern);
  };
  await fails(/no partition 999999/, "split", 999999);
  await fails(/the last of its container/, "merge", id);
  await fails(/in hex/, "split", id, "--at", "xyz");
  await fails(/cannot be cut there/, "split", id, "--at", "FF");
  const fixed = await makeContainer(client, { throughput: 400 });
  await fails(/fixed container/, "split", (await ranges(fixed))[0].id);
  await fails(/no replica on node 1/, "move", id, "--from", 1, "--to", 2);
  assert.equal((await ranges(container)).length, 1);
  await command("balancer", "resume");
});

test("a session, optimistic concurrency and repeated splits under load lose and repeat nothing", async () => {
  const container = await makeContainer(client, { throughput: 200000 });
  const keys = 300;
  const acknowledged = new Map(); // id -> value
  let stop = false;
  const failures = [];
  const writer = async (part) => {
    for (let round = 0; !stop; round += 1) {
      for (let n = part; n < keys && !stop; n += 4) {
        try {
          const { resource } = await container.items.upsert({ id: `i${n}`, pk: `key ${n}`, n, round });
          assert.equal(resource.round, round);
          acknowledged.set(n, round);
          if (n % 3 === 0) {
            const { resource: read } = await container.item(`i${n}`, `key ${n}`).read();
            assert.equal(read?.round, round, `key ${n}`);
          }
        } catch (error) {
          failures.push(error);
        }
      }
    }
  };
  const reader = async () => {
    while (!stop) {
      const known = [...acknowledged.keys()];
      try {
        const seen = (await all(container, { maxItemCount: 20 })).map(({ n }) => n);
        assert.equal(new Set(seen).size, seen.length, "an item was seen twice");
        const missing = known.filter((n) => !seen.includes(n));
        assert.deepEqual(missing, [], "items were missed");
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await command("balancer", "pause");
  const bulk = async () => {
    for (let round = 0; !stop; round += 1) {
      const results = await fill(container, 1000, 1100, 10);
      const bad = results.filter(({ response }) => ![200, 201].includes(response?.statusCode));
      if (bad.length > 0) failures.push(new Error(`bulk: ${JSON.stringify(bad[0])}`));
    }
  };
  const work = [writer(0), writer(1), writer(2), writer(3), reader(), bulk()];
  await until("there is something", () => acknowledged.size === keys);
  let generation = (await ranges(container)).length;
  for (let round = 0; round < 3; round += 1) {
    for (const { id } of await ranges(container)) {
      await until("one more begins", async () => (await run(["partition", "split", id, "--data", server.data])).code === 0);
    }
    generation *= 2;
    await until("all are split", async () => (await ranges(container)).length === generation, 60);
  }
  while (generation > 5) {
    const list = await ranges(container);
    for (let i = 0; i + 1 < list.length; i += 2) {
      await until("one more begins", async () => (await run(["partition", "merge", list[i].id, "--data", server.data])).code === 0);
    }
    generation -= Math.floor(list.length / 2);
    await until("they are merged", async () => (await ranges(container)).length === generation, 60);
  }
  stop = true;
  await Promise.all(work);
  assert.deepEqual(failures.slice(0, 3).map((error) => `${error.code} ${error.message}`), []);
  const last = new Map((await all(container)).map(({ n, round }) => [n, round]));
  for (const [n, round] of acknowledged) assert.ok(last.get(n) >= round, `key ${n}: ${last.get(n)} instead of ${round}`);
  await command("balancer", "resume");
});

test("a restart finds the partitions as they were", async () => {
  const container = await makeContainer(client, { throughput: 60000 });
  await fill(container, 0, 300, 10);
  await command("balancer", "pause");
  const [first] = await ranges(container);
  await hand("split", first.id);
  const before = await until("it is split", async () => {
    const list = await ranges(container);
    return list.length === 4 ? list : undefined;
  });
  await fill(container, 300, 400, 10);
  await server.kill();
  await server.up();
  assert.deepEqual(await ranges(container), before);
  await check(container, 400, 10);
  await server.stop();
  await server.up();
  await check(container, 400, 10);
  await refused(container.items.create(item(7, 10)), 409);
});
