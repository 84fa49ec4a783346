// Balance: which replica should move, or be led elsewhere, so that nodes have alike to do. Pure
// functions of the catalog and of what is known about the nodes.
//
// One thing at a time (or a swap of two replicas), and only what brings nodes closer: first how
// full their disks are, then the number of replicas, then what they have to do as leaders. A hot
// node has others lead; where none of those who could is colder, a replica goes to one that is.
// Done again and again it comes to rest: each step makes its difference smaller and none of those
// before it larger.
#pragma once

#include <map>
#include <vector>

#include "model/catalog_types.h"
#include "model/placement.h"

namespace orrery::model {

struct GroupLoad {
  double bytes = 0;  // on the disk of each replica
  double units = 0;  // RU/s, over some time
};
using GroupLoads = std::map<GroupId, GroupLoad>;

// Nothing: all is well, or not everything is at rest. Zones that a set uses stay as many.
std::vector<PlacementChange> PlanBalance(const CatalogView& view, const ClusterHealth& health,
                                         const PlacementSettings& settings,
                                         const GroupLoads& loads);

}  // namespace orrery::model
