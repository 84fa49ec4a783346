// Roles as documents.
#include <algorithm>
#include <initializer_list>
#include <vector>

#include "cql/roles.h"

namespace orrery::cql {
namespace {

using types::DocumentBuilder;
using types::Kind;
using types::Value;

Status Malformed(std::string what) {
  return Status(Code::kCorruption, "the roles cannot be read: " + std::move(what));
}

Status CheckMembers(Value object, std::initializer_list<std::string_view> known) {
  if (object.kind() != Kind::kObject || object.is_extended()) {
    return Malformed("no object");
  }
  for (types::ValueIterator each(object.bson()); each.Next();) {
    if (std::ranges::find(known, each.name()) == known.end()) {
      return Malformed("unknown member '" + std::string(each.name()) + "'");
    }
  }
  return Status::Ok();
}

// Of a list that may be left out.
Result<std::vector<Value>> Items(Value object, std::string_view name, Kind kind) {
  std::vector<Value> items;
  const Value list = types::Member(object, name);
  if (!list.defined()) {
    return items;
  }
  if (list.kind() != Kind::kArray) {
    return Error(Malformed("'" + std::string(name) + "' is no list"));
  }
  for (types::ValueIterator each(list.bson()); each.Next();) {
    if (each.value().kind() != kind) {
      return Error(Malformed("'" + std::string(name) + "' holds something else"));
    }
    items.push_back(each.value());
  }
  return items;
}

Result<std::string> Text(Value object, std::string_view name) {
  const Value value = types::Member(object, name);
  if (value.kind() != Kind::kString) {
    return Error(Malformed("'" + std::string(name) + "' is no text"));
  }
  return std::string(value.string());
}

Result<bool> Flag(Value object, std::string_view name) {
  const Value value = types::Member(object, name);
  if (value.defined() && value.kind() != Kind::kBool) {
    return Error(Malformed("'" + std::string(name) + "' is neither true nor false"));
  }
  return value.defined() && value.boolean();
}

Status ReadRole(Value value, Roles& roles) {
  ORRERY_RETURN_IF_ERROR(CheckMembers(value, {"name", "login", "superuser", "hash", "memberOf"}));
  auto read = [&]() -> Result<Role> {
    Role role;
    ORRERY_TRY(role.login, Flag(value, "login"));
    ORRERY_TRY(role.superuser, Flag(value, "superuser"));
    if (types::Member(value, "hash").defined()) {
      ORRERY_TRY(role.hash, Text(value, "hash"));
    }
    ORRERY_TRY(std::vector<Value> names, Items(value, "memberOf", Kind::kString));
    for (Value name : names) {
      role.member_of.emplace(name.string());
    }
    return role;
  };
  auto name = Text(value, "name");
  auto role = read();
  if (!name || !role) {
    return !name ? name.error() : role.error();
  }
  return roles.roles.emplace(*name, std::move(*role)).second
             ? Status::Ok()
             : Malformed("role '" + *name + "' stands twice");
}

Status ReadGrant(Value value, Roles& roles) {
  ORRERY_RETURN_IF_ERROR(CheckMembers(value, {"role", "resource", "permissions"}));
  auto role = Text(value, "role");
  auto resource = Text(value, "resource");
  auto texts = Items(value, "permissions", Kind::kString);
  if (!role || !resource || !texts) {
    return !role ? role.error() : !resource ? resource.error() : texts.error();
  }
  PermissionSet permissions;
  for (Value text : *texts) {
    auto permission = PermissionFromText(text.string());
    if (!permission) {
      return Malformed("permission '" + std::string(text.string()) + "'");
    }
    permissions.Add(*permission);
  }
  if (permissions.empty() || roles.Find(*role) == nullptr ||
      !roles.grants[*role].emplace(*resource, permissions).second) {
    return Malformed("what '" + *role + "' may do on " + *resource);
  }
  return Status::Ok();
}

}  // namespace

types::Document RolesToDocument(const Roles& roles) {
  DocumentBuilder out;
  out.BeginArray("roles");
  for (const auto& [name, role] : roles.roles) {
    out.BeginObject("");
    out.Append("name", name);
    if (role.login) {
      out.Append("login", Value::Bool(true));
    }
    if (role.superuser) {
      out.Append("superuser", Value::Bool(true));
    }
    if (!role.hash.empty()) {
      out.Append("hash", role.hash);
    }
    if (!role.member_of.empty()) {
      out.BeginArray("memberOf");
      for (const std::string& other : role.member_of) {
        out.Append("", other);
      }
      out.End();
    }
    out.End();
  }
  out.End();
  out.BeginArray("permissions");
  for (const auto& [role, grants] : roles.grants) {
    for (const auto& [resource, permissions] : grants) {
      out.BeginObject("");
      out.Append("role", role);
      out.Append("resource", resource);
      out.BeginArray("permissions");
      for (Permission permission : permissions.List()) {
        out.Append("", PermissionText(permission));
      }
      out.End();
      out.End();
    }
  }
  out.End();
  return out.Finish();
}

Result<Roles> RolesFromDocument(Value document) {
  ORRERY_TRY_STATUS(CheckMembers(document, {"roles", "permissions"}));
  Roles roles;
  ORRERY_TRY(std::vector<Value> all, Items(document, "roles", Kind::kObject));
  for (Value role : all) {
    ORRERY_TRY_STATUS(ReadRole(role, roles));
  }
  ORRERY_TRY(std::vector<Value> grants, Items(document, "permissions", Kind::kObject));
  for (Value grant : grants) {
    ORRERY_TRY_STATUS(ReadGrant(grant, roles));
  }
  return roles;
}

}  // namespace orrery::cql
