#include "cql/access.h"

#include <algorithm>

namespace orrery::cql {

Access::Access(const Roles& roles, std::string_view role) : roles_(roles.EffectiveRoles(role)) {
  const Role* self = roles.Find(role);
  login_ = self != nullptr && self->login;
  superuser_ = roles.IsSuperuser(role);
  for (const std::string& name : roles_) {
    auto granted = roles.grants.find(name);
    if (granted == roles.grants.end()) {
      continue;
    }
    for (const auto& [resource, permissions] : granted->second) {
      PermissionSet& all = grants_[resource];
      all = all | permissions;
    }
  }
  constexpr std::string_view kBelowData = "data/";
  for (const auto& [resource, permissions] : grants_) {
    if (resource == kAllData) {
      all_data_ = permissions;
    }
    if (!resource.starts_with(kBelowData)) {
      continue;
    }
    const std::string_view name = std::string_view(resource).substr(kBelowData.size());
    const size_t slash = name.find('/');
    OfKeyspace& keyspace = keyspaces_[std::string(name.substr(0, slash))];
    if (slash == std::string_view::npos || name.substr(slash) == "/*") {
      keyspace.all = keyspace.all | permissions;
    } else {
      keyspace.tables[std::string(name.substr(slash + 1))] = permissions;
    }
  }
}

bool Access::MayOnTable(Permission permission, std::string_view keyspace,
                        std::string_view table) const {
  if (superuser_ || all_data_.Has(permission)) {
    return true;
  }
  auto found = keyspaces_.find(keyspace);
  if (found == keyspaces_.end()) {
    return false;
  }
  if (found->second.all.Has(permission)) {
    return true;
  }
  auto of_table = found->second.tables.find(table);
  return of_table != found->second.tables.end() && of_table->second.Has(permission);
}

bool Access::May(Permission permission, std::string_view resource) const {
  return superuser_ || std::ranges::any_of(ResourceChain(resource), [&](const std::string& each) {
           auto found = grants_.find(each);
           return found != grants_.end() && found->second.Has(permission);
         });
}

}  // namespace orrery::cql
