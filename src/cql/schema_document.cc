#include "cql/schema_document.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "cql/filter.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

using types::DocumentBuilder;
using types::Kind;
using types::Value;

constexpr std::string_view kIndexKinds[] = {"Simple", "Keys", "Values", "Entries", "Full"};
constexpr const char* kIndexStates[] = {"scanned", "building", "ready"};

// ---- Writing ----

void AppendMap(std::string_view name, const StringMap& map, DocumentBuilder& out) {
  out.BeginObject(name);
  for (const auto& [key, value] : map) {
    out.Append(key, value);
  }
  out.End();
}

void AppendOptions(const Options& options, DocumentBuilder& out) {
  if (options.empty()) {
    return;
  }
  out.BeginObject("options");
  for (const Option& option : options) {
    if (const auto* text = std::get_if<std::string>(&option.value)) {
      out.Append(option.name, *text);
    } else {
      AppendMap(option.name, std::get<StringMap>(option.value), out);
    }
  }
  out.End();
}

void AppendColumns(const Table& table, DocumentBuilder& out) {
  out.BeginArray("columns");
  for (const Column& column : table.columns) {
    out.BeginObject("");
    out.Append("name", column.name);
    out.Append("type", column.type.ToCql());
    out.Append("id", Value::Integer(column.id));
    out.End();
  }
  out.End();
  out.BeginArray("partitionKeys");
  for (const Column& column : table.partition_key()) {
    out.BeginObject("");
    out.Append("name", column.name);
    out.End();
  }
  out.End();
  if (table.clustering_columns > 0) {
    out.BeginArray("clusterKeys");
    for (const Column& column : table.clustering()) {
      out.BeginObject("");
      out.Append("name", column.name);
      out.Append("orderBy", column.descending ? "Desc" : "Asc");
      out.End();
    }
    out.End();
  }
  if (table.has_static()) {
    out.BeginArray("staticColumns");
    for (const Column& column : table.others()) {
      if (column.kind == ColumnKind::kStatic) {
        out.BeginObject("");
        out.Append("name", column.name);
        out.End();
      }
    }
    out.End();
  }
}

void AppendDropped(const Table& table, DocumentBuilder& out) {
  if (table.dropped.empty()) {
    return;
  }
  out.BeginArray("dropped");
  for (const DroppedColumn& column : table.dropped) {
    out.BeginObject("");
    out.Append("name", column.name);
    out.Append("type", column.type.ToCql());
    if (column.is_static) {
      out.Append("static", Value::Bool(true));
    }
    out.Append("timestamp", Value::Integer(column.timestamp));
    out.End();
  }
  out.End();
}

void AppendIndexes(const Table& table, DocumentBuilder& out) {
  if (table.indexes.empty()) {
    return;
  }
  out.BeginArray("indexes");
  for (const Index& index : table.indexes) {
    out.BeginObject("");
    out.Append("name", index.name);
    out.Append("kind", kIndexKinds[static_cast<size_t>(index.kind)]);
    out.Append("column", index.column);
    if (!index.implementation.empty()) {
      out.Append("implementation", index.implementation);
    }
    if (!index.options.empty()) {
      AppendMap("options", index.options, out);
    }
    if (index.state != IndexState::kScanned) {
      out.Append("state", kIndexStates[static_cast<size_t>(index.state)]);
    }
    if (!index.container.empty()) {
      out.Append("container", index.container);
    }
    out.End();
  }
  out.End();
}

void AppendView(const View& view, DocumentBuilder& out) {
  out.BeginObject("view");
  out.Append("base", view.base);
  out.Append("where", view.where);
  out.Append("allColumns", Value::Bool(view.all_columns));
  out.Append("ready", Value::Bool(view.ready));
  if (!view.filters.empty()) {
    out.BeginArray("filters");
    for (const ViewFilter& filter : view.filters) {
      out.BeginObject("");
      out.Append("column", Value::Integer(filter.column));
      out.Append("comparison", SignOf(filter.comparison));
      out.Append("value", ToHex(filter.value));
      out.End();
    }
    out.End();
  }
  out.End();
}

// ---- Reading ----

