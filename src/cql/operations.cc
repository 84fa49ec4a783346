// + - * / % between numbers, and + - between times and durations.
#include <chrono>
#include <cmath>

#include "cql/exact.h"
#include "cql/functions.h"
#include "cql/number.h"
#include "cql/numeric.h"
#include "cql/time_text.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;

constexpr int64_t kMillisOfDay = 86'400'000;
constexpr int64_t kNanosOfDay = 86'400'000'000'000;

std::unexpected<Status> Failed(char sign, const DataType& left, const DataType& right,
                               std::string_view why) {
  return Error(Code::kInvalidArgument, "the operation '" + left.ToCql() + " " + sign + " " +
                                           right.ToCql() + "' failed: " + std::string(why));
}

// Wraps as Java's does. REQUIRES: b is not 0 for / and %.
int64_t IntegerOperation(char sign, int64_t a, int64_t b) {
  auto left = static_cast<uint64_t>(a);
  auto right = static_cast<uint64_t>(b);
  switch (sign) {
    case '+': return static_cast<int64_t>(left + right);
    case '-': return static_cast<int64_t>(left - right);
    case '*': return static_cast<int64_t>(left * right);
    case '/': return b == -1 ? static_cast<int64_t>(-left) : a / b;
    default: return b == -1 ? 0 : a % b;
  }
}

template <typename Float>
Float FloatOperation(char sign, Float a, Float b) {
  switch (sign) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return a / b;
    default: return std::fmod(a, b);
  }
}

std::optional<std::string> VarintOperation(char sign, std::string_view a, std::string_view b) {
  switch (sign) {
    case '+': return AddVarints(a, b);
    case '-': return SubtractVarints(a, b);
    case '*': return MultiplyVarints(a, b);
    case '/': return DivideVarints(a, b)->quotient;
    default: return DivideVarints(a, b)->remainder;
  }
}

std::optional<std::string> DecimalOperation(char sign, std::string_view a, std::string_view b) {
  switch (sign) {
    case '+': return AddDecimals(a, b);
    case '-': return SubtractDecimals(a, b);
    case '*': return MultiplyDecimals(a, b);
    case '/': return DivideDecimals(a, b);
    default: return RemainderOfDecimals(a, b);
  }
}

struct NumberOperation {
  char sign;
  TypeId left;
  TypeId right;
  TypeId result;

  Result<MaybeBytes> operator()(Values values, FunctionContext&) const {
    if (values[0]->empty() || values[1]->empty()) {
      return MaybeBytes();
    }
    auto a = ConvertNumber(left, result, *values[0]);
    auto b = ConvertNumber(right, result, *values[1]);
    if (!a || !b) {
      return Failed(sign, left, right,
                    "Character N is neither a decimal digit number, decimal "
                    "point, nor \"e\" notation exponential mark.");
    }
    bool divides = sign == '/' || sign == '%';
    if (result == TypeId::kFloat) {
      return FloatBytes(FloatOperation(sign, ReadFloat(*a), ReadFloat(*b)));
    }
    if (result == TypeId::kDouble) {
      return DoubleBytes(FloatOperation(sign, ReadDouble(*a), ReadDouble(*b)));
    }
    if (result == TypeId::kVarint || result == TypeId::kDecimal) {
      bool decimal = result == TypeId::kDecimal;
      if (divides && IsZero(std::string_view(*b).substr(decimal ? 4 : 0))) {
        return Failed(sign, left, right,
                      decimal ? "Division by zero" : "BigInteger divide by zero");
      }
      auto value = decimal ? DecimalOperation(sign, *a, *b) : VarintOperation(sign, *a, *b);
      if (!value) {
        return Failed(sign, left, right, "the result has too many digits");
      }
      return *std::move(value);
    }
    int64_t divisor = IntegerOf(result, *b);
    if (divides && divisor == 0) {
      return Failed(sign, left, right, "/ by zero");
    }
    return IntegerBytes(result, IntegerOperation(sign, IntegerOf(result, *a), divisor));
  }
};

struct DateOf {
  int64_t days;  // since 1970
  // The same day of another month, or its last.
  bool AddMonths(int64_t months) {
    using namespace std::chrono;  // NOLINT
    if (months == 0) {
      return true;
    }
    year_month_day date{sys_days{std::chrono::days(days)}};
    int64_t month = int64_t{static_cast<int>(date.year())} * 12 +
                    static_cast<unsigned>(date.month()) - 1 + months;
    int64_t year_number = month / 12 - (month % 12 < 0 ? 1 : 0);
    if (year_number < -30'000 || year_number > 30'000) {
      return false;
    }
    year_month target{year(static_cast<int>(year_number)),
                      std::chrono::month(static_cast<unsigned>(month - year_number * 12 + 1))};
    year_month_day_last last(target.year(), month_day_last(target.month()));
    day chosen = std::min(date.day(), last.day());
    days = sys_days{target / chosen}.time_since_epoch().count();
    return true;
  }
};

