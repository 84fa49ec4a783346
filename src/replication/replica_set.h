// ReplicaSet: commits WriteSets for one group, by the local log alone or by a quorum.
//
// Lives on its partition's worker; applied(), totals() and leads() are thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "runtime/task.h"
#include "storage/write_set.h"

namespace orrery::replication {

// What happens to a group's state, told on its worker.
class ApplyListener {
 public:
  virtual ~ApplyListener() = default;
  // Each WriteSet, in order, before Commit of it returns.
  virtual void OnApplied(Lsn lsn, const storage::WriteSetView& set) = 0;
  // A snapshot took the place of everything; ReplicaSet::extra() is what came with it.
  virtual void OnReplaced() {}
  // What it remembers of operations, in the form in which snapshots and cut logs carry it.
  virtual std::string Outcomes() const { return {}; }
  // It takes no more writes, and why (WriteSet::frozen); empty: it does again. Told at the
  // beginning, and when it changes.
  virtual void OnFrozen(const std::string& why) {}
  // May evaluate operations from now on, or no longer.
  virtual void OnLeading(bool leads) {}
};

// How far a BoundedStaleness read may be behind: in entries of the log, and in time.
struct Staleness {
  uint64_t versions = 100;
  Duration time = std::chrono::seconds(5);
};

class ReplicaSet {
 public:
  virtual ~ReplicaSet() = default;

  // REQUIRES: before anything is committed.
  virtual void SetListener(ApplyListener* listener) = 0;

  // Whether this replica may evaluate operations, and the term in which it does. A WriteSet that
  // was evaluated in another term is refused with kNotLeader.
  virtual bool leads() const = 0;
  virtual uint64_t term() const = 0;
  // Whether there may be other replicas: then only the leader knows what is newest.
  virtual bool replicated() const { return false; }
  // Where the leader is; 0: not known, or here.
  virtual NodeId leader_node() const { return NodeId(); }

  // Returns when the set is durable, by quorum where there is one, and applied here. kUnavailable,
  // kNotLeader: nothing was done. kUnknownOutcome: it may have been.
  virtual runtime::Task<Result<Lsn>> Commit(storage::WriteSet set, uint64_t term) = 0;

  // After it everything that was acknowledged before the call is applied here: what a Strong read,
  // and a refusal that depends on data, waits for. kNotLeader where only the leader can know.
  virtual runtime::Task<Status> ReadBarrier() = 0;
  // Whether it is known that everything acknowledged more than `bound.time` ago is applied here,
  // and at most `bound.versions` entries lack of those that are known to be committed. False where
  // nobody has said so lately. Thread-safe.
  virtual bool Within(const Staleness& bound) const { return true; }
  // Grows when a snapshot begins to take the place of the state, and when it has: odd in between.
  // What was read meanwhile is no state that ever was. Thread-safe.
  virtual uint64_t installs() const { return 0; }
  // Waits until `lsn` is applied here; kSessionNotReached if that takes longer.
  virtual runtime::Task<Status> WaitApplied(Lsn lsn, Duration longest) {
    co_return applied() >= lsn
        ? Status::Ok()
        : Status(Code::kSessionNotReached, lsn.ToString() + " is not applied");
  }

  // A read of the state here gave kCorruption. True: another replica can answer, and this one will
  // be made anew if the others can do without it. False: there is none.
  virtual runtime::Task<bool> ReportDamage(Status why) { co_return false; }

  // What the snapshot carried for the listener that this replica was last installed from.
  virtual const std::string& extra() const {
    static const std::string none;
    return none;
  }

  // Who has the log up to `lsn` and may vote, as this leader knows it; and the term of that entry.
  struct Holders {
    uint64_t term = 0;
    std::vector<NodeId> voters;  // this node first
    std::vector<NodeId> holders;
    std::vector<NodeId> silent;  // voters of which nothing was heard lately
  };
  virtual Result<Holders> HoldersOf(Lsn lsn) const { return Holders{.term = term()}; }

  virtual Lsn applied() const = 0;
  virtual storage::Totals totals() const = 0;
};

}  // namespace orrery::replication
