#include "load/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace orrery::load {
namespace {

constexpr int kSubBits = 7;
constexpr uint64_t kSubBuckets = 1 << kSubBits;
constexpr int kValueBits = 40;
constexpr size_t kBuckets = kSubBuckets * (kValueBits - kSubBits + 1);

size_t BucketOf(uint64_t value) {
  if (value < kSubBuckets) {
    return value;
  }
  value = std::min(value, (uint64_t{1} << kValueBits) - 1);
  int shift = std::bit_width(value) - 1 - kSubBits;
  return kSubBuckets * shift + (value >> shift);
}

int64_t LastValueOf(size_t bucket) {
  if (bucket < kSubBuckets) {
    return static_cast<int64_t>(bucket);
  }
  size_t shift = bucket / kSubBuckets - 1;
  uint64_t top = kSubBuckets + bucket % kSubBuckets;
  return static_cast<int64_t>(((top + 1) << shift) - 1);
}

}  // namespace

Histogram::Histogram() : counts_(kBuckets) {}

void Histogram::Record(int64_t nanos) {
  nanos = std::max<int64_t>(nanos, 0);
  ++counts_[BucketOf(static_cast<uint64_t>(nanos))];
  ++count_;
  max_ = std::max(max_, nanos);
  sum_ += static_cast<double>(nanos);
}

void Histogram::Add(const Histogram& other) {
  for (size_t i = 0; i < kBuckets; ++i) {
    counts_[i] += other.counts_[i];
  }
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
}

double Histogram::Mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

int64_t Histogram::Percentile(double percent) const {
  auto rank = static_cast<uint64_t>(std::ceil(percent / 100 * static_cast<double>(count_)));
  rank = std::clamp<uint64_t>(rank, 1, std::max<uint64_t>(count_, 1));
  uint64_t seen = 0;
  for (size_t i = 0; i < kBuckets; ++i) {
    seen += counts_[i];
    if (seen >= rank) {
      return std::min(LastValueOf(i), max_);
    }
  }
  return max_;
}

}  // namespace orrery::load
