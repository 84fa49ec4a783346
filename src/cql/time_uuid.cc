#include "cql/time_uuid.h"

#include "base/bytes.h"

namespace orrery::cql {
namespace {

constexpr uint64_t kTicksTo1970 = 0x01B2'1DD2'1381'4000;  // since 1582-10-15
constexpr int64_t kTicksOfMilli = 10'000;
// Each byte is the least, or the greatest, of signed ones.
constexpr uint64_t kLeastRest = 0x8080'8080'8080'8080;
constexpr uint64_t kGreatestRest = 0x7F7F'7F7F'7F7F'7F7F;

// Of `further` ticks after the beginning of a millisecond. Wraps.
int64_t TicksOf(int64_t millis, uint64_t further) {
  return static_cast<int64_t>(static_cast<uint64_t>(millis) * uint64_t{kTicksOfMilli} + further);
}

}  // namespace

std::string TimeUuid(int64_t ticks, uint64_t rest) {
  uint64_t time = static_cast<uint64_t>(ticks) + kTicksTo1970;
  uint64_t first = time << 32 | (time >> 16 & 0xFFFF'0000u) | 0x1000 | (time >> 48 & 0xFFF);
  std::string uuid(16, '\0');
  PutU64(uuid.data(), first);
  PutU64(uuid.data() + 8, rest);
  return uuid;
}

int64_t TimeUuidTicks(std::string_view uuid) {
  uint64_t first = GetU64(uuid.data());
  uint64_t time = first >> 32 | (first & 0xFFFF'0000u) << 16 | (first & 0xFFF) << 48;
  return static_cast<int64_t>(time - kTicksTo1970);
}

int64_t TimeUuidMillis(std::string_view uuid) {
  int64_t ticks = TimeUuidTicks(uuid);
  int64_t rest = ticks % kTicksOfMilli;
  return ticks / kTicksOfMilli - (rest < 0 ? 1 : 0);
}

std::string MinTimeUuid(int64_t millis) { return TimeUuid(TicksOf(millis, 0), kLeastRest); }

std::string MaxTimeUuid(int64_t millis) {
  return TimeUuid(TicksOf(millis, kTicksOfMilli - 1), kGreatestRest);
}

}  // namespace orrery::cql
