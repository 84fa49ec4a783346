#include "cql/resolve_type.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace orrery::cql {
namespace {

DataType Address() {
  return DataType::Udt("ks", "address", {{"street", TypeId::kText}, {"zip", TypeId::kInt}});
}

// A keyspace with the types address and "int".
const TypeScope kScope{"ks", [](std::string_view name) -> std::optional<DataType> {
                         if (name == "address") {
                           return Address();
                         }
                         if (name == "int") {
                           return DataType::Udt("ks", "int", {{"a", TypeId::kInt}});
                         }
                         return std::nullopt;
                       }};

TEST(ResolveTypeTest, TextMeansAType) {
  const DataType frozen_ints = DataType::List(TypeId::kInt, true);
  const DataType odd = DataType::Udt("ks", "int", {{"a", TypeId::kInt}});
  const std::pair<std::string, DataType> rows[] = {
      {"INT", TypeId::kInt},
      {"varchar", TypeId::kText},
      {"counter", TypeId::kCounter},
      {"list<int>", DataType::List(TypeId::kInt)},
      {"frozen<list<int>>", frozen_ints},
      {"frozen<frozen<list<int>>>", frozen_ints},
      {"set<frozen<list<int>>>", DataType::Set(frozen_ints)},
      {"frozen<set<list<int>>>", DataType::Set(frozen_ints, true)},
      {"list<duration>", DataType::List(TypeId::kDuration)},
      {"map<text, duration>", DataType::Map(TypeId::kText, TypeId::kDuration)},
      {"map<frozen<list<int>>, frozen<address>>", DataType::Map(frozen_ints, Address().Frozen())},
      {"tuple<int, list<int>, address>",
       DataType::Tuple({TypeId::kInt, frozen_ints, Address().Frozen()})},
      {"frozen<tuple<int>>", DataType::Tuple({TypeId::kInt})},
      {"list<tuple<int>>", DataType::List(DataType::Tuple({TypeId::kInt}))},
      {"list<vector<float, 2>>", DataType::List(DataType::Vector(TypeId::kFloat, 2))},
      {"vector<list<int>, 8192>", DataType::Vector(frozen_ints, 8192)},
      {"address", Address()},
      {"ks.address", Address()},
      {"frozen<ks.address>", Address().Frozen()},
      {"\"int\"", odd},
      {"ks.\"int\"", odd},
      {"'a.b.C'", DataType::Custom("a.b.C")},
  };
  for (const auto& [text, type] : rows) {
    auto parsed = ParseTypeText(text, kScope);
    ASSERT_TRUE(parsed) << text << ": " << parsed.error().message();
    EXPECT_EQ(*parsed, type) << text;
    auto again = ParseTypeText(parsed->ToCql(), kScope);
    ASSERT_TRUE(again) << parsed->ToCql() << ": " << again.error().message();
    EXPECT_EQ(*again, type) << text;
  }
}

TEST(ResolveTypeTest, ErrorsAreInCassandrasWords) {
  const std::pair<std::string, std::string> rows[] = {
      {"nothing", "Unknown type ks.nothing"},
      {"list<frozen<nothing>>", "Unknown type ks.nothing"},
      {"other.address",
       "Statement on keyspace ks cannot refer to a user type in keyspace other; user types can "
       "only "
       "be used in the keyspace they are defined in"},
      {"list<set<int>>",
       "Non-frozen collections are not allowed inside collections: list<set<int>>"},
      {"map<list<int>, int>",
       "Non-frozen collections are not allowed inside collections: map<list<int>, int>"},
      {"set<address>", "Non-frozen UDTs are not allowed inside collections: set<address>"},
      {"vector<list<set<int>>, 2>",
       "Non-frozen collections are not allowed inside collections: list<set<int>>"},
      {"list<counter>", "Counters are not allowed inside collections: list<counter>"},
      {"map<counter, int>", "Counters are not allowed inside collections: map<counter, int>"},
      {"frozen<list<set<counter>>>",
       "Counters are not allowed inside collections: frozen<set<counter>>"},
      {"tuple<int, counter>", "Counters are not allowed inside tuples"},
      {"vector<counter, 2>", "Counters are not allowed inside vectors"},
      {"set<duration>", "Durations are not allowed inside sets: set<duration>"},
      {"map<duration, int>", "Durations are not allowed as map keys: map<duration, int>"},
      {"map<frozen<tuple<int>>, counter>",
       "Counters are not allowed inside collections: map<tuple<int>, counter>"},
      {"vector<int, 0>", "vectors may only have positive dimensions; given 0"},
      {"vector<int, 8193>", "vectors may have at most 8192 dimensions; given 8193"},
      {"frozen<int>",
       "frozen<> is only allowed on collections, tuples, and user-defined types (got int)"},
  };
  for (const auto& [text, message] : rows) {
    auto parsed = ParseTypeText(text, kScope);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code(), Code::kInvalidArgument);
    EXPECT_EQ(parsed.error().message(), message) << text;
  }
}

TEST(ResolveTypeTest, WithoutUserTypesNoneIsKnown) {
  auto parsed = ParseTypeText("address", {.keyspace = "ks", .find = {}});
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message(), "Unknown type ks.address");
}

TEST(ResolveTypeTest, TypesHaveALimitOfDepth) {
  auto nested = [](int levels) {
    std::string text = "int";
    for (int i = 1; i < levels; ++i) {
      text = "tuple<" + text + ">";
    }
    return text;
  };
  EXPECT_TRUE(ParseTypeText(nested(DataType::kNestingMax), kScope));
  EXPECT_FALSE(ParseTypeText(nested(DataType::kNestingMax + 1), kScope));
}

TEST(ResolveTypeTest, UserTypesThatDoubleEachOtherHaveALimit) {
  DataType type = TypeId::kInt;
  for (int i = 0; i < 25; ++i) {
    type = DataType::Udt("ks", "t", {{"a", type}, {"b", type}});
  }
  TypeScope scope{"ks", [type](std::string_view) { return type; }};
  auto parsed = ParseTypeText("t", scope);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().message(), "a type holds more than 32767 types");
}

}  // namespace
}  // namespace orrery::cql
