#include <algorithm>
#include <set>

#include "api/cassandra/test_service.h"

namespace orrery::cassandra {
namespace {

constexpr std::string_view kKeyspace =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

TEST(ServiceTest, RowsAreThereAfterACrash) {
  model::TestMachine machine;
  {
    TestService service(machine);
    ASSERT_EQ(service.Ask(kKeyspace), "schema");
    ASSERT_EQ(
        service.Ask("CREATE TABLE k.t (a int, b int, v text, n set<int>, PRIMARY KEY (a, b))"),
        "schema");
    EXPECT_EQ(service.Ask("INSERT INTO k.t (a, b, v, n) VALUES (1, 2, 'x', {3, 1})"), "void");
    EXPECT_EQ(service.Ask("UPDATE k.t SET v = 'y', n = n + {2} WHERE a = 1 AND b = 2"), "void");
    EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 1 AND b > 5"), "void");
  }
  TestService service(machine.AfterPowerCut());
  EXPECT_EQ(service.Ask("SELECT * FROM k.t"), "1, 2, {1, 2, 3}, 'y'");
}

TEST(ServiceTest, PagesGoThroughAllRowsOnce) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask(
      "CREATE TABLE k.t (a int, b int, s int static, PRIMARY KEY (a, b)) "
      "WITH cosmosdb_provisioned_throughput = 30000");
  for (int a = 0; a < 7; ++a) {
    for (int b = 0; b < a; ++b) {
      service.Ask("INSERT INTO k.t (a, b) VALUES (" + std::to_string(a) + ", " + std::to_string(b) +
                  ")");
    }
  }
  service.Ask("UPDATE k.t SET s = 1 WHERE a = 0");  // a partition without rows is a row
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t"), "22");
  for (int size : {1, 2, 3, 7, 100}) {
    std::string all;
    size_t pages = 0;
    std::optional<std::string> state;
    do {
      std::string page = service.Ask("SELECT a, b FROM k.t", size, state);
      all += all.empty() || page.empty() ? page : "; " + page;
      state = service.state();
      ASSERT_LT(++pages, 60u);
    } while (state);
    EXPECT_EQ(std::ranges::count(all, ';'), 21) << size << ": " << all;
    EXPECT_NE(all.find("0, null"), std::string::npos);
  }
}

TEST(ServiceTest, AConditionSeesWhatIsThere) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int, m map<text, int>)");
  EXPECT_EQ(service.Ask("INSERT INTO k.t (a, v) VALUES (1, 1) IF NOT EXISTS"), "true");
  EXPECT_EQ(service.Ask("INSERT INTO k.t (a, v) VALUES (1, 2) IF NOT EXISTS"), "false, 1, null, 1");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 3 WHERE a = 1 IF v = 2"), "false, 1");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 3, m['x'] = 5 WHERE a = 1 IF v IN (1, 2)"), "true");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 4 WHERE a = 1 IF m['x'] > 4 AND v != null"), "true");
  EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 2 IF EXISTS"), "false");
  EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 1 IF EXISTS"), "true");
  EXPECT_EQ(service.Ask("SELECT * FROM k.t"), "");
  // A row that was deleted by a later clock can still be made again by a condition.
  service.Ask("DELETE FROM k.t USING TIMESTAMP 9000000000000000000 WHERE a = 1");
  EXPECT_EQ(service.Ask("INSERT INTO k.t (a, v) VALUES (1, 7) IF NOT EXISTS"), "true");
  EXPECT_EQ(service.Ask("SELECT a, v FROM k.t"), "1, 7");
}

