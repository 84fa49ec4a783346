// Statements and how they are printed again: the second column shows what the parser understood.
#include <string>

#include <gtest/gtest.h>

#include "cql/parse.h"
#include "cql/statement_text.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

struct Row {
  std::string_view text;
  std::string_view printed = {};  // empty: the text itself
};

void ExpectRows(std::span<const Row> rows) {
  for (const Row& row : rows) {
    Result<Parsed> parsed = Parse(row.text);
    ASSERT_TRUE(parsed) << row.text << "\n" << parsed.error().message();
    std::string printed = StatementText(parsed->statement);
    EXPECT_EQ(printed, row.printed.empty() ? row.text : row.printed);
    Result<Parsed> again = Parse(printed);
    ASSERT_TRUE(again) << printed << "\n" << again.error().message();
    EXPECT_TRUE(*again == *parsed) << printed;
  }
}

void ExpectRefused(std::span<const std::string_view> texts) {
  for (std::string_view text : texts) {
    Result<Parsed> parsed = Parse(text);
    ASSERT_FALSE(parsed) << text << "\n" << StatementText(parsed->statement);
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument) << text;
  }
}

TEST(ParserTest, KeyspaceStatementsAreRead) {
  const Row rows[] = {
      {"USE ks"},
      {"use Ks;", "USE ks"},
      {"USE \"Ks\";;", "USE \"Ks\""},
      {"CREATE KEYSPACE uprofile WITH REPLICATION = { 'class' : 'NetworkTopologyStrategy', "
       "'datacenter1' : 1 };",
       "CREATE KEYSPACE uprofile WITH replication = {'class': 'NetworkTopologyStrategy', "
       "'datacenter1': '1'}"},
      {"create schema if not exists k with replication = {'class':'SimpleStrategy',"
       "'replication_factor':3} and durable_writes = FALSE",
       "CREATE KEYSPACE IF NOT EXISTS k WITH replication = {'class': 'SimpleStrategy', "
       "'replication_factor': '3'} AND durable_writes = 'false'"},
      {"ALTER KEYSPACE IF EXISTS k WITH durable_writes = 'true'"},
      {"ALTER KEYSPACE k WITH replication = {}"},
      {"DROP KEYSPACE k"},
      {"drop schema if exists k", "DROP KEYSPACE IF EXISTS k"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "USE",
      "USE a.b",
      "USE 'a'",
      "USE \"\"",
      "USE select",
      "CREATE KEYSPACE k",
      "CREATE KEYSPACE k WITH",
      "CREATE KEYSPACE k WITH replication",
      "CREATE KEYSPACE k WITH replication = {'a': }",
      "CREATE KEYSPACE k WITH replication = {'a': 'b'",
      "CREATE KEYSPACE k WITH replication = {'a': ?}",
      "CREATE KEYSPACE k WITH replication = null",
      "CREATE KEYSPACE IF EXISTS k WITH a = 1",
      "CREATE KEYSPACE IF NOT k WITH a = 1",
      "ALTER KEYSPACE k",
      "DROP KEYSPACE",
      "DROP KEYSPACE a.b",
      "CREATE",
      "CREATE OR REPLACE TABLE t (a int PRIMARY KEY)",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, TableStatementsAreRead) {
  const Row rows[] = {
      {"CREATE TABLE t (a int PRIMARY KEY,)", "CREATE TABLE t (a int, PRIMARY KEY ((a)))"},
      {"CREATE TABLE IF NOT EXISTS uprofile.user (user_id int, user_name text, user_bcity text, "
       "PRIMARY KEY (user_id, user_name)) WITH cosmosdb_provisioned_throughput = 4000",
       "CREATE TABLE IF NOT EXISTS uprofile.user (user_id int, user_name text, user_bcity text, "
       "PRIMARY KEY ((user_id), user_name)) WITH cosmosdb_provisioned_throughput = '4000'"},
      {"CREATE COLUMNFAMILY t (a int, b int, c int, d int static, PRIMARY KEY ((a, b), c)) WITH "
       "CLUSTERING ORDER BY (c DESC) AND gc_grace_seconds = 10 AND COMPACT STORAGE",
       "CREATE TABLE t (a int, b int, c int, d int STATIC, PRIMARY KEY ((a, b), c)) WITH COMPACT "
       "STORAGE AND CLUSTERING ORDER BY (c DESC) AND gc_grace_seconds = '10'"},
      {"CREATE TABLE t (a ascii, b bigint, c blob, d boolean, e counter, f date, g decimal, h "
       "double, i duration, j float, k inet, l int, m smallint, n text, o time, p timestamp, q "
       "timeuuid, r tinyint, s uuid, t varchar, u varint, PRIMARY KEY ((a)))",
       "CREATE TABLE t (a ascii, b bigint, c blob, d boolean, e counter, f date, g decimal, h "
       "double, i duration, j float, k inet, l int, m smallint, n text, o time, p timestamp, q "
       "timeuuid, r tinyint, s uuid, t text, u varint, PRIMARY KEY ((a)))"},
      {"CREATE TABLE t (k int, a list<int>, b set<text>, c map<text, frozen<list<int>>>, d "
       "tuple<int, text>, e vector<float, 1536>, f frozen<ks.\"Addr\">, g addr, h "
       "'org.apache.cassandra.db.marshal.Int32Type', i \"int\", PRIMARY KEY ((k)))"},
      {"CREATE TABLE t (key int, values text, list int, set_ int, json text, PRIMARY KEY ((key)))"},
      {"CREATE TABLE t (a text MASKED WITH DEFAULT, b text MASKED WITH mask_inner(1, null), "
       "PRIMARY KEY ((a)))",
       "CREATE TABLE t (a text MASKED WITH mask_default(), b text MASKED WITH mask_inner(1, "
       "null), PRIMARY KEY ((a)))"},
      {"CREATE TABLE t (a int) WITH comment = 'it''s' AND x = -1.5 AND speculative_retry = "
       "'99p' AND caching = {'keys': 'ALL'} AND id = 550e8400-e29b-41d4-a716-446655440000 AND "
       "y = all AND z = -NaN",
       "CREATE TABLE t (a int) WITH comment = 'it''s' AND x = '-1.5' AND speculative_retry = "
       "'99p' AND caching = {'keys': 'ALL'} AND id = '550e8400-e29b-41d4-a716-446655440000' AND "
       "y = 'all' AND z = 'NaN'"},
      {"CREATE TABLE t (a int PRIMARY KEY, b int PRIMARY KEY)",
       "CREATE TABLE t (a int, b int, PRIMARY KEY ((a)), PRIMARY KEY ((b)))"},
      {"ALTER TABLE t ADD a int", "ALTER TABLE t ADD (a int)"},
      {"ALTER TABLE IF EXISTS k.t ADD IF NOT EXISTS a int static",
       "ALTER TABLE IF EXISTS k.t ADD IF NOT EXISTS (a int STATIC)"},
      {"ALTER TABLE t ADD (a int, b text)"},
      {"ALTER TABLE t DROP a", "ALTER TABLE t DROP (a)"},
      {"ALTER TABLE t DROP IF EXISTS (a, b) USING TIMESTAMP 5"},
      {"ALTER TABLE t DROP compact", "ALTER TABLE t DROP (compact)"},
      {"ALTER TABLE t DROP COMPACT STORAGE"},
      {"ALTER TABLE t RENAME a TO b AND c TO \"D\""},
      {"ALTER TABLE t RENAME IF EXISTS a TO b"},
      {"ALTER TABLE t ALTER a TYPE text"},
      {"ALTER TABLE t ALTER IF EXISTS a MASKED WITH mask_hash()"},
      {"ALTER TABLE t ALTER a DROP MASKED"},
      {"ALTER TABLE t WITH default_time_to_live = '10' AND compaction = {'class': 'x'}"},
      {"DROP TABLE IF EXISTS k.t"},
      {"DROP COLUMNFAMILY t", "DROP TABLE t"},
      {"TRUNCATE t"},
      {"TRUNCATE TABLE k.t", "TRUNCATE k.t"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "CREATE TABLE t",
      "CREATE TABLE t ()",
      "CREATE TABLE t (a)",
      "CREATE TABLE t (,a int)",
      "CREATE TABLE t (a int PRIMARY)",
      "CREATE TABLE t (a int, PRIMARY KEY a)",
      "CREATE TABLE t (a int, PRIMARY KEY ())",
      "CREATE TABLE t (a int, PRIMARY KEY (()))",
      "CREATE TABLE t (a int, PRIMARY KEY ((a), (b)))",
      "CREATE TABLE t (a list<>)",
      "CREATE TABLE t (a list<int)",
      "CREATE TABLE t (a list<int, int>)",
      "CREATE TABLE t (a map<int>)",
      "CREATE TABLE t (a vector<float>)",
      "CREATE TABLE t (a vector<float, x>)",
      "CREATE TABLE t (a vector<float, 99999999999>)",
      "CREATE TABLE t (a frozen<int, int>)",
      "CREATE TABLE t (a int<int>)",
      "CREATE TABLE t (a int) WITH",
      "CREATE TABLE t (a int) WITH CLUSTERING ORDER BY (a)",
      "CREATE TABLE t (a int) WITH CLUSTERING ORDER BY a ASC",
      "CREATE TABLE t (a int) WITH x = foo",
      "CREATE TABLE a.b.c (a int)",
      "ALTER TABLE t",
      "ALTER TABLE t ADD",
      "ALTER TABLE t ADD (a int",
      "ALTER TABLE t ADD a int, b int",
      "ALTER TABLE t DROP a, b",
      "ALTER TABLE t WITH CLUSTERING ORDER BY (a ASC)",
      "ALTER TABLE t RENAME a",
      "ALTER TABLE t ALTER a",
      "DROP TABLE t u",
      "TRUNCATE",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, OtherSchemaStatementsAreRead) {
  const Row rows[] = {
      {"CREATE TYPE IF NOT EXISTS k.addr (street text, zip frozen<set<int>>)"},
      {"ALTER TYPE addr ADD city text"},
      {"ALTER TYPE IF EXISTS addr ADD IF NOT EXISTS city text"},
      {"ALTER TYPE addr RENAME a TO b AND c TO d"},
      {"ALTER TYPE addr ALTER zip TYPE text"},
      {"DROP TYPE IF EXISTS k.addr"},
      {"CREATE INDEX ON t (a)", "CREATE INDEX  ON t (a)"},
      {"CREATE INDEX IF NOT EXISTS i ON k.t (keys(a))"},
      {"CREATE INDEX i ON t(VALUES(a))", "CREATE INDEX i ON t (values(a))"},
      {"CREATE INDEX i ON t (entries(a))"},
      {"CREATE INDEX i ON t (full(\"A\"))"},
      {"CREATE INDEX i ON t (keys)"},
      {"CREATE INDEX i ON t (a) USING 'sai' WITH OPTIONS = {'case_sensitive': false, "
       "'normalize': 'true'}",
       "CREATE INDEX i ON t (a) USING 'sai' WITH options = {'case_sensitive': 'false', "
       "'normalize': 'true'}"},
      {"CREATE CUSTOM INDEX i ON t (a, b) USING 'org.apache.cassandra.index.sasi.SASIIndex'"},
      {"CREATE CUSTOM INDEX i ON t () USING 'x'"},
      {"DROP INDEX IF EXISTS k.i"},
      {"CREATE MATERIALIZED VIEW IF NOT EXISTS k.v AS SELECT * FROM k.t WHERE a IS NOT NULL AND b "
       "IS NOT NULL AND c > 5 PRIMARY KEY (b, a) WITH CLUSTERING ORDER BY (a DESC)",
       "CREATE MATERIALIZED VIEW IF NOT EXISTS k.v AS SELECT * FROM k.t WHERE a IS NOT NULL AND b "
       "IS NOT NULL AND c > 5 PRIMARY KEY ((b), a) WITH CLUSTERING ORDER BY (a DESC)"},
      {"CREATE MATERIALIZED VIEW v AS SELECT a, b FROM t PRIMARY KEY ((b))"},
      {"ALTER MATERIALIZED VIEW IF EXISTS v WITH comment = 'x'"},
      {"DROP MATERIALIZED VIEW IF EXISTS v"},
      {"CREATE OR REPLACE FUNCTION k.f (a int, b frozen<list<int>>) CALLED ON NULL INPUT RETURNS "
       "text LANGUAGE java AS $$ return \"it's\"; $$",
       "CREATE OR REPLACE FUNCTION k.f(a int, b frozen<list<int>>) CALLED ON NULL INPUT RETURNS "
       "text LANGUAGE java AS ' return \"it''s\"; '"},
      {"CREATE FUNCTION IF NOT EXISTS f() RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS "
       "'x'"},
      {"DROP FUNCTION IF EXISTS k.f(int, text)"},
      {"DROP FUNCTION f"},
      {"CREATE AGGREGATE k.a(int) SFUNC f STYPE tuple<int, bigint> FINALFUNC g INITCOND (0, 0)"},
      {"CREATE OR REPLACE AGGREGATE IF NOT EXISTS a() SFUNC f STYPE int"},
      {"DROP AGGREGATE IF EXISTS a()"},
      {"CREATE TRIGGER IF NOT EXISTS tr ON k.t USING 'x.Y'"},
      {"DROP TRIGGER IF EXISTS tr ON t"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "CREATE TYPE a ()",
      "CREATE TYPE int (a int)",
      "CREATE TYPE k.text (a int)",
      "CREATE TYPE macaddr (a int)",
      "CREATE INDEX k.i ON t (a)",
      "CREATE TYPE a (b)",
      "CREATE TYPE a (b int static)",
      "ALTER TYPE a",
      "ALTER TYPE a ADD (b int)",
      "CREATE INDEX i ON t",
      "CREATE INDEX i ON t (keys(a)",
      "CREATE INDEX i ON t (f(a))",
      "CREATE INDEX i (a)",
      "CREATE INDEX i ON t (a) USING x",
      "CREATE CUSTOM TABLE t (a int)",
      "CREATE MATERIALIZED v AS SELECT * FROM t PRIMARY KEY (a)",
      "CREATE MATERIALIZED VIEW v AS SELECT * FROM t",
      "CREATE FUNCTION f(a) RETURNS int",
      "CREATE AGGREGATE a(int)",
      "DROP TRIGGER tr",
      "DROP",
      "DROP x",
      "ALTER x",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, RoleStatementsAreRead) {
  const Row rows[] = {
      {"CREATE ROLE Alice", "CREATE ROLE 'alice'"},
      {"CREATE ROLE IF NOT EXISTS \"Alice\" WITH PASSWORD = 'p' AND LOGIN = true AND SUPERUSER = "
       "false AND OPTIONS = {'a': 1}",
       "CREATE ROLE IF NOT EXISTS 'Alice' WITH PASSWORD = 'p' AND LOGIN = true AND SUPERUSER = "
       "false AND OPTIONS = {'a': '1'}"},
      {"CREATE ROLE 'r' WITH HASHED PASSWORD = '$2a$'"},
      {"CREATE ROLE 'r' WITH ACCESS TO DATACENTERS {'a', 'b'} AND ACCESS FROM CIDRS {'c'}"},
      {"ALTER ROLE 'r' WITH ACCESS TO ALL DATACENTERS AND ACCESS FROM ALL CIDRS"},
      {"ALTER ROLE IF EXISTS r WITH LOGIN = false", "ALTER ROLE IF EXISTS 'r' WITH LOGIN = false"},
      {"DROP ROLE IF EXISTS 'r'"},
      {"CREATE USER Bob WITH PASSWORD 'p' SUPERUSER",
       "CREATE USER 'Bob' WITH PASSWORD 'p' SUPERUSER"},
      {"CREATE USER IF NOT EXISTS 'b' NOSUPERUSER"},
      {"ALTER USER 'b' WITH HASHED PASSWORD 'h'"},
      {"DROP USER IF EXISTS 'b'"},
      {"LIST USERS"},
      {"LIST ROLES"},
      {"LIST ROLES OF r NORECURSIVE", "LIST ROLES OF 'r' NORECURSIVE"},
      {"GRANT admin TO bob", "GRANT 'admin' TO 'bob'"},
      {"REVOKE 'a' FROM 'b'"},
      {"GRANT SELECT ON ks.t TO bob", "GRANT SELECT PERMISSION ON TABLE ks.t TO 'bob'"},
      {"GRANT ALL PERMISSIONS ON KEYSPACE ks TO bob", "GRANT ALL ON KEYSPACE ks TO 'bob'"},
      {"REVOKE ALL ON ALL KEYSPACES FROM 'b'"},
      {"GRANT CREATE PERMISSION, ALTER PERMISSION, DROP ON ALL TABLES IN KEYSPACE k TO b",
       "GRANT CREATE, ALTER, DROP PERMISSION ON ALL TABLES IN KEYSPACE k TO 'b'"},
      {"GRANT MODIFY PERMISSION ON TABLE t TO 'b'"},
      {"GRANT AUTHORIZE PERMISSION ON ALL ROLES TO 'b'"},
      {"GRANT DESCRIBE PERMISSION ON ROLE 'x' TO 'b'"},
      {"GRANT EXECUTE PERMISSION ON ALL FUNCTIONS TO 'b'"},
      {"GRANT EXECUTE PERMISSION ON ALL FUNCTIONS IN KEYSPACE k TO 'b'"},
      {"GRANT EXECUTE PERMISSION ON FUNCTION k.f(int, text) TO 'b'"},
      {"GRANT SELECT PERMISSION ON ALL MBEANS TO 'b'"},
      {"GRANT SELECT PERMISSION ON MBEANS 'x:*' TO 'b'"},
      {"GRANT SELECT PERMISSION ON MBEAN 'x' TO 'b'"},
      {"GRANT UNMASK, SELECT_MASKED PERMISSION ON TABLE t TO 'b'"},
      {"LIST ALL"},
      {"LIST ALL PERMISSIONS OF bob", "LIST ALL OF 'bob'"},
      {"LIST SELECT PERMISSION ON TABLE k.t OF 'b' NORECURSIVE"},
      {"ADD IDENTITY IF NOT EXISTS 'i' TO ROLE r", "ADD IDENTITY IF NOT EXISTS 'i' TO ROLE 'r'"},
      {"DROP IDENTITY IF EXISTS 'i'"},
      {"ADD IDENTITY Id TO ROLE r", "ADD IDENTITY 'Id' TO ROLE 'r'"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "CREATE ROLE",
      "CREATE ROLE r WITH",
      "CREATE ROLE r WITH PASSWORD 'p'",
      "CREATE ROLE r WITH PASSWORD = p",
      "CREATE ROLE r WITH LOGIN = 1",
      "CREATE ROLE ?",
      "CREATE ROLE r WITH PASSWORD = 'p' AND HASHED PASSWORD = 'h'",
      "GRANT describe TO b",
      "CREATE USER \"Bob\"",
      "CREATE USER b WITH 'p'",
      "LIST",
      "LIST x",
      "GRANT",
      "GRANT SELECT TO b ON t",
      "GRANT SELECT ON t",
      "GRANT SELECT, ON t TO b",
      "GRANT SELECT ON t FROM b",
      "GRANT ALL ON ALL TO b",
      "REVOKE a TO b",
      "ADD IDENTITY 'i'",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, ChangesAreRead) {
  const Row rows[] = {
      {"INSERT INTO uprofile.user (user_id, user_name, user_bcity) VALUES (1, 'LyubovK', 'Dubai')"},
      {"insert into t(A,\"B\")values(?,:Name)if not exists using ttl 5 and timestamp ?;",
       "INSERT INTO t (a, \"B\") VALUES (?, :name) IF NOT EXISTS USING TIMESTAMP ? AND TTL 5"},
      {"INSERT INTO t (a) VALUES (1, 2)"},
      {"INSERT INTO t JSON '{\"a\": 1}'", "INSERT INTO t JSON '{\"a\": 1}' DEFAULT NULL"},
      {"INSERT INTO t JSON :j DEFAULT UNSET IF NOT EXISTS USING TTL 5"},
      {"INSERT INTO json (json) VALUES (1)"},
      {"UPDATE k.t USING TIMESTAMP 1 AND TTL ? SET a = 1, b = null WHERE k = 1 AND c IN (1, 2)"},
      {"UPDATE t SET c = c + 1 WHERE k = 1", "UPDATE t SET c += 1 WHERE k = 1"},
      {"UPDATE t SET c += ? WHERE k = 1"},
      {"UPDATE t SET c=c-1 WHERE k=1", "UPDATE t SET c = c - 1 WHERE k = 1"},
      {"UPDATE t SET c -= 1 WHERE k = 1", "UPDATE t SET c = c - 1 WHERE k = 1"},
      {"UPDATE t SET c = c - -1 WHERE k = 1"},
      {"UPDATE t SET l = l + [1], s = s - {2}, m = m + {'a': 1} WHERE k = 1",
       "UPDATE t SET l += [1], s = s - {2}, m += {'a': 1} WHERE k = 1"},
      {"UPDATE t SET l = [1] + l, m = ? + m WHERE k = 1"},
      {"UPDATE t SET l[0] = 1, m['x'] = ?, u.f = 2, u.\"G\" = null WHERE k = 1"},
      {"UPDATE t SET a = 1 + 2 * f(3) WHERE k = 1"},
      {"UPDATE t SET a = now() WHERE k = 1 IF EXISTS"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF a = 1 AND b != null AND c IN (1, 2) AND d IN ? AND e >= "
       "?"},
      {"UPDATE t SET a = 1 WHERE k = 1 IF l[0] = 1 AND m['x'] > 2 AND u.f = 3 AND s CONTAINS 4 AND "
       "m CONTAINS KEY 5 AND l[1] IN (1, 2)"},
      {"DELETE FROM t WHERE k = 1", "DELETE  FROM t WHERE k = 1"},
      {"DELETE a, l[0], m[?], u.f FROM t USING TIMESTAMP 5 WHERE k = 1 AND c > 2 IF EXISTS"},
      {"DELETE a FROM t WHERE k = 1 IF b = 2"},
      {"BEGIN BATCH INSERT INTO t (a) VALUES (1); UPDATE t SET a = 1 WHERE k = 1; DELETE a FROM t "
       "WHERE k = 1; APPLY BATCH"},
      {"BEGIN UNLOGGED BATCH USING TIMESTAMP 5 INSERT INTO t (a) VALUES (1) INSERT INTO t (a) "
       "VALUES (2) APPLY BATCH;",
       "BEGIN UNLOGGED BATCH USING TIMESTAMP 5 INSERT INTO t (a) VALUES (1); INSERT INTO t (a) "
       "VALUES (2); APPLY BATCH"},
      {"BEGIN COUNTER BATCH UPDATE t SET c += 1 WHERE k = ?; APPLY BATCH"},
      {"BEGIN LOGGED BATCH APPLY BATCH", "BEGIN BATCH APPLY BATCH"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "INSERT INTO t",
      "INSERT INTO t () VALUES ()",
      "INSERT INTO t (a) VALUES ()",
      "INSERT INTO t (a) VALUES 1",
      "INSERT INTO t (a) VALUES (b)",
      "INSERT INTO t (a) VALUES (1) IF EXISTS",
      "INSERT INTO t (a) VALUES (1) USING TTL 'x'",
      "INSERT INTO t (a) VALUES (1) USING TTL 5 IF NOT EXISTS",
      "INSERT INTO t JSON 5",
      "INSERT INTO t JSON '{}' DEFAULT",
      "INSERT t (a) VALUES (1)",
      "UPDATE t SET",
      "UPDATE t SET WHERE k = 1",
      "UPDATE t SET a WHERE k = 1",
      "UPDATE t SET a = b WHERE k = 1",
      "UPDATE t SET a = 1, WHERE k = 1",
      "UPDATE t SET a = 1 WHERE k",
      "UPDATE t SET a = 1 WHERE k = 1 IF",
      "UPDATE t SET a = 1 WHERE k = 1 IF NOT EXISTS",
      "UPDATE t SET a = 1 WHERE k = 1 OR k = 2",
      "UPDATE t SET a[1] += 1 WHERE k = 1",
      "UPDATE t SET a = 1 WHERE k = 1 IF a LIKE 'x'",
      "UPDATE t SET a = 1 WHERE k = 1 IF a BETWEEN 1 AND 2",
      "UPDATE t SET a = 1 WHERE k = 1 IF a IS NOT NULL",
      "UPDATE t SET a = 1 WHERE k = 1 IF (a, b) = (1, 2)",
      "UPDATE t WHERE k = 1",
      "DELETE FROM t",
      "DELETE * FROM t WHERE k = 1",
      "DELETE FROM t USING TTL 5 WHERE k = 1",
      "BEGIN BATCH SELECT * FROM t APPLY BATCH",
      "BEGIN BATCH",
      "BEGIN BATCH APPLY",
      "BEGIN BATCH ; APPLY BATCH",
      "APPLY BATCH",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, SelectorsAreRead) {
  const Row rows[] = {
      {"SELECT * FROM system.local WHERE key='local'",
       "SELECT * FROM system.local WHERE key = 'local'"},
      {"SELECT a, \"B\", c AS d FROM t"},
      {"SELECT JSON DISTINCT a FROM t"},
      {"SELECT json FROM t", "SELECT \"json\" FROM t"},
      {"SELECT distinct, json FROM t", "SELECT \"distinct\", \"json\" FROM t"},
      {"SELECT JSON json FROM t", "SELECT JSON \"json\" FROM t"},
      {"SELECT JSON * FROM t"},
      {"SELECT COUNT(*), count(1), count(a), count('x'), count(null), count(?) FROM t",
       "SELECT count(*), count(*), count(a), count(*), count(null), count(?) FROM t"},
      {"SELECT count, ttl, writetime, key, cast, as FROM t",
       "SELECT count, ttl, writetime, key, cast, \"as\" FROM t"},
      {"SELECT writetime(a), maxwritetime(b[1]), TTL(c.d), token(k, l) AS t FROM t",
       "SELECT writetime(a), maxwritetime(b[1]), ttl(c.d), token(k, l) AS t FROM t"},
      {"SELECT cast(a AS text), k.f(a, 1, ?), now(), uuid() FROM t",
       "SELECT CAST(a AS text), k.f(a, 1, ?), now(), uuid() FROM t"},
      {"SELECT a + b * -c - 2 % (d - 1) / e FROM t"},
      {"SELECT -a, - -a, -(a), a - 1, a -1, a-1 FROM t",
       "SELECT -a, - -a, -(a), a - 1, a - 1, a - 1 FROM t"},
      {"SELECT m['a'], l[0..2], l[..2], l[1..], u.f.g, f(a).b FROM t",
       "SELECT m['a'], l[0 .. 2], l[ .. 2], l[1 .. ], u.f.g, f(a).b FROM t"},
      {"SELECT (int)5, (list<int>)[1], (text)'x', (ks.addr){street: 'a'}, (a), (a, b), (a) - 1, "
       "(int)-1, (int)a FROM t"},
      {"SELECT 1, 'x', 1.5, true, null, NaN, -Infinity, 0xff, 1h30m, "
       "550e8400-e29b-41d4-a716-446655440000, [1], {1}, {'a': 1}, {}, {a: b} FROM t"},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "SELECT",
      "SELECT FROM t",
      "SELECT * FROM",
      "SELECT *, a FROM t",
      "SELECT a, * FROM t",
      "SELECT a b FROM t",
      "SELECT a AS FROM t",
      "SELECT a. FROM t",
      "SELECT a[] FROM t",
      "SELECT a + FROM t",
      "SELECT count(* FROM t",
      "SELECT f(*) FROM t",
      "SELECT writetime(f(a)) FROM t",
      "SELECT writetime(1) FROM t",
      "SELECT writetime(a, b) FROM t",
      "SELECT cast(a text) FROM t",
      "SELECT () FROM t",
      "SELECT [1 FROM t",
      "SELECT {1: } FROM t",
      "SELECT {1, 2: 3} FROM t",
      "SELECT token FROM t",
      "SELECT 1.a FROM t",
      "SELECT ?[0] FROM t",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, ClausesOfSelectAreRead) {
  const Row rows[] = {
      {"SELECT * FROM t WHERE a = 1 AND b < ? AND c <= :x AND d > -1 AND e >= 1.5 AND f != 'x'"},
      {"SELECT * FROM t WHERE a IN (1, ?) AND b IN () AND c IN ? AND d IN :d"},
      {"SELECT * FROM t WHERE (a, b) > (1, 2) AND (a, b) <= ? AND (c, d) IN ((1, 2), ?) AND (c) IN "
       ":x"},
      {"SELECT * FROM t WHERE token(a, b) > -9223372036854775808 AND TOKEN(a, b) <= token(1, ?)",
       "SELECT * FROM t WHERE token(a, b) > -9223372036854775808 AND token(a, b) <= token(1, ?)"},
      {"SELECT * FROM t WHERE a CONTAINS 1 AND b CONTAINS KEY 'x' AND m['k'] = 2 AND n LIKE '%a%' "
       "AND o IS NOT NULL AND p BETWEEN 1 AND 2 AND token(q) BETWEEN ? AND ?"},
      {"SELECT * FROM t WHERE (a = 1) AND ((b IN (2)))",
       "SELECT * FROM t WHERE a = 1 AND b IN (2)"},
      {"SELECT * FROM t WHERE expr(k.i, 'lucene') AND a = 1",
       "SELECT * FROM t WHERE a = 1 AND expr(k.i, 'lucene')"},
      {"SELECT * FROM t WHERE a > maxTimeuuid('2013-01-01 00:05+0000') AND b = (uuid)now()",
       "SELECT * FROM t WHERE a > maxtimeuuid('2013-01-01 00:05+0000') AND b = (uuid)now()"},
      {"SELECT a, max(b) FROM t GROUP BY a, floor(time, 5m)"},
      {"SELECT * FROM t WHERE a = 1 ORDER BY b ASC, c DESC",
       "SELECT * FROM t WHERE a = 1 ORDER BY b, c DESC"},
      {"SELECT * FROM t ORDER BY v ANN OF [1.0, 2.0] LIMIT 5"},
      {"SELECT * FROM t PER PARTITION LIMIT 2 LIMIT ? ALLOW FILTERING"},
      {"SELECT * FROM t PER PARTITION LIMIT :a LIMIT 10"},
      {"SELECT * FROM t -- the end\n;", "SELECT * FROM t"},
      {"SELECT /* a */ a // b\nFROM t", "SELECT a FROM t"},
      {"SELECT a AS key, b AS \"X y\" FROM \"K\".\"T\""},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "SELECT * FROM t WHERE",
      "SELECT * FROM t WHERE a",
      "SELECT * FROM t WHERE a =",
      "SELECT * FROM t WHERE a = b",
      "SELECT * FROM t WHERE a = 1 AND",
      "SELECT * FROM t WHERE a == 1",
      "SELECT * FROM t WHERE a IS NULL",
      "SELECT * FROM t WHERE a IN 1",
      "SELECT * FROM t WHERE a.b = 1",
      "SELECT * FROM t WHERE 1 = a",
      "SELECT * FROM t WHERE (a, b) CONTAINS 1",
      "SELECT * FROM t WHERE (a, b) = 1",
      "SELECT * FROM t WHERE (a, b) IN (1, 2)",
      "SELECT * FROM t WHERE (a, b) > f(1)",
      "SELECT * FROM t WHERE m['a'] IN (1)",
      "SELECT * FROM t WHERE m['a'] BETWEEN 1 AND 2",
      "SELECT * FROM t WHERE token(a) IN (1)",
      "SELECT * FROM t WHERE token() > 1",
      "SELECT * FROM t WHERE NOT a = 1",
      "SELECT * FROM t WHERE a = 1 OR b = 2",
      "SELECT * FROM t WHERE a BETWEEN 1",
      "SELECT * FROM t WHERE (a = 1",
      "SELECT * FROM t LIMIT",
      "SELECT * FROM t LIMIT 'a'",
      "SELECT * FROM t LIMIT 1 PER PARTITION LIMIT 1",
      "SELECT * FROM t ALLOW",
      "SELECT * FROM t ORDER a",
      "SELECT * FROM t GROUP a",
      "SELECT * FROM t, u",
      "SELECT * FROM t WHERE a = 1 2",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, DescribeIsRead) {
  const Row rows[] = {
      {"DESCRIBE CLUSTER"},
      {"DESC FULL SCHEMA;", "DESCRIBE FULL SCHEMA"},
      {"DESCRIBE SCHEMA WITH INTERNALS"},
      {"describe keyspaces", "DESCRIBE KEYSPACES"},
      {"DESCRIBE TABLES"},
      {"DESCRIBE COLUMNFAMILIES", "DESCRIBE TABLES"},
      {"DESCRIBE TYPES"},
      {"DESCRIBE FUNCTIONS"},
      {"DESCRIBE AGGREGATES"},
      {"DESCRIBE KEYSPACE k"},
      {"DESCRIBE KEYSPACE", "DESCRIBE KEYSPACE "},
      {"DESCRIBE ONLY KEYSPACE k WITH INTERNALS"},
      {"DESCRIBE TABLE k.t WITH INTERNALS"},
      {"DESCRIBE COLUMNFAMILY \"T\"", "DESCRIBE TABLE \"T\""},
      {"DESCRIBE INDEX k.i"},
      {"DESCRIBE MATERIALIZED VIEW v"},
      {"DESCRIBE TYPE k.u"},
      {"DESCRIBE FUNCTION k.f"},
      {"DESCRIBE AGGREGATE a"},
      {"DESCRIBE k.t"},
      {"DESC Anything", "DESCRIBE \"anything\""},
      {"DESCRIBE \"tables\""},
  };
  ExpectRows(rows);
  const std::string_view refused[] = {
      "DESCRIBE",           "DESCRIBE TABLE", "DESCRIBE FULL TABLE t", "DESCRIBE FULL k",
      "DESCRIBE CLUSTER x", "DESCRIBE a.b.c", "DESCRIBE t WITH",
  };
  ExpectRefused(refused);
}

TEST(ParserTest, MarkersAreCountedInTheOrderOfTheText) {
  Result<Parsed> parsed = Parse(
      "UPDATE t USING TTL :ttl SET a = ?, l[?] = :\"V\" WHERE k = :key AND c IN ? IF b = : x");
  ASSERT_TRUE(parsed) << parsed.error().message();
  EXPECT_EQ(parsed->markers, (std::vector<std::string>{"ttl", "", "", "V", "key", "", "x"}));
  const Update& update = std::get<Update>(parsed->statement);
  EXPECT_EQ(update.using_.ttl->marker, 0);
  EXPECT_EQ(update.assignments[1].element->marker, 2);
  EXPECT_EQ(update.assignments[1].value.text, "V");
  EXPECT_EQ(update.where.relations[1].values[0].marker, 5);
  EXPECT_TRUE(update.where.relations[1].in_marker);
}

TEST(ParserTest, ConstantsKeepTheirKind) {
  struct Constant {
    std::string_view text;
    ExpressionKind kind;
    std::string_view value;
  };
  using enum ExpressionKind;
  const Constant constants[] = {
      {"null", kNull, ""},
      {"'a''b'", kString, "a'b"},
      {"$$a'b$$", kString, "a'b"},
      {"-12", kInteger, "-12"},
      {"- 12", kInteger, "-12"},
      {"1.5e-3", kFloat, "1.5e-3"},
      {"-1.", kFloat, "-1."},
      {"nan", kFloat, "NaN"},
      {"-NaN", kFloat, "NaN"},
      {"INFINITY", kFloat, "Infinity"},
      {"-infinity", kFloat, "-Infinity"},
      {"TRUE", kBoolean, "true"},
      {"0xFF", kBlob, "0xFF"},
      {"550e8400-e29b-41d4-a716-446655440000", kUuid, "550e8400-e29b-41d4-a716-446655440000"},
      {"-1d12h", kDuration, "-1d12h"},
      {"P1Y", kDuration, "P1Y"},
      {"-P1DT1H", kDuration, "-P1DT1H"},
  };
  for (const Constant& constant : constants) {
    Result<Expression> term = ParseTerm(constant.text);
    ASSERT_TRUE(term) << constant.text << "\n" << term.error().message();
    EXPECT_EQ(term->kind, constant.kind) << constant.text;
    EXPECT_EQ(term->text, constant.value) << constant.text;
  }
}

TEST(ParserTest, TypesAreReadAlone) {
  for (std::string_view text : {"int", "frozen<map<text, frozen<list<int>>>>",
                                "tuple<int, text, ks.\"U\">", "vector<frozen<tuple<float>>, 3>",
                                "'a.b.C'", "\"text\"", "ks.\"int\"", "\"byte\"", "list"}) {
    Result<TypeName> type = ParseType(text);
    ASSERT_TRUE(type) << text << "\n" << type.error().message();
    EXPECT_EQ(ToCql(*type), text);
  }
  EXPECT_EQ(ParseType("VarChar")->id, TypeId::kText);
  EXPECT_FALSE(ParseType("int int"));
  EXPECT_FALSE(ParseType(""));
}

TEST(ParserTest, TheWhereOfAViewIsReadAlone) {
  std::string_view text = "\"A\" IS NOT NULL AND b IN ('x', 'y''z') AND (c, d) >= (1, 2)";
  Result<Where> where = ParseWhere(text);
  ASSERT_TRUE(where) << where.error().message();
  EXPECT_EQ(where->relations.size(), 3u);
  EXPECT_EQ(ToCql(*where), text);
}

std::string Repeat(std::string_view text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) {
    out += text;
  }
  return out;
}

TEST(ParserTest, WhatIsNestedTooDeepIsRefused) {
  for (auto [open, inside, close] : {std::array{"(", "1", ")"},
                                     {"[", "1", "]"},
                                     {"{", "1", "}"},
                                     {"f(", "1", ")"},
                                     {"{1:", "1", "}"},
                                     {"- ", "f(1)", ""},
                                     {"(int)", "1", ""},
                                     {"cast(", "1", " as int)"},
                                     {"f(- 1 + 2 * ", "1", ")"}}) {
    auto nested = [&](size_t times) { return Repeat(open, times) + inside + Repeat(close, times); };
    EXPECT_TRUE(ParseTerm(nested(40))) << nested(40);
    EXPECT_FALSE(ParseTerm(nested(200))) << open;
    EXPECT_FALSE(ParseTerm(nested(200'000))) << open;
  }
  EXPECT_FALSE(ParseType(Repeat("frozen<", 100'000) + "int" + Repeat(">", 100'000)));
  EXPECT_FALSE(Parse("SELECT a" + Repeat(".b", 100'000) + " FROM t"));
  EXPECT_FALSE(Parse("SELECT a" + Repeat("[1]", 100'000) + " FROM t"));
  EXPECT_FALSE(Parse("SELECT * FROM t WHERE " + Repeat("(", 100'000)));
}

TEST(ParserTest, LongChainsAreNotDeep) {
  Result<Expression> term = ParseTerm("1" + Repeat(" + 1", 100'000));
  ASSERT_TRUE(term) << term.error().message();
  EXPECT_EQ(term->height, 2);
  EXPECT_EQ(term->children.size(), 100'001u);
}

TEST(ParserTest, MarkersAndBytesHaveLimits) {
  EXPECT_TRUE(ParseTerm("[?" + Repeat(",?", kMarkersMax - 1) + "]"));
  EXPECT_FALSE(ParseTerm("[?" + Repeat(",?", kMarkersMax) + "]"));
  EXPECT_FALSE(ParseTerm("[1" + Repeat(",1", kTokensMax / 2) + "]"));
  Result<Parsed> large = Parse(std::string(kTextBytesMax + 1, ' '));
  ASSERT_FALSE(large);
  EXPECT_EQ(large.error().code(), Code::kTooLarge);
}

}  // namespace
}  // namespace orrery::cql
