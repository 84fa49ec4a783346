#include "cql/row.h"

#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/bytes.h"

namespace orrery::cql {
namespace {

constexpr int64_t kNow = 1000;

// A row of one write.
template <typename Build>
std::string Row(Build build) {
  RowWriter writer;
  build(writer);
  return writer.Finish();
}
std::string Value(uint32_t column, const Stamp& stamp, std::string_view value) {
  return Row([&](RowWriter& row) { row.Set(column, "", stamp, value); });
}
std::string Deleted(uint32_t column, int64_t timestamp) {
  return Row([&](RowWriter& row) { row.Delete(column, "", timestamp); });
}
std::string DeletedRow(int64_t timestamp) {
  return Row([&](RowWriter& row) { row.DeleteRow(timestamp); });
}
std::string Marked(const Stamp& stamp) {
  return Row([&](RowWriter& row) { row.Mark(stamp); });
}
std::string Added(uint32_t column, int64_t delta, int64_t timestamp) {
  return Row([&](RowWriter& row) { row.Add(column, delta, timestamp); });
}

std::string Merge(std::initializer_list<std::string> writes) {
  std::vector<std::string_view> views(writes.begin(), writes.end());
  return MergeRows(std::nullopt, views);
}

// As text: the mark, then each cell.
std::string Seen(std::string_view bytes, int64_t now = kNow, int64_t deleted = kNeverWritten) {
  auto row = ReadRow(bytes, now, deleted);
  if (!row) {
    return row.error().ToString();
  }
  std::string text = row->mark ? "mark@" + std::to_string(row->mark->timestamp) : "";
  for (const CellView& cell : row->cells) {
    text += text.empty() ? "" : " ";
    text += std::to_string(cell.column);
    text += cell.path.empty() ? "" : "/" + std::string(cell.path);
    text += "=" + (cell.counter ? "+" + std::to_string(cell.count) : std::string(cell.value));
    text += "@" + std::to_string(cell.stamp.timestamp);
  }
  return text;
}

// Whichever of both is merged first.
std::string SeenOf(const std::string& a, const std::string& b) {
  EXPECT_EQ(Merge({a, b}), Merge({b, a}));
  return Seen(Merge({a, b}));
}

TEST(RowTest, WhatIsWrittenIsReadInOrderOfColumnsAndPaths) {
  std::string row = Row([](RowWriter& row) {
    row.Set(7, "b", {5}, "x");
    row.Set(300, "", {6, 60, 2000}, "late");
    row.Set(7, "a", {-5}, "y");
    row.Set(2, "", {5}, "");
    row.Mark({5});
  });
  EXPECT_EQ(Seen(row), "mark@5 2=@5 7/a=y@-5 7/b=x@5 300=late@6");
  auto read = ReadRow(row, kNow);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->cells.back().stamp, (Stamp{6, 60, 2000}));
}

TEST(RowTest, ValuesAreViewsIntoTheRow) {
  std::string row = Value(1, {5}, "value");
  auto read = ReadRow(row, kNow);
  ASSERT_TRUE(read && read->cells.size() == 1);
  EXPECT_GE(read->cells[0].value.data(), row.data());
  EXPECT_LE(read->cells[0].value.data() + 5, row.data() + row.size());
}

TEST(RowTest, CellsOfOneWriteCostTwoBytesAboveTheirValues) {
  auto row = [](uint32_t columns, const Stamp& stamp) {
    RowWriter writer;
    writer.Mark(stamp);
    for (uint32_t i = 0; i < columns; ++i) {
      writer.Set(i, "", stamp, "12345678");
    }
    return writer.Finish().size();
  };
  constexpr int64_t kTimestamp = 1'700'000'000'000'000;
  EXPECT_EQ(row(5, {kTimestamp}) - row(0, {kTimestamp}), 5u * (8 + 2));
  Stamp expiring{kTimestamp, 86400, 1'700'086'400};
  EXPECT_EQ(row(5, expiring) - row(0, expiring), 5u * (8 + 2));
  EXPECT_EQ(row(0, {kTimestamp}), 10u);
}

TEST(RowTest, ExtremesOfTimesAndColumnsSurvive) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::string row = Row([](RowWriter& row) {
    row.Set(0, "", {kNeverWritten + 1, std::numeric_limits<int32_t>::max(), kMax}, "old");
    row.Set(std::numeric_limits<uint32_t>::max(), "", {kMax}, "new");
  });
  auto read = ReadRow(row, kNow);
  ASSERT_TRUE(read && read->cells.size() == 2);
  EXPECT_EQ(read->cells[0].stamp,
            (Stamp{kNeverWritten + 1, std::numeric_limits<int32_t>::max(), kMax}));
  EXPECT_EQ(read->cells[1].stamp, Stamp{kMax});
  EXPECT_EQ(read->cells[1].column, std::numeric_limits<uint32_t>::max());
  EXPECT_EQ(NewestIn(row), kMax);
}

TEST(RowTest, AnEmptyWriteIsARowThatIsNotThere) {
  std::string empty = RowWriter().Finish();
  auto read = ReadRow(empty, kNow);
  ASSERT_TRUE(read);
  EXPECT_FALSE(read->exists());
  EXPECT_EQ(NewestIn(empty), kNeverWritten);
  std::string other = Value(1, {5}, "a");
  EXPECT_EQ(Merge({empty, other}), other);
  EXPECT_EQ(Merge({other, empty}), other);
}

TEST(RowTest, AMarkMakesARowThatHasNoCells) {
  auto read = ReadRow(Marked({5}), kNow);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->exists());
  EXPECT_TRUE(read->cells.empty());
}

