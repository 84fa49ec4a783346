// Instance: the care for a cluster. The leader of the meta group looks at all nodes once a second,
// lets the pure functions of model/placement decide, and writes what they say; the leaders of the
// groups do the rest.
#include "base/log.h"
#include "cluster/instance.h"
#include "cluster/report.h"

namespace orrery::cluster {

using model::CatalogView;
using replication::CallKind;
using runtime::Task;

namespace {

constexpr Duration kStopPause = std::chrono::milliseconds(20);

}  // namespace

model::ClusterHealth Instance::Health() const {
  model::ClusterHealth health;
  for (const auto& [id, node] : catalog_->view()->nodes) {
    Duration silent = raft_->SilentFor(id);
    health.nodes[id] = {.alive = raft_->Alive(id), .silent = silent};
  }
  return health;
}

Task<> Instance::Care(runtime::Gate::Pass pass) {
  while (!stopping_) {
    if (catalog_->leads() && catalog_->view()->clustered()) {
      co_await CareOnce();
    }
    CheckOne();
    for (Duration waited{}; waited < options_.care_interval && !stopping_; waited += kStopPause) {
      co_await runtime::Sleep(kStopPause);
    }
  }
}

Task<> Instance::CareOnce() {
  std::vector<NodeReport> reports = co_await Inspect();
  auto view = catalog_->view();
  model::ClusterHealth health = Health();
  std::map<GroupId, replication::Configuration> led;
  for (const NodeReport& report : reports) {
    if (!report.reached) {
      continue;
    }
    model::NodeHealth& node = health.nodes[report.node];
    node.free_bytes = report.free_bytes;
    for (const ReplicaReport& replica : report.replicas) {
      if (replica.raft.leads) {
        ++node.leaders;
        led[replica.group] = replica.raft.configuration;
      }
    }
  }
  for (const auto& [group, placement] : view->placements) {
    auto found = led.find(group);
    if (found == led.end() ||
        !found->second.SameMembers(model::ConfigurationOf(placement->members))) {
      health.moving.insert(group);
    }
  }
  std::vector<model::PlacementChange> plan = model::Plan(*view, health, options_.placement);
  if (plan.empty() || !catalog_->leads()) {
    co_return;
  }
  Status status = co_await catalog_->SetPlacements(std::move(plan));
  if (!status.ok()) {
    log::Warning("placements could not be changed", {{"why", status.ToString()}});
  }
}

// Begins the comparison of one set that is led here and whose turn it is.
void Instance::CheckOne() {
  Instant now = clock_.Now();
  for (const auto& set : raft_->All()) {
    if (!set->leads()) {
      continue;
    }
    auto [last, fresh] = checked_.try_emplace(set->group(), now);
    if (!fresh && now - last->second >= options_.check_interval) {
      last->second = now;
      set->worker().Post([set] { set->Check(); });
      return;
    }
  }
}

Task<NodeReport> Instance::InspectHere() {
  NodeReport report{.node = self(),
                    .reached = true,
                    .free_bytes = options_.free_bytes ? options_.free_bytes()
                                                      : std::numeric_limits<uint64_t>::max()};
  // One visit to each worker, not one for each group.
  std::map<runtime::Worker*, std::vector<std::shared_ptr<replication::RaftReplicaSet>>> by_worker;
  for (const auto& set : raft_->All()) {
    by_worker[&set->worker()].push_back(set);
  }
  for (auto& [worker, sets] : by_worker) {
    auto look = [this, &sets, &report]() -> Task<> {
      for (const auto& set : sets) {
        report.replicas.push_back({set->group(), self(), set->view()});
      }
      co_return;
    };
    co_await runtime::OnWorker(*worker, look);
  }
  co_return report;
}

Task<NodeReport> Instance::InspectNode(NodeId node) {
  if (node == self()) {
    co_return co_await InspectHere();
  }
  NodeReport report{.node = node};
  if (!raft_->Alive(node)) {
    co_return report;
  }
  std::string request(1, static_cast<char>(CallKind::kInspect));
  if (Result<std::string> answer = co_await transport_->Call(node, std::move(request))) {
    if (auto decoded = DecodeReport(*answer)) {
      report = std::move(*decoded);
      report.node = node;
      report.reached = true;
    }
  }
  co_return report;
}

Task<std::vector<NodeReport>> Instance::Inspect() {
  std::vector<NodeReport> reports;
  for (const auto& [id, node] : catalog_->view()->nodes) {
    if (node->state != model::NodeState::kRemoved) {
      reports.push_back(co_await InspectNode(id));
    }
  }
  co_return reports;
}

// A replica that lost what it had promised never returns under its id.
Task<> Instance::ReplaceBroken(GroupId group, ReplicaId broken) {
  auto placement = catalog_->view()->FindPlacement(group);
  if (placement == nullptr) {
    co_return;
  }
  model::PlacementChange change{
      .group = group, .epoch = placement->epoch, .members = placement->members};
  for (model::PlacedReplica& member : change.members) {
    if (member.replica == broken) {
      member.replica = ReplicaId();
    }
  }
  Status status = co_await catalog_->SetPlacements({std::move(change)});
  if (!status.ok()) {
    log::Warning("a broken replica could not be replaced",
                 {{"group", group.ToString()}, {"why", status.ToString()}});
  }
}

Task<Status> Instance::Drain(NodeId node) {
  if (Status can = model::CanDrain(*catalog_->view(), node); !can.ok()) {
    co_return can;
  }
  co_return co_await catalog_->ChangeNode({.node = node, .state = model::NodeState::kDraining});
}

Task<Status> Instance::Remove(NodeId node) {
  if (Status can = model::CanRemove(*catalog_->view(), node); !can.ok()) {
    co_return can;
  }
  co_return co_await catalog_->ChangeNode({.node = node, .state = model::NodeState::kRemoved});
}

}  // namespace orrery::cluster
