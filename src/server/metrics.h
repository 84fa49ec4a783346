// Metrics: what Prometheus reads at /metrics. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "api/sql/service.h"
#include "cluster/overview.h"
#include "model/catalog.h"
#include "model/reshaper.h"
#include "net/peer.h"
#include "partition/router.h"
#include "rows/purger.h"
#include "storage/store.h"

namespace orrery::server {

class Metrics final : public api::sql::RequestObserver {
 public:
  Metrics();
  ~Metrics() override;

  void OnRequest(std::string_view operation, int status, double charge, Duration took) override;

  // The text of all metrics; those of partitions are taken from the replicas now.
  std::string Render(const model::CatalogView& catalog, const partition::ReplicaTable& replicas,
                     const model::ReshapeCounters& reshapes, const Clock& clock,
                     const storage::Store& store, size_t connections);

 private:
  struct Body;
  std::unique_ptr<Body> body_;
};

std::string RenderPurged(const rows::Purger::Counts& counts);

// What a node knows of its cluster by itself: nodes, its own replicas, the sets that it leads, and
// its traffic with other nodes. Over all nodes each set is counted once, by its leader, and each
// move by who led then.
std::string RenderCluster(const cluster::Overview& here, NodeId self, uint64_t moves,
                          const net::PeerCounters& counters);

}  // namespace orrery::server
