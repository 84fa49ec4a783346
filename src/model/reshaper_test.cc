// Splits and merges that meet with what goes wrong at the wrong moment.
#include "model/reshaper.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "model/test_node.h"
#include "partition/reshape.h"

namespace orrery::model {
namespace {

using partition::Replica;

constexpr std::string_view kContainer = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";

// A replica set with three voters, of which this node leads.
class VotedSet final : public replication::ReplicaSet {
 public:
  void SetListener(replication::ApplyListener* listener) override { listener_ = listener; }
  bool leads() const override { return true; }
  bool replicated() const override { return true; }
  uint64_t term() const override { return 1; }
  runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t) override {
    if (set.frozen) {
      frozen += set.frozen->empty() ? 0 : 1;
      listener_->OnFrozen(*set.frozen);
    }
    co_return Lsn(++last_);
  }
  runtime::Task<Status> ReadBarrier() override { co_return Status::Ok(); }
  Result<Holders> HoldersOf(Lsn) const override {
    Holders known{.term = 1, .voters = {NodeId(1), NodeId(2), NodeId(3)}};
    // What was written before it died a silent one has, what comes then it has not.
    known.holders = {NodeId(1), NodeId(2)};
    if (frozen == 0) {
      known.holders.emplace_back(3);
    }
    if (silent) {
      known.silent.emplace_back(3);
    }
    return known;
  }
  Lsn applied() const override { return Lsn(last_); }
  storage::Totals totals() const override { return {}; }

  std::atomic<bool> silent = false;
  std::atomic<int> frozen = 0;  // how often

 private:
  replication::ApplyListener* listener_ = nullptr;
  std::atomic<uint64_t> last_ = 1;
};

class ReshaperTest : public testing::Test {
 protected:
  ~ReshaperTest() override {
    if (reshaper) {
      reshaper->Stop();
    }
  }
  void Start(ReshaperOptions options = {}) {
    reshaper = std::make_unique<Reshaper>(node.catalog(), node.store(), node.workers(),
                                          node.clock(), node.replicas(), options);
    reshaper->SetRouter(&node.router());
    reshaper->SetInherit([this](PartitionId heir, std::string outcomes) {
      node.host().Inherit(heir, std::move(outcomes));
    });
    reshaper->Start();
  }
  std::shared_ptr<const Container> Find() { return node.Find("dbs/d/colls/c"); }
  // The change that is begun.
  PartitionId Begin(std::vector<PartitionId> parents) {
    Status begun = node.Run(node.catalog().BeginReshape(Find()->id, std::move(parents)));
    EXPECT_TRUE(begun.ok()) << begun.ToString();
    return Find()->reshapes.front().name();
  }
  // Waits for a condition while time goes on, with a deadline.
  template <typename F>
  bool Eventually(F condition) {
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < until) {
      node.clock().Advance(std::chrono::milliseconds(10));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return condition();
  }

