#include "cql/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "base/bytes.h"

namespace orrery::cql {
namespace {

constexpr uint32_t kBillion = 1'000'000'000;
// log10(256) is a little above 2.4.
constexpr size_t kDigitsMax = kNumberBytesMax * 241 / 100;

using Limbs = std::vector<uint32_t>;  // the lowest first

bool IsNegative(std::string_view varint) {
  return !varint.empty() && static_cast<int8_t>(varint[0]) < 0;
}

// The absolute value of a varint.
Limbs Magnitude(std::string_view varint) {
  Limbs limbs((varint.size() + 3) / 4 + 1);
  bool negative = IsNegative(varint);
  uint32_t carry = negative ? 1 : 0;
  for (size_t i = 0; i < varint.size(); ++i) {
    uint32_t byte = static_cast<uint8_t>(varint[varint.size() - 1 - i]);
    byte = (negative ? byte ^ 0xFF : byte) + carry;
    carry = byte >> 8;
    limbs[i / 4] |= (byte & 0xFF) << (i % 4 * 8);
  }
  limbs[varint.size() / 4] += carry << (varint.size() % 4 * 8);
  return limbs;
}

std::string DigitsOf(Limbs limbs) {
  std::string reversed;
  while (!limbs.empty()) {
    uint64_t rest = 0;
    for (size_t i = limbs.size(); i-- > 0;) {
      rest = rest << 32 | limbs[i];
      limbs[i] = static_cast<uint32_t>(rest / kBillion);
      rest %= kBillion;
    }
    for (int i = 0; i < 9; ++i) {
      reversed.push_back(static_cast<char>('0' + rest % 10));
      rest /= 10;
    }
    while (!limbs.empty() && limbs.back() == 0) {
      limbs.pop_back();
    }
  }
  size_t end = reversed.find_last_not_of('0');
  reversed.resize(end == std::string::npos ? 0 : end + 1);
  std::ranges::reverse(reversed);
  return reversed;  // empty: zero
}

// REQUIRES: digits only.
std::string VarintOfDigits(std::string_view digits, bool negative) {
  Limbs limbs;
  while (!digits.empty()) {
    size_t taken = digits.size() % 9 == 0 ? 9 : digits.size() % 9;
    uint32_t chunk = 0;
    std::from_chars(digits.data(), digits.data() + taken, chunk);
    digits.remove_prefix(taken);
    uint64_t carry = chunk;
    for (uint32_t& limb : limbs) {
      carry += static_cast<uint64_t>(limb) * kBillion;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    if (carry != 0) {
      limbs.push_back(static_cast<uint32_t>(carry));
    }
  }
  std::string bytes(limbs.size() * 4 + 1, '\0');
  uint32_t carry = negative ? 1 : 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint32_t byte = i / 4 < limbs.size() ? limbs[i / 4] >> (i % 4 * 8) & 0xFF : 0;
    byte = (negative ? byte ^ 0xFF : byte) + carry;
    carry = byte >> 8;
    bytes[bytes.size() - 1 - i] = static_cast<char>(byte);
  }
  return ShortestVarint(bytes);
}

bool AllDigits(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

// Takes a sign off the front.
bool TakeSign(std::string_view& text) {
  bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  return negative;
}

// Java's form of a finite number from its shortest scientific one, "1.5e+10".
std::string JavaForm(std::string_view scientific) {
  size_t e = scientific.find('e');
  int exponent = 0;
  std::string_view tail = scientific.substr(e + 1);
  TakeSign(tail);
  std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
  exponent = scientific[e + 1] == '-' ? -exponent : exponent;
  std::string_view mantissa = scientific.substr(0, e);
  std::string sign(mantissa.starts_with('-') ? "-" : "");
  std::string digits;
  std::ranges::copy_if(mantissa, std::back_inserter(digits), [](char c) { return c >= '0'; });
  if (exponent < -3 || exponent > 6) {
    digits.insert(1, digits.size() == 1 ? ".0" : ".");
    return sign + digits + "E" + std::to_string(exponent);
  }
  if (exponent < 0) {
    return sign + "0." + std::string(static_cast<size_t>(-exponent - 1), '0') + digits;
  }
  auto whole = static_cast<size_t>(exponent) + 1;
  digits.resize(std::max(digits.size(), whole + 1), '0');
  return sign + digits.insert(whole, ".");
}

template <typename Float>
std::string FloatingToText(Float value) {
  if (std::isnan(value)) {
    return "NaN";
  }
  if (std::isinf(value)) {
    return value < 0 ? "-Infinity" : "Infinity";
  }
  if (value == 0) {
    return std::signbit(value) ? "-0.0" : "0.0";
  }
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof(buffer), value, std::chars_format::scientific);
  return JavaForm(std::string_view(buffer, end.ptr));
}

template <typename Float>
std::optional<Float> FloatingFromText(std::string_view text) {
  std::string_view rest = text;
  bool negative = TakeSign(rest);
  if (rest == "NaN") {
    return std::numeric_limits<Float>::quiet_NaN();
  }
  if (rest == "Infinity") {
    return negative ? -std::numeric_limits<Float>::infinity()
                    : std::numeric_limits<Float>::infinity();
  }
  if (rest.empty() || (rest[0] != '.' && (rest[0] < '0' || rest[0] > '9'))) {
    return std::nullopt;
  }
  Float value = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::invalid_argument || end != rest.data() + rest.size()) {
    return std::nullopt;
  }
  if (error == std::errc::result_out_of_range) {
    // The exponent's sign tells whether it is too large or too small.
    size_t e = rest.find_first_of("eE");
    bool small = e == std::string_view::npos ? rest.starts_with("0") || rest.starts_with(".")
                                             : rest.substr(e + 1).starts_with('-');
    value = small ? 0 : std::numeric_limits<Float>::infinity();
  }
  return negative ? -value : value;
}

}  // namespace