TEST(ServiceTest, WhatABatchWithAConditionWritesIsNewerThanItsRows) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, c int, v int, PRIMARY KEY (a, c))");
  for (const char* row : {"1, 2, 1", "1, 3, 1"}) {
    EXPECT_EQ(
        service.Ask("INSERT INTO k.t (a, c, v) VALUES (" + std::string(row) + ") IF NOT EXISTS"),
        "true");
  }
  // All in one millisecond: the deletion is later than the row, what comes then later still.
  EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 1 AND c = 3 IF EXISTS"), "true");
  EXPECT_EQ(service.Ask("BEGIN BATCH UPDATE k.t SET v = 2 WHERE a = 1 AND c = 2 IF v = 1; "
                        "INSERT INTO k.t (a, c, v) VALUES (1, 3, 3) APPLY BATCH"),
            "true");
  EXPECT_EQ(service.Ask("SELECT c, v FROM k.t"), "2, 2; 3, 3");
  // A deletion of many rows too is later than what conditions have written before.
  EXPECT_EQ(service.Ask("BEGIN BATCH INSERT INTO k.t (a, c, v) VALUES (1, 1, 1) IF NOT EXISTS; "
                        "DELETE FROM k.t WHERE a = 1 AND c > 1 APPLY BATCH"),
            "true");
  EXPECT_EQ(service.Ask("SELECT c, v FROM k.t"), "1, 1");
}

TEST(ServiceTest, AConditionThatDoesNotHoldShowsTheRow) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, c int, s int static, v int, w int, PRIMARY KEY (a, c))");
  service.Ask("UPDATE k.t USING TIMESTAMP 1 SET s = 5 WHERE a = 1");
  service.Ask("DELETE FROM k.t USING TIMESTAMP 2 WHERE a = 1 AND c > 1");
  service.Ask("INSERT INTO k.t (a, c, v) VALUES (1, 1, 1) USING TIMESTAMP 1");
  service.Ask("INSERT INTO k.t (a, c, v) VALUES (1, 2, 2) USING TIMESTAMP 1");
  service.Ask("UPDATE k.t USING TIMESTAMP 3 SET w = 3 WHERE a = 1 AND c = 2");
  // The range takes nothing from the static column.
  EXPECT_EQ(service.Ask("UPDATE k.t SET w = 4 WHERE a = 1 AND c = 2 IF s = 6 AND v = null"),
            "false, 5, null");
  EXPECT_EQ(service.Ask("INSERT INTO k.t (a, c) VALUES (1, 2) IF NOT EXISTS"),
            "false, 1, 2, 5, null, 3");
  // A batch tells of which row it speaks, and of each once, in their order.
  EXPECT_EQ(service.Ask("BEGIN BATCH INSERT INTO k.t (a, c) VALUES (1, 9); "
                        "UPDATE k.t SET w = 4 WHERE a = 1 AND c = 2 IF w = 4 APPLY BATCH"),
            "false, 1, 2, 3");
  EXPECT_EQ(service.Ask("BEGIN BATCH UPDATE k.t SET w = 4 WHERE a = 1 AND c = 2 IF w = 3; "
                        "UPDATE k.t SET w = 4 WHERE a = 1 AND c = 1 IF v = 2; "
                        "UPDATE k.t SET v = 4 WHERE a = 1 AND c = 2 IF v = 9 APPLY BATCH"),
            "false, 1, 1, null, 1; false, 1, 2, 3, null");
  EXPECT_EQ(service.Ask("BEGIN BATCH UPDATE k.t SET w = 4 WHERE a = 1 AND c = 2 IF w = 4; "
                        "INSERT INTO k.t (a, c) VALUES (1, 7) IF NOT EXISTS APPLY BATCH"),
            "false, 1, 2, 5, null, 3");
  EXPECT_EQ(service.Ask("UPDATE k.t SET w = 4 WHERE a = 1 AND c = 7 IF EXISTS"),
            "false, 1, null, 5, null, null");
}

// Those that are still to be done, of the table.
size_t KeptBatches(TestService& service, std::string_view link) {
  auto container = service.node().Find(link);
  return rows::FindBatches(service.node().state(), container->id, container->map->ranges()[0].range,
                           "", 100)
      .size();
}