TEST(RowTest, OneOperandIsReturnedAsItIs) {
  std::string_view bytes = "whatever";
  EXPECT_EQ(MergeRows(std::nullopt, {{bytes}}), bytes);
  EXPECT_EQ(MergeRows(bytes, {}), bytes);
}

TEST(RowTest, TheLaterCellStays) {
  EXPECT_EQ(SeenOf(Value(1, {5}, "z"), Value(1, {6}, "a")), "1=a@6");
  EXPECT_EQ(SeenOf(Value(1, {5}, "z"), Deleted(1, 6)), "");
  EXPECT_EQ(SeenOf(Value(1, {7}, "z"), Deleted(1, 6)), "1=z@7");
}

TEST(RowTest, TiesGoToTheDeletedThenTheExpiringThenTheLaterExpiryThenTheGreaterValue) {
  EXPECT_EQ(SeenOf(Value(1, {5}, "z"), Deleted(1, 5)), "");
  EXPECT_EQ(SeenOf(Value(1, {5, 9, 2000}, "z"), Deleted(1, 5)), "");
  EXPECT_EQ(SeenOf(Value(1, {5}, "z"), Value(1, {5, 9, 2000}, "a")), "1=a@5");
  EXPECT_EQ(SeenOf(Value(1, {5, 9, 2000}, "z"), Value(1, {5, 9, 2001}, "a")), "1=a@5");
  EXPECT_EQ(SeenOf(Value(1, {5, 8, 2000}, "a"), Value(1, {5, 9, 2000}, "z")), "1=a@5");
  EXPECT_EQ(SeenOf(Value(1, {5}, "a"), Value(1, {5}, "b")), "1=b@5");
  EXPECT_EQ(SeenOf(Value(1, {5}, "\x7F"), Value(1, {5}, "\x80")), "1=\x80@5");
  EXPECT_EQ(SeenOf(Value(1, {5}, "a"), Value(1, {5}, "aa")), "1=aa@5");
}

TEST(RowTest, AnExpiringCellThatWonATieLeavesNothingBehind) {
  std::string row = Merge({Value(1, {5}, "stays"), Value(1, {5, 9, 1000}, "goes")});
  EXPECT_EQ(Seen(row, 999), "1=goes@5");
  EXPECT_EQ(Seen(row, 1000), "");
}

TEST(RowTest, OfMarksTheLaterThenTheExpiringThenTheLaterExpiryStays) {
  auto mark = [](const Stamp& a, const Stamp& b) {
    EXPECT_EQ(Merge({Marked(a), Marked(b)}), Merge({Marked(b), Marked(a)}));
    std::string merged = Merge({Marked(a), Marked(b)});
    return ReadRow(merged, kNow).value().mark.value();
  };
  EXPECT_EQ(mark({5, 9, 2000}, {6}), Stamp{6});
  EXPECT_EQ(mark({5, 9, 2000}, {5}), (Stamp{5, 9, 2000}));
  EXPECT_EQ(mark({5, 9, 2000}, {5, 8, 2001}), (Stamp{5, 8, 2001}));
  EXPECT_EQ(mark({5, 9, 2000}, {5, 8, 2000}), (Stamp{5, 8, 2000}));
}

TEST(RowTest, ADeletionOfTheRowHidesWhatIsNotNewer) {
  std::string row = Row([](RowWriter& row) {
    row.Mark({5});
    row.Set(1, "", {5}, "a");
    row.Set(2, "", {6}, "b");
    row.Set(3, "", {7}, "c");
  });
  EXPECT_EQ(SeenOf(row, DeletedRow(6)), "3=c@7");
  EXPECT_EQ(SeenOf(row, DeletedRow(4)), "mark@5 1=a@5 2=b@6 3=c@7");
  EXPECT_EQ(Seen(row, kNow, 6), "3=c@7");
  EXPECT_EQ(Merge({row, DeletedRow(7)}), DeletedRow(7));
  EXPECT_EQ(Merge({Deleted(1, 7), DeletedRow(7)}), DeletedRow(7));
}

