#include "cql/system_schema.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cql/system_tables.h"
#include "cql/table_options.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

ClusterView SomeCluster() {
  ClusterView cluster{.cluster_name = "Test", .gossip_generation = 17};
  cluster.self = {
      .host_id = std::string(16, '\1'), .address = {127, 0, 0, 1}, .tokens = {-9000, 5, 70}};
  cluster.peers = {
      {.host_id = std::string(16, '\3'), .address = {10, 0, 0, 9}, .native_port = 9043},
      {.host_id = std::string(16, '\2'),
       .address = {127, 0, 0, 1},
       .native_port = 9044,
       .storage_port = 7002,
       .tokens = {1}},
      {.host_id = std::string(16, '\4'),
       .address = {10, 0, 0, 9},
       .storage_port = 6999,
       .schema_version = std::string(16, '\x08')},
  };
  return cluster;
}

Schema SomeSchema() {
  Schema schema{.version = std::string(16, '\x07')};
  Keyspace shop{.name = "shop",
                .replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                                {"replication_factor", "3"}}};
  shop.types["place"] = DataType::Udt(
      "shop", "place", {{"street", TypeId::kText}, {"tags", DataType::List(TypeId::kText)}});
  Table orders{.keyspace = "shop", .name = "orders", .id = std::string(16, '\x09')};
  orders.columns = {{1, "b", TypeId::kInt, ColumnKind::kPartitionKey},
                    {2, "a", TypeId::kInt, ColumnKind::kPartitionKey},
                    {3, "d", TypeId::kTimeuuid, ColumnKind::kClustering, true},
                    {4, "c", TypeId::kText, ColumnKind::kClustering},
                    {5, "s", TypeId::kText, ColumnKind::kStatic},
                    {6, "Map", DataType::Map(TypeId::kText, TypeId::kInt)},
                    {7, "v", shop.types["place"].Frozen()}};
  orders.partition_columns = 2;
  orders.clustering_columns = 2;
  orders.default_ttl = 60;
  orders.options = {{"comment", "it's"},
                    {"gc_grace_seconds", "5"},
                    {"bloom_filter_fp_chance", "0.1"},
                    {"caching", StringMap{{"rows_per_partition", "10"}, {"keys", "NONE"}}},
                    {"cosmosdb_provisioned_throughput", "1000"}};
  orders.dropped = {{"old", TypeId::kInt, true, 1'234'567}};
  orders.indexes = {{"i2", IndexTargetKind::kSimple, "Map", "", {}},
                    {"i1", IndexTargetKind::kKeys, "Map", "", {}},
                    {"i3",
                     IndexTargetKind::kSimple,
                     "v",
                     "org.apache.cassandra.index.sai.StorageAttachedIndex",
                     {{"x", "1"}}}};
  shop.tables["orders"] = orders;
  Table count{.keyspace = "shop", .name = "count", .id = std::string(16, '\x0A')};
  count.columns = {{1, "k", TypeId::kInt, ColumnKind::kPartitionKey}, {2, "n", TypeId::kCounter}};
  count.partition_columns = 1;
  shop.tables["count"] = count;
  schema.keyspaces["shop"] = shop;
  return schema;
}

// The rows as text, one map each; nulls are left out.
std::vector<std::map<std::string, std::string>> Read(std::string_view keyspace,
                                                     std::string_view table,
                                                     const Schema& schema = SomeSchema(),
                                                     const ClusterView& cluster = SomeCluster()) {
  const Table* found = FindSystemTable(keyspace, table);
  EXPECT_NE(found, nullptr) << keyspace << "." << table;
  std::vector<std::map<std::string, std::string>> rows;
  for (const SystemRow& row : SystemRows(*found, schema, cluster)) {
    EXPECT_EQ(row.size(), found->columns.size());
    auto& texts = rows.emplace_back();
    for (size_t i = 0; i < row.size(); ++i) {
      if (row[i]) {
        EXPECT_TRUE(ValidateValue(found->columns[i].type, *row[i]).ok()) << found->columns[i].name;
        texts[found->columns[i].name] = ValueToLiteral(found->columns[i].type, *row[i]);
      }
    }
  }
  return rows;
}

using Texts = std::map<std::string, std::string>;

// Of all rows, those that have this value.
std::vector<Texts> Where(const std::vector<Texts>& rows, const std::string& column,
                         const std::string& value) {
  std::vector<Texts> found;
  std::ranges::copy_if(rows, std::back_inserter(found),
                       [&](const Texts& row) { return row.at(column) == value; });
  return found;
}

std::vector<std::string> Each(const std::vector<Texts>& rows, const std::string& column) {
  std::vector<std::string> values;
  for (const Texts& row : rows) {
    values.push_back(row.at(column));
  }
  return values;
}

