#include "cql/data_type.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cql/quoted.h"

namespace orrery::cql {
namespace {

DataType Address(bool frozen) {
  return DataType::Udt("ks", "address", {{"street", TypeId::kText}, {"Zip", TypeId::kInt}}, frozen);
}

std::string Option(const DataType& type, int version) {
  std::string out;
  WireWriter writer(out);
  type.AppendOption(version, writer);
  return ToHex(out);
}

std::string Short(std::string_view text) {
  std::string out;
  WireWriter(out).String(text);
  return ToHex(out);
}

TEST(DataTypeTest, TextIsWhatSystemSchemaShows) {
  const std::pair<DataType, std::string> rows[] = {
      {TypeId::kText, "text"},
      {TypeId::kTimeuuid, "timeuuid"},
      {DataType::List(TypeId::kInt), "list<int>"},
      {DataType::List(TypeId::kInt, true), "frozen<list<int>>"},
      {DataType::Map(TypeId::kText, DataType::Set(TypeId::kUuid)), "map<text, frozen<set<uuid>>>"},
      {DataType::Tuple({TypeId::kInt, DataType::List(TypeId::kText)}),
       "frozen<tuple<int, frozen<list<text>>>>"},
      {Address(false), "address"},
      {Address(true), "frozen<address>"},
      {DataType::Udt("ks", "Odd Name", {}, false), "\"Odd Name\""},
      {DataType::Vector(TypeId::kFloat, 3), "vector<float, 3>"},
      {DataType::Custom("a.b.C"), "'a.b.C'"},
  };
  for (const auto& [type, text] : rows) {
    EXPECT_EQ(type.ToCql(), text);
  }
}

TEST(DataTypeTest, NamesOfTypesAreFoundInAnyCase) {
  EXPECT_EQ(DataType::ByName("VarChar"), DataType(TypeId::kText));
  EXPECT_EQ(DataType::ByName("smallint"), DataType(TypeId::kSmallint));
  EXPECT_FALSE(DataType::ByName("list"));
  EXPECT_FALSE(DataType::ByName(""));
}

TEST(DataTypeTest, ParametersAndFrozenCountInEquality) {
  EXPECT_EQ(DataType::List(TypeId::kInt), DataType::List(TypeId::kInt));
  EXPECT_NE(DataType::List(TypeId::kInt), DataType::List(TypeId::kInt, true));
  EXPECT_NE(DataType::List(TypeId::kInt), DataType::Set(TypeId::kInt));
  EXPECT_NE(DataType::Vector(TypeId::kInt, 2), DataType::Vector(TypeId::kInt, 3));
  EXPECT_EQ(Address(false).Frozen(), Address(true));
}

TEST(DataTypeTest, OnlyUnfrozenCollectionsAndUserTypesHaveManyCells) {
  EXPECT_TRUE(DataType::List(TypeId::kInt).multi_cell());
  EXPECT_TRUE(Address(false).multi_cell());
  EXPECT_FALSE(DataType::List(TypeId::kInt, true).multi_cell());
  EXPECT_FALSE(DataType::Tuple({TypeId::kInt}).multi_cell());
  EXPECT_FALSE(DataType::List(Address(false)).element().multi_cell());
}

TEST(DataTypeTest, OptionsAreThoseOfTheProtocol) {
  EXPECT_EQ(Option(TypeId::kInt, 4), "0009");
  EXPECT_EQ(Option(TypeId::kText, 3), "000D");
  EXPECT_EQ(Option(DataType::Map(TypeId::kText, TypeId::kBigint), 4), "0021000D0002");
  EXPECT_EQ(Option(DataType::Tuple({TypeId::kInt, TypeId::kUuid}), 5), "003100020009000C");
  EXPECT_EQ(Option(Address(true), 5), "0030" + Short("ks") + Short("address") + "0002" +
                                          Short("street") + "000D" + Short("Zip") + "0009");
}

TEST(DataTypeTest, WhatAVersionDoesNotKnowGoesAsACustomType) {
  const std::string package = "org.apache.cassandra.db.marshal.";
  EXPECT_EQ(Option(TypeId::kDuration, 5), "0015");
  EXPECT_EQ(Option(TypeId::kDuration, 4), "0000" + Short(package + "DurationType"));
  EXPECT_EQ(Option(TypeId::kDate, 4), "0011");
  EXPECT_EQ(Option(TypeId::kDate, 3), "0000" + Short(package + "SimpleDateType"));
  EXPECT_EQ(Option(DataType::Vector(TypeId::kFloat, 3), 5),
            "0000" + Short(package + "VectorType(" + package + "FloatType, 3)"));
}

TEST(DataTypeTest, ClassNamesNest) {
  const std::string p = "org.apache.cassandra.db.marshal.";
  EXPECT_EQ(
      DataType::Map(TypeId::kText, DataType::List(TypeId::kInt)).ToClassName(),
      p + "MapType(" + p + "UTF8Type," + p + "FrozenType(" + p + "ListType(" + p + "Int32Type)))");
  EXPECT_EQ(DataType::Udt("ks", "a", {{"b", TypeId::kInt}}).ToClassName(),
            p + "UserType(ks,61,62:" + p + "Int32Type)");
}

TEST(DataTypeTest, EncodingComesBack) {
  const DataType types[] = {TypeId::kDuration,
                            DataType::Map(TypeId::kText, DataType::List(Address(true)), true),
                            DataType::Vector(TypeId::kFloat, 1536),
                            DataType::Custom("x.Y"),
                            DataType::Tuple({}),
                            Address(false)};
  for (const DataType& type : types) {
    std::string bytes;
    Encoder encoder(bytes);
    type.Encode(encoder);
    Decoder decoder(bytes);
    EXPECT_EQ(DataType::Decode(decoder), type) << type.ToCql();
    EXPECT_TRUE(decoder.done());
    for (size_t cut = 0; cut < bytes.size(); ++cut) {
      Decoder shorter(std::string_view(bytes).substr(0, cut));
      (void)DataType::Decode(shorter);
      EXPECT_FALSE(shorter.ok());
    }
  }
}

TEST(DataTypeTest, AnEncodingThatNestsWithoutEndIsRefused) {
  std::string bytes;
  for (int i = 0; i < 100'000; ++i) {
    bytes += std::string("\x20\x00\x00\x00\x00\x01\x00", 7);
  }
  Decoder decoder(bytes);
  (void)DataType::Decode(decoder);
  EXPECT_FALSE(decoder.ok());
}

TEST(DataTypeTest, NamesAreQuotedOnlyWhereTheyMustBe) {
  EXPECT_EQ(QuotedName("user_1"), "user_1");
  EXPECT_EQ(QuotedName("User"), "\"User\"");
  EXPECT_EQ(QuotedName("1st"), "\"1st\"");
  EXPECT_EQ(QuotedName("table"), "\"table\"");
  EXPECT_EQ(QuotedName("a\"b"), "\"a\"\"b\"");
}

}  // namespace
}  // namespace orrery::cql
