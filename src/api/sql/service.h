// Service: the SQL (documents) REST API. Turns requests into changes of the catalog and operations
// on partitions; knows no nodes, no storage.
//
// Thread-safe: every worker calls Handle() for the connections that it has.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "model/catalog.h"
#include "net/http_server.h"
#include "partition/governor.h"
#include "partition/router.h"
#include "replication/replica_set.h"
#include "runtime/task.h"

namespace orrery::api::sql {

using Consistency = partition::ReadLevel;
// kInvalidArgument if there is no such level.
Result<Consistency> ParseConsistency(std::string_view name);
std::string_view ConsistencyName(Consistency level);

// A place that answers clients: a node of a cluster.
struct Location {
  std::string name;
  std::string endpoint;
};

struct ServiceOptions {
  std::string account = "orrery";
  std::string endpoint;  // what GET / tells clients; empty: the Host that they asked
  // The nodes of a cluster, in the order in which clients should use them; this one is the first.
  // Null, or empty: it is alone. Thread-safe.
  std::function<std::vector<Location>()> locations;
  // Waits until the catalog has what was done through other nodes before. Null: it is alone.
  std::function<runtime::Task<>()> catch_up;
  Consistency consistency = Consistency::kSession;
  replication::Staleness staleness;   // what BoundedStaleness means
  uint64_t control_throughput = 240;  // RU/s of the control plane
};

// Told of every request when it ends. Thread-safe.
class RequestObserver {
 public:
  virtual ~RequestObserver() = default;
  virtual void OnRequest(std::string_view operation, int status, double charge, Duration took) = 0;
};

struct Call;

class Service {
 public:
  Service(model::Catalog& catalog, partition::Router& router, partition::ReplicaTable& replicas,
          const Clock& clock, Random& random, ServiceOptions options, RequestObserver* observer);

  runtime::Task<> Handle(const net::HttpRequest& request, net::HttpReply& reply);

  // Whether the request is signed with an account key; for the admin endpoints too. `write`: a
  // read-only key is not enough.
  Status Authorize(const net::HttpRequest& request, std::string_view type, std::string_view link,
                   bool write) const;

 private:
  friend struct Call;
  runtime::Task<> Dispatch(Call& call);

  model::Catalog& catalog_;
  partition::Router& router_;
  partition::ReplicaTable& replicas_;
  const Clock& clock_;
  Random& random_;
  const ServiceOptions options_;
  RequestObserver* const observer_;
  partition::Governor control_budget_;
};

}  // namespace orrery::api::sql
