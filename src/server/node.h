// Node: one running Orrery, wired together: an Instance, the front ends above it, and on a cluster
// the transport beside it. Start() brings the layers up from the bottom, Stop() takes them down
// from the top.
#pragma once

#include <atomic>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "api/cassandra/cluster_events.h"
#include "api/cassandra/server.h"
#include "api/cassandra/service.h"
#include "api/sql/service.h"
#include "base/random.h"
#include "base/time.h"
#include "cluster/instance.h"
#include "net/http_server.h"
#include "net/peer.h"
#include "replication/net_transport.h"
#include "rows/purger.h"
#include "runtime/gate.h"
#include "server/metrics.h"
#include "server/settings.h"

namespace orrery::server {

class Node {
 public:
  // `stop_wanted` is asked while the start waits for other nodes: it then gives up. Thread-safe.
  Node(Settings settings, std::function<bool()> stop_wanted);
  ~Node();

  Status Start();
  void Stop();
  // Takes a changed certificate; on an error the old one stays.
  Status ReloadCertificate();
  std::string certificate_file() const { return certificate_file_; }
  std::string key_file() const { return key_file_; }
  std::string endpoint() const { return endpoint_; }
  // Where clients of Cassandra are served; 0: nowhere.
  uint16_t cassandra_port() const { return cassandra_ == nullptr ? 0 : cassandra_->port(); }
  // From the cluster that it was part of: nobody talks to it any more.
  bool removed() const { return removed_; }
  // host:port for other nodes; empty if it is alone.
  std::string cluster_address() const { return transport_ == nullptr ? "" : Advertised(); }

 private:
  Result<std::unique_ptr<cluster::Instance>> MakeInstance(
      std::optional<cluster::NodeIdentity> identity, bool begins_cluster);
  Status OpenInstance();
  Status PrepareKeys();
  Status StartLoopback();
  Status StartHttp();
  // Clients of Cassandra (cassandra_node.cc).
  Status StartCassandra();
  cql::ClusterView CassandraNodes() const;
  // Listens at the address of the settings once nobody can log in with the first password.
  runtime::Task<> OpenCassandra(std::string address, runtime::Gate::Pass pass);
  // In the catalog, and in the file for `orrery keys`.
  runtime::Task<Status> ChangeKeys(std::vector<model::KeyChange> keys);
  // The newest keys. Blocks.
  Status WriteKeys();

  // A cluster (cluster_node.cc).
  Status StartTransport();
  Result<cluster::NodeIdentity> FindIdentity();
  Result<cluster::NodeIdentity> BeginCluster();
  Result<cluster::NodeIdentity> JoinCluster();
  std::string Advertised() const;
  // The URL by which clients reach it, as other nodes tell them.
  std::string PublicEndpoint() const;
  // For GET /: this node, then those that are alive, then the silent ones. Empty if it is alone.
  std::vector<api::sql::Location> Locations() const;
  // New connections go there; the file of the identity remembers it.
  void FollowNodes(const std::map<NodeId, std::string>& addresses, Lsn as_of);
  // Tells the others the address and endpoint, if they have changed.
  runtime::Task<Status> Announce();
  runtime::Task<> AnnounceUntilDone(runtime::Gate::Pass pass);
  Status WaitForCatalog();
  // Until somebody leads the catalog, as long as that takes.
  Status WaitForMajority();

  // The admin endpoints (admin.cc).
  runtime::Task<> Handle(const net::HttpRequest& request, net::HttpReply& reply);
  runtime::Task<> HandleAdmin(const net::HttpRequest& request, net::HttpReply& reply);
  runtime::Task<Status> RegenerateKey(std::string_view body);
  runtime::Task<Status> Backup(std::string_view body);
  // `what` is "<id>/split", "<id>/merge" or "<id>/move".
  runtime::Task<Status> ChangePartition(std::string_view what, std::string_view body);
  runtime::Task<Status> ChangeBalancer(std::string_view action);
  // `what` is "<id>/drain" or "<id>/remove".
  runtime::Task<Status> ChangeNode(std::string_view what);
  // `what` is "buckets" or "redistribute" (throughput.cc).
  runtime::Task<Status> ChangeThroughput(std::string_view what, std::string_view body);
  // All of it, and the nodes alone (status.cc).
  runtime::Task<std::string> StatusJson();
  runtime::Task<std::string> NodesJson();
  // The partitions of one container (partitions.cc). kNotFound if there is none.
  runtime::Task<Result<std::string>> PartitionsJson(std::string database, std::string container);

  const Settings settings_;
  const std::function<bool()> stop_wanted_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<runtime::WorkerPool> workers_;
  partition::OperationRegistry registry_;
  std::unique_ptr<replication::NetTransport> transport_;  // of a cluster
  std::unique_ptr<cluster::Instance> instance_;
  std::atomic<bool> serving_ = false;  // the transport may use the instance
  std::atomic<bool> removed_ = false;
  std::atomic<bool> stopping_ = false;
  runtime::Gate announcing_;
  std::unique_ptr<net::PeerServer> peer_server_;
  std::unique_ptr<net::PeerClient> peer_client_;
  Metrics metrics_;
  std::unique_ptr<api::sql::Service> service_;
  std::unique_ptr<net::HttpServer> http_;
  std::unique_ptr<cassandra::SchemaCache> schemas_;
  std::unique_ptr<cassandra::BatchKeeper> batches_;
  std::unique_ptr<cassandra::DerivedBuilder> builder_;
  std::unique_ptr<rows::Purger> purger_;
  std::unique_ptr<cassandra::Passwords> passwords_;
  std::unique_ptr<cassandra::Service> cassandra_service_;
  std::unique_ptr<cassandra::CassandraServer> cassandra_;
  std::unique_ptr<cassandra::ClusterEvents> cassandra_nodes_;  // of a cluster
  runtime::Gate opening_cassandra_;
  std::mutex keys_mutex_;      // the file of keys
  std::mutex identity_mutex_;  // the file of the identity, and
  cluster::NodeIdentity identity_;
  std::string certificate_file_;
  std::string key_file_;
  std::string endpoint_;
};

// Runs a task on a worker and waits for it. REQUIRES: not on a worker.
template <typename T>
T RunOn(runtime::Worker& worker, runtime::Task<T> task) {
  std::promise<T> done;
  auto run = [](runtime::Task<T> task, std::promise<T>& done) -> runtime::Task<> {
    done.set_value(co_await std::move(task));
  };
  worker.Spawn(run(std::move(task), done));
  return done.get_future().get();
}

}  // namespace orrery::server
