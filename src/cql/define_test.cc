#include "cql/define.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cql/parse.h"
#include "cql/schema_document.h"
#include "cql/table_options.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

using Kind = DefineError::Kind;

template <typename Statement>
Statement As(const std::string& text) {
  auto parsed = Parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message());
  return parsed ? std::get<Statement>(parsed->statement) : Statement{};
}

std::string Shown(Kind kind, const std::string& message) {
  constexpr const char* kKinds[] = {"syntax: ", "invalid: ", "config: ", "exists: "};
  return kKinds[static_cast<size_t>(kind)] + message;
}

template <typename T>
std::string ErrorOf(const Defined<T>& result) {
  return result ? "none" : Shown(result.error().kind, result.error().message);
}

// A keyspace that is changed by statements, as a server would do it.
class Space {
 public:
  Space() { keyspace_.name = "ks"; }

  // The error, or "none".
  std::string Run(const std::string& text) {
    auto parsed = Parse(text);
    if (!parsed) {
      return parsed.error().message();
    }
    return std::visit([this](const auto& statement) { return Apply(statement); },
                      parsed->statement);
  }
  Space& Do(const std::string& text) {
    EXPECT_EQ(Run(text), "none") << text;
    return *this;
  }

  const Keyspace& keyspace() const { return keyspace_; }
  const Table& table(const std::string& name = "t") const { return keyspace_.tables.at(name); }
  const DataType& type(const std::string& name) const { return keyspace_.types.at(name); }
  // name type kind of each column.
  std::string Columns(const std::string& name = "t") const {
    constexpr const char* kKinds[] = {"", " pk", " ck", " static", ""};
    std::string text;
    for (const Column& column : table(name).columns) {
      text += (text.empty() ? "" : ", ") + std::to_string(column.id) + " " + column.name + " " +
              column.type.ToCql() + kKinds[static_cast<size_t>(column.kind)] +
              (column.descending ? " desc" : "");
    }
    return text;
  }

