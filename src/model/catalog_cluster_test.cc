// Several catalogs that follow one log: what followers see, what becomes of changes that are sent
// to the leader, and of answers that are lost. One thread, no clock but the test's.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/catalog.h"
#include "runtime/manual_time.h"
#include "storage/engine.h"
#include "storage/store.h"

namespace orrery::model {
namespace {

using runtime::Task;

class Cluster;

// The meta group as one node sees it: applies what the cluster's log has, when it is told to.
class TestSet final : public replication::ReplicaSet {
 public:
  TestSet(Cluster& cluster, size_t self) : cluster_(cluster), self_(self) {}
  void SetListener(replication::ApplyListener* listener) override { listener_ = listener; }
  bool leads() const override;
  uint64_t term() const override;
  Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t term) override;
  Task<Status> ReadBarrier() override;
  Task<Status> WaitApplied(Lsn, Duration) override { co_return Status(Code::kNotSupported); }
  const std::string& extra() const override { return extra_; }
  Lsn applied() const override { return Lsn(applied_); }
  storage::Totals totals() const override { return {}; }

  void CatchUp();
  // Everything of `other`, without the log in between.
  void Install(const TestSet& other, std::string extra);

  std::shared_ptr<storage::MemoryDisk> disk = storage::MakeMemoryDisk();
  std::unique_ptr<storage::Engine> state =
      storage::OpenMemoryEngine(disk, {.spaces = storage::StateSpaces()});
  bool held = false;  // applies nothing

 private:
  Cluster& cluster_;
  const size_t self_;
  replication::ApplyListener* listener_ = nullptr;
  uint64_t applied_ = 0;
  std::string extra_;
};

// Notes what it is told, and whether the catalog showed it already.
class Notes final : public CatalogListener {
 public:
  explicit Notes(const Catalog& catalog) : catalog_(catalog) {}
  void OnCreated(const std::shared_ptr<const Container>& container,
                 const Database& database) override {
    Note("created " + database.name + "/" + container->name, container->id);
  }
  void OnChanged(const std::shared_ptr<const Container>& container, const Database&) override {
    Note("changed " + container->name, container->id);
  }
  void OnDropped(ContainerId id, const std::vector<PartitionId>& partitions) override {
    Note("dropped " + std::to_string(partitions.size()), id);
  }
  void OnPlaced(const CatalogView& next, const std::vector<GroupId>& groups) override {
    for (GroupId group : groups) {
      all.push_back("placed " + group.ToString() + " at " +
                    std::to_string(next.FindPlacement(group)->epoch));
    }
  }
  void OnUnplaced(const std::vector<GroupId>& groups) override {
    all.push_back("unplaced " + std::to_string(groups.size()));
  }
  void OnNodesChanged(const CatalogView& view) override {
    all.push_back("nodes " + std::to_string(view.nodes.size()));
  }
  void OnKeysChanged(const AccountKeys& keys) override { all.push_back("key " + keys.keys[0]); }

  std::vector<std::string> all;

 private:
  void Note(std::string what, ContainerId id) {
    bool shown = catalog_.view()->FindContainer(id) != nullptr;
    all.push_back(std::move(what) + (shown ? " (shown)" : " (not shown)"));
  }
  const Catalog& catalog_;
};

// What a catalog knows, as text.
std::string Everything(const CatalogView& view) {
  std::string all;
  Encoder encoder(all);
  for (const auto& [name, database] : view.databases) {
    encoder.Bytes(EncodeDatabase(*database));
  }
  for (const auto& [id, container] : view.containers_by_id) {
    encoder.Bytes(EncodeContainer(*container));
    EXPECT_EQ(view.FindContainer(container->link), container);
    EXPECT_TRUE(view.containers.contains({container->database, container->name}));
  }
  EXPECT_EQ(view.containers_by_link.size(), view.containers_by_id.size());
  for (const auto& [id, partitions] : view.dropped) {
    encoder.U32(id.value());
    encoder.Bytes(EncodeDropped(partitions));
  }
  for (const auto& [id, node] : view.nodes) {
    encoder.Bytes(EncodeNode(*node));
  }
  for (const auto& [group, placement] : view.placements) {
    encoder.U64(group.value());
    encoder.Bytes(EncodePlacement(*placement));
  }
  encoder.Bytes(EncodeKeys(view.keys));
  encoder.Bytes(EncodeCounters(view.next));
  encoder.Bytes(EncodeCluster(view.cluster, view.next));
  return all;
}

struct Node {
  Node(Cluster& cluster, size_t self, runtime::WorkerPool& workers, const Clock& clock,
       Random& random)
      : set(cluster, self), catalog(set, workers, clock, random, {}), notes(catalog) {
    EXPECT_TRUE(catalog.Load(*set.state, WallTime()).ok());
    catalog.AddListener(&notes);
  }
  std::string View() const { return Everything(*catalog.view()); }

