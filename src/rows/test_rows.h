// Rows of a table of a node in memory. Test support.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cql/row.h"
#include "model/test_node.h"
#include "rows/rows.h"

namespace orrery::rows {

inline constexpr std::string_view kTable =
    R"({"id":"t","partitionKey":{"paths":["/a"],"kind":"Token","version":2},"cassandra":{}})";

inline WriteRows Write(std::string_view key, std::vector<RowChange> changes) {
  WriteRows write;
  write.partition_key = key;
  write.epk = types::CassandraEpk(key);
  write.changes = std::move(changes);
  return write;
}

inline RowChange Row(std::string clustering, std::vector<CellChange> cells) {
  return {.marks = true, .key = std::move(clustering), .cells = std::move(cells)};
}

// "clustering:cell cell;" of each row, of all that a read gives.
inline std::string Show(model::TestNode& node, const model::Container& container, ReadRows read) {
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

inline ReadRows ReadPartition(std::string_view key) {
  ReadRows read;
  read.partition_key = key;
  read.range.min = types::CassandraEpk(key);
  read.range.max = read.range.min + '\0';
  return read;
}

}  // namespace orrery::rows
