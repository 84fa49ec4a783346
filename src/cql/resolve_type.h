// The types that the words of a statement mean. Pure functions.
#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "base/status.h"
#include "cql/data_type.h"
#include "cql/expression.h"

namespace orrery::cql {

// Where a type is looked up: user types are known only in the keyspace that they belong to.
struct TypeScope {
  std::string_view keyspace;  // of the statement
  std::function<std::optional<DataType>(std::string_view name)> find;
};

// kInvalidArgument in Cassandra's words: a user type that is unknown or of another keyspace, what
// is not frozen inside of a collection, counters and durations where they may not stand.
//
// What may stand in a type, but not in a column or a field, is for those who know what it is for.
Result<DataType> ResolveType(const TypeName& name, const TypeScope& scope);

// The same of text: frozen<list<int>>. Also undoes DataType::ToCql. A syntax error is
// kInvalidArgument too.
Result<DataType> ParseTypeText(std::string_view text, const TypeScope& scope);

}  // namespace orrery::cql
