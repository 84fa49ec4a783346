// Histogram: latencies in log-linear buckets.
//
// Values below 128 ns have a bucket each. Above, every power of two is cut into 128 equal buckets,
// so that a reported value is at most 0.8% above the recorded one. Values beyond 2^40 ns (18
// minutes) share the last bucket; the maximum is exact. A copy takes 34 KB. Not thread-safe: one
// per loop, added at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace orrery::load {

class Histogram {
 public:
  Histogram();

  void Record(int64_t nanos);  // below zero counts as zero
  void Add(const Histogram& other);

  uint64_t count() const { return count_; }
  int64_t max() const { return max_; }
  double Mean() const;
  // The smallest value that `percent` of all values do not exceed, rounded up to the end of its
  // bucket; zero if nothing was recorded.
  int64_t Percentile(double percent) const;

 private:
  std::vector<uint64_t> counts_;
  uint64_t count_ = 0;
  int64_t max_ = 0;
  double sum_ = 0;
};

}  // namespace orrery::load