std::string VarintOf(int64_t value) {
  char bytes[8];
  PutU64(bytes, static_cast<uint64_t>(value));
  return ShortestVarint({bytes, sizeof(bytes)});
}

std::string ShortestVarint(std::string_view varint) {
  if (varint.empty()) {
    return std::string(1, '\0');
  }
  char fill = IsNegative(varint) ? '\xFF' : '\0';
  while (varint.size() > 1 && varint[0] == fill && (varint[1] & 0x80) == (fill & 0x80)) {
    varint.remove_prefix(1);
  }
  return std::string(varint);
}

std::optional<int64_t> VarintToInt64(std::string_view varint) {
  std::string shortest = ShortestVarint(varint);
  if (shortest.size() > 8) {
    return std::nullopt;
  }
  shortest.insert(0, 8 - shortest.size(), IsNegative(shortest) ? '\xFF' : '\0');
  return static_cast<int64_t>(GetU64(shortest.data()));
}

std::optional<std::string> VarintFromText(std::string_view text) {
  bool negative = TakeSign(text);
  if (text.empty() || text.size() > kDigitsMax || !AllDigits(text)) {
    return std::nullopt;
  }
  std::string varint = VarintOfDigits(text, negative);
  return varint.size() > kNumberBytesMax ? std::nullopt : std::optional(std::move(varint));
}

std::string VarintToText(std::string_view varint) {
  if (auto small = VarintToInt64(varint)) {
    return std::to_string(*small);
  }
  return (IsNegative(varint) ? "-" : "") + DigitsOf(Magnitude(varint));
}

int CompareVarints(std::string_view a, std::string_view b) {
  std::string left = ShortestVarint(a);
  std::string right = ShortestVarint(b);
  bool negative = IsNegative(left);
  if (negative != IsNegative(right)) {
    return negative ? -1 : 1;
  }
  if (left.size() != right.size()) {
    return (left.size() < right.size()) != negative ? -1 : 1;
  }
  return left.compare(right);
}

DecimalValue DecimalToValue(std::string_view decimal) {
  int64_t scale = static_cast<int32_t>(GetU32(decimal.data()));
  std::string_view unscaled = decimal.substr(4);
  DecimalValue value{.digits = DigitsOf(Magnitude(unscaled))};
  if (value.digits.empty()) {
    return value;
  }
  value.negative = IsNegative(unscaled);
  value.exponent = static_cast<int64_t>(value.digits.size()) - scale;
  value.digits.resize(value.digits.find_last_not_of('0') + 1);
  return value;
}

