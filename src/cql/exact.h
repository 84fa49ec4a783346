// Arithmetic of varints and decimals, in their serialized form (number.h). Pure functions.
//
// Nothing is the answer where the result would be longer than kNumberBytesMax.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::cql {

std::optional<std::string> AddVarints(std::string_view a, std::string_view b);
std::optional<std::string> SubtractVarints(std::string_view a, std::string_view b);
std::optional<std::string> MultiplyVarints(std::string_view a, std::string_view b);
struct Division {
  std::string quotient;   // cut towards 0
  std::string remainder;  // with the sign of what is divided
};
// Nothing only if b is 0.
std::optional<Division> DivideVarints(std::string_view a, std::string_view b);
bool IsZero(std::string_view varint);
std::string NegateVarint(std::string_view varint);

// Decimals keep their scale as those of Java do: the greater of both, or of a product the sum.
std::optional<std::string> AddDecimals(std::string_view a, std::string_view b);
std::optional<std::string> SubtractDecimals(std::string_view a, std::string_view b);
std::optional<std::string> MultiplyDecimals(std::string_view a, std::string_view b);
// To at least 32 digits, without zeros at the end. REQUIRES of both: b is not 0.
std::optional<std::string> DivideDecimals(std::string_view a, std::string_view b);
std::optional<std::string> RemainderOfDecimals(std::string_view a, std::string_view b);
std::string NegateDecimal(std::string_view decimal);
// To the scale of the sum, halves to even. REQUIRES: count > 0.
std::string DecimalAverage(std::string_view sum, int64_t count);
// To an integer, halves away from 0.
std::string RoundDecimal(std::string_view decimal);
// Without what is behind the point. Nothing if it is too long.
std::optional<std::string> DecimalToVarint(std::string_view decimal);
std::string DecimalOfVarint(std::string_view varint);

}  // namespace orrery::cql
