// DESCRIBE: the schema as the statements that would make it, in the layout of Cassandra 4. Pure
// functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/ast.h"
#include "cql/schema.h"
#include "cql/system_schema.h"

namespace orrery::cql {

// Each ends with a semicolon. Virtual ones stand in a comment.
std::string KeyspaceStatement(const Keyspace& keyspace);
// With `internals`: its id, and the columns that were dropped, dropped again.
std::string TableStatement(const Table& table, bool internals = false);
std::string TypeStatement(const DataType& type);
std::string IndexStatement(const Table& table, const Index& index);
std::string ViewStatement(const Table& view, bool internals);

// The keyspace and the table that the columns of the result are of.
inline constexpr std::string_view kDescribeKeyspace = "system";
inline constexpr std::string_view kDescribeTable = "describe";

struct DescribeColumn {
  std::string name;
  DataType type;
};

struct Description {
  std::vector<DescribeColumn> columns;
  std::vector<SystemRow> rows;
};

// `session` is the keyspace of USE; empty if there was none. kInvalidArgument in Cassandra's words:
// what is not there.
Result<Description> DescribeSchema(const Describe& describe, std::string_view session,
                                   const Schema& schema, const ClusterView& cluster);

}  // namespace orrery::cql