// The parts of an object, each checked. The first fault stays; what is read after it is empty.
class Reader {
 public:
  // `what` names the object in messages.
  Reader(Value object, std::string what, std::initializer_list<std::string_view> known)
      : object_(object), what_(std::move(what)) {
    if (object.kind() != Kind::kObject || object.is_extended()) {
      Fail("it is no object");
      object_ = Value();
      return;
    }
    for (types::ValueIterator each(object.bson()); each.Next();) {
      if (std::ranges::find(known, each.name()) == known.end()) {
        Fail("unknown member '" + std::string(each.name()) + "'");
      }
    }
  }

  std::string Text(std::string_view name) {
    return std::string(View(name, Kind::kString).string());
  }
  std::string TextOr(std::string_view name, std::string otherwise) {
    return Has(name) ? Text(name) : otherwise;
  }
  bool BoolOr(std::string_view name, bool otherwise) {
    return Has(name) ? View(name, Kind::kBool).boolean() : otherwise;
  }
  int64_t Integer(std::string_view name, int64_t least, int64_t most) {
    Value value = View(name, Kind::kNumber);
    if (!value.defined()) {
      return least;
    }
    if (!value.is_integer() || value.integer() < least || value.integer() > most) {
      Fail("'" + std::string(name) + "' is out of range");
      return least;
    }
    return value.integer();
  }
  DataType Type(const TypeScope& scope) {
    std::string text = Text("type");
    if (!status_.ok()) {
      return {};
    }
    auto type = ParseTypeText(text, scope);
    if (!type) {
      Fail("type '" + text + "': " + type.error().message());
      return {};
    }
    return *type;
  }
  // Of an array that may be left out.
  std::vector<Value> Items(std::string_view name) {
    std::vector<Value> items;
    if (Has(name)) {
      for (types::ValueIterator each(View(name, Kind::kArray).bson()); each.Next();) {
        items.push_back(each.value());
      }
    }
    return items;
  }
  StringMap Map(std::string_view name) {
    return Has(name) ? MapOf(View(name, Kind::kObject), name) : StringMap();
  }
  StringMap MapOf(Value object, std::string_view name) {
    StringMap map;
    for (types::ValueIterator each(object.bson()); each.Next();) {
      if (each.value().kind() != Kind::kString) {
        Fail("'" + std::string(name) + "' is no map of text");
        break;
      }
      map.emplace_back(each.name(), each.value().string());
    }
    return map;
  }
  Options ReadOptions() {
    Options options;
    if (!Has("options")) {
      return options;
    }
    for (types::ValueIterator each(View("options", Kind::kObject).bson()); each.Next();) {
      Option& option = options.emplace_back(std::string(each.name()));
      if (each.value().kind() == Kind::kString) {
        option.value = std::string(each.value().string());
      } else if (each.value().kind() == Kind::kObject) {
        option.value = MapOf(each.value(), each.name());
      } else {
        Fail("option '" + option.name + "' is neither text nor a map");
      }
    }
    return options;
  }

  void Fail(std::string why) {
    if (status_.ok()) {
      status_ = Status(Code::kCorruption, what_ + ": " + why);
    }
  }
  void Fail(const Status& status) {
    if (status_.ok()) {
      status_ = status;
    }
  }
  const Status& status() const { return status_; }

 private:
  bool Has(std::string_view name) const { return Member(name).defined(); }
  Value Member(std::string_view name) const {
    return object_.defined() ? types::Member(object_, name) : Value();
  }
  // Undefined if it is not of the kind.
  Value View(std::string_view name, Kind kind) {
    Value value = Member(name);
    if (value.kind() != kind || value.is_extended()) {
      Fail("'" + std::string(name) + "' is missing or of another kind");
      return kind == Kind::kArray || kind == Kind::kObject ? types::Document().root() : Value();
    }
    return value;
  }

  Value object_;
  std::string what_;
  Status status_;
};

// Tells what the columns are, which stand in the order of Table.
Status ReadKinds(Reader& reader, Table& table) {
  size_t next = 0;
  auto take = [&](Value key, std::initializer_list<std::string_view> known, ColumnKind kind) {
    Reader one(key, "a key column", known);
    std::string name = one.Text("name");
    bool cluster = kind == ColumnKind::kClustering;
    std::string order = cluster ? one.Text("orderBy") : "Asc";
    if (next >= table.columns.size() || table.columns[next].name != name) {
      one.Fail("column '" + name + "' is not at its place");
    }
    if (order != "Asc" && order != "Desc") {
      one.Fail("orderBy '" + order + "'");
    }
    reader.Fail(one.status());
    if (one.status().ok()) {
      table.columns[next].kind = kind;
      table.columns[next++].descending = order == "Desc";
    }
  };
  for (Value key : reader.Items("partitionKeys")) {
    take(key, {"name"}, ColumnKind::kPartitionKey);
    ++table.partition_columns;
  }
  for (Value key : reader.Items("clusterKeys")) {
    take(key, {"name", "orderBy"}, ColumnKind::kClustering);
    ++table.clustering_columns;
  }
  for (Value key : reader.Items("staticColumns")) {
    take(key, {"name"}, ColumnKind::kStatic);
  }
  if (table.partition_columns == 0) {
    reader.Fail("there is no partition key");
  }
  return reader.status();
}

