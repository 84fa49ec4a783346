// Indexes and views: what they show is what the rows of their table say, whatever happens.
#include <algorithm>
#include <map>
#include <set>

#include "api/cassandra/test_service.h"
#include "cql/value.h"

namespace orrery::cassandra {
namespace {

constexpr std::string_view kKeyspace =
    "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

// The rows of an answer.
std::multiset<std::string> RowsOf(const std::string& text) {
  std::multiset<std::string> rows;
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find("; ", at), text.size());
    rows.insert(text.substr(at, end - at));
    at = end + 2;
  }
  return rows;
}

bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(IndexTest, RowsAreFoundByTheirValues) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask(
      "CREATE TABLE k.t (a int, b int, v text, PRIMARY KEY (a, b)) "
      "WITH cosmosdb_provisioned_throughput = 30000");
  for (int a = 0; a < 300; ++a) {
    service.Ask("INSERT INTO k.t (a, b, v) VALUES (" + std::to_string(a) + ", 1, 'v" +
                std::to_string(a % 100) + "')");
  }
  EXPECT_TRUE(Has(service.Ask("SELECT a FROM k.t WHERE v = 'v7'"), "ALLOW FILTERING"));
  ASSERT_EQ(service.Ask("CREATE INDEX by_v ON k.t (v)"), "schema");
  EXPECT_EQ(service.Ask("SELECT index_name FROM system.\"IndexInfo\""), "'by_v'");
  EXPECT_EQ(RowsOf(service.Ask("SELECT a FROM k.t WHERE v = 'v7'")),
            (std::multiset<std::string>{"7", "107", "207"}));
  // Three rows are looked at, not all of them.
  EXPECT_LT(service.charge(), 12);
  service.Ask("SELECT a FROM k.t WHERE v = 'v7' AND b > 0 ALLOW FILTERING");
  EXPECT_LT(service.charge(), 12);
  service.Ask("UPDATE k.t SET v = 'v8' WHERE a = 7 AND b = 1");
  service.Ask("DELETE FROM k.t WHERE a = 107");
  service.Ask("INSERT INTO k.t (a, b, v) VALUES (1000, 1, 'v7')");
  EXPECT_EQ(RowsOf(service.Ask("SELECT a FROM k.t WHERE v = 'v7'")),
            (std::multiset<std::string>{"207", "1000"}));
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 'v8'"), "4");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE v = 'v8' AND a = 7"), "7");
  service.Ask("TRUNCATE k.t");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE v = 'v8'"), "");
  EXPECT_TRUE(
      model::Eventually([&] { return service.node().CountKeys(storage::Space::kItems) == 0; }));
  ASSERT_EQ(service.Ask("DROP INDEX k.by_v"), "schema");
  EXPECT_TRUE(Has(service.Ask("SELECT a FROM k.t WHERE v = 'v7'"), "ALLOW FILTERING"));
}

