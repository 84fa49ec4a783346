// Writers that keep a record of what was acknowledged, and the check of what is there after a crash.
//
// Each writer has a logical partition of its own and one request under way: creates, an upsert with a counter,
// batches of three items with one marker, deletes. What is not answered may or may not have happened, whole.
import http from "node:http";
import { emulatorKey, sign } from "../support/server.mjs";

// mulberry32: a small random source, the same for the same seed.
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

export class Connection {
  constructor(port) {
    this.port = port;
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  }
  close() {
    this.agent.destroy();
  }
  // {status, headers, text}; rejected if there is no answer.
  send(method, path, { headers = {}, body } = {}) {
    const date = new Date().toUTCString();
    const all = {
      ...headers,
      "x-ms-version": "2020-07-15",
      "x-ms-date": date,
      authorization: sign({ method, path, date, key: emulatorKey }),
    };
    return new Promise((resolve, reject) => {
      const request = http.request({ host: "127.0.0.1", port: this.port, method, path, headers: all, agent: this.agent }, (reply) => {
        const chunks = [];
        reply.on("data", (chunk) => chunks.push(chunk));
        reply.on("error", reject);
        reply.on("aborted", () => reject(new Error("the answer broke off")));
        reply.on("end", () => resolve({ status: reply.statusCode, headers: reply.headers, text: Buffer.concat(chunks).toString() }));
      });
      request.setTimeout(20_000, () => request.destroy(new Error("no answer in 20 s")));
      request.on("error", reject);
      request.end(body);
    });
  }
}

export const docs = "/dbs/crash/colls/items/docs";
const keyOf = (pk) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([pk]) });

// The database and container that the workload writes to.
export async function prepare(port) {
  const connection = new Connection(port);
  for (const [path, body] of [
    ["/dbs", { id: "crash" }],
    ["/dbs/crash/colls", { id: "items", partitionKey: { paths: ["/pk"], kind: "Hash", version: 2 } }],
  ]) {
    const { status, text } = await connection.send("POST", path, { body: JSON.stringify(body) });
    if (status !== 201 && status !== 409) throw new Error(`POST ${path}: ${status} ${text}`);
  }
  connection.close();
}

// All items of a partition key, or of the container.
export async function readFeed(connection, pk) {
  const items = [];
  let continuation;
  do {
    const headers = { "x-ms-max-item-count": "-1", ...(pk === undefined ? {} : keyOf(pk)) };
    if (continuation) headers["x-ms-continuation"] = continuation;
    const reply = await connection.send("GET", docs, { headers });
    if (reply.status !== 200) throw new Error(`the feed of ${pk ?? "all"}: ${reply.status} ${reply.text.slice(0, 500)}`);
    items.push(...JSON.parse(reply.text).Documents);
    continuation = reply.headers["x-ms-continuation"];
  } while (continuation);
  return items;
}

class Writer {
  constructor(pk, random, text) {
    this.pk = pk;
    this.random = random;
    this.text = text;
    this.items = new Map(); // id -> etag of what was acknowledged; null: not yet
    this.unsure = null; // ids of the request without an answer
    this.unknown = new Set(); // ids of requests that were answered with an error
    this.counter = { sent: 0, acknowledged: 0 };
    this.next = 0;
    this.acknowledged = 0;
  }

  // One request. Its outcome goes into the record; rejected if there is no answer.
  async step(connection) {
    const turn = this.next++;
    if (turn % 4 === 1) return this.upsert(connection);
    if (turn % 4 === 2) return this.batch(connection, turn);
    const removable = turn % 4 === 3 ? [...this.items.keys()].filter((id) => id.startsWith("c") && !this.unknown.has(id)) : [];
    return removable.length > 3 ? this.remove(connection, removable) : this.create(connection, `c${turn}`);
  }

  async write(connection, ids, method, path, headers, body, apply) {
    this.unsure = { ids, method, path, headers, body };
    const reply = await connection.send(method, path, { headers: { ...keyOf(this.pk), ...headers }, body });
    if (reply.status >= 500 || reply.status === 408) {
      for (const one of ids) this.unknown.add(one); // outcome as little known as without an answer
      return reply.status;
    }
    if (reply.status > 299 || reply.status === 207) throw new Error(`${method} ${path} of ${this.pk}: ${reply.status} ${reply.text}`);
    apply(reply);
    this.unsure = null;
    this.acknowledged += 1;
    return reply.status;
  }

  create(connection, id) {
    const body = JSON.stringify({ id, pk: this.pk, text: this.text });
    return this.write(connection, [id], "POST", docs, {}, body, (reply) => this.items.set(id, reply.headers.etag));
  }
  upsert(connection) {
    const v = (this.counter.sent += 1);
    const body = JSON.stringify({ id: "counter", pk: this.pk, v });
    return this.write(connection, [], "POST", docs, { "x-ms-documentdb-is-upsert": "true" }, body, () => {
      this.counter.acknowledged = v;
    });
  }
  batch(connection, turn) {
    const ids = ["a", "b", "c"].map((part) => `b${turn}${part}`);
    const body = JSON.stringify(ids.map((id) => ({ operationType: "Create", resourceBody: { id, pk: this.pk, marker: turn, text: this.text } })));
    const headers = { "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" };
    return this.write(connection, ids, "POST", docs, headers, body, (reply) => {
      JSON.parse(reply.text).forEach((one, i) => this.items.set(ids[i], one.eTag));
    });
  }
  remove(connection, removable) {
    const id = removable[Math.floor(this.random() * removable.length)];
    return this.write(connection, [id], "DELETE", `${docs}/${id}`, {}, undefined, () => this.items.delete(id));
  }

