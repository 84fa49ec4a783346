// Roles, users, permissions.
#include "cql/parser.h"

namespace orrery::cql {
namespace {

using enum TokenKind;

struct PermissionName {
  Keyword word;
  Permission permission;
};

constexpr PermissionName kPermissions[] = {
    {Keyword::kCreate, Permission::kCreate},
    {Keyword::kAlter, Permission::kAlter},
    {Keyword::kDrop, Permission::kDrop},
    {Keyword::kSelect, Permission::kSelect},
    {Keyword::kModify, Permission::kModify},
    {Keyword::kAuthorize, Permission::kAuthorize},
    {Keyword::kDescribe, Permission::kDescribe},
    {Keyword::kExecute, Permission::kExecute},
    {Keyword::kUnmask, Permission::kUnmask},
    {Keyword::kSelectMasked, Permission::kSelectMasked},
};

}  // namespace

// ---- Roles ----

std::string Parser::RoleName() {
  RefuseMarker("role");
  return Is(kString) ? ExpectText(kString) : Name();
}

// Also an identity. Unlike other names it keeps its case without quotes.
std::string Parser::UserName() {
  if (Is(kString)) {
    return ExpectText(kString);
  }
  if (Is(kQuotedName)) {
    Fail("Quoted strings are not supported for user names and USER is deprecated, please use ROLE");
  }
  Token token = token_;
  Name();
  return std::string(text_.substr(token.start, token.end - token.start));
}

bool Parser::Boolean() {
  bool value = Accept(Keyword::kTrue);
  if (!value && !Accept(Keyword::kFalse)) {
    FailHere();
  }
  return value;
}

std::vector<std::string> Parser::StringSet() {
  std::vector<std::string> strings;
  Expect(kLeftBrace);
  do {
    strings.push_back(ExpectText(kString));
  } while (Accept(kComma));
  Expect(kRightBrace);
  return strings;
}

RoleOptions Parser::RoleOptionList() {
  RoleOptions options;
  if (Accept(Keyword::kWith)) {
    do {
      OneRoleOption(options);
    } while (Accept(Keyword::kAnd));
  }
  if (options.password && options.hashed_password) {
    Fail("Options 'password' and 'hashed password' are mutually exclusive");
  }
  return options;
}

void Parser::OneRoleOption(RoleOptions& options) {
  if (Accept(Keyword::kHashed, Keyword::kPassword)) {
    Expect(kEqual);
    options.hashed_password = ExpectText(kString);
  } else if (Accept(Keyword::kPassword)) {
    Expect(kEqual);
    options.password = ExpectText(kString);
  } else if (Accept(Keyword::kLogin)) {
    Expect(kEqual);
    options.login = Boolean();
  } else if (Accept(Keyword::kSuperuser)) {
    Expect(kEqual);
    options.superuser = Boolean();
  } else if (Accept(Keyword::kOptions)) {
    Expect(kEqual);
    options.custom = Map();
  } else if (Accept(Keyword::kAccess, Keyword::kTo)) {
    bool all = Accept(Keyword::kAll);
    Expect(Keyword::kDatacenters);
    options.datacenters = all ? std::vector<std::string>() : StringSet();
  } else if (Accept(Keyword::kAccess, Keyword::kFrom)) {
    bool all = Accept(Keyword::kAll);
    Expect(Keyword::kCidrs);
    options.cidr_groups = all ? std::vector<std::string>() : StringSet();
  } else {
    FailHere();
  }
}

// WITH PASSWORD 'p' SUPERUSER
RoleOptions Parser::UserOptions() {
  RoleOptions options;
  if (Accept(Keyword::kWith)) {
    bool hashed = Accept(Keyword::kHashed);
    Expect(Keyword::kPassword);
    (hashed ? options.hashed_password : options.password) = ExpectText(kString);
  }
  if (Accept(Keyword::kSuperuser)) {
    options.superuser = true;
  } else if (Accept(Keyword::kNosuperuser)) {
    options.superuser = false;
  }
  return options;
}

CreateRole Parser::CreateRoleRule() {
  CreateRole create;
  create.if_not_exists = IfNotExists();
  create.role = RoleName();
  create.options = RoleOptionList();
  return create;
}

CreateRole Parser::CreateUserRule() {
  CreateRole create{.user = true};
  create.if_not_exists = IfNotExists();
  create.role = UserName();
  create.options = UserOptions();
  return create;
}

AlterRole Parser::AlterRoleRule() {
  AlterRole alter;
  alter.if_exists = IfExists();
  alter.role = RoleName();
  alter.options = RoleOptionList();
  return alter;
}

AlterRole Parser::AlterUserRule() {
  AlterRole alter{.user = true};
  alter.if_exists = IfExists();
  alter.role = UserName();
  alter.options = UserOptions();
  return alter;
}

DropRole Parser::DropRoleRule(bool user) {
  DropRole drop{.user = user};
  drop.if_exists = IfExists();
  drop.role = user ? UserName() : RoleName();
  return drop;
}

// ---- Permissions ----

// GRANT SELECT ON t TO r, GRANT r TO s; the same with REVOKE and FROM.
Statement Parser::Grant() {
  bool revoke = Is(Keyword::kRevoke);
  Keyword between = revoke ? Keyword::kFrom : Keyword::kTo;
  Advance();
  std::optional<std::vector<Permission>> permissions;
  if (!NextIs(between)) {
    permissions = Permissions();
  }
  if (!permissions) {
    GrantRole grant{.role = RoleName(), .revoke = revoke};
    Expect(between);
    grant.grantee = RoleName();
    return grant;
  }
  GrantPermissions grant{.permissions = *std::move(permissions), .revoke = revoke};
  Expect(Keyword::kOn);
  grant.resource = ResourceRule();
  Expect(between);
  grant.grantee = RoleName();
  return grant;
}

// None if no permission stands here. An empty list is ALL.
std::optional<std::vector<Permission>> Parser::Permissions() {
  std::vector<Permission> permissions;
  if (Accept(Keyword::kAll)) {
    Accept(Keyword::kPermissions);
    return permissions;
  }
  do {
    size_t before = permissions.size();
    for (const PermissionName& name : kPermissions) {
      if (Accept(name.word)) {
        permissions.push_back(name.permission);
        Accept(Keyword::kPermission);
        break;
      }
    }
    if (permissions.size() == before) {
      if (before == 0) {
        return std::nullopt;
      }
      FailHere();
    }
  } while (Accept(kComma));
  return permissions;
}

Resource Parser::ResourceRule() {
  using enum ResourceKind;
  if (Accept(Keyword::kAll)) {
    if (Accept(Keyword::kKeyspaces)) {
      return {.kind = kAllKeyspaces};
    }
    if (Accept(Keyword::kRoles)) {
      return {.kind = kAllRoles};
    }
    if (Accept(Keyword::kMbeans)) {
      return {.kind = kAllMbeans};
    }
    if (Accept(Keyword::kTables)) {
      Expect(Keyword::kIn);
      Expect(Keyword::kKeyspace);
      return {.kind = kAllTables, .name = {KeyspaceName(), {}}};
    }
    Expect(Keyword::kFunctions);
    if (Accept(Keyword::kIn)) {
      Expect(Keyword::kKeyspace);
      return {.kind = kFunctionsOf, .name = {KeyspaceName(), {}}};
    }
    return {.kind = kAllFunctions};
  }
  if (Accept(Keyword::kKeyspace)) {
    return {.kind = kKeyspace, .name = {KeyspaceName(), {}}};
  }
  if (Is(Keyword::kRole) && !NextIs(kDot) && !NextIs(Keyword::kTo) && !NextIs(Keyword::kFrom)) {
    Advance();
    return {.kind = kRole, .name = {{}, RoleName()}};
  }
  if (Is(Keyword::kFunction) && !NextIs(kDot) && !NextIs(Keyword::kTo) && !NextIs(Keyword::kFrom)) {
    Advance();
    QualifiedName name = Qualified();
    return {.kind = kFunction, .name = std::move(name), .arguments = TypeList()};
  }
  if (NextIs(kString) && (Is(Keyword::kMbeans) || Is(Keyword::kMbean))) {
    ResourceKind kind = Is(Keyword::kMbeans) ? kMbeans : kMbean;
    Advance();
    return {.kind = kind, .name = {{}, ExpectText(kString)}};
  }
  if (!Accept(Keyword::kTable)) {
    Accept(Keyword::kColumnfamily);
  }
  return {.kind = kTable, .name = Qualified()};
}

Statement Parser::ListRule() {
  if (Accept(Keyword::kUsers)) {
    return ListRoles{.users = true};
  }
  if (Accept(Keyword::kRoles)) {
    ListRoles list;
    if (Accept(Keyword::kOf)) {
      list.of = RoleName();
    }
    list.recursive = !Accept(Keyword::kNorecursive);
    return list;
  }
  ListPermissions list;
  std::optional<std::vector<Permission>> permissions = Permissions();
  if (!permissions) {
    FailHere();
    return list;
  }
  list.permissions = *std::move(permissions);
  if (Accept(Keyword::kOn)) {
    list.resource = ResourceRule();
  }
  if (Accept(Keyword::kOf)) {
    list.of = RoleName();
  }
  list.recursive = !Accept(Keyword::kNorecursive);
  return list;
}

// ---- Identities ----

ChangeIdentity Parser::AddIdentity() {
  ChangeIdentity change;
  Expect(Keyword::kIdentity);
  change.only_if = IfNotExists();
  change.identity = UserName();
  Expect(Keyword::kTo);
  Expect(Keyword::kRole);
  change.role = RoleName();
  return change;
}

ChangeIdentity Parser::DropIdentity() {
  ChangeIdentity change{.drop = true};
  change.only_if = IfExists();
  change.identity = UserName();
  return change;
}

}  // namespace orrery::cql
