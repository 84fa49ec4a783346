// Transport: how the nodes of a cluster reach each other. net/peer is below it in a process, the
// simulator in tests.
//
// Called from workers; what arrives is handed to the handlers that the node set, on a worker.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "base/strong_id.h"
#include "runtime/task.h"

namespace orrery::replication {

// The first byte of every request, so that a node knows who answers it.
enum class CallKind : uint8_t {
  kOperation = 1,     // an operation for a partition (partition/router)
  kSnapshot = 2,      // replication/snapshot_transfer
  kCatalog = 3,       // a change of the catalog for the leader of the meta group
  kJoin = 4,          // a node wants to become a member
  kInspect = 5,       // how it stands with replicas here, for status and comparison
  kCatalogIndex = 6,  // up to where the catalog is committed, of the leader of the meta group
};

class Transport {
 public:
  virtual ~Transport() = default;
  // One way. May be lost; in order for one sender's worker while a connection lives.
  virtual void Send(NodeId to, std::string frame) = 0;
  // kUnavailable: it was not sent. kUnknownOutcome: it may have been handled.
  virtual runtime::Task<Result<std::string>> Call(NodeId to, std::string request) = 0;
  // Nothing is heard of this node any more: calls to it that wait for an answer end soon, with
  // kUnknownOutcome. Thread-safe.
  virtual void EndCalls(NodeId to) = 0;
};

}  // namespace orrery::replication
