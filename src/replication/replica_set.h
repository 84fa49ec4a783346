// ReplicaSet: commits WriteSets for one group, by the local log alone or by a quorum.
//
// Lives on its partition's worker; applied(), totals() and leads() are thread-safe.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/strong_id.h"
#include "runtime/task.h"
#include "storage/write_set.h"

namespace orrery::replication {

class ReplicaSet {
 public:
  virtual ~ReplicaSet() = default;

  // Whether this replica may evaluate operations, and the term in which it does. A WriteSet that
  // was evaluated in another term is refused with kNotLeader.
  virtual bool leads() const = 0;
  virtual uint64_t term() const = 0;

  // Returns when the set is durable, by quorum where there is one, and applied here. kUnavailable:
  // nothing was done. kUnknownOutcome: it may have been.
  virtual runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t term) = 0;

  // After it everything that was acknowledged before the call is applied here: what a Strong read,
  // and a refusal that depends on data, waits for.
  virtual runtime::Task<Status> ReadBarrier() = 0;

  virtual Lsn applied() const = 0;
  virtual storage::Totals totals() const = 0;
};

}  // namespace orrery::replication