TEST(RowTest, ADeletionOfAColumnHidesItsCellsThatAreNotNewer) {
  auto deletion = [](int64_t timestamp) {
    return Row([&](RowWriter& row) { row.DeleteColumn(2, timestamp); });
  };
  std::string row = Row([](RowWriter& row) {
    row.Set(1, "a", {5}, "1");
    row.Set(2, "a", {5}, "2");
    row.Set(2, "b", {6}, "3");
    row.Delete(2, "c", 5);
    row.Set(3, "a", {5}, "4");
  });
  EXPECT_EQ(SeenOf(row, deletion(5)), "1/a=1@5 2/b=3@6 3/a=4@5");
  EXPECT_EQ(Merge({deletion(5), deletion(6)}), deletion(6));
  EXPECT_EQ(Merge({deletion(5), DeletedRow(5)}), DeletedRow(5));
  // INSERT of a whole collection: all that was there goes, what comes with it stays.
  std::string insert = Row([](RowWriter& row) {
    row.DeleteColumn(2, 9);
    row.Set(2, "z", {10}, "5");
  });
  EXPECT_EQ(SeenOf(row, insert), "1/a=1@5 2/z=5@10 3/a=4@5");
}

TEST(RowTest, CellsAndMarksEndWhenTheyExpire) {
  std::string row = Row([](RowWriter& row) {
    row.Mark({5, 10, 1000});
    row.Set(1, "", {5, 11, 1001}, "a");
    row.Set(2, "", {5}, "b");
  });
  EXPECT_EQ(Seen(row, 999), "mark@5 1=a@5 2=b@5");
  EXPECT_EQ(Seen(row, 1000), "1=a@5 2=b@5");
  EXPECT_EQ(Seen(row, 1001), "2=b@5");
}

TEST(RowTest, TheNewestIsOfDeletionsToo) {
  EXPECT_EQ(NewestIn(Merge({Value(1, {5}, "a"), Deleted(2, 9)})), 9);
  EXPECT_EQ(NewestIn(Merge({Value(1, {5}, "a"), DeletedRow(4)})), 5);
}

TEST(RowTest, WithinOneWriteTheOrderOfCallsDoesNotMatter) {
  std::string one = Row([](RowWriter& row) {
    row.Set(1, "", {5}, "a");
    row.Set(1, "", {5}, "b");
    row.DeleteRow(3);
    row.Mark({4});
    row.Mark({5});
  });
  std::string other = Row([](RowWriter& row) {
    row.Mark({5});
    row.Mark({4});
    row.Set(1, "", {5}, "b");
    row.DeleteRow(3);
    row.Set(1, "", {5}, "a");
  });
  EXPECT_EQ(one, other);
  EXPECT_EQ(Seen(one), "mark@5 1=b@5");
}

TEST(CounterTest, AdditionsAreSummedAndTheLatestTimestampStays) {
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), Added(1, -7, 9), Added(2, 1, 1)})), "1=+-2@10 2=+1@1");
  EXPECT_EQ(Seen(Row([](RowWriter& row) {
              row.Add(1, 2, 5);
              row.Add(1, 3, 6);
            })),
            "1=+5@6");
}

TEST(CounterTest, SumsWrapAround) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(Seen(Merge({Added(1, kMax, 1), Added(1, 1, 2)})),
            "1=+" + std::to_string(std::numeric_limits<int64_t>::min()) + "@2");
}

TEST(CounterTest, ADeletionResetsWhatWasAddedBefore) {
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), Deleted(1, 3)})), "");
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), Deleted(1, 3), Added(1, 2, 4)})), "1=+2@4");
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), Merge({Deleted(1, 3), Added(1, 2, 4)})})), "1=+2@4");
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), DeletedRow(3), Added(1, 2, 2)})), "1=+2@2");
  EXPECT_EQ(Seen(Merge({Added(1, 5, 10), Merge({DeletedRow(3), Added(1, 2, 2)})})), "1=+2@2");
}

TEST(CounterTest, ZeroIsACountAndADeletedCounterIsNone) {
  EXPECT_EQ(Seen(Merge({Added(1, 5, 1), Added(1, -5, 2)})), "1=+0@2");
  EXPECT_EQ(Seen(Merge({Added(1, 5, 1), Deleted(1, 2)})), "");
}

TEST(CounterTest, WithinOneWriteDeletionsComeFirst) {
  std::string write = Row([](RowWriter& row) {
    row.Add(1, 2, 5);
    row.Delete(1, "", 5);
  });
  EXPECT_EQ(Seen(Merge({Added(1, 100, 4), write})), "1=+2@5");
}

TEST(CounterTest, DeletionsAboveTheRowHideByTimestamp) {
  std::string row = Merge({Added(1, 5, 10), Added(2, 5, 11)});
  EXPECT_EQ(Seen(row, kNow, 10), "2=+5@11");
}