  std::function<void()> before_flush;
  TestNode node{TestMachine(), {.before_state = [this](storage::WatchedEngine::Call call) {
                  if (call == storage::WatchedEngine::Call::kFlush && before_flush) {
                    before_flush();
                  }
                  return Status::Ok();
                }}};
  std::unique_ptr<Reshaper> reshaper;
};

// --- merges --------------------------------------------------------------------------------------

class MergeTest : public ReshaperTest {
 protected:
  MergeTest() {
    auto container = node.MakeContainer(kContainer, {.manual = 20'000});
    auto budget = std::make_shared<partition::Budget>(partition::RequestUnits(1000));
    for (const partition::PartitionRange& range : container->map->ranges()) {
      sets.push_back(std::make_shared<VotedSet>());
      node.replicas().Add({std::make_shared<Replica>(container->id, range, container, budget, false,
                                                     node.workers().at(0), sets.back(), services)});
      parents.push_back(range.id);
    }
  }
  ~MergeTest() override {
    reshaper->Stop();
    reshaper.reset();
    node.replicas().Remove(parents);
  }
  bool CalledOff() { return Find()->reshapes.empty() && Find()->map->ranges().size() == 2; }

  partition::ReplicaServices services{
      .state = node.state(), .workers = node.workers(), .clock = node.clock()};
  std::vector<std::shared_ptr<VotedSet>> sets;
  std::vector<PartitionId> parents;
};

TEST_F(MergeTest, WithADeadVoterOfEitherItIsCalledOffAndNobodyWasFrozen) {
  for (size_t dead : {0, 1}) {
    sets[dead]->silent = true;
    sets[1 - dead]->silent = false;
    Begin(parents);
    if (!reshaper) {
      Start();
    }
    EXPECT_TRUE(Eventually([this] { return CalledOff(); }));
    EXPECT_EQ(sets[0]->frozen, 0);
    EXPECT_EQ(sets[1]->frozen, 0);
  }
}

TEST_F(MergeTest, WithAVoterThatDiesWhenTheyAreFrozenTheyGoOn) {
  Begin(parents);
  Start();
  EXPECT_TRUE(Eventually([this] { return CalledOff(); }));
  EXPECT_EQ(sets[0]->frozen, 1);
  EXPECT_EQ(sets[1]->frozen, 1);
  for (PartitionId id : parents) {
    EXPECT_TRUE(Eventually([&] { return !node.replicas().Find(id)->is_frozen(); }));
  }
}

// --- splits --------------------------------------------------------------------------------------

// One that led before found no place to cut and calls the split off; the next one finds a place.
TEST_F(ReshaperTest, APartitionGoesOnIfItsSplitIsCalledOffWhenItIsFrozen) {
  auto container = node.MakeContainer(kContainer, {.manual = 10'000});
  auto parent = node.replicas().Find(container->map->ranges().front().id);
  const PartitionId name = Begin({parent->id()});
  auto freeze = [&]() -> runtime::Task<Status> {
    Result<Replica::Turn> turn = co_await parent->AcquireAll();
    storage::WriteSet set;
    set.frozen = partition::FreezeMark{.heir = name, .cut = "\x10"}.Encode();
    set.time = parent->NextTime();
    Result<Lsn> lsn = co_await parent->Commit(std::move(set), *turn);
    co_return lsn ? Status::Ok() : lsn.error();
  };
  auto there = [&]() -> runtime::Task<Status> {
    co_return co_await runtime::OnWorker(parent->worker(), freeze);
  };
  ASSERT_TRUE(node.Run(there()).ok());
  ASSERT_TRUE(parent->is_frozen());
  ASSERT_TRUE(node.Run(node.catalog().AbortReshape(container->id, name)).ok());
  Start();
  EXPECT_TRUE(Eventually([&] { return !parent->is_frozen(); }));
  EXPECT_EQ(node.Write(*container, "a", {Create(R"({"id":"1","pk":"a"})")}).code(), Code::kOk);
  parent.reset();
}

// As many as are noted change each time between the walk and the freeze.
TEST_F(ReshaperTest, APartitionThatChangesALotIsSplitAllTheSameAndItsSizesAreExact) {
  auto container = node.MakeContainer(kContainer, {.manual = 10'000});
  const PartitionId parent = container->map->ranges().front().id;
  // The node flushes once more when it ends, after the test.
  auto written = std::make_shared<std::atomic<int>>(0);
  auto write = [this, container, written](int count) {
    for (int i = 0; i < count; ++i) {
      std::string key = std::to_string(++*written);
      Written done = node.Write(*container, key, {Create(R"({"id":"1","pk":")" + key + R"("})")});
      EXPECT_EQ(done.code(), Code::kOk);
    }
  };
  write(20);
  before_flush = [this, parent, write] {
    auto replica = node.replicas().Find(parent);
    if (replica != nullptr && !replica->is_frozen()) {
      write(5);
    }
  };
  Begin({parent});
  Start({.watched_max = 4});
  EXPECT_TRUE(Eventually([&] { return Find()->map->ranges().size() == 2; }));
  reshaper->Stop();
  reshaper.reset();
  EXPECT_GT(*written, 20);
  ASSERT_EQ(Find()->map->ranges().size(), 2u);
  for (const partition::PartitionRange& range : Find()->map->ranges()) {
    storage::Totals counted;
    storage::KeySpan span = storage::ItemSpan(container->id, range.range);
    auto at = node.state().NewIterator(storage::Index(storage::Space::kItems), span.begin, span.end,
                                       nullptr);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      counted.bytes += static_cast<int64_t>(at->key().size() + at->value().size());
      counted.items += 1;
    }
    EXPECT_EQ(node.replicas().Find(range.id)->totals(), counted) << range.id.ToString();
  }
}

}  // namespace
}  // namespace orrery::model
