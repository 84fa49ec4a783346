// The Cassandra API of a node.
#include <arpa/inet.h>

#include "base/bytes.h"
#include "base/log.h"
#include "cql/system_schema.h"
#include "model/catalog_roles.h"
#include "model/placement.h"
#include "server/node.h"
#include "types/murmur3.h"

namespace orrery::server {

namespace {

constexpr uint16_t kDefaultPort = 9042;
constexpr std::string_view kLoopback = "127.0.0.1";
// How often is looked whether the first password was changed, and whether an address is free.
constexpr Duration kRolesInterval = std::chrono::milliseconds(200);
constexpr Duration kAddressInterval = std::chrono::seconds(5);

// The 4 or 16 bytes of an address; empty: it is none.
std::string AddressBytes(const std::string& text) {
  char bytes[16];
  if (inet_pton(AF_INET, text.c_str(), bytes) == 1) {
    return std::string(bytes, 4);
  }
  if (inet_pton(AF_INET6, text.c_str(), bytes) == 1) {
    return std::string(bytes, 16);
  }
  return {};
}

bool IsLoopbackAddress(const std::string& text) {
  const std::string bytes = AddressBytes(text);
  return bytes.size() == 4 ? bytes[0] == 127 : text == "::1";
}

// The host of http://host:port/ or of host:port.
std::string HostOf(std::string_view url) {
  if (size_t scheme = url.find("://"); scheme != std::string_view::npos) {
    url.remove_prefix(scheme + 3);
  }
  url = url.substr(0, url.find('/'));
  if (url.starts_with('[')) {
    return std::string(url.substr(1, url.find(']') - 1));
  }
  return std::string(url.substr(0, url.rfind(':')));
}

// The same after a restart, and on every node that speaks of it.
std::string HostId(uint64_t cluster, NodeId node) {
  std::string name = "orrery node";
  Encoder encoder(name);
  encoder.U64(cluster);
  encoder.U32(node.value());
  const types::Hash128 hash = types::Murmur128(name);
  std::string id;
  Encoder(id).U64((hash.first & ~0xF000ull) | 0x4000);
  Encoder(id).U64((hash.second & ~(3ull << 62)) | (2ull << 62));
  return id;
}

}  // namespace

cql::ClusterView Node::CassandraNodes() const {
  cql::ClusterView cluster;
  cluster.cluster_name = settings_.account;
  auto describe = [this](cql::NodeView& node, const std::string& host) {
    node.address = AddressBytes(host);
    if (node.address.empty() || host == "0.0.0.0" || host == "::") {
      node.address = std::string("\x7F\x00\x00\x01", 4);
    }
    node.native_port = cassandra_port();
    node.data_center = settings_.cassandra_data_center;
  };
  if (!instance_->clustered()) {
    describe(cluster.self, settings_.listen);
    cluster.self.host_id = HostId(0, NodeId(1));
    cluster.self.tokens = {model::NodeToken(0, 1)};
    return cluster;
  }
  auto view = instance_->catalog().view();
  std::vector<std::shared_ptr<const model::NodeRecord>> nodes;
  for (const auto& [id, node] : view->nodes) {
    if (node->state != model::NodeState::kRemoved) {
      nodes.push_back(node);
    }
  }
  // Drivers look for all nodes at one port: those that share a machine cannot be told apart.
  const auto self = view->FindNode(instance_->self());
  const std::string self_host = self == nullptr ? "" : HostOf(self->endpoint);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const bool here = nodes[i]->id == instance_->self();
    const std::string host = HostOf(nodes[i]->endpoint);
    if (!here && (host == self_host || AddressBytes(host).empty())) {
      continue;
    }
    cql::NodeView node;
    describe(node, host);
    node.host_id = HostId(view->cluster, nodes[i]->id);
    node.rack = nodes[i]->zone.empty() ? "rack1" : nodes[i]->zone;
    node.tokens = {model::NodeToken(i, nodes.size())};
    node.up = instance_->raft()->Alive(nodes[i]->id);
    if (here) {
      cluster.self = std::move(node);
    } else {
      cluster.peers.push_back(std::move(node));
    }
  }
  return cluster;
}

