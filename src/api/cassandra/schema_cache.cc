#include "api/cassandra/schema_cache.h"

#include "base/bytes.h"
#include "base/log.h"
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
    const cql::TypeScope scope = cql::ScopeOf(kept);
    for (const auto& container : catalog.ContainersOf(database->id)) {
      if (!container->is_table()) {
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

}  // namespace

std::shared_ptr<const model::Container> SchemaView::ContainerOf(const cql::Table& table) const {
  auto database = catalog->FindDatabase(table.keyspace);
  if (database == nullptr) {
    return nullptr;
  }
  auto found = catalog->containers.find({database->id, table.name});
  return found == catalog->containers.end() ? nullptr : found->second;
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
  next->schema = view_ != nullptr && view_->schema->version == version
                     ? view_->schema
                     : MakeSchema(*catalog, std::move(version));
  view_ = next;
  return next;
}

types::Document ContainerDefinition(const cql::Table& table) {
  types::DocumentBuilder builder;
  builder.Append("id", table.name);
  builder.BeginObject("partitionKey");
  builder.BeginArray("paths");
  for (const cql::Column& column : table.partition_key()) {
    builder.Append("", "/" + column.name);
  }
  builder.End();
  builder.Append("kind", "Token");
  builder.Append("version", types::Value::Integer(2));
  builder.End();
  types::Document indexing =
      *types::Document::FromJson(R"({"indexingMode":"none","automatic":false})");
  builder.Append("indexingPolicy", indexing.root());
  builder.Append("cassandra", cql::TableToDocument(table).root());
  return builder.Finish();
}

}  // namespace orrery::cassandra
