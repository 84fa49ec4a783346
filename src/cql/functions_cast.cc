// CAST(x AS type).
//
//   numbers (counter too)  -> numbers, text, ascii
//   timeuuid               -> timestamp, date, text, ascii
//   timestamp              -> date, text, ascii
//   date                   -> timestamp, text, ascii
//   time, boolean, uuid, inet, ascii, text -> text, ascii
#include "cql/function_table.h"
#include "cql/numeric.h"
#include "cql/time_uuid.h"
#include "cql/value.h"
#include "cql/value_text.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;

bool IsTime(TypeId id) {
  return id == TypeId::kTimeuuid || id == TypeId::kTimestamp || id == TypeId::kDate;
}

bool HasText(TypeId id) {
  switch (id) {
    case TypeId::kTime:
    case TypeId::kBoolean:
    case TypeId::kUuid:
    case TypeId::kInet:
    case TypeId::kAscii:
    case TypeId::kText: return true;
    default: return IsNumber(id) || IsTime(id);
  }
}

FunctionPtr Cast(const DataType& from, const DataType& to, Function::Run run) {
  return std::make_shared<const Function>(Function{
      .name = "cast_as_" + to.ToCql(), .arguments = {from}, .result = to, .run = std::move(run)});
}

FunctionPtr CastNumber(const DataType& from, const DataType& to) {
  return Cast(from, to, [from = from.id(), to = to.id()](Values values, FunctionContext&) {
    if (values[0]->empty()) {
      return Result<MaybeBytes>(MaybeBytes());
    }
    auto value = ConvertNumber(from, to, *values[0]);
    return value ? Result<MaybeBytes>(*std::move(value))
                 : Result<MaybeBytes>(Error(Code::kInvalidArgument,
                                            "Cannot cast " + ValueToText(from, *values[0]) +
                                                " to " + DataType(to).ToCql()));
  });
}

// By the function of time that does the same.
FunctionPtr CastTime(const DataType& from, const DataType& to) {
  Argument argument{.type = from,
                    .guess = from,
                    .fit = [from](const DataType& type) { return FitOf(type, from); },
                    .text = [] { return std::string(); }};
  auto function = FindFunction({.name = to.id() == TypeId::kDate ? "to_date" : "to_timestamp"},
                               std::span(&argument, 1));
  return function ? *function : nullptr;
}

// Null: there is no way.
FunctionPtr MakeCast(const DataType& from, const DataType& to) {
  bool text = to.id() == TypeId::kText || to.id() == TypeId::kAscii;
  if (IsNumber(from.id()) && IsNumber(to.id()) && to.id() != TypeId::kCounter) {
    return CastNumber(from, to);
  }
  if (text && HasText(from.id())) {
    return Cast(from, to, [from](Values values, FunctionContext&) -> Result<MaybeBytes> {
      return ValueToText(from, *values[0]);
    });
  }
  bool time = IsTime(from.id()) && (to.id() == TypeId::kDate || to.id() == TypeId::kTimestamp);
  return time ? CastTime(from, to) : nullptr;
}

}  // namespace

Result<FunctionPtr> FindCast(const DataType& from, const DataType& to) {
  if (from == to) {
    return FunctionPtr();
  }
  if (FunctionPtr cast = MakeCast(from, to)) {
    return cast;
  }
  std::string known;
  for (TypeId id :
       {TypeId::kTinyint, TypeId::kSmallint, TypeId::kInt, TypeId::kBigint, TypeId::kFloat,
        TypeId::kDouble, TypeId::kDecimal, TypeId::kVarint, TypeId::kCounter, TypeId::kTimeuuid,
        TypeId::kTimestamp, TypeId::kDate, TypeId::kTime, TypeId::kBoolean, TypeId::kUuid,
        TypeId::kInet, TypeId::kAscii, TypeId::kText}) {
    if (DataType(id) != to && MakeCast(id, to) != nullptr) {
      known += (known.empty() ? "" : ", ") + std::string("system.cast_as_") + to.ToCql() + " : (" +
               DataType(id).ToCql() + ") -> " + to.ToCql();
    }
  }
  return Error(Code::kInvalidArgument,
               known.empty() ? from.ToCql() + " cannot be cast to " + to.ToCql()
                             : "Invalid call to function system.cast_as_" + to.ToCql() +
                                   ", none of its type signatures match (known type signatures: " +
                                   known + ")");
}

}  // namespace orrery::cql
