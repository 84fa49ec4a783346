#include "cql/schema.h"

namespace orrery::cql {

const Column* Table::Find(std::string_view column) const {
  for (const Column& each : columns) {
    if (each.name == column) {
      return &each;
    }
  }
  return nullptr;
}

bool Table::has_static() const {
  for (const Column& column : others()) {
    if (column.kind == ColumnKind::kStatic) {
      return true;
    }
  }
  return false;
}

bool Table::counts() const {
  for (const Column& column : others()) {
    if (column.type.id() == TypeId::kCounter) {
      return true;
    }
  }
  return false;
}

const Keyspace* Schema::FindKeyspace(std::string_view name) const {
  auto at = keyspaces.find(name);
  return at == keyspaces.end() ? nullptr : &at->second;
}

const Table* Schema::FindTable(std::string_view keyspace, std::string_view table) const {
  const Keyspace* space = FindKeyspace(keyspace);
  if (space == nullptr) {
    return nullptr;
  }
  auto at = space->tables.find(table);
  return at == space->tables.end() ? nullptr : &at->second;
}

}  // namespace orrery::cql
