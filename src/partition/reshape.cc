#include "partition/reshape.h"

#include <algorithm>
#include <cstdlib>

#include "base/bytes.h"

namespace orrery::partition {

namespace {

constexpr uint8_t kMarkVersion = 1;
constexpr double kMiddleShare = 0.4;  // at least, for the middle of the range to be taken
constexpr double kLeastShare = 0.05;

void EncodeTotals(Encoder& encoder, const storage::Totals& totals) {
  encoder.U64(static_cast<uint64_t>(totals.bytes));
  encoder.U64(static_cast<uint64_t>(totals.items));
}

storage::Totals DecodeTotals(Decoder& decoder) {
  storage::Totals totals;
  totals.bytes = static_cast<int64_t>(decoder.U64());
  totals.items = static_cast<int64_t>(decoder.U64());
  return totals;
}

}  // namespace

std::string FreezeMark::Encode() const {
  std::string bytes;
  Encoder encoder(bytes);
  encoder.U8(kMarkVersion);
  encoder.U64(heir.value());
  encoder.Bytes(cut);
  EncodeTotals(encoder, left);
  EncodeTotals(encoder, right);
  return bytes;
}

Result<FreezeMark> FreezeMark::Decode(std::string_view bytes) {
  Decoder decoder(bytes);
  FreezeMark mark;
  uint8_t version = decoder.U8();
  mark.heir = PartitionId(decoder.U64());
  mark.cut = decoder.Bytes();
  mark.left = DecodeTotals(decoder);
  mark.right = DecodeTotals(decoder);
  if (!decoder.done() || version != kMarkVersion) {
    return Error(Code::kCorruption, "the mark of a frozen partition is malformed");
  }
  return mark;
}

// Whether a cut that leaves so much of the bytes before it keeps `share` on both sides.
bool CutFinder::Within(double share) const {
  auto left = static_cast<double>(reached_.bytes);
  auto all = static_cast<double>(bytes_);
  return left >= share * all && left <= (1 - share) * all;
}

void CutFinder::Offer(types::Epk place) {
  auto distance = [this](int64_t left) { return std::abs(left - bytes_ / 2); };
  if (Within(kLeastShare) && (!best_ || distance(reached_.bytes) < distance(best_->left.bytes))) {
    best_ = Cut{std::move(place), reached_};
  }
}

bool CutFinder::Add(std::string_view epk, int64_t bytes) {
  if (!passed_middle_ && epk >= middle_) {
    passed_middle_ = true;
    middle_left_ = reached_;
    if (reached_.items > 0 && Within(kMiddleShare)) {
      best_ = Cut{middle_, reached_};
      return false;
    }
  }
  if (reached_.items > 0 && epk != at_) {
    Offer(types::Epk(epk));
    if (best_ && reached_.bytes > bytes_ / 2 && (passed_middle_ || !Within(kMiddleShare))) {
      return false;
    }
  }
  at_ = epk;
  reached_.bytes += bytes;
  ++reached_.items;
  return true;
}

}  // namespace orrery::partition
