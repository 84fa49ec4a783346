// The keyspaces of the system: which there are, and the definitions of their tables.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cql/schema.h"

namespace orrery::cql {

// All of them. Made at the first call; any thread.
const std::map<std::string, Keyspace, std::less<>>& SystemKeyspaces();

// Whether the name belongs to the system, so that nobody may create, change or drop it. Cassandra
// has more such names than there are keyspaces here.
bool IsSystemKeyspace(std::string_view name);
// Of these, the ones that system_virtual_schema lists and system_schema does not.
bool IsVirtualKeyspace(std::string_view name);

// Null: there is none.
const Table* FindSystemTable(std::string_view keyspace, std::string_view table);

}  // namespace orrery::cql
