// Overview: a cluster as operators see it: nodes, sets, what is under-replicated or in motion. A
// pure function of the catalog and of what the nodes say.
//
// A set is under-replicated while fewer of its voters are alive than it should have by the number
// of active nodes, also when nothing can be done about it; it is in motion while its configuration
// is not yet what its placement says.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "cluster/instance.h"
#include "model/catalog_types.h"
#include "model/placement.h"

namespace orrery::cluster {

struct NodeOverview {
  std::shared_ptr<const model::NodeRecord> record;
  bool alive = false;
  Duration silent{};
  bool reached = false;  // the rest is known
  uint64_t free_bytes = 0;
  bool log_healthy = true;
  bool disk_full = false;
  // Of partitions; the catalog is on every node.
  size_t leaders = 0;
  size_t replicas = 0;
};

struct MemberOverview {
  ReplicaId replica;
  NodeId node;
  bool voter = true;
  bool alive = false;
  std::optional<uint64_t> lag;  // entries that are committed and that it does not have yet
  std::optional<Lsn> applied;   // as its node says
};

struct SetOverview {
  GroupId group;
  NodeId leader;                        // 0: nobody who could be reached
  uint64_t term = 0;                    // of the leader
  std::vector<MemberOverview> members;  // as the leader knows them, else as they are placed
  size_t wanted = 1;                    // voters
  size_t alive = 0;                     // voters
  bool moving = false;
  bool under_replicated() const { return alive < wanted; }
};

struct Overview {
  std::vector<NodeOverview> nodes;              // all but those that were removed, by id
  std::vector<SetOverview> sets;                // by group
  std::map<GroupId, PartitionFigures> figures;  // of partitions, by their leaders
};

// `factor` as in PlacementSettings.
Overview Summarize(const model::CatalogView& view, const model::ClusterHealth& health,
                   const std::vector<NodeReport>& reports, size_t factor);

// Whether every set goes on when this node is gone from one moment to the next. It counts as a
// voter until the others have agreed to do without it, for which a majority of all must be alive:
// kForbidden if some set has none without it. One that is dead already is no loss to the others.
Status CanLose(const Overview& overview, NodeId node);

}  // namespace orrery::cluster
