// Every type through a prepared statement and back, and through its literal.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Server, codes, makeTable, plain, refused, rowsOf, types } from "./server.mjs";

const { BigDecimal, Duration, InetAddress, Integer, LocalDate, LocalTime, Long, TimeUuid, Tuple, Uuid } = types;

let server;
let client;
before(async () => {
  server = await Server.start();
  client = await server.keyspaceClient("types");
});
after(() => server?.remove());

// [type, values for the driver, [literal, what the driver then reads]...]
const cases = [
  ["ascii", ["", "plain ~"], ["'it''s'", "it's"], ["$$a'b$$", "a'b"]],
  ["text", ["", "ä€😀\0x", "x".repeat(70000)], ["'ü'", "ü"]],
  ["varchar", ["v"], ["'v'", "v"]],
  ["boolean", [true, false], ["true", true], ["FALSE", false]],
  ["tinyint", [-128, 0, 127], ["-1", -1]],
  ["smallint", [-32768, 32767], ["300", 300]],
  ["int", [-2147483648, 2147483647], ["+7", null], ["-0", 0]],
  ["bigint", [Long.fromString("-9223372036854775808"), Long.MAX_VALUE], ["9223372036854775807", "9223372036854775807"]],
  [
    "varint",
    [Integer.fromString("-170141183460469231731687303715884105729"), Integer.fromNumber(0), Integer.fromNumber(-128)],
    ["99999999999999999999", "99999999999999999999"],
  ],
  [
    "decimal",
    [BigDecimal.fromString("-0.000000000000000000001"), BigDecimal.fromString("12345678901234567890.5")],
    ["1.50", "1.50"],
  ],
  ["float", [1.5, -0.25, Infinity, -Infinity], ["2.5", 2.5], ["3", 3], ["NaN", NaN]],
  ["double", [1e300, 5e-324, -1.1], ["1.1", 1.1], ["Infinity", Infinity], ["-7", -7]],
  ["blob", [Buffer.alloc(0), Buffer.from("00ff10", "hex")], ["0xCAFE", "0xcafe"], ["0x", "0x"]],
  ["uuid", [Uuid.random()], ["550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"]],
  ["timeuuid", [TimeUuid.now()], ["50554d6e-29bb-11e5-b345-feff819cdc9f", "50554d6e-29bb-11e5-b345-feff819cdc9f"]],
  [
    "timestamp",
    [new Date(0), new Date(-1), new Date("2038-01-19T03:14:07.123Z")],
    ["'2011-02-03T04:05:06.789+0100'", "2011-02-03T03:05:06.789Z"],
    ["'2011-02-03'", "2011-02-03T00:00:00.000Z"],
    ["1500", "1970-01-01T00:00:01.500Z"],
  ],
  [
    "date",
    [LocalDate.fromString("1969-12-31"), LocalDate.fromString("2024-02-29")],
    ["'2011-02-03'", "2011-02-03"],
    ["2147483648", "1970-01-01"],
  ],
  [
    "time",
    [LocalTime.fromString("00:00:00"), LocalTime.fromString("23:59:59.999999999")],
    ["'08:12:54.123'", "08:12:54.123"],
    ["1000000000", "00:00:01"],
  ],
  [
    "duration",
    [new Duration(1, -0, Long.fromNumber(5)), new Duration(-2, -3, Long.fromNumber(-4))],
    ["1y2mo3d4h", "1y2mo3d4h"],
    ["P1Y2D", "1y2d"],
    ["-1us", "-1us"],
  ],
  ["inet", [InetAddress.fromString("127.0.0.1"), InetAddress.fromString("2001:db8::1")], ["'10.0.0.1'", "10.0.0.1"]],
  ["list<int>", [[3, 1, 3]], ["[1, 2]", [1, 2]]],
  ["set<text>", [["a", "b"]], ["{'z', 'a', 'z'}", ["a", "z"]]],
  ["map<text, bigint>", [{ a: Long.fromNumber(1), b: Long.MIN_VALUE }], ["{'k': 5}", { k: "5" }]],
  ["frozen<list<frozen<set<int>>>>", [[[1, 2], [3]]], ["[{3, 1}, {}]", [[1, 3], []]]],
  ["frozen<map<int, frozen<list<text>>>>", [], ["{2: ['b'], 1: ['a', 'a']}", { 1: ["a", "a"], 2: ["b"] }]],
  [
    "map<uuid, frozen<map<text, int>>>",
    [],
    ["{550e8400-e29b-41d4-a716-446655440000: {'x': 1}}", { "550e8400-e29b-41d4-a716-446655440000": { x: 1 } }],
  ],
  [
    "tuple<int, text, float>",
    [new Tuple(1, "x", 0.5), new Tuple(1, null, null)],
    ["(2, 'y', 1.5)", [2, "y", 1.5]],
    ["(2, null, 1.5)", [2, null, 1.5]],
  ],
  [
    "frozen<person>",
    [
      { name: "A", age: 3, tags: ["x"] },
      { name: "B", age: null, tags: null },
    ],
    ["{name: 'C', tags: {'q'}}", { name: "C", age: null, tags: ["q"] }],
  ],
  ["person", [{ name: "D", age: 4, tags: ["x", "y"] }], ["{age: 9}", { name: null, age: 9, tags: null }]],
];