  TestSet set;
  Catalog catalog;
  Notes notes;
};

class Cluster {
 public:
  explicit Cluster(size_t count) {
    for (size_t i = 0; i < count; ++i) {
      nodes.push_back(std::make_unique<Node>(*this, i, pool, clock, random));
      nodes[i]->catalog.SetForward([this, i](std::string bytes) { return Send(i, bytes); });
    }
  }
  ~Cluster() { pool.Abandon(); }

  // Runs a task to its end, however long it sleeps.
  template <typename T>
  T Run(Task<T> task) {
    std::optional<T> value;
    auto run = [](Task<T> task, std::optional<T>& value) -> Task<> {
      value.emplace(co_await std::move(task));
    };
    pool.at(1).Spawn(run(std::move(task), value));
    while (!value) {
      Step();
    }
    return std::move(*value);
  }
  void Step() {
    pool.RunReady();
    if (pool.blocking_waiting() > 0) {
      pool.RunBlocking();
    } else if (!time.WakeOne() && time.next()) {
      clock.Advance(*time.next() - clock.Now());
    }
  }
  void RunReady() {
    do {
      pool.RunReady();
    } while (pool.blocking_waiting() > 0 && (pool.RunBlocking(), true));
  }

  Result<std::shared_ptr<const Container>> Create(size_t node, const std::string& name,
                                                  ThroughputRequest throughput = {}) {
    auto definition =
        *types::Document::FromJson(R"({"id":")" + name + R"(","partitionKey":{"paths":["/pk"]}})");
    return Run(nodes[node]->catalog.CreateContainer("d", definition, throughput));
  }
  Status CreateDatabase(size_t node) {
    auto made = Run(nodes[node]->catalog.CreateDatabase("d", {}));
    return made ? Status::Ok() : made.error();
  }
  Status Drop(size_t node, const std::string& name) {
    return Run(nodes[node]->catalog.DropContainer("dbs/d/colls/" + name, ""));
  }
  Result<Joined> Join(size_t node, const std::string& zone = "") {
    auto result = Execute(node, change::AddNode{.address = "host:1", .zone = zone, .version = 1});
    return result ? Result<Joined>(*result->joined) : Error(result.error());
  }
  Result<ChangeResult> Execute(size_t node, CatalogChange::What what,
                               storage::OperationId id = {}) {
    return Run(nodes[node]->catalog.Execute({.id = id, .what = std::move(what)}));
  }
  std::shared_ptr<const CatalogView> View(size_t node) { return nodes[node]->catalog.view(); }
  void CatchUpAll() {
    for (auto& node : nodes) {
      node->set.CatchUp();
    }
  }

  ManualClock clock;
  runtime::ManualTime time{clock};
  runtime::WorkerPool pool{2, 0, &time};
  SeededRandom random{7};
  std::vector<std::string> log;
  std::optional<size_t> leader = 0;
  uint64_t term = 1;
  // What the next commit gives; kUnknownOutcome with `kept`: it stands in the log all the same, and
  // is applied with the next one.
  std::optional<Code> fail_commit;
  bool kept = false;
  // Called with each change on its way, before it is handled; gives what becomes of the answer.
  std::function<Code(size_t tries)> on_send = [](size_t) { return Code::kOk; };
  size_t tries = 0;
  std::vector<std::unique_ptr<Node>> nodes;

