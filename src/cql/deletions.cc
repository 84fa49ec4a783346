#include <algorithm>
#include <functional>
#include <map>

#include "cql/row_format.h"

namespace orrery::cql {
namespace {

constexpr uint8_t kHasPartition = 0x01;
constexpr uint8_t kPartitionBack = 0x02;
constexpr uint8_t kLate = 0x04;
constexpr uint8_t kHeadFlags = 0x07;
constexpr uint8_t kBack = 0x01;
constexpr uint8_t kContinues = 0x02;  // begins where the last range ends
constexpr uint8_t kRangeFlags = 0x03;

struct RangeView {
  std::string_view begin;
  std::string_view end;
  int64_t timestamp;
};

struct DeletionsView {
  int64_t partition = kNeverWritten;
  std::vector<RangeView> ranges;  // by key; none overlaps another
  int64_t late = 0;               // as in RowHead
};

// False: malformed. Ranges are added to those that are there.
bool Read(std::string_view bytes, DeletionsView& view) {
  FastDecoder in(bytes);
  if (in.U8() != kDeletionsTag) {
    return false;
  }
  int64_t newest = static_cast<int64_t>(in.U64());
  uint8_t flags = in.U8();
  if ((flags & ~kHeadFlags) != 0) {
    return false;
  }
  if ((flags & kHasPartition) != 0) {
    int64_t partition = (flags & kPartitionBack) != 0 ? in.Back(newest) : newest;
    view.partition = std::max(view.partition, partition);
  }
  if ((flags & kLate) != 0) {
    view.late = std::max(view.late, in.Late());
  }
  std::string_view last_end;
  bool first = true;
  while (!in.empty()) {
    uint8_t range_flags = in.U8();
    RangeView range{.timestamp = (range_flags & kBack) != 0 ? in.Back(newest) : newest};
    bool continues = (range_flags & kContinues) != 0;
    range.begin = continues ? last_end : in.Bytes();
    range.end = in.Bytes();
    if ((range_flags & ~kRangeFlags) != 0 || (first && continues) ||
        (!first && range.begin < last_end) || range.begin >= range.end) {
      return false;
    }
    first = false;
    last_end = range.end;
    view.ranges.push_back(range);
  }
  return in.ok();
}

void PutBack(Encoder& encoder, int64_t newest, int64_t timestamp) {
  if (timestamp != newest) {
    encoder.Varint(static_cast<uint64_t>(newest) - static_cast<uint64_t>(timestamp));
  }
}

// REQUIRES: ranges are sorted, none overlaps another, all are newer than the partition's deletion.
std::string Write(const DeletionsView& view) {
  int64_t newest = view.partition;
  size_t size = 32;
  for (const RangeView& range : view.ranges) {
    newest = std::max(newest, range.timestamp);
    size += range.begin.size() + range.end.size() + 16;
  }
  std::string bytes;
  bytes.reserve(size);
  Encoder encoder(bytes);
  encoder.U8(kDeletionsTag);
  encoder.U64(static_cast<uint64_t>(newest));
  const uint8_t late = view.late != 0 ? kLate : 0;
  if (view.partition != kNeverWritten) {
    encoder.U8(kHasPartition | (view.partition != newest ? kPartitionBack : 0) | late);
    PutBack(encoder, newest, view.partition);
  } else {
    encoder.U8(late);
  }
  if (late != 0) {
    encoder.Varint(static_cast<uint64_t>(view.late));
  }
  for (size_t i = 0; i < view.ranges.size(); ++i) {
    const RangeView& range = view.ranges[i];
    bool continues = i > 0 && view.ranges[i - 1].end == range.begin;
    encoder.U8((range.timestamp != newest ? kBack : 0) | (continues ? kContinues : 0));
    PutBack(encoder, newest, range.timestamp);
    if (!continues) {
      encoder.Bytes(range.begin);
    }
    encoder.Bytes(range.end);
  }
  return bytes;
}

// Where a range begins or ends.
struct Bound {
  std::string_view key;
  int64_t timestamp;
  bool begins;
};

// Of all keys the latest timestamp, in as few ranges as there can be. REQUIRES: `bounds` are
// sorted.
std::vector<RangeView> Flatten(const std::vector<Bound>& bounds) {
  std::vector<RangeView> ranges;
  std::map<int64_t, size_t, std::greater<>> open;  // how many ranges of each timestamp
  for (size_t i = 0; i < bounds.size();) {
    std::string_view key = bounds[i].key;
    for (; i < bounds.size() && bounds[i].key == key; ++i) {
      auto entry = open.try_emplace(bounds[i].timestamp, 0).first;
      entry->second += bounds[i].begins ? 1 : -1;
      if (entry->second == 0) {
        open.erase(entry);
      }
    }
    if (open.empty()) {
      continue;
    }
    int64_t timestamp = open.begin()->first;
    std::string_view end = bounds[i].key;
    if (!ranges.empty() && ranges.back().end == key && ranges.back().timestamp == timestamp) {
      ranges.back().end = end;
    } else {
      ranges.push_back({key, end, timestamp});
    }
  }
  return ranges;
}

}  // namespace

std::string DeletionOfPartition(int64_t timestamp, int64_t late) {
  return Write({.partition = timestamp, .ranges = {}, .late = late});
}

std::string DeletionOfRange(std::string_view begin, std::string_view end, int64_t timestamp,
                            int64_t late) {
  DeletionsView view{.late = late};
  if (begin < end && timestamp != kNeverWritten) {
    view.ranges.push_back({begin, end, timestamp});
  }
  return Write(view);
}

std::optional<std::string> MergeDeletions(const Inputs& inputs) {
  DeletionsView all;
  size_t of_first = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!Read(inputs[i], all)) {
      return std::nullopt;
    }
    if (i == 0) {
      of_first = all.ranges.size();
    }
  }
  // The first is often long, and sorted; the others are short.
  std::vector<Bound> first;
  std::vector<Bound> others;
  first.reserve(2 * of_first);
  for (size_t i = 0; i < all.ranges.size(); ++i) {
    const RangeView& range = all.ranges[i];
    if (range.timestamp > all.partition) {
      std::vector<Bound>& bounds = i < of_first ? first : others;
      bounds.push_back({range.begin, range.timestamp, true});
      bounds.push_back({range.end, range.timestamp, false});
    }
  }
  std::ranges::sort(others, {}, &Bound::key);
  std::vector<Bound> bounds(first.size() + others.size());
  std::ranges::merge(first, others, bounds.begin(), {}, &Bound::key, &Bound::key);
  all.ranges = Flatten(bounds);
  return Write(all);
}

