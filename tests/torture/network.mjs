// The network between the nodes of a torture test. Where that is allowed each node has a network namespace of its own
// on one bridge, and rules of netfilter make the faults; clients come from outside and are never cut off. Elsewhere
// all nodes are on loopback, and what would part them stops them instead.
import { execFile, spawn, spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const delayScript = fileURLToPath(new URL("delay.py", import.meta.url));
const prefix = "orrery";

function command(...line) {
  const { status, stderr, error } = spawnSync(line[0], line.slice(1), { encoding: "utf8" });
  if (status !== 0) throw new Error(`${line.join(" ")}: ${(error?.message ?? stderr).trim()}`);
}
const tryCommand = (...line) => spawnSync(line[0], line.slice(1)).status === 0;

// What runs that were killed have left.
function sweep() {
  const folder = "/run/netns";
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const pid = new RegExp(`^${prefix}-(\\d+)-\\d+$`).exec(name)?.[1];
    if (pid === undefined || existsSync(`/proc/${pid}`)) continue;
    tryCommand("ip", "netns", "del", name);
    tryCommand("ip", "link", "del", `${prefix}${pid}`);
  }
}

export class Namespaces {
  // Throws if that is not allowed here.
  constructor(count) {
    this.names = Array.from({ length: count }, (_, i) => `${prefix}-${process.pid}-${i}`);
    this.bridge = `${prefix}${process.pid}`;
    this.subnet = `10.213.${process.pid % 250}`;
    this.delays = new Map();
    this.rules = this.names.map(() => []);
    if (process.getuid() !== 0) throw new Error("only root may make network namespaces");
    sweep();
    try {
      command("ip", "link", "add", this.bridge, "type", "bridge");
      command("ip", "addr", "add", `${this.subnet}.254/24`, "dev", this.bridge);
      command("ip", "link", "set", this.bridge, "up");
      for (const [i, name] of this.names.entries()) {
        const outside = `orr${process.pid}v${i}`;
        command("ip", "netns", "add", name);
        command("ip", "link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name);
        command("ip", "link", "set", outside, "master", this.bridge, "up");
        command("ip", "-n", name, "addr", "add", `${this.address(i)}/24`, "dev", "eth0");
        command("ip", "-n", name, "link", "set", "eth0", "up");
        command("ip", "-n", name, "link", "set", "lo", "up");
        command("ip", "netns", "exec", name, "iptables", "-w", "-A", "INPUT", "-s", this.address(i), "-m", "statistic",
          "--mode", "random", "--probability", "0.5", "-j", "DROP");
        command("ip", "netns", "exec", name, "iptables", "-w", "-F");
      }
    } catch (error) {
      this.remove();
      throw error;
    }
    process.on("exit", () => this.remove());
  }
  remove() {
    for (const child of this.delays.values()) child.kill("SIGKILL");
    this.delays.clear();
    for (const name of this.names) if (existsSync(`/run/netns/${name}`)) tryCommand("ip", "netns", "del", name);
    if (existsSync(`/sys/class/net/${this.bridge}`)) tryCommand("ip", "link", "del", this.bridge);
  }
  get parts() {
    return true;
  }
  address(i) {
    return `${this.subnet}.${i + 1}`;
  }
  others(i) {
    return [...this.names.keys()].filter((other) => other !== i);
  }
  // What runs `line` as node i. Not by `ip netns exec`: in its own view of the mounts one that was unmounted lives on.
  wrap(i, line) {
    return ["nsenter", `--net=/run/netns/${this.names[i]}`, ...line];
  }

  // All rules of node i at once.
  async install(i) {
    const text = ["*filter", ":INPUT ACCEPT [0:0]", ":FORWARD ACCEPT [0:0]", ":OUTPUT ACCEPT [0:0]", ...this.rules[i], "COMMIT", ""].join("\n");
    await new Promise((resolve, reject) => {
      const child = execFile("ip", ["netns", "exec", this.names[i], "iptables-restore", "-w"], (error, out, said) =>
        error ? reject(new Error(`iptables-restore: ${said || error.message}`)) : resolve());
      child.stdin.end(text);
    });
  }
  // Gives the nodes those rules besides what they have; returns what takes them away.
  async add(rulesOf) {
    const changed = [];
    for (const [i, rules] of rulesOf) {
      this.rules[i] = [...this.rules[i], ...rules];
      changed.push([i, rules]);
    }
    await Promise.all(changed.map(([i]) => this.install(i)));
    return async () => {
      for (const [i, rules] of changed) this.rules[i] = this.rules[i].filter((rule) => !rules.includes(rule));
      await Promise.all(changed.map(([i]) => this.install(i)));
    };
  }
  byReceiver(pairs, ruleOf) {
    const rulesOf = new Map();
    for (const [from, to] of pairs) rulesOf.set(to, [...(rulesOf.get(to) ?? []), ruleOf(from)]);
    return [...rulesOf];
  }
  // Nothing goes from the one to the other of each pair.
  cut(pairs) {
    return this.add(this.byReceiver(pairs, (from) => `-A INPUT -s ${this.address(from)} -j DROP`));
  }
  // Other nodes are refused by a node that lives.
  refuse(i, port) {
    const rules = this.others(i).map((other) => `-A INPUT -s ${this.address(other)} -p tcp --dport ${port} -j REJECT --reject-with tcp-reset`);
    return this.add([[i, rules]]);
  }
  lose(pairs, share) {
    return this.add(this.byReceiver(pairs, (from) =>
      `-A INPUT -s ${this.address(from)} -m statistic --mode random --probability ${share} -j DROP`));
  }
  async delay(nodes, milliseconds, jitter) {
    for (const i of nodes) {
      const [program, ...rest] = this.wrap(i, ["python3", delayScript, "1", `${milliseconds}`, `${jitter}`]);
      const child = spawn(program, rest, { stdio: ["ignore", "pipe", "inherit"] });
      this.delays.set(i, child);
      await new Promise((resolve, reject) => {
        child.stdout.once("data", resolve);
        child.once("close", (code) => reject(new Error(`delay.py ended with ${code}`)));
      });
    }
    const rule = "-j NFQUEUE --queue-num 1";
    const undo = await this.add(nodes.map((i) => [i, this.others(i).map((other) => `-A INPUT -s ${this.address(other)} ${rule}`)]));
    return async () => {
      await undo();
      for (const i of nodes) {
        this.delays.get(i)?.kill("SIGKILL");
        this.delays.delete(i);
      }
    };
  }
}

export class Loopback {
  get parts() {
    return false;
  }
  address() {
    return "127.0.0.1";
  }
  wrap(i, line) {
    return line;
  }
  remove() {}
}
