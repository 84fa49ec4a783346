// Keys: how the data and the requests of an imagined container lie on the ring, at any time.
//
// Large logical partitions are known one by one, each at its place (the hash of its key). The many
// small ones are a background that is spread evenly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace orrery::forecast {

enum class KeyKind : uint8_t {
  kUniform,    // many values, all alike: an id
  kZipf,       // few large ones and many small ones: a customer
  kHotTenant,  // one that has a third of the data and half of the requests
  kTime,       // the time of writing: one value after the other gets everything
  kGrowing,    // values come one after the other and grow from then on: a device, a shop
};
Result<KeyKind> ParseKeyKind(std::string_view name);
std::string_view KeyKindName(KeyKind kind);
std::string_view KeyKindText(KeyKind kind);  // what it is, in a few words

class Keys {
 public:
  // `count`: distinct values. `steps`: of time.
  Keys(KeyKind kind, uint64_t count, size_t steps, uint64_t seed);

  // Makes it so as it is at a step, 0 .. steps - 1, when the container should have `bytes` and gets
  // requests of `demand` RU/s. No logical partition grows over `logical_bytes`.
  void MoveTo(size_t step, double bytes, double demand, double logical_bytes);

  // Of the large ones, in the order of places.
  size_t size() const { return places_.size(); }
  // The first large one at or behind a place.
  size_t At(uint64_t place) const;
  // What lies in [first, last], whose large ones are [begin, end).
  double Bytes(uint64_t first, uint64_t last, size_t begin, size_t end) const;
  double Demand(uint64_t first, uint64_t last, size_t begin, size_t end) const;

  double bytes() const { return even_bytes_ + bytes_before_.back(); }
  double refused_bytes() const { return refused_; }  // over the limit of logical partitions
  size_t over_limit() const { return over_limit_; }  // logical partitions at the limit
  double largest() const { return largest_; }        // bytes of the largest logical partition

 private:
  struct Weight {
    double bytes;
    double demand;
  };
  Weight WeightAt(size_t key, size_t step) const;

  const KeyKind kind_;
  const size_t steps_;
  std::vector<uint64_t> places_;  // ascending
  std::vector<size_t> rank_;      // of the key at each place: 0 is the largest, or the first
  std::vector<double> share_;     // by rank
  std::vector<double> born_;      // by rank, in steps
  double even_share_ = 0;         // of the background

  std::vector<double> bytes_before_;  // sums over the keys before each
  std::vector<double> demand_before_;
  double even_bytes_ = 0;
  double even_demand_ = 0;
  double refused_ = 0;
  size_t over_limit_ = 0;
  double largest_ = 0;
};

}  // namespace orrery::forecast
