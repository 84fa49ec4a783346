// A real orrery process for tests: start, stop, kill, restart, and signed requests. No packages.
//
// Environment: ORRERY_BINARY names the program, ORRERY_LOOPBACK=1 sends every partition operation through the
// encoder, a TCP connection and the decoder; with ORRERY_CLUSTER=1 each server is the first of four nodes, and the
// others are killed and revived in turn.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createHmac } from "node:crypto";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));
export const binary = process.env.ORRERY_BINARY ?? path.join(root, "build/release/src/server/orrery");
export const loopback = process.env.ORRERY_LOOPBACK === "1";
// The key that the documents of the Cosmos DB emulator publish.
export const emulatorKey =
  "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Calls `condition` until it gives something true, which is returned. Fails at the deadline.
export async function until(what, condition, seconds = 15) {
  const deadline = performance.now() + seconds * 1000;
  for (;;) {
    const result = await condition();
    if (result) return result;
    if (performance.now() > deadline) assert.fail(`not within ${seconds} s: ${what}`);
    await pause(20);
  }
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

export const temporaryFolder = () => mkdtempSync(path.join(tmpdir(), "orrery-test-"));

// Runs the program to its end: {code, out, err}.
export function run(args, { seconds = 30 } = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(binary, args, { stdio: ["ignore", "pipe", "pipe"] });
    const result = { code: null, out: "", err: "" };
    const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000);
    child.stdout.on("data", (chunk) => (result.out += chunk));
    child.stderr.on("data", (chunk) => (result.err += chunk));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code: code ?? signal });
    });
  });
}

