#include "model/catalog.h"

#include <mutex>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "model/container_kind.h"
#include "model/test_node.h"

namespace orrery::model {
namespace {

using storage::Space;

std::string Plain(std::string_view id) {
  return R"({"id":")" + std::string(id) + R"(","partitionKey":{"paths":["/pk"]}})";
}

class CatalogTest : public testing::Test {
 protected:
  CatalogTest() { Open(); }
  void Open(TestNodeOptions options = {}) {
    node.reset();
    node = std::make_unique<TestNode>(machine, std::move(options));
  }
  Result<std::shared_ptr<const Database>> CreateDatabase(std::string name,
                                                         ThroughputRequest throughput = {}) {
    return node->Run(node->catalog().CreateDatabase(std::move(name), throughput));
  }
  Result<std::shared_ptr<const Container>> CreateContainer(std::string database,
                                                           std::string_view definition,
                                                           ThroughputRequest throughput = {}) {
    return node->Run(
        node->catalog().CreateContainer(std::move(database), Json(definition), throughput));
  }
  Status Drop(std::string link, std::string if_match = "") {
    return node->Run(node->catalog().DropContainer(std::move(link), std::move(if_match)));
  }
  Status DropDatabase(std::string name, std::string if_match = "") {
    return node->Run(node->catalog().DropDatabase(std::move(name), std::move(if_match)));
  }
  Result<std::shared_ptr<const Container>> Replace(std::string_view definition,
                                                   std::string if_match = "") {
    return node->Run(
        node->catalog().ReplaceContainer("dbs/d/colls/c", Json(definition), std::move(if_match)));
  }
  Status ReplaceOffer(uint32_t number, ThroughputRequest throughput, std::string if_match = "") {
    return node->Run(node->catalog().ReplaceOffer(number, throughput, std::move(if_match)));
  }
  Status ChangeParts(const Container& container, change::ReplaceOffer change) {
    change.number = container.offer->number;
    return node->Run(node->catalog().ReplaceOffer(std::move(change)));
  }
  bool SetKeys(const AccountKeys& keys) {
    std::vector<KeyChange> changes;
    for (size_t i = 0; i < kKeyCount; ++i) {
      changes.push_back({.name = static_cast<KeyName>(i), .key = keys.keys[i], .only_over = {}});
    }
    return node->Run(node->catalog().ChangeKeys(changes)).has_value();
  }
  double ShareOf(const Container& container) {
    double share = 0;
    for (const auto& replica : node->replicas().All()) {
      if (replica->container() == container.id) {
        share = replica->governor().share().value();
      }
    }
    return share;
  }
  // Everything that the catalog knows, as text.
  std::string Everything() {
    auto view = node->View();
    std::string all;
    Encoder encoder(all);
    for (const auto& [name, database] : view->databases) {
      encoder.Bytes(name);
      encoder.Bytes(EncodeDatabase(*database));
    }
    for (const auto& [link, container] : view->containers_by_link) {
      encoder.Bytes(link);
      encoder.Bytes(EncodeContainer(*container));
      EXPECT_EQ(view->FindContainer(container->id), container);
    }
    for (const std::string& key : view->keys.keys) {
      encoder.Bytes(key);
    }
    encoder.U32(view->next.database);
    encoder.U32(view->next.container);
    encoder.U64(view->next.partition);
    return all;
  }

