#include "cql/term.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cql/parse.h"
#include "cql/schema.h"
#include "cql/time_uuid.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

DataType Address() {
  return DataType::Udt("ks", "address", {{"street", TypeId::kText}, {"zip", TypeId::kInt}});
}

const TypeScope kScope{"ks", [](std::string_view name) -> std::optional<DataType> {
                         return name == "address" ? std::optional(Address()) : std::nullopt;
                       }};

const Table& TwoKeys() {
  static const Table table{.keyspace = "ks",
                           .name = "t",
                           .columns = {{1, "a", TypeId::kInt, ColumnKind::kPartitionKey},
                                       {2, "b", TypeId::kText, ColumnKind::kPartitionKey}},
                           .partition_columns = 2};
  return table;
}

DataType Type(std::string_view text) {
  auto type = ParseTypeText(text, kScope);
  EXPECT_TRUE(type) << text;
  return type.value_or(TypeId::kBlob);
}

struct Prepared {
  Term term;
  MarkerSpecs markers;
  std::string error;
};

Prepared Prepare(std::string_view text, const DataType& type) {
  auto expression = ParseTerm(text);
  EXPECT_TRUE(expression) << text << (expression ? "" : expression.error().message());
  Prepared prepared;
  prepared.markers.resize(8);
  auto term = PrepareTerm(expression.value_or(Expression()), {"ks", "t", "c", type},
                          prepared.markers, {kScope, &TwoKeys()});
  if (term) {
    prepared.term = *term;
  } else {
    EXPECT_EQ(term.error().code(), Code::kInvalidArgument);
    prepared.error = term.error().message();
  }
  return prepared;
}

// The value as a literal, or what is wrong.
std::string Outcome(std::string_view text, const DataType& type,
                    const std::vector<MarkerValue>& values = {}) {
  Prepared prepared = Prepare(text, type);
  if (!prepared.error.empty()) {
    return prepared.error;
  }
  SeededRandom random(7);
  FunctionContext context{.now_micros = 1'700'000'000'123'456, .random = &random};
  auto bound = prepared.term.Bind(values, context);
  if (!bound) {
    return bound.error().message();
  }
  if (!bound->has_value()) {
    return bound->is_null() ? "null" : "unset";
  }
  EXPECT_TRUE(ValidateValue(type, bound->bytes()).ok()) << text;
  return ValueToLiteral(type, bound->bytes());
}

MarkerValue Value(std::string_view bytes) { return {MarkerValue::Kind::kValue, bytes}; }

struct Row {
  std::string type;
  std::string text;
  std::string result;  // a literal, or a message
};

void Check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    EXPECT_EQ(Outcome(row.text, Type(row.type)), row.result) << row.type << " <- " << row.text;
  }
}

TEST(TermTest, ConstantsMeanWhatTheTypeWants) {
  Check({{"int", "1", "1"},
         {"bigint", "-1", "-1"},
         {"text", "'it''s'", "'it''s'"},
         {"double", "1", "1.0"},
         {"decimal", "1.50", "1.50"},
         {"timestamp", "0", "'1970-01-01T00:00:00.000Z'"},
         {"date", "'1970-01-02'", "'1970-01-02'"},
         {"blob", "0x0aff", "0x0aff"},
         {"duration", "1h2m", "1h2m"},
         {"boolean", "true", "true"},
         {"int", "null", "null"},
         {"int", "(1)", "1"}});
}

TEST(TermTest, ConstantsOfAnotherKindAreRefused) {
  Check({{"text", "1", "Invalid INTEGER constant (1) for \"c\" of type text"},
         {"int", "'a'", "Invalid STRING constant (a) for \"c\" of type int"},
         {"int", "1.5", "Invalid FLOAT constant (1.5) for \"c\" of type int"},
         {"list<int>", "1", "Invalid INTEGER constant (1) for \"c\" of type list<int>"},
         {"int", "99999999999", "Unable to make int from '99999999999'"},
         {"counter", "null", "Invalid null value for counter increment/decrement"}});
}

TEST(TermTest, CollectionsAndTuplesAreMadeOfTheirParts) {
  Check({{"list<int>", "[3, 1, 3]", "[3, 1, 3]"},
         {"list<int>", "[]", "[]"},
         {"set<int>", "{3, 1, 3}", "{1, 3}"},
         {"map<text, int>", "{'b': 1, 'a': 2, 'b': 3}", "{'a': 2, 'b': 3}"},
         {"map<text, int>", "{}", "{}"},
         {"set<int>", "{}", "{}"},
         {"vector<float, 2>", "[1, 2.5]", "[1.0, 2.5]"},
         {"tuple<int, text>", "(1, 'a')", "(1, 'a')"},
         {"tuple<int, text>", "(1)", "(1)"},
         {"tuple<int>", "(1)", "(1)"},
         {"tuple<int, text>", "(1, null)", "(1, null)"},
         {"list<frozen<set<int>>>", "[{2, 1}]", "[{1, 2}]"},
         {"address", "{zip: 8, street: 'x'}", "{street: 'x', zip: 8}"},
         {"address", "{zip: 8}", "{street: null, zip: 8}"}});
}

