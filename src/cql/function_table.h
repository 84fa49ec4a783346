// Where the files of functions put what they have. Inside of cql/ only.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cql/functions.h"

namespace orrery::cql {

struct FunctionTable {
  // Makes the one function that fits the arguments.
  using Factory = std::function<Result<FunctionPtr>(const CallSite&, std::span<const Argument>)>;

  std::unordered_map<std::string, std::vector<FunctionPtr>> functions;
  std::unordered_map<std::string, Factory> factories;

  // Adds a function under its name and, if that has underscores, under the one without.
  void Add(Function function);
  void AddFactory(std::string name, Factory factory);
};

void AddTimeFunctions(FunctionTable& table);        // functions_time.cc
void AddBlobFunctions(FunctionTable& table);        // functions_blob.cc: also json, token
void AddMaskFunctions(FunctionTable& table);        // functions_mask.cc
void AddMathFunctions(FunctionTable& table);        // functions_math.cc
void AddCollectionFunctions(FunctionTable& table);  // functions_collection.cc: also vectors

// For factories: kInvalidArgument if there is another number of them.
Status CheckCount(std::string_view name, size_t wanted, size_t given);

}  // namespace orrery::cql
