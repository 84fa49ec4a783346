#include "partition/logical_sizes.h"

#include <map>

#include <gtest/gtest.h>

#include "partition/logical_walk.h"
#include "storage/log_format.h"
#include "storage/store.h"

namespace orrery::partition {
namespace {

using runtime::Task;
using storage::Index;
using storage::Space;
using Room = LogicalSizes::Room;

constexpr ContainerId kContainer(7);
constexpr GroupId kGroup(3);
constexpr int64_t kLimit = 100'000;

std::string PrefixOf(const std::string& key) {
  types::PartitionKey value{{types::KeyComponent::String(key)}};
  types::PartitionKeyDefinition definition{.paths = {"/pk"}};
  return storage::LogicalPartitionPrefix(kContainer, types::ComputeEpk(definition, value), value);
}

class FakeSet final : public replication::ReplicaSet {
 public:
  void SetListener(replication::ApplyListener*) override {}
  bool leads() const override { return true; }
  uint64_t term() const override { return term_now; }
  Task<Result<Lsn>> Commit(storage::WriteSet, uint64_t) override { co_return Lsn(1); }
  Task<Status> ReadBarrier() override { co_return Status::Ok(); }
  Lsn applied() const override { return last; }
  storage::Totals totals() const override { return all; }

  uint64_t term_now = 1;
  Lsn last;
  storage::Totals all;
};

class LogicalSizesTest : public testing::Test {
 protected:
  LogicalSizesTest() { sizes.SetLimit(kLimit); }
  ~LogicalSizesTest() override { pool.Abandon(); }

  // An item of `bytes`, key included, in the state and in the totals.
  void Store(const std::string& key, const std::string& id, int64_t bytes) {
    std::string item = PrefixOf(key) + id;
    storage::Batch batch;
    batch.Put(Index(Space::kItems), item,
              std::string(static_cast<size_t>(bytes) - item.size(), 'x'));
    set.all.bytes += bytes;
    set.all.items += 1;
    set.last = Lsn(set.last.value() + 1);
    batch.Put(Index(Space::kReplica), storage::ReplicaKey(kGroup),
              storage::EncodeRecord({.applied = set.last, .totals = set.all}));
    ASSERT_TRUE(state->Write(batch, storage::WriteMode::kNoLog).ok());
  }
  // A write from its begin to its end.
  void Write(const std::string& key, const std::string& id, int64_t bytes) {
    auto ticket = sizes.Begin(PrefixOf(key), bytes);
    Store(key, id, bytes);
    sizes.End(PrefixOf(key), bytes, ticket, set.last);
  }
  void Spawn(Task<> task) { pool.at(0).Spawn(std::move(task)); }
  void RunAll() {
    pool.RunReady();
    while (pool.blocking_waiting() > 0) {
      pool.RunBlocking();
      pool.RunReady();
    }
  }
  void Walk() {
    Spawn(sizes.Walk([] { return false; }));
    RunAll();
  }
  void Measure(const std::string& key) {
    auto measure = [](LogicalSizes& sizes, std::string prefix, Status& result) -> Task<> {
      result = co_await sizes.Measure(std::move(prefix));
    };
    Spawn(measure(sizes, PrefixOf(key), measured));
  }