TEST(IndexTest, PartsOfCollectionsAndKeysAreIndexed) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask(
      "CREATE TABLE k.t (a int, b int, c int, s set<int>, l list<text>, m map<text, int>, "
      "f frozen<list<int>>, x int static, PRIMARY KEY ((a, b), c))");
  for (const char* target : {"b", "c", "s", "l", "keys(m)", "entries(m)", "full(f)", "x"}) {
    ASSERT_EQ(service.Ask("CREATE INDEX ON k.t (" + std::string(target) + ")"), "schema") << target;
  }
  service.Ask(
      "INSERT INTO k.t (a, b, c, s, l, m, f, x) VALUES "
      "(1, 2, 3, {4, 5}, ['x', 'y', 'x'], {'p': 6, 'q': 7}, [8, 9], 10)");
  service.Ask(
      "INSERT INTO k.t (a, b, c, s, l, m, f) VALUES "
      "(2, 3, 3, {5}, ['z'], {'q': 8}, [8])");
  const std::map<std::string, std::multiset<std::string>> cases = {
      {"b = 2", {"1"}},        {"c = 3", {"1", "2"}},     {"s CONTAINS 5", {"1", "2"}},
      {"s CONTAINS 4", {"1"}}, {"l CONTAINS 'x'", {"1"}}, {"m CONTAINS KEY 'q'", {"1", "2"}},
      {"m['q'] = 8", {"2"}},   {"m['q'] = 6", {}},        {"f = [8, 9]", {"1"}},
      {"x = 10", {"1"}},
  };
  for (const auto& [where, rows] : cases) {
    EXPECT_EQ(RowsOf(service.Ask("SELECT a FROM k.t WHERE " + where)), rows) << where;
  }
  service.Ask("UPDATE k.t SET s = s - {5}, l = ['w'] WHERE a = 1 AND b = 2 AND c = 3");
  service.Ask("DELETE m['q'] FROM k.t WHERE a = 2 AND b = 3 AND c = 3");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE s CONTAINS 5"), "2");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE l CONTAINS 'x'"), "");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE l CONTAINS 'w'"), "1");
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE m CONTAINS KEY 'q'"), "1");
  EXPECT_TRUE(Has(service.Ask("SELECT a FROM k.t WHERE c = 3 AND m['q'] = 7"), "ALLOW FILTERING"));
  EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE c = 3 AND m['q'] = 7 ALLOW FILTERING"), "1");
  EXPECT_TRUE(Has(service.Ask("INSERT INTO k.t (a, b, c, l) VALUES (1, 1, 1, ['" +
                              std::string(70'000, 'x') + "'])"),
                  "Cannot index value of size 70000"));
}

TEST(IndexTest, PagesAndLimitsCountRows) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v int, PRIMARY KEY (a, b))");
  service.Ask("CREATE INDEX ON k.t (v)");
  for (int i = 0; i < 60; ++i) {
    service.Ask("INSERT INTO k.t (a, b, v) VALUES (" + std::to_string(i / 10) + ", " +
                std::to_string(i % 10) + ", " + std::to_string(i % 2) + ")");
  }
  for (int size : {1, 4, 7, 100}) {
    std::multiset<std::string> all;
    std::optional<std::string> state;
    size_t pages = 0;
    do {
      auto page = RowsOf(
          service.Ask("SELECT a, b FROM k.t WHERE v = 1 PER PARTITION LIMIT 3", size, state));
      EXPECT_LE(page.size(), static_cast<size_t>(size));
      all.merge(page);
      state = service.state();
      ASSERT_LT(++pages, 100u);
    } while (state);
    EXPECT_EQ(all.size(), 18u) << size;
  }
  EXPECT_EQ(RowsOf(service.Ask("SELECT a, b FROM k.t WHERE v = 1 LIMIT 11")).size(), 11u);
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 1", 5, std::nullopt), "30");
}

TEST(IndexTest, TwoThatMakeOneIndexAtOnceLoseNoEntries) {
  for (const char* create :
       {"CREATE INDEX IF NOT EXISTS by_v ON k.t (v)", "CREATE INDEX by_v ON k.t (v)"}) {
    TestService service;
    service.Ask(kKeyspace);
    service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
    for (int a = 0; a < 20; ++a) {
      service.Ask("INSERT INTO k.t (a, v) VALUES (" + std::to_string(a) + ", 1)");
    }
    service.AskAtOnce({create, create, create});
    service.node().Run(service.FillDerived());
    EXPECT_EQ(service.Ask("SELECT index_name FROM system.\"IndexInfo\""), "'by_v'");
    EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 1"), "20");
    EXPECT_EQ(service.CountContainers(), 2u) << "the table, and the entries of its index";
  }
}

// A container of an index is there before the index is, and goes if it never comes.
TEST(IndexTest, APowerCutWhileAnIndexIsMadeLeavesNothingBehind) {
  model::TestMachine machine;
  std::vector<model::TestMachine> cuts;
  model::TestNodeOptions options;
  bool watching = false;
  options.before_log = [&](storage::WatchedEngine::Call) {
    if (watching) {
      cuts.push_back(machine.AfterPowerCut());
    }
    return Status::Ok();
  };
  {
    TestService service(machine, options);
    service.Ask(kKeyspace);
    service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
    watching = true;
    EXPECT_EQ(service.Ask("CREATE INDEX by_v ON k.t (v)"), "schema");
    watching = false;
  }
  std::set<size_t> before;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    const size_t indexes = service.Schema()->FindTable("k", "t")->indexes.size();
    before.insert(service.CountContainers() - indexes);
    service.node().Run(service.FillDerived());
    EXPECT_GE(service.CountContainers(), 1 + indexes) << "it may be under way";
    cut.clock->Advance(std::chrono::minutes(11));
    service.node().Run(service.FillDerived());
    EXPECT_EQ(service.CountContainers(), 1 + indexes);
  }
  EXPECT_EQ(before, (std::set<size_t>{1, 2}));
}

