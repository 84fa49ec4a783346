#include "cql/row_document.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/define.h"
#include "cql/ordered_value.h"
#include "cql/parse.h"
#include "cql/partition_token.h"
#include "cql/random_value.h"
#include "cql/value_json.h"
#include "types/document.h"

namespace orrery::cql {
namespace {

Table TableOf(const std::string& columns) {
  auto parsed = Parse("CREATE TABLE ks.t (" + columns + ")");
  EXPECT_TRUE(parsed) << columns;
  auto table = DefineTable(std::get<CreateTable>(parsed->statement), Keyspace{.name = "ks"},
                           std::string(16, '\x22'));
  EXPECT_TRUE(table) << columns;
  return *table;
}

// Values by place, from their JSON; null: none.
std::vector<std::optional<std::string>> ValuesOf(const Table& table,
                                                 const std::vector<std::string>& json) {
  std::vector<std::optional<std::string>> values;
  for (size_t i = 0; i < json.size(); ++i) {
    auto value = ValueFromJson(table.columns[i].type, json[i]);
    EXPECT_TRUE(value) << json[i];
    values.push_back(*value);
  }
  return values;
}

std::vector<RowValues::Value> ViewsOf(const std::vector<std::optional<std::string>>& values) {
  return {values.begin(), values.end()};
}

std::string DocumentOf(const std::string& columns, const std::vector<std::string>& json) {
  const Table table = TableOf(columns);
  const auto values = ValuesOf(table, json);
  std::string out = "{";
  AppendRowMembers(table, MemberNames(table), ViewsOf(values), out);
  out += '}';
  EXPECT_TRUE(types::Document::FromJson(out)) << out;
  return out;
}

TEST(RowDocumentTest, ARowIsADocumentWithAMemberForEachColumn) {
  EXPECT_EQ(DocumentOf("p int, c text, s text static, l list<int>, v double, PRIMARY KEY (p, c)",
                       {"1", "\"a\"", "\"st\"", "[1, 2]", "null"}),
            R"({"id":"a","p":1,"c":"a","s":"st","l":[1, 2],"v":null})");
}

TEST(RowDocumentTest, WithoutClusteringColumnsTheIdIsThePartitionKey) {
  EXPECT_EQ(DocumentOf("a text, b int, v int, PRIMARY KEY ((a, b))", {"\"x\"", "7", "5"}),
            R"({"id":"x|7","a":"x","b":7,"v":5})");
}

TEST(RowDocumentTest, ColumnsMakeRoomForTheMembersThatDocumentsNeed) {
  EXPECT_EQ(DocumentOf("id int PRIMARY KEY, \"_ts\" int, \"id_\" int", {"5", "6", "7"}),
            R"({"id":"5","id__":5,"_ts_":6,"id_":7})");
  EXPECT_EQ(
      DocumentOf("id uuid PRIMARY KEY, v int", {"\"123e4567-e89b-12d3-a456-426655440000\"", "1"}),
      R"({"id":"123e4567-e89b-12d3-a456-426655440000","v":1})");
}

TEST(RowDocumentTest, WhatCanNotStandInALinkIsEscapedInAnId) {
  const Table table = TableOf("p int, c text, d text, PRIMARY KEY (p, c, d)");
  const std::pair<std::string, std::string> cases[] = {{"a/b?c#d%e", "a~2fb~3fc~23d~25e"},
                                                       {"x|y~z", "x~7cy~7ez"},
                                                       {"", "~_"},
                                                       {"..", "~2e."},
                                                       {" a b ", "~20a b~20"},
                                                       {"\xC3\xA4", "\xC3\xA4"}};
  for (const auto& [text, shown] : cases) {
    const std::vector<std::optional<std::string>> values{std::string(4, '\0'), text, "z"};
    std::string id = RowId(table, ViewsOf(values));
    std::ranges::transform(id, id.begin(), [](unsigned char c) { return std::tolower(c); });
    EXPECT_EQ(id, shown + "|z");
  }
}

TEST(RowDocumentTest, APartitionWithoutRowsHasAnIdOfItsOwn) {
  const Table table = TableOf("p int, c int, s int static, PRIMARY KEY (p, c)");
  const auto values = ValuesOf(table, {"1", "null", "3"});
  EXPECT_EQ(RowId(table, ViewsOf(values)), "~");
  EXPECT_TRUE(RowOfId(table, "~")->only_static);
}

TEST(RowDocumentTest, AnIdIsFoundAgainWhateverTheTypesAre) {
  RandomValues random(7);
  for (int round = 0; round < 3000; ++round) {
    Table table{.partition_columns = 1};
    table.clustering_columns = 1 + random.Below(3);
    table.columns.push_back({.id = 1, .name = "p", .type = TypeId::kInt});
    std::vector<std::optional<std::string>> values{std::string(4, '\1')};
    std::string clustering;
    for (size_t i = 0; i < table.clustering_columns; ++i) {
      const DataType type = random.Type();
      const bool descending = random.Below(2) == 0;
      table.columns.push_back({.id = static_cast<uint32_t>(i + 2),
                               .name = "c" + std::to_string(i),
                               .type = type,
                               .kind = ColumnKind::kClustering,
                               .descending = descending});
      // As it comes out of a key.
      std::string key;
      AppendOrderedValue(type, random.Value(type), descending, key);
      clustering += key;
      std::string_view in = key;
      ASSERT_TRUE(TakeOrderedValue(type, descending, in, &values.emplace_back()));
    }
    const std::string id = RowId(table, ViewsOf(values));
    const auto named = RowOfId(table, id);
    ASSERT_TRUE(named) << id;
    EXPECT_EQ(ToHex(named->clustering), ToHex(clustering)) << id;
  }
}

TEST(RowDocumentTest, IdsThatNoRowHasAreNone) {
  const Table table = TableOf("p int, c int, d text, PRIMARY KEY (p, c, d)");
  for (std::string_view id :
       {"", "1", "x|a", "1|a|b", "1|~2", "1|~zz", "~x0001|a", "99999999999|a"}) {
    EXPECT_FALSE(RowOfId(table, id)) << id;
  }
}

TEST(RowDocumentTest, APartitionKeyIsTheArrayOfItsColumns) {
  const Table one = TableOf("p bigint PRIMARY KEY");
  EXPECT_EQ(ToHex(*PartitionKeyFromJson(one, "[9007199254740993]")),
            ToHex(std::string("\0\x20\0\0\0\0\0\1", 8)));
  EXPECT_EQ(*PartitionKeyFromJson(one, "[\"9007199254740993\"]"),
            *PartitionKeyFromJson(one, "[9007199254740993]"));
  const Table two = TableOf("a text, b boolean, PRIMARY KEY ((a, b))");
  const std::vector<std::string> columns{"x", "\1"};
  EXPECT_EQ(*PartitionKeyFromJson(two, R"(["x",true])"), JoinedKey(columns));
  for (std::string_view bad : {"[\"x\"]", "[\"x\",null]", "[\"x\",{}]", "[1,true]", "x", "{}"}) {
    auto key = PartitionKeyFromJson(two, bad);
    ASSERT_FALSE(key) << bad;
    EXPECT_EQ(key.error().code(), Code::kInvalidArgument);
  }
}

}  // namespace
}  // namespace orrery::cql