  TestMachine machine;
  std::unique_ptr<TestNode> node;
};

TEST_F(CatalogTest, ADatabaseIsFoundByItsNameAndGoneAfterItIsDropped) {
  ASSERT_TRUE(CreateDatabase("one"));
  EXPECT_EQ(node->View()->FindDatabase("one")->name, "one");
  EXPECT_EQ(CreateDatabase("one").error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(DropDatabase("one").ok());
  EXPECT_EQ(node->View()->FindDatabase("one"), nullptr);
  EXPECT_EQ(DropDatabase("one").code(), Code::kNotFound);
}

TEST_F(CatalogTest, AContainerNeedsItsDatabaseAndItsOwnName) {
  EXPECT_EQ(CreateContainer("d", Plain("c")).error().code(), Code::kOwnerNotFound);
  ASSERT_TRUE(CreateDatabase("d"));
  ASSERT_TRUE(CreateDatabase("e"));
  EXPECT_TRUE(CreateContainer("d", Plain("c")));
  EXPECT_EQ(CreateContainer("d", Plain("c")).error().code(), Code::kAlreadyExists);
  EXPECT_TRUE(CreateContainer("e", Plain("c")));
  EXPECT_EQ(node->Find("dbs/e/colls/c")->database_name, "e");
}

TEST_F(CatalogTest, NamesFollowTheRules) {
  for (const std::string& name :
       {std::string(""), std::string(256, 'x'), std::string("a/b"), std::string("a\\b"),
        std::string("a#b"), std::string("a?b"), std::string("a ")}) {
    EXPECT_EQ(CreateDatabase(name).error().code(), Code::kInvalidArgument) << name;
  }
  EXPECT_TRUE(CreateDatabase(std::string(255, 'x')));
  EXPECT_TRUE(CreateDatabase("with space-and.dots"));
}

TEST_F(CatalogTest, ThroughputDecidesTheNumberOfPartitions) {
  ASSERT_TRUE(CreateDatabase("d"));
  struct Row {
    ThroughputRequest throughput;
    size_t partitions;
  };
  const Row rows[] = {{{}, 1},
                      {{.manual = 400}, 1},
                      {{.manual = 10'000}, 1},
                      {{.manual = 10'100}, 2},
                      {{.manual = 30'000}, 3},
                      {{.manual = 100'000}, 10},
                      {{.autoscale_max = 1'000}, 1},
                      {{.autoscale_max = 21'000}, 3}};
  int number = 0;
  for (const Row& row : rows) {
    auto made = CreateContainer("d", Plain("c" + std::to_string(number++)), row.throughput);
    ASSERT_TRUE(made) << made.error().ToString();
    EXPECT_EQ((*made)->map->ranges().size(), row.partitions) << number;
    for (const auto& range : (*made)->map->ranges()) {
      bool here = false;
      for (const auto& replica : node->replicas().All()) {
        here |= replica->id() == range.id;
      }
      EXPECT_TRUE(here) << range.id.ToString();
    }
  }
}

TEST_F(CatalogTest, ThroughputOutsideTheRulesIsRefused) {
  ASSERT_TRUE(CreateDatabase("d"));
  const ThroughputRequest refused[] = {{.manual = 0},
                                       {.manual = 300},
                                       {.manual = 450},
                                       {.manual = 1'000'100},
                                       {.autoscale_max = 900},
                                       {.autoscale_max = 1'500},
                                       {.autoscale_max = 0},
                                       {.autoscale_max = 1'001'000},
                                       {.manual = 400, .autoscale_max = 1'000}};
  for (const ThroughputRequest& request : refused) {
    EXPECT_EQ(CreateContainer("d", Plain("c"), request).error().code(), Code::kInvalidArgument);
    EXPECT_EQ(CreateDatabase("e", request).error().code(), Code::kInvalidArgument);
  }
  EXPECT_EQ(node->Find("dbs/d/colls/c"), nullptr);
}

TEST_F(CatalogTest, TheNumberOfResourcesIsLimited) {
  Open({.limits = {.resources_max = 3}});
  ASSERT_TRUE(CreateDatabase("d"));
  ASSERT_TRUE(CreateContainer("d", Plain("a")));
  ASSERT_TRUE(CreateContainer("d", Plain("b")));
  EXPECT_EQ(CreateContainer("d", Plain("c")).error().code(), Code::kForbidden);
  EXPECT_EQ(CreateDatabase("e").error().code(), Code::kForbidden);
  ASSERT_TRUE(Drop("dbs/d/colls/a").ok());
  EXPECT_TRUE(CreateContainer("d", Plain("c")));
}

TEST_F(CatalogTest, ADefinitionThatIsNoneIsRefused) {
  ASSERT_TRUE(CreateDatabase("d"));
  for (const char* definition :
       {R"({"partitionKey":{"paths":["/pk"]}})", R"({"id":"c","partitionKey":{}})",
        R"({"id":"c","partitionKey":{"paths":[]}})", R"({"id":"c","partitionKey":"/pk"})",
        R"({"id":"c","partitionKey":{"paths":["/pk"],"systemKey":true}})",
        R"({"id":"c","partitionKey":{"paths":["pk"]}})",
        R"({"id":"c","partitionKey":{"paths":["/a"],"kind":"Other"}})",
        R"({"id":"c","partitionKey":{"paths":["/a"]},"defaultTtl":0})",
        R"({"id":"c","partitionKey":{"paths":["/a"]},"defaultTtl":"x"})",
        R"({"id":"c","partitionKey":{"paths":["/a"]},"uniqueKeyPolicy":{"uniqueKeys":[{}]}})",
        R"({"id":"a/b","partitionKey":{"paths":["/a"]}})"}) {
    auto made = CreateContainer("d", definition);
    ASSERT_FALSE(made) << definition;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument) << definition;
  }
}

TEST_F(CatalogTest, AChangedPartitionKeyUniqueKeyOrNameIsRefused) {
  node->MakeContainer(
      R"({"id":"c","partitionKey":{"paths":["/pk"]},
          "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})");
  for (const char* definition : {R"({"id":"c","partitionKey":{"paths":["/other"]},
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})",
                                 R"({"id":"c","partitionKey":{"paths":["/pk"],"version":1},
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})",
                                 R"({"id":"c","partitionKey":{"paths":["/pk"]}})",
                                 R"({"id":"c2","partitionKey":{"paths":["/pk"]},
            "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})"}) {
    EXPECT_FALSE(Replace(definition)) << definition;
  }
  EXPECT_EQ(node->Find("dbs/d/colls/c")->version, 1u);
}

TEST_F(CatalogTest, AChangedTimeToLiveIsGoodForTheNextOperation) {
  auto before = node->MakeContainer(Plain("c"));
  node->Write(*before, "a", {Create(R"({"id":"1","pk":"a"})")});
  node->clock().Advance(std::chrono::seconds(10));
  ASSERT_TRUE(Replace(R"({"id":"c","partitionKey":{"paths":["/pk"]},"defaultTtl":5})"));
  EXPECT_EQ(node->Find("dbs/d/colls/c")->version, 2u);
  // The old definition in the caller's hand does not matter: the router looks again.
  EXPECT_EQ(node->ReadJson(*before, "a", "1"), "<not found>");
}

TEST_F(CatalogTest, AnEtagThatDiffersStopsAChange) {
  node->MakeContainer(Plain("c"));
  auto before = node->Find("dbs/d/colls/c");
  auto database = node->View()->FindDatabase("d");
  EXPECT_EQ(Replace(Plain("c"), "\"x\"").error().code(), Code::kPreconditionFailed);
  EXPECT_EQ(Drop("dbs/d/colls/c", "\"x\"").code(), Code::kPreconditionFailed);
  EXPECT_EQ(DropDatabase("d", "\"x\"").code(), Code::kPreconditionFailed);
  EXPECT_EQ(ReplaceOffer(before->offer->number, {.manual = 500}, "\"x\"").code(),
            Code::kPreconditionFailed);
  EXPECT_TRUE(Replace(Plain("c"), EtagText(before->etag, before->time)));
  EXPECT_TRUE(Drop("dbs/d/colls/c", "*").ok());
  EXPECT_TRUE(DropDatabase("d", EtagText(database->etag, database->time)).ok());
}

TEST_F(CatalogTest, EveryChangeGivesAnotherEtagEvenIfTheClockStandsStill) {
  node->MakeContainer(Plain("c"));
  std::set<uint64_t> etags = {node->Find("dbs/d/colls/c")->etag};
  for (int i = 0; i < 3; ++i) {
    etags.insert((*Replace(Plain("c")))->etag);
  }
  EXPECT_EQ(etags.size(), 4u);
}

TEST_F(CatalogTest, AnOfferIsChangedAndNoPartitionGetsMoreThanItsLimit) {
  auto container = node->MakeContainer(Plain("c"), {.manual = 400});
  uint32_t number = container->offer->number;
  EXPECT_TRUE(ReplaceOffer(number, {.manual = 5'000}).ok());
  EXPECT_EQ(ShareOf(*container), 5'000);
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->number, number);
  EXPECT_TRUE(ReplaceOffer(number, {.autoscale_max = 10'000}).ok());
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->reported(), 1'000u);
  EXPECT_TRUE(ReplaceOffer(number, {.manual = 10'100}).ok());  // until it is split
  EXPECT_EQ(ReplaceOffer(number, {.manual = 450}).code(), Code::kInvalidArgument);
  EXPECT_EQ(ReplaceOffer(999, {.manual = 400}).code(), Code::kNotFound);
  EXPECT_EQ(ShareOf(*container), 10'000);
}

TEST_F(CatalogTest, AThroughputNeverFallsBelowAHundredthOfTheHighest) {
  auto container = node->MakeContainer(Plain("c"), {.manual = 100'000});
  uint32_t number = container->offer->number;
  EXPECT_EQ(ReplaceOffer(number, {.manual = 900}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(ReplaceOffer(number, {.manual = 1'000}).ok());
  EXPECT_EQ(ShareOf(*container), 100);
  EXPECT_TRUE(ReplaceOffer(number, {.manual = 5'000}).ok());
  Open();
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->most(), 100'000u);
  EXPECT_EQ(ReplaceOffer(number, {.manual = 900}).code(), Code::kInvalidArgument);
  EXPECT_EQ(ReplaceOffer(number, {.autoscale_max = 9'000}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(ReplaceOffer(number, {.autoscale_max = 10'000}).ok());
}

TEST_F(CatalogTest, BucketsBelongToAContainerWithAChosenThroughput) {
  change::ReplaceOffer buckets{.buckets = partition::Buckets{.percent = {20}, .unmarked = 1}};
  auto container = node->MakeContainer(Plain("c"), {.manual = 400});
  EXPECT_TRUE(ChangeParts(*container, buckets).ok());
  Open();
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->buckets, *buckets.buckets);
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->manual, 400u);
  auto governed = node->replicas().Find(container->map->ranges()[0].id);
  EXPECT_TRUE(governed->governor().bucketed({}));
  EXPECT_TRUE(ReplaceOffer(container->offer->number, {.manual = 500}).ok());
  EXPECT_TRUE(governed->governor().bucketed({})) << "another amount leaves them";
  change::ReplaceOffer wrong{.buckets = partition::Buckets{.percent = {20}, .unmarked = 2}};
  EXPECT_EQ(ChangeParts(*container, wrong).code(), Code::kInvalidArgument);
  auto unchosen = *CreateContainer("d", Plain("unchosen"));
  EXPECT_EQ(ChangeParts(*unchosen, buckets).code(), Code::kInvalidArgument);
  auto shared = *CreateDatabase("shared", {.manual = 400});
  buckets.number = shared->offer->number;
  EXPECT_EQ(node->Run(node->catalog().ReplaceOffer(buckets)).code(), Code::kInvalidArgument);
}

TEST_F(CatalogTest, ARedistributedThroughputIsTheSumAndIsChangedAsAWholeOnlyWhenEqualAgain) {
  auto container = node->MakeContainer(Plain("c"), {.manual = 20'000});
  PartitionId first = container->map->ranges()[0].id;
  PartitionId second = container->map->ranges()[1].id;
  auto share = [&](PartitionId id) { return node->replicas().Find(id)->governor().share(); };
  change::ReplaceOffer shares{.shares = std::vector<PartitionShare>{{first, 3'000}}};
  ASSERT_TRUE(ChangeParts(*container, shares).ok());
  Open();
  EXPECT_EQ(node->Find("dbs/d/colls/c")->offer->manual, 13'000u);
  EXPECT_EQ(share(first), partition::RequestUnits(3'000));
  EXPECT_EQ(share(second), partition::RequestUnits(10'000));
  uint32_t number = container->offer->number;
  EXPECT_EQ(ReplaceOffer(number, {.manual = 14'000}).code(), Code::kInvalidArgument);
  change::ReplaceOffer equal{.shares = std::vector<PartitionShare>()};
  ASSERT_TRUE(ChangeParts(*container, equal).ok());
  EXPECT_EQ(share(first), partition::RequestUnits(6'500));
  EXPECT_TRUE(ReplaceOffer(number, {.manual = 14'000}).ok());
  EXPECT_EQ(share(second), partition::RequestUnits(7'000));
}

TEST_F(CatalogTest, EachPartitionGetsItsPartOfTheThroughput) {
  auto container = node->MakeContainer(Plain("c"), {.manual = 30'000});
  EXPECT_EQ(ShareOf(*container), 10'000);
}

TEST_F(CatalogTest, ContainersOfADatabaseWithThroughputShareIt) {
  ASSERT_TRUE(CreateDatabase("d", {.manual = 400}));
  auto a = *CreateContainer("d", Plain("a"));
  auto b = *CreateContainer("d", Plain("b"));
  auto own = *CreateContainer("d", Plain("own"), {.manual = 400});
  EXPECT_FALSE(a->offer);
  EXPECT_TRUE(own->offer);
  while (node->Write(*a, "a", {Upsert(R"({"id":"1","pk":"a"})")}).code() == Code::kOk) {
  }
  EXPECT_EQ(node->Write(*b, "a", {Upsert(R"({"id":"1","pk":"a"})")}).code(), Code::kThrottled);
  EXPECT_EQ(node->Write(*own, "a", {Upsert(R"({"id":"1","pk":"a"})")}).code(), Code::kOk);
}

TEST_F(CatalogTest, AChangedDatabaseThroughputIsGoodForAllItsContainers) {
  auto database = *CreateDatabase("d", {.manual = 400});
  auto a = *CreateContainer("d", Plain("a"));
  EXPECT_TRUE(ReplaceOffer(database->offer->number, {.manual = 4'000}).ok());
  EXPECT_EQ(ShareOf(*a), 4'000);
  EXPECT_EQ(ShareOf(**CreateContainer("d", Plain("b"))), 4'000);
}

TEST_F(CatalogTest, AThroughputChangedWhileADatabaseIsEmptyIsGoodForItsNextContainer) {
  auto database = *CreateDatabase("d", {.manual = 400});
  ASSERT_TRUE(CreateContainer("d", Plain("a")));
  ASSERT_TRUE(Drop("dbs/d/colls/a").ok());
  ASSERT_TRUE(ReplaceOffer(database->offer->number, {.manual = 4'000}).ok());
  EXPECT_EQ(ShareOf(**CreateContainer("d", Plain("b"))), 4'000);
}

TEST_F(CatalogTest, EverythingSurvivesARestartAndAPowerCut) {
  ASSERT_TRUE(CreateDatabase("shared", {.autoscale_max = 4'000}));
  ASSERT_TRUE(CreateContainer("shared", Plain("x")));
  ASSERT_TRUE(CreateDatabase("a name that is too long for the short form of a string"));
  node->MakeContainer(
      R"({"id":"c","partitionKey":{"paths":["/a","/b/c"],"kind":"MultiHash"},"defaultTtl":77,
          "uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/v"]}]}})",
      {.manual = 30'000});
  AccountKeys keys;
  keys.keys = {"one", "two", std::string("\0three", 6), "four"};
  ASSERT_TRUE(SetKeys(keys));
  std::string before = Everything();
  machine = machine.AfterPowerCut();
  Open();
  EXPECT_EQ(Everything(), before);
  Open();
  EXPECT_EQ(Everything(), before);
  EXPECT_EQ(node->Find("dbs/d/colls/c")->default_ttl, 77);
  EXPECT_EQ(node->Find("dbs/d/colls/c")->unique_keys.size(), 1u);
  EXPECT_EQ(node->replicas().All().size(), 4u);
}

TEST_F(CatalogTest, KeysAreRotatedAndStayRotated) {
  AccountKeys keys;
  keys.keys = {"a", "b", "c", "d"};
  ASSERT_TRUE(SetKeys(keys));
  keys.keys[1] = "new";
  ASSERT_TRUE(SetKeys(keys));
  EXPECT_EQ(node->View()->keys.keys, keys.keys);
  Open();
  EXPECT_EQ(node->View()->keys.keys, keys.keys);
}

TEST_F(CatalogTest, IdsAreNeverUsedAgain) {
  std::set<uint32_t> containers;
  std::set<uint64_t> partitions;
  std::set<uint32_t> databases;
  std::set<uint32_t> offers;
  for (int round = 0; round < 6; ++round) {
    auto database = CreateDatabase("d");
    ASSERT_TRUE(database);
    auto container = CreateContainer("d", Plain("c"), {.manual = 20'000});
    ASSERT_TRUE(container);
    EXPECT_TRUE(databases.insert((*database)->id.value()).second);
    EXPECT_TRUE(containers.insert((*container)->id.value()).second);
    EXPECT_TRUE(offers.insert((*container)->offer->number).second);
    for (const auto& range : (*container)->map->ranges()) {
      EXPECT_TRUE(partitions.insert(range.id.value()).second);
    }
    ASSERT_TRUE(DropDatabase("d").ok());
    if (round % 3 == 1) {
      machine = machine.AfterPowerCut();
      Open();
    }
    if (round % 3 == 2) {
      Open();
    }
  }
}

TEST_F(CatalogTest, AFailedLogWriteLeavesNoContainerBehind) {
  std::atomic<bool> broken = false;
  TestNodeOptions options;
  options.before_log = [&](storage::WatchedEngine::Call) {
    return broken ? Status(Code::kUnknownOutcome, "gone") : Status::Ok();
  };
  Open(options);
  ASSERT_TRUE(CreateDatabase("d"));
  broken = true;
  EXPECT_EQ(CreateContainer("d", Plain("c")).error().code(), Code::kUnknownOutcome);
  EXPECT_EQ(node->Find("dbs/d/colls/c"), nullptr);
  EXPECT_TRUE(Eventually([&] { return node->replicas().All().empty(); }));
}

TEST_F(CatalogTest, AKeyspaceIsADatabaseWithADefinition) {
  auto define = [&](std::string_view json, bool creates, std::string if_match) {
    return node->Run(node->catalog().DefineDatabase(
        {.name = "k", .definition = Json(json), .creates = creates, .if_match = if_match}));
  };
  EXPECT_EQ(define("{}", false, "").error().code(), Code::kNotFound);
  auto made = define(R"({"n":1})", true, "");
  ASSERT_TRUE(made);
  EXPECT_EQ(define("{}", true, "").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(define("{}", false, "\"other\"").error().code(), Code::kPreconditionFailed);
  ASSERT_TRUE(define(R"({"n":2})", false, EtagText((*made)->etag, (*made)->time)));
  ASSERT_TRUE(CreateContainer("k", R"({"id":"t","cassandra":{},"partitionKey":{"paths":["/a","/b",)"
                                   R"("/c","/d"],"kind":"Token"}})"));
  // The one goes with the other.
  EXPECT_FALSE(
      CreateContainer("k", R"({"id":"u","cassandra":{},"partitionKey":{"paths":["/a"]}})"));
  EXPECT_FALSE(
      CreateContainer("k", R"({"id":"u","partitionKey":{"paths":["/a"],"kind":"Token"}})"));
  Open();
  auto database = node->View()->FindDatabase("k");
  ASSERT_TRUE(database->definition);
  EXPECT_EQ(database->definition->Get("n").integer(), 2);
  EXPECT_EQ(database->id, (*made)->id);
  EXPECT_TRUE(node->Find("dbs/k/colls/t")->is_table());
  EXPECT_EQ(KindOf(*node->Find("dbs/k/colls/t"), CatalogLimits()), ContainerKind::kUnlimited);
}

// Each thread remembers the view it saw last; it must not take it for that of another catalog.
TEST_F(CatalogTest, ACatalogAtTheAddressOfAnOldOneShowsItsOwnView) {
  TestNode other{TestMachine()};
  ASSERT_TRUE(CreateDatabase("d"));
  replication::LocalReplicaSet meta(GroupId(0), node->store(), node->workers().at(0));
  SystemRandom random;
  std::optional<Catalog> catalog;
  catalog.emplace(meta, node->workers(), node->clock(), random, CatalogLimits());
  ASSERT_TRUE(catalog->Load(other.state(), WallTime()).ok());
  EXPECT_EQ(catalog->view()->FindDatabase("d"), nullptr);
  catalog.emplace(meta, node->workers(), node->clock(), random, CatalogLimits());
  ASSERT_TRUE(catalog->Load(node->state(), WallTime()).ok());
  EXPECT_NE(catalog->view()->FindDatabase("d"), nullptr);
}

}  // namespace
}  // namespace orrery::model
