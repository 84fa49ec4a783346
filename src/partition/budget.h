// Budget: what replicas may spend, wherever they are.
//
// A budget has one owner: the leader of its partition, or for the throughput of a database the
// leader of the database's first partition. There the governor decides. Elsewhere units are
// borrowed from the owner: a slice is good for 100 ms, what is left of it then goes back with the
// next request, and what was overdrawn is asked for in addition. How much is asked for follows what
// the last slices were used for. While the owner has nothing to lend, and for a second after, a
// slice is for operations of high priority only.
//
// Thread-safe, like the governor.
#pragma once

#include <mutex>
#include <optional>

#include "base/strong_id.h"
#include "base/time.h"
#include "partition/governor.h"
#include "partition/operation.h"
#include "partition/partition_map.h"

namespace orrery::partition {

// Where the owner is.
struct BudgetOwner {
  ContainerId container;
  PartitionRange range;
};

class Budget {
 public:
  // REQUIRES: share > 0.
  explicit Budget(RequestUnits share, bool burst = false) : governor_(share, burst) {}

  Governor& governor() { return governor_; }
  void SetOwner(BudgetOwner owner);
  BudgetOwner owner() const;
  PartitionId owner_id() const;

  // As those of the governor, from the slice. Take: false if nothing is left.
  bool HasSlice(Instant now);
  bool Take(RequestUnits least, Instant now, Priority priority = Priority::kHigh);
  void Settle(RequestUnits rest, Instant now);

  struct Ask {
    RequestUnits want;
    RequestUnits back;
  };
  // Nothing: somebody asks already, or the owner had nothing a moment ago. Each is followed by
  // EndBorrow.
  std::optional<Ask> BeginBorrow(Instant now);
  void EndBorrow(RequestUnits granted, Instant now);

 private:
  void Expire(Instant now);  // with mutex_ held

  Governor governor_;
  mutable std::mutex mutex_;
  BudgetOwner owner_;
  RequestUnits slice_;  // below zero: overdrawn
  RequestUnits back_;   // of slices that are over
  RequestUnits spent_;  // of this slice
  RequestUnits want_ = RequestUnits(10);
  Instant slice_end_;
  Instant not_before_;
  Instant high_only_until_;
  bool asking_ = false;
};

// The request for a slice, executed by the owner. The reply's body: what was granted, as TakeGrant
// reads it.
class BorrowUnits final : public Operation {
 public:
  OperationKind kind() const override { return OperationKind::kBorrowUnits; }
  void Encode(Encoder& encoder) const override;
  static Result<std::unique_ptr<Operation>> Decode(Decoder& decoder);
  bool runs_anywhere() const override { return true; }
  bool writes() const override { return true; }  // only a leader can do it
  RequestUnits least_price() const override { return {}; }
  runtime::Task<Reply> Run(Replica& replica) override;

  static RequestUnits TakeGrant(const Reply& reply);

  Budget::Ask ask;
};

}  // namespace orrery::partition