std::optional<std::string> DecimalFromValue(const DecimalValue& value) {
  std::string digits = value.digits;
  int64_t scale = static_cast<int64_t>(digits.size()) - value.exponent;
  if (scale < 0 && value.exponent <= 38) {
    digits.resize(static_cast<size_t>(value.exponent), '0');
    scale = 0;
  }
  if (digits.empty()) {
    scale = 0;
  }
  if (scale < INT32_MIN && INT32_MIN - scale <= static_cast<int64_t>(kDigitsMax)) {
    digits.append(static_cast<size_t>(INT32_MIN - scale), '0');
    scale = INT32_MIN;
  }
  if (scale < INT32_MIN || scale > INT32_MAX || digits.size() > kDigitsMax) {
    return std::nullopt;
  }
  std::string decimal(4, '\0');
  PutU32(decimal.data(), static_cast<uint32_t>(scale));
  return decimal + VarintOfDigits(digits, value.negative);
}

std::optional<std::string> DecimalFromText(std::string_view text) {
  bool negative = TakeSign(text);
  int64_t exponent = 0;
  if (size_t e = text.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view tail = text.substr(e + 1);
    bool below = TakeSign(tail);
    if (tail.empty() || tail.size() > 11 || !AllDigits(tail)) {
      return std::nullopt;
    }
    std::from_chars(tail.data(), tail.data() + tail.size(), exponent);
    exponent = below ? -exponent : exponent;
    text = text.substr(0, e);
  }
  size_t point = std::min(text.find('.'), text.size());
  std::string digits(text.substr(0, point));
  std::string_view fraction = point < text.size() ? text.substr(point + 1) : std::string_view();
  digits += fraction;
  int64_t scale = static_cast<int64_t>(fraction.size()) - exponent;
  if (digits.empty() || digits.size() > kDigitsMax || !AllDigits(digits) || scale < INT32_MIN ||
      scale > INT32_MAX) {
    return std::nullopt;
  }
  std::string decimal(4, '\0');
  PutU32(decimal.data(), static_cast<uint32_t>(scale));
  decimal += VarintOfDigits(digits, negative);
  return decimal.size() - 4 > kNumberBytesMax ? std::nullopt : std::optional(std::move(decimal));
}

std::string DecimalToText(std::string_view decimal) {
  int64_t scale = static_cast<int32_t>(GetU32(decimal.data()));
  std::string digits = VarintToText(decimal.substr(4));
  std::string sign = digits.starts_with('-') ? "-" : "";
  digits.erase(0, sign.size());
  auto count = static_cast<int64_t>(digits.size());
  int64_t exponent = count - 1 - scale;
  if (scale == 0) {
    return sign + digits;
  }
  if (scale > 0 && exponent >= -6) {
    if (scale >= count) {
      digits.insert(0, static_cast<size_t>(scale - count + 1), '0');
    }
    return sign + digits.insert(digits.size() - static_cast<size_t>(scale), ".");
  }
  if (count > 1) {
    digits.insert(1, ".");
  }
  std::string tail =
      exponent == 0 ? "" : "E" + std::string(exponent > 0 ? "+" : "") + std::to_string(exponent);
  return sign + digits + tail;
}

int CompareDecimals(std::string_view a, std::string_view b) {
  if (a.substr(0, 4) == b.substr(0, 4)) {
    return CompareVarints(a.substr(4), b.substr(4));
  }
  DecimalValue left = DecimalToValue(a);
  DecimalValue right = DecimalToValue(b);
  auto sign = [](const DecimalValue& value) {
    return value.digits.empty() ? 0 : value.negative ? -1 : 1;
  };
  if (sign(left) != sign(right)) {
    return sign(left) - sign(right);
  }
  if (left.exponent != right.exponent) {
    return (left.exponent < right.exponent ? -1 : 1) * sign(left);
  }
  return left.digits.compare(right.digits) * sign(left);
}

std::string DoubleToText(double value) { return FloatingToText(value); }
std::string FloatToText(float value) { return FloatingToText(value); }
std::optional<double> DoubleFromText(std::string_view text) {
  return FloatingFromText<double>(text);
}
std::optional<float> FloatFromText(std::string_view text) { return FloatingFromText<float>(text); }

template <typename Integer>
std::optional<Integer> IntegerFromText(std::string_view text) {
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) {
      return std::nullopt;
    }
  }
  Integer value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = !text.empty() && error == std::errc() && end == text.data() + text.size();
  return good ? std::optional(value) : std::nullopt;
}
template std::optional<int8_t> IntegerFromText(std::string_view text);
template std::optional<int16_t> IntegerFromText(std::string_view text);
template std::optional<int32_t> IntegerFromText(std::string_view text);
template std::optional<int64_t> IntegerFromText(std::string_view text);

}  // namespace orrery::cql
