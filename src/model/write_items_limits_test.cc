// Logical partitions and fixed containers that are full.
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
constexpr ThroughputRequest kUnlimited{.manual = 100'000};  // the clock stands still

std::string Item(const std::string& id, const std::string& key, size_t bytes) {
  return R"({"id":")" + id + R"(","pk":")" + key + R"(","x":")" + std::string(bytes, 'x') + "\"}";
}

// What a logical partition holds, by a look at every item.
int64_t SizeOf(TestNode& node, const Container& container, const std::string& key) {
  ItemAddress address = Address(container, key);
  std::string prefix = storage::LogicalPartitionPrefix(container.id, address.epk, address.key);
  auto at = node.state().NewIterator(storage::Index(storage::Space::kItems), prefix,
                                     storage::PrefixEnd(prefix));
  int64_t bytes = 0;
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    bytes += static_cast<int64_t>(at->key().size() + at->value().size());
  }
  return bytes;
}

class FullTest : public testing::TestWithParam<bool> {
 protected:
  TestNodeOptions Options() const {
    TestNodeOptions options;
    options.background = GetParam();  // with and without walks over the partitions
    options.limits.logical_bytes = 64 << 10;
    options.limits.fixed_bytes = 96 << 10;
    options.limits.partition_throughput = 1'000'000;
    options.host.sweep_interval = std::chrono::milliseconds(50);
    return options;
  }
  // Fills a logical partition until something is refused; gives the refusal.
  static Written Fill(TestNode& node, const Container& container, const std::string& key,
                      size_t item_bytes = 4'000) {
    for (int i = 0;; ++i) {
      Written written =
          node.Write(container, key, {Create(Item(std::to_string(i), key, item_bytes))});
      if (written.code() != Code::kOk) {
        return written;
      }
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Walks, FullTest, testing::Bool());

TEST_P(FullTest, AFullLogicalPartitionTakesNoMoreAndTheOthersDo) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, kUnlimited);
  Written refused = Fill(node, *container, "a");
  EXPECT_EQ(refused.code(), Code::kQuotaExceeded);
  EXPECT_TRUE(
      refused.reply.status.message().starts_with("Partition key reached maximum size of 64 KB."))
      << refused.reply.status.message();
  EXPECT_GT(SizeOf(node, *container, "a"), 60 << 10);
  EXPECT_LE(SizeOf(node, *container, "a"), 64 << 10);
  EXPECT_EQ(Fill(node, *container, "b").code(), Code::kQuotaExceeded);
  EXPECT_GT(SizeOf(node, *container, "b"), 60 << 10);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
}

