#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "model/items.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

constexpr std::string_view kPlain =
    R"({"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":-1})";

class ScanItemsTest : public testing::TestWithParam<bool> {
 protected:
  ScanItemsTest() : node(TestMachine(), {.loopback = GetParam()}) {
    container = node.MakeContainer(kPlain);
  }
  // `count` items in each of the logical partitions.
  void Fill(const std::vector<std::string>& keys, int count, std::string_view more = "") {
    for (const std::string& key : keys) {
      for (int i = 0; i < count; ++i) {
        std::string json = R"({"id":"i)" + std::to_string(i) + R"(","pk":")" + key + R"(","n":)" +
                           std::to_string(i % 3) + std::string(more) + "}";
        ASSERT_EQ(node.Write(*container, key, {Create(json)}).code(), Code::kOk);
      }
    }
  }
  ReadFeed::Page Page(ReadFeed& feed) {
    partition::Reply reply = node.Execute(*container, feed.range.min, feed);
    EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
    auto page = ReadFeed::Page::Decode(reply.body);
    EXPECT_TRUE(page);
    return page ? *page : ReadFeed::Page();
  }
  // "pk/id" of all items of all pages, in their order.
  std::vector<std::string> ReadAll(ReadFeed feed, size_t* pages = nullptr) {
    std::vector<std::string> names;
    for (size_t count = 1;; ++count) {
      feed.id = {};
      ReadFeed::Page page = Page(feed);
      EXPECT_LE(page.items.size(), feed.items_max);
      for (const std::string& item : page.items) {
        names.push_back(NameOf(item));
      }
      if (pages != nullptr) {
        *pages = count;
      }
      if (page.last.empty() || count > 10'000) {
        return names;
      }
      feed.after = page.last;
    }
  }
  static std::string NameOf(std::string_view stored) {
    types::Value item = types::Value::Object(stored.substr(storage::kItemHeaderBytes));
    return std::string(types::Member(item, "pk").string()) + "/" +
           std::string(types::Member(item, "id").string());
  }
  // Every item as the keys of the state order them.
  std::vector<std::string> InKeyOrder() {
    std::vector<std::string> names;
    auto span = storage::ItemSpan(container->id, {});
    auto at =
        node.state().NewIterator(storage::Index(storage::Space::kItems), span.begin, span.end);
    for (at->SeekToFirst(); at->Valid(); at->Next()) {
      names.push_back(NameOf(at->value()));
    }
    return names;
  }
  partition::Reply DeleteAll(const std::optional<std::string>& key) {
    DeleteItems remove;
    if (key) {
      remove.logical_partition = Address(*container, *key);
    }
    partition::Reply reply;
    do {
      remove.id = {};
      reply = node.Execute(*container, Address(*container, key.value_or("")).epk, remove);
      EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
      remove.after = reply.body;
    } while (!remove.after.empty());
    return reply;
  }

  TestNode node;
  std::shared_ptr<const Container> container;
};

INSTANTIATE_TEST_SUITE_P(Ways, ScanItemsTest, testing::Bool(),
                         [](const auto& info) { return info.param ? "Loopback" : "Direct"; });

TEST_P(ScanItemsTest, PagesOfAnySizeGiveEveryItemOnceInKeyOrder) {
  Fill({"a", "b", "c"}, 4);
  std::vector<std::string> expected = InKeyOrder();
  ASSERT_EQ(expected.size(), 12u);
  for (uint32_t size = 1; size <= 13; ++size) {
    ReadFeed feed;
    feed.items_max = size;
    size_t pages = 0;
    EXPECT_EQ(ReadAll(feed, &pages), expected) << size;
    EXPECT_EQ(pages, (12 + size - 1) / size) << size;
  }
}

TEST_P(ScanItemsTest, AnEmptyContainerHasOneEmptyPage) {
  size_t pages = 0;
  EXPECT_TRUE(ReadAll({}, &pages).empty());
  EXPECT_EQ(pages, 1u);
}

TEST_P(ScanItemsTest, APageIsBoundedInBytes) {
  std::string text(900'000, 'x');
  Fill({"a"}, 12, R"(,"x":")" + text + "\"");
  size_t pages = 0;
  EXPECT_EQ(ReadAll({}, &pages).size(), 12u);
  EXPECT_EQ(pages, 3u);
}

