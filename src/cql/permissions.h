// Permissions and what they are on: the names of resources, which resource is part of which, and
// which permissions make sense for it. Pure functions; names and words are Cassandra's.
//
//   resource := "data" | "data/ks" | "data/ks/*" | "data/ks/table"      all tables of ks: "*"
//             | "roles" | "roles/role"
//             | "functions" | "functions/ks"
//
// Each is part of the one before it on its line. Names of keyspaces and tables have no slash; that
// of a role may have any.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cql/ast.h"

namespace orrery::cql {

class PermissionSet {
 public:
  constexpr PermissionSet() = default;
  constexpr PermissionSet(std::initializer_list<Permission> permissions) {
    for (Permission permission : permissions) {
      Add(permission);
    }
  }
  explicit PermissionSet(std::span<const Permission> permissions) {
    for (Permission permission : permissions) {
      Add(permission);
    }
  }

  constexpr void Add(Permission permission) { bits_ |= Bit(permission); }
  constexpr bool Has(Permission permission) const { return (bits_ & Bit(permission)) != 0; }
  constexpr bool empty() const { return bits_ == 0; }
  // In the order in which they are listed.
  std::vector<Permission> List() const;
  // SELECT, MODIFY
  std::string ToText() const;

  constexpr PermissionSet operator|(PermissionSet other) const { return Of(bits_ | other.bits_); }
  constexpr PermissionSet operator&(PermissionSet other) const { return Of(bits_ & other.bits_); }
  constexpr PermissionSet operator-(PermissionSet other) const { return Of(bits_ & ~other.bits_); }
  constexpr bool operator==(const PermissionSet&) const = default;

 private:
  static constexpr uint32_t Bit(Permission permission) {
    return uint32_t{1} << static_cast<uint8_t>(permission);
  }
  static constexpr PermissionSet Of(uint32_t bits) {
    PermissionSet set;
    set.bits_ = bits;
    return set;
  }

  uint32_t bits_ = 0;
};

std::string_view PermissionText(Permission permission);
std::optional<Permission> PermissionFromText(std::string_view text);

// ---- Resources, by their names ----

inline constexpr std::string_view kAllData = "data";
inline constexpr std::string_view kAllRoles = "roles";
inline constexpr std::string_view kAllFunctions = "functions";
std::string KeyspaceResource(std::string_view keyspace);
std::string AllTablesResource(std::string_view keyspace);
std::string TableResource(std::string_view keyspace, std::string_view table);
std::string RoleResource(std::string_view role);
std::string FunctionsResource(std::string_view keyspace);

// What a statement names; `keyspace` stands for one that it left out. Nothing for what cannot be
// here: a function of a user, and the beans of a Java machine.
std::optional<std::string> ResourceName(const Resource& resource, std::string_view keyspace);
// What it is part of; empty: of nothing.
std::string ParentResource(std::string_view resource);
// The resource itself, its parent and so on.
std::vector<std::string> ResourceChain(std::string_view resource);
// As messages show it: <table ks.t>.
std::string ResourceText(std::string_view resource);
// The same of one that has no name here.
std::string ResourceText(const Resource& resource);
// The class that messages name: DataResource.
std::string_view ResourceClass(const Resource& resource);
// Empty of what is no resource.
PermissionSet ApplicablePermissions(std::string_view resource);
// Whether it is the keyspace or in it, its functions included.
bool IsInKeyspace(std::string_view resource, std::string_view keyspace);

}  // namespace orrery::cql
