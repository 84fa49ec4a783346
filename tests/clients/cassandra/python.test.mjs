// Debian's python3-cassandra. Of cqlsh: cqlsh.test.mjs.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import path from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Server as Process, freePort } from "../../support/server.mjs";
import { Server } from "./server.mjs";

let server;
before(async () => {
  server = await Server.start();
});
after(() => server?.remove());

function outputOf(command, args, seconds) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), seconds * 1000);
    const result = { out: "", err: "" };
    child.stdout.on("data", (chunk) => (result.out += chunk));
    child.stderr.on("data", (chunk) => (result.err += chunk));
    child.once("error", reject);
    child.once("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ ...result, code: code ?? signal });
    });
  });
}

// How many checks went well.
async function drive(...args) {
  const script = fileURLToPath(new URL("python_driver.py", import.meta.url));
  const { code, out, err } = await outputOf("/usr/bin/python3", [script, ...args], 150);
  for (const line of out.split("\n")) if (line.startsWith("not run")) console.log(line);
  const wrong = out.slice(Math.max(0, out.indexOf("FAILED")));
  assert.equal(code, 0, `${wrong}\n${err}`);
  return out.match(/^ok: /gm).length;
}

test("the Python driver", async () => {
  assert.ok((await drive(server.host, `${server.cqlPort}`)) > 50);
});

test("the Python driver over TLS, with roles", async () => {
  const port = await freePort();
  const secure = await Process.start({ dev: false, settings: { "cassandra.port": port } });
  try {
    const certificate = path.join(secure.data, "certificate.pem");
    assert.equal(await drive(secure.host, `${port}`, certificate, "orrery", secure.keys().primary), 4);
  } finally {
    await secure.remove();
  }
});
