#include "cql/row_format.h"

#include <algorithm>
#include <limits>

namespace orrery::cql {
namespace {

// The byte after the head's timestamp.
constexpr uint8_t kHasMark = 0x01;
constexpr uint8_t kMarkBack = 0x02;
constexpr uint8_t kMarkExpires = 0x04;
constexpr uint8_t kHasDeletion = 0x08;
constexpr uint8_t kDeletionBack = 0x10;
constexpr uint8_t kLate = 0x20;
constexpr uint8_t kHeadFlags = 0x3F;

// The first byte of a part.
constexpr uint8_t kKind = 0x03;
constexpr int kStepShift = 2;
constexpr uint8_t kStep = 0x03;  // after the shift; 3: it follows
constexpr uint8_t kHasPath = 0x10;
constexpr uint8_t kBack = 0x20;
constexpr uint8_t kExpires = 0x40;    // a value
constexpr uint8_t kNewExpiry = 0x80;  // a value: not the expiry that stood last
constexpr uint8_t kReset = 0x40;      // a counter: it was deleted before

constexpr size_t kVarintMax = 10;
// A part but for the bytes of its path and its value: flags and at most six varints.
constexpr size_t kPartHeadMax = 1 + 6 * kVarintMax;

char* PutVarint(char* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<char>(value);
  return at;
}

uint64_t Distance(int64_t newest, int64_t timestamp) {
  return static_cast<uint64_t>(newest) - static_cast<uint64_t>(timestamp);
}

// Of cells that are values or deleted.
bool Supersedes(const Part& a, const Part& b) {
  bool a_deleted = a.kind == PartKind::kDeleted;
  bool b_deleted = b.kind == PartKind::kDeleted;
  if (a.stamp.timestamp == b.stamp.timestamp && a_deleted != b_deleted) {
    return a_deleted;
  }
  int order = CompareStamps(a.stamp, b.stamp);
  return order != 0 ? order > 0 : a.value > b.value;
}

}  // namespace

uint64_t FastDecoder::LongVarint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    uint8_t byte = U8();
    value |= uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) {
      return ok_ ? value : 0;
    }
  }
  Fail();
  return 0;
}

int CompareStamps(const Stamp& a, const Stamp& b) {
  if (a.timestamp != b.timestamp) {
    return a.timestamp > b.timestamp ? 1 : -1;
  }
  if ((a.ttl != 0) != (b.ttl != 0)) {
    return a.ttl != 0 ? 1 : -1;
  }
  if (a.expires != b.expires) {
    return a.expires > b.expires ? 1 : -1;
  }
  // The one that was written later.
  return a.ttl == b.ttl ? 0 : a.ttl < b.ttl ? 1 : -1;
}

void Combine(Part& sum, const Part& next) {
  bool counter = sum.kind == PartKind::kCounter;
  bool next_counter = next.kind == PartKind::kCounter;
  if (!counter && !next_counter) {
    if (Supersedes(next, sum)) {
      sum = next;
    }
    return;
  }
  // No column is a counter and has values; if one does, the values stay.
  if (sum.kind == PartKind::kValue) {
    return;
  }
  if (next.kind == PartKind::kValue) {
    sum = next;
    return;
  }
  int64_t deleted = counter ? sum.deleted : sum.stamp.timestamp;
  if (!next_counter) {
    sum = next;
    sum.stamp.timestamp = std::max(deleted, next.stamp.timestamp);
    return;
  }
  if (counter && next.deleted == kNeverWritten) {
    sum.count = WrappingSum(sum.count, next.count);
    sum.stamp.timestamp = std::max(sum.stamp.timestamp, next.stamp.timestamp);
  } else {
    sum = next;
  }
  sum.deleted = std::max(deleted, next.deleted);
}

