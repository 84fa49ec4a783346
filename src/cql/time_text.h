// The text forms of timestamp, date, time and duration. Pure functions; time zones are offsets,
// UTC or GMT, and text without one is in UTC. The calendar is Gregorian in all years.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::cql {

// Milliseconds since 1970: an integer of them, or
//   yyyy-mm-dd[( |T)hh:mm[:ss[.fff]]][[ ]zone], zone = Z | UTC | GMT | (+|-)hh[[:]mm].
std::optional<int64_t> TimestampFromText(std::string_view text);
// 2011-02-03T04:05:00.000Z; with a space in place of the T as JSON has it.
std::string TimestampToText(int64_t millis, char separator = 'T');

// Days with 1970-01-01 at 2^31: yyyy-mm-dd, also years below 0 and above 9999, or the number
// itself.
std::optional<uint32_t> DateFromText(std::string_view text);
std::string DateToText(uint32_t days);

// Nanoseconds since midnight: hh:mm:ss[.fffffffff], or an integer of them.
std::optional<int64_t> TimeFromText(std::string_view text);
std::string TimeToText(int64_t nanos);

// All parts at or below 0, or all at or above it.
struct DurationValue {
  int32_t months = 0;
  int32_t days = 0;
  int64_t nanos = 0;
  bool operator==(const DurationValue&) const = default;
};
// [-] 1y2mo3w4d5h6m7s8ms9us10ns (in this order, each once), P1Y2M3DT4H5M6S, P3W, or
// P0001-02-03T04:05:06.
std::optional<DurationValue> DurationFromText(std::string_view text);
std::string DurationToText(const DurationValue& value);

// The serialized form: three zig-zag vints. A vint has as many leading one bits as further bytes.
void AppendVint(uint64_t value, std::string& out);
// Takes one off the front; nothing if there is none.
std::optional<uint64_t> TakeVint(std::string_view& in);
std::string DurationToBytes(const DurationValue& value);
// Three vints of any size, for those who check them; nothing if there are not exactly three.
struct DurationParts {
  int64_t months = 0;
  int64_t days = 0;
  int64_t nanos = 0;
};
std::optional<DurationParts> DurationFromBytes(std::string_view bytes);

}  // namespace orrery::cql
