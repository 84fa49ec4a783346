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
    EXPECT_EQ(service.node().CountKeys(storage::Space::kIndex), 0u);
    cuts.push_back(machine.AfterPowerCut());
  }
  ASSERT_GT(cuts.size(), 3u);
  std::set<std::string> seen;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    service.node().Run(service.LookForBatches());
    std::string rows = service.Ask("SELECT a, v FROM k.t WHERE a IN (1, 2, 3)");
    seen.insert(rows.empty() ? "none" : std::to_string(std::ranges::count(rows, '[')));
    EXPECT_EQ(service.node().CountKeys(storage::Space::kIndex), 0u);
    // Done twice, it changes nothing.
    EXPECT_EQ(rows.find("1, 1"), std::string::npos) << rows;
  }
  EXPECT_EQ(seen, (std::set<std::string>{"none", "3"}));
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