TEST(TermTest, WrongPartsAreNamed) {
  Check(
      {{"list<text>", "[1]", "Invalid list literal for c: value 1 is not of type text"},
       {"set<text>", "{1}", "Invalid set literal for c: value 1 is not of type text"},
       {"map<text, int>", "{1: 1}", "Invalid map literal for c: key 1 is not of type text"},
       {"map<text, int>", "{'a': 'b'}", "Invalid map literal for c: value 'b' is not of type int"},
       {"int", "[1]", "Invalid list literal for c of type int"},
       {"int", "{1}", "Invalid set literal for c of type int"},
       {"int", "{1: 1}", "Invalid map literal for c of type int"},
       {"int", "(1, 2)", "Invalid tuple type literal for c of type int"},
       {"list<int>", "[null]", "null is not supported inside collections"},
       {"tuple<int, text>", "(1, 2)",
        "Invalid tuple literal for c: component 1 is not of type text"},
       {"tuple<int>", "(1, 2)",
        "Invalid tuple literal for c: too many elements. Type frozen<tuple<int>> expects 1 but "
        "got 2"},
       {"int", "{zip: 8}", "Invalid user type literal for c of type int"},
       {"address", "{city: 8}", "Unknown field 'city' in value of user defined type address"},
       {"address", "{zip: 'a'}", "Invalid user type literal for c: field zip is not of type int"},
       {"vector<float, 2>", "[1]",
        "Invalid vector literal for c of type vector<float, 2>; expected 2 elements, but given "
        "1"}});
}

TEST(TermTest, MarkersTellWhatTheyAreFor) {
  struct MarkerRow {
    std::string type;
    std::string text;
    std::string name;
    std::string wanted;
  };
  const MarkerRow rows[] = {
      {"int", "?", "c", "int"},
      {"int", ":x", "x", "int"},
      {"list<int>", "[?]", "value(c)", "int"},
      {"map<text, int>", "{?: 1}", "key(c)", "text"},
      {"map<text, int>", "{'a': ?}", "value(c)", "int"},
      {"tuple<int, text>", "(1, ?)", "c[1]", "text"},
      {"address", "{zip: ?}", "c.zip", "int"},
      {"bigint", "token(?, 'x')", "arg0(system.token)", "int"},
      {"blob", "intAsBlob(?)", "arg0(system.intasblob)", "int"},
      {"int", "(int) ?", "c", "int"},
      {"text", "(ascii) ?", "c", "ascii"},
  };
  for (const MarkerRow& row : rows) {
    Prepared prepared = Prepare(row.text, Type(row.type));
    EXPECT_EQ(prepared.error, "") << row.text;
    EXPECT_EQ(prepared.markers[0], (Receiver{"ks", "t", row.name, Type(row.wanted)})) << row.text;
  }
}

TEST(TermTest, MarkersAreCheckedAndPutInOrder) {
  EXPECT_EQ(Outcome("?", TypeId::kInt, {Value(IntBytes(5))}), "5");
  EXPECT_EQ(Outcome("?", TypeId::kInt, {Value("ab")}), "Expected 4 or 0 byte int (2)");
  EXPECT_EQ(Outcome("?", TypeId::kInt, {{MarkerValue::Kind::kNull, {}}}), "null");
  EXPECT_EQ(Outcome("?", TypeId::kInt, {{MarkerValue::Kind::kUnset, {}}}), "unset");
  std::string unordered;
  DataType set = Type("set<int>");
  PartWriter writer(set, unordered);
  writer.Add(IntBytes(2));
  writer.Add(IntBytes(1));
  writer.Finish();
  EXPECT_EQ(Outcome("?", set, {Value(unordered)}), "{1, 2}");
}

TEST(TermTest, MarkersMayStandInsideOfOthers) {
  EXPECT_EQ(Outcome("[1, ?]", Type("list<int>"), {Value(IntBytes(5))}), "[1, 5]");
  EXPECT_EQ(Outcome("(?, 'a')", Type("tuple<int, text>"), {{MarkerValue::Kind::kNull, {}}}),
            "(null, 'a')");
  MarkerValue unset{MarkerValue::Kind::kUnset, {}};
  EXPECT_EQ(Outcome("[?]", Type("list<int>"), {unset}),
            "unset value is not supported inside collections");
  EXPECT_EQ(Outcome("(?, 'a')", Type("tuple<int, text>"), {unset}),
            "Invalid unset value for tuple field number 0");
  EXPECT_EQ(Outcome("{zip: ?}", Address(), {unset}),
            "Invalid unset value for field 'zip' of user defined type address");
}

TEST(TermTest, APlainMarkerOrConstantIsOnlyLookedAt) {
  FunctionContext context;
  Prepared marker = Prepare("?", TypeId::kInt);
  EXPECT_EQ(marker.term.marker(), 0);
  std::string bytes = IntBytes(1);
  std::vector<MarkerValue> values = {Value(bytes)};
  EXPECT_EQ(marker.term.Bind(values, context)->bytes().data(), bytes.data());
  Prepared constant = Prepare("[1, 2]", Type("list<int>"));
  EXPECT_TRUE(constant.term.constant());
  EXPECT_FALSE(constant.term.Bind({}, context)->owns());
}

