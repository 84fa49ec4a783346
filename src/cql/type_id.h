// The types of CQL by number, and what there is to know of the native ones: those without
// parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace orrery::cql {

// The numbers are those of the native protocol; kVector has none there and goes as a custom type.
enum class TypeId : uint16_t {
  kCustom = 0x00,
  kAscii = 0x01,
  kBigint = 0x02,
  kBlob = 0x03,
  kBoolean = 0x04,
  kCounter = 0x05,
  kDecimal = 0x06,
  kDouble = 0x07,
  kFloat = 0x08,
  kInt = 0x09,
  kTimestamp = 0x0B,
  kUuid = 0x0C,
  kText = 0x0D,
  kVarint = 0x0E,
  kTimeuuid = 0x0F,
  kInet = 0x10,
  kDate = 0x11,
  kTime = 0x12,
  kSmallint = 0x13,
  kTinyint = 0x14,
  kDuration = 0x15,
  kList = 0x20,
  kMap = 0x21,
  kSet = 0x22,
  kUdt = 0x30,
  kTuple = 0x31,
  kVector = 0x7FFF,
};

struct NativeType {
  TypeId id;
  std::string_view cql;   // in lower case, as in system_schema
  std::string_view java;  // the class
  int since;              // the first version of the protocol that has a number for it
  size_t fixed_size;      // of every value; 0: they differ
};

// Null: the type has parameters.
const NativeType* FindNativeType(TypeId id);
// The one that CQL calls so, in any case; `varchar` is text. Null: there is none.
const NativeType* FindNativeType(std::string_view name);

// Whether a user type may have the name only in quotes: the language has, or may have one day, a
// type that is called so. `name` in lower case.
bool IsTypeWord(std::string_view name);

}  // namespace orrery::cql