PartReader::PartReader(std::string_view row) : in_(row) {
  if (in_.U8() != kRowTag) {
    in_.Fail();
    return;
  }
  head_.newest = static_cast<int64_t>(in_.U64());
  uint8_t flags = in_.U8();
  if ((flags & ~kHeadFlags) != 0) {
    in_.Fail();
    return;
  }
  if ((flags & kHasMark) != 0) {
    head_.mark.timestamp = (flags & kMarkBack) != 0 ? in_.Back(head_.newest) : head_.newest;
    if ((flags & kMarkExpires) != 0) {
      ReadExpiry(head_.mark);
    }
  }
  if ((flags & kHasDeletion) != 0) {
    head_.deletion = (flags & kDeletionBack) != 0 ? in_.Back(head_.newest) : head_.newest;
  }
  if ((flags & kLate) != 0) {
    head_.late = in_.Late();
  }
}

void PartReader::ReadExpiry(Stamp& stamp) {
  uint64_t ttl = in_.Varint();
  expires_ = UnZigZag(in_.Varint());
  if (ttl == 0 || ttl > std::numeric_limits<int32_t>::max()) {
    in_.Fail();
    return;
  }
  ttl_ = static_cast<int32_t>(ttl);
  stamp.ttl = ttl_;
  stamp.expires = expires_;
}

void PartReader::ReadPart() {
  uint8_t flags = in_.U8();
  PartKind last_kind = part_.kind;
  std::string_view last_path = part_.path;
  part_.kind = static_cast<PartKind>(flags & kKind);
  uint64_t step = (flags >> kStepShift) & kStep;
  if (step == kStep) {
    step = in_.Varint();
  }
  if (step > std::numeric_limits<uint32_t>::max() - part_.column) {
    in_.Fail();
    return;
  }
  part_.column += static_cast<uint32_t>(step);
  int64_t newest = head_.newest;
  part_.stamp = Stamp{.timestamp = (flags & kBack) != 0 ? in_.Back(newest) : newest};
  part_.value = {};
  switch (part_.kind) {
    case PartKind::kColumnDeletion:
    case PartKind::kDeleted:
      if ((flags & (kExpires | kNewExpiry)) != 0) {
        in_.Fail();
      }
      break;
    case PartKind::kValue:
      if ((flags & kNewExpiry) != 0) {
        ReadExpiry(part_.stamp);
      } else if ((flags & kExpires) != 0) {
        part_.stamp.ttl = ttl_;
        part_.stamp.expires = expires_;
      }
      if ((flags & kExpires) != 0 ? ttl_ == 0 : (flags & kNewExpiry) != 0) {
        in_.Fail();
      }
      break;
    case PartKind::kCounter:
      part_.deleted = (flags & kReset) != 0 ? in_.Back(newest) : kNeverWritten;
      part_.count = UnZigZag(in_.Varint());
      if ((flags & kNewExpiry) != 0) {
        in_.Fail();
      }
      break;
  }
  part_.path = (flags & kHasPath) != 0 ? in_.Bytes() : std::string_view();
  if (part_.kind == PartKind::kValue) {
    part_.value = in_.Bytes();
  }
  // A deletion of a column stands alone before its cells, and those by path.
  bool deletion = part_.kind == PartKind::kColumnDeletion;
  bool same_column = step == 0 && !first_;
  bool in_order = !same_column ||
                  (!deletion && (last_kind == PartKind::kColumnDeletion || last_path < part_.path));
  if (!in_order || (deletion && !part_.path.empty())) {
    in_.Fail();
  }
  first_ = false;
}

PartWriter::PartWriter(std::string& out, const RowHead& head) : out_(out), newest_(head.newest) {
  char bytes[2 + 8 + 5 * kVarintMax];
  bytes[0] = static_cast<char>(kRowTag);
  PutU64(bytes + 1, static_cast<uint64_t>(newest_));
  char* at = bytes + 10;
  uint8_t flags = 0;
  // What a deletion hides is gone.
  if (head.mark.timestamp > head.deletion) {
    flags |= kHasMark;
    if (head.mark.timestamp != newest_) {
      flags |= kMarkBack;
      at = PutVarint(at, Distance(newest_, head.mark.timestamp));
    }
    if (head.mark.ttl != 0) {
      flags |= kMarkExpires;
      at = PutExpiry(at, head.mark);
    }
  }
  if (head.deletion != kNeverWritten) {
    flags |= kHasDeletion;
    if (head.deletion != newest_) {
      flags |= kDeletionBack;
      at = PutVarint(at, Distance(newest_, head.deletion));
    }
  }
  if (head.late != 0) {
    flags |= kLate;
    at = PutVarint(at, static_cast<uint64_t>(head.late));
  }
  bytes[9] = static_cast<char>(flags);
  out_.append(bytes, static_cast<size_t>(at - bytes));
}

