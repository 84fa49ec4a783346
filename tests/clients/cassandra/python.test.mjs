// Debian's python3-cassandra, and cqlsh where it is installed.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
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

test("the Python driver", async () => {
  const script = fileURLToPath(new URL("python_driver.py", import.meta.url));
  const { code, out, err } = await outputOf("/usr/bin/python3", [script, server.host, `${server.cqlPort}`], 100);
  for (const line of out.split("\n")) if (line.startsWith("not run")) console.log(line);
  const wrong = out.slice(Math.max(0, out.indexOf("FAILED")));
  assert.equal(code, 0, `${wrong}\n${err}`);
  assert.ok(out.match(/^ok: /gm).length > 35, out);
});

test("cqlsh", async (context) => {
  if (spawnSync("cqlsh", ["--version"]).status !== 0) {
    context.skip("cqlsh is not installed");
    return;
  }
  const run = (text) => outputOf("cqlsh", [server.host, `${server.cqlPort}`, "-e", text], 30);
  const shown = await run("SHOW VERSION; DESCRIBE KEYSPACES; SELECT key FROM system.local");
  assert.equal(shown.code, 0, shown.err);
  assert.match(shown.out, /local/);
});
