// PartitionHost: makes this node's replicas follow the catalog, and looks after them in the
// background: deletes what has expired, clears what was dropped.
//
// What CatalogListener declares runs on the meta group's worker.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/catalog.h"
#include "partition/replica.h"
#include "partition/router.h"
#include "runtime/gate.h"
#include "runtime/worker.h"
#include "storage/store.h"

namespace orrery::model {

struct HostOptions {
  bool burst = false;
  bool strict = false;  // throttle also where nobody chose a throughput
  Duration sweep_interval = std::chrono::seconds(1);
};

// Outcomes of operations that the log still remembers, by group.
struct RecoveredOutcome {
  storage::OperationId id;
  Lsn lsn;
  std::string result;
  WallTime time;
};
using RecoveredOutcomes = std::map<GroupId, std::vector<RecoveredOutcome>>;

class PartitionHost final : public CatalogListener {
 public:
  PartitionHost(Catalog& catalog, storage::Store& store, runtime::WorkerPool& workers,
                const Clock& clock, partition::ReplicaTable& replicas, HostOptions options);

  // Makes the replicas of what the catalog has. REQUIRES: before the workers start. kCorruption if
  // a container has no database.
  Status Load(RecoveredOutcomes outcomes);
  void Start();  // the background work
  void Stop();   // blocks; REQUIRES: not on a worker

  void OnCreated(const std::shared_ptr<const Container>& container,
                 const Database& database) override;
  void OnChanged(const std::shared_ptr<const Container>& container,
                 const Database& database) override;
  void OnDropped(ContainerId container, const std::vector<PartitionId>& partitions) override;
  void OnAbandoned(const std::vector<PartitionId>& partitions) override;

 private:
  struct Share {
    uint64_t per_partition = 0;
    bool governed = false;
  };
  Share ShareOf(const Container& container, const Database& database) const;
  std::vector<std::shared_ptr<partition::Replica>> MakeReplicas(
      const std::shared_ptr<const Container>& container, const Database& database);
  std::shared_ptr<partition::Governor> GovernorOf(const Container& container,
                                                  const Database& database, const Share& share);
  runtime::Task<> Sweep(runtime::Gate::Pass pass);
  runtime::Task<> SweepReplica(std::shared_ptr<partition::Replica> replica);
  runtime::Task<> Clear(ContainerId container, std::vector<PartitionId> partitions,
                        runtime::Gate::Pass pass);

  Catalog& catalog_;
  storage::Store& store_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  partition::ReplicaTable& replicas_;
  const HostOptions options_;
  const partition::ReplicaServices services_;
  std::map<DatabaseId, std::shared_ptr<partition::Governor>> shared_governors_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace orrery::model
