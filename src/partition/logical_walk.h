// LogicalWalk: over the logical partitions of a span of items, in key order, a slice at a time.
//
// Each slice is one call on a blocking thread; in between the walk is a value that can be kept or
// sent. Without a snapshot each slice sees what is there at its time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "storage/engine.h"
#include "storage/keys.h"
#include "storage/write_set.h"

namespace orrery::partition {

struct LogicalWalk {
  static constexpr size_t kSliceItems = 10'000;
  static constexpr size_t kSliceBytes = 16 << 20;

  storage::KeySpan span;
  std::string from;        // the next key to look at; "": the beginning of the span
  std::string prefix;      // of the logical partition that was seen last
  storage::Totals totals;  // what was seen of it
  bool done = false;

  // REQUIRES: the prefix is one of storage::LogicalPartitionPrefix.
  using Found = std::function<void(const std::string& prefix, const storage::Totals& totals)>;
  // Walks a slice and tells of each logical partition at its end. One with `enough` bytes is told
  // of at once, with what was seen of it, and the rest of it is left out; 0: none is.
  // kCorruption: a key is none of an item.
  Status Go(storage::Engine& state, const storage::Snapshot* snapshot, int64_t enough,
            const Found& found);

  void Encode(Encoder& encoder) const;  // without the span
  static LogicalWalk Decode(Decoder& decoder);
};

}  // namespace orrery::partition