 private:
  Task<Result<std::string>> Send(size_t from, std::string bytes) {
    Code code = on_send(++tries);
    if (!leader || code == Code::kUnavailable || code == Code::kNotLeader) {
      co_return Error(leader ? code : Code::kNotLeader, "not sent");
    }
    std::string answer = co_await nodes[*leader]->catalog.HandleForwarded(bytes);
    if (code != Code::kOk) {
      co_return Error(code, "the answer is lost");
    }
    co_return answer;
  }
};

bool TestSet::leads() const { return cluster_.leader == self_; }
uint64_t TestSet::term() const { return cluster_.term; }

Task<Result<Lsn>> TestSet::Commit(storage::WriteSet set, uint64_t term) {
  if (!leads() || term != cluster_.term) {
    co_return Error(Code::kNotLeader, "not any more");
  }
  std::optional<Code> failure = std::exchange(cluster_.fail_commit, std::nullopt);
  if (!failure || cluster_.kept) {
    cluster_.log.push_back(set.Encode());
  }
  if (failure) {
    co_return Error(*failure, "failed");
  }
  cluster_.CatchUpAll();
  co_return Lsn(cluster_.log.size());
}

Task<Status> TestSet::ReadBarrier() {
  co_return leads() ? Status::Ok() : Status(Code::kNotLeader, "not any more");
}

void TestSet::CatchUp() {
  while (!held && applied_ < cluster_.log.size()) {
    auto view = storage::WriteSetView::Parse(cluster_.log[applied_]);
    ASSERT_TRUE(view);
    storage::Batch batch;
    ++applied_;
    ASSERT_TRUE(view->AddTo(batch, Lsn(applied_)).ok());
    ASSERT_TRUE(state->Write(batch, storage::WriteMode::kNoLog).ok());
    listener_->OnApplied(Lsn(applied_), *view);
  }
}

void TestSet::Install(const TestSet& other, std::string extra) {
  storage::Batch batch;
  auto space = storage::Index(storage::Space::kCatalog);
  auto at = other.state->NewIterator(space, "", "");
  auto mine = state->NewIterator(space, "", "");
  for (mine->SeekToFirst(); mine->Valid(); mine->Next()) {
    batch.Delete(space, mine->key());
  }
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    batch.Put(space, at->key(), at->value());
  }
  ASSERT_TRUE(state->Write(batch, storage::WriteMode::kNoLog).ok());
  applied_ = other.applied_;
  extra_ = std::move(extra);
  held = false;
  listener_->OnReplaced();
}

std::vector<PlacedReplica> New(std::vector<uint32_t> nodes) {
  std::vector<PlacedReplica> members;
  for (uint32_t node : nodes) {
    members.push_back({.replica = {}, .node = NodeId(node), .voter = true});
  }
  return members;
}

// --- what followers see --------------------------------------------------------------------------

