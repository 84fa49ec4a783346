// Is the history of one item linearizable? The search of Wing and Gong, with a memo of what was tried.
//
// An operation: {kind, call, end, result, ...}; `call` and `end` are places in one order of events, end is Infinity
// for an unknown outcome. The item is absent (null) or has a value; every write has a value of its own.
//   read             result: the value, or null
//   create value     result: "done" | "exists"
//   upsert value     result: "created" | "replaced"
//   replace value of expected    result: "done" | "other" (412) | "absent"
//   delete           result: "done" | "absent"

// What the operation does to `state`: {next, result}.
function perform(operation, state) {
  switch (operation.kind) {
    case "read":
      return { next: state, result: state };
    case "create":
      return state === null ? { next: operation.value, result: "done" } : { next: state, result: "exists" };
    case "upsert":
      return { next: operation.value, result: state === null ? "created" : "replaced" };
    case "replace":
      if (state === null) return { next: state, result: "absent" };
      return state === operation.expected ? { next: operation.value, result: "done" } : { next: state, result: "other" };
    case "delete":
      return { next: null, result: state === null ? "absent" : "done" };
    default:
      throw new Error(`no such operation: ${operation.kind}`);
  }
}

export class TooLong extends Error {}

// Whether there is an order of the operations that explains every result. Throws TooLong beyond `steps`.
export function linearizable(history, { initial = null, steps = 2_000_000 } = {}) {
  // A read without an answer says nothing.
  const operations = history.filter(({ kind, end }) => kind !== "read" || end !== Infinity).sort((a, b) => a.call - b.call);
  const sure = operations.filter(({ end }) => end !== Infinity).length;
  const done = new Array(operations.length).fill(false);
  const words = new Uint32Array(Math.ceil(operations.length / 32) + 1);
  const seen = new Set();
  let left = steps;

  function search(state, count) {
    if (count === sure) return true;
    if ((left -= 1) < 0) throw new TooLong(`${operations.length} operations`);
    const key = `${words.join()}|${state}`;
    if (seen.has(key)) return false;
    seen.add(key);
    // Only what began before the first of the open ones had ended can be next.
    let limit = Infinity;
    for (const [i, { call, end }] of operations.entries()) {
      if (call > limit) break;
      if (!done[i] && end < limit) limit = end;
    }
    for (const [i, operation] of operations.entries()) {
      if (operation.call > limit) break;
      if (done[i]) continue;
      const { next, result } = perform(operation, state);
      const unknown = operation.end === Infinity;
      if (unknown ? next === state : result !== operation.result) continue;
      done[i] = true;
      words[i >>> 5] |= 1 << (i & 31);
      if (search(next, unknown ? count : count + 1)) return true;
      done[i] = false;
      words[i >>> 5] &= ~(1 << (i & 31));
    }
    return false;
  }
  return search(initial, 0);
}

// The checker itself, on histories whose answer is known: what is wrong, as sentences.
export function selfTest() {
  const wrong = [];
  const op = (call, end, kind, result, more = {}) => ({ call, end, kind, result, ...more });
  const expect = (sentence, expected, history) => {
    if (linearizable(history) !== expected) wrong.push(`${sentence}: must be ${expected}`);
  };
  const write = (call, end, value) => op(call, end, "upsert", call === 1 ? "created" : "replaced", { value });
  expect("a read of what was written", true, [write(1, 2, "a"), op(3, 4, "read", "a")]);
  expect("a read of what was overwritten", false, [write(1, 2, "a"), write(3, 4, "b"), op(5, 6, "read", "a")]);
  expect("a read beside a write sees either", true, [write(1, 2, "a"), write(3, 8, "b"), op(4, 5, "read", "a"), op(6, 7, "read", "b")]);
  expect("reads do not go back", false, [write(1, 2, "a"), write(3, 9, "b"), op(4, 5, "read", "b"), op(6, 7, "read", "a")]);
  const lost = op(3, Infinity, "upsert", undefined, { value: "b" });
  expect("an unknown outcome may be seen late", true, [write(1, 2, "a"), lost, op(4, 5, "read", "a"), op(6, 7, "read", "b")]);
  expect("an unknown outcome may never be seen", true, [write(1, 2, "a"), lost, op(4, 5, "read", "a")]);
  expect("an unknown outcome happens once", false, [write(1, 2, "a"), lost, op(4, 5, "read", "b"), write(6, 7, "c"), op(8, 9, "read", "b")]);
  expect("two creates", false, [op(1, 2, "create", "done", { value: "a" }), op(3, 4, "create", "done", { value: "b" })]);
  expect("a deleted item that comes back", false, [write(1, 2, "a"), op(3, 4, "delete", "done"), op(5, 6, "read", "a")]);
  const replace = (call, end, result, value) => op(call, end, "replace", result, { value, expected: "a" });
  expect("two replacements of one version", false, [write(1, 2, "a"), replace(3, 6, "done", "b"), replace(4, 7, "done", "c")]);
  expect("one of two replacements", true, [write(1, 2, "a"), replace(3, 6, "done", "b"), replace(4, 7, "other", "c")]);
  return wrong;
}
