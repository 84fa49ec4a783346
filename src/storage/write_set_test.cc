#include "storage/write_set.h"

#include <limits>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "storage/item.h"

namespace orrery::storage {
namespace {

struct Seen {
  Batch::Change::Kind kind;
  SpaceIndex space;
  std::string key;
  std::string value;
  bool operator==(const Seen&) const = default;
};

std::vector<Seen> ChangesOf(const Batch& batch) {
  std::vector<Seen> seen;
  batch.ForEach([&](const Batch::Change& change) {
    seen.push_back({change.kind, change.space, std::string(change.key), std::string(change.value)});
  });
  return seen;
}

WriteSet SomeSet() {
  WriteSet set;
  set.time = {1'800'000'000'000'001};
  set.id = {.high = 3, .low = ~0ull};
  set.change = {.bytes = -12345, .items = 7};
  set.result = "the result";
  set.PutItem("key", EncodeItem({.time = {5}, .number = 6, .ttl = -1}, "payload"));
  set.Put(Space::kIndex, "entry", "id");
  set.Merge(Space::kItems, "cells", "operand");
  set.Delete(Space::kCatalog, std::string("\0x", 2));
  return set;
}

TEST(WriteSetTest, EverythingComesBackAndTheItemHasItsLsn) {
  const std::string bytes = SomeSet().Encode();
  auto view = WriteSetView::Parse(bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->time, SomeSet().time);
  EXPECT_EQ(view->id, SomeSet().id);
  EXPECT_EQ(view->change, SomeSet().change);
  EXPECT_EQ(view->result, "the result");
  Batch batch;
  ASSERT_TRUE(view->AddTo(batch, Lsn(42)).ok());
  using Kind = Batch::Change::Kind;
  const std::string item =
      EncodeItem({.lsn = Lsn(42), .time = {5}, .number = 6, .ttl = -1}, "payload");
  EXPECT_EQ(
      ChangesOf(batch),
      (std::vector<Seen>{{Kind::kPut, Index(Space::kItems), "key", item},
                         {Kind::kPut, Index(Space::kIndex), "entry", "id"},
                         {Kind::kMerge, Index(Space::kItems), "cells", "operand"},
                         {Kind::kDelete, Index(Space::kCatalog), std::string("\0x", 2), ""}}));
}

TEST(WriteSetTest, AReaderVisitsTheChangesInOrder) {
  const std::string bytes = SomeSet().Encode();
  std::vector<std::string> seen;
  Status status = WriteSetView::Parse(bytes)->ForEach([&](const WriteSetChange& change) {
    seen.push_back(std::to_string(Index(change.space)) + " " + std::string(change.key) +
                   (change.value ? " " + std::to_string(change.value->size()) : " gone"));
  });
  ASSERT_TRUE(status.ok());
  EXPECT_EQ(seen,
            (std::vector<std::string>{"1 key " + std::to_string(kItemHeaderBytes + 7), "2 entry 2",
                                      "1 cells 7", "3 " + std::string("\0x", 2) + " gone"}));
  auto cut = WriteSetView::Parse(std::string_view(bytes).substr(0, bytes.size() - 1));
  seen.clear();
  status = cut->ForEach(
      [&](const WriteSetChange& change) { seen.emplace_back(std::string(change.key)); });
  EXPECT_EQ(status.code(), Code::kCorruption);
  EXPECT_EQ(seen.size(), 3u);
}

TEST(WriteSetTest, TotalsOfAnySizeComeBack) {
  for (int64_t value : {int64_t{0}, int64_t{1}, int64_t{-1}, std::numeric_limits<int64_t>::max(),
                        std::numeric_limits<int64_t>::min()}) {
    WriteSet set;
    set.change = {.bytes = value, .items = -(value / 2)};
    const std::string bytes = set.Encode();
    EXPECT_EQ(WriteSetView::Parse(bytes)->change, set.change);
  }
}

TEST(WriteSetTest, AnEmptySetIsEmptyAndChangesNothing) {
  WriteSet set;
  EXPECT_TRUE(set.empty());
  const std::string bytes = set.Encode();
  Batch batch;
  ASSERT_TRUE(WriteSetView::Parse(bytes)->AddTo(batch, Lsn(1)).ok());
  EXPECT_TRUE(batch.empty());
}

TEST(WriteSetTest, WhatHasSettledComesBackAndWithoutItTheFormIsTheOldOne) {
  WriteSet set = SomeSet();
  const std::string old = set.Encode();
  EXPECT_EQ(old[0], 1);
  EXPECT_EQ(WriteSetView::Parse(old)->settled, 0u);
  set.settled = 1ull << 40;
  const std::string bytes = set.Encode();
  EXPECT_EQ(bytes[0], 3);
  auto view = WriteSetView::Parse(bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->settled, 1ull << 40);
  EXPECT_EQ(view->result, "the result");
  EXPECT_EQ(view->frozen, std::nullopt);
  Batch batch;
  Batch before;
  ASSERT_TRUE(view->AddTo(batch, Lsn(1)).ok());
  ASSERT_TRUE(WriteSetView::Parse(old)->AddTo(before, Lsn(1)).ok());
  EXPECT_EQ(ChangesOf(batch), ChangesOf(before));
}

TEST(WriteSetTest, AFreezeIsOfTheSecondVersion) {
  WriteSet set = SomeSet();
  set.frozen = "why";
  const std::string bytes = set.Encode();
  EXPECT_EQ(bytes[0], 2);
  auto view = WriteSetView::Parse(bytes);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->frozen, "why");
  EXPECT_EQ(view->settled, 0u);
}

// Neighbours in number, and the same number of several who count, must not meet.
TEST(WriteSetTest, TheHashSpreadsIdsThatAreCounted) {
  SeededRandom random(1);
  std::set<size_t> low;
  std::set<size_t> high;
  constexpr size_t kIds = 4096;
  for (uint64_t instance = 0; instance < 8; ++instance) {
    const uint64_t id = random.Next();
    for (uint64_t number = 1; number <= kIds / 8; ++number) {
      const size_t hash = OperationIdHash()({.high = id, .low = number});
      low.insert(hash % kIds);
      high.insert(hash >> 52);
    }
  }
  // Of random ones 63 in 100 places are taken.
  EXPECT_GT(low.size(), kIds / 2);
  EXPECT_GT(high.size(), kIds / 2);
}

TEST(WriteSetTest, ANewerVersionIsRefusedByItsNumber) {
  std::string bytes = SomeSet().Encode();
  bytes[0] = 9;
  auto view = WriteSetView::Parse(bytes);
  ASSERT_FALSE(view);
  EXPECT_EQ(view.error().code(), Code::kCorruption);
  EXPECT_NE(view.error().message().find('9'), std::string::npos);
}

// Of a set without changes every shorter form is malformed; with changes a cut between two is not.
TEST(WriteSetTest, ATruncatedSetIsRefusedUnlessItIsCutBetweenChanges) {
  const std::string whole = SomeSet().Encode();
  WriteSet head = SomeSet();
  size_t accepted = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    auto view = WriteSetView::Parse(std::string_view(whole).substr(0, size));
    Batch batch;
    if (view && view->AddTo(batch, Lsn(1)).ok()) {
      ++accepted;
    }
  }
  EXPECT_EQ(accepted, 4u) << "before each of the four changes";
}

TEST(WriteSetTest, AnItemThatIsTooShortAnUnknownSpaceAndAnUnknownKindAreRefused) {
  WriteSet empty;
  const std::string head = empty.Encode();
  for (const std::string& change :
       {std::string("\x01\x01\x01k\x03"
                    "abc",
                    7),
        std::string("\x02\x09\x01k\x01v", 6), std::string("\x07\x01\x01k\x01v", 6),
        std::string("\x00\x01\x01k\x01v", 6)}) {
    const std::string bytes = head + change;
    auto view = WriteSetView::Parse(bytes);
    ASSERT_TRUE(view);
    Batch batch;
    EXPECT_EQ(view->AddTo(batch, Lsn(1)).code(), Code::kCorruption);
  }
}

TEST(WriteSetTest, FlippedBitsNeverBreakTheReader) {
  SeededRandom random(3);
  const std::string whole = SomeSet().Encode();
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes = whole;
    bytes[random.Next() % bytes.size()] ^= static_cast<char>(1u << random.Next() % 8);
    auto view = WriteSetView::Parse(bytes);
    Batch batch;
    if (view) {
      Status status = view->AddTo(batch, Lsn(1));
      EXPECT_TRUE(status.ok() || status.code() == Code::kCorruption);
    }
  }
}