TEST(IndexTest, AValueThatIsTooLongHidesNoOtherRowAndFreezesNothing) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v text, w int, PRIMARY KEY (a, b))");
  const std::string too_long = "'" + std::string(70'000, 'x') + "'";
  for (int b = 0; b < 10; ++b) {
    service.Ask("INSERT INTO k.t (a, b, v, w) VALUES (1, " + std::to_string(b) + ", " +
                (b == 4 || b == 5 ? too_long : "'y'") + ", 1)");
  }
  ASSERT_EQ(service.Ask("CREATE INDEX ON k.t (v)"), "schema");
  ASSERT_EQ(service.Ask("CREATE INDEX ON k.t (w)"), "schema");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 'y'"), "8");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE w = 1"), "10") << "by the other index";
  EXPECT_EQ(service.Ask("UPDATE k.t SET w = 2 WHERE a = 1 AND b = 4"), "void");
  EXPECT_EQ(service.Ask("SELECT b FROM k.t WHERE w = 2"), "4");
  EXPECT_TRUE(Has(
      service.Ask("UPDATE k.t SET v = '" + std::string(70'001, 'x') + "' WHERE a = 1 AND b = 4"),
      "Cannot index value of size 70001"));
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 'z' WHERE a = 1 AND b = 4"), "void");
  EXPECT_EQ(service.Ask("SELECT b FROM k.t WHERE v = 'z'"), "4");
  EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 1 AND b = 5"), "void");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE w = 1"), "8");
  EXPECT_EQ(service.Ask("DELETE FROM k.t WHERE a = 1"), "void");
}

TEST(ViewTest, RowsThatAreTooManyForOneWriteAreAllInAView) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v text, PRIMARY KEY (a, b))");
  const std::string large(200'000, 'x');
  for (int b = 0; b < 20; ++b) {
    service.Ask("INSERT INTO k.t (a, b, v) VALUES (1, " + std::to_string(b) + ", '" + large + "')");
  }
  for (int view = 0; view < 6; ++view) {
    const std::string name = "k.w" + std::to_string(view);
    ASSERT_EQ(service.Ask("CREATE MATERIALIZED VIEW " + name +
                          " AS SELECT * FROM k.t WHERE b IS "
                          "NOT NULL AND a IS NOT NULL PRIMARY KEY (b, a)"),
              "schema");
    service.node().Run(service.FillDerived());
    EXPECT_EQ(service.Ask("SELECT count(*) FROM " + name), "20") << name;
  }
}

// --- Logged batches ------------------------------------------------------------------------------

TEST(DerivedTest, ALoggedBatchWithAValueThatCannotBeIndexedIsRefusedBeforeItBegins) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v text, l list<text>, m map<text, text>)");
  for (const char* target : {"v", "l", "entries(m)"}) {
    service.Ask("CREATE INDEX ON k.t (" + std::string(target) + ")");
  }
  const std::string too_long = "'" + std::string(66'000, 'x') + "'";
  for (const std::string& value :
       {"v = " + too_long, "l = l + [" + too_long + "]", "m = m + {'p': " + too_long + "}"}) {
    EXPECT_TRUE(Has(service.Ask("BEGIN BATCH INSERT INTO k.t (a) VALUES (1); UPDATE k.t SET " +
                                value + " WHERE a = 2 APPLY BATCH"),
                    "Cannot index value of size 66"));
    EXPECT_EQ(service.Ask("SELECT a FROM k.t"), "");
    EXPECT_EQ(service.CountBatches(), 0u);
  }
}

