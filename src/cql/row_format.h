// The bytes of a stored row: how its parts are read and written one after the other. For row.cc,
// row_merge.cc and deletions.cc; others include row.h, where the form is told.
//
// A PartReader checks what it reads, so parts come in order and no view leaves the input.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "cql/row.h"

namespace orrery::cql {

// The first byte: the kind in its upper half, the version in its lower.
inline constexpr uint8_t kMalformedTag = 0x00;
inline constexpr uint8_t kRowTag = 0x11;
inline constexpr uint8_t kDeletionsTag = 0x21;

// In the order in which parts of the same place stand: a column's deletion has no path.
enum class PartKind : uint8_t { kColumnDeletion, kValue, kDeleted, kCounter };

// A deletion of a column, or a cell.
struct Part {
  PartKind kind = PartKind::kValue;
  uint32_t column = 0;
  std::string_view path;
  Stamp stamp;
  std::string_view value;
  int64_t count = 0;                // of a counter: what was added since it was deleted
  int64_t deleted = kNeverWritten;  // of a counter: its latest deletion
};

struct RowHead {
  int64_t newest = kNeverWritten;    // of all that was ever merged into the row
  Stamp mark;                        // kNeverWritten: none
  int64_t deletion = kNeverWritten;  // of the row
  int64_t late = 0;  // when the last deletion was written that is older by its timestamp
};

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>((value >> 1) ^ (~(value & 1) + 1));
}
// Counters wrap around.
inline int64_t WrappingSum(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Negative: `a` stands before `b`. Zero: the same place.
inline int ComparePlaces(const Part& a, const Part& b) {
  if (a.column != b.column) {
    return a.column < b.column ? -1 : 1;
  }
  bool a_first = a.kind == PartKind::kColumnDeletion;
  bool b_first = b.kind == PartKind::kColumnDeletion;
  if (a_first || b_first) {
    return static_cast<int>(b_first) - static_cast<int>(a_first);
  }
  return a.path.compare(b.path);
}

// Above zero: `a` takes precedence, if both are of marks or of values. Zero: they are the same.
int CompareStamps(const Stamp& a, const Stamp& b);

// Makes of a cell what it and another of its place amount to, which is merged after it.
void Combine(Part& sum, const Part& next);

// A Decoder whose functions are inlined: reading a row is most of what a query does.
class FastDecoder {
 public:
  explicit FastDecoder(std::string_view in) : at_(in.data()), end_(in.data() + in.size()) {}
  bool ok() const { return ok_; }
  bool empty() const { return at_ == end_; }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  void Fail() {
    ok_ = false;
    at_ = end_;
  }
  uint8_t U8() {
    if (at_ == end_) [[unlikely]] {
      Fail();
      return 0;
    }
    return static_cast<uint8_t>(*at_++);
  }
  uint64_t U64() {
    std::string_view bytes = Raw(8);
    return bytes.empty() ? 0 : GetU64(bytes.data());
  }
  uint64_t Varint() {
    if (at_ != end_ && static_cast<uint8_t>(*at_) < 0x80) [[likely]] {
      return static_cast<uint8_t>(*at_++);
    }
    return LongVarint();
  }
  std::string_view Raw(uint64_t size) {
    if (size > left()) [[unlikely]] {
      Fail();
      return {};
    }
    std::string_view bytes(at_, size);
    at_ += size;
    return bytes;
  }
  std::string_view Bytes() { return Raw(Varint()); }
  // Seconds since 1970, not 0.
  int64_t Late() {
    const uint64_t late = Varint();
    if (late == 0 || late > static_cast<uint64_t>(INT64_MAX)) [[unlikely]] {
      Fail();
      return 0;
    }
    return static_cast<int64_t>(late);
  }
  // `newest` less a varint.
  int64_t Back(int64_t newest) { return Before(newest, Varint()); }
  int64_t Before(int64_t newest, uint64_t back) {
    if (back > static_cast<uint64_t>(newest) - static_cast<uint64_t>(kNeverWritten)) [[unlikely]] {
      Fail();
      return kNeverWritten;
    }
    return static_cast<int64_t>(static_cast<uint64_t>(newest) - back);
  }

 private:
  uint64_t LongVarint();

  const char* at_;
  const char* end_;
  bool ok_ = true;
};

// Reads a row from its front to its end.
class PartReader {
 public:
  // Of a row that is malformed ok() is false at once, or after the Next() that found it.
  explicit PartReader(std::string_view row);
  bool ok() const { return in_.ok(); }
  const RowHead& head() const { return head_; }
  // False at the end, and where the row is malformed.
  bool Next() {
    if (in_.empty()) {
      return false;
    }
    ReadPart();
    return in_.ok();
  }
  // The part that Next() found.
  const Part& part() const { return part_; }

 private:
  void ReadPart();
  void ReadPlace(uint8_t flags);
  void ReadExpiry(Stamp& stamp);

  FastDecoder in_;
  RowHead head_;
  Part part_;
  bool first_ = true;
  // The expiry that stood last.
  int32_t ttl_ = 0;
  int64_t expires_ = 0;
};

// Writes a row from its front to its end. REQUIRES: parts come in their order.
class PartWriter {
 public:
  PartWriter(std::string& out, const RowHead& head);
  void Add(const Part& part);

 private:
  char* PutExpiry(char* at, const Stamp& stamp);

  std::string& out_;
  const int64_t newest_;
  uint32_t column_ = 0;
  int32_t ttl_ = 0;
  int64_t expires_ = 0;
};

// Takes the parts of a row by place, those of one place in the order of merging, and writes what
// is left of them.
class PartFolder {
 public:
  // `last_deletion`: the latest of the writes that deleted the row; -1: none did.
  PartFolder(std::string& out, const RowHead& head, int64_t last_deletion)
      : writer_(out, head), deletion_(head.deletion), last_deletion_(last_deletion) {}
  // REQUIRES: of equal places writes come in their order.
  void Add(const Part& part, int64_t write);
  void Finish() { Flush(); }

 private:
  void AddCell(const Part& cell);
  void Flush();

  PartWriter writer_;
  const int64_t deletion_;
  const int64_t last_deletion_;
  // The column that parts come from now.
  bool has_column_ = false;
  uint32_t column_ = 0;
  int64_t column_deletion_ = kNeverWritten;
  int64_t last_column_deletion_ = -1;
  // What the parts of the present place amount to so far.
  bool has_pending_ = false;
  Part pending_;
};

// What is merged, oldest first.
class Inputs {
 public:
  Inputs(const std::optional<std::string_view>& existing,
         std::span<const std::string_view> operands)
      : existing_(existing), operands_(operands) {}
  size_t size() const { return operands_.size() + (existing_ ? 1 : 0); }
  std::string_view operator[](size_t i) const {
    if (!existing_) {
      return operands_[i];
    }
    return i == 0 ? *existing_ : operands_[i - 1];
  }

 private:
  const std::optional<std::string_view>& existing_;
  std::span<const std::string_view> operands_;
};

// The least horizon before which a deletion, or something that expires, has died.
inline int64_t After(int64_t timestamp) {
  return timestamp == INT64_MAX ? timestamp : timestamp + 1;
}
inline int64_t SecondsToMicros(int64_t seconds) {
  constexpr int64_t kMicros = 1'000'000;
  return std::clamp(seconds, INT64_MIN / kMicros, INT64_MAX / kMicros) * kMicros;
}
inline int64_t DeletionDies(int64_t timestamp, int64_t late) {
  return std::max(After(timestamp), late == 0 ? kNeverWritten : SecondsToMicros(After(late)));
}
inline int64_t ExpiryDies(const Stamp& stamp) {
  return std::max(After(stamp.timestamp), SecondsToMicros(stamp.expires));
}

// Nothing: one of them is malformed. In deletions.cc.
std::optional<std::string> MergeDeletions(const Inputs& inputs);

}  // namespace orrery::cql
