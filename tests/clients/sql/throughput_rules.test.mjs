// How low a throughput may go, what autoscale comes to, priorities, buckets, and throughput by partition.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, run, until } from "./server.mjs";

let server;
let client;
let impatient;
before(async () => {
  server = await Server.start();
  client = server.client();
  impatient = server.impatientClient();
});
after(() => server?.remove());

const large = (id) => ({ id: `${id}`, pk: "a", text: "x".repeat(200_000) }); // about 75 RU
let numbers = 0;
const next = () => (numbers += 1);
const offerOf = async (container) => client.offer((await container.readOffer()).resource.id).read();
const throughputOf = async (container) => (await container.readOffer()).resource.content.offerThroughput;
const least = (headers) => Number(headers["x-ms-cosmos-min-throughput"]);

async function replace(container, content, headers = {}) {
  const { resource } = await container.readOffer();
  const body = JSON.stringify({ ...resource, content });
  return server.request({ method: "PUT", path: `/offers/${resource.id}`, headers, body });
}

// A command that must succeed.
async function orrery(...args) {
  const { code, out, err } = await run([...args, "--data", server.data]);
  assert.equal(code, 0, err);
  return out;
}
async function fails(...args) {
  const { code, err } = await run([...args, "--data", server.data]);
  assert.equal(code, 1);
  return err;
}
async function statusOf(container) {
  const { databases } = JSON.parse(await orrery("status", "--json"));
  return databases.find(({ id }) => id === "tests").containers.find(({ id }) => id === container.id);
}

test("a throughput is lowered at once, but not below a hundredth of the highest that it had", async () => {
  const container = await makeContainer(client, { throughput: 60000 });
  assert.equal(least((await offerOf(container)).headers), 600);
  const low = await replace(container, { offerThroughput: 500 });
  assert.equal(low.status, 400);
  assert.match(low.text, /valid throughput values between 600 and 1000000 inclusive in increments of 100/);
  const lowered = await replace(container, { offerThroughput: 600 });
  assert.equal(lowered.status, 200);
  assert.equal(lowered.json.content.offerThroughput, 600);
  assert.equal(lowered.json.content.offerMinimumThroughputParameters.maxThroughputEverProvisioned, 60000);
  assert.equal(least(lowered.headers), 600);
  assert.equal(lowered.headers["x-ms-offer-replace-pending"], "false");
});

test("an autoscale maximum does not fall below a tenth of the highest that it had", async () => {
  const container = await makeContainer(client, { maxThroughput: 20000 });
  const content = (maxThroughput) => ({ offerThroughput: -1, offerAutopilotSettings: { maxThroughput } });
  assert.equal(least((await offerOf(container)).headers), 2000);
  const low = await replace(container, content(1000));
  assert.equal(low.status, 400);
  assert.match(low.text, /between 2000 and 1000000 inclusive in increments of 1000/);
  const lowered = await replace(container, content(2000));
  assert.equal(lowered.json.content.offerAutopilotSettings.maxThroughput, 2000);
  assert.equal(lowered.json.content.offerThroughput, 200);
});

test("manual throughput becomes autoscale and manual again by the headers of a migration", async () => {
  const container = await makeContainer(client, { throughput: 4100 });
  const toAutoscale = { "x-ms-cosmos-migrate-offer-to-autopilot": "true" };
  const toManual = { "x-ms-cosmos-migrate-offer-to-manual-throughput": "true" };
  const settings = { offerAutopilotSettings: { maxThroughput: 5000 } };
  for (const reply of [await replace(container, settings), await replace(container, settings, toAutoscale)]) {
    assert.equal(reply.status, 400);
    assert.match(reply.text, /x-ms-cosmos-migrate-offer-to-autopilot must be supplied/);
  }
  const scaled = await replace(container, { offerThroughput: -1 }, toAutoscale);
  assert.equal(scaled.status, 200, scaled.text);
  assert.equal(scaled.json.content.offerAutopilotSettings.maxThroughput, 5000);
  assert.equal(scaled.json.content.offerThroughput, 500);
  const refusedManual = await replace(container, { offerThroughput: 400 });
  assert.equal(refusedManual.status, 400);
  assert.match(refusedManual.text, /invoke migration API/);
  const manual = await replace(container, { offerAutopilotSettings: { maxThroughput: -1 } }, toManual);
  assert.equal(manual.status, 200, manual.text);
  assert.equal(manual.json.content.offerThroughput, 5000);
  assert.equal(manual.json.content.offerAutopilotSettings, undefined);
  assert.equal((await replace(container, { offerThroughput: -1 }, toManual)).status, 400);
});

