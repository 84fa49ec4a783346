// OutcomeMemory: what the operations of one partition came to, for those that come again.
//
// Whoever names operations one after the other (an instance, partition/flights.h) says with each of
// them which have ended: of those nothing is remembered but that they have. Of each instance there
// is a mark; an operation below it that is not remembered is refused, because nobody waits for it
// and it may have been done. Of others the newest outcomes are remembered, for some time; what is
// forgotten of an instance by these limits raises its mark too.
//
// It depends on nothing but the entries of the log, in their order, so all replicas remember the
// same at the same entry. It is encoded with the LSN of the last one; what comes again of the log
// up to there, after a restart or behind a snapshot, changes nothing.
//
//   version u8 = 1, time u64, outcome*             as long as no instance has said anything
//   version u8 = 2, time u64, lsn u64, count varint, (instance u64, mark varint, time u64) * count,
//   outcome*                                       oldest first
//   outcome := operation id u64 u64, lsn u64, time u64, result bytes
//
// Lives on the partition's worker, not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/strong_id.h"
#include "base/time.h"
#include "storage/write_set.h"

namespace orrery::partition {

class OutcomeMemory {
 public:
  struct Outcome {
    Lsn lsn;
    std::string result;
  };

  OutcomeMemory() = default;
  OutcomeMemory(OutcomeMemory&&) = default;
  OutcomeMemory& operator=(OutcomeMemory&&) = default;

  // Null: nothing is known of it, or no longer.
  const Outcome* Recall(const storage::OperationId& id) const;
  // It has ended, or was forgotten: whether it was done cannot be told any more.
  bool Refuses(const storage::OperationId& id) const;

  // What an entry of the log says. `settled` as in WriteSet. Times rise, and so do LSNs.
  void Remember(const storage::OperationId& id, uint64_t settled, Lsn lsn, std::string_view result,
                WallTime time);

  // `time` is the newest that its owner has given.
  std::string Encode(WallTime time) const;
  // Takes what was encoded later in the place of what is here; version 1, which does not tell, in
  // addition to it. The time that it was encoded with; nothing if it is malformed.
  std::optional<WallTime> Decode(std::string_view bytes);
  // What was encoded of two partitions, as one. Either may be empty.
  static std::string Join(std::string_view a, std::string_view b);

  size_t size() const { return order_.size(); }
  size_t instances() const { return instances_.size(); }

 private:
  struct Entry {
    storage::OperationId id;
    Outcome outcome;
    WallTime time;
  };
  using Order = std::list<Entry>;
  struct Instance {
    uint64_t mark = 0;
    WallTime time;                  // when it was last heard of
    std::set<uint64_t> remembered;  // what of it is in `order_`
  };

  Instance* Find(uint64_t instance);
  Instance& Hear(uint64_t instance, WallTime time);
  void MakeRoom(WallTime time);
  void Add(Entry entry);
  void Erase(const storage::OperationId& id);
  void Trim(WallTime time);
  void Merge(OutcomeMemory other);

  Lsn as_of_;
  Order order_;  // oldest first
  std::unordered_map<storage::OperationId, Order::iterator, storage::OperationIdHash> found_;
  std::unordered_map<uint64_t, Instance> instances_;
};

}  // namespace orrery::partition
