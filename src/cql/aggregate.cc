#include "cql/aggregate.h"

#include <cmath>

#include "cql/exact.h"
#include "cql/function_table.h"
#include "cql/number.h"
#include "cql/numeric.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

class Count final : public AggregateState {
 public:
  Status Add(std::string_view) override {
    ++count_;
    return Status::Ok();
  }
  Result<MaybeBytes> Finish() const override { return BigintBytes(count_); }

 private:
  int64_t count_ = 0;
};

// min (sign -1) and max (sign 1).
class Extreme final : public AggregateState {
 public:
  Extreme(DataType type, int sign) : type_(std::move(type)), sign_(sign) {}
  Status Add(std::string_view value) override {
    if (!best_ || CompareValues(type_, value, *best_) * sign_ > 0) {
      best_ = std::string(value);
    }
    return Status::Ok();
  }
  Result<MaybeBytes> Finish() const override { return best_; }

 private:
  const DataType type_;
  const int sign_;
  MaybeBytes best_;
};

// In the type itself: integers wrap.
class Sum final : public AggregateState {
 public:
  explicit Sum(const DataType& type)
      : sum_(ZeroOf(type.id())), add_(FindOperation('+', type, type)) {}
  Status Add(std::string_view value) override {
    if (value.empty()) {
      return Status::Ok();
    }
    FunctionContext none;
    const MaybeView values[] = {sum_, value};
    auto sum = add_->run(values, none);
    if (!sum) {
      return sum.error();
    }
    sum_ = **std::move(sum);
    return Status::Ok();
  }
  Result<MaybeBytes> Finish() const override { return sum_; }

 private:
  std::string sum_;
  const FunctionPtr add_;
};

// Integers are cut towards 0.
class Average final : public AggregateState {
 public:
  explicit Average(TypeId type) : type_(type) {}
  Status Add(std::string_view value) override {
    if (value.empty()) {
      return Status::Ok();
    }
    ++count_;
    switch (type_) {
      case TypeId::kFloat: floating_ += static_cast<double>(ReadFloat(value)); break;
      case TypeId::kDouble: floating_ += ReadDouble(value); break;
      case TypeId::kVarint:
      case TypeId::kDecimal: return AddExact(value);
      default: integer_ += IntegerOf(type_, value);
    }
    return Status::Ok();
  }
  Result<MaybeBytes> Finish() const override {
    if (count_ == 0) {
      return ZeroOf(type_);
    }
    switch (type_) {
      case TypeId::kFloat: return FloatBytes(static_cast<float>(floating_ / Divisor()));
      case TypeId::kDouble: return DoubleBytes(floating_ / Divisor());
      case TypeId::kVarint: return DivideVarints(exact_, VarintOf(count_))->quotient;
      case TypeId::kDecimal: return DecimalAverage(exact_, count_);
      default: return IntegerBytes(type_, static_cast<int64_t>(integer_ / count_));
    }
  }

 private:
  double Divisor() const { return static_cast<double>(count_); }
  Status AddExact(std::string_view value) {
    auto sum = type_ == TypeId::kVarint ? AddVarints(exact_, value)
               : exact_.empty()         ? std::optional(std::string(value))
                                        : AddDecimals(exact_, value);
    if (!sum) {
      return Status(Code::kInvalidArgument, "the sum has too many digits");
    }
    exact_ = *std::move(sum);
    return Status::Ok();
  }

  const TypeId type_;
  int64_t count_ = 0;
  __int128 integer_ = 0;
  double floating_ = 0;
  std::string exact_;
};

AggregateFunction Make(std::string name, const DataType& argument) {
  if (name == "count") {
    return {name, argument, TypeId::kBigint, [] { return std::make_unique<Count>(); }};
  }
  if (name == "min" || name == "max") {
    int sign = name == "min" ? -1 : 1;
    return {name, argument, argument,
            [argument, sign] { return std::make_unique<Extreme>(argument, sign); }};
  }
  // Those of counters are bigints.
  DataType result = argument.id() == TypeId::kCounter ? TypeId::kBigint : argument;
  if (name == "sum") {
    return {name, argument, result, [result] { return std::make_unique<Sum>(result); }};
  }
  return {name, argument, result, [result] { return std::make_unique<Average>(result.id()); }};
}

}  // namespace

bool IsAggregate(std::string_view keyspace, std::string_view name) {
  return (keyspace.empty() || keyspace == "system") &&
         (name == "count" || name == "min" || name == "max" || name == "sum" || name == "avg");
}

AggregatePtr CountRows() {
  static const auto count = std::make_shared<const AggregateFunction>(AggregateFunction{
      "countrows", std::nullopt, TypeId::kBigint, [] { return std::make_unique<Count>(); }});
  return count;
}

Result<AggregatePtr> FindAggregate(const CallSite& site, std::span<const Argument> arguments) {
  std::string name(site.name);
  ORRERY_TRY_STATUS(CheckCount("system." + name, 1, arguments.size()));
  auto type = arguments[0].type ? arguments[0].type : arguments[0].guess;
  if (!type) {
    return Invalid("Cannot infer type of argument " + arguments[0].text() +
                   " in call to function " + name + ": use type casts to disambiguate");
  }
  bool number = name == "sum" || name == "avg";
  if (number && !IsNumber(type->id())) {
    return Invalid("Invalid call to function " + name +
                   ", none of its type signatures match (known type signatures: system." + name +
                   " : (number))");
  }
  return std::make_shared<const AggregateFunction>(Make(std::move(name), *type));
}

}  // namespace orrery::cql
