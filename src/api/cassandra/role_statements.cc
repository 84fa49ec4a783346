// Statements about roles and permissions. Each says itself who may do it: that depends on more than
// a permission.
#include "api/cassandra/access.h"
#include "api/cassandra/failures.h"
#include "api/cassandra/service.h"
#include "base/log.h"
#include "cql/role_rows.h"
#include "cql/system_tables.h"
#include "model/catalog_roles.h"

namespace orrery::cassandra {

using runtime::Task;

namespace {

using enum cql::Permission;

constexpr int kGrantTriesMax = 10;  // while others change the roles

Status Unauthorized(std::string message) { return Status(Code::kForbidden, std::move(message)); }

// In other words than those of data.
Status CheckOnRole(const RoleAccess& who, cql::Permission permission, std::string_view resource) {
  return who.access.May(permission, resource)
             ? Status::Ok()
             : Unauthorized("User " + who.role +
                            " does not have sufficient privileges to perform the requested "
                            "operation");
}

Status MayCreate(const RoleAccess& who, const cql::CreateRole& what) {
  ORRERY_RETURN_IF_ERROR(CheckOnRole(who, kCreate, cql::kAllRoles));
  return what.options.superuser.value_or(false) && !who.access.superuser()
             ? Unauthorized("Only superusers can create a role with superuser status")
             : Status::Ok();
}

Status MayAlter(const RoleAccess& who, const cql::AlterRole& what) {
  const cql::RoleOptions& options = what.options;
  if (options.superuser && who.access.roles().contains(what.role)) {
    return Unauthorized(
        "You aren't allowed to alter your own superuser status or that of a role granted to you");
  }
  if (options.superuser && !who.access.superuser()) {
    return Unauthorized("Only superusers are allowed to alter superuser status");
  }
  if (who.access.superuser()) {
    return Status::Ok();
  }
  if (what.role != who.role) {
    // Whoever took the name of a superuser by a password would be one.
    if (who.roles->IsSuperuser(what.role)) {
      return Unauthorized("Only superusers are allowed to alter a role with superuser status");
    }
    return CheckOnRole(who, kAlter, cql::RoleResource(what.role));
  }
  return options.login ? Unauthorized("You aren't allowed to alter LOGIN") : Status::Ok();
}

Status MayDrop(const RoleAccess& who, const cql::DropRole& what) {
  ORRERY_RETURN_IF_ERROR(CheckOnRole(who, kDrop, cql::RoleResource(what.role)));
  return who.roles->IsSuperuser(what.role) && !who.access.superuser()
             ? Unauthorized("Only superusers can drop a role with superuser status")
             : Status::Ok();
}

bool ResourceExists(const cql::Resource& named, std::string_view keyspace,
                    const cql::Schema& schema, const cql::Roles& roles) {
  using enum cql::ResourceKind;
  const std::string_view in = named.name.keyspace.empty() ? keyspace : named.name.keyspace;
  const bool has_keyspace = schema.FindKeyspace(in) != nullptr || cql::IsSystemKeyspace(in);
  switch (named.kind) {
    case kAllKeyspaces:
    case kAllRoles:
    case kAllFunctions: return true;
    case kKeyspace:
    case kAllTables:
    case kFunctionsOf: return has_keyspace;
    case kTable:
      return schema.FindTable(in, named.name.name) != nullptr ||
             cql::FindSystemTable(in, named.name.name) != nullptr;
    case kRole: return roles.Find(named.name.name) != nullptr;
    case kFunction:
    case kAllMbeans:
    case kMbeans:
    case kMbean: break;
  }
  return false;
}

Response Show(const cql::RoleList& list, int version) {
  std::vector<ColumnSpec> columns;
  for (const cql::RoleList::Column& column : list.columns) {
    columns.push_back({"system_auth", std::string(list.table), column.name, column.type});
  }
  EncodedColumns encoded(columns, version);
  RowsWriter writer(encoded, {.skip_metadata = false, .new_metadata_id = {}});
  for (const cql::SystemRow& row : list.rows) {
    for (const auto& value : row) {
      writer.CellOrNull(value);
    }
    writer.EndRow();
  }
  return writer.Finish();
}

}  // namespace

Task<Response> Service::PutRoles(cql::Defined<cql::Roles> after,
                                 std::shared_ptr<const model::CatalogView> before,
                                 Execution& execution) {
  if (!after) {
    co_return Refused(after.error().message, execution.version);
  }
  if (*after == *model::RolesOf(*before)) {
    co_return MakeVoid();
  }
  Status put = co_await catalog_.PutRoles(cql::RolesToDocument(*after), model::RolesEtag(*before));
  execution.overtaken = put.code() == Code::kPreconditionFailed;
  co_return put.ok() ? MakeVoid() : Failed(put, {.writes = true}, execution.version);
}

Task<Result<std::optional<std::string>>> Service::HashOf(const cql::RoleOptions& options,
                                                         Execution& execution) {
  if (options.password && !execution.password_hash) {
    ORRERY_CO_TRY(execution.password_hash, co_await passwords_.Hash(*options.password));
  }
  co_return options.password ? execution.password_hash : options.hashed_password;
}

Task<> Service::GrantToCreator(std::vector<std::string> resources, const Client& client) {
  if (client.access == nullptr) {
    co_return;
  }
  Status put;
  for (int tries = 0; tries < kGrantTriesMax; ++tries) {
    auto view = catalog_.view();
    cql::Defined<cql::Roles> after = *model::RolesOf(*view);
    for (const std::string& resource : resources) {
      if (after) {
        after = cql::WithGrant(std::move(*after), client.user, resource,
                               cql::ApplicablePermissions(resource));
      }
    }
    put = after ? co_await catalog_.PutRoles(cql::RolesToDocument(*after), model::RolesEtag(*view))
                : Status(Code::kInvalidArgument, after.error().message);
    if (put.code() != Code::kPreconditionFailed) {
      break;
    }
  }
  if (!put.ok()) {
    log::Warning("who made something was not granted it",
                 {{"role", client.user}, {"resource", resources.front()}, {"why", put.message()}});
  }
}

Task<Response> Service::Do(const cql::CreateRole& what, Execution& execution) {
  const int version = execution.version;
  Client& client = execution.client;
  if (client.access != nullptr) {
    if (Status may = MayCreate(AccessOf(client), what); !may.ok()) {
      co_return Failed(may, {}, version);
    }
  }
  auto view = catalog_.view();
  auto roles = model::RolesOf(*view);
  // The account has a name too.
  if (roles->Find(what.role) != nullptr || what.role == options_.account) {
    co_return what.if_not_exists ? MakeVoid() : Refused(what.role + " already exists", version);
  }
  auto hash = co_await HashOf(what.options, execution);
  if (!hash) {
    co_return MakeError(ErrorCode::kOverloaded, hash.error().message(), version);
  }
  auto after = cql::WithRole(what, *roles, std::move(*hash));
  if (after && client.access != nullptr) {
    const std::string resource = cql::RoleResource(what.role);
    after = cql::WithGrant(std::move(*after), client.user, resource,
                           cql::ApplicablePermissions(resource));
  }
  co_return co_await PutRoles(std::move(after), std::move(view), execution);
}

Task<Response> Service::Do(const cql::AlterRole& what, Execution& execution) {
  const int version = execution.version;
  if (execution.client.access != nullptr) {
    if (Status may = MayAlter(AccessOf(execution.client), what); !may.ok()) {
      co_return Failed(may, {}, version);
    }
  }
  auto view = catalog_.view();
  auto roles = model::RolesOf(*view);
  if (roles->Find(what.role) == nullptr && what.if_exists) {
    co_return MakeVoid();
  }
  auto hash = co_await HashOf(what.options, execution);
  if (!hash) {
    co_return MakeError(ErrorCode::kOverloaded, hash.error().message(), version);
  }
  auto after = cql::WithAlteredRole(what, *roles, std::move(*hash));
  co_return co_await PutRoles(std::move(after), std::move(view), execution);
}

Task<Response> Service::Do(const cql::DropRole& what, Execution& execution) {
  const Client& client = execution.client;
  if (client.access != nullptr) {
    if (Status may = MayDrop(AccessOf(execution.client), what); !may.ok()) {
      co_return Failed(may, {}, execution.version);
    }
  }
  auto view = catalog_.view();
  auto roles = model::RolesOf(*view);
  if (roles->Find(what.role) == nullptr && what.if_exists) {
    co_return MakeVoid();
  }
  if (client.access != nullptr && what.role == client.user) {
    co_return Refused("Cannot DROP primary role for current login", execution.version);
  }
  co_return co_await PutRoles(cql::WithoutRole(what.role, *roles), std::move(view), execution);
}

Task<Response> Service::Do(const cql::GrantRole& what, Execution& execution) {
  if (execution.client.access != nullptr) {
    Status may = CheckOnRole(AccessOf(execution.client), kAuthorize, cql::RoleResource(what.role));
    if (!may.ok()) {
      co_return Failed(may, {}, execution.version);
    }
  }
  auto view = catalog_.view();
  auto after = cql::WithMembership(what, *model::RolesOf(*view));
  co_return co_await PutRoles(std::move(after), std::move(view), execution);
}

Task<Response> Service::Do(const cql::GrantPermissions& what, Execution& execution) {
  const int version = execution.version;
  Client& client = execution.client;
  auto view = catalog_.view();
  auto roles = model::RolesOf(*view);
  if (what.resource.kind == cql::ResourceKind::kTable && what.resource.name.keyspace.empty() &&
      client.keyspace.empty()) {
    co_return Refused(
        "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename",
        version);
  }
  const auto resource = cql::ResourceName(what.resource, client.keyspace);
  if (!resource) {
    co_return Refused("Resource " + cql::ResourceText(what.resource) + " doesn't exist", version);
  }
  const cql::PermissionSet applicable = cql::ApplicablePermissions(*resource);
  const bool all = what.permissions.empty();
  const cql::PermissionSet permissions =
      all ? applicable : cql::PermissionSet(what.permissions) & applicable;
  if (permissions.empty()) {
    co_return MakeError(ErrorCode::kSyntaxError,
                        "Resource type " + std::string(cql::ResourceClass(what.resource)) +
                            " does not support any of the requested permissions",
                        version);
  }
  if (client.access != nullptr) {
    Status may = CheckPermission(AccessOf(client), kAuthorize, *resource);
    for (cql::Permission permission : permissions.List()) {
      may = may.ok() ? CheckPermission(AccessOf(client), permission, *resource) : may;
    }
    if (!may.ok()) {
      co_return Failed(may, {}, version);
    }
  }
  if (!ResourceExists(what.resource, client.keyspace, *schemas_.Get()->schema, *roles)) {
    co_return Refused("Resource " + cql::ResourceText(*resource) + " doesn't exist", version);
  }
  if (roles->Find(what.grantee) == nullptr) {
    co_return Refused("Role " + what.grantee + " doesn't exist", version);
  }
  const cql::PermissionSet before = roles->GrantedOn(what.grantee, *resource);
  auto after = what.revoke ? cql::WithoutGrant(*roles, what.grantee, *resource, permissions)
                           : cql::WithGrant(*roles, what.grantee, *resource, permissions);
  Response response = co_await PutRoles(std::move(after), std::move(view), execution);
  const cql::PermissionSet nothing_new = what.revoke ? permissions - before : permissions & before;
  if (!all && !nothing_new.empty() && response.opcode == Opcode::kResult) {
    response.warnings.push_back("Role '" + what.grantee + "' was " +
                                (what.revoke ? "not granted " : "already granted ") +
                                nothing_new.ToText() + " on " + cql::ResourceText(*resource));
  }
  co_return response;
}

Task<Response> Service::Do(const cql::ListRoles& what, Execution& execution) {
  const int version = execution.version;
  auto roles = model::RolesOf(*catalog_.view());
  cql::RoleNames shown;
  const RoleAccess* who =
      execution.client.access == nullptr ? nullptr : &AccessOf(execution.client);
  const bool sees_all = who == nullptr || who->access.May(kDescribe, cql::kAllRoles);
  if (what.of && !sees_all && !who->access.roles().contains(*what.of)) {
    co_return MakeError(ErrorCode::kUnauthorized,
                        "You are not authorized to view roles granted to " + *what.of + " ",
                        version);
  }
  if (what.of && roles->Find(*what.of) == nullptr) {
    co_return Refused(cql::ResourceText(cql::RoleResource(*what.of)) + " doesn't exist", version);
  }
  if (what.of || !sees_all) {
    shown = roles->EffectiveRoles(what.of ? *what.of : who->role, what.recursive);
  } else {
    for (const auto& [name, role] : roles->roles) {
      shown.insert(name);
    }
  }
  co_return Show(what.users ? cql::ListOfUsers(shown, *roles) : cql::ListOfRoles(shown, *roles),
                 version);
}

Task<Response> Service::Do(const cql::ListPermissions& what, Execution& execution) {
  const int version = execution.version;
  const Client& client = execution.client;
  auto roles = model::RolesOf(*catalog_.view());
  cql::PermissionFilter filter{.permissions = cql::PermissionSet(what.permissions)};
  if (what.resource) {
    const auto resource = cql::ResourceName(*what.resource, client.keyspace);
    if (!resource ||
        !ResourceExists(*what.resource, client.keyspace, *schemas_.Get()->schema, *roles)) {
      co_return Refused(
          (resource ? cql::ResourceText(*resource) : cql::ResourceText(*what.resource)) +
              " doesn't exist",
          version);
    }
    filter.resources =
        what.recursive ? cql::ResourceChain(*resource) : std::vector<std::string>{*resource};
  }
  if (client.access != nullptr) {
    const RoleAccess& who = AccessOf(execution.client);
    if (!who.access.superuser() && !(what.of && who.access.roles().contains(*what.of))) {
      co_return MakeError(
          ErrorCode::kUnauthorized,
          "You are not authorized to view " + what.of.value_or("everyone") + "'s permissions",
          version);
    }
  }
  if (what.of && roles->Find(*what.of) == nullptr) {
    co_return Refused(cql::ResourceText(cql::RoleResource(*what.of)) + " doesn't exist", version);
  }
  if (what.of) {
    filter.roles = roles->EffectiveRoles(*what.of);
  }
  if (what.permissions.empty()) {
    for (const auto resource : {cql::kAllData, cql::kAllRoles, cql::kAllFunctions}) {
      filter.permissions = filter.permissions | cql::ApplicablePermissions(resource);
    }
  }
  const cql::RoleList list = cql::ListOfPermissions(filter, *roles);
  co_return list.rows.empty() ? MakeVoid() : Show(list, version);
}

}  // namespace orrery::cassandra