// Several partitions are written, or none, whenever the process ends.
TEST(ServiceTest, ALoggedBatchIsDoneToItsEnd) {
  model::TestMachine machine;
  std::vector<model::TestMachine> cuts;
  model::TestNodeOptions options;
  bool watching = false;
  // What a power cut leaves just before each write to the log, and at the end.
  options.before_log = [&](storage::WatchedEngine::Call) {
    if (watching) {
      cuts.push_back(machine.AfterPowerCut());
    }
    return Status::Ok();
  };
  {
    TestService service(machine, options);
    service.Ask(kKeyspace);
    service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v list<int>)");
    watching = true;
    EXPECT_EQ(service.Ask("BEGIN BATCH UPDATE k.t SET v = v + [1] WHERE a = 1; "
                          "UPDATE k.t SET v = v + [2] WHERE a = 2; "
                          "UPDATE k.t SET v = [3] + v WHERE a = 3 APPLY BATCH"),
              "void");
    watching = false;
    EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t"), "3");
    EXPECT_EQ(KeptBatches(service, "dbs/k/colls/t"), 0u);
    cuts.push_back(machine.AfterPowerCut());
  }
  ASSERT_GT(cuts.size(), 3u);
  std::set<std::string> seen;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    service.node().Run(service.LookForBatches());
    std::string rows = service.Ask("SELECT a, v FROM k.t WHERE a IN (1, 2, 3)");
    seen.insert(rows.empty() ? "none" : std::to_string(std::ranges::count(rows, '[')));
    EXPECT_EQ(KeptBatches(service, "dbs/k/colls/t"), 0u);
    // Done twice, it changes nothing.
    EXPECT_EQ(rows.find("1, 1"), std::string::npos) << rows;
  }
  EXPECT_EQ(seen, (std::set<std::string>{"none", "3"}));
}

TEST(ServiceTest, ABatchWithAPartThatCannotBeDoneIsRefusedBeforeItBegins) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v list<int>, w text)");
  service.Ask("INSERT INTO k.t (a, v) VALUES (2, [1])");
  EXPECT_NE(service
                .Ask("BEGIN BATCH INSERT INTO k.t (a, v) VALUES (1, [1]); "
                     "UPDATE k.t SET v[5] = 2 WHERE a = 2 APPLY BATCH")
                .find("by position only in a batch of one partition"),
            std::string::npos);
  const std::string large(rows::kRowBytesMax, 'x');
  EXPECT_NE(service
                .Ask("BEGIN BATCH INSERT INTO k.t (a, v) VALUES (1, [1]); "
                     "INSERT INTO k.t (a, w) VALUES (2, '" +
                     large + "') APPLY BATCH")
                .find("2 MB"),
            std::string::npos);
  EXPECT_EQ(service.Ask("SELECT a, v FROM k.t"), "2, [1]");
  EXPECT_EQ(KeptBatches(service, "dbs/k/colls/t"), 0u);
}

// A paging state is a client's: it leads nowhere but to rows of what is asked for.
TEST(ServiceTest, APagingStateLeadsToNoOtherRows) {
  TestService service;
  service.Ask(kKeyspace);
  for (const char* name : {"k.t", "k.u"}) {
    service.Ask("CREATE TABLE " + std::string(name) +
                " (a int, b int, s text static, PRIMARY KEY (a, b))");
    for (int b = 0; b < 4; ++b) {
      service.Ask("INSERT INTO " + std::string(name) + " (a, b, s) VALUES (1, " +
                  std::to_string(b) + ", '" + name + "')");
    }
  }
  service.Ask("SELECT * FROM k.u WHERE a = 1", 2, std::nullopt);
  auto state = service.state();
  ASSERT_TRUE(state);
  EXPECT_EQ(service.Ask("SELECT s FROM k.t WHERE a = 1", 10, state).find("k.u"), std::string::npos);
  EXPECT_EQ(service.Ask("SELECT s FROM k.t", 10, state).find("k.u"), std::string::npos);
  EXPECT_EQ(service.Ask("SELECT * FROM k.t WHERE a = 9", 10, state), "");
}

