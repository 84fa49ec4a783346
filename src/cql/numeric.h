// What there is to know of the types of numbers. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cql/type_id.h"

namespace orrery::cql {

bool IsNumber(TypeId id);    // counter too
bool IsFloating(TypeId id);  // float, double, decimal
bool IsExact(TypeId id);     // varint, decimal

// The type of a sum of both, as Cassandra has it: the wider one; with a fraction if one has it.
// REQUIRES: numbers.
TypeId CommonNumber(TypeId a, TypeId b);

// tinyint to bigint and counter. REQUIRES: as many bytes as the type has.
int64_t IntegerOf(TypeId id, std::string_view value);
std::string IntegerBytes(TypeId id, int64_t value);  // wraps
std::string ZeroOf(TypeId id);

// The same number in another type, as Java casts: integers wrap, fractions are cut, what is too
// large for an integer is the largest. Nothing: NaN or infinity in an exact type, or too long.
// REQUIRES: numbers; not empty.
std::optional<std::string> ConvertNumber(TypeId from, TypeId to, std::string_view value);
double DoubleOf(TypeId id, std::string_view value);

}  // namespace orrery::cql