// timestamp or date + or - duration.
struct TimeOperation {
  char sign;
  TypeId type;

  Result<MaybeBytes> operator()(Values values, FunctionContext&) const {
    auto duration = DurationFromBytes(*values[1]);
    if (values[0]->empty() || !duration) {
      return MaybeBytes();
    }
    int64_t factor = sign == '+' ? 1 : -1;
    int64_t months = duration->months * factor;
    int64_t days = duration->days * factor;
    bool date = type == TypeId::kDate;
    if (date && duration->nanos % kNanosOfDay != 0) {
      return Failed(sign, type, TypeId::kDuration,
                    "The duration must have a day precision. Was: " +
                        DurationToText({static_cast<int32_t>(duration->months),
                                        static_cast<int32_t>(duration->days), duration->nanos}));
    }
    int64_t millis = date ? 0 : ReadBigint(*values[0]);
    int64_t whole_days = millis / kMillisOfDay - (millis % kMillisOfDay < 0 ? 1 : 0);
    int64_t rest = millis % kMillisOfDay + (millis % kMillisOfDay < 0 ? kMillisOfDay : 0);
    DateOf day{date ? int64_t{static_cast<uint32_t>(ReadInt(*values[0]))} - (int64_t{1} << 31)
                    : whole_days};
    if ((months != 0 && std::abs(day.days) > 10'000'000) || !day.AddMonths(months)) {
      return Failed(sign, type, TypeId::kDuration, "the result is out of range");
    }
    if (date) {
      int64_t result = day.days + days + duration->nanos / kNanosOfDay * factor;
      if (result < INT32_MIN || result > INT32_MAX) {
        return Failed(sign, type, TypeId::kDuration, "the result is out of range");
      }
      return IntBytes(static_cast<int32_t>(static_cast<uint32_t>(result + (int64_t{1} << 31))));
    }
    __int128 result = __int128{day.days + days} * kMillisOfDay + rest +
                      __int128{duration->nanos} / 1'000'000 * factor;
    if (result < INT64_MIN || result > INT64_MAX) {
      return Failed(sign, type, TypeId::kDuration, "the result is out of range");
    }
    return BigintBytes(static_cast<int64_t>(result));
  }
};

std::string NameOfOperation(char sign) {
  switch (sign) {
    case '+': return "_add";
    case '-': return "_substract";
    case '*': return "_multiply";
    case '/': return "_divide";
    default: return "_modulo";
  }
}

}  // namespace

FunctionPtr FindOperation(char sign, const DataType& left, const DataType& right) {
  Function function{
      .name = NameOfOperation(sign), .arguments = {left, right}, .result = left, .run = {}};
  bool time = left.id() == TypeId::kTimestamp || left.id() == TypeId::kDate;
  if (time && right.id() == TypeId::kDuration && (sign == '+' || sign == '-')) {
    function.run = TimeOperation{sign, left.id()};
  } else if (IsNumber(left.id()) && IsNumber(right.id())) {
    TypeId result = CommonNumber(left.id(), right.id());
    function.result = result;
    function.run = NumberOperation{sign, left.id(), right.id(), result};
  } else {
    return nullptr;
  }
  return std::make_shared<const Function>(std::move(function));
}

FunctionPtr FindNegation(const DataType& type) {
  if (!IsNumber(type.id())) {
    return nullptr;
  }
  TypeId id = type.id() == TypeId::kCounter ? TypeId::kBigint : type.id();
  auto run = [id](Values values, FunctionContext&) -> Result<MaybeBytes> {
    std::string_view value = *values[0];
    if (value.empty()) {
      return MaybeBytes();
    }
    switch (id) {
      case TypeId::kFloat: return FloatBytes(-ReadFloat(value));
      case TypeId::kDouble: return DoubleBytes(-ReadDouble(value));
      case TypeId::kVarint: return NegateVarint(value);
      case TypeId::kDecimal: return NegateDecimal(value);
      default: return IntegerBytes(id, IntegerOperation('-', 0, IntegerOf(id, value)));
    }
  };
  return std::make_shared<const Function>(
      Function{.name = "_negate", .arguments = {type}, .result = id, .run = run});
}

}  // namespace orrery::cql
