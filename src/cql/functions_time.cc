// now, uuid, the current time, and ways between the types of time.
#include "base/bytes.h"
#include "cql/function_table.h"
#include "cql/time_uuid.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

constexpr int64_t kMillisOfDay = 86'400'000;
constexpr int64_t kNanosOfDay = 86'400'000'000'000;
constexpr int64_t kDayOf1970 = int64_t{1} << 31;

using Values = std::span<const MaybeView>;

int64_t FloorDivide(int64_t value, int64_t by) { return value / by - (value % by < 0 ? 1 : 0); }

std::string DateOfMillis(int64_t millis) {
  return IntBytes(static_cast<int32_t>(FloorDivide(millis, kMillisOfDay) + kDayOf1970));
}

int64_t MillisOfDate(std::string_view date) {
  return (static_cast<int64_t>(static_cast<uint32_t>(ReadInt(date))) - kDayOf1970) * kMillisOfDay;
}

// Version 1, from the time of the request: each is greater than those before it.
std::string NewTimeUuid(FunctionContext& context) {
  uint64_t rest = context.random->Next();
  rest = (rest & 0x3FFF'FFFF'FFFF'FFFF) | 0x8000'0100'0000'0000;  // variant; no card's address
  return TimeUuid(context.now_micros * 10 + context.time_uuids++, rest);
}

std::string NewUuid(FunctionContext& context) {
  std::string uuid(16, '\0');
  PutU64(uuid.data(), (context.random->Next() & ~uint64_t{0xF000}) | 0x4000);
  PutU64(uuid.data() + 8, (context.random->Next() & 0x3FFF'FFFF'FFFF'FFFF) | 0x8000'0000'0000'0000);
  return uuid;
}

int64_t MillisNow(const FunctionContext& context) { return FloorDivide(context.now_micros, 1000); }

// The milliseconds of a timestamp, date or timeuuid.
int64_t MillisOf(const DataType& type, std::string_view value) {
  switch (type.id()) {
    case TypeId::kTimeuuid: return TimeUuidMillis(value);
    case TypeId::kDate: return MillisOfDate(value);
    default: return ReadBigint(value);
  }
}

void AddCurrent(FunctionTable& table, std::string name, DataType type,
                std::string (*make)(FunctionContext&)) {
  table.Add({.name = std::move(name),
             .arguments = {},
             .result = std::move(type),
             .run = [make](Values, FunctionContext& context) -> Result<MaybeBytes> {
               return make(context);
             },
             .pure = false});
}

void AddConversion(FunctionTable& table, std::string name, TypeId from, TypeId to,
                   std::string (*make)(int64_t millis)) {
  DataType type = from;
  table.Add({.name = std::move(name),
             .arguments = {type},
             .result = to,
             .run = [type, make](Values values, FunctionContext&) -> Result<MaybeBytes> {
               if (values[0]->empty()) {
                 return MaybeBytes();
               }
               return make(MillisOf(type, *values[0]));
             }});
}

}  // namespace

void AddTimeFunctions(FunctionTable& table) {
  AddCurrent(table, "now", TypeId::kTimeuuid, NewTimeUuid);
  AddCurrent(table, "uuid", TypeId::kUuid, NewUuid);
  AddCurrent(table, "current_timeuuid", TypeId::kTimeuuid, NewTimeUuid);
  AddCurrent(table, "current_timestamp", TypeId::kTimestamp,
             [](FunctionContext& context) { return BigintBytes(MillisNow(context)); });
  AddCurrent(table, "current_date", TypeId::kDate,
             [](FunctionContext& context) { return DateOfMillis(MillisNow(context)); });
  AddCurrent(table, "current_time", TypeId::kTime, [](FunctionContext& context) {
    int64_t micros = context.now_micros % (kNanosOfDay / 1000);
    return BigintBytes((micros < 0 ? micros + kNanosOfDay / 1000 : micros) * 1000);
  });

  AddConversion(table, "min_timeuuid", TypeId::kTimestamp, TypeId::kTimeuuid, MinTimeUuid);
  AddConversion(table, "max_timeuuid", TypeId::kTimestamp, TypeId::kTimeuuid, MaxTimeUuid);
  for (TypeId from : {TypeId::kTimeuuid, TypeId::kTimestamp}) {
    AddConversion(table, "to_date", from, TypeId::kDate, DateOfMillis);
  }
  for (TypeId from : {TypeId::kTimeuuid, TypeId::kDate}) {
    AddConversion(table, "to_timestamp", from, TypeId::kTimestamp, BigintBytes);
  }
  for (TypeId from : {TypeId::kTimeuuid, TypeId::kTimestamp, TypeId::kDate}) {
    AddConversion(table, "to_unix_timestamp", from, TypeId::kBigint, BigintBytes);
  }
  AddConversion(table, "dateof", TypeId::kTimeuuid, TypeId::kTimestamp, BigintBytes);
  AddConversion(table, "unixtimestampof", TypeId::kTimeuuid, TypeId::kBigint, BigintBytes);
}

}  // namespace orrery::cql
