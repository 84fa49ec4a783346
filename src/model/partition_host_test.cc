// What happens to the data of a container that is dropped.
#include "model/partition_host.h"

#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "model/test_node.h"

namespace orrery::model {
namespace {

using storage::Space;

constexpr std::string_view kUnique =
    R"({"id":"c","partitionKey":{"paths":["/pk"]},
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})";
constexpr int kItems = 20;

void Fill(TestNode& node, const Container& container) {
  for (int i = 0; i < kItems; ++i) {
    std::string n = std::to_string(i);
    std::string key = "k" + std::to_string(i % 3);
    std::string json = R"({"id":")" + n + R"(","pk":")" + key + R"(","v":)" + n + "}";
    ASSERT_EQ(node.Write(container, key, {Create(json)}).code(), Code::kOk);
  }
}

bool Cleared(TestNode& node) {
  return Eventually([&] { return node.View()->dropped.empty(); });
}

TEST(PartitionHostTest, TheDataOfADroppedContainerIsClearedAndThatOfOthersStays) {
  TestNode node{TestMachine()};
  auto keep = node.MakeContainer(R"({"id":"keep","partitionKey":{"paths":["/pk"]}})");
  auto container = node.MakeContainer(kUnique, {.manual = 20'000});
  Fill(node, *keep);
  Fill(node, *container);
  ASSERT_TRUE(node.Run(node.catalog().DropContainer("dbs/d/colls/c", "")).ok());
  ASSERT_TRUE(Cleared(node));
  EXPECT_EQ(node.Counted(*container), storage::Totals());
  EXPECT_EQ(node.CountKeys(Space::kIndex), 0u);
  EXPECT_EQ(node.CountKeys(Space::kReplica), 2u) << "of the catalog and of the other container";
  EXPECT_EQ(node.Counted(*keep).items, kItems);
  EXPECT_EQ(node.replicas().All().size(), 1u);
}

TEST(PartitionHostTest, AnOperationOnADroppedContainerFindsNoOwner) {
  TestNode node{TestMachine()};
  auto container = node.MakeContainer(kUnique);
  ASSERT_TRUE(node.Run(node.catalog().DropContainer("dbs/d/colls/c", "")).ok());
  ASSERT_TRUE(Cleared(node));
  EXPECT_EQ(node.ReadReply(*container, "a", "1").status.code(), Code::kOwnerNotFound);
}

TEST(PartitionHostTest, ADroppedDatabaseTakesItsContainersAlong) {
  TestNode node{TestMachine()};
  auto container = node.MakeContainer(kUnique);
  Fill(node, *container);
  ASSERT_TRUE(node.Run(node.catalog().DropDatabase("d", "")).ok());
  ASSERT_TRUE(Cleared(node));
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
  EXPECT_EQ(node.Find("dbs/d/colls/c"), nullptr);
}

TEST(PartitionHostTest, AContainerOfTheSameNameStartsEmpty) {
  TestNode node{TestMachine()};
  Fill(node, *node.MakeContainer(kUnique));
  ASSERT_TRUE(node.Run(node.catalog().DropContainer("dbs/d/colls/c", "")).ok());
  auto again = node.MakeContainer(kUnique);
  EXPECT_EQ(node.Counted(*again), storage::Totals());
  Fill(node, *again);
  ASSERT_TRUE(Cleared(node));
  EXPECT_EQ(node.Counted(*again).items, kItems);
  EXPECT_EQ(node.TotalsOf(*again), node.Counted(*again));
}

runtime::Task<int> WriteUntilGone(TestNode& node, const Container& container, std::string key) {
  for (int i = 0;; ++i) {
    std::string json = R"({"id":")" + std::to_string(i) + R"(","pk":")" + key + R"("})";
    Written written = co_await node.WriteTask(container, key, {Upsert(json)});
    if (written.code() != Code::kOk) {
      EXPECT_TRUE(written.code() == Code::kOwnerNotFound || written.code() == Code::kMoved)
          << written.reply.status.ToString();
      co_return i;
    }
  }
}

runtime::Task<int> DropSoon(TestNode& node) {
  co_await runtime::Sleep(std::chrono::milliseconds(5));
  Status status = co_await node.catalog().DropContainer("dbs/d/colls/c", "");
  EXPECT_TRUE(status.ok()) << status.ToString();
  co_return 0;
}

TEST(PartitionHostTest, WritesThatRunWhileTheirContainerIsDroppedLeaveNothing) {
  for (int round = 0; round < 5; ++round) {
    TestNode node(TestMachine(), {.loopback = round % 2 == 1});
    auto container =
        node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/pk"]}})", {.manual = 1'000'000});
    std::vector<runtime::Task<int>> tasks;
    for (int i = 0; i < 6; ++i) {
      tasks.push_back(WriteUntilGone(node, *container, "k" + std::to_string(i)));
    }
    tasks.push_back(DropSoon(node));
    node.RunAll(std::move(tasks));
    ASSERT_TRUE(Cleared(node));
    EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
    EXPECT_EQ(node.CountKeys(Space::kReplica), 1u);
  }
}

// Drops a container and cuts the power before the `at`-th change of a disk since. None: there were
// fewer changes.
std::optional<TestMachine> CutWhileDropping(int at) {
  TestMachine machine;
  std::mutex mutex;
  int calls = -1;  // not yet counting
  std::optional<TestMachine> cut;
  TestNodeOptions options;
  options.store.trail_entries = 4;
  options.before_log = [&](storage::WatchedEngine::Call) {
    std::lock_guard lock(mutex);
    if (calls >= 0 && calls++ == at) {
      cut = machine.AfterPowerCut();
    }
    return Status::Ok();
  };
  options.before_state = options.before_log;
  {
    TestNode node(machine, options);
    auto keep = node.MakeContainer(R"({"id":"keep","partitionKey":{"paths":["/pk"]}})");
    Fill(node, *keep);
    Fill(node, *node.MakeContainer(kUnique));
    EXPECT_TRUE(node.store().CutLog().ok());
    {
      std::lock_guard lock(mutex);
      calls = 0;
    }
    EXPECT_TRUE(node.Run(node.catalog().DropContainer("dbs/d/colls/c", "")).ok());
    EXPECT_TRUE(Cleared(node));
    std::lock_guard lock(mutex);
    calls = -1;
  }
  return cut;
}

TEST(PartitionHostTest, APowerCutAtAnyPointOfDroppingLeavesAllOrNothing) {
  int at = 0;
  for (; at < 100; ++at) {
    std::optional<TestMachine> cut = CutWhileDropping(at);
    if (!cut) {
      break;
    }
    TestNode node(*cut, {.background = true});
    ASSERT_TRUE(node.recovered().ok()) << "before change " << at;
    ASSERT_TRUE(Cleared(node)) << "before change " << at;
    auto keep = node.Find("dbs/d/colls/keep");
    ASSERT_NE(keep, nullptr);
    EXPECT_EQ(node.Counted(*keep).items, kItems);
    auto dropped = node.Find("dbs/d/colls/c");
    size_t left = dropped == nullptr ? 0 : kItems;
    EXPECT_EQ(node.CountKeys(Space::kItems), left + kItems) << "before change " << at;
    EXPECT_EQ(node.CountKeys(Space::kIndex), left) << "before change " << at;
    EXPECT_EQ(node.CountKeys(Space::kReplica), dropped == nullptr ? 2u : 3u)
        << "before change " << at;
  }
  EXPECT_GE(at, 5);
}

}  // namespace
}  // namespace orrery::model