test("every type comes back as it was sent, prepared and as literal", async () => {
  await client.execute("CREATE TYPE person (name text, age int, tags frozen<set<text>>)");
  for (const [type, values, ...literals] of cases) {
    const table = await makeTable(client, `id int PRIMARY KEY, v ${type}`);
    for (const value of values) {
      await client.execute(`INSERT INTO ${table} (id, v) VALUES (1, ?)`, [value], { prepare: true });
      const [[back]] = await rowsOf(client, `SELECT v FROM ${table} WHERE id = ?`, [1]);
      assert.deepEqual(back, plain(value), type);
    }
    for (const [literal, expected] of literals) {
      if (expected === null) {
        await refused(client.execute(`INSERT INTO ${table} (id, v) VALUES (2, ${literal})`), codes.syntaxError);
        continue;
      }
      await client.execute(`INSERT INTO ${table} (id, v) VALUES (2, ${literal})`);
      assert.deepEqual(await rowsOf(client, `SELECT v FROM ${table} WHERE id = 2`), [[expected]], `${type} ${literal}`);
    }
    await client.execute(`INSERT INTO ${table} (id, v) VALUES (1, ?)`, [null], { prepare: true });
    assert.deepEqual(await rowsOf(client, `SELECT id, v FROM ${table} WHERE id = 1`), [[1, null]], type);
  }
});

test("a column tells its type", async () => {
  const table = await makeTable(
    client,
    "id int PRIMARY KEY, a frozen<list<int>>, b map<text, frozen<person>>, c tuple<int, text>, d duration",
  );
  const { columns } = await client.execute(`SELECT a, b, c, d FROM ${table}`);
  assert.deepEqual(
    columns.map(({ name }) => name),
    ["a", "b", "c", "d"],
  );
  assert.equal(columns[0].type.code, types.dataTypes.list);
  assert.equal(columns[1].type.info[1].code, types.dataTypes.udt);
  assert.deepEqual(
    columns[1].type.info[1].info.fields.map(({ name }) => name),
    ["name", "age", "tags"],
  );
  assert.equal(columns[2].type.info.length, 2);
  assert.equal(columns[3].type.info, "org.apache.cassandra.db.marshal.DurationType");
});

// Each as partition key and as clustering key, in the order of its values.
const ordered = [
  ["tinyint", [-128, -1, 0, 127]],
  ["smallint", [-300, 0, 300]],
  ["int", [-2147483648, -1, 0, 1, 2147483647]],
  ["bigint", ["-9223372036854775808", "0", "9223372036854775807"].map((text) => Long.fromString(text))],
  [
    "varint",
    ["-99999999999999999999", "-129", "-128", "-1", "0", "127", "128", "99999999999999999999"].map((text) =>
      Integer.fromString(text),
    ),
  ],
  ["decimal", ["-100", "-1.5", "-0.01", "0", "0.001", "1.49", "1.5", "1000"].map((text) => BigDecimal.fromString(text))],
  ["float", [-Infinity, -1.5, 0, 1.5, Infinity]],
  ["double", [-1e300, -1, 0, 1e-300, 1, 1e300]],
  ["text", ["", "a", "a\0", "aa", "b", "ä"]],
  ["ascii", ["A", "B", "a"]],
  ["blob", ["00", "0000", "00ff", "01", "ff"].map((hex) => Buffer.from(hex, "hex"))],
  ["boolean", [false, true]],
  ["date", ["1900-01-01", "1969-12-31", "1970-01-01", "2024-02-29"].map((text) => LocalDate.fromString(text))],
  ["time", ["00:00:00", "12:00:00", "23:59:59.999999999"].map((text) => LocalTime.fromString(text))],
  ["timestamp", [new Date(-1000), new Date(0), new Date(1000)]],
  ["inet", ["10.0.0.1", "127.0.0.1", "192.168.0.1"].map((text) => InetAddress.fromString(text))],
  [
    "timeuuid",
    [1e12, 1.5e12, 1.7e12].map((ms) =>
      TimeUuid.fromDate(new Date(ms), 5, Buffer.from("000000000001", "hex"), Buffer.from("0001", "hex")),
    ),
  ],
  ["frozen<list<int>>", [[1], [1, 2], [2]]],
  ["frozen<tuple<int, text>>", [new Tuple(1, "a"), new Tuple(1, "b"), new Tuple(2, "a")]],
];

