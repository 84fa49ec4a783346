// Pricing: what an operation costs, a pure function of what it did.
//
// The published table (reads and writes by size, indexing off, session consistency) is the base; sizes
// between its rows are interpolated, sizes below 1 KB cost as 1 KB, above 2 MB as the last slope. Each
// index term added or removed costs 0.2 RU more.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

namespace orrery::partition {

// Request units, exact to a hundredth.
class RequestUnits {
 public:
  constexpr RequestUnits() = default;
  constexpr explicit RequestUnits(double units) : hundredths_(static_cast<int64_t>(units * 100 + (units < 0 ? -0.5 : 0.5))) {}
  static constexpr RequestUnits Hundredths(int64_t hundredths) {
    RequestUnits units;
    units.hundredths_ = hundredths;
    return units;
  }
  constexpr int64_t hundredths() const { return hundredths_; }
  constexpr double value() const { return static_cast<double>(hundredths_) / 100; }
  constexpr RequestUnits operator+(RequestUnits other) const { return Hundredths(hundredths_ + other.hundredths_); }
  constexpr RequestUnits operator-(RequestUnits other) const { return Hundredths(hundredths_ - other.hundredths_); }
  constexpr RequestUnits& operator+=(RequestUnits other) { hundredths_ += other.hundredths_; return *this; }
  constexpr auto operator<=>(const RequestUnits&) const = default;
  // "1", "4.95", "10.8": at most two decimals, no trailing zeros.
  std::string ToString() const;

 private:
  int64_t hundredths_ = 0;
};

// Strong and bounded staleness read two replicas.
enum class ReadPrice : uint8_t { kOneReplica, kTwoReplicas };

RequestUnits PriceOfRead(size_t item_bytes, ReadPrice price = ReadPrice::kOneReplica);
// A read that found nothing, or whose copy was current (304).
RequestUnits PriceOfMiss(ReadPrice price = ReadPrice::kOneReplica);
RequestUnits PriceOfCreate(size_t item_bytes, size_t terms);
// Takes the old version away and puts the new one in its place.
RequestUnits PriceOfReplace(size_t old_bytes, size_t new_bytes, size_t terms_removed, size_t terms_added);
// A replace, and 0.4 for each patch operation.
RequestUnits PriceOfPatch(size_t old_bytes, size_t new_bytes, size_t terms_removed, size_t terms_added,
                          size_t operations);
RequestUnits PriceOfDelete(size_t item_bytes, size_t terms);
// A page of a feed or query: the fixed part of a request on one partition, then the reads of its items.
RequestUnits PriceOfFeed(size_t items, size_t items_bytes, ReadPrice price = ReadPrice::kOneReplica);
// A write that was refused after it read (409, 412, failed condition).
RequestUnits PriceOfRefusedWrite();
// What a throttled request reports. It is not taken from the budget.
RequestUnits PriceOfThrottled();
// One request of the control plane (databases, containers, offers, account).
RequestUnits PriceOfControl(bool write);

// The least that an operation can cost, known before it runs.
RequestUnits LeastPriceOfRead();
RequestUnits LeastPriceOfWrite(size_t request_bytes);

}  // namespace orrery::partition
