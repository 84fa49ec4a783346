// The official client, one for each node, as an application uses it.
import https from "node:https";
import { createRequire } from "node:module";

const require = createRequire(new URL("../clients/package.json", import.meta.url));
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export class SdkLoad {
  constructor(cluster, random, record) {
    Object.assign(this, { cluster, random, record });
    this.items = new Map(); // id -> n, acknowledged
    this.unsure = new Set();
    this.deleted = new Set();
    this.errors = new Map();
    this.turn = 0;
    this.done = 0;
  }
  connect() {
    const { CosmosClient } = require("@azure/cosmos");
    // One attempt: what the server hides counts, not what the client repeats.
    const retryOptions = { maxRetryAttemptCount: 2, fixedRetryIntervalInMilliseconds: 50, maxWaitTimeInSeconds: 2 };
    this.clients = this.cluster.members.map((member) => {
      const agent = this.cluster.network.parts ? { agent: new https.Agent({ keepAlive: true, rejectUnauthorized: false }) } : {};
      const connectionPolicy = { requestTimeout: 5000, enableEndpointDiscovery: false, retryOptions };
      return new CosmosClient({ endpoint: member.endpoint, key: this.cluster.key, connectionPolicy, ...agent });
    });
  }
  container() {
    const client = this.clients[Math.floor(this.random() * this.clients.length)];
    return client.database("torture").container("items");
  }

  async lane(lane, goes) {
    while (goes()) {
      const id = `s${(this.turn += 1)}`;
      const pk = `sdk${lane}`;
      try {
        await this.life(id, pk);
        this.done += 1;
      } catch (error) {
        const name = `${error.code ?? error.name}`;
        this.errors.set(name, (this.errors.get(name) ?? 0) + 1);
        if (error.code === undefined && !(error instanceof Error && /abort|time|fetch|socket/i.test(`${error.name} ${error.message}`))) {
          this.record.complain(`the SDK: ${error.stack}`);
        }
        await pause(50 + this.random() * 100);
      }
      await pause(this.random() * 10);
    }
  }
  // Created, read, replaced, queried; half of them deleted.
  async life(id, pk) {
    const key = `${pk}/${id}`;
    this.unsure.add(key);
    const { resource, etag } = await this.container().items.create({ id, pk, n: 1 });
    if (resource.n !== 1) this.record.complain(`the SDK created ${key} and was told ${JSON.stringify(resource)}`);
    this.items.set(key, 1);
    this.record.wrote();
    const { resource: read } = await this.container().item(id, pk).read();
    if (read?.n !== 1) this.record.complain(`the SDK read ${JSON.stringify(read)} right after it had created ${key}`);
    this.items.delete(key);
    await this.container().item(id, pk).replace({ id, pk, n: 2 }, { accessCondition: { type: "IfMatch", condition: etag } });
    this.items.set(key, 2);
    this.record.wrote();
    const { resources } = await this.container().items.query({ query: "SELECT * FROM c WHERE c.id = @id", parameters: [{ name: "@id", value: id }] }, { partitionKey: pk }).fetchAll();
    if (resources.length !== 1 || resources[0].n !== 2) this.record.complain(`the SDK's query for ${key} gave ${JSON.stringify(resources)}`);
    if (this.random() < 0.5 || this.items.size > 500) {
      this.items.delete(key);
      await this.container().item(id, pk).delete();
      this.deleted.add(key);
      this.record.wrote();
    }
    this.unsure.delete(key);
  }

  check(all) {
    const wrong = [];
    const found = new Map();
    for (const { id, pk, n } of all) if (pk.startsWith("sdk")) found.set(`${pk}/${id}`, n);
    for (const [key, n] of this.items) {
      const there = found.get(key);
      // One whose replacement is in doubt is only in `unsure`.
      if (there === undefined ? true : there < n) wrong.push(`the SDK's ${key} was acknowledged with ${n} and is ${there ?? "gone"}`);
    }
    for (const key of found.keys()) {
      if (this.deleted.has(key)) wrong.push(`the SDK's ${key} was deleted and is there`);
      else if (!this.items.has(key) && !this.unsure.has(key)) wrong.push(`the SDK's ${key} is there, but was never acknowledged`);
    }
    return wrong;
  }
  close() {
    for (const client of this.clients ?? []) client.dispose();
  }
}
