#include "model/placement.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace orrery::model {
namespace {

using std::chrono::minutes;

constexpr PlacementSettings kSettings{.replace_after = minutes(5), .max_moves = 1000};

// --- how many ------------------------------------------------------------------------------------

TEST(PlacementTest, ASetHasAsManyReplicasAsTheNodesAllow) {
  struct Row {
    size_t nodes, had, pinned, count;
  };
  const Row rows[] = {
      {0, 0, 0, 1}, {1, 0, 0, 1}, {2, 0, 0, 1}, {3, 0, 0, 3}, {4, 0, 0, 4}, {5, 0, 0, 4},
      {9, 0, 0, 4}, {1, 1, 0, 1}, {2, 1, 0, 1}, {3, 1, 0, 3}, {4, 3, 0, 4}, {3, 4, 0, 3},
      {2, 3, 0, 3}, {1, 4, 0, 3}, {0, 3, 0, 3}, {5, 1, 1, 1}, {5, 3, 1, 3}, {5, 4, 1, 3},
      {2, 0, 3, 1}, {5, 0, 3, 3}, {5, 4, 3, 3}, {3, 0, 4, 3}, {5, 0, 4, 4}, {1, 0, 4, 1},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(ReplicaCount(row.nodes, row.had, row.pinned), row.count)
        << row.nodes << " nodes, had " << row.had << ", pinned " << row.pinned;
  }
}

TEST(PlacementTest, TheCatalogHasOneThreeOrFiveVoters) {
  const size_t expected[] = {1, 1, 1, 3, 3, 5, 5, 5};
  for (size_t nodes = 0; nodes < std::size(expected); ++nodes) {
    EXPECT_EQ(MetaVoters(nodes), expected[nodes]) << nodes;
  }
  EXPECT_EQ(MetaVoters(2, 3), 3u);
  EXPECT_EQ(MetaVoters(4, 5), 3u);
}

// --- where ---------------------------------------------------------------------------------------

NodeLoad At(uint32_t id, std::string zone = "", size_t replicas = 0) {
  return {.id = NodeId(id), .zone = std::move(zone), .replicas = replicas};
}

std::vector<uint32_t> Ids(const std::vector<NodeId>& nodes) {
  std::vector<uint32_t> ids;
  for (NodeId node : nodes) {
    ids.push_back(node.value());
  }
  return ids;
}

TEST(PlacementTest, NewReplicasGoToDifferentZonesThenToTheEmptiestNodes) {
  struct Row {
    const char* what;
    std::vector<NodeLoad> nodes;
    size_t count;
    std::vector<uint32_t> beside;
    std::vector<uint32_t> placed;
  };
  NodeLoad dead = At(1);
  dead.alive = false;
  NodeLoad gone = At(1);
  gone.gone = true;
  NodeLoad draining = At(1);
  draining.state = NodeState::kDraining;
  NodeLoad full = At(1);
  full.free_bytes = 1 << 20;
  NodeLoad leading = At(1);
  leading.leaders = 3;
  const Row rows[] = {
      {"ties by id", {At(3), At(1), At(2)}, 2, {}, {1, 2}},
      {"fewest first", {At(1, "", 5), At(2, "", 4), At(3, "", 6)}, 2, {}, {2, 1}},
      {"zones before loads",
       {At(1, "a"), At(2, "a"), At(3, "b", 9), At(4, "c", 9)},
       3,
       {},
       {1, 3, 4}},
      {"zones as evenly as they go",
       {At(1, "a"), At(2, "a"), At(3, "a"), At(4, "b", 9), At(5, "b", 9)},
       4,
       {},
       {1, 4, 2, 5}},
      {"beside others", {At(1, "a"), At(2, "a"), At(3, "b")}, 1, {1}, {3}},
      {"no more than there are", {At(1), At(2)}, 3, {}, {1, 2}},
      {"the dead last", {dead, At(2, "", 9)}, 2, {}, {2, 1}},
      {"the full last", {full, At(2, "", 9)}, 2, {}, {2, 1}},
      {"never the gone", {gone, At(2)}, 2, {}, {2}},
      {"never the draining", {draining, At(2)}, 2, {}, {2}},
      {"fewest leaders", {leading, At(2)}, 1, {}, {2}},
      {"none", {}, 3, {}, {}},
  };
  for (const Row& row : rows) {
    std::vector<NodeId> beside;
    for (uint32_t id : row.beside) {
      beside.emplace_back(id);
    }
    EXPECT_EQ(Ids(PlaceNew(row.nodes, row.count, beside)), row.placed) << row.what;
  }
}

TEST(PlacementTest, ANewSetCountsOnNodesThatComeBackOnlyIfItMust) {
  struct Row {
    const char* what;
    std::vector<bool> alive;
    size_t pinned;
    std::vector<uint32_t> placed;
  };
  const Row rows[] = {
      {"all there", {true, true, true, true}, 0, {1, 2, 3, 4}},
      {"three of four will do", {true, false, true, true}, 0, {1, 3, 4}},
      {"one of three is away", {true, true, false}, 0, {1, 2, 3}},
      {"one of two is away", {false, true}, 0, {2}},
      {"pinned", {true, true, true, true}, 1, {1}},
  };
  for (const Row& row : rows) {
    std::vector<NodeLoad> nodes;
    for (bool alive : row.alive) {
      nodes.push_back(At(static_cast<uint32_t>(nodes.size() + 1)));
      nodes.back().alive = alive;
    }
    std::vector<uint32_t> placed = Ids(PlaceNewSet(nodes, row.pinned));
    std::ranges::sort(placed);
    EXPECT_EQ(placed, row.placed) << row.what;
    for (const NodeLoad& node : nodes) {
      EXPECT_EQ(node.replicas, std::ranges::count(placed, node.id.value())) << row.what;
    }
  }
}

TEST(PlacementTest, TheNodeThatIsWantedLeadsIfItCan) {
  std::vector<NodeLoad> nodes;
  for (uint32_t id = 1; id <= 6; ++id) {
    nodes.push_back(At(id));
  }
  for (uint32_t wanted : {6u, 6u, 3u}) {
    EXPECT_EQ(PlaceNewSet(nodes, 0, NodeId(wanted)).front(), NodeId(wanted));
  }
  EXPECT_EQ(PlaceNewSet(nodes, 0, NodeId(6)).size(), 4u);
  nodes[5].alive = false;
  EXPECT_NE(PlaceNewSet(nodes, 0, NodeId(6)).front(), NodeId(6));
  nodes[5].alive = true;
  nodes[5].state = NodeState::kDraining;
  EXPECT_NE(PlaceNewSet(nodes, 0, NodeId(6)).front(), NodeId(6));
}

TEST(PlacementTest, NodesShareTheTokensAsDriversComputeIt) {
  // A node has what stands between the token before its own and its own.
  EXPECT_EQ(NodeToken(0, 4), INT64_MIN);
  EXPECT_EQ(NodeToken(2, 4), 0);
  auto place = [](int64_t begin, int64_t end) {
    return NodeOfTokens({types::TokenEpk(begin), types::TokenEpk(end)}, 4);
  };
  EXPECT_EQ(place(INT64_MIN, INT64_MIN / 2), 1u);
  EXPECT_EQ(place(INT64_MIN / 2, 0), 2u);
  EXPECT_EQ(place(0, INT64_MAX / 2), 3u);
  EXPECT_EQ(NodeOfTokens({types::TokenEpk(INT64_MAX / 2), types::EpkRange().max}, 4), 0u);
}

TEST(PlacementTest, ManyNewSetsSpreadEvenly) {
  std::vector<NodeLoad> nodes;
  for (uint32_t id = 1; id <= 10; ++id) {
    nodes.push_back(At(id, "z" + std::to_string(id % 5)));
  }
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(PlaceNewSet(nodes, 0).size(), 4u);
  }
  for (const NodeLoad& node : nodes) {
    EXPECT_NEAR(static_cast<double>(node.replicas), 400, 2);
    EXPECT_NEAR(static_cast<double>(node.leaders), 100, 2);
  }
}

