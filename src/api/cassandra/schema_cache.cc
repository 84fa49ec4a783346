#include "api/cassandra/schema_cache.h"

#include <algorithm>
#include <optional>

#include "base/bytes.h"
#include "base/log.h"
#include "cql/row_document.h"
#include "cql/schema_document.h"
#include "types/murmur3.h"

namespace orrery::cassandra {

using model::CatalogView;

namespace {

// The same on all nodes, and another one after each change.
std::string VersionOf(const CatalogView& catalog) {
  std::string bytes;
  Encoder encoder(bytes);
  for (const auto& [name, database] : catalog.databases) {
    if (!database->definition) {
      continue;
    }
    encoder.U32(database->id.value());
    encoder.U64(database->etag);
    if (database->offer) {
      encoder.U64(database->offer->etag);
    }
    for (const auto& container : catalog.ContainersOf(database->id)) {
      if (container->is_table()) {
        encoder.U32(container->id.value());
        encoder.U64(container->version);
      }
    }
  }
  const types::Hash128 hash = types::Murmur128(bytes);
  std::string version;
  Encoder(version).U64(hash.first);
  Encoder(version).U64(hash.second);
  version[6] = static_cast<char>((version[6] & 0x0F) | 0x40);
  version[8] = static_cast<char>((version[8] & 0x3F) | 0x80);
  return version;
}

std::shared_ptr<const cql::Schema> MakeSchema(const CatalogView& catalog, std::string version) {
  auto schema = std::make_shared<cql::Schema>();
  schema->version = std::move(version);
  for (const auto& [name, database] : catalog.databases) {
    if (!database->definition) {
      continue;
    }
    auto keyspace = cql::KeyspaceFromDocument(database->definition->root());
    if (!keyspace) {
      log::Warning("a keyspace cannot be read",
                   {{"keyspace", name}, {"why", keyspace.error().ToString()}});
      continue;
    }
    cql::Keyspace& kept = schema->keyspaces[name] = std::move(*keyspace);
    if (database->offer && !database->offer->autoscale()) {
      kept.throughput = database->offer->manual;
    }
    const cql::TypeScope scope = cql::ScopeOf(kept);
    for (const auto& container : catalog.ContainersOf(database->id)) {
      if (!container->is_table() || !IndexedTable(*container).empty()) {
        continue;
      }
      auto table = cql::TableFromDocument(container->definition.Get("cassandra"), scope);
      if (!table) {
        log::Warning(
            "a table cannot be read",
            {{"keyspace", name}, {"table", container->name}, {"why", table.error().ToString()}});
        continue;
      }
      kept.tables[container->name] = std::move(*table);
    }
  }
  return schema;
}

std::shared_ptr<const model::Container> Find(const CatalogView& catalog, std::string_view keyspace,
                                             const std::string& name) {
  auto database = catalog.FindDatabase(keyspace);
  if (database == nullptr) {
    return nullptr;
  }
  auto found = catalog.containers.find({database->id, name});
  return found == catalog.containers.end() ? nullptr : found->second;
}

rows::ColumnSource SourceOf(const cql::Table& table, const cql::Column& column) {
  using Kind = rows::ColumnSource::Kind;
  const auto place = static_cast<uint32_t>(&column - table.columns.data());
  switch (column.kind) {
    case cql::ColumnKind::kPartitionKey: return {Kind::kPartitionKey, place, column.type};
    case cql::ColumnKind::kClustering:
      return {Kind::kClustering, place - static_cast<uint32_t>(table.partition_columns),
              column.type};
    default: return {Kind::kCell, column.id, column.type};
  }
}

// Nothing if a column is not there, which cannot be.
std::optional<rows::DerivedView> DerivedViewOf(const cql::Table& table, const cql::Table& view,
                                               ContainerId container) {
  rows::DerivedView made{.container = container};
  auto find = [&](uint32_t id) {
    auto found = std::ranges::find(table.columns, id, &cql::Column::id);
    return found == table.columns.end() ? nullptr : &*found;
  };
  for (const cql::Column& column : view.columns) {
    const cql::Column* source = find(column.id);
    if (source == nullptr && column.is_key()) {
      return std::nullopt;
    }
    if (column.kind == cql::ColumnKind::kPartitionKey) {
      made.partition_key.push_back(SourceOf(table, *source));
    } else if (column.kind == cql::ColumnKind::kClustering) {
      made.clustering.push_back({SourceOf(table, *source), column.descending});
    } else {
      made.cells.push_back(column.id);
    }
  }
  std::ranges::sort(made.cells);
  for (const cql::ViewFilter& filter : view.view->filters) {
    const cql::Column* source = find(filter.column);
    if (source == nullptr) {
      return std::nullopt;
    }
    made.filters.push_back({SourceOf(table, *source), filter.comparison, filter.value});
  }
  return made;
}

std::shared_ptr<const rows::Derivation> MakeDerivation(const cql::Table& table,
                                                       const cql::Keyspace& keyspace,
                                                       const CatalogView& catalog) {
  auto made = std::make_shared<rows::Derivation>();
  made->partition_columns = static_cast<uint32_t>(table.partition_columns);
  for (const cql::Column& column : table.clustering()) {
    made->clustering.push_back({column.type, column.descending});
  }
  for (const cql::Index& index : table.indexes) {
    auto container = Find(catalog, table.keyspace, IndexContainerName(table, index));
    const cql::Column* column = table.Find(index.column);
    if (index.state != cql::IndexState::kScanned && container != nullptr && column != nullptr) {
      made->indexes.push_back({container->id, index.kind, SourceOf(table, *column)});
    }
  }
  for (const auto& [name, other] : keyspace.tables) {
    auto container = Find(catalog, keyspace.name, name);
    if (other.view && other.view->base == table.name && container != nullptr) {
      if (auto view = DerivedViewOf(table, other, container->id)) {
        made->views.push_back(std::move(*view));
      }
    }
  }
  return made->indexes.empty() && made->views.empty() ? nullptr : made;
}

types::Document DefinitionOf(std::string_view id, const std::vector<std::string>& paths,
                             const types::Document& cassandra) {
  types::DocumentBuilder builder;
  builder.Append("id", id);
  builder.BeginObject("partitionKey");
  builder.BeginArray("paths");
  for (const std::string& path : paths) {
    builder.Append("", path);
  }
  builder.End();
  builder.Append("kind", "Token");
  builder.Append("version", types::Value::Integer(2));
  builder.End();
  types::Document indexing =
      *types::Document::FromJson(R"({"indexingMode":"none","automatic":false})");
  builder.Append("indexingPolicy", indexing.root());
  builder.Append("cassandra", cassandra.root());
  return builder.Finish();
}

SchemaView::Derivations MakeDerivations(const cql::Schema& schema, const CatalogView& catalog) {
  SchemaView::Derivations all;
  for (const auto& [name, keyspace] : schema.keyspaces) {
    for (const auto& [table_name, table] : keyspace.tables) {
      auto container = Find(catalog, name, table_name);
      auto derivation = MakeDerivation(table, keyspace, catalog);
      if (container != nullptr && derivation != nullptr) {
        all.emplace(container->id, std::move(derivation));
      }
    }
  }
  return all;
}

}  // namespace

std::shared_ptr<const model::Container> SchemaView::ContainerOf(const cql::Table& table) const {
  return Find(*catalog, table.keyspace, table.name);
}

std::shared_ptr<const model::Container> SchemaView::ContainerOf(const cql::Table& table,
                                                                std::string_view index) const {
  auto found = std::ranges::find(table.indexes, index, &cql::Index::name);
  return found == table.indexes.end()
             ? nullptr
             : Find(*catalog, table.keyspace, IndexContainerName(table, *found));
}

std::shared_ptr<const rows::Derivation> SchemaView::DerivationOf(ContainerId table) const {
  auto found = derivations->find(table);
  return found == derivations->end() ? nullptr : found->second;
}

std::shared_ptr<const SchemaView> SchemaCache::Get() const {
  auto catalog = catalog_.view();
  std::lock_guard lock(mutex_);
  if (view_ != nullptr && view_->catalog == catalog) {
    return view_;
  }
  std::string version = VersionOf(*catalog);
  auto next = std::make_shared<SchemaView>();
  next->catalog = catalog;
  if (view_ != nullptr && view_->schema->version == version) {
    next->schema = view_->schema;
    next->derivations = view_->derivations;
  } else {
    next->schema = MakeSchema(*catalog, std::move(version));
    next->derivations =
        std::make_shared<const SchemaView::Derivations>(MakeDerivations(*next->schema, *catalog));
  }
  view_ = next;
  return next;
}

types::Document ContainerDefinition(const cql::Table& table) {
  // Where the documents that the SQL API makes of rows have them.
  const std::vector<std::string> names = cql::MemberNames(table);
  std::vector<std::string> paths;
  for (size_t i = 0; i < table.partition_columns; ++i) {
    paths.push_back("/" + names[i]);
  }
  return DefinitionOf(table.name, paths, cql::TableToDocument(table));
}

std::string IndexContainerName(const cql::Table& table, const cql::Index& index) {
  return index.container.empty() ? table.name + "." + index.name : index.container;
}

std::string IndexedTable(const model::Container& container) {
  const types::Value table = types::Member(container.definition.Get("cassandra"), "indexOf");
  return table.defined() ? std::string(table.string()) : "";
}

types::Document IndexDefinition(const cql::Table& table, const cql::Index& index) {
  types::DocumentBuilder what;
  what.Append("keyspace", table.keyspace);
  what.Append("indexOf", table.name);
  what.Append("name", index.name);
  return DefinitionOf(IndexContainerName(table, index), {"/value"}, what.Finish());
}

}  // namespace orrery::cassandra
