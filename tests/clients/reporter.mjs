// Prints failures in full, the rest in one line a file, and the totals in the form that ./dev test reads.
import { relative } from "node:path";
import { inspect } from "node:util";

export default async function* report(events) {
  const files = new Map();
  let failed = 0;
  let passed = 0;
  let skipped = 0;
  for await (const { type, data } of events) {
    if (type === "test:stderr" || type === "test:stdout") {
      yield data.message;
    }
    if ((type !== "test:pass" && type !== "test:fail") || data.details?.type === "suite") continue;
    const name = data.file ? relative(process.cwd(), data.file) : data.name;
    const file = files.get(name) ?? { tests: 0, failed: 0, ms: 0 };
    files.set(name, file);
    file.ms += data.details.duration_ms;
    if (data.skip !== undefined) {
      skipped += 1;
      yield `SKIPPED ${name}: ${data.name}: ${data.skip}\n`;
    } else if (type === "test:pass") {
      passed += 1;
      file.tests += 1;
    } else {
      failed += 1;
      file.tests += 1;
      file.failed += 1;
      const error = data.details.error?.cause ?? data.details.error;
      const text = describe(error);
      yield `FAILED ${name}: ${data.name}\n${text === file.last ? "    as the one before" : indent(text)}\n`;
      file.last = text;
    }
  }
  for (const [name, file] of files) {
    yield `${name}: ${file.tests} tests, ${file.failed} failed, ${(file.ms / 1000).toFixed(1)} s\n`;
  }
  if (skipped > 0) yield `${skipped} SKIPPED\n`;
  yield `${passed} passed, ${failed} failed\n`;
}

// The message, and the places in the tests where it came from.
function describe(error) {
  if (typeof error?.stack !== "string") return inspect(error);
  const lines = error.stack.split("\n");
  return lines.filter((line) => !/^ +at .*(node:|node_modules)/.test(line)).join("\n");
}

const indent = (text) => text.replace(/^/gm, "    ");
