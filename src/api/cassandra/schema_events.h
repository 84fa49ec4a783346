// SchemaEvents: tells clients what is different in the schema, whoever changed it.
//
// Each node compares the schema that it showed last with the one that it has now: after a
// definition that went through it at once, after those through others within a moment.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "api/cassandra/responses.h"
#include "api/cassandra/schema_cache.h"
#include "api/cassandra/server.h"
#include "cql/schema.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

// What happened between two schemas. Of a keyspace that is new or gone nothing else is told.
std::vector<SchemaChange> SchemaChanges(const cql::Schema& before, const cql::Schema& after);

class SchemaEvents {
 public:
  explicit SchemaEvents(const SchemaCache& schemas) : schemas_(schemas) {}

  // Looks now and then, until Stop(). REQUIRES: the server outlives it.
  void Start(CassandraServer& server, runtime::WorkerPool& workers);
  // Blocks. REQUIRES: not on a worker.
  void Stop();
  // Looks now.
  void Publish();

 private:
  runtime::Task<> Loop(runtime::Gate::Pass pass);

  const SchemaCache& schemas_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  CassandraServer* server_ = nullptr;
  std::shared_ptr<const cql::Schema> shown_;
};

}  // namespace orrery::cassandra