TEST(DerivedTest, APartOfALoggedBatchMayDeleteAnyNumberOfRows) {
  model::TestMachine machine;
  TestService service(machine);
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v int, PRIMARY KEY (a, b))");
  service.Ask("CREATE INDEX ON k.t (v)");
  for (int b = 0; b < 10'500;) {
    std::vector<std::string> inserts;
    for (int i = 0; i < 700; ++i, ++b) {
      inserts.push_back("INSERT INTO k.t (a, b, v) VALUES (2, " + std::to_string(b) + ", 1)");
    }
    ASSERT_EQ(service.AskBatch(service.client(), inserts), "void");
  }
  EXPECT_TRUE(Has(service.Ask("DELETE FROM k.t WHERE a = 2"), "at most 10,000 rows"));
  const std::string begin = "BEGIN BATCH INSERT INTO k.t (a, b) VALUES (1, 1); DELETE FROM k.t ";
  // It comes late: all rows are newer.
  EXPECT_EQ(service.Ask(begin + "USING TIMESTAMP 1 WHERE a = 2 APPLY BATCH"), "void");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 1"), "10500");
  machine.clock->Advance(std::chrono::seconds(1));
  EXPECT_EQ(service.Ask(begin + "WHERE a = 2 APPLY BATCH"), "void");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t"), "1");
  EXPECT_EQ(service.Ask("SELECT count(*) FROM k.t WHERE v = 1"), "0");
  EXPECT_EQ(service.CountBatches(), 0u);
}

TEST(BatchKeeperTest, BatchesThatCannotBeDoneStandInNobodysWay) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, l list<int>, v int)");
  auto container = service.node().Find("dbs/k/colls/t");
  const uint32_t list = service.Schema()->FindTable("k", "t")->Find("l")->id;
  const uint32_t value = service.Schema()->FindTable("k", "t")->Find("v")->id;
  auto keep = [&](uint64_t id, rows::CellChange cell) {
    const std::string key = cql::IntBytes(7);
    rows::WriteRows write;
    write.id = {.high = id, .low = 0};
    write.partition_key = key;
    write.epk = types::CassandraEpk(key);
    rows::KeptBatch batch;
    batch.parts.push_back({container->id, write.epk, key, {{.cells = {std::move(cell)}}}});
    write.batch = batch.Encode();
    EXPECT_TRUE(service.node().Execute(*container, write.epk, write).status.ok());
  };
  for (uint64_t id = 1; id <= 150; ++id) {
    keep(id, {rows::CellAction::kSetAt, list, cql::IntBytes(3), cql::IntBytes(1)});
  }
  keep(151, {rows::CellAction::kSet, value, "", cql::IntBytes(5)});
  service.node().Run(service.LookForBatches());
  EXPECT_EQ(service.Ask("SELECT v FROM k.t WHERE a = 7"), "5");
  EXPECT_EQ(service.CountBatches(), 150u);
}

// --- TRUNCATE ------------------------------------------------------------------------------------

void MakeDerived(TestService& service) {
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
  service.Ask("CREATE INDEX ON k.t (v)");
  service.Ask(
      "CREATE MATERIALIZED VIEW k.w AS SELECT * FROM k.t WHERE v IS NOT NULL AND a IS NOT NULL "
      "PRIMARY KEY (v, a)");
}

TEST(TruncateTest, WritesMeanwhileAreInIndexesAndViewsAsInTheTable) {
  TestService service;
  MakeDerived(service);
  for (int round = 0; round < 10; ++round) {
    std::vector<std::string> statements;
    for (int a = 0; a < 30; ++a) {
      statements.push_back("INSERT INTO k.t (a, v) VALUES (" + std::to_string(a) + ", 1)");
      statements.push_back("DELETE FROM k.t WHERE a = " + std::to_string(a + 15));
    }
    statements.insert(statements.begin() + round * 6, "TRUNCATE k.t");
    service.AskAtOnce(statements);
    service.node().Run(service.FillDerived());
    service.node().Run(service.LookForBatches());
    const auto all = RowsOf(service.Ask("SELECT a FROM k.t"));
    EXPECT_EQ(RowsOf(service.Ask("SELECT a FROM k.w")), all) << round;
    EXPECT_EQ(RowsOf(service.Ask("SELECT a FROM k.t WHERE v = 1")), all) << round;
  }
  EXPECT_EQ(service.CountContainers(), 3u);
}