// --- plans ---------------------------------------------------------------------------------------

// A cluster in a few words: nodes 1, 2, ... and sets of nodes; the catalog is on the voters named
// and a standby everywhere else.
struct World {
  explicit World(uint32_t nodes) {
    view.cluster = 1;
    for (uint32_t id = 1; id <= nodes; ++id) {
      Node(id, NodeState::kActive);
    }
  }
  void Node(uint32_t id, NodeState state, std::string zone = "") {
    view.nodes[NodeId(id)] = std::make_shared<const NodeRecord>(
        NodeRecord{.id = NodeId(id), .zone = std::move(zone), .state = state});
  }
  void Silent(uint32_t id, Duration how_long) {
    health.nodes[NodeId(id)] = {.alive = false, .silent = how_long};
  }
  void Set(uint64_t group, const std::vector<uint32_t>& nodes) {
    Placement placement;
    for (uint32_t node : nodes) {
      placement.members.push_back({ReplicaId(next_replica++), NodeId(node), true});
    }
    placement.founders = placement.members;
    view.placements[GroupId(group)] = std::make_shared<const Placement>(placement);
  }
  void Meta(const std::vector<uint32_t>& voters) {
    Set(0, voters);
    Placement placement = *view.placements[GroupId(0)];
    for (const auto& [id, node] : view.nodes) {
      if (placement.Find(id) == nullptr) {
        placement.members.push_back({ReplicaId(next_replica++), id, false});
      }
    }
    view.placements[GroupId(0)] = std::make_shared<const Placement>(placement);
  }
  std::vector<PlacementChange> Next() const { return Plan(view, health, settings); }
  // As the catalog does it.
  void Do(const std::vector<PlacementChange>& changes) {
    for (const PlacementChange& change : changes) {
      Placement placement = *view.placements.at(change.group);
      ASSERT_EQ(placement.epoch, change.epoch);
      std::set<NodeId> nodes;
      for (const PlacedReplica& member : change.members) {
        const PlacedReplica* old = placement.Find(member.node);
        EXPECT_TRUE(member.replica == ReplicaId() ||
                    (old != nullptr && old->replica == member.replica));
        EXPECT_TRUE(nodes.insert(member.node).second);
      }
      size_t had = placement.voters();
      placement.members = change.members;
      EXPECT_TRUE(had < 3 || placement.voters() >= 3);
      ++placement.epoch;
      for (PlacedReplica& member : placement.members) {
        if (member.replica == ReplicaId()) {
          member.replica = ReplicaId(next_replica++);
        }
      }
      view.placements[change.group] = std::make_shared<const Placement>(placement);
    }
  }
  // Plans once and does it; the nodes of a group then, voters first, standbys after a bar.
  std::string After(uint64_t group) {
    Do(Next());
    return Members(group);
  }
  std::string Members(uint64_t group) const {
    std::string text;
    std::string standbys;
    for (const PlacedReplica& member : view.placements.at(GroupId(group))->members) {
      (member.voter ? text : standbys) += member.node.ToString();
    }
    return standbys.empty() ? text : text + "|" + standbys;
  }

