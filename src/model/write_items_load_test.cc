// Writes in random order, side by side, and with the power cut in between.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/items.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

using runtime::Task;

constexpr std::string_view kPlain = R"({"id":"c","partitionKey":{"paths":["/pk"]}})";
constexpr std::string_view kUnique =
    R"({"id":"u","partitionKey":{"paths":["/pk"]},"defaultTtl":30,
        "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})";

class Chooser {
 public:
  explicit Chooser(uint64_t seed) : random_(seed) {}
  uint64_t Below(uint64_t count) { return random_.Next() % count; }

 private:
  SeededRandom random_;
};

ItemStep RandomStep(Chooser& choose) {
  std::string id = "i" + std::to_string(choose.Below(6));
  std::string json = R"({"id":")" + id + R"(","pk":"a","v":)" + std::to_string(choose.Below(8)) +
                     R"(,"x":")" + std::string(choose.Below(40), 'x') + "\"";
  if (choose.Below(4) == 0) {
    json += R"(,"ttl":)" + std::to_string(1 + choose.Below(20));
  }
  json += "}";
  switch (choose.Below(6)) {
    case 0: return Create(json);
    case 1: return Replace(json);
    case 2: return Delete(id);
    case 3:
      return PatchStep(
          id, R"([{"op":"set","path":"/v","value":)" + std::to_string(choose.Below(8)) + "}]");
    default: return Upsert(json);
  }
}

// Which item holds which value, read from the items themselves; fails if two live ones share one.
std::map<std::string, std::string> HeldValues(TestNode& node, const Container& container) {
  std::map<std::string, std::string> held;
  auto span = storage::ItemSpan(container.id, {});
  auto at = node.state().NewIterator(storage::Index(storage::Space::kItems), span.begin, span.end);
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    auto item = storage::DecodeItem(at->value());
    if (!item->header.Expired(container.default_ttl, node.clock().Wall())) {
      types::Value root = types::Value::Object(item->payload);
      std::string value;
      types::AppendJson(types::Member(root, "v"), value);
      std::string id(types::Member(root, "id").string());
      auto [other, fresh] = held.emplace(value, id);
      EXPECT_TRUE(fresh) << other->second << " and " << id << " both hold " << value;
    }
  }
  return held;
}

class RandomWritesTest : public testing::TestWithParam<uint64_t> {};

INSTANTIATE_TEST_SUITE_P(Seeds, RandomWritesTest, testing::Range<uint64_t>(1, 9));

TEST_P(RandomWritesTest, TotalsStayExactAndUniqueValuesUnique) {
  Chooser choose(GetParam());
  TestMachine machine;
  auto node = std::make_unique<TestNode>(machine);
  auto container = node->MakeContainer(kUnique);
  for (int i = 0; i < 400; ++i) {
    std::vector<ItemStep> steps;
    for (uint64_t count = 1 + choose.Below(4); count > 0; --count) {
      steps.push_back(RandomStep(choose));
    }
    node->Write(*container, "a", std::move(steps));
    if (choose.Below(10) == 0) {
      node->clock().Advance(std::chrono::seconds(choose.Below(10)));
    }
    if (choose.Below(20) == 0) {
      DeleteItems sweep;
      node->Execute(*container, Address(*container, "a").epk, sweep);
    }
    if (choose.Below(100) == 0) {
      machine = machine.AfterPowerCut();
      node = nullptr;
      node = std::make_unique<TestNode>(machine);
      container = node->Find("dbs/d/colls/u");
      ASSERT_NE(container, nullptr);
    }
    ASSERT_EQ(node->TotalsOf(*container), node->Counted(*container)) << "after step " << i;
    HeldValues(*node, *container);
    ASSERT_FALSE(HasFailure()) << "after step " << i;
  }
}

// --- side by side --------------------------------------------------------------------------------

Task<int> Increment(TestNode& node, const Container& container, bool batch, int times) {
  int done = 0;
  for (int i = 0; i < times; ++i) {
    std::vector<ItemStep> steps = {PatchStep("1", R"([{"op":"incr","path":"/n","value":1}])")};
    if (batch) {
      steps.push_back(PatchStep("2", R"([{"op":"incr","path":"/n","value":1}])"));
    }
    Written written = co_await node.WriteTask(container, "a", std::move(steps));
    done += written.code() == Code::kOk ? 1 : 0;
  }
  co_return done;
}

class SideBySideTest : public testing::TestWithParam<bool> {};

