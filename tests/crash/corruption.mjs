// Damaged files: the server refuses to start and names the file, or answers with errors, never with wrong data.
import { cpSync, readFileSync, readdirSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import path from "node:path";
import { Server, temporaryFolder } from "../support/server.mjs";
import { Connection, Report, docs, prepare, randomFrom, readFeed } from "./workload.mjs";

const report = new Report("corruption");
const random = randomFrom(7);
const settings = { "storage.write_buffer_mb": 1, "storage.cache_mb": 1 };
const count = 3000;
const textOf = (i) => Buffer.from(Array.from({ length: 300 }, () => Math.floor(random() * 256))).toString("base64") + i;
const texts = Array.from({ length: count }, (_, i) => textOf(i));
const keyOf = (i) => `k${i % 10}`;
const filesIn = (folder, end) =>
  readdirSync(folder, { recursive: true })
    .filter((name) => name.endsWith(end))
    .map((name) => path.join(folder, name))
    .filter((file) => statSync(file).size > 0)
    .sort((a, b) => statSync(b).size - statSync(a).size);

async function write(server) {
  const lanes = Array.from({ length: 8 }, async (_, lane) => {
    const connection = new Connection(server.port);
    for (let i = lane; i < count; i += 8) {
      const reply = await connection.send("POST", docs, { body: JSON.stringify({ id: `${i}`, pk: keyOf(i), text: texts[i] }) });
      if (reply.status !== 201) throw new Error(`create ${i}: ${reply.status} ${reply.text}`);
    }
    connection.close();
  });
  await Promise.all(lanes);
}

// What a server on damaged files does that it must not.
async function misdeeds(server) {
  const wrong = [];
  const errors = { point: 0, feed: 0 };
  const connection = new Connection(server.port);
  for (let i = 0; i < count; i += 1) {
    const reply = await connection.send("GET", `${docs}/${i}`, { headers: { "x-ms-documentdb-partitionkey": JSON.stringify([keyOf(i)]) } });
    if (reply.status >= 500) errors.point += 1;
    else if (reply.status !== 200) wrong.push(`item ${i}: ${reply.status} ${reply.text.slice(0, 200)}`);
    else if (JSON.parse(reply.text).text !== texts[i]) wrong.push(`item ${i} has another content`);
  }
  for (let key = 0; key < 10; key += 1) {
    const items = await readFeed(connection, `k${key}`).catch((error) => {
      if (!/: 50\d /.test(error.message)) wrong.push(error.message);
      errors.feed += 1;
      return null;
    });
    if (items === null) continue;
    if (items.length !== count / 10) wrong.push(`the feed of k${key} has ${items.length} of ${count / 10} items`);
    for (const { id, text } of items) if (text !== texts[Number(id)]) wrong.push(`item ${id} of the feed has another content`);
  }
  connection.close();
  return { wrong, errors };
}

function flip(file, places, bytes = 1) {
  const content = readFileSync(file);
  for (const place of places) {
    for (let i = 0; i < bytes; i += 1) content[Math.min(content.length - 1, Math.floor(place * content.length) + i)] ^= 0x5a;
  }
  writeFileSync(file, content);
}

async function trial(sentence, original, damage) {
  const data = temporaryFolder();
  rmSync(data, { recursive: true });
  cpSync(original, data, { recursive: true });
  const file = damage(data);
  let server;
  try {
    server = await Server.start({ settings, data });
  } catch (error) {
    const named = error.message.includes(path.basename(file));
    report.claim(`${sentence}: the refusal to start names the file`, named ? [] : [`${path.basename(file)} is not in: ${error.message.slice(-1500)}`]);
    console.log(`${sentence}: did not start`);
    rmSync(data, { recursive: true, force: true });
    rmSync(`${data}.log`, { force: true });
    return;
  }
  try {
    const { wrong, errors } = await misdeeds(server);
    report.claim(`${sentence}: errors or right data`, wrong);
    report.claim(`${sentence}: the process lives`, server.alive() ? [] : [server.log().slice(-2000)]);
    console.log(`${sentence}: ${errors.point} reads and ${errors.feed} feeds answered with an error`);
  } catch (error) {
    report.claim(`${sentence}: the server answers`, [`${error.message}\n${server.log().slice(-2000)}`]);
  } finally {
    if (server.alive()) await server.kill();
    await server.remove();
  }
}

const server = await Server.start({ settings });
const killed = temporaryFolder();
try {
  await prepare(server.port);
  await write(server);
  // As a crash leaves it: the last writes are only in the log.
  await server.kill();
  rmSync(killed, { recursive: true });
  cpSync(server.data, killed, { recursive: true });
  await server.up();
  await server.stop();

  const state = (data) => filesIn(path.join(data, "state"), ".sst");
  const log = (data) => filesIn(path.join(data, "log"), ".log");
  report.claim("a clean stop leaves the items in files of the state store", state(server.data).length > 0 ? [] : [readdirSync(server.data, { recursive: true }).join(" ")]);
  await trial("undamaged", server.data, (data) => state(data)[0]);
  await trial("one byte in the middle of a state file", server.data, (data) => {
    flip(state(data)[0], [0.5]);
    return state(data)[0];
  });
  await trial("many places in all state files", server.data, (data) => {
    for (const file of state(data)) flip(file, [0.1, 0.3, 0.6, 0.8], 64);
    return state(data)[0];
  });
  await trial("the end of a state file", server.data, (data) => {
    flip(state(data)[0], [0.999], 40);
    return state(data)[0];
  });
  await trial("half of a state file", server.data, (data) => {
    const [file] = state(data);
    truncateSync(file, Math.floor(statSync(file).size / 2));
    return file;
  });
  await trial("a state file that is missing", server.data, (data) => {
    const [file] = state(data);
    rmSync(file);
    return file;
  });
  if (log(killed).length > 0) {
    await trial("one byte in the middle of the log", killed, (data) => {
      flip(log(data)[0], [0.5]);
      return log(data)[0];
    });
  } else {
    report.claim("a kill leaves a log", [readdirSync(killed, { recursive: true }).join(" ")]);
  }
} catch (error) {
  report.claim("the run comes to its end", [`${error.stack}\n${server.log().slice(-2000)}`]);
} finally {
  if (server.alive()) await server.kill();
  await server.remove();
  rmSync(killed, { recursive: true, force: true });
}
report.close();