TEST(CatalogClusterTest, CatalogsThatApplyTheSameSetsKnowTheSame) {
  Cluster cluster(3);
  SeededRandom random(11);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  for (int i = 0; i < 300; ++i) {
    cluster.clock.Advance(std::chrono::milliseconds(random.Next() % 5));
    size_t node = random.Next() % 3;
    if (random.Next() % 10 == 0) {
      cluster.leader = random.Next() % 3;
      ++cluster.term;
    }
    std::string name = "c" + std::to_string(random.Next() % 8);
    switch (random.Next() % 8) {
      case 0: IgnoreError(cluster.Drop(node, name), "it may not be there"); break;
      case 1:
        cluster.Execute(node, change::ReplaceOffer{.number = static_cast<uint32_t>(i % 20),
                                                   .throughput = {.manual = 500}});
        break;
      case 2:
        cluster.Execute(node, change::ChangeKeys{{{.key = std::to_string(i), .only_over = {}}}});
        break;
      case 3:
        if (i > 100 && cluster.View(0)->nodes.size() < 5) {
          EXPECT_TRUE(cluster.Join(node, "z" + std::to_string(i % 3)));
        }
        break;
      case 4:
        EXPECT_TRUE(cluster.Execute(
            node, change::SetPlacements{Plan(*cluster.View(node), {}, {.max_moves = 2})}));
        break;
      case 5: {
        uint64_t dropped =
            cluster.View(0)->dropped.empty() ? 0 : cluster.View(0)->dropped.begin()->first.value();
        cluster.Execute(node, change::Cleared{ContainerId(static_cast<uint32_t>(dropped))});
        break;
      }
      default: cluster.Create(node, name, {.manual = 10'000 * (1 + random.Next() % 3)});
    }
  }
  EXPECT_GT(cluster.View(0)->containers.size(), 2u);
  EXPECT_EQ(cluster.View(0)->nodes.size(), 5u);
  EXPECT_GT(cluster.View(0)->placements.size(), 3u);
  std::string view = cluster.nodes[0]->View();
  EXPECT_EQ(cluster.nodes[1]->View(), view);
  EXPECT_EQ(cluster.nodes[2]->View(), view);
  EXPECT_EQ(cluster.nodes[1]->notes.all, cluster.nodes[0]->notes.all);
  auto loaded = LoadView(*cluster.nodes[2]->set.state);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(Everything(**loaded), view) << "what is read from the disk is the same too";
}

TEST(CatalogClusterTest, ListenersHearOfWhatIsNewBeforeItShowsAndOfTheRestAfterwards) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "c", {.manual = 20'000}));
  uint32_t offer = cluster.View(0)->FindContainer("dbs/d/colls/c")->offer->number;
  ASSERT_TRUE(
      cluster.Execute(0, change::ReplaceOffer{.number = offer, .throughput = {.manual = 15'000}}));
  ASSERT_TRUE(cluster.Execute(0, change::ChangeKeys{{{.key = "k", .only_over = {}}}}));
  ASSERT_TRUE(cluster.Drop(0, "c").ok());
  std::vector<std::string> expected = {"created d/c (not shown)", "changed c (shown)", "key k",
                                       "dropped 2 (not shown)"};
  EXPECT_EQ(cluster.nodes[0]->notes.all, expected);
  EXPECT_EQ(cluster.nodes[1]->notes.all, expected);
}

TEST(CatalogClusterTest, AChangedThroughputOfADatabaseIsToldForThoseThatShareIt) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.Run(cluster.nodes[0]->catalog.CreateDatabase("d", {.manual = 400})));
  ASSERT_TRUE(cluster.Create(0, "shares"));
  ASSERT_TRUE(cluster.Create(0, "own", {.manual = 400}));
  uint32_t offer = cluster.View(0)->FindDatabase("d")->offer->number;
  ASSERT_TRUE(
      cluster.Execute(0, change::ReplaceOffer{.number = offer, .throughput = {.manual = 500}}));
  EXPECT_EQ(cluster.nodes[0]->notes.all.back(), "changed shares (shown)");
  EXPECT_EQ(cluster.nodes[0]->notes.all.size(), 3u);
}

TEST(CatalogClusterTest, ASnapshotTakesThePlaceOfEverythingAndListenersHearWhatIsDifferent) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "stays"));
  ASSERT_TRUE(cluster.Create(0, "goes"));
  TestSet& follower = cluster.nodes[1]->set;
  follower.held = true;
  ASSERT_TRUE(cluster.Drop(0, "goes").ok());
  storage::OperationId id{1, 2};
  ASSERT_TRUE(cluster.Execute(0, change::ChangeKeys{{{.key = "k", .only_over = {}}}}, id));
  ASSERT_TRUE(cluster.Create(0, "comes"));
  cluster.nodes[1]->notes.all.clear();
  follower.Install(cluster.nodes[0]->set, cluster.nodes[0]->catalog.Outcomes());
  // While the records are read more is applied.
  ASSERT_TRUE(cluster.Create(0, "later"));
  cluster.RunReady();
  EXPECT_EQ(cluster.nodes[1]->View(), cluster.nodes[0]->View());
  EXPECT_EQ(cluster.nodes[1]->notes.all,
            (std::vector<std::string>{"created d/comes (not shown)", "created d/later (not shown)",
                                      "dropped 1 (not shown)", "key k"}));
  EXPECT_EQ(cluster.nodes[1]->catalog.applied(), Lsn(cluster.log.size()));
  // The outcomes came with it.
  cluster.leader = 1;
  ++cluster.term;
  size_t entries = cluster.log.size();
  EXPECT_TRUE(cluster.Execute(1, change::ChangeKeys{{{.key = "other", .only_over = {}}}}, id));
  EXPECT_EQ(cluster.log.size(), entries);
}

TEST(CatalogClusterTest, AnEtagIsLaterThanAllBeforeAlsoIfTheNewLeadersClockIsBehind) {
  Cluster cluster(2);
  cluster.clock.Advance(std::chrono::hours(1));
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "a"));
  cluster.clock.Advance(-std::chrono::hours(1));
  cluster.leader = 1;
  ASSERT_TRUE(cluster.Create(1, "b"));
  auto view = cluster.View(0);
  EXPECT_GT(view->FindContainer("dbs/d/colls/b")->etag, view->FindContainer("dbs/d/colls/a")->etag);
}

// --- changes that are sent -----------------------------------------------------------------------

TEST(CatalogClusterTest, WhatWasMadeThroughAFollowerIsFoundThereAtOnce) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(1).ok());
  cluster.nodes[1]->set.held = true;
  auto release = [](Cluster& cluster) -> Task<> {
    co_await runtime::Sleep(std::chrono::milliseconds(100));
    cluster.nodes[1]->set.held = false;
    cluster.nodes[1]->set.CatchUp();
  };
  cluster.pool.at(0).Spawn(release(cluster));
  auto made = cluster.Create(1, "c");
  ASSERT_TRUE(made) << made.error().ToString();
  auto found = cluster.View(1)->FindContainer("dbs/d/colls/c");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(EncodeContainer(**made), EncodeContainer(*found));
}

