// The token of a partition key from its columns. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::cql {

// The key as one string, as Cassandra has it: of one column its bytes, of several each as length
// (u16), bytes, 0. Nothing if a column is null.
std::optional<std::string> JoinedKey(std::span<const std::optional<std::string_view>> columns);
std::string JoinedKey(std::span<const std::string> columns);
// Undoes it; views into the key. False: malformed.
bool SplitKey(std::string_view key, size_t columns, std::vector<std::string_view>* values);
std::optional<int64_t> TokenOf(std::span<const std::optional<std::string_view>> columns);

}  // namespace orrery::cql
