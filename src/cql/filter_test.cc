#include "cql/filter.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cql/parse.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

const TypeScope kScope{"ks", [](std::string_view) { return std::optional<DataType>(); }};

const Table& Example() {
  static const Table table{
      .keyspace = "ks",
      .name = "t",
      .columns = {{1, "k", TypeId::kInt, ColumnKind::kPartitionKey},
                  {2, "a", TypeId::kInt, ColumnKind::kClustering},
                  {3, "b", TypeId::kText, ColumnKind::kClustering},
                  {4, "d", TypeId::kDuration},
                  {5, "l", DataType::List(TypeId::kInt)},
                  {6, "m", DataType::Map(TypeId::kText, TypeId::kInt)},
                  {7, "s", DataType::Set(TypeId::kInt)},
                  {8, "u", DataType::Udt("ks", "p", {{"x", TypeId::kInt}, {"y", TypeId::kInt}})},
                  {9, "v", TypeId::kInt}},
      .partition_columns = 1,
      .clustering_columns = 2};
  return table;
}

using Values = std::map<std::string, std::string>;

const Values kFull = {{"k", "1"},      {"a", "5"},          {"b", "x"},
                      {"l", "[7, 8]"}, {"s", "[1, 2]"},     {"m", R"({"p": 1, "q": 2})"},
                      {"v", "3"},      {"u", R"({"x": 4})"}};

// "yes", "no", or what is wrong.
std::string Outcome(const Relation& relation, Filter::Use use, size_t markers, const Values& texts,
                    const std::vector<MarkerValue>& values) {
  MarkerSpecs specs(markers);
  auto filter = Filter::Prepare(relation, Example(), use, specs, kScope);
  if (!filter) {
    return filter.error().message();
  }
  FunctionContext context;
  auto bound = filter->Bind({values, context});
  if (!bound) {
    return bound.error().message();
  }
  std::vector<std::optional<std::string>> bytes;
  for (const Column& column : Example().columns) {
    auto at = texts.find(column.name);
    bytes.emplace_back();
    if (at != texts.end()) {
      bytes.back() = ValueFromText(column.type, at->second).value();
    }
  }
  std::vector<std::optional<std::string_view>> views(bytes.begin(), bytes.end());
  return bound->Matches({.values = views}) ? "yes" : "no";
}

std::string Where(const std::string& text, const Values& row = kFull,
                  const std::vector<MarkerValue>& values = {}) {
  auto parsed = Parse("SELECT * FROM t WHERE " + text);
  EXPECT_TRUE(parsed) << text << (parsed ? "" : parsed.error().message());
  return Outcome(std::get<Select>(parsed->statement).where.relations.front(), Filter::Use::kWhere,
                 parsed->markers.size(), row, values);
}

std::string If(const std::string& text, const Values& row = kFull,
               const std::vector<MarkerValue>& values = {}) {
  auto parsed = Parse("DELETE FROM t WHERE k = 1 IF " + text);
  EXPECT_TRUE(parsed) << text << (parsed ? "" : parsed.error().message());
  return Outcome(std::get<Delete>(parsed->statement).conditions.relations.front(),
                 Filter::Use::kCondition, parsed->markers.size(), row, values);
}

struct Row {
  std::string text;
  std::string result;
};

TEST(FilterTest, ARowIsAsWhereAsks) {
  const std::vector<Row> rows = {
      {"v = 3", "yes"},
      {"v = 4", "no"},
      {"v != 4", "yes"},
      {"v < 3", "no"},
      {"v <= 3", "yes"},
      {"v > 2", "yes"},
      {"v >= 4", "no"},
      {"v IN (1, 3)", "yes"},
      {"v IN ()", "no"},
      {"v BETWEEN 3 AND 4", "yes"},
      {"b = 'x'", "yes"},
      {"l CONTAINS 8", "yes"},
      {"l CONTAINS 9", "no"},
      {"s CONTAINS 1", "yes"},
      {"m CONTAINS 2", "yes"},
      {"m CONTAINS KEY 'q'", "yes"},
      {"m CONTAINS KEY 'r'", "no"},
      {"m['p'] = 1", "yes"},
      {"m['r'] = 1", "no"},
      {"l = [7, 8]", "yes"},
      {"m = {'q': 2, 'p': 1}", "yes"},
      {"(a, b) = (5, 'x')", "yes"},
      {"(a, b) > (5, 'a')", "yes"},
      {"(a, b) > (6, 'a')", "no"},
      {"(a, b) < (5, 'x')", "no"},
      {"(a, b) <= (5, 'x')", "yes"},
      {"(a, b) IN ((1, 'x'), (5, 'x'))", "yes"},
      {"token(k) = -4069959284402364209", "yes"},
      {"token(k) > token(1)", "no"},
      {"token(k) >= token(1)", "yes"},
      {"v IS NOT NULL", "yes"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Where(row.text), row.result) << row.text;
  }
}

