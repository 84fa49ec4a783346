#include "cql/schema_document.h"

#include <algorithm>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cql/random_value.h"

namespace orrery::cql {
namespace {

DataType Place() {
  return DataType::Udt("ks", "place", {{"street", TypeId::kText}, {"Zip", TypeId::kInt}});
}

Keyspace SomeKeyspace() {
  Keyspace keyspace{.name = "ks",
                    .replication = {{"class", "org.apache.cassandra.locator.SimpleStrategy"},
                                    {"replication_factor", "3"}},
                    .durable_writes = false};
  keyspace.types["place"] = Place();
  // By name before what it uses.
  keyspace.types["a b"] = DataType::Udt(
      "ks", "a b", {{"where", Place()}, {"all", DataType::List(Place())}, {"n", TypeId::kInt}});
  keyspace.types["Int"] = DataType::Udt("ks", "Int", {{"x", keyspace.types["a b"]}});
  return keyspace;
}

class RandomTables {
 public:
  RandomTables(uint64_t seed, const Keyspace& keyspace) : values_(seed), keyspace_(keyspace) {}

  Table Next() {
    Table table{.keyspace = keyspace_.name,
                .name = "t" + Name(),
                .id = values_.Value(TypeId::kUuid, false)};
    table.partition_columns = 1 + values_.Below(3);
    table.clustering_columns = values_.Below(3);
    size_t statics = values_.Below(3);
    size_t all = table.partition_columns + table.clustering_columns + statics + values_.Below(4);
    for (size_t i = 0; i < all; ++i) {
      Column column{.id = table.next_column++, .name = Name() + std::to_string(i), .type = Type()};
      size_t key = table.partition_columns + table.clustering_columns;
      column.kind = i < table.partition_columns ? ColumnKind::kPartitionKey
                    : i < key                   ? ColumnKind::kClustering
                    : i < key + statics         ? ColumnKind::kStatic
                                                : ColumnKind::kRegular;
      column.descending = column.kind == ColumnKind::kClustering && values_.Below(2) == 0;
      table.columns.push_back(std::move(column));
    }
    for (size_t i = values_.Below(3); i > 0; --i) {
      table.options.push_back({"o" + std::to_string(i), Name()});
      table.options.push_back({"m" + std::to_string(i), StringMap{{"b", Name()}, {"a", Name()}}});
    }
    table.default_ttl = static_cast<int32_t>(values_.Below(2) * 3600);
    for (size_t i = values_.Below(3); i > 0; --i) {
      auto timestamp = static_cast<int64_t>(values_.Below(1ull << 60));
      table.dropped.push_back({Name(), Type(), values_.Below(2) == 0, timestamp});
    }
    for (size_t i = values_.Below(3); i > 0; --i) {
      auto kind = static_cast<IndexTargetKind>(values_.Below(5));
      bool custom = values_.Below(2) == 0;
      table.indexes.push_back({Name(), kind, Name(), custom ? "sai" : "",
                               custom ? StringMap{{"z", "1"}, {"y", ""}} : StringMap{},
                               custom ? IndexState::kScanned : IndexState::kReady,
                               custom ? "" : "t.i." + Name()});
    }
    return table;
  }

 private:
  std::string Name() {
    constexpr const char* kNames[] = {"a", "b c", "\"", "Ä", "", "it's", "\n", "select"};
    return kNames[values_.Below(std::size(kNames))];
  }
  DataType Type(int depth = 0) {
    bool frozen = depth > 0 || values_.Below(2) == 0;
    switch (depth < 3 ? values_.Below(9) : 8) {
      case 0: return DataType::List(Type(depth + 1), frozen);
      case 1: return DataType::Set(Type(depth + 1), frozen);
      case 2: return DataType::Map(Type(depth + 1), Type(depth + 1), frozen);
      case 3: return DataType::Tuple({Type(depth + 1), Type(depth + 1)});
      case 4: return DataType::Vector(TypeId::kFloat, 1 + static_cast<uint32_t>(values_.Below(9)));
      case 5:
      case 6: {
        auto type = std::next(keyspace_.types.begin(),
                              static_cast<long>(values_.Below(keyspace_.types.size())));
        return frozen ? type->second.Frozen() : type->second;
      }
      default: return values_.Below(2) == 0 ? DataType(TypeId::kText) : DataType(TypeId::kTimeuuid);
    }
  }

