// Node: how it becomes and remains part of a cluster.
#include <thread>

#include "base/log.h"
#include "net/cluster_tls.h"
#include "server/data_folder.h"
#include "server/node.h"

namespace orrery::server {

using cluster::NodeIdentity;
using runtime::Task;

namespace {

// What this program can read of other nodes' commands.
constexpr uint32_t kNodeVersion = model::kNewestFormat;
constexpr Duration kCatalogTime = std::chrono::seconds(60);
constexpr Duration kRetryPause = std::chrono::milliseconds(100);

bool IsWildcard(std::string_view host) {
  return host.empty() || host == "0.0.0.0" || host == "::" || host == "[::]";
}

Result<std::shared_ptr<net::ClusterTls>> MakeTls(const Settings& settings) {
  if (!settings.cluster_secret.empty()) {
    return net::ClusterTls::FromSecret(settings.cluster_secret);
  }
  if (!settings.cluster_secret_file.empty()) {
    return net::ClusterTls::FromSecretFile(settings.cluster_secret_file);
  }
  if (!settings.cluster_authority.empty()) {
    return net::ClusterTls::FromFiles(settings.cluster_authority, settings.cluster_certificate,
                                      settings.cluster_key);
  }
  return nullptr;  // --dev on loopback
}

Result<NodeIdentity> IdentityFrom(const model::ChangeResult& result) {
  if (!result.joined) {
    return Error(Code::kInternal, "the cluster did not say who this node is");
  }
  NodeIdentity identity{result.joined->cluster, result.joined->node, result.joined->meta_replica};
  for (const model::NodeRecord& node : result.joined->nodes) {
    identity.nodes[node.id] = node.address;
  }
  return identity;
}

}  // namespace

Status Node::StartTransport() {
  auto tls = MakeTls(settings_);
  if (!tls) {
    return tls.error();
  }
  net::PeerOptions options;
  options.tls = std::move(*tls);
  replication::NetHandlers handlers;
  handlers.on_frame = [this](NodeId from, std::string frame) {
    if (serving_) {
      instance_->OnFrame(from, std::move(frame));
    }
  };
  handlers.on_call = [this](NodeId from, std::string request) -> Task<std::string> {
    if (!serving_) {
      co_return "";
    }
    co_return co_await instance_->OnCall(from, std::move(request));
  };
  handlers.on_event = [this](NodeId node, net::PeerEvent event) {
    if (serving_ && event == net::PeerEvent::kRefused) {
      instance_->OnRefused(node);
    }
  };
  transport_ = std::make_unique<replication::NetTransport>(*workers_, options, handlers);
  size_t colon = settings_.cluster_listen.rfind(':');
  std::string host = settings_.cluster_listen.substr(0, colon);
  uint64_t port = std::strtoull(settings_.cluster_listen.c_str() + colon + 1, nullptr, 10);
  if (port > 65535) {
    return Status(Code::kInvalidArgument, "cluster.listen must be host:port");
  }
  return transport_->Start(host == "localhost" ? "127.0.0.1" : host, static_cast<uint16_t>(port));
}

std::string Node::Advertised() const {
  if (!settings_.cluster_advertise.empty()) {
    return settings_.cluster_advertise;
  }
  return settings_.cluster_listen.substr(0, settings_.cluster_listen.rfind(':')) + ":" +
         std::to_string(transport_->port());
}

std::string Node::PublicEndpoint() const {
  if (!settings_.endpoint.empty()) {
    return settings_.endpoint;
  }
  std::string address = Advertised();
  std::string host = address.substr(0, address.rfind(':'));
  if (!IsWildcard(settings_.listen) || IsWildcard(host)) {
    return endpoint_;
  }
  // It listens everywhere: clients reach it by the host by which other nodes do.
  return (settings_.dev ? "http://" : "https://") + host + ":" + std::to_string(http_->port()) +
         "/";
}

std::vector<api::sql::Location> Node::Locations() const {
  std::vector<api::sql::Location> locations;
  if (!instance_->clustered()) {
    return locations;
  }
  auto view = instance_->catalog().view();
  NodeId self = instance_->self();
  auto here = view->FindNode(self);
  locations.push_back(
      {.name = "Node " + self.ToString(), .endpoint = here == nullptr ? "" : here->endpoint});
  for (bool alive : {true, false}) {
    for (const auto& [id, node] : view->nodes) {
      if (id != self && node->state == model::NodeState::kActive && !node->endpoint.empty() &&
          instance_->raft()->Alive(id) == alive) {
        locations.push_back({.name = "Node " + id.ToString(), .endpoint = node->endpoint});
      }
    }
  }
  return locations;
}

Result<NodeIdentity> Node::FindIdentity() {
  ORRERY_TRY(std::optional<NodeIdentity> known, ReadIdentity(settings_.data));
  if (known) {
    return *known;
  }
  if (!settings_.cluster_join.empty() && HasStores(settings_.data)) {
    return Error(Code::kInvalidArgument,
                 "the data folder " + settings_.data +
                     " has data, but is of no member of a cluster: a node joins with an empty one");
  }
  ORRERY_TRY(NodeIdentity made, settings_.cluster_join.empty() ? BeginCluster() : JoinCluster());
  // Durable before this node takes part in anything.
  if (Status status = WriteIdentity(settings_.data, made); !status.ok()) {
    return Error(status);
  }
  ForgetJoinId(settings_.data);
  return made;
}

// A lone node, new or with data, becomes the first of a cluster.
Result<NodeIdentity> Node::BeginCluster() {
  ORRERY_TRY(std::unique_ptr<cluster::Instance> alone, MakeInstance(std::nullopt, true));
  auto view = alone->catalog().view();
  if (view->clustered() && view->nodes.size() == 1) {
    // It was done before, and the file was not written any more.
    NodeId node = view->nodes.begin()->first;
    auto placement = view->FindPlacement(GroupId(0));
    if (placement != nullptr && placement->Find(node) != nullptr) {
      return NodeIdentity{view->cluster, node, placement->Find(node)->replica, {}};
    }
  }
  if (view->clustered()) {
    return Error(Code::kInvalidArgument,
                 "the data folder " + settings_.data +
                     " is a copy of a member of a cluster, without the file that says which one");
  }
  alone->Start();
  model::CatalogChange add{.what = model::change::AddNode{.address = Advertised(),
                                                          .zone = settings_.cluster_zone,
                                                          .version = kNodeVersion}};
  auto begin = [&]() -> Task<Result<model::ChangeResult>> {
    // What was dropped is cleared by this node alone: nobody would do it later.
    while (!alone->catalog().view()->dropped.empty() && !stop_wanted_()) {
      co_await runtime::Sleep(kRetryPause);
    }
    co_return co_await alone->catalog().Execute(std::move(add));
  };
  auto result = RunOn(workers_->at(0), begin());
  alone->Stop();
  if (!result) {
    return Error(result.error());
  }
  return IdentityFrom(*result);
}

// Asks the member that was named, until it answers.
Result<NodeIdentity> Node::JoinCluster() {
  ORRERY_TRY(storage::OperationId id, JoinId(settings_.data, random_));
  model::CatalogChange add{
      .id = id,
      .what = model::change::AddNode{
          .address = Advertised(), .zone = settings_.cluster_zone, .version = kNodeVersion}};
  std::string request = cluster::Instance::JoinRequest(add);
  Instant until = clock_.Now() + std::chrono::seconds(settings_.cluster_join_timeout_s);
  std::string told;
  auto ask = [&]() -> Task<Result<NodeIdentity>> {
    while (true) {
      Result<std::string> answer =
          co_await transport_->CallAddress(settings_.cluster_join, request);
      Status why = answer ? Status::Ok() : answer.error();
      if (answer && !answer->empty()) {
        Result<model::ChangeResult> result = model::DecodeAnswer(*answer);
        if (result) {
          co_return IdentityFrom(*result);
        }
        why = result.error();
      }
      bool again = why.ok() || why.code() == Code::kUnavailable ||
                   why.code() == Code::kUnknownOutcome || why.code() == Code::kNotLeader;
      if (!again || clock_.Now() >= until || stop_wanted_()) {
        co_return Error(Code::kUnavailable, "cannot join the cluster at " + settings_.cluster_join +
                                                ": " + why.message());
      }
      if (std::exchange(told, why.message()) != why.message()) {
        log::Warning("cannot join the cluster yet",
                     {{"member", settings_.cluster_join}, {"why", why.message()}});
      }
      co_await runtime::Sleep(kRetryPause);
    }
  };
  return RunOn(workers_->at(0), ask());
}

void Node::FollowNodes(const std::map<NodeId, std::string>& addresses, Lsn as_of) {
  transport_->SetPeers(addresses);
  workers_->PostBlocking([this, addresses, as_of] {
    std::lock_guard lock(identity_mutex_);
    if (as_of < identity_.nodes_as_of || addresses == identity_.nodes) {
      return;
    }
    identity_.nodes = addresses;
    identity_.nodes_as_of = as_of;
    if (Status status = WriteIdentity(settings_.data, identity_); !status.ok()) {
      log::Warning("the addresses of the nodes could not be written", {{"why", status.ToString()}});
    }
  });
}

Task<Status> Node::Announce() {
  auto self = instance_->catalog().view()->FindNode(instance_->self());
  std::string endpoint = PublicEndpoint();
  if (self != nullptr && self->address == Advertised() && self->endpoint == endpoint &&
      self->zone == settings_.cluster_zone && self->version == kNodeVersion) {
    co_return Status::Ok();
  }
  co_return co_await instance_->catalog().ChangeNode({.node = instance_->self(),
                                                      .address = Advertised(),
                                                      .endpoint = endpoint,
                                                      .zone = settings_.cluster_zone,
                                                      .version = kNodeVersion});
}

// Without a majority of the cluster nothing can be told; the node serves what it can meanwhile.
Task<> Node::AnnounceUntilDone(runtime::Gate::Pass pass) {
  std::string told;
  while (!stopping_ && !removed_) {
    Status status = co_await Announce();
    if (status.ok()) {
      co_return;
    }
    if (std::exchange(told, status.message()) != status.message()) {
      log::Warning("the address of this node could not be told to the others yet",
                   {{"why", status.message()}});
    }
    co_await runtime::Sleep(kRetryPause);
  }
}

// A node that has just joined knows nothing until the meta group has sent it the catalog.
Status Node::WaitForCatalog() {
  auto wait = [this]() -> Task<Status> {
    Instant until = clock_.Now() + kCatalogTime;
    while (instance_->catalog().view()->FindNode(instance_->self()) == nullptr) {
      if (clock_.Now() >= until || stop_wanted_()) {
        co_return Status(Code::kUnavailable, "the cluster does not send the catalog");
      }
      co_await runtime::Sleep(kRetryPause);
    }
    co_await instance_->CatchUp();
    co_return Status::Ok();
  };
  return RunOn(workers_->at(0), wait());
}

Status Node::WaitForMajority() {
  bool told = false;
  while (instance_->clustered() && !instance_->catalog_led()) {
    if (stop_wanted_()) {
      return Status(Code::kUnavailable, "stopped while it waited for a majority of the nodes");
    }
    if (!std::exchange(told, true)) {
      log::Info("waiting for a majority of the nodes");
    }
    std::this_thread::sleep_for(kRetryPause);
  }
  return Status::Ok();
}

}  // namespace orrery::server
