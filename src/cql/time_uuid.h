// Timeuuids: version 1 of RFC 4122, in their 16 bytes. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::cql {

// `ticks` are of 100 ns since 1970; `rest` is the second half: clock sequence and node.
std::string TimeUuid(int64_t ticks, uint64_t rest);
// REQUIRES of both: 16 bytes.
int64_t TimeUuidTicks(std::string_view uuid);
int64_t TimeUuidMillis(std::string_view uuid);
// The least and the greatest of a millisecond, in the order of timeuuids. They are none that any
// machine makes.
std::string MinTimeUuid(int64_t millis);
std::string MaxTimeUuid(int64_t millis);

}  // namespace orrery::cql
