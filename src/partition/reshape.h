// What a split or a merge of partitions leaves in their logs, and where a partition is cut.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strong_id.h"
#include "storage/write_set.h"
#include "types/epk.h"

namespace orrery::partition {

// Why a partition takes no more writes: others come in its place.
struct FreezeMark {
  PartitionId heir;  // the first of them; names the change, for ids are never used again
  types::Epk cut;    // of a split: where the right one begins; empty: a merge
  storage::Totals left;
  storage::Totals right;  // of a split

  std::string Encode() const;
  // kCorruption if it is malformed.
  static Result<FreezeMark> Decode(std::string_view bytes);
};

// Finds the place that divides the bytes of a partition in halves, from one walk over its items in
// the order of the ring. The middle of the ring's range is taken if it leaves 40 to 60 percent on
// each side; else the place nearest to the half, never inside a logical partition.
class CutFinder {
 public:
  struct Cut {
    types::Epk place;
    storage::Totals left;  // of what lies before it
  };

  CutFinder(int64_t bytes, types::Epk middle) : bytes_(bytes), middle_(std::move(middle)) {}

  // The next item. False: the cut is known, and nothing more needs to be added.
  bool Add(std::string_view epk, int64_t bytes);
  // At the end of the walk. Nothing: no place leaves a twentieth on both sides.
  std::optional<Cut> Finish() { return std::move(best_); }
  // The middle of the range, however much lies on each side. REQUIRES: all items were added.
  Cut Middle() const { return {middle_, passed_middle_ ? middle_left_ : reached_}; }

 private:
  void Offer(types::Epk place);
  bool Within(double share) const;

  const int64_t bytes_;
  const types::Epk middle_;
  storage::Totals reached_;
  types::Epk at_;  // of the last item
  bool passed_middle_ = false;
  storage::Totals middle_left_;
  std::optional<Cut> best_;
};

}  // namespace orrery::partition
