#include "cql/role_rows.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "cql/parts.h"
#include "cql/value.h"

namespace orrery::cql {
namespace {

constexpr std::string_view kKeyspace = "system_auth";
constexpr std::string_view kEverywhere = "ALL";  // data centers

std::string TextSet(const std::vector<std::string>& texts) {
  const DataType type = DataType::Set(TypeId::kText);
  std::string out;
  PartWriter writer(type, out);
  for (const std::string& text : texts) {
    writer.Add(text);
  }
  writer.Finish();
  return CanonicalValue(type, out);
}

// Null if there are none, as of any collection that is empty.
std::optional<std::string> SetOrNull(const std::vector<std::string>& texts) {
  return texts.empty() ? std::nullopt : std::optional(TextSet(texts));
}

std::string PermissionTexts(PermissionSet permissions) {
  std::vector<std::string> texts;
  for (Permission permission : permissions.List()) {
    texts.emplace_back(PermissionText(permission));
  }
  return TextSet(texts);
}

// In the order of the table's columns, which is that of their names behind the key.
std::vector<SystemRow> RowsOfRoles(const Roles& roles) {
  std::vector<SystemRow> rows;
  for (const auto& [name, role] : roles.roles) {
    rows.push_back({name, BooleanBytes(role.login), BooleanBytes(role.superuser),
                    SetOrNull({role.member_of.begin(), role.member_of.end()}), std::nullopt});
  }
  return rows;
}

std::vector<SystemRow> RowsOfMembers(const Roles& roles) {
  std::vector<SystemRow> rows;
  for (const auto& [name, role] : roles.roles) {
    for (const std::string& of : role.member_of) {
      rows.push_back({of, name});
    }
  }
  return rows;
}

std::vector<SystemRow> RowsOfPermissions(const Roles& roles) {
  std::vector<SystemRow> rows;
  for (const auto& [role, grants] : roles.grants) {
    for (const auto& [resource, permissions] : grants) {
      rows.push_back({role, resource, PermissionTexts(permissions)});
    }
  }
  return rows;
}

std::vector<SystemRow> RowsOfResources(const Roles& roles) {
  std::vector<SystemRow> rows;
  for (const auto& [role, grants] : roles.grants) {
    for (const auto& [resource, permissions] : grants) {
      rows.push_back({resource, role});
    }
  }
  return rows;
}

struct Source {
  std::string_view table;
  std::vector<SystemRow> (*rows)(const Roles&);
};
constexpr Source kSources[] = {
    {"roles", RowsOfRoles},
    {"role_members", RowsOfMembers},
    {"role_permissions", RowsOfPermissions},
    {"resource_role_permissons_index", RowsOfResources},
};

}  // namespace

bool IsRoleTable(const Table& table) {
  return table.keyspace == kKeyspace &&
         std::ranges::find(kSources, table.name, &Source::table) != std::end(kSources);
}

std::vector<SystemRow> RoleRows(const Table& table, const Roles& roles) {
  const Source* source = std::ranges::find(kSources, table.name, &Source::table);
  ORRERY_CHECK(source != std::end(kSources));
  std::vector<SystemRow> rows = source->rows(roles);
  std::ranges::sort(rows);  // all keys are texts
  return rows;
}

RoleList ListOfRoles(const RoleNames& shown, const Roles& roles) {
  RoleList list{.table = "roles",
                .columns = {{"role", TypeId::kText},
                            {"super", TypeId::kBoolean},
                            {"login", TypeId::kBoolean},
                            {"options", DataType::Map(TypeId::kText, TypeId::kText)},
                            {"datacenters", TypeId::kText}},
                .rows = {}};
  const std::string no_options = IntBytes(0);
  for (const std::string& name : shown) {
    const Role* role = roles.Find(name);
    list.rows.push_back({name, BooleanBytes(role->superuser), BooleanBytes(role->login), no_options,
                         std::string(kEverywhere)});
  }
  return list;
}

RoleList ListOfUsers(const RoleNames& shown, const Roles& roles) {
  RoleList list{.table = "users",
                .columns = {{"name", TypeId::kText},
                            {"super", TypeId::kBoolean},
                            {"datacenters", TypeId::kText}},
                .rows = {}};
  for (const std::string& name : shown) {
    if (roles.Find(name)->login) {
      list.rows.push_back({name, BooleanBytes(roles.IsSuperuser(name)), std::string(kEverywhere)});
    }
  }
  return list;
}

RoleList ListOfPermissions(const PermissionFilter& filter, const Roles& roles) {
  RoleList list{.table = "permissions",
                .columns = {{"role", TypeId::kText},
                            {"username", TypeId::kText},
                            {"resource", TypeId::kText},
                            {"permission", TypeId::kText}},
                .rows = {}};
  for (const auto& [role, grants] : roles.grants) {
    if (filter.roles && !filter.roles->contains(role)) {
      continue;
    }
    for (const auto& [resource, permissions] : grants) {
      if (filter.resources &&
          std::ranges::find(*filter.resources, resource) == filter.resources->end()) {
        continue;
      }
      for (Permission permission : (permissions & filter.permissions).List()) {
        list.rows.push_back(
            {role, role, ResourceText(resource), std::string(PermissionText(permission))});
      }
    }
  }
  return list;
}

}  // namespace orrery::cql