TEST(MalformedRowTest, EveryPrefixOfARowIsMalformedOrShowsLess) {
  std::string row = Row([](RowWriter& row) {
    row.Mark({5, 9, 2000});
    row.DeleteRow(2);
    row.DeleteColumn(1, 3);
    row.Set(1, "path", {4, 9, 2000}, "value");
    row.Set(9, "", {4, 8, 2000}, "value");
    row.Delete(10, "", 5);
    row.Add(11, 1000, 5);
  });
  size_t malformed = 0;
  for (size_t size = 0; size < row.size(); ++size) {
    std::string prefix = row.substr(0, size);  // its own memory, for the sanitizers
    auto read = ReadRow(prefix, kNow);
    malformed += !read;
    EXPECT_TRUE(read || read.error().code() == Code::kCorruption);
  }
  EXPECT_GT(malformed, row.size() / 2);
}

struct MalformedCase {
  const char* why;
  const char* hex;
};

TEST(MalformedRowTest, IsFoundByReading) {
  const MalformedCase kCases[] = {
      {"empty", ""},
      {"another version", "12000000000000000500"},
      {"no head", "110000000000000005"},
      {"unknown flags of the head",
       "110000000000000005"
       "20"},
      {"a timestamp before all",
       "118000000000000000"
       "0301"},
      {"a mark that expires without a ttl",
       "110000000000000005"
       "050002"},
      {"an expiry that did not stand before",
       "110000000000000005"
       "00"
       "4100"},
      {"a new expiry that does not expire",
       "110000000000000005"
       "00"
       "81010200"},
      {"a deleted cell that expires",
       "110000000000000005"
       "00"
       "42"},
      {"a deletion of a column with a path",
       "110000000000000005"
       "00"
       "100161"},
      {"a value that is too short",
       "110000000000000005"
       "00"
       "01"
       "0561"},
      {"the same place twice",
       "110000000000000005"
       "00"
       "0100"
       "0100"},
      {"a path before the last",
       "110000000000000005"
       "00"
       "11016200"
       "11016100"},
      {"a deletion of a column behind its cells",
       "110000000000000005"
       "00"
       "0100"
       "00"},
      {"a column beyond 32 bits",
       "110000000000000005"
       "00"
       "0DFFFFFFFF0F00"
       "0500"},
      {"a varint without an end",
       "110000000000000005"
       "00"
       "21FFFFFFFFFFFFFFFFFFFFFF"},
  };
  for (const MalformedCase& row : kCases) {
    std::string bytes;
    ASSERT_TRUE(FromHex(row.hex, &bytes)) << row.why;
    auto read = ReadRow(bytes, kNow);
    EXPECT_TRUE(!read && read.error().code() == Code::kCorruption) << row.why;
  }
}

TEST(MalformedRowTest, MergingKeepsItSoThatReadingFindsIt) {
  std::string good = Value(1, {5}, "good");
  std::string bad = good + "\xFF";
  for (const std::string& merged :
       {Merge({good, bad}), Merge({bad, good}), Merge({good, Merge({bad, good}), good}),
        Merge({good, DeletionOfPartition(5)}), Merge({good, ""})}) {
    EXPECT_FALSE(ReadRow(merged, kNow));
    EXPECT_FALSE(NewestIn(merged));
    EXPECT_FALSE(Deletions::Parse(merged));
    EXPECT_NE(merged.find(good), std::string::npos);
  }
  EXPECT_NE(Merge({good, bad}).find(bad), std::string::npos);
}

TEST(RowTest, ARowExistsIfAnythingOfItIsAlive) {
  auto exists = [](RowWriter& writer, int64_t now, int64_t deleted) {
    const std::string row = writer.Finish();
    auto live = ReadRow(row, now, deleted);
    auto seen = RowExists(row, now, deleted);
    EXPECT_TRUE(live && seen && live->exists() == *seen);
    return seen && *seen;
  };
  RowWriter writer;
  writer.Mark({.timestamp = 5});
  EXPECT_TRUE(exists(writer, 100, kNeverWritten));
  writer.Mark({.timestamp = 5});
  EXPECT_FALSE(exists(writer, 100, 5));
  writer.Set(1, "", {.timestamp = 5, .ttl = 10, .expires = 50}, "x");
  EXPECT_FALSE(exists(writer, 100, kNeverWritten));
  writer.Set(1, "", {.timestamp = 5, .ttl = 10, .expires = 50}, "x");
  EXPECT_TRUE(exists(writer, 49, kNeverWritten));
  writer.Delete(1, "", 7);
  EXPECT_FALSE(exists(writer, 49, kNeverWritten));
  EXPECT_FALSE(RowExists("nonsense", 1));
}

}  // namespace
}  // namespace orrery::cql
