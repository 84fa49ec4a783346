#include "cql/numeric.h"

#include <bit>
#include <cmath>
#include <limits>

#include "cql/exact.h"
#include "cql/number.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

// The width that decides which of two types is the wider one.
int WidthOf(TypeId id) {
  switch (id) {
    case TypeId::kTinyint: return 1;
    case TypeId::kSmallint: return 2;
    case TypeId::kInt:
    case TypeId::kFloat: return 4;
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kDouble: return 8;
    default: return 16;
  }
}

bool IsFixedInteger(TypeId id) { return IsNumber(id) && !IsFloating(id) && id != TypeId::kVarint; }

// As Java does: NaN is 0, and what does not fit the largest or the smallest.
template <typename Integer>
Integer CutToInteger(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  if (value >= std::ldexp(1.0, std::numeric_limits<Integer>::digits)) {
    return std::numeric_limits<Integer>::max();
  }
  if (value <= -std::ldexp(1.0, std::numeric_limits<Integer>::digits)) {
    return std::numeric_limits<Integer>::min();
  }
  return static_cast<Integer>(value);
}

// The lowest 64 bits.
int64_t LowBits(std::string_view varint) {
  std::string bytes = ShortestVarint(varint);
  if (bytes.size() > 8) {
    bytes = bytes.substr(bytes.size() - 8);
  }
  return VarintToInt64(bytes).value_or(0);
}

std::optional<std::string> FromFloating(double value, TypeId from, TypeId to) {
  switch (to) {
    case TypeId::kFloat: return FloatBytes(static_cast<float>(value));
    case TypeId::kDouble: return DoubleBytes(value);
    case TypeId::kBigint:
    case TypeId::kCounter: return BigintBytes(CutToInteger<int64_t>(value));
    case TypeId::kDecimal:
    case TypeId::kVarint: {
      if (!std::isfinite(value)) {
        return std::nullopt;
      }
      std::string text =
          from == TypeId::kFloat ? FloatToText(static_cast<float>(value)) : DoubleToText(value);
      auto decimal = DecimalFromText(text);
      return decimal && to == TypeId::kVarint ? DecimalToVarint(*decimal) : decimal;
    }
    // Java goes over int.
    default: return IntegerBytes(to, CutToInteger<int32_t>(value));
  }
}

}  // namespace

bool IsNumber(TypeId id) {
  switch (id) {
    case TypeId::kTinyint:
    case TypeId::kSmallint:
    case TypeId::kInt:
    case TypeId::kBigint:
    case TypeId::kCounter:
    case TypeId::kVarint: return true;
    default: return IsFloating(id);
  }
}

bool IsFloating(TypeId id) {
  return id == TypeId::kFloat || id == TypeId::kDouble || id == TypeId::kDecimal;
}

bool IsExact(TypeId id) { return id == TypeId::kVarint || id == TypeId::kDecimal; }

TypeId CommonNumber(TypeId a, TypeId b) {
  int width = std::max(WidthOf(a), WidthOf(b));
  if (IsFloating(a) || IsFloating(b)) {
    return width <= 4 ? TypeId::kFloat : width == 8 ? TypeId::kDouble : TypeId::kDecimal;
  }
  switch (width) {
    case 1: return TypeId::kTinyint;
    case 2: return TypeId::kSmallint;
    case 4: return TypeId::kInt;
    case 8: return TypeId::kBigint;
    default: return TypeId::kVarint;
  }
}

int64_t IntegerOf(TypeId id, std::string_view value) {
  switch (id) {
    case TypeId::kTinyint: return static_cast<int8_t>(value[0]);
    case TypeId::kSmallint: return ReadSmallint(value);
    case TypeId::kInt: return ReadInt(value);
    default: return ReadBigint(value);
  }
}

std::string IntegerBytes(TypeId id, int64_t value) {
  switch (id) {
    case TypeId::kTinyint: return TinyintBytes(static_cast<int8_t>(value));
    case TypeId::kSmallint: return SmallintBytes(static_cast<int16_t>(value));
    case TypeId::kInt: return IntBytes(static_cast<int32_t>(value));
    default: return BigintBytes(value);
  }
}

std::string ZeroOf(TypeId id) {
  switch (id) {
    case TypeId::kFloat: return FloatBytes(0);
    case TypeId::kDouble: return DoubleBytes(0);
    case TypeId::kVarint: return VarintOf(0);
    case TypeId::kDecimal: return DecimalOfVarint(VarintOf(0));
    default: return IntegerBytes(id, 0);
  }
}

double DoubleOf(TypeId id, std::string_view value) {
  switch (id) {
    case TypeId::kFloat: return static_cast<double>(ReadFloat(value));
    case TypeId::kDouble: return ReadDouble(value);
    case TypeId::kVarint: return DoubleFromText(VarintToText(value)).value_or(0);
    case TypeId::kDecimal: return DoubleFromText(DecimalToText(value)).value_or(0);
    default: return static_cast<double>(IntegerOf(id, value));
  }
}

std::optional<std::string> ConvertNumber(TypeId from, TypeId to, std::string_view value) {
  if (from == to) {
    return std::string(value);
  }
  if (from == TypeId::kFloat || from == TypeId::kDouble) {
    return FromFloating(DoubleOf(from, value), from, to);
  }
  if (to == TypeId::kDouble) {
    return DoubleBytes(DoubleOf(from, value));
  }
  if (to == TypeId::kFloat) {
    return IsFixedInteger(from)
               ? FloatBytes(static_cast<float>(IntegerOf(from, value)))
               : FloatBytes(FloatFromText(from == TypeId::kVarint ? VarintToText(value)
                                                                  : DecimalToText(value))
                                .value_or(0));
  }
  std::string varint;
  if (from == TypeId::kDecimal) {
    auto whole = DecimalToVarint(value);
    if (!whole) {
      return std::nullopt;
    }
    varint = *std::move(whole);
  } else {
    varint = from == TypeId::kVarint ? ShortestVarint(value) : VarintOf(IntegerOf(from, value));
  }
  return to == TypeId::kVarint    ? varint
         : to == TypeId::kDecimal ? DecimalOfVarint(varint)
                                  : IntegerBytes(to, LowBits(varint));
}

}  // namespace orrery::cql
