#include "partition/partition_map.h"

#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::partition {
namespace {

constexpr char kEnd[] = "\xFF";

PartitionRange Range(uint64_t id, std::string min, std::string max) {
  PartitionRange range;
  range.id = PartitionId(id);
  range.range = {std::move(min), std::move(max)};
  return range;
}

PartitionMap ThreeRanges() {
  PartitionRange parent = Range(1, "", "\x20");
  PartitionRange left = Range(3, "", "\x10");
  PartitionRange right = Range(4, "\x10", "\x20");
  left.parents = right.parents = {parent.id};
  left.generation = right.generation = 2;
  return PartitionMap::Make({left, right, Range(2, "\x20", kEnd)}, {parent}).value();
}

types::PartitionKeyDefinition Definition() { return {.paths = {"/pk"}}; }

std::string Encoded(const PartitionMap& map) {
  std::string bytes;
  Encoder encoder(bytes);
  map.Encode(encoder);
  return bytes;
}

Result<PartitionMap> Decoded(std::string_view bytes) {
  Decoder decoder(bytes);
  return PartitionMap::Decode(decoder);
}

std::string Ids(std::span<const PartitionRange> ranges) {
  std::string text;
  for (const PartitionRange& range : ranges) {
    text += range.id.ToString() + " ";
  }
  return text;
}

TEST(PartitionMapTest, OnlyRangesThatCoverTheRingMakeAMap) {
  const std::vector<std::vector<PartitionRange>> bad = {
      {},
      {Range(1, "\x01", kEnd)},                                                  // begins late
      {Range(1, "", "\x20")},                                                    // ends early
      {Range(1, "", "\x20"), Range(2, "\x21", kEnd)},                            // a gap
      {Range(1, "", "\x20"), Range(2, "\x1F", kEnd)},                            // an overlap
      {Range(1, "", "\x20"), Range(2, "\x20", "\x20"), Range(3, "\x20", kEnd)},  // an empty one
      {Range(1, "", "\x20"), Range(2, "\x20", "\x10"), Range(3, "\x10", kEnd)},  // backwards
      {Range(1, "", kEnd), Range(2, kEnd, kEnd)},                                // past the end
      {Range(2, "\x20", kEnd), Range(1, "", "\x20")},                            // out of order
      {Range(1, "", "\x20"), Range(1, "\x20", kEnd)},                            // an id twice
  };
  for (size_t i = 0; i < bad.size(); ++i) {
    const Result<PartitionMap> map = PartitionMap::Make(bad[i]);
    ASSERT_FALSE(map.has_value()) << i;
    EXPECT_EQ(map.error().code(), Code::kCorruption) << i;
  }
  EXPECT_TRUE(PartitionMap::Make({Range(1, "", kEnd)}).has_value());
}

TEST(PartitionMapTest, ARetiredIdIsNotReused) {
  EXPECT_FALSE(PartitionMap::Make({Range(1, "", kEnd)}, {Range(1, "", kEnd)}).has_value());
  EXPECT_FALSE(PartitionMap::Make({Range(1, "", kEnd)}, {Range(2, "\x20", "\x20")}).has_value());
}

TEST(PartitionMapTest, ABoundaryBelongsToTheRangeThatBeginsThere) {
  const PartitionMap map = ThreeRanges();
  EXPECT_EQ(map.Find("").id, PartitionId(3));
  EXPECT_EQ(map.Find("\x0F\xFF").id, PartitionId(3));
  EXPECT_EQ(map.Find("\x10").id, PartitionId(4));
  EXPECT_EQ(map.Find(std::string_view("\x10\x00", 2)).id, PartitionId(4));
  EXPECT_EQ(map.Find("\x20").id, PartitionId(2));
  EXPECT_EQ(map.Find("\xFF\xFF").id, PartitionId(2));
}

// The tokens of Cassandra tables use the whole ring, also behind the single byte FF.
TEST(PartitionMapTest, ABoundaryMayLieBehindTheByteFF) {
  const auto map =
      PartitionMap::Make({Range(1, "", "\xFF\x80"), Range(2, "\xFF\x80", kEnd)}).value();
  EXPECT_EQ(map.Find("\xFF\x7F").id, PartitionId(1));
  EXPECT_EQ(map.Find("\xFF\x81").id, PartitionId(2));
  EXPECT_EQ(Ids(map.Overlapping({"\xFF\x10", "\xFF\x80"})), "1 ");
  EXPECT_EQ(Ids(map.Overlapping({"\xFF\x10", kEnd})), "1 2 ");
}

TEST(PartitionMapTest, OverlappingTakesBothEndsAsTheyAre) {
  const PartitionMap map = ThreeRanges();
  EXPECT_EQ(Ids(map.Overlapping({"", kEnd})), "3 4 2 ");
  EXPECT_EQ(Ids(map.Overlapping({"\x10", "\x20"})), "4 ");
  EXPECT_EQ(Ids(map.Overlapping({"\x0F", "\x20\x01"})), "3 4 2 ");
  EXPECT_EQ(Ids(map.Overlapping({"\x30", kEnd})), "2 ");
  EXPECT_EQ(Ids(map.Overlapping({"\x11", "\x12"})), "4 ");
}

TEST(PartitionMapTest, AnEmptyRangeOverlapsNothing) {
  const PartitionMap map = ThreeRanges();
  EXPECT_TRUE(map.Overlapping({"\x10", "\x10"}).empty());
  EXPECT_TRUE(map.Overlapping({"\x12", "\x11"}).empty());
  EXPECT_TRUE(map.Overlapping({kEnd, kEnd}).empty());
}

TEST(PartitionMapTest, AnIdIsFoundWhetherItsRangeIsCurrentOrRetired) {
  const PartitionMap map = ThreeRanges();
  EXPECT_EQ(map.FindId(PartitionId(2)), &map.ranges()[2]);
  EXPECT_EQ(map.FindId(PartitionId(4)), &map.ranges()[1]);
  EXPECT_EQ(map.FindId(PartitionId(1)), &map.retired()[0]);
  EXPECT_EQ(map.FindId(PartitionId(0)), nullptr);
  EXPECT_EQ(map.FindId(PartitionId(5)), nullptr);
}

TEST(PartitionMapTest, ACopyFindsItsOwnRanges) {
  const PartitionMap map = ThreeRanges();
  const PartitionMap copy = map;
  EXPECT_EQ(copy.FindId(PartitionId(2)), &copy.ranges()[2]);
}

TEST(PartitionMapTest, WhatIsEncodedDecodesToTheSame) {
  const PartitionMap map = ThreeRanges();
  const PartitionMap again = Decoded(Encoded(map)).value();
  EXPECT_TRUE(std::ranges::equal(again.ranges(), map.ranges()));
  EXPECT_TRUE(std::ranges::equal(again.retired(), map.retired()));
}

TEST(PartitionMapTest, DecodeLeavesWhatFollows) {
  const std::string bytes = Encoded(ThreeRanges()) + "next";
  Decoder decoder(bytes);
  ASSERT_TRUE(PartitionMap::Decode(decoder).has_value());
  EXPECT_EQ(decoder.Rest(), "next");
}

TEST(PartitionMapTest, BytesThatAreCutShortAreRefused) {
  const std::string bytes = Encoded(ThreeRanges());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Result<PartitionMap> map = Decoded(std::string_view(bytes).substr(0, size));
    ASSERT_FALSE(map.has_value()) << size;
    EXPECT_EQ(map.error().code(), Code::kCorruption) << size;
  }
}

