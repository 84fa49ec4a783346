#include "cql/system_schema.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/check.h"
#include "cql/number.h"
#include "cql/quoted.h"
#include "cql/system_tables.h"
#include "cql/table_options.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

// ---- Values ----

std::string Collection(const DataType& type, const std::vector<std::string>& parts) {
  std::string out;
  PartWriter writer(type, out);
  for (const std::string& part : parts) {
    writer.Add(part);
  }
  writer.Finish();
  return CanonicalValue(type, out);
}

std::string TextList(const std::vector<std::string>& texts) {
  return Collection(DataType::List(TypeId::kText), texts);
}

std::string TextMap(const StringMap& map) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : map) {
    parts.push_back(key);
    parts.push_back(value);
  }
  return Collection(DataType::Map(TypeId::kText, TypeId::kText), parts);
}

std::optional<std::string> Tokens(const NodeView& node) {
  if (node.tokens.empty()) {
    return std::nullopt;
  }
  std::vector<std::string> texts;
  for (int64_t token : node.tokens) {
    texts.push_back(std::to_string(token));
  }
  return Collection(DataType::Set(TypeId::kText), texts);
}

// The value of an option that is no map.
std::string OptionValue(const Table& table, const TableOption& option) {
  std::string text = OptionText(table, option.name);
  switch (option.kind) {
    case OptionKind::kMap:
    case OptionKind::kText: return text;
    case OptionKind::kInt: return IntBytes(IntegerFromText<int32_t>(text).value_or(0));
    case OptionKind::kDouble: return DoubleBytes(DoubleFromText(text).value_or(0));
    case OptionKind::kBoolean: return BooleanBytes(text == "true");
  }
  return text;
}

// ---- Rows ----

// Collects rows of one table, whose values are set by name.
class Rows {
 public:
  explicit Rows(const Table& table) : table_(table) {}
  void Begin() { rows_.emplace_back(table_.columns.size()); }
  void Set(std::string_view column, std::optional<std::string> value) {
    const Column* found = table_.Find(column);
    ORRERY_CHECK(found != nullptr);
    rows_.back()[static_cast<size_t>(found - table_.columns.data())] = std::move(value);
  }
  std::vector<SystemRow> Sorted() && {
    std::ranges::sort(rows_, [this](const SystemRow& a, const SystemRow& b) {
      for (size_t i = 0; i < table_.partition_columns + table_.clustering_columns; ++i) {
        if (int order = CompareValues(table_.columns[i].type, *a[i], *b[i]); order != 0) {
          return order < 0;
        }
      }
      return false;
    });
    return std::move(rows_);
  }

 private:
  const Table& table_;
  std::vector<SystemRow> rows_;
};

struct Context {
  const Schema& schema;
  const ClusterView& cluster;

  std::string VersionOf(const NodeView& node) const {
    return node.schema_version.empty() ? schema.version : node.schema_version;
  }
};

// Each keyspace that system_schema lists, or that system_virtual_schema does.
void ForEachKeyspace(const Context& context, bool is_virtual,
                     const std::function<void(const Keyspace&)>& visit) {
  for (const auto& [name, keyspace] : SystemKeyspaces()) {
    if (IsVirtualKeyspace(name) == is_virtual) {
      visit(keyspace);
    }
  }
  if (!is_virtual) {
    for (const auto& [name, keyspace] : context.schema.keyspaces) {
      visit(keyspace);
    }
  }
}

void ForEachTable(const Context& context, bool is_virtual,
                  const std::function<void(const Table&)>& visit) {
  ForEachKeyspace(context, is_virtual, [&](const Keyspace& keyspace) {
    for (const auto& [name, table] : keyspace.tables) {
      visit(table);
    }
  });
}

// ---- system ----

void Local(const Context& context, Rows& rows) {
  const NodeView& self = context.cluster.self;
  rows.Begin();
  rows.Set("key", "local");
  rows.Set("bootstrapped", "COMPLETED");
  rows.Set("broadcast_address", self.address);
  rows.Set("broadcast_port", IntBytes(self.storage_port));
  rows.Set("cluster_name", context.cluster.cluster_name);
  rows.Set("cql_version", std::string(kCqlVersion));
  rows.Set("data_center", self.data_center);
  rows.Set("gossip_generation", IntBytes(context.cluster.gossip_generation));
  rows.Set("host_id", self.host_id);
  rows.Set("listen_address", self.address);
  rows.Set("listen_port", IntBytes(self.storage_port));
  rows.Set("native_protocol_version", std::string(kNativeProtocolVersion));
  rows.Set("partitioner", std::string(kPartitioner));
  rows.Set("rack", self.rack);
  rows.Set("release_version", std::string(kReleaseVersion));
  rows.Set("rpc_address", self.address);
  rows.Set("rpc_port", IntBytes(self.native_port));
  rows.Set("schema_version", context.VersionOf(self));
  rows.Set("tokens", Tokens(self));
}