  CatalogView view;
  ClusterHealth health;
  PlacementSettings settings = kSettings;
  uint64_t next_replica = 1;
};

TEST(PlanTest, OneSet) {
  struct Row {
    const char* what;
    uint32_t nodes;
    std::vector<uint32_t> members;
    std::string after;
    std::vector<uint32_t> away = {};  // silent for a minute
    std::vector<uint32_t> gone = {};  // for ten
    std::vector<uint32_t> draining = {};
    std::vector<uint32_t> removed = {};
    size_t factor = 0;
  };
  const std::vector<Row> rows = {
      {"nothing to do on one", 1, {1}, "1"},
      {"nothing to do on two", 2, {1}, "1"},
      {"one becomes three at once", 3, {1}, "123"},
      {"one becomes four at once", 4, {1}, "1234"},
      {"three become four", 4, {1, 2, 3}, "1234"},
      {"four stay four", 6, {1, 2, 3, 4}, "1234"},
      {"one does not become two", 3, {1}, "1", {3}},
      {"one of four new ones is away", 4, {1}, "123", {4}},
      {"a short silence changes nothing", 5, {1, 2, 3, 4}, "1234", {2}},
      {"a long silence does", 5, {1, 2, 3, 4}, "1345", {}, {2}},
      {"no other node is alive: wait", 5, {1, 2, 3, 4}, "1234", {5}, {2}},
      {"three of four left", 4, {1, 2, 3, 4}, "134", {}, {2}},
      {"two of three left: wait", 3, {1, 2, 3}, "123", {}, {2}},
      {"three without one, a new node", 4, {1, 2, 3}, "134", {}, {2}},
      {"two of four gone: no quorum, wait", 6, {1, 2, 3, 4}, "1234", {}, {1, 2}},
      {"the only replica is gone: wait", 4, {2}, "2", {}, {2}},
      {"draining", 5, {1, 2, 3, 4}, "1245", {}, {}, {3}},
      {"draining to three", 4, {1, 2, 3, 4}, "124", {}, {}, {3}},
      {"draining two", 6, {1, 2, 3, 4}, "1456", {}, {}, {2, 3}},
      {"draining two, room for one", 5, {1, 2, 3, 4}, "145", {}, {}, {2, 3}},
      {"draining two, one of the others is away", 6, {1, 2, 3, 4}, "1245", {6}, {}, {2, 3}},
      {"draining the only one", 4, {1}, "234", {}, {}, {1}},
      {"draining the only one, two of three others are there: wait", 4, {1}, "1", {4}, {}, {1}},
      {"draining the only one of two", 2, {1}, "2", {}, {}, {1}},
      {"draining where nothing else is", 1, {1}, "1", {}, {}, {1}},
      {"removed", 5, {1, 2, 3, 4}, "1345", {}, {}, {}, {2}},
      {"removed, three left", 4, {1, 2, 3, 4}, "134", {}, {}, {}, {2}},
      {"pinned to one", 5, {1}, "1", {}, {}, {}, {}, 1},
      {"pinned to three", 5, {1}, "123", {}, {}, {}, {}, 3},
      {"pinned to three, had four", 5, {1, 2, 3, 4}, "123", {}, {}, {}, {}, 3},
      {"pinned to one, had three", 5, {1, 2, 3}, "123", {}, {}, {}, {}, 1},
      {"pinned to one, draining", 3, {1}, "2", {}, {}, {1}, {}, 1},
  };
  for (const Row& row : rows) {
    World world(row.nodes);
    for (uint32_t id : row.draining) {
      world.Node(id, NodeState::kDraining);
    }
    for (uint32_t id : row.removed) {
      world.Node(id, NodeState::kRemoved);
    }
    for (uint32_t id : row.away) {
      world.Silent(id, minutes(1));
    }
    for (uint32_t id : row.gone) {
      world.Silent(id, minutes(10));
    }
    world.settings.factor = row.factor;
    world.Set(7, row.members);
    EXPECT_EQ(world.After(7), row.after) << row.what;
    EXPECT_TRUE(world.Next().empty()) << row.what << ": planned again";
  }
}

