// Catalog: databases, containers, offers and keys, kept by the meta group (group 0).
//
// A change is evaluated on the meta group's worker, one at a time, committed like any other
// WriteSet, and published as a new immutable view; a look-up is a local read. Replicas of new
// containers exist before the view that names them is published.
//
// view() is thread-safe; changes may be asked for from any worker.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "base/random.h"
#include "base/status.h"
#include "base/time.h"
#include "model/catalog_types.h"
#include "partition/latches.h"
#include "replication/replica_set.h"
#include "runtime/worker.h"
#include "storage/engine.h"

namespace orrery::model {

// The rules of throughput and size; every limit is a setting.
struct CatalogLimits {
  uint64_t partition_throughput = 10'000;  // t, RU/s of one physical partition
  uint64_t throughput_min = 400;
  uint64_t throughput_max = 1'000'000;
  uint64_t autoscale_min = 1'000;
  uint64_t default_throughput = 400;
  size_t resources_max = 500;  // databases and containers together
};

// What happens on the node when the catalog changes. Called on the meta group's worker.
class CatalogListener {
 public:
  virtual ~CatalogListener() = default;
  virtual void OnCreated(const std::shared_ptr<const Container>& container,
                         const Database& database) = 0;
  // The definition or the throughput changed.
  virtual void OnChanged(const std::shared_ptr<const Container>& container,
                         const Database& database) = 0;
  virtual void OnDropped(ContainerId container, const std::vector<PartitionId>& partitions) = 0;
  // OnCreated was called, but the container could not be made: there is nothing to clear.
  virtual void OnAbandoned(const std::vector<PartitionId>& partitions) = 0;
};

// Throughput as a request names it; neither: nothing was asked for.
struct ThroughputRequest {
  std::optional<uint64_t> manual;
  std::optional<uint64_t> autoscale_max;
};

class Catalog {
 public:
  Catalog(replication::ReplicaSet& meta, runtime::Worker& worker, const Clock& clock,
          CatalogLimits limits);

  // Reads the records; `last_time` is that of the meta group's last entry. REQUIRES: before any
  // other call.
  Status Load(storage::Engine& state, WallTime last_time);
  void SetListener(CatalogListener* listener) { listener_ = listener; }
  std::shared_ptr<const CatalogView> view() const;
  partition::Ring FindRing(ContainerId container) const;
  const CatalogLimits& limits() const { return limits_; }

  template <typename T>
  using Change = runtime::Task<Result<std::shared_ptr<const T>>>;
  Change<Database> CreateDatabase(std::string name, ThroughputRequest throughput);
  runtime::Task<Status> DropDatabase(std::string name, std::string if_match);
  Change<Container> CreateContainer(std::string database, types::Document definition,
                                    ThroughputRequest throughput);
  Change<Container> ReplaceContainer(std::string link, types::Document definition,
                                     std::string if_match);
  runtime::Task<Status> DropContainer(std::string link, std::string if_match);
  // kNotSupported if it needs more partitions than there are: splits come later.
  runtime::Task<Status> ReplaceOffer(uint32_t number, ThroughputRequest throughput,
                                     std::string if_match);
  // Changes keys in the place where changes come one after the other, so that two of them do not
  // undo each other; gives all keys as they are then.
  runtime::Task<Result<AccountKeys>> ChangeKeys(std::function<void(AccountKeys&)> change);
  // The data of a dropped container is gone.
  runtime::Task<Status> Cleared(ContainerId container);

 private:
  struct Draft;  // a view in the making, with its WriteSet
  template <typename F>
  auto Exclusively(F body) -> std::invoke_result_t<F>;
  // With number 0; NumberOffer gives the next one.
  Result<Offer> MakeOffer(const ThroughputRequest& throughput, WallTime now) const;
  static Status NumberOffer(Draft& draft, Offer& offer);
  runtime::Task<Status> Publish(Draft draft);
  // Later than every time before, so that etags differ.
  WallTime NextTime();
  // REQUIRES: view_mutex_ is held.
  void SetView(std::shared_ptr<const CatalogView> view);

  replication::ReplicaSet& meta_;
  runtime::Worker& worker_;
  const Clock& clock_;
  const CatalogLimits limits_;
  CatalogListener* listener_ = nullptr;

  mutable std::mutex view_mutex_;
  std::shared_ptr<const CatalogView> view_;
  std::atomic<uint64_t> view_version_ = 0;

  // On the worker:
  partition::Latches latches_;
  WallTime last_time_;
};

// The etag of a record as clients see it, with quotes.
std::string EtagText(uint64_t etag, WallTime time);

}  // namespace orrery::model