runtime::Task<> Node::OpenCassandra(std::string address, runtime::Gate::Pass pass) {
  std::shared_ptr<const cql::Roles> seen;
  bool guarded = true;
  while (!stopping_) {
    auto roles = model::RolesOf(*instance_->catalog().view());
    if (roles != seen) {
      auto look = [roles] { return cassandra::HasDefaultPassword(*roles); };
      guarded = co_await runtime::OnBlocking(*workers_, look);
      seen = roles;
    }
    if (!guarded && !stopping_) {
      Status moved = cassandra_->MoveTo(address);
      if (moved.ok()) {
        log::Info("the first password was changed: clients of Cassandra are served at the address",
                  {{"address", address}, {"port", std::to_string(cassandra_port())}});
        co_return;
      }
      log::Warning("clients of Cassandra cannot be served at the address yet",
                   {{"why", moved.message()}});
    }
    const Instant next = clock_.Now() + (guarded ? kRolesInterval : kAddressInterval);
    while (!stopping_ && clock_.Now() < next) {
      co_await runtime::Sleep(kRolesInterval);
    }
  }
}

Status Node::StartCassandra() {
  cassandra::ServiceOptions service_options{.authenticate = !settings_.dev,
                                            .account = settings_.account,
                                            .cluster = [this] { return CassandraNodes(); },
                                            .catch_up = nullptr,
                                            .observe = nullptr};
  service_options.observe = [this](std::string_view operation, int status, double charge,
                                   Duration took) {
    metrics_.OnRequest(operation, status, charge, took);
  };
  if (instance_->clustered()) {
    service_options.catch_up = [this] { return instance_->CatchUp(); };
  }
  schemas_ = std::make_unique<cassandra::SchemaCache>(instance_->catalog());
  batches_ = std::make_unique<cassandra::BatchKeeper>(*schemas_, instance_->router(),
                                                      instance_->replicas(), *workers_, clock_);
  batches_->Start(!instance_->clustered());
  builder_ = std::make_unique<cassandra::DerivedBuilder>(instance_->catalog(), *schemas_,
                                                         instance_->router(), instance_->replicas(),
                                                         *batches_, *workers_, clock_);
  builder_->Start();
  purger_ = std::make_unique<rows::Purger>(
      instance_->replicas(), *workers_, clock_,
      std::chrono::milliseconds(settings_.cassandra_purge_interval_ms));
  purger_->Start();
  passwords_ = std::make_unique<cassandra::Passwords>(*workers_);
  cassandra_service_ = std::make_unique<cassandra::Service>(
      instance_->catalog(), *schemas_, instance_->router(), *batches_, *builder_, *passwords_,
      clock_, random_, std::move(service_options));
  cassandra::ServerOptions options;
  const std::string address =
      settings_.listen == "localhost" ? std::string(kLoopback) : settings_.listen;
  // A password that everybody knows must not open the door to the network.
  const bool guarded = !settings_.dev && !IsLoopbackAddress(address) &&
                       cassandra::HasDefaultPassword(*model::RolesOf(*instance_->catalog().view()));
  options.address = guarded ? std::string(kLoopback) : address;
  options.port = settings_.cassandra_port.value_or(settings_.port == 0 ? 0 : kDefaultPort);
  options.connections_max = settings_.connections_max;
  options.certificate_file = certificate_file_;
  options.key_file = key_file_;
  auto server =
      std::make_unique<cassandra::CassandraServer>(*workers_, options, *cassandra_service_);
  Status status = server->Start();
  if (!status.ok() && !settings_.cassandra_port) {
    // Nobody asked for this port: another program may well have it.
    log::Warning("clients of Cassandra are not served: choose another cassandra.port",
                 {{"port", std::to_string(options.port)}, {"why", status.message()}});
    return Status::Ok();
  }
  ORRERY_RETURN_IF_ERROR(status);
  cassandra_ = std::move(server);
  cassandra_service_->events().Start(*cassandra_, *workers_);
  if (instance_->clustered()) {
    cassandra_nodes_ =
        std::make_unique<cassandra::ClusterEvents>([this] { return CassandraNodes(); });
    cassandra_nodes_->Start(*cassandra_, *workers_);
  }
  if (guarded) {
    log::Warning(
        "clients of Cassandra are served on this machine only, because the role cassandra has its "
        "first password: log in from here and change it by ALTER ROLE cassandra WITH PASSWORD = "
        "'...'; no restart is needed",
        {{"address", options.address}, {"wanted", address}});
    workers_->at(0).Spawn(OpenCassandra(address, opening_cassandra_.Enter()));
  }
  return Status::Ok();
}

}  // namespace orrery::server