TEST(CatalogClusterTest, AFollowerThatIsFarBehindDoesNotHoldTheAnswerForEver) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(1).ok());
  cluster.nodes[1]->set.held = true;
  Instant began = cluster.clock.Now();
  EXPECT_TRUE(cluster.Create(1, "c"));
  EXPECT_LT(cluster.clock.Now() - began, std::chrono::seconds(6));
}

TEST(CatalogClusterTest, ARefusalComesBackAsItIs) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "c"));
  Status here = cluster.Create(0, "c").error();
  Status there = cluster.Create(1, "c").error();
  EXPECT_EQ(there.code(), Code::kAlreadyExists);
  EXPECT_EQ(there.message(), here.message());
  EXPECT_EQ(cluster.Drop(1, "x").code(), Code::kNotFound);
}

TEST(CatalogClusterTest, ALostAnswerIsAskedForAgainAndGivesTheFirstOutcome) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  cluster.on_send = [](size_t tries) { return tries < 3 ? Code::kUnknownOutcome : Code::kOk; };
  auto made = cluster.Create(1, "c");
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_EQ(cluster.tries, 3u);
  EXPECT_EQ(cluster.log.size(), 2u);
  EXPECT_EQ((*made)->id, ContainerId(1));
  cluster.tries = 0;
  EXPECT_TRUE(cluster.Drop(1, "c").ok()) << "the second drop must not say that there is none";
}

TEST(CatalogClusterTest, TheNextLeaderKnowsTheOutcomeToo) {
  Cluster cluster(3);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  cluster.on_send = [&cluster](size_t tries) {
    if (tries == 1) {
      return Code::kUnknownOutcome;
    }
    cluster.leader = 2;
    ++cluster.term;
    return Code::kOk;
  };
  auto made = cluster.Create(1, "c");
  ASSERT_TRUE(made) << made.error().ToString();
  EXPECT_EQ(cluster.log.size(), 2u);
}

TEST(CatalogClusterTest, AChangeWaitsForANewLeader) {
  Cluster cluster(2);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  cluster.leader.reset();
  cluster.on_send = [&cluster](size_t tries) {
    if (tries == 5) {
      cluster.leader = 0;
    }
    return tries < 5 ? Code::kUnavailable : Code::kOk;
  };
  EXPECT_TRUE(cluster.Create(1, "c"));
}

TEST(CatalogClusterTest, WithoutALeaderAChangeFailsAfterAWhile) {
  Cluster cluster(2);
  cluster.leader.reset();
  Instant began = cluster.clock.Now();
  EXPECT_EQ(cluster.CreateDatabase(1).code(), Code::kNotLeader);
  EXPECT_GT(cluster.clock.Now() - began, std::chrono::seconds(8));
  EXPECT_LE(cluster.clock.Now() - began, std::chrono::seconds(10));
}

TEST(CatalogClusterTest, AChangeThatMayHaveBeenDoneIsNotCalledUndone) {
  Cluster cluster(2);
  cluster.on_send = [](size_t tries) {
    return tries == 1 ? Code::kUnknownOutcome : Code::kUnavailable;
  };
  EXPECT_EQ(cluster.CreateDatabase(1).code(), Code::kUnknownOutcome);
}

TEST(CatalogClusterTest, MalformedChangesAndThoseWithoutAnIdAreRefused) {
  Cluster cluster(1);
  CatalogChange change{.id = {}, .what = change::DropDatabase{.name = "d"}};
  for (const std::string& bytes : {std::string(), std::string("xyz"), change.Encode()}) {
    std::string answer = cluster.Run(cluster.nodes[0]->catalog.HandleForwarded(bytes));
    EXPECT_EQ(DecodeAnswer(answer).error().code(), Code::kInvalidArgument);
  }
}

// --- changes whose fate is open ------------------------------------------------------------------

TEST(CatalogClusterTest, AChangeIsNotEvaluatedBesideOneThatMayStillBeApplied) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  cluster.nodes[0]->catalog.SetForward(nullptr);  // so that nothing is tried again
  cluster.fail_commit = Code::kUnknownOutcome;
  cluster.kept = true;
  EXPECT_EQ(cluster.Create(0, "c").error().code(), Code::kUnknownOutcome);
  EXPECT_EQ(cluster.View(0)->FindContainer("dbs/d/colls/c"), nullptr);
  EXPECT_EQ(cluster.Create(0, "c").error().code(), Code::kAlreadyExists);
  EXPECT_EQ(cluster.View(0)->containers.size(), 1u);
}

