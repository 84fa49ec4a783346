// Clients that write and read through all nodes, and keep a record of what they were told.
//
//   Registers   few items, all clients: the history of each must be linearizable
//   Writers     a logical partition each: nothing acknowledged is lost, nothing deleted comes back
//   Sessions    read their own writes, through any node, by their session token
//
// A write without an answer, or answered with 408 or 500, has an unknown outcome. One that was refused (429, 449, 503,
// no connection) was not done.
import { linearizable, TooLong } from "./linear.mjs";

export const docs = "/dbs/torture/colls/items/docs";
const keyOf = (pk) => ({ "x-ms-documentdb-partitionkey": JSON.stringify([pk]) });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// All items of a container, or of one logical partition, through one node.
export async function readFeed(member, { target = docs, pk, headers = {} } = {}) {
  const items = [];
  let continuation;
  do {
    const all = { "x-ms-max-item-count": "-1", ...headers, ...(pk === undefined ? {} : keyOf(pk)) };
    if (continuation) all["x-ms-continuation"] = continuation;
    const reply = await member.request("GET", target, { headers: all, seconds: 20 });
    if (reply.status !== 200) throw new Error(`the feed of ${pk ?? "all"} through ${member.name}: ${reply.status} ${reply.text.slice(0, 500)}`);
    items.push(...JSON.parse(reply.text).Documents);
    continuation = reply.headers["x-ms-continuation"];
  } while (continuation);
  return items;
}

// Sends requests to random nodes, more often to those that answered lately.
export class Sender {
  constructor(cluster, random, record) {
    Object.assign(this, { cluster, random, record });
    this.bad = new Map(); // member -> until when it is avoided
  }
  pick() {
    const { members } = this.cluster;
    const now = performance.now();
    const good = members.filter((member) => (this.bad.get(member) ?? 0) < now);
    const from = good.length > 0 && this.random() < 0.9 ? good : members;
    return from[Math.floor(this.random() * from.length)];
  }
  // {outcome: "answered", status, headers, text} or {outcome: "unknown" | "refused"}; all with `member`.
  async send(method, target, options = {}) {
    const member = options.member ?? this.pick();
    const began = performance.now();
    let reply;
    try {
      reply = await member.request(method, target, options);
    } catch (error) {
      this.bad.set(member, performance.now() + 500 + this.random() * 1500);
      this.record.count(error.unsent ? "no connection" : "no answer", member, began);
      return { outcome: error.unsent ? "refused" : "unknown", member, why: error.message };
    }
    this.record.count(reply.status, member, began);
    if ([429, 449, 503].includes(reply.status)) return { outcome: "refused", member, why: reply.text, ...reply };
    if (reply.status === 408 || reply.status >= 500) return { outcome: "unknown", member, why: reply.text, ...reply };
    return { outcome: "answered", member, ...reply };
  }
  // The time that a client takes to think, longer after something went wrong.
  think(reply) {
    return pause(reply?.outcome === "answered" ? this.random() * 8 : 20 + this.random() * 80);
  }
}

// What happened, for all clients together.
export class Record {
  constructor() {
    this.wrong = [];
    this.counts = new Map();
    this.acknowledged = 0;
    this.lastWrite = performance.now();
    this.longest = 0; // milliseconds that an answer took
  }
  count(what, member, began) {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
    if (typeof what === "number") this.longest = Math.max(this.longest, performance.now() - began);
  }
  wrote() {
    this.acknowledged += 1;
    this.lastWrite = performance.now();
  }
  complain(sentence) {
    this.wrong.push(sentence);
  }
}

// --- registers --------------------------------------------------------------------------------------------

const historyMax = 60;
const unknownMax = 5;

class Register {
  constructor(id) {
    this.id = id;
    this.pk = id;
    this.history = [];
    this.unknown = 0;
    this.open = 0;
    this.etags = new Map(); // etag -> value
  }
  get full() {
    return this.history.length >= historyMax || this.unknown >= unknownMax;
  }
}

export class Registers {
  constructor(sender, record, { count = 8, lanes = 10 } = {}) {
    Object.assign(this, { sender, record, lanes });
    this.made = 0;
    this.values = 0;
    this.events = 0;
    this.checked = 0;
    this.tooLong = 0;
    this.active = Array.from({ length: count }, () => this.next());
    this.retired = new Set();
  }
  next() {
    return new Register(`r${(this.made += 1)}`);
  }

