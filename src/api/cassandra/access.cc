#include "api/cassandra/access.h"

#include <utility>

#include "cql/define.h"
#include "cql/system_tables.h"

namespace orrery::cassandra {

namespace {

using enum cql::Permission;

constexpr std::string_view kAuthKeyspace = "system_auth";

// What drivers and tools must see, whoever uses them.
bool IsReadableByAll(const cql::Table& table) {
  const std::string_view keyspace = table.keyspace;
  if (keyspace == "system") {
    return table.name == "local" || table.name == "peers" || table.name == "peers_v2";
  }
  return keyspace == "system_schema" || keyspace == "system_virtual_schema";
}

Status NoPermission(const RoleAccess& who, cql::Permission permission, std::string_view resource) {
  return Status(Code::kForbidden,
                "User " + who.role + " has no " + std::string(cql::PermissionText(permission)) +
                    " permission on " + cql::ResourceText(resource) + " or any of its parents");
}

// A view is as open as its table.
Status CheckTable(const RoleAccess& who, cql::Permission permission, const cql::Table& table) {
  const std::string& name = table.view ? table.view->base : table.name;
  return who.access.MayOnTable(permission, table.keyspace, name)
             ? Status::Ok()
             : NoPermission(who, permission, cql::TableResource(table.keyspace, name));
}

Status CheckSelect(const RoleAccess& who, const cql::Table& table) {
  if (who.access.superuser() || IsReadableByAll(table)) {
    return Status::Ok();
  }
  // Whoever may read all keyspaces is not meant to read of roles.
  return table.keyspace == kAuthKeyspace
             ? NoPermission(who, kSelect, cql::TableResource(table.keyspace, table.name))
             : CheckTable(who, kSelect, table);
}

// Of each statement that defines something, the permission that it needs.
class DefinitionCheck {
 public:
  DefinitionCheck(const RoleAccess& who, std::string_view keyspace, const cql::Schema& schema)
      : who_(who), session_(keyspace), schema_(schema) {}

  Status operator()(const cql::CreateKeyspace& what) {
    return On(kCreate, what.name, cql::kAllData);
  }
  Status operator()(const cql::AlterKeyspace& what) { return OnKeyspace(kAlter, what.name); }
  Status operator()(const cql::DropKeyspace& what) { return OnKeyspace(kDrop, what.name); }
  Status operator()(const cql::CreateTable& what) {
    const std::string keyspace = In(what.table);
    return On(kCreate, keyspace, cql::AllTablesResource(keyspace));
  }
  Status operator()(const cql::AlterTable& what) { return OnTable(kAlter, what.table); }
  Status operator()(const cql::DropTable& what) { return OnTable(kDrop, what.table); }
  Status operator()(const cql::Truncate& what) { return OnTable(kModify, what.table); }
  Status operator()(const cql::CreateType& what) { return OnKeyspace(kCreate, In(what.type)); }
  Status operator()(const cql::AlterType& what) { return OnKeyspace(kAlter, In(what.type)); }
  Status operator()(const cql::DropType& what) { return OnKeyspace(kDrop, In(what.type)); }
  Status operator()(const cql::CreateIndex& what) { return OnTable(kAlter, what.table); }
  Status operator()(const cql::DropIndex& what) {
    const cql::Keyspace* keyspace = schema_.FindKeyspace(In(what.index));
    const cql::Table* table =
        keyspace == nullptr ? nullptr : cql::FindIndexedTable(*keyspace, what.index.name);
    return table == nullptr ? Status::Ok() : CheckTable(who_, kAlter, *table);
  }
  Status operator()(const cql::CreateView& what) {
    cql::QualifiedName table = what.table;
    table.keyspace = table.keyspace.empty() ? In(what.view) : table.keyspace;
    return OnTable(kAlter, table);
  }
  Status operator()(const cql::AlterView& what) { return OnView(what.view); }
  Status operator()(const cql::DropView& what) { return OnView(what.view); }
  // USE and DESCRIBE need none; the others are not done at all.
  template <typename T>
  Status operator()(const T&) {
    return Status::Ok();
  }

 private:
  std::string In(const cql::QualifiedName& name) const {
    return name.keyspace.empty() ? session_ : name.keyspace;
  }
  // What is in no keyspace, or in one of the system, is refused for that.
  Status On(cql::Permission permission, std::string_view keyspace, std::string_view resource) {
    return keyspace.empty() || cql::IsSystemKeyspace(keyspace)
               ? Status::Ok()
               : CheckPermission(who_, permission, resource);
  }
  Status OnKeyspace(cql::Permission permission, const std::string& keyspace) {
    return On(permission, keyspace, cql::KeyspaceResource(keyspace));
  }
  Status OnTable(cql::Permission permission, const cql::QualifiedName& table) {
    const std::string keyspace = In(table);
    return On(permission, keyspace, cql::TableResource(keyspace, table.name));
  }

  Status OnView(const cql::QualifiedName& view) {
    const cql::Table* table = schema_.FindTable(In(view), view.name);
    return table == nullptr ? Status::Ok() : CheckTable(who_, kAlter, *table);
  }

  const RoleAccess& who_;
  const std::string session_;
  const cql::Schema& schema_;
};

}  // namespace

std::shared_ptr<const RoleAccess> AccessTable::Of(const std::string& role,
                                                  const std::shared_ptr<const cql::Roles>& roles) {
  std::lock_guard lock(mutex_);
  if (roles_ != roles) {
    kept_.clear();
    roles_ = roles;
  }
  std::shared_ptr<const RoleAccess>& kept = kept_[role];
  if (kept == nullptr) {
    kept = std::make_shared<const RoleAccess>(role, roles, cql::Access(*roles, role));
  }
  return kept;
}

Status CheckLogin(const RoleAccess& who) {
  return who.access.login() ? Status::Ok()
                            : Status(Code::kForbidden, who.role + " is not permitted to log in");
}

Status CheckPermission(const RoleAccess& who, cql::Permission permission,
                       std::string_view resource) {
  return who.access.May(permission, resource) ? Status::Ok()
                                              : NoPermission(who, permission, resource);
}

Status CheckWrite(const RoleAccess& who, const WritePlan& plan) {
  ORRERY_RETURN_IF_ERROR(CheckTable(who, kModify, plan.table()));
  // What a condition says of a row is as good as reading it.
  return plan.conditional() ? CheckTable(who, kSelect, plan.table()) : Status::Ok();
}

Status CheckStatement(const RoleAccess& who, const Compiled& compiled,
                      std::string_view session_keyspace) {
  ORRERY_RETURN_IF_ERROR(CheckLogin(who));
  if (who.access.superuser()) {
    return Status::Ok();
  }
  if (const auto* write = std::get_if<WritePlan>(&compiled.plan)) {
    return CheckWrite(who, *write);
  }
  if (const auto* select = std::get_if<SelectPlan>(&compiled.plan)) {
    return CheckSelect(who, select->table());
  }
  return std::visit(DefinitionCheck(who, session_keyspace, *compiled.schema),
                    compiled.parsed.statement);
}

}  // namespace orrery::cassandra