TEST(CatalogClusterTest, IdsOfAChangeWhoseFateIsOpenAreNotGivenOutAgain) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  cluster.nodes[0]->catalog.SetForward(nullptr);
  cluster.fail_commit = Code::kUnknownOutcome;
  EXPECT_FALSE(cluster.Create(0, "c"));
  auto made = cluster.Create(0, "c");
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->id, ContainerId(2));
  EXPECT_EQ((*made)->map->ranges()[0].id, PartitionId(2));
  EXPECT_EQ(cluster.View(0)->next.container, 3u);
}

TEST(CatalogClusterTest, OnlyTheLastThousandOutcomesAreKept) {
  Cluster cluster(1);
  storage::OperationId id{1, 1};
  ASSERT_TRUE(cluster.Execute(0, change::CreateDatabase{.name = "first"}, id));
  EXPECT_TRUE(cluster.Execute(0, change::CreateDatabase{.name = "first"}, id));
  for (int i = 0; i < 1000; ++i) {
    cluster.Execute(0, change::ChangeKeys{{{.key = std::to_string(i), .only_over = {}}}});
  }
  EXPECT_EQ(cluster.Execute(0, change::CreateDatabase{.name = "first"}, id).error().code(),
            Code::kAlreadyExists);
}

// --- keys, nodes, placements ---------------------------------------------------------------------

TEST(CatalogClusterTest, AKeyIsReplacedOnlyOverTheValuesThatAreNamed) {
  Cluster cluster(1);
  auto set = [&](std::string key, std::vector<std::string> only_over) {
    auto result = cluster.Execute(
        0, change::ChangeKeys{{{.key = std::move(key), .only_over = std::move(only_over)}}});
    return result->keys->keys[0];
  };
  EXPECT_EQ(set("a", {""}), "a");
  size_t entries = cluster.log.size();
  EXPECT_EQ(set("b", {"", "x"}), "a");
  EXPECT_EQ(cluster.log.size(), entries);
  EXPECT_EQ(set("b", {"", "a"}), "b");
  EXPECT_EQ(set("c", {}), "c");
}

TEST(CatalogClusterTest, TheFirstNodeMakesAClusterWithEveryGroupOnIt) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "c", {.manual = 20'000}));
  EXPECT_FALSE(cluster.View(0)->clustered());
  EXPECT_TRUE(cluster.View(0)->placements.empty());
  auto joined = cluster.Join(0);
  ASSERT_TRUE(joined);
  auto view = cluster.View(0);
  EXPECT_NE(joined->cluster, 0u);
  EXPECT_EQ(joined->cluster, view->cluster);
  EXPECT_EQ(joined->node, NodeId(1));
  ASSERT_EQ(view->placements.size(), 3u) << "the catalog's and those of two partitions";
  std::set<uint64_t> replicas;
  for (const auto& [group, placement] : view->placements) {
    ASSERT_EQ(placement->members.size(), 1u);
    EXPECT_EQ(placement->members, placement->founders);
    EXPECT_EQ(placement->members[0].node, NodeId(1));
    EXPECT_TRUE(replicas.insert(placement->members[0].replica.value()).second);
  }
  EXPECT_EQ(joined->meta_replica, view->FindPlacement(GroupId(0))->members[0].replica);
}

TEST(CatalogClusterTest, LaterNodesAreStandbysOfTheCatalogAndKnowTheOthers) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.Join(0));
  uint64_t first = cluster.View(0)->cluster;
  auto joined = cluster.Join(0, "zone");
  ASSERT_TRUE(joined);
  EXPECT_EQ(joined->node, NodeId(2));
  EXPECT_EQ(joined->cluster, first);
  ASSERT_EQ(joined->nodes.size(), 2u);
  EXPECT_EQ(joined->nodes[1].zone, "zone");
  auto meta = cluster.View(0)->FindPlacement(GroupId(0));
  EXPECT_EQ(meta->epoch, 2u);
  EXPECT_EQ(meta->voters(), 1u);
  EXPECT_EQ(meta->Find(NodeId(2))->replica, joined->meta_replica);
  EXPECT_FALSE(meta->founds(joined->meta_replica));
}