Index ReadIndex(Value value, Reader& table) {
  Reader reader(value, "an index",
                {"name", "kind", "column", "implementation", "options", "state", "container"});
  Index index{.name = reader.Text("name"),
              .column = reader.Text("column"),
              .implementation = reader.TextOr("implementation", ""),
              .options = reader.Map("options"),
              .container = reader.TextOr("container", "")};
  std::string kind = reader.Text("kind");
  auto found = std::ranges::find(kIndexKinds, kind);
  if (found == std::end(kIndexKinds)) {
    reader.Fail("kind '" + kind + "'");
  } else {
    index.kind = static_cast<IndexTargetKind>(found - std::begin(kIndexKinds));
  }
  std::string state = reader.TextOr("state", kIndexStates[0]);
  auto stands = std::ranges::find(kIndexStates, state);
  if (stands == std::end(kIndexStates)) {
    reader.Fail("state '" + state + "'");
  } else {
    index.state = static_cast<IndexState>(stands - std::begin(kIndexStates));
  }
  table.Fail(reader.status());
  return index;
}

View ReadView(Value value, Reader& table) {
  Reader reader(value, "a view", {"base", "where", "allColumns", "ready", "filters"});
  View view{.base = reader.Text("base"),
            .where = reader.Text("where"),
            .all_columns = reader.BoolOr("allColumns", false),
            .filters = {},
            .ready = reader.BoolOr("ready", false)};
  for (Value each : reader.Items("filters")) {
    Reader one(each, "a filter of a view", {"column", "comparison", "value"});
    ViewFilter& filter = view.filters.emplace_back();
    filter.column = static_cast<uint32_t>(one.Integer("column", 0, UINT32_MAX));
    const std::string sign = one.Text("comparison");
    using enum Comparison;
    constexpr Comparison kAll[] = {kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual};
    auto found = std::ranges::find(kAll, sign, SignOf);
    if (found == std::end(kAll) || !FromHex(one.Text("value"), &filter.value)) {
      one.Fail("it compares with nothing");
    } else {
      filter.comparison = *found;
    }
    reader.Fail(one.status());
  }
  table.Fail(reader.status());
  return view;
}

void AddWithUsed(const DataType& type, const Keyspace& keyspace,
                 std::set<std::string, std::less<>>& seen, std::vector<const DataType*>& out) {
  for (const DataType& part : type.parameters()) {
    AddWithUsed(part, keyspace, seen, out);
  }
  if (type.id() != TypeId::kUdt || !seen.insert(type.name()).second) {
    return;
  }
  auto found = keyspace.types.find(type.name());
  if (found != keyspace.types.end()) {
    out.push_back(&found->second);
  }
}

}  // namespace

TypeScope ScopeOf(const Keyspace& keyspace) {
  return {keyspace.name, [&keyspace](std::string_view name) -> std::optional<DataType> {
            auto found = keyspace.types.find(name);
            return found == keyspace.types.end() ? std::nullopt : std::optional(found->second);
          }};
}

std::vector<const DataType*> TypesInOrder(const Keyspace& keyspace) {
  std::vector<const DataType*> types;
  std::set<std::string, std::less<>> seen;
  for (const auto& [name, type] : keyspace.types) {
    AddWithUsed(type, keyspace, seen, types);
  }
  return types;
}

types::Document TableToDocument(const Table& table) {
  DocumentBuilder out;
  out.Append("keyspace", table.keyspace);
  out.Append("name", table.name);
  out.Append("id", UuidToText(table.id));
  AppendColumns(table, out);
  AppendOptions(table.options, out);
  if (table.default_ttl != 0) {
    out.Append("defaultTtl", Value::Integer(table.default_ttl));
  }
  out.Append("nextColumn", Value::Integer(table.next_column));
  AppendDropped(table, out);
  AppendIndexes(table, out);
  if (table.derived != 0) {
    out.Append("derived", Value::Integer(table.derived));
  }
  if (table.view) {
    AppendView(*table.view, out);
  }
  return out.Finish();
}

