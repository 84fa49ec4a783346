// A write of a whole row takes the place of what was there if that is surely older, and is merged
// into it otherwise.
#include "model/reshaper.h"
#include "rows/rows.h"
#include "rows/test_rows.h"

namespace orrery::rows {
namespace {

using namespace std::chrono_literals;

// It says that it has all columns up to `last`, and has the first alone: if another one is still
// there afterwards, it was merged.
RowChange Whole(std::string value, uint32_t last, std::optional<int64_t> timestamp = {}) {
  RowChange change = Row("row", {{CellAction::kSet, 1, "", std::move(value)}});
  change.whole = last + 1;
  change.timestamp = timestamp;
  return change;
}

RowChange Cell(uint32_t column, std::string value, std::optional<int64_t> timestamp = {}) {
  RowChange change{.key = "row", .cells = {{CellAction::kSet, column, "", std::move(value)}}};
  change.timestamp = timestamp;
  return change;
}

struct Table {
  explicit Table(model::TestMachine machine) : machine(machine), node(machine) {
    container = node.MakeContainer(kTable);
    link = container->link;
    Reopen();
  }
  // As it is after a power cut.
  Table(const Table& before) : machine(before.machine.AfterPowerCut()), node(machine) {
    link = before.link;
    Reopen();
  }
  void Reopen() { container = node.Find(link); }
  void Do(RowChange change, std::string_view key = "k") {
    Reopen();
    WriteRows write = Write(key, {std::move(change)});
    partition::Reply reply = node.Execute(*container, write.epk, write);
    EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
  }
  std::string Rows(std::string_view key = "k") {
    Reopen();
    return Show(node, *container, ReadPartition(key));
  }
  int64_t now() { return node.clock().Wall().micros; }

  model::TestMachine machine;
  model::TestNode node;
  std::shared_ptr<const model::Container> container;
  std::string link;
};

TEST(WholeRowTest, TakesThePlaceOfWhatIsOlder) {
  Table table{model::TestMachine()};
  table.Do(Cell(2, "b"));
  table.Do(Whole("a", 2));
  EXPECT_EQ(table.Rows(), "row:a ;");
  table.Do(Cell(2, "c"));
  EXPECT_EQ(table.Rows(), "row:a c ;");
  // With timestamps of the client, which are a little behind.
  table.node.clock().Advance(1s);
  table.Do(Cell(2, "d", table.now() - 100));
  table.Do(Cell(2, "other"), "other");
  table.Do(Whole("e", 2, table.now() - 99));
  EXPECT_EQ(table.Rows(), "row:e ;");
}

TEST(WholeRowTest, IsMergedIntoWhatMayBeNewer) {
  Table table{model::TestMachine()};
  const int64_t before = table.now();
  table.node.clock().Advance(1s);
  table.Do(Cell(2, "b"));
  table.Do(Whole("a", 2, before));
  EXPECT_EQ(table.Rows(), "row:a b ;");
  const int64_t ahead = table.now() + 5'000'000;
  table.Do(Cell(1, "ahead", ahead));
  table.Do(Whole("behind", 2, ahead - 1));
  EXPECT_EQ(table.Rows(), "row:ahead b ;");
  table.Do(Whole("equal", 2, ahead));
  EXPECT_EQ(table.Rows(), "row:equal b ;");  // the greater value
  table.Do(Whole("later", 2, ahead + 1));
  EXPECT_EQ(table.Rows(), "row:later ;");
}

TEST(WholeRowTest, IsMergedWhereAColumnIsThereThatItDoesNotKnow) {
  Table table{model::TestMachine()};
  table.Do(Cell(3, "new"));
  table.Do(Whole("a", 2));
  EXPECT_EQ(table.Rows(), "row:a new ;");
  Table after(table);
  after.Do(Whole("b", 2));
  EXPECT_EQ(after.Rows(), "row:b new ;");
  after.Do(Whole("c", 3));
  EXPECT_EQ(after.Rows(), "row:c ;");
}

TEST(WholeRowTest, WhatIsAheadOfTheClockIsNotForgottenByARestart) {
  Table table{model::TestMachine()};
  const int64_t ahead = table.now() + 60'000'000;
  table.Do(Cell(2, "b", ahead));
  Table after(table);
  after.Do(Whole("a", 2));
  EXPECT_EQ(after.Rows(), "row:a b ;");
  after.node.clock().Advance(70s);
  after.Do(Whole("c", 2));
  EXPECT_EQ(after.Rows(), "row:c ;");
}

TEST(WholeRowTest, NorByASplitOrAMerge) {
  Table table{model::TestMachine()};
  for (int key = 0; key < 50; ++key) {
    table.Do(Cell(1, std::string(1000, 'x')), std::to_string(key));
    table.Do(Cell(2, "b", table.now() + 60'000'000), std::to_string(key));
  }
  table.Do(Cell(3, "c"), "1");
  model::Reshaper reshaper(table.node.catalog(), table.node.store(), table.node.workers(),
                           table.node.clock(), table.node.replicas(), {});
  reshaper.SetRouter(&table.node.router());
  reshaper.SetInherit([&](PartitionId heir, std::string outcomes) {
    table.node.host().Inherit(heir, std::move(outcomes));
  });
  reshaper.Start();
  for (size_t parents : {1, 2}) {
    std::vector<PartitionId> ids;
    for (size_t i = 0; i < parents; ++i) {
      ids.push_back(table.node.Find(table.link)->map->ranges()[i].id);
    }
    EXPECT_TRUE(table.node.Run(table.node.catalog().BeginReshape(table.container->id, ids)).ok());
    EXPECT_TRUE(model::Eventually([&] {
      auto container = table.node.Find(table.link);
      return container->map->ranges().size() == 3 - parents && container->reshapes.empty();
    }));
    for (int key = 0; key < 50; ++key) {
      table.Do(Whole("a", 2), std::to_string(key));
      EXPECT_EQ(table.Rows(std::to_string(key)), key == 1 ? "row:a b c ;" : "row:a b ;");
    }
  }
  reshaper.Stop();
}

}  // namespace
}  // namespace orrery::rows
