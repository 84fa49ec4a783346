#include "cql/roles.h"

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cql/access.h"
#include "cql/parse.h"

namespace orrery::cql {
namespace {

using enum Permission;

// Roles that are changed by statements, as a server would do it.
class World {
 public:
  World() : roles_(*DefaultRoles()) {}

  // "ok", or what is wrong.
  std::string Do(const std::string& text) {
    auto parsed = Parse(text);
    if (!parsed) {
      return parsed.error().message();
    }
    Defined<Roles> after =
        std::visit([&](const auto& what) { return Changed(what); }, parsed->statement);
    if (!after) {
      return after.error().message;
    }
    roles_ = std::move(*after);
    return "ok";
  }
  const Roles& roles() const { return roles_; }
  Access As(std::string_view role) const { return Access(roles_, role); }

 private:
  Defined<Roles> Changed(const CreateRole& what) { return WithRole(what, roles_, "h"); }
  Defined<Roles> Changed(const AlterRole& what) {
    return WithAlteredRole(what, roles_, what.options.password);
  }
  Defined<Roles> Changed(const DropRole& what) { return WithoutRole(what.role, roles_); }
  Defined<Roles> Changed(const GrantRole& what) { return WithMembership(what, roles_); }
  Defined<Roles> Changed(const GrantPermissions& what) {
    const std::string resource = *ResourceName(what.resource, "ks");
    const PermissionSet permissions = what.permissions.empty() ? ApplicablePermissions(resource)
                                                               : PermissionSet(what.permissions);
    if (what.revoke) {
      return WithoutGrant(roles_, what.grantee, resource, permissions);
    }
    return WithGrant(roles_, what.grantee, resource, permissions);
  }
  template <typename T>
  Defined<Roles> Changed(const T&) {
    return std::unexpected(DefineError{.message = "no statement about roles"});
  }

