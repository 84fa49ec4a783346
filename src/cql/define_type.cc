#include <algorithm>
#include <map>
#include <set>

#include "cql/define_parts.h"
#include "cql/schema_document.h"
#include "cql/text.h"

namespace orrery::cql {
namespace {

// The type with other parts. REQUIRES: as many of them.
DataType WithParts(const DataType& type, std::vector<DataType> parts) {
  switch (type.id()) {
    case TypeId::kList: return DataType::List(parts[0], type.frozen());
    case TypeId::kSet: return DataType::Set(parts[0], type.frozen());
    case TypeId::kMap: return DataType::Map(parts[0], parts[1], type.frozen());
    case TypeId::kTuple: return DataType::Tuple(std::move(parts));
    case TypeId::kVector: return DataType::Vector(parts[0], type.dimension());
    case TypeId::kUdt: {
      std::vector<DataType::Field> fields;
      for (size_t i = 0; i < parts.size(); ++i) {
        fields.push_back({type.field_names()[i], parts[i]});
      }
      return DataType::Udt(type.keyspace(), type.name(), std::move(fields), type.frozen());
    }
    default: return type;
  }
}

DataType Substituted(const DataType& in, const DataType& type) {
  if (in.id() == TypeId::kUdt && in.name() == type.name()) {
    return in.frozen() ? type.Frozen() : type;
  }
  if (!UsesUserType(in, type.name())) {
    return in;
  }
  std::vector<DataType> parts;
  for (const DataType& part : in.parameters()) {
    parts.push_back(Substituted(part, type));
  }
  return WithParts(in, std::move(parts));
}

bool TooLarge(const DataType& type) {
  return type.height() > DataType::kNestingMax || type.part_count() > DataType::kPartsMax;
}

// A type that has grown may make others too large.
Defined<void> CheckSizes(const Keyspace& keyspace) {
  for (const auto& [name, type] : keyspace.types) {
    if (TooLarge(type)) {
      return Invalid("type " + FullName(keyspace.name, name) + " would have more than " +
                     std::to_string(DataType::kNestingMax) + " levels or " +
                     std::to_string(DataType::kPartsMax) + " parts");
    }
  }
  for (const auto& [name, table] : keyspace.tables) {
    for (const Column& column : table.columns) {
      if (TooLarge(column.type)) {
        return Invalid("the type of column " + column.name + " of table " + FullName(table) +
                       " would be too large");
      }
    }
  }
  return {};
}

Defined<DataType> FieldType(const TypeName& type, const Keyspace& in) {
  if (type.id == TypeId::kCounter) {
    return Invalid("A user type cannot contain counters");
  }
  if (type.id == TypeId::kUdt && !type.frozen) {
    return Invalid("A user type cannot contain non-frozen UDTs");
  }
  return Resolved(type, ScopeOf(in));
}

std::vector<DataType::Field> FieldsOf(const DataType& type) {
  std::vector<DataType::Field> fields;
  for (size_t i = 0; i < type.parameters().size(); ++i) {
    fields.push_back({type.field_names()[i], type.parameters()[i]});
  }
  return fields;
}

struct Alteration {
  const DataType& type;
  const Keyspace& in;
  std::string full_name = FullName(type.keyspace(), type.name());

  Defined<DataType> operator()(const AddField& add) {
    const std::string& name = add.field.name;
    if (type.FieldIndex(name)) {
      if (add.if_not_exists) {
        return type;
      }
      return Invalid("Cannot add field " + name + " to type " + full_name + ": a field with name " +
                     name + " already exists");
    }
    ORRERY_TRY(DataType field, FieldType(add.field.type, in));
    std::string what = "Cannot add new field " + name + " of type " + ToCql(add.field.type) +
                       " to user type " + full_name + " as ";
    if (UsesUserType(field, type.name())) {
      return Invalid(what + "it would create a circular reference");
    }
    std::string users;
    for (const auto& [table_name, table] : in.tables) {
      for (const Column& column : table.partition_key()) {
        if (UsesUserType(column.type, type.name())) {
          users += (users.empty() ? "" : ", ") + FullName(table);
          break;
        }
      }
    }
    if (!users.empty()) {
      return Invalid(what +
                     "the type is being used in partition key by the following tables: " + users);
    }
    if (type.parameters().size() >= DataType::kFieldsMax) {
      return Invalid(what + "it has " + std::to_string(DataType::kFieldsMax) + " fields");
    }
    std::vector<DataType::Field> fields = FieldsOf(type);
    fields.push_back({name, field});
    return DataType::Udt(type.keyspace(), type.name(), std::move(fields));
  }

