// SchemaCache: the keyspaces and tables of the catalog, as the language knows them.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "cql/schema.h"
#include "model/catalog.h"
#include "rows/derivation.h"

namespace orrery::cassandra {

// One state of the catalog. The schema stays the same object while nothing in it is different: a
// split changes the catalog, but no statement has to be prepared again.
struct SchemaView {
  using Derivations = std::map<ContainerId, std::shared_ptr<const rows::Derivation>>;

  std::shared_ptr<const cql::Schema> schema;
  std::shared_ptr<const Derivations> derivations;
  std::shared_ptr<const model::CatalogView> catalog;

  // The container of a table; null if it is gone.
  std::shared_ptr<const model::Container> ContainerOf(const cql::Table& table) const;
  // That of an index.
  std::shared_ptr<const model::Container> ContainerOf(const cql::Table& table,
                                                      std::string_view index) const;
  // What indexes and views keep of the rows of a table; null: nothing.
  std::shared_ptr<const rows::Derivation> DerivationOf(ContainerId table) const;
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
// The container that keeps the entries of an index. No table has such a name.
std::string IndexContainerName(const cql::Table& table, const cql::Index& index);
types::Document IndexDefinition(const cql::Table& table, const cql::Index& index);
// Whose entries it keeps; empty: it is not the container of an index.
std::string IndexedTable(const model::Container& container);

}  // namespace orrery::cassandra