TEST(SystemSchemaTest, LocalTellsAllOfTheNode) {
  EXPECT_EQ(Read("system", "local"),
            std::vector<Texts>({{{"key", "'local'"},
                                 {"bootstrapped", "'COMPLETED'"},
                                 {"broadcast_address", "'127.0.0.1'"},
                                 {"broadcast_port", "7000"},
                                 {"cluster_name", "'Test'"},
                                 {"cql_version", "'3.4.5'"},
                                 {"data_center", "'datacenter1'"},
                                 {"gossip_generation", "17"},
                                 {"host_id", "01010101-0101-0101-0101-010101010101"},
                                 {"listen_address", "'127.0.0.1'"},
                                 {"listen_port", "7000"},
                                 {"native_protocol_version", "'5'"},
                                 {"partitioner", "'org.apache.cassandra.dht.Murmur3Partitioner'"},
                                 {"rack", "'rack1'"},
                                 {"release_version", "'4.0.11'"},
                                 {"rpc_address", "'127.0.0.1'"},
                                 {"rpc_port", "9042"},
                                 {"schema_version", "07070707-0707-0707-0707-070707070707"},
                                 {"tokens", "{'-9000', '5', '70'}"}}}));
}

TEST(SystemSchemaTest, PeersHasOneRowForEachOtherAddress) {
  EXPECT_EQ(Read("system", "peers"),
            std::vector<Texts>({{{"peer", "'10.0.0.9'"},
                                 {"data_center", "'datacenter1'"},
                                 {"host_id", "03030303-0303-0303-0303-030303030303"},
                                 {"rack", "'rack1'"},
                                 {"release_version", "'4.0.11'"},
                                 {"rpc_address", "'10.0.0.9'"},
                                 {"schema_version", "07070707-0707-0707-0707-070707070707"}}}));
}

TEST(SystemSchemaTest, PeersV2HasEveryOtherNode) {
  auto rows = Read("system", "peers_v2");
  EXPECT_EQ(Each(rows, "peer"),
            (std::vector<std::string>{"'10.0.0.9'", "'10.0.0.9'", "'127.0.0.1'"}));
  EXPECT_EQ(Each(rows, "peer_port"), (std::vector<std::string>{"6999", "7000", "7002"}));
  EXPECT_EQ(Each(rows, "native_port"), (std::vector<std::string>{"9042", "9043", "9044"}));
  EXPECT_EQ(rows[0]["schema_version"], "08080808-0808-0808-0808-080808080808");
  EXPECT_EQ(rows[2]["native_address"], "'127.0.0.1'");
  EXPECT_EQ(rows[2]["tokens"], "{'1'}");
}

TEST(SystemSchemaTest, KeyspacesHasTheSystemsAndTheUsers) {
  auto rows = Read("system_schema", "keyspaces");
  EXPECT_EQ(Each(rows, "keyspace_name"),
            (std::vector<std::string>{"'shop'", "'system'", "'system_auth'", "'system_schema'",
                                      "'system_traces'"}));
  EXPECT_EQ(rows[0]["durable_writes"], "true");
  EXPECT_EQ(rows[0]["replication"],
            "{'class': 'org.apache.cassandra.locator.SimpleStrategy', 'replication_factor': '3'}");
  EXPECT_EQ(rows[1]["replication"], "{'class': 'org.apache.cassandra.locator.LocalStrategy'}");
}

TEST(SystemSchemaTest, TablesHasGivenOptionsAndDefaults) {
  auto rows = Where(Read("system_schema", "tables"), "keyspace_name", "'shop'");
  ASSERT_EQ(Each(rows, "table_name"), (std::vector<std::string>{"'count'", "'orders'"}));
  EXPECT_EQ(rows[0]["flags"], "{'compound', 'counter'}");
  EXPECT_EQ(rows[1],
            (Texts{{"keyspace_name", "'shop'"},
                   {"table_name", "'orders'"},
                   {"additional_write_policy", "'99p'"},
                   {"bloom_filter_fp_chance", "0.1"},
                   {"caching", "{'keys': 'NONE', 'rows_per_partition': '10'}"},
                   {"cdc", "false"},
                   {"comment", "'it''s'"},
                   {"compaction",
                    "{'class': 'org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy', "
                    "'max_threshold': '32', 'min_threshold': '4'}"},
                   {"compression",
                    "{'chunk_length_in_kb': '16', 'class': "
                    "'org.apache.cassandra.io.compress.LZ4Compressor'}"},
                   {"crc_check_chance", "1.0"},
                   {"dclocal_read_repair_chance", "0.0"},
                   {"default_time_to_live", "60"},
                   {"extensions", "{}"},
                   {"flags", "{'compound'}"},
                   {"gc_grace_seconds", "5"},
                   {"id", "09090909-0909-0909-0909-090909090909"},
                   {"max_index_interval", "2048"},
                   {"memtable_flush_period_in_ms", "0"},
                   {"min_index_interval", "128"},
                   {"read_repair", "'BLOCKING'"},
                   {"read_repair_chance", "0.0"},
                   {"speculative_retry", "'99p'"}}));
}

