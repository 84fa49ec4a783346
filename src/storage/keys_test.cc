#include "storage/keys.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::storage {
namespace {

using types::KeyComponent;
using types::PartitionKey;

std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (int byte : bytes) {
    out.push_back(static_cast<char>(byte));
  }
  return out;
}

// EPKs with all that is special in the ordered form, in their order.
const std::vector<types::Epk>& Epks() {
  static const std::vector<types::Epk> epks = {"",
                                               Bytes({0}),
                                               Bytes({0, 0}),
                                               Bytes({0, 1}),
                                               Bytes({0, 0xFE}),
                                               Bytes({1}),
                                               Bytes({1, 0}),
                                               Bytes({0x3F, 0xFF}),
                                               Bytes({0x40}),
                                               "A",
                                               "AA",
                                               "AB",
                                               "B",
                                               Bytes({0xC1, 0x7F})};
  return epks;
}

// Partition keys in their order: undefined, null, false, true, numbers, strings.
std::vector<PartitionKey> Keys() {
  std::vector<KeyComponent> values = {KeyComponent(), KeyComponent::Null(),
                                      KeyComponent::Bool(false), KeyComponent::Bool(true)};
  for (double number : {-1e300, -2.5, -1.0, -1e-300, 0.0, 1e-300, 0.5, 1.0, 2.0, 10.0, 1e300}) {
    values.push_back(KeyComponent::Number(number));
  }
  for (const std::string& text :
       {std::string(), Bytes({0}), Bytes({0, 1}), std::string("a"), Bytes({'a', 0}),
        std::string("aa"), std::string("b"), std::string("\xC3\xA9")}) {
    values.push_back(KeyComponent::String(text));
  }
  std::vector<PartitionKey> keys;
  for (const KeyComponent& value : values) {
    keys.push_back({{value}});
  }
  return keys;
}

TEST(KeysTest, KeysAreOrderedByContainerThenEpkThenPartitionKeyThenRowKey) {
  std::vector<std::string> encoded;
  for (uint32_t container : {0u, 1u, 255u, 256u, 0x7FFFFFFFu, 0x80000000u}) {
    for (const types::Epk& epk : Epks()) {
      for (const PartitionKey& key : Keys()) {
        for (const std::string& row : {std::string(), Bytes({0}), std::string("a"),
                                       std::string("aa"), std::string("b"), Bytes({0xFF})}) {
          encoded.push_back(ItemKey{ContainerId(container), epk, key, row}.Encode());
        }
      }
    }
  }
  for (size_t i = 1; i < encoded.size(); ++i) {
    ASSERT_LT(encoded[i - 1], encoded[i]) << i;
  }
}

TEST(KeysTest, KeysOfSeveralLevelsAreOrderedLevelByLevel) {
  std::vector<std::string> encoded;
  for (const PartitionKey& first : Keys()) {
    for (const PartitionKey& second : Keys()) {
      PartitionKey both{{first.components[0], second.components[0]}};
      encoded.push_back(LogicalPartitionPrefix(ContainerId(1), "E", both));
    }
  }
  EXPECT_TRUE(std::is_sorted(encoded.begin(), encoded.end()));
  EXPECT_EQ(std::adjacent_find(encoded.begin(), encoded.end()), encoded.end());
}

TEST(KeysTest, NoLogicalPartitionIsAPrefixOfAnother) {
  std::vector<std::string> prefixes;
  for (const types::Epk& epk : Epks()) {
    for (const PartitionKey& key : Keys()) {
      prefixes.push_back(LogicalPartitionPrefix(ContainerId(1), epk, key));
    }
  }
  for (const std::string& a : prefixes) {
    for (const std::string& b : prefixes) {
      EXPECT_TRUE(&a == &b || !b.starts_with(a));
    }
  }
}

TEST(KeysTest, ASpanHoldsExactlyTheKeysOfItsRange) {
  std::vector<types::Epk> bounds = Epks();
  bounds.emplace_back("\xFF");
  for (const types::Epk& min : bounds) {
    for (const types::Epk& max : bounds) {
      if (max.empty() || min > max || min == "\xFF") {
        continue;
      }
      const types::EpkRange range{min, max};
      const KeySpan items = ItemSpan(ContainerId(7), range);
      const KeySpan unique = UniqueSpan(ContainerId(7), range);
      for (uint32_t container : {6u, 7u, 8u}) {
        for (const types::Epk& epk : Epks()) {
          std::string key =
              ItemKey{ContainerId(container), epk, {{KeyComponent::String("k")}}, "row"}.Encode();
          bool inside = container == 7 && range.Contains(epk);
          EXPECT_EQ(key >= items.begin && key < items.end, inside);
          std::string value = UniquePrefix(key);
          EXPECT_EQ(value >= unique.begin && value < unique.end, inside);
        }
      }
    }
  }
}

