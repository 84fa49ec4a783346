// What is dead is dropped, what is alive stays, and what was hidden never comes back.
#include "base/random.h"
#include "cql/value.h"
#include "model/reshaper.h"
#include "rows/purge_rows.h"
#include "rows/purger.h"
#include "rows/test_rows.h"

namespace orrery::rows {
namespace {

using namespace std::chrono_literals;
using storage::Space;

std::string TableWithGrace(int seconds) {
  return R"({"id":"t","partitionKey":{"paths":["/a"],"kind":"Token","version":2},)"
         R"("cassandra":{"options":{"gc_grace_seconds":")" +
         std::to_string(seconds) + R"("}}})";
}

void Do(model::TestNode& node, const model::Container& container, std::string_view key,
        RowChange change) {
  WriteRows write = Write(key, {std::move(change)});
  partition::Reply reply = node.Execute(container, write.epk, write);
  EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
}

RowChange Cell(std::string clustering, std::string value, int32_t ttl = 0) {
  RowChange row = Row(std::move(clustering), {{CellAction::kSet, 1, "", std::move(value)}});
  row.ttl = ttl;
  return row;
}

// All partitions of a container.
runtime::Task<partition::Reply> PurgeTask(model::TestNode& node, ContainerId container,
                                          size_t keys_max) {
  partition::Reply last;
  for (const auto& replica : node.replicas().All()) {
    if (replica->container() == container) {
      PurgeRows purge;
      purge.keys_max = keys_max;
      purge.target = {.container = container,
                      .partition = replica->id(),
                      .generation = replica->range().generation,
                      .schema_version = replica->schema()->version};
      last = co_await replica->Execute(purge);
      EXPECT_TRUE(last.status.ok()) << last.status.ToString();
    }
  }
  co_return last;
}
void Purge(model::TestNode& node, const model::Container& container, size_t keys_max = 2000) {
  node.Run(PurgeTask(node, container.id, keys_max));
}

// Of the partition that has a key; microseconds.
int64_t HorizonAt(model::TestNode& node, std::string_view link, std::string_view key) {
  auto container = node.Find(link);
  auto replica = node.replicas().Find(container->map->Find(types::CassandraEpk(key)).id);
  auto read = [](std::shared_ptr<partition::Replica> replica) -> runtime::Task<Result<int64_t>> {
    auto ask = [replica] { return replica->horizon().Read(); };
    co_return co_await runtime::OnWorker(replica->worker(), ask);
  };
  auto horizon = node.Run(read(replica));
  EXPECT_TRUE(horizon);
  return horizon.value_or(0);
}

TEST(PurgeTest, WhatDiedIsDroppedAndTheSizesShrink) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(0));
  Do(node, *container, "k", Cell("expires", "x", 5));
  Do(node, *container, "k", Cell("deleted", "x"));
  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "deleted"});
  Do(node, *container, "k", Cell("range", "x"));
  Do(node, *container, "k", {.action = RowAction::kDeleteRange, .key = "ra", .end = "rb"});
  Do(node, *container, "k", Cell("stays", "x"));
  Do(node, *container, "k",
     {.key = "stays", .cells = {{CellAction::kSet, 2, "", "y"}, {CellAction::kDelete, 3, "", ""}}});
  RowChange fixed = Cell("", "s", 5);
  fixed.is_static = true;
  Do(node, *container, "all", fixed);
  Do(node, *container, "all", Cell("row", "x"));
  Do(node, *container, "all", {.action = RowAction::kDeletePartition});
  node.clock().Advance(6s);
  Purge(node, *container);
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "stays:x y ;");
  EXPECT_EQ(node.CountKeys(Space::kItems), 1u);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
  EXPECT_EQ(node.TotalsOf(*container).items, 1);

  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "stays"});
  Do(node, *container, "k", Cell("again", "x", 1));
  node.clock().Advance(2s);
  Purge(node, *container);
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
  EXPECT_EQ(node.TotalsOf(*container), storage::Totals());
}

TEST(PurgeTest, NothingGoesBeforeItsGrace) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(100));
  Do(node, *container, "k", Cell("a", "x", 5));
  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "b"});
  Do(node, *container, "k", {.action = RowAction::kDeleteRange, .key = "c", .end = "d"});
  Do(node, *container, "k", {.action = RowAction::kDeletePartition, .timestamp = 5});
  node.clock().Advance(99s);
  Purge(node, *container);
  EXPECT_EQ(node.CountKeys(Space::kItems), 3u);
  node.clock().Advance(3s);
  Purge(node, *container);
  EXPECT_EQ(node.CountKeys(Space::kItems), 1u);  // expired five seconds later
  node.clock().Advance(4s);
  Purge(node, *container);
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
}

TEST(PurgeTest, ADeletionWithAnOldTimestampStaysForItsGraceToo) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(100));
  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "a", .timestamp = 10});
  Do(node, *container, "p", {.action = RowAction::kDeletePartition, .timestamp = 10});
  Purge(node, *container);
  RowChange older = Cell("a", "x");
  older.timestamp = 9;
  Do(node, *container, "k", older);
  Do(node, *container, "p", older);
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "");
  EXPECT_EQ(Show(node, *container, ReadPartition("p")), "");
  node.clock().Advance(102s);
  Purge(node, *container);
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
}