INSTANTIATE_TEST_SUITE_P(Ways, SideBySideTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Loopback" : "Direct"; });

TEST_P(SideBySideTest, NoIncrementOfSingleWritesAndBatchesIsLost) {
  constexpr int kTasks = 16;
  constexpr int kTimes = 25;
  TestNode node(TestMachine(), {.loopback = GetParam()});
  auto container = node.MakeContainer(kPlain);
  node.Write(*container, "a", {Create(R"({"id":"1","pk":"a","n":0})")});
  node.Write(*container, "a", {Create(R"({"id":"2","pk":"a","n":0})")});
  std::vector<Task<int>> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(Increment(node, *container, i % 4 == 0, kTimes));
  }
  int done = 0;
  for (int count : node.RunAll(std::move(tasks))) {
    done += count;
  }
  EXPECT_EQ(done, kTasks * kTimes);
  EXPECT_EQ(node.ReadJson(*container, "a", "1"),
            R"({"id":"1","pk":"a","n":)" + std::to_string(kTasks * kTimes) + "}");
  EXPECT_EQ(node.ReadJson(*container, "a", "2"),
            R"({"id":"2","pk":"a","n":)" + std::to_string(kTasks / 4 * kTimes) + "}");
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
}

TEST_P(SideBySideTest, OneOfManyCreatesOfTheSameIdSucceeds) {
  TestNode node(TestMachine(), {.loopback = GetParam()});
  auto container = node.MakeContainer(kPlain);
  for (int round = 0; round < 20; ++round) {
    std::string json = R"({"id":")" + std::to_string(round) + R"(","pk":"a"})";
    std::vector<Task<Written>> tasks;
    for (int i = 0; i < 8; ++i) {
      tasks.push_back(node.WriteTask(*container, "a", {Create(json)}));
    }
    int created = 0;
    for (const Written& written : node.RunAll(std::move(tasks))) {
      created += written.code() == Code::kOk ? 1 : 0;
      EXPECT_TRUE(written.code() == Code::kOk || written.code() == Code::kAlreadyExists);
    }
    EXPECT_EQ(created, 1);
  }
}

Task<int> Swap(TestNode& node, const Container& container, int seed) {
  Chooser choose(seed);
  for (int i = 0; i < 30; ++i) {
    std::string a = std::to_string(choose.Below(2));
    std::string b = a == "0" ? "1" : "0";
    co_await node.WriteTask(container, "a",
                            {Upsert(R"({"id":"x","pk":"a","v":)" + a + "}"),
                             Upsert(R"({"id":"y","pk":"a","v":)" + b + "}")});
  }
  co_return 0;
}

Task<int> ReadPairs(TestNode& node, const Container& container) {
  int torn = 0;
  for (int i = 0; i < 60; ++i) {
    ReadFeed feed;
    partition::Reply reply = co_await node.ExecuteTask(container, "", feed);
    auto page = ReadFeed::Page::Decode(reply.body);
    if (page->items.size() == 2 &&
        JsonOf(page->items[0]).substr(14) == JsonOf(page->items[1]).substr(14)) {
      ++torn;
    }
  }
  co_return torn;
}

TEST_P(SideBySideTest, APageNeverShowsHalfABatch) {
  TestNode node(TestMachine(), {.loopback = GetParam()});
  auto container = node.MakeContainer(kPlain);
  std::vector<Task<int>> tasks;
  for (int i = 0; i < 3; ++i) {
    tasks.push_back(Swap(node, *container, i));
    tasks.push_back(ReadPairs(node, *container));
  }
  for (int torn : node.RunAll(std::move(tasks))) {
    EXPECT_EQ(torn, 0);
  }
}

// Each entry of the log in order: their times must grow, also over a restart with the clock set
// back.
std::vector<WallTime> TimesInTheLog(TestMachine machine, GroupId group) {
  std::vector<WallTime> times;
  storage::Store store(storage::OpenMemoryEngine(machine.log, {.spaces = storage::LogSpaces()}),
                       storage::OpenMemoryEngine(machine.state, {.spaces = storage::StateSpaces(),
                                                                 .atomic_flush = true,
                                                                 .log_files = false}),
                       {});
  Status status = store.Recover([&](GroupId of, Lsn, const storage::WriteSetView& set) {
    if (of == group) {
      times.push_back(set.time);
    }
  });
  EXPECT_TRUE(status.ok()) << status.ToString();
  return times;
}

Task<int> WriteMany(TestNode& node, const Container& container, std::string key, int times) {
  for (int i = 0; i < times; ++i) {
    std::string json = R"({"id":")" + std::to_string(i) + R"(","pk":")" + key + R"("})";
    Written written = co_await node.WriteTask(container, key, {Upsert(json)});
    EXPECT_EQ(written.code(), Code::kOk) << written.reply.status.ToString();
  }
  co_return times;
}