TEST(ServiceTest, BlindWritesArePricedAsCreates) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v text)");
  service.Ask("INSERT INTO k.t (a, v) VALUES (1, 'x')");
  double insert = service.charge();
  EXPECT_GT(insert, 4);
  service.Ask("UPDATE k.t SET v = 'y' WHERE a = 1");
  EXPECT_EQ(service.charge(), insert);
  service.Ask("SELECT * FROM k.t WHERE a = 1");
  EXPECT_EQ(service.charge(), 2);  // at QUORUM two replicas are read
}

TEST(ServiceTest, WarningsAreGiven) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v text)");
  auto batch = [&](std::string_view kind, int count, size_t bytes) {
    std::string text = "BEGIN " + std::string(kind) + " BATCH ";
    for (int i = 0; i < count; ++i) {
      text += "INSERT INTO k.t (a, v) VALUES (" + std::to_string(i) + ", '" +
              std::string(bytes, 'x') + "'); ";
    }
    EXPECT_EQ(service.Ask(text + "APPLY BATCH"), "void");
    return service.warnings().size();
  };
  EXPECT_EQ(batch("", 3, 10), 0u);
  EXPECT_EQ(batch("", 3, 2000), 1u);
  EXPECT_EQ(batch("UNLOGGED", 10, 10), 0u);
  EXPECT_EQ(batch("UNLOGGED", 11, 10), 1u);
  EXPECT_EQ(batch("UNLOGGED", 11, 1000), 2u);
  service.Ask("SELECT count(*) FROM k.t");
  EXPECT_EQ(service.warnings().at(0), "Aggregation query used without partition key");
  service.Ask("SELECT count(*) FROM k.t WHERE a = 1");
  EXPECT_TRUE(service.warnings().empty());
  EXPECT_EQ(service.Ask("CREATE MATERIALIZED VIEW k.w AS SELECT a, v FROM k.t WHERE a IS NOT NULL "
                        "AND v IS NOT NULL PRIMARY KEY (v, a)"),
            "schema");
  EXPECT_TRUE(service.warnings().empty());
}

TEST(ServiceTest, TablesShareTheThroughputOfTheirKeyspace) {
  TestService service;
  service.Ask(kKeyspace);
  const std::string create =
      "CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} "
      "AND cosmosdb_provisioned_throughput = ";
  EXPECT_EQ(service.Ask(create + "100").find("error 2200"), 0u);
  EXPECT_EQ(service.Ask(create + "700"), "schema");
  EXPECT_EQ(service.Ask("CREATE TABLE s.t (a int PRIMARY KEY)"), "schema");
  auto database = [&] { return service.node().catalog().view()->FindDatabase("s"); };
  ASSERT_TRUE(database()->offer);
  EXPECT_EQ(database()->offer->manual, 700u);
  EXPECT_FALSE(service.node().catalog().view()->ContainersOf(database()->id).at(0)->offer);
  EXPECT_EQ(service.Ask("ALTER KEYSPACE s WITH cosmosdb_provisioned_throughput = 900"), "schema");
  EXPECT_EQ(database()->offer->manual, 900u);
  EXPECT_NE(service.Ask("DESCRIBE KEYSPACE s").find("AND cosmosdb_provisioned_throughput = 900;"),
            std::string::npos);
  EXPECT_EQ(service.Ask("ALTER TABLE s.t WITH cosmosdb_provisioned_throughput = 500"),
            "error 2200: The table shares the throughput of its keyspace");
  EXPECT_EQ(service.Ask("ALTER KEYSPACE k WITH cosmosdb_provisioned_throughput = 500"),
            "error 2200: The keyspace was created without cosmosdb_provisioned_throughput: its "
            "tables have throughput of their own");
}

