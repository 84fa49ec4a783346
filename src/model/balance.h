// Balance: which replica should move, or be led elsewhere, so that nodes have alike to do. Pure
// functions of the catalog and of what is known about the nodes.
//
// One thing at a time, and only what brings nodes closer: first how full their disks are, then the
// number of replicas, then the number of leaders. Done again and again it comes to rest: each step
// makes its difference smaller and none of those before it larger.
#pragma once

#include <map>
#include <optional>

#include "model/catalog_types.h"
#include "model/placement.h"

namespace orrery::model {

// What a group's replicas take on their disks.
using GroupBytes = std::map<GroupId, double>;

// Nothing: all is well, or not everything is at rest. Zones that a set uses stay as many.
std::optional<PlacementChange> PlanBalance(const CatalogView& view, const ClusterHealth& health,
                                           const PlacementSettings& settings,
                                           const GroupBytes& bytes);

}  // namespace orrery::model
