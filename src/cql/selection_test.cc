#include "cql/selection.h"

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

DataType Address(bool frozen) {
  return DataType::Udt("ks", "address", {{"street", TypeId::kText}, {"zip", TypeId::kInt}}, frozen);
}

const TypeScope kScope{"ks", [](std::string_view name) -> std::optional<DataType> {
                         return name == "address" ? std::optional(Address(false)) : std::nullopt;
                       }};

const Table& Example() {
  static const Table table{.keyspace = "ks",
                           .name = "t",
                           .columns = {{1, "k", TypeId::kInt, ColumnKind::kPartitionKey},
                                       {2, "c", TypeId::kInt, ColumnKind::kClustering},
                                       {3, "d", TypeId::kInt, ColumnKind::kClustering},
                                       {4, "s", TypeId::kText, ColumnKind::kStatic},
                                       {5, "Big", TypeId::kBigint},
                                       {6, "m", DataType::Map(TypeId::kText, TypeId::kInt)},
                                       {7, "n", TypeId::kDecimal},
                                       {8, "t", DataType::Set(TypeId::kInt)},
                                       {9, "u", Address(false)},
                                       {10, "v", TypeId::kInt},
                                       {11, "w", DataType::List(TypeId::kInt)}},
                           .partition_columns = 1,
                           .clustering_columns = 2};
  return table;
}

// Values by the names of columns, as ValueFromText reads them.
using Values = std::map<std::string, std::string>;

class FixedTimes final : public RowTimes {
 public:
  std::optional<CellTimes> Of(size_t column) const override {
    return column == 6 ? std::nullopt : std::optional(CellTimes{1000 + int64_t(column), 60});
  }
  std::vector<std::optional<CellTimes>> OfParts(size_t) const override {
    return {CellTimes{11, 5}, CellTimes{22, {}}};
  }
};

struct StoredRow {
  explicit StoredRow(const Values& texts) {
    for (const Column& column : Example().columns) {
      auto at = texts.find(column.name);
      bytes.emplace_back();
      if (at != texts.end()) {
        auto value = ValueFromText(column.type, at->second);
        EXPECT_TRUE(value) << column.name << ": " << (value ? "" : value.error().message());
        bytes.back() = *value;
      }
    }
    views.assign(bytes.begin(), bytes.end());
  }
  RowInput input() const { return {.values = views, .times = &times}; }

  std::vector<std::optional<std::string>> bytes;
  std::vector<std::optional<std::string_view>> views;
  FixedTimes times;
};

Result<Selection> Prepare(const std::string& selectors, const std::string& tail = "") {
  auto parsed = Parse("SELECT " + selectors + " FROM t" + tail);
  EXPECT_TRUE(parsed) << selectors << (parsed ? "" : parsed.error().message());
  MarkerSpecs markers(parsed->markers.size());
  return Selection::Prepare(std::get<Select>(parsed->statement), Example(), markers, kScope);
}

std::string TextOf(const Selection& selection, const std::vector<Bound>& row) {
  std::string text;
  for (size_t i = 0; i < row.size(); ++i) {
    text += i == 0 ? "" : " | ";
    text += row[i].has_value() ? ValueToText(selection.columns()[i].type, row[i].bytes()) : "null";
  }
  return text;
}

// The rows that come out, or what is wrong.
std::string Outcome(const std::string& selectors, const std::vector<Values>& rows,
                    const std::string& tail = "") {
  auto selection = Prepare(selectors, tail);
  if (!selection) {
    return selection.error().message();
  }
  FunctionContext context;
  Bindings bindings{{}, context};
  std::string text;
  auto add = [&](std::vector<Bound>& row) {
    text += (text.empty() ? "" : "\n") + TextOf(*selection, row);
    return Status::Ok();
  };
  if (selection->grouped()) {
    Aggregator aggregator(*selection, bindings, add);
    for (const Values& values : rows) {
      EXPECT_TRUE(aggregator.Add(StoredRow(values).input()).ok());
    }
    EXPECT_TRUE(aggregator.Finish().ok());
    return text;
  }
  for (const Values& values : rows) {
    StoredRow row(values);
    std::vector<Bound> out;
    Status status = selection->Evaluate(row.input(), bindings, out);
    if (!status.ok()) {
      return status.message();
    }
    EXPECT_TRUE(add(out).ok());
  }
  return text;
}

struct Row {
  std::string selectors;
  std::string result;
};

void Check(const Values& values, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Outcome(row.selectors, {values}), row.result) << row.selectors;
  }
}

