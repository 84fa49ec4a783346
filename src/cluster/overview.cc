#include "cluster/overview.h"

#include <algorithm>
#include <set>
#include <string>

namespace orrery::cluster {

using model::CatalogView;
using model::ClusterHealth;

namespace {

constexpr GroupId kMetaGroup(0);

using Leaders = std::map<GroupId, const ReplicaReport*>;

// Of two that say so, the one of the newer term.
Leaders FindLeaders(const std::vector<NodeReport>& reports) {
  Leaders leaders;
  for (const NodeReport& report : reports) {
    for (const ReplicaReport& replica : report.replicas) {
      const ReplicaReport*& known = leaders[replica.group];
      if (replica.raft.leads && (known == nullptr || known->raft.term < replica.raft.term)) {
        known = &replica;
      }
    }
  }
  return leaders;
}

NodeOverview DescribeNode(const std::shared_ptr<const model::NodeRecord>& record,
                          const ClusterHealth& health, const std::vector<NodeReport>& reports) {
  model::NodeHealth known = health.Of(record->id);
  NodeOverview node{.record = record, .alive = known.alive, .silent = known.silent};
  auto report = std::ranges::find(reports, record->id, &NodeReport::node);
  if (report == reports.end() || !report->reached) {
    return node;
  }
  node.reached = true;
  node.free_bytes = report->free_bytes;
  node.log_healthy = report->log_healthy;
  node.disk_full = report->disk_full;
  for (const ReplicaReport& replica : report->replicas) {
    if (replica.group != kMetaGroup) {
      ++node.replicas;
      node.leaders += replica.raft.leads ? 1 : 0;
    }
  }
  return node;
}

std::optional<uint64_t> LagOf(const replication::RaftView& leader, ReplicaId replica) {
  for (const auto& [id, match] : leader.match) {
    if (id == replica && match != Lsn()) {
      return leader.commit > match ? leader.commit.value() - match.value() : 0;
    }
  }
  return std::nullopt;  // it has not answered this leader yet
}

// By replica, of all nodes that were reached.
std::map<ReplicaId, Lsn> FindApplied(const std::vector<NodeReport>& reports) {
  std::map<ReplicaId, Lsn> applied;
  for (const NodeReport& report : reports) {
    for (const ReplicaReport& replica : report.replicas) {
      applied[replica.raft.replica] = replica.raft.applied;
    }
  }
  return applied;
}

SetOverview DescribeSet(GroupId group, const model::Placement& placement,
                        const ReplicaReport* leader, const ClusterHealth& health,
                        const std::map<ReplicaId, Lsn>& applied) {
  SetOverview set{.group = group};
  replication::Configuration placed = model::ConfigurationOf(placement.members);
  if (leader != nullptr) {
    set.leader = leader->node;
    set.term = leader->raft.term;
    set.moving = leader->raft.changing || !leader->raft.configuration.SameMembers(placed);
  }
  const auto& members = leader != nullptr ? leader->raft.configuration.members : placed.members;
  for (const replication::Member& member : members) {
    MemberOverview shown{.replica = member.id,
                         .node = member.node,
                         .voter = member.role == replication::Role::kVoter,
                         .alive = health.Of(member.node).alive};
    if (leader != nullptr) {
      shown.lag = LagOf(leader->raft, member.id);
    }
    if (auto at = applied.find(member.id); at != applied.end()) {
      shown.applied = at->second;
    }
    set.alive += shown.voter && shown.alive && leader != nullptr ? 1 : 0;
    set.members.push_back(shown);
  }
  std::ranges::sort(set.members, {}, &MemberOverview::node);
  return set;
}

}  // namespace

Overview Summarize(const CatalogView& view, const ClusterHealth& health,
                   const std::vector<NodeReport>& reports, size_t factor) {
  Overview overview;
  size_t active = 0;
  for (const auto& [id, record] : view.nodes) {
    if (record->state != model::NodeState::kRemoved) {
      overview.nodes.push_back(DescribeNode(record, health, reports));
      active += record->state == model::NodeState::kActive ? 1 : 0;
    }
  }
  Leaders leaders = FindLeaders(reports);
  std::map<ReplicaId, Lsn> applied = FindApplied(reports);
  for (const auto& [group, placement] : view.placements) {
    const ReplicaReport* leader = leaders[group];
    SetOverview set = DescribeSet(group, *placement, leader, health, applied);
    set.wanted = group == kMetaGroup ? model::MetaVoters(active, placement->voters())
                                     : model::ReplicaCount(active, placement->voters(), factor);
    overview.sets.push_back(std::move(set));
    if (leader != nullptr && leader->figures) {
      overview.figures[group] = *leader->figures;
    }
  }
  return overview;
}

Status CanLose(const Overview& overview, NodeId node) {
  std::set<NodeId> well;
  for (const NodeOverview& other : overview.nodes) {
    if (other.alive && other.log_healthy && other.record->id != node) {
      well.insert(other.record->id);
    }
  }
  for (const SetOverview& set : overview.sets) {
    size_t voters = 0;
    size_t left = 0;
    bool concerned = false;
    for (const MemberOverview& member : set.members) {
      if (member.voter) {
        ++voters;
        left += well.contains(member.node) ? 1 : 0;
        concerned |= member.node == node;
      }
    }
    if (concerned && left <= voters / 2) {
      std::string name = set.group == kMetaGroup ? "the catalog" : "set " + set.group.ToString();
      return Status(Code::kForbidden,
                    "Without node " + node.ToString() + " " + std::to_string(left) + " of the " +
                        std::to_string(voters) + " voters of " + name +
                        " are alive, which is no majority: bring others back first.");
    }
  }
  return Status::Ok();
}

}  // namespace orrery::cluster
