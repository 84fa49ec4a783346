// SchemaCache: the keyspaces and tables of the catalog, as the language knows them.
//
// Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "cql/schema.h"
#include "model/catalog.h"

namespace orrery::cassandra {

// One state of the catalog. The schema stays the same object while nothing in it is different: a
// split changes the catalog, but no statement has to be prepared again.
struct SchemaView {
  std::shared_ptr<const cql::Schema> schema;
  std::shared_ptr<const model::CatalogView> catalog;

  // The container of a table; null if it is gone.
  std::shared_ptr<const model::Container> ContainerOf(const cql::Table& table) const;
};

class SchemaCache {
 public:
  explicit SchemaCache(const model::Catalog& catalog) : catalog_(catalog) {}
  std::shared_ptr<const SchemaView> Get() const;

 private:
  const model::Catalog& catalog_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const SchemaView> view_;
};

// The definition of a container that is this table.
types::Document ContainerDefinition(const cql::Table& table);

}  // namespace orrery::cassandra