TEST_P(SideBySideTest, PartitionTimeGrowsInTheOrderOfTheLogAlsoWhenTheClockIsSetBack) {
  TestMachine machine;
  for (int round = 0; round < 2; ++round) {
    TestNode node(machine, {.loopback = GetParam()});
    auto container = round == 0 ? node.MakeContainer(kPlain) : node.Find("dbs/d/colls/c");
    std::vector<Task<int>> tasks;
    for (int i = 0; i < 8; ++i) {
      tasks.push_back(WriteMany(node, *container, "k" + std::to_string(i), 6));
    }
    node.RunAll(std::move(tasks));
    node.clock().Advance(std::chrono::seconds(-100));
  }
  std::vector<WallTime> times = TimesInTheLog(machine.AfterPowerCut(), GroupId(1));
  ASSERT_EQ(times.size(), 96u);
  for (size_t i = 1; i < times.size(); ++i) {
    EXPECT_LT(times[i - 1], times[i]) << i;
  }
}

// --- power cuts ----------------------------------------------------------------------------------

TEST(PowerCutTest, ARepetitionAfterAPowerCutGetsTheFirstOutcome) {
  const storage::OperationId id{7, 9};
  const std::vector<ItemStep> steps = {Create(R"({"id":"1","pk":"a"})"),
                                       Create(R"({"id":"2","pk":"a"})")};
  TestMachine machine;
  Written first;
  {
    TestNode node(machine);
    auto container = node.MakeContainer(kPlain);
    first = node.Write(*container, "a", steps, id);
    node.Write(*container, "a", {Upsert(R"({"id":"3","pk":"a"})")});
    machine = machine.AfterPowerCut();
  }
  TestNode node(machine);
  Written again = node.Write(*node.Find("dbs/d/colls/c"), "a", steps, id);
  EXPECT_EQ(again.code(), Code::kOk) << again.reply.status.ToString();
  EXPECT_EQ(again.reply.body, first.reply.body);
  EXPECT_EQ(again.reply.lsn, first.reply.lsn);
}

TEST(PowerCutTest, ARepetitionAfterAnOrdinaryRestartGetsTheFirstOutcome) {
  const storage::OperationId id{7, 9};
  TestMachine machine;
  {
    TestNode node(machine);
    node.Write(*node.MakeContainer(kPlain), "a", {Create(R"({"id":"1","pk":"a"})")}, id);
  }
  TestNode node(machine);
  Written again =
      node.Write(*node.Find("dbs/d/colls/c"), "a", {Create(R"({"id":"1","pk":"a"})")}, id);
  EXPECT_EQ(again.code(), Code::kOk);
}

TEST(PowerCutTest, WhatWasAcknowledgedIsThereAfterwardsWithExactTotals) {
  TestMachine machine;
  TestMachine after;
  {
    TestNode node(machine);
    auto container = node.MakeContainer(kUnique);
    Chooser choose(3);
    for (int i = 0; i < 50; ++i) {
      node.Write(*container, "a", {RandomStep(choose), RandomStep(choose)});
      if (i == 20) {
        ASSERT_TRUE(node.store().CutLog().ok());
      }
    }
    after = machine.AfterPowerCut();
  }
  TestNode whole(machine);
  TestNode cut(after);
  auto container = cut.Find("dbs/d/colls/u");
  ASSERT_NE(container, nullptr);
  for (int i = 0; i < 6; ++i) {
    std::string id = "i" + std::to_string(i);
    EXPECT_EQ(cut.ReadReply(*container, "a", id).body, whole.ReadReply(*container, "a", id).body);
  }
  EXPECT_EQ(cut.TotalsOf(*container), whole.TotalsOf(*container));
  EXPECT_EQ(cut.TotalsOf(*container), cut.Counted(*container));
  EXPECT_EQ(cut.CountKeys(storage::Space::kIndex), whole.CountKeys(storage::Space::kIndex));
}

TEST(PowerCutTest, ANodeWhoseLogFailedServesPointReadsAndRefusesWrites) {
  std::atomic<bool> broken = false;
  TestNodeOptions options;
  options.before_log = [&](storage::WatchedEngine::Call) {
    return broken ? Status(Code::kUnknownOutcome, "the disk is gone") : Status::Ok();
  };
  TestNode node(TestMachine(), options);
  auto container = node.MakeContainer(kPlain);
  node.Write(*container, "a", {Create(R"({"id":"1","pk":"a"})")});
  broken = true;
  EXPECT_EQ(node.Write(*container, "a", {Create(R"({"id":"2","pk":"a"})")}).code(),
            Code::kUnknownOutcome);
  broken = false;
  Code later = node.Write(*container, "a", {Create(R"({"id":"3","pk":"a"})")}).code();
  EXPECT_TRUE(later == Code::kNotLeader || later == Code::kUnavailable);
  EXPECT_EQ(node.ReadJson(*container, "a", "1"), R"({"id":"1","pk":"a"})");
  EXPECT_EQ(node.ReadJson(*container, "a", "3"), "<not found>");
}

}  // namespace
}  // namespace orrery::model
