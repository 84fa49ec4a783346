#include "partition/pricing.h"

#include <algorithm>
#include <array>

namespace orrery::partition {

namespace {

constexpr size_t kKilobyte = 1024;

struct PriceRow {
  size_t kilobytes;
  RequestUnits read;
  RequestUnits write;
};

// "Understand request unit consumption", Azure Cosmos DB documentation: indexing off, session
// consistency.
constexpr std::array<PriceRow, 12> kTable = {{
    {1, RequestUnits(1.00), RequestUnits(4.95)},
    {2, RequestUnits(1.04), RequestUnits(6.29)},
    {4, RequestUnits(1.14), RequestUnits(6.67)},
    {8, RequestUnits(1.33), RequestUnits(7.04)},
    {16, RequestUnits(1.67), RequestUnits(9.52)},
    {32, RequestUnits(2.19), RequestUnits(11.23)},
    {64, RequestUnits(4.76), RequestUnits(22.67)},
    {128, RequestUnits(9.95), RequestUnits(48.19)},
    {256, RequestUnits(20.28), RequestUnits(98.29)},
    {512, RequestUnits(40.95), RequestUnits(184.57)},
    {1024, RequestUnits(145.90), RequestUnits(625.00)},
    {2048, RequestUnits(291.80), RequestUnits(1250.00)},
}};

constexpr RequestUnits kTerm(0.2);
constexpr RequestUnits kPatchOperation(0.4);
constexpr RequestUnits kRefusedWrite(1.24);
constexpr RequestUnits kThrottled(0.38);
constexpr RequestUnits kControlRead(1.0);
constexpr RequestUnits kControlWrite(4.95);
constexpr RequestUnits kFeedRequest(1.26);
constexpr RequestUnits kFeedThousandItems(4.0);
constexpr RequestUnits kFeedKilobyte(0.08);
// Where the price of a kilobyte in the table rises above kFeedKilobyte.
constexpr size_t kFeedLargeItem = 512 * kKilobyte;

// The price times count / unit, rounded to the nearest hundredth.
RequestUnits Share(RequestUnits price, size_t count, size_t unit) {
  const auto whole = static_cast<int64_t>(unit);
  const int64_t total = price.hundredths() * static_cast<int64_t>(count);
  return RequestUnits::Hundredths((total + whole / 2) / whole);
}

RequestUnits FromTable(size_t bytes, RequestUnits PriceRow::* price) {
  if (bytes <= kTable.front().kilobytes * kKilobyte) {
    return kTable.front().*price;
  }
  // The end of the segment that `bytes` falls into; the last segment has no end.
  size_t high = 1;
  while (high + 1 < kTable.size() && bytes > kTable[high].kilobytes * kKilobyte) {
    ++high;
  }
  const PriceRow& from = kTable[high - 1];
  const PriceRow& to = kTable[high];
  return from.*price + Share(to.*price - from.*price, bytes - from.kilobytes * kKilobyte,
                             (to.kilobytes - from.kilobytes) * kKilobyte);
}

RequestUnits Write(size_t bytes) { return FromTable(bytes, &PriceRow::write); }

RequestUnits Terms(size_t terms) { return kTerm * static_cast<int64_t>(terms); }

RequestUnits ForReplicas(RequestUnits one, ReadPrice price) {
  return price == ReadPrice::kTwoReplicas ? one * 2 : one;
}

// What the items of a page cost by their bytes.
RequestUnits FeedBytes(size_t items, size_t items_bytes) {
  const size_t average = items_bytes / std::max<size_t>(items, 1);
  if (average > kFeedLargeItem) {
    return PriceOfRead(average) * static_cast<int64_t>(items);
  }
  return std::max(PriceOfRead(average), Share(kFeedKilobyte, items_bytes, kKilobyte));
}

}  // namespace

std::string RequestUnits::ToString() const {
  const int64_t size = hundredths_ < 0 ? -hundredths_ : hundredths_;
  std::string text = (hundredths_ < 0 ? "-" : "") + std::to_string(size / 100);
  const int64_t fraction = size % 100;
  if (fraction == 0) {
    return text;
  }
  text += '.';
  text += static_cast<char>('0' + fraction / 10);
  if (fraction % 10 != 0) {
    text += static_cast<char>('0' + fraction % 10);
  }
  return text;
}

RequestUnits PriceOfRead(size_t item_bytes, ReadPrice price) {
  return ForReplicas(FromTable(item_bytes, &PriceRow::read), price);
}

RequestUnits PriceOfMiss(ReadPrice price) { return PriceOfRead(0, price); }

RequestUnits PriceOfCreate(size_t item_bytes, size_t terms) {
  return Write(item_bytes) + Terms(terms);
}

RequestUnits PriceOfReplace(size_t old_bytes, size_t new_bytes, size_t terms_removed,
                            size_t terms_added) {
  return Write(old_bytes) + Write(new_bytes) + Terms(terms_removed) + Terms(terms_added);
}

RequestUnits PriceOfPatch(size_t old_bytes, size_t new_bytes, size_t terms_removed,
                          size_t terms_added, size_t operations) {
  return PriceOfReplace(old_bytes, new_bytes, terms_removed, terms_added) +
         kPatchOperation * static_cast<int64_t>(operations);
}

RequestUnits PriceOfDelete(size_t item_bytes, size_t terms) {
  return Write(item_bytes) + Terms(terms);
}

RequestUnits PriceOfFeed(size_t items, size_t items_bytes, ReadPrice price) {
  const RequestUnits one =
      kFeedRequest + Share(kFeedThousandItems, items, 1000) + FeedBytes(items, items_bytes);
  return ForReplicas(one, price);
}

RequestUnits PriceOfRefusedWrite() { return kRefusedWrite; }

RequestUnits PriceOfThrottled() { return kThrottled; }

RequestUnits PriceOfControl(bool write) { return write ? kControlWrite : kControlRead; }

RequestUnits LeastPriceOfRead() { return PriceOfRead(0); }

RequestUnits LeastPriceOfWrite(size_t request_bytes) { return Write(request_bytes); }

}  // namespace orrery::partition
