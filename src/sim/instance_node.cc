#include "sim/instance_node.h"

#include <algorithm>
#include <map>

#include "cluster/instance.h"
#include "model/items.h"
#include "sim/nemesis.h"
#include "sim/witness.h"

namespace orrery::sim {

using cluster::Instance;
using cluster::NodeIdentity;
using runtime::Task;

namespace {

constexpr std::string_view kLink = "dbs/d/colls/c";
constexpr Duration kWait = std::chrono::milliseconds(20);
constexpr int kAloneStepsMax = 10'000;
constexpr size_t kPartitionsMost = 6;  // about

// What outlives the processes of a run besides their disks: the identities that they keep in a
// file.
struct Shared {
  std::map<NodeId, NodeIdentity> identities;
  std::map<std::string, std::string> keys;  // of clients, by the key of the item
};

uint64_t HashOf(std::string_view bytes) {
  uint64_t hash = 14695981039346656037u;
  for (char c : bytes) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211u;
  }
  return hash;
}

storage::EngineOptions LogOptions() { return {.spaces = storage::LogSpaces()}; }

class InstanceNode final : public SimNode, private replication::RaftObserver {
 public:
  InstanceNode(Environment environment, std::shared_ptr<Shared> shared)
      : env_(std::move(environment)), shared_(std::move(shared)) {
    model::RegisterItemOperations(registry_);
  }

  Status Start() override {
    if (env_.self == env_.nodes.front() && !shared_->identities.contains(env_.self)) {
      Status status = BeginCluster();
      if (!status.ok()) {
        return status;
      }
    }
    if (shared_->identities.contains(env_.self)) {
      return Open();
    }
    env_.workers.at(0).Spawn(OpenLater());
    return Status::Ok();
  }

  bool CommitStep() override { return instance_ != nullptr && instance_->store().CommitStep(); }
  bool ApplyStep() override { return instance_ != nullptr && instance_->store().ApplyStep(); }

  void OnFrame(NodeId from, std::string frame) override {
    if (instance_ != nullptr) {
      instance_->OnFrame(from, std::move(frame));
    }
  }
  Task<std::string> OnCall(NodeId from, std::string request) override {
    if (instance_ == nullptr) {
      co_return "";
    }
    co_return co_await instance_->OnCall(from, std::move(request));
  }
  void OnRefused(NodeId node) override {
    if (instance_ != nullptr) {
      instance_->OnRefused(node);
    }
  }

  Task<Status> SetUp() override {
    if (instance_ == nullptr) {
      co_return Status(Code::kUnavailable);
    }
    model::Catalog& catalog = instance_->catalog();
    if (catalog.view()->nodes.size() < env_.nodes.size()) {
      co_return Status(Code::kUnavailable);
    }
    if (catalog.view()->FindDatabase("d") == nullptr) {
      auto made = co_await catalog.CreateDatabase("d", {});
      if (!made && made.error().code() != Code::kAlreadyExists) {
        co_return made.error();
      }
    }
    if (catalog.view()->FindContainer(kLink) == nullptr) {
      auto definition = types::Document::FromJson(R"({"id":"c","partitionKey":{"paths":["/pk"]}})");
      auto made = co_await catalog.CreateContainer("d", std::move(*definition), {});
      if (!made && made.error().code() != Code::kAlreadyExists) {
        co_return made.error();
      }
    }
    co_return Status::Ok();
  }

  Task<OpResult> Execute(ClientOp op) override;

  bool TransferLeader(Random& random) override {
    for (const auto& set : Sets(random)) {
      if (set->leads()) {
        set->worker().Post([set] { set->TransferAway(); });
        return true;
      }
    }
    return false;
  }
  bool ChangeMembers(Random& random) override;
  bool Reshape(Random& random) override;
  bool CutLog(Random&) override { return instance_ != nullptr && instance_->store().UpkeepStep(); }