  ManualClock clock;
  runtime::ManualTime time{clock};
  runtime::WorkerPool pool{1, 1, &time};
  std::unique_ptr<storage::Engine> state =
      storage::OpenMemoryEngine(storage::MakeMemoryDisk(), storage::StateEngineOptions());
  FakeSet set;
  LogicalSizes sizes{kGroup, storage::ItemSpan(kContainer, {}), *state, pool, set};
  Status measured = Status(Code::kUnavailable);
};

TEST_F(LogicalSizesTest, BelowTheLimitThereIsRoomWithoutALook) {
  Write("a", "1", 60'000);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 40'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 40'001), Room::kUnknown);
}

TEST_F(LogicalSizesTest, AWalkIsWantedFromHalfOfTheLimitOn) {
  Write("a", "1", 49'999);
  EXPECT_FALSE(sizes.WantsWalk());
  Write("b", "1", 1'000);
  EXPECT_TRUE(sizes.WantsWalk());
}

TEST_F(LogicalSizesTest, AfterAWalkLargeOnesAreKnownExactlyAndSmallOnesHaveRoom) {
  Write("large", "1", 60'000);
  Write("large", "2", 30'000);
  for (int i = 0; i < 20; ++i) {
    Write("k" + std::to_string(i), "1", 2'000);
  }
  Walk();
  EXPECT_FALSE(sizes.WantsWalk());
  EXPECT_EQ(sizes.largest(), 90'000);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 10'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 10'001), Room::kNo);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("k1"), 10'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("new"), 75'000), Room::kYes);
}

TEST_F(LogicalSizesTest, ATrackedOneIsFollowedWriteByWrite) {
  Write("large", "1", 90'000);
  Write("other", "1", 20'000);
  Walk();
  Write("large", "2", 5'000);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 5'001), Room::kNo);
  sizes.End(PrefixOf("large"), -40'000, {}, Lsn(99));
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 45'000), Room::kYes);
}

TEST_F(LogicalSizesTest, WhatIsOnItsWayTakesRoomUntilItFails) {
  Write("large", "1", 90'000);
  Write("other", "1", 20'000);
  Walk();
  auto ticket = sizes.Begin(PrefixOf("large"), 9'000);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 1'001), Room::kNo);
  sizes.End(PrefixOf("large"), 9'000, ticket, Error(Code::kUnavailable));
  EXPECT_EQ(sizes.RoomFor(PrefixOf("large"), 10'000), Room::kYes);
}

TEST_F(LogicalSizesTest, ASmallOneCanNotOutgrowTheLimitUnseen) {
  Write("large", "1", 60'000);
  Write("large", "2", 30'000);
  Write("small", "0", 20'000);
  Walk();
  int written = 0;
  while (sizes.RoomFor(PrefixOf("small"), 5'000) == Room::kYes) {
    Write("small", "w" + std::to_string(++written), 5'000);
    ASSERT_LE(20'000 + written * 5'000, kLimit);
  }
  EXPECT_EQ(sizes.RoomFor(PrefixOf("small"), 5'000), Room::kUnknown);
  EXPECT_TRUE(sizes.WantsWalk());
  Walk();
  EXPECT_EQ(sizes.RoomFor(PrefixOf("small"), kLimit - 20'000 - written * 5'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("small"), kLimit - 20'000 - written * 5'000 + 1), Room::kNo);
}

TEST_F(LogicalSizesTest, WithoutAWalkAnUnknownOneIsMeasured) {
  Write("a", "1", 70'000);
  Write("b", "1", 50'000);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 1'000), Room::kUnknown);
  Measure("a");
  RunAll();
  EXPECT_TRUE(measured.ok());
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 30'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 30'001), Room::kNo);
}

TEST_F(LogicalSizesTest, WhatMayBeCountedTooHighIsMeasuredAgainNowAndThen) {
  Write("a", "1", 70'000);
  Write("b", "1", 50'000);
  Walk();
  for (int i = 0; i < 3; ++i) {  // overwritten, by writes that do not look
    sizes.End(PrefixOf("a"), 10'000, sizes.Begin(PrefixOf("a"), 10'000), Lsn(set.last.value() + 1));
  }
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 1'000), Room::kNo);
  EXPECT_TRUE(sizes.Doubt(PrefixOf("a"), clock.Now()));
  EXPECT_NE(sizes.RoomFor(PrefixOf("a"), 1'000), Room::kNo);
  Measure("a");
  RunAll();
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 30'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 30'001), Room::kNo);
  EXPECT_FALSE(sizes.Doubt(PrefixOf("a"), clock.Now()));
  EXPECT_TRUE(sizes.Doubt(PrefixOf("a"), clock.Now() + std::chrono::minutes(2)));
}

// The walk vouches only for those that it did not find.
TEST_F(LogicalSizesTest, WhatIsDoubtedIsNotTakenForSmall) {
  Write("a", "1", 99'000);
  Walk();
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 2'000), Room::kNo);
  EXPECT_TRUE(sizes.Doubt(PrefixOf("a"), clock.Now()));
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 2'000), Room::kUnknown);
  Measure("a");
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 2'000), Room::kUnknown) << "while it is measured";
  RunAll();
  EXPECT_TRUE(measured.ok());
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 2'000), Room::kNo);
}

TEST_F(LogicalSizesTest, WritesWhileItIsMeasuredAreCountedOnce) {
  Write("a", "1", 60'000);
  Write("b", "1", 50'000);
  auto early = sizes.Begin(PrefixOf("a"), 1'000);
  Measure("a");
  pool.RunReady();
  Store("a", "early", 1'000);  // before the snapshot, heard of behind it
  Lsn early_lsn = set.last;
  pool.RunBlocking();  // the snapshot
  Write("a", "between", 2'000);
  sizes.End(PrefixOf("a"), 1'000, early, early_lsn);
  pool.RunReady();
  Write("a", "late", 3'000);
  RunAll();
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), kLimit - 66'000), Room::kYes);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), kLimit - 66'000 + 1), Room::kNo);
}

TEST_F(LogicalSizesTest, WhatIsOnItsWaySinceBeforeTheCountIsWaitedFor) {
  Write("a", "1", 10'000);
  auto early = sizes.Begin(PrefixOf("a"), 20'000);
  auto late = sizes.Begin(PrefixOf("b"), 50'000);
  Measure("a");
  RunAll();
  ASSERT_TRUE(measured.ok());
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 90'001), Room::kNo);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 80'000), Room::kUnknown);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 70'000), Room::kYes);
  Store("a", "2", 20'000);
  sizes.End(PrefixOf("a"), 20'000, early, set.last);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 70'001), Room::kNo);
  sizes.End(PrefixOf("b"), 50'000, late, Error(Code::kUnavailable));
}

TEST_F(LogicalSizesTest, AWriteWhoseFateIsOpenMakesAllUnknown) {
  Write("a", "1", 90'000);
  Write("b", "1", 20'000);
  Walk();
  auto ticket = sizes.Begin(PrefixOf("a"), 1'000);
  sizes.End(PrefixOf("a"), 1'000, ticket, Error(Code::kUnknownOutcome));
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 1'000), Room::kUnknown);
}

TEST_F(LogicalSizesTest, InAnotherTermAllIsForgotten) {
  Write("a", "1", 90'000);
  Write("b", "1", 20'000);
  Walk();
  set.term_now = 2;
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 1'000), Room::kUnknown);
  EXPECT_TRUE(sizes.WantsWalk());
}

TEST_F(LogicalSizesTest, AnotherLimitIsGoodAtOnce) {
  Write("a", "1", 90'000);
  Write("b", "1", 20'000);
  Walk();
  sizes.SetLimit(2 * kLimit);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 50'000), Room::kYes);
  sizes.SetLimit(0);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("a"), 1 << 30), Room::kYes);
}

TEST_F(LogicalSizesTest, OnlySoManyThatAreSmallAreTracked) {
  Write("large", "1", 60'000);
  for (int i = 0; i < 400; ++i) {
    Write("k" + std::to_string(i), "1", 200);
  }
  for (int i = 0; i < 400; ++i) {
    Measure("k" + std::to_string(i));
    RunAll();
    ASSERT_TRUE(measured.ok());
  }
  EXPECT_EQ(sizes.RoomFor(PrefixOf("k399"), kLimit), Room::kNo);
  EXPECT_EQ(sizes.RoomFor(PrefixOf("k0"), kLimit), Room::kUnknown) << "it made place for others";
}

TEST_F(LogicalSizesTest, AWalkInSlicesFindsWhatIsThere) {
  std::map<std::string, storage::Totals> wanted;
  for (int i = 0; i < 25'000; ++i) {
    std::string key = "k" + std::to_string(i % 7);
    Store(key, std::to_string(i), 150);
    wanted[PrefixOf(key)].bytes += 150;
    wanted[PrefixOf(key)].items += 1;
  }
  LogicalWalk walk{.span = storage::ItemSpan(kContainer, {})};
  std::map<std::string, storage::Totals> found;
  int slices = 0;
  for (; !walk.done; ++slices) {
    ASSERT_TRUE(walk.Go(*state, nullptr, 0,
                        [&](const std::string& prefix, const auto& totals) {
                          EXPECT_TRUE(found.emplace(prefix, totals).second);
                        })
                    .ok());
    std::string bytes;
    Encoder encoder(bytes);
    walk.Encode(encoder);
    Decoder decoder(bytes);
    storage::KeySpan span = walk.span;
    walk = LogicalWalk::Decode(decoder);
    walk.span = span;
    ASSERT_TRUE(decoder.done());
  }
  EXPECT_EQ(slices, 3);
  EXPECT_EQ(found, wanted);
}

}  // namespace
}  // namespace orrery::partition