TEST(PlanTest, TheCatalog) {
  struct Row {
    const char* what;
    uint32_t nodes;
    std::vector<uint32_t> voters;
    std::string after;
    std::vector<uint32_t> gone = {};
    std::vector<uint32_t> draining = {};
    std::vector<uint32_t> removed = {};
    std::vector<uint32_t> away = {};
  };
  const std::vector<Row> rows = {
      {"alone", 1, {1}, "1"},
      {"two", 2, {1}, "1|2"},
      {"three", 3, {1}, "123"},
      {"four", 4, {1, 2, 3}, "123|4"},
      {"five", 5, {1, 2, 3}, "12345"},
      {"seven", 7, {1, 2, 3, 4, 5}, "12345|67"},
      {"a voter is gone: another takes its place", 4, {1, 2, 3}, "134|2", {2}},
      {"a voter is gone: there is no other", 3, {1, 2, 3}, "123", {2}},
      {"one of five is gone", 5, {1, 2, 3, 4, 5}, "123|45", {4}},
      {"one of five is gone, a sixth is there", 6, {1, 2, 3, 4, 5}, "12356|4", {4}},
      {"a voter is gone, not yet room for five", 6, {1, 2, 3}, "134|256", {2}, {}, {}, {6}},
      {"draining", 4, {1, 2, 3}, "134|2", {}, {2}},
      {"draining the only voter", 2, {1}, "2|1", {}, {1}},
      {"a removed one goes", 4, {1, 2, 3}, "134", {}, {}, {2}},
      {"a removed standby goes", 4, {1, 2, 3}, "123", {}, {}, {4}},
  };
  for (const Row& row : rows) {
    World world(row.nodes);
    world.Meta(row.voters);
    for (uint32_t id : row.draining) {
      world.Node(id, NodeState::kDraining);
    }
    for (uint32_t id : row.removed) {
      world.Node(id, NodeState::kRemoved);
    }
    for (uint32_t id : row.away) {
      world.Silent(id, minutes(1));
    }
    for (uint32_t id : row.gone) {
      world.Silent(id, minutes(10));
    }
    EXPECT_EQ(world.After(0), row.after) << row.what;
    EXPECT_TRUE(world.Next().empty()) << row.what << ": planned again";
  }
}

