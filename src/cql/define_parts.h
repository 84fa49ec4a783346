// What the files of define.h share.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "cql/define.h"
#include "cql/letters.h"
#include "cql/quoted.h"
#include "cql/resolve_type.h"

namespace orrery::cql {

inline std::unexpected<DefineError> Invalid(std::string message) {
  return std::unexpected(DefineError{DefineError::Kind::kInvalid, std::move(message)});
}
inline std::unexpected<DefineError> Misconfigured(std::string message) {
  return std::unexpected(DefineError{DefineError::Kind::kConfig, std::move(message)});
}
inline std::unexpected<DefineError> Misspelt(std::string message) {
  return std::unexpected(DefineError{DefineError::Kind::kSyntax, std::move(message)});
}

// Returns the error of a Defined<T> whose value does not matter.
#define ORRERY_TRY_DEFINED(expression)                       \
  if (auto defined_ = (expression); !defined_) {             \
    return ::std::unexpected(::std::move(defined_).error()); \
  }

// Of keyspaces, tables and indexes: letters of ASCII, digits and _.
inline bool IsWord(std::string_view name) {
  return !name.empty() &&
         std::ranges::all_of(name, [](char c) { return IsLetter(c) || IsDigit(c) || c == '_'; });
}
inline constexpr size_t kNameBytesMax = 48;
// Of a table, and of what one statement may name: lists are searched from their beginning.
inline constexpr size_t kColumnsMax = 8'192;
inline bool IsGoodName(std::string_view name) {
  return IsWord(name) && name.size() <= kNameBytesMax;
}
// `shown`: the name in quotes.
inline std::string BadName(std::string_view what, std::string_view shown) {
  return std::string(what) + " name must not be empty, more than " + std::to_string(kNameBytesMax) +
         " characters long, or contain non-alphanumeric-underscore characters (got " +
         std::string(shown) + ")";
}

// As messages name a table.
inline std::string FullName(std::string_view keyspace, std::string_view name) {
  return QuotedName(keyspace) + "." + QuotedName(name);
}
inline std::string FullName(const Table& table) { return FullName(table.keyspace, table.name); }

// As a statement named it.
inline std::string Spelt(const QualifiedName& name) {
  return (name.keyspace.empty() ? "" : name.keyspace + ".") + name.name;
}

inline Defined<DataType> Resolved(const TypeName& name, const TypeScope& scope) {
  auto type = ResolveType(name, scope);
  if (!type) {
    return Invalid(type.error().message());
  }
  return *type;
}

// Static columns before the others, each by name.
void SortColumns(Table& table);

// What Cassandra says where masks are not turned on.
inline constexpr std::string_view kNoMasks =
    "Cannot mask columns because dynamic data masking is not enabled. You can enable it with the "
    "dynamic_data_masking_enabled property on cassandra.yaml";

// `name` of a map; null if there is none.
inline const std::string* FindIn(const StringMap& map, std::string_view name) {
  auto found = std::ranges::find(map, name, &StringMap::value_type::first);
  return found == map.end() ? nullptr : &found->second;
}

// The document of a schema holds them as names, and BSON has no NUL there.
inline Defined<void> CheckNoNul(const StringMap& map) {
  for (const auto& [name, value] : map) {
    if (name.find('\0') != std::string::npos) {
      return Invalid("the name of an option holds a NUL");
    }
  }
  return {};
}

}  // namespace orrery::cql