TEST(PurgeTest, AWriteBeforeTheHorizonIsWrittenAsARowWithoutWhatIsHidden) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(0));
  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "gone"});
  node.clock().Advance(3s);
  Purge(node, *container);
  const int64_t horizon = HorizonAt(node, container->link, "k");
  ASSERT_NE(horizon, partition::Horizon::kNone);

  // A deletion that comes late still hides what is older; and what it hides is not stored.
  Do(node, *container, "k",
     {.action = RowAction::kDeleteRange, .key = "a", .end = "c", .timestamp = horizon - 10});
  RowChange hidden = Cell("b", "hidden");
  hidden.timestamp = horizon - 11;
  Do(node, *container, "k", hidden);
  RowChange newer = Cell("b2", "newer");
  newer.timestamp = horizon - 9;
  Do(node, *container, "k", newer);
  EXPECT_EQ(node.CountKeys(Space::kItems), 2u);
  RowChange resurrected = Cell("gone", "simply written");
  resurrected.timestamp = 7;
  Do(node, *container, "k", resurrected);
  Do(node, *container, "k", resurrected);
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "b2:newer ;gone:simply written ;");
  storage::Totals counted = node.Counted(*container);
  counted.items -= 1;  // deletions of ranges are no items until they are counted
  EXPECT_EQ(node.TotalsOf(*container), counted);
}

TEST(PurgeTest, TheSizesOfBlindWritesAreSetRight) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(0));
  for (int times = 0; times < 50; ++times) {
    Do(node, *container, "k", Cell("a", std::string(100, 'x')));
  }
  EXPECT_GT(node.TotalsOf(*container).bytes, 5000);
  Purge(node, *container);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
  EXPECT_EQ(HorizonAt(node, container->link, "k"), partition::Horizon::kNone);
}

TEST(PurgeTest, CountersAndWhatHidesThemStay) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(0));
  auto add = [&](std::string clustering) {
    Do(node, *container, "k",
       Row(std::move(clustering), {{CellAction::kAdd, 1, "", cql::BigintBytes(5)}}));
  };
  auto mark = [&](const std::string& clustering) {
    Do(node, *container, "k",
       {.key = clustering, .cells = {{CellAction::kAdd, 1, "", cql::BigintBytes(5)}}});
  };
  add("a");
  mark("b");
  mark("c");
  Do(node, *container, "k", {.action = RowAction::kDeleteRange, .key = "b", .end = "c"});
  Do(node, *container, "k", {.action = RowAction::kDeleteRow, .key = "c"});
  node.clock().Advance(3s);
  Purge(node, *container, 1);
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "a:5 ;");
  mark("b");
  mark("c");
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "a:5 ;b:10 ;c:5 ;");
}

TEST(PurgeTest, TheHorizonIsThereAfterARestartASplitAndAMerge) {
  model::TestMachine machine;
  int64_t horizon = 0;
  std::string link;
  {
    model::TestNode node{machine};
    auto container = node.MakeContainer(TableWithGrace(0));
    link = container->link;
    for (int key = 0; key < 50; ++key) {
      Do(node, *container, std::to_string(key), Cell("a", std::string(1000, 'x')));
    }
    Do(node, *container, "dead", {.action = RowAction::kDeletePartition});
    node.clock().Advance(3s);
    Purge(node, *container);
    horizon = HorizonAt(node, link, "0");
    EXPECT_NE(horizon, partition::Horizon::kNone);
  }
  model::TestNode node{machine.AfterPowerCut()};
  EXPECT_EQ(HorizonAt(node, link, "0"), horizon);

  model::Reshaper reshaper(node.catalog(), node.store(), node.workers(), node.clock(),
                           node.replicas(), {});
  reshaper.SetRouter(&node.router());
  reshaper.SetInherit([&](PartitionId heir, std::string outcomes) {
    node.host().Inherit(heir, std::move(outcomes));
  });
  reshaper.Start();
  auto reshape = [&](size_t parents, size_t after) {
    std::vector<PartitionId> ids;
    for (size_t i = 0; i < parents; ++i) {
      ids.push_back(node.Find(link)->map->ranges()[i].id);
    }
    EXPECT_TRUE(node.Run(node.catalog().BeginReshape(node.Find(link)->id, ids)).ok());
    EXPECT_TRUE(model::Eventually([&] {
      auto container = node.Find(link);
      return container->map->ranges().size() == after && container->reshapes.empty();
    }));
  };
  reshape(1, 2);
  for (int key = 0; key < 50; ++key) {
    ASSERT_EQ(HorizonAt(node, link, std::to_string(key)), horizon);
  }
  // Of two the later counts.
  auto container = node.Find(link);
  Do(node, *container, "0", {.action = RowAction::kDeleteRow, .key = "b"});
  node.clock().Advance(3s);
  Purge(node, *container);
  const int64_t later = HorizonAt(node, link, "0");
  EXPECT_GT(later, horizon);
  reshape(2, 1);
  EXPECT_EQ(HorizonAt(node, link, "0"), later);
  EXPECT_EQ(node.CountKeys(Space::kItems), 50u);
  EXPECT_EQ(node.TotalsOf(*node.Find(link)), node.Counted(*container));
  reshaper.Stop();
}