// The authorization header of a request, by the rules of the REST reference.
export function sign({ method, path: target, date, key }) {
  const parts = decodeURIComponent(target.split("?")[0]).split("/").filter(Boolean);
  let type = "";
  let link = "";
  if (parts[0] === "offers") {
    [type, link] = ["offers", (parts[1] ?? "").toLowerCase()];
  } else if (parts[0] === "_orrery") {
    [type, link] = ["orrery", parts.join("/")];
  } else if (parts[4] === "operations") {
    [type, link] = ["colls", parts.slice(0, 4).join("/")];
  } else if (parts.length % 2 === 0) {
    [type, link] = [parts.at(-2) ?? "", parts.join("/")];
  } else {
    [type, link] = [parts.at(-1), parts.slice(0, -1).join("/")];
  }
  const text = `${method.toLowerCase()}\n${type.toLowerCase()}\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(key, "base64")).update(text, "utf8").digest("base64");
  return encodeURIComponent(`type=master&ver=1.0&sig=${signature}`);
}

const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.once(signal, () => process.exit(1));

export class Server {
  // dev: plain HTTP and the emulator's key; else TLS and keys of its own. settings: {"section.key": value}.
  // log: where its output goes.
  static async start({ dev = true, settings = {}, data, log } = {}) {
    const server = new this();
    server.dev = dev;
    server.data = data ?? temporaryFolder();
    server.logFile = log ?? `${server.data}.log`;
    server.settings = { "limits.control_throughput": 100000, ...settings };
    if (loopback) server.settings["test.loopback_operations"] = true;
    server.port = await freePort();
    if (process.env.ORRERY_CLUSTER === "1") {
      const { Companions } = await import("./companions.mjs");
      server.companions = await Companions.prepare(server);
    }
    try {
      await server.up();
      await server.companions?.start();
    } catch (error) {
      if (data === undefined) await server.remove();
      throw error;
    }
    return server;
  }

  get host() {
    return "127.0.0.1";
  }
  get endpoint() {
    return `${this.dev ? "http" : "https"}://${this.host}:${this.port}/`;
  }
  get key() {
    return this.dev ? emulatorKey : this.keys().primary;
  }
  get pid() {
    return this.child?.pid;
  }
  keys() {
    return JSON.parse(readFileSync(path.join(this.data, "keys.json"), "utf8"));
  }
  certificate() {
    return readFileSync(path.join(this.data, "certificate.pem"));
  }
  log() {
    return existsSync(this.logFile) ? readFileSync(this.logFile, "utf8") : "";
  }

  // How it is started.
  args() {
    const args = ["start", ...(this.dev ? ["--dev"] : []), "--data", this.data, "--port", String(this.port)];
    for (const [name, value] of Object.entries(this.settings)) args.push("--set", `${name}=${value}`);
    return args;
  }
  async up() {
    const args = this.args();
    const log = openSync(this.logFile, "a");
    const child = spawn(binary, args, { stdio: ["ignore", log, log] });
    closeSync(log);
    running.add(child);
    this.child = child;
    this.ended = new Promise((resolve) => {
      child.once("error", (error) => resolve({ code: `${error}` }));
      child.once("close", (code, signal) => {
        running.delete(child);
        resolve({ code, signal });
      });
    });
    try {
      await until(`${this.endpoint}healthz answers`, () => this.healthy(), 30);
    } catch (error) {
      await this.kill();
      throw new Error(`${error.message}\n${this.log().slice(-3000)}`);
    }
  }
  async healthy() {
    if (!this.alive()) assert.fail(`the server ended at its start with ${this.child.exitCode ?? this.child.signalCode}`);
    if (!this.dev && !existsSync(path.join(this.data, "certificate.pem"))) return false;
    return (await this.request({ path: "/healthz", unsigned: true }).catch(() => null))?.status === 200;
  }

  // Ends it as an operator does; the exit code must be 0.
  async stop() {
    this.child.kill("SIGTERM");
    const end = await this.waitForEnd();
    assert.deepEqual(end, { code: 0, signal: null }, `the server did not stop cleanly:\n${this.log().slice(-3000)}`);
  }
  async kill() {
    this.child.kill("SIGKILL");
    await this.waitForEnd();
  }
  async restart() {
    await this.stop();
    await this.up();
  }
  async waitForEnd(seconds = 30) {
    const timer = setTimeout(() => this.child.kill("SIGKILL"), seconds * 1000);
    const end = await this.ended;
    clearTimeout(timer);
    return end;
  }
  alive() {
    return this.child.exitCode === null && this.child.signalCode === null;
  }
  // For `after`: stops it if it still runs, and removes its data.
  async remove() {
    try {
      await this.companions?.stop();
      if (this.alive()) await this.stop();
    } finally {
      await this.companions?.remove();
      rmSync(this.data, { recursive: true, force: true });
      rmSync(this.logFile, { force: true });
    }
  }

  // One request on a connection of its own: {status, headers, text, json}. Headers of undefined are left out.
  request({ method = "GET", path: target, headers = {}, body, key, date, unsigned = false, seconds = 30, port = this.port }) {
    const all = { "x-ms-version": "2020-07-15" };
    if (!unsigned) {
      all["x-ms-date"] = (date ?? new Date()).toUTCString();
      all.authorization = sign({ method, path: target, date: all["x-ms-date"], key: key ?? this.key });
    }
    Object.assign(all, headers);
    for (const name of Object.keys(all)) if (all[name] === undefined) delete all[name];
    const options = { host: this.host, port, method, path: target, headers: all, agent: false };
    if (!this.dev) options.ca = this.certificate();
    return new Promise((resolve, reject) => {
      const sent = (this.dev ? http : https).request(options, (reply) => {
        const chunks = [];
        reply.on("data", (chunk) => chunks.push(chunk));
        reply.on("error", reject);
        reply.on("end", () => {
          const text = Buffer.concat(chunks).toString("utf8");
          let json;
          try {
            json = JSON.parse(text);
          } catch {
            json = undefined;
          }
          resolve({ status: reply.statusCode, headers: reply.headers, text, json });
        });
      });
      sent.setTimeout(seconds * 1000, () => sent.destroy(new Error(`no answer to ${method} ${target} in ${seconds} s`)));
      sent.on("error", reject);
      sent.end(body);
    });
  }
}
