// HotKeys: which logical partitions of a partition use most of its request units at the moment.
//
// A sketch of 64 entries (space-saving): a key that is not in it takes the place of the lightest
// one and inherits its weight, as an error that is known. So every key with more than a 64th of the
// units is in it, and what is shown of a key is what it surely has. Weights fade, a tenth each
// second.
//
// Not every operation is added: of many, each with a chance in proportion to its charge, so that a
// busy partition adds about 256 a second. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace orrery::partition {

class HotKeys {
 public:
  static constexpr size_t kEntries = 64;

  // Whether an operation of this charge (in hundredths, as all here) is one to Add. `before`: what
  // the partition charged before it. Almost free.
  bool Picks(uint64_t before, uint64_t charge) const {
    uint64_t step = step_.load(std::memory_order_relaxed);
    return charge >= step || (Mixed(before) * step) >> 32 < charge;
  }
  // An empty key: it belongs to no logical partition alone.
  void Add(std::string_view key, uint64_t charge, Instant now);

  struct Key {
    std::string key;
    double units_per_second = 0;
    double share = 0;  // of what the partition uses, 0 to 1
  };
  // The hottest first.
  std::vector<Key> Top(size_t most, Instant now);

 private:
  struct Entry {
    std::string key;
    double weight = 0;
    double error = 0;  // of the weight: that of others
  };

  static uint64_t Mixed(uint64_t value) {  // 32 bits
    value *= 0x9E3779B97F4A7C15;
    value ^= value >> 29;
    value *= 0xBF58476D1CE4E5B9;
    return value >> 32;
  }
  void MoveTo(Instant now);  // with mutex_ held

  std::atomic<uint64_t> step_ = 1;  // one is added for about so many hundredths

  std::mutex mutex_;
  int64_t second_ = -1;
  int64_t first_second_ = 0;
  double all_ = 0;          // the weight of everything
  double this_second_ = 0;  // what was added since it began
  std::vector<Entry> entries_;
};

}  // namespace orrery::partition
