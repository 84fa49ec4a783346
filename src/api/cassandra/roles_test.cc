// Clients that are roles: who gets in, and what each may do.
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "api/cassandra/test_service.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {
namespace {

std::string NoPermission(const std::string& user, const std::string& permission,
                         const std::string& resource) {
  return "error 2100: User " + user + " has no " + permission + " permission on " + resource +
         " or any of its parents";
}

// A keyspace `k` with tables `t` and `u`, made by the account; roles by name, password "p".
class RolesServiceTest : public testing::Test {
 protected:
  RolesServiceTest() {
    Do("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    Do("CREATE TABLE k.t (p int PRIMARY KEY, v int)");
    Do("CREATE TABLE k.u (p int PRIMARY KEY, v int)");
  }
  // As the account, which may do everything.
  void Do(const std::string& text) {
    const std::string answer = service.Ask(text);
    EXPECT_FALSE(answer.starts_with("error")) << text << ": " << answer;
  }
  void Make(const std::string& role, const std::string& with = "") {
    // A hash that is cheap to check; its password is "cassandra".
    Do("CREATE ROLE " + role +
       " WITH LOGIN = true AND HASHED PASSWORD = "
       "'$2a$04$CCCCCCCCCCCCCCCCCCCCC.HZm0lcEL8.pvbeVaXVClJhJyxT/2PCa'" +
       with);
    EXPECT_EQ(service.LogIn(clients[role], role, "cassandra"), "welcome");
  }
  std::string As(const std::string& role, const std::string& text) {
    return service.AskAs(clients[role], text);
  }
  void ExpectAll(const std::string& role,
                 const std::vector<std::pair<std::string, std::string>>& cases) {
    for (const auto& [text, expected] : cases) {
      EXPECT_EQ(As(role, text), expected) << text;
    }
  }

  TestService service;
  std::map<std::string, Client> clients;
};

TEST_F(RolesServiceTest, APasswordOpensTheDoorToARoleThatMayLogIn) {
  Client client;
  EXPECT_EQ(service.LogIn(client, "cassandra", "cassandra"), "welcome");
  EXPECT_EQ(client.user, "cassandra");
  Do("CREATE ROLE bob WITH PASSWORD = 'secret'");
  Do("CREATE ROLE empty WITH LOGIN = true");
  const std::string wrong = "error 0100: Provided username NAME and/or password are incorrect";
  auto refusal = [&](const std::string& name) { return std::string(wrong).replace(30, 4, name); };
  EXPECT_EQ(service.LogIn(client, "bob", "secret"), "error 0100: bob is not permitted to log in");
  EXPECT_EQ(service.LogIn(client, "bob", "other"), refusal("bob"));
  EXPECT_EQ(service.LogIn(client, "nobody", "secret"), refusal("nobody"));
  EXPECT_EQ(service.LogIn(client, "empty", ""), refusal("empty"));
  EXPECT_EQ(service.LogIn(client, "orrery", "secret"), refusal("orrery"));
  Do("ALTER ROLE bob WITH LOGIN = true");
  EXPECT_EQ(service.LogIn(client, "bob", "secret"), "welcome");
  Do("ALTER ROLE bob WITH PASSWORD = 'new'");
  EXPECT_EQ(service.LogIn(client, "bob", "secret"), refusal("bob"));
  EXPECT_EQ(service.LogIn(client, "bob", "new"), "welcome");
}

TEST_F(RolesServiceTest, AWrongPasswordAndAnUnknownUserCostTheSame) {
  Client client;
  Do("CREATE ROLE bob WITH PASSWORD = 'secret' AND LOGIN = true");
  for (const char* user : {"bob", "nobody", "orrery", "cassandra"}) {
    const size_t before = service.passwords().computed();
    EXPECT_TRUE(service.LogIn(client, user, "wrong").starts_with("error 0100")) << user;
    EXPECT_EQ(service.passwords().computed(), before + 1) << user;
  }
}

TEST_F(RolesServiceTest, ManyConnectionsOfOneRoleCostOneHash) {
  Make("bob");
  const size_t before = service.passwords().computed();
  for (int i = 0; i < 20; ++i) {
    Client client;
    EXPECT_EQ(service.LogIn(client, "bob", "cassandra"), "welcome");
  }
  EXPECT_EQ(service.passwords().computed(), before);
}

TEST_F(RolesServiceTest, WithoutPermissionsNothingOfADataIsReadOrChanged) {
  Make("bob");
  const std::string table = "<table k.t>";
  ExpectAll(
      "bob",
      {{"SELECT * FROM k.t", NoPermission("bob", "SELECT", table)},
       {"INSERT INTO k.t (p) VALUES (1)", NoPermission("bob", "MODIFY", table)},
       {"UPDATE k.t SET v = 1 WHERE p = 1", NoPermission("bob", "MODIFY", table)},
       {"DELETE FROM k.t WHERE p = 1", NoPermission("bob", "MODIFY", table)},
       {"BEGIN BATCH INSERT INTO k.t (p) VALUES (1) APPLY BATCH",
        NoPermission("bob", "MODIFY", table)},
       {"TRUNCATE k.t", NoPermission("bob", "MODIFY", table)},
       {"CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        NoPermission("bob", "CREATE", "<all keyspaces>")},
       {"ALTER KEYSPACE k WITH durable_writes = false",
        NoPermission("bob", "ALTER", "<keyspace k>")},
       {"DROP KEYSPACE k", NoPermission("bob", "DROP", "<keyspace k>")},
       {"CREATE TABLE k.x (p int PRIMARY KEY)", NoPermission("bob", "CREATE", "<all tables in k>")},
       {"CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)",
        NoPermission("bob", "CREATE", "<all tables in k>")},
       {"ALTER TABLE k.t ADD w int", NoPermission("bob", "ALTER", table)},
       {"DROP TABLE k.t", NoPermission("bob", "DROP", table)},
       {"CREATE INDEX i ON k.t (v)", NoPermission("bob", "ALTER", table)},
       {"CREATE TYPE k.y (a int)", NoPermission("bob", "CREATE", "<keyspace k>")},
       {"ALTER TYPE k.y ADD b int", NoPermission("bob", "ALTER", "<keyspace k>")},
       {"DROP TYPE k.y", NoPermission("bob", "DROP", "<keyspace k>")},
       {"GRANT SELECT ON k.t TO bob", NoPermission("bob", "AUTHORIZE", table)},
       {"LIST ALL PERMISSIONS",
        "error 2100: You are not authorized to view everyone's permissions"},
       {"SELECT * FROM system_auth.roles",
        NoPermission("bob", "SELECT", "<table system_auth.roles>")},
       {"SELECT * FROM system.compaction_history",
        NoPermission("bob", "SELECT", "<table system.compaction_history>")},
       {"SELECT key FROM system.local", "'local'"},
       {"SELECT peer FROM system.peers", ""},
       {"SELECT table_name FROM system_schema.tables WHERE keyspace_name = 'k'", "'t'; 'u'"},
       {"USE k", "keyspace"},
       {"SELECT * FROM t", NoPermission("bob", "SELECT", table)}});
  EXPECT_EQ(service.AskBatch(clients["bob"], {"INSERT INTO k.t (p) VALUES (1)"}),
            NoPermission("bob", "MODIFY", table));
  EXPECT_EQ(service.Ask("SELECT * FROM k.t"), "");
}

TEST_F(RolesServiceTest, EachStatementNeedsItsPermissionAndNoMore) {
  Make("bob");
  Do("CREATE INDEX i ON k.t (v)");
  const std::pair<std::string, std::string> cases[] = {
      {"SELECT ON k.t", "SELECT * FROM k.t"},
      {"MODIFY ON k.t", "INSERT INTO k.t (p) VALUES (1)"},
      {"MODIFY ON k.t", "BEGIN BATCH DELETE FROM k.t WHERE p = 1 APPLY BATCH"},
      {"MODIFY ON KEYSPACE k", "TRUNCATE k.u"},
      {"ALTER ON k.t", "DROP INDEX k.i"},
      {"ALTER ON ALL TABLES IN KEYSPACE k", "ALTER TABLE k.t ADD w int"},
      {"CREATE ON ALL TABLES IN KEYSPACE k", "CREATE TABLE k.made (p int PRIMARY KEY)"},
      {"CREATE ON KEYSPACE k", "CREATE TYPE k.y (a int)"},
      {"DROP ON KEYSPACE k", "DROP TYPE k.y"},
      {"DROP ON ALL KEYSPACES", "DROP TABLE k.u"},
      {"CREATE ON ALL KEYSPACES",
       "CREATE KEYSPACE x WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"},
  };
  for (const auto& [permission, statement] : cases) {
    EXPECT_TRUE(As("bob", statement).starts_with("error 2100")) << statement;
    Do("GRANT " + permission + " TO bob");
    EXPECT_FALSE(As("bob", statement).starts_with("error")) << statement;
    Do("REVOKE " + permission + " FROM bob");
    EXPECT_TRUE(As("bob", "SELECT * FROM k.t").starts_with("error 2100"));
  }
}

TEST_F(RolesServiceTest, AConditionReadsToo) {
  Make("bob");
  Do("GRANT MODIFY ON k.t TO bob");
  const std::string insert = "INSERT INTO k.t (p, v) VALUES (1, 1) IF NOT EXISTS";
  EXPECT_EQ(As("bob", insert), NoPermission("bob", "SELECT", "<table k.t>"));
  EXPECT_EQ(service.AskBatch(clients["bob"], {insert}),
            NoPermission("bob", "SELECT", "<table k.t>"));
  Do("GRANT SELECT ON k.t TO bob");
  EXPECT_EQ(As("bob", insert), "true");
}

TEST_F(RolesServiceTest, OfABatchEachTableIsLookedAt) {
  Make("bob");
  Do("GRANT MODIFY ON k.t TO bob");
  EXPECT_EQ(service.AskBatch(clients["bob"],
                             {"INSERT INTO k.t (p) VALUES (1)", "INSERT INTO k.u (p) VALUES (1)"}),
            NoPermission("bob", "MODIFY", "<table k.u>"));
  EXPECT_EQ(service.Ask("SELECT * FROM k.t"), "") << "nothing of it is done";
  Do("GRANT MODIFY ON k.u TO bob");
  EXPECT_EQ(service.AskBatch(clients["bob"],
                             {"INSERT INTO k.t (p) VALUES (1)", "INSERT INTO k.u (p) VALUES (1)"}),
            "void");
}

TEST_F(RolesServiceTest, WhoMakesSomethingMayDoEverythingWithIt) {
  Make("bob");
  Do("GRANT CREATE ON ALL KEYSPACES TO bob");
  Do("GRANT CREATE ON ALL ROLES TO bob");
  EXPECT_EQ(As("bob",
               "CREATE KEYSPACE mine WITH replication = {'class': 'SimpleStrategy', "
               "'replication_factor': 1}"),
            "schema");
  EXPECT_EQ(As("bob", "CREATE TABLE mine.t (p int PRIMARY KEY)"), "schema");
  EXPECT_EQ(As("bob", "INSERT INTO mine.t (p) VALUES (1)"), "void");
  EXPECT_EQ(As("bob", "SELECT * FROM mine.t"), "1");
  EXPECT_EQ(As("bob", "CREATE ROLE carol"), "void");
  EXPECT_EQ(As("bob", "GRANT SELECT ON mine.t TO carol"), "void");
  EXPECT_EQ(As("bob", "ALTER ROLE carol WITH LOGIN = true"), "void");
  // Of what was there already nothing is granted.
  Do("GRANT CREATE ON KEYSPACE k TO bob");
  EXPECT_EQ(As("bob", "CREATE TABLE IF NOT EXISTS k.t (p int PRIMARY KEY)"), "void");
  EXPECT_EQ(As("bob", "SELECT * FROM k.t"), NoPermission("bob", "SELECT", "<table k.t>"));
  // With what is dropped its permissions go.
  EXPECT_EQ(As("bob", "DROP TABLE mine.t"), "schema");
  EXPECT_EQ(As("bob", "DROP KEYSPACE mine"), "schema");
  EXPECT_EQ(As("bob", "DROP ROLE carol"), "void");
  EXPECT_EQ(service.Ask("LIST ALL OF bob"),
            "'bob', 'bob', '<all keyspaces>', 'CREATE'; 'bob', 'bob', '<keyspace k>', 'CREATE'; "
            "'bob', 'bob', '<all roles>', 'CREATE'");
}

TEST_F(RolesServiceTest, ARoleThatIsDroppedOrLosesItsLoginIsRefusedAtOnce) {
  Make("bob");
  Make("carol", " AND SUPERUSER = true");
  Do("GRANT SELECT ON k.t TO bob");
  EXPECT_EQ(As("bob", "SELECT * FROM k.t"), "");
  EXPECT_EQ(As("carol", "SELECT * FROM k.t"), "");
  Do("ALTER ROLE carol WITH LOGIN = false");
  EXPECT_EQ(As("carol", "SELECT * FROM k.t"), "error 2100: carol is not permitted to log in");
  Do("DROP ROLE bob");
  for (const char* text : {"SELECT * FROM k.t", "SELECT key FROM system.local", "USE k"}) {
    EXPECT_EQ(As("bob", text), "error 2100: bob is not permitted to log in") << text;
  }
  EXPECT_EQ(service.AskBatch(clients["bob"], {"INSERT INTO k.t (p) VALUES (1)"}),
            "error 2100: bob is not permitted to log in");
}

TEST_F(RolesServiceTest, StatementsAboutRolesAreRefusedInCassandrasWords) {
  Make("bob");
  Make("boss", " AND SUPERUSER = true");
  Do("CREATE ROLE carol");
  Do("CREATE ROLE group1");
  const std::string little =
      "error 2100: User bob does not have sufficient privileges to perform the requested operation";
  ExpectAll("bob",
            {{"CREATE ROLE x", little},
             {"ALTER ROLE carol WITH LOGIN = true", little},
             {"DROP ROLE carol", little},
             {"GRANT group1 TO bob", little},
             {"ALTER ROLE bob WITH LOGIN = false", "error 2100: You aren't allowed to alter LOGIN"},
             {"ALTER ROLE bob WITH SUPERUSER = true",
              "error 2100: You aren't allowed to alter your own superuser status or that of a role "
              "granted to you"},
             {"ALTER ROLE carol WITH SUPERUSER = true",
              "error 2100: Only superusers are allowed to alter superuser status"},
             {"ALTER ROLE boss WITH PASSWORD = 'mine'",
              "error 2100: Only superusers are allowed to alter a role with superuser status"},
             {"LIST ROLES", "'bob', false, true, {}, 'ALL'"},
             {"LIST ROLES OF carol",
              "error 2100: You are not authorized to view roles granted to carol "},
             {"LIST ROLES OF nobody",
              "error 2100: You are not authorized to view roles granted to nobody "},
             {"LIST ALL PERMISSIONS OF nobody",
              "error 2100: You are not authorized to view nobody's permissions"},
             {"LIST ALL PERMISSIONS OF carol",
              "error 2100: You are not authorized to view carol's permissions"},
             {"ALTER ROLE bob WITH PASSWORD = 'new'", "void"}});
  Do("GRANT CREATE ON ALL ROLES TO bob");
  Do("GRANT DROP ON ALL ROLES TO bob");
  ExpectAll("bob", {{"CREATE ROLE x WITH SUPERUSER = true",
                     "error 2100: Only superusers can create a role with superuser status"},
                    {"DROP ROLE boss",
                     "error 2100: Only superusers can drop a role with superuser status"},
                    {"DROP ROLE bob", "error 2200: Cannot DROP primary role for current login"}});
  ExpectAll(
      "boss",
      {{"CREATE ROLE bob", "error 2200: bob already exists"},
       {"CREATE ROLE IF NOT EXISTS bob", "void"},
       {"CREATE ROLE orrery", "error 2200: orrery already exists"},
       {"DROP ROLE nobody", "error 2200: nobody doesn't exist"},
       {"DROP ROLE IF EXISTS nobody", "void"},
       {"LIST ROLES OF nobody", "error 2200: <role nobody> doesn't exist"},
       {"LIST ALL OF nobody", "error 2200: <role nobody> doesn't exist"},
       {"ALTER ROLE IF EXISTS nobody WITH LOGIN = true", "void"},
       {"GRANT SELECT ON k.nothing TO bob", "error 2200: Resource <table k.nothing> doesn't exist"},
       {"GRANT SELECT ON KEYSPACE x TO bob", "error 2200: Resource <keyspace x> doesn't exist"},
       {"GRANT SELECT ON k.t TO nobody", "error 2200: Role nobody doesn't exist"},
       {"GRANT SELECT ON t TO bob",
        "error 2200: No keyspace has been specified. USE a keyspace, or explicitly specify "
        "keyspace.tablename"},
       {"GRANT CREATE ON k.t TO bob",
        "error 2000: Resource type DataResource does not support any of the requested permissions"},
       {"GRANT EXECUTE ON ALL MBEANS TO bob", "error 2200: Resource <all mbeans> doesn't exist"}});
  EXPECT_EQ(As("boss", "GRANT SELECT, MODIFY ON k.t TO bob"), "void");
  EXPECT_TRUE(service.warnings().empty());
  EXPECT_EQ(As("boss", "GRANT SELECT, MODIFY ON k.t TO bob"), "void");
  EXPECT_EQ(
      service.warnings(),
      std::vector<std::string>{"Role 'bob' was already granted SELECT, MODIFY on <table k.t>"});
  EXPECT_EQ(As("boss", "REVOKE SELECT, ALTER ON k.t FROM bob"), "void");
  EXPECT_EQ(service.warnings(),
            std::vector<std::string>{"Role 'bob' was not granted ALTER on <table k.t>"});
}

TEST_F(RolesServiceTest, ListsAndTablesShowWhatThereIs) {
  Make("bob");
  Do("CREATE ROLE readers");
  Do("GRANT readers TO bob");
  Do("GRANT SELECT ON KEYSPACE k TO readers");
  Do("GRANT MODIFY ON k.t TO bob");
  EXPECT_EQ(service.Ask("LIST ROLES"),
            "'bob', false, true, {}, 'ALL'; 'cassandra', true, true, {}, 'ALL'; "
            "'readers', false, false, {}, 'ALL'");
  EXPECT_EQ(service.Ask("LIST ROLES OF bob"),
            "'bob', false, true, {}, 'ALL'; 'readers', false, false, {}, 'ALL'");
  EXPECT_EQ(service.Ask("LIST USERS"), "'bob', false, 'ALL'; 'cassandra', true, 'ALL'");
  EXPECT_EQ(service.Ask("LIST ALL PERMISSIONS OF bob"),
            "'bob', 'bob', '<table k.t>', 'MODIFY'; "
            "'readers', 'readers', '<keyspace k>', 'SELECT'");
  EXPECT_EQ(service.Ask("LIST SELECT ON k.t"), "'readers', 'readers', '<keyspace k>', 'SELECT'");
  EXPECT_EQ(service.Ask("LIST SELECT ON k.t NORECURSIVE"), "void");
  EXPECT_EQ(As("bob", "LIST MODIFY OF bob"), "'bob', 'bob', '<table k.t>', 'MODIFY'");
  EXPECT_EQ(service.Ask("SELECT role, can_login, is_superuser, member_of, salted_hash FROM "
                        "system_auth.roles WHERE role = 'bob'"),
            "'bob', true, false, {'readers'}, null");
  EXPECT_EQ(service.Ask("SELECT * FROM system_auth.role_members"), "'readers', 'bob'");
  EXPECT_EQ(service.Ask("SELECT * FROM system_auth.role_permissions WHERE role = 'bob'"),
            "'bob', 'data/k/t', {'MODIFY'}");
}

TEST_F(RolesServiceTest, NoChangeOfMakersSideBySideIsLost) {
  std::vector<std::string> texts;
  for (int i = 0; i < 6; ++i) {
    texts.push_back("CREATE ROLE r" + std::to_string(i));
  }
  auto all = [&]() -> runtime::Task<std::vector<Response>> {
    std::vector<runtime::Task<Response>> tasks;
    for (const std::string& text : texts) {
      Request request{
          .version = 4, .message = QueryRequest{.text = text, .parameters = {}}, .bytes = {}};
      tasks.push_back(service.Handle(service.client(), std::move(request)));
    }
    co_return co_await runtime::WhenAll(std::move(tasks));
  };
  for (const Response& response : service.node().Run(all())) {
    EXPECT_EQ(response.opcode, Opcode::kResult);
  }
  EXPECT_EQ(service.Ask("SELECT count(*) FROM system_auth.roles"), "7");
}

TEST(RolesRestartTest, RolesAreThereAfterAPowerCut) {
  model::TestMachine machine;
  {
    TestService service(machine);
    EXPECT_EQ(service.Ask("CREATE ROLE bob WITH LOGIN = true AND PASSWORD = 'p'"), "void");
  }
  TestService service(machine.AfterPowerCut());
  Client client;
  EXPECT_EQ(service.LogIn(client, "bob", "p"), "welcome");
}

}  // namespace
}  // namespace orrery::cassandra
