// WriteSet: what one operation changes, in the form in which it stands in the log.
//
// Nothing about an API is left in it, so a replica applies it without thinking: puts and deletes of
// items, index entries and catalog records, the change of totals, and for a retry the operation's
// id with its result. Built directly in its encoded form:
//
//   version u8 = 1, time u64, operation id u64 u64, bytes change (zigzag varint), count change
//   (zigzag), result bytes, then changes until the end: kind u8, space u8, key bytes, [value bytes]
//
// With version 2, before the changes: frozen bytes. With version 3: settled varint.
//
// See docs/formats/log.md.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "base/strong_id.h"
#include "base/time.h"
#include "storage/keys.h"

namespace orrery::storage {

// Names one operation; every try of it inside the server carries the same. Who can say which of its
// operations have ended (partition/flights.h) counts them in `low`; otherwise both are random.
struct OperationId {
  uint64_t high = 0;  // who named it; random
  uint64_t low = 0;
  auto operator<=>(const OperationId&) const = default;
};

// `high` is random but the same for many; `low` may just count.
struct OperationIdHash {
  size_t operator()(const OperationId& id) const {
    uint64_t mixed = id.high ^ (id.low * 0x9E3779B97F4A7C15);
    return mixed ^ (mixed >> 32);
  }
};

// Exact totals of the items of one partition.
struct Totals {
  int64_t bytes = 0;
  int64_t items = 0;
  bool operator==(const Totals&) const = default;
};

class WriteSet {
 public:
  void PutItem(std::string_view key, std::string_view encoded_item);  // apply stamps its LSN
  void Put(Space space, std::string_view key, std::string_view value);
  void Merge(Space space, std::string_view key, std::string_view operand);
  void Delete(Space space, std::string_view key);

  bool empty() const { return changes_.empty(); }
  size_t bytes() const { return changes_.size(); }
  Totals change;
  WallTime time;
  OperationId id;
  std::string result;  // what a repetition is answered with
  // All operations with the same `id.high` and a smaller `id.low` have ended for ever; 0: nothing
  // is said. REQUIRES: 0 if `frozen` is set.
  uint64_t settled = 0;
  // The group takes no more writes from here on, and why, in its owner's form; empty: it does
  // again.
  std::optional<std::string> frozen;
  // Deletes more than it writes: goes on while the disk is nearly full. Not part of the encoded
  // form.
  bool frees_space = false;

  std::string Encode() const;

 private:
  std::string changes_;
};

// One change of a WriteSet, as a reader of the log sees it.
struct WriteSetChange {
  Space space = Space::kItems;
  std::string_view key;
  std::optional<std::string_view> value;  // of a merge its operand; none: a delete
};

// A WriteSet read back from its bytes.
class WriteSetView {
 public:
  // kCorruption if it is malformed, of a newer version, or names a space that does not exist.
  static Result<WriteSetView> Parse(std::string_view bytes);

  WallTime time;
  OperationId id;
  Totals change;
  std::string_view result;
  uint64_t settled = 0;
  std::optional<std::string_view> frozen;

  // Adds the changes to a batch, with the LSN stamped into items. kCorruption as above.
  Status AddTo(Batch& batch, Lsn lsn) const;
  // Visits the changes in order; items are not stamped. kCorruption as above, after those before
  // it.
  Status ForEach(const std::function<void(const WriteSetChange&)>& visit) const;

 private:
  std::string_view changes_;
};

}  // namespace orrery::storage
