#include "cql/describe.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cql/define.h"
#include "cql/parse.h"
#include "cql/system_tables.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

template <typename Statement>
Statement As(const std::string& text) {
  auto parsed = Parse(text);
  EXPECT_TRUE(parsed) << text << ": " << (parsed ? "" : parsed.error().message());
  return parsed ? std::get<Statement>(parsed->statement) : Statement{};
}

Keyspace Shop() {
  Keyspace shop = *DefineKeyspace(As<CreateKeyspace>(
      "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': "
      "1}"));
  auto type = [&](const std::string& text) {
    DataType made = *DefineType(As<CreateType>(text), shop);
    shop.types.emplace(made.name(), made);
  };
  type("CREATE TYPE z (a int)");
  type("CREATE TYPE \"Place\" (street text, zips list<int>, \"in\" frozen<z>)");
  auto table = [&](const std::string& text) {
    Table made = *DefineTable(As<CreateTable>(text), shop, std::string(16, '\x11'));
    shop.tables.emplace(made.name, made);
  };
  table("CREATE TABLE plain (k int PRIMARY KEY)");
  table(
      "CREATE TABLE orders (\"K\" int, k2 text, c1 int, c2 timeuuid, a set<int>, b int, s text "
      "STATIC, d frozen<\"Place\">, PRIMARY KEY ((\"K\", k2), c1, c2)) WITH CLUSTERING ORDER BY "
      "(c1 DESC, c2 ASC) AND comment = 'it''s' AND gc_grace_seconds = 5 AND default_time_to_live "
      "= 60 AND cosmosdb_provisioned_throughput = 400 AND compression = {'enabled': false}");
  auto index = [&](const std::string& text) {
    Table& orders = shop.tables.at("orders");
    orders = *DefineIndex(As<CreateIndex>(text), orders, shop);
  };
  index("CREATE INDEX zz ON orders (b)");
  index("CREATE INDEX ON orders (a)");
  index("CREATE CUSTOM INDEX \"S\" ON orders (s) USING 'sai' WITH OPTIONS = {'y': 1, 'x': 2}");
  return shop;
}

Schema SomeSchema() {
  Schema schema{.version = std::string(16, '\7')};
  schema.keyspaces["shop"] = Shop();
  schema.keyspaces["Empty"] =
      *DefineKeyspace(As<CreateKeyspace>("CREATE KEYSPACE \"Empty\" WITH replication = {'class': "
                                         "'NetworkTopologyStrategy', 'dc2': 2, 'dc1': 1} AND "
                                         "durable_writes = false"));
  return schema;
}

ClusterView SomeCluster() {
  ClusterView cluster{.cluster_name = "Test"};
  cluster.self = {.host_id = std::string(16, '\1'), .address = {127, 0, 0, 1}, .tokens = {5, -7}};
  cluster.peers = {{.host_id = std::string(16, '\2'), .address = {127, 0, 0, 2}, .tokens = {6}}};
  return cluster;
}

Result<Description> Ask(const std::string& text, std::string_view session = "") {
  return DescribeSchema(As<Describe>(text), session, SomeSchema(), SomeCluster());
}

// Rows as type, keyspace.name.
std::vector<std::string> Names(const std::string& text, std::string_view session = "") {
  auto description = Ask(text, session);
  if (!description) {
    return {description.error().message()};
  }
  std::vector<std::string> names;
  for (const SystemRow& row : description->rows) {
    EXPECT_EQ(row.size(), description->columns.size());
    names.push_back(*row[1] + " " + *row[0] + "." + *row[2]);
  }
  return names;
}

using List = std::vector<std::string>;

const std::string kOrders = R"(CREATE TABLE shop.orders (
    "K" int,
    k2 text,
    c1 int,
    c2 timeuuid,
    s text static,
    b int,
    d frozen<"Place">,
    a set<int>,
    PRIMARY KEY (("K", k2), c1, c2)
) WITH CLUSTERING ORDER BY (c1 DESC, c2 ASC)
    AND additional_write_policy = '99p'
    AND bloom_filter_fp_chance = 0.01
    AND caching = {'keys': 'ALL', 'rows_per_partition': 'NONE'}
    AND cdc = false
    AND comment = 'it''s'
    AND compaction = {'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', 'max_threshold': '32', 'min_threshold': '4'}
    AND compression = {'enabled': 'false'}
    AND crc_check_chance = 1.0
    AND default_time_to_live = 60
    AND extensions = {}
    AND gc_grace_seconds = 5
    AND max_index_interval = 2048
    AND memtable_flush_period_in_ms = 0
    AND min_index_interval = 128
    AND read_repair = 'BLOCKING'
    AND speculative_retry = '99p'
    AND cosmosdb_provisioned_throughput = 400;)";