TEST(PurgeTest, APartitionIsWalkedOverWhenItIsDue) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(100));
  Purger purger(node.replicas(), node.workers(), node.clock(), 1s);
  auto look = [&] {
    auto run = [](Purger& purger) -> runtime::Task<bool> {
      co_await purger.Look();
      co_return true;
    };
    node.Run(run(purger));
  };
  Do(node, *container, "k", Cell("a", "x", 50));
  look();
  node.clock().Advance(149s);
  look();
  EXPECT_EQ(purger.counts().dropped, 0u);
  node.clock().Advance(2s);
  look();
  EXPECT_EQ(purger.counts().dropped, 1u);
  EXPECT_GT(purger.counts().bytes, 0);
  EXPECT_EQ(node.CountKeys(Space::kItems), 0u);
}

// The survey would otherwise count as done, and nobody would come again while nobody writes.
TEST(PurgeTest, TotalsAreSetRightAlsoIfSizesWereForgottenDuringTheWalk) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(TableWithGrace(100));
  Do(node, *container, "k", Cell("a", "x"));
  Do(node, *container, "k", Cell("a", "y"));  // counted as if there were two
  ASSERT_NE(node.TotalsOf(*container), node.Counted(*container));
  auto replica = node.replicas().Find(container->map->Find(types::CassandraEpk("k")).id);
  PurgeRows purge;
  purge.target = {.container = container->id,
                  .partition = replica->id(),
                  .generation = replica->range().generation,
                  .schema_version = replica->schema()->version};
  purge.stop = [&] {
    replica->sizes().Forget();
    return false;
  };
  auto run = [](partition::Replica& replica, PurgeRows& purge) -> runtime::Task<partition::Reply> {
    co_return co_await replica.Execute(purge);
  };
  EXPECT_EQ(node.Run(run(*replica, purge)).status.code(), Code::kUnavailable);
  Purge(node, *container);
  EXPECT_EQ(node.TotalsOf(*container), node.Counted(*container));
}

// Rows with timestamps that a deletion hides, written while that is dropped: those that were hidden
// when they had been written stay so, the others were written when it was gone.
TEST(PurgeTest, WhatWasHiddenWhileItIsPurgedNeverComesBack) {
  for (int round = 0; round < 20; ++round) {
    model::TestNode node{model::TestMachine()};
    auto container = node.MakeContainer(TableWithGrace(0));
    auto time = node.clock().Wall().micros;
    for (int i = 0; i < 20; ++i) {
      Do(node, *container, "k", Cell(std::string(1, static_cast<char>('a' + i)), "x"));
    }
    node.clock().Advance(1s);
    Do(node, *container, "k", {.action = RowAction::kDeletePartition});
    node.clock().Advance(5s);

    struct Wrote {
      std::string row;
      bool shown = false;
    };
    auto write = [](model::TestNode& node, const model::Container& container, int64_t time,
                    int seed) -> runtime::Task<std::vector<Wrote>> {
      SeededRandom random(static_cast<uint64_t>(seed));
      std::vector<Wrote> all;
      for (int i = 0; i < 10; ++i) {
        Wrote wrote{std::string(1, static_cast<char>('a' + random.Next() % 20)) +
                    std::to_string(seed) + "-" + std::to_string(i)};
        RowChange change = Cell(wrote.row, "late");
        change.timestamp = time;
        WriteRows write = Write("k", {std::move(change)});
        partition::Reply reply = co_await node.ExecuteTask(container, write.epk, write);
        EXPECT_TRUE(reply.status.ok());
        ReadRows read = ReadPartition("k");
        read.spans = {{.begin = wrote.row, .one = true}};
        const types::Epk place = read.range.min;
        reply = co_await node.ExecuteTask(container, place, read);
        wrote.shown = !RowPage::Decode(reply.body)->partitions.empty();
        all.push_back(std::move(wrote));
      }
      co_return all;
    };
    auto purge = [](model::TestNode& node,
                    ContainerId container) -> runtime::Task<std::vector<Wrote>> {
      co_await PurgeTask(node, container, 2);
      co_return std::vector<Wrote>();
    };
    std::vector<runtime::Task<std::vector<Wrote>>> tasks;
    tasks.push_back(write(node, *container, time, 2 * round));
    tasks.push_back(purge(node, container->id));
    auto all = node.RunAll(std::move(tasks));
    std::string shown;
    for (const Wrote& wrote : all[0]) {
      shown += wrote.shown ? wrote.row + " " : "";
    }
    const std::string now = Show(node, *container, ReadPartition("k"));
    for (const Wrote& wrote : all[0]) {
      EXPECT_EQ(now.find(wrote.row + ":late") != std::string::npos, wrote.shown)
          << wrote.row << " in " << now << "; shown then: " << shown;
    }
  }
}

}  // namespace
}  // namespace orrery::rows
