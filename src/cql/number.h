// The exact numbers of CQL, in their serialized form. Pure functions.
//
//   varint    two's complement, big endian, of any length; the shortest form is the usual one
//   decimal   [int] scale, then a varint: unscaled value * 10 ^ -scale
//
// Nothing here makes a number of more than kNumberBytesMax, and what comes in serialized must not
// be longer: the way between binary and decimal digits costs the square of the length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace orrery::cql {

inline constexpr size_t kNumberBytesMax = 2048;  // of a varint, or of the varint of a decimal

// The shortest form. An empty one is zero.
std::string VarintOf(int64_t value);
std::string ShortestVarint(std::string_view varint);
// Nothing if it does not fit.
std::optional<int64_t> VarintToInt64(std::string_view varint);
// [+-]digits. Nothing: it is none, or too long.
std::optional<std::string> VarintFromText(std::string_view text);
std::string VarintToText(std::string_view varint);
// Below, at or above 0.
int CompareVarints(std::string_view a, std::string_view b);

// The value of a decimal without regard to its scale: 0.d1d2d3... * 10 ^ exponent, with the first
// and the last digit not 0. Zero has no digits.
struct DecimalValue {
  bool negative = false;
  int64_t exponent = 0;
  std::string digits;  // '0'..'9'
  bool operator==(const DecimalValue&) const = default;
};
// REQUIRES: at least 4 bytes.
DecimalValue DecimalToValue(std::string_view decimal);
// With the scale that needs the fewest digits, but not below 0 where an integer is short, nor below
// what a scale can be. Nothing if it does not fit.
std::optional<std::string> DecimalFromValue(const DecimalValue& value);
// 12, -1.50, 1e10, 1.5E-7; the scale is kept. Nothing: it is none, or too long.
std::optional<std::string> DecimalFromText(std::string_view text);
// As Java prints it: 1.50, 1E+3, 1.5E-7.
std::string DecimalToText(std::string_view decimal);
int CompareDecimals(std::string_view a, std::string_view b);

// [+-]digits. Nothing: it is none, or does not fit.
template <typename Integer>  // int8_t, int16_t, int32_t or int64_t
std::optional<Integer> IntegerFromText(std::string_view text);

// Shortest digits that read back the same, as Java prints them: 1.0, 1.0E10, NaN, Infinity.
std::string DoubleToText(double value);
std::string FloatToText(float value);
// Also NaN, Infinity and -Infinity. Nothing: it is none.
std::optional<double> DoubleFromText(std::string_view text);
std::optional<float> FloatFromText(std::string_view text);

}  // namespace orrery::cql
