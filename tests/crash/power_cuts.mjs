// Power cuts: the file system is shut down under writes without its journal being written. Nothing that was
// acknowledged before the cut may be lost. After the cut fdatasync can still succeed in a race, so what was
// acknowledged later is not known to be there.
//
//   power_cuts.mjs [--cuts 30] [--seed N]
import { spawn } from "node:child_process";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Server, until } from "../support/server.mjs";
import { Mount } from "./mounts.mjs";
import { Report, Workload, prepare, randomFrom } from "./workload.mjs";

const { values } = parseArgs({ options: { cuts: { type: "string", default: "30" }, seed: { type: "string" } } });
const cuts = Number(values.cuts);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const random = randomFrom(seed);
const report = new Report("power cuts");

async function run(mount) {
  const script = fileURLToPath(new URL("power_cut.py", import.meta.url));
  const line = [...(process.getuid() === 0 ? [] : ["sudo", "-n"]), "python3", script];
  const cutter = spawn(line[0], line.slice(1), { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface({ input: cutter.stdout })[Symbol.asyncIterator]();
  await answers.next();

  const settings = {
    "storage.durability": "sync",
    "storage.write_buffer_mb": 1,
    "storage.free_reserve_mb": 10,
    "limits.partition_throughput": 100,
  };
  const server = await Server.start({ settings, data: path.join(mount.folder, "data"), log: path.join(mount.work, "log") });
  let acknowledged = 0;
  try {
    await prepare(server.port);
    for (let cut = 1; cut <= cuts; cut += 1) {
      const workload = new Workload(server.port, { name: `cut${cut}`, random, bytes: 50 + Math.floor(random() * 1000) });
      workload.start();
      const target = 30 + Math.floor(random() * 400);
      await until(`${target} writes before cut ${cut}`, () => workload.acknowledged >= target || workload.failure, 30);
      const records = workload.records();
      acknowledged += workload.acknowledged;
      cutter.stdin.write(`${mount.folder}\n`);
      const { value } = await answers.next();
      if (value !== "cut") throw new Error(`the power could not be cut: ${value}`);
      await server.kill();
      await workload.stop();
      mount.unmount();
      mount.mount();
      await server.up();
      const wrong = await workload.check({ records: loosen(records, workload) });
      report.claim(`cut ${cut} of seed ${seed}`, wrong);
    }
    await server.stop();
  } finally {
    cutter.stdin.end();
    if (server.alive()) await server.kill();
  }
  console.log(`${cuts} power cuts, ${acknowledged} acknowledged writes, seed ${seed}`);
}

// What was written, deleted or sent between the record and the end may or may not be there.
function loosen(records, workload) {
  return records.map((record, i) => {
    const now = workload.writers[i].record();
    const unsure = new Set([...record.unsure, ...now.unsure]);
    for (const id of now.items.keys()) if (!record.items.has(id)) unsure.add(id);
    for (const id of record.items.keys()) if (!now.items.has(id)) unsure.add(id);
    return { ...record, unsure: [...unsure] };
  });
}

let mount;
try {
  mount = new Mount("ext4", 300);
} catch (error) {
  report.skip(`a file system cannot be mounted here: ${error.message}`);
}
if (mount) {
  try {
    await run(mount);
  } catch (error) {
    report.claim(`seed ${seed} runs to its end`, [`${error.stack}`]);
  } finally {
    mount.remove();
  }
}
report.close();