TEST(TruncateTest, WhatAnEarlierWriteLeftToBeDoneComesToNothing) {
  model::TestMachine machine;
  std::vector<model::TestMachine> cuts;
  model::TestNodeOptions options;
  bool watching = false;
  options.before_log = [&](storage::WatchedEngine::Call) {
    if (watching) {
      cuts.push_back(machine.AfterPowerCut());
    }
    return Status::Ok();
  };
  {
    TestService service(machine, options);
    MakeDerived(service);
    watching = true;
    service.Ask("INSERT INTO k.t (a, v) VALUES (1, 2)");
    watching = false;
  }
  size_t kept = 0;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    kept += service.CountBatches();
    EXPECT_EQ(service.Ask("TRUNCATE k.t"), "void");
    service.node().Run(service.LookForBatches());
    EXPECT_EQ(service.CountBatches(), 0u);
    EXPECT_EQ(service.Ask("SELECT * FROM k.w"), "");
    EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE v = 2"), "");
  }
  EXPECT_GT(kept, 0u);
}

TEST(IndexTest, ALimitOfGroupsOrOfWhatIsFilteredLimitsNoReads) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int, b int, v int, w int, PRIMARY KEY (a, b))");
  service.Ask("CREATE INDEX ON k.t (v)");
  for (int b = 0; b < 100; ++b) {
    const std::string number = std::to_string(b);
    service.Ask("INSERT INTO k.t (a, b, v, w) VALUES (1, " + number + ", 1, " + number + ")");
  }
  for (const std::string query : {"SELECT count(*) FROM k.t WHERE v = 1",
                                  "SELECT b FROM k.t WHERE v = 1 AND w = 99 ALLOW FILTERING",
                                  "SELECT b FROM k.t WHERE v = 1 AND b = 99 ALLOW FILTERING"}) {
    const size_t where = query.find(" ALLOW");
    const std::string all = service.Ask(query);
    const double charge = service.charge();
    EXPECT_EQ(service.Ask(query.substr(0, where) + " LIMIT 1" +
                          (where == std::string::npos ? "" : query.substr(where))),
              all);
    EXPECT_EQ(service.charge(), charge) << query;
  }
}

// --- Against what a look at all rows says, with power cuts ---------------------------------------

class Pair {
 public:
  explicit Pair(uint64_t seed) : random_(seed), service_(std::make_unique<TestService>(machine_)) {
    Ask(kKeyspace);
    EXPECT_EQ(Ask("CREATE TABLE k.t (a int, b int, v int, w text, n set<int>, PRIMARY KEY (a, b))"),
              "schema");
    for (int i = 0; i < 10; ++i) {
      Step();
    }
    EXPECT_EQ(Ask("CREATE INDEX ON k.t (v)"), "schema");
    EXPECT_EQ(Ask("CREATE INDEX ON k.t (n)"), "schema");
    EXPECT_EQ(Ask("CREATE MATERIALIZED VIEW k.by_v AS SELECT * FROM k.t WHERE v IS NOT NULL AND "
                  "a IS NOT NULL AND b IS NOT NULL PRIMARY KEY (v, b, a)"),
              "schema");
    EXPECT_EQ(Ask("CREATE MATERIALIZED VIEW k.by_b AS SELECT w FROM k.t WHERE b > 0 AND "
                  "a IS NOT NULL PRIMARY KEY (b, a)"),
              "schema");
  }

