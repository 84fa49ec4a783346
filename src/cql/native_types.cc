#include "cql/native_types.h"

namespace orrery::cql {
namespace {

struct Row {
  std::string_view name;
  NativeType type;
};

// The first name of a type is how it is shown.
constexpr Row kRows[] = {
    {"ascii", NativeType::kAscii},       {"bigint", NativeType::kBigint},
    {"blob", NativeType::kBlob},         {"boolean", NativeType::kBoolean},
    {"counter", NativeType::kCounter},   {"date", NativeType::kDate},
    {"decimal", NativeType::kDecimal},   {"double", NativeType::kDouble},
    {"duration", NativeType::kDuration}, {"float", NativeType::kFloat},
    {"inet", NativeType::kInet},         {"int", NativeType::kInt},
    {"smallint", NativeType::kSmallint}, {"text", NativeType::kText},
    {"time", NativeType::kTime},         {"timestamp", NativeType::kTimestamp},
    {"timeuuid", NativeType::kTimeuuid}, {"tinyint", NativeType::kTinyint},
    {"uuid", NativeType::kUuid},         {"varchar", NativeType::kText},
    {"varint", NativeType::kVarint},
};

}  // namespace

std::optional<NativeType> FindNativeType(std::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) {
      return row.type;
    }
  }
  return std::nullopt;
}

std::string_view NativeTypeName(NativeType type) {
  for (const Row& row : kRows) {
    if (row.type == type) {
      return row.name;
    }
  }
  return "";
}

}  // namespace orrery::cql
