#include "cql/time_text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdio>

#include "cql/letters.h"
#include "cql/number.h"

namespace orrery::cql {
namespace {

constexpr int64_t kDayMillis = 86'400'000;
constexpr int64_t kSecondNanos = 1'000'000'000;
constexpr int64_t kDayNanos = 86'400 * kSecondNanos;
constexpr int64_t kDateEpoch = int64_t{1} << 31;

// Takes text apart from the front. Once something was not there, ok() stays false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}
  bool ok() const { return ok_; }
  bool done() const { return ok_ && text_.empty(); }
  bool empty() const { return text_.empty(); }
  char peek() const { return text_.empty() ? '\0' : text_[0]; }

  bool Take(char c) {
    if (peek() != c || text_.empty()) {
      return false;
    }
    text_.remove_prefix(1);
    return true;
  }
  void Expect(char c) { ok_ = Take(c) && ok_; }
  bool TakeWord(std::string_view word) {
    bool there = text_.size() >= word.size() &&
                 std::ranges::equal(text_.substr(0, word.size()), word, {}, Upper);
    if (there) {
      text_.remove_prefix(word.size());
    }
    return there;
  }
  // A number of so many digits.
  int64_t Digits(size_t least, size_t most) {
    size_t count = 0;
    while (count < text_.size() && count < most && IsDigit(text_[count])) {
      ++count;
    }
    int64_t value = 0;
    ok_ = ok_ && count >= least &&
          std::from_chars(text_.data(), text_.data() + count, value).ec == std::errc();
    text_.remove_prefix(count);
    return value;
  }
  int64_t DigitsUpTo(size_t count, int64_t max) {
    int64_t value = Digits(count, count);
    ok_ = ok_ && value <= max;
    return value;
  }
  // Digits after a point, as so many digits of a fraction; what is beyond is cut.
  int64_t Fraction(size_t places) {
    int64_t value = 0;
    size_t count = 0;
    for (; IsDigit(peek()) && count < 9; ++count) {
      if (count < places) {
        value = value * 10 + (peek() - '0');
      }
      text_.remove_prefix(1);
    }
    for (size_t i = count; i < places; ++i) {
      value *= 10;
    }
    ok_ = ok_ && count > 0;
    return value;
  }

 private:
  std::string_view text_;
  bool ok_ = true;
};

bool IsLeap(int64_t year) { return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0); }

int64_t DaysOfMonth(int64_t year, int64_t month) {
  constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  return month == 2 && IsLeap(year) ? 29 : kDays[month - 1];
}

int64_t FloorDiv(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Days since 1970-01-01. Years begin in March here, so that the leap day is the last of one.
int64_t DaysOf(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2 ? 1 : 0;
  int64_t era = FloorDiv(year, 400);
  int64_t of_era = year - era * 400;
  int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146'097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719'468;
}

struct CivilDate {
  int64_t year, month, day;
};

CivilDate CivilOf(int64_t days) {
  days += 719'468;
  int64_t era = FloorDiv(days, 146'097);
  int64_t of_era = days - era * 146'097;
  int64_t year = (of_era - of_era / 1460 + of_era / 36'524 - of_era / 146'096) / 365;
  int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
  int64_t shifted = (5 * of_year + 2) / 153;
  int64_t month = shifted + (shifted < 10 ? 3 : -9);
  return {year + era * 400 + (month <= 2 ? 1 : 0), month, of_year - (153 * shifted + 2) / 5 + 1};
}

// A date at the front, as days since 1970.
int64_t TakeDate(Scanner& in, size_t year_digits_max) {
  bool negative = in.Take('-');
  int64_t year = in.Digits(4, year_digits_max);
  year = negative ? -year : year;
  in.Expect('-');
  int64_t month = in.DigitsUpTo(2, 12);
  in.Expect('-');
  int64_t day = in.DigitsUpTo(2, 31);
  bool good = in.ok() && month >= 1 && day >= 1 && day <= DaysOfMonth(year, month);
  if (!good) {
    in.Expect('\0');  // no text goes on so
    return 0;
  }
  return DaysOf(year, month, day);
}

// A zone at the front, or none; its distance from UTC in minutes.
int64_t TakeZone(Scanner& in) {
  bool spaced = in.Take(' ');
  if (in.TakeWord("UTC") || in.TakeWord("GMT") || in.TakeWord("Z")) {
    return 0;
  }
  if (in.empty() && !spaced) {
    return 0;
  }
  bool west = in.Take('-');
  if (!west) {
    in.Expect('+');
  }
  int64_t minutes = in.DigitsUpTo(2, 18) * 60;
  if (!in.empty()) {
    in.Take(':');
    minutes += in.DigitsUpTo(2, 59);
  }
  return west ? -minutes : minutes;
}

std::string Padded(int64_t value, int width) {
  char buffer[32];
  return std::string(buffer,
                     static_cast<size_t>(std::snprintf(buffer, sizeof(buffer), "%0*lld", width,
                                                       static_cast<long long>(value))));
}

std::string CivilText(int64_t days) {
  CivilDate date = CivilOf(days);
  std::string year = date.year < 0 ? "-" + Padded(-date.year, 4) : Padded(date.year, 4);
  return year + "-" + Padded(date.month, 2) + "-" + Padded(date.day, 2);
}

uint64_t ZigZag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
int64_t UnZigZag(uint64_t value) { return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1)); }

