// What is done to the nodes. A fault: {name, needs, begin(stage) -> {says, end}}; `end` heals it and returns when the
// nodes that it hit serve again. Loopback has no partitions: `instead` names what takes their place.
const all = (cluster) => cluster.members.map((_, i) => i);

class Stage {
  constructor(cluster, random) {
    Object.assign(this, { cluster, random });
  }
  get members() {
    return this.cluster.members;
  }
  shuffled(list) {
    const left = [...list];
    const out = [];
    while (left.length > 0) out.push(...left.splice(Math.floor(this.random() * left.length), 1));
    return out;
  }
  some(count) {
    return this.shuffled(this.members).slice(0, count);
  }
  between(least, most) {
    return least + this.random() * (most - least);
  }
}
const names = (members) => members.map(({ name }) => name).join(" ");
const wake = (members) => Promise.all(members.map((member) => member.up()));

function kills(count) {
  return async (stage) => {
    const hit = stage.some(count);
    await Promise.all(hit.map((member) => member.kill()));
    return { says: names(hit), end: () => wake(hit) };
  };
}
function stops(count) {
  return async (stage) => {
    const hit = stage.some(count);
    for (const member of hit) member.signal("SIGSTOP");
    return { says: names(hit), end: async () => hit.forEach((member) => member.signal("SIGCONT")) };
  };
}
function powerCuts(count) {
  return async (stage) => {
    const hit = stage.some(count);
    await stage.cluster.cutPower(hit);
    return { says: names(hit), end: () => wake(hit) };
  };
}
// Both ways between all that are not in one of those groups together.
const apart = (nodes, groups) => {
  const together = (a, b) => groups.some((group) => group.includes(a) && group.includes(b));
  return nodes.flatMap((a) => nodes.filter((b) => a !== b && !together(a, b)).map((b) => [a, b]));
};
function partition(groupsOf) {
  return async (stage) => {
    const nodes = stage.shuffled(all(stage.cluster));
    const groups = groupsOf(nodes);
    const end = await stage.cluster.network.cut(apart(nodes, groups));
    return { says: groups.map((group) => names(group.map((i) => stage.members[i]))).join(" | "), end };
  };
}

async function oneWay(stage) {
  const nodes = stage.shuffled(all(stage.cluster));
  // One that hears nobody, one that nobody hears, or one line of many.
  const [a, b] = nodes;
  const others = nodes.slice(1);
  const shape = Math.floor(stage.random() * 3);
  const pairs = [others.map((other) => [other, a]), others.map((other) => [a, other]), [[a, b]]][shape];
  const end = await stage.cluster.network.cut(pairs);
  return { says: pairs.map(([from, to]) => `${stage.members[from].name}->${stage.members[to].name}`).join(" "), end };
}
async function refuse(stage) {
  const [hit] = stage.some(1);
  const end = await stage.cluster.network.refuse(hit.index, hit.peerPort);
  return { says: hit.name, end };
}
// A cut that comes and goes.
async function flap(stage) {
  const [hit] = stage.some(1);
  const pairs = apart(all(stage.cluster), [all(stage.cluster).filter((i) => i !== hit.index), [hit.index]]);
  let goes = true;
  const flapping = (async () => {
    while (goes) {
      const end = await stage.cluster.network.cut(pairs);
      await new Promise((resolve) => setTimeout(resolve, 50 + stage.random() * 400));
      await end();
      await new Promise((resolve) => setTimeout(resolve, 50 + stage.random() * 400));
    }
  })();
  return {
    says: hit.name,
    end: () => {
      goes = false;
      return flapping;
    },
  };
}
const everyPair = (cluster) => apart(all(cluster), []);
async function loss(stage) {
  const share = stage.between(0.05, 0.3).toFixed(2);
  const [hit] = stage.some(1);
  const pairs = stage.random() < 0.5 ? everyPair(stage.cluster) : everyPair(stage.cluster).filter((pair) => pair.includes(hit.index));
  const end = await stage.cluster.network.lose(pairs, share);
  return { says: `${share} ${pairs.length === 12 ? "everywhere" : hit.name}`, end };
}
async function delay(stage) {
  const hit = stage.some(1 + Math.floor(stage.random() * 2));
  const [milliseconds, jitter] = [Math.floor(stage.between(5, 60)), 0];
  const spread = Math.floor(milliseconds * stage.random()) + jitter;
  const end = await stage.cluster.network.delay(hit.map(({ index }) => index), milliseconds, spread);
  return { says: `${milliseconds}+-${spread} ms ${names(hit)}`, end };
}
async function fullDisk(stage) {
  const [hit] = stage.some(1);
  const left = stage.random() < 0.5 ? 0 : 10;
  const free = await hit.fill(left);
  return {
    says: `${hit.name}, ${left} MB left`,
    end: async () => {
      free();
      // Where the log itself met the end of the disk only a restart helps.
      await new Promise((resolve) => setTimeout(resolve, 300));
      if (await hit.healthy()) return;
      await hit.kill();
      await hit.up();
    },
  };
}
async function restart(stage) {
  const [hit] = stage.some(1);
  hit.wanted = false;
  hit.signal("SIGTERM");
  const { code, signal } = await hit.ended;
  if (code !== 0) hit.deaths.push(`${hit.name} did not stop cleanly: ${signal ?? code}: ${hit.log().slice(-1500)}`);
  return { says: hit.name, end: () => hit.up() };
}

// `quorum`: three nodes that see each other are left, so writes must go on.
export const faults = [
  { name: "kill -9 of one", quorum: true, begin: kills(1) },
  { name: "kill -9 of two", begin: kills(2) },
  { name: "kill -9 of all", begin: kills(4) },
  { name: "restart of one", quorum: true, begin: restart },
  { name: "one is stopped", quorum: true, begin: stops(1) },
  { name: "two are stopped", begin: stops(2) },
  { name: "isolate one", quorum: true, needs: "parts", begin: partition(([a, ...rest]) => [[a], rest]) },
  { name: "split 2-2", needs: "parts", begin: partition(([a, b, c, d]) => [[a, b], [c, d]]) },
  { name: "everybody alone", needs: "parts", begin: partition((nodes) => nodes.map((i) => [i])) },
  { name: "bridge", needs: "parts", begin: partition(([a, b, c, d]) => [[a, b, c], [c, d]]) },
  { name: "ring", needs: "parts", begin: partition(([a, b, c, d]) => [[a, b], [b, c], [c, d], [d, a]]) },
  { name: "one way", needs: "parts", begin: oneWay },
  { name: "flapping", needs: "parts", begin: flap },
  { name: "refused by a live node", quorum: true, needs: "parts", begin: refuse },
  { name: "loss", needs: "parts", begin: loss },
  { name: "delay", needs: "parts", begin: delay },
  { name: "full disk", quorum: true, needs: "mounted", begin: fullDisk },
  { name: "power cut of one", quorum: true, needs: "mounted", begin: powerCuts(1) },
  { name: "power cut of all", needs: "mounted", begin: powerCuts(4) },
];

// Each kind once in a random order, then again. `only`: a part of the names.
export function* schedule(cluster, random, only = "") {
  const stage = new Stage(cluster, random);
  const possible = faults
    .filter(({ needs }) => needs === undefined || (needs === "parts" ? cluster.network.parts : cluster.mounted))
    .filter(({ name }) => name.includes(only));
  if (possible.length === 0) possible.push({ name: "calm", quorum: true, begin: async () => ({ says: "", end: () => {} }) });
  for (;;) {
    for (const fault of stage.shuffled(possible)) yield { ...fault, begin: () => fault.begin(stage) };
  }
}