test("a replace is pending while there are fewer partitions than the throughput needs", async () => {
  const own = await Server.start();
  try {
    const container = await makeContainer(own.client(), { throughput: 10000 });
    const { resource } = await container.readOffer();
    const pending = async () => (await own.client().offer(resource.id).read()).headers["x-ms-offer-replace-pending"];
    assert.equal(await pending(), "false");
    const balancer = async (action) => assert.equal((await run(["balancer", action, "--data", own.data])).code, 0);
    await balancer("pause");
    const raised = { ...resource, content: { offerThroughput: 20000 } };
    await own.client().offer(resource.id).replace(raised);
    assert.equal(await pending(), "true");
    await balancer("resume");
    await until("it is not pending any more", async () => (await pending()) === "false");
    assert.equal((await container.readPartitionKeyRanges().fetchAll()).resources.length, 2);
  } finally {
    await own.remove();
  }
});

test("autoscale shows what was sustained for five seconds, between a tenth and all of its maximum", async () => {
  const container = await makeContainer(impatient, { maxThroughput: 1000 });
  assert.equal(await throughputOf(container), 100);
  const load = async () => {
    await Promise.allSettled([1, 2, 3, 4].map(() => container.items.upsert(large(1))));
    return (await throughputOf(container)) > 100;
  };
  await until("the throughput rises", load, 40);
  const shown = await statusOf(container);
  assert.equal(shown.throughput, 1000);
  assert.ok(shown.currentThroughput >= 100 && shown.currentThroughput <= 1000, `${shown.currentThroughput}`);
  const { text } = await server.request({ path: "/metrics", unsigned: true });
  const scaled = text.split("\n").find((line) => line.startsWith("orrery_partition_request_units_scaled{") && line.includes(container.id));
  assert.ok(Number(scaled.split(" ").at(-1)) >= 100, scaled);
  await until("and falls when nothing is used", async () => (await throughputOf(container)) === 100, 20);
});

test("the throughput of an autoscale database is shown too", async () => {
  const { database } = await client.databases.create({ id: "scaled", maxThroughput: 4000 });
  await database.containers.create({ id: "c", partitionKey: "/pk" });
  assert.equal((await database.readOffer()).resource.content.offerThroughput, 400);
});

test("requests of low priority yield to those of high priority", async () => {
  const container = await makeContainer(impatient, { throughput: 400 });
  const done = { High: 0, Low: 0 };
  const one = (priorityLevel) =>
    container.items.upsert(large(1), { priorityLevel }).then(
      () => (done[priorityLevel] += 1),
      (error) => assert.equal(error.code, 429, error.message),
    );
  await until("Low alone is served", async () => (await one("Low"), done.Low > 0));
  await until("High has used everything", () => container.items.upsert(large(1)).then(() => false, () => true));
  done.Low = 0;
  await until("High is served", async () => {
    await Promise.all([one("High"), one("High"), one("Low"), one("Low"), one("Low"), one("Low")]);
    return done.High >= 15;
  }, 60);
  assert.ok(done.Low * 4 < done.High, `${done.Low} of low priority, ${done.High} of high`);
});

for (const headers of [
  { "x-ms-cosmos-priority-level": "Urgent" },
  { "x-ms-cosmos-throughput-bucket": "0" },
  { "x-ms-cosmos-throughput-bucket": "6" },
  { "x-ms-cosmos-throughput-bucket": "one" },
]) {
  test(`${JSON.stringify(headers)} is refused`, async () => {
    const container = await makeContainer(client);
    const reply = await server.request({ path: `/${container.url}/docs`, headers });
    assert.equal(reply.status, 400);
    assert.match(reply.text, /priority level|throughput bucket/);
  });
}

test("a bucket is a cap on the requests that name it", async () => {
  const container = await makeContainer(impatient, { throughput: 10000 });
  const name = `tests/${container.id}`;
  const out = await orrery("throughput", "buckets", name, "1=1", "2=50");
  assert.match(out, /bucket 1: at most 1 percent/);
  const burst = (options) => Promise.allSettled(Array.from({ length: 20 }, () => container.items.create(large(next()), options)));
  const capped = (await burst({ throughputBucket: 1 })).filter(({ status }) => status === "rejected");
  assert.ok(capped.length > 0, "nothing was refused");
  for (const { reason } of capped) {
    assert.equal(reason.code, 429);
    assert.equal(Number(reason.substatus ?? reason.headers["x-ms-substatus"]), 3212);
  }
  for (const options of [{}, { throughputBucket: 2 }, { throughputBucket: 3 }]) {
    assert.equal((await container.items.create(large(next()), options)).statusCode, 201);
  }
  await server.restart();
  assert.match(await orrery("throughput", "show", name), /bucket 2: at most 50 percent/);
  assert.match(await orrery("throughput", "buckets", name, "--none"), /no throughput buckets/);
  for (const { status } of await burst({ throughputBucket: 1 })) assert.equal(status, "fulfilled");
});

