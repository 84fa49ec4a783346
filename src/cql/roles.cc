#include "cql/roles.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cql/define_parts.h"

namespace orrery::cql {
namespace {

constexpr std::string_view kManager = "org.apache.cassandra.auth.CassandraRoleManager";
constexpr size_t kHashBytes = 60;
constexpr int kCostMin = 4;
constexpr int kCostMax = 12;  // each step more doubles the time

std::string DoesNotExist(std::string_view role) { return std::string(role) + " doesn't exist"; }

Defined<void> CheckOptions(const RoleOptions& options) {
  if (options.custom) {
    return Invalid(std::string(kManager) + " doesn't support OPTIONS");
  }
  if (options.hashed_password && !IsPasswordHash(*options.hashed_password)) {
    return Invalid("Invalid hashed password value. Please use jBcrypt.");
  }
  if (options.password && options.password->find('\0') != std::string::npos) {
    return Invalid("A password must not contain a NUL");
  }
  if (options.datacenters && !options.datacenters->empty()) {
    return Invalid("ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer");
  }
  if (options.cidr_groups && !options.cidr_groups->empty()) {
    return Invalid("ACCESS FROM CIDRS operations not supported by AllowAllCIDRAuthorizer");
  }
  return {};
}

void Apply(const RoleOptions& options, std::optional<std::string> hash, Role& role) {
  role.login = options.login.value_or(role.login);
  role.superuser = options.superuser.value_or(role.superuser);
  if (hash) {
    role.hash = *std::move(hash);
  }
}

// Takes away what was granted on the resources that `gone` names.
template <typename Gone>
Roles WithoutResources(Roles before, const Gone& gone) {
  for (auto& [role, grants] : before.grants) {
    std::erase_if(grants, [&](const auto& grant) { return gone(grant.first); });
  }
  std::erase_if(before.grants, [](const auto& entry) { return entry.second.empty(); });
  return before;
}

size_t CountGrants(const Roles& roles) {
  size_t count = 0;
  for (const auto& [role, grants] : roles.grants) {
    count += grants.size();
  }
  return count;
}

}  // namespace

const Role* Roles::Find(std::string_view role) const {
  auto found = roles.find(role);
  return found == roles.end() ? nullptr : &found->second;
}

RoleNames Roles::EffectiveRoles(std::string_view role, bool recursive) const {
  RoleNames all;
  std::vector<std::string_view> todo = {role};
  while (!todo.empty()) {
    const std::string_view name = todo.back();
    todo.pop_back();
    const Role* found = Find(name);
    if (found == nullptr || !all.emplace(name).second || (!recursive && name != role)) {
      continue;
    }
    todo.insert(todo.end(), found->member_of.begin(), found->member_of.end());
  }
  return all;
}

bool Roles::IsSuperuser(std::string_view role) const {
  return std::ranges::any_of(EffectiveRoles(role),
                             [this](const std::string& name) { return Find(name)->superuser; });
}

PermissionSet Roles::GrantedOn(std::string_view role, std::string_view resource) const {
  auto found = grants.find(role);
  if (found == grants.end()) {
    return {};
  }
  auto grant = found->second.find(resource);
  return grant == found->second.end() ? PermissionSet() : grant->second;
}

std::shared_ptr<const Roles> DefaultRoles() {
  static const auto roles = [] {
    auto made = std::make_shared<Roles>();
    made->roles[std::string(kDefaultRole)] = {
        .login = true, .superuser = true, .hash = std::string(kDefaultHash), .member_of = {}};
    return std::shared_ptr<const Roles>(std::move(made));
  }();
  return roles;
}

Defined<Roles> WithRole(const CreateRole& create, Roles before, std::optional<std::string> hash) {
  ORRERY_TRY_DEFINED(CheckOptions(create.options));
  if (create.role.empty()) {
    return Invalid("Role name can't be an empty string");
  }
  if (create.role.size() > kRoleNameBytesMax) {
    return Invalid("Role name is longer than " + std::to_string(kRoleNameBytesMax) + " bytes");
  }
  if (before.Find(create.role) != nullptr) {
    return Invalid(create.role + " already exists");
  }
  if (before.roles.size() >= kRolesMax) {
    return Invalid("There are " + std::to_string(kRolesMax) + " roles already");
  }
  Role role{.login = create.user};
  Apply(create.options, std::move(hash), role);
  before.roles.emplace(create.role, std::move(role));
  return before;
}

Defined<Roles> WithAlteredRole(const AlterRole& alter, Roles before,
                               std::optional<std::string> hash) {
  ORRERY_TRY_DEFINED(CheckOptions(alter.options));
  if (alter.options == RoleOptions()) {
    return Invalid("ALTER [ROLE|USER] can't be empty");
  }
  auto found = before.roles.find(alter.role);
  if (found == before.roles.end()) {
    return Invalid(DoesNotExist(alter.role));
  }
  Apply(alter.options, std::move(hash), found->second);
  return before;
}

Defined<Roles> WithoutRole(std::string_view role, Roles before) {
  const std::string name(role);
  if (before.roles.erase(name) == 0) {
    return Invalid(DoesNotExist(role));
  }
  for (auto& [other, value] : before.roles) {
    value.member_of.erase(name);
  }
  before.grants.erase(name);
  const std::string resource = RoleResource(role);
  return WithoutResources(std::move(before),
                          [&](const std::string& each) { return each == resource; });
}

Defined<Roles> WithMembership(const GrantRole& grant, Roles before) {
  auto is_member = [](const std::string& role, const std::string& of, const char* word) {
    return Invalid(role + word + of);
  };
  for (const std::string& role : {grant.role, grant.grantee}) {
    if (before.Find(role) == nullptr) {
      return Invalid(DoesNotExist(role));
    }
  }
  RoleNames& member_of = before.roles.find(grant.grantee)->second.member_of;
  if (grant.revoke) {
    if (member_of.erase(grant.role) == 0) {
      return is_member(grant.grantee, grant.role, " is not a member of ");
    }
    return before;
  }
  if (before.EffectiveRoles(grant.grantee).contains(grant.role)) {
    return is_member(grant.grantee, grant.role, " is a member of ");
  }
  if (before.EffectiveRoles(grant.role).contains(grant.grantee)) {
    return is_member(grant.role, grant.grantee, " is a member of ");
  }
  size_t memberships = 0;
  for (const auto& [name, role] : before.roles) {
    memberships += role.member_of.size();
  }
  if (memberships >= kMembershipsMax) {
    return Invalid("There are " + std::to_string(kMembershipsMax) + " memberships already");
  }
  member_of.insert(grant.role);
  return before;
}

Defined<Roles> WithGrant(Roles before, std::string_view role, std::string_view resource,
                         PermissionSet permissions) {
  if (before.Find(role) == nullptr) {
    return Invalid("Role " + DoesNotExist(role));
  }
  permissions = permissions & ApplicablePermissions(resource);
  if (permissions.empty()) {
    return before;
  }
  const PermissionSet granted = before.GrantedOn(role, resource);
  if (granted.empty() && CountGrants(before) >= kGrantsMax) {
    return Invalid("Permissions were granted on " + std::to_string(kGrantsMax) +
                   " resources already");
  }
  before.grants[std::string(role)][std::string(resource)] = granted | permissions;
  return before;
}

Roles WithoutGrant(Roles before, std::string_view role, std::string_view resource,
                   PermissionSet permissions) {
  const PermissionSet granted = before.GrantedOn(role, resource);
  if (granted.empty()) {
    return before;
  }
  auto found = before.grants.find(role);
  auto grant = found->second.find(resource);
  grant->second = granted - permissions;
  if (grant->second.empty()) {
    found->second.erase(grant);
  }
  if (found->second.empty()) {
    before.grants.erase(found);
  }
  return before;
}

Roles WithoutTable(Roles before, std::string_view keyspace, std::string_view table) {
  const std::string resource = TableResource(keyspace, table);
  return WithoutResources(std::move(before),
                          [&](const std::string& each) { return each == resource; });
}

Roles WithoutKeyspace(Roles before, std::string_view keyspace) {
  return WithoutResources(std::move(before),
                          [&](const std::string& each) { return IsInKeyspace(each, keyspace); });
}

bool IsPasswordHash(std::string_view text) {
  // $2b$10$, 22 characters of salt, 31 of the hash.
  if (text.size() != kHashBytes || !text.starts_with("$2") || text[3] != '$' || text[6] != '$' ||
      std::string_view("aby").find(text[2]) == std::string_view::npos || !IsDigit(text[4]) ||
      !IsDigit(text[5])) {
    return false;
  }
  const int cost = (text[4] - '0') * 10 + (text[5] - '0');
  return cost >= kCostMin && cost <= kCostMax && std::ranges::all_of(text.substr(7), [](char c) {
           return IsLetter(c) || IsDigit(c) || c == '.' || c == '/';
         });
}

}  // namespace orrery::cql