 private:
  std::string Apply(const CreateTable& create) {
    auto table = DefineTable(create, keyspace_, std::string(16, '\x22'));
    return Keep(table);
  }
  std::string Apply(const AlterTable& alter) {
    return Keep(AlteredTable(alter, keyspace_.tables.at(alter.table.name), keyspace_, 1'000));
  }
  std::string Apply(const CreateIndex& create) {
    return Keep(DefineIndex(create, keyspace_.tables.at(create.table.name), keyspace_));
  }
  std::string Apply(const DropIndex& drop) {
    auto table = WithoutIndex(drop, keyspace_);
    if (table && *table) {
      keyspace_.tables[(*table)->name] = **table;
    }
    return ErrorOf(table);
  }
  std::string Apply(const CreateType& create) {
    auto type = DefineType(create, keyspace_);
    if (type) {
      keyspace_.types.insert_or_assign(type->name(), *type);
    }
    return ErrorOf(type);
  }
  std::string Apply(const AlterType& alter) {
    auto keyspace = AlteredType(alter, keyspace_);
    if (keyspace) {
      keyspace_ = *keyspace;
    }
    return ErrorOf(keyspace);
  }
  std::string Apply(const DropType& drop) {
    auto good = CheckDropType(drop, keyspace_);
    if (good) {
      keyspace_.types.erase(drop.type.name);
    }
    return ErrorOf(good);
  }
  template <typename Other>
  std::string Apply(const Other&) {
    return "not a definition";
  }

  std::string Keep(const Defined<Table>& table) {
    if (table) {
      // What is kept comes back.
      keyspace_.tables[table->name] = *table;
      auto again = TableFromDocument(TableToDocument(*table).root(), ScopeOf(keyspace_));
      EXPECT_TRUE(again && *again == *table) << TableToDocument(*table).ToJson();
    }
    return ErrorOf(table);
  }

  Keyspace keyspace_;
};

struct Case {
  std::string text;
  std::string error;
};

// ---- Keyspaces ----

TEST(DefineTest, KeyspacesHaveTheFullNameOfTheirStrategy) {
  const std::vector<std::string> centers = {"dc1", "dc2"};
  const std::pair<std::string, StringMap> rows[] = {
      {"{'class': 'SimpleStrategy', 'replication_factor': 3}",
       {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", "3"}}},
      {"{'replication_factor': '1', 'class': 'org.apache.cassandra.locator.SimpleStrategy'}",
       {{"class", "org.apache.cassandra.locator.SimpleStrategy"}, {"replication_factor", "1"}}},
      {"{'class': 'NetworkTopologyStrategy', 'dc1': 3}",
       {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"}, {"dc1", "3"}}},
      {"{'class': 'NetworkTopologyStrategy', 'replication_factor': 2, 'dc2': 5}",
       {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"},
        {"dc1", "2"},
        {"dc2", "5"}}},
      {"{'class': 'NetworkTopologyStrategy', 'replication_factor': 2, 'dc2': 0}",
       {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"}, {"dc1", "2"}}},
      {"{'class': 'NetworkTopologyStrategy', 'elsewhere': 1}",
       {{"class", "org.apache.cassandra.locator.NetworkTopologyStrategy"}, {"elsewhere", "1"}}},
  };
  for (const auto& [text, replication] : rows) {
    auto keyspace =
        DefineKeyspace(As<CreateKeyspace>("CREATE KEYSPACE k WITH replication = " + text), centers);
    ASSERT_TRUE(keyspace) << text << ": " << keyspace.error().message;
    EXPECT_EQ(keyspace->name, "k");
    EXPECT_TRUE(keyspace->durable_writes);
    EXPECT_EQ(keyspace->replication, replication) << text;
  }
}

TEST(DefineTest, BadKeyspacesAreRefused) {
  const std::vector<std::string> centers = {"dc1", "dc2"};
  const std::string long_name(49, 'k');
  const Case rows[] = {
      {"k WITH durable_writes = true", "invalid: Missing mandatory option 'replication'"},
      {"k WITH nothing = true", "syntax: Unknown property 'nothing'"},
      {"k WITH replication = 'SimpleStrategy'",
       "syntax: Invalid value for property 'replication'. It should be a map."},
      {"k WITH replication = {'replication_factor': 1}",
       "config: Missing replication strategy class"},
      {"k WITH replication = {}", "config: Missing replication strategy class"},
      {"k WITH replication = {'class': 'Odd'}",
       "config: Unable to find replication strategy class 'org.apache.cassandra.locator.Odd'"},
      {"k WITH replication = {'class': 'LocalStrategy'}",
       "invalid: Unable to use given strategy class: LocalStrategy is reserved for internal use."},
      {"k WITH replication = {'class': 'SimpleStrategy'}",
       "config: SimpleStrategy requires a replication_factor strategy option."},
      {"k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1, 'dc1': 1}",
       "config: Unrecognized strategy option {dc1} passed to SimpleStrategy for keyspace k"},
      {"k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 'x'}",
       "config: Replication factor must be numeric; found x"},
      {"k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': -1}",
       "config: Replication factor must be non-negative, found -1"},
      {"k WITH replication = {'class': 'NetworkTopologyStrategy'}",
       "config: Configuration for at least one datacenter must be present"},
      {"k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} AND "
       "cosmosdb_provisioned_throughput = 'x'",
       "syntax: Invalid integer value x for 'cosmosdb_provisioned_throughput'"},
      {long_name + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
       "invalid: Keyspace name must not be empty, more than 48 characters long, or contain "
       "non-alphanumeric-underscore characters (got '" +
           long_name + "')"},
      {"\"a b\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
       "invalid: Keyspace name must not be empty, more than 48 characters long, or contain "
       "non-alphanumeric-underscore characters (got 'a b')"},
  };
  for (const Case& row : rows) {
    auto create = As<CreateKeyspace>("CREATE KEYSPACE " + row.text);
    EXPECT_EQ(ErrorOf(DefineKeyspace(create, centers)), row.error) << row.text;
  }
}

TEST(DefineTest, AlteringAKeyspaceKeepsWhatIsNotSaid) {
  Keyspace before{.name = "k", .replication = {{"class", "c"}}};
  before.types["a"] = DataType::Udt("k", "a", {{"x", TypeId::kInt}});
  auto after =
      AlteredKeyspace(As<AlterKeyspace>("ALTER KEYSPACE k WITH durable_writes = false"), before);
  ASSERT_TRUE(after);
  EXPECT_FALSE(after->durable_writes);
  EXPECT_EQ(after->replication, before.replication);
  EXPECT_EQ(after->types, before.types);
  after = AlteredKeyspace(As<AlterKeyspace>("ALTER KEYSPACE k WITH replication = {'class': "
                                            "'SimpleStrategy', 'replication_factor': 2}"),
                          *after);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->replication[1].second, "2");
  EXPECT_FALSE(after->durable_writes);
}

// ---- Tables ----

TEST(DefineTest, ColumnsStandInTheOrderOfSelect) {
  Space space;
  space.Do("CREATE TYPE a (x int)");
  space.Do(
      "CREATE TABLE t (z int, y text, s2 int STATIC, b frozen<a>, \"A\" map<text, int>, s1 a "
      "STATIC, x frozen<list<int>>, k2 int, k1 uuid, PRIMARY KEY ((k2, k1), y, x)) "
      "WITH CLUSTERING ORDER BY (y DESC)");
  EXPECT_EQ(space.Columns(),
            "1 k2 int pk, 2 k1 uuid pk, 3 y text ck desc, 4 x frozen<list<int>> ck, "
            "9 s1 a static, 6 s2 int static, 8 A map<text, int>, 7 b frozen<a>, 5 z int");
}

TEST(DefineTest, BadTablesAreRefused) {
  const std::string long_name(49, 't');
  const std::string name_rule =
      "Table name must not be empty, more than 48 characters long, or contain "
      "non-alphanumeric-underscore characters (got ";
  const Case rows[] = {
      {"t (a int, b int)", "invalid: No PRIMARY KEY specifed for table 't' (exactly one required)"},
      {"ks.t (a int)", "invalid: No PRIMARY KEY specifed for table 'ks.t' (exactly one required)"},
      {"t (a int PRIMARY KEY, b int PRIMARY KEY)",
       "invalid: Multiple PRIMARY KEY specified for table 't' (exactly one required)"},
      {"t (a int PRIMARY KEY, b int, PRIMARY KEY (b))",
       "invalid: Multiple PRIMARY KEY specified for table 't' (exactly one required)"},
      {"t (a int PRIMARY KEY, b int, b text)",
       "invalid: Duplicate column 'b' declaration for table 't'"},
      {"t (a int, PRIMARY KEY (b))",
       "invalid: Unknown column 'b' referenced in PRIMARY KEY for table 't'"},
      {"t (a int, PRIMARY KEY (a, a))",
       "invalid: Duplicate column 'a' in PRIMARY KEY clause for table 't'"},
      {"t (a list<int> PRIMARY KEY)",
       "invalid: Invalid non-frozen collection type list<int> for PRIMARY KEY column 'a'"},
      {"t (a place PRIMARY KEY)",
       "invalid: Invalid non-frozen user-defined type place for PRIMARY KEY column 'a'"},
      {"t (a counter PRIMARY KEY)",
       "invalid: counter type is not supported for PRIMARY KEY column 'a'"},
      {"t (a duration PRIMARY KEY)",
       "invalid: duration type is not supported for PRIMARY KEY column 'a'"},
      {"t (a int, b frozen<list<duration>>, PRIMARY KEY (a, b))",
       "invalid: duration type is not supported for PRIMARY KEY column 'b'"},
      {"t (a int, b int STATIC, PRIMARY KEY (a, b))",
       "invalid: Static column 'b' cannot be part of the PRIMARY KEY"},
      {"t (a int PRIMARY KEY, b int STATIC)",
       "invalid: Static columns are only useful (and thus allowed) if the table has at least one "
       "clustering column"},
      {"t (a int PRIMARY KEY, b int, c counter)",
       "invalid: Cannot mix counter and non counter columns in the same table"},
      {"t (a int PRIMARY KEY, b nothing)", "invalid: Unknown type ks.nothing"},
      {"t (a int PRIMARY KEY, b list<list<int>>)",
       "invalid: Non-frozen collections are not allowed inside collections: list<list<int>>"},
      {"t (a int PRIMARY KEY, b int MASKED WITH DEFAULT)",
       "invalid: Cannot mask columns because dynamic data masking is not enabled. You can enable "
       "it with the dynamic_data_masking_enabled property on cassandra.yaml"},
      {"t (a int PRIMARY KEY) WITH COMPACT STORAGE",
       "invalid: COMPACT STORAGE tables are not supported"},
      {"t (a int, b int, c int, PRIMARY KEY (a, b, c)) WITH CLUSTERING ORDER BY (c DESC)",
       "invalid: Missing CLUSTERING ORDER for column b"},
      {"t (a int, b int, c int, PRIMARY KEY (a, b, c)) WITH CLUSTERING ORDER BY (c ASC, b ASC)",
       "invalid: The order of columns in the CLUSTERING ORDER directive must match that of the "
       "clustering columns (b must appear before c)"},
      {"t (a int, b int, PRIMARY KEY (a, b)) WITH CLUSTERING ORDER BY (b ASC, a ASC)",
       "invalid: Only clustering columns can be defined in CLUSTERING ORDER directive"},
      {"t (a int, b int, c int, PRIMARY KEY (a, b, c)) WITH CLUSTERING ORDER BY (b ASC, b DESC)",
       "invalid: Duplicate column 'b' in CLUSTERING ORDER BY clause for table 't'"},
      {"t (a int PRIMARY KEY, b counter) WITH default_time_to_live = 5",
       "invalid: Cannot set default_time_to_live on a table with counters"},
      {"t (a int PRIMARY KEY) WITH id = 'x'", "config: Invalid table id"},
      {"taken (a int PRIMARY KEY)",
       "exists: Cannot add already existing table \"taken\" to keyspace \"ks\""},
      {"\"a-b\" (a int PRIMARY KEY)", "config: ks.a-b: " + name_rule + "\"a-b\")"},
      {long_name + " (a int PRIMARY KEY)",
       "config: ks." + long_name + ": " + name_rule + "\"" + long_name + "\")"},
  };
  Space space;
  space.Do("CREATE TYPE place (x int)").Do("CREATE TABLE taken (a int PRIMARY KEY)");
  for (const Case& row : rows) {
    EXPECT_EQ(space.Run("CREATE TABLE " + row.text), row.error) << row.text;
  }
}

TEST(DefineTest, AStatementMayGiveTheId) {
  Space space;
  space.Do("CREATE TABLE t (a int PRIMARY KEY) WITH id = '11111111-1111-1111-1111-111111111111'");
  EXPECT_EQ(space.table().id, std::string(16, '\x11'));
  EXPECT_EQ(space.Run("ALTER TABLE t WITH id = '11111111-1111-1111-1111-111111111112'"),
            "config: Cannot alter table id.");
}

// ---- Options ----

TEST(DefineTest, OptionsAreKeptAsTheyAreShown) {
  struct Row {
    std::string text;
    std::variant<std::string, StringMap> shown;
  };
  const StringMap off = {{"enabled", "false"}};
  const std::string compaction = "org.apache.cassandra.db.compaction.";
  const std::string compress = "org.apache.cassandra.io.compress.";
  const Row rows[] = {
      {"comment = 'it''s'", "it's"},
      {"gc_grace_seconds = 05", "5"},
      {"bloom_filter_fp_chance = 1", "1.0"},
      {"crc_check_chance = 0.5", "0.5"},
      {"cdc = TRUE", "true"},
      {"cdc = 'no'", "false"},
      {"read_repair = 'none'", "NONE"},
      {"speculative_retry = '99PERCENTILE'", "99p"},
      {"speculative_retry = '99.9p'", "99.9p"},
      {"speculative_retry = '50.0ms'", "50ms"},
      {"speculative_retry = 'none'", "NEVER"},
      {"speculative_retry = 'min(99p, 50ms)'", "MIN(99p,50ms)"},
      {"additional_write_policy = 'ALWAYS'", "ALWAYS"},
      {"cosmosdb_provisioned_throughput = 1000", "1000"},
      {"cosmosdb_cell_level_timestamp = true", "true"},
      {"cosmosdb_cell_level_timestamp_tombstones = true", "true"},
      {"cosmosdb_cell_level_timetolive = true", "true"},
      {"caching = {'rows_per_partition': '5', 'keys': 'all'}",
       StringMap{{"keys", "ALL"}, {"rows_per_partition", "5"}}},
      {"caching = {}", StringMap{{"keys", "NONE"}, {"rows_per_partition", "NONE"}}},
      {"compaction = {'class': 'SizeTieredCompactionStrategy', 'max_threshold': 8}",
       StringMap{{"class", compaction + "SizeTieredCompactionStrategy"},
                 {"max_threshold", "8"},
                 {"min_threshold", "4"}}},
      {"compaction = {'sstable_size_in_mb': '160', 'class': 'LeveledCompactionStrategy'}",
       StringMap{{"class", compaction + "LeveledCompactionStrategy"},
                 {"sstable_size_in_mb", "160"}}},
      {"compression = {'sstable_compression': 'ZstdCompressor', 'chunk_length_kb': 64}",
       StringMap{{"chunk_length_in_kb", "64"}, {"class", compress + "ZstdCompressor"}}},
      {"compression = {'class': 'org.apache.cassandra.io.compress.LZ4Compressor'}",
       StringMap{{"chunk_length_in_kb", "16"}, {"class", compress + "LZ4Compressor"}}},
      {"compression = {'enabled': false}", off},
      {"compression = {'sstable_compression': ''}", off},
      {"compression = {}", off},
  };
  for (const Row& row : rows) {
    Space space;
    space.Do("CREATE TABLE t (a int PRIMARY KEY) WITH " + row.text);
    ASSERT_EQ(space.table().options.size(), 1u) << row.text;
    EXPECT_EQ(space.table().options[0].value, row.shown) << row.text;
  }
}

TEST(DefineTest, OptionsOfOtherVersionsAreForgotten) {
  Space space;
  space.Do(
      "CREATE TABLE t (a int PRIMARY KEY) WITH memtable = 'default' AND extensions = {} AND "
      "allow_auto_snapshot = true AND read_repair_chance = 0.0 AND incremental_backups = true");
  EXPECT_TRUE(space.table().options.empty());
}

TEST(DefineTest, BadOptionsAreRefused) {
  const Case rows[] = {
      {"nothing = 1", "syntax: Unknown property 'nothing'"},
      {"comment = {'a': 'b'}",
       "syntax: Invalid value for property 'comment'. It should be a string"},
      {"caching = 'all'", "syntax: Invalid value for property 'caching'. It should be a map."},
      {"caching = {'rows': '1'}",
       "config: Invalid caching sub-options [rows]: only 'keys' and 'rows_per_partition' are "
       "allowed"},
      {"caching = {'keys': '1'}",
       "config: Invalid value '1' for caching sub-option 'keys': only 'ALL' and 'NONE' are "
       "allowed"},
      {"default_time_to_live = 'x'", "syntax: Invalid integer value x for 'default_time_to_live'"},
      {"default_time_to_live = 1.5",
       "syntax: Invalid integer value 1.5 for 'default_time_to_live'"},
      {"default_time_to_live = -1",
       "config: default_time_to_live must be greater than or equal to 0 (got -1)"},
      {"default_time_to_live = 630720001",
       "config: default_time_to_live must be less than or equal to 630720000 (got 630720001)"},
      {"gc_grace_seconds = -1",
       "config: gc_grace_seconds must be greater than or equal to 0 (got -1)"},
      {"min_index_interval = 0",
       "config: min_index_interval must be greater than or equal to 1 (got 0)"},
      {"max_index_interval = 100",
       "config: max_index_interval must be greater than or equal to min_index_interval (128) "
       "(got 100)"},
      {"bloom_filter_fp_chance = 0",
       "config: bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 "
       "(got 0.0)"},
      {"bloom_filter_fp_chance = 'x'",
       "syntax: Invalid double value x for 'bloom_filter_fp_chance'"},
      {"crc_check_chance = 2",
       "config: crc_check_chance must be larger than or equal to 0 and smaller than or equal to "
       "1.0 (got 2.0)"},
      {"cdc = 'maybe'", "syntax: Invalid boolean value maybe for 'cdc'"},
      {"speculative_retry = 'soon'", "config: Invalid value soon for option 'speculative_retry'"},
      {"speculative_retry = '100p'", "config: Invalid value 100p for option 'speculative_retry'"},
      {"read_repair = 'x'", "config: Invalid value x for option 'read_repair'"},
      {"compaction = {'max_threshold': '8'}",
       "config: Missing sub-option 'class' for the 'compaction' option"},
      {"compaction = {'class': 'Odd'}",
       "config: Unable to find compaction strategy class 'org.apache.cassandra.db.compaction.Odd'"},
      {"compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 'x'}",
       "config: Invalid value x for 'min_threshold' compaction sub-option - must be an integer"},
      {"compression = {'class': 'Odd'}",
       "config: Could not create Compression for type org.apache.cassandra.io.compress.Odd"},
      {"compression = {'enabled': 'false', 'class': 'LZ4Compressor'}",
       "config: If the 'enabled' option is set to false no other options must be specified"},
      {"compression = {'chunk_length_in_kb': '4'}",
       "config: Missing sub-option 'class' for the 'compression' option."},
      {"compression = {'class': 'LZ4Compressor', 'sstable_compression': 'LZ4Compressor'}",
       "config: An option of 'compression' is given by two of its names"},
      {"cosmosdb_provisioned_throughput = 0",
       "config: cosmosdb_provisioned_throughput must be greater than 0 (got 0)"},
      {"cosmosdb_cell_level_timestamp = 7",
       "syntax: Invalid boolean value 7 for 'cosmosdb_cell_level_timestamp'"},
  };
  for (const Case& row : rows) {
    Space space;
    EXPECT_EQ(space.Run("CREATE TABLE t (a int PRIMARY KEY) WITH " + row.text), row.error)
        << row.text;
    space.Do("CREATE TABLE t (a int PRIMARY KEY)");
    EXPECT_EQ(space.Run("ALTER TABLE t WITH " + row.text), row.error) << row.text;
  }
}

TEST(DefineTest, AlteringOptionsKeepsTheOthers) {
  Space space;
  space.Do("CREATE TABLE t (a int PRIMARY KEY) WITH comment = 'a' AND default_time_to_live = 60");
  space.Do("ALTER TABLE t WITH gc_grace_seconds = 5 AND comment = 'b'");
  EXPECT_EQ(space.table().options, (Options{{"comment", "b"}, {"gc_grace_seconds", "5"}}));
  EXPECT_EQ(space.table().default_ttl, 60);
  space.Do("ALTER TABLE t WITH default_time_to_live = 0");
  EXPECT_EQ(space.table().default_ttl, 0);
  auto alter = As<AlterTable>("ALTER TABLE t WITH cosmosdb_provisioned_throughput = 500");
  EXPECT_EQ(GivenThroughput(std::get<TableOptions>(alter.change).options), 500);
}

// ---- Altering tables ----

TEST(DefineTest, AddedColumnsGetNewIds) {
  Space space;
  space.Do("CREATE TABLE t (a int, b int, v int, PRIMARY KEY (a, b))");
  space.Do("ALTER TABLE t ADD (x text, c int, s int STATIC)");
  EXPECT_EQ(space.Columns(), "1 a int pk, 2 b int ck, 6 s int static, 5 c int, 3 v int, 4 x text");
  space.Do("ALTER TABLE t DROP v").Do("ALTER TABLE t ADD v int");
  EXPECT_EQ(space.Columns(), "1 a int pk, 2 b int ck, 6 s int static, 5 c int, 7 v int, 4 x text");
  EXPECT_EQ(space.table().next_column, 8u);
  space.Do("ALTER TABLE t ADD IF NOT EXISTS v text");
  EXPECT_EQ(space.table().next_column, 8u);
}

TEST(DefineTest, DroppedColumnsAreRemembered) {
  Space space;
  space.Do("CREATE TYPE place (x int, y text)");
  space.Do(
      "CREATE TABLE t (a int, b int, v int, w frozen<place>, l list<frozen<place>>, s int "
      "STATIC, PRIMARY KEY (a, b))");
  space.Do("ALTER TABLE t DROP (v, w)");
  space.Do("ALTER TABLE t DROP s USING TIMESTAMP 17");
  space.Do("ALTER TABLE t DROP l").Do("ALTER TABLE t DROP IF EXISTS nothing");
  const DataType pair = DataType::Tuple({TypeId::kInt, TypeId::kText});
  EXPECT_EQ(space.table().dropped,
            (std::vector<DroppedColumn>{{"v", TypeId::kInt, false, 1'000},
                                        {"w", pair, false, 1'000},
                                        {"s", TypeId::kInt, true, 17},
                                        {"l", DataType::List(pair), false, 1'000}}));
  EXPECT_EQ(space.Columns(), "1 a int pk, 2 b int ck");
  // Nothing uses the type any more.
  Space other = space;
  other.Do("DROP TYPE place");
  space.Do("ALTER TABLE t ADD w frozen<place>").Do("ALTER TABLE t DROP w USING TIMESTAMP 18");
  EXPECT_EQ(space.table().dropped.size(), 4u);
  EXPECT_EQ(space.table().dropped.back().timestamp, 18);
}

TEST(DefineTest, KeyColumnsCanBeRenamed) {
  Space space;
  space.Do("CREATE TABLE t (a int, b int, v int, PRIMARY KEY (a, b))");
  space.Do("ALTER TABLE t RENAME a TO z AND b TO y");
  EXPECT_EQ(space.Columns(), "1 z int pk, 2 y int ck, 3 v int");
  space.Do("ALTER TABLE t RENAME IF EXISTS a TO b");
  EXPECT_EQ(space.Columns(), "1 z int pk, 2 y int ck, 3 v int");
}

TEST(DefineTest, BadChangesOfTablesAreRefused) {
  const Case rows[] = {
      {"t ADD v int", "invalid: Column with name 'v' already exists"},
      {"t ADD (n int, n int)", "invalid: Column with name 'n' already exists"},
      {"t ADD n nothing", "invalid: Unknown type ks.nothing"},
      {"flat ADD s int STATIC",
       "invalid: Static columns are only useful (and thus allowed) if the table has at least one "
       "clustering column"},
      {"t ADD n counter",
       "config: ks.t: Cannot have a counter column (\"n\") in a non counter column table"},
      {"count ADD n int",
       "config: ks.count: Cannot have a non counter column (\"n\") in a counter "
       "table"},
      {"t ADD old text",
       "invalid: Cannot re-add previously dropped column 'old' of type text, incompatible with "
       "previous type int"},
      {"t ADD old int STATIC",
       "invalid: Cannot re-add previously dropped column 'old' of kind STATIC, incompatible with "
       "previous kind REGULAR"},
      {"count ADD old counter", "invalid: Cannot re-add previously dropped counter column old"},
      {"t ADD n int MASKED WITH DEFAULT",
       "invalid: Cannot mask columns because dynamic data masking is not enabled. You can enable "
       "it with the dynamic_data_masking_enabled property on cassandra.yaml"},
      {"t DROP nothing", "invalid: Column nothing was not found in table 'ks.t'"},
      {"t DROP a", "invalid: Cannot drop PRIMARY KEY column a"},
      {"t DROP b", "invalid: Cannot drop PRIMARY KEY column b"},
      {"t DROP u", "invalid: Cannot drop non-frozen column u of user type place"},
      {"t DROP i",
       "invalid: Cannot drop column i because it has dependent secondary indexes "
       "(t_i_idx)"},
      {"t DROP v USING TIMESTAMP ?", "invalid: Invalid timestamp of dropped columns"},
      {"t RENAME v TO w", "invalid: Cannot rename non PRIMARY KEY column v"},
      {"t RENAME nothing TO w", "invalid: Column nothing was not found in table ks.t"},
      {"t RENAME a TO v",
       "invalid: Cannot rename column a to v in table 'ks.t'; another column "
       "with that name already exists"},
      {"t RENAME a TO n AND b TO n",
       "invalid: Cannot rename column b to n in table 'ks.t'; "
       "another column with that name already exists"},
      {"t RENAME a TO b AND b TO a",
       "invalid: Cannot rename column a to b in table 'ks.t'; "
       "another column with that name already exists"},
      {"t RENAME c TO n",
       "invalid: Cannot rename column c because it has dependent secondary "
       "indexes (t_c_idx)"},
      {"t ALTER v TYPE text", "invalid: Altering column types is no longer supported"},
      {"t ALTER nothing DROP MASKED",
       "invalid: Column with name 'nothing' doesn't exist on table 't'"},
      {"t DROP COMPACT STORAGE",
       "invalid: Cannot DROP COMPACT STORAGE on table without COMPACT STORAGE"},
      {"count WITH default_time_to_live = 5",
       "invalid: Cannot set default_time_to_live on a table with counters"},
  };
  Space space;
  space.Do("CREATE TYPE place (x int)");
  space.Do(
      "CREATE TABLE t (a int, b int, c int, v int, u place, i int, old int, PRIMARY KEY (a, "
      "b, c))");
  space.Do("ALTER TABLE t DROP old").Do("CREATE INDEX ON t (i)").Do("CREATE INDEX ON t (c)");
  space.Do("CREATE TABLE flat (a int PRIMARY KEY)");
  space.Do("CREATE TABLE count (a int PRIMARY KEY, old counter, m counter)");
  space.Do("ALTER TABLE count DROP old");
  for (const Case& row : rows) {
    EXPECT_EQ(space.Run("ALTER TABLE " + row.text), row.error) << row.text;
  }
  space.Do("ALTER TABLE t ALTER v DROP MASKED").Do("ALTER TABLE t ALTER IF EXISTS n DROP MASKED");
}

TEST(DefineTest, ADroppedColumnMayComeBackWider) {
  Space space;
  space.Do("CREATE TABLE t (a int PRIMARY KEY, v ascii, l list<int>)");
  space.Do("ALTER TABLE t DROP (v, l)");
  space.Do("ALTER TABLE t ADD v text").Do("ALTER TABLE t ADD l list<int>");
  space.Do("ALTER TABLE t DROP l");
  EXPECT_EQ(space.Run("ALTER TABLE t ADD l frozen<list<int>>"),
            "invalid: Cannot re-add previously dropped column 'l' of type frozen<list<int>>, "
            "incompatible with previous type list<int>");
}

// ---- Types ----

TEST(DefineTest, AChangedTypeIsChangedEverywhere) {
  Space space;
  space.Do("CREATE TYPE inner (x int)");
  space.Do("CREATE TYPE outer (i frozen<inner>, l list<frozen<inner>>)");
  space.Do(
      "CREATE TABLE t (a int, c frozen<inner>, v map<text, frozen<outer>>, w tuple<int, "
      "inner>, u inner, PRIMARY KEY (a, c))");
  space.Do("ALTER TYPE inner ADD y text");
  const DataType inner = DataType::Udt("ks", "inner", {{"x", TypeId::kInt}, {"y", TypeId::kText}});
  const DataType outer = DataType::Udt("ks", "outer", {{"i", inner}, {"l", DataType::List(inner)}});
  EXPECT_EQ(space.type("inner"), inner);
  EXPECT_EQ(space.type("outer"), outer);
  EXPECT_EQ(space.table().Find("c")->type, inner.Frozen());
  EXPECT_EQ(space.table().Find("v")->type, DataType::Map(TypeId::kText, outer));
  EXPECT_EQ(space.table().Find("w")->type, DataType::Tuple({TypeId::kInt, inner}));
  EXPECT_EQ(space.table().Find("u")->type, inner);
  space.Do("ALTER TYPE inner RENAME x TO z AND y TO x");
  EXPECT_EQ(space.table().Find("u")->type.field_names(), (std::vector<std::string>{"z", "x"}));
  space.Do("ALTER TYPE inner ADD IF NOT EXISTS x int").Do("ALTER TYPE IF EXISTS none ADD x int");
  space.Do("ALTER TYPE inner RENAME IF EXISTS q TO r");
  EXPECT_EQ(space.type("inner").parameters().size(), 2u);
}

TEST(DefineTest, BadTypesAreRefused) {
  const Case rows[] = {
      {"CREATE TYPE inner (x int)", "invalid: A user type with name 'inner' already exists"},
      {"CREATE TYPE n (x int, x text)", "invalid: Duplicate field name 'x' in type 'n'"},
      {"CREATE TYPE n (x counter)", "invalid: A user type cannot contain counters"},
      {"CREATE TYPE n (x inner)", "invalid: A user type cannot contain non-frozen UDTs"},
      {"CREATE TYPE n (x frozen<n>)", "invalid: Unknown type ks.n"},
      {"CREATE TYPE n (x list<counter>)",
       "invalid: Counters are not allowed inside collections: list<counter>"},
      {"ALTER TYPE n ADD x int", "invalid: Type ks.n doesn't exist"},
      {"ALTER TYPE inner ADD x int",
       "invalid: Cannot add field x to type ks.inner: a field with name x already exists"},
      {"ALTER TYPE inner ADD y frozen<outer>",
       "invalid: Cannot add new field y of type frozen<outer> to user type ks.inner as it would "
       "create a circular reference"},
      {"ALTER TYPE inner ADD y frozen<inner>",
       "invalid: Cannot add new field y of type frozen<inner> to user type ks.inner as it would "
       "create a circular reference"},
      {"ALTER TYPE keyed ADD z int",
       "invalid: Cannot add new field z of type int to user type ks.keyed as the type is being "
       "used in partition key by the following tables: ks.t"},
      {"ALTER TYPE inner RENAME y TO z", "invalid: Unkown field y in user type ks.inner"},
      {"ALTER TYPE keyed RENAME x TO y", "invalid: Duplicate field name y in type ks.keyed"},
      {"ALTER TYPE inner ALTER x TYPE text",
       "invalid: Altering field types is no longer supported"},
      {"DROP TYPE n", "invalid: Type 'ks.n' doesn't exist"},
      {"DROP TYPE inner",
       "invalid: Cannot drop user type 'ks.inner' as it is still used by user types outer"},
      {"DROP TYPE keyed",
       "invalid: Cannot drop user type 'ks.keyed' as it is still used by tables t, u"},
  };
  Space space;
  space.Do("CREATE TYPE inner (x int)").Do("CREATE TYPE outer (i frozen<inner>)");
  space.Do("CREATE TYPE keyed (x int, y int)");
  space.Do("CREATE TABLE t (a frozen<list<keyed>> PRIMARY KEY)");
  space.Do("CREATE TABLE u (a int PRIMARY KEY, b keyed)");
  for (const Case& row : rows) {
    EXPECT_EQ(space.Run(row.text), row.error) << row.text;
  }
  space.Do("DROP TYPE IF EXISTS n").Do("DROP TYPE outer").Do("DROP TYPE inner");
  space.Do("CREATE TYPE IF NOT EXISTS keyed (q int)");
  EXPECT_EQ(space.type("keyed").field_names()[0], "x");
}

TEST(DefineTest, ATypeMayNotGrowBeyondItsBounds) {
  Space space;
  space.Do("CREATE TYPE t0 (x int)");
  int last = 0;
  for (std::string error = "none"; error == "none" && last < 100; ++last) {
    error = space.Run("CREATE TYPE t" + std::to_string(last + 1) + " (x frozen<t" +
                      std::to_string(last) + ">)");
  }
  ASSERT_LT(last, 100);
  // The highest one would be too high.
  EXPECT_NE(space.Run("ALTER TYPE t0 ADD y tuple<tuple<int>>"), "none");
  for (const auto& [name, type] : space.keyspace().types) {
    EXPECT_LE(type.height(), DataType::kNestingMax);
  }
  EXPECT_TRUE(KeyspaceFromDocument(KeyspaceToDocument(space.keyspace()).root()));
}

// ---- Indexes ----

TEST(DefineTest, IndexesGetNames) {
  Space space;
  space.Do(
      "CREATE TABLE t (a int, c int, \"V w\" int, m map<text, int>, f frozen<list<int>>, s "
      "int STATIC, PRIMARY KEY (a, c))");
  space.Do("CREATE INDEX ON t (\"V w\")").Do("CREATE INDEX ON t (keys(m))");
  space.Do("CREATE INDEX ON t (m)").Do("CREATE INDEX ON ks.t (entries(m))");
  space.Do("CREATE INDEX mine ON t (full(f))")
      .Do("CREATE INDEX ON t (c)")
      .Do("CREATE INDEX ON t (s)");
  std::vector<std::string> names;
  for (const Index& index : space.table().indexes) {
    names.push_back(index.name);
  }
  EXPECT_EQ(names, (std::vector<std::string>{"t_Vw_idx", "t_m_idx", "t_m_idx_1", "t_m_idx_2",
                                             "mine", "t_c_idx", "t_s_idx"}));
  EXPECT_EQ(space.table().indexes[2].kind, IndexTargetKind::kValues);
  space.Do("DROP INDEX ks.mine").Do("DROP INDEX IF EXISTS mine");
  EXPECT_EQ(space.table().indexes.size(), 6u);
  EXPECT_EQ(space.Run("DROP INDEX mine"), "invalid: Index 'ks.mine' doesn't exist");
}

TEST(DefineTest, CustomIndexesHaveAClass) {
  Space space;
  space.Do("CREATE TABLE t (a int PRIMARY KEY, v text, w text)");
  space.Do(
      "CREATE CUSTOM INDEX i ON t (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'b': 1, "
      "'a': 2}");
  space.Do("CREATE INDEX j ON t (w) USING 'sai'");
  EXPECT_EQ(space.table().indexes,
            (std::vector<Index>{{"i",
                                 IndexTargetKind::kSimple,
                                 "v",
                                 "org.apache.cassandra.index.sai.StorageAttachedIndex",
                                 {{"a", "2"}, {"b", "1"}},
                                 IndexState::kBuilding},
                                {"j",
                                 IndexTargetKind::kSimple,
                                 "w",
                                 "org.apache.cassandra.index.sai.StorageAttachedIndex",
                                 {},
                                 IndexState::kBuilding}}));
}

TEST(DefineTest, BadIndexesAreRefused) {
  const Case rows[] = {
      {"CREATE INDEX ON t (nothing)", "invalid: Undefined column name nothing in table ks.t"},
      {"CREATE INDEX ON t (a)",
       "invalid: Cannot create secondary index on the only partition key column a"},
      {"CREATE INDEX ON t (d)", "invalid: Secondary indexes are not supported on duration columns"},
      {"CREATE INDEX ON t (ld)",
       "invalid: Secondary indexes are not supported on collections containing durations"},
      {"CREATE INDEX ON t (td)",
       "invalid: Secondary indexes are not supported on tuples containing durations"},
      {"CREATE INDEX ON t (f)",
       "invalid: Cannot create values() index on frozen column f. Frozen collections are "
       "immutable and must be fully indexed by using the 'full(f)' modifier"},
      {"CREATE INDEX ON t (full(m))",
       "invalid: full() indexes can only be created on frozen collections"},
      {"CREATE INDEX ON t (full(v))",
       "invalid: full() indexes can only be created on frozen collections"},
      {"CREATE INDEX ON t (keys(v))",
       "invalid: Cannot create keys() index on v. Non-collection columns only support simple "
       "indexes"},
      {"CREATE INDEX ON t (keys(l))",
       "invalid: Cannot create index on keys of column l with non-map type"},
      {"CREATE INDEX ON t (entries(l))",
       "invalid: Cannot create index on entries of column l with non-map type"},
      {"CREATE INDEX ON t (u)", "invalid: Cannot create index on non-frozen UDT column u"},
      {"CREATE INDEX ON count (n)",
       "invalid: Secondary indexes on counter tables aren't supported"},
      {"CREATE INDEX there ON t (l)", "invalid: Index 'there' already exists"},
      {"CREATE INDEX ON t (v)", "invalid: Index t_v_idx is a duplicate of existing index there"},
      {"CREATE INDEX \"a b\" ON t (l)", "config: Illegal index name a b"},
      {"CREATE INDEX ON t (v, l)", "invalid: Only CUSTOM indexes support multiple columns"},
      {"CREATE INDEX ON t ()",
       "invalid: Only CUSTOM indexes can be created without specifying a target column"},
      {"CREATE CUSTOM INDEX ON t (v)",
       "invalid: CUSTOM index requires specifiying the index class"},
      {"CREATE CUSTOM INDEX ON t (v) USING 'a.B'",
       "config: Unable to find custom indexer class 'a.B'"},
      {"CREATE INDEX ON t (v) WITH options = {'a': 1}",
       "invalid: Cannot specify options for a non-CUSTOM index"},
      {"CREATE CUSTOM INDEX ON t (v) USING 'sai' WITH options = {'target': 1}",
       "invalid: Cannot specify target as a CUSTOM option"},
      {"CREATE CUSTOM INDEX ON t (v) USING 'sai' WITH odd = {'target': 1}",
       "syntax: Unknown property 'odd'"},
  };
  Space space;
  space.Do("CREATE TYPE place (x int)");
  space.Do(
      "CREATE TABLE t (a int PRIMARY KEY, v int, m map<int, int>, l list<int>, f "
      "frozen<list<int>>, u place, d duration, ld list<duration>, td tuple<duration>)");
  space.Do("CREATE TABLE count (a int PRIMARY KEY, n counter)");
  space.Do("CREATE INDEX there ON t (v)");
  for (const Case& row : rows) {
    EXPECT_EQ(space.Run(row.text), row.error) << row.text;
  }
  space.Do("CREATE INDEX IF NOT EXISTS there ON t (l)").Do("CREATE INDEX IF NOT EXISTS ON t (v)");
  EXPECT_EQ(space.table().indexes.size(), 1u);
}

}  // namespace
}  // namespace orrery::cql
