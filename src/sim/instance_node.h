// The real cluster in the simulator: each node is a cluster::Instance, from the engines to the
// router.
#pragma once

#include "sim/node.h"

namespace orrery::sim {

// One container of two partitions over all nodes of the run.
MakeNode InstanceCluster();

}  // namespace orrery::sim
