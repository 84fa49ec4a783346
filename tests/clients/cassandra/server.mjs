// The server of tests/support, with the Cassandra driver for it.
import assert from "node:assert/strict";
import cassandra from "cassandra-driver";
import { Server as Process, freePort, until } from "../../support/server.mjs";

export { until };
export { cassandra };
export const { types } = cassandra;
export const { responseErrorCodes: codes } = types;

// While a server is down the driver looks for it, and nobody waits for what comes of that: its own failures, which no
// test asked for, are not those of a test.
let ignoring = false;
function ignoreTheDriversOwnFailures() {
  if (ignoring) return;
  ignoring = true;
  const own = (error) =>
    error?.info !== undefined || /cassandra-driver/.test(error?.stack ?? "") || /^E(CONN|PIPE)/.test(error?.code ?? "");
  for (const event of ["unhandledRejection", "uncaughtException"]) {
    const others = process.listeners(event);
    process.removeAllListeners(event);
    process.on(event, (error, ...rest) => own(error) || others.forEach((other) => other(error, ...rest)));
  }
}

export class Server extends Process {
  static async start({ settings = {}, ...options } = {}) {
    ignoreTheDriversOwnFailures();
    return super.start({ ...options, settings: { "cassandra.port": await freePort(), ...settings } });
  }
  get cqlPort() {
    return this.settings["cassandra.port"];
  }
  // A driver that is connected. It is shut down with the server.
  async client(options = {}) {
    const client = new cassandra.Client({
      contactPoints: [`${this.host}:${this.cqlPort}`],
      localDataCenter: "datacenter1",
      socketOptions: { readTimeout: 20000 },
      // Of a cluster any replica may answer at LOCAL_ONE, the driver's default, also one that is behind.
      ...(process.env.ORRERY_CLUSTER === "1" ? { queryOptions: { consistency: types.consistencies.localQuorum } } : {}),
      ...options,
    });
    this.clients ??= [];
    this.clients.push(client);
    await client.connect();
    return client;
  }
  // Of one keyspace, which is made.
  async keyspaceClient(keyspace, options = {}) {
    const client = await this.client(options);
    await client.execute(
      `CREATE KEYSPACE IF NOT EXISTS ${keyspace} WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`,
    );
    await client.execute(`USE ${keyspace}`);
    return client;
  }
  async remove() {
    for (const client of this.clients ?? []) await client.shutdown();
    await super.remove();
    // A driver that had to connect again leaves timers behind, of many minutes.
    setTimeout(() => process.exit(), 1000).unref();
  }
}

// Goes on when the driver has a connection again, after a restart of the server.
export async function reconnected(client) {
  // Of a pool that is being filled again a connection may come and go.
  const answers = async () => {
    for (let times = 0; times < 3; times += 1) await client.execute("SELECT key FROM system.local");
    return true;
  };
  await until("the driver is connected", () => answers().catch(() => null), 20);
}

// The error that a promise is rejected with, after a check of its code and of its message.
export async function refused(promise, code, message) {
  let value;
  try {
    value = await promise;
  } catch (error) {
    assert.equal(error.code, code, `${error.code}: ${error.message}`);
    if (message !== undefined) assert.match(error.message, message);
    return error;
  }
  return assert.fail(`expected 0x${code.toString(16)}, got ${JSON.stringify(value?.rows)}`);
}

// Plain values: what the driver's own types print, in a form that can be compared.
export function plain(value) {
  if (value === null || value === undefined) return null;
  if (Buffer.isBuffer(value)) return `0x${value.toString("hex")}`;
  if (value instanceof Date) return value.toISOString();
  if (value instanceof types.Tuple) return value.elements.map(plain);
  if (value instanceof Map) return Object.fromEntries([...value].map(([k, v]) => [plain(k), plain(v)]));
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof types.Row) return Object.fromEntries(value.keys().map((key) => [key, plain(value[key])]));
  if (typeof value === "object" && value.constructor === Object) {
    return Object.fromEntries(Object.entries(value).map(([key, v]) => [key, plain(v)]));
  }
  return typeof value === "object" ? value.toString() : value;
}

// What a statement gives, as lists of plain values.
export async function rowsOf(client, text, values, options) {
  const ask = () => client.execute(text, values, values ? { prepare: true, ...options } : options);
  // The driver found no connection, so nothing was sent: its pool is not yet full again after a restart.
  const unsent = (error) => /No connection available/.test(error.message);
  const { rows } = await until("the driver has a connection", () => ask().catch((error) => (unsent(error) ? null : Promise.reject(error))), 20);
  return (rows ?? []).map((row) => row.values().map(plain));
}

// A table of a test's own; gives its name.
let tables = 0;
export async function makeTable(client, columns, options = "") {
  tables += 1;
  const name = `t${tables}`;
  await client.execute(`CREATE TABLE ${name} (${columns}) ${options}`);
  return name;
}