TEST(CatalogClusterTest, ANodeThatAsksAgainUnderTheSameIdIsTheSameNode) {
  Cluster cluster(1);
  change::AddNode node{.address = "host:1", .version = 1};
  auto first = cluster.Execute(0, node, {5, 6});
  auto again = cluster.Execute(0, node, {5, 6});
  ASSERT_TRUE(first && again);
  EXPECT_EQ(*first->joined, *again->joined);
  EXPECT_EQ(cluster.View(0)->nodes.size(), 1u);
}

TEST(CatalogClusterTest, ANewContainerIsPlacedAndADroppedOneLeavesNothing) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(cluster.Join(0));
  }
  cluster.nodes[0]->notes.all.clear();
  ASSERT_TRUE(cluster.Create(0, "c", {.manual = 20'000}));
  EXPECT_EQ(
      cluster.nodes[0]->notes.all,
      (std::vector<std::string>{"created d/c (not shown)", "placed 1 at 1", "placed 2 at 1"}));
  for (const auto& range : cluster.View(0)->FindContainer("dbs/d/colls/c")->map->ranges()) {
    auto placement = cluster.View(0)->FindPlacement(GroupId(range.id.value()));
    ASSERT_NE(placement, nullptr);
    EXPECT_EQ(placement->voters(), 3u);
    EXPECT_EQ(placement->members, placement->founders);
  }
  ASSERT_TRUE(cluster.Drop(0, "c").ok());
  EXPECT_EQ(cluster.View(0)->placements.size(), 1u);
  EXPECT_TRUE(cluster.View(0)->dropped.empty());
  EXPECT_EQ(cluster.nodes[0]->notes.all.back(), "unplaced 2");
}

TEST(CatalogClusterTest, TheNodeThatDriversComputeLeadsAPartitionOfATable) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cluster.Execute(
        0, change::AddNode{.address = "host:" + std::to_string(i), .version = kNewestFormat}));
  }
  auto table = *types::Document::FromJson(
      R"({"id":"t","cassandra":{},"partitionKey":{"paths":["/a"],"kind":"Token","version":2}})");
  auto made =
      cluster.Run(cluster.nodes[0]->catalog.CreateContainer("d", table, {.manual = 40'000}));
  ASSERT_TRUE(made);
  ASSERT_EQ((*made)->map->ranges().size(), 4u);
  std::vector<uint32_t> leaders;
  for (const auto& range : (*made)->map->ranges()) {
    auto placement = cluster.View(0)->FindPlacement(GroupId(range.id.value()));
    leaders.push_back(placement->members.front().node.value());
  }
  EXPECT_EQ(leaders, (std::vector<uint32_t>{2, 3, 4, 1}));
}

TEST(CatalogClusterTest, APlacementChangesOnlyFromTheOneThatWasSeen) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Join(0));
  ASSERT_TRUE(cluster.Create(0, "c"));
  ASSERT_TRUE(cluster.Join(0));
  ASSERT_TRUE(cluster.Join(0));
  auto set = [&](uint64_t epoch, std::vector<PlacedReplica> members) {
    auto result = cluster.Execute(
        0, change::SetPlacements{
               {{.group = GroupId(1), .epoch = epoch, .members = std::move(members)}}});
    return result ? Code::kOk : result.error().code();
  };
  auto before = cluster.View(0)->FindPlacement(GroupId(1));
  std::vector<PlacedReplica> members = New({2, 3});
  members.push_back(before->members[0]);
  EXPECT_EQ(set(1, members), Code::kOk);
  EXPECT_EQ(set(1, members), Code::kPreconditionFailed);
  auto after = cluster.View(0)->FindPlacement(GroupId(1));
  EXPECT_EQ(after->epoch, 2u);
  EXPECT_EQ(after->founders, before->members);
  std::set<ReplicaId> ids;
  for (const PlacedReplica& member : after->members) {
    EXPECT_NE(member.replica, ReplicaId());
    EXPECT_TRUE(ids.insert(member.replica).second);
  }
  EXPECT_EQ(set(2, New({1})), Code::kInvalidArgument) << "fewer than three";
  EXPECT_EQ(set(2, New({1, 2, 2})), Code::kInvalidArgument) << "two on one node";
  EXPECT_EQ(set(2, New({1, 2, 9})), Code::kInvalidArgument) << "no such node";
  members = after->members;
  members[0].replica = ReplicaId(99);
  EXPECT_EQ(set(2, members), Code::kInvalidArgument) << "an id that nobody gave out";
}