  std::vector<ReplicaReport> Report() override {
    std::vector<ReplicaReport> reports;
    if (instance_ == nullptr) {
      return reports;
    }
    auto view = instance_->catalog().view();
    for (const auto& set : instance_->raft()->All()) {
      auto placement = view->FindPlacement(set->group());
      if (placement != nullptr && placement->Find(env_.self) != nullptr) {
        replication::RaftView raft = set->view();
        reports.push_back({set->group(), raft.term, raft.leads, raft.applied});
      }
    }
    return reports;
  }
  uint64_t StateHash(GroupId group) override {
    auto log = instance_->store().Log(group);
    auto hash = instance_->store().HashSpans(group, log->identity.spans, "");
    return hash ? hash->hash : 0;
  }
  std::string Unfinished() override {
    if (instance_ == nullptr) {
      return "node " + env_.self.ToString() + " has not joined";
    }
    auto view = instance_->catalog().view();
    if (auto container = view->FindContainer(kLink); container && !container->reshapes.empty()) {
      return "partition " + container->reshapes.front().parents.front().ToString() +
             " is being split or merged";
    }
    auto text = [](const replication::Configuration& configuration) {
      std::string out;
      for (const replication::Member& member : configuration.members) {
        out += " " + member.id.ToString() + "@" + member.node.ToString() +
               (member.role == replication::Role::kVoter ? "" : "-");
      }
      return out;
    };
    for (const auto& set : instance_->raft()->All()) {
      auto placement = view->FindPlacement(set->group());
      replication::RaftView raft = set->view();
      if (placement == nullptr || placement->Find(env_.self) == nullptr ||
          placement->Find(env_.self)->replica != set->replica()) {
        return "group " + set->group().ToString() + " should not be on node " +
               env_.self.ToString() + ": replica " + set->replica().ToString() + " knows" +
               text(raft.configuration) + ", commit " + raft.commit.ToString() +
               (placement == nullptr
                    ? ""
                    : ", wanted" + text(model::ConfigurationOf(placement->members)));
      }
      if (raft.leads &&
          !raft.configuration.SameMembers(model::ConfigurationOf(placement->members))) {
        return "group " + set->group().ToString() +
               " has other members than it should:" + text(raft.configuration) + ", not" +
               text(model::ConfigurationOf(placement->members));
      }
    }
    for (const auto& [group, placement] : view->placements) {
      if (placement->Find(env_.self) != nullptr && instance_->raft()->Find(group) == nullptr) {
        return "group " + group.ToString() + " is not on node " + env_.self.ToString();
      }
    }
    return {};
  }

 private:
  storage::StoreOptions StoreOptions() const {
    storage::StoreOptions options;
    options.manual = true;
    options.cut_after_bytes = 1;
    return options;
  }
  std::unique_ptr<Instance> Make(std::optional<NodeIdentity> identity) {
    cluster::InstanceOptions options{.identity = identity, .begins_cluster = !identity};
    options.limits.partition_throughput = 200;  // two partitions for the 400 that nobody chose
    options.care_interval = std::chrono::milliseconds(300);
    options.check_interval = std::chrono::seconds(2);
    options.host.return_after = std::chrono::milliseconds(800);
    options.host.staleness = {kStalenessVersions, kStalenessTime};
    options.raft.set.trail_entries = 4;
    options.raft.set.cut_entries = 4;
    options.raft.set.cache_bytes = 2000;
    options.raft.set.lease_reads = Nemesis::HasLeases(env_.seed);
    options.raft.observer = this;
    options.raft.snapshot_folder = env_.folder + "/snapshots";
    options.placement.max_moves = 2;
    options.limits.placement = options.placement;
    return std::make_unique<Instance>(std::move(options), env_.open_log(LogOptions()),
                                      env_.open_state(storage::StateEngineOptions()),
                                      StoreOptions(), env_.workers, env_.clock, env_.random,
                                      registry_, &env_.transport);
  }
  Status Open() {
    auto instance = Make(shared_->identities.at(env_.self));
    if (Status status = instance->Open(); !status.ok()) {
      return status;
    }
    instance_ = std::move(instance);
    instance_->Start();
    return Status::Ok();
  }
  Task<> OpenLater() {
    while (!shared_->identities.contains(env_.self)) {
      co_await runtime::Sleep(kWait);
    }
    if (Status status = Open(); !status.ok()) {
      log_ = status.ToString();
    }
  }
  // The first node makes the cluster while it is alone, and knows all that will be in it.
  Status BeginCluster();

  std::vector<std::shared_ptr<replication::RaftReplicaSet>> Sets(Random& random) {
    std::vector<std::shared_ptr<replication::RaftReplicaSet>> sets;
    if (instance_ != nullptr) {
      sets = instance_->raft()->All();
      std::ranges::sort(sets, {}, [](const auto& set) { return set->group(); });
      if (!sets.empty()) {
        std::ranges::rotate(sets, sets.begin() + static_cast<long>(random.Next() % sets.size()));
      }
    }
    return sets;
  }

  // replication::RaftObserver
  void OnStarted(GroupId group, Lsn applied) override {
    auto placement = instance_->catalog().view()->FindPlacement(group);
    if (placement != nullptr && placement->origin && applied != Lsn()) {
      std::vector<GroupId> parents;
      for (const model::Origin::Parent& parent : placement->origin->parents) {
        parents.push_back(parent.group);
      }
      env_.witness.OnHeir(group, parents, placement->origin->record.applied);
    }
    env_.witness.OnStarted(env_.self, group, applied);
  }
  void OnLeading(GroupId group, uint64_t term) override {
    env_.witness.OnLeading(env_.self, group, term);
  }
  void OnInstalled(GroupId group, Lsn applied) override {
    env_.witness.OnInstalled(env_.self, group, applied);
  }
  void OnApplied(GroupId group, Lsn index, const storage::LogEntry& entry) override;

