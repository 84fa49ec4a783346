// The clusters that the simulator can run, and what can be planted into them.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/node.h"

namespace orrery::sim {

struct ClusterKind {
  std::string_view name;
  std::vector<std::string_view> mutants;
  // `mutant` is one of those, or empty.
  std::function<MakeNode(std::string_view mutant)> make;
};

// The mutants of base/mutants.h, for clusters of the real code; none in a build without them.
std::vector<std::string_view> MutantNames();
void ActivateMutant(std::string_view name);  // empty: none

// The first is what is run unless another is named.
const std::vector<ClusterKind>& ClusterKinds();

}  // namespace orrery::sim
