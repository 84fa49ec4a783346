// The statements that would make what there is.
#include <algorithm>

#include "cql/describe.h"
#include "cql/quoted.h"
#include "cql/system_tables.h"
#include "cql/table_options.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

constexpr std::string_view kIndent = "    ";
constexpr std::string_view kPackage = "org.apache.cassandra.locator.";

std::string FullName(std::string_view keyspace, std::string_view name) {
  return QuotedName(keyspace) + "." + QuotedName(name);
}

template <typename List, typename Text>
std::string Joined(const List& list, std::string_view between, Text text) {
  std::string out;
  for (const auto& element : list) {
    out += (out.empty() ? "" : std::string(between)) + text(element);
  }
  return out;
}

std::string MapText(StringMap map) {
  std::ranges::sort(map);
  return "{" +
         Joined(map, ", ",
                [](const auto& entry) {
                  return QuotedString(entry.first) + ": " + QuotedString(entry.second);
                }) +
         "}";
}

std::string ColumnText(std::string_view name, const DataType& type, bool is_static) {
  return QuotedName(name) + " " + type.ToCql() + (is_static ? " static" : "");
}

std::string ColumnText(const Column& column) {
  return ColumnText(column.name, column.type, column.kind == ColumnKind::kStatic);
}

bool WasDropped(const Table& table, const std::string& name) {
  return std::ranges::find(table.dropped, name, &DroppedColumn::name) != table.dropped.end();
}

// Of each kind, those of many cells come after the others.
std::vector<const Column*> InCreateOrder(const Table& table) {
  using enum ColumnKind;
  std::vector<const Column*> columns;
  for (ColumnKind kind : {kPartitionKey, kClustering, kStatic, kRegular}) {
    for (bool many : {false, true}) {
      for (const Column& column : table.columns) {
        if (column.kind == kind && column.type.multi_cell() == many) {
          columns.push_back(&column);
        }
      }
    }
  }
  return columns;
}

std::string KeyText(const Table& table) {
  auto name = [](const Column& column) { return QuotedName(column.name); };
  std::string key = Joined(table.partition_key(), ", ", name);
  key = table.partition_columns > 1 ? "(" + key + ")" : key;
  std::string clustering = Joined(table.clustering(), ", ", name);
  return "PRIMARY KEY (" + key + (clustering.empty() ? "" : ", ") + clustering + ")";
}

// What stands between the parentheses, a line each.
std::vector<std::string> Lines(const Table& table, bool internals) {
  bool one_key = table.partition_columns == 1 && table.clustering_columns == 0;
  std::vector<std::string> lines;
  for (const Column* column : InCreateOrder(table)) {
    if (!internals || !WasDropped(table, column->name)) {
      bool key = one_key && column->kind == ColumnKind::kPartitionKey;
      lines.push_back(ColumnText(*column) + (key ? " PRIMARY KEY" : ""));
    }
  }
  if (internals) {
    for (const DroppedColumn& dropped : table.dropped) {
      lines.push_back(ColumnText(dropped.name, dropped.type, dropped.is_static));
    }
  }
  if (!one_key) {
    lines.push_back(KeyText(table));
  }
  return lines;
}

std::string OptionLine(const Table& table, const TableOption& option) {
  std::string value;
  if (option.kind == OptionKind::kMap) {
    value = MapText(OptionMap(table, option.name));
  } else {
    value = OptionText(table, option.name);
    value = option.kind == OptionKind::kText ? QuotedString(value) : value;
  }
  return std::string(option.name) + " = " + value;
}

// What stands after WITH, a line each.
std::vector<std::string> WithLines(const Table& table, bool internals) {
  std::vector<std::string> lines;
  if (internals) {
    lines.push_back("ID = " + UuidToText(table.id));
  }
  if (table.clustering_columns > 0) {
    auto order = [](const Column& column) {
      return QuotedName(column.name) + (column.descending ? " DESC" : " ASC");
    };
    lines.push_back("CLUSTERING ORDER BY (" + Joined(table.clustering(), ", ", order) + ")");
  }
  for (const TableOption& option : TableOptionList()) {
    bool shown = IsVirtualKeyspace(table.keyspace) ? option.name == "comment"
                 : option.cosmos                   ? GivenOption(table, option.name) != nullptr
                                                   : true;
    if (shown) {
      lines.push_back(OptionLine(table, option));
    }
  }
  return lines;
}

