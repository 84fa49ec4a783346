// The server of tests/support, with the official client for it.
import assert from "node:assert/strict";
import https from "node:https";
import { CosmosClient } from "@azure/cosmos";
import { Server as Process } from "../../support/server.mjs";

export { emulatorKey, freePort, run, sign, temporaryFolder, until } from "../../support/server.mjs";

export class Server extends Process {
  client(options = {}) {
    const agent = this.dev ? {} : { agent: new https.Agent({ ca: this.certificate(), keepAlive: true }) };
    return new CosmosClient({ endpoint: this.endpoint, key: this.key, ...agent, ...options });
  }
  // A client that shows 429 instead of waiting.
  impatientClient(options = {}) {
    const retryOptions = { maxRetryAttemptCount: 0, fixedRetryIntervalInMilliseconds: 0, maxWaitTimeInSeconds: 0 };
    return this.client({ connectionPolicy: { retryOptions }, ...options });
  }
}

// A container of a test's own. `id` is the beginning of its name.
let containers = 0;
export async function makeContainer(client, { id = "items", ...definition } = {}) {
  containers += 1;
  const { database } = await client.databases.createIfNotExists({ id: "tests" });
  const { container } = await database.containers.create({ id: `${id}-${containers}`, partitionKey: "/pk", ...definition });
  return container;
}

// The error that a promise is rejected with, after a check of its status and substatus.
export async function refused(promise, code, substatus) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    if (error.code === undefined) throw error;
    assert.equal(error.code, code, `${error.code}: ${error.message}`);
    if (substatus !== undefined) assert.equal(Number(error.substatus ?? error.headers?.["x-ms-substatus"]), substatus);
    return error;
  }
  return assert.fail(`expected ${code}, got ${value?.statusCode ?? value?.code}`);
}

// What a client sent of an item, without what the server adds.
export function plain(resource) {
  const { _rid, _self, _etag, _attachments, _ts, ...rest } = resource;
  return rest;
}
