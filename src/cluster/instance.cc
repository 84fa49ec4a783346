#include "cluster/instance.h"

#include <algorithm>

#include "base/log.h"
#include "cluster/call_within.h"
#include "cluster/report.h"

namespace orrery::cluster {

using model::CatalogView;
using replication::CallKind;
using runtime::Task;

namespace {

constexpr GroupId kMetaGroup(0);
constexpr Duration kCatchUpTime = std::chrono::milliseconds(500);
constexpr Duration kCatchUpPause = std::chrono::milliseconds(20);

std::string Request(CallKind kind, std::string_view body) {
  std::string request(1, static_cast<char>(kind));
  request += body;
  return request;
}

}  // namespace

Instance::Instance(InstanceOptions options, std::unique_ptr<storage::Engine> log,
                   std::unique_ptr<storage::Engine> state, storage::StoreOptions store_options,
                   runtime::WorkerPool& workers, const Clock& clock, Random& random,
                   const partition::OperationRegistry& registry, replication::Transport* transport)
    : options_(std::move(options)),
      workers_(workers),
      clock_(clock),
      random_(random),
      registry_(registry),
      transport_(transport) {
  store_options.on_flushed = [this] {
    if (raft_ != nullptr) {
      raft_->OnFlushed();
    }
  };
  store_ =
      std::make_unique<storage::Store>(std::move(log), std::move(state), std::move(store_options));
}

Instance::~Instance() {
  // What this thread looked up last keeps replicas alive; they must not outlive what they use.
  partition::ReplicaTable().Find(PartitionId(0));
}

Status Instance::Open() {
  model::RecoveredOutcomes outcomes;
  ORRERY_RETURN_IF_ERROR(
      store_->Recover([&](GroupId group, Lsn lsn, const storage::WriteSetView& set) {
        if (set.id != storage::OperationId()) {
          outcomes[group].push_back({.id = set.id,
                                     .lsn = lsn,
                                     .result = std::string(set.result),
                                     .time = set.time,
                                     .settled = set.settled});
        }
      }));
  if (clustered()) {
    replication::RaftHostOptions raft_options = options_.raft;
    raft_options.on_difference = [this](GroupId group, ReplicaId replica) {
      workers_.at(0).Spawn(ReplaceBroken(group, replica));
    };
    raft_ = std::make_unique<replication::RaftHost>(self(), *store_, workers_, clock_, random_,
                                                    *transport_, std::move(raft_options));
    raft_->snapshots().SetExtra([this](GroupId group) { return SnapshotExtra(group); });
    meta_raft_ = std::make_shared<replication::RaftReplicaSet>(
        kMetaGroup, options_.identity->meta_replica, *raft_, workers_.at(0));
    meta_ = meta_raft_;
  } else {
    meta_ = std::make_shared<replication::LocalReplicaSet>(kMetaGroup, *store_, workers_.at(0));
  }
  ORRERY_RETURN_IF_ERROR(OpenMeta(outcomes[kMetaGroup]));
  outcomes.erase(kMetaGroup);
  auto find_ring = [this](ContainerId container) { return catalog_->FindRing(container); };
  router_ = std::make_unique<partition::Router>(replicas_, registry_, find_ring, random_, clock_);
  router_->SetTellsSettled([this] {
    auto view = catalog_->view();  // of a node that has just joined it is empty
    return view->clustered() == clustered() && view->writes(model::kSettledFormat);
  });
  host_ = std::make_unique<model::PartitionHost>(*catalog_, *store_, workers_, clock_, replicas_,
                                                 options_.host);
  if (clustered()) {
    ConnectRouter();
    auto replace = [this](GroupId group, ReplicaId broken) { return ReplaceBroken(group, broken); };
    auto borrow = [this](partition::BudgetOwner owner, partition::Budget::Ask ask) {
      return Borrow(std::move(owner), ask);
    };
    host_->SetCluster(self(), raft_.get(), replace, borrow);
  }
  reshaper_ = std::make_unique<model::Reshaper>(*catalog_, *store_, workers_, clock_, replicas_,
                                                options_.reshaper);
  reshaper_->SetRouter(router_.get());
  reshaper_->SetInherit([this](PartitionId heir, std::string outcomes) {
    host_->Inherit(heir, std::move(outcomes));
  });
  balancer_ = std::make_unique<Balancer>(*catalog_, clock_, options_.balancer);
  catalog_->AddListener(host_.get());
  catalog_->AddListener(this);
  return host_->Load(std::move(outcomes));
}

Status Instance::OpenMeta(const std::vector<model::RecoveredOutcome>& outcomes) {
  catalog_ = std::make_unique<model::Catalog>(*meta_, workers_, clock_, random_, options_.limits);
  Result<std::string> extra = store_->Extra(kMetaGroup);
  Result<std::string> cut = store_->Outcomes(kMetaGroup);
  if (!extra || !cut) {
    return extra ? cut.error() : extra.error();
  }
  ORRERY_RETURN_IF_ERROR(
      catalog_->Load(store_->state(), store_->Record(kMetaGroup).time, outcomes, {*extra, *cut}));
  if (!clustered()) {
    return catalog_->view()->clustered() && !options_.begins_cluster
               ? Status(Code::kInvalidArgument,
                        "this data folder belongs to a cluster: start it as a member")
               : Status::Ok();
  }
  catalog_->SetForward([this](std::string change) { return ForwardChange(std::move(change)); });
  catalog_->SetHealth([this] { return Health(); });
  ORRERY_RETURN_IF_ERROR(FoundMeta());
  auto heads = store_->ReadHeads(kMetaGroup);
  if (!heads) {
    return heads.error();
  }
  meta_heads_ = std::move(*heads);
  return Status::Ok();
}

// The replica of the meta group: the one that is here, the first of a cluster, or one that waits
// for a snapshot.
Status Instance::FoundMeta() {
  auto log = store_->Log(kMetaGroup);
  if (log && log->broken() && !log->base) {
    // Killed in its first snapshot: it has promised nothing yet.
    ORRERY_RETURN_IF_ERROR(store_->Discard(kMetaGroup));
    log.reset();
  }
  if (log) {
    return log->broken() ? Status(Code::kCorruption,
                                  "this node's copy of the catalog is broken (" + log->damage +
                                      "): remove the node, and let it join with an empty folder")
                         : Status::Ok();
  }
  storage::ReplicaIdentity identity{.id = options_.identity->meta_replica,
                                    .spans = storage::CatalogSpans()};
  std::optional<storage::LogBase> base;
  storage::HardState hard;
  auto placement = catalog_->view()->FindPlacement(kMetaGroup);
  if (placement != nullptr && placement->founds(identity.id)) {
    base = model::FoundingBase(*placement, store_->Record(kMetaGroup).applied);
    hard.term = 1;
  }
  return store_->Found(kMetaGroup, identity, base, hard);
}

void Instance::ConnectRouter() {
  partition::Remote remote;
  remote.self = self();
  remote.nodes = [this](PartitionId partition) {
    std::vector<NodeId> nodes;
    if (auto placement = catalog_->view()->FindPlacement(GroupId(partition.value()))) {
      for (const model::PlacedReplica& member : placement->members) {
        nodes.push_back(member.node);
      }
    }
    return nodes;
  };
  remote.call = [this](NodeId node, std::string message) {
    return transport_->Call(node, Request(CallKind::kOperation, message));
  };
  remote.alive = [this](NodeId node) { return raft_->Alive(node); };
  router_->SetRemote(std::move(remote));
}

Task<partition::RequestUnits> Instance::Borrow(partition::BudgetOwner owner,
                                               partition::Budget::Ask ask) {
  partition::BorrowUnits operation;
  operation.ask = ask;
  partition::Ring ring = catalog_->FindRing(owner.container);
  partition::Reply reply = co_await router_->ExecuteAt(ring, owner.range, operation);
  co_return partition::BorrowUnits::TakeGrant(reply);
}

void Instance::Start() {
  store_->Start();
  if (clustered()) {
    FollowNodes(*catalog_->view());
    raft_->Start();
    raft_->Insert(meta_raft_);
    workers_.at(0).Post([this] {
      meta_raft_->Start(std::move(meta_heads_), false);
      OnPlaced(*catalog_->view(), {kMetaGroup});
    });
  }
  workers_.at(0).Spawn(Care(gate_.Enter()));
  host_->Start();
  reshaper_->Start();
}

void Instance::Stop() {
  if (stopping_.exchange(true)) {
    return;
  }
  gate_.Close();
  if (catalog_ != nullptr) {
    catalog_->Stop();
  }
  if (reshaper_ != nullptr) {
    reshaper_->Stop();
  }
  if (host_ != nullptr) {
    host_->Stop();
  }
  if (raft_ != nullptr) {
    raft_->Stop();
  }
  store_->Stop();
}

Task<> Instance::HandOver(Duration longest) {
  if (!clustered()) {
    co_return;
  }
  // The sets that are led here, each with the nodes that could take over.
  std::vector<std::pair<std::shared_ptr<replication::RaftReplicaSet>, std::vector<NodeId>>> led;
  for (const auto& set : raft_->All()) {
    auto transfer = [set]() -> Task<replication::Configuration> {
      set->TransferAway();
      co_return set->view().configuration;
    };
    auto members = co_await runtime::OnWorker(set->worker(), transfer);
    std::vector<NodeId> others;
    for (const replication::Member& member : members.members) {
      if (member.role == replication::Role::kVoter && member.node != self()) {
        others.push_back(member.node);
      }
    }
    led.emplace_back(set, std::move(others));
  }
  auto waits = [this](const auto& one) {
    return one.first->leads() &&
           std::ranges::any_of(one.second, [this](NodeId node) { return raft_->Alive(node); });
  };
  Instant until = clock_.Now() + longest;
  while (std::ranges::any_of(led, waits) && clock_.Now() < until) {
    co_await runtime::Sleep(std::chrono::milliseconds(5));
  }
}

// What the transport brings -----------------------------------------------------------------------

void Instance::OnFrame(NodeId from, std::string frame) { raft_->OnFrame(from, std::move(frame)); }

void Instance::OnRefused(NodeId node) { raft_->OnRefused(node); }

Task<std::string> Instance::OnCall(NodeId from, std::string request) {
  if (request.empty()) {
    co_return "";
  }
  auto kind = static_cast<CallKind>(request[0]);
  request.erase(0, 1);
  if (kind == CallKind::kJoin) {
    co_return co_await Join(std::move(request));
  }
  if (from == NodeId()) {
    co_return "";  // no member: it may ask for nothing else
  }
  switch (kind) {
    case CallKind::kOperation: co_return co_await router_->HandleMessage(std::move(request));
    case CallKind::kSnapshot: co_return co_await raft_->snapshots().Handle(std::move(request));
    case CallKind::kCatalog:
      if (WasRemoved(from)) {
        co_return model::EncodeAnswer(Error(Code::kForbidden, std::string(kRemovedText)));
      }
      co_return co_await catalog_->HandleForwarded(std::move(request));
    case CallKind::kCatalogIndex: co_return co_await AnswerCatalogIndex(from);
    case CallKind::kInspect: {
      NodeReport report = co_await InspectHere();
      co_return EncodeReport(report);
    }
    case CallKind::kJoin: break;
  }
  co_return "";
}

std::string Instance::JoinRequest(const model::CatalogChange& add_node) {
  return Request(CallKind::kJoin, add_node.Encode());
}

Task<std::string> Instance::Join(std::string request) {
  auto change = model::CatalogChange::Decode(request);
  if (!change) {
    co_return model::EncodeAnswer(Error(change.error()));
  }
  if (!std::holds_alternative<model::change::AddNode>(change->what)) {
    co_return model::EncodeAnswer(Error(Code::kForbidden, "only members may change the catalog"));
  }
  co_return model::EncodeAnswer(co_await catalog_->Execute(std::move(*change)));
}

bool Instance::WasRemoved(NodeId node) const {
  auto record = catalog_->view()->FindNode(node);
  return record != nullptr && record->state == model::NodeState::kRemoved;
}

// kNotLeader where only another node can know.
Task<Result<Lsn>> Instance::CatalogIndex() {
  auto look = [this]() -> Task<Result<Lsn>> {
    if (Status barrier = co_await meta_->ReadBarrier(); !barrier.ok()) {
      co_return Error(barrier);
    }
    co_return meta_->applied();
  };
  co_return co_await runtime::OnWorker(workers_.at(0), look);
}

// The index, or nothing if only another node can know, or that the one who asks was removed.
Task<std::string> Instance::AnswerCatalogIndex(NodeId from) {
  if (WasRemoved(from)) {
    co_return std::string(kRemovedAnswer);
  }
  std::string answer;
  if (Result<Lsn> index = co_await CatalogIndex()) {
    Encoder(answer).U64(index->value());
  }
  co_return answer;
}

Task<Result<Lsn>> Instance::AskCatalogIndex(NodeId leader) {
  auto answer =
      co_await CallWithin(*transport_, leader, Request(CallKind::kCatalogIndex, ""), kCatchUpTime);
  if (answer && *answer == kRemovedAnswer) {
    OnRemoved();
  }
  Decoder decoder(answer ? *answer : std::string_view());
  Lsn index(decoder.U64());
  if (!decoder.done()) {
    co_return Error(Code::kNotLeader, "the catalog is not led there");
  }
  co_return index;
}

Task<> Instance::CatchUp() {
  if (!clustered()) {
    co_return;
  }
  for (Instant until = clock_.Now() + kCatchUpTime; clock_.Now() < until && !stopping_;) {
    NodeId leader = CatalogLeader();
    if (leader == NodeId()) {
      leader = catalog_->leads() ? self() : NextOther();
    }
    bool here = leader == NodeId() || leader == self();
    Result<Lsn> index = here ? co_await CatalogIndex() : co_await AskCatalogIndex(leader);
    if (index) {
      auto wait = [this, index]() { return meta_->WaitApplied(*index, kCatchUpTime); };
      IgnoreError(co_await runtime::OnWorker(workers_.at(0), wait), "as far as it is then");
      co_return;
    }
    co_await runtime::Sleep(kCatchUpPause);
  }
}

// Where the meta group is led; 0: not known, here, or where nothing is heard of.
NodeId Instance::CatalogLeader() const {
  NodeId leader = meta_->leader_node();
  return raft_->Alive(leader) ? leader : NodeId();
}

// Each in its turn, those that are alive before the others; 0 if there is none.
NodeId Instance::NextOther() {
  std::vector<NodeId> alive;
  std::vector<NodeId> silent;
  for (const auto& [id, node] : catalog_->view()->nodes) {
    if (id != self() && node->state != model::NodeState::kRemoved) {
      (raft_->Alive(id) ? alive : silent).push_back(id);
    }
  }
  const std::vector<NodeId>& others = alive.empty() ? silent : alive;
  return others.empty() ? NodeId() : others[next_try_++ % others.size()];
}

void Instance::OnRemoved() {
  if (!told_removed_.exchange(true) && options_.on_removed) {
    options_.on_removed();
  }
}

// To the leader of the meta group, or to somebody who may know it.
Task<Result<std::string>> Instance::ForwardChange(std::string change) {
  NodeId to = CatalogLeader();
  if (to == NodeId()) {
    to = NextOther();
    if (to == NodeId() || !raft_->Alive(to)) {
      co_return Error(Code::kUnavailable, "nothing is heard of any other node");
    }
  }
  co_return co_await transport_->Call(to, Request(CallKind::kCatalog, change));
}

Task<std::string> Instance::SnapshotExtra(GroupId group) {
  if (group == kMetaGroup) {
    auto outcomes = [this]() -> Task<std::string> { co_return catalog_->Outcomes(); };
    co_return co_await runtime::OnWorker(workers_.at(0), outcomes);
  }
  auto replica = replicas_.Find(PartitionId(group.value()));
  if (replica == nullptr) {
    co_return "";
  }
  auto encode = [replica]() -> Task<std::string> { co_return replica->Outcomes(); };
  co_return co_await runtime::OnWorker(replica->worker(), encode);
}

// What the catalog says ---------------------------------------------------------------------------

void Instance::OnPlaced(const CatalogView& next, const std::vector<GroupId>& groups) {
  if (!clustered()) {
    return;
  }
  for (GroupId group : groups) {
    auto placement = next.FindPlacement(group);
    if (group == kMetaGroup && placement != nullptr) {
      meta_raft_->SetPlacement(model::ConfigurationOf(placement->members));
    }
  }
}

void Instance::OnNodesChanged(const CatalogView& view) { FollowNodes(view); }

void Instance::OnKeysChanged(const model::AccountKeys&) {
  if (options_.on_keys) {
    options_.on_keys();
  }
}

void Instance::FollowNodes(const CatalogView& view) {
  if (!clustered()) {
    return;
  }
  std::map<NodeId, std::string> addresses;
  Lsn as_of = catalog_->applied();
  if (view.nodes.empty() || as_of < options_.identity->nodes_as_of) {
    addresses = options_.identity->nodes;
    as_of = options_.identity->nodes_as_of;
  }
  for (const auto& [id, node] : view.nodes) {
    if (node->state != model::NodeState::kRemoved) {
      addresses.try_emplace(id, node->address);
    }
  }
  if (WasRemoved(self())) {
    OnRemoved();
  }
  std::vector<NodeId> peers;
  for (const auto& [id, address] : addresses) {
    peers.push_back(id);
  }
  if (!peers.empty()) {
    raft_->SetPeers(std::move(peers));
    if (options_.on_nodes) {
      options_.on_nodes(addresses, as_of);
    }
  }
}

}  // namespace orrery::cluster