void SetPeer(const Context& context, const NodeView& peer, Rows& rows) {
  rows.Set("peer", peer.address);
  rows.Set("data_center", peer.data_center);
  rows.Set("host_id", peer.host_id);
  rows.Set("rack", peer.rack);
  rows.Set("release_version", std::string(kReleaseVersion));
  rows.Set("schema_version", context.VersionOf(peer));
  rows.Set("tokens", Tokens(peer));
}

// The table knows no ports: of nodes at one address its readers can reach one.
void Peers(const Context& context, Rows& rows) {
  std::set<std::string> seen = {context.cluster.self.address};
  for (const NodeView& peer : context.cluster.peers) {
    if (seen.insert(peer.address).second) {
      rows.Begin();
      SetPeer(context, peer, rows);
      rows.Set("rpc_address", peer.address);
    }
  }
}

void PeersV2(const Context& context, Rows& rows) {
  for (const NodeView& peer : context.cluster.peers) {
    rows.Begin();
    SetPeer(context, peer, rows);
    rows.Set("peer_port", IntBytes(peer.storage_port));
    rows.Set("native_address", peer.address);
    rows.Set("native_port", IntBytes(peer.native_port));
  }
}

// ---- system_schema, system_virtual_schema ----

void Keyspaces(const Context& context, Rows& rows) {
  ForEachKeyspace(context, false, [&](const Keyspace& keyspace) {
    rows.Begin();
    rows.Set("keyspace_name", keyspace.name);
    rows.Set("durable_writes", BooleanBytes(keyspace.durable_writes));
    rows.Set("replication", TextMap(keyspace.replication));
  });
}

void VirtualKeyspaces(const Context& context, Rows& rows) {
  ForEachKeyspace(context, true, [&](const Keyspace& keyspace) {
    rows.Begin();
    rows.Set("keyspace_name", keyspace.name);
  });
}

void SetOptions(const Table& table, Rows& rows) {
  for (const TableOption& option : TableOptionList()) {
    if (option.cosmos) {
      continue;
    }
    bool map = option.kind == OptionKind::kMap;
    // Extensions are blobs; nobody can set one.
    rows.Set(option.name,
             map ? TextMap(OptionMap(table, option.name)) : OptionValue(table, option));
  }
  // No longer used, but drivers read them.
  rows.Set("dclocal_read_repair_chance", DoubleBytes(0));
  rows.Set("read_repair_chance", DoubleBytes(0));
}

void Tables(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    if (table.view) {
      return;
    }
    rows.Begin();
    rows.Set("keyspace_name", table.keyspace);
    rows.Set("table_name", table.name);
    rows.Set("id", table.id);
    std::vector<std::string> flags = {"compound"};
    if (table.counts()) {
      flags.push_back("counter");
    }
    rows.Set("flags", Collection(DataType::Set(TypeId::kText), flags));
    SetOptions(table, rows);
  });
}

void Views(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    const Table* base =
        table.view ? context.schema.FindTable(table.keyspace, table.view->base) : nullptr;
    if (base == nullptr) {
      return;
    }
    rows.Begin();
    rows.Set("keyspace_name", table.keyspace);
    rows.Set("view_name", table.name);
    rows.Set("id", table.id);
    rows.Set("base_table_id", base->id);
    rows.Set("base_table_name", base->name);
    rows.Set("include_all_columns", BooleanBytes(table.view->all_columns));
    rows.Set("where_clause", table.view->where);
    SetOptions(table, rows);
  });
}

void BuiltViews(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    if (table.view && table.view->ready) {
      rows.Begin();
      rows.Set("keyspace_name", table.keyspace);
      rows.Set("view_name", table.name);
      rows.Set("status_replicated", BooleanBytes(true));
    }
  });
}

// The column is called so, but it is the keyspace.
void BuiltIndexes(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    for (const Index& index : table.indexes) {
      if (index.state != IndexState::kBuilding) {
        rows.Begin();
        rows.Set("table_name", table.keyspace);
        rows.Set("index_name", index.name);
      }
    }
  });
}

void VirtualTables(const Context& context, Rows& rows) {
  ForEachTable(context, true, [&](const Table& table) {
    rows.Begin();
    rows.Set("keyspace_name", table.keyspace);
    rows.Set("table_name", table.name);
    rows.Set("comment", OptionText(table, "comment"));
  });
}

const char* KindText(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kPartitionKey: return "partition_key";
    case ColumnKind::kClustering: return "clustering";
    case ColumnKind::kStatic: return "static";
    case ColumnKind::kRegular: return "regular";
  }
  return "";
}