TEST_P(ScanItemsTest, OnlyTheItemsOfOneKeyAreRead) {
  Fill({"a", "b", "c"}, 3);
  ReadFeed feed;
  feed.only_key = KeyOf("b");
  feed.range.min = Address(*container, "b").epk;
  feed.items_max = 2;
  EXPECT_EQ(ReadAll(feed), (std::vector<std::string>{"b/i0", "b/i1", "b/i2"}));
}

TEST_P(ScanItemsTest, RangesOfTheRingCutTheItemsWithoutGapOrOverlap) {
  Fill({"a", "b", "c", "d", "e", "f"}, 2);
  std::vector<std::string> bounds = {""};
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) {
    bounds.push_back(Address(*container, key).epk);
  }
  bounds.emplace_back("\xFF");
  std::sort(bounds.begin(), bounds.end());
  std::vector<std::string> all;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    ReadFeed feed;
    feed.range = {.min = bounds[i], .max = bounds[i + 1]};
    std::vector<std::string> part = ReadAll(feed);
    EXPECT_EQ(part.size(), i == 0 ? 0u : 2u) << i;
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, InKeyOrder());
}

TEST_P(ScanItemsTest, EveryPartitionGivesItsOwnItemsAlone) {
  container =
      node.MakeContainer(R"({"id":"wide","partitionKey":{"paths":["/pk"]}})", {.manual = 30'000});
  ASSERT_EQ(container->map->ranges().size(), 3u);
  std::vector<std::string> keys;
  for (int i = 0; i < 30; ++i) {
    keys.push_back("k" + std::to_string(i));
  }
  Fill(keys, 1);
  std::vector<std::string> all;
  for (const auto& range : container->map->ranges()) {
    ReadFeed feed;
    feed.range.min = range.range.min;
    std::vector<std::string> part = ReadAll(feed);
    EXPECT_GT(part.size(), 0u);
    EXPECT_LT(part.size(), 30u);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_EQ(all, InKeyOrder());
}

TEST_P(ScanItemsTest, OtherContainersAreNotRead) {
  Fill({"a"}, 2);
  auto other = node.MakeContainer(R"({"id":"other","partitionKey":{"paths":["/pk"]}})");
  node.Write(*other, "a", {Create(R"({"id":"x","pk":"a"})")});
  EXPECT_EQ(ReadAll({}).size(), 2u);
}

// A continuation comes from the client, who may send any bytes.
TEST_P(ScanItemsTest, AContinuationFromBeforeTheRangeShowsNothingFromOutsideOfIt) {
  Fill({"a", "b", "c"}, 2);
  auto first = container;
  container = node.MakeContainer(R"({"id":"other","partitionKey":{"paths":["/pk"]}})");
  node.Write(*container, "a", {Create(R"({"id":"x","pk":"a"})")});
  ReadFeed feed;
  feed.after = std::string(1, '\0');
  EXPECT_EQ(ReadAll(feed), (std::vector<std::string>{"a/x"})) << "items of another container";
  container = first;
  feed.only_key = KeyOf("c");
  feed.range.min = Address(*container, "c").epk;
  EXPECT_EQ(ReadAll(feed), (std::vector<std::string>{"c/i0", "c/i1"}))
      << "items of another logical partition";
}

TEST_P(ScanItemsTest, AContinuationBehindTheRangeGivesAnEmptyPage) {
  Fill({"a"}, 2);
  ReadFeed feed;
  feed.after = std::string(8, '\xFF');
  EXPECT_TRUE(ReadAll(feed).empty());
}

TEST_P(ScanItemsTest, ExpiredItemsAreHiddenAndPagesGoOnBehindThem) {
  Fill({"a"}, 4);
  Fill({"b"}, 4, R"(,"ttl":5)");
  Fill({"c"}, 4);
  node.clock().Advance(std::chrono::seconds(6));
  for (uint32_t size : {1, 3, 100}) {
    ReadFeed feed;
    feed.items_max = size;
    std::vector<std::string> names = ReadAll(feed);
    EXPECT_EQ(names.size(), 8u) << size;
    EXPECT_EQ(std::count(names.begin(), names.end(), "b/i0"), 0) << size;
  }
}

TEST_P(ScanItemsTest, AFilterDecidesWhichItemsAreGiven) {
  Fill({"a", "b"}, 9);
  ReadFeed feed;
  feed.filter = "n=1";
  feed.items_max = 2;
  EXPECT_EQ(ReadAll(feed).size(), 6u);
  feed.filter = "n=7";
  size_t pages = 0;
  EXPECT_TRUE(ReadAll(feed, &pages).empty());
  EXPECT_EQ(pages, 1u);
}

TEST_P(ScanItemsTest, AFilterThatCannotBeReadIsRefused) {
  ReadFeed feed;
  feed.filter = "broken";
  EXPECT_EQ(node.Execute(*container, "", feed).status.code(), Code::kInvalidArgument);
}

TEST_P(ScanItemsTest, ALogicalPartitionIsDeletedAndNothingElse) {
  Fill({"a", "b", "c"}, 5);
  partition::Reply reply = DeleteAll("b");
  EXPECT_GT(reply.charge, partition::RequestUnits());
  std::vector<std::string> left = ReadAll({});
  EXPECT_EQ(left.size(), 10u);
  EXPECT_EQ(std::count(left.begin(), left.end(), "b/i0"), 0);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
  EXPECT_EQ(node.TotalsOf(*container).items, 10);
}

TEST_P(ScanItemsTest, ALogicalPartitionLargerThanOneRunIsDeletedInSeveral) {
  container = node.MakeContainer(R"({"id":"other","partitionKey":{"paths":["/pk"]}})");
  constexpr int kItems = static_cast<int>(DeleteItems::kDeletesMax) + 20;
  for (int i = 0; i < kItems; i += 10) {
    std::vector<ItemStep> steps;
    for (int j = i; j < i + 10; ++j) {
      steps.push_back(Create(R"({"id":")" + std::to_string(j) + R"(","pk":"a"})"));
    }
    ASSERT_EQ(node.Write(*container, "a", std::move(steps)).code(), Code::kOk);
  }
  DeleteItems remove;
  remove.logical_partition = Address(*container, "a");
  partition::Reply first = node.Execute(*container, remove.logical_partition->epk, remove);
  EXPECT_NE(first.body, "");
  EXPECT_EQ(node.TotalsOf(*container).items, kItems - static_cast<int>(DeleteItems::kDeletesMax));
  DeleteAll("a");
  EXPECT_EQ(node.TotalsOf(*container), storage::Totals());
  EXPECT_EQ(node.Counted(*container), storage::Totals());
}

TEST_P(ScanItemsTest, OnlyExpiredItemsAreSwept) {
  Fill({"a"}, 4);
  Fill({"b"}, 4, R"(,"ttl":5)");
  node.clock().Advance(std::chrono::seconds(4));
  DeleteAll(std::nullopt);
  EXPECT_EQ(node.Counted(*container).items, 8);
  node.clock().Advance(std::chrono::seconds(1));
  DeleteAll(std::nullopt);
  EXPECT_EQ(node.Counted(*container).items, 4);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
}

TEST_P(ScanItemsTest, DeletedAndSweptItemsFreeTheirUniqueValues) {
  container = node.MakeContainer(
      R"({"id":"u","partitionKey":{"paths":["/pk"]},"defaultTtl":-1,
          "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/id"]}]}})");
  Fill({"a"}, 3);
  Fill({"b"}, 3, R"(,"ttl":5)");
  EXPECT_EQ(node.CountKeys(storage::Space::kIndex), 6u);
  DeleteAll("a");
  EXPECT_EQ(node.CountKeys(storage::Space::kIndex), 3u);
  node.clock().Advance(std::chrono::seconds(5));
  DeleteAll(std::nullopt);
  EXPECT_EQ(node.CountKeys(storage::Space::kIndex), 0u);
}

TEST(SweepTest, TheBackgroundSweepsWhatHasExpired) {
  TestNodeOptions options{.background = true};
  options.host.sweep_interval = std::chrono::milliseconds(10);
  TestNode node(TestMachine(), options);
  auto container = node.MakeContainer(kPlain);
  node.Write(*container, "a", {Create(R"({"id":"1","pk":"a","ttl":5})")});
  node.Write(*container, "a", {Create(R"({"id":"2","pk":"a"})")});
  node.clock().Advance(std::chrono::seconds(5));
  EXPECT_TRUE(Eventually([&] { return node.Counted(*container).items == 1; }));
  EXPECT_TRUE(Eventually([&] { return node.TotalsOf(*container) == node.Counted(*container); }));
}

}  // namespace
}  // namespace orrery::model