TEST(DescribeTest, StatementsAreLaidOutAsCassandraDoes) {
  Schema schema = SomeSchema();
  const Keyspace& shop = schema.keyspaces.at("shop");
  EXPECT_EQ(KeyspaceStatement(shop),
            "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', "
            "'replication_factor': '1'}  AND durable_writes = true;");
  EXPECT_EQ(KeyspaceStatement(schema.keyspaces.at("Empty")),
            "CREATE KEYSPACE \"Empty\" WITH replication = {'class': 'NetworkTopologyStrategy', "
            "'dc1': '1', 'dc2': '2'}  AND durable_writes = false;");
  const Keyspace sized = *DefineKeyspace(
      As<CreateKeyspace>("CREATE KEYSPACE s WITH replication = {'class': 'SimpleStrategy', "
                         "'replication_factor': 1} AND cosmosdb_provisioned_throughput = 700"));
  EXPECT_TRUE(KeyspaceStatement(sized).ends_with(
      "AND durable_writes = true AND cosmosdb_provisioned_throughput = 700;"));
  EXPECT_EQ(TypeStatement(shop.types.at("Place")),
            "CREATE TYPE shop.\"Place\" (\n    street text,\n    zips frozen<list<int>>,\n    "
            "\"in\" frozen<z>\n);");
  const Table& orders = shop.tables.at("orders");
  EXPECT_EQ(TableStatement(orders), kOrders);
  EXPECT_EQ(IndexStatement(orders, orders.indexes[0]), "CREATE INDEX zz ON shop.orders (b);");
  EXPECT_EQ(IndexStatement(orders, orders.indexes[1]),
            "CREATE INDEX orders_a_idx ON shop.orders (values(a));");
  EXPECT_EQ(IndexStatement(orders, orders.indexes[2]),
            "CREATE CUSTOM INDEX \"S\" ON shop.orders (s) USING "
            "'org.apache.cassandra.index.sai.StorageAttachedIndex' WITH OPTIONS = {'x': '2', "
            "'y': '1'};");
  EXPECT_TRUE(TableStatement(shop.tables.at("plain"))
                  .starts_with("CREATE TABLE shop.plain (\n    k int PRIMARY KEY\n) WITH "
                               "additional_write_policy = '99p'\n    AND bloom_filter"));
}

TEST(DescribeTest, InternalsTellTheIdAndDroppedColumns) {
  Keyspace shop = Shop();
  Table table = shop.tables.at("plain");
  for (const char* text :
       {"ALTER TABLE plain ADD (a int, b int)", "ALTER TABLE plain DROP a USING TIMESTAMP 1",
        "ALTER TABLE plain DROP b USING TIMESTAMP 2", "ALTER TABLE plain ADD b int"}) {
    table = *AlteredTable(As<AlterTable>(text), table, shop, 0);
  }
  std::string text = TableStatement(table, true);
  EXPECT_TRUE(
      text.starts_with("CREATE TABLE shop.plain (\n    k int PRIMARY KEY,\n    a int,\n    "
                       "b int\n) WITH ID = 11111111-1111-1111-1111-111111111111\n    AND "
                       "additional_write_policy = "))
      << text;
  EXPECT_TRUE(
      text.ends_with("'99p';\nALTER TABLE shop.plain DROP a USING TIMESTAMP 1;\nALTER "
                     "TABLE shop.plain DROP b USING TIMESTAMP 2;\nALTER TABLE shop.plain "
                     "ADD b int;"))
      << text;
}