void Columns(const Context& context, bool is_virtual, Rows& rows) {
  ForEachTable(context, is_virtual, [&](const Table& table) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      const Column& column = table.columns[i];
      bool clusters = column.kind == ColumnKind::kClustering;
      size_t place = clusters ? i - table.partition_columns : i;
      rows.Begin();
      rows.Set("keyspace_name", table.keyspace);
      rows.Set("table_name", table.name);
      rows.Set("column_name", column.name);
      rows.Set("clustering_order", !clusters ? "none" : column.descending ? "desc" : "asc");
      rows.Set("column_name_bytes", column.name);
      rows.Set("kind", KindText(column.kind));
      rows.Set("position", IntBytes(column.is_key() ? static_cast<int32_t>(place) : -1));
      rows.Set("type", column.type.ToCql());
    }
  });
}

void DroppedColumns(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    for (const DroppedColumn& column : table.dropped) {
      rows.Begin();
      rows.Set("keyspace_name", table.keyspace);
      rows.Set("table_name", table.name);
      rows.Set("column_name", column.name);
      rows.Set("dropped_time", BigintBytes(column.timestamp / 1000));
      rows.Set("kind", column.is_static ? "static" : "regular");
      rows.Set("type", column.type.ToCql());
    }
  });
}

void Types(const Context& context, Rows& rows) {
  ForEachKeyspace(context, false, [&](const Keyspace& keyspace) {
    for (const auto& [name, type] : keyspace.types) {
      std::vector<std::string> types;
      for (const DataType& field : type.parameters()) {
        types.push_back(field.ToCql());
      }
      rows.Begin();
      rows.Set("keyspace_name", keyspace.name);
      rows.Set("type_name", name);
      rows.Set("field_names", TextList(type.field_names()));
      rows.Set("field_types", TextList(types));
    }
  });
}

void Indexes(const Context& context, Rows& rows) {
  ForEachTable(context, false, [&](const Table& table) {
    for (const Index& index : table.indexes) {
      StringMap options = index.options;
      if (!index.implementation.empty()) {
        options.emplace_back("class_name", index.implementation);
      }
      options.emplace_back("target", IndexTargetText(table, index));
      rows.Begin();
      rows.Set("keyspace_name", table.keyspace);
      rows.Set("table_name", table.name);
      rows.Set("index_name", index.name);
      rows.Set("kind", index.implementation.empty() ? "COMPOSITES" : "CUSTOM");
      rows.Set("options", TextMap(options));
    }
  });
}

struct Source {
  std::string_view keyspace;
  std::string_view table;
  std::function<void(const Context&, Rows&)> fill;
};

// The others are empty.
const std::vector<Source>& Sources() {
  static const std::vector<Source> sources = {
      {"system", "IndexInfo", BuiltIndexes},
      {"system", "built_views", BuiltViews},
      {"system", "local", Local},
      {"system", "peers", Peers},
      {"system", "peers_v2", PeersV2},
      {"system_schema", "columns",
       [](const Context& context, Rows& rows) { Columns(context, false, rows); }},
      {"system_schema", "dropped_columns", DroppedColumns},
      {"system_schema", "indexes", Indexes},
      {"system_schema", "keyspaces", Keyspaces},
      {"system_schema", "tables", Tables},
      {"system_schema", "types", Types},
      {"system_schema", "views", Views},
      {"system_virtual_schema", "columns",
       [](const Context& context, Rows& rows) { Columns(context, true, rows); }},
      {"system_virtual_schema", "keyspaces", VirtualKeyspaces},
      {"system_virtual_schema", "tables", VirtualTables},
  };
  return sources;
}

}  // namespace

std::vector<SystemRow> SystemRows(const Table& table, const Schema& schema,
                                  const ClusterView& cluster) {
  Rows rows(table);
  for (const Source& source : Sources()) {
    if (source.keyspace == table.keyspace && source.table == table.name) {
      source.fill(Context{schema, cluster}, rows);
    }
  }
  return std::move(rows).Sorted();
}

std::string IndexTargetText(const Table& table, const Index& index) {
  std::string column = QuotedName(index.column);
  switch (index.kind) {
    case IndexTargetKind::kSimple: {
      // Of a collection the values are meant.
      const Column* found = table.Find(index.column);
      bool collection = found != nullptr && found->type.is_collection() && !found->type.frozen();
      return collection ? "values(" + column + ")" : column;
    }
    case IndexTargetKind::kKeys: return "keys(" + column + ")";
    case IndexTargetKind::kValues: return "values(" + column + ")";
    case IndexTargetKind::kEntries: return "entries(" + column + ")";
    case IndexTargetKind::kFull: return "full(" + column + ")";
  }
  return column;
}

}  // namespace orrery::cql
