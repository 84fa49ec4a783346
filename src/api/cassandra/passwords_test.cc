#include "api/cassandra/passwords.h"

#include <vector>

#include <gtest/gtest.h>

#include "model/test_node.h"
#include "runtime/when_all.h"

namespace orrery::cassandra {
namespace {

class PasswordsTest : public testing::Test {
 protected:
  std::string Hash(std::string password) {
    auto hash = node.Run(passwords.Hash(std::move(password)));
    EXPECT_TRUE(hash);
    return hash.value_or("");
  }
  bool Check(std::string hash, std::string password) {
    return node.Run(passwords.Check(std::move(hash), std::move(password))).value_or(false);
  }

  model::TestNode node{model::TestMachine()};
  Passwords passwords{node.workers()};
};

TEST_F(PasswordsTest, AHashIsCassandrasAndOpensForItsPasswordOnly) {
  const std::string hash = Hash("secret");
  EXPECT_TRUE(hash.starts_with("$2b$10$")) << hash;
  EXPECT_TRUE(cql::IsPasswordHash(hash));
  EXPECT_NE(hash, Hash("secret")) << "each has its own salt";
  EXPECT_TRUE(Check(hash, "secret"));
  EXPECT_FALSE(Check(hash, "Secret"));
  EXPECT_FALSE(Check(hash, ""));
  EXPECT_FALSE(Check(hash, std::string("secret\0x", 8)));
  EXPECT_FALSE(Check("", "secret"));
  EXPECT_FALSE(Check("nonsense", "secret"));
}

// Made by other implementations.
TEST_F(PasswordsTest, KnownHashesAreRead) {
  EXPECT_TRUE(Check("$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW", "U*U"));
  EXPECT_TRUE(Check(std::string(cql::kDefaultHash), "cassandra"));
}

TEST_F(PasswordsTest, WhatWasRightIsNotComputedAgainAndWhatWasWrongIs) {
  const std::string hash = Hash("secret");
  EXPECT_TRUE(Check(hash, "secret"));
  const size_t before = passwords.computed();
  EXPECT_TRUE(Check(hash, "secret"));
  EXPECT_EQ(passwords.computed(), before);
  EXPECT_FALSE(Check(hash, "wrong"));
  EXPECT_FALSE(Check(hash, "wrong"));
  EXPECT_FALSE(Check("", "wrong")) << "nobody's";
  EXPECT_EQ(passwords.computed(), before + 3);
}

TEST_F(PasswordsTest, WhoComesWhenTooManyWaitIsRefused) {
  const std::string cheap = "$2a$04$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
  const size_t all = Passwords::kAtOnce + Passwords::kWaitingMax + 10;
  auto many = [&]() -> runtime::Task<size_t> {
    std::vector<runtime::Task<Result<bool>>> tasks;
    for (size_t i = 0; i < all; ++i) {
      tasks.push_back(passwords.Check(cheap, "x" + std::to_string(i)));
    }
    size_t refused = 0;
    for (const Result<bool>& each : co_await runtime::WhenAll(std::move(tasks))) {
      refused += !each && each.error().code() == Code::kUnavailable ? 1 : 0;
    }
    co_return refused;
  };
  const size_t refused = node.Run(many());
  EXPECT_GE(refused, 1u);
  EXPECT_LE(refused, 10u);
  EXPECT_FALSE(Check(cheap, "y")) << "there is room again";
}

TEST(DefaultPasswordTest, ItIsFoundWhateverItsHash) {
  cql::Roles roles = *cql::DefaultRoles();
  cql::Role& role = roles.roles.at("cassandra");
  EXPECT_TRUE(HasDefaultPassword(roles));
  role.login = false;
  EXPECT_FALSE(HasDefaultPassword(roles));
  role.login = true;
  role.hash = "$2a$05$CCCCCCCCCCCCCCCCCCCCC.E5YPO9kmyuRGyh0XouQYb4YMJKvyOeW";
  EXPECT_FALSE(HasDefaultPassword(roles)) << "another one";
  role.hash = "$2a$04$CCCCCCCCCCCCCCCCCCCCC.HZm0lcEL8.pvbeVaXVClJhJyxT/2PCa";
  EXPECT_TRUE(HasDefaultPassword(roles)) << "the same, with another salt";
  role.hash = "";
  EXPECT_FALSE(HasDefaultPassword(roles));
  roles.roles.clear();
  EXPECT_FALSE(HasDefaultPassword(roles));
}

}  // namespace
}  // namespace orrery::cassandra