TEST(PlanTest, NewVotersOfTheCatalogKeepTheirReplicas) {
  World world(3);
  world.Meta({1});
  ReplicaId standby = world.view.placements[GroupId(0)]->Find(NodeId(3))->replica;
  world.Do(world.Next());
  EXPECT_EQ(world.view.placements[GroupId(0)]->Find(NodeId(3))->replica, standby);
}

TEST(PlanTest, ASetIsReplacedInTheZonesThatItLacks) {
  World world(0);
  world.Node(1, NodeState::kActive, "a");
  world.Node(2, NodeState::kActive, "b");
  world.Node(3, NodeState::kActive, "c");
  world.Node(4, NodeState::kActive, "a");
  world.Node(5, NodeState::kActive, "c");
  world.settings.factor = 3;
  world.Set(7, {1, 2, 3});
  world.Silent(3, minutes(10));
  EXPECT_EQ(world.After(7), "125");
}

TEST(PlanTest, WhatIsEvenlySpreadIsLetBeAndNewReplicasGoToTheNewNode) {
  World world(4);
  for (uint64_t group = 1; group <= 20; ++group) {
    world.Set(group, {1, 2, 3, 4});
  }
  world.Node(5, NodeState::kActive);
  EXPECT_TRUE(world.Next().empty()) << "balancing is not done here";
  world.Silent(1, minutes(10));
  world.Do(world.Next());
  for (uint64_t group = 1; group <= 20; ++group) {
    EXPECT_EQ(world.Members(group), "2345");
  }
}

TEST(PlanTest, ReplacementsSpreadOverTheOthers) {
  World world(9);
  for (uint64_t group = 1; group <= 50; ++group) {
    world.Set(group, {1, 2, 3, 4});
  }
  world.Silent(1, minutes(10));
  world.Do(world.Next());
  std::map<uint32_t, int> count;
  for (const auto& [group, placement] : world.view.placements) {
    for (const PlacedReplica& member : placement->members) {
      ++count[member.node.value()];
    }
  }
  EXPECT_EQ(count[1], 0);
  for (uint32_t node = 5; node <= 9; ++node) {
    EXPECT_EQ(count[node], 10) << node;
  }
}

TEST(PlanTest, OnlySoManySetsMoveAtATimeTheMostUrgentFirst) {
  World world(6);
  world.Meta({1, 2, 3, 4, 5});
  world.settings.max_moves = 2;
  world.Set(1, {2, 3, 4});     // could grow
  world.Set(2, {2});           // should grow
  world.Set(3, {1, 2, 3, 4});  // must be repaired
  world.Set(4, {1, 2, 3, 4});
  world.Silent(1, minutes(10));
  std::vector<uint64_t> order;
  for (int round = 0; round < 3; ++round) {
    std::vector<PlacementChange> changes = world.Next();
    for (const PlacementChange& change : changes) {
      order.push_back(change.group.value());
      world.health.moving.insert(change.group);
    }
    world.Do(changes);
    EXPECT_TRUE(world.Next().empty()) << "two are in motion";
    world.health.moving.clear();
  }
  EXPECT_EQ(order, (std::vector<uint64_t>{0, 3, 4, 2, 1}));
}

TEST(PlanTest, ASetInMotionIsChangedAgainOnlyIfItsGoalIsGone) {
  World world(6);
  world.Set(1, {1, 2, 3});
  world.health.moving.insert(GroupId(1));
  world.settings.max_moves = 1;
  EXPECT_TRUE(world.Next().empty()) << "to grow it can wait";
  world.Set(2, {4, 5, 6});
  EXPECT_TRUE(world.Next().empty());
  world.Silent(3, minutes(10));
  std::vector<PlacementChange> changes = world.Next();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_EQ(changes[0].group, GroupId(1));
}

TEST(PlanTest, ANodeWithoutRoomGetsNothing) {
  World world(4);
  world.Set(1, {1, 2, 3});
  world.health.nodes[NodeId(4)] = {.free_bytes = 100};
  EXPECT_TRUE(world.Next().empty());
  world.settings.reserve_bytes = 20 << 20;
  world.health.bytes[GroupId(1)] = 200 << 20;
  world.health.nodes[NodeId(4)] = {.free_bytes = 220 << 20};
  EXPECT_TRUE(world.Next().empty()) << "it would be full then";
}