TEST(ItemTest, AHeaderComesBackAndTakesAnotherLsn) {
  const ItemHeader header{.lsn = Lsn(1), .time = {2}, .number = 3, .ttl = -1};
  std::string value = EncodeItem(header, "payload");
  EXPECT_EQ(value.size(), kItemHeaderBytes + 7);
  auto item = DecodeItem(value);
  ASSERT_TRUE(item);
  EXPECT_EQ(item->payload, "payload");
  EXPECT_EQ(item->header.ttl, -1);
  EXPECT_EQ(item->header.number, 3u);
  StampItem(value.data(), Lsn(10));
  item = DecodeItem(value);
  EXPECT_EQ(item->header.lsn, Lsn(10));
  EXPECT_EQ(item->header.time.micros, 2);
  EXPECT_EQ(item->payload, "payload");
}

TEST(ItemTest, ATruncatedOrNewerHeaderIsRefused) {
  std::string value = EncodeItem({}, "");
  for (size_t size = 0; size < kItemHeaderBytes; ++size) {
    EXPECT_FALSE(DecodeItem(std::string_view(value).substr(0, size))) << size;
  }
  value[0] = 2;
  EXPECT_NE(DecodeItem(value).error().message().find("version 2"), std::string::npos);
}

TEST(ItemTest, ExpiryFollowsTheItemThenTheContainer) {
  const ItemHeader none{.time = {100'000'000}};
  const ItemHeader five{.time = {100'000'000}, .ttl = 5};
  const ItemHeader never{.time = {100'000'000}, .ttl = -1};
  const WallTime later{105'000'000};
  EXPECT_FALSE(five.Expired(std::nullopt, later)) << "time to live is off";
  EXPECT_TRUE(five.Expired(-1, later));
  EXPECT_FALSE(five.Expired(-1, {104'999'999}));
  EXPECT_TRUE(none.Expired(5, later));
  EXPECT_FALSE(none.Expired(-1, later));
  EXPECT_FALSE(never.Expired(1, later));
}

}  // namespace
}  // namespace orrery::storage