TEST(PartitionMapTest, DamagedBytesGiveAMapOrAnErrorButNeverHarm) {
  SeededRandom random(7);
  const std::string bytes = Encoded(ThreeRanges());
  for (int i = 0; i < 20'000; ++i) {
    std::string damaged = bytes;
    damaged[random.Next() % damaged.size()] = static_cast<char>(random.Next());
    if (const Result<PartitionMap> map = Decoded(damaged)) {
      EXPECT_TRUE(map->Find("\x15").range.Contains("\x15"));
    }
  }
}

TEST(PartitionMapTest, ACountThatCannotBeIsRefusedBeforeItIsAllocated) {
  for (uint64_t count : {uint64_t{1'000'001}, uint64_t{1'000'000}, UINT64_MAX}) {
    std::string bytes;
    Encoder encoder(bytes);
    encoder.U8(1);
    encoder.Varint(count);
    EXPECT_FALSE(Decoded(bytes).has_value()) << count;
  }
}

TEST(PartitionMapTest, AnotherVersionIsRefused) {
  std::string bytes = Encoded(ThreeRanges());
  bytes[0] = 2;
  EXPECT_EQ(Decoded(bytes).error().code(), Code::kCorruption);
}

TEST(PartitionMapTest, OnePartIsTheWholeRing) {
  const PartitionMap map = PartitionMap::Even(Definition(), 1, PartitionId(7));
  ASSERT_EQ(map.ranges().size(), 1u);
  EXPECT_EQ(map.ranges()[0].id, PartitionId(7));
  EXPECT_EQ(map.ranges()[0].range, types::EpkRange());
}

TEST(PartitionMapTest, EvenPartsMeetAtTheBoundariesAndCountUp) {
  const PartitionMap map = PartitionMap::Even(Definition(), 3, PartitionId(5));
  EXPECT_EQ(Ids(map.ranges()), "5 6 7 ");
  // A third of the band 00..3F, which is all that hashes of version 2 use.
  EXPECT_EQ(ToHex(map.ranges()[1].range.min).substr(0, 4), "1555");
  EXPECT_EQ(ToHex(map.ranges()[2].range.min).substr(0, 4), "2AAA");
}

TEST(PartitionMapTest, TenThousandPartsAreFoundByKeyAndById) {
  const PartitionMap map = PartitionMap::Even(Definition(), 10'000, PartitionId(1));
  ASSERT_EQ(map.ranges().size(), 10'000u);
  for (const PartitionRange& range : map.ranges()) {
    EXPECT_EQ(&map.Find(range.range.min), &range);
    EXPECT_EQ(map.FindId(range.id), &range);
    EXPECT_EQ(map.Overlapping(range.range).size(), 1u);
  }
  EXPECT_EQ(map.Overlapping({map.ranges()[10].range.min, map.ranges()[20].range.min}).size(), 10u);
}

TEST(PartitionMapTest, RandomKeysSpreadEvenlyOverTheParts) {
  const PartitionMap map = PartitionMap::Even(Definition(), 10, PartitionId(0));
  std::vector<int> hits(10);
  for (int i = 0; i < 10'000; ++i) {
    const types::PartitionKey key{{types::KeyComponent::String("key" + std::to_string(i))}};
    ++hits[map.Find(types::ComputeEpk(Definition(), key)).id.value()];
  }
  for (int count : hits) {
    EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(PartitionCountTest, TheThroughputIsDividedRoundingUp) {
  EXPECT_EQ(PartitionCount(0, 10'000), 1u);
  EXPECT_EQ(PartitionCount(400, 10'000), 1u);
  EXPECT_EQ(PartitionCount(10'000, 10'000), 1u);
  EXPECT_EQ(PartitionCount(10'001, 10'000), 2u);
  EXPECT_EQ(PartitionCount(1'000'000, 10'000), 100u);
  EXPECT_EQ(PartitionCount(UINT64_MAX, 1), UINT64_MAX);
}

}  // namespace
}  // namespace orrery::partition