TEST(SelectionTest, NamesAndTypes) {
  struct NameRow {
    std::string selectors;
    std::string name;
    std::string type;
  };
  const NameRow rows[] = {
      {"v", "v", "int"},
      {"\"Big\"", "Big", "bigint"},
      {"v AS x", "x", "int"},
      {"count(*)", "count", "bigint"},
      {"count(1)", "count", "bigint"},
      {"count(v)", "system.count(v)", "bigint"},
      {"max(v)", "system.max(v)", "int"},
      {"avg(n)", "system.avg(n)", "decimal"},
      {"writetime(v)", "writetime(v)", "bigint"},
      {"ttl(v)", "ttl(v)", "int"},
      {"writetime(m)", "writetime(m)", "list<bigint>"},
      {"maxwritetime(m)", "maxwritetime(m)", "bigint"},
      {"cast(v AS text)", "cast(v as text)", "text"},
      {"m['a']", "m['a']", "int"},
      {"m['a'..]", "m['a'..]", "map<text, int>"},
      {"u.zip", "u.zip", "int"},
      {"token(k)", "system.token(k)", "bigint"},
      {"v + 1", "v + 1", "int"},
      {"\"Big\" + v", "Big + v", "bigint"},
      {"(v + 1) * v", "v + 1 * v", "int"},
      {"-v", "-v", "int"},
      {"toJson(v)", "system.tojson(v)", "text"},
      {"(int) 3", "(int)3", "int"},
      {"3", "3", "int"},
      {"[v, c]", "[v, c]", "list<int>"},
      {"intAsBlob(v)", "system.intasblob(v)", "blob"},
  };
  for (const NameRow& row : rows) {
    auto selection = Prepare(row.selectors);
    ASSERT_TRUE(selection) << row.selectors << ": " << selection.error().message();
    EXPECT_EQ(selection->columns(),
              (std::vector<Receiver>{{"ks", "t", row.name, *ParseTypeText(row.type, kScope)}}))
        << row.selectors;
  }
}

TEST(SelectionTest, ColumnsAreOnlyNamedByTheirPlaces) {
  EXPECT_EQ(*Prepare("v, k AS x, v")->plain(), (std::vector<uint16_t>{9, 0, 9}));
  EXPECT_EQ(Prepare("*")->plain()->size(), 11u);
  EXPECT_EQ(Prepare("*")->columns()[4].name, "Big");
  EXPECT_EQ(Prepare("v + 1")->plain(), nullptr);
  EXPECT_EQ(Prepare("JSON v")->plain(), nullptr);
  EXPECT_EQ(Prepare("k", " GROUP BY k")->plain(), nullptr);
}

TEST(SelectionTest, WhatIsNeededIsKnown) {
  auto needed = Prepare("k, intAsBlob(v), writetime(n)")->needed();
  EXPECT_EQ(needed, (std::vector<bool>{1, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0}));
  EXPECT_TRUE(Prepare("writetime(n)")->needs_times());
  EXPECT_FALSE(Prepare("n")->needs_times());
  EXPECT_TRUE(Prepare("k, token(k)")->only_partition_key());
  EXPECT_TRUE(Prepare("k, s")->only_static());
  EXPECT_FALSE(Prepare("k, s")->only_partition_key());
  EXPECT_FALSE(Prepare("k, c")->only_static());
}

TEST(SelectionTest, EachRowGivesOne) {
  Values values = {{"k", "1"},
                   {"v", "5"},
                   {"n", "1.50"},
                   {"Big", "7"},
                   {"m", R"({"a": 1, "b": 2})"},
                   {"t", "[1, 2, 3]"},
                   {"u", R"({"street": "x", "zip": 8})"}};
  Check(values, {{"k, v, s", "1 | 5 | null"},
                 {"v + 1, v - \"Big\", v * n, v / 2, v % 2", "6 | -2 | 7.50 | 2 | 1"},
                 {"v + s", "the '+' operation is not supported between v and s"},
                 {"m['a'], m['x'], t[2], t[9]", "1 | null | 2 | null"},
                 {"m['b'..], m[..'a'], t[2..3]", "{'b': 2} | {'a': 1} | {2, 3}"},
                 {"u.zip, u.street", "8 | x"},
                 {"token(k)", "-4069959284402364209"},
                 {"cast(v AS text), cast(n AS int)", "5 | 1"},
                 {"toJson(m), toJson(s)", R"({"a": 1, "b": 2} | null)"},
                 {"[v, k], (map<int, int>) {v: k}, (v, s)", "[5, 1] | {5: 1} | (5, null)"},
                 {"writetime(v), ttl(v), writetime(n)", "1009 | 60 | null"},
                 {"writetime(m), ttl(m), maxwritetime(m)", "[11, 22] | [5, null] | 22"},
                 {"writetime(m['b']), ttl(m['b']), writetime(m['a'..'a'])", "22 | null | [11]"},
                 {"writetime(u.zip)", "22"}});
}

