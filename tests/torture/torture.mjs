// Four real nodes under faults, while the official client and a checker write and read through all of them.
// Nothing acknowledged is lost, nothing deleted comes back, Strong is linearizable, and in the end all replicas are
// equal.
//
//   torture.mjs [--seconds 60] [--seed N] [--only "part of a fault's name"] [--folder F]
// The faults come from the seed; when they hit depends on the clock, so a run cannot be repeated exactly. When
// something is wrong the nodes' logs stay in the folder.
import { rmSync } from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import { Report, randomFrom } from "../crash/workload.mjs";
import { temporaryFolder, until } from "../support/server.mjs";
import { Cluster } from "./cluster.mjs";
import { schedule } from "./faults.mjs";
import { selfTest } from "./linear.mjs";
import { Record, Registers, Sender, Session, Writer, docs, readFeed } from "./load.mjs";
import { Loopback, Namespaces } from "./network.mjs";
import { SdkLoad } from "./sdk_load.mjs";

const options = { seconds: { type: "string", default: "60" }, seed: { type: "string" }, only: { type: "string" }, folder: { type: "string" }, loopback: { type: "boolean" } };
const { values } = parseArgs({ options });
const seconds = Number(values.seconds);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const random = randomFrom(seed); // of the faults
const began = performance.now();
const elapsed = () => ((performance.now() - began) / 1000).toFixed(1);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const report = new Report("torture");
const long = seconds > 300;
const settleSeconds = 30; // in which a healed cluster must serve everything

function makeNetwork() {
  if (!values.loopback) {
    try {
      return new Namespaces(4);
    } catch (error) {
      report.skip(`partitions, loss and delay, as there are no network namespaces here: ${error.message}`);
    }
  }
  return new Loopback();
}

const electionTimeout = [400, 600, 1000][Math.floor(random() * 3)];
const settings = {
  "account.consistency": "Strong",
  "storage.write_buffer_mb": 1,
  "storage.cache_mb": 8,
  "storage.free_reserve_mb": 20,
  "limits.control_throughput": 100000,
  // The default throughput over so small partitions makes four of them, without a limit on their use.
  "limits.partition_throughput": 100,
  "cluster.election_timeout_ms": electionTimeout,
  "cluster.heartbeat_ms": electionTimeout / 5,
  "cluster.replace_after_s": random() < 0.5 ? 5 : 300,
};

async function post(member, target, body) {
  const reply = await member.request("POST", target, { body: JSON.stringify(body), seconds: 20 });
  if (reply.status !== 201 && reply.status !== 409) throw new Error(`POST ${target}: ${reply.status} ${reply.text}`);
}

// {partition -> lsn} of a node's replicas of the container.
async function replicasOf(cluster, member) {
  const { cluster: { node, replicaSets } } = await cluster.status(member);
  const here = replicaSets.filter(({ container }) => container === "torture/items")
    .map(({ id, members }) => [id, members.find((one) => one.node === node)?.applied]);
  return new Map(here.filter(([, applied]) => applied !== undefined));
}
// When every node has a replica of every partition; all at the same place if `equal`.
function replicasEverywhere(cluster, equal) {
  return async () => {
    const found = await Promise.all(cluster.members.map((member) => replicasOf(cluster, member).catch(() => new Map())));
    if (found.some((one) => one.size < 4)) return false;
    return !equal || [...found[0]].every(([id, lsn]) => found.every((one) => one.get(id) === lsn));
  };
}

class Run {
  constructor(cluster) {
    this.cluster = cluster;
    this.record = new Record();
    this.schedule = []; // what was done, for the report
    this.stopped = false;
    const loadRandom = randomFrom(seed + 1);
    const sender = new Sender(cluster, loadRandom, this.record);
    this.registers = new Registers(sender, this.record);
    this.writers = Array.from({ length: 8 }, (_, i) => new Writer(sender, this.record, `w${i}`));
    this.sessions = Array.from({ length: 3 }, (_, i) => new Session(sender, this.record, `session${i}`));
    this.sdk = new SdkLoad(cluster, loadRandom, this.record);
  }
  note(line) {
    this.schedule.push(`${elapsed().padStart(7)} s  ${line}`);
    if (long) console.log(this.schedule.at(-1));
  }

