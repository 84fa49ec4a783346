#include "cql/functions.h"

#include <algorithm>

#include "cql/function_table.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

const FunctionTable& Functions() {
  static const FunctionTable* const kTable = [] {
    auto* table = new FunctionTable;
    AddTimeFunctions(*table);
    AddBlobFunctions(*table);
    AddMaskFunctions(*table);
    AddMathFunctions(*table);
    AddCollectionFunctions(*table);
    return table;
  }();
  return *kTable;
}

// system.f : (int, text) -> blob
std::string Signature(const Function& function) {
  std::string types;
  for (const DataType& type : function.arguments) {
    types += (types.empty() ? "" : ", ") + type.ToCql();
  }
  return FullName(function) + " : (" + types + ") -> " + function.result.ToCql();
}

std::string Signatures(std::span<const FunctionPtr> functions) {
  std::string text;
  for (const FunctionPtr& function : functions) {
    text += (text.empty() ? "" : ", ") + Signature(*function);
  }
  return text;
}

Fit FitOfArguments(const Function& function, std::span<const Argument> arguments) {
  if (function.arguments.size() != arguments.size()) {
    return Fit::kNo;
  }
  Fit fit = Fit::kExact;
  for (size_t i = 0; i < arguments.size() && fit != Fit::kNo; ++i) {
    fit = std::min(fit, arguments[i].fit(function.arguments[i]));
  }
  return fit;
}

// The only one of its name: the message can be more exact.
Status CheckArguments(const Function& function, std::span<const Argument> arguments) {
  ORRERY_RETURN_IF_ERROR(
      CheckCount(FullName(function), function.arguments.size(), arguments.size()));
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].fit(function.arguments[i]) == Fit::kNo) {
      return Status(Code::kInvalidArgument,
                    "Type error: " + arguments[i].text() + " cannot be passed as argument " +
                        std::to_string(i) + " of function " + FullName(function) + " of type " +
                        function.arguments[i].ToCql());
    }
  }
  return Status::Ok();
}

Result<FunctionPtr> PickBest(const CallSite& site, std::span<const FunctionPtr> candidates,
                             std::span<const Argument> arguments) {
  std::vector<FunctionPtr> good;
  for (const FunctionPtr& candidate : candidates) {
    if (site.wanted && FitOf(*site.wanted, candidate->result) == Fit::kNo) {
      continue;
    }
    Fit fit = FitOfArguments(*candidate, arguments);
    if (fit == Fit::kExact) {
      return candidate;
    }
    if (fit == Fit::kWeak) {
      good.push_back(candidate);
    }
  }
  if (good.empty()) {
    return Invalid("Invalid call to function " + std::string(site.name) +
                   ", none of its type signatures match (known type signatures: " +
                   Signatures(candidates) + ")");
  }
  if (good.size() > 1) {
    return Invalid("Ambiguous call to function " + std::string(site.name) +
                   " (can be matched by following signatures: " + Signatures(good) +
                   "): use type casts to disambiguate");
  }
  return good.front();
}

}  // namespace

void FunctionTable::Add(Function function) {
  Function plain = function;
  std::erase(plain.name, '_');
  if (plain.name != function.name) {
    functions[plain.name].push_back(std::make_shared<const Function>(plain));
  }
  functions[function.name].push_back(std::make_shared<const Function>(std::move(function)));
}

void FunctionTable::AddFactory(std::string name, Factory factory) {
  std::string plain = name;
  std::erase(plain, '_');
  factories[std::move(plain)] = factory;
  factories[std::move(name)] = std::move(factory);
}

Status CheckCount(std::string_view name, size_t wanted, size_t given) {
  if (wanted == given) {
    return Status::Ok();
  }
  return Status(Code::kInvalidArgument, "Invalid number of arguments in call to function " +
                                            std::string(name) + ": " + std::to_string(wanted) +
                                            " required but " + std::to_string(given) + " provided");
}

bool Accepts(const DataType& to, const DataType& from) {
  if (to.id() == from.id()) {
    const auto& left = to.parameters();
    const auto& right = from.parameters();
    return to.Frozen() == from.Frozen() ||
           (to.is_collection() && std::ranges::equal(left, right, Accepts));
  }
  switch (to.id()) {
    case TypeId::kBlob: return true;
    case TypeId::kText: return from.id() == TypeId::kAscii;
    case TypeId::kVarint: return from.id() == TypeId::kInt || from.id() == TypeId::kBigint;
    case TypeId::kUuid: return from.id() == TypeId::kTimeuuid;
    case TypeId::kBigint: return from.id() == TypeId::kTimestamp || from.id() == TypeId::kCounter;
    case TypeId::kTimestamp:
    case TypeId::kTime: return from.id() == TypeId::kBigint;
    default: return false;
  }
}

Fit FitOf(const DataType& to, const DataType& from) {
  return to.id() == from.id() && to.Frozen() == from.Frozen() ? Fit::kExact
         : Accepts(to, from)                                  ? Fit::kWeak
                                                              : Fit::kNo;
}

std::string FullName(const Function& function) { return "system." + function.name; }

Result<FunctionPtr> FindFunction(const CallSite& site, std::span<const Argument> arguments) {
  if (!site.keyspace.empty() && site.keyspace != "system") {
    return FunctionPtr();
  }
  std::string name(site.name);
  if (auto factory = Functions().factories.find(name); factory != Functions().factories.end()) {
    return factory->second(site, arguments);
  }
  auto at = Functions().functions.find(name);
  if (at == Functions().functions.end()) {
    return FunctionPtr();
  }
  if (at->second.size() == 1) {
    ORRERY_TRY_STATUS(CheckArguments(*at->second.front(), arguments));
    return at->second.front();
  }
  return PickBest(site, at->second, arguments);
}

}  // namespace orrery::cql
