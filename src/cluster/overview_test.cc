#include "cluster/overview.h"

#include <gtest/gtest.h>

namespace orrery::cluster {
namespace {

using model::NodeState;

constexpr GroupId kSet{7};

// Nodes 1 to `nodes`, and one set with a voter on each of the first four; replica ids are 10 +
// node.
struct World {
  explicit World(uint32_t nodes, uint32_t voters) {
    view.cluster = 1;
    model::Placement placement;
    for (uint32_t id = 1; id <= nodes; ++id) {
      SetState(id, NodeState::kActive);
      reports.push_back({.node = NodeId(id), .reached = true});
    }
    ReplicaReport leader{.group = kSet, .node = NodeId(1)};
    leader.raft = {.replica = ReplicaId(11), .leads = true, .term = 2, .commit = Lsn(50)};
    for (uint32_t id = 1; id <= voters; ++id) {
      placement.members.push_back({.replica = ReplicaId(10 + id), .node = NodeId(id)});
      leader.raft.configuration.members.push_back({.id = ReplicaId(10 + id), .node = NodeId(id)});
      leader.raft.match.emplace_back(ReplicaId(10 + id), Lsn(50));
    }
    leader.figures = PartitionFigures{.totals = {.bytes = 100, .items = 5}};
    reports[0].replicas.push_back(std::move(leader));
    view.placements[kSet] = std::make_shared<const model::Placement>(std::move(placement));
  }

  void SetState(uint32_t id, NodeState state) {
    view.nodes[NodeId(id)] = std::make_shared<const model::NodeRecord>(
        model::NodeRecord{.id = NodeId(id), .state = state});
  }
  void Kill(uint32_t id) {
    health.nodes[NodeId(id)] = {.alive = false, .silent = std::chrono::seconds(9)};
    reports[id - 1].reached = false;
    reports[id - 1].replicas.clear();
  }
  ReplicaReport& leader() { return reports[0].replicas[0]; }
  SetOverview Set(size_t factor = 0) const {
    return Summarize(view, health, reports, factor).sets.at(0);
  }