TEST(PlanTest, ASmallDiskWithRoomGetsAReplicaIfThereIsNoOther) {
  World world(4);
  world.settings.reserve_bytes = 20 << 20;
  world.health.bytes[GroupId(1)] = 200 << 20;
  world.Set(1, {1, 2, 3});
  world.health.nodes[NodeId(4)] = {.free_bytes = 300 << 20};
  ASSERT_EQ(world.Next().size(), 1u);
  EXPECT_EQ(world.Next().front().members.size(), 4u);
}

// Whatever happens: no set falls below three once it had three, no two replicas on a node, and when
// nothing happens any more the plan comes to rest.
TEST(PlanTest, AnyHistoryComesToRest) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    World world(1 + static_cast<uint32_t>(random.Next() % 3));
    world.settings.max_moves = 1 + random.Next() % 3;
    world.Meta({1});
    for (uint64_t group = 1; group <= 5; ++group) {
      world.Set(group, {1});
    }
    auto nodes = static_cast<uint32_t>(world.view.nodes.size());
    for (int step = 0; step < 40; ++step) {
      uint32_t node = 1 + static_cast<uint32_t>(random.Next() % nodes);
      auto record = world.view.nodes[NodeId(node)];
      switch (random.Next() % 6) {
        case 0:
          if (nodes < 9) {
            world.Node(++nodes, NodeState::kActive, "z" + std::to_string(random.Next() % 3));
          }
          break;
        case 1: world.Silent(node, minutes(random.Next() % 10)); break;
        case 2: world.health.nodes.erase(NodeId(node)); break;
        case 3:
          if (CanDrain(world.view, NodeId(node)).ok()) {
            world.Node(node, NodeState::kDraining, record->zone);
          }
          break;
        case 4:
          if (CanRemove(world.view, NodeId(node)).ok()) {
            world.Node(node, NodeState::kRemoved, record->zone);
          }
          break;
        default: break;
      }
      world.Do(world.Next());  // checks
    }
    int rounds = 0;
    for (auto changes = world.Next(); !changes.empty() && rounds < 100; changes = world.Next()) {
      world.Do(changes);
      ++rounds;
    }
    EXPECT_LT(rounds, 100) << "seed " << seed;
    for (const auto& [group, placement] : world.view.placements) {
      EXPECT_NE(group == GroupId(0) ? 0 : placement->members.size(), 2u) << "seed " << seed;
    }
  }
}

// --- nodes that go -------------------------------------------------------------------------------

TEST(PlacementTest, ANodeMayGoIfTheOthersCanTakeOver) {
  struct Row {
    const char* what;
    uint32_t nodes;
    std::vector<uint32_t> voters;
    std::vector<uint32_t> set;
    uint32_t node;
    Code drain;
    Code remove;
  };
  const Row rows[] = {
      {"the last", 1, {1}, {1}, 1, Code::kForbidden, Code::kForbidden},
      {"one of two, with the only replica", 2, {1}, {1}, 1, Code::kOk, Code::kForbidden},
      {"one of two, empty", 2, {1}, {1}, 2, Code::kOk, Code::kOk},
      {"one of three", 3, {1, 2, 3}, {1, 2, 3}, 2, Code::kForbidden, Code::kForbidden},
      {"one of four", 4, {1, 2, 3}, {1, 2, 3, 4}, 2, Code::kOk, Code::kOk},
      {"no such node", 4, {1, 2, 3}, {1, 2, 3}, 9, Code::kNotFound, Code::kNotFound},
  };
  for (const Row& row : rows) {
    World world(row.nodes);
    world.Meta(row.voters);
    world.Set(1, row.set);
    EXPECT_EQ(CanDrain(world.view, NodeId(row.node)).code(), row.drain) << row.what;
    EXPECT_EQ(CanRemove(world.view, NodeId(row.node)).code(), row.remove) << row.what;
  }
  World world(4);
  world.Meta({1, 2, 3});
  world.Node(4, NodeState::kDraining);
  EXPECT_EQ(CanDrain(world.view, NodeId(3)).code(), Code::kForbidden) << "one is draining already";
  world.Node(4, NodeState::kRemoved);
  EXPECT_EQ(CanRemove(world.view, NodeId(4)).code(), Code::kNotFound);
}

}  // namespace
}  // namespace orrery::model