  async lane(goes) {
    const { random } = this.sender;
    while (goes()) {
      const place = Math.floor(random() * this.active.length);
      const register = this.active[place];
      register.open += 1;
      const reply = await this.step(register);
      register.open -= 1;
      if (register.full && this.active[place] === register) {
        this.active[place] = this.next();
        this.retired.add(register);
      }
      if (register.open === 0 && this.retired.delete(register)) this.check(register);
      await this.sender.think(reply);
    }
  }
  choose(register) {
    const value = `v${(this.values += 1)}`;
    const at = this.sender.random();
    const [etag, expected] = [...register.etags].at(-1) ?? [];
    if (at < 0.45) return { kind: "read" };
    if (at < 0.6) return { kind: "create", value };
    if (at < 0.75) return { kind: "upsert", value };
    if (at < 0.9 && etag) return { kind: "replace", value, etag, expected };
    return { kind: "delete" };
  }
  // One operation, with its place in the history.
  async step(register, { operation = this.choose(register), member } = {}) {
    const { kind, value, etag } = operation;
    const headers = keyOf(register.pk);
    const body = value && JSON.stringify({ id: register.id, pk: register.pk, value });
    operation.call = this.events += 1;
    let reply;
    if (kind === "create" || kind === "upsert") {
      if (kind === "upsert") headers["x-ms-documentdb-is-upsert"] = "true";
      reply = await this.sender.send("POST", docs, { headers, body, member });
    } else {
      if (kind === "replace") headers["if-match"] = etag;
      const method = { read: "GET", replace: "PUT", delete: "DELETE" }[kind];
      reply = await this.sender.send(method, `${docs}/${register.id}`, { headers, body, member });
    }
    operation.end = this.events += 1;
    operation.node = reply.member.name;
    operation.status = reply.status ?? reply.why;
    if (reply.outcome === "refused") return reply;
    if (reply.outcome === "unknown") {
      operation.end = Infinity;
      if (kind !== "read") register.unknown += 1;
    } else {
      operation.result = this.resultOf(operation, reply, register);
      if (kind !== "read" && reply.status < 300) this.record.wrote();
    }
    register.history.push(operation);
    return reply;
  }
  resultOf({ kind, value }, { status, headers, text }, register) {
    if (status < 300 && kind !== "delete") register.etags.set(headers.etag, kind === "read" ? JSON.parse(text).value : value);
    const results = {
      read: { 200: () => JSON.parse(text).value, 404: () => null },
      create: { 201: () => "done", 409: () => "exists" },
      upsert: { 201: () => "created", 200: () => "replaced" },
      replace: { 200: () => "done", 412: () => "other", 404: () => "absent" },
      delete: { 204: () => "done", 404: () => "absent" },
    };
    const result = results[kind][status];
    if (result) return result();
    this.record.complain(`${kind} of ${register.id} was answered with ${status}: ${text.slice(0, 300)}`);
    return "?";
  }
  check(register) {
    this.checked += 1;
    try {
      if (linearizable(register.history)) return;
    } catch (error) {
      if (!(error instanceof TooLong)) throw error;
      this.tooLong += 1;
      return;
    }
    const lines = register.history.sort((a, b) => a.call - b.call).map(({ call, end, kind, value, expected, result, node, status }) =>
      `        ${call}..${end} ${node} ${kind} ${value ?? ""}${expected ? ` over ${expected}` : ""} -> ${result === undefined ? `unknown (${status})` : result}`);
    this.record.complain(`the history of ${register.id} is not linearizable:\n${lines.join("\n")}`);
  }
  // After the end: one more look through every node.
  async finish() {
    for (const register of [...this.active, ...this.retired]) {
      for (const member of this.sender.cluster.members) await this.step(register, { operation: { kind: "read" }, member });
      this.check(register);
    }
  }
}

// --- writers ----------------------------------------------------------------------------------------------

const liveMax = 150;

export class Writer {
  constructor(sender, record, pk) {
    Object.assign(this, { sender, record, pk });
    this.items = new Map(); // id -> etag, acknowledged
    this.touchy = new Set(); // a try without an answer may still come: never deleted, maybe never there
    this.unsure = new Set(); // ids of which nothing is known
    this.deleted = new Set();
    this.batches = []; // markers of whole batches, acknowledged
    this.turn = 0;
    this.text = "x".repeat(Math.floor(sender.random() * 1500));
  }
  async lane(goes) {
    while (goes()) {
      this.turn += 1;
      const reply = await this.step(goes);
      await this.sender.think(reply);
    }
  }
  step(goes) {
    const at = this.sender.random();
    if (this.items.size > liveMax || at < 0.3) {
      const id = [...this.items.keys()].find((one) => !this.touchy.has(one) && !one.startsWith("b"));
      if (id !== undefined && this.items.size > 10) return this.remove(id, goes);
    }
    if (at < 0.4) return this.batches.length > 10 ? this.removeBatch() : this.batch();
    if (at < 0.45 && this.items.size > 0) return this.again([...this.items.keys()].at(-1));
    return this.create(`c${this.turn}`, goes);
  }

