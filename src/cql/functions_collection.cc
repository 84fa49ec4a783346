// Functions of collections and of vectors.
#include <cmath>

#include "cql/aggregate.h"
#include "cql/function_table.h"
#include "cql/numeric.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

using Values = std::span<const MaybeView>;

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

std::string SystemName(const CallSite& site) { return "system." + std::string(site.name); }

FunctionPtr Make(const CallSite& site, std::vector<DataType> arguments, DataType result,
                 Function::Run run) {
  return std::make_shared<const Function>(Function{.name = std::string(site.name),
                                                   .arguments = std::move(arguments),
                                                   .result = std::move(result),
                                                   .run = std::move(run)});
}

Result<DataType> TypeOf(const CallSite& site, const Argument& argument) {
  if (auto type = argument.type ? argument.type : argument.guess) {
    return *type;
  }
  return Invalid("Cannot infer type of argument " + argument.text() + " in call to function " +
                 std::string(site.name) + ": use type casts to disambiguate");
}

// The one argument, which must be of a kind.
Result<DataType> OneArgument(const CallSite& site, std::span<const Argument> arguments,
                             std::string_view kind, bool (*good)(const DataType&)) {
  ORRERY_TRY_STATUS(CheckCount(SystemName(site), 1, arguments.size()));
  ORRERY_TRY(DataType type, TypeOf(site, arguments[0]));
  if (!good(type)) {
    return Invalid("Function " + SystemName(site) + " requires a " + std::string(kind) +
                   " argument, but found argument " + arguments[0].text() + " of type " +
                   type.ToCql());
  }
  return type;
}

bool IsMap(const DataType& type) { return type.id() == TypeId::kMap; }
bool IsCollection(const DataType& type) { return type.is_collection(); }
bool IsSetOrList(const DataType& type) {
  return type.id() == TypeId::kSet || type.id() == TypeId::kList;
}
bool IsNumericSetOrList(const DataType& type) {
  return IsSetOrList(type) && IsNumber(type.element().id());
}

// Every second part of a map.
Result<FunctionPtr> MapSide(const CallSite& site, std::span<const Argument> arguments, bool keys) {
  ORRERY_TRY(DataType type, OneArgument(site, arguments, "map", IsMap));
  DataType result = keys ? DataType::Set(type.element()) : DataType::List(type.mapped());
  auto run = [type, result, keys](Values values, FunctionContext&) -> Result<MaybeBytes> {
    std::string out;
    PartWriter writer(result, out);
    PartReader parts(type, *values[0]);
    while (parts.Next()) {
      if (parts.index() % 2 == (keys ? 0 : 1)) {
        writer.Add(parts.value());
      }
    }
    writer.Finish();
    return out;
  };
  return Make(site, {type}, result, run);
}

Result<FunctionPtr> CountParts(const CallSite& site, std::span<const Argument> arguments) {
  ORRERY_TRY(DataType type, OneArgument(site, arguments, "collection", IsCollection));
  auto run = [type](Values values, FunctionContext&) -> Result<MaybeBytes> {
    size_t count = PartReader(type, *values[0]).count() / (IsMap(type) ? 2 : 1);
    return IntBytes(static_cast<int32_t>(count));
  };
  return Make(site, {type}, TypeId::kInt, run);
}

// collection_min and so on: the aggregate of that name over the elements.
Result<FunctionPtr> OverElements(const CallSite& site, std::span<const Argument> arguments,
                                 std::string_view aggregate) {
  bool number = aggregate == "sum" || aggregate == "avg";
  ORRERY_TRY(DataType type,
             number ? OneArgument(site, arguments, "numeric set/list", IsNumericSetOrList)
                    : OneArgument(site, arguments, "set/list", IsSetOrList));
  Argument element{.type = type.element(), .guess = {}, .fit = {}, .text = {}};
  ORRERY_TRY(AggregatePtr function, FindAggregate({.name = aggregate}, std::span(&element, 1)));
  DataType result = function->result;
  auto run = [type, function](Values values, FunctionContext&) -> Result<MaybeBytes> {
    auto state = function->start();
    PartReader parts(type, *values[0]);
    while (parts.Next()) {
      if (parts.value()) {
        ORRERY_TRY_STATUS(state->Add(*parts.value()));
      }
    }
    return state->Finish();
  };
  return Make(site, {type}, result, run);
}

