// The token of a partition key from its columns. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace orrery::cql {

// The key as one string, as Cassandra has it: of one column its bytes, of several each as length
// (u16), bytes, 0. Nothing if a column is null.
std::optional<std::string> JoinedKey(std::span<const std::optional<std::string_view>> columns);
std::optional<int64_t> TokenOf(std::span<const std::optional<std::string_view>> columns);

}  // namespace orrery::cql
