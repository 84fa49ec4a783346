// Numbers as the language sees them: 64-bit integers and doubles are one type. Pure functions.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>

#include "types/document.h"

namespace orrery::query {

// The result of a computation; Undefined if it is not finite.
types::Value NumberFrom(double number);

// The order of the exact values, also of an integer beyond 2^53 and a double.
// REQUIRES: both are numbers.
std::partial_ordering CompareNumbers(types::Value a, types::Value b);

// The value if it is a number without a fraction that fits 64 bits.
std::optional<int64_t> WholeNumber(types::Value value);

// The 32 bits that the bitwise operators work on, by the rules of JavaScript.
int32_t ToInt32(double number);

}  // namespace orrery::query