  std::string Ask(std::string_view text) { return service_->Ask(text); }
  void Step() {
    std::string statement = Next();
    EXPECT_EQ(Ask(statement), "void") << statement;
    if (Pick(8) == 0) {
      machine_.clock->Advance(std::chrono::seconds(Pick(6)));
    }
  }
  void CutPower() {
    model::TestMachine after = machine_.AfterPowerCut();
    service_.reset();
    machine_ = after;
    service_ = std::make_unique<TestService>(machine_);
  }
  void Compare() {
    service_->node().Run(service_->LookForBatches());
    std::multiset<std::string> by_v;
    std::multiset<std::string> by_b;
    std::map<std::string, std::multiset<std::string>> with_v;
    for (const std::string& row : RowsOf(Ask("SELECT v, b, a, n, w FROM k.t"))) {
      const std::string v = row.substr(0, row.find(", "));
      if (v != "null") {
        by_v.insert(row);
        with_v[v].insert(row);
      }
    }
    for (const std::string& row : RowsOf(Ask("SELECT b, a, w FROM k.t"))) {
      if (!row.starts_with("0, ")) {
        by_b.insert(row);
      }
    }
    ASSERT_EQ(RowsOf(Ask("SELECT * FROM k.by_v")), by_v);
    ASSERT_EQ(RowsOf(Ask("SELECT * FROM k.by_b")), by_b);
    for (int v = 0; v < 4; ++v) {
      const std::string value = std::to_string(v);
      ASSERT_EQ(RowsOf(Ask("SELECT v, b, a, n, w FROM k.t WHERE v = " + value)), with_v[value]);
      ASSERT_EQ(RowsOf(Ask("SELECT a, b FROM k.t WHERE n CONTAINS " + value)),
                RowsOf(Ask("SELECT a, b FROM k.t WHERE n CONTAINS " + value +
                           " AND a >= 0 ALLOW FILTERING")));
    }
  }
  int Pick(int below) { return static_cast<int>(random_.Next() % static_cast<uint64_t>(below)); }

 private:
  std::string Next() {
    auto number = [&](int below) { return std::to_string(Pick(below)); };
    const std::string time = Pick(3) == 0
                                 ? "TIMESTAMP " + std::to_string(machine_.clock->Wall().micros -
                                                                 5'000'000 + Pick(10'000'000))
                                 : "";
    const std::string ttl = Pick(4) == 0 ? "TTL " + std::to_string(1 + Pick(8)) : "";
    const std::string both =
        time.empty() && ttl.empty()
            ? ""
            : " USING " + time + (time.empty() || ttl.empty() ? "" : " AND ") + ttl;
    const std::string at = time.empty() ? "" : " USING " + time;
    const std::string a = " WHERE a = " + number(3);
    const std::string row = a + " AND b = " + number(4);
    switch (Pick(11)) {
      case 0:
      case 1:
        return "INSERT INTO k.t (a, b, v, w) VALUES (" + number(3) + ", " + number(4) + ", " +
               number(4) + ", 'w" + number(9) + "')" + both;
      case 2: return "UPDATE k.t" + both + " SET v = " + number(4) + row;
      case 3: return "UPDATE k.t" + both + " SET w = 'u" + number(9) + "'" + row;
      case 4: return "UPDATE k.t" + both + " SET n = n + {" + number(4) + "}" + row;
      case 5: return "UPDATE k.t" + both + " SET n = {" + number(4) + ", " + number(4) + "}" + row;
      case 6: return "DELETE v FROM k.t" + at + row;
      case 7: return "DELETE FROM k.t" + at + row;
      case 8: return "DELETE FROM k.t" + at + a + " AND b > " + number(4);
      case 9:
        return "BEGIN BATCH UPDATE k.t SET v = " + number(4) + row +
               "; UPDATE k.t SET v = " + number(4) + " WHERE a = " + number(3) +
               " AND b = 1; INSERT INTO k.t (a, b, v) " + "VALUES (1, 1, " + number(4) +
               ") APPLY BATCH";
      default: return Pick(3) == 0 ? "DELETE FROM k.t" + at + a : "DELETE n FROM k.t" + at + row;
    }
  }

  SeededRandom random_;
  model::TestMachine machine_;
  std::unique_ptr<TestService> service_;
};

TEST(DerivedModelTest, WhatFollowsFromRowsIsWhatAllRowsSay) {
  for (uint64_t seed = 1; seed <= 25 && !HasFatalFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Pair pair(seed);
    for (int step = 0; step < 60 && !HasFatalFailure(); ++step) {
      pair.Step();
      if (pair.Pick(25) == 0) {
        pair.CutPower();
      }
      if (step % 6 == 5) {
        pair.Compare();
      }
    }
  }
}

