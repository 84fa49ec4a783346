// Groups that others take the place of: the heirs begin with the keys of the parents, at one point.
#include <gtest/gtest.h>

#include "storage/log_format.h"
#include "storage/store_test_support.h"

namespace orrery::storage {
namespace {

using Call = WatchedEngine::Call;
const GroupId kParent(5);
const GroupId kLeft(7);
const GroupId kRight(8);

Span ItemsOf(std::string begin, std::string end) {
  return {Space::kItems, std::move(begin), std::move(end)};
}

Heir HeirOf(GroupId group, uint64_t replica, Span span, uint64_t at, Totals totals) {
  return {.group = group,
          .identity = {.id = ReplicaId(replica), .generation = 2, .spans = {std::move(span)}},
          .base = BaseAt(at),
          .hard = {.term = 1},
          .record = {.applied = Lsn(at), .totals = totals, .time = {9}, .frozen = ""},
          .outcomes = "outcomes"};
}

// Entries 2 .. 9 of the parent are the items k2 .. k9.
void MakeParent(ManualStore& store) {
  ASSERT_TRUE(store
                  ->Found(kParent, {.id = ReplicaId(50), .spans = {ItemsOf("k", "l")}}, BaseAt(1),
                          {.term = 3, .vote = 50})
                  .ok());
  ASSERT_TRUE(store.Write(kParent, 2, 9, "k").ok());
}

std::vector<Heir> Halves() {
  return {HeirOf(kLeft, 70, ItemsOf("k", "k6"), 9, {40, 4}),
          HeirOf(kRight, 80, ItemsOf("k6", "l"), 9, {41, 4})};
}

void ExpectParent(ManualStore& store) {
  ASSERT_TRUE(store->Log(kParent));
  EXPECT_FALSE(store->Log(kParent)->broken()) << store->Log(kParent)->damage;
  EXPECT_EQ(store->Log(kParent)->last, Lsn(9));
  EXPECT_FALSE(store->Log(kLeft));
  EXPECT_FALSE(store->Log(kRight));
}

void ExpectHeirs(ManualStore& store) {
  EXPECT_FALSE(store->Log(kParent));
  EXPECT_EQ(store->Ended(kParent), ReplicaId(50));
  for (const Heir& heir : Halves()) {
    std::optional<GroupLog> log = store->Log(heir.group);
    ASSERT_TRUE(log);
    EXPECT_FALSE(log->broken()) << log->damage;
    EXPECT_EQ(log->identity, heir.identity);
    EXPECT_EQ(log->base->index, Lsn(9));
    EXPECT_EQ(log->last, Lsn(9));
    EXPECT_EQ(store->Record(heir.group), heir.record);
    EXPECT_EQ(*store->Outcomes(heir.group), "outcomes");
  }
  for (int i = 2; i <= 9; ++i) {
    EXPECT_EQ(store.Get("k" + std::to_string(i)), std::to_string(i));
  }
}

TEST(StoreReshapeTest, TheHeirsHaveWhatTheParentHadAndGoOn) {
  Disks disks;
  {
    ManualStore store(disks, {}, {}, {});
    MakeParent(store);
    ASSERT_TRUE(store->Reshape({kParent}, Halves()).ok());
    ExpectHeirs(store);
    EXPECT_EQ(store.AppendEntries(kParent, 10, {CommandOf("x")}).code(), Code::kNotFound);
    EXPECT_TRUE(store.Write(kLeft, 10, 10, "k").ok());
  }
  ManualStore again(disks.AfterPowerCut(), {}, {}, {});
  ASSERT_TRUE(again.recovered.ok());
  EXPECT_EQ(again->Log(kLeft)->last, Lsn(10));
  EXPECT_EQ(again->Record(kRight).applied, Lsn(9));
  // The parent does not come back.
  EXPECT_EQ(
      again->Found(kParent, {.id = ReplicaId(50), .spans = {ItemsOf("m", "n")}}, BaseAt(1), {})
          .code(),
      Code::kForbidden);
}

TEST(StoreReshapeTest, KeysThatNoHeirHasGo) {
  ManualStore store(Disks(), {}, {}, {});
  MakeParent(store);
  ASSERT_TRUE(store->Reshape({kParent}, {Halves()[1]}).ok());
  EXPECT_EQ(store.Get("k5"), "");
  EXPECT_EQ(store.Get("k6"), "6");
}

TEST(StoreReshapeTest, TwoBecomeOne) {
  ManualStore store(Disks(), {}, {}, {});
  MakeParent(store);
  ASSERT_TRUE(store->Reshape({kParent}, Halves()).ok());
  ASSERT_TRUE(store.Write(kLeft, 10, 12, "k4").ok());
  GroupId whole(9);
  Heir heir = HeirOf(whole, 90, ItemsOf("k", "l"), 13, {100, 11});
  ASSERT_TRUE(store->Reshape({kLeft, kRight}, {heir}).ok());
  EXPECT_FALSE(store->Log(kLeft));
  EXPECT_FALSE(store->Log(kRight));
  EXPECT_EQ(store->Record(whole), heir.record);
  EXPECT_EQ(store.Get("k412"), "12");
  EXPECT_EQ(store.Get("k9"), "9");
}

TEST(StoreReshapeTest, WhatIsNotWholeIsNotDivided) {
  ManualStore store(Disks(), {}, {}, {});
  EXPECT_EQ(store->Reshape({kParent}, Halves()).code(), Code::kNotFound);
  MakeParent(store);
  ASSERT_TRUE(store->BeginInstall(kParent, store->Log(kParent)->identity, 77).ok());
  EXPECT_EQ(store->Reshape({kParent}, Halves()).code(), Code::kUnavailable);
}

// Whatever call of the two stores the power is cut before: the parent, or both heirs.
TEST(StoreReshapeTest, APowerCutBeforeAnyWriteLeavesTheParentOrBothHeirs) {
  int parents = 0;
  int heirs = 0;
  for (int at = 0; at < 6; ++at) {
    SCOPED_TRACE("before call " + std::to_string(at));
    Disks disks;
    std::optional<Disks> cut;
    int calls = -1;
    auto before = [&](Call) {
      if (calls >= 0 && calls++ == at) {
        cut = disks.AfterPowerCut();
      }
      return Status::Ok();
    };
    {
      ManualStore store(disks, {}, before, before);
      MakeParent(store);
      calls = 0;
      ASSERT_TRUE(store->Reshape({kParent}, Halves()).ok());
      calls = -1;
      cut = cut ? *cut : disks.AfterPowerCut();
    }
    ManualStore again(*cut, {}, {}, {});
    ASSERT_TRUE(again.recovered.ok());
    if (again->Log(kParent)) {
      ExpectParent(again);
      ++parents;
      // The entries that were applied are in its log: it goes on, and is divided again.
      for (uint64_t index = again->Record(kParent).applied.value() + 1; index <= 9; ++index) {
        auto entry = again->ReadLog(kParent, Lsn(index), Lsn(index), 1 << 20);
        ASSERT_TRUE(entry);
        ASSERT_TRUE(again.Apply(kParent, index, *entry).ok());
      }
      ASSERT_TRUE(again->Reshape({kParent}, Halves()).ok());
    } else {
      ++heirs;
    }
    ExpectHeirs(again);
  }
  EXPECT_GT(parents, 0);
  EXPECT_GT(heirs, 0);
}

TEST(StoreReshapeTest, LocalGroupsBeginWithTheirRecordsDurable) {
  Disks disks;
  ReplicaRecord record{.applied = Lsn(20), .totals = {5, 6}, .time = {7}, .frozen = ""};
  {
    ManualStore store(disks, {}, {}, {});
    ASSERT_TRUE(store->FoundLocal({{kLeft, record}, {kRight, record}}).ok());
    ASSERT_TRUE(store->FoundLocal({{kLeft, record}, {kRight, record}}).ok());  // again
    EXPECT_EQ(store->Record(kLeft), record);
  }
  ManualStore again(disks.AfterPowerCut(), {}, {}, {});
  ASSERT_TRUE(again.recovered.ok());
  EXPECT_EQ(again->Record(kRight), record);
  Lsn index;
  WriteSet set;
  again->Commit(kLeft, CommandOf(set), nullptr, [&](const Status& status, Lsn at) {
    EXPECT_TRUE(status.ok());
    index = at;
  });
  again->CommitStep();
  again->ApplyStep();
  EXPECT_EQ(index, Lsn(21));
}

TEST(StoreReshapeTest, AFrozenGroupStaysSoUntilItIsThawed) {
  Disks disks;
  {
    ManualStore store(disks, {}, {}, {});
    MakeParent(store);
    WriteSet set;
    set.frozen = "why";
    LogEntry entry = CommandOf(set);
    ASSERT_TRUE(store.AppendEntries(kParent, 10, {entry}).ok());
    ASSERT_TRUE(store.Apply(kParent, 10, {entry}).ok());
    EXPECT_EQ(store->Record(kParent).frozen, "why");
    ASSERT_TRUE(store->CutLog().ok());
  }
  ManualStore again(disks.AfterPowerCut(), {}, {}, {});
  EXPECT_EQ(again->Record(kParent).frozen, "why");
  WriteSet set;
  set.frozen = "";
  LogEntry entry = CommandOf(set);
  ASSERT_TRUE(again.AppendEntries(kParent, 11, {entry}).ok());
  ASSERT_TRUE(again.Apply(kParent, 11, {entry}).ok());
  EXPECT_EQ(again->Record(kParent).frozen, "");
}

}  // namespace
}  // namespace orrery::storage
