// EntryCache: the newest entries of a group's log, in memory, bounded by bytes. What has left it is
// read from the log store.
#pragma once

#include <deque>
#include <vector>

#include "base/check.h"
#include "base/strong_id.h"
#include "storage/log_entry.h"

namespace orrery::replication {

class EntryCache {
 public:
  explicit EntryCache(size_t bytes_max) : bytes_max_(bytes_max) {}

  // The log starts again above `base`.
  void Reset(Lsn base) {
    entries_.clear();
    bytes_ = 0;
    first_ = Lsn(base.value() + 1);
  }
  Lsn last() const { return Lsn(first_.value() + entries_.size() - 1); }

  // What was at and above `first` goes. REQUIRES: no hole.
  void Put(Lsn first, const std::vector<storage::LogEntry>& entries) {
    if (entries_.empty() || first < first_) {
      Reset(Lsn(first.value() - 1));
    }
    ORRERY_CHECK(first.value() <= last().value() + 1);
    while (last() >= first && !entries_.empty()) {
      bytes_ -= entries_.back().bytes();
      entries_.pop_back();
    }
    for (const storage::LogEntry& entry : entries) {
      bytes_ += entry.bytes();
      entries_.push_back(entry);
    }
  }
  // Null: not here.
  const storage::LogEntry* Find(Lsn index) const {
    if (index < first_ || index > last() || entries_.empty()) {
      return nullptr;
    }
    return &entries_[index.value() - first_.value()];
  }
  // Entries up to `done` may go, oldest first, until the bound is kept.
  void Shrink(Lsn done) {
    while (!entries_.empty() && bytes_ > bytes_max_ && first_ <= done) {
      bytes_ -= entries_.front().bytes();
      entries_.pop_front();
      first_ = Lsn(first_.value() + 1);
    }
  }

 private:
  const size_t bytes_max_;
  std::deque<storage::LogEntry> entries_;
  Lsn first_ = Lsn(1);
  size_t bytes_ = 0;
};

}  // namespace orrery::replication