  const Environment env_;
  const std::shared_ptr<Shared> shared_;
  partition::OperationRegistry registry_;
  std::unique_ptr<Instance> instance_;
  std::string log_;
};

Status InstanceNode::BeginCluster() {
  std::unique_ptr<Instance> alone = Make(std::nullopt);
  if (Status status = alone->Open(); !status.ok()) {
    return status;
  }
  bool failed = false;
  auto nodes = [&] { return alone->catalog().view()->nodes.size(); };
  auto add = [&]() -> Task<> {
    while (nodes() < env_.nodes.size() && !failed) {
      std::string address = "node:" + std::to_string(nodes() + 1);
      model::CatalogChange change{
          .what = model::change::AddNode{.address = address, .version = model::kNewestFormat}};
      failed = !(co_await alone->catalog().Execute(std::move(change)));
    }
  };
  env_.workers.at(0).Spawn(add());
  for (int steps = 0; nodes() < env_.nodes.size() && !failed && steps < kAloneStepsMax; ++steps) {
    env_.workers.RunReady();
    alone->store().CommitStep();
    alone->store().ApplyStep();
  }
  if (nodes() < env_.nodes.size()) {
    return Status(Code::kUnavailable, "the cluster could not be made");
  }
  IgnoreError(alone->store().CutLog(), "it is replayed instead");
  auto view = alone->catalog().view();
  std::map<NodeId, NodeIdentity> made;
  for (const auto& [id, node] : view->nodes) {
    const model::PlacedReplica* meta = view->FindPlacement(GroupId(0))->Find(id);
    made[id] = {view->cluster, id, meta->replica, {}};
    for (NodeId other : env_.nodes) {
      made[id].nodes[other] = "node:" + other.ToString();
    }
  }
  shared_->identities = std::move(made);
  return Status::Ok();
}

void InstanceNode::OnApplied(GroupId group, Lsn index, const storage::LogEntry& entry) {
  std::vector<ItemChange> changes;
  if (entry.kind == storage::EntryKind::kCommand) {
    auto view = storage::WriteSetView::Parse(*entry.payload);
    Status status = view->ForEach([&](const storage::WriteSetChange& change) {
      auto key = shared_->keys.find(std::string(change.key));
      if (change.space != storage::Space::kItems || key == shared_->keys.end()) {
        return;
      }
      ItemChange item{.key = key->second};
      if (change.value) {
        auto stored = storage::DecodeItem(*change.value);
        item.value = types::Member(types::Value::Object(stored->payload), "v").string();
      }
      changes.push_back(std::move(item));
    });
    IgnoreError(status, "the replica has applied it");
  } else if (entry.kind == storage::EntryKind::kChange) {
    env_.witness.OnMembersChanged(group);
  }
  uint64_t hash = HashOf(entry.payload == nullptr ? std::string_view() : *entry.payload);
  env_.witness.OnApplied(env_.self, group, index, entry.term,
                         hash ^ static_cast<uint64_t>(entry.kind), std::move(changes));
}

Task<OpResult> InstanceNode::Execute(ClientOp op) {
  OpResult result;
  auto container =
      instance_ == nullptr ? nullptr : instance_->catalog().view()->FindContainer(kLink);
  if (container == nullptr) {
    co_return result;
  }
  std::vector<types::SessionToken> tokens;
  for (const auto& [group, lsn] : op.session) {
    tokens.push_back({.partition = PartitionId(group.value()), .lsn = lsn});
  }
  if (!tokens.empty() && tokens.back().partition > container->map->newest()) {
    co_await instance_->CatchUp();
    container = instance_->catalog().view()->FindContainer(kLink);
  }
  types::PartitionKey key{{types::KeyComponent::String(op.key)}};
  auto address = model::AddressOf(*container, key);
  shared_->keys[storage::LogicalPartitionPrefix(container->id, address->epk, key) + op.key] =
      op.key;
  std::string epk = address->epk;
  partition::Reply reply;
  std::string item;
  if ((op.kind == OpKind::kRead && !op.otherwise) || ReadsWeakly(op.kind)) {
    model::ReadItem read;
    read.address = *address;
    read.id = op.key;
    read.level = op.kind == OpKind::kRead          ? partition::ReadLevel::kStrong
                 : op.kind == OpKind::kSessionRead ? partition::ReadLevel::kSession
                                                   : partition::ReadLevel::kBounded;
    if (op.kind == OpKind::kSessionRead) {
      read.tokens = tokens;
    }
    reply = co_await instance_->router().Execute(container->ring(), epk, read);
    item = reply.body;
  } else if (op.kind == OpKind::kDelete && op.otherwise && op.if_match.empty()) {
    model::DeleteItems remove;
    remove.logical_partition = *address;
    reply = co_await instance_->router().Execute(container->ring(), epk, remove);
    if (reply.status.ok() && reply.charge == partition::RequestUnits()) {
      reply.status = Status(Code::kNotFound, "nothing was deleted");
    }
  } else {
    model::WriteItems write;
    write.address = *address;
    model::ItemStep step{.id = op.key, .if_match = op.if_match};
    step.kind = op.kind == OpKind::kCreate    ? model::StepKind::kCreate
                : op.kind == OpKind::kUpsert  ? model::StepKind::kUpsert
                : op.kind == OpKind::kReplace ? model::StepKind::kReplace
                : op.kind == OpKind::kRead    ? model::StepKind::kRead
                                              : model::StepKind::kDelete;
    write.level = partition::ReadLevel::kStrong;
    if (op.kind != OpKind::kDelete && op.kind != OpKind::kRead) {
      step.body = *types::Document::FromJson(R"({"id":")" + op.key + R"(","pk":")" + op.key +
                                             R"(","v":")" + op.value + R"("})");
    }
    write.steps.push_back(std::move(step));
    reply = co_await instance_->router().Execute(container->ring(), epk, write);
    auto steps = model::DecodeStepResults(reply.body);
    if (steps && !steps->empty()) {
      item = steps->front().item;
    }
  }
  result.code = reply.status.code();
  result.group = GroupId(reply.partition.value());
  result.lsn = reply.lsn;
  if (item.size() >= storage::kItemHeaderBytes && reply.status.ok()) {
    auto stored = storage::DecodeItem(item);
    result.etag = model::ItemEtag(stored->header);
    result.value = types::Member(types::Value::Object(stored->payload), "v").string();
  }
  co_return result;
}

