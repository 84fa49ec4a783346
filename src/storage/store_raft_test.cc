// Replicated groups: their log, their state, and what a start makes of both.
#include <algorithm>
#include <future>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "runtime/worker.h"
#include "storage/log_format.h"
#include "storage/store_test_support.h"

namespace orrery::storage {
namespace {

using Call = WatchedEngine::Call;
using Numbers = std::vector<uint64_t>;
using Seen = std::vector<std::pair<uint64_t, uint64_t>>;
const GroupId kGroup(5);
const GroupId kOther(6);

LogEntry PutOf(const std::string& key, const std::string& value, uint64_t term = 1) {
  return CommandOf(RunningStore::PutOf(key, value), term);
}
LogEntry Barrier(uint64_t term) { return {.term = term, .kind = EntryKind::kBarrier}; }
LogEntry Change(const std::string& configuration) {
  return {.kind = EntryKind::kChange,
          .payload = std::make_shared<const std::string>(configuration)};
}

// A founded replica of kGroup.
struct Founded : ManualStore {
  explicit Founded(const Disks& disks = {}, StoreOptions options = {},
                   WatchedEngine::Before log = {}, WatchedEngine::Before state = {})
      : ManualStore(disks, std::move(options), std::move(log), std::move(state)) {
    Status founded =
        (*this)->Found(kGroup, IdentityOf(50, "k"), BaseAt(1), {.term = 1, .vote = 50});
    EXPECT_TRUE(founded.ok()) << founded.ToString();
  }
};

// --- the log -------------------------------------------------------------------------------------

TEST(StoreRaftTest, AFoundedGroupStandsAtItsBase) {
  Founded store;
  std::optional<GroupLog> log = store->Log(kGroup);
  ASSERT_TRUE(log);
  EXPECT_EQ(log->identity, IdentityOf(50, "k"));
  EXPECT_EQ(log->hard, (HardState{1, 50}));
  EXPECT_EQ(log->base->index, Lsn(1));
  EXPECT_EQ(log->base->configuration, "members");
  EXPECT_EQ(log->last, Lsn(1));
  EXPECT_FALSE(log->broken());
  EXPECT_EQ(store->Record(kGroup).applied, Lsn(1));
  EXPECT_EQ(store->RaftGroups(), std::vector{kGroup});
  EXPECT_FALSE(store->Log(kOther));
}

TEST(StoreRaftTest, WhatIsAppendedCanBeReadBack) {
  Founded store;
  std::vector<LogEntry> entries{Barrier(2), PutOf("k1", "v", 2), Change("four")};
  ASSERT_TRUE(store.AppendEntries(kGroup, 2, entries).ok());
  auto read = store->ReadLog(kGroup, Lsn(2), Lsn(4), 1 << 20);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 3u);
  EXPECT_EQ((*read)[0].kind, EntryKind::kBarrier);
  EXPECT_EQ((*read)[0].payload, nullptr);
  EXPECT_EQ((*read)[1].term, 2u);
  EXPECT_EQ(*(*read)[1].payload, *entries[1].payload);
  EXPECT_EQ((*read)[2].kind, EntryKind::kChange);
  EXPECT_EQ(*(*read)[2].payload, "four");
  EXPECT_EQ(store->Log(kGroup)->last, Lsn(4));
}

TEST(StoreRaftTest, AReadOfTheLogEndsAtItsBytesButHasOneEntry) {
  Founded store;
  ASSERT_TRUE(store
                  .AppendEntries(kGroup, 2,
                                 {PutOf("k1", std::string(1000, 'x')),
                                  PutOf("k2", std::string(1000, 'x')), PutOf("k3", "x")})
                  .ok());
  EXPECT_EQ(store->ReadLog(kGroup, Lsn(2), Lsn(4), 10)->size(), 1u);
  EXPECT_EQ(store->ReadLog(kGroup, Lsn(2), Lsn(4), 2150)->size(), 2u);
  EXPECT_EQ(store->ReadLog(kGroup, Lsn(3), Lsn(9), 1 << 20)->size(), 2u);
  EXPECT_EQ(store->ReadLog(kGroup, Lsn(5), Lsn(9), 1 << 20).error().code(), Code::kNotFound);
  EXPECT_EQ(store->ReadLog(kGroup, Lsn(1), Lsn(4), 1 << 20).error().code(), Code::kNotFound);
}

TEST(StoreRaftTest, HeadsHaveThePayloadOfConfigurationsOnly) {
  Founded store;
  ASSERT_TRUE(
      store.AppendEntries(kGroup, 2, {Barrier(1), Change("three"), PutOf("k", "v", 3)}).ok());
  auto heads = store->ReadHeads(kGroup);
  ASSERT_TRUE(heads);
  ASSERT_EQ(heads->size(), 3u);
  EXPECT_EQ(*(*heads)[1].payload, "three");
  EXPECT_EQ((*heads)[2].payload, nullptr);
  EXPECT_EQ((*heads)[2].term, 3u);
}

TEST(StoreRaftTest, ATruncatedTailIsReplaced) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(
        store
            .AppendEntries(kGroup, 2,
                           {PutOf("k", "a"), PutOf("k", "b"), PutOf("k", "c"), PutOf("k", "d")})
            .ok());
    ASSERT_TRUE(store
                    .Append({.group = kGroup,
                             .truncate_from = Lsn(3),
                             .first = Lsn(3),
                             .entries = {PutOf("k", "e", 2)}})
                    .ok());
    EXPECT_EQ(store.Terms(kGroup), (Numbers{1, 2}));
    EXPECT_EQ(store->Log(kGroup)->last, Lsn(3));
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_EQ(again.Terms(kGroup), (Numbers{1, 2}));
  EXPECT_EQ(again->Log(kGroup)->last, Lsn(3));
}