  // What is wrong with the partition, as sentences. `sure`: what must be there; else the record itself.
  async check(connection, sure = this.record()) {
    const wrong = [];
    const found = new Map();
    for (const item of await readFeed(connection, this.pk)) {
      if (found.has(item.id)) wrong.push(`${this.pk}/${item.id} is there twice`);
      found.set(item.id, item);
    }
    const unsure = new Set(sure.unsure);
    for (const [id, etag] of sure.items) {
      if (unsure.has(id)) continue;
      if (!found.has(id)) wrong.push(`${this.pk}/${id} was acknowledged and is gone`);
      else if (found.get(id)._etag !== etag) wrong.push(`${this.pk}/${id} has the etag ${found.get(id)._etag}, acknowledged was ${etag}`);
      else if (found.get(id).text !== this.text) wrong.push(`${this.pk}/${id} has another content`);
    }
    for (const id of found.keys()) {
      if (id !== "counter" && !sure.items.has(id) && !unsure.has(id)) wrong.push(`${this.pk}/${id} is there, but was deleted or never written`);
    }
    const v = found.get("counter")?.v ?? 0;
    if (v < sure.counter || v > this.counter.sent) wrong.push(`${this.pk}/counter is ${v}, acknowledged was ${sure.counter}, sent ${this.counter.sent}`);
    const markers = new Map();
    for (const { marker } of found.values()) if (marker !== undefined) markers.set(marker, (markers.get(marker) ?? 0) + 1);
    for (const [marker, count] of markers) if (count !== 3) wrong.push(`${this.pk}: ${count} of 3 items of batch ${marker} are there`);
    this.found = found;
    return wrong;
  }
  record() {
    return { items: new Map(this.items), unsure: [...this.unknown, ...(this.unsure?.ids ?? [])], counter: this.counter.acknowledged };
  }

  // Sends the request without an answer again: a create must be refused if it is there, and done if it is not.
  // REQUIRES: check() was called.
  async repeat(connection) {
    const { unsure } = this;
    this.unsure = null;
    // A delete without an answer that happened: nothing to miss later.
    for (const id of unsure?.ids ?? []) if (!this.found.has(id)) this.items.delete(id);
    if (unsure?.method !== "POST" || unsure.ids.length !== 1) return [];
    const [id] = unsure.ids;
    const { status } = await connection.send("POST", docs, { headers: { ...keyOf(this.pk), ...unsure.headers }, body: unsure.body });
    const expected = this.found.has(id) ? 409 : 201;
    return status === expected ? [] : [`a repeated create of ${this.pk}/${id}: ${status} instead of ${expected}`];
  }
}

export class Workload {
  // `text`: what every item holds; by default `bytes` of one letter, which take next to nothing on the disk.
  constructor(port, { name, writers = 12, random, bytes = 200, text = "x".repeat(bytes) }) {
    this.port = port;
    this.writers = Array.from({ length: writers }, (_, i) => new Writer(`${name}-${i}`, random, text));
    this.statuses = new Map();
    this.failure = null;
    this.stopped = false;
  }
  get acknowledged() {
    return this.writers.reduce((sum, writer) => sum + writer.acknowledged, 0);
  }

  // Writes until stop(), or until there is no more answer. `afterError`: go on after an answer of 5xx.
  start({ goOn = false } = {}) {
    const write = async (writer) => {
      const connection = new Connection(this.port);
      try {
        while (!this.stopped) {
          const status = await writer.step(connection);
          this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
          if (status >= 500 && !goOn) return;
        }
      } catch (error) {
        if (!error.code && !/answer|hang up/.test(error.message)) this.failure ??= error;
      } finally {
        connection.close();
      }
    };
    this.done = Promise.all(this.writers.map(write));
  }
  async stop() {
    this.stopped = true;
    await this.done;
  }

  // REQUIRES: the writers have ended. `records`: what must be there, if it is less than the record.
  async check({ records, repeat = false } = {}) {
    const connection = new Connection(this.port);
    const wrong = this.failure ? [`${this.failure}`] : [];
    for (const [i, writer] of this.writers.entries()) {
      wrong.push(...(await writer.check(connection, records?.[i])));
      if (repeat) wrong.push(...(await writer.repeat(connection)));
    }
    connection.close();
    return wrong;
  }
  records() {
    return this.writers.map((writer) => writer.record());
  }
}

// Counts what was claimed, and prints what was wrong.
export class Report {
  constructor(title) {
    this.title = title;
    this.passed = 0;
    this.failed = 0;
    this.skipped = 0;
  }
  claim(sentence, wrong = []) {
    if (wrong.length === 0) {
      this.passed += 1;
      return;
    }
    this.failed += 1;
    console.log(`FAILED ${this.title}: ${sentence}`);
    for (const line of wrong.slice(0, 10)) console.log(`    ${line}`);
    if (wrong.length > 10) console.log(`    and ${wrong.length - 10} more`);
  }
  skip(reason) {
    this.skipped += 1;
    console.log(`SKIPPED ${this.title}: ${reason}`);
  }
  close() {
    if (this.skipped > 0) console.log(`${this.skipped} SKIPPED`);
    console.log(`${this.passed} passed, ${this.failed} failed`);
    process.exitCode = this.failed > 0 ? 1 : 0;
  }
}
