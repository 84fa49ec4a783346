#include "query/numbers.h"

#include <cmath>

namespace orrery::query {
namespace {

using types::Value;

constexpr double kTwo63 = 0x1p63;

std::partial_ordering Compare(int64_t integer, double number) {
  if (std::isnan(number)) {
    return std::partial_ordering::unordered;
  }
  if (number >= kTwo63) {
    return std::partial_ordering::less;
  }
  if (number < -kTwo63) {
    return std::partial_ordering::greater;
  }
  double whole = std::trunc(number);
  int64_t other = static_cast<int64_t>(whole);
  return integer != other ? std::partial_ordering(integer <=> other) : whole <=> number;
}

}  // namespace

Value NumberFrom(double number) {
  if (!std::isfinite(number)) {
    return {};
  }
  bool whole = std::trunc(number) == number && std::abs(number) <= 0x1p53;
  return whole ? Value::Integer(static_cast<int64_t>(number)) : Value::Double(number);
}

std::partial_ordering CompareNumbers(Value a, Value b) {
  if (a.is_integer() && b.is_integer()) {
    return a.integer() <=> b.integer();
  }
  if (a.is_integer()) {
    return Compare(a.integer(), b.number());
  }
  if (b.is_integer()) {
    return 0 <=> Compare(b.integer(), a.number());
  }
  return a.number() <=> b.number();
}

std::optional<int64_t> WholeNumber(Value value) {
  if (value.kind() != types::Kind::kNumber) {
    return std::nullopt;
  }
  if (value.is_integer()) {
    return value.integer();
  }
  double number = value.number();
  if (std::trunc(number) != number || number >= kTwo63 || number < -kTwo63) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

int32_t ToInt32(double number) {
  if (!std::isfinite(number)) {
    return 0;
  }
  double low = std::fmod(std::trunc(number), 0x1p32);  // in (-2^32, 2^32)
  return static_cast<int32_t>(static_cast<uint32_t>(static_cast<int64_t>(low)));
}

}  // namespace orrery::query
