#include "cql/permissions.h"

#include <algorithm>

namespace orrery::cql {
namespace {

using enum Permission;

// In the order of Permission.
constexpr std::string_view kTexts[] = {"CREATE", "ALTER",        "DROP",     "SELECT",
                                       "MODIFY", "AUTHORIZE",    "DESCRIBE", "EXECUTE",
                                       "UNMASK", "SELECT_MASKED"};

constexpr std::string_view kDataPrefix = "data/";
constexpr std::string_view kRolePrefix = "roles/";
constexpr std::string_view kFunctionPrefix = "functions/";

constexpr PermissionSet kOfTable = {kAlter,     kDrop,   kSelect,      kModify,
                                    kAuthorize, kUnmask, kSelectMasked};
constexpr PermissionSet kOfRole = {kAlter, kDrop, kAuthorize};
constexpr PermissionSet kOfFunctions = {kCreate, kAlter, kDrop, kAuthorize, kExecute};

// Of a name below "data/": the keyspace, and "*", a table or nothing.
struct DataName {
  std::string_view keyspace;
  std::string_view table;
};
std::optional<DataName> ReadData(std::string_view resource) {
  if (!resource.starts_with(kDataPrefix)) {
    return std::nullopt;
  }
  resource.remove_prefix(kDataPrefix.size());
  const size_t slash = resource.find('/');
  if (slash == std::string_view::npos) {
    return DataName{resource, {}};
  }
  return DataName{resource.substr(0, slash), resource.substr(slash + 1)};
}

}  // namespace

std::vector<Permission> PermissionSet::List() const {
  std::vector<Permission> list;
  for (size_t i = 0; i < std::size(kTexts); ++i) {
    if (Has(static_cast<Permission>(i))) {
      list.push_back(static_cast<Permission>(i));
    }
  }
  return list;
}

std::string PermissionSet::ToText() const {
  std::string text;
  for (Permission permission : List()) {
    text += text.empty() ? "" : ", ";
    text += PermissionText(permission);
  }
  return text;
}

std::string_view PermissionText(Permission permission) {
  return kTexts[static_cast<size_t>(permission)];
}

std::optional<Permission> PermissionFromText(std::string_view text) {
  const auto* found = std::ranges::find(kTexts, text);
  return found == std::end(kTexts) ? std::nullopt
                                   : std::optional(static_cast<Permission>(found - kTexts));
}

std::string KeyspaceResource(std::string_view keyspace) {
  return std::string(kDataPrefix) + std::string(keyspace);
}
std::string AllTablesResource(std::string_view keyspace) { return TableResource(keyspace, "*"); }
std::string TableResource(std::string_view keyspace, std::string_view table) {
  return KeyspaceResource(keyspace) + "/" + std::string(table);
}
std::string RoleResource(std::string_view role) {
  return std::string(kRolePrefix) + std::string(role);
}
std::string FunctionsResource(std::string_view keyspace) {
  return std::string(kFunctionPrefix) + std::string(keyspace);
}

std::optional<std::string> ResourceName(const Resource& resource, std::string_view keyspace) {
  const std::string_view in =
      resource.name.keyspace.empty() ? keyspace : std::string_view(resource.name.keyspace);
  switch (resource.kind) {
    case ResourceKind::kAllKeyspaces: return std::string(kAllData);
    case ResourceKind::kKeyspace: return KeyspaceResource(in);
    case ResourceKind::kAllTables: return AllTablesResource(in);
    case ResourceKind::kTable: return TableResource(in, resource.name.name);
    case ResourceKind::kAllRoles: return std::string(kAllRoles);
    case ResourceKind::kRole: return RoleResource(resource.name.name);
    case ResourceKind::kAllFunctions: return std::string(kAllFunctions);
    case ResourceKind::kFunctionsOf: return FunctionsResource(in);
    case ResourceKind::kFunction:
    case ResourceKind::kAllMbeans:
    case ResourceKind::kMbeans:
    case ResourceKind::kMbean: break;
  }
  return std::nullopt;
}

std::string ParentResource(std::string_view resource) {
  if (auto data = ReadData(resource)) {
    if (data->table.empty()) {
      return std::string(kAllData);
    }
    return data->table == "*" ? KeyspaceResource(data->keyspace)
                              : AllTablesResource(data->keyspace);
  }
  if (resource.starts_with(kRolePrefix)) {
    return std::string(kAllRoles);
  }
  return resource.starts_with(kFunctionPrefix) ? std::string(kAllFunctions) : std::string();
}

std::vector<std::string> ResourceChain(std::string_view resource) {
  std::vector<std::string> chain;
  for (std::string at(resource); !at.empty(); at = ParentResource(at)) {
    chain.push_back(at);
  }
  return chain;
}

std::string ResourceText(std::string_view resource) {
  auto text = [](std::string_view before, std::string_view name) {
    return "<" + std::string(before) + std::string(name) + ">";
  };
  if (auto data = ReadData(resource)) {
    if (data->table.empty()) {
      return text("keyspace ", data->keyspace);
    }
    return data->table == "*"
               ? text("all tables in ", data->keyspace)
               : text("table ", std::string(data->keyspace) + "." + std::string(data->table));
  }
  if (resource.starts_with(kRolePrefix)) {
    return text("role ", resource.substr(kRolePrefix.size()));
  }
  if (resource.starts_with(kFunctionPrefix)) {
    return text("all functions in ", resource.substr(kFunctionPrefix.size()));
  }
  return text("all ", resource == kAllData ? "keyspaces" : resource);
}

std::string ResourceText(const Resource& resource) {
  if (auto name = ResourceName(resource, {})) {
    return ResourceText(*name);
  }
  if (resource.kind == ResourceKind::kFunction) {
    return "<function " + resource.name.keyspace + "." + resource.name.name + ">";
  }
  return resource.kind == ResourceKind::kAllMbeans ? "<all mbeans>"
                                                   : "<mbean " + resource.name.name + ">";
}

std::string_view ResourceClass(const Resource& resource) {
  switch (resource.kind) {
    case ResourceKind::kAllKeyspaces:
    case ResourceKind::kKeyspace:
    case ResourceKind::kAllTables:
    case ResourceKind::kTable: return "DataResource";
    case ResourceKind::kAllRoles:
    case ResourceKind::kRole: return "RoleResource";
    case ResourceKind::kAllFunctions:
    case ResourceKind::kFunctionsOf:
    case ResourceKind::kFunction: return "FunctionResource";
    case ResourceKind::kAllMbeans:
    case ResourceKind::kMbeans:
    case ResourceKind::kMbean: break;
  }
  return "JMXResource";
}

PermissionSet ApplicablePermissions(std::string_view resource) {
  if (resource == kAllData) {
    return kOfTable | PermissionSet{kCreate};
  }
  if (auto data = ReadData(resource)) {
    const bool one = !data->table.empty() && data->table != "*";
    return one ? kOfTable : kOfTable | PermissionSet{kCreate};
  }
  if (resource == kAllRoles) {
    return kOfRole | PermissionSet{kCreate, kDescribe};
  }
  if (resource.starts_with(kRolePrefix)) {
    return kOfRole;
  }
  return resource == kAllFunctions || resource.starts_with(kFunctionPrefix) ? kOfFunctions
                                                                            : PermissionSet();
}

bool IsInKeyspace(std::string_view resource, std::string_view keyspace) {
  if (auto data = ReadData(resource)) {
    return data->keyspace == keyspace;
  }
  return resource.starts_with(kFunctionPrefix) &&
         resource.substr(kFunctionPrefix.size()) == keyspace;
}

}  // namespace orrery::cql
