// The Cassandra API of a node.
#include <arpa/inet.h>

#include "base/bytes.h"
#include "base/log.h"
#include "cql/system_schema.h"
#include "server/node.h"
#include "types/murmur3.h"

namespace orrery::server {

namespace {

constexpr uint16_t kDefaultPort = 9042;

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

// Nodes share the ring evenly, whatever they hold: any of them answers for all.
int64_t TokenOf(size_t place, size_t nodes) {
  using Wide = unsigned __int128;
  auto at = static_cast<uint64_t>((Wide{place} << 64) / nodes);
  return static_cast<int64_t>(at ^ uint64_t{1} << 63);
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
    cluster.self.tokens = {TokenOf(0, 1)};
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
    node.tokens = {TokenOf(i, nodes.size())};
    if (here) {
      cluster.self = std::move(node);
    } else {
      cluster.peers.push_back(std::move(node));
    }
  }
  return cluster;
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
  batches_ = std::make_unique<cassandra::BatchKeeper>(instance_->catalog(), instance_->router(),
                                                      instance_->replicas(), *workers_, clock_);
  batches_->Start();
  cassandra_service_ =
      std::make_unique<cassandra::Service>(instance_->catalog(), instance_->router(), *batches_,
                                           clock_, random_, std::move(service_options));
  cassandra::ServerOptions options;
  options.address = settings_.listen == "localhost" ? "127.0.0.1" : settings_.listen;
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
  return Status::Ok();
}

}  // namespace orrery::server