TEST(ServiceTest, WhatIsDifferentInASchemaIsTold) {
  TestService service;
  auto told = [before = service.Schema(), &service]() mutable {
    auto now = service.Schema();
    std::string text;
    for (const SchemaChange& change : SchemaChanges(*before, *now)) {
      text += change.change + " " + change.target + " " + change.keyspace + "." + change.name + ";";
    }
    before = now;
    return text;
  };
  service.Ask(kKeyspace);
  EXPECT_EQ(told(), "CREATED KEYSPACE k.;");
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY)");
  service.Ask("CREATE TYPE k.u (x int)");
  EXPECT_EQ(told(), "CREATED TYPE k.u;CREATED TABLE k.t;");
  service.Ask("ALTER TABLE k.t ADD b int");
  EXPECT_EQ(told(), "UPDATED TABLE k.t;");
  service.Ask("DROP TABLE k.t");
  service.Ask("ALTER KEYSPACE k WITH durable_writes = false");
  EXPECT_EQ(told(), "UPDATED KEYSPACE k.;DROPPED TABLE k.t;");
  service.Ask("DROP KEYSPACE k");
  EXPECT_EQ(told(), "DROPPED KEYSPACE k.;");
  EXPECT_EQ(told(), "");
}

TEST(ServiceTest, AWriteHasALevelThatWritesHave) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
  service.Ask("CREATE TABLE k.n (a int PRIMARY KEY, n counter)");
  auto ask = [&](std::string_view text, Consistency level) {
    return service.AskWith(text, {.consistency = level});
  };
  for (Consistency level : {Consistency::kSerial, Consistency::kLocalSerial}) {
    EXPECT_EQ(ask("INSERT INTO k.t (a) VALUES (1)", level),
              "error 2200: You must use conditional updates for serializable writes");
    EXPECT_EQ(ask("BEGIN BATCH INSERT INTO k.t (a) VALUES (1) APPLY BATCH", level),
              "error 2200: You must use conditional updates for serializable writes");
    EXPECT_EQ(ask("INSERT INTO k.t (a) VALUES (1) IF NOT EXISTS", level)
                  .find("error 2200: " + std::string(ConsistencyName(level)) +
                        " is not supported as conditional update commit consistency."),
              0u);
    EXPECT_EQ(ask("UPDATE k.n SET n = n + 1 WHERE a = 1", level),
              "error 2200: Counter operations are inherently non-serializable");
  }
  EXPECT_EQ(ask("UPDATE k.n SET n = n + 1 WHERE a = 1", Consistency::kAny),
            "error 2200: Consistency level ANY is not yet supported for counter table n");
  EXPECT_EQ(ask("INSERT INTO k.t (a) VALUES (1)", Consistency::kAny), "void");
  EXPECT_EQ(ask("SELECT a FROM k.t", Consistency::kSerial), "1");
}

TEST(ServiceTest, ATtlOfNullIsNone) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int) WITH default_time_to_live = 100");
  auto bind = [](BoundValue::Kind kind) {
    QueryParameters parameters;
    parameters.values = {{.kind = kind, .bytes = {}, .name = {}}};
    return parameters;
  };
  const std::string_view insert = "INSERT INTO k.t (a, v) VALUES (2, 1) USING TTL ?";
  EXPECT_EQ(service.AskWith(insert, bind(BoundValue::Kind::kNull)), "void");
  EXPECT_EQ(service.Ask("SELECT ttl(v) FROM k.t WHERE a = 2"), "null");
  EXPECT_EQ(service.AskWith(insert, bind(BoundValue::Kind::kUnset)), "void");
  EXPECT_EQ(service.Ask("SELECT ttl(v) FROM k.t WHERE a = 2"), "100");
  EXPECT_EQ(
      service.AskWith("BEGIN BATCH USING TIMESTAMP ? INSERT INTO k.t (a) VALUES (1) APPLY BATCH",
                      bind(BoundValue::Kind::kNull)),
      "error 2200: Invalid null value of timestamp");
}

// As in Cassandra it is accepted, and rows are there without them.
TEST(ServiceTest, AViewMayAskThatOtherColumnsAreNotNull) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v int, PRIMARY KEY (a, b))");
  const std::string view = " AS SELECT * FROM k.t WHERE a IS NOT NULL AND b IS NOT NULL AND v ";
  EXPECT_EQ(service.Ask("CREATE MATERIALIZED VIEW k.w" + view + "IS NOT NULL PRIMARY KEY (b, a)"),
            "schema");
  service.Ask("INSERT INTO k.t (a, b) VALUES (1, 2)");
  EXPECT_EQ(service.Ask("SELECT * FROM k.w"), "2, 1, null");
  EXPECT_EQ(service.Ask("CREATE MATERIALIZED VIEW k.x" + view + "> 1 PRIMARY KEY (b, a)"),
            "error 2200: Non-primary key columns can only be restricted with 'IS NOT NULL' (got: v "
            "restricted illegally)");
}