test("keys of every type stand in the order of their values, both ways", async () => {
  for (const [type, values] of ordered) {
    for (const order of ["ASC", "DESC"]) {
      const table = await makeTable(
        client,
        `p int, c ${type}, v int, PRIMARY KEY (p, c)`,
        `WITH CLUSTERING ORDER BY (c ${order})`,
      );
      const mixed = values.map((value, i) => [value, i]).sort((a, b) => ((a[1] * 7) % 5) - ((b[1] * 7) % 5));
      await Promise.all(
        mixed.map(([value, i]) =>
          client.execute(`INSERT INTO ${table} (p, c, v) VALUES (0, ?, ?)`, [value, i], { prepare: true }),
        ),
      );
      const expected = values.map((value, i) => [plain(value), i]);
      if (order === "DESC") expected.reverse();
      assert.deepEqual(await rowsOf(client, `SELECT c, v FROM ${table} WHERE p = 0`), expected, `${type} ${order}`);
      const middle = values[1];
      const above = await rowsOf(client, `SELECT c FROM ${table} WHERE p = 0 AND c >= ?`, [middle]);
      assert.equal(above.length, values.length - 1, `${type} ${order}`);
    }
  }
});

test("partition keys of every type find their rows", async () => {
  for (const [type, values] of ordered) {
    const table = await makeTable(client, `p ${type} PRIMARY KEY, v int`);
    const given = type === "text" || type === "blob" ? values.filter((value) => value.length > 0) : values;
    await Promise.all(
      given.map((value, i) => client.execute(`INSERT INTO ${table} (p, v) VALUES (?, ?)`, [value, i], { prepare: true })),
    );
    for (const [i, value] of given.entries()) {
      assert.deepEqual(await rowsOf(client, `SELECT p, v FROM ${table} WHERE p = ?`, [value]), [[plain(value), i]], type);
    }
    assert.equal((await client.execute(`SELECT * FROM ${table}`)).rowLength, given.length, type);
  }
});

test("an empty partition key is refused", async () => {
  const table = await makeTable(client, "p text PRIMARY KEY, v int");
  await refused(client.execute(`INSERT INTO ${table} (p, v) VALUES ('', 1)`), codes.invalid, /Key may not be empty/);
});

test("values of a wrong size or type are refused", async () => {
  const table = await makeTable(client, "id int PRIMARY KEY, i int, u uuid, t text, a ascii, l list<int>");
  const raw = (name, hint, value) =>
    client.execute(`INSERT INTO ${table} (id, ${name}) VALUES (1, ?)`, [value], { hints: [hint] });
  await refused(raw("i", "blob", Buffer.alloc(3)), codes.invalid, /Expected 4 or 0 byte/);
  await refused(raw("u", "blob", Buffer.alloc(5)), codes.invalid);
  await refused(raw("t", "blob", Buffer.from([0xff, 0xfe])), codes.invalid);
  await refused(raw("a", "blob", Buffer.from([0xc3, 0xa4])), codes.invalid);
  await refused(raw("l", "blob", Buffer.alloc(2)), codes.invalid);
  await refused(client.execute(`INSERT INTO ${table} (id, i) VALUES (1, 'x')`), codes.invalid, /Invalid STRING constant/);
  await refused(client.execute(`INSERT INTO ${table} (id, i) VALUES (1, 3000000000)`), codes.invalid);
  await refused(client.execute(`INSERT INTO ${table} (id, u) VALUES (1, 'x')`), codes.invalid);
});
