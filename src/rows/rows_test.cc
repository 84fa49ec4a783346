#include "rows/rows.h"

#include "base/random.h"
#include "cql/value.h"
#include "rows/test_rows.h"

namespace orrery::rows {
namespace {

TEST(RowsTest, AWriteThatIsRepeatedIsDoneOnce) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  WriteRows write = Write("k", {Row("", {{CellAction::kAdd, 1, "", cql::BigintBytes(5)}})});
  write.id = {.high = 7, .low = 8};
  for (int times = 0; times < 3; ++times) {
    partition::Reply reply = node.Execute(*container, write.epk, write);
    ASSERT_TRUE(reply.status.ok());
    EXPECT_TRUE(WriteAnswer::Decode(reply.body)->applied);
  }
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), ":5 ;");
}

TEST(RowsTest, CountersBeginAnewAfterTheirRangeIsDeleted) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  auto run = [&](RowChange change) {
    WriteRows write = Write("k", {std::move(change)});
    return node.Execute(*container, write.epk, write).status;
  };
  auto add = [&](std::string row) {
    RowChange change = Row(row, {{CellAction::kAdd, 1, "", cql::BigintBytes(1)}});
    change.marks = false;
    ASSERT_TRUE(run(std::move(change)).ok());
  };
  auto add_all = [&] {
    for (const char* row : {"a", "b", "c"}) {
      add(row);
    }
  };
  add_all();
  ASSERT_TRUE(run({.action = RowAction::kDeleteRange, .marks = true, .key = "b", .end = "c"}).ok());
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "a:1 ;c:1 ;");
  add_all();
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "a:2 ;b:1 ;c:2 ;");
  ASSERT_TRUE(run({.action = RowAction::kDeletePartition, .marks = true}).ok());
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "");
  add_all();
  EXPECT_EQ(Show(node, *container, ReadPartition("k")), "a:1 ;b:1 ;c:1 ;");
}

TEST(RowsTest, ADeletionOfTooManyCountersIsRefused) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  std::vector<RowChange> changes;
  for (int i = 0; i < 10'001; ++i) {
    changes.push_back(
        {.key = std::to_string(i), .cells = {{CellAction::kAdd, 1, "", cql::BigintBytes(1)}}});
  }
  WriteRows write = Write("k", std::move(changes));
  ASSERT_TRUE(node.Execute(*container, write.epk, write).status.ok());
  WriteRows gone = Write("k", {{.action = RowAction::kDeletePartition, .marks = true}});
  EXPECT_EQ(node.Execute(*container, gone.epk, gone).status.code(), Code::kTooLarge);
  gone.changes = {{.action = RowAction::kDeleteRange, .marks = true, .key = "1", .end = "2"}};
  EXPECT_TRUE(node.Execute(*container, gone.epk, gone).status.ok());
}

TEST(RowsTest, PagesOfAnySizeGiveAllRowsInOrder) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  for (char row = 'a'; row <= 'j'; ++row) {
    WriteRows write = Write("k", {Row(std::string(1, row), {{CellAction::kSet, 1, "", "v"}})});
    ASSERT_TRUE(node.Execute(*container, write.epk, write).status.ok());
  }
  WriteRows gone = Write("k", {{.action = RowAction::kDeleteRange, .key = "c", .end = "e"}});
  ASSERT_TRUE(node.Execute(*container, gone.epk, gone).status.ok());
  for (uint32_t size : {1, 2, 3, 8, 100}) {
    ReadRows read = ReadPartition("k");
    read.rows_max = size;
    EXPECT_EQ(Show(node, *container, read), "a:v ;b:v ;e:v ;f:v ;g:v ;h:v ;i:v ;j:v ;");
    read.reversed = true;
    EXPECT_EQ(Show(node, *container, read), "j:v ;i:v ;h:v ;g:v ;f:v ;e:v ;b:v ;a:v ;");
    read.reversed = false;
    read.spans = {{.begin = "b", .end = "f"}, {.begin = "h", .one = true}, {.begin = "j"}};
    EXPECT_EQ(Show(node, *container, read), "b:v ;e:v ;h:v ;j:v ;");
    read.reversed = true;
    EXPECT_EQ(Show(node, *container, read), "j:v ;h:v ;e:v ;b:v ;");
    read.partition_rows_max = 3;
    EXPECT_EQ(Show(node, *container, read), "j:v ;h:v ;e:v ;");
  }
}

TEST(RowsTest, TruncateLeavesNothing) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  for (int i = 0; i < 20; ++i) {
    WriteRows write = Write(std::to_string(i), {Row("x", {{CellAction::kSet, 1, "", "v"}})});
    ASSERT_TRUE(node.Execute(*container, write.epk, write).status.ok());
    WriteRows again = Write(std::to_string(i), {Row("x", {})});
    ASSERT_TRUE(node.Execute(*container, again.epk, again).status.ok());
  }
  EXPECT_GT(node.TotalsOf(*container).bytes, 0);
  TruncateRows truncate;
  ASSERT_TRUE(node.Execute(*container, "", truncate).status.ok());
  EXPECT_EQ(node.CountKeys(storage::Space::kItems), 0u);
  EXPECT_EQ(node.TotalsOf(*container), storage::Totals());
}

TEST(RowsTest, ARowHasALimit) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(kTable);
  std::string large(kRowBytesMax, 'x');
  WriteRows write = Write("k", {Row("x", {{CellAction::kSet, 1, "", large}})});
  EXPECT_EQ(node.Execute(*container, write.epk, write).status.code(), Code::kTooLarge);
  EXPECT_EQ(node.CountKeys(storage::Space::kItems), 0u);
}

