// Latches: who may evaluate what, while, in one partition.
//
// An operation names all that it will touch (hashes of items, logical partitions, unique values), takes
// them in order, all at once, and holds them until its writes are applied. Exclusive latches keep all
// others out, shared ones only the exclusive; waiting is first come, first served, so nobody starves.
// A hash collision only makes two operations wait for each other.
//
// Lives on the partition's worker, not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "runtime/task.h"

namespace orrery::partition {

struct Latch {
  uint64_t name = 0;
  bool exclusive = true;
  auto operator<=>(const Latch&) const = default;
};

class Latches {
 public:
  // Gives the latches back when it goes.
  class Guard {
   public:
    Guard() = default;
    Guard(Guard&& other) noexcept;
    Guard& operator=(Guard&& other) noexcept;
    ~Guard();

   private:
    friend class Latches;
    Guard(Latches* latches, std::vector<Latch> held) : latches_(latches), held_(std::move(held)) {}
    Latches* latches_ = nullptr;
    std::vector<Latch> held_;
  };

  // Sorts, merges duplicates (exclusive wins) and waits until all are free.
  runtime::Task<Guard> Acquire(std::vector<Latch> wanted);
  // Latches held or waited for; zero when idle.
  size_t size() const { return entries_.size(); }

 private:
  struct Waiter {
    bool exclusive;
    std::function<void()> resume;
  };
  struct Entry {
    size_t shared = 0;
    bool exclusive = false;
    std::deque<Waiter> waiters;
  };
  bool TryTake(Latch latch);
  void Release(Latch latch);

  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace orrery::partition
