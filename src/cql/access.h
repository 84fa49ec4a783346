// Access: what one role may do, with all that it is a member of: made once of the Roles, asked for
// every statement. Immutable.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "cql/permissions.h"
#include "cql/roles.h"

namespace orrery::cql {

class Access {
 public:
  // Of a role that is not there: nothing.
  Access(const Roles& roles, std::string_view role);

  bool login() const { return login_; }
  bool superuser() const { return superuser_; }
  // The role and those that it is a member of.
  const RoleNames& roles() const { return roles_; }

  // On the table, on all tables of its keyspace, on the keyspace or on all. Allocates nothing.
  bool MayOnTable(Permission permission, std::string_view keyspace, std::string_view table) const;
  // On any resource or what it is part of.
  bool May(Permission permission, std::string_view resource) const;

 private:
  struct OfKeyspace {
    PermissionSet all;  // on every table of it
    std::map<std::string, PermissionSet, std::less<>> tables;
  };

  bool login_ = false;
  bool superuser_ = false;
  RoleNames roles_;
  Roles::Grants grants_;
  // The same again, for tables.
  PermissionSet all_data_;
  std::map<std::string, OfKeyspace, std::less<>> keyspaces_;
};

}  // namespace orrery::cql