  Defined<DataType> operator()(const RenameFields& rename) {
    std::vector<DataType::Field> fields = FieldsOf(type);
    std::map<std::string, size_t> places;
    for (size_t i = 0; i < fields.size(); ++i) {
      places[fields[i].name] = i;
    }
    for (const auto& [from, to] : rename.renames) {
      if (auto at = places.find(from); at != places.end()) {
        fields[at->second].name = to;
      } else if (!rename.if_exists) {
        return Invalid("Unkown field " + from + " in user type " + full_name);
      }
    }
    std::set<std::string> seen;
    for (const DataType::Field& field : fields) {
      if (!seen.insert(field.name).second) {
        return Invalid("Duplicate field name " + field.name + " in type " + full_name);
      }
    }
    return DataType::Udt(type.keyspace(), type.name(), std::move(fields));
  }

  Defined<DataType> operator()(const ChangeFieldType&) {
    return Invalid("Altering field types is no longer supported");
  }
};

}  // namespace

bool UsesUserType(const DataType& type, std::string_view name) {
  return (type.id() == TypeId::kUdt && type.name() == name) ||
         std::ranges::any_of(type.parameters(),
                             [name](const DataType& part) { return UsesUserType(part, name); });
}

DataType WithoutUserTypes(const DataType& type) {
  if (!type.Contains(TypeId::kUdt)) {
    return type;
  }
  std::vector<DataType> parts;
  for (const DataType& part : type.parameters()) {
    parts.push_back(WithoutUserTypes(part));
  }
  return type.id() == TypeId::kUdt ? DataType::Tuple(std::move(parts))
                                   : WithParts(type, std::move(parts));
}

Keyspace WithType(Keyspace keyspace, const DataType& type) {
  for (auto& [name, each] : keyspace.types) {
    each = Substituted(each, type);
  }
  keyspace.types.insert_or_assign(type.name(), type);
  for (auto& [name, table] : keyspace.tables) {
    for (Column& column : table.columns) {
      column.type = Substituted(column.type, type);
    }
  }
  return keyspace;
}

Defined<DataType> DefineType(const CreateType& create, const Keyspace& in) {
  const std::string& name = create.type.name;
  if (auto found = in.types.find(name); found != in.types.end()) {
    if (create.if_not_exists) {
      return found->second;
    }
    return Invalid("A user type with name '" + name + "' already exists");
  }
  std::vector<DataType::Field> fields;
  std::set<std::string> seen;
  for (const FieldDefinition& field : create.fields) {
    if (!seen.insert(field.name).second) {
      return Invalid("Duplicate field name '" + field.name + "' in type '" + name + "'");
    }
    ORRERY_TRY(DataType type, FieldType(field.type, in));
    fields.push_back({field.name, type});
  }
  if (fields.size() > DataType::kFieldsMax) {
    return Invalid("Type '" + name + "' has more than " + std::to_string(DataType::kFieldsMax) +
                   " fields");
  }
  DataType type = DataType::Udt(in.name, name, std::move(fields));
  if (TooLarge(type)) {
    return Invalid("Type '" + name + "' has more than " + std::to_string(DataType::kNestingMax) +
                   " levels or " + std::to_string(DataType::kPartsMax) + " parts");
  }
  return type;
}

Defined<Keyspace> AlteredType(const AlterType& alter, const Keyspace& before) {
  auto found = before.types.find(alter.type.name);
  if (found == before.types.end()) {
    if (alter.if_exists) {
      return before;
    }
    return Invalid("Type " + before.name + "." + alter.type.name + " doesn't exist");
  }
  ORRERY_TRY(DataType type,
             std::visit(Alteration{.type = found->second, .in = before}, alter.change));
  Keyspace after = WithType(before, type);
  ORRERY_TRY_DEFINED(CheckSizes(after));
  return after;
}

Defined<void> CheckDropType(const DropType& drop, const Keyspace& in) {
  const std::string& name = drop.type.name;
  std::string full = "'" + in.name + "." + name + "'";
  if (!in.types.contains(name)) {
    return drop.if_exists ? Defined<void>() : Invalid("Type " + full + " doesn't exist");
  }
  std::string users;
  for (const auto& [other, type] : in.types) {
    if (other != name && UsesUserType(type, name)) {
      users += (users.empty() ? "" : ", ") + other;
    }
  }
  if (!users.empty()) {
    return Invalid("Cannot drop user type " + full + " as it is still used by user types " + users);
  }
  for (const auto& [table_name, table] : in.tables) {
    if (std::ranges::any_of(table.columns,
                            [&](const Column& c) { return UsesUserType(c.type, name); })) {
      users += (users.empty() ? "" : ", ") + table_name;
    }
  }
  if (!users.empty()) {
    return Invalid("Cannot drop user type " + full + " as it is still used by tables " + users);
  }
  return {};
}

}  // namespace orrery::cql
