#include "cql/describe.h"

#include <algorithm>
#include <map>
#include <utility>

#include "cql/define.h"
#include "cql/quoted.h"
#include "cql/schema_document.h"
#include "cql/system_tables.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> NotThere(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

// Something that can be described.
struct Element {
  std::string_view keyspace;
  std::string_view type;
  std::string_view name;
  std::string statement;  // empty in a list of names
};

std::vector<DescribeColumn> ElementColumns(bool statements) {
  std::vector<DescribeColumn> columns = {
      {"keyspace_name", TypeId::kText}, {"type", TypeId::kText}, {"name", TypeId::kText}};
  if (statements) {
    columns.push_back({"create_statement", TypeId::kText});
  }
  return columns;
}

Description ToRows(const std::vector<Element>& elements, bool statements) {
  Description description{.columns = ElementColumns(statements), .rows = {}};
  for (const Element& element : elements) {
    SystemRow& row = description.rows.emplace_back();
    row.push_back(QuotedName(element.keyspace));
    row.push_back(std::string(element.type));
    row.push_back(QuotedName(element.name));
    if (statements) {
      row.push_back(element.statement);
    }
  }
  return description;
}

std::string AddressText(const NodeView& node) {
  return "/" + ValueToText(TypeId::kInet, node.address) + ":" + std::to_string(node.storage_port);
}

class Describer {
 public:
  Describer(const Describe& describe, std::string_view session, const Schema& schema,
            const ClusterView& cluster)
      : describe_(describe), session_(session), cluster_(cluster) {
    for (const auto& [name, keyspace] : SystemKeyspaces()) {
      keyspaces_.emplace(name, &keyspace);
    }
    for (const auto& [name, keyspace] : schema.keyspaces) {
      keyspaces_.emplace(name, &keyspace);
    }
  }

  Result<Description> Run() {
    switch (describe_.kind) {
      case DescribeKind::kCluster: return Cluster();
      case DescribeKind::kKeyspaces: return Keyspaces();
      case DescribeKind::kTables:
      case DescribeKind::kTypes:
      case DescribeKind::kFunctions:
      case DescribeKind::kAggregates: return Names();
      case DescribeKind::kSchema: return Everything();
      case DescribeKind::kKeyspace:
      case DescribeKind::kTable:
      case DescribeKind::kIndex:
      case DescribeKind::kView:
      case DescribeKind::kType:
      case DescribeKind::kFunction:
      case DescribeKind::kAggregate: {
        ORRERY_TRY(std::vector<Element> elements, One());
        return ToRows(elements, true);
      }
      case DescribeKind::kAnything: {
        ORRERY_TRY(std::vector<Element> elements, Anything());
        return ToRows(elements, true);
      }
    }
    return NotThere("unknown DESCRIBE");
  }

 private:
  Result<const Keyspace*> Find(std::string_view name) const {
    auto found = keyspaces_.find(name);
    if (found == keyspaces_.end()) {
      return NotThere("'" + std::string(name) + "' not found in keyspaces");
    }
    return found->second;
  }

  // ---- Lists of names ----

  Result<Description> Keyspaces() const {
    std::vector<Element> elements;
    for (const auto& [name, keyspace] : keyspaces_) {
      elements.push_back({name, "keyspace", name, {}});
    }
    return ToRows(elements, false);
  }

  // Of the keyspace in use, or of all.
  Result<Description> Names() const {
    std::vector<const Keyspace*> of;
    if (!session_.empty()) {
      ORRERY_TRY(const Keyspace* one, Find(session_));
      of.push_back(one);
    } else {
      for (const auto& [name, keyspace] : keyspaces_) {
        of.push_back(keyspace);
      }
    }
    std::vector<Element> elements;
    for (const Keyspace* keyspace : of) {
      if (describe_.kind == DescribeKind::kTables) {
        for (const auto& [name, table] : keyspace->tables) {
          if (!table.view) {
            elements.push_back({keyspace->name, "table", name, {}});
          }
        }
      } else if (describe_.kind == DescribeKind::kTypes) {
        for (const auto& [name, type] : keyspace->types) {
          elements.push_back({keyspace->name, "type", name, {}});
        }
      }
    }
    return ToRows(elements, false);
  }

  // ---- Statements ----

  void AddView(const Table& view, std::vector<Element>& out) const {
    out.push_back(
        {view.keyspace, "materialized_view", view.name, ViewStatement(view, describe_.internals)});
  }

  // With its indexes and views.
  void AddTable(const Table& table, const Keyspace& keyspace, std::vector<Element>& out) const {
    out.push_back(
        {table.keyspace, "table", table.name, TableStatement(table, describe_.internals)});
    std::vector<const Index*> indexes;
    for (const Index& index : table.indexes) {
      indexes.push_back(&index);
    }
    std::ranges::sort(indexes, {}, [](const Index* index) { return index->name; });
    for (const Index* index : indexes) {
      out.push_back({table.keyspace, "index", index->name, IndexStatement(table, *index)});
    }
    for (const Table* view : ViewsOf(keyspace, table.name)) {
      AddView(*view, out);
    }
  }

  void AddKeyspace(const Keyspace& keyspace, bool only, std::vector<Element>& out) const {
    out.push_back({keyspace.name, "keyspace", keyspace.name, KeyspaceStatement(keyspace)});
    if (only) {
      return;
    }
    for (const DataType* type : TypesInOrder(keyspace)) {
      out.push_back({keyspace.name, "type", type->name(), TypeStatement(*type)});
    }
    for (const auto& [name, table] : keyspace.tables) {
      if (!table.view) {
        AddTable(table, keyspace, out);
      }
    }
  }

