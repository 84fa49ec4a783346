// Node: one running Orrery, wired together. Start() brings the layers up from the bottom, Stop()
// takes them down from the top.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/sql/service.h"
#include "base/random.h"
#include "base/time.h"
#include "model/catalog.h"
#include "model/partition_host.h"
#include "net/http_server.h"
#include "net/peer.h"
#include "partition/router.h"
#include "replication/local_replica_set.h"
#include "server/metrics.h"
#include "server/settings.h"
#include "storage/store.h"

namespace orrery::server {

class Node {
 public:
  explicit Node(Settings settings);
  ~Node();

  Status Start();
  void Stop();
  // Takes a changed certificate; on an error the old one stays.
  Status ReloadCertificate() { return http_->ReloadCertificate(); }
  std::string certificate_file() const { return certificate_file_; }
  std::string key_file() const { return key_file_; }
  std::string endpoint() const { return endpoint_; }

 private:
  Status OpenStore();
  Status PrepareKeys();
  Status StartLoopback();
  Status StartHttp();
  // In the catalog, and in the file for `orrery keys`.
  runtime::Task<Status> ChangeKeys(std::function<void(model::AccountKeys&)> change);

  // The admin endpoints (admin.cc).
  runtime::Task<> Handle(const net::HttpRequest& request, net::HttpReply& reply);
  runtime::Task<> HandleAdmin(const net::HttpRequest& request, net::HttpReply& reply);
  std::string StatusJson() const;
  runtime::Task<Status> RegenerateKey(std::string_view body);
  runtime::Task<Status> Backup(std::string_view body);

  const Settings settings_;
  SystemClock clock_;
  SystemRandom random_;
  std::unique_ptr<runtime::WorkerPool> workers_;
  std::unique_ptr<storage::Store> store_;
  std::unique_ptr<replication::LocalReplicaSet> meta_;
  std::unique_ptr<model::Catalog> catalog_;
  partition::ReplicaTable replicas_;
  partition::OperationRegistry registry_;
  std::unique_ptr<partition::Router> router_;
  std::unique_ptr<model::PartitionHost> host_;
  std::unique_ptr<net::PeerServer> peer_server_;
  std::unique_ptr<net::PeerClient> peer_client_;
  Metrics metrics_;
  std::unique_ptr<api::sql::Service> service_;
  std::unique_ptr<net::HttpServer> http_;
  model::RecoveredOutcomes outcomes_;
  std::string certificate_file_;
  std::string key_file_;
  std::string endpoint_;
};

}  // namespace orrery::server
