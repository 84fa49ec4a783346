// What a client may do: asked for each of its statements, before it runs.
//
// A client that is a role keeps what the role may do, as of one value of the roles; it is looked up
// again only when that has changed. Others, the account itself and all where nobody must say who
// they are, are not asked.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "api/cassandra/prepared.h"
#include "base/status.h"
#include "cql/access.h"
#include "cql/schema.h"

namespace orrery::cassandra {

// What a role may do. Immutable.
struct RoleAccess {
  std::string role;
  std::shared_ptr<const cql::Roles> roles;
  cql::Access access;
};

// Made once for all connections of a role. Thread-safe.
class AccessTable {
 public:
  std::shared_ptr<const RoleAccess> Of(const std::string& role,
                                       const std::shared_ptr<const cql::Roles>& roles);

 private:
  std::mutex mutex_;
  std::shared_ptr<const cql::Roles> roles_;  // those that `kept_` was made of
  std::map<std::string, std::shared_ptr<const RoleAccess>> kept_;
};

// Each gives kForbidden, in Cassandra's words, or ok.
Status CheckLogin(const RoleAccess& who);
Status CheckPermission(const RoleAccess& who, cql::Permission permission,
                       std::string_view resource);
// MODIFY, and SELECT too if there is a condition.
Status CheckWrite(const RoleAccess& who, const WritePlan& plan);
// All but batches, whose parts are checked one by one, and statements about roles, which look at
// more than permissions.
Status CheckStatement(const RoleAccess& who, const Compiled& compiled,
                      std::string_view session_keyspace);

}  // namespace orrery::cassandra
