#include "sim/clusters.h"

#include <utility>

#include "base/mutants.h"
#include "sim/instance_node.h"
#include "sim/toy_node.h"

namespace orrery::sim {

namespace {

constexpr std::pair<ToyBug, std::string_view> kToyBugs[] = {
    {ToyBug::kAcknowledgeEarly, "acknowledge_early"},
    {ToyBug::kReadFollowers, "read_followers"},
    {ToyBug::kIgnoreSession, "ignore_session"},
    {ToyBug::kIgnoreBound, "ignore_bound"},
    {ToyBug::kIgnoreEtag, "ignore_etag"},
    {ToyBug::kForgetWrite, "forget_write"},
    {ToyBug::kApplyOther, "apply_other"},
    {ToyBug::kSkipEntry, "skip_entry"},
    {ToyBug::kAllLead, "all_lead"},
    {ToyBug::kNeverResend, "never_resend"},
};

ClusterKind Toy() {
  ClusterKind kind{.name = "toy"};
  for (const auto& [bug, name] : kToyBugs) {
    kind.mutants.push_back(name);
  }
  kind.make = [](std::string_view mutant) {
    for (const auto& [bug, name] : kToyBugs) {
      if (name == mutant) {
        return ToyCluster(bug);
      }
    }
    return ToyCluster(ToyBug::kNone);
  };
  return kind;
}

ClusterKind Orrery() {
  return {.name = "orrery", .mutants = MutantNames(), .make = [](std::string_view mutant) {
            ActivateMutant(mutant);
            return InstanceCluster();
          }};
}

}  // namespace

std::vector<std::string_view> MutantNames() {
  std::vector<std::string_view> names;
  for (const auto& [mutant, name] : kMutantNames) {
    if (kMutantsBuilt && mutant != Mutant::kNone) {
      names.push_back(name);
    }
  }
  return names;
}

void ActivateMutant(std::string_view wanted) {
  for (const auto& [mutant, name] : kMutantNames) {
    if (name == wanted) {
      Activate(mutant);
    }
  }
}

const std::vector<ClusterKind>& ClusterKinds() {
  static const std::vector<ClusterKind> kinds = {Orrery(), Toy()};
  return kinds;
}

}  // namespace orrery::sim
