// Flights: names operations, and knows which of those that it named have ended.
//
// A flight is one operation, from before its first try until its client is answered and no more try
// of it will be sent. Names are an instance, random, and a number that counts from 1. With each
// comes what has settled: all flights of the instance with smaller numbers have ended for ever.
//
// There is an instance for each worker, so that nobody waits for a lock. If one flight does not end
// while very many others do, a new instance goes on, and of the old one nothing more is said.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "base/random.h"
#include "storage/write_set.h"

namespace orrery::partition {

class Flights {
  struct Instance;

 public:
  explicit Flights(Random& random);

  // Ends with the object, which may outlive its Flights.
  class Flight {
   public:
    Flight(Flight&&) = default;
    Flight& operator=(Flight&&) = delete;
    ~Flight();
    const storage::OperationId& id() const { return id_; }
    uint64_t settled() const { return settled_; }

   private:
    friend class Flights;
    Flight(std::shared_ptr<Instance> instance, storage::OperationId id, uint64_t settled)
        : instance_(std::move(instance)), id_(id), settled_(settled) {}
    std::shared_ptr<Instance> instance_;  // null: moved from
    storage::OperationId id_;
    uint64_t settled_;
  };
  Flight Begin();

 private:
  // Of which one worker has one; more workers share them.
  static constexpr size_t kInstances = 16;
  struct Instance {
    std::mutex mutex;
    uint64_t id = 0;           // 0: not begun
    uint64_t first = 1;        // all before it have ended
    std::deque<bool> flights;  // from `first` on; true: it has ended
  };
  Random& random_;
  std::array<std::shared_ptr<Instance>, kInstances> instances_;
};

}  // namespace orrery::partition