  // Until it is known to be there. A conflict is right only if an earlier try may have been done.
  async create(id, goes) {
    const body = JSON.stringify({ id, pk: this.pk, text: this.text });
    for (;;) {
      const reply = await this.sender.send("POST", docs, { headers: keyOf(this.pk), body });
      if (reply.outcome === "unknown") {
        this.unsure.add(id);
        this.touchy.add(id);
      } else if (reply.status === 201) {
        this.unsure.delete(id);
        this.items.set(id, reply.headers.etag);
        this.record.wrote();
        return reply;
      } else if (reply.status === 409) {
        if (!this.touchy.has(id)) this.record.complain(`a first create of ${this.pk}/${id} through ${reply.member.name} was refused as a conflict`);
        this.unsure.delete(id);
        this.items.set(id, null);
        return reply;
      } else if (reply.outcome === "answered") {
        this.record.complain(`create of ${this.pk}/${id}: ${reply.status} ${reply.text.slice(0, 300)}`);
        return reply;
      } else if (!this.touchy.has(id)) {
        return reply; // not done
      }
      if (!goes()) return reply;
      await this.sender.think(reply);
    }
  }
  async again(id) {
    const body = JSON.stringify({ id, pk: this.pk, text: "again" });
    const reply = await this.sender.send("POST", docs, { headers: keyOf(this.pk), body });
    if (reply.status === 201) this.record.complain(`create of ${this.pk}/${id} was acknowledged twice, the second time by ${reply.member.name}`);
    return reply;
  }
  async remove(id, goes) {
    for (let first = true; ; first = false) {
      const reply = await this.sender.send("DELETE", `${docs}/${id}`, { headers: keyOf(this.pk) });
      if (reply.outcome === "unknown") {
        this.items.delete(id);
        this.unsure.add(id);
      } else if (reply.status === 204 || (reply.status === 404 && this.unsure.has(id))) {
        this.items.delete(id);
        this.unsure.delete(id);
        this.deleted.add(id);
        this.record.wrote();
        return reply;
      } else if (reply.outcome === "answered") {
        this.record.complain(`delete of ${this.pk}/${id} through ${reply.member.name}: ${reply.status} ${reply.text.slice(0, 300)}`);
        return reply;
      } else if (first) {
        return reply;
      }
      if (!goes()) return reply;
      await this.sender.think(reply);
    }
  }
  sendBatch(steps) {
    const headers = { ...keyOf(this.pk), "x-ms-cosmos-is-batch-request": "true", "x-ms-cosmos-batch-atomic": "true" };
    return this.sender.send("POST", docs, { headers, body: JSON.stringify(steps) });
  }
  idsOf(marker) {
    return ["a", "b", "c"].map((part) => `b${marker}${part}`);
  }
  // Three items or none.
  async batch() {
    const ids = this.idsOf(this.turn);
    const reply = await this.sendBatch(ids.map((id) => ({ operationType: "Create", resourceBody: { id, pk: this.pk, marker: this.turn, text: this.text } })));
    if (reply.outcome === "unknown") {
      for (const id of ids) this.unsure.add(id);
    } else if (reply.status === 200) {
      JSON.parse(reply.text).forEach((one, i) => this.items.set(ids[i], one.eTag));
      this.batches.push(this.turn);
      this.record.wrote();
    } else if (reply.outcome === "answered") {
      this.record.complain(`a batch of ${this.pk}: ${reply.status} ${reply.text.slice(0, 500)}`);
    }
    return reply;
  }
  async removeBatch() {
    const ids = this.idsOf(this.batches[0]);
    const reply = await this.sendBatch(ids.map((id) => ({ operationType: "Delete", id })));
    if (reply.outcome === "refused") return reply;
    this.batches.shift();
    for (const id of ids) {
      this.items.delete(id);
      (reply.outcome === "unknown" ? this.unsure : this.deleted).add(id);
    }
    if (reply.status === 200) this.record.wrote();
    else if (reply.outcome === "answered") this.record.complain(`the removal of a batch of ${this.pk}: ${reply.status} ${reply.text.slice(0, 500)}`);
    return reply;
  }