  async prepare() {
    const [first] = this.cluster.members;
    await post(first, "/dbs", { id: "torture" });
    await post(first, "/dbs/torture/colls", { id: "items", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } });
    await until("every node has all partitions", replicasEverywhere(this.cluster, false), 30);
    this.sdk.connect();
  }
  startLoad() {
    const goes = () => !this.stopped;
    const lanes = [];
    for (let i = 0; i < this.registers.lanes; i += 1) lanes.push(this.registers.lane(goes));
    for (const one of [...this.writers, ...this.sessions]) lanes.push(one.lane(goes));
    for (let i = 0; i < 3; i += 1) lanes.push(this.sdk.lane(i, goes));
    this.load = Promise.all(lanes);
    this.load.catch((error) => this.record.complain(`a client broke: ${error.stack}`));
  }

  async faults(until) {
    for (const fault of schedule(this.cluster, random, values.only)) {
      await pause(200 + random() * (long ? 4000 : 800));
      if (performance.now() > until) return;
      const lasts = long && random() < 0.3 ? 4000 + random() * 10_000 : 800 + random() * 1700;
      await this.fault(fault, Math.min(lasts, Math.max(500, until - performance.now())));
    }
  }
  async fault(fault, lasts) {
    this.cluster.calm = false;
    const start = performance.now();
    const before = this.record.acknowledged;
    const { says, end } = await fault.begin();
    await pause(lasts);
    const during = this.record.acknowledged - before;
    const silent = performance.now() - Math.max(start, this.record.lastWrite);
    const healing = performance.now();
    await end();
    this.note(`${fault.name}: ${says}; ${((healing - start) / 1000).toFixed(1)} s with ${during} writes, healed in ${((performance.now() - healing) / 1000).toFixed(1)} s`);
    if (fault.quorum && silent > 8000) this.record.complain(`${fault.name} (${says}): no write for ${(silent / 1000).toFixed(1)} s, with a quorum alive`);
  }

  async settle() {
    this.cluster.calm = true;
    const healed = performance.now();
    const count = this.record.acknowledged;
    await until("writes go on after all is healed", () => this.record.acknowledged > count + 50, settleSeconds);
    this.note(`all healed; 50 writes ${((performance.now() - healed) / 1000).toFixed(1)} s later`);
    this.stopped = true;
    await this.load;
    this.sdk.close();
    await until("all replicas have applied everything", replicasEverywhere(this.cluster, true), settleSeconds).catch(async (error) => {
      const found = await Promise.all(this.cluster.members.map((member) => replicasOf(this.cluster, member).catch((why) => why.message)));
      throw new Error(`${error.message}: ${found.map((one, i) => `n${i + 1}: ${one instanceof Map ? [...one].map(([id, lsn]) => `${id}@${lsn}`).join(" ") : one}`).join("; ")}`);
    });
    this.note("all replicas have applied everything");
  }

  // Every node serves everything, and what it has itself is the same everywhere.
  async check() {
    await this.registers.finish();
    report.claim("what was told to clients is consistent", this.record.wrong);
    for (const member of this.cluster.members) {
      const strong = await readFeed(member);
      const byKey = groupBy(strong);
      const wrong = [...this.writers, ...this.sessions].flatMap((one) => one.check(byKey.get(one.pk) ?? []));
      wrong.push(...this.sdk.check(strong));
      report.claim(`${member.name} serves all that was acknowledged, and nothing else`, wrong);
    }
    const count = await this.compare();
    for (const member of this.cluster.members) {
      const difference = member.log().split("\n").filter((line) => /differ|corrupt/i.test(line));
      report.claim(`${member.name} ended only when it was killed, and found no difference`, [...member.deaths, ...difference]);
    }
    return count;
  }

  // What each node has itself, read while nothing was applied anywhere: a request without an answer may still be tried
  // by the node that got it.
  async compare() {
    const places = async () => JSON.stringify(await Promise.all(this.cluster.members.map(async (member) => [...(await replicasOf(this.cluster, member))])));
    let texts;
    await until("replicas rest while they are read", async () => {
      const before = await places();
      texts = [];
      for (const member of this.cluster.members) {
        const own = await readFeed(member, { headers: { "x-ms-consistency-level": "Eventual" } });
        texts.push(new Map(own.map((item) => [`${item.pk}/${item.id}`, JSON.stringify(item)])));
      }
      return (await replicasEverywhere(this.cluster, true)()) && before === (await places());
    }, settleSeconds);
    const [first, ...others] = texts;
    for (const [i, text] of others.entries()) {
      const wrong = [];
      for (const [key, item] of first) if (text.get(key) !== item) wrong.push(`${key}: n1 has ${item}, n${i + 2} ${text.get(key) ?? "nothing"}`);
      for (const key of text.keys()) if (!first.has(key)) wrong.push(`${key}: only n${i + 2} has it`);
      report.claim(`the replicas of n${i + 2} are those of n1`, wrong);
    }
    return first.size;
  }
}
function groupBy(items) {
  const out = new Map();
  for (const item of items) out.set(item.pk, [...(out.get(item.pk) ?? []), item]);
  return out;
}

const folder = values.folder ?? temporaryFolder();
const network = makeNetwork();
const cluster = new Cluster({ network, folder, settings });
const run = new Run(cluster);
let left = 0;
try {
  report.claim("the checker knows right from wrong", selfTest());
  await cluster.start();
  if (!cluster.mounted) report.skip(`power cuts and full disks, as nothing can be mounted here: ${cluster.noMount}`);
  await run.prepare();
  run.note(`four nodes serve; election time-out ${electionTimeout} ms, replaced after ${settings["cluster.replace_after_s"]} s`);
  run.startLoad();
  await run.faults(began + (seconds - 7) * 1000);
  await run.settle();
  left = await run.check();
} catch (error) {
  run.stopped = true;
  report.claim("what was told to clients is consistent", run.record.wrong);
  report.claim("no node ended by itself", cluster.members.flatMap(({ deaths }) => deaths));
  report.claim(`the run comes to its end`, [`${error.stack}`]);
} finally {
  await cluster.remove();
}

if (report.failed > 0) {
  console.log(`seed ${seed}; what was done:`);
  for (const line of run.schedule) console.log(`  ${line}`);
  console.log(`settings: ${JSON.stringify(settings)}`);
  console.log(`the nodes' logs: ${path.join(folder, "n*.log")}`);
} else {
  rmSync(folder, { recursive: true, force: true });
}
const { record, registers, sdk } = run;
const counts = [...record.counts].sort((a, b) => b[1] - a[1]).map(([what, count]) => `${what}: ${count}`);
console.log(`${run.schedule.length} notes, ${record.acknowledged} acknowledged writes, ${left} items at the end, ${registers.checked} histories` +
  `${registers.tooLong > 0 ? ` (${registers.tooLong} too long to check)` : ""}, ${sdk.done} lives by the SDK (${[...sdk.errors].map(([what, count]) => `${what}: ${count}`).join(", ")})`);
console.log(`answers: ${counts.join(", ")}; slowest ${(record.longest / 1000).toFixed(1)} s; starts that failed: ${cluster.members.map(({ refusals }) => refusals).join(" ")}`);
console.log(`${elapsed()} s, seed ${seed}`);
report.close();
process.exit();