  Result<Description> Everything() const {
    std::vector<Element> elements;
    for (const auto& [name, keyspace] : keyspaces_) {
      if (describe_.full || !IsSystemKeyspace(name)) {
        AddKeyspace(*keyspace, false, elements);
      }
    }
    return ToRows(elements, true);
  }

  // The thing of this kind and name in a keyspace.
  Result<std::vector<Element>> OneOf(const Keyspace& keyspace, DescribeKind kind) const {
    const std::string& name = describe_.name.name;
    std::string quoted = "'" + name + "'";
    std::string missing = " not found in '" + keyspace.name + "'";
    std::vector<Element> elements;
    switch (kind) {
      case DescribeKind::kTable: {
        auto table = keyspace.tables.find(name);
        if (table == keyspace.tables.end() || table->second.view) {
          return NotThere("Table " + quoted + " not found in keyspace '" + keyspace.name + "'");
        }
        AddTable(table->second, keyspace, elements);
        return elements;
      }
      case DescribeKind::kIndex: {
        const Table* table = FindIndexedTable(keyspace, name);
        if (table == nullptr) {
          return NotThere("Table for existing index " + quoted + missing);
        }
        auto index = std::ranges::find(table->indexes, name, &Index::name);
        elements.push_back({keyspace.name, "index", index->name, IndexStatement(*table, *index)});
        return elements;
      }
      case DescribeKind::kType: {
        auto type = keyspace.types.find(name);
        if (type == keyspace.types.end()) {
          return NotThere("User defined type " + quoted + missing);
        }
        elements.push_back({keyspace.name, "type", type->first, TypeStatement(type->second)});
        return elements;
      }
      case DescribeKind::kView: {
        auto view = keyspace.tables.find(name);
        if (view == keyspace.tables.end() || !view->second.view) {
          return NotThere("Materialized view " + quoted + missing);
        }
        AddView(view->second, elements);
        return elements;
      }
      case DescribeKind::kFunction: return NotThere("User defined function " + quoted + missing);
      case DescribeKind::kAggregate: return NotThere("User defined aggregate " + quoted + missing);
      default: return NotThere(quoted + " not found in keyspace '" + keyspace.name + "'");
    }
  }

  Result<std::vector<Element>> One() const {
    bool whole = describe_.kind == DescribeKind::kKeyspace;
    std::string_view name = whole ? describe_.name.name : describe_.name.keyspace;
    name = name.empty() ? session_ : name;
    if (name.empty()) {
      return NotThere("No keyspace specified and no current keyspace");
    }
    ORRERY_TRY(const Keyspace* keyspace, Find(name));
    if (!whole) {
      return OneOf(*keyspace, describe_.kind);
    }
    std::vector<Element> elements;
    AddKeyspace(*keyspace, describe_.only, elements);
    return elements;
  }

  // A keyspace, a table, a view or an index, in this order.
  Result<std::vector<Element>> Anything() const {
    const std::string& name = describe_.name.name;
    std::string_view space = describe_.name.keyspace;
    if (space.empty()) {
      if (auto found = keyspaces_.find(name); found != keyspaces_.end()) {
        std::vector<Element> elements;
        AddKeyspace(*found->second, describe_.only, elements);
        return elements;
      }
      space = session_.empty() ? std::string_view(name) : session_;
    }
    ORRERY_TRY(const Keyspace* keyspace, Find(space));
    auto table = keyspace->tables.find(name);
    DescribeKind kind = table != keyspace->tables.end()
                            ? table->second.view ? DescribeKind::kView : DescribeKind::kTable
                        : FindIndexedTable(*keyspace, name) != nullptr ? DescribeKind::kIndex
                                                                       : DescribeKind::kAnything;
    return OneOf(*keyspace, kind);
  }

  // ---- The cluster ----

  Result<Description> Cluster() const {
    auto simple = [](std::string_view name) {
      return std::string(name.substr(name.rfind('.') + 1));
    };
    Description description{
        .columns = {{"cluster", TypeId::kText},
                    {"partitioner", TypeId::kText},
                    {"snitch", TypeId::kText}},
        .rows = {{cluster_.cluster_name, simple(kPartitioner), simple(kSnitch)}}};
    if (!session_.empty() && !IsSystemKeyspace(session_)) {
      const DataType nodes = DataType::List(TypeId::kText);
      const DataType type = DataType::Map(TypeId::kText, nodes);
      description.columns.push_back({"range_ownership", type});
      description.rows[0].push_back(Owners(type));
    }
    return description;
  }

  // The node of each token, which ends its range.
  std::string Owners(const DataType& type) const {
    std::string map;
    PartWriter writer(type, map);
    auto add = [&](const NodeView& node) {
      for (int64_t token : node.tokens) {
        std::string list;
        PartWriter nodes(type.mapped(), list);
        nodes.Add(AddressText(node));
        nodes.Finish();
        writer.Add(std::to_string(token));
        writer.Add(list);
      }
    };
    add(cluster_.self);
    for (const NodeView& peer : cluster_.peers) {
      add(peer);
    }
    writer.Finish();
    return CanonicalValue(type, map);
  }

  const Describe& describe_;
  std::string_view session_;
  const ClusterView& cluster_;
  std::map<std::string_view, const Keyspace*> keyspaces_;
};

}  // namespace

Result<Description> DescribeSchema(const Describe& describe, std::string_view session,
                                   const Schema& schema, const ClusterView& cluster) {
  return Describer(describe, session, schema, cluster).Run();
}

}  // namespace orrery::cql
