// The functions of the language, and how a call finds the one it means.
//
// There are no user functions: whoever calls one is told that it is unknown.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "cql/binding.h"
#include "cql/schema.h"

namespace orrery::cql {

using MaybeView = std::optional<std::string_view>;
using MaybeBytes = std::optional<std::string>;

// One signature of a scalar function. Arguments are good values of their types.
struct Function {
  using Run = std::function<Result<MaybeBytes>(std::span<const MaybeView>, FunctionContext&)>;
  std::string name;  // in lower case
  std::vector<DataType> arguments;
  DataType result;
  Run run;
  bool pure = true;         // gives the same every time
  bool takes_null = false;  // else the result is null as soon as one argument is
};
using FunctionPtr = std::shared_ptr<const Function>;

// How well a value fits where a type is wanted.
enum class Fit : uint8_t { kNo, kWeak, kExact };

// Whether every value of `from` is one of `to`, byte by byte.
bool Accepts(const DataType& to, const DataType& from);
Fit FitOf(const DataType& to, const DataType& from);

// What a call knows of an argument.
struct Argument {
  std::optional<DataType> type;   // if it is known
  std::optional<DataType> guess;  // of a constant: what it is if nothing else is wanted
  std::function<Fit(const DataType&)> fit;
  std::function<std::string()> text;  // for messages
};

struct CallSite {
  std::string_view keyspace;  // of the call; may be empty
  std::string_view name;
  std::optional<DataType> wanted;
  const Table* table = nullptr;  // for token()
  bool selection = false;
};

// Null: there is no function of this name. kInvalidArgument in Cassandra's words if none of them
// takes the arguments.
Result<FunctionPtr> FindFunction(const CallSite& site, std::span<const Argument> arguments);

// CAST(x AS type). kInvalidArgument if there is no way; null if the types are the same.
Result<FunctionPtr> FindCast(const DataType& from, const DataType& to);

// a + b and so on. Null: there is no such operation.
FunctionPtr FindOperation(char sign, const DataType& left, const DataType& right);
FunctionPtr FindNegation(const DataType& type);

// How messages name a function: with the keyspace `system`.
std::string FullName(const Function& function);

}  // namespace orrery::cql
