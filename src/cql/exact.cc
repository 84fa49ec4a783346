#include "cql/exact.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "base/bytes.h"
#include "cql/number.h"

namespace orrery::cql {
namespace {

using Limbs = std::vector<uint32_t>;  // the lowest first, the highest not 0

// Further apart two scales may not be: the sum would be too long.
constexpr int64_t kShiftMax = kNumberBytesMax * 5 / 2;
constexpr int64_t kScaleMin = 32;  // of a quotient
constexpr int64_t kScaleMax = 1000;

struct Big {
  bool negative = false;
  Limbs limbs;  // none: 0
};

void Trim(Limbs& limbs) {
  while (!limbs.empty() && limbs.back() == 0) {
    limbs.pop_back();
  }
}

Big ToBig(std::string_view varint) {
  Big big{.negative = !varint.empty() && static_cast<int8_t>(varint[0]) < 0,
          .limbs = Limbs(varint.size() / 4 + 1)};
  uint32_t carry = big.negative ? 1 : 0;
  for (size_t i = 0; i < varint.size(); ++i) {
    uint32_t byte = static_cast<uint8_t>(varint[varint.size() - 1 - i]);
    byte = (big.negative ? byte ^ 0xFF : byte) + carry;
    carry = byte >> 8;
    big.limbs[i / 4] |= (byte & 0xFF) << (i % 4 * 8);
  }
  big.limbs[varint.size() / 4] += carry << (varint.size() % 4 * 8);
  Trim(big.limbs);
  return big;
}

std::string ToVarint(const Big& big) {
  std::string bytes(big.limbs.size() * 4 + 1, '\0');
  uint32_t carry = big.negative ? 1 : 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    uint32_t byte = i / 4 < big.limbs.size() ? big.limbs[i / 4] >> (i % 4 * 8) & 0xFF : 0;
    byte = (big.negative ? byte ^ 0xFF : byte) + carry;
    carry = byte >> 8;
    bytes[bytes.size() - 1 - i] = static_cast<char>(byte);
  }
  return ShortestVarint(bytes);
}

std::optional<std::string> Checked(std::string varint) {
  return varint.size() <= kNumberBytesMax ? std::optional(std::move(varint)) : std::nullopt;
}

int CompareLimbs(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) {
    return a.size() < b.size() ? -1 : 1;
  }
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) {
      return a[i] < b[i] ? -1 : 1;
    }
  }
  return 0;
}

