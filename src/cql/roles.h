// Roles: all roles, who is a member of which, and what each may do, as one immutable value. What
// the statements about them mean: from a statement and what there is to what there will be. Pure
// functions; the rules and the words of errors are Cassandra's.
//
// Whether the one who asks may do it is for the caller. So is IF [NOT] EXISTS of a role, and the
// hash of a password.
//
// As a document:
//   roles := {"roles": [{"name", "login", "superuser", "hash", "memberOf": [text]}],
//             "permissions": [{"role", "resource", "permissions": [text]}]}
// What is false or empty is left out; resources as in permissions.h.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "base/status.h"
#include "cql/ast.h"
#include "cql/define.h"
#include "cql/permissions.h"
#include "types/document.h"

namespace orrery::cql {

inline constexpr size_t kRolesMax = 1'000;
inline constexpr size_t kRoleNameBytesMax = 255;
inline constexpr size_t kMembershipsMax = 5'000;
inline constexpr size_t kGrantsMax = 5'000;  // resources of roles

// The role that there is at first, and the hash of its password, which is its name.
inline constexpr std::string_view kDefaultRole = "cassandra";
inline constexpr std::string_view kDefaultPassword = "cassandra";
inline constexpr std::string_view kDefaultHash =
    "$2b$10$OrreryDefaultRole.000uEtYTSpVReT8Rp7ECiuoAfqorh8.7BBG";

using RoleNames = std::set<std::string, std::less<>>;

struct Role {
  bool login = false;
  bool superuser = false;
  std::string hash;  // of the password, as crypt(3) has it; empty: it has none
  RoleNames member_of;
  bool operator==(const Role&) const = default;
};

struct Roles {
  using Grants = std::map<std::string, PermissionSet, std::less<>>;  // by resource; none is empty

  std::map<std::string, Role, std::less<>> roles;
  std::map<std::string, Grants, std::less<>> grants;  // by role; none is empty
  bool operator==(const Roles&) const = default;

  const Role* Find(std::string_view role) const;  // null: there is none
  // The role, and all that it is a member of, directly or through others. Empty if there is none.
  RoleNames EffectiveRoles(std::string_view role, bool recursive = true) const;
  // Whether the role or one of those is a superuser.
  bool IsSuperuser(std::string_view role) const;
  // What the role itself was granted on this resource itself.
  PermissionSet GrantedOn(std::string_view role, std::string_view resource) const;
};

// What there is while nobody has changed anything.
std::shared_ptr<const Roles> DefaultRoles();

// `hash` in place of the password that the statement has.
Defined<Roles> WithRole(const CreateRole& create, Roles before, std::optional<std::string> hash);
Defined<Roles> WithAlteredRole(const AlterRole& alter, Roles before,
                               std::optional<std::string> hash);
// With everything that was granted to it and on it.
Defined<Roles> WithoutRole(std::string_view role, Roles before);
// GRANT and REVOKE of a role.
Defined<Roles> WithMembership(const GrantRole& grant, Roles before);
// Adds permissions, or takes them away. REQUIRES: the role is there.
Defined<Roles> WithGrant(Roles before, std::string_view role, std::string_view resource,
                         PermissionSet permissions);
Roles WithoutGrant(Roles before, std::string_view role, std::string_view resource,
                   PermissionSet permissions);
// What was granted on things that are gone: a table, or a keyspace with all that is in it.
Roles WithoutTable(Roles before, std::string_view keyspace, std::string_view table);
Roles WithoutKeyspace(Roles before, std::string_view keyspace);

// Whether it is a hash in Cassandra's form, bcrypt's, that takes no more than a second to check.
bool IsPasswordHash(std::string_view text);

types::Document RolesToDocument(const Roles& roles);
// Undoes it. kCorruption says what is wrong: also a member that is not known.
Result<Roles> RolesFromDocument(types::Value document);

}  // namespace orrery::cql
