// Four nodes as real processes, each with a small file system of its own where that can be mounted, and requests
// to any of them.
import { execFile, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import path from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { Mount } from "../crash/mounts.mjs";
import { binary, emulatorKey, freePort, sign, until } from "../support/server.mjs";

const cutScript = fileURLToPath(new URL("../crash/power_cut.py", import.meta.url));
const secret = "the secret of a torture test";
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export class Member {
  constructor(cluster, index) {
    this.cluster = cluster;
    this.index = index;
    this.name = `n${index + 1}`;
    this.logFile = path.join(cluster.folder, `${this.name}.log`);
    this.wanted = false; // whether it should run
    this.starts = 0;
    this.deaths = []; // ends that nobody asked for
    this.refusals = 0; // starts that failed
  }
  async prepare() {
    try {
      this.mount = new Mount("ext4", this.cluster.diskMegabytes);
      process.on("exit", () => this.removeMount());
      this.data = path.join(this.mount.folder, "data");
    } catch (error) {
      this.cluster.noMount = error.message;
      this.data = path.join(this.cluster.folder, this.name);
    }
    const { network } = this.cluster;
    this.address = network.address(this.index);
    this.port = network.parts ? 8081 : await freePort();
    this.peerPort = network.parts ? 7081 : await freePort();
    const options = { keepAlive: true, maxSockets: 64, rejectUnauthorized: false };
    this.agent = network.parts ? new https.Agent(options) : new http.Agent(options);
  }
  removeMount() {
    try {
      this.mount?.remove();
      this.mount = undefined;
    } catch (error) {
      console.log(`a file system is left behind: ${error.message}`);
    }
  }
  get endpoint() {
    return `${this.cluster.network.parts ? "https" : "http"}://${this.address}:${this.port}/`;
  }
  log() {
    return existsSync(this.logFile) ? readFileSync(this.logFile, "utf8") : "";
  }
  alive() {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  arguments() {
    const { network, settings, members } = this.cluster;
    const args = ["start", "--data", this.data, "--port", `${this.port}`, "--cluster-listen", `${this.address}:${this.peerPort}`];
    if (network.parts) args.push("--listen", this.address, "--set", `cluster.secret=${secret}`);
    else args.push("--dev");
    if (this.index > 0) args.push("--join", `${members[0].address}:${members[0].peerPort}`);
    for (const [name, value] of Object.entries(settings)) args.push("--set", `${name}=${value}`);
    return args;
  }
  spawn() {
    const [program, ...rest] = this.cluster.network.wrap(this.index, [binary, ...this.arguments()]);
    const log = openSync(this.logFile, "a");
    writeSync(log, `--- start ${(this.starts += 1)} at ${new Date().toISOString()}\n`);
    const child = spawn(program, rest, { stdio: ["ignore", log, log] });
    closeSync(log);
    running.add(child);
    this.child = child;
    this.serves = false;
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: `${error}` }));
      child.once("close", (code, signal) => {
        running.delete(child);
        if (this.child === child && this.wanted && (signal !== null || this.serves || this.cluster.calm)) {
          this.deaths.push(`${this.name} ended with ${signal ?? code}: ${this.log().slice(-1500)}`);
        }
        resolve({ code, signal });
      });
    });
  }
  // Starts it, again and again if it gives up at its start, until it serves.
  async up(seconds = 60) {
    this.wanted = true;
    const deadline = performance.now() + seconds * 1000;
    for (;;) {
      if (!this.wanted) return;
      if (!this.alive()) {
        if (this.starts > 0 && this.child?.exitCode > 0) this.refusals += 1;
        this.spawn();
      }
      if (await this.healthy()) {
        this.serves = true;
        return;
      }
      // One that gives up at its start is not started again at once.
      if (!this.alive()) await new Promise((resolve) => setTimeout(resolve, 500));
      if (performance.now() > deadline) throw new Error(`${this.name} does not serve ${seconds} s after its start:\n${this.log().slice(-2000)}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }
  async healthy() {
    return (await this.request("GET", "/healthz", { seconds: 2 }).catch(() => null))?.status === 200;
  }
  async kill() {
    this.wanted = false;
    this.child?.kill("SIGKILL");
    await this.ended;
  }
  signal(name) {
    this.child?.kill(name);
  }

  // {status, headers, text}; rejected if there is no answer. error.unsent: it was never sent.
  request(method, target, { headers = {}, body, seconds = 3 } = {}) {
    const date = new Date().toUTCString();
    const all = { ...headers, "x-ms-version": "2020-07-15", "x-ms-date": date };
    if (this.cluster.key) all.authorization = sign({ method, path: target, date, key: this.cluster.key });
    const options = { host: this.address, port: this.port, method, path: target, headers: all, agent: this.agent };
    return new Promise((resolve, reject) => {
      const fail = (error) => {
        clearTimeout(timer);
        error.unsent = error.code === "ECONNREFUSED";
        reject(error);
      };
      const sent = (this.cluster.network.parts ? https : http).request(options, (reply) => {
        const chunks = [];
        reply.on("data", (chunk) => chunks.push(chunk));
        reply.on("error", fail);
        reply.on("aborted", () => fail(new Error("the answer broke off")));
        reply.on("end", () => {
          clearTimeout(timer);
          resolve({ status: reply.statusCode, headers: reply.headers, text: Buffer.concat(chunks).toString() });
        });
      });
      const timer = setTimeout(() => sent.destroy(new Error(`no answer in ${seconds} s`)), seconds * 1000);
      sent.on("error", fail);
      sent.end(body);
    });
  }

  freeMegabytes() {
    const { bavail, bsize } = statfsSync(this.mount.folder);
    return (bavail * bsize) / 2 ** 20;
  }
  // A file that leaves only so much; returns what removes it. REQUIRES: it has a file system of its own.
  async fill(leaveMegabytes) {
    const file = path.join(this.mount.folder, "ballast");
    // The file system takes some for itself, and the node goes on writing.
    const bytes = Math.max(1, Math.floor((this.freeMegabytes() - Math.max(4, leaveMegabytes)) * 2 ** 20));
    await promisify(execFile)("fallocate", ["-l", `${bytes}`, file]);
    if (leaveMegabytes === 0) {
      const handle = openSync(file, "a");
      try {
        for (;;) writeSync(handle, Buffer.alloc(2 ** 16, 1));
      } catch (error) {
        if (error.code !== "ENOSPC") throw error;
      } finally {
        closeSync(handle);
      }
    }
    return () => rmSync(file, { force: true });
  }
}

export class Cluster {
  constructor({ network, folder, count = 4, settings, diskMegabytes = 400 }) {
    Object.assign(this, { network, folder, settings, diskMegabytes });
    this.key = network.parts ? undefined : emulatorKey;
    this.calm = false; // whether nothing excuses a failed start
    mkdirSync(folder, { recursive: true });
    this.members = Array.from({ length: count }, (_, i) => new Member(this, i));
  }
  get mounted() {
    return this.noMount === undefined;
  }
  async start() {
    for (const member of this.members) await member.prepare();
    const [first, ...others] = this.members;
    await first.up();
    if (this.network.parts) this.key = JSON.parse(readFileSync(path.join(first.data, "keys.json"), "utf8")).primary;
    await Promise.all(others.map((member) => member.up()));
  }
  // What a node says about itself.
  async status(member) {
    const target = "/_orrery/status";
    const { status, text } = await member.request("GET", target);
    if (status !== 200) throw new Error(`${target} of ${member.name}: ${status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  // The power of those nodes goes: their processes end, and what their file systems had not written is lost. They are
  // killed first: a node that runs on after the cut could still be told that something was synced.
  async cutPower(members) {
    this.cutter ??= this.startCutter();
    await Promise.all(members.map((member) => member.kill()));
    for (const member of members) {
      this.cutter.process.stdin.write(`${member.mount.folder}\n`);
      const { value } = await this.cutter.answers.next();
      if (value !== "cut") throw new Error(`the power could not be cut: ${value}`);
    }
    for (const member of members) {
      await until("the file system is free", () => {
        try {
          member.mount.unmount();
          return true;
        } catch {
          return false;
        }
      });
      member.mount.mount();
    }
  }
  startCutter() {
    const child = spawn("python3", [cutScript], { stdio: ["pipe", "pipe", "inherit"] });
    const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    child.stdin.on("error", () => {});
    const cutter = { process: child, answers: { next: () => answers.next() } };
    cutter.ready = answers.next();
    cutter.answers.next = async () => {
      await cutter.ready;
      return answers.next();
    };
    return cutter;
  }
  async remove() {
    await Promise.all(this.members.map((member) => member.kill()));
    for (const member of this.members) {
      member.agent?.destroy();
      member.removeMount();
    }
    this.cutter?.process.stdin.end();
    this.network.remove();
  }
}
