// A disk that fills up: writes are refused, reads go on, and writes come back when there is room again.
import { randomBytes } from "node:crypto";
import { closeSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import path from "node:path";
import { Server, until } from "../support/server.mjs";
import { Mount } from "./mounts.mjs";
import { Connection, Report, Workload, docs, prepare, randomFrom } from "./workload.mjs";

const report = new Report("full disk");
const reserveMegabytes = 30;
const settings = {
  "storage.durability": "sync",
  "storage.free_reserve_mb": reserveMegabytes,
  "storage.write_buffer_mb": 4,
  "storage.cache_mb": 8,
};

const freeMegabytes = (folder) => {
  const { bavail, bsize } = statfsSync(folder);
  return (bavail * bsize) / 2 ** 20;
};

// A file that leaves only so much.
function fill(folder, leaveMegabytes) {
  const file = path.join(folder, "ballast");
  const block = Buffer.alloc(2 ** 18, 1);
  const handle = openSync(file, "a");
  try {
    while (freeMegabytes(folder) > leaveMegabytes) writeSync(handle, block);
  } catch (error) {
    if (error.code !== "ENOSPC") throw error;
  } finally {
    closeSync(handle);
  }
  return file;
}

const create = (connection, id, bytes = 1000) =>
  connection.send("POST", docs, { body: JSON.stringify({ id, pk: "probe", text: "x".repeat(bytes) }) });

async function run(mount) {
  const server = await Server.start({ settings, data: path.join(mount.folder, "data"), log: path.join(mount.work, "log") });
  const connection = new Connection(server.port);
  const random = randomFrom(1);
  const light = new Workload(server.port, { name: "light", random, writers: 6, bytes: 20_000 });
  const workload = new Workload(server.port, { name: "full", random, writers: 6, text: randomBytes(15_000).toString("base64") });
  try {
    await prepare(server.port);
    const first = await create(connection, "first");
    report.claim("there is room at the start", first.status === 201 ? [] : [`${first.status} ${first.text}`]);

    // What compresses well: 60 MB, several compactions.
    let ballast = fill(mount.folder, reserveMegabytes + 25);
    light.start({ goOn: true });
    let lowest = Infinity;
    const written = () => {
      lowest = Math.min(lowest, freeMegabytes(mount.folder));
      return light.acknowledged > 3000 || light.failure;
    };
    await until("many writes", written, 60);
    await light.stop();
    const early = light.statuses.has(503) || lowest < (reserveMegabytes * 2) / 3;
    report.claim("what compresses well takes little room, at no time more", early ? [`${lowest.toFixed(1)} MB were free`] : []);

    // Fills up under writes, first by the writes themselves, then by a stranger.
    workload.start({ goOn: true });
    await until("writes are refused", () => workload.statuses.has(503) || workload.failure, 60);
    await workload.stop();
    const refused = await create(connection, "refused");
    report.claim("a write is refused with 503", refused.status === 503 ? [] : [`${refused.status} ${refused.text}`]);
    const why = /disk|space|full/i.test(refused.text) ? [] : [refused.text];
    report.claim("the refusal says why", why);
    const others = [...workload.statuses.keys()].filter((status) => status >= 500 && status !== 503);
    report.claim("writers saw no other error than 503", others.map((status) => `${status}: ${workload.statuses.get(status)} times`));
    const database = await connection.send("POST", "/dbs", { body: '{"id":"more"}' });
    report.claim("a new database is refused with 503", database.status === 503 ? [] : [`${database.status} ${database.text}`]);
    // A compaction may take some of the reserve while it runs: that is what it is for.
    const kept = () => freeMegabytes(mount.folder) > (reserveMegabytes * 2) / 3;
    await until("the reserve is free", kept, 20).catch(() => null);
    report.claim("the reserve is kept", kept() ? [] : [`only ${freeMegabytes(mount.folder).toFixed(1)} MB are free`]);
    report.claim("reads go on, and give everything acknowledged", await workload.check());
    const read = await connection.send("GET", `${docs}/first`, { headers: { "x-ms-documentdb-partitionkey": '["probe"]' } });
    report.claim("a point read goes on", read.status === 200 ? [] : [`${read.status} ${read.text}`]);
    report.claim("the process lives", server.alive() ? [] : [server.log().slice(-2000)]);

    rmSync(ballast);
    let back;
    await until("writes are taken again", async () => (back = await create(connection, "back")).status === 201, 20).catch(() => null);
    report.claim("writes come back by themselves when there is room", back.status === 201 ? [] : [`${back.status} ${back.text}`]);

    // Not a byte left, under writes.
    const hard = new Workload(server.port, { name: "hard", random, writers: 6, bytes: 2000 });
    hard.start({ goOn: true });
    await until("some writes", () => hard.acknowledged > 100 || hard.failure);
    ballast = fill(mount.folder, 0);
    await until("writes are refused", () => hard.statuses.has(503) || hard.failure || !server.alive(), 30);
    await hard.stop();
    report.claim("the process lives with not a byte left", server.alive() ? [] : [server.log().slice(-2000)]);
    if (server.alive()) report.claim("reads go on with not a byte left", await hard.check());
    rmSync(ballast);
    if (server.alive()) await server.kill();
    await server.up();
    report.claim("after a restart everything acknowledged is there", [...(await light.check()), ...(await workload.check()), ...(await hard.check())]);
    const last = await create(connection, "last");
    report.claim("after a restart writes are taken", last.status === 201 ? [] : [`${last.status} ${last.text}`]);
    await server.stop();
  } catch (error) {
    report.claim("the run comes to its end", [`${error.stack}\n${server.log().slice(-2000)}`]);
  } finally {
    connection.close();
    if (server.alive()) await server.kill();
  }
}

let mount;
try {
  mount = new Mount("tmpfs", 100);
} catch (error) {
  report.skip(`a small file system cannot be mounted here: ${error.message}`);
}
if (mount) {
  try {
    await run(mount);
  } finally {
    mount.remove();
  }
}
report.close();