TEST(KeysTest, NeighbouringSpansMeet) {
  const types::Epk middle = Bytes({0x20, 0, 0xFF, 0});
  EXPECT_EQ(ItemSpan(ContainerId(7), {"", middle}).end,
            ItemSpan(ContainerId(7), {middle, "\xFF"}).begin);
  EXPECT_EQ(UniqueSpan(ContainerId(7), {"", middle}).end,
            UniqueSpan(ContainerId(7), {middle, "\xFF"}).begin);
}

TEST(KeysTest, TheSpanOfTheLastContainerHasNoEndAndHoldsItsKeys) {
  const std::string key = ItemKey{ContainerId(0xFFFFFFFF), "E", {}, "row"}.Encode();
  KeySpan items = ItemSpan(ContainerId(0xFFFFFFFF), {});
  EXPECT_GE(key, items.begin);
  EXPECT_TRUE(items.end.empty() || key < items.end);
  KeySpan unique = UniqueSpan(ContainerId(0xFFFFFFFF), {});
  EXPECT_GE(UniquePrefix(key), unique.begin);
  EXPECT_TRUE(unique.end.empty() || UniquePrefix(key) < unique.end);
}

TEST(KeysTest, TheEpkIsReadBackFromAnItemsKey) {
  for (const types::Epk& epk : Epks()) {
    types::Epk read;
    ASSERT_TRUE(ReadItemEpk(ItemKey{ContainerId(9), epk, Keys()[20], "row"}.Encode(), &read));
    EXPECT_EQ(read, epk);
  }
}

TEST(KeysTest, TheLogicalPartitionIsReadBackFromAnItemsKey) {
  for (const types::PartitionKey& key : Keys()) {
    std::string prefix = LogicalPartitionPrefix(ContainerId(9), "epk", key);
    types::PartitionKey read;
    EXPECT_EQ(ReadLogicalPartition(prefix + "row", &read), prefix);
    EXPECT_EQ(LogicalPartitionPrefix(ContainerId(9), "epk", read), prefix);
  }
  types::PartitionKey read;
  EXPECT_EQ(ReadLogicalPartition("abc", &read), "");
  EXPECT_EQ(ReadLogicalPartition("abcde", &read), "");
}

TEST(KeysTest, AMalformedKeyHasNoEpk) {
  types::Epk epk;
  EXPECT_FALSE(ReadItemEpk("", &epk));
  EXPECT_FALSE(ReadItemEpk("abc", &epk));
  EXPECT_FALSE(ReadItemEpk("abcd", &epk)) << "no end";
  EXPECT_FALSE(ReadItemEpk(Bytes({0, 0, 0, 1, 'e', 0}), &epk)) << "half an end";
  EXPECT_FALSE(ReadItemEpk(Bytes({0, 0, 0, 1, 'e', 0, 2}), &epk)) << "no such escape";
}

TEST(KeysTest, OrderedBytesKeepTheOrderAndComeBack) {
  SeededRandom random(5);
  auto make = [&random] {
    std::string bytes(random.Next() % 5, '\0');
    for (char& c : bytes) {
      constexpr char kBytes[] = {'\0', '\x01', 'a', '\xFE', '\xFF'};
      c = kBytes[random.Next() % 5];
    }
    return bytes;
  };
  for (int i = 0; i < 20'000; ++i) {
    std::string a = make();
    std::string b = make();
    std::string encoded_a;
    std::string encoded_b;
    types::AppendOrderedBytes(a, encoded_a);
    types::AppendOrderedBytes(b, encoded_b);
    ASSERT_EQ(a <=> b, encoded_a <=> encoded_b);
    std::string_view in = encoded_a;
    std::string read;
    ASSERT_TRUE(types::ReadOrderedBytes(in, &read));
    ASSERT_EQ(read, a);
    ASSERT_TRUE(in.empty());
  }
}

TEST(KeysTest, TheEndOfAPrefixIsBehindAllThatStartsWithIt) {
  EXPECT_EQ(PrefixEnd("a"), "b");
  EXPECT_EQ(PrefixEnd(Bytes({'a', 0xFF, 0xFF})), "b");
  EXPECT_EQ(PrefixEnd(Bytes({0xFF, 0xFF})), "");
  EXPECT_EQ(PrefixEnd(""), "");
}

}  // namespace
}  // namespace orrery::storage
