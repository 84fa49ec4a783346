// Keyspaces and tables as documents: how the catalog keeps them, and what is shown of them inside
// the definition of a container. Near to what Azure calls the schema of a Cassandra table. Pure
// functions.
//
//   table := {"keyspace", "name", "id": a uuid,
//             "columns": [{"name", "type": CQL text, "id"}], as Table has them
//             "partitionKeys": [{"name"}], "clusterKeys": [{"name", "orderBy": "Asc" | "Desc"}],
//             "staticColumns": [{"name"}], "options": {name: text | {text: text}}, "defaultTtl",
//             "nextColumn", "dropped": [{"name", "type", "static", "timestamp"}],
//             "indexes": [{"name", "kind", "column", "implementation", "options": {}, "state",
//                          "container"}],
//             "derived",
//             "view": {"base", "where", "allColumns", "ready",
//                      "filters": [{"column": its id, "comparison", "value": hex}]}}
//   keyspace := {"name", "replication": {text: text}, "durableWrites",
//                "types": [{"name", "fields": [{"name", "type"}]}]}, each after those it uses
//
// What is empty is left out. REQUIRES: names and texts in UTF-8, no NUL in the name of an option.
#pragma once

#include "base/status.h"
#include "cql/resolve_type.h"
#include "cql/schema.h"
#include "types/document.h"

namespace orrery::cql {

types::Document TableToDocument(const Table& table);
// Undoes it. kCorruption says what is wrong: also a member that is not known. User types are looked
// up in the scope.
Result<Table> TableFromDocument(types::Value document, const TypeScope& scope);

// Without its tables.
types::Document KeyspaceToDocument(const Keyspace& keyspace);
Result<Keyspace> KeyspaceFromDocument(types::Value document);

// The user types of a keyspace, for resolve_type.h. The keyspace must outlive it.
TypeScope ScopeOf(const Keyspace& keyspace);
// Each after those that it uses; else by name.
std::vector<const DataType*> TypesInOrder(const Keyspace& keyspace);

}  // namespace orrery::cql
