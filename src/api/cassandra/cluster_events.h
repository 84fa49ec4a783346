// ClusterEvents: tells clients which nodes come and go, and which can be reached.
//
// Each node compares what it showed last of the others, those of system.peers, with what it knows
// now. A node is up while this one hears of it: clients may find it silent a moment before, or
// answering a moment before they are told.
//
// Lives on the first worker.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/cassandra/server.h"
#include "cql/system_schema.h"
#include "runtime/gate.h"
#include "runtime/task.h"
#include "runtime/worker.h"

namespace orrery::cassandra {

// What an event says of a node.
struct NodeChange {
  EventKind kind = EventKind::kTopology;
  std::string change;   // NEW_NODE, REMOVED_NODE; of kStatus UP, DOWN
  std::string address;  // 4 or 16 bytes
  uint16_t port = 0;
  bool operator==(const NodeChange&) const = default;
};

// What happened to the peers between two views. One that is elsewhere now was removed and is new;
// of a new one it is told if it is up.
std::vector<NodeChange> NodeChanges(const cql::ClusterView& before, const cql::ClusterView& after);

class ClusterEvents {
 public:
  // `look` is called on the first worker.
  explicit ClusterEvents(std::function<cql::ClusterView()> look) : look_(std::move(look)) {}

  // Looks now and then, until Stop(). REQUIRES: the server outlives it.
  void Start(CassandraServer& server, runtime::WorkerPool& workers);
  // Blocks. REQUIRES: not on a worker.
  void Stop();

 private:
  runtime::Task<> Loop(CassandraServer& server, runtime::Gate::Pass pass);

  const std::function<cql::ClusterView()> look_;
  runtime::Gate gate_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace orrery::cassandra
