#include "rows/rows.h"

#include "base/random.h"
#include "cql/row.h"
#include "cql/value.h"
#include "model/test_node.h"

namespace orrery::rows {
namespace {

constexpr std::string_view kTable =
    R"({"id":"t","partitionKey":{"paths":["/a"],"kind":"Token","version":2},"cassandra":{}})";

WriteRows Write(std::string_view key, std::vector<RowChange> changes) {
  WriteRows write;
  write.partition_key = key;
  write.epk = types::CassandraEpk(key);
  write.changes = std::move(changes);
  return write;
}

RowChange Row(std::string clustering, std::vector<CellChange> cells) {
  return {.marks = true, .key = std::move(clustering), .cells = std::move(cells)};
}

// "clustering:cell cell;" of each row, of all that a read gives.
std::string Show(model::TestNode& node, const model::Container& container, ReadRows read) {
  std::string text;
  for (int pages = 0; pages < 100; ++pages) {
    const types::Epk place = read.range.min;
    partition::Reply reply = node.Execute(container, place, read);
    EXPECT_TRUE(reply.status.ok()) << reply.status.ToString();
    auto page = RowPage::Decode(reply.body);
    if (!page) {
      ADD_FAILURE() << page.error().ToString();
      return text;
    }
    for (const RowPage::Partition& partition : page->partitions) {
      for (const RowPage::Row& row : partition.rows) {
        text += std::string(row.key) + ":";
        auto live = cql::ReadRow(row.row, page->now, row.deleted);
        for (const cql::CellView& cell : live->cells) {
          text += cell.counter ? std::to_string(cell.count) : std::string(cell.value);
          text += " ";
        }
        text += ";";
      }
    }
    if (page->last.empty()) {
      return text;
    }
    read.after = page->last;
    read.after_rows = page->last_rows;
  }
  ADD_FAILURE() << "it does not end";
  return text;
}

ReadRows ReadPartition(std::string_view key) {
  ReadRows read;
  read.partition_key = key;
  read.range.min = types::CassandraEpk(key);
  read.range.max = read.range.min + '\0';
  return read;
}

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
