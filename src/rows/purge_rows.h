// PurgeRows: drops what is dead of the rows of one physical partition, at its leader.
//
// 1. A survey: a walk over a snapshot, in slices and without latches. It finds whether anything is
//    dead before the limit (partition time less the table's grace), and counts what is there:
//    writes that do not look are counted as if nothing had been there before.
// 2. One entry of the log sets the totals right and raises the purge horizon to the limit
//    (partition/horizon.h). From then on whoever writes with a timestamp that is not later looks at
//    the row and at the deletions of its partition: what these hide is never written.
// 3. Slice by slice, each with its logical partitions latched: what is dead is dropped from rows
//    by a put of what is left, or a delete. The deletions of a logical partition go last, when all
//    of its rows were looked at since the horizon rose; so nothing is left that they hide.
//
// The work of the system itself: on nobody's account. Never sent; its maker reads what it found.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "model/catalog_types.h"
#include "partition/operation.h"
#include "partition/replica.h"

namespace orrery::rows {

class PurgeRows final : public partition::Operation {
 public:
  // Of one slice.
  size_t keys_max = 2000;
  size_t bytes_max = 1 << 20;
  // Ends early when it says so.
  std::function<bool()> stop = [] { return false; };

  // What came of it: keys that are gone, those of which something stays, bytes.
  uint64_t dropped = 0;
  uint64_t trimmed = 0;
  int64_t bytes = 0;
  uint64_t entries = 0;      // of the log
  int64_t next = INT64_MAX;  // the least limit at which there is more to drop

  partition::OperationKind kind() const override { return partition::OperationKind::kPurgeRows; }
  bool writes() const override { return true; }
  void Encode(Encoder&) const override {}
  partition::RequestUnits least_price() const override { return {}; }
  runtime::Task<partition::Reply> Run(partition::Replica& replica) override;

 private:
  struct Survey;
  struct Slice;
  runtime::Task<Status> Look(partition::Replica& replica, Survey& survey);
  runtime::Task<Status> Mark(partition::Replica& replica, const Survey& survey);
  runtime::Task<Status> Sweep(partition::Replica& replica, const Survey& survey);
  runtime::Task<Status> Drop(partition::Replica& replica, Slice& slice, uint64_t term);

  int64_t grace_ = 0;  // microseconds
};

}  // namespace orrery::rows