// Both in one batch: the later one's deletion must not hit what stands behind it, nor miss what
// stands before it.
TEST(StoreRaftTest, TruncationsInOneBatchKeepTheirOrder) {
  Founded store;
  int answers = 0;
  auto append = [&](AppendRequest request) {
    store->Append(std::move(request), nullptr, [&answers](const Status& status) {
      EXPECT_TRUE(status.ok()) << status.ToString();
      ++answers;
    });
  };
  auto entry = [](uint64_t term) { return PutOf("k", "v", term); };
  append({.group = kGroup, .first = Lsn(2), .entries = {entry(1), entry(1), entry(1), entry(1)}});
  append({.group = kGroup,
          .truncate_from = Lsn(3),
          .first = Lsn(3),
          .entries = {entry(2), entry(2), entry(2)}});
  append({.group = kGroup, .truncate_from = Lsn(5), .first = Lsn(5), .entries = {entry(3)}});
  append({.group = kGroup, .first = Lsn(6), .entries = {entry(4)}});
  EXPECT_TRUE(store->CommitStep());
  EXPECT_EQ(answers, 4);
  EXPECT_FALSE(store->CommitStep());
  EXPECT_EQ(store.Terms(kGroup), (Numbers{1, 2, 2, 3, 4}));
}

TEST(StoreRaftTest, RandomAppendsAndTruncationsLeaveWhatTheModelSays) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SeededRandom random(seed);
    Disks disks;
    Numbers model;  // terms of the entries behind 1
    {
      Founded store(disks);
      for (uint64_t step = 1; step <= 200; ++step) {
        AppendRequest request{.group = kGroup};
        size_t keep = random.Next() % 3 == 0 ? random.Next() % (model.size() + 1) : model.size();
        if (keep < model.size()) {
          request.truncate_from = Lsn(keep + 2);
          model.resize(keep);
        }
        request.first = Lsn(model.size() + 2);
        for (uint64_t i = random.Next() % 4; i > 0; --i) {
          request.entries.push_back(PutOf("k", "v", step));
          model.push_back(step);
        }
        store->Append(std::move(request), nullptr,
                      [](const Status& status) { EXPECT_TRUE(status.ok()) << status.ToString(); });
        if (random.Next() % 3 == 0) {
          store->CommitStep();
        }
      }
      store->CommitStep();
      EXPECT_EQ(store.Terms(kGroup), model) << seed;
    }
    ManualStore again(disks.AfterPowerCut());
    EXPECT_EQ(again.Terms(kGroup), model) << seed;
  }
}

