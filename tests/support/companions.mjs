// Three more nodes for a server under test, which is the first of their cluster: killed and revived in turn, so that
// always three of the four live. What is asked of the first must not fail for it.
import { spawn } from "node:child_process";
import { closeSync, openSync, rmSync } from "node:fs";
import { binary, freePort, temporaryFolder, until } from "./server.mjs";

const secret = "the secret of a test's cluster";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

class Companion {
  constructor(server, settings) {
    Object.assign(this, { server, settings, data: temporaryFolder() });
  }
  async up() {
    this.port ??= await freePort();
    const { dev } = this.server;
    const args = ["start", ...(dev ? ["--dev"] : []), "--data", this.data, "--port", `${this.port}`];
    for (const [name, value] of Object.entries(this.settings)) args.push("--set", `${name}=${value}`);
    const log = openSync(`${this.data}.log`, "a");
    this.child = spawn(binary, args, { stdio: ["ignore", log, log] });
    closeSync(log);
    const { child } = this;
    this.ended = new Promise((resolve) => child.once("close", resolve));
    process.once("exit", () => child.kill("SIGKILL"));
    const healthy = () => this.server.request({ path: "/healthz", unsigned: true, port: this.port, seconds: 2 }).catch(() => null);
    await until(`the node at port ${this.port} serves`, async () => child.exitCode !== null || (await healthy())?.status === 200, 30);
  }
  async kill() {
    this.child?.kill("SIGKILL");
    await this.ended;
  }
}

export class Companions {
  // Makes the server's settings those of a first node. REQUIRES: it was not started yet.
  static async prepare(server) {
    const companions = new Companions();
    const address = `127.0.0.1:${await freePort()}`;
    const shared = { ...server.settings, ...(server.dev ? {} : { "cluster.secret": secret }) };
    server.settings = { ...shared, "cluster.listen": address };
    const joining = { ...shared, "cassandra.port": 0, "cluster.listen": "127.0.0.1:0", "cluster.join": address };
    companions.nodes = Array.from({ length: 3 }, () => new Companion(server, joining));
    return companions;
  }
  async start() {
    await Promise.all(this.nodes.map((node) => node.up()));
    this.kills = 0;
    this.stopped = false;
    this.turns = this.takeTurns().catch((error) => console.log(`the other nodes: ${error.message}`));
  }
  async takeTurns() {
    for (let turn = 0; !this.stopped; turn += 1) {
      const node = this.nodes[turn % this.nodes.length];
      await pause(700);
      if (this.stopped) return;
      await node.kill();
      this.kills += 1;
      await pause(700);
      await node.up();
    }
  }
  async stop() {
    this.stopped = true;
    await this.turns;
  }
  async remove() {
    await this.stop();
    console.log(`the other nodes were killed ${this.kills ?? 0} times`);
    for (const node of this.nodes) {
      await node.kill();
      rmSync(node.data, { recursive: true, force: true });
      rmSync(`${node.data}.log`, { force: true });
    }
  }
}