// Moves a replica of some group to a node that has none of it.
bool InstanceNode::ChangeMembers(Random& random) {
  if (instance_ == nullptr || !instance_->catalog().leads()) {
    return false;
  }
  auto view = instance_->catalog().view();
  if (view->placements.size() < 2) {
    return false;
  }
  auto at = std::next(view->placements.begin(),
                      1 + static_cast<long>(random.Next() % (view->placements.size() - 1)));
  const auto& [group, placement] = *at;
  std::vector<NodeId> free;
  for (NodeId node : env_.nodes) {
    if (placement->Find(node) == nullptr) {
      free.push_back(node);
    }
  }
  model::PlacementChange change{
      .group = group, .epoch = placement->epoch, .members = placement->members};
  if (free.empty()) {
    return false;
  }
  change.members[random.Next() % change.members.size()] = {
      .replica = ReplicaId(), .node = free[random.Next() % free.size()]};
  auto apply = [](model::Catalog& catalog, model::PlacementChange change) -> Task<> {
    IgnoreError(co_await catalog.SetPlacements({std::move(change)}), "another one comes");
  };
  env_.workers.at(0).Spawn(apply(instance_->catalog(), std::move(change)));
  return true;
}

// Splits some partition, or merges two.
bool InstanceNode::Reshape(Random& random) {
  auto container =
      instance_ == nullptr ? nullptr : instance_->catalog().view()->FindContainer(kLink);
  if (container == nullptr) {
    return false;
  }
  auto ranges = container->map->ranges();
  size_t place = random.Next() % ranges.size();
  std::vector<PartitionId> parents{ranges[place].id};
  bool merges = ranges.size() > 1 && random.Next() % kPartitionsMost < ranges.size();
  if (merges) {
    place = std::min(place, ranges.size() - 2);
    parents = {ranges[place].id, ranges[place + 1].id};
  }
  auto apply = [](model::Catalog& catalog, ContainerId id,
                  std::vector<PartitionId> parents) -> Task<> {
    IgnoreError(co_await catalog.BeginReshape(id, std::move(parents)), "another one comes");
  };
  env_.workers.at(0).Spawn(apply(instance_->catalog(), container->id, std::move(parents)));
  return true;
}

}  // namespace

MakeNode InstanceCluster() {
  return [shared = std::make_shared<Shared>()](Environment environment) {
    return std::make_unique<InstanceNode>(std::move(environment), shared);
  };
}

}  // namespace orrery::sim
