// Placement: which nodes hold the replicas of a group. Pure functions of the catalog and of what is
// known about the nodes; the meta leader writes what they say, the leader of each group acts on it.
//
// A set has one replica on one or two nodes, three on three, four on more; once it had three it
// never has fewer. Nodes that are draining, removed, or silent for too long are left as soon as
// others can take their place. What is evenly spread is not touched.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "model/catalog_types.h"

namespace orrery::model {

struct PlacementSettings {
  size_t factor = 0;  // replicas of a set: 1, 3 or 4; 0: by the number of nodes
  // Silent for longer: it is taken to be gone for good.
  Duration replace_after = std::chrono::minutes(5);
  size_t max_moves = 4;                // sets in motion at a time; the meta group is not counted
  uint64_t reserve_bytes = 256 << 20;  // a node with less free than that takes no writes
};

// What is known about a node at the moment. One of which nothing is known is taken to be well.
struct NodeHealth {
  bool alive = true;
  Duration silent{};
  uint64_t free_bytes = std::numeric_limits<uint64_t>::max();
  size_t leaders = 0;  // replicas on it that lead
};

struct ClusterHealth {
  std::map<NodeId, NodeHealth> nodes;
  // Sets whose configuration is not yet what their placement says.
  std::set<GroupId> moving;
  std::map<GroupId, uint64_t> bytes;  // of a replica, where that is known

  NodeHealth Of(NodeId node) const;
};

// A node that replicas could be placed on.
struct NodeLoad {
  NodeId id;
  std::string zone;
  NodeState state = NodeState::kActive;
  bool alive = true;
  bool gone = false;  // for good, as far as anybody can know
  size_t replicas = 0;
  size_t leaders = 0;
  uint64_t free_bytes = std::numeric_limits<uint64_t>::max();

  // May be counted on: it is active, and alive or expected back.
  bool usable() const { return state == NodeState::kActive && !gone; }
};
// A node with less free gets a replica only if there is no other.
inline constexpr uint64_t kFreeBytesMin = uint64_t{1} << 30;

// All nodes that were not removed, in the order of ids. The meta group's replicas do not count.
std::vector<NodeLoad> LoadsOf(const CatalogView& view, const ClusterHealth& health,
                              const PlacementSettings& settings);

// How many replicas a set should have that had `had` (0: a new one). `pinned` as in the settings.
size_t ReplicaCount(size_t usable_nodes, size_t had, size_t pinned);
// How many voters the meta group should have: 1, 3 or 5.
size_t MetaVoters(size_t usable_nodes, size_t had = 0);

// Up to `count` nodes for new replicas of one set, which has others on `beside`. Alive ones first,
// then in the zones that the set uses least, then those with the fewest replicas, with the fewest
// leaders, with the lowest id.
std::vector<NodeId> PlaceNew(const std::vector<NodeLoad>& nodes, size_t count,
                             const std::vector<NodeId>& beside = {});
// The nodes of a new set, whose replicas are counted in `nodes` from now on; empty if none can take
// one. The first of them will lead: one that leads the fewest. While few nodes are alive a set of
// three may have founders that join when they are back. `wanted`: it leads instead, if it can.
std::vector<NodeId> PlaceNewSet(std::vector<NodeLoad>& nodes, size_t pinned, NodeId wanted = {});

// Where nodes stand on the ring of Cassandra's tokens, as clients see it: evenly, by their ids.
int64_t NodeToken(size_t place, size_t nodes);
// The place of the node that clients ask first for the middle of a range: the one whose token is
// the next, at it or behind it.
size_t NodeOfTokens(const types::EpkRange& range, size_t nodes);

// What should change now: most urgent first. Planned again when it is done, it gives nothing.
std::vector<PlacementChange> Plan(const CatalogView& view, const ClusterHealth& health,
                                  const PlacementSettings& settings);

// Whether a node may go: kForbidden if the sets on it have no place to go.
Status CanDrain(const CatalogView& view, NodeId node);
// The same for one that is no longer there: what only it has is lost.
Status CanRemove(const CatalogView& view, NodeId node);

}  // namespace orrery::model