  model::CatalogView view;
  model::ClusterHealth health;
  std::vector<NodeReport> reports;
};

TEST(OverviewTest, ASetThatIsWellHasAllItShouldHave) {
  SetOverview set = World(4, 4).Set();
  EXPECT_EQ(set.leader, NodeId(1));
  EXPECT_EQ(set.term, 2u);
  EXPECT_EQ(set.wanted, 4u);
  EXPECT_EQ(set.alive, 4u);
  EXPECT_FALSE(set.under_replicated());
  EXPECT_FALSE(set.moving);
  EXPECT_EQ(set.members.at(3).lag, 0u);
}

TEST(OverviewTest, ADeadNodeMakesItsSetsUnderReplicatedAlsoAfterTheyHaveShrunk) {
  World world(4, 4);
  world.Kill(4);
  EXPECT_TRUE(world.Set().under_replicated());
  World shrunk(4, 3);
  shrunk.Kill(4);
  EXPECT_TRUE(shrunk.Set().under_replicated());
  shrunk.SetState(4, NodeState::kRemoved);
  EXPECT_FALSE(shrunk.Set().under_replicated());
}

TEST(OverviewTest, ANodeCanBeLostIfAMajorityOfItsSetsIsAliveWithoutIt) {
  struct Row {
    const char* what;
    uint32_t nodes;
    uint32_t voters;
    std::vector<uint32_t> dead;
    uint32_t node;
    Code code;
  };
  const Row rows[] = {
      {"one of four that are well", 4, 4, {}, 4, Code::kOk},
      {"a dead one, and the others are well", 4, 4, {4}, 4, Code::kOk},
      {"one that is alive, and another is dead", 4, 4, {3}, 4, Code::kForbidden},
      {"one that is alive, and two are dead", 4, 4, {2, 3}, 4, Code::kForbidden},
      {"one that is alive, and three are dead", 4, 4, {1, 2, 3}, 4, Code::kForbidden},
      {"a dead one that another dead one needs", 4, 4, {3, 4}, 4, Code::kForbidden},
      {"one of three voters", 4, 3, {}, 3, Code::kOk},
      {"a dead one of three voters", 4, 3, {3}, 3, Code::kOk},
      {"one of three voters, and another is dead", 4, 3, {2}, 3, Code::kForbidden},
      {"one that has no voters", 4, 3, {2, 3}, 4, Code::kOk},
      {"the only voter", 2, 1, {}, 1, Code::kForbidden},
  };
  for (const Row& row : rows) {
    World world(row.nodes, row.voters);
    for (uint32_t id : row.dead) {
      world.Kill(id);
    }
    Overview overview = Summarize(world.view, world.health, world.reports, 0);
    EXPECT_EQ(CanLose(overview, NodeId(row.node)).code(), row.code) << row.what;
  }
}

// Its placement says that another took the place of the dead one, but the set has not followed yet.
TEST(OverviewTest, WhatCountsForALossIsWhoVotesNow) {
  World world(5, 4);
  world.Kill(3);
  model::Placement placement = *world.view.placements[kSet];
  placement.members[2] = {.replica = ReplicaId(15), .node = NodeId(5)};
  world.view.placements[kSet] = std::make_shared<const model::Placement>(placement);
  auto code = [&] {
    return CanLose(Summarize(world.view, world.health, world.reports, 0), NodeId(4)).code();
  };
  EXPECT_EQ(code(), Code::kForbidden);
  world.leader().raft.configuration = model::ConfigurationOf(placement.members);
  EXPECT_EQ(code(), Code::kOk);
  world.reports[1].log_healthy = false;
  EXPECT_EQ(code(), Code::kForbidden) << "one whose log failed does not vote";
}

TEST(OverviewTest, FewNodesWantFewReplicas) {
  EXPECT_FALSE(World(1, 1).Set().under_replicated());
  EXPECT_FALSE(World(2, 1).Set().under_replicated());
  EXPECT_TRUE(World(3, 1).Set().under_replicated());
  EXPECT_FALSE(World(4, 3).Set(3).under_replicated());
}

TEST(OverviewTest, ASetWithoutALeaderIsUnderReplicatedAndShownAsItIsPlaced) {
  World world(4, 4);
  world.Kill(1);
  SetOverview set = world.Set();
  EXPECT_EQ(set.leader, NodeId());
  EXPECT_EQ(set.members.size(), 4u);
  EXPECT_EQ(set.alive, 0u);
  EXPECT_TRUE(set.under_replicated());
}

TEST(OverviewTest, LagIsWhatIsCommittedAndMissing) {
  World world(4, 4);
  world.leader().raft.match[1].second = Lsn(43);
  world.leader().raft.match[2].second = Lsn(55);
  world.leader().raft.match[3].second = Lsn();
  SetOverview set = world.Set();
  EXPECT_EQ(set.members[1].lag, 7u);
  EXPECT_EQ(set.members[2].lag, 0u);
  EXPECT_FALSE(set.members[3].lag.has_value());
}

TEST(OverviewTest, ASetIsInMotionUntilItIsAsPlaced) {
  World world(4, 4);
  world.leader().raft.configuration.members[3].role = replication::Role::kStandby;
  SetOverview set = world.Set();
  EXPECT_TRUE(set.moving);
  EXPECT_EQ(set.alive, 3u);
  World changing(4, 4);
  changing.leader().raft.changing = true;
  EXPECT_TRUE(changing.Set().moving);
}

TEST(OverviewTest, OfTwoLeadersTheNewerCounts) {
  World world(4, 4);
  ReplicaReport newer = world.leader();
  newer.node = NodeId(3);
  newer.raft.term = 5;
  newer.figures->totals.items = 6;
  world.reports[2].replicas.push_back(newer);
  Overview overview = Summarize(world.view, world.health, world.reports, 0);
  EXPECT_EQ(overview.sets.at(0).leader, NodeId(3));
  EXPECT_EQ(overview.figures.at(kSet).totals.items, 6);
}

TEST(OverviewTest, NodesAreCountedAndTheRemovedLeftOut) {
  World world(4, 4);
  world.SetState(2, NodeState::kRemoved);
  world.Kill(3);
  Overview overview = Summarize(world.view, world.health, world.reports, 0);
  ASSERT_EQ(overview.nodes.size(), 3u);
  EXPECT_EQ(overview.nodes[0].leaders, 1u);
  EXPECT_EQ(overview.nodes[0].replicas, 1u);
  EXPECT_FALSE(overview.nodes[1].alive);
  EXPECT_FALSE(overview.nodes[1].reached);
}

}  // namespace
}  // namespace orrery::cluster