TEST_P(FullTest, ReadsDeletesAndWritesThatDoNotGrowGoOn) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, kUnlimited);
  Fill(node, *container, "a");
  EXPECT_EQ(node.ReadReply(*container, "a", "0").status.code(), Code::kOk);
  EXPECT_EQ(node.Write(*container, "a", {Replace(Item("0", "a", 4'000))}).code(), Code::kOk);
  EXPECT_EQ(node.Write(*container, "a", {Replace(Item("0", "a", 9'000))}).code(),
            Code::kQuotaExceeded);
  EXPECT_EQ(node.Write(*container, "a", {Replace(Item("0", "a", 10))}).code(), Code::kOk);
  EXPECT_EQ(node.Write(*container, "a", {Delete("1")}).code(), Code::kOk);
  EXPECT_EQ(node.Write(*container, "a", {Create(Item("new", "a", 4'000))}).code(), Code::kOk);
}

TEST_P(FullTest, ABatchThatDoesNotFitChangesNothing) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, kUnlimited);
  Fill(node, *container, "a");
  auto before = node.TotalsOf(*container);
  Written batch = node.Write(
      *container, "a", {Delete("0"), Create(Item("x", "a", 4'000)), Create(Item("y", "a", 4'000))});
  EXPECT_EQ(batch.code(), Code::kQuotaExceeded);
  EXPECT_EQ(batch.steps.at(2).status.code(), Code::kQuotaExceeded);
  EXPECT_TRUE(batch.steps.at(0).undone && batch.steps.at(1).undone);
  EXPECT_EQ(node.TotalsOf(*container), before);
  Written exchange =
      node.Write(*container, "a", {Delete("0"), Delete("1"), Create(Item("x", "a", 7'000))});
  EXPECT_EQ(exchange.code(), Code::kOk);
}

TEST_P(FullTest, WritersSideBySideNeverGoBeyondTheLimit) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, kUnlimited);
  std::vector<Task<Written>> tasks;
  for (int i = 0; i < 120; ++i) {
    std::string key = i % 3 == 0 ? "b" : "a";
    tasks.push_back(node.WriteTask(*container, key, {Create(Item(std::to_string(i), key, 1'500))}));
  }
  int refused = 0;
  for (const Written& written : node.RunAll(std::move(tasks))) {
    ASSERT_TRUE(written.code() == Code::kOk || written.code() == Code::kQuotaExceeded)
        << written.reply.status.ToString();
    refused += written.code() == Code::kQuotaExceeded ? 1 : 0;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LE(SizeOf(node, *container, "a"), 64 << 10);
  EXPECT_GT(SizeOf(node, *container, "a"), 62 << 10);
  EXPECT_GT(SizeOf(node, *container, "b"), 60'000);
}

TEST_P(FullTest, WhatIsRefusedIsExactlyWhatDoesNotFit) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, kUnlimited);
  SeededRandom random(GetParam() ? 11 : 12);
  std::map<std::string, int64_t> sizes;
  int refused = 0;
  for (int i = 0; i < 600; ++i) {
    std::string key = "k" + std::to_string(random.Next() % 4);
    std::string id = std::to_string(random.Next() % 30);
    Written written =
        random.Next() % 5 == 0
            ? node.Write(*container, key, {Delete(id)})
            : node.Write(*container, key, {Upsert(Item(id, key, random.Next() % 9'000))});
    ASSERT_TRUE(written.code() == Code::kOk || written.code() == Code::kNotFound ||
                written.code() == Code::kQuotaExceeded)
        << written.reply.status.ToString();
    int64_t after = SizeOf(node, *container, key);
    ASSERT_LE(after, 64 << 10);
    if (written.code() == Code::kQuotaExceeded) {
      ++refused;
      EXPECT_EQ(after, sizes[key]);
      EXPECT_GT(after + 9'100, 64 << 10) << "it would have fitted";
    }
    sizes[key] = after;
  }
  EXPECT_GT(refused, 10);
}

TEST_P(FullTest, ExpiredItemsOfManyLogicalPartitionsMakeRoomAgain) {
  TestNodeOptions options = Options();
  TestNode node(TestMachine{}, options);
  auto container = node.MakeContainer(
      R"({"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":10})", kUnlimited);
  Fill(node, *container, "a");
  Fill(node, *container, "b");
  node.clock().Advance(std::chrono::seconds(11));
  DeleteItems expired;
  do {
    partition::Reply reply = node.Execute(*container, "", expired);
    ASSERT_TRUE(reply.status.ok());
    expired.after = reply.body;
    expired.id = {};
  } while (!expired.after.empty());
  EXPECT_TRUE(Eventually([&] { return node.TotalsOf(*container).items == 0; }));
  EXPECT_EQ(Fill(node, *container, "a").code(), Code::kQuotaExceeded);
  EXPECT_GT(SizeOf(node, *container, "a"), 60 << 10);
}

TEST_P(FullTest, AFixedContainerIsFullAsAWhole) {
  TestNode node(TestMachine{}, Options());
  auto container = node.MakeContainer(kPlain, {.manual = 400});
  Code code = Code::kOk;
  std::string message;
  for (int i = 0; code == Code::kOk; ++i) {
    std::string key = "k" + std::to_string(i);
    Written written = node.Write(*container, key, {Create(Item("1", key, 4'000))});
    code = written.code();
    message = written.reply.status.message();
  }
  EXPECT_EQ(code, Code::kForbidden);
  EXPECT_TRUE(message.starts_with("Storage quota for 'Document' exceeded.")) << message;
  EXPECT_TRUE(message.contains("96 KB")) << message;
  EXPECT_LE(node.TotalsOf(*container).bytes, 96 << 10);
  EXPECT_GT(node.TotalsOf(*container).bytes, 91 << 10);
  EXPECT_EQ(node.Write(*container, "k0", {Delete("1")}).code(), Code::kOk);

  // With 1,000 RU/s it is unlimited.
  ASSERT_TRUE(
      node.Run(node.catalog().ReplaceOffer(container->offer->number, {.manual = 1'000}, "")).ok());
  for (int i = 0; i < 40; ++i) {
    std::string key = "n" + std::to_string(i);
    EXPECT_EQ(node.Write(*container, key, {Create(Item("1", key, 4'000))}).code(), Code::kOk);
  }
}

TEST_P(FullTest, AfterARestartAFullOneIsStillFull) {
  TestMachine machine;
  std::shared_ptr<const Container> container;
  {
    TestNode node(machine, Options());
    container = node.MakeContainer(kPlain, kUnlimited);
    Fill(node, *container, "a");
    Fill(node, *container, "b", 1'000);
  }
  TestNode node(machine, Options());
  EXPECT_EQ(node.Write(*container, "a", {Create(Item("more", "a", 4'000))}).code(),
            Code::kQuotaExceeded);
  EXPECT_EQ(node.Write(*container, "c", {Create(Item("more", "c", 4'000))}).code(), Code::kOk);
}

}  // namespace
}  // namespace orrery::model
