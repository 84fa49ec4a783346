#include "cql/partition_token.h"

#include "cql/wire.h"
#include "types/epk.h"

namespace orrery::cql {

std::optional<std::string> JoinedKey(std::span<const std::optional<std::string_view>> columns) {
  std::string key;
  for (const std::optional<std::string_view>& column : columns) {
    if (!column) {
      return std::nullopt;
    }
    if (columns.size() == 1) {
      return std::string(*column);
    }
    WireWriter writer(key);
    writer.ShortBytes(*column);
    writer.Byte(0);
  }
  return key;
}

std::optional<int64_t> TokenOf(std::span<const std::optional<std::string_view>> columns) {
  auto key = JoinedKey(columns);
  return key ? std::optional(types::CassandraToken(*key)) : std::nullopt;
}

}  // namespace orrery::cql