// A write and what follows from it are all there, or none of it, whenever the process ends.
TEST(DerivedTest, APowerCutAtAnyWriteLeavesNoneOrAll) {
  model::TestMachine machine;
  std::vector<model::TestMachine> cuts;
  model::TestNodeOptions options;
  bool watching = false;
  options.before_log = [&](storage::WatchedEngine::Call) {
    if (watching) {
      cuts.push_back(machine.AfterPowerCut());
    }
    return Status::Ok();
  };
  {
    TestService service(machine, options);
    service.Ask(kKeyspace);
    service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
    service.Ask("CREATE INDEX ON k.t (v)");
    service.Ask(
        "CREATE MATERIALIZED VIEW k.w AS SELECT * FROM k.t WHERE v IS NOT NULL AND a IS "
        "NOT NULL PRIMARY KEY (v, a)");
    service.Ask("INSERT INTO k.t (a, v) VALUES (1, 1)");
    watching = true;
    EXPECT_EQ(service.Ask("UPDATE k.t SET v = 2 WHERE a = 1"), "void");
    watching = false;
    EXPECT_EQ(service.CountBatches(), 0u);
    cuts.push_back(machine.AfterPowerCut());
  }
  ASSERT_GT(cuts.size(), 3u);
  std::set<std::string> seen;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    service.node().Run(service.LookForBatches());
    std::string all = service.Ask("SELECT v FROM k.t WHERE a = 1");
    EXPECT_EQ(service.Ask("SELECT v FROM k.w"), all);
    EXPECT_EQ(service.Ask("SELECT a FROM k.t WHERE v = " + all), "1");
    EXPECT_EQ(service.CountBatches(), 0u);
    seen.insert(all);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"1", "2"}));
}

TEST(ViewTest, AViewIsATableThatNobodyWrites) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask(
      "CREATE TABLE k.t (a int, b int, v text, m map<text, int>, s int static, "
      "PRIMARY KEY (a, b))");
  service.Ask("INSERT INTO k.t (a, b, v, m) VALUES (1, 2, 'x', {'p': 1})");
  const std::string where = " FROM k.t WHERE v IS NOT NULL AND a IS NOT NULL AND b IS NOT NULL ";
  ASSERT_EQ(service.Ask("CREATE MATERIALIZED VIEW k.w AS SELECT m" + where +
                        "PRIMARY KEY (v, a, b) WITH CLUSTERING ORDER BY (a DESC)"),
            "schema");
  EXPECT_EQ(service.Ask("SELECT * FROM k.w"), "'x', 1, 2, {'p': 1}");
  service.Ask("UPDATE k.t SET m['q'] = 2, v = 'y' WHERE a = 1 AND b = 2");
  EXPECT_EQ(service.Ask("SELECT * FROM k.w WHERE v = 'y'"), "'y', 1, 2, {'p': 1, 'q': 2}");
  EXPECT_EQ(service.Ask("SELECT * FROM k.w WHERE v = 'x'"), "");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 'z' WHERE a = 1 AND b = 2 IF v = 'x'"), "false, 'y'");
  EXPECT_EQ(service.Ask("SELECT v FROM k.w"), "'y'");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 'z' WHERE a = 1 AND b = 2 IF v = 'y'"), "true");
  EXPECT_EQ(service.Ask("SELECT v FROM k.w"), "'z'");
  EXPECT_EQ(service.Ask("SELECT view_name, base_table_name, include_all_columns FROM "
                        "system_schema.views WHERE keyspace_name = 'k'"),
            "'w', 't', false");
  EXPECT_EQ(service.Ask("SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'"),
            "'t'");
  EXPECT_EQ(service.Ask("SELECT view_name FROM system.built_views"), "'w'");
  EXPECT_TRUE(
      Has(service.Ask("DESCRIBE MATERIALIZED VIEW k.w"),
          "CREATE MATERIALIZED VIEW k.w AS\n    SELECT v, a, b, m\n    FROM k.t\n    WHERE v "
          "IS NOT NULL AND a IS NOT NULL AND b IS NOT NULL\n    PRIMARY KEY (v, a, b)\n "
          "WITH CLUSTERING ORDER BY (a DESC, b ASC)"));
  const std::map<std::string, std::string> refused = {
      {"INSERT INTO k.w (v, a, b) VALUES ('z', 1, 1)",
       "Cannot directly modify a materialized view"},
      {"TRUNCATE k.w", "Cannot TRUNCATE materialized view directly"},
      {"DROP TABLE k.w", "Please use DROP MATERIALIZED VIEW instead"},
      {"DROP TABLE k.t", "when materialized views still depend on it (w)"},
      {"ALTER TABLE k.t DROP m", "with materialized views"},
      {"CREATE INDEX ON k.w (m)", "on materialized views aren't supported"},
      {"CREATE MATERIALIZED VIEW k.x AS SELECT *" + where + "PRIMARY KEY (v, a, b)",
       "Unable to include static column 's'"},
      {"CREATE MATERIALIZED VIEW k.x AS SELECT m" + where + "PRIMARY KEY (v, a)",
       "without primary key columns from base t (b)"},
      {"CREATE MATERIALIZED VIEW k.x AS SELECT m FROM k.t WHERE a IS NOT NULL AND b IS NOT NULL "
       "PRIMARY KEY (v, a, b)",
       "Primary key column 'v' is required to be filtered by 'IS NOT NULL'"},
      {"CREATE MATERIALIZED VIEW k.x AS SELECT a FROM k.w WHERE a IS NOT NULL PRIMARY KEY (a)",
       "against other materialized views"},
      {"DROP MATERIALIZED VIEW k.t", "doesn't exist"},
  };
  for (const auto& [statement, error] : refused) {
    EXPECT_TRUE(Has(service.Ask(statement), error)) << service.Ask(statement);
  }
  ASSERT_EQ(service.Ask("DROP MATERIALIZED VIEW k.w"), "schema");
  EXPECT_EQ(service.Ask("UPDATE k.t SET v = 'z' WHERE a = 1 AND b = 2"), "void");
  EXPECT_EQ(service.Ask("DROP TABLE k.t"), "schema");
}

