// Pricing: what an operation costs, a pure function of what it did.
//
// The published table (reads and writes by size, indexing off, session consistency) is the base;
// sizes between its rows are interpolated, sizes below 1 KB cost as 1 KB, above 2 MB as the last
// slope. Each index term added or removed costs 0.2 RU more. Sizes are those of the stored form, a
// KB is 1024 bytes.
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
  constexpr explicit RequestUnits(double units)
      : hundredths_(static_cast<int64_t>(units * 100 + (units < 0 ? -0.5 : 0.5))) {}
  static constexpr RequestUnits Hundredths(int64_t hundredths) {
    RequestUnits units;
    units.hundredths_ = hundredths;
    return units;
  }
  constexpr int64_t hundredths() const { return hundredths_; }
  constexpr double value() const { return static_cast<double>(hundredths_) / 100; }
  constexpr RequestUnits operator+(RequestUnits other) const {
    return Hundredths(hundredths_ + other.hundredths_);
  }
  constexpr RequestUnits operator-(RequestUnits other) const {
    return Hundredths(hundredths_ - other.hundredths_);
  }
  constexpr RequestUnits operator-() const { return Hundredths(-hundredths_); }
  constexpr RequestUnits operator*(int64_t times) const { return Hundredths(hundredths_ * times); }
  constexpr RequestUnits& operator+=(RequestUnits other) { return *this = *this + other; }
  constexpr RequestUnits& operator-=(RequestUnits other) { return *this = *this - other; }
  constexpr auto operator<=>(const RequestUnits&) const = default;
  // "1", "4.95", "10.8": at most two decimals, no trailing zeros.
  std::string ToString() const;

 private:
  int64_t hundredths_ = 0;
};

// Strong and bounded staleness read two replicas.
enum class ReadPrice : uint8_t { kOneReplica, kTwoReplicas };
// How new what is read must be. Strong reads go to the leader, and those of a session without its
// token; the others to any replica that has what the client has seen, bounded ones if it is surely
// as new as the account's bound asks for.
enum class ReadLevel : uint8_t { kStrong, kBounded, kSession, kPrefix, kEventual };
inline ReadPrice PriceOfLevel(ReadLevel level) {
  return level <= ReadLevel::kBounded ? ReadPrice::kTwoReplicas : ReadPrice::kOneReplica;
}

RequestUnits PriceOfRead(size_t item_bytes, ReadPrice price = ReadPrice::kOneReplica);
// A read that found nothing, or whose copy was current (304).
RequestUnits PriceOfMiss(ReadPrice price = ReadPrice::kOneReplica);
RequestUnits PriceOfCreate(size_t item_bytes, size_t terms);
// Takes the old version away and puts the new one in its place.
RequestUnits PriceOfReplace(size_t old_bytes, size_t new_bytes, size_t terms_removed,
                            size_t terms_added);
// A replace, and 0.4 for each patch operation.
RequestUnits PriceOfPatch(size_t old_bytes, size_t new_bytes, size_t terms_removed,
                          size_t terms_added, size_t operations);
RequestUnits PriceOfDelete(size_t item_bytes, size_t terms);

// One page of a feed or query on one partition:
//   1.26   for the request
//   0.004  for each item
//   0.08   for each KB of all items together, but not less than the point read of one of them
// 0.08 is what the table takes for each KB from 64 KB to 512 KB. Above that a point read is dearer,
// so a page whose items are that large on average costs the sum of their reads instead. A page with
// one small item, or none, costs 2.26 (measured on the service: 2.26), and 1,000 rows of 150 bytes
// cost 16.98 (measured: 17.16). Only the first part depends on where pages are cut.
RequestUnits PriceOfFeed(size_t items, size_t items_bytes,
                         ReadPrice price = ReadPrice::kOneReplica);

// A write that was refused after it read (409, 412, failed condition).
RequestUnits PriceOfRefusedWrite();
// What a throttled request reports. It is not taken from the budget.
RequestUnits PriceOfThrottled();
// One request of the control plane (databases, containers, offers, account).
RequestUnits PriceOfControl(bool write);

// The least that an operation can cost if it succeeds, known before it runs. One that is refused,
// or whose item is stored in fewer bytes than it was sent in, may cost less and gives the rest
// back.
RequestUnits LeastPriceOfRead();
RequestUnits LeastPriceOfWrite(size_t request_bytes);

}  // namespace orrery::partition