  Roles roles_;
};

TEST(PermissionsTest, EveryResourceHasItsNameItsTextAndItsParents) {
  struct Case {
    std::string statement;
    std::string name;
    std::string text;
    std::vector<std::string> chain;
    std::string permissions;
  };
  const std::string of_table = "ALTER, DROP, SELECT, MODIFY, AUTHORIZE, UNMASK, SELECT_MASKED";
  const Case cases[] = {
      {"ALL KEYSPACES", "data", "<all keyspaces>", {"data"}, "CREATE, " + of_table},
      {"KEYSPACE k", "data/k", "<keyspace k>", {"data/k", "data"}, "CREATE, " + of_table},
      {"ALL TABLES IN KEYSPACE k",
       "data/k/*",
       "<all tables in k>",
       {"data/k/*", "data/k", "data"},
       "CREATE, " + of_table},
      {"k.t", "data/k/t", "<table k.t>", {"data/k/t", "data/k/*", "data/k", "data"}, of_table},
      {"t", "data/ks/t", "<table ks.t>", {"data/ks/t", "data/ks/*", "data/ks", "data"}, of_table},
      {"ALL ROLES", "roles", "<all roles>", {"roles"}, "CREATE, ALTER, DROP, AUTHORIZE, DESCRIBE"},
      {"ROLE 'a/b'", "roles/a/b", "<role a/b>", {"roles/a/b", "roles"}, "ALTER, DROP, AUTHORIZE"},
      {"ALL FUNCTIONS",
       "functions",
       "<all functions>",
       {"functions"},
       "CREATE, ALTER, DROP, AUTHORIZE, EXECUTE"},
      {"ALL FUNCTIONS IN KEYSPACE k",
       "functions/k",
       "<all functions in k>",
       {"functions/k", "functions"},
       "CREATE, ALTER, DROP, AUTHORIZE, EXECUTE"},
  };
  for (const Case& each : cases) {
    auto parsed = Parse("GRANT ALL ON " + each.statement + " TO x");
    ASSERT_TRUE(parsed) << each.statement;
    const auto& resource = std::get<GrantPermissions>(parsed->statement).resource;
    EXPECT_EQ(ResourceName(resource, "ks"), each.name);
    EXPECT_EQ(ResourceText(each.name), each.text);
    EXPECT_EQ(ResourceChain(each.name), each.chain);
    EXPECT_EQ(ApplicablePermissions(each.name).ToText(), each.permissions) << each.name;
  }
  for (const char* none : {"FUNCTION k.f(int)", "ALL MBEANS", "MBEAN 'x'"}) {
    auto parsed = Parse("GRANT EXECUTE ON " + std::string(none) + " TO x");
    ASSERT_TRUE(parsed) << none;
    EXPECT_FALSE(ResourceName(std::get<GrantPermissions>(parsed->statement).resource, "ks"));
  }
}

TEST(RolesTest, AtFirstThereIsOneSuperuser) {
  World world;
  ASSERT_EQ(world.roles().roles.size(), 1u);
  EXPECT_TRUE(world.As("cassandra").login());
  EXPECT_TRUE(world.As("cassandra").superuser());
  EXPECT_TRUE(IsPasswordHash(world.roles().Find("cassandra")->hash));
}

TEST(RolesTest, StatementsAreDoneOrRefusedInCassandrasWords) {
  const std::pair<std::string, std::string> cases[] = {
      {"CREATE ROLE ''", "Role name can't be an empty string"},
      {"CREATE ROLE cassandra", "cassandra already exists"},
      {"CREATE ROLE r WITH OPTIONS = {'a': 'b'}",
       "org.apache.cassandra.auth.CassandraRoleManager doesn't support OPTIONS"},
      {"CREATE ROLE r WITH HASHED PASSWORD = 'x'",
       "Invalid hashed password value. Please use jBcrypt."},
      {"CREATE ROLE r WITH ACCESS TO DATACENTERS {'a'}",
       "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer"},
      {"CREATE ROLE a WITH LOGIN = true AND ACCESS TO ALL DATACENTERS", "ok"},
      {"CREATE ROLE b", "ok"},
      {"CREATE ROLE c", "ok"},
      {"CREATE USER u WITH PASSWORD 'p' NOSUPERUSER", "ok"},
      {"ALTER ROLE a", "ALTER [ROLE|USER] can't be empty"},
      {"ALTER ROLE x WITH LOGIN = true", "x doesn't exist"},
      {"ALTER ROLE a WITH PASSWORD = 'h2'", "ok"},
      {"DROP ROLE x", "x doesn't exist"},
      {"GRANT x TO a", "x doesn't exist"},
      {"GRANT a TO x", "x doesn't exist"},
      {"GRANT b TO a", "ok"},
      {"GRANT b TO a", "a is a member of b"},
      {"GRANT c TO b", "ok"},
      {"GRANT c TO a", "a is a member of c"},
      {"GRANT a TO c", "a is a member of c"},
      {"GRANT a TO a", "a is a member of a"},
      {"REVOKE c FROM a", "a is not a member of c"},
      {"REVOKE b FROM a", "ok"},
      {"GRANT SELECT ON t TO x", "Role x doesn't exist"},
  };
  World world;
  for (const auto& [statement, expected] : cases) {
    EXPECT_EQ(world.Do(statement), expected) << statement;
  }
  EXPECT_TRUE(world.roles().Find("u")->login);
  EXPECT_EQ(world.roles().Find("a")->hash, "h2");
}

TEST(RolesTest, WhatARoleMayDoComesFromAllThatItIsAMemberOf) {
  World world;
  for (const char* each :
       {"CREATE ROLE a WITH LOGIN = true", "CREATE ROLE b", "CREATE ROLE c", "GRANT b TO a",
        "GRANT c TO b", "GRANT SELECT ON KEYSPACE one TO c", "GRANT MODIFY ON two.t TO b",
        "GRANT ALTER ON ALL TABLES IN KEYSPACE three TO a", "GRANT DESCRIBE ON ALL ROLES TO c",
        "GRANT DROP ON ROLE c TO a"}) {
    ASSERT_EQ(world.Do(each), "ok") << each;
  }
  const Access access = world.As("a");
  EXPECT_EQ(access.roles(), RoleNames({"a", "b", "c"}));
  EXPECT_EQ(world.roles().EffectiveRoles("a", false), RoleNames({"a", "b"}));
  struct Case {
    Permission permission;
    std::string keyspace;
    std::string table;
    bool may;
  };
  const Case cases[] = {
      {kSelect, "one", "t", true},  {kModify, "one", "t", false},  {kModify, "two", "t", true},
      {kModify, "two", "u", false}, {kSelect, "two", "t", false},  {kAlter, "three", "x", true},
      {kDrop, "three", "x", false}, {kSelect, "four", "t", false},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(access.MayOnTable(each.permission, each.keyspace, each.table), each.may)
        << each.keyspace << "." << each.table;
    EXPECT_EQ(access.May(each.permission, TableResource(each.keyspace, each.table)), each.may);
  }
  EXPECT_FALSE(access.May(kAlter, KeyspaceResource("three")));  // all tables are not the keyspace
  EXPECT_TRUE(access.May(kDescribe, kAllRoles));
  EXPECT_TRUE(access.May(kDrop, RoleResource("c")));
  EXPECT_FALSE(access.May(kDrop, RoleResource("b")));
  EXPECT_FALSE(world.As("nobody").login());
  EXPECT_FALSE(world.As("nobody").MayOnTable(kSelect, "one", "t"));
}

TEST(RolesTest, SuperusersAndTheirMembersMayEverything) {
  World world;
  for (const char* each : {"CREATE ROLE boss WITH SUPERUSER = true",
                           "CREATE ROLE a WITH LOGIN = true", "GRANT boss TO a"}) {
    ASSERT_EQ(world.Do(each), "ok");
  }
  EXPECT_TRUE(world.As("a").superuser());
  EXPECT_TRUE(world.As("a").MayOnTable(kModify, "any", "table"));
  EXPECT_FALSE(world.As("boss").login());
  ASSERT_EQ(world.Do("ALTER ROLE boss WITH SUPERUSER = false"), "ok");
  EXPECT_FALSE(world.As("a").superuser());
}

TEST(RolesTest, WithARoleAllThatHangsOnItGoes) {
  World world;
  const Roles before = [&] {
    EXPECT_EQ(world.Do("CREATE ROLE a"), "ok");
    return world.roles();
  }();
  for (const char* each : {"CREATE ROLE b", "GRANT b TO a", "GRANT SELECT ON k.t TO b",
                           "GRANT ALTER ON ROLE b TO a", "DROP ROLE b"}) {
    ASSERT_EQ(world.Do(each), "ok") << each;
  }
  EXPECT_EQ(world.roles(), before);
}

TEST(RolesTest, WithATableOrAKeyspaceGoWhatWasGrantedOnIt) {
  World world;
  for (const char* each : {"CREATE ROLE a", "GRANT SELECT ON k.t TO a", "GRANT SELECT ON k.u TO a",
                           "GRANT SELECT ON kk.t TO a", "GRANT ALL ON KEYSPACE k TO a",
                           "GRANT ALL ON ALL TABLES IN KEYSPACE k TO a",
                           "GRANT ALL ON ALL FUNCTIONS IN KEYSPACE k TO a"}) {
    ASSERT_EQ(world.Do(each), "ok") << each;
  }
  Roles after = WithoutTable(world.roles(), "k", "t");
  EXPECT_TRUE(after.GrantedOn("a", "data/k/t").empty());
  EXPECT_EQ(after.grants.at("a").size(), 5u);
  after = WithoutKeyspace(std::move(after), "k");
  ASSERT_EQ(after.grants.at("a").size(), 1u);
  EXPECT_FALSE(after.GrantedOn("a", "data/kk/t").empty());
  after = WithoutKeyspace(std::move(after), "kk");
  EXPECT_TRUE(after.grants.empty());
}

TEST(RolesTest, RevokingTheLastPermissionLeavesNothing) {
  World world;
  ASSERT_EQ(world.Do("CREATE ROLE a"), "ok");
  const Roles before = world.roles();
  ASSERT_EQ(world.Do("GRANT SELECT, MODIFY ON k.t TO a"), "ok");
  ASSERT_EQ(world.Do("REVOKE SELECT ON k.t FROM a"), "ok");
  EXPECT_EQ(world.roles().GrantedOn("a", "data/k/t"), PermissionSet{kModify});
  ASSERT_EQ(world.Do("REVOKE ALL ON k.t FROM a"), "ok");
  EXPECT_EQ(world.roles(), before);
}

TEST(RolesTest, NumbersAreLimited) {
  Roles many = *DefaultRoles();
  for (size_t i = many.roles.size(); i < kRolesMax; ++i) {
    many.roles["r" + std::to_string(i)] = {};
  }
  auto more = WithRole({.role = "one more"}, many, std::nullopt);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().message, "There are 1000 roles already");
  for (size_t i = 0; i < kGrantsMax; ++i) {
    many.grants["r1"][TableResource("k", "t" + std::to_string(i))] = PermissionSet{kSelect};
  }
  EXPECT_FALSE(WithGrant(many, "r2", "data", PermissionSet{kSelect}));
  EXPECT_TRUE(WithGrant(many, "r1", "data/k/t1", PermissionSet{kModify}));
  EXPECT_FALSE(WithRole({.role = std::string(300, 'x')}, *DefaultRoles(), std::nullopt));
}

TEST(RolesTest, OnlyHashesThatAreCheckedSoonAreTaken) {
  const std::string rest = "$" + std::string(53, 'a');
  for (const char* good : {"$2a$10", "$2b$04", "$2y$12"}) {
    EXPECT_TRUE(IsPasswordHash(good + rest)) << good;
  }
  for (const char* bad : {"$2a$03", "$2a$13", "$2x$10", "$1a$10", "$2a$1x"}) {
    EXPECT_FALSE(IsPasswordHash(bad + rest)) << bad;
  }
  EXPECT_FALSE(IsPasswordHash(""));
  EXPECT_FALSE(IsPasswordHash("$2a$10$" + std::string(52, 'a') + "!"));
}

TEST(RolesTest, ADocumentGivesTheSameRoles) {
  World world;
  for (const char* each :
       {"CREATE ROLE a WITH LOGIN = true AND PASSWORD = 'p'", "CREATE ROLE b", "GRANT b TO a",
        "GRANT ALL ON k.t TO b", "GRANT CREATE ON ALL ROLES TO a"}) {
    ASSERT_EQ(world.Do(each), "ok");
  }
  auto again = RolesFromDocument(RolesToDocument(world.roles()).root());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, world.roles());
}

TEST(RolesTest, ADocumentThatIsNoneIsRefused) {
  for (const char* json :
       {R"({"other": 1})", R"({"roles": 1})", R"({"roles": [1]})", R"({"roles": [{}]})",
        R"({"roles": [{"name": "a"}, {"name": "a"}]})", R"({"roles": [{"name": "a", "login": 1}]})",
        R"({"roles": [{"name": "a", "memberOf": [1]}]})",
        R"({"permissions": [{"role": "a", "resource": "data", "permissions": ["SELECT"]}]})",
        R"({"roles": [{"name": "a"}],
            "permissions": [{"role": "a", "resource": "data", "permissions": ["FLY"]}]})",
        R"({"roles": [{"name": "a"}],
            "permissions": [{"role": "a", "resource": "data", "permissions": []}]})"}) {
    auto document = types::Document::FromJson(json);
    ASSERT_TRUE(document) << json;
    auto roles = RolesFromDocument(document->root());
    ASSERT_FALSE(roles) << json;
    EXPECT_EQ(roles.error().code(), Code::kCorruption);
  }
}

}  // namespace
}  // namespace orrery::cql
