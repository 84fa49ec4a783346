#include <string>

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "cql/row.h"

namespace orrery::cql {
namespace {

constexpr int64_t kSecond = 1'000'000;

template <typename Build>
std::string Row(Build build) {
  RowWriter writer;
  build(writer);
  return writer.Finish();
}

// "same", "gone", or what is left.
std::string Left(const std::string& bytes, const Result<Remains>& remains) {
  if (!remains) {
    return remains.error().ToString();
  }
  return !remains->changed ? "same" : remains->value.value_or("gone");
}
std::string AfterPurge(const std::string& row, int64_t horizon, int64_t deleted = kNeverWritten) {
  return Left(row, PurgeRow(row, deleted, horizon));
}

TEST(RowPurgeTest, DeletionsThatAreOlderThanTheHorizonGo) {
  const std::string row = Row([](RowWriter& row) {
    row.DeleteRow(5);
    row.Delete(1, "", 7);
    row.DeleteColumn(2, 8);
    row.Set(3, "", {.timestamp = 6}, "stays");
  });
  EXPECT_EQ(AfterPurge(row, 5), "same");
  EXPECT_EQ(AfterPurge(row, 6), Row([](RowWriter& row) {
              row.Delete(1, "", 7);
              row.DeleteColumn(2, 8);
              row.Set(3, "", {.timestamp = 6}, "stays");
            }));
  EXPECT_EQ(AfterPurge(row, 9),
            Row([](RowWriter& row) { row.Set(3, "", {.timestamp = 6}, "stays"); }));
  EXPECT_EQ(AfterPurge(Row([](RowWriter& row) { row.DeleteRow(5); }), 6), "gone");
}

TEST(RowPurgeTest, WhatExpiresGoesWhenItHasExpired) {
  const Stamp stamp{.timestamp = 5, .ttl = 10, .expires = 20};
  const std::string row = Row([&](RowWriter& row) {
    row.Mark(stamp);
    row.Set(1, "", stamp, "x");
  });
  EXPECT_EQ(PurgeRow(row, kNeverWritten, 0)->next, 20 * kSecond);
  EXPECT_EQ(AfterPurge(row, 20 * kSecond - 1), "same");
  EXPECT_EQ(AfterPurge(row, 20 * kSecond), "gone");
  // It hides what is older until nobody writes that any more.
  const Stamp newer{.timestamp = 30 * kSecond, .ttl = 10, .expires = 20};
  const std::string ahead = Row([&](RowWriter& row) { row.Set(1, "", newer, "x"); });
  EXPECT_EQ(AfterPurge(ahead, 30 * kSecond), "same");
  EXPECT_EQ(AfterPurge(ahead, 30 * kSecond + 1), "gone");
}

TEST(RowPurgeTest, ADeletionThatCameLateStaysAsLongAsOneOfItsTime) {
  const std::string row = Row([](RowWriter& row) {
    row.Delete(1, "", 5);
    row.Late(20);
  });
  EXPECT_EQ(PurgeRow(row, kNeverWritten, 0)->next, 21 * kSecond);
  EXPECT_EQ(AfterPurge(row, 21 * kSecond - 1), "same");
  EXPECT_EQ(AfterPurge(row, 21 * kSecond), "gone");
  // Once it is known it is not forgotten, and it goes with the last deletion.
  const std::string earlier = Row([](RowWriter& row) {
    row.Delete(2, "", 6);
    row.Set(3, "", {.timestamp = 4}, "x");
    row.Late(15);
  });
  const std::string_view operand = earlier;
  const std::string both = MergeRows(row, {&operand, 1});
  EXPECT_EQ(AfterPurge(both, 20 * kSecond), "same");
  EXPECT_EQ(AfterPurge(both, 21 * kSecond),
            Row([](RowWriter& row) { row.Set(3, "", {.timestamp = 4}, "x"); }));
}

TEST(RowPurgeTest, WhatADeletionOfARangeHidesGoesAtOnce) {
  const std::string row = Row([](RowWriter& row) {
    row.Mark({.timestamp = 5});
    row.DeleteRow(3);
    row.Set(1, "", {.timestamp = 5}, "x");
    row.Set(2, "", {.timestamp = 7}, "y");
  });
  EXPECT_EQ(AfterPurge(row, kNeverWritten, 5),
            Row([](RowWriter& row) { row.Set(2, "", {.timestamp = 7}, "y"); }));
  EXPECT_EQ(AfterPurge(row, kNeverWritten, 7), "gone");
  EXPECT_EQ(AfterPurge(row, kNeverWritten), "same");
}

TEST(RowPurgeTest, CountersStay) {
  const std::string row = Row([](RowWriter& row) {
    row.DeleteRow(3);
    row.Add(1, 5, 4);
  });
  const std::string left = Row([](RowWriter& row) { row.Add(1, 5, 4); });
  EXPECT_EQ(AfterPurge(row, 100), left);
  EXPECT_FALSE(PurgeRow(row, 3, 100)->hides_counter);
  EXPECT_EQ(AfterPurge(row, 100, 4), left);
  EXPECT_TRUE(PurgeRow(row, 4, 100)->hides_counter);
}

TEST(RowPurgeTest, OfDeletionsThoseGoThatAreOlder) {
  const std::string first = DeletionOfRange("a", "b", 5);
  const std::string second = DeletionOfRange("c", "d", 9);
  const std::string whole = DeletionOfPartition(4);
  const std::string_view operands[] = {second, whole};
  const std::string all = MergeRows(first, operands);
  auto purge = [](const std::string& bytes, int64_t horizon) {
    return Left(bytes, PurgeDeletions(bytes, horizon));
  };
  EXPECT_EQ(purge(all, 4), "same");
  EXPECT_EQ(PurgeDeletions(all, 4)->next, 5);
  EXPECT_EQ(purge(all, 6), second);
  EXPECT_EQ(purge(all, 10), "gone");
  EXPECT_EQ(purge(DeletionOfRange("b", "b", 5), 0), "gone");
  const std::string late = DeletionOfPartition(4, 20);
  EXPECT_EQ(purge(late, 21 * kSecond - 1), "same");
  EXPECT_EQ(purge(late, 21 * kSecond), "gone");
  EXPECT_EQ(Deletions::Parse(late)->partition(), 4);
}

TEST(RowPurgeTest, TimesAtTheEndsOfTheScaleAreNoTrouble) {
  constexpr int64_t kLast = INT64_MAX;
  const std::string row = Row([](RowWriter& row) {
    row.Delete(1, "", kLast);
    row.Set(2, "", {.timestamp = kNeverWritten + 1, .ttl = 1, .expires = kLast}, "x");
    row.Late(kLast);
  });
  EXPECT_EQ(AfterPurge(row, kLast - kSecond), "same");
  EXPECT_EQ(AfterPurge(DeletionOfPartition(1), 100), "corruption: a row is malformed");
  EXPECT_EQ(OldestIn(row).value(), kNeverWritten + 1);
  EXPECT_EQ(OldestIn(Row([](RowWriter&) {})).value(), kLast);
}

}  // namespace
}  // namespace orrery::cql