Result<Table> TableFromDocument(Value document, const TypeScope& scope) {
  Reader reader(
      document, "a table",
      {"keyspace", "name", "id", "columns", "partitionKeys", "clusterKeys", "staticColumns",
       "options", "defaultTtl", "nextColumn", "dropped", "indexes", "derived", "view"});
  Table table{.keyspace = reader.Text("keyspace"), .name = reader.Text("name")};
  if (std::string id = reader.Text("id"); !UuidFromText(id, &table.id)) {
    reader.Fail("id '" + id + "'");
  }
  for (Value value : reader.Items("columns")) {
    Reader one(value, "a column of " + table.name, {"name", "type", "id"});
    table.columns.push_back({.id = static_cast<uint32_t>(one.Integer("id", 0, UINT32_MAX)),
                             .name = one.Text("name"),
                             .type = one.Type(scope)});
    reader.Fail(one.status());
  }
  ORRERY_TRY_STATUS(ReadKinds(reader, table));
  table.options = reader.ReadOptions();
  if (types::Member(document, "defaultTtl").defined()) {
    table.default_ttl = static_cast<int32_t>(reader.Integer("defaultTtl", INT32_MIN, INT32_MAX));
  }
  table.next_column = static_cast<uint32_t>(reader.Integer("nextColumn", 0, UINT32_MAX));
  for (Value value : reader.Items("dropped")) {
    Reader one(value, "a dropped column", {"name", "type", "static", "timestamp"});
    table.dropped.push_back({.name = one.Text("name"),
                             .type = one.Type(scope),
                             .is_static = one.BoolOr("static", false),
                             .timestamp = one.Integer("timestamp", INT64_MIN, INT64_MAX)});
    reader.Fail(one.status());
  }
  for (Value value : reader.Items("indexes")) {
    table.indexes.push_back(ReadIndex(value, reader));
  }
  if (Value value = types::Member(document, "view"); value.defined()) {
    table.view = ReadView(value, reader);
  }
  if (types::Member(document, "derived").defined()) {
    table.derived = static_cast<uint32_t>(reader.Integer("derived", 0, UINT32_MAX));
  }
  ORRERY_TRY_STATUS(reader.status());
  return table;
}

types::Document KeyspaceToDocument(const Keyspace& keyspace) {
  DocumentBuilder out;
  out.Append("name", keyspace.name);
  AppendMap("replication", keyspace.replication, out);
  out.Append("durableWrites", Value::Bool(keyspace.durable_writes));
  if (!keyspace.types.empty()) {
    out.BeginArray("types");
    for (const DataType* type : TypesInOrder(keyspace)) {
      out.BeginObject("");
      out.Append("name", type->name());
      out.BeginArray("fields");
      for (size_t i = 0; i < type->parameters().size(); ++i) {
        out.BeginObject("");
        out.Append("name", type->field_names()[i]);
        out.Append("type", type->parameters()[i].ToCql());
        out.End();
      }
      out.End();
      out.End();
    }
    out.End();
  }
  return out.Finish();
}

Result<Keyspace> KeyspaceFromDocument(Value document) {
  Reader reader(document, "a keyspace", {"name", "replication", "durableWrites", "types"});
  Keyspace keyspace{.name = reader.Text("name"),
                    .replication = reader.Map("replication"),
                    .durable_writes = reader.BoolOr("durableWrites", true)};
  for (Value value : reader.Items("types")) {
    Reader one(value, "a type", {"name", "fields"});
    std::string name = one.Text("name");
    std::vector<DataType::Field> fields;
    for (Value field_value : one.Items("fields")) {
      Reader field(field_value, "a field of type " + name, {"name", "type"});
      fields.push_back({field.Text("name"), field.Type(ScopeOf(keyspace))});
      one.Fail(field.status());
    }
    reader.Fail(one.status());
    DataType type = DataType::Udt(keyspace.name, name, std::move(fields));
    if (!keyspace.types.emplace(name, std::move(type)).second) {
      reader.Fail("type '" + name + "' stands twice");
    }
  }
  ORRERY_TRY_STATUS(reader.status());
  return keyspace;
}

}  // namespace orrery::cql