TEST(ServiceTest, TablesOfTheSystemHaveTokens) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask(
      "CREATE KEYSPACE l WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
  const std::string all =
      "SELECT keyspace_name FROM system_schema.keyspaces WHERE token("
      "keyspace_name) ";
  const std::string at = service.Ask(
      "SELECT token(keyspace_name) FROM system_schema.keyspaces WHERE keyspace_name = 'k'");
  EXPECT_EQ(service.Ask(all + "= " + at), "'k'");
  const std::string below = service.Ask(all + "< " + at);
  const std::string above = service.Ask(all + "> " + at);
  EXPECT_NE((below + above).find("'l'"), std::string::npos);
  EXPECT_EQ((below + above).find("'k'"), std::string::npos);
  EXPECT_EQ(service.Ask("SELECT * FROM system_schema.columns WHERE keyspace_name = 'k' AND "
                        "(table_name, column_name) > ('a', 'b')"),
            "error 2200: Multi-column relations are not supported on tables of the system");
}

TEST(ServiceTest, ARequestSaysWhatTimeItIs) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, s int static, v int, PRIMARY KEY (a, b))");
  const auto now = static_cast<int32_t>(service.node().clock().Wall().seconds());
  auto ask = [&](std::string_view text, int32_t seconds) {
    QueryParameters parameters;
    parameters.now_in_seconds = now + seconds;
    return service.AskWith(text, parameters);
  };
  // A TTL counts from then.
  EXPECT_EQ(ask("INSERT INTO k.t (a, b, s, v) VALUES (1, 1, 1, 1) USING TTL 100", 1000), "void");
  EXPECT_EQ(ask("BEGIN BATCH INSERT INTO k.t (a, b, v) VALUES (1, 2, 2) USING TTL 200; "
                "INSERT INTO k.t (a, b, v) VALUES (2, 2, 2) USING TTL 100 APPLY BATCH",
                1000),
            "void");
  EXPECT_EQ(service.Ask("SELECT ttl(v) FROM k.t WHERE a IN (1, 2)"), "1100; 1200; 1100");
  // What has expired then is not seen.
  EXPECT_EQ(ask("SELECT b, s, ttl(v) FROM k.t WHERE a = 1", 1000), "1, 1, 100; 2, 1, 200");
  EXPECT_EQ(ask("SELECT b, s, v FROM k.t WHERE a = 1", 1100), "2, null, 2");
  EXPECT_EQ(ask("SELECT b FROM k.t PER PARTITION LIMIT 1", 1100), "2");
  EXPECT_EQ(ask("SELECT * FROM k.t", 1200), "");
  service.Ask("UPDATE k.t SET s = 3 WHERE a = 1");
  EXPECT_EQ(ask("SELECT a, b, s FROM k.t", 1200), "1, null, 3");
}

TEST(ServiceTest, KeysOfJsonAreCheckedAsAllOthers) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.one (a text PRIMARY KEY)");
  service.Ask("CREATE TABLE k.two (a text, b text, c text, PRIMARY KEY ((a, b), c))");
  const std::string large(70'000, 'x');
  auto json = [&](std::string_view table, const std::string& members) {
    return service.Ask("INSERT INTO k." + std::string(table) + " JSON '{" + members + "}'");
  };
  EXPECT_EQ(json("one", R"("a": "")"), "error 2200: Key may not be empty");
  EXPECT_EQ(json("one", R"("a": ")" + large + "\""),
            "error 2200: Key length of 70000 is longer than maximum of 65535");
  EXPECT_EQ(json("two", R"("a": "", "b": ")" + large + R"(", "c": "")"),
            "error 2200: Key length of 70000 is longer than maximum of 65535");
  EXPECT_EQ(json("two", R"("a": "", "b": "", "c": ")" + large + large + "\""),
            "error 2200: The clustering key is too long");
  EXPECT_EQ(json("two", R"("a": "", "b": "", "c": "")"), "void");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.one"), "0");
  EXPECT_EQ(service.Ask("SELECT * FROM k.two"), "'', '', ''");
}