char* PartWriter::PutExpiry(char* at, const Stamp& stamp) {
  ttl_ = stamp.ttl;
  expires_ = stamp.expires;
  at = PutVarint(at, static_cast<uint64_t>(ttl_));
  return PutVarint(at, ZigZag(expires_));
}

void PartWriter::Add(const Part& part) {
  char bytes[kPartHeadMax];
  char* at = bytes + 1;
  uint8_t flags = static_cast<uint8_t>(part.kind);
  uint32_t step = part.column - column_;
  column_ = part.column;
  flags |= static_cast<uint8_t>(std::min<uint32_t>(step, kStep) << kStepShift);
  if (step >= kStep) {
    at = PutVarint(at, step);
  }
  if (part.stamp.timestamp != newest_) {
    flags |= kBack;
    at = PutVarint(at, Distance(newest_, part.stamp.timestamp));
  }
  if (part.kind == PartKind::kValue && part.stamp.ttl != 0) {
    flags |= kExpires;
    if (part.stamp.ttl != ttl_ || part.stamp.expires != expires_) {
      flags |= kNewExpiry;
      at = PutExpiry(at, part.stamp);
    }
  }
  if (part.kind == PartKind::kCounter) {
    if (part.deleted != kNeverWritten) {
      flags |= kReset;
      at = PutVarint(at, Distance(newest_, part.deleted));
    }
    at = PutVarint(at, ZigZag(part.count));
  }
  bool has_path = !part.path.empty();
  bytes[0] = static_cast<char>(flags | (has_path ? kHasPath : 0));
  if (has_path) {
    at = PutVarint(at, part.path.size());
    out_.append(bytes, static_cast<size_t>(at - bytes));
    out_.append(part.path);
    at = bytes;
  }
  if (part.kind == PartKind::kValue) {
    at = PutVarint(at, part.value.size());
  }
  out_.append(bytes, static_cast<size_t>(at - bytes));
  out_.append(part.value);
}

void PartFolder::Add(const Part& part, int64_t write) {
  if (has_pending_ && ComparePlaces(pending_, part) != 0) {
    Flush();
  }
  if (!has_column_ || part.column != column_) {
    has_column_ = true;
    column_ = part.column;
    column_deletion_ = kNeverWritten;
    last_column_deletion_ = -1;
  }
  if (part.kind == PartKind::kColumnDeletion) {
    column_deletion_ = std::max(column_deletion_, part.stamp.timestamp);
    last_column_deletion_ = std::max(last_column_deletion_, write);
    pending_ = part;
    pending_.stamp.timestamp = column_deletion_;
    has_pending_ = true;
    return;
  }
  if (part.kind == PartKind::kCounter && write < std::max(last_deletion_, last_column_deletion_)) {
    // What was added is gone. A deletion may be newer than the one that removed it, and stays.
    if (part.deleted != kNeverWritten) {
      Part deleted = part;
      deleted.kind = PartKind::kDeleted;
      deleted.stamp.timestamp = part.deleted;
      AddCell(deleted);
    }
    return;
  }
  AddCell(part);
}

void PartFolder::AddCell(const Part& cell) {
  if (has_pending_) {
    Combine(pending_, cell);
  } else {
    pending_ = cell;
    has_pending_ = true;
  }
}

void PartFolder::Flush() {
  if (!has_pending_) {
    return;
  }
  has_pending_ = false;
  int64_t hidden = pending_.kind == PartKind::kColumnDeletion
                       ? deletion_
                       : std::max(deletion_, column_deletion_);
  if (pending_.kind == PartKind::kCounter) {
    // Sums know their deletions by the order of writes; only the mark of one can be hidden.
    if (pending_.deleted <= hidden) {
      pending_.deleted = kNeverWritten;
    }
  } else if (pending_.stamp.timestamp <= hidden) {
    return;
  }
  writer_.Add(pending_);
}

}  // namespace orrery::cql
