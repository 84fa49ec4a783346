// Roles in the catalog: kept as one record, changed only from what was seen.
#include "model/catalog_roles.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "model/catalog_change.h"
#include "model/catalog_evaluate.h"
#include "model/catalog_records.h"

namespace orrery::model {
namespace {

using cql::Permission;
using cql::PermissionSet;

// A catalog with one keyspace that has a table, as it is after each change.
struct World {
  World() {
    EXPECT_EQ(Do(change::DefineDatabase{.name = "k", .definition = {}, .creates = true}),
              Code::kOk);
    auto definition = types::Document::FromJson(
        R"({"id":"t","cassandra":{},"partitionKey":{"paths":["/p"],"kind":"Token"}})");
    EXPECT_EQ(Do(change::CreateContainer{"k", *definition, {}}), Code::kOk);
  }
  Code Do(CatalogChange::What what) {
    EvaluationInput input{.view = view,
                          .next = view.next,
                          .limits = limits,
                          .now = {++time},
                          .health = health,
                          .random = random};
    auto done = Evaluate({.id = {}, .what = std::move(what)}, input);
    if (!done) {
      return done.error().code();
    }
    std::string bytes = done->set.Encode();
    Status applied = storage::WriteSetView::Parse(bytes)->ForEach(
        [&](const auto& change) { EXPECT_TRUE(ApplyRecord(view, change.key, change.value).ok()); });
    return applied.code();
  }
  Code Put(const cql::Roles& roles, std::string if_match) {
    return Do(change::PutRoles{cql::RolesToDocument(roles), std::move(if_match)});
  }

  CatalogView view;
  CatalogLimits limits;
  ClusterHealth health;
  SeededRandom random{1};
  int64_t time = 0;
};

cql::Roles Granted() {
  cql::Roles roles = *cql::DefaultRoles();
  roles.roles["bob"] = {.login = true};
  for (const char* resource : {"data/k", "data/k/t", "data/other", "roles/bob"}) {
    roles.grants["bob"][resource] = PermissionSet{Permission::kAlter};
  }
  return roles;
}

TEST(CatalogRolesTest, TheyChangeOnlyFromThoseThatWereSeen) {
  World world;
  EXPECT_EQ(RolesOf(world.view), cql::DefaultRoles());
  const std::string first = RolesEtag(world.view);
  EXPECT_EQ(world.Put(Granted(), "\"other\""), Code::kPreconditionFailed);
  EXPECT_EQ(world.Put(Granted(), first), Code::kOk);
  EXPECT_EQ(*RolesOf(world.view), Granted());
  EXPECT_NE(RolesEtag(world.view), first);
  EXPECT_EQ(world.Put(*cql::DefaultRoles(), first), Code::kPreconditionFailed);
  EXPECT_EQ(world.Put(*cql::DefaultRoles(), RolesEtag(world.view)), Code::kOk);
}

TEST(CatalogRolesTest, WhatCannotBeReadOrIsTooLargeIsRefused) {
  World world;
  auto other = types::Document::FromJson(R"({"other":1})");
  EXPECT_EQ(world.Do(change::PutRoles{*other, ""}), Code::kInvalidArgument);
  cql::Roles many = *cql::DefaultRoles();
  for (int i = 0; i < 5000; ++i) {
    many.roles[std::string(250, 'x') + std::to_string(i)] = {};
  }
  EXPECT_EQ(world.Put(many, ""), Code::kTooLarge);
}

TEST(CatalogRolesTest, WithATableOrADatabaseGoesWhatWasGrantedOnIt) {
  World world;
  ASSERT_EQ(world.Put(Granted(), ""), Code::kOk);
  ASSERT_EQ(world.Do(change::DropContainer{"dbs/k/colls/t", ""}), Code::kOk);
  EXPECT_TRUE(RolesOf(world.view)->GrantedOn("bob", "data/k/t").empty());
  EXPECT_EQ(RolesOf(world.view)->grants.at("bob").size(), 3u);
  ASSERT_EQ(world.Do(change::DropDatabase{"k", ""}), Code::kOk);
  EXPECT_TRUE(RolesOf(world.view)->GrantedOn("bob", "data/k").empty());
  EXPECT_EQ(RolesOf(world.view)->grants.at("bob").size(), 2u);
}

TEST(CatalogRolesTest, NothingIsWrittenThatANodeCannotRead) {
  World world;
  ASSERT_EQ(world.Do(change::AddNode{.address = "host:1", .version = kRolesFormat - 1}), Code::kOk);
  EXPECT_EQ(world.Put(Granted(), ""), Code::kForbidden);
  ASSERT_EQ(world.Do(change::ChangeNode{.node = NodeId(1), .version = kRolesFormat}), Code::kOk);
  EXPECT_EQ(world.Put(Granted(), ""), Code::kOk);
}

TEST(CatalogRolesTest, ARecordComesBackAndAMalformedOneIsRefused) {
  const RolesRecord record{.time = {77}, .roles = std::make_shared<const cql::Roles>(Granted())};
  const std::string bytes = EncodeRoles(record);
  auto read = DecodeRoles(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->time.micros, 77);
  EXPECT_EQ(*read->roles, Granted());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(DecodeRoles(std::string_view(bytes).substr(0, size)));
  }
  EXPECT_FALSE(DecodeRoles(bytes + "x"));
  EXPECT_EQ(DecodeRoles("\x02" + bytes.substr(1)).error().code(), Code::kCorruption);
}

}  // namespace
}  // namespace orrery::model
