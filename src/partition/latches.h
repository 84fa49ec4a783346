// Latches: who may evaluate what, while, in one partition.
//
// An operation names all that it will touch (hashes of items, logical partitions, unique values)
// and holds it until its writes are applied. It stands in all of its queues from the moment it
// asks, so the order of asking is the order in every queue: nobody starves, and two operations
// never wait for each other. Exclusive latches keep all others out, shared ones only the exclusive;
// a shared one does not overtake an exclusive one that waits. A hash collision only makes one
// operation wait for another.
//
// Lives on the partition's worker, not thread-safe. Outlives its guards: its owner closes the gate
// of the operations first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
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
    void GiveBack();

    Latches* latches_ = nullptr;
    std::vector<Latch> held_;
  };

  Latches() = default;
  Latches(const Latches&) = delete;
  Latches& operator=(const Latches&) = delete;

  // Sorts, merges duplicates (exclusive wins) and waits until all are free; does not suspend if
  // they are.
  runtime::Task<Guard> Acquire(std::vector<Latch> wanted);
  // Latches held or waited for; zero when idle.
  size_t size() const { return entries_.size(); }

 private:
  // An operation that waits; its queues own it.
  struct Waiter;
  struct Place {
    bool exclusive;
    std::shared_ptr<Waiter> waiter;
  };
  // While anybody is in `queue` somebody holds the latch.
  struct Entry {
    size_t shared = 0;
    bool exclusive = false;
    std::list<Place> queue;  // a list, because it allocates nothing while it is empty
    bool IsFreeFor(bool exclusively) const { return !exclusive && (!exclusively || shared == 0); }
    void Hold(bool exclusively);
  };

  bool TryTake(Latch latch);
  // Takes what is free and queues for the rest; null if all was free.
  Waiter* TakeOrQueue(const std::vector<Latch>& wanted);
  void Release(Latch latch);

  std::unordered_map<uint64_t, Entry> entries_;
};

}  // namespace orrery::partition
