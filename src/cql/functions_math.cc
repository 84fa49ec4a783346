// abs, exp, log, log10, round: the result has the type of the argument.
#include <cmath>

#include "cql/exact.h"
#include "cql/function_table.h"
#include "cql/number.h"
#include "cql/numeric.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;
using Compute = Result<MaybeBytes> (*)(TypeId, std::string_view);

Result<MaybeBytes> Absolute(TypeId id, std::string_view value) {
  bool negative = false;
  switch (id) {
    case TypeId::kFloat: return FloatBytes(std::fabs(ReadFloat(value)));
    case TypeId::kDouble: return DoubleBytes(std::fabs(ReadDouble(value)));
    case TypeId::kVarint: negative = static_cast<int8_t>(value[0]) < 0; break;
    case TypeId::kDecimal: negative = value.size() > 4 && static_cast<int8_t>(value[4]) < 0; break;
    default: negative = IntegerOf(id, value) < 0; break;
  }
  if (!negative) {
    return std::string(value);
  }
  FunctionContext none;
  const MaybeView values[] = {value};
  return FindNegation(id)->run(values, none);
}

Result<MaybeBytes> Round(TypeId id, std::string_view value) {
  switch (id) {
    case TypeId::kFloat: return FloatBytes(std::floor(ReadFloat(value) + 0.5F));
    case TypeId::kDouble: return DoubleBytes(std::floor(ReadDouble(value) + 0.5));
    case TypeId::kDecimal: return RoundDecimal(value);
    default: return std::string(value);
  }
}

// By way of a double, which is all that the digits of an exact number are good for here.
template <double (*Function)(double)>
Result<MaybeBytes> ByDouble(TypeId id, std::string_view value) {
  double result = Function(DoubleOf(id, value));
  auto bytes = ConvertNumber(TypeId::kDouble, id, DoubleBytes(result));
  if (!bytes) {
    return Error(Code::kInvalidArgument, "the result is no number: " + DoubleToText(result));
  }
  return *std::move(bytes);
}

double Exp(double value) { return std::exp(value); }
double Log(double value) { return std::log(value); }
double Log10(double value) { return std::log10(value); }

}  // namespace

void AddMathFunctions(FunctionTable& table) {
  constexpr std::pair<std::string_view, Compute> kFunctions[] = {{"abs", Absolute},
                                                                 {"round", Round},
                                                                 {"exp", ByDouble<Exp>},
                                                                 {"log", ByDouble<Log>},
                                                                 {"log10", ByDouble<Log10>}};
  for (auto [name, compute] : kFunctions) {
    for (TypeId id :
         {TypeId::kTinyint, TypeId::kSmallint, TypeId::kInt, TypeId::kBigint, TypeId::kVarint,
          TypeId::kFloat, TypeId::kDouble, TypeId::kDecimal, TypeId::kCounter}) {
      table.Add({.name = std::string(name),
                 .arguments = {id},
                 .result = id == TypeId::kCounter ? TypeId::kBigint : id,
                 .run = [id, compute](Values values, FunctionContext&) -> Result<MaybeBytes> {
                   return values[0]->empty() ? Result<MaybeBytes>(MaybeBytes())
                                             : compute(id, *values[0]);
                 }});
    }
  }
}

}  // namespace orrery::cql
