// Cassandra's tables as containers of documents: their rows can be read. Private to api/sql.
//
// What a row looks like is in cql/row_document.h. A document's etag is a hash of what it shows, so
// it changes with everything that does, also when a value expires; `_ts` is the time of the latest
// write that is seen in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "cql/row_document.h"
#include "model/catalog.h"

namespace orrery::api::sql {

// A table, and how its columns are called in documents.
struct TableView {
  cql::Table table;
  std::vector<std::string> names;

  // Made for each request: who looks at tables as documents is no heavy load. kNotFound if its
  // keyspace is gone, kCorruption if the definition cannot be read.
  static Result<std::shared_ptr<const TableView>> Of(const model::Catalog& catalog,
                                                     const model::Container& container);
};

// The row that `values` stands at, as a document.
struct RowDocument {
  std::string json;
  std::string etag;  // with quotes
};
RowDocument MakeRowDocument(const model::Container& container, const TableView& view,
                            const cql::RowValues& values);

}  // namespace orrery::api::sql
