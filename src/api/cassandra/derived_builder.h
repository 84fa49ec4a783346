// DerivedBuilder: fills indexes and views that were made for tables with rows.
//
// From the moment that an index stands in the definition of its table every write keeps it up to
// date; of a view from the moment that the number of its table is raised, which is done here first.
// What was there before is read page by page, and each row is refreshed: made anew in what follows
// from it, under the latch of its partition, as any other write does it. So nothing has to stop
// meanwhile, and it may be done twice. The node that leads the first partition of the table does
// it, and begins again after a restart.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "api/cassandra/batch_keeper.h"
#include "api/cassandra/schema_cache.h"
#include "base/time.h"
#include "model/catalog.h"
#include "partition/router.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

class DerivedBuilder {
 public:
  DerivedBuilder(model::Catalog& catalog, const SchemaCache& schemas, partition::Router& router,
                 partition::ReplicaTable& replicas, BatchKeeper& batches,
                 runtime::WorkerPool& workers, const Clock& clock);

  // Looks now and then, until Stop().
  void Start();
  // Blocks. REQUIRES: not on a worker; before the router is stopped.
  void Stop();

  // Fills what is not ready of a table, if that can be done until `end`. kTimeout: not yet.
  runtime::Task<Status> Build(std::string keyspace, std::string table, Instant end);
  // Everything that is this node's to fill.
  runtime::Task<> Look();

 private:
  runtime::Task<> Loop(runtime::Gate::Pass pass);
  // Writes that knew nothing of the index are done when it ends.
  runtime::Task<Status> Settle(const model::Container& table);
  runtime::Task<Status> RefreshAll(const model::Container& table, Instant end);
  runtime::Task<Status> RefreshPage(ContainerId table, const rows::RowPage& page);
  // All at once, or row by row if that is too much.
  runtime::Task<Status> Refresh(ContainerId table, const rows::RowPage::Partition& partition);
  runtime::Task<Status> RefreshRows(ContainerId table, std::string_view partition_key,
                                    std::span<const rows::RowPage::Row> rows);
  // The indexes of a table that were not ready when it was looked at.
  runtime::Task<Status> MarkReady(const model::Container& container, const cql::Table& built);
  // Changes the definition of a table. Ok also if it is gone.
  runtime::Task<Status> Put(const model::Container& table, std::function<void(cql::Table&)> change);
  // Containers of indexes that never came to be. Whether there are none.
  runtime::Task<bool> DropOrphans(const SchemaView& view);
  bool Leads(const model::Container& table) const;

  model::Catalog& catalog_;
  const SchemaCache& schemas_;
  partition::Router& router_;
  partition::ReplicaTable& replicas_;
  BatchKeeper& batches_;
  runtime::WorkerPool& workers_;
  const Clock& clock_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::shared_ptr<const cql::Schema> looked_at_;  // nothing was left to do; on the first worker
};

}  // namespace orrery::cassandra
