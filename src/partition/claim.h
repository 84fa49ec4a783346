// Claim: how an operation wants to be served where units are short: its priority, and the
// throughput bucket that pays for it. Buckets: those of a container.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace orrery::partition {

// Low yields to High where a window has not enough for both.
enum class Priority : uint8_t { kHigh = 0, kLow = 1 };

inline constexpr size_t kBucketsMax = 5;

struct Claim {
  Priority priority = Priority::kHigh;
  uint8_t bucket = 0;  // 1 to kBucketsMax; 0: none was named
  bool operator==(const Claim&) const = default;
};

// Each bucket is the most that its requests may use of a partition's share: a cap, nothing is kept
// for it.
struct Buckets {
  std::array<uint8_t, kBucketsMax> percent{};  // of bucket 1, 2, ...; 0: there is no such bucket
  uint8_t unmarked = 0;  // the bucket of requests that name none; 0: they are in none
  bool operator==(const Buckets&) const = default;

  bool any() const {
    return std::ranges::any_of(percent, [](uint8_t part) { return part != 0; });
  }
  // The bucket that pays; 0: none, also if the one that is named does not exist.
  uint8_t Of(const Claim& claim) const {
    uint8_t bucket = claim.bucket == 0 ? unmarked : claim.bucket;
    return bucket != 0 && bucket <= kBucketsMax && percent[bucket - 1] != 0 ? bucket : 0;
  }
};

}  // namespace orrery::partition