// What makes the columns of `internals` again what they are.
std::string DropLines(const Table& table) {
  std::string out;
  std::string alter = "\nALTER TABLE " + FullName(table.keyspace, table.name);
  for (const DroppedColumn& dropped : table.dropped) {
    out += alter + " DROP " + QuotedName(dropped.name) + " USING TIMESTAMP " +
           std::to_string(dropped.timestamp) + ";";
    if (const Column* column = table.Find(dropped.name)) {
      out += alter + " ADD " + ColumnText(*column) + ";";
    }
  }
  return out;
}

}  // namespace

std::string KeyspaceStatement(const Keyspace& keyspace) {
  std::string name = QuotedName(keyspace.name);
  if (IsVirtualKeyspace(keyspace.name)) {
    return "/*\nWarning: Keyspace " + name +
           " is a virtual keyspace and cannot be recreated with CQL.\n"
           "Structure, for reference:\nVIRTUAL KEYSPACE " +
           name + ";\n*/";
  }
  auto entry = [](const auto& option) {
    std::string_view value = option.second;
    if (option.first == "class" && value.starts_with(kPackage)) {
      value.remove_prefix(kPackage.size());
    }
    return QuotedString(option.first) + ": " + QuotedString(value);
  };
  return "CREATE KEYSPACE " + name + " WITH replication = {" +
         Joined(keyspace.replication, ", ", entry) +
         "}  AND durable_writes = " + (keyspace.durable_writes ? "true" : "false") +
         (keyspace.throughput ? " AND " + std::string(kThroughputOption) + " = " +
                                    std::to_string(*keyspace.throughput)
                              : "") +
         ";";
}

std::string TableStatement(const Table& table, bool internals) {
  auto same = [](const std::string& line) { return line; };
  auto indented = [](const std::string& line) { return std::string(kIndent) + line; };
  std::string name = FullName(table.keyspace, table.name);
  bool is_virtual = IsVirtualKeyspace(table.keyspace);
  std::string out;
  if (is_virtual) {
    out = "/*\nWarning: Table " + name +
          " is a virtual table and cannot be recreated with CQL.\nStructure, for reference:\n";
  }
  out += (is_virtual ? "VIRTUAL TABLE " : "CREATE TABLE ") + name + " (\n" +
         Joined(Lines(table, internals), ",\n", indented) + "\n) WITH " +
         Joined(WithLines(table, internals), "\n    AND ", same) + ";";
  return out + (is_virtual ? "\n*/" : "") + (internals ? DropLines(table) : "");
}

std::string ViewStatement(const Table& view, bool internals) {
  auto same = [](const std::string& line) { return line; };
  auto name = [](const Column& column) { return QuotedName(column.name); };
  return "CREATE MATERIALIZED VIEW " + FullName(view.keyspace, view.name) + " AS\n    SELECT " +
         (view.view->all_columns ? "*" : Joined(view.columns, ", ", name)) + "\n    FROM " +
         FullName(view.keyspace, view.view->base) + "\n    WHERE " + view.view->where + "\n    " +
         KeyText(view) + "\n WITH " + Joined(WithLines(view, internals), "\n    AND ", same) + ";";
}

std::string TypeStatement(const DataType& type) {
  std::string out = "CREATE TYPE " + FullName(type.keyspace(), type.name()) + " (";
  for (size_t i = 0; i < type.parameters().size(); ++i) {
    out += (i == 0 ? "\n" : ",\n") + std::string(kIndent) + QuotedName(type.field_names()[i]) +
           " " + type.parameters()[i].ToCql();
  }
  return out + "\n);";
}

std::string IndexStatement(const Table& table, const Index& index) {
  bool custom = !index.implementation.empty();
  std::string out = std::string(custom ? "CREATE CUSTOM INDEX " : "CREATE INDEX ") +
                    QuotedName(index.name) + " ON " + FullName(table.keyspace, table.name) + " (" +
                    IndexTargetText(table, index) + ")";
  if (custom) {
    out += " USING " + QuotedString(index.implementation);
    out += index.options.empty() ? "" : " WITH OPTIONS = " + MapText(index.options);
  }
  return out + ";";
}

}  // namespace orrery::cql