Limbs AddLimbs(const Limbs& a, const Limbs& b) {
  Limbs sum(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += (i < a.size() ? uint64_t{a[i]} : 0) + (i < b.size() ? b[i] : 0);
    sum[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  Trim(sum);
  return sum;
}

// REQUIRES: a >= b.
Limbs SubtractLimbs(const Limbs& a, const Limbs& b) {
  Limbs rest(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t digit = int64_t{a[i]} - (i < b.size() ? int64_t{b[i]} : 0) + borrow;
    rest[i] = static_cast<uint32_t>(digit);
    borrow = digit < 0 ? -1 : 0;
  }
  Trim(rest);
  return rest;
}

Limbs MultiplyLimbs(const Limbs& a, const Limbs& b) {
  Limbs product(a.size() + b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      carry += uint64_t{a[i]} * b[j] + product[i + j];
      product[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    product[i + b.size()] = static_cast<uint32_t>(carry);
  }
  Trim(product);
  return product;
}

Limbs ShiftLeft(const Limbs& limbs, int bits) {
  Limbs out(limbs.size() + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < limbs.size(); ++i) {
    carry |= uint64_t{limbs[i]} << bits;
    out[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  out.back() = static_cast<uint32_t>(carry);
  return out;
}

struct LimbDivision {
  Limbs quotient;
  Limbs remainder;
};

LimbDivision DivideBySmall(const Limbs& a, uint32_t by) {
  LimbDivision result{.quotient = Limbs(a.size()), .remainder = {}};
  uint64_t rest = 0;
  for (size_t i = a.size(); i-- > 0;) {
    rest = rest << 32 | a[i];
    result.quotient[i] = static_cast<uint32_t>(rest / by);
    rest %= by;
  }
  result.remainder = {static_cast<uint32_t>(rest)};
  Trim(result.quotient);
  Trim(result.remainder);
  return result;
}

// By hand as at school, one limb of the quotient after the other: each is guessed from the highest
// two of what is left, which is at most two too much once the divisor's highest bit is set.
// REQUIRES: b is not 0.
LimbDivision DivideLimbs(const Limbs& a, const Limbs& b) {
  if (CompareLimbs(a, b) < 0) {
    return {{}, a};
  }
  if (b.size() == 1) {
    return DivideBySmall(a, b[0]);
  }
  int shift = std::countl_zero(b.back());
  Limbs rest = ShiftLeft(a, shift);
  Limbs by = ShiftLeft(b, shift);
  Trim(by);
  size_t n = by.size();
  LimbDivision result{.quotient = Limbs(rest.size() - n), .remainder = {}};
  for (size_t at = rest.size() - n; at-- > 0;) {
    uint64_t top = uint64_t{rest[at + n]} << 32 | rest[at + n - 1];
    uint64_t guess = top / by[n - 1];
    uint64_t left = top % by[n - 1];
    while (guess >> 32 != 0 || guess * by[n - 2] > (left << 32 | rest[at + n - 2])) {
      --guess;
      left += by[n - 1];
      if (left >> 32 != 0) {
        break;
      }
    }
    int64_t borrow = 0;
    uint64_t carry = 0;
    for (size_t i = 0; i < n; ++i) {
      carry += guess * by[i];
      int64_t digit = int64_t{rest[at + i]} - static_cast<int64_t>(carry & 0xFFFF'FFFF) + borrow;
      rest[at + i] = static_cast<uint32_t>(digit);
      borrow = digit < 0 ? -1 : 0;
      carry >>= 32;
    }
    int64_t digit = int64_t{rest[at + n]} - static_cast<int64_t>(carry) + borrow;
    rest[at + n] = static_cast<uint32_t>(digit);
    if (digit < 0) {  // one too much
      --guess;
      uint64_t sum = 0;
      for (size_t i = 0; i < n; ++i) {
        sum += uint64_t{rest[at + i]} + by[i];
        rest[at + i] = static_cast<uint32_t>(sum);
        sum >>= 32;
      }
      rest[at + n] += static_cast<uint32_t>(sum);
    }
    result.quotient[at] = static_cast<uint32_t>(guess);
  }
  Trim(result.quotient);
  rest.resize(n);
  for (size_t i = 0; i < n && shift != 0; ++i) {
    uint64_t both = (i + 1 < n ? uint64_t{rest[i + 1]} << 32 : 0) | rest[i];
    rest[i] = static_cast<uint32_t>(both >> shift);
  }
  Trim(rest);
  result.remainder = std::move(rest);
  return result;
}

Big Add(const Big& a, const Big& b) {
  if (a.negative == b.negative) {
    return {a.negative, AddLimbs(a.limbs, b.limbs)};
  }
  int order = CompareLimbs(a.limbs, b.limbs);
  if (order == 0) {
    return {};
  }
  return order > 0 ? Big{a.negative, SubtractLimbs(a.limbs, b.limbs)}
                   : Big{b.negative, SubtractLimbs(b.limbs, a.limbs)};
}

Big Negated(Big big) {
  big.negative = !big.negative && !big.limbs.empty();
  return big;
}

Limbs PowerOfTen(int64_t exponent) {
  Limbs power = {1};
  for (; exponent >= 9; exponent -= 9) {
    power = MultiplyLimbs(power, {1'000'000'000});
  }
  for (; exponent > 0; --exponent) {
    power = MultiplyLimbs(power, {10});
  }
  return power;
}

struct Decimal {
  int64_t scale = 0;
  Big unscaled;
};

Decimal ToDecimal(std::string_view bytes) {
  if (bytes.size() < 4) {
    return {};
  }
  return {static_cast<int32_t>(GetU32(bytes.data())), ToBig(bytes.substr(4))};
}

std::optional<std::string> FromDecimal(const Decimal& decimal) {
  if (decimal.scale < INT32_MIN || decimal.scale > INT32_MAX) {
    return std::nullopt;
  }
  std::string varint = ToVarint(decimal.unscaled);
  if (varint.size() > kNumberBytesMax) {
    return std::nullopt;
  }
  std::string bytes(4, '\0');
  PutU32(bytes.data(), static_cast<uint32_t>(decimal.scale));
  return bytes + varint;
}

// Brings both to the greater scale. False: they are too far apart.
bool Align(Decimal& a, Decimal& b) {
  Decimal& lower = a.scale < b.scale ? a : b;
  int64_t scale = std::max(a.scale, b.scale);
  int64_t shift = scale - lower.scale;
  if (lower.unscaled.limbs.empty()) {
    lower.scale = scale;
    return true;
  }
  if (shift > kShiftMax) {
    return false;
  }
  lower.unscaled.limbs = MultiplyLimbs(lower.unscaled.limbs, PowerOfTen(shift));
  lower.scale = scale;
  return true;
}

int64_t DigitCount(const Big& big) {
  std::string text = VarintToText(ToVarint(big));
  return static_cast<int64_t>(text.size()) - (big.negative ? 1 : 0);
}

void StripZeros(Decimal& decimal) {
  if (decimal.unscaled.limbs.empty()) {
    decimal.scale = 0;
    return;
  }
  for (;;) {
    LimbDivision tenth = DivideBySmall(decimal.unscaled.limbs, 10);
    if (!tenth.remainder.empty()) {
      return;
    }
    decimal.unscaled.limbs = std::move(tenth.quotient);
    --decimal.scale;
  }
}

enum class Halves { kUp, kEven };

// a / b to the nearest integer. REQUIRES: b is not 0.
Limbs RoundedQuotient(const Limbs& a, const Limbs& b, Halves halves) {
  LimbDivision division = DivideLimbs(a, b);
  int half = CompareLimbs(AddLimbs(division.remainder, division.remainder), b);
  bool odd = !division.quotient.empty() && division.quotient[0] % 2 == 1;
  bool up = half > 0 || (half == 0 && (halves == Halves::kUp || odd));
  return up ? AddLimbs(division.quotient, {1}) : division.quotient;
}

}  // namespace

bool IsZero(std::string_view varint) {
  return std::ranges::all_of(varint, [](char c) { return c == 0; });
}

std::optional<std::string> AddVarints(std::string_view a, std::string_view b) {
  return Checked(ToVarint(Add(ToBig(a), ToBig(b))));
}

std::optional<std::string> SubtractVarints(std::string_view a, std::string_view b) {
  return Checked(ToVarint(Add(ToBig(a), Negated(ToBig(b)))));
}

std::optional<std::string> MultiplyVarints(std::string_view a, std::string_view b) {
  Big left = ToBig(a);
  Big right = ToBig(b);
  Big product{left.negative != right.negative, MultiplyLimbs(left.limbs, right.limbs)};
  product.negative &= !product.limbs.empty();
  return Checked(ToVarint(product));
}

std::optional<Division> DivideVarints(std::string_view a, std::string_view b) {
  Big left = ToBig(a);
  Big right = ToBig(b);
  if (right.limbs.empty()) {
    return std::nullopt;
  }
  LimbDivision division = DivideLimbs(left.limbs, right.limbs);
  Big quotient{left.negative != right.negative && !division.quotient.empty(), division.quotient};
  Big remainder{left.negative && !division.remainder.empty(), division.remainder};
  return Division{ToVarint(quotient), ToVarint(remainder)};
}

std::string NegateVarint(std::string_view varint) { return ToVarint(Negated(ToBig(varint))); }

std::optional<std::string> AddDecimals(std::string_view a, std::string_view b) {
  Decimal left = ToDecimal(a);
  Decimal right = ToDecimal(b);
  if (!Align(left, right)) {
    return std::nullopt;
  }
  return FromDecimal({left.scale, Add(left.unscaled, right.unscaled)});
}

std::optional<std::string> SubtractDecimals(std::string_view a, std::string_view b) {
  return AddDecimals(a, NegateDecimal(b));
}

std::optional<std::string> MultiplyDecimals(std::string_view a, std::string_view b) {
  Decimal left = ToDecimal(a);
  Decimal right = ToDecimal(b);
  Limbs limbs = MultiplyLimbs(left.unscaled.limbs, right.unscaled.limbs);
  bool negative = left.unscaled.negative != right.unscaled.negative && !limbs.empty();
  return FromDecimal({left.scale + right.scale, {negative, std::move(limbs)}});
}

std::optional<std::string> DivideDecimals(std::string_view a, std::string_view b) {
  Decimal left = ToDecimal(a);
  Decimal right = ToDecimal(b);
  int64_t first_digit =
      (DigitCount(left.unscaled) - left.scale) - (DigitCount(right.unscaled) - right.scale);
  int64_t scale = std::max({kScaleMin - first_digit, left.scale, right.scale, kScaleMin});
  scale = std::min(scale, kScaleMax);
  int64_t shift = scale - left.scale + right.scale;
  if (shift > kShiftMax || shift < -kShiftMax) {
    return std::nullopt;
  }
  (shift > 0 ? left : right).unscaled.limbs =
      MultiplyLimbs((shift > 0 ? left : right).unscaled.limbs, PowerOfTen(std::abs(shift)));
  Limbs limbs = RoundedQuotient(left.unscaled.limbs, right.unscaled.limbs, Halves::kUp);
  bool negative = left.unscaled.negative != right.unscaled.negative && !limbs.empty();
  Decimal result{scale, {negative, std::move(limbs)}};
  StripZeros(result);
  return FromDecimal(result);
}

std::optional<std::string> RemainderOfDecimals(std::string_view a, std::string_view b) {
  Decimal left = ToDecimal(a);
  Decimal right = ToDecimal(b);
  if (!Align(left, right)) {
    return std::nullopt;
  }
  Limbs limbs = DivideLimbs(left.unscaled.limbs, right.unscaled.limbs).remainder;
  bool negative = left.unscaled.negative && !limbs.empty();
  return FromDecimal({left.scale, {negative, std::move(limbs)}});
}

std::string NegateDecimal(std::string_view decimal) {
  return std::string(decimal.substr(0, 4)) + NegateVarint(decimal.substr(4));
}

std::string DecimalAverage(std::string_view sum, int64_t count) {
  Decimal decimal = ToDecimal(sum);
  Limbs by = ToBig(VarintOf(count)).limbs;
  decimal.unscaled.limbs = RoundedQuotient(decimal.unscaled.limbs, by, Halves::kEven);
  decimal.unscaled.negative &= !decimal.unscaled.limbs.empty();
  return FromDecimal(decimal).value_or(std::string(sum));
}

std::string RoundDecimal(std::string_view bytes) {
  Decimal decimal = ToDecimal(bytes);
  if (decimal.scale <= 0) {
    return std::string(bytes);
  }
  if (decimal.scale > DigitCount(decimal.unscaled)) {
    return DecimalOfVarint(VarintOf(0));
  }
  Limbs limbs = RoundedQuotient(decimal.unscaled.limbs, PowerOfTen(decimal.scale), Halves::kUp);
  bool negative = decimal.unscaled.negative && !limbs.empty();
  return DecimalOfVarint(ToVarint({negative, std::move(limbs)}));
}

std::optional<std::string> DecimalToVarint(std::string_view bytes) {
  Decimal decimal = ToDecimal(bytes);
  Big& big = decimal.unscaled;
  if (big.limbs.empty() || decimal.scale > DigitCount(big)) {
    return VarintOf(0);
  }
  if (decimal.scale > 0) {
    big.limbs = DivideLimbs(big.limbs, PowerOfTen(decimal.scale)).quotient;
    big.negative &= !big.limbs.empty();
  } else if (decimal.scale < -kShiftMax) {
    return std::nullopt;
  } else {
    big.limbs = MultiplyLimbs(big.limbs, PowerOfTen(-decimal.scale));
  }
  return Checked(ToVarint(big));
}

std::string DecimalOfVarint(std::string_view varint) {
  return std::string(4, '\0') + ShortestVarint(varint);
}

}  // namespace orrery::cql
