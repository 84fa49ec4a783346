// kill -9 under writes, over and over on the same data: everything acknowledged is there, batches are whole.
//
//   kills.mjs [--rounds 25] [--seed N]
import { parseArgs } from "node:util";
import { Server, until } from "../support/server.mjs";
import { Connection, Report, Workload, prepare, randomFrom, readFeed } from "./workload.mjs";

const { values } = parseArgs({ options: { rounds: { type: "string", default: "25" }, seed: { type: "string" } } });
const rounds = Number(values.rounds);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const random = randomFrom(seed);
const report = new Report("kills");

// The default throughput over so small partitions makes four of them, without a limit on their use.
const server = await Server.start({
  settings: { "storage.durability": "sync", "storage.write_buffer_mb": 1, "limits.partition_throughput": 100 },
});
const started = performance.now();
let acknowledged = 0;
const workloads = [];
try {
  await prepare(server.port);
  for (let round = 1; round <= rounds; round += 1) {
    const workload = new Workload(server.port, { name: `round${round}`, random, bytes: 50 + Math.floor(random() * 1500) });
    workloads.push(workload);
    const target = 30 + Math.floor(random() * 500);
    workload.start();
    await until(`${target} writes in round ${round}`, () => workload.acknowledged >= target || workload.failure);
    await server.kill();
    await workload.stop();
    acknowledged += workload.acknowledged;
    // Now and then it is killed again while it recovers.
    if (random() < 0.2) {
      const early = server.up().catch(() => null);
      await server.kill();
      await early;
    }
    await server.up();
    report.claim(`round ${round} of seed ${seed}`, await workload.check({ repeat: true }));
  }
  const wrong = [];
  const connection = new Connection(server.port);
  const all = await readFeed(connection);
  const { headers } = await connection.send("GET", "/dbs/crash/colls/items");
  connection.close();
  const counted = Number(/documentsCount=(\d+)/.exec(headers["x-ms-resource-usage"])[1]);
  if (counted !== all.length) wrong.push(`the container counts ${counted} items, its feed has ${all.length}`);
  const unique = new Set(all.map(({ pk, id }) => `${pk}/${id}`));
  if (unique.size !== all.length) wrong.push(`${all.length - unique.size} items came twice`);
  for (const { writers } of workloads) {
    for (const { pk, items } of writers) {
      for (const id of items.keys()) if (!unique.has(`${pk}/${id}`)) wrong.push(`${pk}/${id} was lost in a later round`);
    }
  }
  report.claim(`all rounds together, seed ${seed}`, wrong);
  await server.stop();
} catch (error) {
  report.claim(`seed ${seed} runs to its end`, [`${error.stack}`]);
} finally {
  await server.remove().catch((error) => report.claim("the server stops", [`${error.message}`]));
}
const seconds = (performance.now() - started) / 1000;
console.log(`${rounds} kills, ${acknowledged} acknowledged writes, ${seconds.toFixed(1)} s, seed ${seed}`);
report.close();