TEST(SystemSchemaTest, ColumnsTellsKindsAndPlaces) {
  auto rows = Where(Read("system_schema", "columns"), "table_name", "'orders'");
  std::vector<std::string> texts;
  for (Texts& row : rows) {
    texts.push_back(row["column_name"] + " " + row["kind"] + " " + row["position"] + " " +
                    row["clustering_order"] + " " + row["type"]);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "'Map' 'regular' -1 'none' 'map<text, int>'",
                       "'a' 'partition_key' 1 'none' 'int'",
                       "'b' 'partition_key' 0 'none' 'int'",
                       "'c' 'clustering' 1 'asc' 'text'",
                       "'d' 'clustering' 0 'desc' 'timeuuid'",
                       "'s' 'static' -1 'none' 'text'",
                       "'v' 'regular' -1 'none' 'frozen<place>'",
                   }));
  EXPECT_EQ(rows[0]["column_name_bytes"], "0x4d6170");
}

TEST(SystemSchemaTest, TypesIndexesAndDroppedColumnsAreListed) {
  EXPECT_EQ(Read("system_schema", "types"),
            std::vector<Texts>({{{"keyspace_name", "'shop'"},
                                 {"type_name", "'place'"},
                                 {"field_names", "['street', 'tags']"},
                                 {"field_types", "['text', 'frozen<list<text>>']"}}}));
  auto indexes = Read("system_schema", "indexes");
  EXPECT_EQ(Each(indexes, "index_name"), (std::vector<std::string>{"'i1'", "'i2'", "'i3'"}));
  EXPECT_EQ(Each(indexes, "kind"),
            (std::vector<std::string>{"'COMPOSITES'", "'COMPOSITES'", "'CUSTOM'"}));
  EXPECT_EQ(Each(indexes, "options"),
            (std::vector<std::string>{
                "{'target': 'keys(\"Map\")'}", "{'target': 'values(\"Map\")'}",
                "{'class_name': 'org.apache.cassandra.index.sai.StorageAttachedIndex', "
                "'target': 'v', 'x': '1'}"}));
  EXPECT_EQ(Read("system_schema", "dropped_columns"),
            std::vector<Texts>({{{"keyspace_name", "'shop'"},
                                 {"table_name", "'orders'"},
                                 {"column_name", "'old'"},
                                 {"dropped_time", "'1970-01-01T00:00:01.234Z'"},
                                 {"kind", "'static'"},
                                 {"type", "'int'"}}}));
}

TEST(SystemSchemaTest, TheVirtualSchemaListsItself) {
  EXPECT_EQ(Each(Read("system_virtual_schema", "keyspaces"), "keyspace_name"),
            std::vector<std::string>{"'system_virtual_schema'"});
  auto tables = Read("system_virtual_schema", "tables");
  EXPECT_EQ(Each(tables, "table_name"),
            (std::vector<std::string>{"'columns'", "'keyspaces'", "'tables'"}));
  EXPECT_EQ(tables[0]["comment"], "'virtual column definitions'");
  EXPECT_EQ(Read("system_virtual_schema", "columns").size(), 12u);
}

TEST(SystemSchemaTest, TheSystemsTablesAreListedAsTheyAre) {
  auto columns = Read("system_schema", "columns");
  size_t count = 0;
  for (const auto& [name, keyspace] : SystemKeyspaces()) {
    EXPECT_TRUE(IsSystemKeyspace(name));
    for (const auto& [table_name, table] : keyspace.tables) {
      EXPECT_EQ(table.name, table_name);
      EXPECT_EQ(table.keyspace, name);
      EXPECT_EQ(table.id.size(), 16u);
      EXPECT_TRUE(std::ranges::is_sorted(table.others(), {}, &Column::name)) << table_name;
      count += IsVirtualKeyspace(name) ? 0 : table.columns.size();
      EXPECT_NO_FATAL_FAILURE(Read(name, table_name));
      for (const Option& option : table.options) {
        EXPECT_NE(FindTableOption(option.name), nullptr) << option.name;
      }
    }
  }
  auto users = Where(columns, "keyspace_name", "'shop'").size();
  EXPECT_EQ(columns.size(), count + users);
  EXPECT_EQ(FindSystemTable("system", "nothing"), nullptr);
  EXPECT_EQ(FindSystemTable("shop", "orders"), nullptr);
  EXPECT_TRUE(Read("system_auth", "roles").empty());
}

}  // namespace
}  // namespace orrery::cql