TEST(TermTest, HintsChooseAType) {
  Check({{"int", "(int) 1", "1"},
         {"text", "(ascii) 'a'", "'a'"},
         {"int", "(text) 'a'", "Cannot assign value (text)'a' to c of type int"},
         {"int", "(int) 'a'", "Cannot cast value 'a' to type int"}});
}

TEST(TermTest, FunctionsAreCalled) {
  Check({{"blob", "intAsBlob(1)", "0x00000001"},
         {"blob", "int_as_blob(1)", "0x00000001"},
         {"int", "blobAsInt(0x00000002)", "2"},
         {"int", "blobAsInt(0x02)",
          "In call to function system.blobasint, value 0x02 is not a valid binary representation "
          "for type int"},
         {"timeuuid", "minTimeuuid('1970-01-01 00:00')", "13814000-1dd2-11b2-8080-808080808080"},
         {"timeuuid", "maxTimeuuid(0)", "1381670f-1dd2-11b2-7f7f-7f7f7f7f7f7f"},
         {"timestamp", "toTimestamp(minTimeuuid(12345))", "'1970-01-01T00:00:12.345Z'"},
         {"timestamp", "currentTimestamp()", "'2023-11-14T22:13:20.123Z'"},
         {"date", "toDate(current_timestamp())", "'2023-11-14'"},
         {"time", "currentTime()", "'22:13:20.123456000'"},
         {"bigint", "toUnixTimestamp(now())", "1700000000123"},
         {"int", "fromJson('5')", "5"},
         {"blob", "intAsBlob(null)", "null"},
         {"list<int>", "[blobAsInt(0x00000002)]", "[2]"}});
}

TEST(TermTest, WrongCallsAreExplained) {
  Check({{"int", "nope(1)", "Unknown function nope called"},
         {"int", "max(1)", "Aggregation function are not supported in the where clause"},
         {"int", "ks2.nope(1)", "Unknown function ks2.nope called"},
         {"int", "now(1)",
          "Invalid number of arguments in call to function system.now: 0 required but 1 provided"},
         {"blob", "intAsBlob('a')",
          "Type error: 'a' cannot be passed as argument 0 of function system.intasblob of type "
          "int"},
         {"int", "now()",
          "Type error: cannot assign result of function system.now (type timeuuid) to c (type "
          "int)"},
         {"bigint", "token(1)",
          "Invalid number of arguments in call to function system.token: 2 required but 1 "
          "provided"}});
}

TEST(TermTest, OperatorsTakeTheTypeThatIsWanted) {
  Check(
      {{"int", "1 + 2 * 3", "7"},
       {"bigint", "1 + 2", "3"},
       {"tinyint", "1 + 2", "3"},
       {"decimal", "1 + 2.5", "3.5"},
       {"bigint", "2147483647 + 1", "2147483648"},
       {"timestamp", "'2024-01-31' + 1mo", "'2024-02-29T00:00:00.000Z'"},
       {"int", "(bigint) 1 + 2", "Cannot assign value (bigint)1 + 2 to c of type int"},
       {"int", "? + 1",
        "Ambiguous '+' operation with args ? and 1: use type hint to disambiguate, example '(int) "
        "?'"},
       {"int", "1 / 0", "the operation 'int / int' failed: / by zero"}});
  EXPECT_EQ(Outcome("(int) ? + 1", TypeId::kInt, {Value(IntBytes(5))}), "6");
}

TEST(TermTest, EachNowIsAnother) {
  Prepared now = Prepare("now()", TypeId::kTimeuuid);
  SeededRandom random(7);
  FunctionContext context{.now_micros = 1'700'000'000'123'456, .random = &random};
  EXPECT_FALSE(now.term.constant());
  std::string first = std::move(*now.term.Bind({}, context)).Take();
  std::string second = std::move(*now.term.Bind({}, context)).Take();
  EXPECT_LT(CompareValues(TypeId::kTimeuuid, first, second), 0);
  EXPECT_EQ(TimeUuidTicks(first), 17'000'000'001'234'560);
}

TEST(TermTest, ReceiversOfSpecialPlaces) {
  Receiver column{"ks", "t", "c", TypeId::kInt};
  EXPECT_EQ(InReceiver(column), (Receiver{"ks", "t", "in(c)", Type("list<int>")}));
  EXPECT_EQ(LimitReceiver(column), (Receiver{"ks", "t", "[limit]", TypeId::kInt}));
  EXPECT_EQ(TimestampReceiver(column), (Receiver{"ks", "t", "[timestamp]", TypeId::kBigint}));
  EXPECT_EQ(TtlReceiver(column), (Receiver{"ks", "t", "[ttl]", TypeId::kInt}));
}

}  // namespace
}  // namespace orrery::cql
