// Instance: the care for a cluster. The leader of the meta group looks at all nodes once a second,
// lets the pure functions of model/placement decide, and writes what they say; the leaders of the
// groups do the rest.
#include <algorithm>

#include "base/log.h"
#include "cluster/call_within.h"
#include "cluster/instance.h"
#include "cluster/overview.h"
#include "cluster/report.h"
#include "runtime/when_all.h"

namespace orrery::cluster {

using model::CatalogView;
using replication::CallKind;
using runtime::Task;

namespace {

constexpr Duration kStopPause = std::chrono::milliseconds(20);
// How much the newest second counts in what is thought to be the load of a partition.
constexpr double kSmoothing = 0.1;
// A node that does not say how it stands within that is left out.
constexpr Duration kInspectTime = std::chrono::seconds(2);

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
    if (!clustered()) {
      co_await CareAlone();
    } else {
      if (catalog_->leads() && catalog_->view()->clustered()) {
        co_await CareOnce();
      }
      co_await AskWhetherRemoved();
      CheckOne();
    }
    for (Duration waited{}; waited < options_.care_interval && !stopping_; waited += kStopPause) {
      co_await runtime::Sleep(kStopPause);
    }
  }
}

Task<> Instance::CareAlone() {
  PartitionLoads loads;
  for (const auto& replica : replicas_.All()) {
    loads[replica->id()] = {.bytes = static_cast<double>(replica->totals().bytes),
                            .used = replica->governor().UsedLastSecond(clock_.Now()).value()};
  }
  co_await balancer_->Once(loads);
}

// What partitions have to do changes every second, who should do it does not.
model::GroupLoads Instance::GroupLoadsOf(const PartitionLoads& loads) {
  std::map<PartitionId, double> smooth;
  model::GroupLoads groups;
  for (const auto& [partition, load] : loads) {
    auto before = smooth_.find(partition);
    double was = before == smooth_.end() ? 0 : before->second;
    smooth[partition] = was + (load.used - was) * kSmoothing;
    groups[GroupId(partition.value())] = {load.bytes, smooth[partition]};
  }
  smooth_ = std::move(smooth);
  return groups;
}

Task<> Instance::CareOnce() {
  std::vector<NodeReport> reports = co_await Inspect();
  auto view = catalog_->view();
  model::ClusterHealth health = Health();
  std::map<GroupId, replication::Configuration> led;
  PartitionLoads loads;
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
        if (replica.figures) {
          loads[PartitionId(replica.group.value())] = {
              .bytes = static_cast<double>(replica.figures->totals.bytes),
              .used = replica.figures->used_last_second.value()};
          health.bytes[replica.group] =
              static_cast<uint64_t>(std::max<int64_t>(replica.figures->totals.bytes, 0));
        }
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
  if (!catalog_->leads()) {
    co_return;
  }
  if (plan.empty()) {
    co_await balancer_->Once(loads);
    plan = model::PlanBalance(*catalog_->view(), health, options_.placement, GroupLoadsOf(loads));
  }
  if (plan.empty()) {
    co_return;
  }
  Status status = co_await catalog_->SetPlacements(std::move(plan));
  if (!status.ok()) {
    log::Warning("placements could not be changed", {{"why", status.ToString()}});
  }
}

// Nobody sends anything to a node that was removed, so one that hears nothing asks.
Task<> Instance::AskWhetherRemoved() {
  for (const auto& [id, node] : catalog_->view()->nodes) {
    if (id != self() && node->state != model::NodeState::kRemoved && raft_->Alive(id)) {
      co_return;
    }
  }
  if (NodeId node = NextOther(); node != NodeId() && !told_removed_) {
    static_cast<void>(co_await AskCatalogIndex(node));  // it hears of it there
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
                                                      : std::numeric_limits<uint64_t>::max(),
                    .log_healthy = store_->healthy(),
                    .disk_full = store_->disk_full()};
  // One visit to each worker, not one for each group.
  std::map<runtime::Worker*, std::vector<std::shared_ptr<replication::RaftReplicaSet>>,
           runtime::WorkerOrder>
      by_worker;
  for (const auto& set : raft_->All()) {
    by_worker[&set->worker()].push_back(set);
  }
  for (auto& [worker, sets] : by_worker) {
    auto look = [this, &sets, &report]() -> Task<> {
      for (const auto& set : sets) {
        report.replicas.push_back(
            {set->group(), self(), set->view(), FiguresOf(PartitionId(set->group().value()))});
      }
      co_return;
    };
    co_await runtime::OnWorker(*worker, look);
  }
  co_return report;
}

std::optional<PartitionFigures> Instance::FiguresOf(PartitionId partition) {
  auto replica = replicas_.Find(partition);
  if (replica == nullptr) {
    return std::nullopt;
  }
  partition::Governor& governor = replica->governor();
  return PartitionFigures{.totals = replica->totals(),
                          .share = governor.share(),
                          .used_last_second = governor.UsedLastSecond(clock_.Now()),
                          .stats = replica->stats(),
                          .sustained = governor.Sustained(clock_.Now())};
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
  if (auto answer = co_await CallWithin(*transport_, node, std::move(request), kInspectTime)) {
    if (auto decoded = DecodeReport(*answer)) {
      report = std::move(*decoded);
      report.node = node;
      report.reached = true;
      for (ReplicaReport& replica : report.replicas) {
        replica.node = node;
      }
    }
  }
  co_return report;
}

Task<std::vector<NodeReport>> Instance::Inspect() {
  auto view = catalog_->view();
  std::vector<Task<NodeReport>> looks;
  for (const auto& [id, node] : view->nodes) {
    if (node->state != model::NodeState::kRemoved) {
      looks.push_back(InspectNode(id));
    }
  }
  co_return co_await runtime::WhenAll(std::move(looks));
}

Task<Overview> Instance::Look(bool here) {
  std::vector<NodeReport> reports;
  if (here) {
    reports.push_back(co_await InspectHere());
  } else {
    reports = co_await Inspect();
  }
  co_return Summarize(*catalog_->view(), Health(), reports, options_.placement.factor);
}

// A replica that lost what it had promised never returns under its id.
Task<> Instance::ReplaceBroken(GroupId group, ReplicaId broken) {
  auto placement = catalog_->view()->FindPlacement(group);
  if (placement == nullptr) {
    co_return;
  }
  model::PlacementChange change{
      .group = group, .epoch = placement->epoch, .members = placement->members};
  auto place = std::ranges::find(change.members, broken, &model::PlacedReplica::replica);
  if (place == change.members.end()) {
    co_return;  // it has been replaced
  }
  place->replica = ReplicaId();
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

Task<Status> Instance::Undrain(NodeId node) {
  co_return co_await catalog_->ChangeNode({.node = node, .state = model::NodeState::kActive});
}

Task<Status> Instance::Remove(NodeId node) {
  if (Status can = model::CanRemove(*catalog_->view(), node); !can.ok()) {
    co_return can;
  }
  Overview overview = co_await Look();
  if (Status can = CanLose(overview, node); !can.ok()) {
    co_return can;
  }
  co_return co_await catalog_->ChangeNode({.node = node, .state = model::NodeState::kRemoved});
}

}  // namespace orrery::cluster
