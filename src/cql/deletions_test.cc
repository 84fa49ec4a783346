#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/random.h"
#include "cql/row.h"

namespace orrery::cql {
namespace {

std::string Merge(std::initializer_list<std::string> writes) {
  std::vector<std::string_view> views(writes.begin(), writes.end());
  return MergeRows(std::nullopt, views);
}

int64_t At(std::string_view bytes, std::string_view key) {
  auto deletions = Deletions::Parse(bytes);
  EXPECT_TRUE(deletions);
  return deletions ? deletions->At(key) : kNeverWritten;
}

TEST(DeletionsTest, ThereAreNoneByDefault) {
  Deletions none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.partition(), kNeverWritten);
  EXPECT_EQ(none.At("a"), kNeverWritten);
}

TEST(DeletionsTest, OfAPartitionHidesAllRows) {
  auto deletions = Deletions::Parse(DeletionOfPartition(5)).value();
  EXPECT_FALSE(deletions.empty());
  EXPECT_EQ(deletions.partition(), 5);
  EXPECT_EQ(deletions.At(""), 5);
  EXPECT_EQ(deletions.At("a"), 5);
  EXPECT_EQ(Merge({DeletionOfPartition(5), DeletionOfPartition(7)}), DeletionOfPartition(7));
}

TEST(DeletionsTest, OfARangeHidesFromItsBeginToBeforeItsEnd) {
  std::string range = DeletionOfRange("b", "d", 5);
  EXPECT_EQ(At(range, "a"), kNeverWritten);
  EXPECT_EQ(At(range, "b"), 5);
  EXPECT_EQ(At(range, "c\xFF"), 5);
  EXPECT_EQ(At(range, "d"), kNeverWritten);
}

TEST(DeletionsTest, ARangeWithoutKeysIsNone) {
  EXPECT_TRUE(Deletions::Parse(DeletionOfRange("b", "b", 5)).value().empty());
  EXPECT_TRUE(Deletions::Parse(DeletionOfRange("c", "b", 5)).value().empty());
}

TEST(DeletionsTest, WhatAPartitionsDeletionHidesIsDropped) {
  EXPECT_EQ(Merge({DeletionOfRange("b", "d", 5), DeletionOfPartition(5)}), DeletionOfPartition(5));
  std::string newer = Merge({DeletionOfRange("b", "d", 6), DeletionOfPartition(5)});
  EXPECT_EQ(At(newer, "b"), 6);
  EXPECT_EQ(At(newer, "d"), 5);
}

TEST(DeletionsTest, NeighboursOfOneTimestampBecomeOne) {
  EXPECT_EQ(Merge({DeletionOfRange("a", "b", 5), DeletionOfRange("b", "c", 5)}),
            DeletionOfRange("a", "c", 5));
  EXPECT_EQ(Merge({DeletionOfRange("a", "z", 5), DeletionOfRange("b", "c", 4)}),
            DeletionOfRange("a", "z", 5));
}

TEST(DeletionsTest, TheLaterOfOverlappingRangesStays) {
  std::string merged = Merge({DeletionOfRange("a", "e", 5), DeletionOfRange("c", "g", 7)});
  EXPECT_EQ(At(merged, "b"), 5);
  EXPECT_EQ(At(merged, "c"), 7);
  EXPECT_EQ(At(merged, "f"), 7);
  EXPECT_EQ(At(merged, "g"), kNeverWritten);
}

TEST(DeletionsTest, CopiesKeepTheirOwnKeys) {
  Deletions copy;
  {
    auto deletions = Deletions::Parse(DeletionOfRange("b", "d", 5)).value();
    copy = deletions;
    Deletions moved = std::move(deletions);
    EXPECT_EQ(moved.At("c"), 5);
  }
  EXPECT_EQ(copy.At("c"), 5);
}

TEST(DeletionsTest, MalformedOnesAreFound) {
  std::string range = Merge({DeletionOfRange("b", "d", 5), DeletionOfRange("x", "y", 4)});
  EXPECT_EQ(ReadRow(range, 0).error().code(), Code::kCorruption);
  const char* kCases[] = {
      "",
      "22000000000000000500",
      "210000000000000005",
      "21000000000000000500"
      "00"
      "0162"
      "0162",  // no keys
      "21000000000000000500"
      "00"
      "0162"
      "0161",  // the end before the begin
      "21000000000000000500"
      "00"
      "0162"
      "0164"
      "00"
      "0163"
      "0165",  // overlapping
      "21000000000000000500"
      "02"
      "0164",  // continues nothing
      "21000000000000000500"
      "00"
      "0162"
      "05",  // too short
  };
  for (const char* hex : kCases) {
    std::string bytes;
    ASSERT_TRUE(FromHex(hex, &bytes));
    auto parsed = Deletions::Parse(bytes);
    EXPECT_TRUE(!parsed && parsed.error().code() == Code::kCorruption) << hex;
    EXPECT_FALSE(Deletions::Parse(Merge({range, bytes}))) << hex;
  }
}

TEST(DeletionsTest, InAnyOrderAndGroupsTheyGiveTheSameBytesAndTheLatestAtEachKey) {
  struct Write {
    std::string begin, end;  // both empty: of the partition
    int64_t timestamp;
  };
  for (uint64_t seed = 0; seed < 5'000; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    auto below = [&random](size_t n) { return static_cast<size_t>(random.Next() % n); };
    auto key = [&below] { return std::string(1, static_cast<char>('a' + below(10))); };
    std::vector<Write> writes;
    std::vector<std::string> rows;
    for (size_t left = 1 + below(12); left-- > 0;) {
      Write write{key(), key(), static_cast<int64_t>(2 + below(6))};
      if (below(10) == 0) {
        write = {"", "", static_cast<int64_t>(below(5))};
      }
      bool partition = write.begin.empty();
      rows.push_back(partition ? DeletionOfPartition(write.timestamp)
                               : DeletionOfRange(write.begin, write.end, write.timestamp));
      writes.push_back(std::move(write));
    }
    auto fold = [&] {
      std::vector<std::string> left = rows;
      while (left.size() > 1) {
        size_t at = below(left.size() - 1);
        size_t count = 2 + below(left.size() - at - 1);
        std::vector<std::string_view> operands(left.begin() + at + 1, left.begin() + at + count);
        left[at] = MergeRows(left[at], operands);
        left.erase(left.begin() + at + 1, left.begin() + at + count);
      }
      return left[0];
    };
    std::string merged = fold();
    ASSERT_EQ(fold(), merged);
    std::ranges::reverse(rows);
    ASSERT_EQ(fold(), merged);
    rows.push_back(rows[below(rows.size())]);
    ASSERT_EQ(fold(), merged);
    for (char c = 'a'; c <= 'k'; ++c) {
      std::string at(1, c);
      int64_t latest = kNeverWritten;
      for (const Write& write : writes) {
        if (write.begin.empty() || (write.begin <= at && at < write.end)) {
          latest = std::max(latest, write.timestamp);
        }
      }
      ASSERT_EQ(At(merged, at), latest) << at;
    }
  }
}

}  // namespace
}  // namespace orrery::cql
