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

std::string JoinedKey(std::span<const std::string> columns) {
  const std::vector<std::optional<std::string_view>> views(columns.begin(), columns.end());
  return *JoinedKey(views);
}

bool SplitKey(std::string_view key, size_t columns, std::vector<std::string_view>* values) {
  values->clear();
  if (columns == 1) {
    values->push_back(key);
    return true;
  }
  for (size_t i = 0; i < columns; ++i) {
    if (key.size() < 2) {
      return false;
    }
    const size_t size =
        static_cast<size_t>(static_cast<uint8_t>(key[0])) << 8 | static_cast<uint8_t>(key[1]);
    if (key.size() < size + 3) {
      return false;
    }
    values->push_back(key.substr(2, size));
    key.remove_prefix(size + 3);
  }
  return key.empty();
}

std::optional<int64_t> TokenOf(std::span<const std::optional<std::string_view>> columns) {
  auto key = JoinedKey(columns);
  return key ? std::optional(types::CassandraToken(*key)) : std::nullopt;
}

}  // namespace orrery::cql