TEST(SelectionTest, MistakesAreExplained) {
  Check(
      {},
      {{"x", "Undefined column name x in table ks.t"},
       {"\"X\"", "Undefined column name \"X\" in table ks.t"},
       {"nope(v)", "Unknown function 'nope'"},
       {"writetime(k)", "Cannot use selection function writetime on PRIMARY KEY part k"},
       {"v.a", "Invalid field selection: v of type int is not a user type"},
       {"u.a", "u of type address has no field a"},
       {"v[1]", "Invalid element selection: v is not a collection"},
       {"w[1]", "Element selection is only allowed on sets and maps, but w is a list"},
       {"m[1]", "Invalid INTEGER constant (1) for \"key(m)\" of type text"},
       {"max(max(v))", "aggregate functions cannot be used as arguments of aggregate functions"},
       {"fromJson('1')", "fromJson() cannot be used in the selection clause of a SELECT statement"},
       {"?",
        "Cannot infer type for term ? in selection clause (try using a cast to force a "
        "type)"}});
}

TEST(SelectionTest, JsonIsOneColumn) {
  EXPECT_EQ(Prepare("JSON v, k")->columns(),
            (std::vector<Receiver>{{"ks", "t", "[json]", TypeId::kText}}));
  EXPECT_EQ(Outcome("JSON k, v AS x, \"Big\", s", {{{"k", "1"}, {"v", "2"}, {"s", "a"}}}),
            R"({"k": 1, "x": 2, "\"Big\"": null, "s": "a"})");
  EXPECT_EQ(Outcome("JSON count(*)", {{}}), R"({"count": 1})");
}

TEST(AggregatorTest, WithoutGroupsThereIsOneRow) {
  std::vector<Values> rows = {{{"k", "1"}, {"v", "3"}, {"n", "1.0"}},
                              {{"k", "2"}, {"v", "4"}, {"n", "0.25"}},
                              {{"k", "3"}}};
  EXPECT_EQ(Outcome("count(*), count(v), min(v), max(v), sum(v), avg(v)", rows),
            "3 | 2 | 3 | 4 | 7 | 3");
  EXPECT_EQ(Outcome("sum(n), avg(n), k", rows), "1.25 | 0.62 | 1");
  EXPECT_EQ(Outcome("max(v) + 1, max(v + 1), k + max(v)", rows), "5 | 5 | 5");
  EXPECT_EQ(Outcome("max(writetime(v)), writetime(v)", rows), "1009 | 1009");
  EXPECT_EQ(Outcome("count(*), max(v), sum(v), avg(n), k, k + max(v)", {}),
            "0 | null | 0 | 0 | null | null");
}

TEST(AggregatorTest, GroupsFollowThePrimaryKey) {
  std::vector<Values> rows = {{{"k", "1"}, {"c", "1"}, {"d", "1"}, {"v", "3"}},
                              {{"k", "1"}, {"c", "1"}, {"d", "2"}, {"v", "4"}},
                              {{"k", "1"}, {"c", "2"}, {"d", "1"}, {"v", "5"}},
                              {{"k", "2"}, {"c", "2"}, {"d", "1"}, {"v", "6"}}};
  EXPECT_EQ(Outcome("k, sum(v)", rows, " GROUP BY k"), "1 | 12\n2 | 6");
  EXPECT_EQ(Outcome("k, c, sum(v), d", rows, " GROUP BY k, c"),
            "1 | 1 | 7 | 1\n1 | 2 | 5 | 1\n2 | 2 | 6 | 1");
  EXPECT_EQ(Outcome("v", rows, " GROUP BY k"), "3\n6");
  EXPECT_EQ(Outcome("k, count(*)", {}, " GROUP BY k"), "");
  EXPECT_EQ(Outcome("v", rows, " GROUP BY v"),
            "Group by is currently only supported on the columns of the PRIMARY KEY, got v");
  EXPECT_EQ(Outcome("v", rows, " GROUP BY k, d"),
            "Group by currently only support groups of columns following their declared order in "
            "the PRIMARY KEY");
}

}  // namespace
}  // namespace orrery::cql