// ---- Vectors ----

enum class Similarity : uint8_t { kCosine, kEuclidean, kDotProduct };

std::vector<float> FloatsOf(const DataType& type, std::string_view bytes) {
  std::vector<float> floats;
  PartReader parts(type, bytes);
  while (parts.Next()) {
    floats.push_back(ReadFloat(*parts.value()));
  }
  return floats;
}

// Between 0 and 1 as Lucene has it; nothing if both must not be 0.
std::optional<float> SimilarityOf(Similarity kind, const std::vector<float>& a,
                                  const std::vector<float>& b) {
  double dot = 0;
  double of_a = 0;
  double of_b = 0;
  double distance = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    double x = static_cast<double>(a[i]);
    double y = static_cast<double>(b[i]);
    dot += x * y;
    of_a += x * x;
    of_b += y * y;
    distance += (x - y) * (x - y);
  }
  switch (kind) {
    case Similarity::kCosine:
      if (of_a == 0 || of_b == 0) {
        return std::nullopt;
      }
      return static_cast<float>((1 + dot / std::sqrt(of_a * of_b)) / 2);
    case Similarity::kEuclidean: return static_cast<float>(1 / (1 + distance));
    case Similarity::kDotProduct: return static_cast<float>((1 + dot) / 2);
  }
  return std::nullopt;
}

Result<FunctionPtr> SimilarityFunction(const CallSite& site, std::span<const Argument> arguments,
                                       Similarity kind) {
  ORRERY_TRY_STATUS(CheckCount(SystemName(site), 2, arguments.size()));
  const Argument* known = nullptr;
  for (const Argument& argument : arguments) {
    bool vector = argument.type && argument.type->id() == TypeId::kVector;
    known = known == nullptr && vector ? &argument : known;
  }
  if (known == nullptr) {
    return Invalid("Cannot infer type of argument " + arguments[0].text() +
                   " in call to function " + std::string(site.name) +
                   ": use type casts to disambiguate");
  }
  DataType type = *known->type;
  for (const Argument& argument : arguments) {
    bool other = argument.type && argument.type->id() == TypeId::kVector &&
                 argument.type->dimension() != type.dimension();
    if (other) {
      return Invalid("All arguments must have the same vector dimensions");
    }
    if (type.element().id() != TypeId::kFloat || argument.fit(type) == Fit::kNo) {
      return Invalid("Function " + SystemName(site) +
                     " requires a float vector argument, but found argument " + argument.text() +
                     (argument.type ? " of type " + argument.type->ToCql() : ""));
    }
  }
  auto run = [type, kind, name = SystemName(site)](Values values,
                                                   FunctionContext&) -> Result<MaybeBytes> {
    auto result = SimilarityOf(kind, FloatsOf(type, *values[0]), FloatsOf(type, *values[1]));
    if (!result) {
      return Invalid("Function " + name + " doesn't support all-zero vectors.");
    }
    return FloatBytes(*result);
  };
  return Make(site, {type, type}, TypeId::kFloat, run);
}

}  // namespace

void AddCollectionFunctions(FunctionTable& table) {
  using Arguments = std::span<const Argument>;
  table.AddFactory("map_keys", [](const CallSite& site, Arguments arguments) {
    return MapSide(site, arguments, /*keys=*/true);
  });
  table.AddFactory("map_values", [](const CallSite& site, Arguments arguments) {
    return MapSide(site, arguments, /*keys=*/false);
  });
  table.AddFactory("collection_count", CountParts);
  for (const char* name : {"min", "max", "sum", "avg"}) {
    table.AddFactory(std::string("collection_") + name,
                     [name](const CallSite& site, Arguments arguments) {
                       return OverElements(site, arguments, name);
                     });
  }
  constexpr std::pair<const char*, Similarity> kSimilarities[] = {
      {"similarity_cosine", Similarity::kCosine},
      {"similarity_euclidean", Similarity::kEuclidean},
      {"similarity_dot_product", Similarity::kDotProduct}};
  for (auto [name, kind] : kSimilarities) {
    table.AddFactory(name, [kind](const CallSite& site, Arguments arguments) {
      return SimilarityFunction(site, arguments, kind);
    });
  }
}

}  // namespace orrery::cql