// A node that is elected while its catalog is behind, and who sends it writes with the same one.
TEST(RowsTest, ALeaderIsNotOlderThanTheSchemaInItsLog) {
  model::TestMachine machine;
  std::shared_ptr<const model::Container> before;
  {
    model::TestNode node(machine);
    before = node.MakeContainer(kTable);
    auto after = node.Run(node.catalog().ReplaceContainer(before->link, model::Json(kTable), ""));
    ASSERT_TRUE(after);
    EndBatch settle;
    EXPECT_TRUE(node.Execute(**after, settle.epk, settle).status.ok());
  }
  model::TestNode node(machine.AfterPowerCut());
  auto now = node.Find(before->link);
  auto replica = node.replicas().Find(now->map->ranges().front().id);
  auto write = [&](const model::Container& container) -> runtime::Task<Code> {
    WriteRows rows = Write("k", {Row("r", {})});
    auto reply =
        co_await node.router().ExecuteAt(container.ring(), container.map->ranges().front(), rows);
    co_return reply.status.code();
  };
  replica->SetSchema(before);
  EXPECT_EQ(node.Run(write(*before)), Code::kSchemaChanged);
  EXPECT_EQ(Show(node, *before, ReadPartition("k")), "");
  replica->SetSchema(now);
  EXPECT_EQ(node.Run(write(*now)), Code::kOk);
}

TEST(RowsTest, AFullPartitionTakesDeletesAndNothingElse) {
  model::TestNodeOptions options;
  options.limits.logical_bytes = 2000;
  model::TestNode node{model::TestMachine(), options};
  auto container = node.MakeContainer(kTable);
  auto write = [&](RowChange change) {
    WriteRows write = Write("k", {std::move(change)});
    return node.Execute(*container, write.epk, write).status.code();
  };
  ASSERT_EQ(write(Row("x", {{CellAction::kSet, 1, "", std::string(1900, 'x')}})), Code::kOk);
  EXPECT_EQ(write(Row("y", {{CellAction::kSet, 1, "", std::string(100, 'x')}})),
            Code::kQuotaExceeded);
  EXPECT_EQ(write({.key = "x", .cells = {{CellAction::kDelete, 1, "", ""}}}), Code::kOk);
  EXPECT_EQ(write({.action = RowAction::kDeleteRow, .key = "x"}), Code::kOk);
  EXPECT_EQ(write({.action = RowAction::kDeletePartition}), Code::kOk);
}

TEST(RowsTest, OnlyTablesHaveRows) {
  model::TestNode node{model::TestMachine()};
  auto container = node.MakeContainer(R"({"id":"c","partitionKey":{"paths":["/a"]}})");
  WriteRows write = Write("k", {Row("x", {})});
  EXPECT_EQ(node.Execute(*container, "", write).status.code(), Code::kInvalidArgument);
  EXPECT_EQ(node.CountKeys(storage::Space::kItems), 0u);
}

std::vector<std::unique_ptr<partition::Operation>> Examples() {
  std::vector<std::unique_ptr<partition::Operation>> all;
  auto write = std::make_unique<WriteRows>(Write(
      "key", {Row("c", {{CellAction::kSet, 300, "p", "v"}, {CellAction::kRemove, 1, "", "x"}}),
              {.action = RowAction::kDeletePartition, .timestamp = -5, .ttl = 7}}));
  write->changes[0].whole = 301;
  write->conditions.push_back(
      {.kind = RowCondition::Kind::kCells,
       .is_static = true,
       .key = "c",
       .cells = {{.column = 4,
                  .type = cql::DataType::Map(cql::TypeId::kText, cql::TypeId::kInt),
                  .comparison = cql::Comparison::kIn,
                  .part = CellCondition::Part::kElement,
                  .element = "k",
                  .values = {std::nullopt, std::string("\0\0\0\1", 4)}}}});
  KeptBatch batch{.made = 5, .parts = {{ContainerId(9), "epk", "key", write->changes}}};
  write->batch = batch.Encode();
  write->forced = true;
  all.push_back(std::move(write));
  auto read = std::make_unique<ReadRows>(ReadPartition("key"));
  read->spans = {{.begin = "a", .end = "b"}, {.begin = "c", .one = true}};
  read->reversed = read->with_static = true;
  read->after = "after";
  read->after_rows = 3;
  all.push_back(std::move(read));
  auto end = std::make_unique<EndBatch>();
  end->epk = "epk";
  end->partition_key = "key";
  end->batch = {.high = 1, .low = 2};
  all.push_back(std::move(end));
  return all;
}

TEST(RowsTest, OperationsAreTheSameAfterTheWire) {
  partition::OperationRegistry registry;
  RegisterRowOperations(registry);
  SeededRandom random(3);
  for (const auto& operation : Examples()) {
    std::string bytes = partition::OperationRegistry::EncodeMessage(*operation);
    auto again = registry.DecodeMessage(bytes);
    ASSERT_TRUE(again) << again.error().ToString();
    EXPECT_EQ(partition::OperationRegistry::EncodeMessage(**again), bytes);
    // Damaged ones are refused, or are other operations: they harm nobody.
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(registry.DecodeMessage(bytes.substr(0, size)));
    }
    for (int tries = 0; tries < 2000; ++tries) {
      std::string damaged = bytes;
      damaged[random.Next() % damaged.size()] = static_cast<char>(random.Next());
      auto read = registry.DecodeMessage(damaged);
      EXPECT_TRUE(read || read.error().code() == Code::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace orrery::rows