test("requests that name no bucket are in the default one", async () => {
  const container = await makeContainer(impatient, { throughput: 10000 });
  const out = await orrery("throughput", "buckets", `tests/${container.id}`, "1=1", "2=100", "--default", "1");
  assert.match(out, /bucket 1: at most 1 percent, the default/);
  const results = await Promise.allSettled(Array.from({ length: 20 }, () => container.items.create(large(next()))));
  assert.ok(results.some(({ status }) => status === "rejected"));
  assert.equal((await container.items.create(large(next()), { throughputBucket: 2 })).statusCode, 201);
  assert.equal((await statusOf(container)).defaultBucket, 1);
});

test("buckets that cannot be are refused", async () => {
  const container = await makeContainer(client, { throughput: 400 });
  const free = await makeContainer(client);
  const { database } = await client.databases.create({ id: "bucketed", throughput: 400 });
  const { container: shares } = await database.containers.create({ id: "c", partitionKey: "/pk" });
  const name = `tests/${container.id}`;
  for (const args of [["6=20"], ["1=0"], ["1=101"], ["1=x"], ["1"], ["1=10", "1=20"], ["1=10", "--default", "2"], []]) {
    assert.match(await fails("throughput", "buckets", name, ...args), /^orrery: /);
  }
  assert.match(await fails("throughput", "buckets", `tests/${free.id}`, "1=10"), /Nobody chose/);
  assert.match(await fails("throughput", "buckets", `bucketed/${shares.id}`, "1=10"), /shares the throughput/);
  assert.match(await fails("throughput", "buckets", "tests/nothing", "1=10"), /there is no container/);
  assert.deepEqual((await statusOf(container)).buckets, []);
});

test("throughput is moved between partitions, and the container has the sum", async () => {
  const container = await makeContainer(client, { throughput: 20000 });
  const name = `tests/${container.id}`;
  const ranges = async () => (await container.readPartitionKeyRanges().fetchAll()).resources;
  const [first, second] = (await ranges()).map(({ id }) => id);
  await orrery("throughput", "redistribute", name, `${first}=3000`);
  assert.equal(await throughputOf(container), 13000);
  const check = async (a, b) => {
    const { partitions } = await statusOf(container);
    assert.deepEqual(partitions.map(({ share }) => share), [a, b]);
    const fractions = (await ranges()).map(({ throughputFraction }) => throughputFraction);
    assert.deepEqual(fractions.map((part) => Math.round(part * 1000)), [a, b].map((share) => Math.round((share / (a + b)) * 1000)));
  };
  await check(3000, 10000);
  await server.restart();
  await check(3000, 10000);
  const whole = await replace(container, { offerThroughput: 14000 });
  assert.equal(whole.status, 400);
  assert.match(whole.text, /Equal/);
  assert.match(await fails("throughput", "redistribute", name, `${second}=20001`), /between 1 and 20000/);
  assert.match(await fails("throughput", "redistribute", name, "999999=500"), /no partition 999999/);
  assert.match(await fails("throughput", "redistribute", name, `${first}=100`, `${second}=100`), /must be between/);
  assert.match(await fails("throughput", "redistribute", name), /--equal/);
  await check(3000, 10000);
  await orrery("throughput", "redistribute", name, "--equal");
  await check(6500, 6500);
  assert.equal((await replace(container, { offerThroughput: 14000 })).status, 200);
  await check(7000, 7000);
});

test("a partition spends what it was given and no more", async () => {
  const container = await makeContainer(impatient, { throughput: 20000 });
  const ranges = (await container.readPartitionKeyRanges().fetchAll()).resources.map(({ id }) => id);
  await orrery("throughput", "redistribute", `tests/${container.id}`, `${ranges[0]}=400`);
  const keys = Array.from({ length: 24 }, (_, i) => `key ${i}`);
  const write = (pk) => container.items.create({ ...large(next()), pk });
  const results = await Promise.allSettled([...keys, ...keys].map(write));
  const refusedBy = new Set(results.filter(({ status }) => status === "rejected").map(({ reason }) => reason.headers["x-ms-documentdb-partitionkeyrangeid"]));
  assert.deepEqual([...refusedBy], [ranges[0]]);
});
