// A crash at any step of a split or a merge leaves the parents or all heirs, never both or neither, and nothing is lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, makeContainer, plain, run, until } from "./server.mjs";
import { rangesOf as ranges } from "../../support/partitions.mjs";

// The steps of a cluster are in tests/clients/cluster.
const items = 200;

let server;
before(async () => {
  server = await Server.start({
    settings: {
      "limits.partition_throughput": 20000,
      "balancer.merge_after_s": 0,
      "storage.cache_mb": 16,
      "storage.write_buffer_mb": 8,
    },
  });
  await command("balancer", "pause");
});
after(() => server?.remove());

const command = async (...args) => {
  const { code, out, err } = await run([...args.map(String), "--data", server.data]);
  assert.equal(code, 0, err);
  return out;
};
const item = (n) => ({ id: `i${n}`, pk: `key ${n}`, n, text: "x".repeat(n) });
const ids = (ranges) => ranges.map(({ id }) => id);

async function totals(container) {
  const { databases } = JSON.parse(await command("status", "--json"));
  const { partitions } = databases.flatMap(({ containers }) => containers).find(({ id }) => id === container.id);
  const sum = (name) => partitions.reduce((before, partition) => before + partition[name], 0);
  return { items: sum("items"), bytes: sum("bytes") };
}
// Every item exactly once, by a scan and by point reads.
async function check(container, count) {
  const found = (await container.items.readAll({ maxItemCount: 30 }).fetchAll()).resources;
  assert.deepEqual(found.map(({ n }) => n).sort((a, b) => a - b), Array.from({ length: count }, (_, n) => n));
  const reads = Array.from({ length: count }, (_, n) => container.item(`i${n}`, `key ${n}`).read());
  for (const [n, { resource }] of (await Promise.all(reads)).entries()) assert.deepEqual(plain(resource), item(n));
}

async function restart(killAt) {
  if (server.alive()) await server.stop();
  server.settings["test.kill_at"] = killAt;
  await server.up();
}
// The server, with a container of `partitions`, dies at the step when `ask` is asked of the first one.
async function dieAt(step, ask, partitions) {
  await restart(step);
  const container = await makeContainer(server.client(), { throughput: 20000 * partitions });
  await Promise.all(Array.from({ length: items }, (_, n) => container.items.create(item(n))));
  const parents = await ranges(container);
  assert.equal(parents.length, partitions);
  const before = await totals(container);
  const ended = server.waitForEnd(10);
  // It may be gone before it has answered.
  await run(["partition", ask, parents[0].id, "--data", server.data]);
  await until(`it dies at ${step}`, () => !server.alive(), 5);
  assert.deepEqual(await ended, { code: null, signal: "SIGKILL" });
  return { container, parents, before };
}
// The change goes on after the start and comes to its end; the container is as it was, and stays so.
async function goesOn({ container, parents, before }, heirs) {
  await restart("");
  const first = await ranges(container);
  assert.ok(first.length === heirs || `${ids(first)}` === `${ids(parents)}`, JSON.stringify(first));
  const list = await until("the change is finished", async () => {
    const now = await ranges(container);
    return now.length === heirs ? now : undefined;
  });
  for (const heir of list) assert.deepEqual(heir.parents, ids(parents));
  await check(container, items);
  assert.deepEqual(await totals(container), before);
  for (let n = items; n < items + 20; n += 1) await container.items.create(item(n));
  const grown = await totals(container);
  assert.equal(grown.items, items + 20);
  await restart("");
  assert.deepEqual(await ranges(container), list);
  await check(container, items + 20);
  assert.deepEqual(await totals(container), grown);
  await container.delete();
}

for (const step of ["split.begun", "split.frozen", "split.founded", "split.finished", "parents.left"]) {
  test(`a split goes on after a crash at ${step}`, async () => {
    await goesOn(await dieAt(step, "split", 1), 2);
  });
}
for (const step of ["merge.begun", "merge.left_frozen", "merge.frozen", "merge.founded", "merge.finished", "parents.left"]) {
  test(`a merge goes on after a crash at ${step}`, async () => {
    await goesOn(await dieAt(step, "merge", 2), 1);
  });
}
