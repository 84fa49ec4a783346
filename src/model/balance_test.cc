#include "model/balance.h"

#include <algorithm>
#include <numeric>
#include <ranges>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::model {
namespace {

constexpr double kDisk = 2e12;

struct World {
  void Node(uint32_t id, std::string zone = "", NodeState state = NodeState::kActive) {
    view.nodes[NodeId(id)] = std::make_shared<const NodeRecord>(
        NodeRecord{.id = NodeId(id), .zone = std::move(zone), .state = state});
    health.nodes[NodeId(id)] = {};
  }
  void Set(uint64_t group, const std::vector<uint32_t>& nodes, double size = 0, double units = 0) {
    Placement placement;
    for (uint32_t node : nodes) {
      placement.members.push_back({ReplicaId(next_replica++), NodeId(node), true});
    }
    placement.founders = placement.members;
    view.placements[GroupId(group)] = std::make_shared<const Placement>(placement);
    loads[GroupId(group)] = {size, units};
  }
  std::vector<PlacementChange> Next() {
    std::map<NodeId, double> used;
    for (const auto& [group, placement] : view.placements) {
      for (const PlacedReplica& member : placement->members) {
        used[member.node] += loads[group].bytes;
      }
    }
    for (auto& [id, node] : health.nodes) {
      node.free_bytes = static_cast<uint64_t>(kDisk - used[id]);
    }
    return PlanBalance(view, health, {}, loads);
  }
  void Do(const PlacementChange& change) {
    Placement placement = *view.placements.at(change.group);
    ASSERT_EQ(placement.epoch++, change.epoch);
    placement.members = change.members;
    std::set<NodeId> nodes;
    for (PlacedReplica& member : placement.members) {
      EXPECT_TRUE(nodes.insert(member.node).second);
      if (member.replica == ReplicaId()) {
        member.replica = ReplicaId(next_replica++);
      }
    }
    view.placements[change.group] = std::make_shared<const Placement>(placement);
  }
  // Until nothing is left to do; how many steps that took.
  int Rest() {
    int steps = 0;
    for (auto changes = Next(); !changes.empty() && steps < 1000; changes = Next()) {
      for (const PlacementChange& change : changes) {
        Do(change);
      }
      ++steps;
    }
    return steps;
  }
  std::map<NodeId, size_t> Counts(bool first = false) const {
    std::map<NodeId, size_t> counts;
    for (const auto& [id, node] : view.nodes) {
      counts[id] = 0;
    }
    for (const auto& [group, placement] : view.placements) {
      for (const PlacedReplica& member : placement->members) {
        counts[member.node] += !first || &member == &placement->members.front() ? 1 : 0;
      }
    }
    return counts;
  }
  static size_t Spread(const std::map<NodeId, size_t>& counts) {
    auto [least, most] = std::ranges::minmax(counts | std::views::values);
    return most - least;
  }
  size_t Zones(uint64_t group) const {
    std::set<std::string> zones;
    for (const PlacedReplica& member : view.placements.at(GroupId(group))->members) {
      zones.insert(view.FindNode(member.node)->zone);
    }
    return zones.size();
  }