TEST(FilterTest, InWhereNullNeverFits) {
  for (const char* text : {"v = 3", "v != 3", "v < 3", "v IN (3)", "l CONTAINS 1", "m['p'] = 1",
                           "m['p'] != 1", "l = []", "(a, b) = (5, 'x')", "v IS NOT NULL"}) {
    EXPECT_EQ(Where(text, {}), "no") << text;
  }
  EXPECT_EQ(Where("v = null"), "Invalid null value in condition for column v");
}

TEST(FilterTest, MarkersBringOperands) {
  std::string three = IntBytes(3);
  EXPECT_EQ(Where("v = ?", kFull, {{MarkerValue::Kind::kValue, three}}), "yes");
  EXPECT_EQ(Where("v = ?", kFull, {{MarkerValue::Kind::kUnset, {}}}),
            "Invalid unset value for column v");
  std::string list;
  DataType type = DataType::List(TypeId::kInt);
  PartWriter writer(type, list);
  writer.Add(IntBytes(1));
  writer.Add(three);
  writer.Finish();
  EXPECT_EQ(Where("v IN ?", kFull, {{MarkerValue::Kind::kValue, list}}), "yes");
  EXPECT_EQ(Where("v IN ?", kFull, {{MarkerValue::Kind::kNull, {}}}),
            "Invalid null value for column v");
}

TEST(FilterTest, WrongRelationsAreExplained) {
  const std::vector<Row> rows = {
      {"z = 1", "Undefined column name z in table ks.t"},
      {"v = 'a'", "Invalid STRING constant (a) for \"v\" of type int"},
      {"v CONTAINS 1", "Cannot use CONTAINS on non-collection column v"},
      {"s CONTAINS KEY 1", "Cannot use CONTAINS KEY on non-map column s"},
      {"v['a'] = 1", "Column v cannot be used as a map"},
      {"l[0] = 1", "Indexes on list entries (l[index] = value) are not currently supported."},
      {"b LIKE 'a%'",
       "LIKE restriction is only supported on properly indexed columns. b LIKE 'a%' is not valid."},
      {"d > 1h", "Slice restrictions are not supported on duration columns"},
      {"(a, b) > (1, null)", "Invalid null value in condition for column b"},
      {"(a, b) > (1)", "Expected 2 elements in value tuple, but got 1: (1)"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(Where(row.text), row.result) << row.text;
  }
}

TEST(FilterTest, InConditionsNullIsAValue) {
  struct IfRow {
    std::string text;
    std::string full;
    std::string empty;
  };
  const std::vector<IfRow> rows = {
      {"v = 3", "yes", "no"},          {"v != 3", "no", "yes"},
      {"v = null", "no", "yes"},       {"v != null", "yes", "no"},
      {"v > 2", "yes", "no"},          {"v IN (3, 4)", "yes", "no"},
      {"v IN (4, null)", "no", "yes"}, {"m['p'] = 1", "yes", "no"},
      {"m['r'] = null", "yes", "yes"}, {"m['p'] IN (1, 2)", "yes", "no"},
      {"l[1] = 8", "yes", "no"},       {"l[9] = null", "yes", "yes"},
      {"u.x = 4", "yes", "no"},        {"u.y = null", "yes", "yes"},
      {"u.x IN (4)", "yes", "no"},     {"l = [7, 8]", "yes", "no"},
      {"l = []", "no", "yes"},         {"l != []", "yes", "no"},
      {"l > [7]", "yes", "no"},
  };
  for (const IfRow& row : rows) {
    EXPECT_EQ(If(row.text), row.full) << row.text;
    EXPECT_EQ(If(row.text, {}), row.empty) << row.text << " of nothing";
  }
}

TEST(FilterTest, WrongConditionsAreExplained) {
  const std::vector<Row> rows = {
      {"k = 1", "PRIMARY KEY column 'k' cannot have IF conditions"},
      {"v > null", "Invalid comparison with null for operator \">\""},
      {"m[null] = 1", "Invalid null value for map element access"},
      {"l[-1] = 1", "Invalid negative list index -1"},
      {"s[1] = 1", "Invalid element access syntax for set column s"},
      {"v[1] = 1", "Invalid element access syntax for non-collection column v"},
      {"u.z = 1", "Unknown field z for column u"},
      {"d < 1h", "Slice conditions ( < ) are not supported on durations"},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(If(row.text), row.result) << row.text;
  }
  EXPECT_EQ(If("v = ?", kFull, {{MarkerValue::Kind::kUnset, {}}}),
            "Invalid 'unset' value in condition");
}

}  // namespace
}  // namespace orrery::cql