TEST(DescribeTest, VirtualOnesStandInComments) {
  EXPECT_EQ(TableStatement(*FindSystemTable("system_virtual_schema", "keyspaces")),
            "/*\nWarning: Table system_virtual_schema.keyspaces is a virtual table and cannot be "
            "recreated with CQL.\nStructure, for reference:\nVIRTUAL TABLE "
            "system_virtual_schema.keyspaces (\n    keyspace_name text PRIMARY KEY\n) WITH comment "
            "= 'virtual keyspace definitions';\n*/");
  EXPECT_EQ(KeyspaceStatement(SystemKeyspaces().at("system_virtual_schema")),
            "/*\nWarning: Keyspace system_virtual_schema is a virtual keyspace and cannot be "
            "recreated with CQL.\nStructure, for reference:\nVIRTUAL KEYSPACE "
            "system_virtual_schema;\n*/");
}

TEST(DescribeTest, WhatIsDescribedCanBeMadeAgain) {
  Keyspace shop = Shop();
  Keyspace again = *DefineKeyspace(As<CreateKeyspace>(KeyspaceStatement(shop)));
  EXPECT_EQ(KeyspaceStatement(again), KeyspaceStatement(shop));
  again.types = shop.types;
  for (const auto& [name, type] : shop.types) {
    Keyspace without = shop;
    without.types.erase(name);
    EXPECT_EQ(*DefineType(As<CreateType>(TypeStatement(type)), without), type);
  }
  std::vector<Table> tables;
  for (const auto& [name, keyspace] : SystemKeyspaces()) {
    for (const auto& [table_name, table] : keyspace.tables) {
      if (!IsVirtualKeyspace(name)) {
        tables.push_back(table);
      }
    }
  }
  for (const auto& [name, table] : shop.tables) {
    tables.push_back(table);
  }
  for (const Table& table : tables) {
    again.name = table.keyspace;
    std::string text = TableStatement(table);
    auto made = DefineTable(As<CreateTable>(text), again, table.id);
    ASSERT_TRUE(made) << text << made.error().message;
    for (const Index& index : table.indexes) {
      made = DefineIndex(As<CreateIndex>(IndexStatement(table, index)), *made, again);
      ASSERT_TRUE(made) << made.error().message;
    }
    EXPECT_EQ(TableStatement(*made), text);
    EXPECT_EQ(made->indexes, table.indexes);
  }
}

TEST(DescribeTest, ListsHaveNamesOnly) {
  EXPECT_EQ(Names("DESCRIBE KEYSPACES"),
            (List{"keyspace \"Empty\".\"Empty\"", "keyspace shop.shop", "keyspace system.system",
                  "keyspace system_auth.system_auth", "keyspace system_schema.system_schema",
                  "keyspace system_traces.system_traces",
                  "keyspace system_virtual_schema.system_virtual_schema"}));
  EXPECT_EQ(Names("DESCRIBE TABLES", "shop"), (List{"table shop.orders", "table shop.plain"}));
  EXPECT_GT(Names("DESCRIBE TABLES").size(), 20u);
  EXPECT_EQ(Names("DESCRIBE TYPES"), (List{"type shop.\"Place\"", "type shop.z"}));
  EXPECT_EQ(Names("DESCRIBE TYPES", "Empty"), List{});
  EXPECT_EQ(Names("DESCRIBE FUNCTIONS"), List{});
  EXPECT_EQ(Names("DESCRIBE AGGREGATES", "shop"), List{});
  EXPECT_EQ(Ask("DESCRIBE TABLES")->columns.size(), 3u);
  EXPECT_EQ(Ask("DESCRIBE FUNCTIONS")->columns.size(), 3u);
}

TEST(DescribeTest, StatementsComeInAnOrderThatCanBeRun) {
  const List shop = {"keyspace shop.shop", "type shop.z",      "type shop.\"Place\"",
                     "table shop.orders",  "index shop.\"S\"", "index shop.orders_a_idx",
                     "index shop.zz",      "table shop.plain"};
  EXPECT_EQ(Names("DESCRIBE KEYSPACE shop"), shop);
  EXPECT_EQ(Names("DESCRIBE KEYSPACE", "shop"), shop);
  EXPECT_EQ(Names("DESCRIBE shop"), shop);
  EXPECT_EQ(Names("DESCRIBE ONLY KEYSPACE shop"), List{"keyspace shop.shop"});
  List schema = shop;
  schema.insert(schema.begin(), "keyspace \"Empty\".\"Empty\"");
  EXPECT_EQ(Names("DESCRIBE SCHEMA"), schema);
  EXPECT_GT(Names("DESCRIBE FULL SCHEMA").size(), schema.size() + 20);
}