// Sums up the parts of a duration, without sign.
class DurationSum {
 public:
  enum Unit { kYear, kMonth, kWeek, kDay, kHour, kMinute, kSecond, kMilli, kMicro, kNano };

  void Add(Unit unit, int64_t count) {
    switch (unit) {
      case kYear: return AddTo(months_, count, 12, INT32_MAX);
      case kMonth: return AddTo(months_, count, 1, INT32_MAX);
      case kWeek: return AddTo(days_, count, 7, INT32_MAX);
      case kDay: return AddTo(days_, count, 1, INT32_MAX);
      case kHour: return AddTo(nanos_, count, 3600 * kSecondNanos, INT64_MAX);
      case kMinute: return AddTo(nanos_, count, 60 * kSecondNanos, INT64_MAX);
      case kSecond: return AddTo(nanos_, count, kSecondNanos, INT64_MAX);
      case kMilli: return AddTo(nanos_, count, 1'000'000, INT64_MAX);
      case kMicro: return AddTo(nanos_, count, 1000, INT64_MAX);
      case kNano: return AddTo(nanos_, count, 1, INT64_MAX);
    }
  }
  bool ok() const { return ok_; }
  DurationValue Get(bool negative) const {
    int64_t sign = negative ? -1 : 1;
    return {static_cast<int32_t>(months_ * sign), static_cast<int32_t>(days_ * sign),
            nanos_ * sign};
  }

 private:
  void AddTo(int64_t& sum, int64_t count, int64_t factor, int64_t max) {
    ok_ = ok_ && count <= (max - sum) / factor;
    sum += ok_ ? count * factor : 0;
  }
  int64_t months_ = 0;
  int64_t days_ = 0;
  int64_t nanos_ = 0;
  bool ok_ = true;
};

struct UnitName {
  std::string_view name;  // upper case, in the order in which they must stand
  DurationSum::Unit unit;
  bool time = false;  // in ISO form after the T
};

constexpr UnitName kUnits[] = {
    {"Y", DurationSum::kYear},   {"MO", DurationSum::kMonth}, {"W", DurationSum::kWeek},
    {"D", DurationSum::kDay},    {"H", DurationSum::kHour},   {"M", DurationSum::kMinute},
    {"S", DurationSum::kSecond}, {"MS", DurationSum::kMilli}, {"US", DurationSum::kMicro},
    {"NS", DurationSum::kNano},
};
constexpr UnitName kIsoUnits[] = {
    {"Y", DurationSum::kYear},         {"M", DurationSum::kMonth},
    {"W", DurationSum::kWeek},         {"D", DurationSum::kDay},
    {"H", DurationSum::kHour, true},   {"M", DurationSum::kMinute, true},
    {"S", DurationSum::kSecond, true},
};

// 1y2mo3w4d5h6m7s8ms9us10ns
bool ReadUnits(std::string_view text, DurationSum& sum) {
  size_t next = 0;
  while (!text.empty()) {
    Scanner number(text);
    int64_t count = number.Digits(1, 19);
    size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(digits);
    std::string name;
    while (!text.empty() && !IsDigit(text[0])) {
      name.push_back(Upper(text[0]));
      text.remove_prefix(1);
    }
    if (name == "\xC2\xB5S") {  // the micro sign
      name = "US";
    }
    while (next < std::size(kUnits) && kUnits[next].name != name) {
      ++next;
    }
    if (!number.ok() || next == std::size(kUnits)) {
      return false;
    }
    sum.Add(kUnits[next++].unit, count);
  }
  return sum.ok();
}

