// The built-in functions of the language, one table in the order of the reference.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "query/arena.h"
#include "types/document.h"

namespace orrery::query {

using Arguments = std::span<const types::Value>;

struct Function {
  std::string_view name;
  size_t least = 0;  // arguments
  size_t most = 0;
  types::Value (*call)(Arguments arguments, Arena& arena) = nullptr;  // null: not supported yet
  // Most functions of an undefined argument are undefined and are not called.
  bool sees_undefined = false;
};

// In any case of letters. Null if the language has no such function.
const Function* FindFunction(std::string_view name);

}  // namespace orrery::query