  RandomValues values_;
  const Keyspace& keyspace_;
};

TEST(SchemaDocumentTest, ATableReads) {
  Keyspace keyspace = SomeKeyspace();
  Table table{.keyspace = "ks", .name = "t", .id = std::string(16, '\x11')};
  table.columns = {{1, "a", TypeId::kInt, ColumnKind::kPartitionKey},
                   {2, "b", TypeId::kText, ColumnKind::kClustering, true},
                   {4, "s", DataType::Set(TypeId::kInt), ColumnKind::kStatic},
                   {3, "v", keyspace.types["place"].Frozen()}};
  table.partition_columns = 1;
  table.clustering_columns = 1;
  table.next_column = 6;
  table.default_ttl = 60;
  table.options = {{"comment", "it's"}, {"caching", StringMap{{"keys", "ALL"}}}};
  table.dropped = {{"old", TypeId::kInt, false, 17}};
  table.indexes = {{"i", IndexTargetKind::kSimple, "v", "", {}}};
  EXPECT_EQ(TableToDocument(table).ToJson(),
            R"({"keyspace":"ks","name":"t","id":"11111111-1111-1111-1111-111111111111",)"
            R"("columns":[{"name":"a","type":"int","id":1},{"name":"b","type":"text","id":2},)"
            R"({"name":"s","type":"set<int>","id":4},)"
            R"({"name":"v","type":"frozen<place>","id":3}],)"
            R"("partitionKeys":[{"name":"a"}],"clusterKeys":[{"name":"b","orderBy":"Desc"}],)"
            R"("staticColumns":[{"name":"s"}],)"
            R"("options":{"comment":"it's","caching":{"keys":"ALL"}},"defaultTtl":60,)"
            R"("nextColumn":6,"dropped":[{"name":"old","type":"int","timestamp":17}],)"
            R"("indexes":[{"name":"i","kind":"Simple","column":"v"}]})");
  auto again = TableFromDocument(TableToDocument(table).root(), ScopeOf(keyspace));
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, table);
}

TEST(SchemaDocumentTest, AKeyspaceReads) {
  EXPECT_EQ(KeyspaceToDocument(SomeKeyspace()).ToJson(),
            R"({"name":"ks","replication":{"class":"org.apache.cassandra.locator.SimpleStrategy",)"
            R"("replication_factor":"3"},"durableWrites":false,"types":[)"
            R"({"name":"place","fields":[{"name":"street","type":"text"},)"
            R"({"name":"Zip","type":"int"}]},{"name":"a b","fields":[)"
            R"({"name":"where","type":"frozen<place>"},)"
            R"({"name":"all","type":"frozen<list<frozen<place>>>"},{"name":"n","type":"int"}]},)"
            R"({"name":"Int","fields":[{"name":"x","type":"frozen<\"a b\">"}]}]})");
}

TEST(SchemaDocumentTest, KeyspacesComeBack) {
  Keyspace keyspace = SomeKeyspace();
  auto again = KeyspaceFromDocument(KeyspaceToDocument(keyspace).root());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(again->name, keyspace.name);
  EXPECT_EQ(again->replication, keyspace.replication);
  EXPECT_EQ(again->durable_writes, keyspace.durable_writes);
  EXPECT_EQ(again->types, keyspace.types);
}