TEST(DescribeTest, OneThingIsDescribed) {
  const List orders = {"table shop.orders", "index shop.\"S\"", "index shop.orders_a_idx",
                       "index shop.zz"};
  EXPECT_EQ(Names("DESCRIBE TABLE shop.orders"), orders);
  EXPECT_EQ(Names("DESCRIBE TABLE orders", "shop"), orders);
  EXPECT_EQ(Names("DESCRIBE shop.orders"), orders);
  EXPECT_EQ(Names("DESCRIBE orders", "shop"), orders);
  EXPECT_EQ(Names("DESCRIBE INDEX shop.zz"), List{"index shop.zz"});
  EXPECT_EQ(Names("DESCRIBE zz", "shop"), List{"index shop.zz"});
  EXPECT_EQ(Names("DESCRIBE TYPE shop.z"), List{"type shop.z"});
  EXPECT_EQ(Names("DESCRIBE TABLE system.local"), List{"table system.local"});
  auto one = Ask("DESCRIBE TABLE shop.orders");
  EXPECT_EQ(one->columns[3].name, "create_statement");
  EXPECT_EQ(one->rows[0][3], kOrders);
  EXPECT_NE(Ask("DESCRIBE TABLE shop.orders WITH INTERNALS")->rows[0][3]->find("ID = 1111"),
            std::string::npos);
}

TEST(DescribeTest, WhatIsNotThereIsAnError) {
  struct Row {
    std::string text;
    std::string session;
    std::string error;
  };
  const Row rows[] = {
      {"DESCRIBE KEYSPACE nothing", "", "'nothing' not found in keyspaces"},
      {"DESCRIBE KEYSPACE", "", "No keyspace specified and no current keyspace"},
      {"DESCRIBE TABLE orders", "", "No keyspace specified and no current keyspace"},
      {"DESCRIBE TABLE nothing.t", "", "'nothing' not found in keyspaces"},
      {"DESCRIBE TABLE shop.t", "", "Table 't' not found in keyspace 'shop'"},
      {"DESCRIBE INDEX i", "shop", "Table for existing index 'i' not found in 'shop'"},
      {"DESCRIBE TYPE i", "shop", "User defined type 'i' not found in 'shop'"},
      {"DESCRIBE FUNCTION f", "shop", "User defined function 'f' not found in 'shop'"},
      {"DESCRIBE AGGREGATE f", "shop", "User defined aggregate 'f' not found in 'shop'"},
      {"DESCRIBE MATERIALIZED VIEW v", "shop", "Materialized view 'v' not found in 'shop'"},
      {"DESCRIBE nothing", "", "'nothing' not found in keyspaces"},
      {"DESCRIBE nothing", "shop", "'nothing' not found in keyspace 'shop'"},
      {"DESCRIBE TABLES", "gone", "'gone' not found in keyspaces"},
  };
  for (const Row& row : rows) {
    auto description = Ask(row.text, row.session);
    ASSERT_FALSE(description) << row.text;
    EXPECT_EQ(description.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(description.error().message(), row.error) << row.text;
  }
}

TEST(DescribeTest, TheClusterIsOneRow) {
  auto cluster = Ask("DESCRIBE CLUSTER");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->rows,
            (std::vector<SystemRow>{{"Test", "Murmur3Partitioner", "SimpleSnitch"}}));
  EXPECT_EQ(Ask("DESCRIBE CLUSTER", "system")->columns.size(), 3u);
  cluster = Ask("DESCRIBE CLUSTER", "shop");
  ASSERT_EQ(cluster->columns.size(), 4u);
  EXPECT_EQ(cluster->columns[3].name, "range_ownership");
  EXPECT_EQ(ValueToLiteral(cluster->columns[3].type, *cluster->rows[0][3]),
            "{'-7': ['/127.0.0.1:7000'], '5': ['/127.0.0.1:7000'], '6': ['/127.0.0.2:7000']}");
}

}  // namespace
}  // namespace orrery::cql
