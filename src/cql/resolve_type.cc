#include "cql/resolve_type.h"

#include <utility>
#include <vector>

#include "cql/parse.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

std::unexpected<Status> Invalid(std::string message) {
  return Error(Code::kInvalidArgument, std::move(message));
}

bool IsCollection(const TypeName& type) {
  return type.id == TypeId::kList || type.id == TypeId::kSet || type.id == TypeId::kMap;
}

// `frozen` where it counts: a frozen collection and a tuple freeze what they hold, and tuples and
// vectors always are, so that the word says nothing of them. Messages show types so.
TypeName Normalized(TypeName type, bool inside_frozen) {
  bool optional = IsCollection(type) || type.id == TypeId::kUdt;
  type.frozen = optional && (type.frozen || inside_frozen);
  for (TypeName& argument : type.arguments) {
    argument = Normalized(std::move(argument), type.frozen || type.id == TypeId::kTuple);
  }
  return type;
}

Status CheckArguments(const TypeName& type) {
  for (size_t i = 0; i < type.arguments.size(); ++i) {
    const TypeName& argument = type.arguments[i];
    bool key = type.id == TypeId::kSet || (type.id == TypeId::kMap && i == 0);
    if (argument.id == TypeId::kCounter) {
      return Status(Code::kInvalidArgument,
                    type.id == TypeId::kTuple ? "Counters are not allowed inside tuples"
                    : type.id == TypeId::kVector
                        ? "Counters are not allowed inside vectors"
                        : "Counters are not allowed inside collections: " + ToCql(type));
    }
    if (argument.id == TypeId::kDuration && key) {
      return Status(Code::kInvalidArgument,
                    (type.id == TypeId::kSet ? "Durations are not allowed inside sets: "
                                             : "Durations are not allowed as map keys: ") +
                        ToCql(type));
    }
    bool loose = !argument.frozen && (IsCollection(argument) || argument.id == TypeId::kUdt);
    if (loose && IsCollection(type) && !type.frozen) {
      return Status(Code::kInvalidArgument,
                    (argument.id == TypeId::kUdt
                         ? "Non-frozen UDTs are not allowed inside collections: "
                         : "Non-frozen collections are not allowed inside collections: ") +
                        ToCql(type));
    }
  }
  return Status::Ok();
}

Result<DataType> FindUserType(const TypeName& type, const TypeScope& scope) {
  const QualifiedName& name = type.name;
  std::string keyspace(scope.keyspace);
  if (!name.keyspace.empty() && name.keyspace != keyspace) {
    return Invalid("Statement on keyspace " + keyspace +
                   " cannot refer to a user type in keyspace " + name.keyspace +
                   "; user types can only be used in the keyspace they are defined in");
  }
  std::optional<DataType> found = scope.find ? scope.find(name.name) : std::nullopt;
  if (!found) {
    return Invalid("Unknown type " + keyspace + "." + name.name);
  }
  return type.frozen ? found->Frozen() : *found;
}

// REQUIRES: Normalized.
Result<DataType> Resolve(const TypeName& type, const TypeScope& scope) {
  ORRERY_TRY_STATUS(CheckArguments(type));
  std::vector<DataType> parts;
  for (const TypeName& argument : type.arguments) {
    ORRERY_TRY(DataType part, Resolve(argument, scope));
    parts.push_back(std::move(part));
  }
  switch (type.id) {
    case TypeId::kList: return DataType::List(parts[0], type.frozen);
    case TypeId::kSet: return DataType::Set(parts[0], type.frozen);
    case TypeId::kMap: return DataType::Map(parts[0], parts[1], type.frozen);
    case TypeId::kTuple: return DataType::Tuple(std::move(parts));
    case TypeId::kVector:
      if (type.dimension == 0) {
        return Invalid("vectors may only have positive dimensions; given 0");
      }
      if (type.dimension > DataType::kDimensionMax) {
        return Invalid("vectors may have at most " + std::to_string(DataType::kDimensionMax) +
                       " dimensions; given " + std::to_string(type.dimension));
      }
      return DataType::Vector(parts[0], type.dimension);
    case TypeId::kUdt: return FindUserType(type, scope);
    case TypeId::kCustom: return DataType::Custom(type.name.name);
    default: return type.id;
  }
}

}  // namespace

Result<DataType> ResolveType(const TypeName& name, const TypeScope& scope) {
  ORRERY_TRY(DataType type, Resolve(Normalized(name, false), scope));
  if (type.height() > DataType::kNestingMax) {
    return Invalid("a type has " + std::to_string(type.height()) + " levels, more than " +
                   std::to_string(DataType::kNestingMax));
  }
  if (type.part_count() > DataType::kPartsMax) {
    return Invalid("a type holds more than " + std::to_string(DataType::kPartsMax) + " types");
  }
  return type;
}

Result<DataType> ParseTypeText(std::string_view text, const TypeScope& scope) {
  ORRERY_TRY(TypeName name, ParseType(text));
  return ResolveType(name, scope);
}

}  // namespace orrery::cql