TEST(SchemaDocumentTest, RandomTablesComeBackByBsonAndByJson) {
  Keyspace keyspace = SomeKeyspace();
  RandomTables random(17, keyspace);
  for (int i = 0; i < 2000; ++i) {
    Table table = random.Next();
    types::Document document = TableToDocument(table);
    auto again = TableFromDocument(document.root(), ScopeOf(keyspace));
    ASSERT_TRUE(again) << again.error().message() << " " << document.ToJson();
    ASSERT_EQ(*again, table) << document.ToJson();
    auto parsed = types::Document::FromJson(document.ToJson());
    ASSERT_TRUE(parsed);
    again = TableFromDocument(parsed->root(), ScopeOf(keyspace));
    ASSERT_TRUE(again) << again.error().message();
    ASSERT_EQ(*again, table) << document.ToJson();
  }
}

TEST(SchemaDocumentTest, WhatIsNotAsItShouldBeIsCorruption) {
  const std::string good =
      R"("keyspace":"ks","name":"t","id":"11111111-1111-1111-1111-111111111111","nextColumn":2,)";
  const std::string columns = R"("columns":[{"name":"a","type":"int","id":1}],)";
  const std::string keys = R"("partitionKeys":[{"name":"a"}])";
  ASSERT_TRUE(TableFromDocument(
      types::Document::FromJson("{" + good + columns + keys + "}")->root(), TypeScope{}));
  const std::string bad[] = {
      "{}",
      "{" + good + columns + keys + R"(,"more":1})",
      "{" + good + columns + R"("options":{}})",
      "{" + good + columns + R"("partitionKeys":[]})",
      "{" + good + columns + R"("partitionKeys":[{"name":"b"}]})",
      "{" + good + columns + R"("partitionKeys":[{"name":"a"},{"name":"a"}]})",
      "{" + good + columns + R"("partitionKeys":[{"name":"a","orderBy":"Asc"}]})",
      "{" + good + columns + R"("partitionKeys":["a"]})",
      "{" + good + columns + keys + R"(,"clusterKeys":[{"name":"b","orderBy":"Asc"}]})",
      "{" + good + columns + keys + R"(,"options":{"a":1}})",
      "{" + good + columns + keys + R"(,"options":{"a":{"b":1}}})",
      "{" + good + columns + keys + R"(,"options":[]})",
      "{" + good + columns + keys + R"(,"defaultTtl":"1"})",
      "{" + good + columns + keys + R"(,"defaultTtl":1.5})",
      "{" + good + columns + keys + R"(,"dropped":[{"name":"a","type":"int"}]})",
      "{" + good + columns + keys + R"(,"indexes":[{"name":"a","column":"a","kind":"Odd"}]})",
      "{" + good + keys + R"(,"columns":[{"name":"a","type":"nothing","id":1}]})",
      "{" + good + keys + R"(,"columns":[{"name":"a","type":"list<","id":1}]})",
      "{" + good + keys + R"(,"columns":[{"name":"a","type":"int"}]})",
      "{" + good + keys + R"(,"columns":[{"name":"a","type":"int","id":-1}]})",
      "{" + good + keys + R"(,"columns":[{"name":"a","type":"int","id":1,"x":1}]})",
  };
  for (const std::string& json : bad) {
    auto document = types::Document::FromJson(json);
    ASSERT_TRUE(document) << json;
    auto table = TableFromDocument(document->root(), TypeScope{});
    ASSERT_FALSE(table) << json;
    EXPECT_EQ(table.error().code(), Code::kCorruption) << json;
  }
  EXPECT_EQ(TableFromDocument(types::Value::Integer(1), TypeScope{}).error().code(),
            Code::kCorruption);
  auto odd = types::Document::FromJson(
      R"({"name":"ks","replication":{},"types":[{"name":"a","fields":[{"name":"x","type":"a"}]}]})");
  EXPECT_EQ(KeyspaceFromDocument(odd->root()).error().code(), Code::kCorruption);
}

}  // namespace
}  // namespace orrery::cql