  CatalogView view;
  ClusterHealth health;
  GroupLoads loads;
  uint64_t next_replica = 1;
};

World FourNodes(uint64_t sets) {
  World world;
  for (uint32_t id = 1; id <= 4; ++id) {
    world.Node(id);
  }
  for (uint64_t group = 1; group <= sets; ++group) {
    auto first = static_cast<uint32_t>(group % 4);
    world.Set(group, {1 + first, 1 + (first + 1) % 4, 1 + (first + 2) % 4, 1 + (first + 3) % 4});
  }
  return world;
}

TEST(BalanceTest, WhatIsEvenlySpreadIsLetBe) { EXPECT_EQ(FourNodes(8).Rest(), 0); }

TEST(BalanceTest, ANewNodeFillsAndLeads) {
  World world = FourNodes(10);
  world.Node(5);
  EXPECT_GT(world.Rest(), 0);
  EXPECT_EQ(world.Counts()[NodeId(5)], 8u);
  EXPECT_LE(World::Spread(world.Counts()), 1u);
  EXPECT_LE(World::Spread(world.Counts(true)), 1u);
}

TEST(BalanceTest, NothingMovesWhileSomethingElseDoes) {
  World world = FourNodes(10);
  world.Node(5);
  world.health.moving.insert(GroupId(3));
  EXPECT_TRUE(world.Next().empty());
  world.health.moving.clear();
  world.view.balancer_paused = true;
  EXPECT_TRUE(world.Next().empty());
}

TEST(BalanceTest, ASilentOrDrainingNodeGetsNothing) {
  World world = FourNodes(10);
  world.Node(5);
  world.health.nodes[NodeId(5)].alive = false;
  world.Node(6, "", NodeState::kDraining);
  EXPECT_EQ(world.Rest(), 0);
}

TEST(BalanceTest, AFullNodeGivesReplicasToEmptierOnes) {
  World world;
  for (uint32_t id = 1; id <= 6; ++id) {
    world.Node(id);
  }
  const double large = 20e9;
  for (uint64_t group = 1; group <= 4; ++group) {
    world.Set(group, {1, 2, 3}, large);
    world.Set(10 + group, {4, 5, 6});
  }
  EXPECT_GT(world.Rest(), 0);
  std::map<NodeId, double> fill;
  for (const auto& [group, placement] : world.view.placements) {
    for (const PlacedReplica& member : placement->members) {
      fill[member.node] += world.loads[group].bytes;
    }
  }
  for (const auto& [node, bytes] : fill) {
    EXPECT_LE(bytes, 2 * large + 1e7) << node.ToString();
  }
}

TEST(BalanceTest, AHotNodeHasOthersLead) {
  World world = FourNodes(8);  // node 1 leads 4 and 8
  world.loads[GroupId(4)].units = 5000;
  world.loads[GroupId(8)].units = 4000;
  EXPECT_GT(world.Rest(), 0);
  auto leader = [&](uint64_t group) {
    return world.view.placements.at(GroupId(group))->members.front().node;
  };
  EXPECT_NE(leader(4), leader(8));
  EXPECT_EQ(world.Rest(), 0);
  // A little more here or there is no reason.
  world.loads[GroupId(4)].units = 5300;
  world.loads[GroupId(8)].units = 3700;
  EXPECT_EQ(world.Rest(), 0);
}

TEST(BalanceTest, WhatIsHotMovesToNodesThatHaveNothingToDo) {
  World world;
  for (uint32_t id = 1; id <= 8; ++id) {
    world.Node(id);
  }
  for (uint64_t group = 1; group <= 8; ++group) {
    auto first = static_cast<uint32_t>(group % 4);
    std::vector<uint32_t> nodes{1 + first, 1 + (first + 1) % 4, 1 + (first + 2) % 4,
                                1 + (first + 3) % 4};
    world.Set(group, nodes, 1e9, 3000);
    for (uint32_t& node : nodes) {
      node += 4;
    }
    world.Set(100 + group, nodes, 1e9);
  }
  EXPECT_GT(world.Rest(), 0);
  std::map<NodeId, double> units;
  for (const auto& [group, placement] : world.view.placements) {
    units[placement->members.front().node] += world.loads[group].units;
  }
  EXPECT_EQ(units.size(), 8u);
  for (const auto& [node, sum] : units) {
    EXPECT_EQ(sum, 3000) << node.ToString();
  }
  EXPECT_LE(World::Spread(world.Counts()), 1u);
}

// Any cluster comes to rest, and no set uses fewer zones than before.
TEST(BalanceTest, AnyClusterComesToRest) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SeededRandom random(seed);
    World world;
    auto nodes = static_cast<uint32_t>(3 + random.Next() % 8);
    for (uint32_t id = 1; id <= nodes; ++id) {
      world.Node(id, "z" + std::to_string(random.Next() % 4));
    }
    uint64_t sets = 1 + random.Next() % 30;
    std::map<uint64_t, size_t> zones;
    for (uint64_t group = 1; group <= sets; ++group) {
      std::vector<uint32_t> all(nodes);
      std::iota(all.begin(), all.end(), 1);
      for (size_t i = all.size(); i > 1; --i) {
        std::swap(all[i - 1], all[random.Next() % i]);
      }
      all.resize(std::min<size_t>(all.size(), random.Next() % 4 == 0 ? 3 : 4));
      bool hot = random.Next() % 3 == 0;
      world.Set(group, all, static_cast<double>(random.Next() % 40) * 1e9,
                hot ? static_cast<double>(random.Next() % 10'000) : 0);
      zones[group] = world.Zones(group);
    }
    EXPECT_LT(world.Rest(), 300) << "seed " << seed;
    for (const auto& [group, count] : zones) {
      EXPECT_GE(world.Zones(group), count) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace orrery::model
