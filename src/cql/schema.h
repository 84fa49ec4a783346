// What a keyspace and a table are. Plain values; immutable once published.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cql/ast.h"
#include "cql/data_type.h"

namespace orrery::cql {

enum class ColumnKind : uint8_t { kPartitionKey = 1, kClustering, kStatic, kRegular };

struct Column {
  uint32_t id = 0;  // names its cells; a table never uses one twice
  std::string name;
  DataType type;
  ColumnKind kind = ColumnKind::kRegular;
  bool descending = false;  // of a clustering column

  bool is_key() const { return kind <= ColumnKind::kClustering; }
  bool operator==(const Column&) const = default;
};

struct DroppedColumn {
  std::string name;
  DataType type;
  bool is_static = false;
  int64_t timestamp = 0;  // microseconds
  bool operator==(const DroppedColumn&) const = default;
};

// Entries of an index are kept from kBuilding on; a query is answered by them when it is ready.
// Until then, and always on static columns, all rows are looked at.
enum class IndexState : uint8_t { kScanned, kBuilding, kReady };

struct Index {
  std::string name;
  IndexTargetKind kind = IndexTargetKind::kSimple;
  std::string column;
  std::string implementation;  // of a custom one
  StringMap options;
  IndexState state = IndexState::kScanned;
  // That keeps its entries: each index has one of its own, also if it takes the name of another.
  // Empty: <table>.<name>, as it was before.
  std::string container;
  bool operator==(const Index&) const = default;
};

// What a row of the table must be to be in a view.
struct ViewFilter {
  uint32_t column = 0;  // its id
  Comparison comparison = Comparison::kEqual;
  std::string value;  // serialized
  bool operator==(const ViewFilter&) const = default;
};

// Of a table that is a materialized view. Its columns have the ids of those that they show.
struct View {
  std::string base;  // in the same keyspace
  std::string where;
  bool all_columns = false;
  std::vector<ViewFilter> filters;
  bool ready = false;  // it has all rows that were there when it was made
  bool operator==(const View&) const = default;
};

struct Table {
  std::string keyspace;
  std::string name;
  std::string id;  // 16 bytes of a uuid
  // As SELECT * has them: partition key, clustering columns, static ones by name, the others by
  // name.
  std::vector<Column> columns;
  size_t partition_columns = 0;
  size_t clustering_columns = 0;
  Options options;  // those that were given, as they are shown
  int32_t default_ttl = 0;
  uint32_t next_column = 1;
  std::vector<DroppedColumn> dropped;
  std::vector<Index> indexes;
  std::optional<View> view;
  uint32_t derived = 0;  // rises with every change of what indexes and views keep of its rows
  bool operator==(const Table&) const = default;

  std::span<const Column> partition_key() const { return {columns.data(), partition_columns}; }
  std::span<const Column> clustering() const {
    return {columns.data() + partition_columns, clustering_columns};
  }
  std::span<const Column> others() const {  // static and regular ones
    return std::span(columns).subspan(partition_columns + clustering_columns);
  }
  // Null if there is none.
  const Column* Find(std::string_view column) const;
  bool has_static() const;
  bool counts() const;  // a table of counters
};

struct Keyspace {
  std::string name;
  StringMap replication;  // `class` is the full name
  bool durable_writes = true;
  std::optional<uint64_t> throughput;  // RU/s that its tables share; not in its document
  std::map<std::string, DataType, std::less<>> types;
  std::map<std::string, Table, std::less<>> tables;
};

// All that there is, of one state of the catalog; without the keyspaces of the system.
struct Schema {
  std::string version;  // 16 bytes of a uuid; another one when anything is different
  std::map<std::string, Keyspace, std::less<>> keyspaces;

  const Keyspace* FindKeyspace(std::string_view name) const;
  const Table* FindTable(std::string_view keyspace, std::string_view table) const;
};

}  // namespace orrery::cql