// What follows the P of P1Y2M3DT4H5M6S and P3W.
bool ReadIso(std::string_view text, DurationSum& sum) {
  Scanner in(text);
  bool time = false;
  size_t next = 0;
  size_t parts = 0;
  while (!in.empty()) {
    if (!time && in.Take('T')) {
      time = true;
    }
    int64_t count = in.Digits(1, 19);
    char unit = in.peek();
    while (next < std::size(kIsoUnits) &&
           (kIsoUnits[next].name[0] != unit || kIsoUnits[next].time != time)) {
      ++next;
    }
    if (!in.ok() || next == std::size(kIsoUnits)) {
      return false;
    }
    in.Take(unit);
    sum.Add(kIsoUnits[next++].unit, count);
    ++parts;
  }
  return parts > 0 && sum.ok();
}

// What follows the P of P0001-02-03T04:05:06.
bool ReadIsoDate(std::string_view text, DurationSum& sum) {
  Scanner in(text);
  sum.Add(DurationSum::kYear, in.Digits(4, 4));
  in.Expect('-');
  sum.Add(DurationSum::kMonth, in.Digits(2, 2));
  in.Expect('-');
  sum.Add(DurationSum::kDay, in.Digits(2, 2));
  in.Expect('T');
  sum.Add(DurationSum::kHour, in.Digits(2, 2));
  in.Expect(':');
  sum.Add(DurationSum::kMinute, in.Digits(2, 2));
  in.Expect(':');
  sum.Add(DurationSum::kSecond, in.Digits(2, 2));
  return in.done() && sum.ok();
}

}  // namespace

std::optional<int64_t> TimestampFromText(std::string_view text) {
  if (auto millis = IntegerFromText<int64_t>(text)) {
    return millis;
  }
  Scanner in(text);
  int64_t millis = TakeDate(in, 4) * kDayMillis;
  Scanner before_space = in;
  if (in.Take('T') || (in.Take(' ') && IsDigit(in.peek()))) {
    millis += in.DigitsUpTo(2, 23) * 3'600'000;
    in.Expect(':');
    millis += in.DigitsUpTo(2, 59) * 60'000;
    if (in.Take(':')) {
      millis += in.DigitsUpTo(2, 59) * 1000;
      if (in.Take('.')) {
        millis += in.Fraction(3);
      }
    }
  } else {
    in = before_space;
  }
  millis -= TakeZone(in) * 60'000;
  return in.done() ? std::optional(millis) : std::nullopt;
}

