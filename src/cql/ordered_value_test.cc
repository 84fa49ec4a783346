#include "cql/ordered_value.h"

#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/random_value.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

std::string Ordered(const DataType& type, std::optional<std::string_view> value, bool descending) {
  std::string out;
  AppendOrderedValue(type, value, descending, out);
  return out;
}

int Sign(int order) { return order < 0 ? -1 : order > 0 ? 1 : 0; }

// The claims of the header for two values of a type.
void CheckPair(const DataType& type, const std::string& a, const std::string& b) {
  int order = Sign(CompareValues(type, a, b));
  ASSERT_EQ(order, -Sign(CompareValues(type, b, a)));
  for (bool descending : {false, true}) {
    std::string left = Ordered(type, a, descending);
    std::string right = Ordered(type, b, descending);
    int wanted = descending ? -order : order;
    ASSERT_EQ(Sign(left.compare(right)), wanted)
        << type.ToCql() << " " << ToHex(a) << " " << ToHex(b) << (descending ? " desc " : " asc ")
        << ToHex(left) << " " << ToHex(right);
    ASSERT_TRUE(left == right || (!left.starts_with(right) && !right.starts_with(left)));
    std::string null = Ordered(type, std::nullopt, descending);
    ASSERT_EQ(null < left, !descending);
  }
}

void CheckReturns(const DataType& type, const std::string& value) {
  for (bool descending : {false, true}) {
    std::string key = Ordered(type, value, descending) + "rest";
    std::string_view in = key;
    std::optional<std::string> again;
    ASSERT_TRUE(TakeOrderedValue(type, descending, in, &again)) << type.ToCql() << ToHex(value);
    ASSERT_TRUE(again);
    ASSERT_EQ(in, "rest") << type.ToCql() << " " << ToHex(value);
    ASSERT_TRUE(ValidateValue(type, *again).ok()) << type.ToCql() << " " << ToHex(*again);
    ASSERT_EQ(CompareValues(type, value, *again), 0) << type.ToCql() << " " << ToHex(value);
    ASSERT_EQ(Ordered(type, *again, descending), key.substr(0, key.size() - 4));
    key.resize(key.size() - 5);
    in = key;
    ASSERT_FALSE(TakeOrderedValue(type, descending, in, &again)) << type.ToCql() << ToHex(value);
  }
}

TEST(OrderedValueTest, OrderOfBytesIsOrderOfValuesForRandomTypes) {
  RandomValues random(7);
  for (int i = 0; i < 2000; ++i) {
    DataType type = random.Type();
    std::string last = random.Value(type);
    for (int j = 0; j < 20; ++j) {
      std::string value = random.Value(type);
      ASSERT_TRUE(ValidateValue(type, value).ok()) << type.ToCql() << " " << ToHex(value);
      ASSERT_NO_FATAL_FAILURE(CheckPair(type, last, value));
      ASSERT_NO_FATAL_FAILURE(CheckReturns(type, value));
      last = value;
    }
  }
}

TEST(OrderedValueTest, OrderHoldsForEveryTypeWithoutParameters) {
  for (uint16_t id = 1; id <= 0x15; ++id) {
    if (id == 0x0A) {
      continue;
    }
    DataType type = static_cast<TypeId>(id);
    RandomValues random(id);
    for (int i = 0; i < 3000; ++i) {
      ASSERT_NO_FATAL_FAILURE(CheckPair(type, random.Value(type), random.Value(type)));
    }
  }
}

TEST(OrderedValueTest, ADecimalOfTheGreatestExponentKeepsTheZerosThatItsScaleCannotHold) {
  CheckReturns(TypeId::kDecimal, std::string("\x80\0\0\0\xfa\0\0\0", 8));
  CheckReturns(TypeId::kDecimal, std::string("\x80\0\0\0\x0a", 5));
  CheckReturns(TypeId::kDecimal, std::string("\x7f\xff\xff\xff\x0a", 5));
}

TEST(OrderedValueTest, ColumnsThatFollowEachOtherKeepTheirOrder) {
  RandomValues random(3);
  DataType text = TypeId::kText;
  DataType number = TypeId::kVarint;
  for (int i = 0; i < 5000; ++i) {
    std::string a = random.Value(text), b = random.Value(text);
    std::string x = random.Value(number), y = random.Value(number);
    int order = Sign(CompareValues(text, a, b));
    order = order != 0 ? order : -Sign(CompareValues(number, x, y));
    std::string left = Ordered(text, a, false) + Ordered(number, x, true);
    std::string right = Ordered(text, b, false) + Ordered(number, y, true);
    ASSERT_EQ(Sign(left.compare(right)), order);
  }
}

TEST(OrderedValueTest, FormsAreThoseOfTheGrammar) {
  auto form = [](const DataType& type, std::string_view text, bool descending = false) {
    return ToHex(Ordered(type, *ValueFromText(type, text), descending));
  };
  EXPECT_EQ(form(TypeId::kInt, "1"), "0380000001");
  EXPECT_EQ(form(TypeId::kInt, "-1"), "037FFFFFFF");
  EXPECT_EQ(form(TypeId::kInt, "1", true), "FC7FFFFFFE");
  EXPECT_EQ(form(TypeId::kText, "a"), "03610001");
  EXPECT_EQ(form(TypeId::kText, ""), "030001");
  EXPECT_EQ(form(TypeId::kVarint, "1"), "038101");
  EXPECT_EQ(form(TypeId::kVarint, "-1"), "037EFF");
  EXPECT_EQ(form(TypeId::kDecimal, "1.50"), "030381011000");
  EXPECT_EQ(form(TypeId::kDecimal, "0.0"), "0302");
  EXPECT_EQ(form(DataType::List(TypeId::kInt), "[1]"), "03038000000100");
  EXPECT_EQ(ToHex(Ordered(TypeId::kInt, "", false)), "02");
  EXPECT_EQ(ToHex(Ordered(TypeId::kInt, std::nullopt, false)), "01");
}

TEST(OrderedValueTest, RandomBytesAreRefusedOrReadWithoutHarm) {
  RandomValues random(11);
  for (int i = 0; i < 20'000; ++i) {
    DataType type = random.Type();
    std::string bytes = random.Value(TypeId::kBlob) + Ordered(type, random.Value(type), false);
    bytes[random.Below(bytes.size())] = static_cast<char>(random.Below(256));
    std::string_view in = bytes;
    std::optional<std::string> value;
    (void)TakeOrderedValue(type, random.Below(2) == 0, in, &value);
    EXPECT_LE(in.size(), bytes.size());
  }
}

}  // namespace
}  // namespace orrery::cql
