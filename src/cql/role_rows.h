// Roles as rows: the tables of system_auth, and what LIST shows. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cql/data_type.h"
#include "cql/roles.h"
#include "cql/schema.h"
#include "cql/system_schema.h"

namespace orrery::cql {

// Whether RoleRows fills it, and SystemRows does not.
bool IsRoleTable(const Table& table);
// Sorted by the whole primary key. Hashes of passwords are not shown. REQUIRES: IsRoleTable
std::vector<SystemRow> RoleRows(const Table& table, const Roles& roles);

// The answer to a statement: columns of a table that drivers are told of.
struct RoleList {
  struct Column {
    std::string name;
    DataType type;
  };
  std::string_view table;  // of system_auth
  std::vector<Column> columns;
  std::vector<SystemRow> rows;
};
RoleList ListOfRoles(const RoleNames& shown, const Roles& roles);
// Of these only those that can log in.
RoleList ListOfUsers(const RoleNames& shown, const Roles& roles);

// Which permissions are listed.
struct PermissionFilter {
  PermissionSet permissions;
  std::optional<std::vector<std::string>> resources;  // none: on all
  std::optional<RoleNames> roles;                     // none: of all
};
RoleList ListOfPermissions(const PermissionFilter& filter, const Roles& roles);

}  // namespace orrery::cql
