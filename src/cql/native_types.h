// The names of the native types.
#pragma once

#include <optional>
#include <string_view>

#include "cql/expression.h"

namespace orrery::cql {

// `name` in lower case. varchar is text.
std::optional<NativeType> FindNativeType(std::string_view name);

// In lower case, as in system_schema.
std::string_view NativeTypeName(NativeType type);

}  // namespace orrery::cql
