// A restart of one node after the other, as for a new version: no request through the nodes that stay up fails, and
// nothing is lost.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Cluster } from "../../support/cluster.mjs";
import { emulatorKey, until } from "../../support/server.mjs";

const keys = 12; // of each node
const lanes = 3; // of each node, at the same time

let cluster;
let container;
// Of this node alone: what it cannot answer is not asked of another.
const clientOf = (member) =>
  new CosmosClient({ endpoint: member.endpoint, key: emulatorKey, connectionPolicy: { enableEndpointDiscovery: false } });
before(async () => {
  cluster = await Cluster.start({ nodes: 4, settings: { "account.consistency": "Strong", "limits.partition_throughput": 20000 } });
  const { database } = await clientOf(cluster.first).databases.create({ id: "d" });
  ({ container } = await database.containers.create({ id: "c", partitionKey: "/pk", throughput: 100000 }));
  await cluster.settled(4);
});
after(() => cluster?.remove());

// Clients of one node that write, read what they wrote and query, until they are ended.
class Clients {
  done = 0;
  failures = [];
  rounds = new Map(); // acknowledged, by id
  #ended = false;
  #work = [];

  constructor(member) {
    this.member = member;
  }
  begin() {
    this.#ended = false;
    const here = clientOf(this.member).database("d").container("c");
    this.#work = Array.from({ length: lanes }, (_, lane) => this.#run(here, lane));
  }
  async end() {
    this.#ended = true;
    await Promise.all(this.#work);
  }
  async #run(here, lane) {
    for (let n = lane; !this.#ended; n = (n + lanes) % keys) {
      const id = `node ${this.member.id} item ${n}`;
      try {
        const round = (this.rounds.get(id) ?? 0) + 1;
        await here.items.upsert({ id, pk: id, round });
        this.rounds.set(id, round);
        const { resource } = await here.item(id, id).read();
        const found = await here.items.query(`SELECT * FROM c WHERE c.id = "${id}"`).fetchAll();
        assert.deepEqual([resource?.round, found.resources.map((item) => item.round)], [round, [round]], id);
        this.done += 1;
      } catch (error) {
        this.failures.push(error);
      }
    }
  }
}

test("a rolling restart fails no request through the nodes that stay up", async () => {
  const clients = cluster.members.map((member) => new Clients(member));
  const noneFailed = () => {
    const failures = clients.flatMap((one) => one.failures);
    assert.deepEqual(failures.map((error) => `${error.code} ${error.message}`).slice(0, 5), []);
  };
  const goOn = (some) => {
    const before = some.map(({ done }) => done);
    return until("all clients go on", () => {
      noneFailed();
      return some.every(({ done }, i) => done >= before[i] + lanes);
    });
  };
  clients.forEach((one) => one.begin());
  try {
    for (const own of clients) {
      const others = clients.filter((one) => one !== own);
      await goOn(clients);
      await own.end();
      await own.member.stop();
      await goOn(others);
      await own.member.up();
      await cluster.settled(4);
      own.begin();
    }
    await goOn(clients);
  } finally {
    await Promise.all(clients.map((one) => one.end()));
  }
  noneFailed();
  const found = new Map((await container.items.readAll().fetchAll()).resources.map(({ id, round }) => [id, round]));
  assert.deepEqual(found, new Map(clients.flatMap(({ rounds }) => [...rounds])));
});