// Writes that know nothing of a view are refused before it is filled, also if who made it is gone.
TEST(ViewTest, AViewIsReadyOnlyWhenTheNumberOfItsTableHasRisen) {
  model::TestMachine machine;
  std::vector<model::TestMachine> cuts;
  model::TestNodeOptions options;
  bool watching = false;
  options.before_log = [&](storage::WatchedEngine::Call) {
    if (watching) {
      cuts.push_back(machine.AfterPowerCut());
    }
    return Status::Ok();
  };
  uint32_t before = 0;
  {
    TestService service(machine, options);
    service.Ask(kKeyspace);
    service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
    service.Ask("INSERT INTO k.t (a, v) VALUES (1, 2)");
    before = service.Schema()->FindTable("k", "t")->derived;
    watching = true;
    service.Ask(
        "CREATE MATERIALIZED VIEW k.w AS SELECT * FROM k.t WHERE v IS NOT NULL AND a IS NOT NULL "
        "PRIMARY KEY (v, a)");
    watching = false;
  }
  size_t alone = 0;
  for (const model::TestMachine& cut : cuts) {
    TestService service(cut);
    auto schema = service.Schema();
    if (schema->FindTable("k", "w") == nullptr) {
      continue;
    }
    alone += schema->FindTable("k", "t")->derived == before;
    service.node().Run(service.FillDerived());
    service.node().Run(service.LookForBatches());
    EXPECT_TRUE(service.Schema()->FindTable("k", "w")->view->ready);
    EXPECT_GT(service.Schema()->FindTable("k", "t")->derived, before);
    EXPECT_EQ(service.Ask("SELECT * FROM k.w"), "2, 1");
  }
  EXPECT_GT(alone, 0u);
}

TEST(ViewTest, AViewOfAllColumnsGetsNewOnes) {
  TestService service;
  service.Ask(kKeyspace);
  service.Ask("CREATE TABLE k.t (a int PRIMARY KEY, v int)");
  service.Ask(
      "CREATE MATERIALIZED VIEW k.w AS SELECT * FROM k.t WHERE v IS NOT NULL AND a IS NOT "
      "NULL PRIMARY KEY (v, a)");
  EXPECT_EQ(service.Ask("ALTER TABLE k.t ADD z text"), "schema");
  service.Ask("INSERT INTO k.t (a, v, z) VALUES (1, 2, 'new')");
  EXPECT_EQ(service.Ask("SELECT * FROM k.w"), "2, 1, 'new'");
}

}  // namespace
}  // namespace orrery::cassandra