  // What is wrong with those items of the partition, as sentences.
  check(all) {
    const wrong = [];
    const found = new Map();
    for (const item of all) {
      if (found.has(item.id)) wrong.push(`${this.pk}/${item.id} is there twice`);
      found.set(item.id, item);
    }
    for (const [id, etag] of this.items) {
      const item = found.get(id);
      if (!item) wrong.push(`${this.pk}/${id} was acknowledged and is gone`);
      else if (etag !== null && item._etag !== etag && !this.touchy.has(id)) wrong.push(`${this.pk}/${id} has the etag ${item._etag}, acknowledged was ${etag}`);
      else if (item.text !== this.text) wrong.push(`${this.pk}/${id} has another content`);
    }
    const markers = new Map();
    for (const { id, marker } of found.values()) {
      if (this.deleted.has(id)) wrong.push(`${this.pk}/${id} was deleted and is there`);
      else if (!this.items.has(id) && !this.unsure.has(id)) wrong.push(`${this.pk}/${id} is there, but was never acknowledged nor in doubt`);
      if (marker !== undefined) markers.set(marker, (markers.get(marker) ?? 0) + 1);
    }
    for (const [marker, count] of markers) if (count !== 3) wrong.push(`${this.pk}: ${count} of 3 items of batch ${marker} are there`);
    return wrong;
  }
}

// --- sessions ---------------------------------------------------------------------------------------------

// One item with a counter that only this client writes, always over the version it knows: so it never goes back.
export class Session {
  constructor(sender, record, pk) {
    Object.assign(this, { sender, record, pk });
    this.sent = 0;
    this.acknowledged = 0;
    this.seen = 0;
    this.token = undefined;
    this.etag = undefined;
  }
  async lane(goes) {
    while (goes()) {
      let reply = this.etag ? await this.write() : await this.learn();
      if (reply.outcome === "answered" && this.token) reply = await this.read();
      await this.sender.think(reply);
    }
  }
  // By a Strong read, or by a first create.
  async learn() {
    const reply = await this.sender.send("GET", `${docs}/session`, { headers: keyOf(this.pk) });
    if (reply.status === 200) {
      this.etag = reply.headers.etag;
      const { v } = JSON.parse(reply.text);
      if (v < this.acknowledged) this.record.complain(`${this.pk}: a Strong read gave ${v} after ${this.acknowledged} was acknowledged`);
    } else if (reply.status === 404) {
      if (this.acknowledged > 0) this.record.complain(`${this.pk}: a Strong read found nothing after ${this.acknowledged} was acknowledged`);
      return this.send("POST", docs, {});
    }
    return reply;
  }
  write() {
    return this.send("PUT", `${docs}/session`, { "if-match": this.etag });
  }
  async send(method, target, headers) {
    const v = (this.sent += 1);
    const body = JSON.stringify({ id: "session", pk: this.pk, v });
    const reply = await this.sender.send(method, target, { headers: { ...keyOf(this.pk), ...headers }, body });
    this.etag = undefined;
    if (reply.outcome === "answered" && reply.status < 300) {
      this.acknowledged = v;
      this.etag = reply.headers.etag;
      this.token = reply.headers["x-ms-session-token"];
      this.record.wrote();
    }
    return reply;
  }
  // By the token, from any replica that has it.
  async read() {
    const headers = { ...keyOf(this.pk), "x-ms-consistency-level": "Session", "x-ms-session-token": this.token };
    const reply = await this.sender.send("GET", `${docs}/session`, { headers });
    if (reply.outcome !== "answered") return reply;
    if (reply.status !== 200) {
      if (reply.status !== 404 || reply.headers["x-ms-substatus"] !== "1002") {
        this.record.complain(`${this.pk}: a session read through ${reply.member.name}: ${reply.status} ${reply.text.slice(0, 300)}`);
      }
      return reply;
    }
    const { v } = JSON.parse(reply.text);
    if (v < this.acknowledged || v > this.sent) {
      this.record.complain(`${this.pk}: a session read through ${reply.member.name} gave ${v} after ${this.acknowledged} was acknowledged`);
    }
    if (reply.headers["x-ms-session-token"]) this.token = reply.headers["x-ms-session-token"];
    return reply;
  }
  check(all) {
    const v = all.find(({ id }) => id === "session")?.v ?? 0;
    return v >= this.acknowledged && v <= this.sent ? [] : [`${this.pk}/session is ${v}, acknowledged was ${this.acknowledged}, sent ${this.sent}`];
  }
}
