// A cluster of real orrery processes for tests. No packages.
//
//   const cluster = await Cluster.start({ nodes: 4 });
//   await cluster.members[1].kill();      // a Server as any other: stop, kill, up, request, log
//   await cluster.remove();
import assert from "node:assert/strict";
import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import { Server, temporaryFolder, until } from "./server.mjs";

const fast = {
  "cluster.election_timeout_ms": 600,
  "cluster.heartbeat_ms": 100,
  "cluster.join_timeout_s": 20,
  "limits.control_throughput": 100000,
  "storage.cache_mb": 16,
  "storage.write_buffer_mb": 8,
};

// One node. It finds its ports itself at the first start, and keeps them.
export class Member extends Server {
  #host;
  constructor({ data, dev = true, host = "127.0.0.1", port = 0, join = "", settings = {} } = {}) {
    super();
    this.dev = dev;
    this.#host = host;
    this.port = port;
    this.peerPort = 0;
    this.join = join;
    this.data = data ?? temporaryFolder();
    this.logFile = `${this.data}.log`;
    this.settings = { ...fast, ...settings };
  }
  get host() {
    return this.#host;
  }
  // For other nodes.
  get address() {
    return `${this.host}:${this.peerPort}`;
  }
  get id() {
    return JSON.parse(readFileSync(path.join(this.data, "node.json"), "utf8")).node;
  }
  args() {
    const join = this.join === "" ? [] : ["--join", this.join];
    return [...super.args(), "--listen", this.host, "--cluster-listen", this.address, ...join];
  }
  async healthy() {
    if (this.peerPort === 0) {
      if (!this.alive()) assert.fail(`the node ended at its start:\n${this.log().slice(-3000)}`);
      const where = this.#where();
      if (where?.cluster === undefined) return false;
      this.port = Number(new URL(where.endpoint).port);
      this.peerPort = Number(where.cluster.split(":").at(-1));
    }
    return super.healthy();
  }
  #where() {
    try {
      return JSON.parse(readFileSync(path.join(this.data, "server.json"), "utf8"));
    } catch {
      return undefined; // not there yet
    }
  }
  // What `orrery status` shows.
  async status() {
    const { status, json, text } = await this.request({ path: "/_orrery/status" });
    assert.equal(status, 200, text);
    return json;
  }
}

export class Cluster {
  members = [];

  // hosts: the address of each node; all then use one port for clients. data: of the first node.
  static async start({ nodes = 4, settings = {}, hosts = [], port = 0, data } = {}) {
    const cluster = new this();
    cluster.settings = settings;
    try {
      const first = await cluster.add({ host: hosts[0], port, data });
      const others = Array.from({ length: nodes - 1 }, (_, i) =>
        cluster.add({ host: hosts[i + 1], port: port && first.port }));
      await Promise.all(others);
    } catch (error) {
      await cluster.remove();
      throw error;
    }
    return cluster;
  }

  get first() {
    return this.members[0];
  }
  get running() {
    return this.members.filter((member) => member.alive());
  }
  // A new node, which joins those that there are.
  async add({ settings = {}, ...options } = {}) {
    const member = new Member({
      join: this.members.length === 0 ? "" : this.running[0].address,
      settings: { ...this.settings, ...settings },
      ...options,
    });
    this.members.push(member);
    await member.up();
    return member;
  }

  // Until every node that runs is known to be alive, and every set has `replicas` of them; gives that status.
  async settled(replicas, seconds = 20) {
    let last;
    const done = async () => {
      last = (await this.running[0].status()).cluster;
      const alive = last.nodes.filter((node) => node.alive).map(({ address }) => address);
      const sets = last.replicaSets.filter(({ id }) => id !== "catalog");
      return this.running.every(({ address }) => alive.includes(address)) && last.underReplicated === 0 && last.moving === 0 &&
        sets.every(({ members }) => members.filter(({ alive, lag }) => alive && lag === 0).length === replicas) && last;
    };
    try {
      return await until(`all sets have ${replicas} replicas`, done, seconds);
    } catch (error) {
      throw new Error(`${error.message}\n${JSON.stringify(last, null, 1)}`);
    }
  }
  // For `after`: ends all, and removes their data.
  async remove() {
    const ends = await Promise.allSettled(this.members.map(async (member) => {
      try {
        if (member.child !== undefined && member.alive()) await member.stop();
      } finally {
        rmSync(member.data, { recursive: true, force: true });
        rmSync(member.logFile, { force: true });
      }
    }));
    for (const { reason } of ends) if (reason !== undefined) throw reason;
  }
}
