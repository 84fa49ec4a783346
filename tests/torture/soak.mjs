// Four real nodes whose partitions split, merge and move all the time, by hand and by the balancer, while the official
// client writes and reads through all of them. Nobody kills anything: no request may fail that the client does not
// repeat by itself, nothing acknowledged is lost, no feed shows an item twice or misses one, and in the end the totals
// are exact and all replicas equal.
//
//   soak.mjs [--seconds 60] [--seed N] [--folder F]
// Three containers, with the same clients on each:
//   hand    its partitions are split and merged by the commands of an operator
//   scale   its throughput is raised and lowered
//   grow    it grows beyond the limit of a partition and is emptied again
// What clients do comes from the seed; when it meets a change depends on the clock. When something is wrong the nodes'
// logs are kept in the folder.
import { copyFileSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { parseArgs } from "node:util";
import { Report, randomFrom } from "../crash/workload.mjs";
import { Cluster } from "../support/cluster.mjs";
import { emulatorKey, run as runProgram, temporaryFolder, until } from "../support/server.mjs";

const { CosmosClient } = createRequire(new URL("../clients/package.json", import.meta.url))("@azure/cosmos");
const options = { seconds: { type: "string", default: "60" }, seed: { type: "string" }, folder: { type: "string" } };
const { values } = parseArgs({ options });
const seconds = Number(values.seconds);
const seed = Number(values.seed ?? Math.floor(Math.random() * 2 ** 31));
const random = randomFrom(seed);
const pick = (list) => list[Math.floor(random() * list.length)];
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const began = performance.now();
const elapsed = () => ((performance.now() - began) / 1000).toFixed(1);
const report = new Report("soak");

const unit = 20000; // RU/s of a partition
const settings = {
  "account.consistency": "Strong",
  "cluster.replicas": 3, // of four nodes, so that there is somewhere to move to
  "cluster.check_interval_s": 3,
  "limits.partition_storage_mb": 1,
  "limits.partition_throughput": unit,
  "balancer.interval_ms": 200,
  "balancer.merge_after_s": 1,
  "storage.write_buffer_mb": 2,
};

// What went wrong, how long clients waited, and what was done to partitions.
class Journal {
  wrong = [];
  failures = new Map(); // text -> how often
  counts = new Map();
  longest = new Map(); // kind of request -> [ms, what]
  long = 0; // waits of more than a second
  moves = 0;

  count(what) {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
  }
  complain(line) {
    this.wrong.push(`${elapsed()} s: ${line}`);
  }
  fail(what, error) {
    const text = `${what}: ${error.code ?? error.name} ${`${error.message}`.slice(0, 200)}`;
    if (!this.failures.has(text)) this.failures.set(text, { first: elapsed(), times: 0 });
    this.failures.get(text).times += 1;
  }
  // The result of `action`, whose time counts as a client's; undefined if it failed.
  async timed(what, action) {
    const start = performance.now();
    try {
      const result = await action();
      this.count(what.split(" ")[0]);
      return result;
    } catch (error) {
      this.fail(what.split(" ")[0], error);
      return undefined;
    } finally {
      const took = performance.now() - start;
      const kind = what.split(" ")[0];
      if (took > (this.longest.get(kind)?.[0] ?? 0)) this.longest.set(kind, [took, `${what}, from ${((start - began) / 1000).toFixed(1)} s`]);
      if (took > 1000 && kind !== "bulk") this.long += 1; // the client itself waits a second before it sends a part again
    }
  }
}

// What one client knows of an item; only that client changes it, one request at a time.
class Entry {
  v = 0; // the version that was acknowledged last
  sent = 0;
  etag = undefined; // undefined: it is not there
  bytes = 0;
  presentSince = Infinity;
  absentSince = 0;
  busy = false; // a request that makes or deletes it is on its way
  unsure = false; // a request failed: anything may be

  constructor(lane, n) {
    this.pk = `${lane} ${n}`;
    this.id = `i${n}`;
  }
  get there() {
    return this.etag !== undefined;
  }
  next(bytes) {
    this.sent += 1;
    this.bytes = bytes;
    return { id: this.id, pk: this.pk, v: this.sent, text: "x".repeat(bytes) };
  }
  written(etag) {
    if (!this.there) this.presentSince = performance.now();
    this.v = this.sent;
    this.etag = etag;
    this.busy = false;
  }
  deleted() {
    this.etag = undefined;
    this.presentSince = Infinity;
    this.absentSince = performance.now();
    this.busy = false;
  }
  doubt() {
    this.unsure = true;
    this.busy = false;
  }
}

// One container, with what is known to be in it.
class Field {
  entries = new Map(); // "pk/id" -> Entry
  constructor(id, journal) {
    this.id = id;
    this.journal = journal;
  }
  async make(clients, throughput) {
    const { database } = await clients[0].databases.createIfNotExists({ id: "soak" });
    await database.containers.create({ id: this.id, partitionKey: "/pk", throughput });
    this.containers = clients.map((client) => client.database("soak").container(this.id));
  }
  // It, through any node.
  get any() {
    return pick(this.containers);
  }
  add(lane, n) {
    const entry = new Entry(lane, n);
    this.entries.set(`${entry.pk}/${entry.id}`, entry);
    return entry;
  }
  complain(line) {
    this.journal.complain(`${this.id}: ${line}`);
  }
  timed(what, action) {
    return this.journal.timed(`${what} in ${this.id}`, action);
  }
  ranges() {
    return this.timed("ranges", async () => (await this.any.readPartitionKeyRanges().fetchAll()).resources);
  }

  // What a feed that begins now must show at least.
  expectation() {
    const start = performance.now();
    const versions = new Map();
    for (const [key, { there, v, unsure }] of this.entries) if (there && !unsure) versions.set(key, v);
    return { start, versions };
  }
  // Compares what a feed showed with what was there all the time since then.
  judge(what, { start, versions }, found) {
    const seen = new Set();
    for (const { pk, id, v } of found) {
      const key = `${pk}/${id}`;
      const entry = this.entries.get(key);
      if (seen.has(key)) this.complain(`${what} showed ${key} twice`);
      seen.add(key);
      if (entry === undefined) this.complain(`${what} showed ${key}, which nobody wrote`);
      else if (entry.unsure) continue;
      else if (!entry.there && !entry.busy && entry.absentSince < start) this.complain(`${what} showed ${key}, which was deleted`);
      else if (v > entry.sent || v < (versions.get(key) ?? 0)) this.complain(`${what} showed ${key} with ${v} after ${versions.get(key)} was acknowledged`);
    }
    for (const [key, entry] of this.entries) {
      const always = entry.there && !entry.busy && !entry.unsure && entry.presentSince < start;
      if (always && !seen.has(key)) this.complain(`${what} missed ${key}`);
    }
  }
}

// Point operations on items of its own.
class Writer {
  constructor(field, lane) {
    this.field = field;
    this.entries = Array.from({ length: 40 }, (_, n) => field.add(lane, n));
  }
  async lane(goes) {
    while (goes()) {
      const entry = pick(this.entries);
      await (entry.unsure ? this.learn(entry) : this.step(entry));
    }
  }
  step(entry) {
    if (!entry.there) return random() < 0.8 ? this.write("create", entry) : this.read(entry);
    const dice = random();
    if (dice < 0.35) return this.read(entry);
    if (dice < 0.6) return this.write("upsert", entry);
    if (dice < 0.8) return this.write("replace", entry);
    if (dice < 0.92) return this.remove(entry);
    return dice < 0.96 ? this.refused(entry, "create", 409) : this.refused(entry, "stale", 412);
  }
  send(how, { id, pk, etag }, body) {
    const container = this.field.any;
    if (how === "create") return container.items.create(body);
    if (how === "upsert") return container.items.upsert(body);
    const accessCondition = { type: "IfMatch", condition: how === "stale" ? '"stale"' : etag };
    return container.item(id, pk).replace(body, { accessCondition });
  }
  async write(how, entry) {
    const { field } = this;
    entry.busy = !entry.there;
    const body = entry.next(20 + Math.floor(random() * 400));
    const reply = await field.timed(`${how} ${entry.pk}`, () => this.send(how, entry, body));
    if (reply === undefined) return entry.doubt();
    if (reply.resource?.v !== entry.sent) field.complain(`${how} of ${entry.pk}: sent ${entry.sent}, told ${reply.resource?.v}`);
    return entry.written(reply.etag);
  }
  async remove(entry) {
    entry.busy = true;
    const reply = await this.field.timed(`delete ${entry.pk}`, () => this.field.any.item(entry.id, entry.pk).delete());
    return reply === undefined ? entry.doubt() : entry.deleted();
  }
  async read(entry) {
    const reply = await this.field.timed(`read ${entry.pk}`, () => this.field.any.item(entry.id, entry.pk).read());
    if (reply === undefined) return;
    const { resource } = reply;
    const right = entry.there ? resource?.v === entry.v && resource._etag === entry.etag : reply.statusCode === 404;
    if (!right) this.field.complain(`a read of ${entry.pk} gave ${reply.statusCode} ${resource?.v}, ${entry.there ? `${entry.v} was acknowledged` : "it was deleted"}`);
  }
  // What must be refused, with this status.
  async refused(entry, how, status) {
    const body = { id: entry.id, pk: entry.pk, v: -1 };
    const code = await this.field.timed(`refused-${how} ${entry.pk}`, () =>
      this.send(how, entry, body).then(({ statusCode }) => statusCode, (error) => {
        if (error.code !== status) throw error;
        return status;
      }));
    if (code !== undefined && code !== status) this.field.complain(`${how} of ${entry.pk} was answered with ${code} instead of ${status}`);
  }
  // After a failure, which was reported already.
  async learn(entry) {
    const reply = await this.field.timed(`read ${entry.pk}`, () => this.field.any.item(entry.id, entry.pk).read());
    if (reply === undefined) return;
    if (reply.statusCode === 404) entry.deleted();
    else {
      entry.presentSince = performance.now();
      entry.written(reply.resource._etag);
      entry.v = reply.resource.v;
    }
    entry.unsure = false;
  }
}

// Bulk operations on items of its own: all of them are written again and again, or, if it grows, made and deleted.
class Bulk {
  constructor(field, { grows = false } = {}) {
    this.field = field;
    this.grows = grows;
    this.bytes = grows ? 6000 : 100;
    this.entries = Array.from({ length: grows ? 500 : 80 }, (_, n) => field.add("bulk", n));
  }
  async lane(goes) {
    for (let round = 0; goes(); round += 1) {
      for (let at = 0; at < this.entries.length && goes(); at += 40) {
        await this.send(this.entries.slice(at, at + 40), this.grows ? (round % 2 === 0 ? "Upsert" : "Delete") : undefined);
      }
      if (this.grows) await pauseWhile(3000, goes);
    }
  }
  operation(entry, wanted) {
    const type = !entry.there ? pick(["Create", "Upsert"]) : wanted ?? pick(["Upsert", "Replace", "Read", "Delete"]);
    const common = { operationType: type, partitionKey: entry.pk };
    if (type === "Read" || type === "Delete") return { ...common, id: entry.id };
    const resourceBody = entry.next(this.bytes);
    return type === "Replace" ? { ...common, id: entry.id, resourceBody, ifMatch: entry.etag } : { ...common, resourceBody };
  }
  async send(entries, wanted) {
    const chosen = entries.filter((entry) => wanted !== "Delete" || entry.there || entry.unsure);
    if (chosen.length === 0) return;
    const operations = chosen.map((entry) => this.operation(entry, entry.unsure ? "Upsert" : wanted));
    for (const [i, entry] of chosen.entries()) entry.busy = !entry.there || operations[i].operationType === "Delete";
    const results = await this.field.timed("bulk", () => this.field.any.items.executeBulkOperations(operations));
    for (const [i, entry] of chosen.entries()) this.settle(entry, operations[i].operationType, results?.[i]);
  }
  settle(entry, type, result) {
    if (result === undefined) return entry.doubt();
    const { response, error } = result;
    const expected = { Create: [201], Upsert: entry.there ? [200] : [201], Replace: [200], Read: [200], Delete: [204] }[type];
    if (response === undefined || (!entry.unsure && !expected.includes(response.statusCode)) || response.statusCode >= 300) {
      this.field.journal.fail(`bulk ${type}`, error ?? { code: response?.statusCode, message: JSON.stringify(response) });
      return entry.doubt();
    }
    entry.unsure = false;
    entry.busy = false;
    if (type === "Delete") return entry.deleted();
    if (type !== "Read") return entry.written(response.eTag);
    if (response.resourceBody?.v !== entry.v) this.field.complain(`a bulk read of ${entry.pk} gave ${response.resourceBody?.v}, ${entry.v} was acknowledged`);
    return undefined;
  }
}

// Feeds of everything, page by page.
class Reader {
  constructor(field) {
    this.field = field;
  }
  async lane(goes) {
    const kinds = [this.feed, this.query, this.hop];
    for (let turn = 0; goes(); turn += 1) {
      const kind = kinds[turn % kinds.length];
      const expectation = this.field.expectation();
      const found = await this.field.timed(kind.name, () => kind.call(this));
      if (found !== undefined) this.field.judge(`a ${kind.name}`, expectation, found);
    }
  }
  async feed() {
    return (await this.field.any.items.readAll({ maxItemCount: 10 + Math.floor(random() * 60) }).fetchAll()).resources;
  }
  async query() {
    return (await this.field.any.items.query("SELECT * FROM c WHERE c.v > 0", { maxItemCount: 30 }).fetchAll()).resources;
  }
  // Each page through another node.
  async hop() {
    const found = [];
    let continuationToken;
    do {
      const page = await this.field.any.items.readAll({ maxItemCount: 25, continuationToken }).fetchNext();
      found.push(...(page.resources ?? []));
      ({ continuationToken } = page);
    } while (continuationToken);
    return found;
  }
}

async function pauseWhile(ms, goes) {
  const end = performance.now() + ms;
  while (goes() && performance.now() < end) await pause(50);
}

// Those who change partitions.
class Operators {
  constructor(cluster, journal) {
    this.cluster = cluster;
    this.journal = journal;
    this.refusals = new Map(); // what an operator was told -> how often
  }
  async command(...args) {
    const { code, err } = await runProgram([...args.map(String), "--data", pick(this.cluster.members).data]);
    if (code !== 0) {
      const text = err.trim().replace(/[0-9]+/g, "N").slice(0, 160);
      this.refusals.set(text, (this.refusals.get(text) ?? 0) + 1);
    }
    return code === 0;
  }
  // In bursts: a bulk request of the client waits a second before it tries a new range, and gives up after ten tries.
  async hand(field, goes) {
    while (goes()) {
      const end = performance.now() + 3000;
      while (goes() && performance.now() < end) {
        await this.handOne(field);
        await pauseWhile(200, goes);
      }
      await pauseWhile(4000, goes);
    }
  }
  async handOne(field) {
    const list = (await field.ranges()) ?? [];
    if (list.length === 0) return;
    const few = list.length < 2 || (list.length < 8 && random() < 0.6);
    const { id } = pick(few ? list : list.slice(0, -1));
    await this.command("partition", few ? "split" : "merge", id);
  }
  async scale(field, goes) {
    for (let turn = 0; goes(); turn += 1) {
      const throughput = unit * (turn % 2 === 0 ? 4 : 1);
      await this.journal.timed("scale", async () => {
        const { offer } = await field.any.readOffer();
        await offer.replace({ ...(await offer.read()).resource, content: { offerThroughput: throughput } });
      });
      await pauseWhile(4000, goes);
    }
  }
  async move(goes) {
    while (goes()) {
      const { cluster } = await pick(this.cluster.members).status();
      const sets = cluster.replicaSets.filter(({ container, members }) => container?.startsWith("soak/") && members.length === 3);
      if (sets.length > 0) await this.moveOne(pick(sets), cluster.nodes, goes);
      await pauseWhile(200, goes);
    }
  }
  async moveOne({ id, members }, nodes, goes) {
    const has = members.map(({ node }) => node);
    const from = pick(has);
    const to = pick(nodes.filter((node) => !has.includes(node.id))).id;
    if (!(await this.command("partition", "move", id, "--from", from, "--to", to))) return;
    const end = performance.now() + 5000;
    while (goes() && performance.now() < end) {
      const { cluster } = await this.cluster.first.status();
      const now = cluster.replicaSets.find((set) => set.id === id)?.members.map(({ node }) => node);
      if (now === undefined) return; // it was split or merged meanwhile
      if (now.includes(to) && !now.includes(from)) {
        this.journal.moves += 1;
        return;
      }
      await pause(50);
    }
  }
}

class Run {
  journal = new Journal();
  stopped = false;
  constructor(cluster) {
    this.cluster = cluster;
    this.clients = cluster.members.map(({ endpoint }) => new CosmosClient({ endpoint, key: emulatorKey }));
    this.fields = ["hand", "scale", "grow"].map((id) => new Field(id, this.journal));
    this.operators = new Operators(cluster, this.journal);
  }
  async start() {
    // What is split by hand has more partitions than it needs at times, and fewer: the balancer undoes both.
    for (const field of this.fields) await field.make(this.clients, field.id === "hand" ? 4 * unit : unit);
    const goes = () => !this.stopped;
    const [hand, scale] = this.fields;
    const lanes = [this.operators.hand(hand, goes), this.operators.scale(scale, goes), this.operators.move(goes)];
    for (const field of this.fields) {
      const clients = [new Writer(field, "one"), new Writer(field, "two"), new Bulk(field, { grows: field.id === "grow" }), new Reader(field)];
      lanes.push(...clients.map((client) => client.lane(goes)));
    }
    this.load = Promise.all(lanes);
    this.load.catch((error) => this.journal.complain(`a client broke: ${error.stack}`));
  }
  async settle() {
    this.stopped = true;
    await this.load;
    await until("the balancer is paused", () => this.operators.command("balancer", "pause"));
    await until("every partition has three replicas that are up to date", async () => {
      const { replicaSets, moving } = (await this.cluster.first.status()).cluster;
      this.unwell = replicaSets.filter(({ id, members }) => id !== "catalog" && members.filter(({ alive, lag }) => alive && lag === 0).length !== 3);
      return moving === 0 && this.unwell.length === 0;
    }, 60).catch((error) => {
      throw new Error(`${error.message}: ${JSON.stringify(this.unwell)}`);
    });
  }

  failures() {
    return [...this.journal.failures].map(([text, { first, times }]) => `${text} (${times} times, first at ${first} s)`);
  }
  async check() {
    const { journal } = this;
    report.claim("every read and every feed showed what was acknowledged", journal.wrong);
    report.claim("no request failed", this.failures());
    for (const field of this.fields) {
      for (const [i, container] of field.containers.entries()) {
        report.claim(`n${i + 1} serves exactly what was acknowledged in ${field.id}`, await this.compare(field, container));
        report.claim(`the replicas that n${i + 1} reads by itself in ${field.id} are equal`, await this.compare(field, container, "Eventual"));
      }
      report.claim(`the totals of ${field.id} are exact`, await this.totals(field));
    }
    for (const [i, member] of this.cluster.members.entries()) {
      const lines = member.log().split("\n").filter((line) => /differ|corrupt|\berror\b/i.test(line));
      report.claim(`n${i + 1} runs and found no difference`, member.alive() ? lines : ["it ended", ...lines]);
    }
    const { splits, merges } = this.changes();
    const least = Math.max(3, Math.floor(seconds / 15));
    report.claim("partitions were split, merged and moved all the time",
      Math.min(splits, merges, journal.moves) >= least ? [] : [`${splits} splits, ${merges} merges, ${journal.moves} moves; at least ${least} of each`]);
  }
  async compare(field, container, consistencyLevel) {
    const wrong = [];
    const left = new Map([...field.entries].filter(([, { there }]) => there));
    for (const { pk, id, v, _etag } of (await container.items.readAll({ maxItemCount: 100, consistencyLevel }).fetchAll()).resources) {
      const entry = left.get(`${pk}/${id}`);
      if (entry === undefined) wrong.push(`${pk}/${id} is there (once more)`);
      else if (!entry.unsure && (entry.v !== v || entry.etag !== _etag)) wrong.push(`${pk}/${id} is ${v}, ${entry.v} was acknowledged`);
      left.delete(`${pk}/${id}`);
    }
    for (const [key, { unsure }] of left) if (!unsure) wrong.push(`${key} is gone`);
    return wrong;
  }
  // As those of a container into which the same items are written now.
  async totals(field) {
    const all = (await field.containers[0].items.readAll().fetchAll()).resources;
    const { container } = await this.clients[0].database("soak").containers.create({ id: `${field.id}-again`, partitionKey: "/pk", throughput: unit });
    for (let at = 0; at < all.length; at += 20) {
      await Promise.all(all.slice(at, at + 20).map(({ id, pk, v, text }) => container.items.create({ id, pk, v, text })));
    }
    const { databases } = await this.cluster.first.status();
    const { containers } = databases.find(({ id }) => id === "soak");
    const [is, again] = [field.id, container.id].map((name) => {
      const { partitions } = containers.find(({ id }) => id === name);
      return { items: partitions.reduce((sum, { items }) => sum + items, 0), bytes: partitions.reduce((sum, { bytes }) => sum + bytes, 0) };
    });
    return is.items === again.items && is.bytes === again.bytes ? [] : [`${JSON.stringify(is)}, written again ${JSON.stringify(again)}`];
  }
  changes() {
    const lines = this.cluster.members.flatMap((member) => member.log().split("\n"));
    const count = (text) => lines.filter((line) => line.includes(text)).length;
    return {
      splits: count("a partition is split"),
      merges: count("partitions are merged"),
      calledOff: count("a change of partitions is called off"),
      snapshots: count("snapshot installed"),
    };
  }
}

function keepLogs(cluster) {
  const folder = values.folder ?? temporaryFolder();
  mkdirSync(folder, { recursive: true });
  for (const [i, member] of cluster.members.entries()) copyFileSync(member.logFile, path.join(folder, `n${i + 1}.log`));
  return folder;
}

const cluster = await Cluster.start({ nodes: 4, settings });
const run = new Run(cluster);
const { journal, operators } = run;
try {
  await run.start();
  await until("it is time", () => performance.now() > began + seconds * 1000 || journal.wrong.length > 50, seconds + 10);
  await run.settle();
  await run.check();
} catch (error) {
  run.stopped = true;
  report.claim("every read and every feed showed what was acknowledged", journal.wrong);
  report.claim("no request failed", run.failures());
  report.claim("the run comes to its end", [`${error.stack}`.slice(0, 1000)]);
}
const changes = run.changes();
if (report.failed > 0) console.log(`the nodes' logs: ${keepLogs(cluster)}`);
await cluster.remove();
console.log(`${changes.splits} splits, ${changes.merges} merges, ${journal.moves} moves by hand, ${changes.calledOff} called off, ${changes.snapshots} snapshots`);
console.log(`requests: ${[...journal.counts].map(([what, count]) => `${what} ${count}`).join(", ")}`);
console.log(`operators were refused: ${[...operators.refusals].map(([why, count]) => `${count} x ${why}`).join("; ") || "never"}`);
const [[pauseMs, pauseWhat], ...others] = [...journal.longest.values()].sort((a, b) => b[0] - a[0]);
console.log(`the longest pause of a client: ${(pauseMs / 1000).toFixed(2)} s, ${pauseWhat}; ${journal.long} of more than a second, without bulk`);
for (const [ms, what] of others.slice(0, 6)) console.log(`    ${(ms / 1000).toFixed(2)} s  ${what}`);
console.log(`${elapsed()} s, seed ${seed}`);
report.close();
process.exit();