TEST(ServiceTest, StatementsAreRefusedInCassandrasWords) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v int, PRIMARY KEY (a, b))");
  const std::pair<std::string_view, std::string_view> kCases[] = {
      {"SELEC", "error 2000: line 1:0 no viable alternative at input 'SELEC' ([SELEC])"},
      {"SELECT * FROM t", "error 2200: No keyspace has been specified."},
      {"SELECT * FROM k.u", "error 2200: unconfigured table u"},
      {"SELECT * FROM x.u", "error 2200: Keyspace x does not exist"},
      {"SELECT x FROM k.t", "error 2200: Undefined column name x"},
      {"SELECT * FROM k.t WHERE v = 1",
       "error 2200: Cannot execute this query as it might involve "
       "data filtering"},
      {"SELECT * FROM k.t WHERE b = 1",
       "error 2200: Cannot execute this query as it might involve "
       "data filtering"},
      {"SELECT * FROM k.t WHERE a = 1 AND a = 2",
       "error 2200: a cannot be restricted by more than one relation if it includes an Equal"},
      {"SELECT * FROM k.t WHERE a = null", "error 2200: Invalid null value"},
      {"SELECT * FROM k.t LIMIT 0", "error 2200: LIMIT must be strictly positive"},
      {"SELECT * FROM k.t ORDER BY b",
       "error 2200: ORDER BY is only supported when the partition "
       "key is restricted by an EQ or an IN."},
      {"INSERT INTO k.t (a, v) VALUES (1, 1)", "error 2200: Some clustering keys are missing: b"},
      {"INSERT INTO k.t (b, v) VALUES (1, 1)",
       "error 2200: Some partition key parts are missing: a"},
      {"INSERT INTO k.t (a, b) VALUES (1)", "error 2200: Unmatched column names/values"},
      {"INSERT INTO k.t (a, b) VALUES (1, 'x')", "error 2200: Invalid STRING constant (x) for"},
      {"UPDATE k.t SET a = 1 WHERE a = 1 AND b = 1", "error 2200: PRIMARY KEY part a found in SET"},
      {"UPDATE k.t USING TTL -1 SET v = 1 WHERE a = 1 AND b = 1",
       "error 2200: A TTL must be greater or equal to 0"},
      {"INSERT INTO k.t (a, b) VALUES (1, 1) IF NOT EXISTS USING TIMESTAMP 5",
       "error 2200: Cannot provide custom timestamp for conditional updates"},
      {R"(INSERT INTO k.t JSON '{"a": 1, "b": 1}' IF NOT EXISTS USING TIMESTAMP 5)",
       "error 2200: Cannot provide custom timestamp for conditional updates"},
      {"BEGIN BATCH USING TTL 5 INSERT INTO k.t (a, b) VALUES (1, 1) APPLY BATCH",
       "error 2200: Global TTL on the BATCH statement is not supported."},
      {"DELETE v FROM k.t WHERE a = 1", "error 2200: "},
      {"CREATE TABLE k.t (a int PRIMARY KEY)", "error 2400: Cannot add already existing table"},
      {kKeyspace, "error 2400: Cannot add existing keyspace \"k\""},
      {"CREATE TABLE system.t (a int PRIMARY KEY)", "error 2100: system keyspace is not"},
      {"USE nope", "error 2200: Keyspace 'nope' does not exist"},
  };
  for (const auto& [statement, answer] : kCases) {
    std::string said = service.Ask(statement);
    EXPECT_TRUE(said.starts_with(answer)) << statement << "\n  " << said;
  }
}

}  // namespace
}  // namespace orrery::cassandra