Result<Deletions> Deletions::Parse(std::string_view bytes) {
  DeletionsView view;
  if (!Read(bytes, view)) {
    return Error(Code::kCorruption, "deletions of a partition are malformed");
  }
  Deletions deletions;
  deletions.partition_ = view.partition;
  deletions.bytes_ = bytes;
  deletions.ranges_.reserve(view.ranges.size());
  auto place = [bytes](std::string_view key) {
    return static_cast<size_t>(key.data() - bytes.data());
  };
  for (const RangeView& range : view.ranges) {
    deletions.ranges_.push_back({place(range.begin), range.begin.size(), place(range.end),
                                 range.end.size(), range.timestamp});
  }
  return deletions;
}

Result<Remains> PurgeDeletions(std::string_view deletions, int64_t horizon) {
  DeletionsView view;
  if (!Read(deletions, view)) {
    return Error(Code::kCorruption, "deletions of a partition are malformed");
  }
  Remains remains;
  auto dies = [&](int64_t timestamp) {
    const int64_t when = DeletionDies(timestamp, view.late);
    const bool dead = when <= horizon;
    remains.changed |= dead;
    remains.next = dead ? remains.next : std::min(remains.next, when);
    return dead;
  };
  std::erase_if(view.ranges, [&](const RangeView& range) { return dies(range.timestamp); });
  if (view.partition != kNeverWritten && dies(view.partition)) {
    view.partition = kNeverWritten;
  }
  // A range without keys is written as nothing at all.
  const bool empty = view.ranges.empty() && view.partition == kNeverWritten;
  remains.changed |= empty;
  if (remains.changed && !empty) {
    remains.value = Write(view);
  }
  return remains;
}

int64_t Deletions::At(std::string_view row_key) const {
  // The last range that begins at the key or before it.
  auto after = std::ranges::upper_bound(ranges_, row_key, {},
                                        [this](const Range& range) { return Begin(range); });
  if (after == ranges_.begin() || row_key >= End(*std::prev(after))) {
    return partition_;
  }
  return std::max(partition_, std::prev(after)->timestamp);
}

}  // namespace orrery::cql
