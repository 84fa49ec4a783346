#include "partition/logical_walk.h"

#include <algorithm>

namespace orrery::partition {

Status LogicalWalk::Go(storage::Engine& state, const storage::Snapshot* snapshot, int64_t enough,
                       const Found& found) {
  // What was sent never leads out of the span.
  std::string start = std::max(span.begin, from);
  size_t items = 0;
  size_t bytes = 0;
  types::PartitionKey key;
  auto at = state.NewIterator(storage::Index(storage::Space::kItems), start, span.end, snapshot,
                              storage::ReadMode::kPassing);
  at->SeekToFirst();
  while (at->Valid()) {
    if (items >= kSliceItems || bytes >= kSliceBytes) {
      from = at->key();
      return Status::Ok();
    }
    if (prefix.empty() || !at->key().starts_with(prefix)) {
      if (!prefix.empty()) {
        found(prefix, totals);
      }
      totals = {};
      prefix = storage::ReadLogicalPartition(at->key(), &key);
      if (prefix.empty()) {
        return Status(Code::kCorruption, "the key of an item is malformed");
      }
    }
    auto size = static_cast<int64_t>(at->key().size() + at->value().size());
    totals.bytes += size;
    totals.items += 1;
    ++items;
    bytes += static_cast<size_t>(size);
    if (enough > 0 && totals.bytes >= enough) {
      found(prefix, totals);
      at->Seek(storage::PrefixEnd(std::exchange(prefix, {})));
    } else {
      at->Next();
    }
  }
  if (!at->status().ok()) {
    return at->status();
  }
  if (!prefix.empty()) {
    found(prefix, totals);
  }
  prefix.clear();
  done = true;
  return Status::Ok();
}

void LogicalWalk::Encode(Encoder& encoder) const {
  encoder.Bytes(from);
  encoder.Bytes(prefix);
  encoder.U64(static_cast<uint64_t>(totals.bytes));
  encoder.U64(static_cast<uint64_t>(totals.items));
  encoder.Bool(done);
}

LogicalWalk LogicalWalk::Decode(Decoder& decoder) {
  LogicalWalk walk;
  walk.from = decoder.Bytes();
  walk.prefix = decoder.Bytes();
  walk.totals.bytes = static_cast<int64_t>(decoder.U64());
  walk.totals.items = static_cast<int64_t>(decoder.U64());
  walk.done = decoder.Bool();
  return walk;
}

}  // namespace orrery::partition
