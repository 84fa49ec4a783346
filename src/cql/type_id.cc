#include "cql/type_id.h"

#include <algorithm>
#include <iterator>

#include "cql/letters.h"

namespace orrery::cql {
namespace {

constexpr NativeType kNatives[] = {
    {TypeId::kAscii, "ascii", "AsciiType", 3, 0},
    {TypeId::kBigint, "bigint", "LongType", 3, 8},
    {TypeId::kBlob, "blob", "BytesType", 3, 0},
    {TypeId::kBoolean, "boolean", "BooleanType", 3, 1},
    {TypeId::kCounter, "counter", "CounterColumnType", 3, 0},
    {TypeId::kDecimal, "decimal", "DecimalType", 3, 0},
    {TypeId::kDouble, "double", "DoubleType", 3, 8},
    {TypeId::kFloat, "float", "FloatType", 3, 4},
    {TypeId::kInt, "int", "Int32Type", 3, 4},
    {TypeId::kTimestamp, "timestamp", "TimestampType", 3, 8},
    {TypeId::kUuid, "uuid", "UUIDType", 3, 16},
    {TypeId::kText, "text", "UTF8Type", 3, 0},
    {TypeId::kVarint, "varint", "IntegerType", 3, 0},
    {TypeId::kTimeuuid, "timeuuid", "TimeUUIDType", 3, 16},
    {TypeId::kInet, "inet", "InetAddressType", 3, 0},
    {TypeId::kDate, "date", "SimpleDateType", 4, 0},
    {TypeId::kTime, "time", "TimeType", 4, 0},
    {TypeId::kSmallint, "smallint", "ShortType", 4, 0},
    {TypeId::kTinyint, "tinyint", "ByteType", 4, 0},
    {TypeId::kDuration, "duration", "DurationType", 5, 0},
};

constexpr std::string_view kKept[] = {"bitstring", "byte",     "complex",
                                      "enum",      "interval", "macaddr"};

const NativeType* OrNull(const NativeType* found) {
  return found == std::end(kNatives) ? nullptr : found;
}

}  // namespace

const NativeType* FindNativeType(TypeId id) {
  return OrNull(std::ranges::find(kNatives, id, &NativeType::id));
}

const NativeType* FindNativeType(std::string_view name) {
  if (EqualsIgnoringCase(name, "varchar")) {
    return FindNativeType(TypeId::kText);
  }
  return OrNull(std::ranges::find_if(
      kNatives, [name](const NativeType& type) { return EqualsIgnoringCase(type.cql, name); }));
}

bool IsTypeWord(std::string_view name) {
  return FindNativeType(name) != nullptr || std::ranges::find(kKept, name) != std::end(kKept);
}

}  // namespace orrery::cql