TEST(CatalogClusterTest, NodesChangeAndARemovedOneStaysRemoved) {
  Cluster cluster(1);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(cluster.Join(0));
  }
  auto change = [&](change::ChangeNode what) {
    auto result = cluster.Execute(0, std::move(what));
    return result ? Code::kOk : result.error().code();
  };
  EXPECT_EQ(change({.node = NodeId(2), .address = "other:2", .version = 7}), Code::kOk);
  EXPECT_EQ(cluster.View(0)->FindNode(NodeId(2))->address, "other:2");
  EXPECT_EQ(cluster.View(0)->FindNode(NodeId(2))->version, 7u);
  EXPECT_EQ(change({.node = NodeId(9), .zone = "z"}), Code::kNotFound);
  EXPECT_EQ(change({.node = NodeId(2), .address = "nonsense"}), Code::kInvalidArgument);
  EXPECT_EQ(change({.node = NodeId(2), .state = NodeState::kDraining}), Code::kOk);
  EXPECT_EQ(change({.node = NodeId(2), .state = NodeState::kActive}), Code::kOk);
  EXPECT_EQ(change({.node = NodeId(2), .state = NodeState::kRemoved}), Code::kOk);
  EXPECT_EQ(change({.node = NodeId(2), .state = NodeState::kActive}), Code::kForbidden);
  EXPECT_EQ(change({.node = NodeId(1), .state = NodeState::kRemoved}), Code::kForbidden)
      << "the only voter of the catalog";
  EXPECT_EQ(cluster.Join(0)->node, NodeId(5));
}

TEST(CatalogClusterTest, WhatEveryNodeCanReadIsWrittenAndNoOlderNodeComesBack) {
  Cluster cluster(1);
  auto add = [&](uint32_t version) {
    auto result = cluster.Execute(0, change::AddNode{.address = "host:1", .version = version});
    return result ? Code::kOk : result.error().code();
  };
  auto change = [&](uint32_t node, uint32_t version) {
    auto result = cluster.Execute(0, change::ChangeNode{.node = NodeId(node), .version = version});
    return result ? Code::kOk : result.error().code();
  };
  auto format = [&] { return cluster.View(0)->next.format; };
  ASSERT_EQ(add(1), Code::kOk);
  ASSERT_EQ(add(1), Code::kOk);
  ASSERT_EQ(add(2), Code::kOk);
  EXPECT_EQ(format(), 1u);
  EXPECT_EQ(change(1, 2), Code::kOk);
  EXPECT_EQ(format(), 1u) << "one of them is still old";
  EXPECT_EQ(change(1, 1), Code::kOk) << "and may be taken back";
  EXPECT_EQ(change(1, 2), Code::kOk);
  EXPECT_EQ(change(2, 2), Code::kOk);
  EXPECT_EQ(format(), 2u);
  EXPECT_EQ(change(2, 1), Code::kForbidden);
  EXPECT_EQ(add(1), Code::kForbidden);
  EXPECT_EQ(add(3), Code::kOk);
  EXPECT_EQ(format(), 2u);
}

TEST(CatalogClusterTest, WhatAnOlderNodeCannotReadOfAnOfferIsNotWritten) {
  Cluster cluster(1);
  ASSERT_TRUE(cluster.Join(0));  // of version 1
  ASSERT_TRUE(cluster.CreateDatabase(0).ok());
  ASSERT_TRUE(cluster.Create(0, "c", {.manual = 20'000}));
  auto container = [&] { return cluster.View(0)->FindContainer("dbs/d/colls/c"); };
  auto change = [&](change::ReplaceOffer what) {
    what.number = container()->offer->number;
    auto result = cluster.Execute(0, what);
    return result ? Code::kOk : result.error().code();
  };
  change::ReplaceOffer buckets{.buckets = partition::Buckets{.percent = {20}}};
  EXPECT_EQ(change({.throughput = {.manual = 400}}), Code::kOk);
  EXPECT_EQ(EncodeContainer(*container())[0], 1);
  EXPECT_EQ(change(buckets), Code::kForbidden);
  ASSERT_TRUE(cluster.Execute(0, change::ChangeNode{.node = NodeId(1), .version = 2}));
  EXPECT_EQ(change({.throughput = {.manual = 1'000}}), Code::kOk);
  EXPECT_EQ(change({.throughput = {.manual = 400}}), Code::kOk);
  EXPECT_EQ(change(buckets), Code::kOk);
  EXPECT_EQ(EncodeContainer(*container())[0], 2);
  EXPECT_EQ(container()->offer->highest, 1'000u);
}

}  // namespace
}  // namespace orrery::model