std::string TimestampToText(int64_t millis, char separator) {
  int64_t days = FloorDiv(millis, kDayMillis);
  int64_t of_day = millis - days * kDayMillis;
  return CivilText(days) + separator + Padded(of_day / 3'600'000, 2) + ":" +
         Padded(of_day / 60'000 % 60, 2) + ":" + Padded(of_day / 1000 % 60, 2) + "." +
         Padded(of_day % 1000, 3) + "Z";
}

std::optional<uint32_t> DateFromText(std::string_view text) {
  if (auto days = IntegerFromText<int64_t>(text)) {
    bool fits = *days >= 0 && *days <= UINT32_MAX;
    return fits ? std::optional(static_cast<uint32_t>(*days)) : std::nullopt;
  }
  Scanner in(text);
  int64_t days = TakeDate(in, 7) + kDateEpoch;
  bool fits = in.done() && days >= 0 && days <= UINT32_MAX;
  return fits ? std::optional(static_cast<uint32_t>(days)) : std::nullopt;
}

std::string DateToText(uint32_t days) { return CivilText(static_cast<int64_t>(days) - kDateEpoch); }

std::optional<int64_t> TimeFromText(std::string_view text) {
  if (auto nanos = IntegerFromText<int64_t>(text)) {
    return *nanos >= 0 && *nanos < kDayNanos ? nanos : std::nullopt;
  }
  Scanner in(text);
  int64_t nanos = in.DigitsUpTo(2, 23) * 3600;
  in.Expect(':');
  nanos += in.DigitsUpTo(2, 59) * 60;
  in.Expect(':');
  nanos = (nanos + in.DigitsUpTo(2, 59)) * kSecondNanos;
  if (in.Take('.')) {
    nanos += in.Fraction(9);
  }
  return in.done() ? std::optional(nanos) : std::nullopt;
}

std::string TimeToText(int64_t nanos) {
  int64_t seconds = nanos / kSecondNanos;
  return Padded(seconds / 3600, 2) + ":" + Padded(seconds / 60 % 60, 2) + ":" +
         Padded(seconds % 60, 2) + "." + Padded(nanos % kSecondNanos, 9);
}

std::optional<DurationValue> DurationFromText(std::string_view text) {
  bool negative = text.starts_with('-');
  text.remove_prefix(negative ? 1 : 0);
  DurationSum sum;
  bool good = false;
  if (text.starts_with('P')) {
    text.remove_prefix(1);
    bool dashed = text.find('-') != std::string_view::npos;
    good = dashed ? ReadIsoDate(text, sum) : ReadIso(text, sum);
  } else {
    good = !text.empty() && ReadUnits(text, sum);
  }
  return good ? std::optional(sum.Get(negative)) : std::nullopt;
}

std::string DurationToText(const DurationValue& value) {
  std::string text = value.months < 0 || value.days < 0 || value.nanos < 0 ? "-" : "";
  auto append = [&text](uint64_t count, std::string_view unit) {
    if (count > 0) {
      text += std::to_string(count);
      text += unit;
    }
  };
  auto months = static_cast<uint64_t>(std::abs(static_cast<int64_t>(value.months)));
  auto nanos = value.nanos < 0 ? ~static_cast<uint64_t>(value.nanos) + 1
                               : static_cast<uint64_t>(value.nanos);
  append(months / 12, "y");
  append(months % 12, "mo");
  append(static_cast<uint64_t>(std::abs(static_cast<int64_t>(value.days))), "d");
  append(nanos / (3600 * kSecondNanos), "h");
  append(nanos / (60 * kSecondNanos) % 60, "m");
  append(nanos / kSecondNanos % 60, "s");
  append(nanos / 1'000'000 % 1000, "ms");
  append(nanos / 1000 % 1000, "us");
  append(nanos % 1000, "ns");
  return text.empty() ? "0s" : text;
}

void AppendVint(uint64_t value, std::string& out) {
  int bits = std::max(1, 64 - std::countl_zero(value));
  // Each further byte carries 8 bits and takes one of the first; the ninth takes the last bit.
  int extra = bits > 56 ? 8 : (bits - 1) / 7;
  auto lead = static_cast<uint8_t>(extra == 8 ? 0xFF : ~(0xFF >> extra));
  if (extra < 8) {
    lead = static_cast<uint8_t>(lead | value >> (extra * 8));
  }
  out.push_back(static_cast<char>(lead));
  for (int i = extra - 1; i >= 0; --i) {
    out.push_back(static_cast<char>(value >> (i * 8)));
  }
}

std::optional<uint64_t> TakeVint(std::string_view& in) {
  if (in.empty()) {
    return std::nullopt;
  }
  auto lead = static_cast<uint8_t>(in[0]);
  auto extra = static_cast<size_t>(std::countl_one(lead));
  if (in.size() < extra + 1) {
    return std::nullopt;
  }
  uint64_t value = extra == 8 ? 0 : lead & (0xFFu >> extra);
  for (size_t i = 1; i <= extra; ++i) {
    value = value << 8 | static_cast<uint8_t>(in[i]);
  }
  in.remove_prefix(extra + 1);
  return value;
}

std::string DurationToBytes(const DurationValue& value) {
  std::string bytes;
  AppendVint(ZigZag(value.months), bytes);
  AppendVint(ZigZag(value.days), bytes);
  AppendVint(ZigZag(value.nanos), bytes);
  return bytes;
}

std::optional<DurationParts> DurationFromBytes(std::string_view bytes) {
  auto months = TakeVint(bytes);
  auto days = TakeVint(bytes);
  auto nanos = TakeVint(bytes);
  if (!months || !days || !nanos || !bytes.empty()) {
    return std::nullopt;
  }
  return DurationParts{UnZigZag(*months), UnZigZag(*days), UnZigZag(*nanos)};
}

}  // namespace orrery::cql