TEST(StoreRaftTest, HolesAndChangesBelowTheBaseAreRefused) {
  Founded store;
  EXPECT_EQ(store.AppendEntries(kGroup, 3, {PutOf("k", "v")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(store.AppendEntries(kGroup, 1, {PutOf("k", "v")}).code(), Code::kInvalidArgument);
  EXPECT_EQ(store.Append({.group = kGroup, .truncate_from = Lsn(1)}).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(store.AppendEntries(kOther, 2, {PutOf("k", "v")}).code(), Code::kNotFound);
  ASSERT_TRUE(store.AppendEntries(kGroup, 2, {PutOf("k", "v")}).ok());
  EXPECT_EQ(store.AppendEntries(kGroup, 2, {PutOf("k", "v")}).code(), Code::kInvalidArgument)
      << "entries are not written over without a truncation";
}

TEST(StoreRaftTest, TermAndVoteSurvive) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(store.Append({.group = kGroup, .hard = HardState{7, 52}}).ok());
    EXPECT_EQ(store->Log(kGroup)->hard, (HardState{7, 52}));
    bool done = false;
    store->Append({.group = kGroup, .hard = HardState{9, 51}}, nullptr,
                  [&](const Status&) { done = true; });
    EXPECT_FALSE(done) << "not before it is written";
    EXPECT_EQ(store->Log(kGroup)->hard, (HardState{7, 52}));
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_EQ(again->Log(kGroup)->hard, (HardState{7, 52}));
}

TEST(StoreRaftTest, AppendsOfAllGroupsAndLocalCommitsShareOneSyncedWrite) {
  int writes = 0;
  bool count = false;
  Founded store(Disks(), {}, [&](Call call) {
    writes += count && call == Call::kWrite ? 1 : 0;
    return Status::Ok();
  });
  ASSERT_TRUE(store->Found(kOther, IdentityOf(60, "o"), BaseAt(1), {}).ok());
  count = true;
  std::vector<int> order;
  auto note = [&](int number) { return [&, number](const Status&) { order.push_back(number); }; };
  store->Append({.group = kGroup, .first = Lsn(2), .entries = {PutOf("k", "v")}}, nullptr, note(1));
  store->Append({.group = kOther, .first = Lsn(2), .entries = {PutOf("o", "v")}}, nullptr, note(2));
  store->Commit(GroupId(1), PutOf("local", "v"), nullptr,
                [](const Status& status, Lsn) { EXPECT_TRUE(status.ok()); });
  store->Append({.group = kGroup, .hard = HardState{3, 0}}, nullptr, note(3));
  store->CommitStep();
  EXPECT_EQ(writes, 1);
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  store->ApplyStep();
  EXPECT_EQ(store.Get("local"), "v");
  EXPECT_EQ(store.Get("k"), "") << "appended is not committed";
}

TEST(StoreRaftTest, WithPeriodicDurabilityAnAppendIsSyncedAllTheSame) {
  StoreOptions options;
  options.durability = Durability::kPeriodic;
  Disks disks;
  Founded store(disks, options);
  ASSERT_TRUE(store.AppendEntries(kGroup, 2, {PutOf("k", "v")}).ok());
  ManualStore again(disks.AfterPowerCut());
  EXPECT_EQ(again->Log(kGroup)->last, Lsn(2));
}

TEST(StoreRaftTest, AfterAFailedWriteAppendsFailAndTheStoreIsNotHealthy) {
  bool broken = false;
  Disks disks;
  {
    Founded store(disks, {}, [&](Call) {
      return broken ? Status(Code::kUnknownOutcome, "no more") : Status::Ok();
    });
    ASSERT_TRUE(store.Write(kGroup, 2, 2).ok());
    ASSERT_TRUE(store.AppendEntries(kGroup, 3, {PutOf("k3", "v")}).ok());
    broken = true;
    EXPECT_EQ(store.AppendEntries(kGroup, 4, {PutOf("k4", "v")}).code(), Code::kUnknownOutcome);
    broken = false;
    EXPECT_EQ(store.Append({.group = kGroup, .hard = HardState{4, 1}}).code(), Code::kUnavailable);
    EXPECT_FALSE(store->healthy());
    EXPECT_FALSE(store->accepts(true));
    EXPECT_EQ(store->Log(kGroup)->last, Lsn(3));
    EXPECT_EQ(store->Discard(kGroup).code(), Code::kUnavailable);
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_EQ(again->Log(kGroup)->last, Lsn(3));
  EXPECT_EQ(again->Log(kGroup)->hard, (HardState{1, 50}));
}

TEST(StoreRaftTest, RoomIsRefusedButAppendsAreNot) {
  uint64_t free = uint64_t{1} << 40;
  StoreOptions options;
  options.queue_bytes_max = 1000;
  options.free_bytes_reserve = 100;
  options.free_bytes = [&free] { return free; };
  Founded store(Disks(), options);
  EXPECT_TRUE(store->CheckRoom(500, false).ok());
  EXPECT_EQ(store->CheckRoom(2000, false).code(), Code::kUnavailable);
  int written = 0;
  for (uint64_t i = 2; i < 6; ++i) {
    store->Append(
        {.group = kGroup, .first = Lsn(i), .entries = {PutOf("k", std::string(400, 'x'))}}, nullptr,
        [&](const Status& status) { written += status.ok(); });
  }
  EXPECT_FALSE(store->accepts(true));
  store->CommitStep();
  EXPECT_EQ(written, 4);
  EXPECT_TRUE(store->accepts(false));
  free = 50;
  store->UpkeepStep();
  EXPECT_FALSE(store->accepts(false));
  EXPECT_TRUE(store->accepts(true));
  EXPECT_TRUE(store.AppendEntries(kGroup, 6, {PutOf("k", "v")}).ok()) << "a follower cannot refuse";
}

TEST(StoreRaftTest, AnswersComeOnTheWorkerInOrder) {
  runtime::WorkerPool pool(1);
  pool.Start();
  RunningStore store{Disks()};
  ASSERT_TRUE(store->Found(kGroup, IdentityOf(50, "k"), BaseAt(1), {}).ok());
  std::vector<uint64_t> answered;
  std::promise<void> all;
  for (uint64_t i = 2; i <= 200; ++i) {
    store->Append({.group = kGroup, .first = Lsn(i), .entries = {PutOf("k", "v")}}, &pool.at(0),
                  [&, i](const Status& status) {
                    EXPECT_TRUE(status.ok() && pool.at(0).IsCurrent());
                    answered.push_back(i);
                    if (i == 200) {
                      all.set_value();
                    }
                  });
  }
  all.get_future().wait();
  store->Stop();
  pool.Stop();
  EXPECT_EQ(answered.size(), 199u);
  EXPECT_TRUE(std::is_sorted(answered.begin(), answered.end()));
}

// --- the state -----------------------------------------------------------------------------------

TEST(StoreRaftTest, CommittedEntriesAreAppliedWithTheirIndexAndCounted) {
  Founded store;
  ASSERT_TRUE(
      store.Apply(kGroup, 2, {Barrier(1), PutOf("k1", "v"), Change("x"), PutOf("k2", "v")}).ok());
  EXPECT_EQ(store.last_record.applied, Lsn(5));
  EXPECT_EQ(store.last_record.totals, (Totals{2, 2}));
  EXPECT_EQ(store->Record(kGroup), store.last_record);
  std::string value;
  ASSERT_TRUE(store->state().Get(Index(Space::kItems), "k2", &value).ok());
  EXPECT_EQ(DecodeItem(value)->header.lsn, Lsn(5));
}

TEST(StoreRaftTest, WhatIsAppliedIsSkippedAndAHoleIsCorruption) {
  Founded store;
  ASSERT_TRUE(store.Apply(kGroup, 2, {PutOf("ka", "1"), PutOf("kb", "1")}).ok());
  ASSERT_TRUE(store
                  .Apply(kGroup, 1,
                         {PutOf("ka", "2"), PutOf("ka", "2"), PutOf("kb", "2"), PutOf("kc", "2")})
                  .ok());
  EXPECT_EQ(store.Get("ka") + store.Get("kb") + store.Get("kc"), "112");
  EXPECT_EQ(store->Record(kGroup).totals, (Totals{3, 3}));
  EXPECT_EQ(store.Apply(kGroup, 6, {PutOf("kd", "1")}).code(), Code::kCorruption);
  EXPECT_EQ(store.Get("kd"), "");
  EXPECT_EQ(store->Record(kGroup).applied, Lsn(4));
  EXPECT_TRUE(store->healthy());
  EXPECT_EQ(store.Apply(kOther, 2, {PutOf("o", "1")}).code(), Code::kNotFound);
}

TEST(StoreRaftTest, AnEntryThatCannotBeReadLeavesNothingOfItsCallAndOtherGroupsGoOn) {
  Founded store;
  ASSERT_TRUE(store->Found(kOther, IdentityOf(60, "o"), BaseAt(1), {}).ok());
  std::vector<Status> answers(3);
  auto apply = [&](GroupId group, std::vector<LogEntry> entries, size_t place) {
    store->Apply(
        group, Lsn(2), std::move(entries), nullptr,
        [&, place](const Status& status, const ReplicaRecord&) { answers[place] = status; });
  };
  apply(kGroup, {PutOf("k1", "v"), CommandOf("not a write set")}, 0);
  apply(kOther, {PutOf("o1", "v")}, 1);
  apply(kGroup, {PutOf("k2", "v")}, 2);
  EXPECT_TRUE(store->ApplyStep());
  EXPECT_EQ(answers[0].code(), Code::kCorruption);
  EXPECT_TRUE(answers[1].ok());
  EXPECT_TRUE(answers[2].ok());
  EXPECT_EQ(store.Get("k1") + store.Get("k2") + store.Get("o1"), "vv");
  EXPECT_EQ(store->Record(kGroup).applied, Lsn(2));
}

TEST(StoreRaftTest, AStateThatCannotBeWrittenStopsTheNode) {
  bool broken = false;
  Founded store(Disks(), {}, {}, [&](Call call) {
    return broken && call == Call::kWrite ? Status(Code::kUnavailable, "no more") : Status::Ok();
  });
  broken = true;
  EXPECT_EQ(store.Apply(kGroup, 2, {PutOf("k", "v")}).code(), Code::kUnavailable);
  broken = false;
  EXPECT_EQ(store.Apply(kGroup, 2, {PutOf("k", "v")}).code(), Code::kUnavailable)
      << "what came after it must not be applied on top of the hole";
  EXPECT_FALSE(store->healthy());
  EXPECT_EQ(store->Record(kGroup).applied, Lsn(1));
}

TEST(StoreRaftTest, ALongQueueIsAppliedInSeveralBatches) {
  Founded store;
  std::vector<uint64_t> applied;
  for (uint64_t i = 2; i < 12; ++i) {
    store->Apply(kGroup, Lsn(i), {PutOf("k", std::string(5 << 20, 'x'))}, nullptr,
                 [&](const Status& status, const ReplicaRecord& record) {
                   EXPECT_TRUE(status.ok());
                   applied.push_back(record.applied.value());
                 });
  }
  int steps = 0;
  while (store->ApplyStep()) {
    ++steps;
  }
  EXPECT_GT(steps, 1);
  EXPECT_LT(steps, 10);
  EXPECT_EQ(applied, (Numbers{2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
}

// --- cutting -------------------------------------------------------------------------------------

TEST(StoreRaftTest, TheLogIsCutUpToWhatWasFlushedAndNoFurther) {
  int told = 0;
  StoreOptions options;
  options.on_flushed = [&told] { ++told; };
  Disks disks;
  {
    Founded store(disks, options);
    ASSERT_TRUE(store.Write(kGroup, 2, 10).ok());
    EXPECT_EQ(store->Flushed(kGroup), Lsn(1));
    EXPECT_EQ(store.Cut(kGroup, 5).code(), Code::kInvalidArgument);
    ASSERT_TRUE(store->CutLog().ok());
    EXPECT_EQ(told, 1);
    EXPECT_EQ(store->Flushed(kGroup), Lsn(10));
    EXPECT_EQ(store.Terms(kGroup).size(), 9u) << "the owner cuts";
    ASSERT_TRUE(store.Cut(kGroup, 7).ok());
    EXPECT_EQ(store.Cut(kGroup, 6).code(), Code::kInvalidArgument) << "a base does not go back";
    EXPECT_EQ(store.Terms(kGroup).size(), 3u);
    EXPECT_EQ(store->ReadLog(kGroup, Lsn(7), Lsn(10), 1 << 20).error().code(), Code::kNotFound);
    EXPECT_EQ(store->ReadLog(kGroup, Lsn(8), Lsn(10), 1 << 20)->size(), 3u);
    ASSERT_TRUE(store.Write(kGroup, 11, 12).ok());
  }
  ManualStore again(disks.AfterPowerCut());
  ASSERT_TRUE(again.recovered.ok());
  std::optional<GroupLog> log = again->Log(kGroup);
  EXPECT_FALSE(log->broken());
  EXPECT_EQ(log->base->index, Lsn(7));
  EXPECT_EQ(log->last, Lsn(12));
  EXPECT_EQ(again->Record(kGroup).applied, Lsn(10)) << "only the core knows what is committed";
  EXPECT_EQ(again.seen, (Seen{{5, 8}, {5, 9}, {5, 10}}));
  EXPECT_EQ(again.Get("k10") + again.Get("k11"), "10");
}

TEST(StoreRaftTest, UpkeepFlushesWhenTheLogHasGrown) {
  int told = 0;
  StoreOptions options;
  options.cut_after_bytes = 500;
  options.on_flushed = [&told] { ++told; };
  Founded store(Disks(), options);
  ASSERT_TRUE(store.Write(kGroup, 2, 2).ok());
  EXPECT_FALSE(store->UpkeepStep());
  ASSERT_TRUE(store.Write(kGroup, 3, 10).ok());
  EXPECT_TRUE(store->UpkeepStep());
  EXPECT_FALSE(store->UpkeepStep());
  EXPECT_EQ(told, 1);
  EXPECT_EQ(store->Flushed(kGroup), Lsn(10));
}

TEST(StoreRaftTest, AGroupThatWasNeverFlushedStartsAtItsBaseAgain) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(store.Write(kGroup, 2, 3).ok());
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_FALSE(again->Log(kGroup)->broken()) << again->Log(kGroup)->damage;
  EXPECT_EQ(again->Record(kGroup).applied, Lsn(1));
  EXPECT_EQ(again->Flushed(kGroup), Lsn(1));
  EXPECT_EQ(again.Get("k2"), "");
  EXPECT_TRUE(again.seen.empty());
  auto entries = again->ReadLog(kGroup, Lsn(2), Lsn(3), 1 << 20);
  ASSERT_TRUE(again.Apply(kGroup, 2, *entries).ok());
  EXPECT_EQ(again.Get("k2") + again.Get("k3"), "23");
}

TEST(StoreRaftTest, ANewBaseAtTheSameIndexDoesNotForgetThatTheGroupWasBornThere) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(store.Cut(kGroup, 1).ok());
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_FALSE(again->Log(kGroup)->broken()) << again->Log(kGroup)->damage;
}

// --- starts --------------------------------------------------------------------------------------

TEST(StoreRaftTest, AStateBehindTheBaseIsReportedAndTheNodeStarts) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(store->Found(kOther, IdentityOf(60, "o"), BaseAt(1), {}).ok());
    ASSERT_TRUE(store.Write(kGroup, 2, 10).ok());
    ASSERT_TRUE(store->CutLog().ok());
    ASSERT_TRUE(store.Cut(kGroup, 7).ok());
  }
  disks.state = MakeMemoryDisk();  // lost
  ManualStore again(disks);
  ASSERT_TRUE(again.recovered.ok());
  EXPECT_TRUE(again->Log(kGroup)->broken());
  EXPECT_FALSE(again->Log(kOther)->broken());
  EXPECT_EQ(again.AppendEntries(kGroup, 11, {PutOf("k", "v")}).code(), Code::kUnavailable);
  EXPECT_TRUE(again->Discard(kGroup).ok());
  EXPECT_FALSE(again->Log(kGroup));
}

TEST(StoreRaftTest, AHoleInTheLogIsReportedAndTheNodeStarts) {
  Disks disks;
  {
    Founded store(disks);
    ASSERT_TRUE(store.Write(kGroup, 2, 10).ok());
    Batch batch;
    batch.Delete(kLogSpace, EntryKey(kGroup, Lsn(5)));
    ASSERT_TRUE(store->log().Write(batch, WriteMode::kSynced).ok());
  }
  ManualStore again(disks.AfterPowerCut());
  ASSERT_TRUE(again.recovered.ok());
  EXPECT_TRUE(again->Log(kGroup)->broken());
  EXPECT_NE(again->Log(kGroup)->damage.find("6"), std::string::npos);
}

TEST(StoreRaftTest, AnEntryOfANewerVersionIsRefusedWithItsPlace) {
  Disks disks;
  {
    Founded store(disks);
    Batch batch;
    batch.Put(kLogSpace, EntryKey(kGroup, Lsn(2)), "\x03 what comes after us");
    ASSERT_TRUE(store->log().Write(batch, WriteMode::kSynced).ok());
  }
  ManualStore again(disks);
  EXPECT_EQ(again.recovered.code(), Code::kCorruption);
  EXPECT_NE(again.recovered.message().find("entry 2 of group 5"), std::string::npos);
}

TEST(StoreRaftTest, EntriesOfTheFirstVersionAreCommands) {
  Disks disks;
  {
    auto log = OpenMemoryEngine(disks.log, NodeLog());
    Batch batch;
    std::string value = "\x01" + std::string(7, '\0') + "\x01";
    value += RunningStore::PutOf("a", "old").Encode();
    batch.Put(kLogSpace, EntryKey(GroupId(1), Lsn(1)), value);
    ASSERT_TRUE(log->Write(batch, WriteMode::kSynced).ok());
  }
  ManualStore store(disks);
  ASSERT_TRUE(store.recovered.ok()) << store.recovered.ToString();
  EXPECT_EQ(store.Get("a"), "old");
  EXPECT_EQ(store.seen, (Seen{{1, 1}}));
}

// --- a lone node's group becomes a cluster's -----------------------------------------------------

TEST(StoreRaftTest, ALocalGroupBecomesReplicatedWithItsState) {
  Disks disks;
  {
    RunningStore lone(disks);
    for (int i = 1; i <= 7; ++i) {
      ASSERT_TRUE(lone.Put(kGroup, "k" + std::to_string(i), "v"));
    }
    disks = disks.AfterPowerCut();
  }
  {
    ManualStore store(disks);
    EXPECT_EQ(store->Found(kGroup, IdentityOf(50, "k"), BaseAt(5), {}).code(),
              Code::kInvalidArgument);
    ASSERT_TRUE(store->Found(kGroup, IdentityOf(50, "k"), BaseAt(7), {1, 50}).ok());
    EXPECT_EQ(store->Found(kGroup, IdentityOf(50, "k"), BaseAt(7), {1, 50}).code(),
              Code::kAlreadyExists);
    Status refused;
    store->Commit(kGroup, PutOf("k8", "v"), nullptr,
                  [&](const Status& status, Lsn) { refused = status; });
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_EQ(store->Forget({kGroup}).code(), Code::kInvalidArgument);
    EXPECT_TRUE(store.Terms(kGroup).empty());
    ASSERT_TRUE(store.Write(kGroup, 8, 9).ok());
  }
  ManualStore again(disks.AfterPowerCut());
  EXPECT_FALSE(again->Log(kGroup)->broken());
  EXPECT_EQ(again->Record(kGroup).applied, Lsn(7));
  EXPECT_EQ(again->Record(kGroup).totals, (Totals{7, 7}));
  EXPECT_EQ(again.Get("k7"), "v");
  EXPECT_EQ(again->Log(kGroup)->last, Lsn(9));
}

// Before the log says that the group is replicated it is local, and whole.
TEST(StoreRaftTest, APowerCutWhileALocalGroupBecomesReplicatedLosesNothing) {
  for (int at = 0; at < 4; ++at) {
    Disks disks;
    {
      RunningStore lone(disks);
      for (int i = 1; i <= 7; ++i) {
        ASSERT_TRUE(lone.Put(kGroup, "k" + std::to_string(i), "v"));
      }
      disks = disks.AfterPowerCut();
    }
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
      calls = 0;
      ASSERT_TRUE(store->Found(kGroup, IdentityOf(50, "k"), BaseAt(7), {1, 50}).ok());
    }
    ManualStore again(cut ? *cut : disks.AfterPowerCut());
    ASSERT_TRUE(again.recovered.ok());
    EXPECT_EQ(again->Record(kGroup).totals, (Totals{7, 7})) << at;
    EXPECT_EQ(again.Get("k7"), "v") << at;
    EXPECT_TRUE(!again->Log(kGroup) || !again->Log(kGroup)->broken()) << at;
  }
}

// --- without threads -----------------------------------------------------------------------------

std::string RunFromSeed(uint64_t seed) {
  SeededRandom random(seed);
  std::string story;
  Disks disks;
  {
    Founded store(disks);
    uint64_t last = 1;
    std::vector<LogEntry> entries;
    for (int step = 0; step < 300; ++step) {
      switch (random.Next() % 5) {
        case 0:
        case 1: {
          entries.push_back(PutOf("k" + std::to_string(random.Next() % 20), "v"));
          ++last;
          store->Append({.group = kGroup, .first = Lsn(last), .entries = {entries.back()}}, nullptr,
                        [&story, last](const Status& status) {
                          story += "a" + std::to_string(last) + (status.ok() ? "" : "!");
                        });
          break;
        }
        case 2: story += store->CommitStep() ? "C" : "-"; break;
        case 3: {
          uint64_t durable = store->Log(kGroup)->last.value();
          uint64_t first = store->Record(kGroup).applied.value() + 1;
          std::vector<LogEntry> ready(entries.begin() + static_cast<ptrdiff_t>(first - 2),
                                      entries.begin() + static_cast<ptrdiff_t>(durable - 1));
          store->Apply(kGroup, Lsn(first), ready, nullptr,
                       [&story](const Status&, const ReplicaRecord& record) {
                         story += "r" + record.applied.ToString();
                       });
          break;
        }
        case 4: story += store->ApplyStep() ? "A" : "-"; break;
      }
    }
    story += std::to_string(store->HashSpans(kGroup, IdentityOf(50, "k").spans, "")->hash);
  }
  return story;
}

TEST(StoreRaftTest, WithoutThreadsASeedTellsTheWholeStory) {
  EXPECT_EQ(RunFromSeed(1), RunFromSeed(1));
  EXPECT_NE(RunFromSeed(1), RunFromSeed(2));
}

TEST(StoreRaftTest, WithoutThreadsStopFinishesAndTheDestructorDoesNot) {
  for (bool stop : {false, true}) {
    Disks disks;
    {
      Founded store(disks);
      store->Append({.group = kGroup, .first = Lsn(2), .entries = {PutOf("k", "v")}}, nullptr,
                    [](const Status&) {});
      if (stop) {
        store->Stop();
      }
    }
    ManualStore again(disks.AfterPowerCut());
    EXPECT_EQ(again->Log(kGroup)->last, Lsn(stop ? 2 : 1));
  }
}

}  // namespace
}  // namespace orrery::storage
